/* What the tests of src/cc share: a directory and a context of their own for each test, files, messages, ptxas. */
#ifndef TESTS_CC_COMMON_H
#define TESTS_CC_COMMON_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/file.h"
#include "base/process.h"
#include "intarsia/cc.h"

typedef struct fixture {
    its_context *ctx;
    char dir[512];
    its_unit *unit; /* the last one compiled */
} fixture;

static int setup(void **state) {
    fixture *f = calloc(1, sizeof *f);
    const char *tmp = getenv("TMPDIR");
    snprintf(f->dir, sizeof f->dir, "%s/intarsia-test-XXXXXX", tmp && *tmp ? tmp : "/tmp");
    if (!mkdtemp(f->dir)) return -1;
    f->ctx = its_context_new(NULL);
    char cache[600];
    snprintf(cache, sizeof cache, "%s/cache", f->dir);
    setenv("INTARSIA_CACHE_DIR", cache, 1);
    *state = f;
    return f->ctx ? 0 : -1;
}

static int teardown(void **state) {
    fixture *f = *state;
    its_unit_free(f->unit);
    its_context_free(f->ctx);
    its_dir_remove(-100 /* AT_FDCWD */, f->dir);
    free(f);
    return 0;
}

/* A path below the fixture's directory; good until 64 more were asked for. */
__attribute__((unused)) static const char *at(const fixture *f, const char *name) {
    static char paths[64][1024];
    static unsigned next;
    char *path = paths[next++ % 64];
    snprintf(path, sizeof paths[0], "%s/%s", f->dir, name);
    return path;
}

/* Writes a file, making its directory; returns its path. */
__attribute__((unused)) static const char *put(const fixture *f, const char *name, const char *text) {
    const char *path = at(f, name);
    char dir[1024];
    snprintf(dir, sizeof dir, "%s", path);
    for (char *p = dir + strlen(f->dir) + 1; (p = strchr(p, '/')); *p++ = '/') {
        *p = 0;
        mkdir(dir, 0700);
    }
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(text, 1, strlen(text), file), strlen(text));
    fclose(file);
    return path;
}

/* Compiles into f->unit, with the messages of this call alone in the context. */
__attribute__((unused)) static its_status compile(fixture *f, const its_cc_input *input) {
    its_unit_free(f->unit);
    its_diag_clear(f->ctx);
    its_status status = its_cc(f->ctx, input, &f->unit);
    assert_true((status == ITS_OK) == (f->unit != NULL));
    assert_true(status == ITS_OK || its_diag_errors(f->ctx) > 0);
    return status;
}

/* Compiles what must compile; shows the messages if it doesn't. */
__attribute__((unused)) static its_unit *compile_ok(fixture *f, const its_cc_input *input) {
    if (compile(f, input) == ITS_OK) return f->unit;
    char *text = its_diag_render(f->ctx, false);
    print_error("%s", text);
    its_free(f->ctx, text);
    fail_msg("compilation failed");
    return NULL;
}

/* A message with that text, or NULL. */
__attribute__((unused)) static const its_diag *message(const fixture *f, const char *text) {
    for (size_t i = 0; i < its_diag_count(f->ctx); i++)
        if (strstr(its_diag_get(f->ctx, i)->message, text)) return its_diag_get(f->ctx, i);
    return NULL;
}

__attribute__((unused)) static const its_diag *expect(const fixture *f, const char *text) {
    const its_diag *diag = message(f, text);
    if (diag) return diag;
    char *all = its_diag_render(f->ctx, false);
    print_error("expected a message with '%s', there are:\n%s", text, all);
    its_free(f->ctx, all);
    fail();
    return NULL;
}

/* Its first place. */
__attribute__((unused)) static void expect_place(const its_diag *diag, const char *file, uint32_t line,
                                                 uint32_t column) {
    assert_true(diag->n_places > 0);
    assert_string_equal(diag->places[0].file, file);
    assert_int_equal(diag->places[0].line, line);
    assert_int_equal(diag->places[0].column, column);
}

/* The function spelled so, whose PTX name is returned. */
__attribute__((unused)) static const char *find(fixture *f, const char *name) {
    const its_unit_func *func;
    its_diag_clear(f->ctx);
    return its_unit_find(f->ctx, f->unit, name, &func) == ITS_OK ? func->name : NULL;
}

__attribute__((unused)) static bool depends_on(const its_unit *unit, const char *end) {
    for (uint32_t i = 0; i < unit->n_depends; i++) {
        size_t size = strlen(unit->depends[i]), length = strlen(end);
        if (size >= length && strcmp(unit->depends[i] + size - length, end) == 0) return true;
    }
    return false;
}

/* Runs a program and expects that it exits with 0. */
__attribute__((unused)) static void run(fixture *f, const char *const *argv) {
    its_buffer output;
    int code = -1;
    its_process process = {.argv = argv};
    its_buffer_init(&output, f->ctx);
    its_status status = its_process_run(f->ctx, &process, &output, &code);
    if (status != ITS_OK || code) print_error("%s: %s\n", argv[0], output.data ? output.data : "");
    its_buffer_free(&output);
    assert_int_equal(status, ITS_OK);
    assert_int_equal(code, 0);
}

static const char *find_ptxas(const fixture *f) {
    const char *home = getenv("CUDA_HOME");
    static char path[2048];
    snprintf(path, sizeof path, "%s/bin/ptxas", home ? home : "/usr/local/cuda");
    if (access(path, X_OK) == 0) return path;
    static const char *const versions[] = {"3.10", "3.11", "3.12", "3.13", "3.14"};
    for (size_t i = 0; i < sizeof versions / sizeof *versions; i++) {
        snprintf(path, sizeof path, "%s/.venv/lib/python%s/site-packages/nvidia/cu13/bin/ptxas", ITS_SOURCE_DIR,
                 versions[i]);
        if (access(path, X_OK) == 0) return path;
    }
    (void)f;
    return "ptxas";
}

/* ptxas takes the unit's PTX, with externs left open. */
__attribute__((unused)) static void assemble(fixture *f) {
    char arch[64];
    snprintf(arch, sizeof arch, "-arch=%s", f->unit->arch);
    const char *ptx = put(f, "unit.ptx", f->unit->ptx);
    const char *const argv[] = {find_ptxas(f), arch, "-c", ptx, "-o", "/dev/null", NULL};
    run(f, argv);
}

#define CC_TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

#endif
