/* Divergence, reconvergence and fairness: threads of a warp, warps of a CTA, CTAs of a grid. */
#include "kit.h"

#define THREAD_INDEX                                                                                     \
    "mov.u32 %r0, %tid.x; mov.u32 %r1, %ctaid.x; mov.u32 %r2, %ntid.x; mad.lo.u32 %r0, %r1, %r2, %r0;\n" \
    "ld.param.u64 %rd0, [out]; mul.wide.u32 %rd1, %r0, 4; add.u64 %rd1, %rd0, %rd1;\n"
#define REGISTERS ".reg .pred %p<8>; .reg .b32 %r<32>; .reg .b64 %rd<16>;\n"

/* Each thread goes round a loop as often as its number says, with an if inside. */
static void test_loops(void **state) {
    (void)state;
    kit k;
    kit_open(&k);
    kit_load(&k, ".visible .entry f(.param .u64 out)\n{\n" REGISTERS THREAD_INDEX "mov.u32 %r3, 0; mov.u32 %r4, 0;\n"
                 "LOOP: setp.ge.u32 %p1, %r3, %r0; @%p1 bra END;\n"
                 "and.b32 %r5, %r3, 1; setp.eq.u32 %p2, %r5, 0; @%p2 bra EVEN;\n"
                 "add.u32 %r4, %r4, 3; bra NEXT;\n"
                 "EVEN: add.u32 %r4, %r4, 5;\n"
                 "NEXT: add.u32 %r3, %r3, 1; bra LOOP;\n"
                 "END: st.global.u32 [%rd1], %r4; ret;\n}\n");
    uint32_t *out = kit_alloc(&k, 4 * 200);
    kit_run(&k, (kit_launch){"f", 2, 100, 0, {kit_address(out)}});
    for (uint32_t i = 0; i < 200; i++) assert_int_equal(out[i], (i + 1) / 2 * 5 + i / 2 * 3);
    kit_free(&k, out);
    kit_close(&k);
}

/* After an if, lanes run together again: what follows is executed once for the warp. */
static void test_reconvergence(void **state) {
    (void)state;
    kit k;
    kit_open(&k);
    kit_load(&k, ".visible .entry f(.param .u64 out)\n{\n" REGISTERS THREAD_INDEX
                 "and.b32 %r3, %r0, 1; setp.eq.u32 %p1, %r3, 0; @%p1 bra EVEN;\n"
                 "mov.u32 %r4, 10; bra JOIN;\n"
                 "EVEN: mov.u32 %r4, 20;\n"
                 "JOIN: activemask.b32 %r5; add.u32 %r4, %r4, %r5; st.global.u32 [%rd1], %r4; ret;\n}\n");
    uint32_t *out = kit_alloc(&k, 4 * 32);
    kit_run(&k, (kit_launch){"f", 1, 32, 0, {kit_address(out)}});
    for (uint32_t i = 0; i < 32; i++) assert_int_equal(out[i], 0xffffffffu + (i & 1 ? 10 : 20));
    kit_free(&k, out);
    kit_close(&k);
}

/* Every lane of a warp takes the same lock in turn: the one that holds it must run although the others spin. */
static void test_lock_in_a_warp(void **state) {
    (void)state;
    kit k;
    kit_open(&k);
    kit_load(&k, ".visible .entry f(.param .u64 out)\n{\n" REGISTERS "ld.param.u64 %rd0, [out];\n"
                 "AGAIN: atom.global.cas.b32 %r1, [%rd0], 0, 1; setp.ne.u32 %p1, %r1, 0; @%p1 bra AGAIN;\n"
                 "ld.volatile.global.u32 %r2, [%rd0+4]; add.u32 %r2, %r2, 1; st.volatile.global.u32 [%rd0+4], %r2;\n"
                 "atom.global.exch.b32 %r3, [%rd0], 0; ret;\n}\n");
    uint32_t *out = kit_alloc(&k, 8);
    kit_run(&k, (kit_launch){"f", 3, 96, 0, {kit_address(out)}});
    assert_int_equal(out[0], 0);
    assert_int_equal(out[1], 3 * 96);
    kit_free(&k, out);
    kit_close(&k);
}

/* Lane 0 waits for lane 1, which comes later in the program; then the other way round. */
static void test_producer_and_consumer_lanes(void **state) {
    (void)state;
    kit k;
    kit_open(&k);
    kit_load(&k, ".visible .entry f(.param .u64 out)\n{\n" REGISTERS "ld.param.u64 %rd0, [out]; mov.u32 %r0, %tid.x;\n"
                 "setp.ne.u32 %p1, %r0, 0; @%p1 bra PRODUCE;\n"
                 "WAIT: ld.acquire.gpu.global.u32 %r1, [%rd0]; setp.ne.u32 %p2, %r1, 7; @%p2 bra WAIT;\n"
                 "st.global.u32 [%rd0+4], 1; bra END;\n"
                 "PRODUCE: setp.ne.u32 %p3, %r0, 1; @%p3 bra END;\n"
                 "st.release.gpu.global.u32 [%rd0], 7;\n"
                 "WAIT2: ld.acquire.gpu.global.u32 %r1, [%rd0+4]; setp.eq.u32 %p2, %r1, 0; @%p2 bra WAIT2;\n"
                 "st.global.u32 [%rd0+8], 2;\n"
                 "END: ret;\n}\n");
    uint32_t *out = kit_alloc(&k, 12);
    kit_run(&k, (kit_launch){"f", 1, 32, 0, {kit_address(out)}});
    assert_int_equal(out[0], 7);
    assert_int_equal(out[1], 1);
    assert_int_equal(out[2], 2);
    kit_free(&k, out);
    kit_close(&k);
}

/* CTA 0 waits for a flag that the last resident CTA sets. */
static void test_ctas_wait_for_each_other(void **state) {
    (void)state;
    kit k;
    kit_open(&k);
    kit_load(&k, ".visible .entry f(.param .u64 out)\n{\n" REGISTERS
                 "ld.param.u64 %rd0, [out]; mov.u32 %r0, %ctaid.x; mov.u32 %r1, %nctaid.x; sub.u32 %r2, %r1, 1;\n"
                 "setp.eq.u32 %p1, %r0, %r2; @%p1 bra SET;\n"
                 "WAIT: ld.relaxed.gpu.global.u32 %r3, [%rd0]; setp.eq.u32 %p2, %r3, 0; @%p2 bra WAIT;\n"
                 "red.global.add.u32 [%rd0+4], 1; ret;\n"
                 "SET: st.relaxed.gpu.global.u32 [%rd0], 1; ret;\n}\n");
    uint32_t *out = kit_alloc(&k, 8);
    kit_run(&k, (kit_launch){"f", 8, 64, 0, {kit_address(out)}});
    assert_int_equal(out[1], 7 * 64);
    kit_free(&k, out);
    kit_close(&k);
}

/* The same while they count how long they wait, so that they seem to get on: the others must begin all the same. */
static void test_ctas_count_while_they_wait(void **state) {
    (void)state;
    kit k;
    kit_open(&k);
    kit_load(
        &k,
        ".visible .entry f(.param .u64 out)\n{\n" REGISTERS
        "ld.param.u64 %rd0, [out]; mov.u32 %r0, %ctaid.x; mov.u32 %r1, %nctaid.x; sub.u32 %r2, %r1, 1; mov.u32 %r4, "
        "0;\n"
        "setp.eq.u32 %p1, %r0, %r2; @%p1 bra SET;\n"
        "WAIT: add.u32 %r4, %r4, 1; ld.relaxed.gpu.global.u32 %r3, [%rd0]; setp.eq.u32 %p2, %r3, 0; @%p2 bra WAIT;\n"
        "red.global.add.u32 [%rd0+4], 1; red.global.max.u32 [%rd0+8], %r4; ret;\n"
        "SET: st.relaxed.gpu.global.u32 [%rd0], 1; ret;\n}\n");
    uint32_t *out = kit_alloc(&k, 12);
    kit_run(&k, (kit_launch){"f", 12, 32, 0, {kit_address(out)}});
    assert_int_equal(out[1], 11 * 32);
    assert_true(out[2] > 1000);
    assert_int_equal(k.blocked, 0);
    kit_free(&k, out);
    kit_close(&k);
}

/* More CTAs than are resident: places are given on; every thread runs once. */
static void test_many_ctas(void **state) {
    (void)state;
    kit k;
    kit_open(&k);
    kit_load(&k, ".visible .entry f(.param .u64 out)\n{\n" REGISTERS "ld.param.u64 %rd0, [out];\n"
                 "red.global.add.u32 [%rd0], 1; ret;\n}\n");
    uint32_t *out = kit_alloc(&k, 8);
    kit_run(&k, (kit_launch){"f", 5000, 33, 0, {kit_address(out)}});
    assert_int_equal(out[0], 5000 * 33);
    kit_free(&k, out);
    kit_close(&k);
}

/* A kernel that waits for something outside is BLOCKED until the memory changes, and goes on then. */
static void test_blocked(void **state) {
    (void)state;
    kit k;
    kit_open(&k);
    kit_load(&k, ".visible .entry f(.param .u64 out)\n{\n" REGISTERS "ld.param.u64 %rd0, [out];\n"
                 "WAIT: ld.acquire.sys.global.u32 %r3, [%rd0]; setp.eq.u32 %p2, %r3, 0; @%p2 bra WAIT;\n"
                 "red.global.add.u32 [%rd0+4], %r3; ret;\n}\n");
    uint32_t *out = kit_alloc(&k, 8);
    kit_launch l = {"f", 4, 64, 0, {kit_address(out)}};
    assert_int_equal(kit_make_grid(&k, &l), ITS_OK);
    assert_int_equal(kit_finish(&k, 1000, 3), ITS_SIM_BLOCKED);
    uint64_t before = its_sim_grid_instructions(k.grid);
    assert_int_equal(its_sim_grid_step(k.grid, 1000000), ITS_SIM_BLOCKED);
    assert_true(its_sim_grid_instructions(k.grid) - before < 1000); /* it gave up at once */
    out[0] = 3;
    assert_int_equal(kit_finish(&k, 1000, 3), ITS_SIM_DONE);
    assert_int_equal(out[1], 4 * 64 * 3);
    kit_free(&k, out);
    kit_close(&k);
}

/* A loop that counts is not blocked, however long it takes. */
static void test_counting_is_progress(void **state) {
    (void)state;
    kit k;
    kit_open(&k);
    kit_load(&k, ".visible .entry f(.param .u64 out)\n{\n" REGISTERS "ld.param.u64 %rd0, [out]; mov.u32 %r1, 0;\n"
                 "LOOP: ld.global.u32 %r3, [%rd0]; add.u32 %r1, %r1, 1; setp.lt.u32 %p1, %r1, 200000; @%p1 bra LOOP;\n"
                 "st.global.u32 [%rd0+4], %r1; ret;\n}\n");
    uint32_t *out = kit_alloc(&k, 8);
    kit_run(&k, (kit_launch){"f", 1, 1, 0, {kit_address(out)}});
    assert_int_equal(out[1], 200000);
    assert_int_equal(k.blocked, 0);
    kit_free(&k, out);
    kit_close(&k);
}

/* brx.idx, with different lanes going to different targets. */
static void test_branch_table(void **state) {
    (void)state;
    kit k;
    kit_open(&k);
    kit_load(&k, ".visible .entry f(.param .u64 out)\n{\n" REGISTERS THREAD_INDEX "and.b32 %r3, %r0, 3;\n"
                 "T: .branchtargets A, B, A, C;\n"
                 "brx.idx %r3, T;\n"
                 "A: mov.u32 %r4, 100; bra END;\n"
                 "B: mov.u32 %r4, 200; bra END;\n"
                 "C: mov.u32 %r4, 300;\n"
                 "END: activemask.b32 %r5; setp.ne.u32 %p1, %r5, -1; @%p1 mov.u32 %r4, 1;\n"
                 "st.global.u32 [%rd1], %r4; ret;\n}\n");
    uint32_t *out = kit_alloc(&k, 128);
    kit_run(&k, (kit_launch){"f", 1, 32, 0, {kit_address(out)}});
    static const uint32_t expected[] = {100, 200, 100, 300};
    for (uint32_t i = 0; i < 32; i++) assert_int_equal(out[i], expected[i & 3]);
    kit_free(&k, out);
    kit_close(&k);
}

/* Some lanes exit; a guard on exit and ret; the rest goes on alone. */
static void test_exits(void **state) {
    (void)state;
    kit k;
    kit_open(&k);
    kit_load(&k,
             ".visible .entry f(.param .u64 out)\n{\n" REGISTERS THREAD_INDEX "setp.lt.u32 %p1, %r0, 5; @%p1 exit;\n"
             "setp.gt.u32 %p2, %r0, 20; @%p2 ret;\n"
             "activemask.b32 %r5; st.global.u32 [%rd1], %r5;\n}\n");
    uint32_t *out = kit_alloc(&k, 128);
    kit_run(&k, (kit_launch){"f", 1, 32, 0, {kit_address(out)}});
    for (uint32_t i = 0; i < 32; i++) assert_int_equal(out[i], i >= 5 && i <= 20 ? 0x001fffe0u : 0);
    kit_free(&k, out);
    kit_close(&k);
}

/* Guards with both signs on every kind of operation. */
static void test_guards(void **state) {
    (void)state;
    kit k;
    kit_open(&k);
    kit_load(&k, ".visible .entry f(.param .u64 out)\n{\n" REGISTERS THREAD_INDEX
                 "setp.lt.u32 %p1, %r0, 16; mov.u32 %r4, 1; mov.b64 %rd5, 7; mov.pred %p3, %p1;\n"
                 "@%p1 add.u32 %r4, %r4, 10; @!%p1 add.u32 %r4, %r4, 20;\n"
                 "@%p1 mov.b64 %rd5, 100; @!%p1 not.pred %p3, %p3;\n"
                 "@!%p1 ld.global.u32 %r6, [%rd1]; @%p1 mov.u32 %r6, 1000;\n"
                 "cvt.u32.u64 %r7, %rd5; add.u32 %r4, %r4, %r7; add.u32 %r4, %r4, %r6;\n"
                 "@%p3 add.u32 %r4, %r4, 50000;\n"
                 "st.global.u32 [%rd1], %r4; ret;\n}\n");
    uint32_t *out = kit_alloc(&k, 128);
    for (uint32_t i = 0; i < 32; i++) out[i] = 2000 + i;
    kit_run(&k, (kit_launch){"f", 1, 32, 0, {kit_address(out)}});
    for (uint32_t i = 0; i < 32; i++)
        assert_int_equal(out[i], i < 16 ? 1 + 10 + 100 + 1000 + 50000 : 1 + 20 + 7 + 2000 + i + 50000);
    kit_free(&k, out);
    kit_close(&k);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_loops),
        cmocka_unit_test(test_reconvergence),
        cmocka_unit_test(test_lock_in_a_warp),
        cmocka_unit_test(test_producer_and_consumer_lanes),
        cmocka_unit_test(test_ctas_wait_for_each_other),
        cmocka_unit_test(test_ctas_count_while_they_wait),
        cmocka_unit_test(test_many_ctas),
        cmocka_unit_test(test_blocked),
        cmocka_unit_test(test_counting_is_progress),
        cmocka_unit_test(test_branch_table),
        cmocka_unit_test(test_exits),
        cmocka_unit_test(test_guards),
    };
    return cmocka_run_group_tests_name("sim/flow", tests, NULL, NULL);
}
