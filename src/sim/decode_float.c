/* Floating-point arithmetic. */
#include "sim/decode.h"
#include "sim/modes.h"

#define H(name) ITS_SIM_##name

typedef struct form {
    its_type type;
    uint32_t size, dst, a, b, c;
    bool ftz;
    unsigned rounding; /* 0 to nearest, 1 towards zero, 2 down, 3 up */
    bool has_rounding;
} form;

/* -- what instructions have in common ------------------------------------------------------------------------------ */

static void take_rounding(its_sim_decoder *d, form *f) {
    its_mod mod = its_sim_first(d, ITS_MODCLASS_ROUND);
    f->has_rounding = mod != ITS_MOD_UNKNOWN;
    switch (mod) {
    case ITS_MOD_UNKNOWN:
    case ITS_MOD_RN:
        f->rounding = 0;
        break;
    case ITS_MOD_RZ:
        f->rounding = 1;
        break;
    case ITS_MOD_RM:
        f->rounding = 2;
        break;
    case ITS_MOD_RP:
        f->rounding = 3;
        break;
    default:
        its_sim_refuse_form(d);
        break;
    }
    if (f->rounding && f->type != ITS_TYPE_F32 && f->type != ITS_TYPE_F64) its_sim_refuse_form(d);
}

static form take(its_sim_decoder *d, unsigned sources) {
    form f = {.type = its_sim_type(d, 0)};
    f.size = its_sim_reg_size(f.type);
    f.ftz = its_sim_has(d, ITS_MOD_FTZ);
    if (f.ftz && f.type == ITS_TYPE_F64) its_sim_refuse_form(d);
    if (sources > 0) f.a = its_sim_source(d, its_sim_operand(d, 1), f.type);
    if (sources > 1) f.b = its_sim_source(d, its_sim_operand(d, 2), f.type);
    if (sources > 2) f.c = its_sim_source(d, its_sim_operand(d, 3), f.type);
    f.dst = its_sim_target(d, its_sim_operand(d, 0), f.type);
    take_rounding(d, &f);
    return f;
}

static void flush_sources(its_sim_decoder *d, form *f, unsigned sources) {
    if (!f->ftz) return;
    if (sources > 0) f->a = its_sim_flushed(d, f->type, f->a);
    if (sources > 1) f->b = its_sim_flushed(d, f->type, f->b);
    if (sources > 2) f->c = its_sim_flushed(d, f->type, f->c);
}

/* What is done to the result: flush, clamp to [0, 1], clamp to non-negative. */
static void finish(its_sim_decoder *d, const form *f, bool flush) {
    its_type t = f->type;
    bool half = its_sim_is_half(t);
    if (flush)
        its_sim_emit1(d, t == ITS_TYPE_F32 ? H(FLUSH_F32) : its_sim_by_half(d, t, H(FLUSH_F16)), f->dst, f->size,
                      f->dst);
    if (its_sim_has(d, ITS_MOD_SAT)) {
        its_sim_handler sat = half ? its_sim_by_half(d, t, H(SAT_F16)) : t == ITS_TYPE_F32 ? H(SAT_F32) : H(SAT_F64);
        its_sim_emit1(d, sat, f->dst, f->size, f->dst);
    }
    if (its_sim_has(d, ITS_MOD_RELU)) its_sim_emit1(d, its_sim_by_half(d, t, H(RELU_F16)), f->dst, f->size, f->dst);
}

/* Through the CPU's rounding modes: for the forms that have no loop of their own. */
static void emit_rounded(its_sim_decoder *d, const form *f, unsigned what) {
    its_sim_handler handler = f->type == ITS_TYPE_F32 ? H(ROUND_F32) : H(ROUND_F64);
    its_sim_op *op = its_sim_emit3(d, handler, f->dst, f->size, f->a, f->b, f->c);
    op->mode = (uint16_t)(what | f->rounding << ITS_SIM_ROUND_SHIFT | (f->ftz ? ITS_SIM_ROUND_FTZ : 0u));
}

/* -- add, sub, mul, fma -------------------------------------------------------------------------------------------- */

static const struct arithmetic {
    its_sim_handler f32, ftz, f64, half;
    unsigned round;
} arithmetics[] = {
    {H(ADD_F32), H(ADD_FTZ_F32), H(ADD_F64), H(ADD_F16), ITS_SIM_ROUND_ADD},
    {H(SUB_F32), H(SUB_FTZ_F32), H(SUB_F64), H(SUB_F16), ITS_SIM_ROUND_SUB},
    {H(MUL_F32), H(MUL_FTZ_F32), H(MUL_F64), H(MUL_F16), ITS_SIM_ROUND_MUL},
    {H(FMA_F32), H(FMA_FTZ_F32), H(FMA_F64), H(FMA_F16), ITS_SIM_ROUND_FMA},
};
enum { ADD, SUB, MUL, FMA };

/* add.f32.f16 and the like: a source of half precision, the rest single. */
static bool is_mixed(its_sim_decoder *d) {
    return d->m->n_types > 1;
}

/* Products with .ftz have their own rule for what is subnormal: see alu_float.h. */
static its_sim_handler half_handler(its_sim_decoder *d, const form *f, its_sim_handler half) {
    if (!f->ftz || (half != H(MUL_F16) && half != H(FMA_F16))) return its_sim_by_half(d, f->type, half);
    bool packed = f->type == ITS_TYPE_F16X2;
    if (!packed && f->type != ITS_TYPE_F16) its_sim_refuse_form(d);
    if (half == H(MUL_F16)) return packed ? H(MUL_FTZ_F16X2) : H(MUL_FTZ_F16);
    return packed ? H(FMA_FTZ_F16X2) : H(FMA_FTZ_F16);
}

static void emit_arithmetic(its_sim_decoder *d, const struct arithmetic *a, const form *f) {
    if (f->rounding)
        emit_rounded(d, f, a->round);
    else
        its_sim_emit3(d,
                      f->type == ITS_TYPE_F64 ? a->f64
                      : f->ftz                ? a->ftz
                                              : a->f32,
                      f->dst, f->size, f->a, f->b, f->c);
}

static void arithmetic(its_sim_decoder *d, unsigned which) {
    const struct arithmetic *a = &arithmetics[which];
    if (is_mixed(d)) {
        its_sim_decode_none(d);
        return;
    }
    unsigned sources = which == FMA ? 3 : 2;
    form f = take(d, sources);
    if (its_sim_is_half(f.type)) {
        flush_sources(d, &f, sources);
        its_sim_emit3(d, half_handler(d, &f, a->half), f.dst, f.size, f.a, f.b, f.c);
        finish(d, &f, f.ftz);
        return;
    }
    emit_arithmetic(d, a, &f);
    finish(d, &f, false);
}

/* Word `upper` of a 64-bit source, in a register of its own. */
static uint32_t word_of(its_sim_decoder *d, uint32_t source, bool upper) {
    uint32_t word = its_sim_temp(d, 4);
    its_sim_emit1(d, H(UNPACK_32_64), word, 4, source)->mode = upper;
    return word;
}

/* Two single-precision numbers in a 64-bit register: taken apart, computed, and put together. */
void its_sim_decode_float_pair(its_sim_decoder *d) {
    unsigned which = FMA;
    switch (d->m->op) {
    case ITS_OP_ADD:
        which = ADD;
        break;
    case ITS_OP_SUB:
        which = SUB;
        break;
    case ITS_OP_MUL:
        which = MUL;
        break;
    case ITS_OP_FMA:
        break;
    default:
        its_sim_decode_none(d);
        return;
    }
    form pair = {.type = ITS_TYPE_F32}, half[2];
    its_sim_type(d, 0);
    take_rounding(d, &pair);
    pair.ftz = its_sim_has(d, ITS_MOD_FTZ);
    uint32_t source[3] = {0, 0, 0};
    for (unsigned i = 0; i < (which == FMA ? 3u : 2u); i++)
        source[i] = its_sim_source(d, its_sim_operand(d, i + 1), ITS_TYPE_B64);
    uint32_t dst = its_sim_target(d, its_sim_operand(d, 0), ITS_TYPE_B64);
    for (unsigned upper = 0; upper < 2; upper++) {
        half[upper] = pair;
        half[upper].size = 4;
        half[upper].dst = its_sim_temp(d, 4);
        half[upper].a = word_of(d, source[0], upper);
        half[upper].b = word_of(d, source[1], upper);
        if (which == FMA) half[upper].c = word_of(d, source[2], upper);
        emit_arithmetic(d, &arithmetics[which], &half[upper]);
    }
    its_sim_emit2(d, H(PACK_32), dst, 8, half[0].dst, half[1].dst);
}

/* -- division and functions ---------------------------------------------------------------------------------------- */

static void divide(its_sim_decoder *d) {
    form f = take(d, 2);
    bool approx = its_sim_has(d, ITS_MOD_APPROX), full = its_sim_has(d, ITS_MOD_FULL);
    if (f.type == ITS_TYPE_F64 && !f.rounding) {
        its_sim_emit2(d, H(DIV_F64), f.dst, 8, f.a, f.b);
    } else if (f.type == ITS_TYPE_F32 && !f.has_rounding && (approx || full)) {
        flush_sources(d, &f, 2);
        its_sim_emit2(d, approx ? H(DIV_APPROX_F32) : H(DIV_F32), f.dst, 4, f.a, f.b);
        finish(d, &f, f.ftz);
    } else if (f.type == ITS_TYPE_F32 && !f.rounding && !f.ftz) {
        its_sim_emit2(d, H(DIV_F32), f.dst, 4, f.a, f.b);
    } else if (f.type == ITS_TYPE_F32 || f.type == ITS_TYPE_F64) {
        emit_rounded(d, &f, ITS_SIM_ROUND_DIV);
    } else {
        its_sim_refuse_form(d);
    }
}

/* rcp, sqrt: exactly rounded, or approximate, or the gross approximation of double precision. */
static void root(its_sim_decoder *d, its_sim_handler single, its_sim_handler real, unsigned round) {
    bool gross = its_sim_has(d, ITS_MOD_APPROX) && its_mnemonic_type(d->m, 0) == ITS_TYPE_F64;
    if (gross) {
        if (d->m->op != ITS_OP_RCP || !its_sim_has(d, ITS_MOD_FTZ)) its_sim_refuse_form(d);
        uint32_t a = its_sim_source(d, its_sim_operand(d, 1), its_sim_type(d, 0));
        its_sim_emit1(d, H(RCP_GROSS_F64), its_sim_target(d, its_sim_operand(d, 0), ITS_TYPE_F64), 8, a);
        return;
    }
    form f = take(d, 1);
    if (f.type != ITS_TYPE_F32 && f.type != ITS_TYPE_F64) {
        its_sim_refuse_form(d);
    } else if (f.rounding) {
        f.b = f.a;
        emit_rounded(d, &f, round);
    } else {
        flush_sources(d, &f, 1);
        its_sim_emit1(d, f.type == ITS_TYPE_F32 ? single : real, f.dst, f.size, f.a);
        finish(d, &f, f.ftz);
    }
}

static void reciprocal_root(its_sim_decoder *d) {
    if (!its_sim_has(d, ITS_MOD_APPROX)) its_sim_refuse_form(d);
    if (its_mnemonic_type(d->m, 0) == ITS_TYPE_F64) {
        bool gross = its_sim_has(d, ITS_MOD_FTZ);
        uint32_t a = its_sim_source(d, its_sim_operand(d, 1), its_sim_type(d, 0));
        uint32_t dst = its_sim_target(d, its_sim_operand(d, 0), ITS_TYPE_F64);
        its_sim_emit1(d, gross ? H(RSQRT_GROSS_F64) : H(RSQRT_F64), dst, 8, a);
        return;
    }
    form f = take(d, 1);
    if (f.type != ITS_TYPE_F32) its_sim_refuse_form(d);
    flush_sources(d, &f, 1);
    its_sim_emit1(d, H(RSQRT_F32), f.dst, 4, f.a);
    finish(d, &f, f.ftz);
}

/* sin, cos, lg2, ex2, tanh: single precision, the last two of half precision as well. */
static void approximate(its_sim_decoder *d, its_sim_handler single, its_sim_handler half) {
    form f = take(d, 1);
    if (!its_sim_has(d, ITS_MOD_APPROX) || f.has_rounding) its_sim_refuse_form(d);
    its_sim_handler handler = single;
    if (f.type != ITS_TYPE_F32) {
        if (half == H(NO_HANDLER)) its_sim_refuse_form(d);
        handler = its_sim_by_half(d, f.type, half);
    }
    flush_sources(d, &f, 1);
    its_sim_emit1(d, handler, f.dst, f.size, f.a);
    finish(d, &f, f.ftz);
}

/* -- signs, minimum, maximum --------------------------------------------------------------------------------------- */

static void sign(its_sim_decoder *d, its_sim_handler single, its_sim_handler real, its_sim_handler half) {
    form f = take(d, 1);
    if (f.has_rounding) its_sim_refuse_form(d);
    its_sim_handler handler = f.type == ITS_TYPE_F32   ? single
                              : f.type == ITS_TYPE_F64 ? real
                                                       : its_sim_by_half(d, f.type, half);
    flush_sources(d, &f, 1);
    its_sim_emit1(d, handler, f.dst, f.size, f.a);
}

static void min_max(its_sim_decoder *d, unsigned mode) {
    unsigned sources = d->insn->node.count > 3 ? 3 : 2;
    form f = take(d, sources);
    if (its_sim_has(d, ITS_MOD_PROPAGATE_NAN)) mode |= ITS_MIN_MAX_NAN;
    if (its_sim_has(d, ITS_MOD_XORSIGN) && its_sim_has(d, ITS_MOD_ABS)) mode |= ITS_MIN_MAX_XORSIGN;
    if (f.has_rounding || (sources == 3 && f.type != ITS_TYPE_F32)) its_sim_refuse_form(d);
    if (f.type == ITS_TYPE_F64) {
        if (mode & ~(unsigned)ITS_MAX_OF) its_sim_refuse_form(d);
        its_sim_emit2(d, mode ? H(MAX_F64) : H(MIN_F64), f.dst, 8, f.a, f.b);
        return;
    }
    flush_sources(d, &f, sources);
    its_sim_handler handler = f.type != ITS_TYPE_F32 ? its_sim_by_half(d, f.type, H(MIN_MAX_F16))
                              : mode == 0            ? H(MIN_F32)
                              : mode == ITS_MAX_OF   ? H(MAX_F32)
                                                     : H(MIN_MAX_F32);
    uint32_t first = sources == 3 ? its_sim_temp(d, f.size) : f.dst;
    its_sim_emit2(d, handler, first, f.size, f.a, f.b)->mode = (uint16_t)mode;
    if (sources == 3) its_sim_emit2(d, handler, f.dst, f.size, first, f.c)->mode = (uint16_t)mode;
}

void its_sim_decode_float(its_sim_decoder *d) {
    form f;
    switch (d->m->op) {
    case ITS_OP_ADD:
        arithmetic(d, ADD);
        break;
    case ITS_OP_SUB:
        arithmetic(d, SUB);
        break;
    case ITS_OP_MUL:
        arithmetic(d, MUL);
        break;
    case ITS_OP_MAD: /* fused since sm_20 */
    case ITS_OP_FMA:
        arithmetic(d, FMA);
        break;
    case ITS_OP_DIV:
        divide(d);
        break;
    case ITS_OP_RCP:
        root(d, H(RCP_F32), H(RCP_F64), ITS_SIM_ROUND_RCP);
        break;
    case ITS_OP_SQRT:
        root(d, H(SQRT_F32), H(SQRT_F64), ITS_SIM_ROUND_SQRT);
        break;
    case ITS_OP_RSQRT:
        reciprocal_root(d);
        break;
    case ITS_OP_SIN:
        approximate(d, H(SIN_F32), H(NO_HANDLER));
        break;
    case ITS_OP_COS:
        approximate(d, H(COS_F32), H(NO_HANDLER));
        break;
    case ITS_OP_LG2:
        approximate(d, H(LG2_F32), H(NO_HANDLER));
        break;
    case ITS_OP_EX2:
        approximate(d, H(EX2_F32), H(EX2_F16));
        break;
    case ITS_OP_TANH:
        approximate(d, H(TANH_F32), H(TANH_F16));
        break;
    case ITS_OP_ABS:
        sign(d, H(ABS_F32), H(ABS_F64), H(ABS_F16));
        break;
    case ITS_OP_NEG:
        sign(d, H(NEG_F32), H(NEG_F64), H(NEG_F16));
        break;
    case ITS_OP_MIN:
        min_max(d, 0);
        break;
    case ITS_OP_MAX:
        min_max(d, ITS_MAX_OF);
        break;
    case ITS_OP_COPYSIGN:
        f = take(d, 2);
        if (f.type != ITS_TYPE_F32 && f.type != ITS_TYPE_F64) its_sim_refuse_form(d);
        its_sim_emit2(d, f.type == ITS_TYPE_F32 ? H(COPYSIGN_F32) : H(COPYSIGN_F64), f.dst, f.size, f.a, f.b);
        break;
    default:
        its_sim_decode_none(d);
        break;
    }
}
