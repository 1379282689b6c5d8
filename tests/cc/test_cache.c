/* The cache: what makes a key, what is stored, who may store it, and what happens when it is damaged. */
#include <fcntl.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/wait.h>
#include <time.h>

#include "../heap.h"
#include "common.h"

static const char one[] = "extern \"C\" __device__ int one(int a) { return a + 1; }\n";

static its_cc_input input_of(const char *path) {
    return (its_cc_input){.path = path, .arch = "sm_80"};
}

static its_cache_info query(fixture *f) {
    its_cache_info info;
    assert_int_equal(its_cache_query(f->ctx, &info), ITS_OK);
    its_free(f->ctx, info.directory);
    info.directory = NULL;
    return info;
}

/* The path of the unit's entry. */
static const char *entry_of(const fixture *f, const its_unit *unit) {
    char name[64];
    snprintf(name, sizeof name, "cache/cc/%s/data", unit->id);
    return at(f, name);
}

/* -- keys ---------------------------------------------------------------------------------------------------------- */

static void the_second_time_it_is_cached(void **state) {
    fixture *f = *state;
    its_cc_input input = input_of(put(f, "one.cu", one));
    char id[17], early[17];
    assert_int_equal(its_cc_id(f->ctx, &input, early), ITS_OK);
    assert_int_equal(query(f).entries, 0);
    its_unit *unit = compile_ok(f, &input);
    assert_false(unit->cached);
    assert_int_equal(strlen(unit->id), 16);
    assert_int_equal(strspn(unit->id, "0123456789abcdef"), 16);
    assert_string_equal(unit->id, early);
    memcpy(id, unit->id, sizeof id);
    char *ptx = strdup(unit->ptx);
    unit = compile_ok(f, &input);
    assert_true(unit->cached);
    assert_string_equal(unit->id, id);
    assert_string_equal(unit->ptx, ptx);
    assert_int_equal(unit->n_funcs, 1);
    assert_string_equal(unit->funcs[0].name, "one");
    free(ptx);
    input.no_cache = true;
    assert_false(compile_ok(f, &input)->cached);
    assert_string_equal(f->unit->id, id);
}

/* Each change gives an id of its own, and taking it back gives the first one. */
static void everything_that_matters_is_in_the_id(void **state) {
    fixture *f = *state;
    static const char *const define[] = {"-DX=1"}, *const other_define[] = {"-DX=2"}, *const instance[] = {"one"};
    its_cc_input inputs[] = {
        {.path = put(f, "one.cu", one), .arch = "sm_80"},
        {.path = at(f, "one.cu"), .arch = "sm_90a"},
        {.path = at(f, "one.cu"), .arch = "sm_80", .options = define, .n_options = 1},
        {.path = at(f, "one.cu"), .arch = "sm_80", .options = other_define, .n_options = 1},
        {.path = at(f, "one.cu"), .arch = "sm_80", .instances = instance, .n_instances = 1},
        {.path = put(f, "two.cu", "extern \"C\" __device__ int one(int a) { return a + 2; }\n"), .arch = "sm_80"},
    };
    enum { N = sizeof inputs / sizeof *inputs };
    char ids[N][17];
    for (size_t i = 0; i < N; i++) {
        assert_int_equal(its_cc_id(f->ctx, &inputs[i], ids[i]), ITS_OK);
        for (size_t j = 0; j < i; j++) assert_string_not_equal(ids[i], ids[j]);
    }
    put(f, "one.cu", "// a comment is a change\n");
    char id[17];
    assert_int_equal(its_cc_id(f->ctx, &inputs[0], id), ITS_OK);
    assert_string_not_equal(id, ids[0]);
    put(f, "one.cu", one);
    assert_int_equal(its_cc_id(f->ctx, &inputs[0], id), ITS_OK);
    assert_string_equal(id, ids[0]);
}

static void edited_headers_change_the_id(void **state) {
    fixture *f = *state;
    static const char *const options[] = {"-DCHOICE=\"chosen.h\""};
    const char *path = put(f, "a.cu",
                           "#include \"outer.h\"\n#ifdef NEVER\n#include \"never.h\"\n#endif\n"
                           "#if __has_include(\"maybe.h\")\n#define MAYBE 1\n#else\n#define MAYBE 0\n#endif\n"
                           "#include CHOICE\n"
                           "extern \"C\" __device__ int f() { return INNER + MAYBE + CHOSEN; }\n");
    put(f, "outer.h", "#include \\\n  \"deep/inner.h\"\n");
    put(f, "deep/inner.h", "#define INNER 100\n");
    put(f, "chosen.h", "#define CHOSEN 1000\n");
    its_cc_input input = {.path = path, .arch = "sm_80", .options = options, .n_options = 1};
    char ids[5][17];
    its_unit *unit = compile_ok(f, &input);
    assert_non_null(strstr(unit->ptx, ", 1100;"));
    assert_true(depends_on(unit, "/deep/inner.h") && depends_on(unit, "/chosen.h"));
    memcpy(ids[0], unit->id, sizeof ids[0]);

    put(f, "deep/inner.h", "#define INNER 200\n");
    unit = compile_ok(f, &input);
    assert_false(unit->cached);
    assert_non_null(strstr(unit->ptx, ", 1200;"));
    memcpy(ids[1], unit->id, sizeof ids[1]);

    put(f, "maybe.h", "");
    unit = compile_ok(f, &input);
    assert_non_null(strstr(unit->ptx, ", 1201;"));
    memcpy(ids[2], unit->id, sizeof ids[2]);

    put(f, "chosen.h", "#define CHOSEN 2000\n");
    unit = compile_ok(f, &input);
    assert_non_null(strstr(unit->ptx, ", 2201;"));
    memcpy(ids[3], unit->id, sizeof ids[3]);

    put(f, "never.h", "// a file that a branch not taken names counts as well\n");
    memcpy(ids[4], compile_ok(f, &input)->id, sizeof ids[4]);

    for (size_t i = 0; i < 5; i++)
        for (size_t j = 0; j < i; j++) assert_string_not_equal(ids[i], ids[j]);

    put(f, "deep/inner.h", "#define INNER 100\n");
    put(f, "chosen.h", "#define CHOSEN 1000\n");
    unlink(at(f, "maybe.h")), unlink(at(f, "never.h"));
    unit = compile_ok(f, &input); /* as in the beginning */
    assert_true(unit->cached);
    assert_string_equal(unit->id, ids[0]);
}

/* A header that appears in an earlier directory hides the one that was read. */
static void a_hidden_header_changes_the_id(void **state) {
    fixture *f = *state;
    char first[600], second[600];
    snprintf(first, sizeof first, "-I%s/first", f->dir);
    snprintf(second, sizeof second, "-I%s/second", f->dir);
    const char *const options[] = {first, second};
    put(f, "second/v.h", "#define V 2\n");
    its_cc_input input = {.path = put(f, "a.cu", "#include <v.h>\nextern \"C\" __device__ int f() { return V; }\n"),
                          .arch = "sm_80",
                          .options = options,
                          .n_options = 2};
    assert_non_null(strstr(compile_ok(f, &input)->ptx, ", 2;"));
    put(f, "first/v.h", "#define V 1\n");
    assert_non_null(strstr(compile_ok(f, &input)->ptx, ", 1;"));
    assert_false(f->unit->cached);
}

/* Contents make the key, never paths: a project that was moved finds its entries, and gets its new paths. */
/* Which macro is in force is not known: all that were ever defined count, in any order, in time that is no square. */
static void headers_named_by_macros_change_the_id(void **state) {
    fixture *f = *state;
    enum { MACROS = 20000, SIZE = 64 };
    char before[17], after[17], *text = malloc(2 * MACROS * SIZE), *p = text;
    assert_non_null(text);
    for (int i = 0; i < MACROS; i++) p += sprintf(p, "#include A\n#define A \"dir/h%d.h\"\n", i);
    put(f, "dir/h19999.h", "#include B\n");
    put(f, "dir/x.h", "int x;");
    its_cc_input input = {.path = put(f, "macros.cu", text), .arch = "sm_80"};
    time_t start = time(NULL);
    assert_int_equal(its_cc_id(f->ctx, &input, before), ITS_OK);
    put(f, "dir/x.h", "int y;");
    assert_int_equal(its_cc_id(f->ctx, &input, after), ITS_OK);
    assert_string_equal(before, after);
    put(f, "macros.cu", strcat(text, "#define B \"x.h\"\n"));
    assert_int_equal(its_cc_id(f->ctx, &input, before), ITS_OK);
    put(f, "dir/x.h", "int z;");
    assert_int_equal(its_cc_id(f->ctx, &input, after), ITS_OK);
    assert_string_not_equal(before, after);
    assert_true(time(NULL) - start < 60);
    free(text);
}

static void a_moved_project_is_still_cached(void **state) {
    fixture *f = *state;
    static const char source[] =
        "#include \"h.h\"\nextern \"C\" __device__ int f(int a) { int unused; return g(a); }\n";
    static const char header[] = "__device__ inline int g(int a) { return a * 7; }\n";
    char id[17];
    put(f, "old/h.h", header);
    its_cc_input input = input_of(put(f, "old/a.cu", source));
    memcpy(id, compile_ok(f, &input)->id, sizeof id);
    assert_non_null(strstr(f->unit->ptx, at(f, "old/a.cu")));
    put(f, "new/place/h.h", header);
    input = input_of(put(f, "new/place/a.cu", source));
    its_unit *unit = compile_ok(f, &input);
    assert_true(unit->cached);
    assert_string_equal(unit->id, id);
    assert_non_null(strstr(unit->ptx, at(f, "new/place/a.cu")));
    assert_non_null(strstr(unit->ptx, at(f, "new/place/h.h")));
    assert_null(strstr(unit->ptx, at(f, "old/")));
    assert_non_null(strstr(unit->log, at(f, "new/place/a.cu")));
    assert_string_equal(unit->depends[1], at(f, "new/place/h.h"));
    assemble(f);
}

/* -- processes ----------------------------------------------------------------------------------------------------- */

/* In a child: compiles, and tells by its exit whether it came out of the cache. */
static int compile_in_child(const its_cc_input *input) {
    its_context *ctx = its_context_new(NULL);
    its_unit *unit;
    if (its_cc(ctx, input, &unit) != ITS_OK) _exit(9);
    bool good = strstr(unit->ptx, "one(") && unit->n_funcs == 1;
    _exit(!good ? 8 : unit->cached ? 1 : 0);
}

static void eight_cold_processes_compile_once(void **state) {
    fixture *f = *state;
    its_cc_input input = input_of(put(f, "one.cu", one));
    pid_t children[8];
    int compiled = 0, cached = 0;
    for (int i = 0; i < 8; i++)
        if ((children[i] = fork()) == 0) compile_in_child(&input);
    for (int i = 0; i < 8; i++) {
        int status;
        assert_int_equal(waitpid(children[i], &status, 0), children[i]);
        assert_true(WIFEXITED(status));
        compiled += WEXITSTATUS(status) == 0;
        cached += WEXITSTATUS(status) == 1;
    }
    assert_int_equal(compiled, 1);
    assert_int_equal(cached, 7);
    assert_int_equal(query(f).entries, 1);
}

/* Whoever holds the lock and is killed blocks nobody. */
static void a_killed_holder_blocks_nobody(void **state) {
    fixture *f = *state;
    its_cc_input input = input_of(put(f, "one.cu", one));
    char id[17], name[64];
    int ready[2];
    assert_int_equal(its_cc_id(f->ctx, &input, id), ITS_OK);
    put(f, "cache/cc/keep", "");
    snprintf(name, sizeof name, "cache/cc/%s.lock", id);
    assert_int_equal(pipe(ready), 0);
    pid_t holder = fork();
    if (holder == 0) {
        int lock = open(at(f, name), O_RDWR | O_CREAT, 0600);
        if (lock < 0 || flock(lock, LOCK_EX)) _exit(1);
        (void)!write(ready[1], "x", 1);
        for (;;) pause();
    }
    char c;
    assert_int_equal(read(ready[0], &c, 1), 1);
    pid_t child = fork();
    if (child == 0) compile_in_child(&input);
    usleep(200000);
    int status;
    assert_int_equal(waitpid(child, &status, WNOHANG), 0); /* it waits */
    kill(holder, SIGKILL);
    waitpid(holder, &status, 0);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
    close(ready[0]), close(ready[1]);
    assert_int_equal(access(at(f, name), F_OK), -1); /* no lock file stays */
}

/* -- damage -------------------------------------------------------------------------------------------------------- */

/* Whatever happens to an entry, it is made again, and what is made is good. */
static void damaged_entries_are_made_again(void **state) {
    fixture *f = *state;
    its_cc_input input = input_of(put(f, "one.cu", one));
    const char *path = entry_of(f, compile_ok(f, &input));
    char *good = strdup(f->unit->ptx), *bytes = NULL;
    struct stat st;
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0600);
    size_t size = (size_t)st.st_size;
    bytes = malloc(size);
    for (size_t damage = 0; damage < 8; damage++) {
        FILE *file = fopen(path, "rb");
        assert_non_null(file);
        assert_int_equal(fread(bytes, 1, size, file), size);
        fclose(file);
        size_t where[] = {0, 20, 60, size / 2, size - 1};
        if (damage < 5) bytes[where[damage]] ^= 0x10; /* a bit flips */
        unlink(path);
        if (damage < 7) {
            file = fopen(path, "wb");
            assert_non_null(file);
            fwrite(bytes, 1, damage == 5 ? size / 3 : damage == 6 ? 0 : size, file); /* it breaks off */
            fclose(file);
        } /* else: an entry without its data */
        its_unit *unit = compile_ok(f, &input);
        assert_false(unit->cached);
        assert_string_equal(unit->ptx, good);
        assert_true(compile_ok(f, &input)->cached);
        assert_string_equal(f->unit->ptx, good);
    }
    assert_int_equal(query(f).entries, 1);
    free(good), free(bytes);
}

/* -- the directory ------------------------------------------------------------------------------------------------- */

static void directories_are_private(void **state) {
    fixture *f = *state;
    its_cc_input input = input_of(put(f, "one.cu", one));
    compile_ok(f, &input);
    struct stat st;
    static const char *const dirs[] = {"cache", "cache/cc"};
    for (size_t i = 0; i < 2; i++) {
        assert_int_equal(stat(at(f, dirs[i]), &st), 0);
        assert_int_equal(st.st_mode & 0777, 0700);
    }
    char entry[64];
    snprintf(entry, sizeof entry, "cache/cc/%s", f->unit->id);
    assert_int_equal(stat(at(f, entry), &st), 0);
    assert_int_equal(st.st_mode & 0777, 0700);
}

/* Compiles twice without a cache: one warning, no error, and the work is done. */
static void works_without(fixture *f, const char *why) {
    its_cc_input input = input_of(put(f, "one.cu", one));
    its_diag_clear(f->ctx);
    for (int i = 0; i < 2; i++) {
        its_unit_free(f->unit);
        assert_int_equal(its_cc(f->ctx, &input, &f->unit), ITS_OK);
        assert_false(f->unit->cached);
        assert_non_null(strstr(f->unit->ptx, "one("));
    }
    assert_int_equal(its_diag_errors(f->ctx), 0);
    assert_int_equal(its_diag_count(f->ctx), 1);
    assert_int_equal(expect(f, "nothing is cached")->severity, ITS_WARNING);
    expect(f, why);
}

static void an_unusable_directory_is_done_without(void **state) {
    fixture *f = *state;
    setenv("INTARSIA_CACHE_DIR", put(f, "a-file", ""), 1);
    works_without(f, "Not a directory");
    setenv("INTARSIA_CACHE_DIR", "/proc/intarsia", 1);
    works_without(f, "'/proc/intarsia' can't be used: ");
}

static void a_directory_for_everybody_is_refused(void **state) {
    fixture *f = *state;
    its_cache_info info;
    assert_int_equal(mkdir(at(f, "open"), 0700), 0);
    assert_int_equal(chmod(at(f, "open"), 0777), 0);
    setenv("INTARSIA_CACHE_DIR", at(f, "open"), 1);
    works_without(f, "everybody may write to it");
    assert_int_equal(its_cache_query(f->ctx, &info), ITS_ERR_IO);
    if (geteuid() != 0) return; /* only root can give a directory away */
    assert_int_equal(chmod(at(f, "open"), 0755), 0);
    assert_int_equal(chown(at(f, "open"), 12345, 12345), 0);
    works_without(f, "it belongs to somebody else");
    assert_int_equal(its_cache_clear(f->ctx, NULL), ITS_ERR_IO);
}

static void the_environment_says_where(void **state) {
    fixture *f = *state;
    its_cache_info info;
    char *home = getenv("HOME") ? strdup(getenv("HOME")) : NULL;
    setenv("INTARSIA_CACHE_DIR", "", 1);
    setenv("XDG_CACHE_HOME", at(f, "xdg"), 1);
    assert_int_equal(its_cache_query(f->ctx, &info), ITS_OK);
    assert_string_equal(info.directory, at(f, "xdg/intarsia"));
    assert_int_equal(info.entries, 0);
    assert_int_equal(access(at(f, "xdg"), F_OK), -1); /* asking makes nothing */
    its_free(f->ctx, info.directory);
    setenv("XDG_CACHE_HOME", "relative", 1); /* which the specification says to ignore */
    setenv("HOME", at(f, "home"), 1);
    assert_int_equal(its_cache_query(f->ctx, &info), ITS_OK);
    assert_string_equal(info.directory, at(f, "home/.cache/intarsia"));
    its_free(f->ctx, info.directory);
    unsetenv("XDG_CACHE_HOME");
    unsetenv("HOME");
    works_without(f, "none of INTARSIA_CACHE_DIR, XDG_CACHE_HOME and HOME is set");
    assert_int_equal(its_cache_query(f->ctx, &info), ITS_ERR_IO);
    if (home) setenv("HOME", home, 1);
    free(home);
}

static void query_and_clear(void **state) {
    fixture *f = *state;
    its_cc_input input = input_of(put(f, "one.cu", one));
    uint64_t removed = 99;
    assert_int_equal(its_cache_clear(f->ctx, &removed), ITS_OK); /* nothing there yet */
    assert_int_equal(removed, 0);
    compile_ok(f, &input);
    input.arch = "sm_90a";
    compile_ok(f, &input);
    its_cache_info info = query(f);
    struct stat st;
    assert_int_equal(info.entries, 2);
    assert_int_equal(stat(entry_of(f, f->unit), &st), 0);
    assert_true(info.bytes > (uint64_t)st.st_size);
    put(f, "cache/mine.txt", "of the user");
    put(f, "cache/cc/mine.txt", "of the user");
    put(f, "cache/cc/.new-123/data", "left by one that was killed");
    put(f, "outside/file", "not ours");
    assert_int_equal(symlink(at(f, "outside"), at(f, "cache/cc/0123456789abcdef")), 0);
    assert_int_equal(its_cache_clear(f->ctx, &removed), ITS_OK);
    assert_int_equal(removed, 3);
    assert_int_equal(query(f).entries, 0);
    assert_int_equal(query(f).bytes, 0);
    assert_int_equal(access(at(f, "cache/mine.txt"), F_OK), 0);
    assert_int_equal(access(at(f, "cache/cc/mine.txt"), F_OK), 0);
    assert_int_equal(access(at(f, "cache/cc/.new-123"), F_OK), -1);
    assert_int_equal(access(at(f, "outside/file"), F_OK), 0); /* links are not followed */
    assert_false(compile_ok(f, &input)->cached);
    assert_true(compile_ok(f, &input)->cached);
}

/* -- memory -------------------------------------------------------------------------------------------------------- */

/* The n-th allocation fails, for all n: an error each time, nothing leaked, and no file of the cache left behind. */
static void every_allocation_may_fail(void **state) {
    fixture *f = *state;
    put(f, "h.h", "__device__ inline int g(int a) { return a; }\n");
    its_cc_input input = input_of(put(f, "a.cu",
                                      "#include \"h.h\"\nextern \"C\" __device__ int f(int a) { return g(a); }\n"
                                      "__device__ int mangled(int a) { return a; }\n"));
    compile_ok(f, &input);
    for (int round = 0; round < 2; round++) { /* out of the cache, then compiled */
        its_status status = ITS_ERR_NOMEM;
        input.no_cache = round;
        uint64_t n = 1;
        for (; status != ITS_OK; n++) {
            test_heap heap = {.fail_at = n + 1, .stays_empty = true};
            its_allocator allocator = test_heap_allocator(&heap);
            its_context *ctx = its_context_new(&allocator);
            its_unit *unit = NULL;
            assert_non_null(ctx);
            status = its_cc(ctx, &input, &unit);
            assert_true(status == ITS_OK || status == ITS_ERR_NOMEM);
            assert_true((status == ITS_OK) == (unit != NULL));
            assert_true(status == ITS_OK || its_diag_errors(ctx) > 0);
            its_unit_free(unit);
            its_context_free(ctx);
            assert_int_equal(heap.held, 0);
        }
        assert_true(n > 5);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        CC_TEST(the_second_time_it_is_cached),
        CC_TEST(everything_that_matters_is_in_the_id),
        CC_TEST(edited_headers_change_the_id),
        CC_TEST(a_hidden_header_changes_the_id),
        CC_TEST(headers_named_by_macros_change_the_id),
        CC_TEST(a_moved_project_is_still_cached),
        CC_TEST(eight_cold_processes_compile_once),
        CC_TEST(a_killed_holder_blocks_nobody),
        CC_TEST(damaged_entries_are_made_again),
        CC_TEST(directories_are_private),
        CC_TEST(an_unusable_directory_is_done_without),
        CC_TEST(a_directory_for_everybody_is_refused),
        CC_TEST(the_environment_says_where),
        CC_TEST(query_and_clear),
        CC_TEST(every_allocation_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
