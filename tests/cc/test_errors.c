/* Errors of the compiler as messages with the user's file, line and column; nothing of a failure is cached. */
#include "common.h"

static uint64_t cached_entries(fixture *f) {
    its_cache_info info;
    assert_int_equal(its_cache_query(f->ctx, &info), ITS_OK);
    its_free(f->ctx, info.directory);
    return info.entries;
}

static void a_syntax_error_has_its_place(void **state) {
    fixture *f = *state;
    const char *path =
        put(f, "a.cu", "extern \"C\" __device__ int f(int a) {\n    int b = a +;\n\treturn b + missing;\n}\n");
    its_cc_input input = {.path = path, .arch = "sm_80"};
    assert_int_equal(compile(f, &input), ITS_ERR_INPUT);
    const its_diag *diag = expect(f, "expected an expression");
    expect_place(diag, path, 2, 16);
    assert_string_equal(diag->places[0].text, "    int b = a +;");
    diag = expect(f, "identifier \"missing\" is undefined");
    expect_place(diag, path, 3, 13);
    assert_string_equal(diag->places[0].text, "\treturn b + missing;");
    assert_int_equal(its_diag_errors(f->ctx), 2);
    assert_int_equal(cached_entries(f), 0);
    assert_int_equal(compile(f, &input), ITS_ERR_INPUT); /* and again: it is compiled anew */
    assert_int_equal(its_diag_errors(f->ctx), 2);
}

static void columns_count_bytes(void **state) {
    fixture *f = *state;
    its_cc_input input = {
        .path = "u.cu", .arch = "sm_80", .source = "__device__ int f() { /* \xc3\xa9\xc3\xa9 */ return nothing; }"};
    assert_int_equal(compile(f, &input), ITS_ERR_INPUT);
    expect_place(expect(f, "\"nothing\" is undefined"), "u.cu", 1, 40);
}

static void an_error_in_a_header(void **state) {
    fixture *f = *state;
    const char *header = put(f, "inc/bad.h", "#pragma once\n__device__ int g() { return nowhere; }\n");
    char option[600];
    snprintf(option, sizeof option, "-I%s/inc", f->dir);
    const char *const options[] = {option};
    its_cc_input input = {
        .path = put(f, "a.cu", "#include <bad.h>\n"), .arch = "sm_80", .options = options, .n_options = 1};
    assert_int_equal(compile(f, &input), ITS_ERR_INPUT);
    expect_place(expect(f, "identifier \"nowhere\" is undefined"), header, 2, 29);
    assert_int_equal(cached_entries(f), 0);
}

static void a_missing_header(void **state) {
    fixture *f = *state;
    const char *path = put(f, "a.cu", "\n#include \"not/there.h\"\n");
    its_cc_input input = {.path = path, .arch = "sm_80"};
    assert_int_equal(compile(f, &input), ITS_ERR_INPUT);
    const its_diag *diag = expect(f, "cannot open source file \"not/there.h\"");
    assert_string_equal(diag->places[0].file, path);
    assert_int_equal(diag->places[0].line, 2);
    assert_non_null(strstr(diag->hint, "-I DIRECTORY"));
}

/* CUDA's <cuda/std/...> is there with CUDA's headers; what is for the host has no such twin. */
static void a_missing_standard_header(void **state) {
    fixture *f = *state;
    its_cc_input input = {.path = "a.cu", .arch = "sm_80", .source = "#include <type_traits>\n"};
    assert_int_equal(compile(f, &input), ITS_ERR_INPUT);
    assert_non_null(strstr(expect(f, "cannot open source file \"type_traits\"")->hint, "<cuda/std/type_traits>"));
    input.source = "#include <iostream>\n";
    assert_int_equal(compile(f, &input), ITS_ERR_INPUT);
    assert_non_null(strstr(expect(f, "cannot open source file \"iostream\"")->hint, "goes into a host file"));
}

static void the_first_twenty_errors_are_enough(void **state) {
    fixture *f = *state;
    char source[4000] = "";
    for (int i = 0; i < 50; i++) sprintf(source + strlen(source), "__device__ int x%d() { return y%d; }\n", i, i);
    its_cc_input input = {.path = "a.cu", .arch = "sm_80", .source = source};
    assert_int_equal(compile(f, &input), ITS_ERR_INPUT);
    assert_int_equal(its_diag_errors(f->ctx), 21);
    expect(f, "identifier \"y19\" is undefined");
    expect(f, "and 30 more errors in 'a.cu'");
}

static void instantiation_contexts_are_places(void **state) {
    fixture *f = *state;
    put(f, "t.h",
        "template <class T> struct holder { typename T::type x; };\n"
        "template <class T> __device__ void use(T t) { holder<T> h; }\n");
    const char *path = put(f, "a.cu", "#include \"t.h\"\n\n__device__ void f() { use(3.0); }\n");
    its_cc_input input = {.path = path, .arch = "sm_80"};
    assert_int_equal(compile(f, &input), ITS_ERR_INPUT);
    const its_diag *diag = expect(f, "name followed by \"::\"");
    assert_int_equal(diag->n_places, 3);
    expect_place(diag, at(f, "t.h"), 1, 45);
    assert_string_equal(diag->places[1].file, at(f, "t.h"));
    assert_int_equal(diag->places[1].line, 2);
    assert_string_equal(diag->places[2].file, path);
    assert_int_equal(diag->places[2].line, 3);
    assert_non_null(strstr(diag->places[2].label, "in instantiation of \"void use(T) [with T=double]\""));
}

static void notes_are_places(void **state) {
    fixture *f = *state;
    its_cc_input input = {.path = "o.cu",
                          .arch = "sm_80",
                          .source = "__device__ void o(int *p);\n__device__ void o(float *p);\n"
                                    "__device__ void f() { o(1.0); }\n"};
    assert_int_equal(compile(f, &input), ITS_ERR_INPUT);
    const its_diag *diag = expect(f, "no instance of overloaded function \"o\"");
    assert_non_null(strstr(diag->message, "argument types are: (double)"));
    expect_place(diag, "o.cu", 3, 23);
    assert_int_equal(diag->n_places, 3);
    assert_non_null(strstr(diag->places[1].label, "does not match"));
    assert_int_equal(diag->places[1].line + diag->places[2].line, 3);
}

static void warnings_of_a_failure_are_no_errors(void **state) {
    fixture *f = *state;
    its_cc_input input = {.source = "__device__ void f() { int unused; }\n__device__ int g() { return x; }\n",
                          .arch = "sm_80"};
    assert_int_equal(compile(f, &input), ITS_ERR_INPUT);
    assert_int_equal(its_diag_count(f->ctx), 1);
    expect(f, "\"x\" is undefined");
}

static void messages_that_look_like_others(void **state) {
    fixture *f = *state;
    its_cc_input input = {.path = "s.cu",
                          .arch = "sm_80",
                          .source = "static_assert(sizeof(int) == 3, \"x.cu(7): error: not this\");\n"
                                    "__device__ int f() { return 1 }\n"};
    assert_int_equal(compile(f, &input), ITS_ERR_INPUT);
    expect_place(expect(f, "not this"), "s.cu", 1, 1);
    expect_place(expect(f, "expected a \";\""), "s.cu", 2, 31);
    input.source = "__device__ int f() { return 1";
    assert_int_equal(compile(f, &input), ITS_ERR_INPUT);
    expect(f, "expected a \"}\"");
    input.source = "#error \"this one\"";
    assert_int_equal(compile(f, &input), ITS_ERR_INPUT);
    expect(f, "this one");
}

static void a_line_directive_of_the_user_holds(void **state) {
    fixture *f = *state;
    its_cc_input input = {.path = "made.cu", .arch = "sm_80", .source = "#line 40 \"grammar.y\"\nint x = y;\n"};
    assert_int_equal(compile(f, &input), ITS_ERR_INPUT);
    expect_place(expect(f, "\"y\" is undefined"), "grammar.y", 40, 9);
}

static void long_lines_and_names(void **state) {
    fixture *f = *state;
    char *text = malloc(20000);
    assert_non_null(text);
    int size = sprintf(text, "__device__ int f() { /*%06000d*/ return ", 0);
    memset(text + size, 'n', 4096);
    strcpy(text + size + 4096, "; }");
    its_cc_input input = {.path = "long.cu", .source = text, .arch = "sm_80"};
    assert_int_equal(compile(f, &input), ITS_ERR_INPUT);
    const its_diag *diag = expect(f, "is undefined");
    assert_true(strlen(diag->message) > 4096);
    expect_place(diag, "long.cu", 1, (uint32_t)size + 1);
    free(text);
}

static void bytes_that_are_no_text(void **state) {
    fixture *f = *state;
    const char *path = put(f, "latin.cu", "// fine\n// caf\xe9\n__device__ int f() { return 1; }\n");
    its_cc_input input = {.path = path, .arch = "sm_80"};
    assert_int_equal(compile(f, &input), ITS_ERR_INPUT);
    expect_place(expect(f, "not UTF-8 text: it has the byte 0xe9"), path, 2, 7);

    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    fwrite("int a;\0int b;", 1, 13, file);
    fclose(file);
    assert_int_equal(compile(f, &input), ITS_ERR_INPUT);
    expect_place(expect(f, "byte 0x00"), path, 1, 7);

    input.path = put(f, "mark.cu",
                     "\xef\xbb\xbf"
                     "extern \"C\" __device__ int f() { return 1; } // \xe2\x82\xac\n");
    compile_ok(f, &input); /* a byte order mark and a euro sign are text */
}

static void sources_that_cannot_be_read(void **state) {
    fixture *f = *state;
    its_cc_input input = {.path = at(f, "none.cu"), .arch = "sm_80"};
    assert_int_equal(compile(f, &input), ITS_ERR_IO);
    expect(f, "none.cu' can't be read: No such file");
    input.path = f->dir;
    assert_int_equal(compile(f, &input), ITS_ERR_IO);
    expect(f, "Is a directory");
    mkfifo(at(f, "pipe"), 0600);
    input.path = at(f, "pipe");
    assert_int_equal(compile(f, &input), ITS_ERR_IO); /* and does not wait for a writer */
    its_cc_input nothing = {.arch = "sm_80"};
    assert_int_equal(compile(f, &nothing), ITS_ERR_USAGE);
    its_cc_input no_arch = {.source = ""};
    assert_int_equal(compile(f, &no_arch), ITS_ERR_USAGE);
}

/* Includes in circles and in depth end, in an error of NVRTC's or in none. */
static void includes_without_end(void **state) {
    fixture *f = *state;
    put(f, "self.h", "#include \"self.h\"\n");
    its_cc_input input = {.path = put(f, "a.cu", "#include \"self.h\"\n"), .arch = "sm_80"};
    assert_int_equal(compile(f, &input), ITS_ERR_INPUT);
    expect(f, "#include");
    put(f, "one.h", "#pragma once\n#include \"two.h\"\n#define ONE 1\n");
    put(f, "two.h", "#pragma once\n#include \"one.h\"\n#define TWO 2\n");
    input.path = put(f, "b.cu", "#include \"one.h\"\nextern \"C\" __device__ int f() { return ONE + TWO; }\n");
    assert_int_equal(compile_ok(f, &input)->n_depends, 3);
    put(f, "fifo.cu", "#if 0\n#include \"pipe\"\n#include \".\"\n#include \"/dev/zero\"\n#endif\n");
    mkfifo(at(f, "pipe"), 0600);
    input.path = at(f, "fifo.cu"); /* only files are read */
    assert_int_equal(compile_ok(f, &input)->n_depends, 1);
}

static void nvrtc_is_absent(void **state) {
    fixture *f = *state;
    static const char *const values[] = {"none", "/nowhere/libnvrtc.so"};
    for (size_t i = 0; i < 2; i++) {
        char id[17];
        setenv("INTARSIA_NVRTC", values[i], 1);
        its_cc_input input = {.source = "", .arch = "sm_80"};
        assert_int_equal(compile(f, &input), ITS_ERR_ABSENT);
        const its_diag *diag = expect(f, "NVRTC (libnvrtc.so) can't be used: INTARSIA_NVRTC ");
        assert_non_null(strstr(diag->message, values[i]));
        assert_non_null(strstr(diag->hint, "pip install nvidia-cuda-nvrtc"));
        assert_int_equal(its_cc_id(f->ctx, &input, id), ITS_ERR_ABSENT);
        assert_string_equal(id, "");
        input.dialect = "ptx"; /* which needs no NVRTC */
        input.source = ".version 8.0\n.target sm_80\n.address_size 64\n.visible .func f() { ret; }\n";
        compile_ok(f, &input);
        unsetenv("INTARSIA_NVRTC");
    }
}

static void a_file_that_is_no_library(void **state) {
    fixture *f = *state;
    its_cc_input input = {.source = "", .arch = "sm_80"};
    setenv("INTARSIA_NVRTC", put(f, "libnvrtc.so", "not an object"), 1);
    assert_int_equal(compile(f, &input), ITS_ERR_ABSENT);
    expect(f, "NVRTC can't be loaded: ");
    unsetenv("INTARSIA_NVRTC");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        CC_TEST(a_syntax_error_has_its_place),
        CC_TEST(columns_count_bytes),
        CC_TEST(an_error_in_a_header),
        CC_TEST(a_missing_header),
        CC_TEST(a_missing_standard_header),
        CC_TEST(the_first_twenty_errors_are_enough),
        CC_TEST(instantiation_contexts_are_places),
        CC_TEST(notes_are_places),
        CC_TEST(warnings_of_a_failure_are_no_errors),
        CC_TEST(messages_that_look_like_others),
        CC_TEST(a_line_directive_of_the_user_holds),
        CC_TEST(long_lines_and_names),
        CC_TEST(bytes_that_are_no_text),
        CC_TEST(sources_that_cannot_be_read),
        CC_TEST(includes_without_end),
        CC_TEST(nvrtc_is_absent),
        CC_TEST(a_file_that_is_no_library),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
