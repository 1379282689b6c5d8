/*
 * wmma: every shape, type and layout, against sums of whole numbers. Matrices are written and read in memory, with rows
 * that lie further apart than they are long; what is between them must stay as it was.
 */
#include "kit.h"

typedef struct type {
    const char *name;
    unsigned bytes, low;
    uint64_t codes[5], sign; /* of 0 to 4 */
} type;

static const type f16 = {"f16", 2, 4, {0, 0x3c00, 0x4000, 0x4200, 0x4400}, 0x8000};
static const type bf16 = {"bf16", 2, 4, {0, 0x3f80, 0x4000, 0x4040, 0x4080}, 0x8000};
static const type tf32 = {"tf32", 4, 4, {0, 0x3f800000, 0x40000000, 0x40400000, 0x40800000}, 0x80000000};
static const type f32 = {"f32", 4, 4, {0, 0x3f800000, 0x40000000, 0x40400000, 0x40800000}, 0x80000000};
static const type f64 = {"f64",
                         8,
                         4,
                         {0, 0x3ff0000000000000, 0x4000000000000000, 0x4008000000000000, 0x4010000000000000},
                         (uint64_t)1 << 63};
static const type s8 = {"s8", 1, 4, {0, 1, 2, 3, 4}, 0};
static const type u8 = {"u8", 1, 0, {0, 1, 2, 3, 4}, 0};
static const type s32 = {"s32", 4, 4, {0, 1, 2, 3, 4}, 0};

typedef struct form {
    unsigned m, n, k;
    const type *a, *b, *c, *d;
    const char *types;           /* as the product writes them */
    unsigned n_a, n_b, n_c, n_d; /* registers */
} form;

static const form forms[] = {
    {16, 16, 16, &f16, &f16, &f32, &f32, "f32.f32", 8, 8, 8, 8},
    {16, 16, 16, &f16, &f16, &f16, &f16, "f16.f16", 8, 8, 4, 4},
    {16, 16, 16, &f16, &f16, &f16, &f32, "f32.f16", 8, 8, 4, 8},
    {32, 8, 16, &f16, &f16, &f32, &f16, "f16.f32", 8, 8, 8, 4},
    {8, 32, 16, &f16, &f16, &f32, &f32, "f32.f32", 8, 8, 8, 8},
    {16, 16, 16, &bf16, &bf16, &f32, &f32, "f32.bf16.bf16.f32", 4, 4, 8, 8},
    {32, 8, 16, &bf16, &bf16, &f32, &f32, "f32.bf16.bf16.f32", 8, 2, 8, 8},
    {8, 32, 16, &bf16, &bf16, &f32, &f32, "f32.bf16.bf16.f32", 2, 8, 8, 8},
    {16, 16, 8, &tf32, &tf32, &f32, &f32, "f32.tf32.tf32.f32", 4, 4, 8, 8},
    {16, 16, 16, &s8, &s8, &s32, &s32, "s32.s8.s8.s32", 2, 2, 8, 8},
    {32, 8, 16, &u8, &u8, &s32, &s32, "s32.u8.u8.s32", 4, 1, 8, 8},
    {8, 32, 16, &s8, &s8, &s32, &s32, "s32.s8.s8.s32", 1, 4, 8, 8},
    {8, 8, 4, &f64, &f64, &f64, &f64, "f64.f64.f64.f64", 1, 1, 2, 2},
};

static uint64_t random_state;
static int draw(unsigned low) {
    random_state = random_state * 6364136223846793005ull + 1442695040888963407ull;
    return (int)((random_state >> 33) % (5 + low)) - (int)low;
}

/* -- matrices in memory -------------------------------------------------------------------------------------------- */

typedef struct matrix {
    const type *type;
    unsigned rows, columns, stride; /* elements */
    bool by_columns;
    int values[512];
} matrix;

static unsigned place(const matrix *m, unsigned row, unsigned column) {
    return (m->by_columns ? column * m->stride + row : row * m->stride + column) * m->type->bytes;
}

static matrix make(const type *t, unsigned rows, unsigned columns, bool by_columns) {
    matrix m = {t, rows, columns, (by_columns ? rows : columns) + 32 / t->bytes, by_columns, {0}};
    for (unsigned i = 0; i < rows * columns; i++) m.values[i] = draw(t->low);
    return m;
}

static void write_matrix(const matrix *m, char *to) {
    for (unsigned i = 0; i < m->rows * m->columns; i++) {
        int value = m->values[i];
        uint64_t code = value >= 0      ? m->type->codes[value]
                        : m->type->sign ? m->type->codes[-value] | m->type->sign
                                        : (uint64_t)(int64_t)value;
        memcpy(to + place(m, i / m->columns, i % m->columns), &code, m->type->bytes);
    }
}

static double half_value(uint16_t bits) {
    int exponent = bits >> 10 & 31;
    double value = exponent ? (bits & 1023) | 1024 : bits & 1023;
    for (int e = exponent ? exponent : 1; e < 25; e++) value /= 2;
    for (int e = 25; e < exponent; e++) value *= 2;
    return bits & 0x8000 ? -value : value;
}

static double value_at(const type *t, const char *from) {
    uint16_t half;
    int32_t word;
    float single;
    double real;
    memcpy(&half, from, 2);
    memcpy(&word, from, t->bytes < 4 ? 2 : 4);
    if (t == &f16) return half_value(half);
    if (t == &s32) return word;
    memcpy(&single, from, 4);
    if (t == &f32) return single;
    memcpy(&real, from, 8);
    return real;
}

/* -- one form ------------------------------------------------------------------------------------------------------ */

static void append(char *text, size_t size, const char *format, ...) {
    va_list args;
    size_t used = strlen(text);
    va_start(args, format);
    vsnprintf(text + used, size - used, format, args);
    va_end(args);
}

static void append_list(char *text, size_t size, char name, unsigned count) {
    append(text, size, "{");
    for (unsigned i = 0; i < count; i++) append(text, size, "%s%%%c%u", i ? ", " : "", name, i);
    append(text, size, "}");
}

static void append_move(char *text, size_t size, const form *f, char what, const matrix *m, unsigned count,
                        const char *address) {
    const char *space = what == 'a' ? ".global" : ""; /* generic addresses too */
    append(text, size, "wmma.%s.%c.sync.aligned.%s.m%un%uk%u%s.%s ", what == 'd' ? "store" : "load", what,
           m->by_columns ? "col" : "row", f->m, f->n, f->k, space, m->type->name);
    if (what == 'd') append(text, size, "[%s], ", address);
    append_list(text, size, what, count);
    if (what != 'd') append(text, size, ", [%s]", address);
    append(text, size, ", %u;\n", m->stride);
}

static void run_form(kit *k, const form *f, unsigned layout, char *memory) {
    matrix a = make(f->a, f->m, f->k, layout & 1), b = make(f->b, f->k, f->n, layout & 2);
    matrix c = make(f->c, f->m, f->n, layout & 4), d = make(f->d, f->m, f->n, layout & 4);
    static char text[8192];
    const char *wide = f->a == &f64 ? "b64" : "b32";
    memset(memory, 0x5a, 65536);
    write_matrix(&a, memory), write_matrix(&b, memory + 16384), write_matrix(&c, memory + 32768);
    snprintf(
        text, sizeof(text),
        ".visible .entry f(.param .u64 in)\n{ .reg .b64 %%rd<8>; .reg .%s %%a<8>, %%b<8>, %%c<8>, %%d<8>;\n"
        "ld.param.u64 %%rd0, [in]; add.u64 %%rd1, %%rd0, 16384; add.u64 %%rd2, %%rd0, 32768; add.u64 %%rd3, %%rd0, 49152;\n",
        wide);
    append_move(text, sizeof(text), f, 'a', &a, f->n_a, "%rd0");
    append_move(text, sizeof(text), f, 'b', &b, f->n_b, "%rd1");
    append_move(text, sizeof(text), f, 'c', &c, f->n_c, "%rd2");
    append(text, sizeof(text), "wmma.mma.sync.aligned.%s.%s.m%un%uk%u%s.%s ", layout & 1 ? "col" : "row",
           layout & 2 ? "col" : "row", f->m, f->n, f->k, f->a == &f64 ? ".rn" : "", f->types);
    append_list(text, sizeof(text), 'd', f->n_d), append(text, sizeof(text), ", ");
    append_list(text, sizeof(text), 'a', f->n_a), append(text, sizeof(text), ", ");
    append_list(text, sizeof(text), 'b', f->n_b), append(text, sizeof(text), ", ");
    append_list(text, sizeof(text), 'c', f->n_c), append(text, sizeof(text), "%s;\n", "");
    append_move(text, sizeof(text), f, 'd', &d, f->n_d, "%rd3");
    append(text, sizeof(text), "ret;\n}\n");
    kit_load(k, text);
    kit_run(k, (kit_launch){"f", 1, 32, 0, {kit_address(memory)}});
    bool written[16384] = {0};
    for (unsigned i = 0; i < f->m * f->n; i++) {
        unsigned row = i / f->n, column = i % f->n, at = place(&d, row, column);
        int sum = c.values[i];
        for (unsigned kk = 0; kk < f->k; kk++) sum += a.values[row * f->k + kk] * b.values[kk * f->n + column];
        double got = value_at(f->d, memory + 49152 + at);
        if (got != sum)
            fail_msg("m%un%uk%u %s layout %u: (%u, %u) is %g, expected %d", f->m, f->n, f->k, f->types, layout, row,
                     column, got, sum);
        memset(written + at, 1, f->d->bytes);
    }
    for (unsigned i = 0; i < 16384; i++)
        if (!written[i]) assert_int_equal(memory[49152 + i], 0x5a);
}

static void test_forms(void **state) {
    (void)state;
    kit k;
    kit_open(&k);
    char *memory = kit_alloc(&k, 65536);
    for (size_t i = 0; i < sizeof(forms) / sizeof(*forms); i++)
        for (unsigned layout = 0; layout < 8; layout++) run_form(&k, &forms[i], layout, memory);
    kit_free(&k, memory);
    kit_close(&k);
}

/* -- saturation and faults ----------------------------------------------------------------------------------------- */

#define WHOLE(body)                                                                                                        \
    ".visible .entry f(.param .u64 in)\n{ .reg .pred %p; .reg .b64 %rd<8>; .reg .b32 %a<2>, %b<2>, %c<8>, %d<8>, %r<4>;\n" \
    "ld.param.u64 %rd0, [in]; mov.u32 %r0, %tid.x; mov.b32 %a0, 0x02020202; mov.b32 %a1, %a0; mov.b32 %b0, %a0;\n"         \
    "mov.b32 %b1, %a0;\n" body "\nret;\n}\n"
#define EIGHT(r) "{%" #r "0, %" #r "1, %" #r "2, %" #r "3, %" #r "4, %" #r "5, %" #r "6, %" #r "7}"
#define FILL(value)                                                                                      \
    "mov.b32 %c0, " #value "; mov.b32 %c1, %c0; mov.b32 %c2, %c0; mov.b32 %c3, %c0; mov.b32 %c4, %c0;\n" \
    "mov.b32 %c5, %c0; mov.b32 %c6, %c0; mov.b32 %c7, %c0;\n"

static void test_saturation(void **state) {
    (void)state;
    kit k;
    kit_open(&k);
    int32_t *memory = kit_alloc(&k, 4096);
    kit_load(
        &k,
        WHOLE(
            FILL(0x7ffffff0) "wmma.mma.sync.aligned.row.col.m16n16k16.s32.s8.s8.s32.satfinite " EIGHT(d) ", {%a0, %a1}, {%b0, %b1}, " EIGHT(c) ";\nwmma.store.d.sync.aligned.row.m16n16k16.global.s32 [%rd0], " EIGHT(
                d) ", 16;\n"
                   "wmma.mma.sync.aligned.row.col.m16n16k16.s32.s8.s8.s32 " EIGHT(d) ", {%a0, %a1}, {%b0, %b1}, " EIGHT(
                       c) ";\nwmma.store.d.sync.aligned.row.m16n16k16.global.s32 [%rd0+1024], " EIGHT(d) ", 16;"));
    kit_run(&k, (kit_launch){"f", 1, 32, 0, {kit_address(memory)}});
    for (unsigned i = 0; i < 256; i++) {
        assert_int_equal(memory[i], INT32_MAX);
        assert_int_equal(memory[256 + i], (int32_t)(0x7ffffff0u + 64));
    }
    kit_free(&k, memory);
    kit_close(&k);
}

static void expect_fault(const char *text, const char *message) {
    kit k;
    kit_open(&k);
    char *memory = kit_alloc(&k, 4096);
    kit_load(&k, text);
    assert_int_equal(kit_launch_run(&k, (kit_launch){"f", 1, 32, 0, {kit_address(memory)}}), ITS_SIM_FAULT);
    its_sim_fault_report(k.ctx, its_sim_grid_fault(k.grid));
    if (!strstr(kit_message(&k), message)) fail_msg("reported: %s\nexpected: %s", kit_message(&k), message);
    kit_free(&k, memory);
    kit_close(&k);
}

static void test_faults(void **state) {
    (void)state;
    expect_fault(WHOLE("wmma.load.c.sync.aligned.row.m16n16k16.global.s32 " EIGHT(c) ", [%rd0+4], 16;"),
                 "no multiple of 16");
    expect_fault(WHOLE("wmma.load.c.sync.aligned.row.m16n16k16.global.s32 " EIGHT(c) ", [%rd0], 18;"),
                 "no multiple of 16");
    expect_fault(WHOLE("wmma.load.c.sync.aligned.row.m16n16k16.global.s32 " EIGHT(c) ", [%rd0], 128;"),
                 "reads 16 bytes at address");
    expect_fault(WHOLE("wmma.store.d.sync.aligned.row.m16n16k16.global.s32 [%rd0], " EIGHT(c) ", 128;"),
                 "writes 16 bytes at address");
    expect_fault(WHOLE("setp.eq.u32 %p, %r0, 9; @%p exit;\nwmma.load.c.sync.aligned.row.m16n16k16.global.s32 " EIGHT(
                     c) ", [%rd0], 16;"),
                 "only 31 threads of the warp are left");
}

static void test_what_is_refused(void **state) {
    (void)state;
    kit k;
    kit_open(&k);
    kit_load(&k, WHOLE("wmma.load.a.sync.aligned.row.m8n8k32.global.s4 {%a0}, [%rd0], 32;"));
    kit_launch l = {"f", 1, 32, 0, {0}};
    assert_int_equal(kit_make_grid(&k, &l), ITS_ERR_INPUT);
    assert_non_null(
        strstr(kit_message(&k), "doesn't have 'wmma.load.a.sync.aligned.row.m8n8k32.global.s4' in this form"));
    kit_close(&k);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_forms), cmocka_unit_test(test_saturation),
                                       cmocka_unit_test(test_faults), cmocka_unit_test(test_what_is_refused)};
    return cmocka_run_group_tests_name("sim/wmma", tests, NULL, NULL);
}
