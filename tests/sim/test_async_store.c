/* Bulk copies to global memory: made no earlier than they must be, and made at last. */
#include "kit.h"

#define FRAME                                                                                       \
    ".visible .entry f(.param .u64 out)\n{ .reg .b32 %r<12>; .reg .b64 %rd<4>; .reg .pred %p<4>;\n" \
    ".shared .align 128 .b8 s[64]; ld.param.u64 %rd0, [out]; mov.u32 %r0, s; mov.u32 %r1, 1;\n"     \
    "mov.u32 %r2, 2; st.shared.v4.b32 [%r0], {%r1, %r1, %r1, %r1};\n"                               \
    "st.shared.v4.b32 [%r0+16], {%r1, %r1, %r1, %r1};\n"
#define SEND(at) "cp.async.bulk.global.shared::cta.bulk_group [%rd0+" at "], [%r0+" at "], 16;\n"
#define COMMIT "cp.async.bulk.commit_group;\n"
#define FILL "st.shared.v4.b32 [%r0], {%r2, %r2, %r2, %r2}; st.shared.v4.b32 [%r0+16], {%r2, %r2, %r2, %r2};\n"
#define END "ret; }\n"

/* What one thread sends in two parts of 16 bytes. */
static void expect_sent(const char *body, int first, int second) {
    kit k;
    char text[2048];
    kit_open(&k);
    int *out = kit_alloc(&k, 64);
    snprintf(text, sizeof text, "%s%s%s", FRAME, body, END);
    kit_load(&k, text);
    kit_run(&k, (kit_launch){"f", 1, 1, 0, {kit_address(out)}});
    for (unsigned i = 0; i < 4; i++)
        if (out[i] != first || out[4 + i] != second)
            fail_msg("%s: sent %d and %d, not %d and %d", body, out[i], out[4 + i], first, second);
    kit_free(&k, out);
    kit_close(&k);
}

static void test_waits_let_the_source_be_filled_again(void **state) {
    (void)state;
    expect_sent(SEND("0") SEND("16") COMMIT "cp.async.bulk.wait_group.read 0;\n" FILL, 1, 1);
    expect_sent(SEND("0") SEND("16") COMMIT "cp.async.bulk.wait_group 0;\n" FILL, 1, 1);
    expect_sent(SEND("0") COMMIT SEND("16") COMMIT "cp.async.bulk.wait_group.read 0;\n" FILL, 1, 1);
}

static void test_a_missing_wait_sends_what_came_later(void **state) {
    (void)state;
    expect_sent(SEND("0") SEND("16") COMMIT FILL, 2, 2);
    expect_sent(SEND("0") SEND("16") FILL, 2, 2);
    expect_sent(SEND("0") COMMIT SEND("16") COMMIT "cp.async.bulk.wait_group.read 1;\n" FILL, 1, 2);
    expect_sent(SEND("0") COMMIT SEND("16") COMMIT "cp.async.bulk.wait_group 2;\n" FILL, 2, 2);
    expect_sent(SEND("0") SEND("16") "cp.async.bulk.wait_group.read 0;\n" FILL COMMIT, 2, 2); /* in no group yet */
}

/* Nobody waits for the group, but somebody for what it writes. */
static void test_copies_are_made_at_last(void **state) {
    (void)state;
    expect_sent(SEND("0") COMMIT
                "LOOP: ld.volatile.global.u32 %r3, [%rd0+12]; setp.ne.u32 %p0, %r3, 1; @%p0 bra LOOP;\n",
                1, 0);
    expect_sent(SEND("0") COMMIT
                "LOOP: mov.u64 %rd1, %clock64; ld.volatile.global.u32 %r3, [%rd0+12]; setp.ne.u32 %p0, %r3, 1;\n"
                "@%p0 bra LOOP;\n",
                1, 0);
    expect_sent(SEND("0") COMMIT, 1, 0);
}

/* Those that stay go on; those that end send what they have begun. */
static void test_lanes_end_one_by_one(void **state) {
    (void)state;
    kit k;
    kit_open(&k);
    int *out = kit_alloc(&k, 32 * 16);
    kit_load(&k,
             FRAME "mov.u32 %r4, %tid.x; mul.lo.u32 %r5, %r4, 16; cvt.u64.u32 %rd1, %r5; add.u64 %rd1, %rd0, %rd1;\n"
                   "setp.ge.u32 %p0, %r4, 16; bar.sync 0;\n"
                   "cp.async.bulk.global.shared::cta.bulk_group [%rd1], [%r0], 16;\n" COMMIT "@%p0 ret;\n" FILL END);
    kit_run(&k, (kit_launch){"f", 1, 32, 0, {kit_address(out)}});
    for (unsigned i = 0; i < 128; i++) assert_int_equal(out[i], i < 64 ? 2 : 1);
    kit_free(&k, out);
    kit_close(&k);
}

static void test_reductions_add_what_is_there_then(void **state) {
    (void)state;
    kit k;
    kit_open(&k);
    int *out = kit_alloc(&k, 64);
    for (unsigned i = 0; i < 8; i++) out[i] = 40;
#define ADD(at) "cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32 [%rd0+" at "], [%r0+" at "], 16;\n"
    kit_load(&k, FRAME ADD("0") COMMIT ADD("16") COMMIT "cp.async.bulk.wait_group.read 1;\n" FILL END);
    kit_run(&k, (kit_launch){"f", 1, 1, 0, {kit_address(out)}});
    for (unsigned i = 0; i < 8; i++) assert_int_equal(out[i], i < 4 ? 41 : 42);
    kit_free(&k, out);
    kit_close(&k);
}

static void test_a_destination_that_was_freed(void **state) {
    (void)state;
    kit k;
    kit_open(&k);
    kit_load(
        &k,
        ".extern .func (.param .b64 r) malloc(.param .b64 n);\n.extern .func free(.param .b64 p);\n" FRAME
        "{ .param .b64 a; .param .b64 q; st.param.b64 [a], 64; call (q), malloc, (a); ld.param.b64 %rd0, [q]; }\n" SEND(
            "0") COMMIT "{ .param .b64 a; st.param.b64 [a], %rd0; call free, (a); }\n"
                        "cp.async.bulk.wait_group 0;\n" END);
    assert_int_equal(kit_launch_run(&k, (kit_launch){"f", 1, 1, 0, {0}}), ITS_SIM_FAULT);
    its_sim_fault_report(k.ctx, its_sim_grid_fault(k.grid));
    if (!strstr(kit_message(&k), "writes 16 bytes at address")) fail_msg("reported: %s", kit_message(&k));
    kit_close(&k);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_waits_let_the_source_be_filled_again),
        cmocka_unit_test(test_a_missing_wait_sends_what_came_later),
        cmocka_unit_test(test_copies_are_made_at_last),
        cmocka_unit_test(test_lanes_end_one_by_one),
        cmocka_unit_test(test_reductions_add_what_is_there_then),
        cmocka_unit_test(test_a_destination_that_was_freed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
