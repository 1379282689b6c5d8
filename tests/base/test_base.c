/* Contexts, names, diagnostics, JSON: what is recorded, how it reads, and what happens when memory runs out. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "../heap.h"
#include "base/arena.h"
#include "base/buffer.h"
#include "base/diag.h"
#include "base/heap.h"
#include "base/intern.h"
#include "base/json.h"

static void test_names_are_equal_pointers(void **state) {
    (void)state;
    its_context *ctx = its_context_new(NULL);
    char text[32];
    for (int i = 0; i < 5000; i++) {
        int n = snprintf(text, sizeof text, "%%r%d", i);
        its_name name = its_intern(ctx, text, (size_t)n);
        assert_string_equal(name->text, text);
        assert_int_equal(name->size, n);
    }
    for (int i = 0; i < 5000; i++) {
        int n = snprintf(text, sizeof text, "%%r%d", i);
        assert_ptr_equal(its_intern(ctx, text, (size_t)n), its_intern_find(ctx, text, (size_t)n));
    }
    assert_ptr_not_equal(its_intern(ctx, "a", 1), its_intern(ctx, "b", 1));
    assert_null(its_intern_find(ctx, "never seen", 10));
    its_context_free(ctx);
}

static its_status fill_arena(void *user) {
    its_arena *arena = user;
    ITS_VEC(uint64_t) numbers = {0};
    for (uint64_t i = 0; i < 100000; i++) ITS_PUSH(arena, &numbers, i * i);
    for (uint64_t i = 0; i < 100000; i++) assert_int_equal(numbers.items[i], i * i);
    char *large = its_arena_alloc(arena, 10 << 20);
    memset(large, 7, 10 << 20);
    char *small = its_arena_text(arena, "small", 5);
    assert_string_equal(small, "small");
    return ITS_OK;
}

static void test_arena_keeps_what_it_gave(void **state) {
    (void)state;
    its_context *ctx = its_context_new(NULL);
    its_arena arena;
    its_arena_init(&arena, ctx);
    assert_int_equal(its_protect(ctx, fill_arena, &arena), ITS_OK);
    assert_true(arena.total > (10 << 20));
    its_arena_free(&arena);
    assert_int_equal(arena.total, 0);
    its_context_free(ctx);
}

static its_status fill_with_nothing(void *user) {
    its_arena *arena = user;
    char *before = its_arena_alloc(arena, 24);
    for (int i = 0; i < 100; i++) {
        char *nothing = its_arena_alloc(arena, 0);
        assert_ptr_equal(nothing, i == 0 ? before + 24 : before + 8);
        before = nothing;
    }
    return ITS_OK;
}

/* An allocation of 0 bytes has an address of its own, and leaves the chunk in use. */
static void test_nothing_takes_no_chunk(void **state) {
    (void)state;
    its_context *ctx = its_context_new(NULL);
    its_arena arena;
    its_arena_init(&arena, ctx);
    assert_int_equal(its_protect(ctx, fill_with_nothing, &arena), ITS_OK);
    assert_int_equal(arena.total, 4096);
    its_arena_free(&arena);
    its_context_free(ctx);
}

static char byte_at(size_t i) {
    return (char)(i * 31 + (i >> 12) * 7);
}

/* Across the size from which blocks are mapped, both ways, the first bytes stay. */
static void test_blocks_keep_their_content(void **state) {
    (void)state;
    static const size_t sizes[] = {100,           5 << 10, 2 << 20, (2 << 20) + 1, 9 << 20, 40 << 20,
                                   (6 << 20) - 3, 3 << 20, 1 << 20, 4 << 20,       10};
    size_t size = 0;
    char *block = NULL;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        block = its_heap_resize(NULL, block, size, sizes[i]);
        assert_non_null(block);
        for (size_t at = 0; at < size && at < sizes[i]; at += 97) assert_int_equal(block[at], byte_at(at));
        size = sizes[i];
        for (size_t at = 0; at < size; at++) block[at] = byte_at(at);
    }
    assert_null(its_heap_resize(NULL, block, size, 0));
    assert_null(its_heap_resize(NULL, NULL, 0, 0));
    assert_null(its_heap_resize(NULL, NULL, 0, SIZE_MAX - 100));
}

static void test_a_buffer_grows_in_place(void **state) {
    (void)state;
    its_context *ctx = its_context_new(NULL);
    its_buffer buffer;
    its_buffer_init(&buffer, ctx);
    for (size_t i = 0; i < 5 << 20; i++) its_buffer_char(&buffer, byte_at(i));
    size_t size;
    char *text = its_buffer_take(&buffer, &size);
    assert_int_equal(size, 5 << 20);
    for (size_t i = 0; i < size; i++) assert_int_equal(text[i], byte_at(i));
    its_free(ctx, text);
    its_context_free(ctx);
}

static its_status overflow_arena(void *user) {
    its_arena_array(user, SIZE_MAX / 4, 16);
    return ITS_OK;
}

static void test_products_are_checked(void **state) {
    (void)state;
    its_context *ctx = its_context_new(NULL);
    its_arena arena;
    its_arena_init(&arena, ctx);
    assert_int_equal(its_protect(ctx, overflow_arena, &arena), ITS_ERR_NOMEM);
    assert_int_equal(its_diag_errors(ctx), 1);
    assert_string_equal(its_diag_get(ctx, 0)->message, "out of memory");
    its_arena_free(&arena);
    its_context_free(ctx);
}

static const its_source source = {"kernel.ptx", "first line\n\tsecond\tline\nthird", 29};

static its_status report(void *user) {
    its_context *ctx = user;
    its_diag_begin(ctx, ITS_ERROR, its_at(&source, 19), "'%s' is defined twice", "line");
    its_diag_also(ctx, its_at(&source, 6), "first defined here");
    its_diag_hint(ctx, "rename one of them");
    return ITS_OK;
}

static void test_a_diagnostic_shows_both_places(void **state) {
    (void)state;
    its_context *ctx = its_context_new(NULL);
    assert_int_equal(its_protect(ctx, report, ctx), ITS_OK);
    const its_diag *diag = its_diag_get(ctx, 0);
    assert_int_equal(diag->n_places, 2);
    assert_int_equal(diag->places[0].line, 2);
    assert_int_equal(diag->places[0].column, 9);
    char *text = its_diag_render(ctx, false);
    assert_string_equal(text, "kernel.ptx:2:9: error: 'line' is defined twice\n"
                              "    \tsecond\tline\n"
                              "    \t      \t^\n"
                              "  kernel.ptx:1:7: first defined here\n"
                              "    first line\n"
                              "          ^\n"
                              "  hint: rename one of them\n");
    its_free(ctx, text);
    its_diag_clear(ctx);
    assert_int_equal(its_diag_count(ctx), 0);
    its_context_free(ctx);
}

/* Going on from place to place gives what counting from the start gives, backwards and past the end as well. */
static void test_positions_go_on(void **state) {
    (void)state;
    static const uint32_t offsets[] = {0, 3, 4, 5, 5, 12, 20, 2, 99, 1, 4};
    its_source first = {"a.ptx", "one\ntwo\n\nfour\n", 14}, second = {"b.ptx", "x\ny", 3};
    its_position at = {0};
    for (size_t i = 0; i < sizeof offsets / sizeof *offsets; i++) {
        const its_source *source = i == 6 ? &second : &first;
        uint32_t line, column;
        its_source_position(source, offsets[i], &line, &column);
        its_position_move(&at, its_at(source, offsets[i]));
        assert_int_equal(at.line, line);
        assert_int_equal(at.column, column);
    }
}

static its_status report_many(void *user) {
    for (int i = 0; i < 1000; i++) its_diag_begin(user, ITS_ERROR, ITS_NOWHERE, "error %d", i);
    return ITS_OK;
}

static void test_errors_past_a_limit_are_counted(void **state) {
    (void)state;
    its_context *ctx = its_context_new(NULL);
    assert_int_equal(its_protect(ctx, report_many, ctx), ITS_OK);
    assert_int_equal(its_diag_errors(ctx), 1000);
    assert_int_equal(its_diag_count(ctx), 200);
    char *text = its_diag_render(ctx, false);
    assert_non_null(strstr(text, "error: error 199\n... and 800 more errors\n"));
    its_free(ctx, text);
    its_context_free(ctx);
}

static its_status warn_and_note(void *user) {
    its_source source = {"a.ptx", "line", 4};
    for (int i = 0; i < 300; i++) {
        its_diag_begin(user, ITS_WARNING, its_at(&source, 0), "warning %d", i);
        its_diag_also(user, its_at(&source, 1), "place %d", i);
        its_diag_hint(user, "hint %d", i);
        if (i % 100 == 0) its_diag_begin(user, ITS_NOTE, ITS_NOWHERE, "note %d", i);
    }
    return ITS_OK;
}

/* Each severity has a limit of its own. What belongs to a diagnostic past it must not end up at an earlier one. */
static void test_warnings_past_a_limit_are_counted(void **state) {
    (void)state;
    its_context *ctx = its_context_new(NULL);
    assert_int_equal(its_protect(ctx, warn_and_note, ctx), ITS_OK);
    assert_int_equal(its_diag_errors(ctx), 0);
    assert_int_equal(its_diag_count(ctx), 203);
    const its_diag *last = its_diag_get(ctx, 201);
    assert_string_equal(last->message, "warning 199");
    assert_int_equal(last->n_places, 2);
    assert_string_equal(last->hint, "hint 199");
    assert_string_equal(its_diag_get(ctx, 202)->message, "note 200");
    char *text = its_diag_render(ctx, false);
    assert_non_null(strstr(text, "note: note 200\n... and 100 more warnings\n"));
    assert_null(strstr(text, "200 more"));
    its_free(ctx, text);
    its_diag_clear(ctx);
    text = its_diag_render(ctx, false);
    assert_string_equal(text, "");
    its_free(ctx, text);
    its_context_free(ctx);
}

typedef struct one_line {
    its_context *ctx;
    its_source source;
} one_line;

static its_status complain_of_a_line(void *user) {
    one_line *line = user;
    for (uint32_t i = 0; i < 400; i++) {
        its_diag_begin(line->ctx, ITS_ERROR, its_at(&line->source, i), "something");
        its_diag_also(line->ctx, its_at(&line->source, i + 1), "something else");
    }
    return ITS_OK;
}

/* A generated file may be one line: it is kept once, not with each place on it. */
static void test_a_long_line_is_kept_once(void **state) {
    (void)state;
    enum { SIZE = 100000 };
    test_heap heap = {0};
    its_allocator allocator = test_heap_allocator(&heap);
    char *text = malloc(SIZE + 1);
    memset(text, 'x', SIZE);
    text[SIZE] = 0;
    one_line line = {its_context_new(&allocator), {"wide.ptx", text, SIZE}};
    assert_int_equal(its_protect(line.ctx, complain_of_a_line, &line), ITS_OK);
    assert_true(heap.held < 5 * SIZE);
    assert_string_equal(its_diag_get(line.ctx, 199)->places[1].text, text);
    assert_int_equal(its_diag_get(line.ctx, 199)->places[1].column, 201);
    its_context_free(line.ctx);
    free(text);
}

static void test_long_lines_are_windowed(void **state) {
    (void)state;
    its_context *ctx = its_context_new(NULL);
    char *line = malloc(10001);
    memset(line, 'x', 10000);
    line[10000] = 0;
    its_source wide = {"wide.ptx", line, 10000};
    its_guard guard;
    if (its_guard_enter(ctx, &guard)) fail();
    its_diag_begin(ctx, ITS_WARNING, its_at(&wide, 5000), "somewhere in the middle");
    its_guard_leave(ctx, &guard);
    assert_int_equal(its_diag_errors(ctx), 0);
    char *text = its_diag_render(ctx, false);
    assert_non_null(strstr(text, "wide.ptx:1:5001: warning: somewhere in the middle\n    ...xxx"));
    assert_true(strlen(text) < 600);
    its_free(ctx, text);
    free(line);
    its_context_free(ctx);
}

static void test_suggestions(void **state) {
    (void)state;
    static const char *const words[] = {"inspect", "link", "run", "cache"};
    assert_string_equal(its_closest("inspcet", words, 4), "inspect");
    assert_string_equal(its_closest("lnk", words, 4), "link");
    assert_null(its_closest("frobnicate", words, 4));
}

/* cJSON's allocations that still succeed. */
static size_t json_left;

static void *json_alloc(size_t size) {
    if (json_left == 0) return NULL;
    json_left--;
    return malloc(size);
}

static char *write_json(its_context *ctx) {
    its_json json;
    cJSON *root = its_json_begin(&json, ctx);
    its_json_text(&json, root, "name", "a \"b\"");
    its_json_text(&json, root, "library", NULL);
    its_json_bool(&json, its_json_object(&json, root, "inner"), "entry", true);
    cJSON *array = its_json_array(&json, root, "calls");
    its_json_number(&json, its_json_item(&json, array), "line", 7);
    its_json_item_text(&json, array, "end");
    return its_json_end(&json);
}

/* Whichever allocation of cJSON fails, none of the document is handed out. */
static void test_json_is_whole_or_an_error(void **state) {
    (void)state;
    its_context *ctx = its_context_new(NULL);
    cJSON_InitHooks(&(cJSON_Hooks){json_alloc, free});
    char *text = NULL;
    size_t n = 0;
    for (; !text; n++) {
        assert_true(n < 1000);
        json_left = n;
        its_diag_clear(ctx);
        text = write_json(ctx);
        assert_int_equal(its_diag_errors(ctx), text ? 0 : 1);
    }
    cJSON_InitHooks(NULL);
    assert_true(n > 10);
    assert_string_equal(text,
                        "{\n\t\"name\":\t\"a \\\"b\\\"\",\n\t\"library\":\tnull,\n\t\"inner\":\t{\n\t\t\"entry\":\ttrue"
                        "\n\t},\n\t\"calls\":\t[{\n\t\t\t\"line\":\t7\n\t\t}, \"end\"]\n}");
    its_free(ctx, text);
    its_context_free(ctx);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_names_are_equal_pointers),
        cmocka_unit_test(test_arena_keeps_what_it_gave),
        cmocka_unit_test(test_nothing_takes_no_chunk),
        cmocka_unit_test(test_blocks_keep_their_content),
        cmocka_unit_test(test_a_buffer_grows_in_place),
        cmocka_unit_test(test_products_are_checked),
        cmocka_unit_test(test_a_diagnostic_shows_both_places),
        cmocka_unit_test(test_positions_go_on),
        cmocka_unit_test(test_errors_past_a_limit_are_counted),
        cmocka_unit_test(test_warnings_past_a_limit_are_counted),
        cmocka_unit_test(test_a_long_line_is_kept_once),
        cmocka_unit_test(test_long_lines_are_windowed),
        cmocka_unit_test(test_suggestions),
        cmocka_unit_test(test_json_is_whole_or_an_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
