/*
 * Video instructions, each kind with many random modifiers and selectors, on edge values, against a reference that
 * follows the pseudocode of the PTX manual on lists of bytes.
 */
#include "kit.h"

static uint64_t random_state;
static unsigned draw(unsigned below) {
    random_state = random_state * 6364136223846793005ull + 1442695040888963407ull;
    return (unsigned)((random_state >> 33) % below);
}

static const uint32_t edges[] = {0,          1,          2,          31,         32,         33,         0x7f,
                                 0x80,       0xff,       0x7fff,     0x8000,     0xffff,     0x7fffffff, 0x80000000,
                                 0xffffffff, 0x80808080, 0x7f7f7f7f, 0x80018001, 0xff007f80, 0x12345678};

static uint32_t random_word(void) {
    if (draw(2)) return edges[draw(sizeof(edges) / sizeof(*edges))];
    return draw(1u << 31) << 1 ^ draw(1u << 31);
}

/* -- the reference ------------------------------------------------------------------------------------------------- */

typedef struct form {
    const char *op;  /* "add" ... */
    unsigned parts;  /* 1, 2, 4 */
    bool ds, as, bs; /* signed */
    bool sat, wrap, po;
    const char *second; /* "", "add", "min", "max" */
    const char *compare;
    const char *scale;                /* "", ".shr7", ".shr15" */
    char to[8], from_a[8], from_b[8]; /* selectors without the dot */
    bool neg_a, neg_b, neg_c;
} form;

static bool is(const char *a, const char *b) {
    return strcmp(a, b) == 0;
}

/* `count` bytes from `from` on, little end first. */
static int64_t number(const uint8_t *from, unsigned count, bool is_signed) {
    int64_t value = 0;
    for (unsigned i = count; i-- > 0;) value = value * 256 + from[i];
    if (is_signed && from[count - 1] & 0x80) value -= (int64_t)1 << 8 * count;
    return value;
}

static __int128 clamp(__int128 value, unsigned bytes, bool is_signed) {
    static const int64_t most[2][5] = {{0, 0xff, 0xffff, 0, 0xffffffff}, {0, 0x7f, 0x7fff, 0, 0x7fffffff}};
    static const int64_t least[2][5] = {{0}, {0, -0x80, -0x8000, 0, -(int64_t)0x80000000}};
    if (value > most[is_signed][bytes]) return most[is_signed][bytes];
    return value < least[is_signed][bytes] ? least[is_signed][bytes] : value;
}

static __int128 compute(const form *f, int64_t a, int64_t b) {
    if (is(f->op, "add")) return a + b;
    if (is(f->op, "sub")) return a - b;
    if (is(f->op, "absdiff")) return llabs(a - b);
    if (is(f->op, "min")) return a < b ? a : b;
    if (is(f->op, "max")) return a > b ? a : b;
    if (is(f->op, "set"))
        return is(f->compare, "eq")   ? a == b
               : is(f->compare, "ne") ? a != b
               : is(f->compare, "lt") ? a < b
               : is(f->compare, "le") ? a <= b
               : is(f->compare, "gt") ? a > b
                                      : a >= b;
    int64_t by = f->wrap ? b % 32 : b > 32 ? 32 : b;
    __int128 result = a;
    for (int64_t i = 0; i < by; i++)
        result = is(f->op, "shl") ? result * 2 : result >= 0 ? result / 2 : -((1 - result) / 2);
    return result;
}

static unsigned size_of(const char *selector) {
    return *selector == 'b' ? 1 : *selector == 'h' ? 2 : 4;
}

static uint32_t reference(const form *f, uint32_t a, uint32_t b, uint32_t c) {
    static uint8_t both[64];
    uint8_t out[4];
    memcpy(both, &a, 4), memcpy(both + 4, &b, 4), memcpy(out, &c, 4);
    if (f->parts == 1) {
        unsigned at_a = *f->from_a ? (unsigned)(f->from_a[1] - '0') % 4 * size_of(f->from_a) : 0;
        unsigned at_b = *f->from_b ? (unsigned)(f->from_b[1] - '0') % 4 * size_of(f->from_b) : 0;
        int64_t va = number(both + at_a, size_of(f->from_a), f->as),
                vb = number(both + 4 + at_b, size_of(f->from_b), f->bs);
        if (is(f->op, "mad")) {
            bool is_signed = f->as || f->bs || f->neg_a != f->neg_b || f->neg_c;
            __int128 sum = (__int128)va * vb, wide = number(out, 4, is_signed);
            if (f->po)
                sum += wide + 1;
            else if (f->neg_a != f->neg_b)
                sum = wide - sum;
            else if (f->neg_c)
                sum -= wide;
            else
                sum += wide;
            int64_t value = (int64_t)(sum >> (is(f->scale, ".shr7") ? 7 : is(f->scale, ".shr15") ? 15 : 0));
            return (uint32_t)(unsigned __int128)(f->sat ? clamp(value, 4, is_signed) : value);
        }
        __int128 value = compute(f, va, vb);
        if (f->sat) value = clamp(value, size_of(f->to), f->ds);
        uint32_t word = (uint32_t)(unsigned __int128)value;
        if (is(f->second, "add")) return word + c;
        bool less = f->ds ? (int32_t)word < (int32_t)c : word < c;
        if (is(f->second, "min")) return less ? word : c;
        if (is(f->second, "max")) return less ? c : word;
        if (!*f->to) return word;
        memcpy(out + (unsigned)(f->to[1] - '0') * size_of(f->to), &word, size_of(f->to));
        memcpy(&word, out, 4);
        return word;
    }
    unsigned bytes = 4 / f->parts;
    uint32_t sum = c, result;
    for (unsigned i = 0; i < f->parts; i++) {
        char digit = (char)('0' + i);
        if (*f->to && !strchr(f->to, digit)) continue;
        unsigned sa = *f->from_a ? (unsigned)(f->from_a[f->parts - i] - '0') : i;
        unsigned sb = *f->from_b ? (unsigned)(f->from_b[f->parts - i] - '0') : i + f->parts;
        __int128 value = compute(f, number(both + sa * bytes, bytes, f->as), number(both + sb * bytes, bytes, f->bs));
        if (f->sat) value = clamp(value, bytes, f->ds);
        uint8_t piece[16];
        memcpy(piece, &value, 16);
        sum += (uint32_t)(uint64_t)number(piece, bytes, f->ds);
        memcpy(out + i * bytes, piece, bytes);
    }
    memcpy(&result, out, 4);
    return *f->second ? sum : result;
}

/* -- random forms -------------------------------------------------------------------------------------------------- */

static void scalar_selector(char *to) {
    static const char *const all[] = {"", "", "b0", "b1", "b2", "b3", "h0", "h1"};
    strcpy(to, all[draw(8)]);
}

static void simd_selector(char *to, unsigned parts) {
    *to = 0;
    if (draw(2)) return;
    to[0] = parts == 2 ? 'h' : 'b';
    for (unsigned i = 0; i < parts; i++) to[1 + i] = (char)('0' + draw(2 * parts));
    to[1 + parts] = 0;
}

static form random_form(unsigned turn) {
    static const char *const ops[] = {"add", "sub", "absdiff", "min", "max", "set", "shl", "shr", "mad"};
    static const char *const seconds[] = {"", "", "add", "min", "max"}, *const compares[] = {"eq", "ne", "lt",
                                                                                             "le", "gt", "ge"};
    static const char *const masks[2][4] = {{"", "h0", "h1", "h10"}, {"", "b0", "b31", "b210"}};
    form f = {.op = ops[turn % 9], .parts = 1, .second = "", .scale = "", .compare = compares[draw(6)]};
    f.ds = draw(2), f.as = draw(2), f.bs = draw(2), f.sat = draw(2);
    bool shifts = *f.op == 's' && f.op[1] == 'h', sets = is(f.op, "set"), mad = is(f.op, "mad");
    if (turn / 9 % 3 && !shifts && !mad) f.parts = turn / 9 % 3 * 2;
    if (shifts) f.bs = false, f.wrap = draw(2);
    if (sets) f.ds = f.sat = false;
    if (f.parts > 1) {
        simd_selector(f.from_a, f.parts), simd_selector(f.from_b, f.parts);
        strcpy(f.to, masks[f.parts / 4][draw(4)]);
        f.second = draw(2) && !f.sat ? "add" : "";
        return f;
    }
    scalar_selector(f.from_a), scalar_selector(f.from_b);
    if (mad) {
        static const char *const scales[] = {"", ".shr7", ".shr15"};
        f.scale = scales[draw(3)];
        f.po = draw(3) == 0;
        if (f.po) return f;
        f.neg_a = draw(3) == 0, f.neg_b = draw(3) == 0;
        f.neg_c = f.neg_a == f.neg_b && draw(2);
        return f;
    }
    f.second = seconds[draw(5)];
    if (!*f.second) scalar_selector(f.to);
    return f;
}

static void write_instruction(const form *f, char *text, size_t size) {
    static const char *const types[] = {".u32", ".s32"};
    char op[16];
    bool mad = is(f->op, "mad"), shifts = is(f->op, "shl") || is(f->op, "shr"), sets = is(f->op, "set");
    if (f->parts > 1)
        snprintf(op, sizeof(op), "v%s%u", f->op, f->parts);
    else
        snprintf(op, sizeof(op), "v%s", f->op);
    snprintf(text, size, "%s%s%s%s%s%s%s%s%s%s%s%s %%r3%s%s, %s%%r0%s%s, %s%%r1%s%s%s%s;", op, sets ? "" : types[f->ds],
             types[f->as], types[f->bs], mad && f->po ? ".po" : "", f->sat ? ".sat" : "", mad ? f->scale : "",
             sets ? "." : "", sets ? f->compare : "", shifts ? f->wrap ? ".wrap" : ".clamp" : "", *f->second ? "." : "",
             f->second, *f->to ? "." : "", f->to, f->neg_a ? "-" : "", *f->from_a ? "." : "", f->from_a,
             f->neg_b ? "-" : "", *f->from_b ? "." : "", f->from_b,
             mad || f->parts > 1 || *f->second || *f->to ? f->neg_c ? ", -%r2" : ", %r2" : "", "");
}

enum { THREADS = 256, FORMS = 1200, EACH = 60 };

static void test_forms(void **state) {
    (void)state;
    kit k;
    kit_open(&k);
    uint32_t *in = kit_alloc(&k, THREADS * 12), *out = kit_alloc(&k, THREADS * 4 * EACH);
    for (unsigned first = 0; first < FORMS; first += EACH) {
        static form forms[EACH];
        static char text[32768];
        strcpy(
            text,
            ".visible .entry f(.param .u64 in, .param .u64 out)\n{ .reg .b32 %r<8>; .reg .b64 %rd<8>;\n"
            "ld.param.u64 %rd0, [in]; ld.param.u64 %rd1, [out]; mov.u32 %r4, %tid.x; mad.wide.u32 %rd0, %r4, 12, %rd0;\n"
            "mad.wide.u32 %rd1, %r4, 240, %rd1; ld.global.u32 %r0, [%rd0]; ld.global.u32 %r1, [%rd0+4]; ld.global.u32 %r2, [%rd0+8];\n");
        for (unsigned i = 0; i < EACH; i++) {
            char line[256];
            forms[i] = random_form(first + i);
            write_instruction(&forms[i], line, sizeof(line));
            snprintf(text + strlen(text), 512, "mov.u32 %%r3, 77; %s st.global.u32 [%%rd1+%u], %%r3;\n", line, 4 * i);
        }
        strcat(text, "ret;\n}\n");
        for (unsigned i = 0; i < THREADS * 3; i++) in[i] = random_word();
        kit_load(&k, text);
        kit_run(&k, (kit_launch){"f", 1, THREADS, 0, {kit_address(in), kit_address(out)}});
        for (unsigned i = 0; i < EACH; i++)
            for (unsigned t = 0; t < THREADS; t++) {
                uint32_t want = reference(&forms[i], in[3 * t], in[3 * t + 1], in[3 * t + 2]);
                char line[256];
                if (out[t * EACH + i] == want) continue;
                write_instruction(&forms[i], line, sizeof(line));
                fail_msg("%s of 0x%08x, 0x%08x, 0x%08x is 0x%08x, expected 0x%08x", line, in[3 * t], in[3 * t + 1],
                         in[3 * t + 2], out[t * EACH + i], want);
            }
    }
    kit_free(&k, in), kit_free(&k, out);
    kit_close(&k);
}

/* Worked out by hand. */
static void test_examples(void **state) {
    (void)state;
    kit k;
    kit_open(&k);
    static const struct {
        const char *instruction;
        uint32_t a, b, c, want;
    } examples[] = {
        {"vadd.u32.u32.s32.sat %r3, %r0.b3, %r1.h0;", 0xff000000, 0x0000fffe, 0, 253},
        {"vadd.s32.u32.u32.sat %r3.b1, %r0, %r1, %r2;", 100, 100, 0x11223344, 0x11227f44},
        {"vsub.s32.u32.s32.sat.min %r3, %r0, %r1, %r2;", 5, 0xffffffff, 3, 3},
        {"vabsdiff4.u32.u32.u32.add %r3, %r0, %r1, %r2;", 0x01ff1000, 0x02000010, 7, 7 + 1 + 255 + 16 + 16},
        {"vset.u32.s32.lt.add %r3, %r0, %r1, %r2;", 0x7fffffff, 0x80000000, 9, 9},
        {"vmad.s32.s32.s32.shr7 %r3, %r0.h0, -%r1.h0, %r2;", 300, 100, 0, 0xffffff15},
        {"vshr.s32.s32.u32.clamp %r3, %r0, %r1;", 0x80000000, 40, 0, 0xffffffff},
        {"vmax2.s32.s32.s32 %r3.h1, %r0.h01, %r1.h22, %r2;", 0x0001ffff, 0x00050003, 0xaaaabbbb, 0x0003bbbb},
    };
    uint32_t *out = kit_alloc(&k, 256);
    for (size_t i = 0; i < sizeof(examples) / sizeof(*examples); i++) {
        char text[1024];
        snprintf(
            text, sizeof(text),
            ".visible .entry f(.param .u64 out, .param .u32 a, .param .u32 b, .param .u32 c)\n{ .reg .b32 %%r<8>; .reg .b64 %%rd;\n"
            "ld.param.u64 %%rd, [out]; ld.param.u32 %%r0, [a]; ld.param.u32 %%r1, [b]; ld.param.u32 %%r2, [c];\n%s st.global.u32 [%%rd], %%r3; ret; }\n",
            examples[i].instruction);
        kit_load(&k, text);
        kit_run(&k, (kit_launch){"f", 1, 1, 0, {kit_address(out), examples[i].a, examples[i].b, examples[i].c}});
        if (out[0] != examples[i].want)
            fail_msg("%s gives 0x%08x, expected 0x%08x", examples[i].instruction, out[0], examples[i].want);
    }
    kit_free(&k, out);
    kit_close(&k);
}

static void test_what_is_refused(void **state) {
    (void)state;
    kit k;
    kit_open(&k);
    kit_load(&k, ".visible .entry f()\n{ .reg .b32 %r<8>; vavrg4.u32.u32.u32 %r3, %r0, %r1, %r2; ret; }\n");
    kit_launch l = {"f", 1, 1, 0, {0}};
    assert_int_equal(kit_make_grid(&k, &l), ITS_ERR_INPUT);
    assert_non_null(strstr(kit_message(&k), "the simulator doesn't have the instruction 'vavrg4.u32.u32.u32'"));
    kit_close(&k);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_forms), cmocka_unit_test(test_examples),
                                       cmocka_unit_test(test_what_is_refused)};
    return cmocka_run_group_tests_name("sim/video", tests, NULL, NULL);
}
