/* Helpers of the linker's tests: programs of the CUDA toolkit, and running them. Header only: each test is one file. */
#ifndef TESTS_LINK_COMMON_H
#define TESTS_LINK_COMMON_H

#include <glob.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/process.h"
#include "intarsia/link.h"

/* -- programs ------------------------------------------------------------------------------------------------------ */

static inline bool is_program(char *path, size_t size, const char *directory, size_t length, const char *name) {
    int n = snprintf(path, size, "%.*s/%s", (int)length, directory, name);
    return n > 0 && (size_t)n < size && access(path, X_OK) == 0;
}

static inline bool is_in_path(char *path, size_t size, const char *name) {
    const char *at = getenv("PATH");
    while (at && *at) {
        size_t length = strcspn(at, ":");
        if (length && is_program(path, size, at, length, name)) return true;
        at += length + (at[length] == ':');
    }
    return false;
}

/* Triton's wheel brings ptxas, nvdisasm and cuobjdump. */
static inline bool is_in_wheel(char *path, size_t size, const char *name) {
    glob_t found;
    bool ok = false;
    if (glob(ITS_SOURCE_DIR "/.venv/lib/python3*/site-packages/triton/backends/nvidia/bin", 0, NULL, &found) != 0)
        return false;
    for (size_t i = 0; i < found.gl_pathc && !ok; i++)
        ok = is_program(path, size, found.gl_pathv[i], strlen(found.gl_pathv[i]), name);
    globfree(&found);
    return ok;
}

/* The path of a program: from the environment (PTXAS, NVDISASM), PATH, the toolkit or Triton's wheel; "" if absent. */
static inline const char *find_program(char *path, size_t size, const char *variable, const char *name) {
    const char *given = getenv(variable), *home = getenv("CUDA_HOME");
    *path = 0;
    if (given && *given)
        snprintf(path, size, "%s", given);
    else if (is_in_path(path, size, name))
        return path;
    else if (home && is_program(path, size, home, strlen(home), name))
        return path;
    else if (is_program(path, size, "/usr/local/cuda/bin", strlen("/usr/local/cuda/bin"), name))
        return path;
    else if (!is_in_wheel(path, size, name))
        *path = 0;
    return path;
}

/* Runs a program; its output is the caller's to free. The exit code, or -1 if it could not be run. */
static inline int run_program(its_context *ctx, const char *const *argv, its_buffer *output) {
    its_process process = {.argv = argv, .timeout_ms = 120000};
    int code = -1;
    its_buffer_init(output, ctx);
    if (its_process_run(ctx, &process, output, &code) != ITS_OK) return -1;
    return code;
}

/* -- files --------------------------------------------------------------------------------------------------------- */

static inline char *read_file(const char *path, size_t *size) {
    FILE *file = fopen(path, "rb");
    if (!file) return NULL;
    fseek(file, 0, SEEK_END);
    long length = ftell(file);
    rewind(file);
    char *text = malloc((size_t)length + 1);
    *size = text ? fread(text, 1, (size_t)length, file) : 0;
    if (text) text[*size] = 0;
    fclose(file);
    return text;
}

/* A private directory for what a test writes. */
static inline void make_directory(char *path, size_t size) {
    const char *base = getenv("TMPDIR");
    snprintf(path, size, "%s/intarsia-link-XXXXXX", base && *base ? base : "/tmp");
    assert_non_null(mkdtemp(path));
}

static inline void write_text(const char *path, const char *text, size_t size) {
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(text, 1, size, file), size);
    assert_int_equal(fclose(file), 0);
}

/* -- machine code -------------------------------------------------------------------------------------------------- */

typedef struct tools {
    char ptxas[1024], nvdisasm[1024], directory[1024];
} tools;

static inline void find_tools(tools *tools) {
    find_program(tools->ptxas, sizeof tools->ptxas, "PTXAS", "ptxas");
    find_program(tools->nvdisasm, sizeof tools->nvdisasm, "NVDISASM", "nvdisasm");
    make_directory(tools->directory, sizeof tools->directory);
    if (!*tools->ptxas) printf("SKIPPED: no ptxas on this machine, set PTXAS to its path; PTX is only compared\n");
    if (!*tools->nvdisasm)
        printf("SKIPPED: no nvdisasm on this machine, set NVDISASM to its path; calls aren't counted\n");
}

static inline void remove_tools(const tools *tools) {
    char path[1200];
    const char *const names[] = {"x.ptx", "x.cubin"};
    for (size_t i = 0; i < 2; i++) {
        snprintf(path, sizeof path, "%s/%s", tools->directory, names[i]);
        unlink(path);
    }
    rmdir(tools->directory);
}

/* Compiles PTX; the path of the cubin goes to `cubin`. Prints what ptxas says if it refuses. */
static inline bool assemble(its_context *ctx, const tools *tools, const char *ptx, size_t size, const char *arch,
                            bool relocatable, char *cubin, size_t cubin_size) {
    char source[1200], architecture[64];
    snprintf(source, sizeof source, "%s/x.ptx", tools->directory);
    snprintf(cubin, cubin_size, "%s/x.cubin", tools->directory);
    snprintf(architecture, sizeof architecture, "-arch=%s", arch);
    write_text(source, ptx, size);
    const char *argv[] = {tools->ptxas, architecture, source, "-o", cubin, relocatable ? "-c" : NULL, NULL};
    its_buffer output;
    int code = run_program(ctx, argv, &output);
    if (code != 0) printf("%s says %.*s\n", tools->ptxas, (int)output.size, output.data ? output.data : "");
    its_buffer_free(&output);
    return code == 0;
}

/* Calls in the machine code, -1 if it can't be read: CALL, or anything of its family (CALL.REL, CALL.ABS ...). */
static inline int count_calls(its_context *ctx, const tools *tools, const char *cubin) {
    const char *argv[] = {tools->nvdisasm, "-c", cubin, NULL};
    its_buffer output;
    int code = run_program(ctx, argv, &output), calls = 0;
    its_buffer_char(&output, 0);
    for (const char *at = output.data; code == 0 && (at = strstr(at, " CALL")); at += 5) calls++;
    its_buffer_free(&output);
    return code == 0 ? calls : -1;
}

#endif
