/* The cuda dialect: what compiles, what its functions are called, and that ptxas takes it. */
#include "common.h"

static const char several[] = "struct pair { int count; double value[3]; };\n"
                              "namespace deep { __device__ void fill(float *p, int n) { p[n] = 1; } }\n"
                              "extern \"C\" __device__ int twice(int a) { return 2 * a; }\n"
                              "__device__ double second(pair p) { return p.value[1] + p.count; }\n"
                              "static __device__ __noinline__ int hidden(int a) { return a * 3; }\n"
                              "__device__ int both(int a) { return hidden(a) + hidden(a + 1); }\n"
                              "__device__ void same(int *p) { *p = 1; }\n"
                              "__device__ void same(float *p) { *p = 1; }\n"
                              "template <class T> __device__ void scale(T *p, int n) { p[n] *= 2; }\n"
                              "template <class T> __global__ void kernel(T *p) { scale(p, threadIdx.x); }\n"
                              "extern \"C\" __device__ int elsewhere(int);\n"
                              "extern \"C\" __device__ int calls(int a) { return elsewhere(a); }\n";

static void several_functions_for_each_architecture(void **state) {
    fixture *f = *state;
    static const char *const arches[] = {"sm_80", "sm_90a", "compute_90"};
    for (size_t i = 0; i < 3; i++) {
        its_cc_input input = {.path = put(f, "several.cu", several), .arch = arches[i]};
        its_unit *unit = compile_ok(f, &input);
        assert_string_equal(unit->arch, arches[i]);
        assert_false(unit->cached);
        assert_int_equal(unit->ptx_size, strlen(unit->ptx));
        assert_string_equal(find(f, "twice"), "twice");
        assert_string_equal(find(f, "deep::fill"), "_ZN4deep4fillEPfi");
        assert_string_equal(find(f, "fill"), "_ZN4deep4fillEPfi");
        assert_string_equal(find(f, "deep::fill(float *, int)"), "_ZN4deep4fillEPfi");
        assert_string_equal(find(f, "_ZN4deep4fillEPfi"), "_ZN4deep4fillEPfi");
        assert_string_equal(find(f, "second"), "_Z6second4pair");
        assert_non_null(strstr(find(f, "hidden"), "hidden"));
        assert_null(find(f, "scale")); /* nobody asked for one */
        if (i < 2) assemble(f);
    }
    assert_non_null(strstr(f->unit->ptx, ".param .align 8 .b8 _Z6second4pair_param_0[32]"));
}

static void visible_functions_come_first(void **state) {
    fixture *f = *state;
    its_cc_input input = {.path = put(f, "several.cu", several), .arch = "sm_80"};
    its_unit *unit = compile_ok(f, &input);
    assert_int_equal(unit->n_funcs, 8);
    assert_non_null(strstr(unit->funcs[7].name, "hidden"));
    assert_string_equal(unit->funcs[7].spelling, "hidden(int)");
}

static void templates_are_made_by_name(void **state) {
    fixture *f = *state;
    static const char *const instances[] = {"scale<float>", "scale< unsigned long long >", "kernel<double>", "twice",
                                            "static_cast<void (&)(int *)>(same)"};
    its_cc_input input = {
        .path = put(f, "several.cu", several), .arch = "sm_80", .instances = instances, .n_instances = 5};
    its_unit *unit = compile_ok(f, &input);
    assert_string_equal(find(f, "scale<float>"), "_Z5scaleIfEvPT_i");
    assert_string_equal(find(f, "scale<unsigned long long>"), "_Z5scaleIyEvPT_i");
    assert_string_equal(find(f, "kernel<double>"), "_Z6kernelIdEvPT_");
    assert_string_equal(find(f, "kernel"), "_Z6kernelIdEvPT_");
    assert_string_equal(find(f, "twice"), "twice");
    assert_null(find(f, "scale"));
    expect(f, "'scale' fits several functions");
    assert_null(strstr(unit->ptx, "its_instance_"));
    assert_null(strstr(unit->ptx, "intarsia instances"));
    assemble(f);
}

static void a_cached_instance_is_found_as_well(void **state) {
    fixture *f = *state;
    static const char *const instances[] = {"scale<float>"};
    its_cc_input input = {
        .path = put(f, "several.cu", several), .arch = "sm_80", .instances = instances, .n_instances = 1};
    compile_ok(f, &input);
    assert_true(compile_ok(f, &input)->cached);
    assert_string_equal(find(f, "scale"), "_Z5scaleIfEvPT_i");
}

static void a_wrong_instance_is_named(void **state) {
    fixture *f = *state;
    static const char *const instances[] = {"scale<float>", "nothing<int>"};
    its_cc_input input = {
        .path = put(f, "several.cu", several), .arch = "sm_80", .instances = instances, .n_instances = 2};
    assert_int_equal(compile(f, &input), ITS_ERR_INPUT);
    expect(f, "the instance 'nothing<int>' can't be made: identifier \"nothing\" is undefined");
    static const char *const lines[] = {"a\nb"};
    input.instances = lines, input.n_instances = 1;
    assert_int_equal(compile(f, &input), ITS_ERR_INPUT);
    expect(f, "instance 0 is no name");
}

static void a_missing_function_lists_those_there_are(void **state) {
    fixture *f = *state;
    its_cc_input input = {.path = put(f, "several.cu", several), .arch = "sm_80"};
    compile_ok(f, &input);
    assert_null(find(f, "twise"));
    const its_diag *diag = expect(f, "defines no function 'twise'; it defines: ");
    assert_non_null(strstr(diag->message, "twice"));
    assert_non_null(strstr(diag->message, "deep::fill(float*, int)"));
    assert_string_equal(diag->hint, "did you mean 'twice'?");
    assert_null(find(f, "same"));
    diag = expect(f, "'same' fits several functions");
    assert_non_null(strstr(diag->message, "same(int*), same(float*)"));
    assert_string_equal(find(f, "same(float *)"), "_Z4samePf");
}

static void a_source_given_as_text(void **state) {
    fixture *f = *state;
    its_cc_input input = {.source = "extern \"C\" __device__ int one() { return 1; }", .arch = "sm_90a"};
    its_unit *unit = compile_ok(f, &input);
    assert_string_equal(unit->path, "source.cu");
    assert_int_equal(unit->n_depends, 0);
    assert_non_null(strstr(unit->ptx, " \"source.cu\""));
    assemble(f);
    input.path = "kernel.py:12";
    input.source = "__device__ int two() { return wrong; }";
    assert_int_equal(compile(f, &input), ITS_ERR_INPUT);
    expect_place(expect(f, "identifier \"wrong\" is undefined"), "kernel.py:12", 1, 31);
}

static void include_paths_and_macros(void **state) {
    fixture *f = *state;
    char dir[600], both[600], define[] = "-DTHREE=3";
    put(f, "inc/three.h", "#include \"sub/inner.h\"\n");
    put(f, "inc/sub/inner.h", "#define FOUR (THREE + 1)\n");
    put(f, "src/near.h", "#define FIVE 5\n");
    snprintf(dir, sizeof dir, "%s/inc", f->dir);
    snprintf(both, sizeof both, "-I%s/inc", f->dir);
    const char *path = put(f, "src/a.cu",
                           "#include <three.h>\n#include \"near.h\"\n"
                           "extern \"C\" __device__ int sum() { return FOUR + FIVE + SIX; }\n");
    const char *const forms[][4] = {{"-I", dir, define, "-DSIX=6"},
                                    {both, define, "-D", "SIX=6"},
                                    {"--include-path", dir, define, "--define-macro=SIX=6"}};
    char id[3][17];
    for (size_t i = 0; i < 3; i++) {
        its_cc_input input = {.path = path, .arch = "sm_80", .options = forms[i], .n_options = 4};
        its_unit *unit = compile_ok(f, &input);
        assert_non_null(strstr(unit->ptx, ", 15;"));
        assert_int_equal(unit->n_depends, 4);
        assert_string_equal(unit->depends[0], path);
        assert_true(depends_on(unit, "/inc/three.h") && depends_on(unit, "/inc/sub/inner.h") &&
                    depends_on(unit, "/src/near.h"));
        memcpy(id[i], unit->id, sizeof id[i]);
    }
    assert_string_equal(id[0], id[1]); /* the same options, written in other ways */
    assert_string_equal(id[0], id[2]);
}

static void options_that_would_break_the_result_are_refused(void **state) {
    fixture *f = *state;
    static const char *const wrong[][2] = {
        {"-dlto", "it gives no PTX"},
        {"-arch=sm_70", "the architecture is a setting of its own"},
        {"--relocatable-device-code=false", "can't be 'false'"},
        {"--use-pch=x", "escapes the cache"},
        {"-I", "lacks its value"},
        {"--no-such-option", "no-such-option"},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        its_cc_input input = {.source = "", .arch = "sm_80", .options = &wrong[i][0], .n_options = 1};
        assert_int_equal(compile(f, &input), ITS_ERR_INPUT);
        expect(f, wrong[i][1]);
    }
    static const char *const arches[] = {"sm_8", "ampere", "sm_80x", "sm_1", "sm_30"};
    for (size_t i = 0; i < sizeof arches / sizeof *arches; i++) {
        its_cc_input input = {.source = "", .arch = arches[i]};
        assert_int_equal(compile(f, &input), ITS_ERR_INPUT);
        expect(f, arches[i]);
    }
}

static void clang_address_spaces(void **state) {
    fixture *f = *state;
    static const char *const options[] = {"-clang-address-spaces"};
    its_cc_input input = {.source = "typedef __attribute__((address_space(1))) int global_int;\n"
                                    "extern \"C\" __device__ int get(global_int *p) { return *p; }\n",
                          .arch = "sm_80",
                          .options = options,
                          .n_options = 1};
    compile_ok(f, &input);
    assert_string_equal(find(f, "get"), "get");
}

static void lines_are_kept_unless_asked(void **state) {
    fixture *f = *state;
    static const char *const options[] = {"-no-lineinfo"};
    its_cc_input input = {.path = put(f, "l.cu", several), .arch = "sm_80"};
    its_unit *unit = compile_ok(f, &input);
    assert_non_null(strstr(unit->ptx, ".loc"));
    assert_non_null(strstr(unit->ptx, at(f, "l.cu")));
    input.options = options, input.n_options = 1;
    assert_null(strstr(compile_ok(f, &input)->ptx, ".loc"));
}

static void warnings_are_in_the_log(void **state) {
    fixture *f = *state;
    const char *path = put(f, "w.cu", "extern \"C\" __device__ int f() {\n    int unused;\n    return 1;\n}\n");
    its_cc_input input = {.path = path, .arch = "sm_80"};
    char expected[2200];
    snprintf(expected, sizeof expected, "%s(2): warning", path);
    for (int i = 0; i < 2; i++) { /* compiled, then cached */
        its_unit *unit = compile_ok(f, &input);
        assert_int_equal(unit->cached, i);
        assert_non_null(strstr(unit->log, expected));
        assert_int_equal(its_diag_count(f->ctx), 0);
    }
}

/* CUDA's own headers, of the toolkit or of the wheels. */
static void cuda_headers_are_found(void **state) {
    fixture *f = *state;
    its_cc_input input = {
        .source = "#include <cuda_fp16.h>\n#include <cuda/std/cstdint>\n"
                  "extern \"C\" __device__ cuda::std::uint32_t f(__half a) { return __half2uint_rn(__hadd(a, a)); }\n",
        .arch = "sm_80",
    };
    its_unit *unit = compile_ok(f, &input);
    assert_true(depends_on(unit, "/cuda_fp16.h"));
    assemble(f);
}

/* intarsia/nvshmem.h is part of the library; a directory given with -I may have another one. */
static void our_headers_are_built_in(void **state) {
    fixture *f = *state;
    char option[600];
    its_cc_input input = {.source = "#include <intarsia/nvshmem.h>\n"
                                    "extern \"C\" __device__ void shift(int *p) {\n"
                                    "    nvshmem_int_p(p, nvshmem_my_pe(), 0);\n}\n",
                          .arch = "sm_80"};
    compile_ok(f, &input);
    assert_non_null(strstr(f->unit->ptx, ".extern .func nvshmem_int_p"));
    assemble(f);
    put(f, "other/intarsia/nvshmem.h",
        "extern \"C\" __device__ void nvshmem_int_p(int *, int, int);\n"
        "#define nvshmem_my_pe() 77\n");
    snprintf(option, sizeof option, "-I%s/other", f->dir);
    const char *const options[] = {option};
    input.options = options, input.n_options = 1;
    compile_ok(f, &input);
    assert_non_null(strstr(f->unit->ptx, "77"));
    assert_true(depends_on(f->unit, "/other/intarsia/nvshmem.h"));
}

/* NVRTC has no standard library: what device code can use of C's headers is part of ours, in C's and C++'s names. */
static void headers_of_c_are_built_in(void **state) {
    fixture *f = *state;
    static const char body[] =
        "#include <cuda/std/cstdint>\n#include <cuda/std/climits>\n#include <cuda_fp16.h>\n"
        "extern \"C\" __device__ std::uint64_t f(uint8_t a, int64_t b, size_t n, char *to, const char *from) {\n"
        "    assert(n < SIZE_MAX && a <= UINT8_MAX);\n"
        "    struct pair { int x, y; };\n"
        "    static_assert(CHAR_BIT == 8 && INT64_MAX == LLONG_MAX, \"\");\n"
        "    static_assert(INT64_C(-1) < 0 && UINT64_C(1) << 63 && sizeof(std::ptrdiff_t) == 8, \"\");\n"
        "    std::memcpy(to, from, n);\n"
        "    printf(\"%f %\" PRIu64, FLT_MAX * M_PI, (uint64_t)b);\n"
        "    return offsetof(pair, y) + (uint64_t)std::sqrt((float)n) + (std::fabs(1.0) < INFINITY) + (malloc(n) == NULL) + isnan(NAN);\n"
        "}\n";
    static const char *const heads[] = {
        "#include <assert.h>\n#include <float.h>\n#include <inttypes.h>\n#include <limits.h>\n#include <math.h>\n"
        "#include <stdbool.h>\n#include <stddef.h>\n#include <stdint.h>\n#include <stdio.h>\n#include <stdlib.h>\n"
        "#include <string.h>\n#include <nvshmem.h>\n#include <nvshmemx.h>\n",
        "#include <nvshmem.h>\n#include <cassert>\n#include <cfloat>\n#include <cinttypes>\n#include <climits>\n"
        "#include <cmath>\n#include <cstddef>\n#include <cstdint>\n#include <cstdio>\n#include <cstdlib>\n"
        "#include <cstring>\n"};
    char source[4000];
    for (int i = 0; i < 4; i++) { /* before and after CUDA's own */
        const char *head = heads[i % 2], *middle = i < 2 ? "" : "#include <cuda/std/cstdint>\n";
        snprintf(source, sizeof source, "%s%s%s", middle, head, body);
        its_cc_input input = {.source = source, .arch = "sm_80"};
        assert_string_equal(compile_ok(f, &input)->log, "");
        assemble(f);
    }
}

/* A file of that name beside the source is the one that is meant, and what it holds counts. */
static void a_header_of_ones_own_hides_ours(void **state) {
    fixture *f = *state;
    const char *path = put(f, "own/a.cu", "#include \"limits.h\"\nextern \"C\" __device__ int f() { return LIMIT; }\n");
    put(f, "own/limits.h", "#define LIMIT 4711\n");
    its_cc_input input = {.path = path, .arch = "sm_80"};
    compile_ok(f, &input);
    assert_non_null(strstr(f->unit->ptx, "4711"));
    put(f, "own/limits.h", "#define LIMIT 4712\n");
    compile_ok(f, &input);
    assert_non_null(strstr(f->unit->ptx, "4712"));
}

static void strange_names_of_files(void **state) {
    fixture *f = *state;
    static const char *const names[] = {"with space/a b.cu", "quo'te\"s/c\"d.cu", "back\\slash/e.cu",
                                        "caf\xc3\xa9/\xc3\xa9.cu", "par(1): error: x/f(2).cu"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char name[256], header[256];
        snprintf(name, sizeof name, "%s", names[i]);
        snprintf(header, sizeof header, "%s", names[i]);
        strcpy(strrchr(header, '/'), "/near.h");
        put(f, header, "__device__ inline int near(int a) { return a + 1; }\n");
        const char *path = put(f, name,
                               "#include \"near.h\"\nextern \"C\" __device__ int f(int a) { return near(a); }\n"
                               "#ifdef WRONG\nint x = y;\n#endif\n");
        its_cc_input input = {.path = path, .arch = "sm_80"};
        its_unit *unit = compile_ok(f, &input);
        assert_int_equal(unit->n_depends, 2);
        assert_int_equal(access(unit->depends[1], R_OK), 0);
        assert_true(depends_on(unit, "/near.h"));
        assemble(f);
        static const char *const options[] = {"-DWRONG"};
        input.options = options, input.n_options = 1;
        assert_int_equal(compile(f, &input), ITS_ERR_INPUT);
        expect_place(expect(f, "identifier \"y\" is undefined"), path, 4, 9);
    }
}

static void empty_and_large_sources(void **state) {
    fixture *f = *state;
    its_cc_input input = {.path = put(f, "empty.cu", ""), .arch = "sm_80"};
    assert_int_equal(compile_ok(f, &input)->n_funcs, 0);
    assert_null(find(f, "f"));
    expect(f, "it defines none at all");
    assemble(f);

    its_buffer text;
    its_buffer_init(&text, f->ctx);
    for (int i = 0; text.size < 1 << 20; i++)
        its_buffer_printf(&text, "extern \"C\" __device__ int f%d(int a) { return a * %d + (a >> %d); } // %0*d\n", i,
                          i, i % 31, 900, 0);
    its_buffer_char(&text, 0);
    input.path = put(f, "large.cu", text.data);
    its_buffer_free(&text);
    its_unit *unit = compile_ok(f, &input);
    assert_true(unit->n_funcs > 1000);
    assert_string_equal(find(f, "f1000"), "f1000");
    assemble(f);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        CC_TEST(several_functions_for_each_architecture),
        CC_TEST(visible_functions_come_first),
        CC_TEST(templates_are_made_by_name),
        CC_TEST(a_cached_instance_is_found_as_well),
        CC_TEST(a_wrong_instance_is_named),
        CC_TEST(a_missing_function_lists_those_there_are),
        CC_TEST(a_source_given_as_text),
        CC_TEST(include_paths_and_macros),
        CC_TEST(options_that_would_break_the_result_are_refused),
        CC_TEST(clang_address_spaces),
        CC_TEST(lines_are_kept_unless_asked),
        CC_TEST(warnings_are_in_the_log),
        CC_TEST(cuda_headers_are_found),
        CC_TEST(our_headers_are_built_in),
        CC_TEST(headers_of_c_are_built_in),
        CC_TEST(a_header_of_ones_own_hides_ours),
        CC_TEST(strange_names_of_files),
        CC_TEST(empty_and_large_sources),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
