/* Where libraries and CUDA's headers are searched, in which order, and what is said when there is none. */
#include "common.h"

#include "base/diag.h"
#include "base/dynload.h"

typedef struct searched {
    its_arena arena;
    its_library_search search;
} searched;

static void look(fixture *f, its_library_id id, searched *s) {
    its_guard guard;
    its_arena_init(&s->arena, f->ctx);
    if (its_guard_enter(f->ctx, &guard)) fail_msg("out of memory");
    its_library_find(&s->arena, id, &s->search);
    its_guard_leave(f->ctx, &guard);
}

static void found(fixture *f, const char *path, const char *origin) {
    searched s;
    look(f, ITS_LIBRARY_NVRTC, &s);
    assert_non_null(s.search.path);
    assert_string_equal(s.search.path, path);
    assert_string_equal(s.search.origin, origin);
    assert_string_equal(s.search.what, "NVRTC");
    assert_true(s.search.n_looked > 0);
    const its_looked *last = &s.search.looked[s.search.n_looked - 1];
    assert_true(last->found);
    assert_string_equal(last->path, path);
    for (size_t i = 0; i + 1 < s.search.n_looked; i++) assert_false(s.search.looked[i].found);
    its_arena_free(&s.arena);
}

static void clear_environment(void) {
    static const char *const names[] = {"INTARSIA_NVRTC", "CUDA_HOME",       "CUDA_PATH",    "INTARSIA_SITE_PACKAGES",
                                        "VIRTUAL_ENV",    "LD_LIBRARY_PATH", "INTARSIA_CUDA"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) unsetenv(names[i]);
}

static int setup_environment(void **state) {
    clear_environment();
    return setup(state);
}

static int teardown_environment(void **state) {
    clear_environment();
    return teardown(state);
}

static void the_knob_comes_first(void **state) {
    fixture *f = *state;
    const char *library = put(f, "mine/libnvrtc.so.13", "");
    put(f, "cuda/lib64/libnvrtc.so", "");
    setenv("CUDA_HOME", at(f, "cuda"), 1);
    setenv("INTARSIA_NVRTC", library, 1);
    found(f, library, "INTARSIA_NVRTC");
    setenv("INTARSIA_NVRTC", at(f, "mine"), 1); /* a directory that holds it */
    found(f, library, "INTARSIA_NVRTC");
    unsetenv("INTARSIA_NVRTC");
    found(f, at(f, "cuda/lib64/libnvrtc.so"), "CUDA_HOME");
}

static void a_knob_that_names_nothing_ends_the_search(void **state) {
    fixture *f = *state;
    searched s;
    put(f, "cuda/lib64/libnvrtc.so", "");
    put(f, "empty/file", "");
    setenv("CUDA_HOME", at(f, "cuda"), 1);
    const char *const values[] = {"none", at(f, "nowhere"), at(f, "empty")};
    static const char *const problems[] = {"is set to 'none'", "which is no file", "which has no libnvrtc.so"};
    for (size_t i = 0; i < 3; i++) {
        setenv("INTARSIA_NVRTC", values[i], 1);
        look(f, ITS_LIBRARY_NVRTC, &s);
        assert_null(s.search.path);
        assert_non_null(strstr(s.search.problem, problems[i]));
        its_diag_clear(f->ctx);
        its_library library;
        its_nvrtc functions;
        assert_int_equal(its_library_open(f->ctx, &s.search, &library, &functions), ITS_ERR_ABSENT);
        assert_null(library.handle);
        expect(f, problems[i]);
        its_arena_free(&s.arena);
    }
}

static void without_any_it_says_what_to_install(void **state) {
    fixture *f = *state;
    its_library_search none = {.id = ITS_LIBRARY_NVRTC, .what = "NVRTC", .hint = "install it"};
    assert_int_equal(its_library_absent(f->ctx, &none), ITS_ERR_ABSENT);
    assert_string_equal(expect(f, "NVRTC (libnvrtc.so) is not on this machine")->hint, "install it");
}

static void toolkits_come_before_wheels(void **state) {
    fixture *f = *state;
    const char *wheel = put(f, "site/nvidia/cu13/lib/libnvrtc.so.13", "");
    put(f, "toolkit/targets/x86_64-linux/lib/libnvrtc.so.12", "");
    setenv("INTARSIA_SITE_PACKAGES", at(f, "site"), 1);
    setenv("CUDA_PATH", at(f, "toolkit"), 1);
    found(f, at(f, "toolkit/targets/x86_64-linux/lib/libnvrtc.so.12"), "CUDA_PATH");
    setenv("INTARSIA_CUDA", "wheels", 1);
    found(f, wheel, "INTARSIA_SITE_PACKAGES");
}

static void wheels_of_every_kind(void **state) {
    fixture *f = *state;
    char list[1200];
    setenv("INTARSIA_CUDA", "wheels", 1);
    put(f, "first/unrelated.py", "");
    const char *old = put(f, "second/nvidia/cuda_nvrtc/lib/libnvrtc.so.12", "");
    snprintf(list, sizeof list, ":%s/first::%s/second:", f->dir, f->dir);
    setenv("INTARSIA_SITE_PACKAGES", list, 1);
    found(f, old, "INTARSIA_SITE_PACKAGES");
    const char *new = put(f, "second/nvidia/cu13/lib/libnvrtc.so.13", "");
    found(f, new, "INTARSIA_SITE_PACKAGES");
    unsetenv("INTARSIA_SITE_PACKAGES");
    const char *venv = put(f, "venv/lib/python3.12/site-packages/nvidia/cu13/lib/libnvrtc.so.13", "");
    setenv("VIRTUAL_ENV", at(f, "venv"), 1);
    found(f, venv, "VIRTUAL_ENV");
}

static void the_plain_name_wins_then_the_newest(void **state) {
    fixture *f = *state;
    setenv("CUDA_HOME", at(f, "cuda"), 1);
    const char *path = put(f, "cuda/lib/libnvrtc.so.12", "");
    found(f, path, "CUDA_HOME");
    path = put(f, "cuda/lib/libnvrtc.so.13", "");
    found(f, path, "CUDA_HOME");
    path = put(f, "cuda/lib/libnvrtc.so", "");
    found(f, path, "CUDA_HOME");
    path = put(f, "cuda/lib64/libnvrtc.so.12", "");
    found(f, path, "CUDA_HOME");
}

static void a_library_without_the_functions_is_refused(void **state) {
    fixture *f = *state;
    searched s;
    put(f, "empty.c", "int nvrtcVersion(int *a, int *b) { return *a + *b; }\n");
    const char *const argv[] = {"cc", "-shared", "-fPIC", "-o", at(f, "libnvrtc.so"), at(f, "empty.c"), NULL};
    run(f, argv);
    setenv("INTARSIA_NVRTC", at(f, "libnvrtc.so"), 1);
    look(f, ITS_LIBRARY_NVRTC, &s);
    its_library library;
    its_nvrtc functions;
    assert_int_equal(its_library_open(f->ctx, &s.search, &library, &functions), ITS_ERR_ABSENT);
    expect(f, "is not a version that can be used: it has no nvrtcGetErrorString");
    its_arena_free(&s.arena);
}

static void the_cpp_runtime_demangles(void **state) {
    fixture *f = *state;
    searched s;
    look(f, ITS_LIBRARY_CXX, &s);
    its_library library;
    its_cxx cxx;
    assert_int_equal(its_library_open(f->ctx, &s.search, &library, &cxx), ITS_OK);
    int status = -1;
    char *text = cxx.__cxa_demangle("_Z5scaleIfEvPT_i", NULL, NULL, &status);
    assert_int_equal(status, 0);
    assert_string_equal(text, "void scale<float>(float*, int)");
    free(text);
    its_library_close(&library);
    its_arena_free(&s.arena);
}

static void headers(fixture *f, const char *library, size_t count, const char *first, const char *second) {
    its_guard guard;
    its_arena arena;
    its_header_search search;
    its_library_search nvrtc = {.path = library, .origin = "test"};
    its_arena_init(&arena, f->ctx);
    if (its_guard_enter(f->ctx, &guard)) fail_msg("out of memory");
    its_cuda_headers_find(&arena, &nvrtc, &search);
    its_guard_leave(f->ctx, &guard);
    assert_int_equal(search.n_dirs, count);
    assert_string_equal(search.dirs[0], first);
    if (count > 1) assert_string_equal(search.dirs[1], second);
    assert_string_equal(search.origin, "test");
    its_arena_free(&arena);
}

static void headers_lie_next_to_the_library(void **state) {
    fixture *f = *state;
    put(f, "cuda/include/cuda_fp16.h", "");
    headers(f, at(f, "cuda/lib64/libnvrtc.so"), 1, at(f, "cuda/include"), NULL);
    put(f, "cuda/include/cccl/nv/target", "");
    headers(f, at(f, "cuda/lib64/libnvrtc.so"), 2, at(f, "cuda/include"), at(f, "cuda/include/cccl"));
    put(f, "site/nvidia/cuda_runtime/include/cuda_fp16.h", "");
    put(f, "site/nvidia/cuda_cccl/include/nv/target", "");
    headers(f, at(f, "site/nvidia/cuda_nvrtc/lib/libnvrtc.so.12"), 2, at(f, "site/nvidia/cuda_runtime/include"),
            at(f, "site/nvidia/cuda_cccl/include"));
}

#define ENV_TEST(name) cmocka_unit_test_setup_teardown(name, setup_environment, teardown_environment)

int main(void) {
    const struct CMUnitTest tests[] = {
        ENV_TEST(the_knob_comes_first),
        ENV_TEST(a_knob_that_names_nothing_ends_the_search),
        ENV_TEST(without_any_it_says_what_to_install),
        ENV_TEST(toolkits_come_before_wheels),
        ENV_TEST(wheels_of_every_kind),
        ENV_TEST(the_plain_name_wins_then_the_newest),
        ENV_TEST(a_library_without_the_functions_is_refused),
        ENV_TEST(the_cpp_runtime_demangles),
        ENV_TEST(headers_lie_next_to_the_library),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
