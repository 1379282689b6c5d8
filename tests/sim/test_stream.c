/* Streams without kernels: copies, fills, events and functions of the host in their orders, within one PE. */
#include "streams.h"

/* -- one stream ---------------------------------------------------------------------------------------------------- */

static void in_order(its_context *ctx, its_sim_backend *sim, uint32_t number, uint32_t n) {
    (void)n;
    uint64_t a = new_block(ctx, sim, number, 4096), b = new_block(ctx, sim, number, 4096);
    its_stream stream;
    ok(OPS->stream_new(BACKEND, &stream));
    char text[4096], back[4096] = {0};
    for (int i = 0; i < 200; i++) {
        memset(text, i, sizeof text);
        ok(OPS->copy(BACKEND, ITS_COPY_TO_DEVICE, a, (uint64_t)(uintptr_t)text, sizeof text, stream));
        memset(text, 99, sizeof text); /* may be used again at once */
        ok(OPS->copy(BACKEND, ITS_COPY_DEVICE, b, a, sizeof text, stream));
        ok(OPS->fill(BACKEND, b, 7, 16, stream));
        ok(OPS->copy(BACKEND, ITS_COPY_FROM_DEVICE, b, (uint64_t)(uintptr_t)back, sizeof back, stream));
        expect(back[0] == 7 && back[15] == 7 && back[16] == (char)i && back[4095] == (char)i);
    }
    ok(its_sim_fill(sim, a, 0x12345678, 4, 4096, stream));
    ok(OPS->stream_wait(BACKEND, stream));
    expect(*(uint32_t *)(uintptr_t)(a + 4092) == 0x12345678);
    ok(OPS->stream_free(BACKEND, stream));
    expect(OPS->stream_wait(BACKEND, stream) == ITS_ERR_USAGE);
    expect(strstr(last_message(ctx), "there is no stream"));
}

static void test_in_order(void **state) {
    (void)state;
    run(1, in_order);
}

static void bad_copies(its_context *ctx, its_sim_backend *sim, uint32_t number, uint32_t n) {
    (void)n;
    uint64_t a = new_block(ctx, sim, number, 100);
    char text[200] = {0};
    uint64_t host = (uint64_t)(uintptr_t)text;
    expect(OPS->copy(BACKEND, ITS_COPY_TO_DEVICE, a, host, 101, 0) == ITS_ERR_USAGE);
    expect(strstr(last_message(ctx), "which has 100 bytes from there on"));
    expect(OPS->copy(BACKEND, ITS_COPY_FROM_DEVICE, a + 50, host, 51, 0) == ITS_ERR_USAGE);
    expect(OPS->copy(BACKEND, ITS_COPY_TO_DEVICE, host, host, 1, 0) == ITS_ERR_USAGE);
    expect(strstr(last_message(ctx), "where no device memory is allocated"));
    expect(OPS->fill(BACKEND, a + 99, 0, 2, 0) == ITS_ERR_USAGE);
    expect(OPS->fill(BACKEND, a + 100, 0, 2, 0) == ITS_ERR_USAGE);
    expect(strstr(last_message(ctx), "a copy or fill of 2 bytes at 0x"));
    expect(strstr(last_message(ctx), ", right past the end of a 100-byte allocation of device memory"));
    expect(OPS->fill(BACKEND, 8, 0, 2, 0) == ITS_ERR_USAGE);
    expect(strstr(last_message(ctx), "a copy or fill of 2 bytes at 0x8, a null pointer"));
    expect(OPS->copy(BACKEND, ITS_COPY_TO_DEVICE, a, host, 100, 4711) == ITS_ERR_USAGE);
    ok(OPS->free(BACKEND, ITS_MEMORY_DEVICE, a));
    expect(OPS->copy(BACKEND, ITS_COPY_TO_DEVICE, a, host, 1, 0) == ITS_ERR_USAGE);
    expect(strstr(last_message(ctx), ", 0 bytes into a 100-byte allocation of device memory that was freed"));
    expect(OPS->free(BACKEND, ITS_MEMORY_DEVICE, a) == ITS_ERR_USAGE);
    /* Large blocks are not staged but waited for; the result is the same. */
    size_t large = (size_t)5 << 20;
    char *from = malloc(large);
    memset(from, 5, large);
    uint64_t b = new_block(ctx, sim, number, large);
    ok(OPS->copy(BACKEND, ITS_COPY_TO_DEVICE, b, (uint64_t)(uintptr_t)from, large, 0));
    free(from);
    ok(OPS->wait(BACKEND));
    expect(*(char *)(uintptr_t)(b + large - 1) == 5);
}

static void test_bad_copies(void **state) {
    (void)state;
    run(1, bad_copies);
}

/* -- several streams ----------------------------------------------------------------------------------------------- */

static void side_by_side(its_context *ctx, its_sim_backend *sim, uint32_t number, uint32_t n) {
    (void)n;
    uint64_t word = new_block(ctx, sim, number, 8), data = new_block(ctx, sim, number, 64);
    its_stream first, second;
    ok(its_sim_stream_new(sim, false, &first));
    ok(its_sim_stream_new(sim, false, &second));
    *(uint64_t *)(uintptr_t)word = 0;
    /* The first waits for what the second will say; the second must get on although the first came first. */
    ok(its_sim_wait_signal_on_stream(sim, word, ITS_GE, 3, 8, false, first));
    ok(its_sim_fill(sim, data, 1, 1, 64, first));
    bool idle;
    usleep(3000);
    ok(its_sim_stream_idle(sim, first, &idle));
    expect(!idle);
    ok(its_sim_fill(sim, data, 2, 1, 64, second));
    ok(its_sim_signal_on_stream(sim, word, 1, true, second));
    ok(its_sim_signal_on_stream(sim, word, 2, true, second));
    ok(OPS->stream_wait(BACKEND, first));
    expect(*(char *)(uintptr_t)data == 1);
    ok(its_sim_stream_idle(sim, first, &idle));
    expect(idle);
}

static void test_side_by_side(void **state) {
    (void)state;
    run(1, side_by_side);
}

static void events(its_context *ctx, its_sim_backend *sim, uint32_t number, uint32_t n) {
    (void)n;
    its_stream a, b;
    its_event event, never;
    ok(its_sim_stream_new(sim, false, &a));
    ok(its_sim_stream_new(sim, false, &b));
    ok(its_sim_event_new(sim, &event));
    ok(its_sim_event_new(sim, &never));
    gate g = {0};
    _Atomic int count = 0;
    bool done;
    ok(its_sim_event_done(sim, event, &done));
    expect(done); /* never recorded: nothing to wait for */
    ok(its_sim_event_wait(sim, never, b));
    ok(its_sim_host_call(sim, a, wait_at_gate, &g));
    ok(its_sim_event_record(sim, event, a));
    ok(its_sim_event_wait(sim, event, b));
    ok(its_sim_host_call(sim, b, add_one, &count));
    /* Recorded again later: who waited before waits for the earlier time. */
    ok(its_sim_event_record(sim, event, a));
    while (!atomic_load(&g.reached)) usleep(100);
    ok(its_sim_event_done(sim, event, &done));
    expect(!done && atomic_load(&count) == 0);
    atomic_store(&g.open, true);
    ok(its_sim_event_synchronize(sim, event));
    ok(OPS->stream_wait(BACKEND, b));
    expect(atomic_load(&count) == 1);
    its_event before, after;
    ok(its_sim_event_new(sim, &before));
    ok(its_sim_event_new(sim, &after));
    double elapsed;
    expect(its_sim_event_elapsed(sim, before, after, &elapsed) == ITS_ERR_USAGE);
    ok(its_sim_event_record(sim, before, a));
    gate open_gate = {.open = true};
    ok(its_sim_host_call(sim, a, wait_at_gate, &open_gate));
    ok(its_sim_event_record(sim, after, a));
    ok(its_sim_event_synchronize(sim, after));
    ok(its_sim_event_elapsed(sim, before, after, &elapsed));
    expect(elapsed >= 0 && elapsed < 1000);
    ok(its_sim_event_free(sim, event));
    expect(its_sim_event_record(sim, event, a) == ITS_ERR_USAGE);
}

static void test_events(void **state) {
    (void)state;
    run(1, events);
}

/* As CUDA has it, an event may be freed as soon as a stream was told to wait for it, reached or not. */
static void freed_events(its_context *ctx, its_sim_backend *sim, uint32_t number, uint32_t n) {
    (void)n;
    its_stream a, b, c;
    ok(its_sim_stream_new(sim, false, &a));
    ok(its_sim_stream_new(sim, false, &b));
    ok(its_sim_stream_new(sim, false, &c));
    uint64_t block = new_block(ctx, sim, number, 16), copy = new_block(ctx, sim, number, 8);
    for (uint64_t round = 1; round <= 50; round++) {
        its_event event;
        ok(its_sim_fill(sim, block, 0, 1, 16, a));
        ok(OPS->stream_wait(BACKEND, a));
        ok(its_sim_event_new(sim, &event));
        ok(its_sim_wait_signal_on_stream(sim, block + 8, ITS_EQ, round, 8, false, a));
        ok(its_sim_fill(sim, block, round, 4, 8, a));
        ok(its_sim_event_record(sim, event, a));
        ok(its_sim_event_wait(sim, event, b));
        ok(its_sim_event_free(sim, event));
        expect(its_sim_event_wait(sim, event, b) == ITS_ERR_USAGE);
        expect(strstr(last_message(ctx), "there is no event"));
        ok(OPS->copy(BACKEND, ITS_COPY_DEVICE, copy, block, 8, b));
        bool idle;
        ok(its_sim_stream_idle(sim, b, &idle));
        expect(!idle);
        ok(its_sim_signal_on_stream(sim, block + 8, round, false, c));
        ok(OPS->wait(BACKEND));
        expect(*(uint64_t *)(uintptr_t)copy == (round | round << 32));
    }
}

static void test_freed_events(void **state) {
    (void)state;
    run(1, freed_events);
}

/* Work of the default stream stands between what was put into blocking streams before and after it. */
static void default_stream(its_context *ctx, its_sim_backend *sim, uint32_t number, uint32_t n) {
    (void)n;
    its_stream blocking, exempt;
    ok(its_sim_stream_new(sim, true, &blocking));
    ok(its_sim_stream_new(sim, false, &exempt));
    uint64_t data = new_block(ctx, sim, number, 4);
    volatile uint8_t *byte = (uint8_t *)(uintptr_t)data;
    gate held = {0};
    _Atomic int count = 0;
    uint64_t word = new_block(ctx, sim, number, 8);
    volatile uint64_t *signal = (uint64_t *)(uintptr_t)word;
    *signal = 0;
    ok(its_sim_fill(sim, data, 0, 1, 1, 0));
    ok(OPS->wait(BACKEND));
    ok(its_sim_wait_signal_on_stream(sim, word, ITS_EQ, 1, 8, false, blocking));
    ok(its_sim_fill(sim, data, 1, 1, 1, 0));             /* waits for the blocking stream */
    ok(its_sim_host_call(sim, exempt, add_one, &count)); /* does not */
    ok(OPS->stream_wait(BACKEND, exempt));
    usleep(3000);
    expect(*byte == 0 && atomic_load(&count) == 1);
    ok(its_sim_host_call(sim, blocking, add_one, &count)); /* waits for the default stream */
    usleep(3000);
    expect(atomic_load(&count) == 1);
    __atomic_store_n(signal, 1, __ATOMIC_SEQ_CST);
    ok(OPS->stream_wait(BACKEND, 0));
    expect(*byte == 1);
    ok(OPS->wait(BACKEND));
    expect(atomic_load(&count) == 2);
    /* And the other way: a default stream that is held up holds up blocking streams only. */
    *signal = 0;
    ok(its_sim_wait_signal_on_stream(sim, word, ITS_EQ, 1, 8, false, 0));
    ok(its_sim_host_call(sim, blocking, add_one, &count));
    ok(its_sim_host_call(sim, exempt, add_one, &count));
    ok(OPS->stream_wait(BACKEND, exempt));
    usleep(3000);
    expect(atomic_load(&count) == 3);
    __atomic_store_n(signal, 1, __ATOMIC_SEQ_CST);
    ok(OPS->wait(BACKEND));
    expect(atomic_load(&count) == 4 && !atomic_load(&held.reached));
}

static void test_default_stream(void **state) {
    (void)state;
    run(1, default_stream);
}

/* Random work on several streams whose events chain them: the order that the events ask for is the order that comes. */
static void chained(its_context *ctx, its_sim_backend *sim, uint32_t number, uint32_t n) {
    (void)n;
    enum { STREAMS = 6, STEPS = 500 };
    its_stream streams[STREAMS];
    its_event event;
    for (int i = 0; i < STREAMS; i++) ok(its_sim_stream_new(sim, i % 2, &streams[i]));
    ok(its_sim_event_new(sim, &event));
    uint64_t word = new_block(ctx, sim, number, 8);
    *(uint64_t *)(uintptr_t)word = 0;
    uint32_t seed = 7;
    for (uint64_t step = 0; step < STEPS; step++) {
        seed = seed * 1664525 + 1013904223;
        its_stream stream = streams[(seed >> 16) % STREAMS];
        ok(its_sim_event_wait(sim, event, stream));
        ok(its_sim_wait_signal_on_stream(sim, word, ITS_EQ, step, 8, false, stream));
        ok(its_sim_signal_on_stream(sim, word, step + 1, false, stream));
        ok(its_sim_event_record(sim, event, stream));
    }
    ok(its_sim_event_synchronize(sim, event));
    expect(*(uint64_t *)(uintptr_t)word == STEPS);
    for (int i = 0; i < STREAMS; i++) ok(OPS->stream_free(BACKEND, streams[i]));
    ok(OPS->wait(BACKEND));
}

static void test_chained(void **state) {
    (void)state;
    run(1, chained);
}

static void comparisons(its_context *ctx, its_sim_backend *sim, uint32_t number, uint32_t n) {
    (void)n;
    static const struct {
        its_compare compare;
        uint64_t word, to;
        uint32_t width;
        bool is_signed, holds;
    } cases[] = {
        {ITS_EQ, 5, 5, 8, false, true},
        {ITS_EQ, 5, 6, 8, false, false},
        {ITS_NE, 5, 6, 4, false, true},
        {ITS_GT, 6, 5, 4, false, true},
        {ITS_GT, 5, 5, 4, false, false},
        {ITS_LE, 5, 5, 2, false, true},
        {ITS_LT, 0xFFFF, 0, 2, false, false},
        {ITS_LT, 0xFFFF, 0, 2, true, true},
        {ITS_GE, 0xFFFFFFFF, 1, 4, false, true},
        {ITS_GE, 0xFFFFFFFF, 1, 4, true, false},
        {ITS_LT, UINT64_MAX, 1, 8, true, true},
        {ITS_LT, UINT64_MAX, 1, 8, false, false},
        {ITS_EQ, 0xFFFF, UINT64_MAX, 2, true, true},
    };
    uint64_t word = new_block(ctx, sim, number, 8);
    its_stream stream;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        memcpy((void *)(uintptr_t)word, &cases[i].word, 8);
        ok(its_sim_stream_new(sim, false, &stream));
        ok(its_sim_wait_signal_on_stream(sim, word, cases[i].compare, cases[i].to, cases[i].width, cases[i].is_signed,
                                         stream));
        bool idle = false;
        for (int look = 0; look < 20 && !idle; look++) {
            usleep(500);
            ok(its_sim_stream_idle(sim, stream, &idle));
        }
        expect(idle == cases[i].holds);
    }
    expect(its_sim_wait_signal_on_stream(sim, word, (its_compare)9, 0, 8, false, 0) == ITS_ERR_USAGE);
    expect(its_sim_wait_signal_on_stream(sim, word + 4, ITS_EQ, 0, 8, false, 0) == ITS_ERR_USAGE);
    expect(its_sim_wait_signal_on_stream(sim, word + 8, ITS_EQ, 0, 8, false, 0) == ITS_ERR_USAGE);
    /* Closing with streams that wait for ever is no problem: what is queued is dropped. */
}

static void test_comparisons(void **state) {
    (void)state;
    run(1, comparisons);
}

/* -- mistakes ------------------------------------------------------------------------------------------------------ */

/* Memory that is freed while work in a stream waits to use it. `late` puts that work into the stream. */
typedef its_status late_work(its_sim_backend *sim, uint64_t address, its_stream stream);

static its_status late_copy(its_sim_backend *sim, uint64_t address, its_stream stream) {
    static const char text[64];
    return OPS->copy(BACKEND, ITS_COPY_TO_DEVICE, address, (uint64_t)(uintptr_t)text, sizeof text, stream);
}
static its_status late_read(its_sim_backend *sim, uint64_t address, its_stream stream) {
    return its_sim_copy(sim, address - 4096, true, address, true, 64, ITS_HOST_NONE, stream);
}
static its_status late_fill(its_sim_backend *sim, uint64_t address, its_stream stream) {
    return its_sim_fill(sim, address, 0, 4, 64, stream);
}
static its_status late_signal(its_sim_backend *sim, uint64_t address, its_stream stream) {
    return its_sim_signal_on_stream(sim, address, 1, true, stream);
}
static its_status late_wait(its_sim_backend *sim, uint64_t address, its_stream stream) {
    return its_sim_wait_signal_on_stream(sim, address, ITS_EQ, 1, 4, false, stream);
}

static void freed_too_early(its_context *ctx, its_sim_backend *sim, uint32_t number, late_work *late,
                            const char *message) {
    uint64_t stays, gate, goes;
    its_stream stream, other;
    ok(its_sim_stream_new(sim, false, &stream));
    ok(its_sim_stream_new(sim, false, &other));
    ok(its_sim_symmetric_alloc(sim, "test", 64, 4096, &stays));
    ok(its_sim_symmetric_alloc(sim, "test", 64, 4096, &goes));
    expect(goes == stays + 4096);
    gate = new_block(ctx, sim, number, 8);
    ok(its_sim_fill(sim, gate, 0, 1, 8, 0));
    ok(OPS->wait(BACKEND));
    ok(its_sim_wait_signal_on_stream(sim, gate, ITS_EQ, 1, 8, false, stream));
    ok(late(sim, goes, stream));
    ok(its_sim_symmetric_free(sim, "test", goes));
    ok(its_sim_signal_on_stream(sim, gate, 1, false, other));
    expect(OPS->wait(BACKEND) == ITS_ERR_FAULT);
    expect(strstr(last_message(ctx), message) != NULL);
    expect(strstr(last_message(ctx), "were freed before the stream got there") != NULL);
}

#define FREED_TOO_EARLY(late, message)                                                              \
    static void freed_##late(its_context *ctx, its_sim_backend *sim, uint32_t number, uint32_t n) { \
        (void)n;                                                                                    \
        freed_too_early(ctx, sim, number, late, message);                                           \
    }
FREED_TOO_EARLY(late_copy, "PE 0: a copy on a stream writes 64 bytes at ")
FREED_TOO_EARLY(late_read, "PE 0: a copy on a stream reads 64 bytes at ")
FREED_TOO_EARLY(late_fill, "PE 0: a fill on a stream writes 64 bytes at ")
FREED_TOO_EARLY(late_signal, "PE 0: a signal on a stream writes 8 bytes at ")
FREED_TOO_EARLY(late_wait, "PE 0: a wait on a stream reads 4 bytes at ")

static void test_freed_too_early(void **state) {
    (void)state;
    run(1, freed_late_copy);
    run(1, freed_late_read);
    run(1, freed_late_fill);
    run(1, freed_late_signal);
    run(1, freed_late_wait);
}

typedef struct self_wait {
    its_sim_backend *sim;
    _Atomic int status;
} self_wait;

static void wait_for_itself(void *user) {
    self_wait *it = user;
    atomic_store(&it->status, (int)it->sim->base.ops->wait(&it->sim->base));
}

/* A function that a stream calls may not wait for the device, whose thread it has. */
static void waits_for_itself(its_context *ctx, its_sim_backend *sim, uint32_t number, uint32_t n) {
    (void)n;
    self_wait it = {.sim = sim, .status = -1};
    ok(its_sim_host_call(sim, 0, wait_for_itself, &it));
    ok(OPS->wait(BACKEND));
    expect(atomic_load(&it.status) == ITS_ERR_USAGE);
    expect(strstr(last_message(ctx), "PE 0 waits for a stream in a function that a stream calls"));
}

static void test_waits_for_itself(void **state) {
    (void)state;
    run(1, waits_for_itself);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_in_order),        cmocka_unit_test(test_bad_copies),
        cmocka_unit_test(test_side_by_side),    cmocka_unit_test(test_events),
        cmocka_unit_test(test_default_stream),  cmocka_unit_test(test_chained),
        cmocka_unit_test(test_comparisons),     cmocka_unit_test(test_freed_events),
        cmocka_unit_test(test_freed_too_early), cmocka_unit_test(test_waits_for_itself),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
