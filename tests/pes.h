/*
 * Tests of several PEs in the simulator. A PE is a forked child whose exit status says whether its own checks held; a
 * check that did not hold is printed. Each test names its checks once:
 *
 *     #define expect(condition) PE_EXPECT(ctx, number, condition)
 */
#ifndef TESTS_PES_H
#define TESTS_PES_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "intarsia/sim.h"

static inline void show(its_context *ctx) {
    char *text = its_diag_render(ctx, false);
    fputs(text ? text : "out of memory\n", stderr);
    its_free(ctx, text);
}

static inline const char *last_message(its_context *ctx) {
    size_t n = its_diag_count(ctx);
    return n ? its_diag_get(ctx, n - 1)->message : "";
}

static inline double seconds(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

/* -- in a PE ------------------------------------------------------------------------------------------------------- */

static inline _Noreturn void pe_fails(its_context *ctx, uint32_t number, const char *file, int line,
                                      const char *condition) {
    fprintf(stderr, "%s:%d: PE %u: %s\n", file, line, (unsigned)number, condition);
    show(ctx);
    _exit(2);
}
#define PE_EXPECT(ctx, number, condition) \
    ((condition) ? (void)0 : pe_fails((ctx), (number), __FILE__, __LINE__, #condition))
#define ok(call) expect((call) == ITS_OK)

/* What a PE does: it opens the world itself. */
typedef void pe_main(int world, uint32_t number, uint32_t n, const void *user);

/* -- in the test --------------------------------------------------------------------------------------------------- */

static inline int new_world(uint32_t n, size_t heap_size) {
    its_context *ctx = its_context_new(NULL);
    int fd = -1;
    assert_int_equal(its_sim_world_new(ctx, &(its_sim_options){.n_pes = n, .heap_size = heap_size}, &fd), ITS_OK);
    assert_true(fd >= 0);
    its_context_free(ctx);
    return fd;
}

static inline pid_t start_pe(int world, uint32_t number, uint32_t n, pe_main *body, const void *user) {
    pid_t child = fork();
    if (child) return child;
    body(world, number, n, user);
    _exit(0);
}

/* Its exit status: 0 if all its checks held. */
static inline int finish_pe(pid_t child) {
    int status = 0;
    assert_int_equal(waitpid(child, &status, 0), child);
    return status;
}

static inline void run_pes(uint32_t n, size_t heap_size, pe_main *body, const void *user) {
    int world = new_world(n, heap_size), bad = 0;
    pid_t children[64];
    assert_in_range(n, 1, 64);
    for (uint32_t pe = 0; pe < n; pe++) children[pe] = start_pe(world, pe, n, body, user);
    for (uint32_t pe = 0; pe < n; pe++) bad |= finish_pe(children[pe]);
    close(world);
    assert_int_equal(bad, 0);
}

#endif
