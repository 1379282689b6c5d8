/*
 * The loop that runs a warp, and the loops over lanes of every arithmetic operation. Compiled once per kind of CPU by
 * exec_base.c, exec_v3.c and exec_v4.c, which define ITS_SIM_ISA (a name) and ITS_SIM_ISA_TEXT.
 *
 * Arithmetic always computes all 32 lanes. With all lanes taking part it writes into the register; otherwise it writes
 * into a scratch register, from which the lanes that take part are merged. That is why no source may be changed by
 * writing the destination: an operation reads element i of everything before it writes element i.
 */
#include "sim/alu_float.h"
#include "sim/alu_int.h"
#include "sim/exec.h"
#include "sim/matrix.h"
#include "sim/race_exec.h"
#include "sim/wgmma.h"

/* How a source of a type is named, found and read in the loops below. */
#define ITS_PLAIN_SOURCE(T, name, field) const T *const name##s = ITS_ALIGNED64(regs + op->field);
#define ITS_SOURCE_u16(name, field) ITS_PLAIN_SOURCE(u16, name, field)
#define ITS_SOURCE_s16(name, field) ITS_PLAIN_SOURCE(s16, name, field)
#define ITS_SOURCE_u32(name, field) ITS_PLAIN_SOURCE(u32, name, field)
#define ITS_SOURCE_s32(name, field) ITS_PLAIN_SOURCE(s32, name, field)
#define ITS_SOURCE_u64(name, field) ITS_PLAIN_SOURCE(u64, name, field)
#define ITS_SOURCE_s64(name, field) ITS_PLAIN_SOURCE(s64, name, field)
#define ITS_SOURCE_f32(name, field) ITS_PLAIN_SOURCE(f32, name, field)
#define ITS_SOURCE_f64(name, field) ITS_PLAIN_SOURCE(f64, name, field)
#define ITS_SOURCE_b128(name, field) ITS_PLAIN_SOURCE(b128, name, field)
#define ITS_SOURCE_pred(name, field) const u32 name##s = its_sim_pred(regs, op->field);
#define ITS_READ_u16(name) const u16 name = name##s[i];
#define ITS_READ_s16(name) const s16 name = name##s[i];
#define ITS_READ_u32(name) const u32 name = name##s[i];
#define ITS_READ_s32(name) const s32 name = name##s[i];
#define ITS_READ_u64(name) const u64 name = name##s[i];
#define ITS_READ_s64(name) const s64 name = name##s[i];
#define ITS_READ_f32(name) const f32 name = name##s[i];
#define ITS_READ_f64(name) const f64 name = name##s[i];
#define ITS_READ_b128(name) const b128 name = name##s[i];
#define ITS_READ_pred(name) const u32 name = (name##s >> i) & 1u;
#define ITS_CAST_u16(x) ((u16)(x))
#define ITS_CAST_s16(x) ((s16)(x))
#define ITS_CAST_u32(x) ((u32)(x))
#define ITS_CAST_s32(x) ((s32)(x))
#define ITS_CAST_u64(x) ((u64)(x))
#define ITS_CAST_s64(x) ((s64)(x))
#define ITS_CAST_f32(x) ((f32)(x))
#define ITS_CAST_f64(x) ((f64)(x))
#define ITS_CAST_b128(x) (x)

#define ITS_BEGIN_ALU(id) static void run_##id(const its_sim_op *op, const char *regs, char *dst) {
#define ITS_ALU1(id, D, A, expression)                   \
    ITS_BEGIN_ALU(id)                                    \
    D *const d = ITS_ALIGNED64(dst);                     \
    ITS_SOURCE_##A(a, a) ITS_EACH_LANE {                 \
        ITS_READ_##A(a) d[i] = ITS_CAST_##D(expression); \
    }                                                    \
    }
#define ITS_ALU2(id, D, A, B, expression)                                \
    ITS_BEGIN_ALU(id)                                                    \
    D *const d = ITS_ALIGNED64(dst);                                     \
    ITS_SOURCE_##A(a, a) ITS_SOURCE_##B(b, b) ITS_EACH_LANE {            \
        ITS_READ_##A(a) ITS_READ_##B(b) d[i] = ITS_CAST_##D(expression); \
    }                                                                    \
    }
#define ITS_ALU3(id, D, A, B, C, expression)                                             \
    ITS_BEGIN_ALU(id)                                                                    \
    D *const d = ITS_ALIGNED64(dst);                                                     \
    ITS_SOURCE_##A(a, a) ITS_SOURCE_##B(b, b) ITS_SOURCE_##C(c, c) ITS_EACH_LANE {       \
        ITS_READ_##A(a) ITS_READ_##B(b) ITS_READ_##C(c) d[i] = ITS_CAST_##D(expression); \
    }                                                                                    \
    }
#define ITS_ALU4(id, D, A, B, C, E, expression)                                                          \
    ITS_BEGIN_ALU(id)                                                                                    \
    D *const d = ITS_ALIGNED64(dst);                                                                     \
    ITS_SOURCE_##A(a, a) ITS_SOURCE_##B(b, b) ITS_SOURCE_##C(c, c) ITS_SOURCE_##E(e, e) ITS_EACH_LANE {  \
        ITS_READ_##A(a) ITS_READ_##B(b) ITS_READ_##C(c) ITS_READ_##E(e) d[i] = ITS_CAST_##D(expression); \
    }                                                                                                    \
    }
#define ITS_STORE_PRED(words) *(u32 *)(void *)dst = its_lanes_pack(words) ^ (0u - (op->mode & 1u));
#define ITS_CMP1(id, A, condition)                       \
    ITS_BEGIN_ALU(id)                                    \
    _Alignas(64) s32 words[ITS_LANES];                   \
    ITS_SOURCE_##A(a, a) ITS_EACH_LANE {                 \
        ITS_READ_##A(a) words[i] = (condition) ? -1 : 0; \
    }                                                    \
    ITS_STORE_PRED(words)                                \
    }
#define ITS_CMP2(id, A, B, condition)                                    \
    ITS_BEGIN_ALU(id)                                                    \
    _Alignas(64) s32 words[ITS_LANES];                                   \
    ITS_SOURCE_##A(a, a) ITS_SOURCE_##B(b, b) ITS_EACH_LANE {            \
        ITS_READ_##A(a) ITS_READ_##B(b) words[i] = (condition) ? -1 : 0; \
    }                                                                    \
    ITS_STORE_PRED(words)                                                \
    }
#define ITS_CMP3(id, A, B, C, condition)                                                 \
    ITS_BEGIN_ALU(id)                                                                    \
    _Alignas(64) s32 words[ITS_LANES];                                                   \
    ITS_SOURCE_##A(a, a) ITS_SOURCE_##B(b, b) ITS_SOURCE_##C(c, c) ITS_EACH_LANE {       \
        ITS_READ_##A(a) ITS_READ_##B(b) ITS_READ_##C(c) words[i] = (condition) ? -1 : 0; \
    }                                                                                    \
    ITS_STORE_PRED(words)                                                                \
    }
#define ITS_PRED(id, expression)                                                \
    ITS_BEGIN_ALU(id)                                                           \
    const u32 a = its_sim_pred(regs, op->a) ^ (0u - (op->mode & 1u));           \
    const u32 b = its_sim_pred(regs, op->b) ^ (0u - ((u32)op->mode >> 1 & 1u)); \
    const u32 c = its_sim_pred(regs, op->c) ^ (0u - ((u32)op->mode >> 2 & 1u)); \
    (void)b, (void)c;                                                           \
    *(u32 *)(void *)dst = (expression);                                         \
    }
#define ITS_ALU_RAW(id)
#include "sim/alu.def"

#include "sim/exec_matrix.inc.h"
#include "sim/exec_memory.inc.h"
#include "sim/exec_wgmma.inc.h"

/* -- tables by handler --------------------------------------------------------------------------------------------- */

#define ITS_ALU1(id, ...) [ITS_SIM_##id] = run_##id,
#define ITS_ALU2 ITS_ALU1
#define ITS_ALU3 ITS_ALU1
#define ITS_ALU4 ITS_ALU1
#define ITS_CMP1 ITS_ALU1
#define ITS_CMP2 ITS_ALU1
#define ITS_CMP3 ITS_ALU1
#define ITS_PRED ITS_ALU1
#define ITS_ALU_RAW(id) [ITS_SIM_##id] = its_sim_alu_##id,
static its_sim_alu *const alus[ITS_SIM_HANDLERS] = {
#include "sim/alu.def"
};
#define ITS_ACT(id) [ITS_SIM_ACT_##id] = its_sim_act_##id,
#define ITS_ACT_FAST(id) [ITS_SIM_ACT_##id] = act_##id,
static its_sim_act *const acts[ITS_SIM_HANDLERS] = {
#include "sim/acts.def"
};

/* -- the loop ------------------------------------------------------------------------------------------------------ */

/* A fragment may run this long while others of its warp wait. */
#define ITS_SHARE 16384u
/* The rest of a loop that is known to spin is run beyond the budget, up to this many operations. */
#define ITS_ROUND 4096u

typedef enum ending { ENDED_SHARE, ENDED_MET, ENDED_SPINS, ENDED_CHANGED, ENDED_FAULT } ending;

static inline void run_alu(its_sim_exec *x, const its_sim_op *op, char *regs, uint32_t mask) {
    if (mask == ITS_FULL) {
        op->alu(op, regs, regs + op->dst);
    } else if (mask) {
        op->alu(op, regs, x->scratch);
        its_lanes_merge(regs + op->dst, x->scratch, mask, op->dst_size);
    }
}

/* Nearly every branch back of a loop that computes needs no look at whether it comes back to the same state. */
static inline bool needs_look(its_sim_frag *frag, const its_sim_op *target) {
    if (frag->spin.skip == 0 || frag->spin.last != target) return true;
    frag->spin.skip--;
    return false;
}

/* Runs x->frag until it waits, splits, meets another fragment, spins, faults, or has run `limit` operations. */
static ending run_fragment(its_sim_exec *x, uint64_t limit) {
    its_sim_warp *warp = x->warp;
    its_sim_frag *frag = x->frag;
    char *regs = x->regs;
    const uint32_t active = frag->mask;
    const its_sim_op *op = frag->pc;
    const its_sim_op *meet = its_sim_frag_meet(warp, frag);
    ending end;
    uint64_t n = 0;
    for (;;) {
        if (n == limit || op == meet) {
            end = op == meet ? ENDED_MET : ENDED_SHARE;
            break;
        }
        n++;
        uint32_t mask = its_sim_guard(regs, op, active);
        if (op->kind == ITS_SIM_OP_ALU) {
            run_alu(x, op, regs, mask);
            op++;
        } else if (mask == 0) {
            op++;
        } else if (op->kind == ITS_SIM_OP_ACT) {
            frag->pc = op;
            its_sim_verdict verdict = op->act(x, op, mask);
            if (verdict != ITS_SIM_NEXT) {
                x->count += n;
                frag->ran += n;
                return verdict == ITS_SIM_STOP ? ENDED_FAULT : ENDED_CHANGED;
            }
            op++;
        } else if (mask == active) {
            const its_sim_op *target = op->target;
            bool spins = target <= op && needs_look(frag, target) && its_sim_spin_look(x, op, n);
            frag->pc = op = target;
            if (spins) {
                end = ENDED_SPINS;
                break;
            }
            if (warp->n_frags > 1) { /* others may be behind now, or at the same place */
                end = ENDED_MET;
                break;
            }
        } else {
            its_sim_frag_add(warp, frag, mask, op->target);
            frag->mask = active & ~mask;
            op++;
            end = ENDED_CHANGED;
            break;
        }
    }
    frag->pc = op;
    frag->ran += n;
    x->count += n;
    return end;
}

static bool run_slice(its_sim_exec *x, its_sim_warp *warp, uint64_t budget) {
    uint32_t tried = 0; /* lanes that were seen to spin in this slice */
    x->warp = warp;
    x->cta = warp->cta;
    x->progress = false;
    x->count = 0;
    while (x->count < budget) {
        its_sim_frag *frag = its_sim_frag_pick(warp, tried);
        if (!frag) break;
        x->frag = frag;
        x->regs = warp->regs + frag->base;
        if (warp->n_frags > 1 && warp->ran >= ITS_SHARE) {
            its_sim_frag_yield(warp, frag);
            warp->ran = 0;
            continue;
        }
        uint64_t limit = budget - x->count, before = x->count;
        if (warp->n_frags > 1 && limit > ITS_SHARE) limit = ITS_SHARE;
        if (frag->spin.spins && limit < ITS_ROUND) limit = ITS_ROUND;
        const bool spun = frag->spin.spins;
        const uint32_t live = warp->live;
        ending end = run_fragment(x, limit);
        if (end == ENDED_FAULT) return false;
        warp->ran += x->count - before;
        const bool same = spun && !frag->wrote && live == warp->live && its_sim_spin_holds(frag);
        if (end != ENDED_SPINS && !same) x->progress = true;
        if (end != ENDED_SPINS && spun && !same) its_sim_spin_forget(frag);
        if (end == ENDED_MET) its_sim_frag_join(warp);
        if (end != ENDED_SPINS) continue;
        tried |= frag->mask;
        its_sim_frag_yield(warp, frag);
        warp->ran = 0;
    }
    return true;
}

#define ITS_ISA_NAME2(isa) its_sim_isa_##isa
#define ITS_ISA_NAME(isa) ITS_ISA_NAME2(isa)
const its_sim_isa ITS_ISA_NAME(ITS_SIM_ISA) = {ITS_SIM_ISA_TEXT, alus, acts, run_slice};
