/*
 * Matrix products of a warpgroup: each combination of types, layouts and swizzles against sums of whole numbers, which
 * all types hold exactly. The matrices are laid out by the tables of the PTX manual, row by row and piece by piece; the
 * simulator computes addresses and mixes their bits.
 */
#include "kit.h"

enum { ROWS = 64, MOST_N = 256, A_BYTES = 8192, B_BYTES = 32768, IMAGE = A_BYTES + B_BYTES, REGS = 128 * 4 * 4 };

typedef struct type {
    const char *name;
    unsigned bytes, low; /* of an element; its smallest value is -low */
    uint32_t codes[5];   /* of 0 to 4 */
    uint32_t sign;
} type;

static const type f16 = {"f16", 2, 4, {0, 0x3c00, 0x4000, 0x4200, 0x4400}, 0x8000};
static const type bf16 = {"bf16", 2, 4, {0, 0x3f80, 0x4000, 0x4040, 0x4080}, 0x8000};
static const type tf32 = {"tf32", 4, 4, {0, 0x3f800000, 0x40000000, 0x40400000, 0x40800000}, 0x80000000};
static const type e4m3 = {"e4m3", 1, 4, {0, 0x38, 0x40, 0x44, 0x48}, 0x80};
static const type e5m2 = {"e5m2", 1, 4, {0, 0x3c, 0x40, 0x42, 0x44}, 0x80};
static const type s8 = {"s8", 1, 4, {0, 1, 2, 3, 4}, 0};
static const type u8 = {"u8", 1, 0, {0, 1, 2, 3, 4}, 0};

typedef struct cell {
    const type *a, *b;
    const char *d;       /* f16, f32 or s32 */
    unsigned n, swizzle; /* bytes of a row: 16 for none, 32, 64, 128 */
    bool a_in_regs, a_mn, b_mn, accumulates;
    int a_scale, b_scale;
    unsigned slice; /* which 32 bytes along K of a wide swizzle */
} cell;

static uint32_t encode(const type *t, int value) {
    if (value >= 0) return t->codes[value];
    return t->sign ? t->codes[-value] | t->sign : (uint32_t)value;
}

static uint64_t random_state;
static int draw(unsigned low) {
    random_state = random_state * 6364136223846793005ull + 1442695040888963407ull;
    return (int)((random_state >> 33) % (5 + low)) - (int)low;
}

/* -- layouts ------------------------------------------------------------------------------------------------------- */

/* The piece of 16 bytes that piece `c` of row `r` of an atom is stored at. */
static unsigned mixed(unsigned swizzle, unsigned r, unsigned c) {
    return swizzle == 128 ? c ^ r : swizzle == 64 ? c ^ (r / 2) : swizzle == 32 ? c ^ (r / 4) : c;
}

typedef struct layout {
    bool mn;
    unsigned swizzle, bytes, leading, stride;
} layout;

static layout layout_of(const cell *c, bool mn, unsigned bytes, unsigned rows) {
    layout l = {mn, c->swizzle, bytes, 0, 0};
    if (c->swizzle == 16) {
        l.leading = mn ? 128 : 128 * (rows / 8);
        l.stride = mn ? 256 : 128;
    } else {
        l.leading = mn ? 16 * c->swizzle : 16;
        l.stride = 8 * c->swizzle;
    }
    return l;
}

/* The byte at which element (row or column i, k) begins. */
static unsigned place(const layout *l, unsigned i, unsigned k, unsigned slice) {
    unsigned w = l->swizzle;
    if (!l->mn) {
        unsigned byte = k * l->bytes;
        if (w == 16) return i / 8 * l->stride + byte / 16 * l->leading + i % 8 * 16 + byte % 16;
        byte += slice * 32;
        return i / 8 * l->stride + i % 8 * w + mixed(w, i % 8, byte / 16) * 16 + byte % 16;
    }
    unsigned per_row = w / l->bytes, byte = i % per_row * l->bytes;
    if (w == 16) return i / 8 * l->stride + k / 8 * l->leading + k % 8 * 16 + byte;
    return i / per_row * l->leading + k / 8 * l->stride + k % 8 * w + mixed(w, k % 8, byte / 16) * 16 + byte % 16;
}

static uint64_t descriptor(const layout *l, unsigned start) {
    uint64_t mode = l->swizzle == 128 ? 1 : l->swizzle == 64 ? 2 : l->swizzle == 32 ? 3 : 0;
    return mode << 62 | (uint64_t)(l->stride >> 4) << 32 | (uint64_t)(l->leading >> 4) << 16 | start >> 4;
}

/* -- one cell ------------------------------------------------------------------------------------------------------ */

static void append(char *text, size_t size, const char *format, ...) {
    va_list args;
    size_t used = strlen(text);
    va_start(args, format);
    vsnprintf(text + used, size - used, format, args);
    va_end(args);
}

static unsigned registers_of(const cell *c) {
    return strcmp(c->d, "f16") == 0 ? c->n / 4 : c->n / 2;
}

#define HEAD                                                                                                       \
    ".extern .shared .align 1024 .b8 s[];\n.visible .entry f(.param .u64 in, .param .u64 out, .param .u64 da,\n"   \
    ".param .u64 db)\n{ .reg .pred %p<4>; .reg .b32 %r<16>, %d<128>, %a<4>; .reg .b64 %rd<16>;\n"                  \
    "ld.param.u64 %rd0, [in]; ld.param.u64 %rd1, [out]; ld.param.u64 %rd2, [da]; ld.param.u64 %rd3, [db];\n"       \
    "mov.u32 %r0, %tid.x; mov.u32 %r1, s; mul.lo.u32 %r2, %r0, 16; setp.eq.u32 %p1, %r0, %r0;\n"                   \
    "COPY: add.u32 %r3, %r1, %r2; cvt.u64.u32 %rd4, %r2; add.u64 %rd4, %rd0, %rd4;\n"                              \
    "ld.global.v4.b32 {%r4, %r5, %r6, %r7}, [%rd4]; st.shared.v4.b32 [%r3], {%r4, %r5, %r6, %r7};\n"               \
    "add.u32 %r2, %r2, 2048; setp.lt.u32 %p0, %r2, 40960; @%p0 bra COPY;\n"                                        \
    "mul.wide.u32 %rd4, %r0, 16; add.u64 %rd4, %rd0, %rd4; ld.global.v4.b32 {%a0, %a1, %a2, %a3}, [%rd4+40960];\n" \
    "bar.sync 0; fence.proxy.async.shared::cta;\n"

static void write_kernel(const cell *c, char *text, size_t size) {
    unsigned n_d = registers_of(c);
    bool integers = c->a == &s8 || c->a == &u8;
    *text = 0;
    append(text, size, "%s", HEAD);
    for (unsigned i = 0; i < n_d; i++)
        append(text, size, "mov.b32 %%d%u, %s;\n", i,
               integers                   ? "5"
               : *c->d == 's'             ? "5"
               : strcmp(c->d, "f16") == 0 ? "0x3c003c00"
                                          : "0f3F800000");
    append(text, size, "wgmma.fence.sync.aligned;\nwgmma.mma_async.sync.aligned.m64n%uk%u.%s.%s.%s {", c->n,
           32 / c->a->bytes, c->d, c->a->name, c->b->name);
    for (unsigned i = 0; i < n_d; i++) append(text, size, "%s%%d%u", i ? ", " : "", i);
    append(text, size, "}, %s, %%rd3, %s", c->a_in_regs ? "{%a0, %a1, %a2, %a3}" : "%rd2",
           c->accumulates ? "%p1" : "0");
    if (!integers) append(text, size, ", %d, %d", c->a_scale, c->b_scale);
    if (c->a->bytes == 2 && !c->a_in_regs) append(text, size, ", %d", c->a_mn);
    if (c->a->bytes == 2) append(text, size, ", %d", c->b_mn);
    append(text, size,
           ";\nwgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 0;\n"
           "mul.wide.u32 %%rd5, %%r0, %u; add.u64 %%rd5, %%rd1, %%rd5;\n",
           4 * n_d);
    for (unsigned i = 0; i < n_d; i++) append(text, size, "st.global.b32 [%%rd5+%u], %%d%u;\n", 4 * i, i);
    append(text, size, "ret;\n}\n");
}

static float half_value(uint16_t bits) {
    int exponent = bits >> 10 & 31;
    float value = exponent ? (float)((bits & 1023) | 1024) : (float)(bits & 1023);
    for (int e = exponent ? exponent : 1; e < 25; e++) value /= 2;
    for (int e = 25; e < exponent; e++) value *= 2;
    return bits & 0x8000 ? -value : value;
}

/* Element (row, column) of what the threads have stored, by the table of the manual. */
static double result(const cell *c, const uint32_t *out, unsigned row, unsigned column) {
    unsigned thread = row / 16 * 32 + row % 8 * 4 + column % 8 / 2, high = row % 16 / 8;
    const uint32_t *regs = out + thread * registers_of(c);
    float value;
    if (strcmp(c->d, "f16") == 0) return half_value((uint16_t)(regs[column / 8 * 2 + high] >> 16 * (column % 2)));
    uint32_t bits = regs[column / 8 * 4 + 2 * high + column % 2];
    if (strcmp(c->d, "s32") == 0) return (int32_t)bits;
    memcpy(&value, &bits, sizeof(value));
    return value;
}

static void run_cell(kit *k, const cell *c, char *in, uint32_t *out) {
    static int a[ROWS][32], b[MOST_N][32];
    unsigned depth = 32 / c->a->bytes;
    memset(in, 0x55, IMAGE + REGS);
    layout la = layout_of(c, c->a_mn, c->a->bytes, ROWS), lb = layout_of(c, c->b_mn, c->b->bytes, c->n);
    for (unsigned i = 0; i < ROWS; i++)
        for (unsigned kk = 0; kk < depth; kk++) {
            uint32_t code = encode(c->a, a[i][kk] = draw(c->a->low));
            memcpy(in + place(&la, i, kk, c->slice), &code, c->a->bytes);
            unsigned byte = kk * c->a->bytes, reg = i % 16 / 8 + 2 * (byte / 16); /* a fragment of mma */
            unsigned thread = i / 16 * 32 + i % 8 * 4 + byte % 16 / 4;
            memcpy(in + IMAGE + (thread * 4 + reg) * 4 + byte % 4, &code, c->a->bytes);
        }
    for (unsigned i = 0; i < c->n; i++)
        for (unsigned kk = 0; kk < depth; kk++) {
            uint32_t code = encode(c->b, b[i][kk] = draw(c->b->low));
            memcpy(in + A_BYTES + place(&lb, i, kk, c->slice), &code, c->b->bytes);
        }
    static char text[32768];
    write_kernel(c, text, sizeof(text));
    kit_load(k, text);
    unsigned ahead = c->swizzle > 16 && !c->a_mn ? 32 * c->slice : 0,
             behind = c->swizzle > 16 && !c->b_mn ? 32 * c->slice : 0;
    kit_run(k, (kit_launch){"f",
                            1,
                            128,
                            IMAGE,
                            {kit_address(in), kit_address(out), descriptor(&la, 1024 + ahead),
                             descriptor(&lb, 1024 + A_BYTES + behind)}});
    for (unsigned row = 0; row < ROWS; row++)
        for (unsigned column = 0; column < c->n; column++) {
            int sum = 0;
            for (unsigned kk = 0; kk < depth; kk++) sum += a[row][kk] * b[column][kk];
            sum *= c->a_scale * c->b_scale;
            if (c->accumulates) sum += strcmp(c->d, "s32") == 0 ? 5 : 1;
            double got = result(c, out, row, column);
            if (got != sum)
                fail_msg("%s %s.%s n%u swizzle %u slice %u, A %s%s, B%s: (%u, %u) is %g, expected %d", c->d, c->a->name,
                         c->b->name, c->n, c->swizzle, c->slice, c->a_in_regs ? "in registers" : "in memory",
                         c->a_mn ? " MN-major" : "", c->b_mn ? " MN-major" : "", row, column, got, sum);
        }
}

static const struct {
    const type *a, *b;
    const char *d;
} types[] = {{&f16, &f16, "f16"},   {&f16, &f16, "f32"},   {&bf16, &bf16, "f32"}, {&tf32, &tf32, "f32"},
             {&e4m3, &e4m3, "f32"}, {&e4m3, &e5m2, "f16"}, {&e5m2, &e4m3, "f32"}, {&e5m2, &e5m2, "f16"},
             {&s8, &s8, "s32"},     {&s8, &u8, "s32"},     {&u8, &s8, "s32"},     {&u8, &u8, "s32"}};

/*
 * All types with all swizzles, and what else an instruction may say in turn; A and B each way that their type allows.
 */
static void test_products(void **state) {
    (void)state;
    static const unsigned columns[] = {8, 16, 24, 64, 128, 136, 256}, swizzles[] = {16, 32, 64, 128};
    kit k;
    kit_open(&k);
    char *in = kit_alloc(&k, IMAGE + REGS);
    uint32_t *out = kit_alloc(&k, 128 * 128 * 4);
    unsigned turn = 0, count = 0;
    for (size_t t = 0; t < sizeof(types) / sizeof(*types); t++)
        for (unsigned s = 0; s < 4; s++)
            for (unsigned way = 0; way < 6; way++, turn++) {
                cell c = {types[t].a,
                          types[t].b,
                          types[t].d,
                          columns[turn % 7],
                          swizzles[s],
                          way % 3 == 1,
                          way % 3 == 2,
                          way / 3,
                          turn % 2,
                          1,
                          1,
                          0};
                if (*c.d == 's' && c.n == 136) c.n = 144; /* there are fewer shapes of whole numbers */
                if (c.a->bytes != 2 && (c.a_mn || c.b_mn)) continue;
                if (*c.d == 'f' && turn % 3 == 1) c.a_scale = -1;
                if (*c.d == 'f' && turn % 5 < 2) c.b_scale = -1;
                if (c.swizzle > 16) c.slice = turn % (c.swizzle / 32);
                if (c.a_mn || c.b_mn) c.slice = 0;
                if (c.b_mn && c.n * 16 * 2 > B_BYTES) continue;
                if (c.swizzle > 16 && c.b_mn) c.n = (c.n + c.swizzle / 2 - 1) / (c.swizzle / 2) * (c.swizzle / 2);
                run_cell(&k, &c, in, out);
                count++;
            }
    assert_int_equal(count, 144);
    kit_free(&k, in), kit_free(&k, out);
    kit_close(&k);
}

/* -- when a product is there --------------------------------------------------------------------------------------- */

#define SMALL                                                                                                      \
    ".extern .shared .align 1024 .b8 s[];\n.visible .entry f(.param .u64 out, .param .u64 da)\n"                   \
    "{ .reg .pred %p<4>; .reg .b32 %r<16>, %d<4>; .reg .b64 %rd<16>;\n"                                            \
    "ld.param.u64 %rd1, [out]; ld.param.u64 %rd2, [da]; mov.u32 %r0, %tid.x; mov.u32 %r1, s;\n"                    \
    "mul.wide.u32 %rd5, %r0, 4; add.u64 %rd5, %rd1, %rd5; mov.u32 %r2, 0;\n"                                       \
    "mad.lo.u32 %r2, %r0, 32, %r1; mov.b32 %r3, 0x3c003c00;\n"                                                     \
    "st.shared.v4.b32 [%r2], {%r3, %r3, %r3, %r3}; st.shared.v4.b32 [%r2+16], {%r3, %r3, %r3, %r3}; bar.sync 0;\n" \
    "mov.b32 %d0, 0f42C80000; mov.b32 %d1, %d0; mov.b32 %d2, %d0; mov.b32 %d3, %d0;\n"
#define MULTIPLY "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%d0, %d1, %d2, %d3}, %rd2, %rd2, 1, 1, 1, 0, 0;\n"
#define OTHER "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%r4, %r5, %r6, %r7}, %rd2, %rd2, 1, 1, 1, 0, 0;\n"
#define COMMIT "wgmma.commit_group.sync.aligned;\n"
#define WAIT(n) "wgmma.wait_group.sync.aligned " #n ";\n"
#define SHOW(at) "st.global.b32 [%rd5+" #at "], %d0;\n"
#define ONES ((uint64_t)8 << 32 | (uint64_t)64 << 16 | 1024 >> 4) /* no swizzle: stride 128, leading 1024 */

static void run_small(const char *body, float *out, unsigned words) {
    kit k;
    kit_open(&k);
    char text[4096];
    float *memory = kit_alloc(&k, 4096);
    snprintf(text, sizeof(text), "%s%s%s", SMALL, body, "ret;\n}\n");
    kit_load(&k, text);
    kit_run(&k, (kit_launch){"f", 1, 128, 4096, {kit_address(memory), ONES}});
    for (unsigned i = 0; i < words; i++) out[i] = memory[128 * i + 77];
    kit_free(&k, memory);
    kit_close(&k);
}

static void test_results_come_with_the_wait(void **state) {
    (void)state;
    float out[4];
    run_small(MULTIPLY COMMIT MULTIPLY COMMIT WAIT(0) SHOW(0), out, 1);
    assert_true(out[0] == 132);
    /* One group is left alone, and both write the same registers. */
    run_small(
        "mov.b32 %r4, %d0; mov.b32 %r5, %d0; mov.b32 %r6, %d0; mov.b32 %r7, %d0;\n" MULTIPLY COMMIT OTHER COMMIT WAIT(1)
            SHOW(0) WAIT(0) "st.global.b32 [%rd5+512], %r4;\n",
        out, 2);
    assert_true(out[0] == 116);
    assert_true(out[1] == 116);
    /* What is overwritten before the wait is not what is multiplied. */
    run_small(MULTIPLY COMMIT "mov.u32 %r3, 0; st.shared.v4.b32 [%r2], {%r3, %r3, %r3, %r3};\n"
                              "st.shared.v4.b32 [%r2+16], {%r3, %r3, %r3, %r3}; bar.sync 0;\n" WAIT(0) SHOW(0),
              out, 1);
    assert_true(out[0] == 100);
    /* A product that was not committed is in no group: nothing has waited for it when the kernel ends. */
    run_small(MULTIPLY COMMIT WAIT(0) SHOW(0) OTHER WAIT(0), out, 1);
    assert_true(out[0] == 116);
}

/* Compilers move registers too early; ptxas then inserts a wait. */
static void test_moves_wait(void **state) {
    (void)state;
    float out[1];
    run_small(MULTIPLY COMMIT MULTIPLY COMMIT "mov.b32 %r4, %d0;\n" WAIT(0) "st.global.b32 [%rd5], %r4;\n", out, 1);
    assert_true(out[0] == 132);
}

/* -- faults -------------------------------------------------------------------------------------------------------- */

static void expect_fault(const char *body, uint32_t threads, uint64_t descriptor_given, const char *message) {
    kit k;
    kit_open(&k);
    char text[4096];
    float *memory = kit_alloc(&k, 4096);
    snprintf(text, sizeof(text), "%s%s%s", SMALL, body, "ret;\n}\n");
    kit_load(&k, text);
    assert_int_equal(kit_launch_run(&k, (kit_launch){"f", 1, threads, 4096, {kit_address(memory), descriptor_given}}),
                     ITS_SIM_FAULT);
    its_sim_fault_report(k.ctx, its_sim_grid_fault(k.grid));
    if (!strstr(kit_message(&k), message)) fail_msg("reported: %s\nexpected: %s", kit_message(&k), message);
    kit_free(&k, memory);
    kit_close(&k);
}

static void test_faults(void **state) {
    (void)state;
    expect_fault(MULTIPLY, 128, ONES + 256,
                 "reads a matrix at shared address 0x1400, outside of the CTA's 4096 bytes of shared memory");
    expect_fault(MULTIPLY, 128, ONES & ~(uint64_t)0x3fff, "reads a matrix at shared address 0x0, outside of");
    expect_fault(MULTIPLY, 128, ONES | 1 << 14, "bits set that must be 0: addresses and offsets are in units of 16");
    expect_fault(MULTIPLY, 128, ONES | (uint64_t)1 << 49, "a base offset, which the simulator doesn't have");
    expect_fault("cvt.u64.u32 %rd3, %r0; add.u64 %rd2, %rd2, %rd3;\n" MULTIPLY, 128, ONES,
                 "gives a matrix descriptor that differs between the threads of its warp");
    expect_fault(MULTIPLY, 96, ONES, "a warpgroup is four warps that follow each other, and there are fewer");
    expect_fault(MULTIPLY COMMIT "st.global.b32 [%rd5], %d2;\n" WAIT(0), 128, ONES,
                 "uses a register that a matrix product still writes: wait for its group first");
    expect_fault(MULTIPLY COMMIT "add.f32 %d1, 0f3F800000, 0f3F800000;\n" WAIT(0), 128, ONES, "uses a register that");
    expect_fault("setp.eq.u32 %p0, %r0, 3; @%p0 exit;\n" MULTIPLY, 128, ONES, "only 31 threads of the warp are left");
}

static void test_return_too_early(void **state) {
    (void)state;
    kit k;
    kit_open(&k);
    kit_load(&k, ".extern .shared .align 1024 .b8 s[];\n"
                 ".func g() { .reg .b32 %d<4>; .reg .b64 %rd2; mov.u64 %rd2, 0x800400040;\n" MULTIPLY COMMIT "ret; }\n"
                 ".visible .entry f() { .reg .b64 %a; mov.u64 %a, s; call g; " WAIT(0) "ret; }\n");
    assert_int_equal(kit_launch_run(&k, (kit_launch){"f", 1, 128, 4096, {0}}), ITS_SIM_FAULT);
    its_sim_fault_report(k.ctx, its_sim_grid_fault(k.grid));
    assert_non_null(
        strstr(kit_message(&k), "returns from a function while a matrix product still writes its registers"));
    kit_close(&k);
}

static void test_what_is_refused(void **state) {
    (void)state;
    static const char *const bodies[][2] = {
        {"wgmma.mma_async.sync.aligned.m64n8k256.s32.b1.b1.and.popc {%d0, %d1, %d2, %d3}, %rd2, %rd2, 1;",
         "in this form"},
        {"wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%d0, %d1, %d2, %d3}, %rd2, %rd2, 1, 1, 1;",
         "lacks an operand"},
        {"wgmma.mma_async.sp.sync.aligned.m64n8k32.f32.f16.f16 {%d0, %d1, %d2, %d3}, %rd2, %rd2, %r0, 0, 1, 1, 1, 0, 0;",
         "doesn't have"}};
    for (size_t i = 0; i < sizeof(bodies) / sizeof(*bodies); i++) {
        kit k;
        kit_open(&k);
        char text[4096];
        snprintf(text, sizeof(text), "%s%s%s", SMALL, bodies[i][0], "ret;\n}\n");
        kit_load(&k, text);
        kit_launch l = {"f", 1, 128, 4096, {0}};
        assert_int_equal(kit_make_grid(&k, &l), ITS_ERR_INPUT);
        if (!strstr(kit_message(&k), bodies[i][1])) fail_msg("reported: %s", kit_message(&k));
        kit_close(&k);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_products),         cmocka_unit_test(test_results_come_with_the_wait),
        cmocka_unit_test(test_moves_wait),       cmocka_unit_test(test_faults),
        cmocka_unit_test(test_return_too_early), cmocka_unit_test(test_what_is_refused),
    };
    return cmocka_run_group_tests_name("sim/wgmma", tests, NULL, NULL);
}
