/* Streams of several PEs, which are processes: signals, barriers and what is left when one of them ends. */
#include <signal.h>
#include <sys/resource.h>

#include "streams.h"

/* A ring: each PE waits for its left neighbour's word, and tells its right one; barriers in between are on streams. */
static void ring(its_context *ctx, its_sim_backend *sim, uint32_t number, uint32_t n) {
    uint64_t words, mine;
    ok(OPS->alloc(BACKEND, ITS_MEMORY_SYMMETRIC, 64, 0, &words));
    memset((void *)(uintptr_t)words, 0, 64);
    ok(OPS->barrier(BACKEND));
    its_stream stream, other;
    ok(its_sim_stream_new(sim, false, &stream));
    ok(its_sim_stream_new(sim, false, &other));
    ok(OPS->peer(BACKEND, words, (number + 1) % n, &mine));
    for (uint64_t round = 1; round <= 30; round++) {
        if (number != 0) ok(its_sim_wait_signal_on_stream(sim, words, ITS_GE, round, 8, false, stream));
        ok(its_sim_signal_on_stream(sim, mine, round, false, stream));
        if (number == 0) ok(its_sim_wait_signal_on_stream(sim, words, ITS_GE, round, 8, false, other));
        ok(its_sim_barrier_on_stream(sim, 0, stream));
        ok(OPS->stream_wait(BACKEND, stream));
        expect(*(volatile uint64_t *)(uintptr_t)words >= round);
    }
    ok(OPS->barrier(BACKEND));
    ok(OPS->free(BACKEND, ITS_MEMORY_SYMMETRIC, words));
}

static void test_ring(void **state) {
    (void)state;
    for (uint32_t n = 1; n <= 8; n *= 2) run(n, ring);
}

/* While a stream waits for a barrier, other streams work. */
static void barrier_beside_work(its_context *ctx, its_sim_backend *sim, uint32_t number, uint32_t n) {
    (void)n;
    its_stream stream, other;
    _Atomic int count = 0;
    ok(its_sim_stream_new(sim, false, &stream));
    ok(its_sim_stream_new(sim, false, &other));
    if (number == 1) usleep(50000);
    ok(its_sim_barrier_on_stream(sim, 0, stream));
    for (int i = 0; i < 50; i++) ok(its_sim_host_call(sim, other, add_one, &count));
    double begun = seconds();
    ok(OPS->stream_wait(BACKEND, other));
    expect(atomic_load(&count) == 50 && (number == 1 || seconds() - begun < 0.045));
    ok(OPS->stream_wait(BACKEND, stream));
}

static void test_barrier_beside_work(void **state) {
    (void)state;
    run(2, barrier_beside_work);
}

static void sub_teams(its_context *ctx, its_sim_backend *sim, uint32_t number, uint32_t n) {
    int32_t even, odd, bad;
    ok(its_sim_team_new(sim, (its_team){0, 2, n / 2}, &even));
    ok(its_sim_team_new(sim, (its_team){1, 2, n / 2}, &odd));
    expect((number % 2 ? odd : even) >= ITS_FIRST_FREE_TEAM && (number % 2 ? even : odd) == -1);
    int32_t mine = number % 2 ? odd : even;
    for (int i = 0; i < (number % 2 ? 20 : 5); i++) ok(its_sim_barrier(sim, mine, true));
    ok(its_sim_barrier_on_stream(sim, mine, 0));
    ok(OPS->wait(BACKEND));
    expect(its_sim_barrier(sim, 25, true) == ITS_ERR_USAGE);
    expect(its_sim_team_new(sim, (its_team){0, 2, n}, &bad) == ITS_ERR_USAGE);
    ok(its_sim_team_free(sim, mine));
    expect(its_sim_barrier(sim, mine, true) == ITS_ERR_USAGE);
    expect(its_sim_team_free(sim, 0) == ITS_ERR_USAGE);
    ok(OPS->barrier(BACKEND));
}

static void test_sub_teams(void **state) {
    (void)state;
    run(4, sub_teams);
}

/* PE 1 dies while the others' streams wait for it: their waits end with the reason, soon. */
static void one_dies(its_context *ctx, its_sim_backend *sim, uint32_t number, uint32_t n) {
    (void)n;
    ok(OPS->barrier(BACKEND));
    if (number == 1) {
        usleep(50000);
        kill(getpid(), SIGKILL);
    }
    double begun = seconds();
    ok(its_sim_barrier_on_stream(sim, 0, 0));
    expect(OPS->wait(BACKEND) == ITS_ERR_FAULT);
    expect(seconds() - begun < 1.5);
    expect(strcmp(last_message(ctx), "PE 1 ended before this PE's work was done") == 0);
    expect(its_sim_stopped(sim) == ITS_STOPPED_PEER);
    /* And it stays so. */
    expect(its_sim_fill(sim, 0, 0, 1, 0, 0) == ITS_ERR_FAULT);
    expect(strcmp(last_message(ctx),
                  number == 0 ? "the device of PE 0 has stopped" : "the device of PE 2 has stopped") == 0);
}

static void test_one_dies(void **state) {
    (void)state;
    pe_body *body = one_dies;
    int world = new_world(3, 1 << 20);
    pid_t children[3];
    for (uint32_t pe = 0; pe < 3; pe++) children[pe] = start_pe(world, pe, 3, run_pe, &body);
    for (uint32_t pe = 0; pe < 3; pe++) {
        int status = finish_pe(children[pe]);
        assert_true(pe == 1 ? WIFSIGNALED(status) : status == 0);
    }
    close(world);
}

/* PE 0 waits for a signal that PE 1 never sent: when PE 1 is done, nobody is left to send it. */
static void left_alone(its_context *ctx, its_sim_backend *sim, uint32_t number, uint32_t n) {
    (void)n;
    uint64_t word;
    ok(OPS->alloc(BACKEND, ITS_MEMORY_SYMMETRIC, 8, 0, &word));
    ok(OPS->fill(BACKEND, word, 0, 8, 0));
    ok(OPS->barrier(BACKEND));
    if (number) return;
    ok(its_sim_wait_signal_on_stream(sim, word, ITS_NE, 0, 8, false, 0));
    expect(OPS->wait(BACKEND) == ITS_ERR_FAULT);
    expect(strcmp(last_message(ctx), "PE 1 finished before this PE's work was done") == 0);
}

static void test_left_alone(void **state) {
    (void)state;
    run(2, left_alone);
}

/* A wrong call on a stream is found when the stream gets there: two barriers of one team at once. */
static void two_barriers(its_context *ctx, its_sim_backend *sim, uint32_t number, uint32_t n) {
    (void)n;
    if (number == 1) {
        usleep(100000);
        ok(OPS->barrier(BACKEND)); /* PE 0 has come to this one */
        expect(OPS->barrier(BACKEND) == ITS_ERR_FAULT);
        expect(strstr(last_message(ctx), "PE 0 faulted: PE 0 entered a barrier while it was in another one"));
        return;
    }
    its_stream a, b;
    ok(its_sim_stream_new(sim, false, &a));
    ok(its_sim_stream_new(sim, false, &b));
    ok(its_sim_barrier_on_stream(sim, 0, a));
    ok(its_sim_barrier_on_stream(sim, 0, b));
    expect(OPS->wait(BACKEND) == ITS_ERR_FAULT);
    expect(strstr(last_message(ctx), "PE 0 entered a barrier while it was in another one of the same team"));
}

static void test_two_barriers(void **state) {
    (void)state;
    run(2, two_barriers);
}

/* A device whose work all waits uses next to no processor time. */
static void quiet_wait(its_context *ctx, its_sim_backend *sim, uint32_t number, uint32_t n) {
    (void)n;
    uint64_t word;
    ok(OPS->alloc(BACKEND, ITS_MEMORY_SYMMETRIC, 8, 0, &word));
    *(uint64_t *)(uintptr_t)word = 0;
    ok(OPS->barrier(BACKEND));
    struct rusage before, after;
    getrusage(RUSAGE_SELF, &before);
    ok(its_sim_wait_signal_on_stream(sim, word, ITS_NE, 0, 8, false, 0));
    if (number == 0) {
        usleep(400000);
        for (uint32_t pe = 0; pe < n; pe++) {
            uint64_t mapped;
            ok(OPS->peer(BACKEND, word, pe, &mapped));
            __atomic_store_n((uint64_t *)(uintptr_t)mapped, 1, __ATOMIC_SEQ_CST);
        }
    }
    ok(OPS->wait(BACKEND));
    getrusage(RUSAGE_SELF, &after);
    double used =
        (double)(after.ru_utime.tv_sec - before.ru_utime.tv_sec + after.ru_stime.tv_sec - before.ru_stime.tv_sec) +
        (double)(after.ru_utime.tv_usec - before.ru_utime.tv_usec + after.ru_stime.tv_usec - before.ru_stime.tv_usec) *
            1e-6;
    expect(used < 0.1);
}

static void test_quiet_wait(void **state) {
    (void)state;
    run(4, quiet_wait);
}

static void test_alone(void **state) {
    (void)state;
    its_context *ctx = its_context_new(NULL);
    its_backend *backend;
    for (int i = 0; i < 3; i++) {
        uint32_t pe, n, number = 0;
        unsetenv("INTARSIA_SIM_FD");
        ok(its_sim_open_env(ctx, &backend));
        backend->ops->identity(backend, &pe, &n);
        assert_true(pe == 0 && n == 1);
        uint64_t symmetric, mapped;
        ok(backend->ops->alloc(backend, ITS_MEMORY_SYMMETRIC, 100, 0, &symmetric));
        ok(backend->ops->peer(backend, symmetric, 0, &mapped));
        assert_true(mapped == symmetric);
        assert_int_equal(backend->ops->peer(backend, symmetric, 1, &mapped), ITS_ERR_INPUT);
        assert_int_equal(backend->ops->peer(backend, 4096, 0, &mapped), ITS_ERR_INPUT);
        its_device_info info;
        ok(backend->ops->device_info(backend, &info));
        assert_string_equal(info.name, "Intarsia simulator (sm_80)");
        assert_int_equal(info.max_shared, 163 * 1024);
        ok(backend->ops->barrier(backend));
        backend->ops->close(backend);
    }
    setenv("INTARSIA_SIM_FD", "many", 1);
    assert_int_equal(its_sim_open_env(ctx, &backend), ITS_ERR_USAGE);
    setenv("INTARSIA_SIM_FD", "3", 1);
    setenv("INTARSIA_PE", "-1", 1);
    assert_int_equal(its_sim_open_env(ctx, &backend), ITS_ERR_USAGE);
    unsetenv("INTARSIA_SIM_FD");
    its_context_free(ctx);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_alone),
        cmocka_unit_test(test_ring),
        cmocka_unit_test(test_barrier_beside_work),
        cmocka_unit_test(test_sub_teams),
        cmocka_unit_test(test_one_dies),
        cmocka_unit_test(test_two_barriers),
        cmocka_unit_test(test_left_alone),
        cmocka_unit_test(test_quiet_wait),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
