/* Whole kernels: parameters, memory, control flow, calls, variables. */
#include "kit.h"

static void test_vector_add(void **state) {
    (void)state;
    kit k;
    kit_open(&k);
    kit_load(&k, ".visible .entry add(.param .u64 a, .param .u64 b, .param .u64 c, .param .u32 n)\n"
                 "{\n"
                 ".reg .pred %p<2>; .reg .b32 %r<6>; .reg .b64 %rd<8>; .reg .f32 %f<4>;\n"
                 "ld.param.u64 %rd1, [a]; ld.param.u64 %rd2, [b]; ld.param.u64 %rd3, [c]; ld.param.u32 %r1, [n];\n"
                 "mov.u32 %r2, %ctaid.x; mov.u32 %r3, %ntid.x; mov.u32 %r4, %tid.x;\n"
                 "mad.lo.s32 %r5, %r2, %r3, %r4;\n"
                 "setp.ge.s32 %p1, %r5, %r1;\n"
                 "@%p1 bra DONE;\n"
                 "mul.wide.s32 %rd4, %r5, 4;\n"
                 "add.s64 %rd5, %rd1, %rd4; add.s64 %rd6, %rd2, %rd4; add.s64 %rd7, %rd3, %rd4;\n"
                 "ld.global.f32 %f1, [%rd5]; ld.global.f32 %f2, [%rd6];\n"
                 "add.f32 %f3, %f1, %f2;\n"
                 "st.global.f32 [%rd7], %f3;\n"
                 "DONE: ret;\n"
                 "}\n");
    enum { N = 1000 };
    float *a = kit_alloc(&k, N * 4), *b = kit_alloc(&k, N * 4), *c = kit_alloc(&k, N * 4);
    for (int i = 0; i < N; i++) {
        a[i] = (float)i * 0.5f;
        b[i] = (float)(N - i);
    }
    kit_run(&k, (kit_launch){"add", 8, 128, 0, {kit_address(a), kit_address(b), kit_address(c), N}});
    for (int i = 0; i < N; i++) assert_true(c[i] == a[i] + b[i]);
    kit_free(&k, a);
    kit_free(&k, b);
    kit_free(&k, c);
    kit_close(&k);
}

/* Two numbers at a time: the same as one after the other. */
static void test_pairs(void **state) {
    (void)state;
    kit k;
    kit_open(&k);
    kit_load(&k, ".visible .entry f(.param .u64 p)\n{\n.reg .b64 %rd<9>; .reg .f32 %f<9>;\n"
                 "ld.param.u64 %rd1, [p]; ld.global.v2.b64 {%rd2, %rd3}, [%rd1]; ld.global.b64 %rd4, [%rd1+16];\n"
                 "fma.rn.f32x2 %rd5, %rd2, %rd3, %rd4; add.rz.ftz.f32x2 %rd6, %rd5, %rd2; mul.f32x2 %rd6, %rd6, %rd6;\n"
                 "sub.f32x2 %rd2, %rd2, %rd3; st.global.v2.b64 [%rd1+32], {%rd5, %rd6}; st.global.b64 [%rd1+48], %rd2; "
                 "ret;\n}\n");
    float *m = kit_alloc(&k, 64);
    static const float in[] = {1.5f, -3.0f, 0.1f, 1e-40f, 7.0f, 1e30f};
    memcpy(m, in, sizeof(in));
    kit_run(&k, (kit_launch){"f", 1, 1, 0, {kit_address(m)}});
    for (unsigned i = 0; i < 2; i++) {
        float product = (float)((double)in[i] * in[2 + i] + in[4 + i]); /* exact in double for these */
        assert_true(m[8 + i] == product);
        assert_true(m[12 + i] == in[i] - in[2 + i]);
    }
    assert_true(m[10] > 74.8f && m[10] < 74.83f && m[11] == __builtin_inff());
    kit_free(&k, m);
    kit_close(&k);
}

/* Registers declared as vectors, their components, and lop3 with a predicate. */
static void test_vector_registers(void **state) {
    (void)state;
    kit k;
    kit_open(&k);
    kit_load(&k,
             ".visible .entry f(.param .u64 p)\n{\n.reg .b64 %rd; .reg .v4 .b32 v; .reg .b32 %r<4>; .reg .pred %p<4>;\n"
             "ld.param.u64 %rd, [p]; ld.global.v4.b32 v, [%rd]; add.u32 v.x, v.y, v.w; mov.b32 v.b, 7; "
             "st.global.v4.b32 [%rd+16], v;\n"
             "setp.eq.u32 %p1, v.x, 0; lop3.or.b32 %r1|%p2, v.x, v.y, v.z, 0x80, %p1; lop3.and.b32 _|%p3, v.x, v.x, "
             "v.x, 0xff, !%p1;\n"
             "selp.u32 %r2, 1, 0, %p2; selp.u32 %r3, 2, 0, %p3; add.u32 %r2, %r2, %r3; st.global.v2.b32 [%rd+32], "
             "{%r1, %r2}; ret;\n}\n");
    uint32_t *m = kit_alloc(&k, 64);
    static const uint32_t in[] = {1, 6, 3, 8}, expected[] = {14, 6, 7, 8, 14 & 6 & 7, 3};
    memcpy(m, in, sizeof(in));
    kit_run(&k, (kit_launch){"f", 1, 1, 0, {kit_address(m)}});
    assert_memory_equal(m + 4, expected, sizeof(expected));
    kit_free(&k, m);
    kit_close(&k);
}

/* The flag that sub.cc leaves is set if nothing was borrowed: so the machine code of ptxas reads it. */
static void test_carries_behind_borrows(void **state) {
    (void)state;
    kit k;
    kit_open(&k);
    kit_load(
        &k, ".visible .entry f(.param .u64 p)\n{\n.reg .b64 %rd<6>; .reg .b32 %r<8>;\n"
            "ld.param.u64 %rd0, [p]; ld.global.v2.b32 {%r0, %r1}, [%rd0];\n"
            "sub.cc.u32 %r2, %r0, %r1; addc.u32 %r3, 0, 0; st.global.v2.b32 [%rd0+8], {%r2, %r3};\n"
            "add.cc.u32 %r4, %r0, %r1; subc.u32 %r5, 10, 0; st.global.v2.b32 [%rd0+16], {%r4, %r5};\n"
            "mov.b64 %rd1, {%r0, %r0}; mov.b64 %rd2, {%r1, %r1}; sub.cc.u64 %rd3, %rd1, %rd2; addc.cc.u64 %rd4, 0, 0;\n"
            "subc.u64 %rd5, 5, 5; st.global.v2.b64 [%rd0+32], {%rd4, %rd5}; ret;\n}\n");
    uint32_t *m = kit_alloc(&k, 64);
    static const struct {
        uint32_t a, b, no_borrow, carry;
    } cases[] = {{7, 9, 0, 0}, {9, 7, 1, 0}, {9, 9, 1, 0}, {0xffffffff, 1, 1, 1}, {1, 0xffffffff, 0, 1}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        m[0] = cases[i].a, m[1] = cases[i].b;
        kit_run(&k, (kit_launch){"f", 1, 1, 0, {kit_address(m)}});
        assert_int_equal(m[2], m[0] - m[1]);
        assert_int_equal(m[3], cases[i].no_borrow);
        assert_int_equal(m[4], m[0] + m[1]);
        assert_int_equal(m[5], cases[i].carry ? 10 : 9);
        assert_int_equal(m[8], cases[i].no_borrow);
        assert_int_equal(m[10], 0xffffffff); /* 0 + 0 + flag never carries, so one is borrowed */
    }
    kit_free(&k, m);
    kit_close(&k);
}

/* Numbers cut to fewer bits, beneath the low bits of a third operand. */
static void test_packing(void **state) {
    (void)state;
    kit k;
    kit_open(&k);
    kit_load(&k, ".visible .entry f(.param .u64 p)\n{\n.reg .b64 %rd; .reg .b32 %r<12>;\n"
                 "ld.param.u64 %rd, [p]; ld.global.v2.b32 {%r0, %r1}, [%rd]; ld.global.b32 %r2, [%rd+8];\n"
                 "cvt.pack.sat.s16.s32 %r3, %r0, %r1; cvt.pack.sat.u16.s32 %r4, %r0, %r1;\n"
                 "cvt.pack.sat.s8.s32.b32 %r5, %r0, %r1, %r2; cvt.pack.sat.u8.s32.b32 %r6, %r0, %r1, %r2;\n"
                 "cvt.pack.sat.s4.s32.b32 %r7, %r0, %r1, %r2; cvt.pack.sat.u4.s32.b32 %r8, %r0, %r1, %r2;\n"
                 "cvt.pack.sat.s2.s32.b32 %r9, %r0, %r1, %r2; cvt.pack.sat.u2.s32.b32 %r10, %r0, %r1, %r2;\n"
                 "st.global.v4.b32 [%rd+16], {%r3, %r4, %r5, %r6}; st.global.v4.b32 [%rd+32], {%r7, %r8, %r9, %r10}; "
                 "ret;\n}\n");
    uint32_t *m = kit_alloc(&k, 64);
    m[0] = 70000, m[1] = (uint32_t)-5, m[2] = 0x89abcdef;
    kit_run(&k, (kit_launch){"f", 1, 1, 0, {kit_address(m)}});
    static const uint32_t expected[] = {0x7ffffffb, 0xffff0000, 0xcdef7ffb, 0xcdefff00,
                                        0xabcdef7b, 0xabcdeff0, 0x9abcdef6, 0x9abcdefc};
    assert_memory_equal(m + 4, expected, sizeof(expected));
    kit_free(&k, m);
    kit_load(&k, ".visible .entry f() { .reg .b32 %r<4>; cvt.pack.s16.s32 %r0, %r1, %r2; ret; }\n");
    const its_sim_entry *entry;
    assert_int_equal(its_sim_program_entry(k.ctx, k.program, "f", &entry), ITS_ERR_INPUT);
    assert_string_equal(kit_message(&k), "the simulator doesn't have 'cvt.pack.s16.s32' in this form");
    kit_close(&k);
}

/* What was discarded is gone, and only that. */
static void test_discard(void **state) {
    (void)state;
    kit k;
    kit_open(&k);
    kit_load(&k, ".visible .entry f(.param .u64 p)\n{\n.reg .b64 %rd;\n"
                 "ld.param.u64 %rd, [p]; discard.global.L2 [%rd+128], 128; ret;\n}\n");
    uint32_t *m = kit_alloc(&k, 384);
    for (uint32_t i = 0; i < 96; i++) m[i] = i;
    kit_run(&k, (kit_launch){"f", 1, 1, 0, {kit_address(m)}});
    for (uint32_t i = 0; i < 96; i++) assert_true((m[i] == i) == (i / 32 != 1));
    static const struct {
        uint32_t at;
        const char *message;
    } cases[] = {{64, "writes 128 bytes at address"}, {256, "past the end of"}};
    for (size_t i = 0; i < 2; i++) {
        assert_int_equal(kit_launch_run(&k, (kit_launch){"f", 1, 1, 0, {kit_address(m) + cases[i].at}}), ITS_SIM_FAULT);
        its_diag_clear(k.ctx);
        its_sim_fault_report(k.ctx, its_sim_grid_fault(k.grid));
        assert_non_null(strstr(kit_message(&k), cases[i].message));
    }
    kit_free(&k, m);
    kit_close(&k);
}

/* What is added to a register where it is read; ptxas makes an addition of it. */
static void test_sums(void **state) {
    (void)state;
    kit k;
    kit_open(&k);
    kit_load(&k,
             ".visible .entry f(.param .u64 p)\n{\n.reg .b64 %rd<4>; .reg .b32 %r<8>;\n"
             "ld.param.u64 %rd1, [p]; ld.global.u32 %r1, [%rd1]; add.u32 %r2, %r1+4, %r1+-9; mov.u64 %rd2, %rd1+4;\n"
             "st.global.u32 [%rd2], %r2; st.global.u32 [%rd1+8], %r1+4294967295; ret;\n}\n");
    uint32_t *m = kit_alloc(&k, 12);
    m[0] = 100;
    kit_run(&k, (kit_launch){"f", 1, 1, 0, {kit_address(m)}});
    assert_int_equal(m[1], 104 + 91);
    assert_int_equal(m[2], 99);
    kit_free(&k, m);
    static const char *const bad[] = {"selp.u32 %r1, %r2, %r3, %p1+4;", "cvt.u32.u8 %r1, %c1+255;",
                                      "ld.shared.u32 %r1, [%c1];"};
    static const char *const messages[] = {"the simulator doesn't have", "the simulator doesn't have",
                                           "'ld.shared.u32' needs a 64-bit address"};
    for (size_t i = 0; i < 3; i++) {
        char text[256];
        snprintf(text, sizeof text,
                 ".visible .entry g()\n{\n.reg .b32 %%r<8>; .reg .pred %%p<2>; .reg .b8 %%c<2>;\n%s ret;\n}\n", bad[i]);
        kit_load(&k, text);
        kit_launch l = {"g", 1, 1, 0, {0}};
        assert_int_equal(kit_make_grid(&k, &l), ITS_ERR_INPUT);
        assert_non_null(strstr(kit_message(&k), messages[i]));
    }
    kit_close(&k);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_vector_add), cmocka_unit_test(test_sums),
                                       cmocka_unit_test(test_pairs),      cmocka_unit_test(test_vector_registers),
                                       cmocka_unit_test(test_packing),    cmocka_unit_test(test_carries_behind_borrows),
                                       cmocka_unit_test(test_discard)};
    return cmocka_run_group_tests_name("sim/exec", tests, NULL, NULL);
}
