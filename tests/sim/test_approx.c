/*
 * Approximate instructions: the error bounds that PTX gives, against the C library in double precision (its sin, exp2
 * ... are good to a double's last bits, far below what is asked here), and the special values.
 */
#include <math.h>

#include "cells.h"
#include "kit.h"

typedef double reference(double x);
static double rsqrt_of(double x) {
    return 1.0 / sqrt(x);
}
static double rcp_of(double x) {
    return 1.0 / x;
}

static double as_double(const char *type, const unsigned char *at) {
    uint32_t word = 0;
    float f;
    double d;
    memcpy(&d, at, 8);
    if (strcmp(type, "f64") == 0) return d;
    memcpy(&word, at, cell_size(type));
    if (type[0] == 'b') word <<= 16;
    if (strcmp(type, "f16") == 0) {
        int exponent = (word >> 10) & 31, sign = word & 0x8000 ? -1 : 1;
        double mantissa = word & 0x3ff;
        if (exponent == 31) return word & 0x3ff ? NAN : sign < 0 ? -INFINITY : INFINITY;
        return sign * (exponent ? ldexp(1024 + mantissa, exponent - 25) : ldexp(mantissa, -24));
    }
    memcpy(&f, &word, 4);
    return f;
}

typedef struct bound {
    const char *ptx, *type;
    reference *reference;
    double low, high;          /* sources that are checked, by magnitude */
    double relative, absolute; /* either is good enough */
    double smallest;           /* results below may be flushed */
} bound;

static const bound bounds[] = {
    {"ex2.approx.f32 $d, $a;", "f32", exp2, 0, 126, 0x1p-22, 0, 0},
    {"ex2.approx.ftz.f32 $d, $a;", "f32", exp2, 0, 125, 0x1p-22, 0, 0x1p-126},
    {"lg2.approx.f32 $d, $a;", "f32", log2, 0x1p-149, 0x1p127, 0x1p-22, 0x1p-22, 0},
    {"sin.approx.f32 $d, $a;", "f32", sin, 0, 6.2831853, 0, 0x1p-20, 0},
    {"cos.approx.f32 $d, $a;", "f32", cos, 0, 6.2831853, 0, 0x1p-20, 0},
    {"rcp.approx.f32 $d, $a;", "f32", rcp_of, 0x1p-127, 0x1p126, 0x1p-23, 0, 0},
    {"rcp.approx.ftz.f32 $d, $a;", "f32", rcp_of, 0x1p-126, 0x1p126, 0x1p-23, 0, 0x1p-126},
    {"sqrt.approx.f32 $d, $a;", "f32", sqrt, 0, 0x1p127, 0x1p-23, 0, 0},
    {"rsqrt.approx.f32 $d, $a;", "f32", rsqrt_of, 0x1p-149, 0x1p127, 0x1p-22, 0, 0},
    {"tanh.approx.f32 $d, $a;", "f32", tanh, 0, 0x1p127, 0x1p-11, 0, 0},
    {"tanh.approx.f16 $d, $a;", "f16", tanh, 0, 0x1p15, 0, 0x1p-10, 0},
    {"tanh.approx.bf16 $d, $a;", "bf16", tanh, 0, 0x1p127, 0, 0x1p-8, 0},
    {"ex2.approx.f16 $d, $a;", "f16", exp2, 0, 13, 0x1p-9, 0, 0},
    {"ex2.approx.ftz.bf16 $d, $a;", "bf16", exp2, 0, 125, 0x1p-7, 0, 0x1p-126},
    {"rcp.approx.ftz.f64 $d, $a;", "f64", rcp_of, 0x1p-1021, 0x1p1021, 0x1p-19, 0, 0},
    {"rsqrt.approx.f64 $d, $a;", "f64", rsqrt_of, 0x1p-1021, 0x1p1021, 0x1p-22, 0, 0},
    {"rsqrt.approx.ftz.f64 $d, $a;", "f64", rsqrt_of, 0x1p-1021, 0x1p1021, 0x1p-19, 0, 0},
};

static void check_bound(kit *k, const bound *b, unsigned char *in, unsigned char *out) {
    cell c = {.n_types = 2};
    char kernel[4096];
    unsigned checked = 0;
    strcpy(c.types[0], b->type);
    strcpy(c.types[1], b->type);
    strcpy(c.ptx, b->ptx);
    cell_kernel(&c, kernel, sizeof(kernel));
    cell_inputs(&c, in);
    kit_load(k, kernel);
    kit_run(k, (kit_launch){"cell", CELL_COUNT / CELL_BLOCK, CELL_BLOCK, 0, {kit_address(in), kit_address(out)}});
    for (unsigned i = 0; i < CELL_COUNT; i++) {
        double x = as_double(b->type, in + i * CELL_SLOT), got = as_double(b->type, out + i * CELL_OUT);
        double expected = b->reference(x);
        if (isnan(x)) {
            /* The gross approximations read the upper word only, where some NaN look like an infinity. */
            uint32_t upper;
            memcpy(&upper, in + i * CELL_SLOT + 4, 4);
            assert_true(isnan(got) || (strstr(b->ptx, "ftz.f64") && !(upper & 0xfffff)));
            continue;
        }
        if (!(fabs(x) >= b->low && fabs(x) <= b->high)) continue;
        checked++;
        if (isnan(expected) || isinf(expected)) {
            assert_true(isnan(expected) ? isnan(got) : got == expected);
            continue;
        }
        if (fabs(expected) < b->smallest && got == 0) continue;
        double error = fabs(got - expected);
        if (error > b->absolute && error > b->relative * fabs(expected)) {
            print_message("%s of %.9g: %.17g, not %.17g\n", b->ptx, x, got, expected);
            fail();
        }
    }
    assert_true(checked > 500);
}

static void test_bounds(void **state) {
    (void)state;
    for (uint32_t isa = 0; its_sim_isa_name(isa); isa++) {
        kit k;
        kit_open(&k);
        k.machine.isa = isa + 1;
        unsigned char *in = kit_alloc(&k, (size_t)CELL_COUNT * CELL_SLOT);
        unsigned char *out = kit_alloc(&k, (size_t)CELL_COUNT * CELL_OUT);
        for (size_t i = 0; i < sizeof(bounds) / sizeof(bounds[0]); i++) check_bound(&k, &bounds[i], in, out);
        kit_free(&k, in);
        kit_free(&k, out);
        kit_close(&k);
    }
}

/* Results that are not approximate at all. */
static void test_special_values(void **state) {
    (void)state;
    static const struct {
        const char *instruction;
        uint32_t source, result;
    } cases[] = {
        {"ex2.approx.f32", 0xff800000, 0},           {"ex2.approx.f32", 0x7f800000, 0x7f800000},
        {"ex2.approx.f32", 0, 0x3f800000},           {"ex2.approx.f32", 0x41200000, 0x44800000},
        {"ex2.approx.ftz.f32", 0xc2fe0000, 0},       {"ex2.approx.f32", 0xc2fe0000, 0x00400000},
        {"lg2.approx.f32", 0, 0xff800000},           {"lg2.approx.f32", 0x80000000, 0xff800000},
        {"lg2.approx.f32", 0xbf800000, 0x7fffffff},  {"lg2.approx.f32", 0x7f800000, 0x7f800000},
        {"lg2.approx.f32", 0x00000001, 0xc3150000},  {"lg2.approx.ftz.f32", 1, 0xff800000},
        {"rcp.approx.f32", 0, 0x7f800000},           {"rcp.approx.f32", 0x80000000, 0xff800000},
        {"rcp.approx.f32", 0xff800000, 0x80000000},  {"sqrt.approx.f32", 0x80000000, 0x80000000},
        {"sqrt.approx.f32", 0xbf800000, 0x7fffffff}, {"rsqrt.approx.f32", 0x80000000, 0xff800000},
        {"rsqrt.approx.f32", 0x7f800000, 0},         {"sin.approx.f32", 0x7f800000, 0x7fffffff},
        {"sin.approx.f32", 0x80000000, 0x80000000},  {"cos.approx.f32", 0, 0x3f800000},
        {"tanh.approx.f32", 0xff800000, 0xbf800000}, {"tanh.approx.f32", 0x00000001, 0x00000001},
    };
    kit k;
    kit_open(&k);
    uint32_t *m = kit_alloc(&k, 8);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char text[512];
        snprintf(text, sizeof(text),
                 ".visible .entry f(.param .u64 p) { .reg .b64 %%a; .reg .f32 %%x; ld.param.u64 %%a, [p]; "
                 "ld.global.f32 %%x, [%%a]; %s %%x, %%x; st.global.f32 [%%a+4], %%x; ret; }\n",
                 cases[i].instruction);
        m[0] = cases[i].source;
        kit_load(&k, text);
        kit_run(&k, (kit_launch){"f", 1, 1, 0, {kit_address(m)}});
        if (m[1] != cases[i].result) print_message("%s of 0x%08x\n", cases[i].instruction, cases[i].source);
        assert_int_equal(m[1], cases[i].result);
    }
    kit_free(&k, m);
    kit_close(&k);
}

/* %tid and its like in three dimensions, clocks, and the machine's own numbers. */
static void test_special_registers(void **state) {
    (void)state;
    static const char *const names[] = {"%tid.x",   "%tid.y",   "%tid.z",   "%ntid.x",   "%ntid.y",   "%ntid.z",
                                        "%ctaid.x", "%ctaid.y", "%ctaid.z", "%nctaid.x", "%nctaid.y", "%nctaid.z",
                                        "%laneid",  "%warpid",  "%nsmid",   "%smid"};
    enum { COUNT = sizeof(names) / sizeof(names[0]) };
    kit k;
    kit_open(&k);
    char text[8192];
    int at = snprintf(text, sizeof(text),
                      ".visible .entry f(.param .u64 p)\n{\n.reg .b64 %%a<6>; .reg .b32 %%r<8>; .reg .pred %%p<3>;\n"
                      "ld.param.u64 %%a0, [p]; mov.u32 %%r0, %%ctaid.z; mad.lo.u32 %%r0, %%r0, 2, %%ctaid.y; "
                      "mad.lo.u32 %%r0, %%r0, 3, %%ctaid.x;\n"
                      "mov.u32 %%r1, %%tid.z; mad.lo.u32 %%r1, %%r1, 4, %%tid.y; mad.lo.u32 %%r1, %%r1, 5, %%tid.x; "
                      "mad.lo.u32 %%r0, %%r0, 40, %%r1;\n"
                      "mul.wide.u32 %%a1, %%r0, 128; add.u64 %%a0, %%a0, %%a1;\n");
    for (size_t i = 0; i < COUNT; i++)
        at += snprintf(text + at, sizeof(text) - (size_t)at, "mov.u32 %%r2, %s; st.global.u32 [%%a0+%zu], %%r2;\n",
                       names[i], 4 * i);
    snprintf(
        text + at, sizeof(text) - (size_t)at,
        "mov.u64 %%a2, %%globaltimer; mov.u64 %%a3, %%clock64; mov.u32 %%r3, %%clock; nanosleep.u32 1000; mov.u64 "
        "%%a4, %%globaltimer; mov.u64 %%a5, %%clock64;\n"
        "setp.le.u64 %%p0, %%a2, %%a4; setp.lt.u64 %%p1, %%a3, %%a5; and.pred %%p0, %%p0, %%p1; selp.u32 %%r4, 77, 0, "
        "%%p0; st.global.u32 [%%a0+100], %%r4; mov.u64 %%a2, %%gridid; st.global.u64 [%%a0+104], %%a2; ret;\n}\n");
    kit_load(&k, text);
    uint32_t *m = kit_alloc(&k, 3 * 2 * 2 * 40 * 128);
    const its_sim_entry *entry;
    assert_int_equal(its_sim_program_entry(k.ctx, k.program, "f", &entry), ITS_OK);
    uint64_t address = kit_address(m);
    its_sim_launch launch = {.grid = {3, 2, 2}, .block = {5, 4, 2}, .params = &address, .id = 99};
    assert_int_equal(its_sim_grid_new(k.ctx, entry, &launch, &k.grid), ITS_OK);
    assert_int_equal(kit_finish(&k, 1000, 1000000), ITS_SIM_DONE);
    for (uint32_t c = 0; c < 12; c++)
        for (uint32_t t = 0; t < 40; t++) {
            const uint32_t *got = m + (c * 40 + t) * 32;
            uint32_t expected[] = {t % 5, t / 5 % 4, t / 20, 5, 4,      2,      c % 3, c / 3 % 2,
                                   c / 6, 3,         2,      2, t % 32, t / 32, 4};
            assert_memory_equal(got, expected, sizeof(expected));
            assert_in_range(got[15], 0, 3);
            assert_int_equal(got[25], 77);
            assert_int_equal(got[26], 99);
        }
    kit_free(&k, m);
    kit_close(&k);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bounds),
        cmocka_unit_test(test_special_values),
        cmocka_unit_test(test_special_registers),
    };
    return cmocka_run_group_tests_name("sim/approx", tests, NULL, NULL);
}
