/*
 * Matrix instructions, asynchronous copies and mbarriers: results against the layouts that the PTX manual gives for
 * each lane, and the reports for what is done wrongly.
 */
#include "kit.h"

/* -- mma ----------------------------------------------------------------------------------------------------------- */

typedef enum kind { F16, BF16, TF32, E4M3, E5M2, S8, U8, S4, U4, B1, B1X, F64 } kind;

typedef struct mma_case {
    const char *name;
    unsigned m, k;
    kind a, b;
    bool half; /* C and D are f16 */
} mma_case;

static const mma_case mma_cases[] = {
    {"m16n8k8.row.col.f32.f16.f16.f32", 16, 8, F16, F16, false},
    {"m16n8k16.row.col.f32.f16.f16.f32", 16, 16, F16, F16, false},
    {"m16n8k16.row.col.f16.f16.f16.f16", 16, 16, F16, F16, true},
    {"m16n8k8.row.col.f32.bf16.bf16.f32", 16, 8, BF16, BF16, false},
    {"m16n8k16.row.col.f32.bf16.bf16.f32", 16, 16, BF16, BF16, false},
    {"m16n8k4.row.col.f32.tf32.tf32.f32", 16, 4, TF32, TF32, false},
    {"m16n8k8.row.col.f32.tf32.tf32.f32", 16, 8, TF32, TF32, false},
    {"m16n8k32.row.col.f32.e4m3.e5m2.f32", 16, 32, E4M3, E5M2, false},
    {"m16n8k32.row.col.f32.e5m2.e4m3.f32", 16, 32, E5M2, E4M3, false},
    {"m8n8k16.row.col.s32.s8.u8.s32", 8, 16, S8, U8, false},
    {"m16n8k16.row.col.s32.u8.s8.s32", 16, 16, U8, S8, false},
    {"m16n8k32.row.col.satfinite.s32.s8.s8.s32", 16, 32, S8, S8, false},
    {"m8n8k32.row.col.s32.s4.u4.s32", 8, 32, S4, U4, false},
    {"m16n8k64.row.col.s32.u4.s4.s32", 16, 64, U4, S4, false},
    {"m8n8k128.row.col.s32.b1.b1.s32.xor.popc", 8, 128, B1X, B1X, false},
    {"m16n8k128.row.col.s32.b1.b1.s32.and.popc", 16, 128, B1, B1, false},
    {"m16n8k256.row.col.s32.b1.b1.s32.and.popc", 16, 256, B1, B1, false},
    {"m16n8k256.row.col.s32.b1.b1.s32.xor.popc", 16, 256, B1X, B1X, false},
    {"m8n8k4.row.col.f64.f64.f64.f64", 8, 4, F64, F64, false},
    {"m16n8k16.row.col.f64.f64.f64.f64", 16, 16, F64, F64, false},
    {"m16n8k8.row.col.f64.f64.f64.f64.rn", 16, 8, F64, F64, false},
};

static unsigned bits_of(kind k) {
    return k == F64 ? 64 : k == TF32 ? 32 : k <= BF16 ? 16 : k >= B1 ? 1 : k >= S4 ? 4 : 8;
}

static bool is_integer(kind k) {
    return k >= S8 && k <= B1X;
}

/* A small whole number that every type holds exactly, by position. */
static int value_at(kind k, unsigned salt, unsigned row, unsigned column) {
    unsigned mixed = (row * 31 + column * 17 + salt * 101) * 2654435761u >> 13;
    if (bits_of(k) == 1) return (int)(mixed & 1);
    return (int)(mixed % 7) - (k == U8 || k == U4 ? 0 : 3);
}

/* The bits of a whole number from -3 to 6. */
static uint64_t encode(kind k, int value) {
    float f = (float)value;
    double d = value;
    uint32_t word;
    uint64_t wide;
    memcpy(&word, &f, 4);
    memcpy(&wide, &d, 8);
    uint32_t sign = value < 0, exponent = value ? (word >> 23 & 255) - 127 : 0, fraction = word & 0x7fffff;
    switch (k) {
    case F64:
        return wide;
    case TF32:
        return word | 0x155; /* the lowest bits are not looked at */
    case BF16:
        return word >> 16;
    case F16:
        return value ? sign << 15 | (exponent + 15) << 10 | fraction >> 13 : 0;
    case E4M3:
        return value ? sign << 7 | (exponent + 7) << 3 | fraction >> 20 : 0;
    case E5M2:
        return value ? sign << 7 | (exponent + 15) << 2 | fraction >> 21 : 0;
    default:
        return (uint64_t)value & ((1u << bits_of(k)) - 1);
    }
}

/*
 * Puts element (row, column) of A, or of B seen by columns, where the manual says: lane row % 8 * 4 + group of column.
 */
static void put(char *regs, unsigned rows, kind k, unsigned row, unsigned column, uint64_t bits) {
    unsigned width = bits_of(k), word = width == 64 ? 64 : 32, per_lane = word / width, tile = 4 * per_lane;
    unsigned lane = row % 8 * 4 + column % tile / per_lane, at = column % per_lane * width;
    unsigned reg = column / tile * (rows / 8) + row / 8;
    char *cell = regs + (reg * 32 + lane) * (word / 8);
    uint64_t old = 0;
    memcpy(&old, cell, word / 8);
    old |= bits << at;
    memcpy(cell, &old, word / 8);
}

static unsigned count_of(kind k, unsigned rows, unsigned columns) {
    return rows * columns * bits_of(k) / (bits_of(k) == 64 ? 2048 : 1024);
}

static size_t list_registers(char *text, size_t size, const char *name, unsigned n) {
    size_t used = 0;
    for (unsigned i = 0; i < n; i++)
        used += (size_t)snprintf(text + used, size - used, "%s%%%s%u", i ? ", " : "", name, i);
    return used;
}

static size_t move_registers(char *text, size_t size, bool loads, const char *name, const char *param, unsigned n,
                             unsigned bits) {
    size_t used = (size_t)snprintf(text, size, "ld.param.u64 %%rd0, [%s]; mad.wide.u32 %%rd0, %%r0, %u, %%rd0;\n",
                                   param, bits / 8);
    for (unsigned i = 0; i < n; i++)
        used += (size_t)(loads ? snprintf(text + used, size - used, "ld.global.b%u %%%s%u, [%%rd0+%u];\n", bits, name,
                                          i, i * 32 * bits / 8)
                               : snprintf(text + used, size - used, "st.global.b%u [%%rd0+%u], %%%s%u;\n", bits,
                                          i * 32 * bits / 8, name, i));
    return used;
}

static void check_mma(kit *k, const mma_case *c) {
    unsigned word = bits_of(c->a) == 64 ? 64 : 32;
    unsigned na = count_of(c->a, c->m, c->k), nb = count_of(c->b, 8, c->k);
    unsigned nc = c->half ? c->m / 8 : c->m / 4;
    char text[8192], lists[4][256];
    const char *names[4] = {"d", "a", "b", "c"};
    unsigned counts[4] = {nc, na, nb, nc};
    for (unsigned i = 0; i < 4; i++) list_registers(lists[i], sizeof(lists[i]), names[i], counts[i]);
    size_t used = (size_t)snprintf(text, sizeof(text),
                                   ".visible .entry f(.param .u64 a, .param .u64 b, .param .u64 c, .param .u64 d)\n"
                                   "{\n.reg .b32 %%r0; .reg .b64 %%rd0;\n"
                                   ".reg .b%u %%a<8>, %%b<8>, %%c<8>, %%d<8>;\nmov.u32 %%r0, %%tid.x;\n",
                                   word);
    used += move_registers(text + used, sizeof(text) - used, true, "a", "a", na, word);
    used += move_registers(text + used, sizeof(text) - used, true, "b", "b", nb, word);
    used += move_registers(text + used, sizeof(text) - used, true, "c", "c", nc, word);
    used += (size_t)snprintf(text + used, sizeof(text) - used, "mma.sync.aligned.%s {%s}, {%s}, {%s}, {%s};\n", c->name,
                             lists[0], lists[1], lists[2], lists[3]);
    used += move_registers(text + used, sizeof(text) - used, false, "d", "d", nc, word);
    snprintf(text + used, sizeof(text) - used, "ret;\n}\n");
    char *a = kit_alloc(k, 2048), *b = kit_alloc(k, 2048), *cc = kit_alloc(k, 2048), *d = kit_alloc(k, 2048);
    memset(a, 0, 2048), memset(b, 0, 2048), memset(cc, 0, 2048), memset(d, 0xee, 2048);
    kind sum = c->half ? F16 : word == 64 ? F64 : TF32;
    for (unsigned row = 0; row < c->m; row++) {
        for (unsigned i = 0; i < c->k; i++) put(a, c->m, c->a, row, i, encode(c->a, value_at(c->a, 1, row, i)));
        for (unsigned n = 0; n < 8; n++) {
            int start = value_at(F64, 3, row, n);
            float f = (float)start;
            uint64_t bits = is_integer(c->a) ? (uint32_t)start : encode(sum, start);
            if (sum == TF32 && !is_integer(c->a)) memcpy(&bits, &f, 4); /* a whole f32 */
            unsigned cell = c->half ? 0 : n % 2, lane = row % 8 * 4 + n / 2;
            if (c->half)
                put(cc, c->m, F16, row, n, bits);
            else
                memcpy(cc + ((row / 8 * 2 + cell) * 32 + lane) * (word / 8), &bits, word / 8);
        }
    }
    for (unsigned n = 0; n < 8; n++)
        for (unsigned i = 0; i < c->k; i++) put(b, 8, c->b, n, i, encode(c->b, value_at(c->b, 2, n, i)));
    kit_load(k, text);
    kit_run(k, (kit_launch){"f", 1, 32, 0, {kit_address(a), kit_address(b), kit_address(cc), kit_address(d)}});
    for (unsigned row = 0; row < c->m; row++)
        for (unsigned n = 0; n < 8; n++) {
            int expected = value_at(F64, 3, row, n);
            for (unsigned i = 0; i < c->k; i++) {
                int x = value_at(c->a, 1, row, i), y = value_at(c->b, 2, n, i);
                expected += c->a == B1X ? x ^ y : x * y;
            }
            unsigned lane = row % 8 * 4 + n / 2;
            const char *cell = d + ((row / 8 * 2 + n % 2) * 32 + lane) * (word / 8);
            double got;
            if (c->half) {
                uint16_t h;
                memcpy(&h, d + (row / 8 * 32 + lane) * 4 + n % 2 * 2, 2);
                got = (h & 0x7fff) == 0 ? 0
                                        : (h & 0x8000 ? -1.0 : 1.0) * (1 + (h & 1023) / 1024.0) *
                                              (double)(1u << ((h >> 10 & 31) - 10)) / 32;
            } else if (word == 64) {
                memcpy(&got, cell, 8);
            } else if (is_integer(c->a)) {
                int32_t i;
                memcpy(&i, cell, 4);
                got = i;
            } else {
                float f;
                memcpy(&f, cell, 4);
                got = f;
            }
            if (got != expected) fail_msg("%s: (%u, %u) is %g, expected %d", c->name, row, n, got, expected);
        }
    kit_free(k, a), kit_free(k, b), kit_free(k, cc), kit_free(k, d);
}

static void test_mma(void **state) {
    (void)state;
    kit k;
    kit_open(&k);
    for (size_t i = 0; i < sizeof(mma_cases) / sizeof(*mma_cases); i++) check_mma(&k, &mma_cases[i]);
    kit_close(&k);
}

/* -- what the others share ----------------------------------------------------------------------------------------- */

#define FRAME_BEGIN                                                                           \
    ".visible .entry f(.param .u64 in, .param .u64 out)\n{\n"                                 \
    ".reg .pred %p<4>; .reg .b32 %r<16>; .reg .b64 %rd<8>; .shared .align 128 .b8 s[1024];\n" \
    ".shared .align 8 .b64 m;\n"                                                              \
    "ld.param.u64 %rd0, [in]; ld.param.u64 %rd1, [out]; mov.u32 %r0, %tid.x; mov.u32 %r1, s;\n"
#define FRAME_END "ret;\n}\n"
/* %r2: the shared address of this lane's 16 bytes; %rd2, %rd3: its places in `in` and `out`. */
#define OWN_16 "mad.lo.u32 %r2, %r0, 16, %r1; mad.wide.u32 %rd2, %r0, 16, %rd0; mad.wide.u32 %rd3, %r0, 16, %rd1;\n"
#define SHOW "ld.shared.v4.b32 {%r4, %r5, %r6, %r7}, [%r2]; st.global.v4.b32 [%rd3], {%r4, %r5, %r6, %r7};\n"

static uint16_t *start(kit *k, uint16_t **out) {
    uint16_t *in = kit_alloc(k, 2048);
    *out = kit_alloc(k, 2048);
    for (unsigned i = 0; i < 1024; i++) in[i] = (uint16_t)(i * 7 + 1), (*out)[i] = 0xeeee;
    return in;
}

static void run(kit *k, const char *body, uint16_t *in, uint16_t *out) {
    char text[4096];
    snprintf(text, sizeof(text), "%s%s%s", FRAME_BEGIN, body, FRAME_END);
    kit_load(k, text);
    kit_run(k, (kit_launch){"f", 1, 32, 0, {kit_address(in), kit_address(out)}});
}

static void expect_fault(const char *body, const char *message) {
    kit k;
    uint16_t *out, *in;
    char text[4096];
    kit_open(&k);
    in = start(&k, &out);
    snprintf(text, sizeof(text), "%s%s%s", FRAME_BEGIN, body, FRAME_END);
    kit_load(&k, text);
    assert_int_equal(kit_launch_run(&k, (kit_launch){"f", 1, 32, 0, {kit_address(in), kit_address(out)}}),
                     ITS_SIM_FAULT);
    its_sim_fault_report(k.ctx, its_sim_grid_fault(k.grid));
    if (!strstr(kit_message(&k), message)) fail_msg("reported: %s\nexpected: %s", kit_message(&k), message);
    kit_free(&k, in), kit_free(&k, out);
    kit_close(&k);
}

/* -- ldmatrix, stmatrix, movmatrix --------------------------------------------------------------------------------- */

#define LOAD_FOUR(trans)                                                                                  \
    OWN_16 "ld.global.v4.b32 {%r4, %r5, %r6, %r7}, [%rd2];\n"                                             \
           "st.shared.v4.b32 [%r2], {%r4, %r5, %r6, %r7}; bar.sync 0;\n"                                  \
           "ldmatrix.sync.aligned.m8n8.x4" trans ".shared.b16 {%r4, %r5, %r6, %r7}, [%r2];\n"             \
           "mad.wide.u32 %rd4, %r0, 4, %rd1; st.global.b32 [%rd4], %r4; st.global.b32 [%rd4+128], %r5;\n" \
           "st.global.b32 [%rd4+256], %r6; st.global.b32 [%rd4+384], %r7;\n"

static void test_ldmatrix(void **state) {
    (void)state;
    for (int transposed = 0; transposed < 2; transposed++) {
        kit k;
        uint16_t *out, *in;
        kit_open(&k);
        in = start(&k, &out);
        run(&k, transposed ? LOAD_FOUR(".trans") : LOAD_FOUR(""), in, out);
        for (unsigned matrix = 0; matrix < 4; matrix++)
            for (unsigned lane = 0; lane < 32; lane++)
                for (unsigned half = 0; half < 2; half++) {
                    unsigned row = lane / 4, column = lane % 4 * 2 + half;
                    unsigned from = transposed ? column * 8 + row : row * 8 + column;
                    assert_int_equal(out[matrix * 64 + lane * 2 + half], in[matrix * 64 + from]);
                }
        kit_free(&k, in), kit_free(&k, out);
        kit_close(&k);
    }
}

static void test_stmatrix_and_movmatrix(void **state) {
    (void)state;
    kit k;
    uint16_t *out, *in;
    kit_open(&k);
    in = start(&k, &out);
    run(&k,
        OWN_16 "mad.wide.u32 %rd4, %r0, 4, %rd0; ld.global.b32 %r4, [%rd4]; ld.global.b32 %r5, [%rd4+128];\n"
               "movmatrix.sync.aligned.m8n8.trans.b16 %r5, %r5;\n"
               "stmatrix.sync.aligned.m8n8.x2.trans.shared.b16 [%r2], {%r4, %r5}; bar.sync 0;\n"
               "setp.ge.u32 %p1, %r0, 16; @%p1 ret;\n" SHOW,
        in, out);
    for (unsigned row = 0; row < 8; row++)
        for (unsigned column = 0; column < 8; column++) {
            assert_int_equal(out[row * 8 + column], in[column * 8 + row]);
            assert_int_equal(out[64 + row * 8 + column], in[64 + row * 8 + column]); /* turned twice */
        }
    kit_free(&k, in), kit_free(&k, out);
    kit_close(&k);
}

static void test_matrix_faults(void **state) {
    (void)state;
    expect_fault(OWN_16 "add.u32 %r2, %r2, 8; ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r4}, [%r2];\n",
                 "no multiple of");
    expect_fault(OWN_16 "add.u32 %r2, %r2, 4096; ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r4}, [%r2];\n",
                 "reads 16 bytes");
    expect_fault(OWN_16 "add.u32 %r2, %r2, 4096; stmatrix.sync.aligned.m8n8.x1.shared.b16 [%r2], {%r4};\n",
                 "writes 16 bytes");
    expect_fault(OWN_16 "add.u32 %r2, %r2, 8; stmatrix.sync.aligned.m8n8.x1.shared.b16 [%r2], {%r4};\n",
                 "no multiple of");
}

/* What needs all 32 threads doesn't make do with those that are left. */
static void test_parts_of_a_warp(void **state) {
    (void)state;
    static const char *const instructions[] = {
        "ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%r4, %r5, %r6, %r7}, [%r2];\n",
        "stmatrix.sync.aligned.m8n8.x4.shared.b16 [%r2], {%r4, %r5, %r6, %r7};\n",
        "movmatrix.sync.aligned.m8n8.trans.b16 %r4, %r5;\n",
        "mma.sync.aligned.m16n8k8.row.col.f16.f16.f16.f16 {%r4, %r5}, {%r4, %r5}, {%r6}, {%r4, %r5};\n",
    };
    for (size_t i = 0; i < sizeof(instructions) / sizeof(*instructions); i++) {
        char body[512];
        snprintf(body, sizeof(body), "%s%s%s", OWN_16, "setp.eq.u32 %p0, %r0, 5; @%p0 exit;\n", instructions[i]);
        expect_fault(body, "synchronises with its warp wrongly: only 31 threads of the warp are left, and all 32 must "
                           "take part");
    }
}

/* -- cp.async ------------------------------------------------------------------------------------------------------ */

/* Nothing has come before the wait, everything after it; what is not read is zero. */
static void test_copies_come_with_the_wait(void **state) {
    (void)state;
    kit k;
    uint16_t *out, *in;
    kit_open(&k);
    in = start(&k, &out);
    run(&k,
        OWN_16 "mov.b32 %r4, -1; st.shared.v4.b32 [%r2], {%r4, %r4, %r4, %r4};\n"
               "and.b32 %r3, %r0, 15; cp.async.cg.shared.global [%r2], [%rd2], 16, %r3;\n"
               "cp.async.commit_group; cp.async.ca.shared.global [%r2+512], [%rd2], 8; cp.async.commit_group;\n" SHOW
               "cp.async.wait_group 1; ld.shared.v4.b32 {%r4, %r5, %r6, %r7}, [%r2];\n"
               "st.global.v4.b32 [%rd3+512], {%r4, %r5, %r6, %r7};\n"
               "cp.async.wait_all; ld.shared.v2.b32 {%r4, %r5}, [%r2+512]; st.global.v2.b32 [%rd3+1024], {%r4, %r5};\n",
        in, out);
    for (unsigned lane = 0; lane < 32; lane++) {
        uint8_t expected[16] = {0};
        memcpy(expected, in + lane * 8, lane % 16);
        for (unsigned i = 0; i < 8; i++) assert_int_equal(out[lane * 8 + i], 0xffff);
        assert_memory_equal(out + 256 + lane * 8, expected, 16);
        assert_memory_equal(out + 512 + lane * 8, in + lane * 8, 8);
    }
    kit_free(&k, in), kit_free(&k, out);
    kit_close(&k);
}

static void test_copy_faults(void **state) {
    (void)state;
    expect_fault(OWN_16 "cp.async.cg.shared.global [%r2], [%rd2+2048], 16;\n", "reads 16 bytes");
    expect_fault(OWN_16 "cp.async.cg.shared.global [%r2+4096], [%rd2], 16;\n", "writes 16 bytes");
    expect_fault(OWN_16 "cp.async.ca.shared.global [%r2+4], [%rd2], 8;\n", "no multiple of");
    expect_fault(OWN_16 "mov.b32 %r3, 24; cp.async.cg.shared.global [%r2], [%rd2], 16, %r3;\n",
                 "copies 16 bytes but is to read 24");
}

/* A copy of a wrong size is refused when the kernel is looked up. */
static void test_copy_of_a_wrong_size(void **state) {
    (void)state;
    kit k;
    kit_open(&k);
    char text[2048];
    snprintf(text, sizeof(text), "%s%s%s", FRAME_BEGIN, OWN_16 "cp.async.cg.shared.global [%r2], [%rd2], 8;\n",
             FRAME_END);
    kit_load(&k, text);
    const its_sim_entry *entry;
    assert_int_equal(its_sim_program_entry(k.ctx, k.program, "f", &entry), ITS_ERR_INPUT);
    assert_non_null(strstr(kit_message(&k), "cp.async of 8 bytes"));
    kit_close(&k);
}

/* -- mbarriers and bulk copies ------------------------------------------------------------------------------------- */

static void test_bulk_copy_completes_on_its_mbarrier(void **state) {
    (void)state;
    kit k;
    uint16_t *out, *in;
    kit_open(&k);
    in = start(&k, &out);
    run(&k,
        OWN_16 "setp.ne.u32 %p1, %r0, 0; @%p1 bra WAIT; mov.u32 %r8, m;\n"
               "mbarrier.init.shared.b64 [%r8], 1; mbarrier.arrive.expect_tx.shared.b64 _, [%r8], 512;\n"
               "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r1], [%rd0], 512, [%r8];\n"
               "WAIT: bar.sync 0; mov.u32 %r8, m;\n"
               "SPIN: mbarrier.try_wait.parity.shared.b64 %p2, [%r8], 0; @!%p2 bra SPIN;\n" SHOW,
        in, out);
    assert_memory_equal(out, in, 512);
    kit_free(&k, in), kit_free(&k, out);
    kit_close(&k);
}

#define BULK(to, from, size)                                                                          \
    "mov.u32 %r8, m; setp.ne.u32 %p1, %r0, 0; @!%p1 mbarrier.init.shared.b64 [%r8], 1; bar.sync 0;\n" \
    "@!%p1 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [" to "], [" from "], " size ", [%r8];\n"

static void test_bulk_faults(void **state) {
    (void)state;
    expect_fault(BULK("%r1", "%rd0", "24"), "copies 24 bytes; a bulk copy takes a multiple of 16");
    expect_fault(BULK("%r1", "%rd0", "0"), "copies 0 bytes; a bulk copy takes a multiple of 16");
    expect_fault(BULK("%r1", "%rd0+8", "32"), "no multiple of 16");
    expect_fault(BULK("%r1+8", "%rd0", "32"), "no multiple of 16");
    expect_fault(BULK("%r1", "%rd0", "4096"), "reads 4096 bytes at address");
    expect_fault(BULK("%r1+1008", "%rd0", "64"), "writes 16 bytes");
    expect_fault(
        "@%p1 bra L; L: cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r1], [%rd0], 64, [%r1];\n",
        "which was not initialised");
    expect_fault("cp.async.bulk.global.shared::cta.bulk_group [%rd1+1000], [%r1], 64;\n", "no multiple of 16");
    expect_fault("cp.async.bulk.global.shared::cta.bulk_group [%rd1+2032], [%r1], 64;\n", "writes 64 bytes");
}

/* A kernel frees memory that is still to be copied. */
static void test_copy_of_freed_memory(void **state) {
    (void)state;
    kit k;
    kit_open(&k);
    kit_load(&k,
             ".extern .func (.param .b64 r) malloc(.param .b64 n);\n.extern .func free(.param .b64 p);\n"
             ".visible .entry f()\n{ .reg .b32 %r<4>; .reg .b64 %rd<4>; .shared .align 16 .b8 s[64];\n"
             "{ .param .b64 a; .param .b64 q; st.param.b64 [a], 64; call (q), malloc, (a); ld.param.b64 %rd0, [q]; }\n"
             "mov.u32 %r0, s; cp.async.cg.shared.global [%r0], [%rd0], 16; cp.async.commit_group;\n"
             "{ .param .b64 a; st.param.b64 [a], %rd0; call free, (a); }\n"
             "cp.async.wait_group 0; ret; }\n");
    assert_int_equal(kit_launch_run(&k, (kit_launch){"f", 1, 1, 0, {0}}), ITS_SIM_FAULT);
    its_sim_fault_report(k.ctx, its_sim_grid_fault(k.grid));
    if (!strstr(kit_message(&k), "reads 16 bytes at address")) fail_msg("reported: %s", kit_message(&k));
    kit_close(&k);
}

static void test_mbarrier_phases(void **state) {
    (void)state;
    kit k;
    uint16_t *out, *in;
    kit_open(&k);
    in = start(&k, &out);
    /* 32 arrivals complete phase 0; its state tests true then, a state of phase 1 doesn't. */
    run(&k,
        "mov.u32 %r8, m; setp.ne.u32 %p1, %r0, 0; @!%p1 mbarrier.init.shared.b64 [%r8], 32; bar.sync 0;\n"
        "mbarrier.arrive.shared.b64 %rd4, [%r8]; bar.sync 0;\n"
        "mbarrier.test_wait.shared.b64 %p2, [%r8], %rd4; selp.b32 %r4, 1, 0, %p2;\n"
        "mbarrier.test_wait.parity.shared.b64 %p3, [%r8], 1; selp.b32 %r5, 1, 0, %p3; bar.sync 0;\n"
        "mad.wide.u32 %rd5, %r0, 8, %rd1; st.global.v2.b32 [%rd5], {%r4, %r5};\n",
        in, out);
    for (unsigned lane = 0; lane < 32; lane++) {
        assert_int_equal(out[lane * 4], 1);
        assert_int_equal(out[lane * 4 + 2], 0);
    }
    kit_free(&k, in), kit_free(&k, out);
    kit_close(&k);
}

/* What was pending before an arrival is in the state that it gives. */
static void test_mbarrier_counts(void **state) {
    (void)state;
    kit k;
    uint16_t *out, *in;
    kit_open(&k);
    in = start(&k, &out);
    run(&k,
        "mov.u32 %r8, m; setp.ne.u32 %p1, %r0, 0; @%p1 bra END; mbarrier.init.shared.b64 [%r8], 10;\n"
        "mbarrier.arrive.noComplete.shared.b64 %rd4, [%r8], 3; mbarrier.pending_count.b64 %r4, %rd4;\n"
        "mbarrier.arrive_drop.noComplete.shared.b64 %rd4, [%r8], 2; mbarrier.pending_count.b64 %r5, %rd4;\n"
        "mbarrier.arrive.shared.b64 %rd5, [%r8], 5; mbarrier.pending_count.b64 %r6, %rd5;\n"
        "mbarrier.test_wait.shared.b64 %p2, [%r8], %rd4; selp.b32 %r7, 1, 0, %p2;\n"
        "mbarrier.arrive.noComplete.shared.b64 %rd4, [%r8], 1; mbarrier.pending_count.b64 %r9, %rd4;\n"
        "st.global.v4.b32 [%rd1], {%r4, %r5, %r6, %r7}; st.global.b32 [%rd1+16], %r9; END:\n",
        in, out);
    static const uint32_t expected[] = {10, 7, 5, 1, 8}; /* two were dropped */
    assert_memory_equal(out, expected, sizeof(expected));
    kit_free(&k, in), kit_free(&k, out);
    kit_close(&k);
}

/* Eight numbers of this CTA's are added to eight others, on an mbarrier that one thread drops out of. */
static void test_reduction_on_an_mbarrier(void **state) {
    (void)state;
    kit k;
    uint16_t *out, *in;
    kit_open(&k);
    in = start(&k, &out);
    run(&k,
        "mov.u32 %r8, m; mad.lo.u32 %r2, %r0, 4, %r1; mul.lo.u32 %r3, %r0, 100; st.shared.u32 [%r2], %r3;\n"
        "st.shared.u32 [%r2+256], %r0; setp.ne.u32 %p1, %r0, 0; @!%p1 mbarrier.init.shared.b64 [%r8], 2; bar.sync 0;\n"
        "@!%p1 mbarrier.arrive_drop.expect_tx.shared.b64 %rd4, [%r8], 32;\n"
        "@!%p1 cp.reduce.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes.add.u32 [%r1+256], [%r1], 32, "
        "[%r8];\n"
        "@!%p1 mbarrier.arrive.shared.b64 %rd4, [%r8]; bar.sync 0;\n"
        "mov.u32 %r9, 0; WAIT: mbarrier.try_wait.parity.shared.b64 %p2, [%r8], %r9; @!%p2 bra WAIT;\n"
        "bar.sync 0; @!%p1 mbarrier.arrive.shared.b64 _, [%r8]; mov.u32 %r9, 1;\n" /* now one arrival is a phase */
        "NEXT: mbarrier.try_wait.parity.shared.b64 %p2, [%r8], %r9; @!%p2 bra NEXT;\n"
        "ld.shared.u32 %r4, [%r2+256]; mad.wide.u32 %rd5, %r0, 4, %rd1; st.global.u32 [%rd5], %r4;\n",
        in, out);
    for (uint32_t i = 0; i < 32; i++) assert_int_equal(((uint32_t *)(void *)out)[i], i < 8 ? 101 * i : i);
    kit_free(&k, in), kit_free(&k, out);
    kit_close(&k);
    expect_fault(
        "mov.u32 %r8, m; mbarrier.init.shared.b64 [%r8], 1; bar.sync 0;\n"
        "cp.reduce.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes.max.u32 [%r1+16], [%r1], 8, "
        "[%r8];\n",
        "a multiple of 16");
}

static void test_mbarrier_faults(void **state) {
    (void)state;
    expect_fault("mov.u32 %r8, m; setp.ne.u32 %p1, %r0, 0; @!%p1 mbarrier.init.shared.b64 [%r8], 32; bar.sync 0;\n"
                 "mbarrier.arrive.noComplete.shared.b64 %rd4, [%r8], 1;\n",
                 "completes a phase of the mbarrier");
    expect_fault("mov.u32 %r8, m; mbarrier.arrive.shared.b64 _, [%r8];\n", "which was not initialised");
    expect_fault("mov.u32 %r8, m; mbarrier.test_wait.parity.shared.b64 %p1, [%r8], 0;\n", "which was not initialised");
    expect_fault("mov.u32 %r8, m; mbarrier.expect_tx.relaxed.cta.shared.b64 [%r8], 16;\n", "which was not initialised");
    expect_fault("mov.u32 %r8, m; setp.ne.u32 %p1, %r0, 0; @!%p1 mbarrier.init.shared.b64 [%r8], 4;\n"
                 "@!%p1 mbarrier.inval.shared.b64 [%r8]; bar.sync 0; mbarrier.arrive.shared.b64 _, [%r8];\n",
                 "which was not initialised");
    expect_fault("mov.u32 %r8, m; mbarrier.init.shared.b64 [%r8], 0;\n", "for 0 arrivals");
    expect_fault("mov.u32 %r8, m; mbarrier.init.shared.b64 [%r8], 4; mov.b64 %rd4, 5; st.shared.b64 [%r8], %rd4;\n"
                 "mbarrier.arrive.shared.b64 _, [%r8];\n",
                 "something else was written over");
    expect_fault("mov.u32 %r8, m; mbarrier.init.shared.b64 [%r8+-4], 4;\n", "no multiple of");
    expect_fault("mov.u32 %r8, m; setp.ne.u32 %p1, %r0, 0; @!%p1 mbarrier.init.shared.b64 [%r8], 4; bar.sync 0;\n"
                 "mbarrier.arrive.shared.b64 _, [%r8], 5;\n",
                 "makes 5 arrivals");
    expect_fault("mov.u32 %r8, m; mbarrier.init.shared.b64 [%r8], 1; bar.sync 0;\n"
                 "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r1], [%rd0], 8, [%r8];\n",
                 "a multiple of 16");
}

/* A phase that can't come: the grid is blocked, it does not run for ever. */
static void test_a_phase_that_never_comes(void **state) {
    (void)state;
    kit k;
    uint16_t *out, *in;
    char text[2048];
    kit_open(&k);
    in = start(&k, &out);
    snprintf(text, sizeof(text), "%s%s%s", FRAME_BEGIN,
             "mov.u32 %r8, m; setp.ne.u32 %p1, %r0, 0; @!%p1 mbarrier.init.shared.b64 [%r8], 33; bar.sync 0;\n"
             "mbarrier.arrive.shared.b64 _, [%r8];\n"
             "SPIN: mbarrier.try_wait.parity.shared.b64 %p2, [%r8], 0; @!%p2 bra SPIN;\n",
             FRAME_END);
    kit_load(&k, text);
    assert_int_equal(kit_launch_run(&k, (kit_launch){"f", 1, 32, 0, {kit_address(in), kit_address(out)}}),
                     ITS_SIM_BLOCKED);
    kit_free(&k, in), kit_free(&k, out);
    kit_close(&k);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_mma),
        cmocka_unit_test(test_ldmatrix),
        cmocka_unit_test(test_stmatrix_and_movmatrix),
        cmocka_unit_test(test_matrix_faults),
        cmocka_unit_test(test_parts_of_a_warp),
        cmocka_unit_test(test_copies_come_with_the_wait),
        cmocka_unit_test(test_copy_faults),
        cmocka_unit_test(test_copy_of_a_wrong_size),
        cmocka_unit_test(test_bulk_copy_completes_on_its_mbarrier),
        cmocka_unit_test(test_bulk_faults),
        cmocka_unit_test(test_copy_of_freed_memory),
        cmocka_unit_test(test_mbarrier_phases),
        cmocka_unit_test(test_mbarrier_counts),
        cmocka_unit_test(test_reduction_on_an_mbarrier),
        cmocka_unit_test(test_mbarrier_faults),
        cmocka_unit_test(test_a_phase_that_never_comes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
