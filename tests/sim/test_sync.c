/* Barriers of CTAs and warps, and operations that lanes take part in together while the warp is divergent. */
#include "kit.h"

#define REGISTERS ".reg .pred %p<8>; .reg .b32 %r<32>; .reg .b64 %rd<16>;\n"
#define THREAD_INDEX \
    "mov.u32 %r0, %tid.x; ld.param.u64 %rd0, [out]; mul.wide.u32 %rd1, %r0, 4; add.u64 %rd1, %rd0, %rd1;\n"

static uint32_t *run(kit *k, const char *body, uint32_t threads) {
    uint32_t *out = kit_alloc(k, 4 * 1024);
    char text[4096];
    snprintf(text, sizeof(text), ".visible .entry f(.param .u64 out)\n{\n%s%s%s}\n", REGISTERS, THREAD_INDEX, body);
    kit_load(k, text);
    kit_run(k, (kit_launch){"f", 1, threads, 0, {kit_address(out)}});
    return out;
}

/* A tree reduction in shared memory: 256 threads, a barrier a step. */
static void test_reduction(void **state) {
    (void)state;
    kit k;
    kit_open(&k);
    uint32_t *out = run(&k,
                        ".shared .align 4 .b8 s[1024];\n"
                        "mov.u32 %r1, s; shl.b32 %r2, %r0, 2; add.u32 %r1, %r1, %r2;\n"
                        "mad.lo.u32 %r3, %r0, %r0, 1; st.shared.u32 [%r1], %r3; mov.u32 %r4, 128;\n"
                        "LOOP: bar.sync 0; setp.ge.u32 %p1, %r0, %r4; @%p1 bra SKIP;\n"
                        "shl.b32 %r5, %r4, 2; add.u32 %r5, %r5, %r1; ld.shared.u32 %r6, [%r5];\n"
                        "ld.shared.u32 %r7, [%r1]; add.u32 %r7, %r7, %r6; st.shared.u32 [%r1], %r7;\n"
                        "SKIP: shr.u32 %r4, %r4, 1; setp.ne.u32 %p2, %r4, 0; @%p2 bra LOOP;\n"
                        "setp.ne.u32 %p3, %r0, 0; @%p3 ret; st.global.u32 [%rd1], %r7; ret;\n",
                        256);
    uint32_t expected = 0;
    for (uint32_t i = 0; i < 256; i++) expected += i * i + 1;
    assert_int_equal(out[0], expected);
    kit_free(&k, out);
    kit_close(&k);
}

/* Threads that have exited are not waited for. */
static void test_barrier_without_the_exited(void **state) {
    (void)state;
    kit k;
    kit_open(&k);
    uint32_t *out = run(&k,
                        "setp.ge.u32 %p1, %r0, 50; @%p1 exit;\n"
                        "red.global.add.u32 [%rd0], 1; bar.sync 0; ld.global.u32 %r3, [%rd0]; bar.sync 0;\n"
                        "st.global.u32 [%rd1], %r3; ret;\n",
                        128);
    for (uint32_t i = 0; i < 50; i++) assert_int_equal(out[i], 50);
    kit_free(&k, out);
    kit_close(&k);
}

/* Half of a warp exits while the other half, and the other warps, already wait. */
static void test_exit_completes_a_barrier(void **state) {
    (void)state;
    kit k;
    kit_open(&k);
    uint32_t *out = run(&k,
                        "setp.lt.u32 %p1, %r0, 16; @%p1 bra LATE;\n"
                        "bar.sync 0; st.global.u32 [%rd1], 1; ret;\n"
                        "LATE: mov.u32 %r1, 0;\n"
                        "WAIT: add.u32 %r1, %r1, 1; setp.lt.u32 %p2, %r1, 5000; @%p2 bra WAIT; exit;\n",
                        64);
    for (uint32_t i = 0; i < 64; i++) assert_int_equal(out[i], i >= 16);
    kit_free(&k, out);
    kit_close(&k);
}

/* Producer warp arrives, consumer warp waits, on a named barrier; and back on another. */
static void test_named_barriers(void **state) {
    (void)state;
    kit k;
    kit_open(&k);
    uint32_t *out = run(&k,
                        ".shared .align 4 .b8 s[128];\n"
                        "mov.u32 %r1, s; and.b32 %r2, %r0, 31; shl.b32 %r3, %r2, 2; add.u32 %r1, %r1, %r3;\n"
                        "mov.u32 %r5, 0; setp.ge.u32 %p1, %r0, 32; @%p1 bra CONSUME;\n"
                        "PRODUCE: mad.lo.u32 %r4, %r5, 100, %r2; st.shared.u32 [%r1], %r4; bar.arrive 1, 64;\n"
                        "bar.sync 2, 64; add.u32 %r5, %r5, 1; setp.lt.u32 %p2, %r5, 10; @%p2 bra PRODUCE; ret;\n"
                        "CONSUME: mov.u32 %r6, 0;\n"
                        "NEXT: bar.sync 1, 64; ld.shared.u32 %r7, [%r1]; add.u32 %r6, %r6, %r7; bar.arrive 2, 64;\n"
                        "add.u32 %r5, %r5, 1; setp.lt.u32 %p2, %r5, 10; @%p2 bra NEXT;\n"
                        "st.global.u32 [%rd1], %r6; ret;\n",
                        64);
    for (uint32_t i = 32; i < 64; i++) assert_int_equal(out[i], 4500 + 10 * (i - 32));
    kit_free(&k, out);
    kit_close(&k);
}

/* Two halves of the CTA use different barriers, by a register. */
static void test_barriers_by_register(void **state) {
    (void)state;
    kit k;
    kit_open(&k);
    uint32_t *out =
        run(&k,
            "shr.u32 %r1, %r0, 6; add.u32 %r2, %r1, 3; mul.wide.u32 %rd2, %r1, 4; add.u64 %rd2, %rd0, %rd2;\n"
            "red.global.add.u32 [%rd2+1024], 1; barrier.sync %r2, 64; ld.global.u32 %r3, [%rd2+1024];\n"
            "st.global.u32 [%rd1], %r3; ret;\n",
            128);
    for (uint32_t i = 0; i < 128; i++) assert_int_equal(out[i], 64);
    kit_free(&k, out);
    kit_close(&k);
}

static void test_reducing_barriers(void **state) {
    (void)state;
    kit k;
    kit_open(&k);
    uint32_t *out =
        run(&k,
            "setp.lt.u32 %p1, %r0, 37; bar.red.popc.u32 %r1, 0, %p1; bar.red.popc.u32 %r2, 1, 96, !%p1;\n"
            "bar.red.and.pred %p2, 0, %p1; bar.red.or.pred %p3, 0, %p1; setp.ge.u32 %p4, %r0, 0;\n"
            "bar.red.and.pred %p5, 2, %p4; bar.red.or.pred %p6, 3, !%p4;\n"
            "selp.u32 %r3, 1, 0, %p2; selp.u32 %r4, 2, 0, %p3; selp.u32 %r5, 4, 0, %p5; selp.u32 %r6, 8, 0, %p6;\n"
            "add.u32 %r3, %r3, %r4; add.u32 %r3, %r3, %r5; add.u32 %r3, %r3, %r6;\n"
            "mad.lo.u32 %r1, %r1, 1000, %r3; mad.lo.u32 %r1, %r2, 1000000, %r1; st.global.u32 [%rd1], %r1; ret;\n",
            96);
    for (uint32_t i = 0; i < 96; i++) assert_int_equal(out[i], 59 * 1000000 + 37 * 1000 + 2 + 4);
    kit_free(&k, out);
    kit_close(&k);
}

/* Each half of the warp shuffles within its own mask, in different branches. */
static void test_shuffles_in_branches(void **state) {
    (void)state;
    kit k;
    kit_open(&k);
    uint32_t *out = run(&k,
                        "setp.lt.u32 %p1, %r0, 16; @%p1 bra LOW;\n"
                        "shfl.sync.bfly.b32 %r2, %r0, 3, 31, 0xffff0000; bra JOIN;\n"
                        "LOW: shfl.sync.idx.b32 %r2, %r0, 7, 31, 0x0000ffff;\n"
                        "JOIN: shfl.sync.down.b32 %r3|%p2, %r2, 1, 31, -1; @!%p2 mov.u32 %r3, 99;\n"
                        "st.global.u32 [%rd1], %r3; ret;\n",
                        32);
    for (uint32_t i = 0; i < 32; i++) {
        uint32_t next = i + 1;
        assert_int_equal(out[i], next == 32 ? 99 : next < 16 ? 7 : next ^ 3);
    }
    kit_free(&k, out);
    kit_close(&k);
}

/* A mask made by match: every group reduces by itself, in one instruction. */
static void test_groups_of_one_instruction(void **state) {
    (void)state;
    kit k;
    kit_open(&k);
    uint32_t *out = run(&k,
                        "rem.u32 %r1, %r0, 5; match.any.sync.b32 %r2, %r1, -1;\n"
                        "redux.sync.add.u32 %r3, %r0, %r2; st.global.u32 [%rd1], %r3; ret;\n",
                        32);
    for (uint32_t i = 0; i < 32; i++) {
        uint32_t sum = 0;
        for (uint32_t j = i % 5; j < 32; j += 5) sum += j;
        assert_int_equal(out[i], sum);
    }
    kit_free(&k, out);
    kit_close(&k);
}

/* A .sync operation waits for lanes that are still in a loop. */
static void test_sync_waits(void **state) {
    (void)state;
    kit k;
    kit_open(&k);
    uint32_t *out = run(&k,
                        "mov.u32 %r1, 0;\n"
                        "LOOP: add.u32 %r1, %r1, 1; setp.lt.u32 %p1, %r1, %r0; @%p1 bra LOOP;\n"
                        "vote.sync.ballot.b32 %r2, %p1, -1; not.b32 %r2, %r2;\n"
                        "setp.ge.u32 %p2, %r0, 20; @%p2 exit;\n"
                        "setp.ne.u32 %p3, %r0, 3; vote.sync.all.pred %p4, %p3, -1; @%p4 mov.u32 %r2, 0;\n"
                        "bar.warp.sync 0x000fffff; st.global.u32 [%rd1], %r2; ret;\n",
                        32);
    for (uint32_t i = 0; i < 20; i++) assert_int_equal(out[i], 0xffffffffu);
    kit_free(&k, out);
    kit_close(&k);
}

/* bar.warp.sync from different places of the program joins them. */
static void test_warp_barrier_in_branches(void **state) {
    (void)state;
    kit k;
    kit_open(&k);
    uint32_t *out =
        run(&k,
            ".shared .align 4 .b8 s[128];\n"
            "mov.u32 %r1, s; shl.b32 %r2, %r0, 2; add.u32 %r1, %r1, %r2; xor.b32 %r3, %r2, 64; mov.u32 %r4, s;\n"
            "add.u32 %r3, %r3, %r4; setp.lt.u32 %p1, %r0, 16; @%p1 bra LOW;\n"
            "st.shared.u32 [%r1], %r0; bar.warp.sync -1; ld.shared.u32 %r5, [%r3]; bra END;\n"
            "LOW: add.u32 %r6, %r0, 100; st.shared.u32 [%r1], %r6; bar.warp.sync -1; ld.shared.u32 %r5, [%r3];\n"
            "END: st.global.u32 [%rd1], %r5; ret;\n",
            32);
    for (uint32_t i = 0; i < 32; i++) assert_int_equal(out[i], i < 16 ? i + 16 : i - 16 + 100);
    kit_free(&k, out);
    kit_close(&k);
}

/* Literals and registers give the same, for every mode, distance and clamp. */
static void test_shuffles_by_literals(void **state) {
    (void)state;
    static const char *const modes[] = {"up", "down", "bfly", "idx"};
    static const unsigned clamps[] = {0, 31, 0x1c1f, 0x1800, 0x101f, 7};
    kit k;
    kit_open(&k);
    for (unsigned m = 0; m < 4; m++)
        for (unsigned b = 0; b < 34; b += 3)
            for (unsigned c = 0; c < 6; c++) {
                char body[1024];
                snprintf(
                    body, sizeof(body),
                    "mad.lo.u32 %%r1, %%r0, 7, 5; mov.u32 %%r2, %u; mov.u32 %%r3, %u; mov.u32 %%r9, -1;\n"
                    "shfl.sync.%s.b32 %%r4|%%p1, %%r1, %u, %u, -1; shfl.sync.%s.b32 %%r5|%%p2, %%r1, %%r2, %%r3, %%r9;\n"
                    "xor.b32 %%r4, %%r4, %%r5; xor.pred %%p1, %%p1, %%p2; @%%p1 add.u32 %%r4, %%r4, 1000;\n"
                    "shfl.sync.%s.b32 %%r1, %%r1, %u, %u, -1; xor.b32 %%r1, %%r1, %%r5; add.u32 %%r4, %%r4, %%r1;\n"
                    "st.global.u32 [%%rd1], %%r4; ret;\n",
                    b, clamps[c], modes[m], b, clamps[c], modes[m], modes[m], b, clamps[c]);
                uint32_t *out = run(&k, body, 64);
                for (uint32_t i = 0; i < 64; i++) assert_int_equal(out[i], 0);
                kit_free(&k, out);
            }
    kit_close(&k);
}

/* Minimum and maximum of single precision, with NaN in one lane. */
static void test_float_reductions(void **state) {
    (void)state;
    kit k;
    kit_open(&k);
    uint32_t *out = run(&k,
                        ".reg .f32 %f<8>; cvt.rn.f32.u32 %f1, %r0; sub.f32 %f1, %f1, 0f41A00000;\n"
                        "setp.eq.u32 %p1, %r0, 9; @%p1 mov.f32 %f1, 0f7FC00000;\n"
                        "redux.sync.min.f32 %f2, %f1, -1; redux.sync.max.abs.f32 %f3, %f1, -1;\n"
                        "redux.sync.max.NaN.f32 %f4, %f1, -1; add.f32 %f2, %f2, %f3; mov.b32 %r5, %f4;\n"
                        "setp.ne.u32 %p2, %r5, 0x7fffffff; @%p2 mov.f32 %f2, 0f00000000; cvt.rzi.s32.f32 %r6, %f2;\n"
                        "add.s32 %r6, %r6, 5; st.global.u32 [%rd1], %r6; ret;\n",
                        32);
    for (uint32_t i = 0; i < 32; i++) assert_int_equal(out[i], 5); /* -20 + 20 + 5 */
    kit_free(&k, out);
    kit_close(&k);
}

/* The last warp has 8 lanes; a full mask means those that exist. */
static void test_partial_warp(void **state) {
    (void)state;
    kit k;
    kit_open(&k);
    uint32_t *out = run(&k,
                        "setp.ge.u32 %p1, %r0, 0; vote.sync.ballot.b32 %r1, %p1, -1; bar.sync 0;\n"
                        "elect.sync %r2|%p2, -1; @%p2 add.u32 %r1, %r1, 1; st.global.u32 [%rd1], %r1; ret;\n",
                        40);
    for (uint32_t i = 0; i < 40; i++)
        assert_int_equal(out[i], i == 0 ? 0 : i < 32 ? 0xffffffffu : i == 32 ? 0x100 : 0xff);
    kit_free(&k, out);
    kit_close(&k);
}

/* Runs a module that must fault, and gives what the report says. */
static const char *fault_of(kit *k, kit_launch launch) {
    assert_int_equal(kit_launch_run(k, launch), ITS_SIM_FAULT);
    its_diag_clear(k->ctx);
    its_sim_fault_report(k->ctx, its_sim_grid_fault(k->grid));
    return kit_message(k);
}

#define WORKSPACE "mov.u32 %r1, %envreg1; mov.u32 %r2, %envreg2; mov.b64 %rd2, {%r2, %r1};\n"

/* The first thread of each CTA arrives at the grid's barrier, waits for the others, and adds up what they left. */
static void test_barrier_of_a_grid(void **state) {
    (void)state;
    kit k;
    kit_open(&k);
    uint32_t *out = kit_alloc(&k, 4 * 1024);
    kit_load(&k,
             ".visible .entry f(.param .u64 out)\n{\n" REGISTERS WORKSPACE
             "ld.param.u64 %rd0, [out]; mov.u32 %r0, %ctaid.x; mul.wide.u32 %rd1, %r0, 4; add.u64 %rd1, %rd0, %rd1;\n"
             "add.u32 %r3, %r0, 1000; st.global.u32 [%rd1], %r3; fence.acq_rel.gpu; atom.add.u32 %r4, [%rd2+4], 1;\n"
             "WAIT: ld.acquire.gpu.u32 %r5, [%rd2+4]; setp.lt.u32 %p0, %r5, 7; @%p0 bra WAIT;\n"
             "mov.u32 %r6, 0; mov.u32 %r7, 0;\n"
             "SUM: ld.global.u32 %r8, [%rd0]; add.u32 %r6, %r6, %r8; add.u64 %rd0, %rd0, 4; add.u32 %r7, %r7, 1;\n"
             "setp.lt.u32 %p1, %r7, 7; @%p1 bra SUM; st.global.u32 [%rd1+512], %r6; ret;\n}\n");
    for (int round = 0; round < 2; round++) { /* each launch has a barrier of its own */
        kit_run(&k, (kit_launch){"f", 7, 1, 0, {kit_address(out)}});
        for (uint32_t i = 0; i < 7; i++) assert_int_equal(out[128 + i], 7021);
        memset(out, 0, 4096);
    }
    kit_free(&k, out);
    kit_load(&k, ".visible .entry f()\n{\n" REGISTERS WORKSPACE "ld.u32 %r0, [%rd2+8]; ret;\n}\n");
    assert_non_null(strstr(fault_of(&k, (kit_launch){"f", 1, 1, 0, {0}}), "reads 4 bytes at address"));
    assert_non_null(strstr(kit_message(&k), "right past the end of a 8-byte allocation of device memory"));
    kit_close(&k);
}

/* CUDA's own shared memory is not that of the module, and has an end. */
static void test_reserved_shared_memory(void **state) {
    (void)state;
    kit k;
    kit_open(&k);
    uint32_t *out = run(&k,
                        ".shared .align 4 .b8 s[100];\n"
                        "mov.u32 %r1, %reserved_smem_offset_1; shl.b32 %r2, %r0, 2; add.u32 %r1, %r1, %r2;\n"
                        "mov.u32 %r3, s; st.shared.u32 [%r3], 5; st.shared.u32 [%r1], %r0; xor.b32 %r4, %r2, 4;\n"
                        "bar.sync 0; mov.u32 %r1, %reserved_smem_offset_1; add.u32 %r1, %r1, %r4;\n"
                        "ld.shared.u32 %r5, [%r1]; ld.shared.u32 %r6, [%r3]; mad.lo.u32 %r5, %r6, 100, %r5;\n"
                        "st.global.u32 [%rd1], %r5; ret;\n",
                        72);
    for (uint32_t i = 0; i < 72; i++) assert_int_equal(out[i], 500 + (i ^ 1));
    kit_free(&k, out);
    kit_load(&k, ".visible .entry f()\n{\n" REGISTERS
                 "mov.u32 %r1, %reserved_smem_offset_1; st.shared.u32 [%r1+288], 1; ret;\n}\n"
                 ".visible .entry g()\n{\n" REGISTERS "mov.u32 %r1, %reserved_smem_offset_0; ret;\n}\n");
    assert_non_null(strstr(fault_of(&k, (kit_launch){"f", 1, 1, 0, {0}}), "writes 4 bytes at shared address"));
    its_diag_clear(k.ctx);
    const its_sim_entry *entry;
    assert_int_equal(its_sim_program_entry(k.ctx, k.program, "g", &entry), ITS_ERR_INPUT);
    assert_string_equal(kit_message(&k), "the simulator doesn't have the special register '%reserved_smem_offset_0'");
    kit_close(&k);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_reduction),
        cmocka_unit_test(test_barrier_without_the_exited),
        cmocka_unit_test(test_exit_completes_a_barrier),
        cmocka_unit_test(test_named_barriers),
        cmocka_unit_test(test_barriers_by_register),
        cmocka_unit_test(test_reducing_barriers),
        cmocka_unit_test(test_shuffles_in_branches),
        cmocka_unit_test(test_groups_of_one_instruction),
        cmocka_unit_test(test_sync_waits),
        cmocka_unit_test(test_warp_barrier_in_branches),
        cmocka_unit_test(test_partial_warp),
        cmocka_unit_test(test_shuffles_by_literals),
        cmocka_unit_test(test_float_reductions),
        cmocka_unit_test(test_barrier_of_a_grid),
        cmocka_unit_test(test_reserved_shared_memory),
    };
    return cmocka_run_group_tests_name("sim/sync", tests, NULL, NULL);
}
