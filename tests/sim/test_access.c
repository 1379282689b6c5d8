/* Loads and stores: every width and register, vectors, orders, spaces; atomics of many threads; 16-byte values. */
#include "kit.h"

#define REGISTERS \
    ".reg .pred %p<8>; .reg .b32 %r<32>; .reg .b64 %rd<16>; .reg .b16 %rs<8>; .reg .f32 %f<8>; .reg .b128 %q<3>;\n"

/* Where an element of `bytes` lies in the input of lane i. */
static uint64_t pattern(uint32_t lane, unsigned byte) {
    return (lane * 37u + byte * 101u + 129u) & 0xff;
}

static uint64_t element(uint32_t lane, unsigned at, unsigned bytes) {
    uint64_t value = 0;
    for (unsigned b = 0; b < bytes; b++) value |= pattern(lane, at + b) << (8 * b);
    return value;
}

static uint64_t extended(uint64_t value, unsigned bytes, bool is_signed) {
    if (!is_signed || bytes == 8) return value;
    uint64_t sign = (uint64_t)1 << (8 * bytes - 1);
    return (value ^ sign) - sign;
}

typedef struct form {
    const char *type;
    unsigned bytes, reg;
    bool is_signed;
} form;

/* Loads with each (type, register) pair, in each way of ordering, by some lanes, and stores the register back. */
static void check_form(kit *k, const form *f, const char *order, unsigned vec) {
    static const char *const regs[] = {[2] = "rs", [4] = "r", [8] = "rd"};
    char text[4096], list[64] = "", wide[512] = "";
    unsigned first = f->reg == 8 ? 5 : 1;
    for (unsigned i = 0; i < vec; i++) {
        char one[160];
        snprintf(one, sizeof(one), "%s%%%s%u", i ? "," : "", regs[f->reg], first + i);
        strcat(list, one);
        snprintf(one, sizeof(one), "st.global.b%u [%%rd1+%u], %%%s%u;\n", 8 * f->reg, 8 * i, regs[f->reg], first + i);
        strcat(wide, one);
    }
    snprintf(text, sizeof(text),
             ".visible .entry f(.param .u64 in, .param .u64 out)\n{\n%s"
             "ld.param.u64 %%rd0, [in]; ld.param.u64 %%rd1, [out]; mov.u32 %%r0, %%tid.x; setp.eq.u32 %%p1, %%r0, 6;\n"
             "mul.wide.u32 %%rd2, %%r0, 64; add.u64 %%rd0, %%rd0, %%rd2; add.u64 %%rd1, %%rd1, %%rd2;\n"
             "@!%%p1 ld%s.global%s.%s %s%s%s, [%%rd0+32];\n%s"
             "@%%p1 ret; st.global%s.%s [%%rd0+%u], %s%s%s; ret;\n}\n",
             REGISTERS, order,
             vec == 4   ? ".v4"
             : vec == 2 ? ".v2"
                        : "",
             f->type, vec > 1 ? "{" : "", list, vec > 1 ? "}" : "", wide,
             vec == 4   ? ".v4"
             : vec == 2 ? ".v2"
                        : "",
             f->type, 0u, vec > 1 ? "{" : "", list, vec > 1 ? "}" : "");
    kit_load(k, text);
    unsigned char *in = kit_alloc(k, 64 * 32), *out = kit_alloc(k, 64 * 32);
    for (unsigned i = 0; i < 64 * 32; i++) in[i] = (unsigned char)pattern(i / 64, i % 64);
    kit_run(k, (kit_launch){"f", 1, 32, 0, {kit_address(in), kit_address(out)}});
    for (uint32_t lane = 0; lane < 32; lane++)
        for (unsigned i = 0; i < vec; i++) {
            uint64_t got = 0, back = 0, raw = element(lane, 32 + i * f->bytes, f->bytes);
            memcpy(&got, out + lane * 64 + i * 8, f->reg);
            memcpy(&back, in + lane * 64 + i * f->bytes, f->bytes);
            if (lane == 6) continue;
            uint64_t expected = extended(raw, f->bytes, f->is_signed);
            if (f->reg < 8) expected &= ((uint64_t)1 << (8 * f->reg)) - 1;
            assert_int_equal(got, expected);
            assert_int_equal(back, raw);
        }
    uint64_t untouched = 0;
    memcpy(&untouched, in + 6 * 64, 8);
    assert_int_equal(untouched, element(6, 0, 8));
    kit_free(k, in);
    kit_free(k, out);
}

static void test_widths(void **state) {
    (void)state;
    static const form forms[] = {
        {"u8", 1, 2, false},  {"s8", 1, 2, true},  {"b8", 1, 2, false},  {"u8", 1, 4, false},  {"s8", 1, 4, true},
        {"u8", 1, 8, false},  {"s8", 1, 8, true},  {"u16", 2, 2, false}, {"s16", 2, 2, true},  {"u16", 2, 4, false},
        {"s16", 2, 4, true},  {"s16", 2, 8, true}, {"b16", 2, 8, false}, {"u32", 4, 4, false}, {"s32", 4, 4, true},
        {"u32", 4, 8, false}, {"s32", 4, 8, true}, {"b64", 8, 8, false}, {"s64", 8, 8, true},
    };
    static const char *const orders[] = {"", ".volatile", ".relaxed.sys", ".acquire.gpu", ".weak", ".mmio.relaxed.sys"};
    kit k;
    kit_open(&k);
    for (size_t i = 0; i < sizeof(forms) / sizeof(forms[0]); i++) {
        for (size_t o = 0; o < sizeof(orders) / sizeof(orders[0]); o++) check_form(&k, &forms[i], orders[o], 1);
        check_form(&k, &forms[i], "", 2);
        if (forms[i].bytes <= 4) check_form(&k, &forms[i], "", 4);
    }
    kit_close(&k);
}

/* Neighbouring and scattered lanes, all and some of them, give the same. */
static void test_coalescing(void **state) {
    (void)state;
    kit k;
    kit_open(&k);
    kit_load(&k, ".visible .entry f(.param .u64 in, .param .u64 out, .param .u32 mul, .param .u32 lanes)\n{\n" REGISTERS
                 "ld.param.u64 %rd0, [in]; ld.param.u64 %rd1, [out]; ld.param.u32 %r1, [mul]; ld.param.u32 %r2, "
                 "[lanes]; mov.u32 %r0, %tid.x;\n"
                 "setp.ge.u32 %p1, %r0, %r2; @%p1 ret; mul.lo.u32 %r3, %r0, %r1; and.b32 %r3, %r3, 255; mul.wide.u32 "
                 "%rd2, %r3, 4;\n"
                 "add.u64 %rd0, %rd0, %rd2; add.u64 %rd1, %rd1, %rd2; ld.global.nc.L1::evict_last.b32 %r4, [%rd0]; "
                 "add.u32 %r4, %r4, 1; st.global.wb.b32 [%rd1], %r4; ret;\n}\n");
    uint32_t *in = kit_alloc(&k, 1024), *out = kit_alloc(&k, 1024);
    for (uint32_t i = 0; i < 256; i++) in[i] = i * i;
    for (uint32_t mul = 0; mul < 40; mul++)
        for (uint32_t lanes = 1; lanes <= 64; lanes += 9) {
            memset(out, 0, 1024);
            kit_run(&k, (kit_launch){"f", 1, 64, 0, {kit_address(in), kit_address(out), mul, lanes}});
            bool touched[256] = {false};
            for (uint32_t lane = 0; lane < lanes; lane++) touched[lane * mul & 255] = true;
            for (uint32_t i = 0; i < 256; i++) assert_int_equal(out[i], touched[i] ? i * i + 1 : 0);
        }
    kit_free(&k, in);
    kit_free(&k, out);
    kit_close(&k);
}

/* Lanes of one access in several allocations and spaces at once. */
static void test_mixed_spaces(void **state) {
    (void)state;
    kit k;
    kit_open(&k);
    kit_load(&k,
             ".global .align 4 .u32 g = 11;\n.const .align 4 .u32 c = 22;\n"
             ".visible .entry f(.param .u64 in, .param .u64 out)\n{\n" REGISTERS
             ".shared .align 4 .u32 s; .local .align 4 .u32 l;\n"
             "ld.param.u64 %rd0, [in]; ld.param.u64 %rd1, [out]; mov.u32 %r0, %tid.x; st.shared.u32 [s], 33; "
             "st.local.u32 [l], %r0;\n"
             "and.b32 %r1, %r0, 3; mov.u64 %rd3, %rd0; setp.eq.u32 %p1, %r1, 1; mov.u64 %rd4, s; cvta.shared.u64 %rd4, "
             "%rd4; @%p1 mov.u64 %rd3, %rd4;\n"
             "setp.eq.u32 %p2, %r1, 2; mov.u64 %rd5, l; cvta.local.u64 %rd5, %rd5; @%p2 mov.u64 %rd3, %rd5;\n"
             "setp.eq.u32 %p3, %r1, 3; mov.u64 %rd6, c; @%p3 mov.u64 %rd3, %rd6; setp.eq.u32 %p4, %r0, 0; mov.u64 "
             "%rd7, g; @%p4 mov.u64 %rd3, %rd7;\n"
             "ld.u32 %r4, [%rd3]; mul.wide.u32 %rd8, %r0, 4; add.u64 %rd1, %rd1, %rd8; st.u32 [%rd1], %r4; ret;\n}\n");
    uint32_t *in = kit_alloc(&k, 4), *out = kit_alloc(&k, 128);
    *in = 44;
    kit_run(&k, (kit_launch){"f", 1, 32, 0, {kit_address(in), kit_address(out)}});
    for (uint32_t i = 0; i < 32; i++) {
        uint32_t expected[] = {i ? 44 : 11, 33, i, 22};
        assert_int_equal(out[i], expected[i & 3]);
    }
    kit_free(&k, in);
    kit_free(&k, out);
    kit_close(&k);
}

/* Many threads on one counter; what each of them saw is a permutation. */
static void test_atomics(void **state) {
    (void)state;
    kit k;
    kit_open(&k);
    kit_load(&k,
             ".visible .entry f(.param .u64 out)\n{\n" REGISTERS
             "ld.param.u64 %rd0, [out]; mov.u32 %r0, %tid.x; mov.u32 %r1, %ctaid.x; mad.lo.u32 %r0, %r1, 128, %r0;\n"
             "atom.relaxed.gpu.global.add.u32 %r2, [%rd0], 1; mul.wide.u32 %rd1, %r2, 4; add.u64 %rd1, %rd0, %rd1; "
             "st.global.u32 [%rd1+64], %r0;\n"
             "red.global.max.s32 [%rd0+4], %r0; red.global.min.u32 [%rd0+8], %r0; atom.global.add.f32 %f1, [%rd0+12], "
             "0f3F000000;\n"
             "atom.global.inc.u32 %r3, [%rd0+16], 6; cvt.u64.u32 %rd2, %r0; atom.acq_rel.sys.add.u64 %rd3, [%rd0+24], "
             "%rd2;\n"
             "LOOP: ld.global.u32 %r4, [%rd0+32]; add.u32 %r5, %r4, 3; atom.cas.b32 %r6, [%rd0+32], %r4, %r5; "
             "setp.ne.u32 %p1, %r6, %r4; @%p1 bra LOOP; ret;\n}\n");
    enum { N = 1024 };
    uint32_t *out = kit_alloc(&k, 64 + 4 * N);
    out[2] = 0xffffffff;
    kit_run(&k, (kit_launch){"f", N / 128, 128, 0, {kit_address(out)}});
    assert_int_equal(out[0], N);
    assert_int_equal(out[1], N - 1);
    assert_int_equal(out[2], 0);
    assert_int_equal(out[3], 0x44000000); /* 512.0 */
    assert_int_equal(out[4], N % 7);
    assert_int_equal(out[6], N * (N - 1) / 2);
    assert_int_equal(out[8], 3 * N);
    bool seen[N] = {false};
    for (uint32_t i = 0; i < N; i++) {
        assert_false(seen[out[16 + i]]);
        seen[out[16 + i]] = true;
    }
    kit_free(&k, out);
    kit_close(&k);
}

/* Vectors are updated element by element. */
static void test_vector_atomics(void **state) {
    (void)state;
    kit k;
    kit_open(&k);
    kit_load(&k,
             ".visible .entry f(.param .u64 out)\n{\n" REGISTERS
             "ld.param.u64 %rd0, [out]; mov.u32 %r0, %tid.x; cvt.rn.f32.u32 %f1, %r0; mov.f32 %f2, 0f3F800000;\n"
             "atom.global.v4.f32.add {%f3, _, _, %f4}, [%rd0], {%f1, %f2, %f1, %f2}; st.global.f32 [%rd0+32], %f4;\n"
             "mov.b32 {%rs1, %rs2}, 0x3c003800; red.global.add.noftz.v2.f16 [%rd0+16], {%rs1, %rs2}; ret;\n}\n");
    float *out = kit_alloc(&k, 64);
    kit_run(&k, (kit_launch){"f", 1, 32, 0, {kit_address(out)}});
    assert_true(out[0] == 496.0f && out[1] == 32.0f && out[2] == 496.0f && out[3] == 32.0f && out[8] == 31.0f);
    uint32_t halves;
    memcpy(&halves, &out[4], 4);
    assert_int_equal(halves, 0x50004c00); /* 32.0 and 16.0 */
    kit_free(&k, out);
    kit_close(&k);
}

static void test_wide_values(void **state) {
    (void)state;
    kit k;
    kit_open(&k);
    kit_load(&k, ".visible .entry f(.param .u64 out)\n{\n" REGISTERS
                 "ld.param.u64 %rd0, [out]; ld.global.b128 %q0, [%rd0]; mov.b128 {%rd1, %rd2}, %q0; mov.b128 %q1, "
                 "{%rd2, %rd1};\n"
                 "mov.b128 %q2, %q0; atom.global.cas.b128 %q2, [%rd0], %q2, %q1; mov.b128 {%rd3, %rd4}, %q2; "
                 "st.global.v2.b64 [%rd0+16], {%rd3, %rd4};\n"
                 "atom.global.exch.b128 %q0, [%rd0], %q0; st.global.b128 [%rd0+32], %q0; ret;\n}\n");
    uint64_t *out = kit_alloc(&k, 48);
    out[0] = 1;
    out[1] = 2;
    kit_run(&k, (kit_launch){"f", 1, 1, 0, {kit_address(out)}});
    static const uint64_t expected[] = {1, 2, 1, 2, 2, 1};
    assert_memory_equal(out, expected, sizeof(expected));
    kit_free(&k, out);
    kit_close(&k);
}

/* The table itself: order, overlap, neighbours, what was freed. */
static void test_table(void **state) {
    (void)state;
    its_context *ctx = its_context_new(NULL);
    its_sim_memory *m = its_sim_memory_new(ctx, 1);
    for (uint64_t i = 0; i < 1000; i++)
        assert_int_equal(its_sim_memory_add(m, 0x100000 + (i * 7919 % 1000) * 256, 200, ITS_SIM_DEVICE, i & 1, NULL),
                         ITS_OK);
    assert_int_equal(its_sim_memory_count(m), 1000);
    for (size_t i = 1; i < 1000; i++) assert_true(its_sim_memory_get(m, i - 1)->base < its_sim_memory_get(m, i)->base);
    assert_int_equal(its_sim_memory_add(m, 0x100000 + 199, 10, ITS_SIM_DEVICE, false, NULL), ITS_ERR_USAGE);
    assert_int_equal(its_sim_memory_add(m, 0x100000 + 200, 57, ITS_SIM_DEVICE, false, NULL), ITS_ERR_USAGE);
    assert_int_equal(its_sim_memory_add(m, 0x100000 + 200, 56, ITS_SIM_DEVICE, false, NULL), ITS_OK);
    assert_int_equal(its_sim_memory_add(m, UINT64_MAX - 4, 10, ITS_SIM_DEVICE, false, NULL), ITS_ERR_USAGE);
    assert_int_equal(its_sim_memory_add(m, 0, 0, ITS_SIM_DEVICE, false, NULL), ITS_ERR_USAGE);
    its_sim_range range;
    assert_true(its_sim_memory_find(m, 0x100000 + 256 + 199, &range));
    assert_int_equal(range.base, 0x100000 + 256);
    assert_int_equal(range.end, 0x100000 + 456);
    assert_int_equal(range.pe, 1);
    assert_false(its_sim_memory_find(m, 0x100000 + 256 + 200, &range));
    uint64_t generation = its_sim_memory_generation(m);
    assert_false(its_sim_memory_remove(m, 0x100000 + 1));
    assert_int_equal(its_sim_memory_generation(m), generation);
    assert_true(its_sim_memory_remove(m, 0x100000 + 512));
    assert_int_not_equal(its_sim_memory_generation(m), generation);
    its_sim_nearby nearby;
    its_sim_memory_explain(m, 0x100000 + 512 + 10, &nearby);
    assert_int_equal(nearby.what, ITS_SIM_NEAR_FREED);
    assert_int_equal(nearby.distance, 10);
    assert_int_equal(its_sim_memory_add(m, 0x100000 + 512 + 8, 4, ITS_SIM_HOST, false, NULL), ITS_OK);
    its_sim_memory_explain(m, 0x100000 + 512 + 16, &nearby); /* used again: no longer the freed one */
    assert_int_equal(nearby.what, ITS_SIM_NEAR_AFTER);
    assert_int_equal(nearby.allocation.kind, ITS_SIM_HOST);
    its_sim_memory_explain(m, 0xfff, &nearby);
    assert_int_equal(nearby.what, ITS_SIM_NEAR_NULL);
    its_sim_memory_explain(m, (uint64_t)1 << 50, &nearby);
    assert_int_equal(nearby.what, ITS_SIM_NEAR_NOTHING);
    its_sim_memory_free(m);
    its_context_free(ctx);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_widths),  cmocka_unit_test(test_coalescing),     cmocka_unit_test(test_mixed_spaces),
        cmocka_unit_test(test_atomics), cmocka_unit_test(test_vector_atomics), cmocka_unit_test(test_wide_values),
        cmocka_unit_test(test_table),
    };
    return cmocka_run_group_tests_name("sim/access", tests, NULL, NULL);
}
