/*
 * Worlds of PEs as real processes: collective calls, barriers under load, PEs that die, and the symmetric allocator.
 */
#include <signal.h>

#include "../pes.h"
#include "sim/pe.h"

#define expect(condition) PE_EXPECT(ctx, number, condition)

typedef void pe_body(its_context *ctx, its_pe *pe, uint32_t number, uint32_t n);

static void run_pe(int world, uint32_t number, uint32_t n, const void *user) {
    pe_body *const *body = user;
    its_context *ctx = its_context_new(NULL);
    its_pe pe;
    ok(its_pe_open(ctx, world, number, &pe));
    (*body)(ctx, &pe, number, n);
    its_pe_close(&pe);
    its_context_free(ctx);
}

static pid_t start(int world, uint32_t number, uint32_t n, pe_body *body) {
    return start_pe(world, number, n, run_pe, &body);
}

static void run_world(uint32_t n, size_t heap_size, pe_body *body) {
    run_pes(n, heap_size, run_pe, &body);
}

static void run_sizes(size_t heap_size, pe_body *body) {
    for (uint32_t n = 1; n <= 8; n *= 2) run_world(n, heap_size, body);
}

static its_team everybody(uint32_t n) {
    return (its_team){0, 1, n};
}

/* -- barriers ------------------------------------------------------------------------------------------------------ */

static uint64_t *shared_words(its_pe *pe, uint32_t of) {
    return (uint64_t *)(void *)(its_world_heap(pe->world, of) + ITS_WORLD_LIBRARY_BYTES);
}

/* Between two barriers every PE sees what all wrote before the first, and nobody has begun to write what comes next. */
static void barrier_rounds(its_context *ctx, its_pe *pe, uint32_t number, uint32_t n) {
    for (uint64_t round = 1; round <= 300; round++) {
        *(volatile uint64_t *)shared_words(pe, number) = round;
        expect(its_world_barrier(ctx, pe->world, 0, everybody(n)) == ITS_OK);
        for (uint32_t other = 0; other < n; other++) expect(*(volatile uint64_t *)shared_words(pe, other) == round);
        expect(its_world_barrier(ctx, pe->world, 0, everybody(n)) == ITS_OK);
    }
}

static void test_barrier(void **state) {
    (void)state;
    run_sizes(1 << 20, barrier_rounds);
}

static void one_is_slow(its_context *ctx, its_pe *pe, uint32_t number, uint32_t n) {
    for (uint32_t round = 0; round < n; round++) {
        if (round == number) usleep(20000);
        *(volatile uint64_t *)shared_words(pe, number) = round + 1;
        expect(its_world_barrier(ctx, pe->world, 0, everybody(n)) == ITS_OK);
        for (uint32_t other = 0; other < n; other++) expect(*(volatile uint64_t *)shared_words(pe, other) > round);
        expect(its_world_barrier(ctx, pe->world, 0, everybody(n)) == ITS_OK);
    }
}

static void test_slow_pe(void **state) {
    (void)state;
    run_world(4, 1 << 20, one_is_slow);
}

/* Two teams of a world of four; each has its own count of rounds, and the odd ones do more. */
static void two_teams(its_context *ctx, its_pe *pe, uint32_t number, uint32_t n) {
    its_team mine = {number % 2, 2, n / 2};
    for (uint32_t round = 0; round < (number % 2 ? 50u : 20u); round++)
        expect(its_world_barrier(ctx, pe->world, 6 + number % 2, mine) == ITS_OK);
    expect(its_world_barrier(ctx, pe->world, 0, everybody(n)) == ITS_OK);
}

static void test_teams(void **state) {
    (void)state;
    run_world(4, 1 << 20, two_teams);
}

static void enter_twice(its_context *ctx, its_pe *pe, uint32_t number, uint32_t n) {
    uint64_t epoch;
    expect(its_world_barrier_enter(ctx, pe->world, 0, everybody(n), &epoch) == ITS_OK);
    expect(epoch == 1);
    expect(its_world_barrier_enter(ctx, pe->world, 0, everybody(n), &epoch) == ITS_ERR_USAGE);
    expect(strstr(last_message(ctx), "entered a barrier while it was in another one"));
    expect(its_world_barrier_leave(pe->world, 0, everybody(n), 1));
}

static void test_barrier_twice(void **state) {
    (void)state;
    run_world(1, 1 << 20, enter_twice);
}

/* -- PEs that do not come ------------------------------------------------------------------------------------------ */

static void third_dies(its_context *ctx, its_pe *pe, uint32_t number, uint32_t n) {
    expect(its_world_barrier(ctx, pe->world, 0, everybody(n)) == ITS_OK);
    if (number == 2) {
        usleep(100000);
        kill(getpid(), SIGKILL);
    }
    double begun = seconds();
    expect(its_world_barrier(ctx, pe->world, 0, everybody(n)) == ITS_ERR_FAULT);
    expect(seconds() - begun < 1.0);
    expect(strcmp(last_message(ctx), "PE 2 ended before the barrier") == 0);
    expect(its_world_collective(ctx, pe->world, "nvshmem_malloc", (its_asked){0}) == ITS_ERR_FAULT);
    expect(strcmp(last_message(ctx), "PE 2 ended before nvshmem_malloc") == 0);
}

static void test_killed(void **state) {
    (void)state;
    int fd = new_world(4, 1 << 20);
    pid_t children[4];
    for (uint32_t pe = 0; pe < 4; pe++) children[pe] = start(fd, pe, 4, third_dies);
    /* Nobody waits for PE 2 until the others are done: a zombie must count as gone. */
    for (uint32_t pe = 0; pe < 4; pe++)
        if (pe != 2) assert_int_equal(finish_pe(children[pe]), 0);
    assert_true(WIFSIGNALED(finish_pe(children[2])));
    close(fd);
}

static void first_leaves(its_context *ctx, its_pe *pe, uint32_t number, uint32_t n) {
    if (number == 0) return;
    expect(its_world_barrier(ctx, pe->world, 0, everybody(n)) == ITS_ERR_FAULT);
    expect(strcmp(last_message(ctx), "PE 0 finished before the barrier") == 0);
}

static void test_finished_early(void **state) {
    (void)state;
    run_world(3, 1 << 20, first_leaves);
}

/* One that comes and then leaves at once must not be mistaken for one that never came. */
static void leave_after_barrier(its_context *ctx, its_pe *pe, uint32_t number, uint32_t n) {
    expect(its_world_barrier(ctx, pe->world, 0, everybody(n)) == ITS_OK);
}

static void test_leave_at_once(void **state) {
    (void)state;
    for (int i = 0; i < 20; i++) run_world(4, 1 << 20, leave_after_barrier);
}

static void second_faults(its_context *ctx, its_pe *pe, uint32_t number, uint32_t n) {
    if (number == 1) {
        its_world_faulted(pe->world, "store of 4 bytes out of bounds");
        return;
    }
    expect(its_world_barrier(ctx, pe->world, 0, everybody(n)) == ITS_ERR_FAULT);
    expect(strcmp(last_message(ctx), "PE 1 faulted: store of 4 bytes out of bounds") == 0);
}

static void test_fault_ends_waits(void **state) {
    (void)state;
    run_world(4, 1 << 20, second_faults);
}

static void wait_for_absent(its_context *ctx, its_pe *pe, uint32_t number, uint32_t n) {
    expect(its_world_barrier(ctx, pe->world, 0, everybody(n)) == ITS_ERR_FAULT);
    expect(strcmp(last_message(ctx), "PE 1 ended before the barrier") == 0);
}

static void test_never_opened(void **state) {
    (void)state;
    int fd = new_world(2, 1 << 20);
    pid_t child = start(fd, 0, 2, wait_for_absent);
    usleep(50000);
    its_context *ctx = its_context_new(NULL);
    assert_int_equal(its_sim_world_ended(ctx, fd, 1), ITS_OK);
    its_context_free(ctx);
    assert_int_equal(finish_pe(child), 0);
    close(fd);
}

/* -- symmetric memory ---------------------------------------------------------------------------------------------- */

static its_status symmetric_alloc(its_context *ctx, its_pe *pe, size_t size, size_t align, uint64_t *address) {
    its_status reserved = its_pe_reserve(pe, size, align, address);
    its_status status = its_world_collective(ctx, pe->world, "nvshmem_malloc",
                                             (its_asked){.kind = ITS_ASKED_ALLOC, .a = size, .b = align});
    if (reserved == ITS_OK && status != ITS_OK) its_pe_cancel(pe, *address);
    return status != ITS_OK ? status : reserved == ITS_OK ? ITS_OK : its_pe_no_room(pe, "nvshmem_malloc", size);
}

/* The same random calls everywhere: the offsets must agree, live blocks must not overlap, and puts must arrive. */
static void random_blocks(its_context *ctx, its_pe *pe, uint32_t number, uint32_t n) {
    enum { BLOCKS = 40 };
    uint64_t address[BLOCKS] = {0}, offset;
    size_t size[BLOCKS] = {0};
    uint32_t seed = 12345;
    char *heap = its_world_heap(pe->world, number);
    for (uint64_t step = 0; step < 400; step++) {
        seed = seed * 1664525 + 1013904223;
        uint32_t at = (seed >> 8) % BLOCKS;
        if (address[at]) {
            for (size_t i = 0; i < size[at]; i += 64) expect(((uint8_t *)(uintptr_t)address[at])[i] == (uint8_t)at);
            expect(its_pe_check_symmetric(pe, "nvshmem_free", address[at], &offset) == ITS_OK);
            expect(its_world_collective(ctx, pe->world, "nvshmem_free",
                                        (its_asked){.kind = ITS_ASKED_FREE, .a = offset}) == ITS_OK);
            its_pe_cancel(pe, address[at]);
            address[at] = 0;
            continue;
        }
        size[at] = 1 + (seed >> 16) % 3000;
        size_t align = (size_t)1 << ((seed >> 4) % 12);
        expect(symmetric_alloc(ctx, pe, size[at], align, &address[at]) == ITS_OK);
        expect(address[at] % align == 0);
        expect(*(uint8_t *)(uintptr_t)address[at] == 0xF5);
        memset((void *)(uintptr_t)address[at], (int)at, size[at]);
        /* Tell the neighbour where; it must find the same. */
        uint64_t mapped;
        expect(its_pe_peer(pe, address[at], (number + 1) % n, &mapped));
        expect(mapped - (uint64_t)(uintptr_t)its_world_heap(pe->world, (number + 1) % n) ==
               address[at] - (uint64_t)(uintptr_t)heap);
        its_sim_range range;
        expect(its_sim_memory_find(pe->memory, mapped, &range) && range.pe == (number + 1) % n);
    }
}

static void test_random_blocks(void **state) {
    (void)state;
    run_sizes(1 << 20, random_blocks);
}

static void mismatch(its_context *ctx, its_pe *pe, uint32_t number, uint32_t n) {
    uint64_t address, again;
    (void)n;
    expect(symmetric_alloc(ctx, pe, 64, 256, &address) == ITS_OK);
    expect(symmetric_alloc(ctx, pe, number == 1 ? 2048 : 1024, 256, &again) == ITS_ERR_USAGE);
    const char *message = last_message(ctx);
    expect(strstr(message, "nvshmem_malloc") && strstr(message, "PE 1") && strstr(message, "1024") &&
           strstr(message, "2048"));
    expect(symmetric_alloc(ctx, pe, 64, 256, &again) == ITS_OK);
    expect(again > address);
}

static void test_mismatch(void **state) {
    (void)state;
    run_world(2, 1 << 20, mismatch);
}

/* One asks for too much, the other for little: the mismatch is the news, not the lack of room. */
static void mismatch_too_large(its_context *ctx, its_pe *pe, uint32_t number, uint32_t n) {
    uint64_t address;
    (void)n;
    expect(symmetric_alloc(ctx, pe, number ? (size_t)1 << 40 : 8, 256, &address) == ITS_ERR_USAGE);
    expect(strstr(last_message(ctx), "1099511627776"));
}

static void test_mismatch_too_large(void **state) {
    (void)state;
    run_world(2, 1 << 20, mismatch_too_large);
}

static void free_mismatch(its_context *ctx, its_pe *pe, uint32_t number, uint32_t n) {
    uint64_t address;
    (void)n;
    its_asked asked = {.kind = number ? ITS_ASKED_FREE : ITS_ASKED_ALLOC, .a = 64};
    expect(its_world_collective(ctx, pe->world, "nvshmem_free", asked) == ITS_ERR_USAGE);
    expect(strstr(last_message(ctx), "to free the block at offset 64") && strstr(last_message(ctx), "for 64 bytes"));
    expect(its_pe_check_symmetric(pe, "nvshmem_free", 4096, &address) == ITS_ERR_USAGE);
    expect(strcmp(last_message(ctx),
                  number ? "nvshmem_free: 0x1000 is not a live block of the symmetric heap of PE 1"
                         : "nvshmem_free: 0x1000 is not a live block of the symmetric heap of PE 0") == 0);
}

static void test_free_mismatch(void **state) {
    (void)state;
    run_world(2, 1 << 20, free_mismatch);
}

static void too_much(its_context *ctx, its_pe *pe, uint32_t number, uint32_t n) {
    uint64_t address;
    (void)number, (void)n;
    expect(symmetric_alloc(ctx, pe, 600000, 256, &address) == ITS_OK);
    expect(symmetric_alloc(ctx, pe, 600000, 256, &address) == ITS_ERR_NOMEM);
    const its_diag *diag = its_diag_get(ctx, its_diag_count(ctx) - 1);
    expect(
        strstr(diag->message, "asked for 600000 bytes, but 600000 of the symmetric heap's 1048576 bytes are in use"));
    expect(strstr(diag->hint, "INTARSIA_HEAP_SIZE") && strstr(diag->hint, "NVSHMEM_SYMMETRIC_SIZE"));
}

static void test_out_of_heap(void **state) {
    (void)state;
    run_world(2, 1 << 20, too_much);
}

/* -- private memory ------------------------------------------------------------------------------------------------ */

static void private_memory(its_context *ctx, its_pe *pe, uint32_t number, uint32_t n) {
    uint64_t a, b, c;
    expect(its_pe_alloc(pe, 100, 0, ITS_SIM_DEVICE, &a) == ITS_OK);
    expect(its_pe_alloc(pe, (size_t)20 << 20, 4096, ITS_SIM_DEVICE, &b) == ITS_OK);
    expect(a % 256 == 0 && b % 4096 == 0 && b >= a + 100);
    for (size_t i = 0; i < 100; i += 2) expect(*(uint16_t *)(uintptr_t)(a + i) == ITS_SIM_FRESH);
    expect(*(uint16_t *)(uintptr_t)(b + ((size_t)20 << 20) - 2) == ITS_SIM_FRESH);
    its_sim_range range;
    expect(its_sim_memory_find(pe->memory, b + 5, &range) && range.pe == number);
    expect(!its_sim_memory_find(pe->memory, a + 100, &range));
    expect(its_pe_release(pe, b) == ITS_OK);
    expect(!its_sim_memory_find(pe->memory, b + 5, &range));
    expect(its_pe_release(pe, b) == ITS_ERR_USAGE);
    expect(its_pe_release(pe, a + 1) == ITS_ERR_USAGE);
    expect(strstr(last_message(ctx), "is not a live block of device memory"));
    /* The place of what was freed stays empty for a while, and is known. */
    expect(its_pe_alloc(pe, 64, 0, ITS_SIM_DEVICE, &c) == ITS_OK && c != b);
    its_sim_nearby nearby;
    its_sim_memory_explain(pe->memory, b + 8, &nearby);
    expect(nearby.what == ITS_SIM_NEAR_FREED && nearby.distance == 8);
    if (n > 1) {
        uint32_t other = (number + 1) % n;
        its_sim_memory_explain(pe->memory, (uint64_t)(uintptr_t)its_world_private(pe->world, other) + 64, &nearby);
        expect(nearby.what == ITS_SIM_NEAR_WINDOW && nearby.pe == other);
    }
    expect(its_pe_alloc(pe, (size_t)1 << 50, 0, ITS_SIM_DEVICE, &c) == ITS_ERR_NOMEM);
    expect(its_pe_alloc(pe, 64, 3, ITS_SIM_DEVICE, &c) == ITS_ERR_USAGE);
}

static void test_private_memory(void **state) {
    (void)state;
    run_sizes(1 << 20, private_memory);
}

/* -- bad worlds ---------------------------------------------------------------------------------------------------- */

static void test_bad_input(void **state) {
    (void)state;
    its_context *ctx = its_context_new(NULL);
    int fd = 7;
    assert_int_equal(its_sim_world_new(ctx, &(its_sim_options){.n_pes = 0}, &fd), ITS_ERR_USAGE);
    assert_int_equal(fd, -1);
    assert_int_equal(its_sim_world_new(ctx, &(its_sim_options){.n_pes = 65}, &fd), ITS_ERR_USAGE);
    assert_int_equal(its_sim_world_new(ctx, &(its_sim_options){.n_pes = 2, .heap_size = SIZE_MAX}, &fd), ITS_ERR_USAGE);
    its_pe pe;
    assert_int_equal(its_pe_open(ctx, 12345, 0, &pe), ITS_ERR_USAGE);
    assert_string_equal(last_message(ctx), "file descriptor 12345 is not open");
    FILE *file = tmpfile();
    assert_int_equal(its_pe_open(ctx, fileno(file), 0, &pe), ITS_ERR_USAGE);
    fclose(file);
    fd = new_world(2, 1 << 20);
    assert_int_equal(its_pe_open(ctx, fd, 2, &pe), ITS_ERR_USAGE);
    assert_string_equal(last_message(ctx), "PE 2 of a world of 2 PEs can't be opened");
    assert_int_equal(its_pe_open(ctx, fd, 1, &pe), ITS_OK);
    its_pe again;
    assert_int_equal(its_pe_open(ctx, fd, 1, &again), ITS_ERR_NOMEM);
    its_pe_close(&pe);
    assert_int_equal(its_pe_open(ctx, fd, 1, &again), ITS_ERR_USAGE);
    assert_non_null(strstr(last_message(ctx), "PE 1 belongs to process"));
    close(fd);
    its_context_free(ctx);
}

/* A world of 64 PEs with the default heap is a matter of addresses, not of memory. */
static void test_large_world(void **state) {
    (void)state;
    its_context *ctx = its_context_new(NULL);
    int fd = new_world(64, 0);
    its_pe pe;
    assert_int_equal(its_pe_open(ctx, fd, 63, &pe), ITS_OK);
    uint64_t address;
    assert_int_equal(its_pe_reserve(&pe, 1 << 20, 256, &address), ITS_OK);
    its_pe_close(&pe);
    close(fd);
    its_context_free(ctx);
}

static size_t heap_size_from(const char *text) {
    its_context *ctx = its_context_new(NULL);
    setenv("NVSHMEM_SYMMETRIC_SIZE", text, 1);
    int fd = -1;
    size_t size = 0;
    its_pe pe;
    if (its_sim_world_new(ctx, &(its_sim_options){.n_pes = 1}, &fd) == ITS_OK) {
        assert_int_equal(its_pe_open(ctx, fd, 0, &pe), ITS_OK);
        size = pe.world->control->heap_size;
        its_pe_close(&pe);
        close(fd);
    } else {
        assert_non_null(strstr(last_message(ctx), "which is not a size"));
    }
    unsetenv("NVSHMEM_SYMMETRIC_SIZE");
    its_context_free(ctx);
    return size;
}

static void test_heap_setting(void **state) {
    (void)state;
    assert_int_equal(heap_size_from("512M"), (size_t)512 << 20);
    assert_int_equal(heap_size_from("1.5GB"), (size_t)3 << 29);
    assert_int_equal(heap_size_from("131072"), 131072);
    assert_int_equal(heap_size_from("64k"), 65536);
    assert_int_equal(heap_size_from("many"), 0);
    assert_int_equal(heap_size_from("12X"), 0);
    assert_int_equal(heap_size_from("-1"), 0);
    assert_int_equal(heap_size_from("M"), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_barrier),        cmocka_unit_test(test_slow_pe),
        cmocka_unit_test(test_teams),          cmocka_unit_test(test_barrier_twice),
        cmocka_unit_test(test_killed),         cmocka_unit_test(test_finished_early),
        cmocka_unit_test(test_leave_at_once),  cmocka_unit_test(test_fault_ends_waits),
        cmocka_unit_test(test_never_opened),   cmocka_unit_test(test_random_blocks),
        cmocka_unit_test(test_mismatch),       cmocka_unit_test(test_mismatch_too_large),
        cmocka_unit_test(test_free_mismatch),  cmocka_unit_test(test_out_of_heap),
        cmocka_unit_test(test_private_memory), cmocka_unit_test(test_bad_input),
        cmocka_unit_test(test_large_world),    cmocka_unit_test(test_heap_setting),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
