/*
 * Host files: compiled with the machine's C and C++ compilers against include/sim, linked with the library of names,
 * and run as the processes of a world.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "intarsia/sim.h"

enum { MOST = 8, OUTPUT = 65536 };

/* A library with a sanitizer in it needs a program with the same one. */
#if defined(__clang__)
#define C_COMPILER "clang"
#define CXX_COMPILER "clang++"
#if __has_feature(address_sanitizer)
#define SANITIZED
#endif
#else
#define C_COMPILER "gcc"
#define CXX_COMPILER "g++"
#if defined(__SANITIZE_ADDRESS__)
#define SANITIZED
#endif
#endif

static char folder[] = "/tmp/intarsia-test-host-XXXXXX";

static int run_command(const char *const *argv) {
    pid_t child = fork();
    if (child == 0) {
        execvp(argv[0], (char *const *)(uintptr_t)argv);
        _exit(127);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    return status;
}

/* Compiles a file of tests/sim/host into a program. */
static void compile(const char *compiler, const char *language, const char *source, char *program) {
    char path[512], library[512];
    snprintf(path, sizeof path, "%s/tests/sim/host/%s", ITS_SOURCE_DIR, source);
    snprintf(library, sizeof library, "-Wl,-rpath,%s/lib", ITS_BINARY_DIR);
    sprintf(program, "%s/%s-%s", folder, source, compiler);
    const char *argv[] = {
        compiler,
        "-x",
        language,
        "-Wall",
        "-Wextra",
        "-Werror",
        "-I" ITS_SOURCE_DIR "/include/sim",
        "-I" ITS_SOURCE_DIR "/include",
#if defined(SANITIZED)
        "-fsanitize=address,undefined",
#endif
        path,
        "-o",
        program,
        "-L" ITS_BINARY_DIR "/lib",
        "-lintarsia_simhost",
        "-lintarsia",
        library,
        NULL
    };
    assert_int_equal(run_command(argv), 0);
}

typedef struct process {
    pid_t pid;
    int out;
} process;

static process start(const char *program, const char *argument, int fd, uint32_t pe, uint32_t n) {
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    pid_t child = fork();
    if (child == 0) {
        char number[16];
        snprintf(number, sizeof number, "%d", fd);
        setenv("INTARSIA_SIM_FD", number, 1);
        snprintf(number, sizeof number, "%u", pe);
        setenv("INTARSIA_PE", number, 1);
        snprintf(number, sizeof number, "%u", n);
        setenv("INTARSIA_N_PES", number, 1);
        dup2(ends[1], 1);
        dup2(ends[1], 2);
        close(ends[0]);
        close(ends[1]);
        execl(program, program, argument, (char *)NULL);
        _exit(127);
    }
    close(ends[1]);
    return (process){child, ends[0]};
}

/* Runs `n` PEs; `output` receives what all of them wrote, one after the other. The result is their exit statuses,
 * or-ed. */
static int run_world(const char *program, const char *argument, uint32_t n, char *output) {
    its_context *ctx = its_context_new(NULL);
    int fd, all = 0;
    its_sim_options options = {.n_pes = n, .heap_size = 4 << 20};
    assert_int_equal(its_sim_world_new(ctx, &options, &fd), ITS_OK);
    process pes[MOST];
    size_t size = 0;
    for (uint32_t pe = 0; pe < n; pe++) pes[pe] = start(program, argument, fd, pe, n);
    for (uint32_t pe = 0; pe < n; pe++) {
        ssize_t got;
        while (size < OUTPUT - 1 && (got = read(pes[pe].out, output + size, OUTPUT - 1 - size)) > 0)
            size += (size_t)got;
        close(pes[pe].out);
        int status;
        assert_int_equal(waitpid(pes[pe].pid, &status, 0), pes[pe].pid);
        all |= status;
    }
    output[size] = 0;
    close(fd);
    its_context_free(ctx);
    return all;
}

static void run_api(const char *compiler, const char *language, uint32_t most) {
    char program[512], output[OUTPUT];
    compile(compiler, language, "api.c", program);
    for (uint32_t n = 1; n <= most; n *= 2) {
        int status = run_world(program, "", n, output);
        if (status) print_error("%s", output);
        assert_int_equal(status, 0);
        for (uint32_t pe = 0; pe < n; pe++) {
            char line[16];
            snprintf(line, sizeof line, "ok %u\n", pe);
            assert_non_null(strstr(output, line));
        }
    }
}

static void test_api(void **state) {
    (void)state;
    run_api(C_COMPILER, "c", 8);
}

static void test_unique_id(void **state) {
    (void)state;
    setenv("TEST_UNIQUE_ID", "1", 1);
    run_api(C_COMPILER, "c", 2);
    unsetenv("TEST_UNIQUE_ID");
}

static void test_attached(void **state) {
    (void)state;
    char program[512], output[OUTPUT];
    compile(C_COMPILER, "c", "attached.c", program);
    int status = run_world(program, "", 1, output);
    if (status) print_error("%s", output);
    assert_int_equal(status, 0);
    assert_string_equal(output, "ok\n");
}

static void test_cxx(void **state) {
    (void)state;
    char program[512], output[OUTPUT];
    compile(CXX_COMPILER, "c++", "cxx.cc", program);
    assert_int_equal(run_world(program, "", 2, output), 0);
    assert_string_equal(output, "ok\nok\n");
}

static void test_mistakes(void **state) {
    (void)state;
    static const struct {
        const char *name;
        uint32_t n;
        const char *text;
    } cases[] = {
        {"early", 1, "error: nvshmem_barrier_all was called before nvshmem_init"},
        {"not_symmetric", 1, "is not in the symmetric heap of PE 0"},
        {"no_such_pe", 2, "nvshmem_int_p: there is no PE 2"},
        {"beyond", 1, "a copy or fill of 8 bytes at 0x"},
        {"mismatch", 2, "nvshmem_malloc: PE 0 asked for 128 bytes aligned to 256, but PE 1 asked for 64 bytes"},
        {"aligned_too_far", 2,
         "nvshmem_align: an alignment of 4194304 bytes is more than the 2097152 of a symmetric heap"},
        {"twice_freed", 1, "is not a live block of the symmetric heap of PE 0"},
        {"dies", 4, "PE 1 ended before the barrier"},
        {"wrong_rank", 1, "nvshmemx_init_attr was told rank 5 of 9, but this is PE 0 of 1"},
    };
    char program[512], output[OUTPUT];
    compile(C_COMPILER, "c", "mistakes.c", program);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        int status = run_world(program, cases[i].name, cases[i].n, output);
        if (!strstr(output, cases[i].text)) print_error("%s: %s\n", cases[i].name, output);
        assert_non_null(strstr(output, cases[i].text));
        assert_true(status != 0);
    }
}

static int make_folder(void **state) {
    (void)state;
    return mkdtemp(folder) ? 0 : -1;
}

static int remove_folder(void **state) {
    (void)state;
    const char *argv[] = {"rm", "-r", folder, NULL};
    return run_command(argv);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_api), cmocka_unit_test(test_unique_id), cmocka_unit_test(test_attached),
        cmocka_unit_test(test_cxx), cmocka_unit_test(test_mistakes),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
