/* The parts of src/base that src/cc stands on: paths, files, hashes, programs. */
#include <errno.h>
#include <fcntl.h>

#include "common.h"

#include "base/hash.h"
#include "base/path.h"

typedef struct scratch {
    its_arena arena;
    its_guard guard;
} scratch;

/* Memory running out ends the test: it can't be handed on from here. */
#define WITH_ARENA(f, s)                  \
    its_arena_init(&(s).arena, (f)->ctx); \
    if (its_guard_enter((f)->ctx, &(s).guard)) fail_msg("out of memory")

static void end(fixture *f, scratch *s) {
    its_guard_leave(f->ctx, &s->guard);
    its_arena_free(&s->arena);
}

static void paths(void **state) {
    fixture *f = *state;
    scratch s;
    char cwd[1000], expected[1100];
    WITH_ARENA(f, s);
    assert_string_equal(its_path_join(&s.arena, "a", "b"), "a/b");
    assert_string_equal(its_path_join(&s.arena, "a/", "b"), "a/b");
    assert_string_equal(its_path_join(&s.arena, "a", "/b"), "/b");
    assert_string_equal(its_path_join(&s.arena, "", "b"), "b");
    assert_string_equal(its_path_dir(&s.arena, "a/b/c"), "a/b");
    assert_string_equal(its_path_dir(&s.arena, "/c"), "/");
    assert_string_equal(its_path_dir(&s.arena, "c"), ".");
    assert_string_equal(its_path_base("a/b"), "b");
    assert_string_equal(its_path_base("b"), "b");
    assert_non_null(getcwd(cwd, sizeof cwd));
    snprintf(expected, sizeof expected, "%s/x/y", cwd);
    assert_string_equal(its_path_absolute(&s.arena, "x/y"), expected);
    assert_string_equal(its_path_absolute(&s.arena, "./x/y"), expected);
    assert_string_equal(its_path_absolute(&s.arena, "././/x/y"), expected);
    assert_string_equal(its_path_absolute(&s.arena, "."), cwd);
    assert_string_equal(its_path_absolute(&s.arena, "/x"), "/x");
    end(f, &s);
}

static void files(void **state) {
    fixture *f = *state;
    scratch s;
    char *data;
    size_t size;
    WITH_ARENA(f, s);
    const char *path = put(f, "a/b", "four");
    assert_int_equal(its_file_read(&s.arena, path, 4, &data, &size), 0);
    assert_int_equal(size, 4);
    assert_string_equal(data, "four");
    assert_int_equal(its_file_read(&s.arena, path, 3, &data, &size), EFBIG);
    assert_int_equal(its_file_read(&s.arena, at(f, "a"), 99, &data, &size), EISDIR);
    assert_int_equal(its_file_read(&s.arena, at(f, "none"), 99, &data, &size), ENOENT);
    assert_int_equal(its_file_read(&s.arena, "/dev/null", 99, &data, &size), EINVAL);
    assert_true(its_file_is_regular(path));
    assert_false(its_file_is_regular(f->dir));
    assert_true(its_file_is_dir(f->dir));
    its_buffer buffer;
    its_buffer_init(&buffer, f->ctx);
    assert_int_equal(its_file_read_buffer(&buffer, path, 99), 0);
    assert_int_equal(buffer.size, 4);
    assert_memory_equal(buffer.data, "four", 4);
    assert_int_equal(its_file_read_buffer(&buffer, at(f, "none"), 99), ENOENT);
    assert_int_equal(buffer.size, 4);
    its_buffer_free(&buffer);
    end(f, &s);
}

static void directories(void **state) {
    fixture *f = *state;
    scratch s;
    struct stat st;
    char first[64], second[64];
    WITH_ARENA(f, s);
    assert_int_equal(its_dir_make(&s.arena, at(f, "x/y/z")), 0);
    assert_int_equal(its_dir_make(&s.arena, at(f, "x/y/z")), 0);
    assert_int_equal(stat(at(f, "x/y"), &st), 0);
    assert_int_equal(st.st_mode & 0777, 0700);
    put(f, "x/file", "");
    assert_int_equal(its_dir_make(&s.arena, at(f, "x/file/z")), ENOTDIR);
    assert_int_equal(its_dir_make(&s.arena, at(f, "x/file")), ENOTDIR);
    int dir = open(at(f, "x"), O_RDONLY | O_DIRECTORY);
    assert_true(dir >= 0);
    assert_int_equal(its_dir_make_temp(dir, "t-", first), 0);
    assert_int_equal(its_dir_make_temp(dir, "t-", second), 0);
    assert_string_not_equal(first, second);
    assert_int_equal(fstatat(dir, first, &st, 0), 0);
    assert_int_equal(st.st_mode & 0777, 0700);
    assert_int_equal(its_file_write_at(dir, "new", "data", 4), 0);
    assert_int_equal(its_file_write_at(dir, "new", "data", 4), EEXIST);
    assert_int_equal(fstatat(dir, "new", &st, 0), 0);
    assert_int_equal(st.st_mode & 0777, 0600);
    put(f, "outside/kept", "");
    assert_int_equal(symlink(at(f, "outside"), at(f, "x/y/z/link")), 0);
    put(f, "x/y/z/file", "");
    assert_int_equal(its_dir_remove(dir, "y"), 0);
    assert_int_equal(access(at(f, "x/y"), F_OK), -1);
    assert_int_equal(access(at(f, "outside/kept"), F_OK), 0);
    assert_int_equal(its_dir_remove(dir, "y"), ENOENT);
    close(dir);
    end(f, &s);
}

static void digest(const char *a, const char *b, its_digest *result) {
    its_hasher hasher;
    its_hash_init(&hasher);
    its_hash_text(&hasher, a);
    its_hash_text(&hasher, b);
    its_hash_digest(&hasher, result);
}

static void hashes(void **state) {
    (void)state;
    its_digest one, other;
    digest("ab", "c", &one);
    digest("a", "bc", &other);
    assert_string_not_equal(one.narrow, other.narrow);
    assert_string_not_equal(one.wide, other.wide);
    digest("ab", "c", &other);
    assert_string_equal(one.narrow, other.narrow);
    assert_string_equal(one.wide, other.wide);
    assert_int_equal(strspn(one.narrow, "0123456789abcdef"), 16);
    assert_int_equal(strspn(one.wide, "0123456789abcdef"), 32);
}

static void programs(void **state) {
    fixture *f = *state;
    its_buffer output;
    int code;
    its_buffer_init(&output, f->ctx);
    const char *const both[] = {"sh", "-c", "echo out; echo err >&2; cat; exit 3", NULL};
    assert_int_equal(its_process_run(f->ctx, &(its_process){.argv = both}, &output, &code), ITS_OK);
    assert_int_equal(code, 3);
    assert_string_equal(output.data, "out\nerr\n"); /* cat found no input */
    const char *const killed[] = {"sh", "-c", "kill -9 $$", NULL};
    assert_int_equal(its_process_run(f->ctx, &(its_process){.argv = killed}, &output, &code), ITS_OK);
    assert_int_equal(code, 128 + 9);
    assert_int_equal(output.size, 0);
    const char *const none[] = {"./no-such-program", NULL};
    assert_int_equal(its_process_run(f->ctx, &(its_process){.argv = none}, &output, &code), ITS_ERR_ABSENT);
    expect(f, "the program './no-such-program' can't be run: No such file");
    static const char *const slow[] = {"sleep 60", "exec >/dev/null 2>&1; sleep 60", "sleep 60 & sleep 60"};
    for (size_t i = 0; i < 3; i++) { /* silent, with its output closed, with a child that holds it open */
        const char *const argv[] = {"sh", "-c", slow[i], NULL};
        its_diag_clear(f->ctx);
        assert_int_equal(its_process_run(f->ctx, &(its_process){.argv = argv, .timeout_ms = 100}, &output, &code),
                         ITS_ERR_IO);
        expect(f, "'sh' was ended after 100 ms");
    }
    const char *const much[] = {"sh", "-c", "head -c 1000000 /dev/zero", NULL};
    assert_int_equal(its_process_run(f->ctx, &(its_process){.argv = much, .most_output = 10000}, &output, &code),
                     ITS_OK);
    assert_int_equal(code, 0); /* it was not stopped by a full pipe */
    assert_true(output.size >= 10000 && output.size < 20000);
    its_buffer_free(&output);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        CC_TEST(paths), CC_TEST(files), CC_TEST(directories), CC_TEST(hashes), CC_TEST(programs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
