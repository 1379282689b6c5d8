/*
 * The verifier on files: each of tests/ptx/bad has one fault and says in its comments where the first error must point
 * and what it must say; each of tests/ptx/good must pass.
 *
 *     // ERROR 17:25 '%r1' is .b32, 'add.f64' takes .f64 (64 bits) here
 */
#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "../heap.h"
#include "intarsia/ptx.h"

#define BAD ITS_SOURCE_DIR "/tests/ptx/bad"
#define GOOD ITS_SOURCE_DIR "/tests/ptx/good"

typedef struct expectation {
    unsigned line, column;
    char message[600];
} expectation;

static bool read_expectation(const char *path, expectation *wanted) {
    FILE *file = fopen(path, "r");
    char line[800];
    bool found = false;
    if (!file) return false;
    while (!found && fgets(line, sizeof line, file)) {
        int at = 0;
        if (sscanf(line, "// ERROR %u:%u %n", &wanted->line, &wanted->column, &at) < 2 || !at) continue;
        line[strcspn(line, "\n")] = 0;
        snprintf(wanted->message, sizeof wanted->message, "%s", line + at);
        found = true;
    }
    fclose(file);
    return found;
}

static its_status verify_file(its_context *ctx, const char *path) {
    its_module *module = NULL;
    its_status status = its_ptx_parse_file(ctx, path, &module);
    if (status == ITS_OK) status = its_ptx_verify(module);
    its_module_free(module);
    return status;
}

static const its_diag *first_error(its_context *ctx) {
    for (size_t i = 0; i < its_diag_count(ctx); i++)
        if (its_diag_get(ctx, i)->severity == ITS_ERROR) return its_diag_get(ctx, i);
    return NULL;
}

/* Compares; says what differs and returns 1 if anything does. */
static int check_bad(const char *path, const expectation *wanted) {
    its_context *ctx = its_context_new(NULL);
    its_status status = verify_file(ctx, path);
    const its_diag *diag = first_error(ctx);
    int wrong = 1;
    if (status != ITS_ERR_INPUT || !diag)
        printf("%s: passed, expected %u:%u %s\n", path, wanted->line, wanted->column, wanted->message);
    else if (!diag->n_places)
        printf("%s: '%s' has no place\n", path, diag->message);
    else if (diag->places[0].line != wanted->line || diag->places[0].column != wanted->column ||
             strcmp(diag->message, wanted->message) != 0)
        printf("%s: expected %u:%u %s\n%*s got      %u:%u %s\n", path, wanted->line, wanted->column, wanted->message,
               (int)strlen(path), "", diag->places[0].line, diag->places[0].column, diag->message);
    else
        wrong = 0;
    its_context_free(ctx);
    return wrong;
}

static int check_good(const char *path) {
    its_context *ctx = its_context_new(NULL);
    its_status status = verify_file(ctx, path);
    if (status != ITS_OK) {
        char *text = its_diag_render(ctx, false);
        printf("%s\n", text);
        its_free(ctx, text);
    }
    its_context_free(ctx);
    return status != ITS_OK;
}

static int is_ptx(const struct dirent *entry) {
    size_t size = strlen(entry->d_name);
    return size > 4 && strcmp(entry->d_name + size - 4, ".ptx") == 0;
}

static void bad_files_are_refused_where_and_as_they_say(void **state) {
    (void)state;
    struct dirent **entries;
    int count = scandir(BAD, &entries, is_ptx, alphasort), wrong = 0;
    assert_true(count >= 60);
    for (int i = 0; i < count; i++) {
        char path[1024];
        snprintf(path, sizeof path, "%s/%s", BAD, entries[i]->d_name);
        expectation wanted;
        if (read_expectation(path, &wanted))
            wrong += check_bad(path, &wanted);
        else
            wrong++, printf("%s: has no // ERROR line:column text\n", path);
        free(entries[i]);
    }
    free(entries);
    assert_int_equal(wrong, 0);
}

static void good_files_pass(void **state) {
    (void)state;
    struct dirent **entries;
    int count = scandir(GOOD, &entries, is_ptx, alphasort), wrong = 0;
    assert_true(count >= 10);
    for (int i = 0; i < count; i++) {
        char path[1024];
        snprintf(path, sizeof path, "%s/%s", GOOD, entries[i]->d_name);
        wrong += check_good(path);
        free(entries[i]);
    }
    free(entries);
    assert_int_equal(wrong, 0);
}

/* -- modules given as text ----------------------------------------------------------------------------------------- */

static its_status verify_text(its_context *ctx, const char *text) {
    its_module *module = NULL;
    its_status status = its_ptx_parse(ctx, "text.ptx", text, strlen(text), &module);
    assert_int_equal(status, ITS_OK);
    status = its_ptx_verify(module);
    its_module_free(module);
    return status;
}

#define HEAD(version) ".version " version "\n.target sm_90a\n.address_size 64\n"
#define BODY(text) ".visible .entry k()\n{\n.reg .b32 %r<4>;\n.reg .b64 %rd<4>;\n" text "\nret;\n}\n"

static void the_unknown_passes(void **state) {
    (void)state;
    its_context *ctx = its_context_new(NULL);
    assert_int_equal(verify_text(ctx, HEAD("8.0") BODY("frobnicate.b32 %r1, {%rd1}, [5], _;")), ITS_OK);
    assert_int_equal(verify_text(ctx, HEAD("8.0") BODY("add.zonk.u32 %rd1, %r1, [5];")), ITS_OK);
    assert_int_equal(verify_text(ctx, HEAD("99.0") BODY("add.lt.u32 %r1, %r1, %r2;")), ITS_OK);
    assert_int_equal(verify_text(ctx, HEAD("99.0") BODY("mov.u32 %r1, %brandnew;")), ITS_OK);
    assert_int_equal(verify_text(ctx, HEAD("8.0") BODY("intarsia.call (%r1), 0123456789abcdef::f, (%rd1);")), ITS_OK);
    assert_int_equal(its_diag_count(ctx), 0);
    its_context_free(ctx);
}

static void every_fault_is_reported_and_both_ends_shown(void **state) {
    (void)state;
    its_context *ctx = its_context_new(NULL);
    const char *text = HEAD("8.0") ".func f(.param .b32 x) { ret; }\n" BODY(
        "add.u32 %r1, %rd1, %r2;\nadd.u32 %r1, %r2;\ncall f, (%rd1);");
    assert_int_equal(verify_text(ctx, text), ITS_ERR_INPUT);
    assert_int_equal(its_diag_errors(ctx), 3);
    const its_diag *call = its_diag_get(ctx, 2);
    assert_int_equal(call->n_places, 2);
    assert_int_equal(call->places[0].line, 11);
    assert_int_equal(call->places[1].line, 4);
    assert_string_equal(call->places[1].label, "the parameter is declared here");
    its_context_free(ctx);
}

static void long_names_are_shown_whole(void **state) {
    (void)state;
    char name[4097], text[3 * sizeof name];
    memset(name, 'x', sizeof name - 1);
    name[sizeof name - 1] = 0;
    snprintf(text, sizeof text, HEAD("8.0") ".visible .entry k()\n{\n.reg .b32 %s;\nadd.u64 %s, 1, 2;\nret;\n}\n", name,
             name);
    its_context *ctx = its_context_new(NULL);
    assert_int_equal(verify_text(ctx, text), ITS_ERR_INPUT);
    assert_non_null(strstr(its_diag_get(ctx, 0)->message, name));
    assert_int_equal(its_diag_get(ctx, 0)->places[0].column, 9);
    its_context_free(ctx);
}

/* -- memory runs out ----------------------------------------------------------------------------------------------- */

static void running_out_of_memory_is_an_error(void **state) {
    (void)state;
    const char *text = HEAD("8.0") BODY("add.u32 %r1, %rd1, %r2;\ncvt.f32.u32 %r1, %r2;\nand.u32 %r1, %r1, %r1;");
    bool finished = false;
    for (size_t budget = 1; !finished; budget++) {
        assert_true(budget < 10000);
        test_heap heap = {.fail_at = budget, .stays_empty = true};
        its_allocator allocator = test_heap_allocator(&heap);
        its_context *ctx = its_context_new(&allocator);
        if (!ctx) continue;
        its_module *module = NULL;
        its_status status = its_ptx_parse(ctx, "text.ptx", text, strlen(text), &module);
        if (status == ITS_OK) {
            status = its_ptx_verify(module);
            finished = status == ITS_ERR_INPUT;
        }
        if (!finished) assert_int_equal(status, ITS_ERR_NOMEM);
        its_module_free(module);
        its_context_free(ctx);
        assert_int_equal(heap.held, 0);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bad_files_are_refused_where_and_as_they_say),
        cmocka_unit_test(good_files_pass),
        cmocka_unit_test(the_unknown_passes),
        cmocka_unit_test(every_fault_is_reported_and_both_ends_shown),
        cmocka_unit_test(long_names_are_shown_whole),
        cmocka_unit_test(running_out_of_memory_is_an_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
