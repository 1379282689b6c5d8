/* Clusters of CTAs and their shared memory; memory from alloca. */
#include "kit.h"

#define ENTRY(directives, body)                                                                                  \
    ".visible .entry f(.param .u64 out)\n" directives                                                            \
    "{\n.reg .pred %p<4>; .reg .b32 %r<16>; .reg .b64 %rd<16>; .shared .align 8 .b8 s[256];\n"                   \
    "ld.param.u64 %rd0, [out]; mov.u32 %r0, %tid.x; mul.wide.u32 %rd1, %r0, 4; add.u64 %rd1, %rd0, %rd1;\n" body \
    "\nret;\n}\n"
#define KERNEL(body) ENTRY("", body)

typedef void check(const uint32_t *out, uint32_t threads);

static void expect(const char *body, uint32_t threads, check *values) {
    kit k;
    kit_open(&k);
    uint32_t *out = kit_alloc(&k, 4096);
    kit_load(&k, body);
    kit_run(&k, (kit_launch){"f", 1, threads, 0, {kit_address(out)}});
    values(out, threads);
    kit_free(&k, out);
    kit_close(&k);
}

static void expect_fault(const char *body, uint32_t threads, const char *message) {
    kit k;
    kit_open(&k);
    uint32_t *out = kit_alloc(&k, 4096);
    kit_load(&k, body);
    assert_int_equal(kit_launch_run(&k, (kit_launch){"f", 1, threads, 0, {kit_address(out)}}), ITS_SIM_FAULT);
    its_sim_fault_report(k.ctx, its_sim_grid_fault(k.grid));
    if (!strstr(kit_message(&k), message)) fail_msg("reported: %s\nexpected: %s", kit_message(&k), message);
    kit_free(&k, out);
    kit_close(&k);
}

/* -- clusters ------------------------------------------------------------------------------------------------------ */

static void is_other_half(const uint32_t *out, uint32_t threads) {
    for (uint32_t i = 0; i < threads; i++) assert_int_equal(out[i], (i + threads / 2) % threads + 7);
}

/* What one warp stores before it arrives is there for others that have waited. */
static void test_cluster_barrier(void **state) {
    (void)state;
    expect(KERNEL("mov.u32 %r1, s; mad.lo.u32 %r2, %r0, 4, %r1; add.u32 %r3, %r0, 7;\n"
                  "mapa.shared::cluster.u32 %r4, %r2, 0; st.shared::cluster.u32 [%r4], %r3;\n"
                  "barrier.cluster.arrive.release.aligned; setp.lt.u32 %p0, %r0, 32; @%p0 nanosleep.u32 1000;\n"
                  "barrier.cluster.wait.acquire.aligned;\n"
                  "add.u32 %r5, %r0, 32; and.b32 %r5, %r5, 63; mad.lo.u32 %r6, %r5, 4, %r1;\n"
                  "ld.shared::cluster.u32 %r7, [%r6]; st.global.u32 [%rd1], %r7;"),
           64, is_other_half);
    /* twice, with threads that have left */
    expect(KERNEL("setp.ge.u32 %p1, %r0, 64; @%p1 exit;\n"
                  "barrier.cluster.arrive; barrier.cluster.wait;\n"
                  "mov.u32 %r1, s; mad.lo.u32 %r2, %r0, 4, %r1; add.u32 %r3, %r0, 7; st.shared.u32 [%r2], %r3;\n"
                  "barrier.cluster.arrive.relaxed; barrier.cluster.wait;\n"
                  "add.u32 %r5, %r0, 32; and.b32 %r5, %r5, 63; mad.lo.u32 %r6, %r5, 4, %r1;\n"
                  "ld.shared.u32 %r7, [%r6]; st.global.u32 [%rd1], %r7;"),
           64, is_other_half);
}

static void test_cluster_barrier_misused(void **state) {
    (void)state;
    expect_fault(KERNEL("barrier.cluster.wait;"), 32, "barrier.cluster: a thread waits and has not arrived");
    expect_fault(KERNEL("barrier.cluster.arrive; barrier.cluster.arrive;"), 64,
                 "barrier.cluster: a thread arrives again and has not waited");
    kit k;
    kit_open(&k);
    uint32_t *out = kit_alloc(&k, 4096);
    kit_load(&k, KERNEL("setp.lt.u32 %p0, %r0, 32; @!%p0 bra WAIT; bar.sync 1, 64;\n"
                        "WAIT: barrier.cluster.arrive; barrier.cluster.wait;"));
    assert_int_equal(kit_launch_run(&k, (kit_launch){"f", 1, 64, 0, {kit_address(out)}}), ITS_SIM_BLOCKED);
    kit_free(&k, out);
    kit_close(&k);
}

static void are_ones(const uint32_t *out, uint32_t threads) {
    for (uint32_t i = 0; i < threads; i++) assert_int_equal(out[i], 1);
}

static void test_ranks(void **state) {
    (void)state;
    expect(KERNEL("mov.u32 %r1, s; getctarank.shared::cluster.u32 %r2, %r1; cvt.u64.u32 %rd2, %r1;\n"
                  "cvta.shared.u64 %rd2, %rd2; mapa.u64 %rd3, %rd2, %r2; getctarank.u64 %r3, %rd3;\n"
                  "mov.u32 %r4, %cluster_ctarank; mov.u32 %r5, %cluster_nctarank; mov.u32 %r6, %cluster_nctaid.x;\n"
                  "add.u32 %r7, %r2, %r3; add.u32 %r7, %r7, %r4; setp.eq.u32 %p0, %r7, 0;\n"
                  "setp.eq.and.u32 %p0, %r5, 1, %p0; setp.eq.and.u32 %p0, %r6, 1, %p0;\n"
                  "setp.eq.and.u64 %p0, %rd2, %rd3, %p0; selp.u32 %r8, 1, 0, %p0; st.global.u32 [%rd1], %r8;"),
           32, are_ones);
    expect_fault(KERNEL("mov.u32 %r1, s; mapa.shared::cluster.u32 %r2, %r1, 1;"), 32,
                 "asks for the shared memory of CTA 1 of a cluster that has 1");
}

/* Runs `grid` CTAs of 32 threads; out[i] is what thread i of the grid stores. */
static its_sim_progress run_grid(kit *k, const char *text, uint32_t grid, uint32_t *out) {
    kit_load(k, text);
    its_sim_progress progress = kit_launch_run(k, (kit_launch){"f", grid, 32, 0, {kit_address(out)}});
    if (progress == ITS_SIM_FAULT) its_sim_fault_report(k->ctx, its_sim_grid_fault(k->grid));
    return progress;
}

static void run_well(kit *k, const char *text, uint32_t grid, uint32_t *out) {
    its_sim_progress progress = run_grid(k, text, grid, out);
    if (progress != ITS_SIM_DONE) kit_show(k);
    assert_int_equal(progress, ITS_SIM_DONE);
}

#define CLUSTER(n, body)                                                                                              \
    ENTRY(                                                                                                            \
        ".reqnctapercluster " #n "\n",                                                                                \
        "mov.u32 %r1, %ctaid.x; mad.lo.u32 %r1, %r1, 32, %r0; mul.wide.u32 %rd1, %r1, 4; add.u64 %rd1, %rd0, %rd1;\n" \
        "mov.u32 %r2, s; mad.lo.u32 %r3, %r0, 4, %r2; mov.u32 %r4, %cluster_ctarank;\n" body)

/* Each thread reads what its neighbour in the next CTA has stored, and adds to what is in the one after that. */
static void test_distributed_shared_memory(void **state) {
    (void)state;
    kit k;
    kit_open(&k);
    uint32_t *out = kit_alloc(&k, 16384);
    run_well(
        &k,
        CLUSTER(
            4,
            "st.shared.u32 [%r3], %r1; add.u32 %r5, %r4, 1; and.b32 %r5, %r5, 3; add.u32 %r6, %r4, 2; and.b32 %r6, %r6, 3;\n"
            "barrier.cluster.arrive; barrier.cluster.wait;\n"
            "mapa.shared::cluster.u32 %r7, %r3, %r5; ld.shared::cluster.u32 %r8, [%r7];\n"
            "cvt.u64.u32 %rd2, %r3; cvta.shared.u64 %rd2, %rd2; mapa.u64 %rd3, %rd2, %r6; getctarank.u64 %r10, %rd3;\n"
            "getctarank.shared::cluster.u32 %r11, %r7; getctarank.shared::cluster.u32 %r12, %r3;\n"
            "barrier.cluster.arrive; barrier.cluster.wait;\n"
            "atom.add.u32 %r9, [%rd3], 1000; barrier.cluster.arrive; barrier.cluster.wait;\n"
            "ld.shared.u32 %r9, [%r3]; sub.u32 %r9, %r9, %r1; add.u32 %r8, %r8, %r9;\n"
            "setp.eq.u32 %p0, %r10, %r6; setp.eq.and.u32 %p0, %r11, %r5, %p0; setp.eq.and.u32 %p0, %r12, %r4, %p0;\n"
            "selp.u32 %r8, %r8, 7777, %p0; st.global.u32 [%rd1], %r8;"),
        24, out);
    for (uint32_t i = 0; i < 24 * 32; i++) {
        uint32_t cta = i / 32, next = cta / 4 * 4 + (cta + 1) % 4;
        assert_int_equal(out[i], next * 32 + i % 32 + 1000);
    }
    kit_free(&k, out);
    kit_close(&k);
}

/* %clusterid and the rest, in three dimensions: each CTA says where it thinks that it is. */
static void test_places(void **state) {
    (void)state;
    kit k;
    kit_open(&k);
    uint32_t *out = kit_alloc(&k, 16384);
    kit_load(
        &k,
        ENTRY(
            ".reqnctapercluster 2, 3, 1\n",
            "mov.u32 %r1, %ctaid.x; mov.u32 %r2, %ctaid.y; mov.u32 %r3, %nctaid.x; mad.lo.u32 %r4, %r2, %r3, %r1;\n"
            "mul.wide.u32 %rd1, %r4, 4; add.u64 %rd1, %rd0, %rd1; mov.u32 %r5, %clusterid.x; mov.u32 %r6, %clusterid.y;\n"
            "mov.u32 %r7, %cluster_ctaid.x; mov.u32 %r8, %cluster_ctaid.y; mov.u32 %r9, %cluster_ctarank;\n"
            "mov.u32 %r10, %nclusterid.y; mov.u32 %r11, %cluster_nctaid.y; mov.u32 %r12, %cluster_nctarank;\n"
            "mad.lo.u32 %r13, %r5, 10, %r6; mad.lo.u32 %r13, %r13, 10, %r7; mad.lo.u32 %r13, %r13, 10, %r8;\n"
            "mad.lo.u32 %r13, %r13, 10, %r9; mad.lo.u32 %r13, %r13, 10, %r10; mad.lo.u32 %r13, %r13, 10, %r11;\n"
            "mad.lo.u32 %r13, %r13, 10, %r12; st.global.u32 [%rd1], %r13;"));
    const its_sim_entry *entry;
    assert_int_equal(its_sim_program_entry(k.ctx, k.program, "f", &entry), ITS_OK);
    uint64_t address = kit_address(out);
    its_sim_launch launch = {.grid = {6, 9, 1}, .block = {1, 1, 1}, .params = &address};
    assert_int_equal(its_sim_grid_new(k.ctx, entry, &launch, &k.grid), ITS_OK);
    assert_int_equal(kit_finish(&k, 1000, 100), ITS_SIM_DONE);
    for (uint32_t y = 0; y < 9; y++)
        for (uint32_t x = 0; x < 6; x++) {
            uint32_t rank = y % 3 * 2 + x % 2;
            assert_int_equal(out[y * 6 + x], x / 2 * 10000000 + y / 3 * 1000000 + x % 2 * 100000 + y % 3 * 10000 +
                                                 rank * 1000 + 3 * 100 + 3 * 10 + 6);
        }
    kit_free(&k, out);
    kit_close(&k);
}

/* Threads of one CTA arrive at the mbarrier of the other, which waits for them. */
static void test_remote_mbarriers(void **state) {
    (void)state;
    kit k;
    kit_open(&k);
    uint32_t *out = kit_alloc(&k, 4096);
    run_well(
        &k,
        CLUSTER(
            2, "setp.eq.u32 %p0, %r0, 0; @%p0 mbarrier.init.shared::cta.b64 [%r2], 32;\n"
               "fence.mbarrier_init.release.cluster; barrier.cluster.arrive; barrier.cluster.wait;\n"
               "xor.b32 %r5, %r4, 1; add.u32 %r6, %r2, 128; mad.lo.u32 %r6, %r0, 4, %r6;\n"
               "mapa.shared::cluster.u32 %r7, %r6, %r5; add.u32 %r8, %r1, 100; st.shared::cluster.u32 [%r7], %r8;\n"
               "mapa.shared::cluster.u32 %r9, %r2, %r5; mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r9];\n"
               "mov.u32 %r10, 0; WAIT: mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 %p1, [%r2], %r10;\n"
               "@!%p1 bra WAIT; ld.shared.u32 %r11, [%r6]; st.global.u32 [%rd1], %r11;"),
        2, out);
    for (uint32_t i = 0; i < 64; i++) assert_int_equal(out[i], (i + 32) % 64 + 100);
    kit_free(&k, out);
    kit_close(&k);
}

/* Stores to the other CTA, of one word and of four, and additions: there when its mbarrier has seen all bytes. */
static void test_asynchronous_stores(void **state) {
    (void)state;
    kit k;
    kit_open(&k);
    uint32_t *out = kit_alloc(&k, 4096);
    run_well(
        &k,
        ".shared .align 16 .b8 t[512];\n" CLUSTER(
            2,
            "setp.eq.u32 %p0, %r0, 0; @%p0 mbarrier.init.shared::cta.b64 [%r2], 1; add.u32 %r6, %r2, 64;\n"
            "@%p0 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r2], 644; mad.lo.u32 %r6, %r0, 4, %r6; mov.u32 %r11, t;\n"
            "mov.u32 %r12, 5; st.shared.u32 [%r6], %r12; mad.lo.u32 %r13, %r0, 16, %r11;\n"
            "fence.mbarrier_init.release.cluster; barrier.cluster.arrive; barrier.cluster.wait;\n"
            "xor.b32 %r5, %r4, 1; mapa.shared::cluster.u32 %r7, %r13, %r5; mapa.shared::cluster.u32 %r9, %r2, %r5;\n"
            "mapa.shared::cluster.u32 %r14, %r6, %r5; add.u32 %r8, %r1, 100;\n"
            "st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.v4.b32 [%r7], {%r8, %r1, %r0, %r5}, [%r9];\n"
            "red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.add.u32 [%r14], %r1, [%r9];\n"
            "@%p0 st.async.shared::cluster.mbarrier::complete_tx::bytes.u32 [%r14+128], %r1, [%r9];\n"
            "ld.shared.u32 %r15, [%r6];\n"
            "mov.u32 %r10, 0; WAIT: mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 %p1, [%r2], %r10;\n"
            "@!%p1 bra WAIT; ld.shared.v4.u32 {%r3, %r7, %r8, %r9}, [%r13]; add.u32 %r3, %r3, %r7;\n"
            "add.u32 %r3, %r3, %r8; add.u32 %r3, %r3, %r9; ld.shared.u32 %r7, [%r6]; mad.lo.u32 %r3, %r7, 1000, %r3;\n"
            "mad.lo.u32 %r3, %r15, 10000000, %r3; st.global.u32 [%rd1], %r3;"),
        2, out);
    for (uint32_t i = 0; i < 64; i++) { /* 5: nothing is there before the wait */
        uint32_t from = (i + 32) % 64;
        assert_int_equal(out[i], 50000000 + (from + 5) * 1000 + from + 100 + from + from % 32 + i / 32);
    }
    kit_free(&k, out);
    kit_close(&k);
}

static void expect_cluster_fault(const char *text, const char *message) {
    kit k;
    kit_open(&k);
    uint32_t *out = kit_alloc(&k, 4096);
    assert_int_equal(run_grid(&k, text, 2, out), ITS_SIM_FAULT);
    if (!strstr(kit_message(&k), message)) fail_msg("reported: %s\nexpected: %s", kit_message(&k), message);
    kit_free(&k, out);
    kit_close(&k);
}

static void test_clusters_misused(void **state) {
    (void)state;
    kit k;
    kit_open(&k);
    uint32_t *out = kit_alloc(&k, 4096);
    kit_load(&k, CLUSTER(2, ""));
    kit_launch l = {"f", 3, 32, 0, {0}};
    assert_int_equal(kit_make_grid(&k, &l), ITS_ERR_INPUT);
    assert_string_equal(kit_message(&k),
                        "kernel 'f' can't be launched: a grid of 3 x 1 x 1 CTAs is no multiple of clusters "
                        "of 2 x 1 x 1");
    kit_load(&k, CLUSTER(32, ""));
    l.grid = 32;
    assert_int_equal(kit_make_grid(&k, &l), ITS_ERR_INPUT);
    assert_string_equal(kit_message(&k), "kernel 'f' can't be launched: its clusters have more than 16 CTAs, or none");
    /* one of two CTAs never comes */
    assert_int_equal(run_grid(&k,
                              CLUSTER(2, "setp.eq.u32 %p0, %r4, 0; @%p0 bra WAIT; bar.sync 1, 64;\n"
                                         "WAIT: barrier.cluster.arrive; barrier.cluster.wait;"),
                              2, out),
                     ITS_SIM_FAULT);
    kit_free(&k, out);
    kit_close(&k);
    expect_cluster_fault(CLUSTER(2, "mapa.shared::cluster.u32 %r7, %r3, 2;"),
                         "asks for the shared memory of CTA 2 of a cluster that has 2");
    expect_cluster_fault(CLUSTER(2, "mapa.shared::cluster.u32 %r7, %r3, 1; st.shared::cluster.u32 [%r7+256], 1;"),
                         "outside of the CTA's");
    expect_cluster_fault(CLUSTER(2, "st.async.shared::cluster.mbarrier::complete_tx::bytes.u32 [%r3+4], %r1, [%r2];"),
                         "uses an mbarrier at shared address");
    expect_cluster_fault(CLUSTER(2, "or.b32 %r7, %r3, 0x3000000; st.shared::cluster.u32 [%r7], 1;"),
                         "outside of the CTA's");
    expect_cluster_fault(
        CLUSTER(2, "mapa.shared::cluster.u32 %r9, %r2, 1; mbarrier.arrive.shared::cluster.b64 _, [%r9];"),
        "uses an mbarrier at shared address");
    expect_cluster_fault(CLUSTER(2, "mapa.shared::cluster.u32 %r9, %r2, 1; mbarrier.init.shared.b64 [%r9], 1;"),
                         "initialises an mbarrier that is not in its own shared memory");
}

/* -- the stack ----------------------------------------------------------------------------------------------------- */

#define FUNCTION                                                                                                       \
    ".func (.param .b32 r) sum(.param .b32 n)\n{ .reg .b32 %x<8>; .reg .b64 %a<4>; .reg .pred %q; .local .b8 l[16];\n" \
    "ld.param.u32 %x0, [n]; mul.lo.u32 %x1, %x0, 4; cvt.u64.u32 %a0, %x1; alloca.u64 %a1, %a0; mov.u32 %x2, 0;\n"      \
    "mov.u64 %a2, %a1; FILL: st.local.u32 [%a2], %x2; add.u64 %a2, %a2, 4; add.u32 %x2, %x2, 1;\n"                     \
    "setp.lt.u32 %q, %x2, %x0; @%q bra FILL; mov.u32 %x2, 0; mov.u32 %x3, 0;\n"                                        \
    "mov.u64 %a2, %a1; ADD: ld.local.u32 %x4, [%a2]; add.u32 %x3, %x3, %x4; add.u64 %a2, %a2, 4;\n"                    \
    "add.u32 %x2, %x2, 1; setp.lt.u32 %q, %x2, %x0; @%q bra ADD; st.param.b32 [r], %x3; ret; }\n"
#define CALL "{ .param .b32 a; .param .b32 b; st.param.b32 [a], %r1; call (b), sum, (a); ld.param.b32 %r2, [b]; }\n"

static void are_sums(const uint32_t *out, uint32_t threads) {
    for (uint32_t i = 0; i < threads; i++) assert_int_equal(out[i], (i + 1) * i / 2);
}

/*
 * Each thread takes what it needs, and it is given back when the function returns: else a million calls would not do.
 */
static void test_alloca(void **state) {
    (void)state;
    expect(FUNCTION KERNEL("add.u32 %r1, %r0, 1; mov.u32 %r3, 0; LOOP: " CALL
                           "add.u32 %r3, %r3, 1; setp.lt.u32 %p0, %r3, 600; @%p0 bra LOOP; st.global.u32 [%rd1], %r2;"),
           48, are_sums);
}

static void test_stack_pointer(void **state) {
    (void)state;
    expect(KERNEL("stacksave.u64 %rd2; alloca.u64 %rd3, 100; alloca.u64 %rd4, 64, 64; and.b64 %rd5, %rd4, 63;\n"
                  "st.local.u32 [%rd3+96], %r0; st.local.u32 [%rd4+60], 5; ld.local.u32 %r1, [%rd3+96];\n"
                  "stackrestore.u64 %rd2; stacksave.u64 %rd6; setp.eq.u64 %p0, %rd6, %rd2;\n"
                  "setp.eq.and.u64 %p0, %rd5, 0, %p0; setp.eq.and.u32 %p0, %r0, %r1, %p0; selp.u32 %r8, 1, 0, %p0;\n"
                  "st.global.u32 [%rd1], %r8;"),
           32, are_ones);
}

static void test_stack_misused(void **state) {
    (void)state;
    expect_fault(KERNEL("alloca.u64 %rd3, 100000;"), 32, "allocates 100000 bytes of its stack, which has 65");
    expect_fault(KERNEL("stacksave.u64 %rd2; alloca.u64 %rd3, 16; st.local.u32 [%rd3+16], 1;"), 32,
                 "outside of the thread's local memory");
    expect_fault(KERNEL("alloca.u64 %rd3, 64; stackrestore.u64 %rd1;"), 32, "which is not what it was before");
    expect_fault(KERNEL("stacksave.u64 %rd2; alloca.u64 %rd3, 64; stackrestore.u64 %rd2; st.local.u32 [%rd3], 1;"), 32,
                 "outside of the thread's local memory");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cluster_barrier),
        cmocka_unit_test(test_cluster_barrier_misused),
        cmocka_unit_test(test_ranks),
        cmocka_unit_test(test_distributed_shared_memory),
        cmocka_unit_test(test_places),
        cmocka_unit_test(test_remote_mbarriers),
        cmocka_unit_test(test_asynchronous_stores),
        cmocka_unit_test(test_clusters_misused),
        cmocka_unit_test(test_alloca),
        cmocka_unit_test(test_stack_pointer),
        cmocka_unit_test(test_stack_misused),
    };
    return cmocka_run_group_tests_name("sim/cluster", tests, NULL, NULL);
}
