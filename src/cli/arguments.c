#include "cli/arguments.h"

#include <errno.h>
#include <locale.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* -- small floats -------------------------------------------------------------------------------------------------- */

/*
 * A double as a float of `exponent_bits` and `fraction_bits`. Scaling by powers of two is exact, and rint rounds to the
 * nearest even number: that is the one rounding. A fraction that rounds up to the next power of two carries into the
 * exponent by itself.
 */
static uint16_t to_small_float(double value, int exponent_bits, int fraction_bits) {
    uint16_t sign = signbit(value) ? 0x8000 : 0;
    int bias = (1 << (exponent_bits - 1)) - 1;
    uint32_t infinity = (uint32_t)((1 << exponent_bits) - 1) << fraction_bits;
    if (isnan(value)) return (uint16_t)(sign | infinity | (1u << (fraction_bits - 1)));
    if (isinf(value)) return (uint16_t)(sign | infinity);
    if (fpclassify(value) == FP_ZERO) return sign;
    int exponent;
    double fraction = frexp(fabs(value), &exponent); /* in [0.5, 1) */
    int biased = exponent - 1 + bias;
    if (biased < 1) biased = 1; /* denormal: the scale of the smallest exponent */
    double steps = rint(ldexp(fraction, exponent - 1 - (biased - bias) + 1 + fraction_bits));
    uint64_t bits = ((uint64_t)(biased - 1) << fraction_bits) + (uint64_t)steps;
    return (uint16_t)(sign | (bits < infinity ? bits : infinity));
}

uint16_t cli_to_f16(double value) {
    return to_small_float(value, 5, 10);
}

uint16_t cli_to_bf16(double value) {
    return to_small_float(value, 8, 7);
}

/* -- scalars ------------------------------------------------------------------------------------------------------- */

typedef enum form { SIGNED, UNSIGNED, BITS, F16, BF16, F32, F64 } form;

typedef struct scalar_kind {
    const char *name;
    form form;
    uint32_t size;
} scalar_kind;

static const scalar_kind scalar_kinds[] = {
    {"i8", SIGNED, 1},    {"i16", SIGNED, 2},   {"i32", SIGNED, 4}, {"i64", SIGNED, 8},  {"s8", SIGNED, 1},
    {"s16", SIGNED, 2},   {"s32", SIGNED, 4},   {"s64", SIGNED, 8}, {"u8", UNSIGNED, 1}, {"u16", UNSIGNED, 2},
    {"u32", UNSIGNED, 4}, {"u64", UNSIGNED, 8}, {"b8", BITS, 1},    {"b16", BITS, 2},    {"b32", BITS, 4},
    {"b64", BITS, 8},     {"f16", F16, 2},      {"bf16", BF16, 2},  {"f32", F32, 4},     {"f64", F64, 8},
};

static uint64_t ones(uint32_t size) {
    return UINT64_MAX >> (64 - 8 * size);
}

/* -N fits if N <= 2^(bits-1); as bits both readings of a pattern are good. */
static bool read_integer(const scalar_kind *kind, const char *text, uint64_t *bits) {
    bool minus = text[0] == '-';
    uint64_t most = kind->form == SIGNED ? ones(kind->size) >> 1 : ones(kind->size), value;
    if (minus) most = (ones(kind->size) >> 1) + 1;
    if ((minus && kind->form == UNSIGNED) || !cli_read_u64(text + minus, &value) || value > most) return false;
    *bits = minus ? (0 - value) & ones(kind->size) : value;
    return true;
}

static bool read_float(const scalar_kind *kind, const char *text, uint64_t *bits) {
    char *end;
    errno = 0;
    double value = strtod(text, &end);
    if (end == text || *end) return false;
    float single = strtof(text, NULL);
    uint32_t word;
    switch (kind->form) {
    case F16:
        *bits = cli_to_f16(value);
        return true;
    case BF16:
        *bits = cli_to_bf16(value);
        return true;
    case F32:
        memcpy(&word, &single, sizeof word);
        *bits = word;
        return true;
    default:
        memcpy(bits, &value, sizeof value);
        return true;
    }
}

static bool bad_scalar(cli_app *app, const scalar_kind *kind, const char *text, const char *value) {
    const char *what = kind->form >= F16 ? "number" : "whole number";
    cli_usage(app, NULL, "--arg %s: '%s' is no %s that fits %s", text, value, what, kind->name);
    return false;
}

static bool parse_scalar(cli_app *app, const scalar_kind *kind, const char *value, cli_argument *a) {
    bool good = kind->form >= F16 ? read_float(kind, value, &a->scalar) : read_integer(kind, value, &a->scalar);
    a->value = &a->scalar;
    a->value_size = kind->size;
    return good || bad_scalar(app, kind, a->text, value);
}

/* -- memory -------------------------------------------------------------------------------------------------------- */

static bool bad_size(cli_app *app, const char *text) {
    cli_usage(app, "for example zero:4096, zero:64K or out:1M:result.bin", "--arg %s: no number of bytes", text);
    return false;
}

static bool parse_out(cli_app *app, const char *value, cli_argument *a) {
    const char *colon = strchr(value, ':');
    uint64_t size;
    if (!colon || !colon[1]) return bad_size(app, a->text);
    if (!cli_read_size(its_arena_text(&app->arena, value, (size_t)(colon - value)), &size))
        return bad_size(app, a->text);
    a->size = size;
    a->output = colon + 1;
    return true;
}

static bool parse_memory(cli_app *app, const char *kind, const char *value, cli_argument *a) {
    uint64_t size;
    a->memory = true;
    a->value = &a->scalar;
    a->value_size = 8;
    if (strcmp(kind, "out") == 0) return parse_out(app, value, a);
    if (strcmp(kind, "zero") == 0) {
        if (!cli_read_size(value, &size)) return bad_size(app, a->text);
        a->size = size;
        return true;
    }
    if (strcmp(kind, "inout") == 0) a->output = value;
    a->data = cli_read(app, value, &a->size);
    return a->data != NULL;
}

static bool parse_raw(cli_app *app, const char *value, cli_argument *a) {
    size_t size;
    a->value = cli_read(app, value, &size);
    if (!a->value) return false;
    a->value_size = size < UINT32_MAX ? (uint32_t)size : UINT32_MAX;
    return true;
}

static bool unknown_kind(cli_app *app, const char *text) {
    cli_usage(app,
              "a scalar such as i32:5, u64:7, f32:1.5, f16:0.5, or memory: buf:FILE, inout:FILE, out:BYTES:FILE, "
              "zero:BYTES, or raw:FILE",
              "--arg %s: no kind of argument that is known", text);
    return false;
}

bool cli_argument_parse(cli_app *app, const char *text, cli_argument *a) {
    *a = (cli_argument){.text = text};
    const char *colon = strchr(text, ':');
    if (!colon) return unknown_kind(app, text);
    const char *kind = its_arena_text(&app->arena, text, (size_t)(colon - text)), *value = colon + 1;
    for (size_t i = 0; i < sizeof scalar_kinds / sizeof *scalar_kinds; i++)
        if (strcmp(kind, scalar_kinds[i].name) == 0) return parse_scalar(app, &scalar_kinds[i], value, a);
    if (strcmp(kind, "raw") == 0) return parse_raw(app, value, a);
    static const char *const memory[] = {"buf", "inout", "out", "zero"};
    for (size_t i = 0; i < sizeof memory / sizeof *memory; i++)
        if (strcmp(kind, memory[i]) == 0) return parse_memory(app, kind, value, a);
    return unknown_kind(app, text);
}
