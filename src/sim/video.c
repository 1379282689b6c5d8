/* Computing video instructions: see video.h. */
#include "sim/video.h"

#include "sim/exec.h"

typedef __int128 wide;

/* -- parts --------------------------------------------------------------------------------------------------------- */

static int64_t extend(uint32_t value, unsigned bits, bool is_signed) {
    uint32_t kept = bits == 32 ? value : value & ((1u << bits) - 1);
    if (!is_signed || !(kept >> (bits - 1) & 1)) return kept;
    return (int64_t)kept - ((int64_t)1 << bits);
}

static unsigned bits_of(unsigned part) {
    return part == ITS_VIDEO_WHOLE ? 32 : part < ITS_VIDEO_H0 ? 8 : 16;
}

static unsigned shift_of(unsigned part) {
    return part == ITS_VIDEO_WHOLE ? 0 : part < ITS_VIDEO_H0 ? 8 * (part - ITS_VIDEO_B0) : 16 * (part - ITS_VIDEO_H0);
}

static int64_t part_of(uint32_t value, unsigned part, bool is_signed) {
    return extend(value >> shift_of(part), bits_of(part), is_signed);
}

static int64_t saturate(wide value, unsigned bits, bool is_signed) {
    int64_t most = ((int64_t)1 << (is_signed ? bits - 1 : bits)) - 1, least = is_signed ? -most - 1 : 0;
    return value > most ? most : value < least ? least : (int64_t)value;
}

/* -- operations ---------------------------------------------------------------------------------------------------- */

static bool compare(unsigned how, int64_t a, int64_t b) {
    switch (how) {
    case ITS_VIDEO_EQ:
        return a == b;
    case ITS_VIDEO_NE:
        return a != b;
    case ITS_VIDEO_LT:
        return a < b;
    case ITS_VIDEO_LE:
        return a <= b;
    case ITS_VIDEO_GT:
        return a > b;
    default:
        return a >= b;
    }
}

static wide shift(its_sim_video v, int64_t a, int64_t b) {
    unsigned count = (unsigned)(v.wraps ? b & 31 : b > 32 ? 32 : b);
    return v.what == ITS_VIDEO_SHL ? (wide)a * ((wide)1 << count) : a >> count;
}

/* Exactly. */
static wide operate(its_sim_video v, int64_t a, int64_t b) {
    switch (v.what) {
    case ITS_VIDEO_ADD:
        return a + b;
    case ITS_VIDEO_SUB:
        return a - b;
    case ITS_VIDEO_ABSDIFF:
        return a < b ? b - a : a - b;
    case ITS_VIDEO_MIN:
        return a < b ? a : b;
    case ITS_VIDEO_MAX:
        return a < b ? b : a;
    case ITS_VIDEO_SET:
        return compare(v.compare, a, b);
    default:
        return shift(v, a, b);
    }
}

static uint32_t finish(its_sim_video v, uint32_t value, uint32_t c) {
    bool less = v.d_signed ? (int32_t)value < (int32_t)c : value < c;
    switch (v.second) {
    case ITS_VIDEO_THEN_ADD:
        return value + c;
    case ITS_VIDEO_THEN_MIN:
        return less ? value : c;
    case ITS_VIDEO_THEN_MAX:
        return less ? c : value;
    default:
        break;
    }
    if (v.d_part == ITS_VIDEO_WHOLE) return value;
    uint32_t mask = ((1u << bits_of(v.d_part)) - 1) << shift_of(v.d_part);
    return (value << shift_of(v.d_part) & mask) | (c & ~mask);
}

static uint32_t scalar(its_sim_video v, uint32_t a, uint32_t b, uint32_t c) {
    wide value = operate(v, part_of(a, v.a_part, v.a_signed), part_of(b, v.b_part, v.b_signed));
    if (v.saturates) value = saturate(value, bits_of(v.d_part), v.d_signed);
    return finish(v, (uint32_t)(unsigned __int128)value, c);
}

static uint32_t multiply(its_sim_video v, uint32_t a, uint32_t b, uint32_t c) {
    bool is_signed = v.a_signed || v.b_signed || v.negates_product || v.negates_c;
    wide product = (wide)part_of(a, v.a_part, v.a_signed) * part_of(b, v.b_part, v.b_signed);
    wide sum = v.negates_product ? -product : product, addend = is_signed ? (wide)(int32_t)c : (wide)c;
    sum += v.negates_c && !v.negates_product ? -addend : addend;
    if (v.plus_one) sum += 1;
    int64_t value = (int64_t)(sum >> v.shift);
    return (uint32_t)(uint64_t)(v.saturates ? saturate(value, 32, is_signed) : value);
}

/* The index-th part that a selector of a SIMD instruction names, out of those of a and b. */
static int64_t lane_of(its_sim_video v, unsigned selector, unsigned index, uint32_t a, uint32_t b, bool is_signed) {
    unsigned bits = 32u / v.parts, which = selector >> 3 * index & 7;
    uint32_t from = which < v.parts ? a : b;
    return extend(from >> which % v.parts * bits, bits, is_signed);
}

static uint32_t simd(its_sim_video v, uint32_t a, uint32_t b, uint32_t c) {
    unsigned bits = 32u / v.parts;
    uint32_t mask = (1u << bits) - 1, result = c;
    for (unsigned i = 0; i < v.parts; i++) {
        if (!(v.d_part >> i & 1)) continue;
        wide value = operate(v, lane_of(v, v.a_part, i, a, b, v.a_signed), lane_of(v, v.b_part, i, a, b, v.b_signed));
        if (v.saturates) value = saturate(value, bits, v.d_signed);
        if (v.second == ITS_VIDEO_THEN_ADD)
            result += (uint32_t)(uint64_t)extend((uint32_t)(unsigned __int128)value, bits, v.d_signed);
        else
            result = (result & ~(mask << i * bits)) | ((uint32_t)(unsigned __int128)value & mask) << i * bits;
    }
    return result;
}

static uint32_t compute(its_sim_video v, uint32_t a, uint32_t b, uint32_t c) {
    if (v.parts > 1) return simd(v, a, b, c);
    return v.what == ITS_VIDEO_MAD ? multiply(v, a, b, c) : scalar(v, a, b, c);
}

void its_sim_alu_VIDEO(const its_sim_op *op, const char *regs, char *dst) {
    const u32 *a = (const u32 *)(const void *)(regs + op->a), *b = (const u32 *)(const void *)(regs + op->b);
    const u32 *c = (const u32 *)(const void *)(regs + op->c);
    its_sim_video v;
    memcpy(&v, &op->imm, sizeof(v));
    for (unsigned i = 0; i < ITS_LANES; i++) {
        u32 result = compute(v, a[i], b[i], c[i]);
        memcpy(dst + 4 * i, &result, sizeof(result));
    }
}
