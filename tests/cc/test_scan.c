/* Finding includes: every way to write one, and texts made to be slow. */
#include "common.h"

#include <time.h>

#include "cc/scan.h"

typedef struct scanned {
    its_arena arena;
    its_include_list list;
    const char *text;
    size_t size;
} scanned;

static its_status scan_body(void *user) {
    scanned *s = user;
    its_scan_includes(&s->arena, s->text, s->size, &s->list);
    return ITS_OK;
}

static void scan_bytes(fixture *f, scanned *s, const char *text, size_t size) {
    *s = (scanned){.text = text, .size = size};
    its_arena_init(&s->arena, f->ctx);
    assert_int_equal(its_protect(f->ctx, scan_body, s), ITS_OK);
}

/* Expects one include. */
static void one(fixture *f, const char *text, its_include_kind kind, const char *name, bool next) {
    scanned s;
    scan_bytes(f, &s, text, strlen(text));
    if (s.list.includes.count != 1) print_error("in: %s\n", text);
    assert_int_equal(s.list.includes.count, 1);
    assert_int_equal(s.list.includes.items[0].kind, kind);
    assert_string_equal(s.list.includes.items[0].name, name);
    assert_int_equal(s.list.includes.items[0].next, next);
    its_arena_free(&s.arena);
}

static void none(fixture *f, const char *text) {
    scanned s;
    scan_bytes(f, &s, text, strlen(text));
    if (s.list.includes.count) print_error("in: %s\n", text);
    assert_int_equal(s.list.includes.count, 0);
    its_arena_free(&s.arena);
}

static void every_way_to_write_one(void **state) {
    fixture *f = *state;
    one(f, "#include \"a.h\"", ITS_INCLUDE_QUOTED, "a.h", false);
    one(f, "#include <dir/a b.h>\n", ITS_INCLUDE_ANGLED, "dir/a b.h", false);
    one(f, "  # \t include\t<a.h>\r\n", ITS_INCLUDE_ANGLED, "a.h", false);
    one(f, "#include<a.h>", ITS_INCLUDE_ANGLED, "a.h", false);
    one(f, "/* one */ # /* two */ include /* three */ <a.h> // four", ITS_INCLUDE_ANGLED, "a.h", false);
    one(f, "#inc\\\nlude \"a\\\n.h\"", ITS_INCLUDE_QUOTED, "a.h", false);
    one(f, "#\\\r\ninclude \\\r\n\"a.h\"", ITS_INCLUDE_QUOTED, "a.h", false);
    one(f, "%:include <a.h>", ITS_INCLUDE_ANGLED, "a.h", false);
    one(f, "%: include <a.h>", ITS_INCLUDE_ANGLED, "a.h", false);
    one(f, "#include_next <a.h>", ITS_INCLUDE_ANGLED, "a.h", true);
    one(f, "#embed \"data.bin\"", ITS_INCLUDE_QUOTED, "data.bin", false);
    one(f, "#if 0\n#include \"never.h\"\n#endif", ITS_INCLUDE_QUOTED, "never.h", false);
    one(f, "#include WHICH // a macro", ITS_INCLUDE_MACRO, "WHICH", false);
    one(f, "#if __has_include(<a.h>) && 1", ITS_INCLUDE_ANGLED, "a.h", false);
    one(f, "#elif defined X || \\\n !__has_include ( \"a.h\" )", ITS_INCLUDE_QUOTED, "a.h", false);
    one(f, "#if __has_include_next(<a.h>)", ITS_INCLUDE_ANGLED, "a.h", true);
    one(f, "#include \"a.h\"\n#include", ITS_INCLUDE_QUOTED, "a.h", false);
}

static void what_is_none(void **state) {
    fixture *f = *state;
    none(f, "");
    none(f, "#");
    none(f, "#include");
    none(f, "#include \"a.h");
    none(f, "#include <a.h\n>");
    none(f, "#include \"\"");
    none(f, "#includes <a.h>");
    none(f, "#define include <a.h>");
    none(f, "#ifdef include\n<a.h>");
    none(f, "a % b; c %: d");
    none(f, "#include /* open <a.h>");
    none(f, "__has_include(<not in a directive>)");
}

static void macros_that_name_files(void **state) {
    fixture *f = *state;
    scanned s;
    static const char text[] =
        "#define A \"a.h\"\n# define  B /* x */ <b.h>\n#define C(x) <c.h>\n#define D d\n#define E\n"
        "#define F \\\n  \"f.h\"\n";
    scan_bytes(f, &s, text, sizeof text - 1);
    assert_int_equal(s.list.includes.count, 0);
    assert_int_equal(s.list.defines.count, 3);
    static const char *const expected[3][2] = {{"A", "a.h"}, {"B", "b.h"}, {"F", "f.h"}};
    for (size_t i = 0; i < 3; i++) {
        assert_string_equal(s.list.defines.items[i].macro, expected[i][0]);
        assert_string_equal(s.list.defines.items[i].target.name, expected[i][1]);
    }
    its_arena_free(&s.arena);
}

static double seconds(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

/*
 * 256 KB of pieces that each look like the start of something: linear, so far from the minute that a square would take.
 */
static void texts_made_to_be_slow(void **state) {
    fixture *f = *state;
    static const char *const pieces[] = {
        "#",        "#/*",        "#include \"", "#include <", "#include ", "#if __has_include(<",
        "#if \\\n", "#define a ", "%:",          "\\\n",       "#\\\r\n",   "#if x\r\n"};
    enum { SIZE = 1 << 18 };
    char *text = malloc(SIZE);
    assert_non_null(text);
    double start = seconds();
    for (size_t i = 0; i < sizeof pieces / sizeof *pieces; i++) {
        size_t length = strlen(pieces[i]);
        for (size_t j = 0; j < SIZE; j++) text[j] = pieces[i][j % length];
        scanned s;
        scan_bytes(f, &s, text, SIZE);
        its_arena_free(&s.arena);
    }
    assert_true(seconds() - start < 30);
    free(text);
}

/* Every prefix of a text with all constructs, without its NUL: a scanner that reads past the end is found by a
 * sanitizer. */
static void truncated_texts(void **state) {
    fixture *f = *state;
    static const char text[] =
        "#define A /* */ \"a.h\"\n#if __has_include_next ( <x> ) \\\r\n || __has_include(\"y\")\n"
        "%: include_next /* */ <b\\\n.h>\n#include A\n#embed <c>\n\\";
    for (size_t size = 0; size < sizeof text; size++) {
        char *copy = malloc(size ? size : 1);
        memcpy(copy, text, size);
        scanned s;
        scan_bytes(f, &s, copy, size);
        assert_true(s.list.includes.count <= 5);
        its_arena_free(&s.arena);
        free(copy);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        CC_TEST(every_way_to_write_one), CC_TEST(what_is_none),    CC_TEST(macros_that_name_files),
        CC_TEST(texts_made_to_be_slow),  CC_TEST(truncated_texts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
