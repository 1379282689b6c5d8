/*
 * Arithmetic with a directed rounding, or with one that is asked for together with .ftz in a form that has no loop of
 * its own. op->mode holds what is computed (ITS_SIM_ROUND_ADD ...), the rounding and the flags. The CPU's rounding mode
 * is changed around the lanes; every value passes through memory, so that the compiler can't move arithmetic out of
 * there.
 */
#include <fenv.h>

#include "sim/alu_float.h"
#include "sim/exec.h"
#include "sim/modes.h"

static int fe_mode(unsigned mode) {
    static const int modes[] = {FE_TONEAREST, FE_TOWARDZERO, FE_DOWNWARD, FE_UPWARD};
    return modes[(mode >> ITS_SIM_ROUND_SHIFT) & 3];
}

#define COMPUTE(name, type, fma_of_type, sqrt_of_type)        \
    static type name(unsigned what, type a, type b, type c) { \
        switch (what) {                                       \
        case ITS_SIM_ROUND_ADD:                               \
            return a + b;                                     \
        case ITS_SIM_ROUND_SUB:                               \
            return a - b;                                     \
        case ITS_SIM_ROUND_MUL:                               \
            return a * b;                                     \
        case ITS_SIM_ROUND_FMA:                               \
            return fma_of_type(a, b, c);                      \
        case ITS_SIM_ROUND_DIV:                               \
            return a / b;                                     \
        case ITS_SIM_ROUND_RCP:                               \
            return 1 / a;                                     \
        default:                                              \
            return sqrt_of_type(a);                           \
        }                                                     \
    }
COMPUTE(compute_f32, float, fmaf, sqrtf)
COMPUTE(compute_f64, double, fma, sqrt)

/*
 * Whether a result of at most the smallest normal number is subnormal when it is rounded without a limit to the
 * exponent: it is computed 2^64 times as large.
 */
static bool is_tiny(unsigned what, float a, float b, float c) {
    volatile float r;
    if (what == ITS_SIM_ROUND_MUL || what == ITS_SIM_ROUND_FMA)
        r = compute_f32(what, a * 0x1p32f, b * 0x1p32f, c * 0x1p64f);
    else if (what == ITS_SIM_ROUND_DIV)
        r = a * 0x1p64f / b;
    else if (what == ITS_SIM_ROUND_RCP)
        r = 0x1p64f / a;
    else if (what == ITS_SIM_ROUND_SQRT)
        return false;
    else
        return fabsf(compute_f32(what, a, b, c)) < 0x1p-126f; /* a sum this small is exact */
    return fabsf(r) < 0x1p-62f;
}

void its_sim_alu_ROUND_F32(const its_sim_op *op, const char *regs, char *dst) {
    const f32 *as = (const f32 *)(const void *)(regs + op->a), *bs = (const f32 *)(const void *)(regs + op->b);
    const f32 *cs = (const f32 *)(const void *)(regs + op->c);
    f32 *d = (f32 *)(void *)dst;
    bool ftz = op->mode & ITS_SIM_ROUND_FTZ;
    int before = fegetround();
    fesetround(fe_mode(op->mode));
    for (unsigned i = 0; i < ITS_LANES; i++) {
        volatile float a = as[i], b = bs[i], c = cs[i];
        if (ftz) {
            a = flush_f32(a);
            b = flush_f32(b);
            c = flush_f32(c);
        }
        volatile float r = compute_f32(op->mode & ITS_SIM_ROUND_WHAT, a, b, c);
        if (ftz && fabsf(r) <= 0x1p-126f && is_tiny(op->mode & ITS_SIM_ROUND_WHAT, a, b, c))
            r = __builtin_copysignf(0.0f, r);
        d[i] = canon_f32(r);
    }
    fesetround(before);
}

static double hand_on_nan(unsigned what, double r, double a, double b, double c) {
    switch (what) {
    case ITS_SIM_ROUND_FMA:
        return nan3_f64(r, b, c, a);
    case ITS_SIM_ROUND_DIV:
        return nan2_f64(r, a, b);
    case ITS_SIM_ROUND_RCP:
    case ITS_SIM_ROUND_SQRT:
        return nan1_f64(r, a);
    default:
        return nan2_f64(r, b, a);
    }
}

void its_sim_alu_ROUND_F64(const its_sim_op *op, const char *regs, char *dst) {
    const f64 *as = (const f64 *)(const void *)(regs + op->a), *bs = (const f64 *)(const void *)(regs + op->b);
    const f64 *cs = (const f64 *)(const void *)(regs + op->c);
    f64 *d = (f64 *)(void *)dst;
    int before = fegetround();
    fesetround(fe_mode(op->mode));
    for (unsigned i = 0; i < ITS_LANES; i++) {
        volatile double a = as[i], b = bs[i], c = cs[i];
        volatile double r = compute_f64(op->mode & ITS_SIM_ROUND_WHAT, a, b, c);
        d[i] = hand_on_nan(op->mode & ITS_SIM_ROUND_WHAT, r, a, b, c);
    }
    fesetround(before);
}
