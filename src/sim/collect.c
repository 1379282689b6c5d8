/*
 * Operations in which lanes of a warp take part together: shuffles, votes, matches, reductions and warp barriers.
 *
 * Each names its lanes in a member mask and waits for all of them that have not exited. Lanes of one fragment may name
 * different groups; then the fragment is taken apart. A group that is complete in one fragment does the operation at
 * once; otherwise its lanes wait as fragments of their own, and are joined when the last of them comes.
 */
#include "sim/alu_float.h"
#include "sim/exec.h"
#include "sim/modes.h"

/* What an operation does for a group of lanes that are all there, where that can't go wrong. */
typedef void group_operation(its_sim_exec *x, const its_sim_op *op, uint32_t group);

/* The lanes of `mask` that name the same members as the first of them. */
static uint32_t same_members(const its_sim_exec *x, const its_sim_op *op, uint32_t mask, uint32_t *member) {
    const u32 *members = (const u32 *)(const void *)(x->regs + op->e);
    uint32_t same = 0, differs = 0;
    *member = members[__builtin_ctz(mask)];
    for (uint32_t lane = 0; lane < ITS_LANES; lane++)
        differs |= (members[lane] ^ *member) & (0u - ((mask >> lane) & 1u));
    if (differs == 0) return mask; /* nearly always */
    for (uint32_t lane = 0; lane < ITS_LANES; lane++)
        if ((mask >> lane) & 1 && members[lane] == *member) same |= 1u << lane;
    return same;
}

/* Leaves the lanes of `group` at `op`, as a fragment that waits for the other members. */
static void wait_for(its_sim_exec *x, const its_sim_op *op, uint32_t group, uint32_t member) {
    its_sim_frag *frag = its_sim_frag_add(x->warp, x->frag, group, op);
    frag->state = ITS_SIM_AT_SYNC;
    frag->member = member;
    x->frag->mask &= ~group;
}

/*
 * Does the operation for every group in the running fragment that is complete. If others are not, their lanes wait, and
 * what is left of the fragment goes on behind the operation.
 */
static its_sim_verdict collect_with(its_sim_exec *x, const its_sim_op *op, uint32_t mask, group_operation *operation,
                                    its_sim_group *can_fail) {
    bool waits = false;
    for (uint32_t left = mask; left;) {
        uint32_t member, group = same_members(x, op, left, &member);
        left &= ~group;
        if (group & ~member)
            return its_sim_fault_at(x, op, group & ~member, ITS_SIM_FAULT_SYNC,
                                    "lane takes part but is not in the member mask 0x%08x", (unsigned)member);
        if ((member & x->warp->live) == group) {
            if (can_fail && can_fail(x, op, group) == ITS_SIM_STOP) return ITS_SIM_STOP;
            if (operation) operation(x, op, group);
            continue;
        }
        wait_for(x, op, group, member);
        waits = true;
    }
    if (!waits) return ITS_SIM_NEXT;
    x->frag->pc = op + 1;
    if (x->frag->mask == 0) its_sim_frag_remove(x->warp, x->frag);
    return its_sim_sync_check(x);
}

static its_sim_verdict collect(its_sim_exec *x, const its_sim_op *op, uint32_t mask, group_operation *operation) {
    return collect_with(x, op, mask, operation, NULL);
}

/* What is left of a warp comes together without being one. */
static its_sim_verdict need_all(its_sim_exec *x, const its_sim_op *op, uint32_t group) {
    if (group == ITS_FULL) return ITS_SIM_NEXT;
    return its_sim_fault_at(x, op, group, ITS_SIM_FAULT_SYNC,
                            "only %u threads of the warp are left, and all 32 must take part",
                            (unsigned)__builtin_popcount(group));
}

its_sim_verdict its_sim_collect_warp(its_sim_exec *x, const its_sim_op *op, uint32_t mask, its_sim_group *operation) {
    if (mask == ITS_FULL) return operation(x, op, mask);
    return collect_with(x, op, mask, NULL, need_all);
}

/* All fragments that wait for `member`: the lanes they have, and whether they are at one place. */
static uint32_t waiting_for(const its_sim_warp *warp, uint32_t member, const its_sim_frag *like, bool *one_place) {
    uint32_t lanes = 0;
    *one_place = true;
    for (uint32_t i = 0; i < warp->n_frags; i++) {
        const its_sim_frag *frag = &warp->frags[i];
        if (frag->state != ITS_SIM_AT_SYNC || frag->member != member) continue;
        lanes |= frag->mask;
        if (frag->pc != like->pc || frag->depth != like->depth || frag->base != like->base ||
            frag->local != like->local)
            *one_place = false;
    }
    return lanes;
}

static its_sim_verdict release(its_sim_exec *x, uint32_t member, bool one_place) {
    its_sim_warp *warp = x->warp;
    for (uint32_t i = 0; i < warp->n_frags; i++) {
        its_sim_frag *frag = &warp->frags[i];
        if (frag->state != ITS_SIM_AT_SYNC || frag->member != member) continue;
        if (!one_place) {
            if (frag->pc->handler != ITS_SIM_ACT_WARP_BARRIER) {
                x->frag = frag;
                return its_sim_fault_at(x, frag->pc, frag->mask, ITS_SIM_FAULT_SYNC,
                                        "the lanes of member mask 0x%08x came to different instructions",
                                        (unsigned)member);
            }
            frag->pc++;
        }
        frag->state = ITS_SIM_READY;
        if (member & ~frag->spin.mask) frag->wrote = true; /* it may learn something from lanes of other fragments */
    }
    its_sim_frag_join(warp);
    return ITS_SIM_AGAIN;
}

its_sim_verdict its_sim_sync_check(its_sim_exec *x) {
    its_sim_warp *warp = x->warp;
    for (uint32_t i = 0; i < warp->n_frags; i++) {
        const its_sim_frag *frag = &warp->frags[i];
        if (frag->state != ITS_SIM_AT_SYNC) continue;
        uint32_t member = frag->member;
        bool one_place;
        if (waiting_for(warp, member, frag, &one_place) != (member & warp->live)) continue;
        if (release(x, member, one_place) == ITS_SIM_STOP) return ITS_SIM_STOP;
        i = UINT32_MAX; /* fragments were joined: from the start again */
    }
    return ITS_SIM_AGAIN;
}

its_sim_verdict its_sim_act_WARP_BARRIER(its_sim_exec *x, const its_sim_op *op, uint32_t mask) {
    return collect(x, op, mask, NULL);
}

/* -- shuffles ------------------------------------------------------------------------------------------------------ */

bool its_sim_shuffle_source(unsigned mode, uint32_t lane, uint32_t b, uint32_t c, uint32_t *source) {
    uint32_t segment = (c >> 8) & 31, clamp = c & 31;
    b &= 31;
    uint32_t highest = (lane & segment) | (clamp & ~segment), lowest = lane & segment;
    bool inside;
    if (mode == ITS_SHUFFLE_UP) {
        *source = lane - b;
        inside = (int32_t)*source >= (int32_t)highest;
    } else {
        *source = mode == ITS_SHUFFLE_DOWN        ? lane + b
                  : mode == ITS_SHUFFLE_BUTTERFLY ? lane ^ b
                                                  : lowest | (b & ~segment);
        inside = (int32_t)*source <= (int32_t)highest;
    }
    if (!inside) *source = lane;
    return inside;
}

static void shuffle(its_sim_exec *x, const its_sim_op *op, uint32_t mask) {
    const u32 *b = (const u32 *)(const void *)(x->regs + op->b), *c = (const u32 *)(const void *)(x->regs + op->c);
    uint32_t from[ITS_LANES], inside = 0;
    memcpy(from, x->regs + op->a, sizeof(from));
    u32 *dst = (u32 *)(void *)x->scratch;
    for (uint32_t lane = 0; lane < ITS_LANES; lane++) {
        uint32_t source;
        if (its_sim_shuffle_source(op->mode, lane, b[lane], c[lane], &source)) inside |= 1u << lane;
        dst[lane] = from[source];
    }
    if (op->dst != UINT32_MAX) its_lanes_merge(x->regs + op->dst, x->scratch, mask, 4);
    if (op->list) its_sim_set_pred(x->regs, op->list, inside, mask);
}

/*
 * Nothing is left to find out: a byte for each lane it reads from, then a bit for each that is inside of its segment.
 */
static void shuffle_known(its_sim_exec *x, const its_sim_op *op) {
    const uint32_t *known = x->program->lists.items + op->imm;
    uint8_t source[ITS_LANES];
    uint32_t from[ITS_LANES];
    memcpy(source, known, sizeof(source));
    memcpy(from, x->regs + op->a, sizeof(from));
    u32 *dst = (u32 *)(void *)(x->regs + op->dst);
    for (uint32_t lane = 0; op->dst != UINT32_MAX && lane < ITS_LANES; lane++) dst[lane] = from[source[lane]];
    if (op->list) its_sim_set_pred(x->regs, op->list, known[ITS_LANES / 4], ITS_FULL);
}

its_sim_verdict its_sim_act_SHUFFLE(its_sim_exec *x, const its_sim_op *op, uint32_t mask) {
    if (mask == ITS_FULL && op->flags & ITS_SIM_KNOWN) {
        shuffle_known(x, op);
        return ITS_SIM_NEXT;
    }
    return collect(x, op, mask, shuffle);
}

/* -- votes --------------------------------------------------------------------------------------------------------- */

static void set_all(char *reg, uint32_t mask, uint32_t value) {
    u32 *lanes = (u32 *)(void *)reg;
    for (uint32_t lane = 0; lane < ITS_LANES; lane++) lanes[lane] = (mask >> lane) & 1 ? value : lanes[lane];
}

static void vote(its_sim_exec *x, const its_sim_op *op, uint32_t mask) {
    uint32_t yes = (its_sim_pred(x->regs, op->a) ^ (op->imm ? ITS_FULL : 0)) & mask;
    bool result = false;
    switch (op->mode) {
    case ITS_VOTE_ALL:
        result = yes == mask;
        break;
    case ITS_VOTE_ANY:
        result = yes != 0;
        break;
    case ITS_VOTE_UNIFORM:
        result = yes == mask || yes == 0;
        break;
    default:
        set_all(x->regs + op->dst, mask, yes);
        return;
    }
    its_sim_set_pred(x->regs, op->dst, result ? ITS_FULL : 0, mask);
}

its_sim_verdict its_sim_act_VOTE(its_sim_exec *x, const its_sim_op *op, uint32_t mask) {
    return collect(x, op, mask, vote);
}

static uint64_t word_of(const its_sim_exec *x, uint32_t offset, uint32_t size, uint32_t lane) {
    if (size == 8) return ((const u64 *)(const void *)(x->regs + offset))[lane];
    return ((const u32 *)(const void *)(x->regs + offset))[lane];
}

static uint32_t lanes_with(const its_sim_exec *x, const its_sim_op *op, uint32_t mask, uint64_t value) {
    uint32_t same = 0;
    for (uint32_t lane = 0; lane < ITS_LANES; lane++)
        if ((mask >> lane) & 1 && word_of(x, op->a, op->size, lane) == value) same |= 1u << lane;
    return same;
}

/* ANY: the lanes that have my value; ALL: the mask if all have the same, else 0. */
static void match(its_sim_exec *x, const its_sim_op *op, uint32_t mask) {
    uint32_t same[ITS_LANES] = {0};
    bool all = false;
    for (uint32_t lane = 0; lane < ITS_LANES; lane++)
        if ((mask >> lane) & 1) same[lane] = lanes_with(x, op, mask, word_of(x, op->a, op->size, lane));
    all = same[__builtin_ctz(mask)] == mask;
    for (uint32_t lane = 0; lane < ITS_LANES; lane++)
        if ((mask >> lane) & 1 && op->dst != UINT32_MAX)
            ((u32 *)(void *)(x->regs + op->dst))[lane] = op->mode == ITS_MATCH_ALL ? (all ? mask : 0) : same[lane];
    if (op->list) its_sim_set_pred(x->regs, op->list, all ? ITS_FULL : 0, mask);
}

its_sim_verdict its_sim_act_MATCH(its_sim_exec *x, const its_sim_op *op, uint32_t mask) {
    return collect(x, op, mask, match);
}

static uint32_t redux(unsigned mode, bool is_signed, uint32_t a, uint32_t b) {
    bool less = is_signed ? (int32_t)a < (int32_t)b : a < b;
    switch (mode) {
    case ITS_REDUX_ADD:
        return a + b;
    case ITS_REDUX_MIN:
        return less ? a : b;
    case ITS_REDUX_MAX:
        return less ? b : a;
    case ITS_REDUX_AND:
        return a & b;
    case ITS_REDUX_OR:
        return a | b;
    default:
        return a ^ b;
    }
}

/* op->imm is a mode of min and max, and whether absolute values are taken. */
static uint32_t redux_f32(const its_sim_op *op, uint32_t a, uint32_t b) {
    uint32_t kept = op->imm & ITS_REDUX_ABS ? 0x7fffffffu : 0xffffffffu;
    return bits_f32(min_max_f32(f32_bits(a & kept), f32_bits(b & kept), (unsigned)op->imm & ~(unsigned)ITS_REDUX_ABS));
}

static void reduce(its_sim_exec *x, const its_sim_op *op, uint32_t mask) {
    const u32 *a = (const u32 *)(const void *)(x->regs + op->a);
    uint32_t left = mask, result = a[__builtin_ctz(left)];
    if (op->type == ITS_TYPE_F32) result = redux_f32(op, result, result);
    for (left &= left - 1; left; left &= left - 1) {
        uint32_t next = a[__builtin_ctz(left)];
        result = op->type == ITS_TYPE_F32 ? redux_f32(op, result, next)
                                          : redux(op->mode, op->flags & ITS_SIM_SIGNED, result, next);
    }
    set_all(x->regs + op->dst, mask, result);
}

its_sim_verdict its_sim_act_REDUX(its_sim_exec *x, const its_sim_op *op, uint32_t mask) {
    return collect(x, op, mask, reduce);
}

static void elect(its_sim_exec *x, const its_sim_op *op, uint32_t mask) {
    uint32_t leader = (uint32_t)__builtin_ctz(mask);
    if (op->dst != UINT32_MAX) set_all(x->regs + op->dst, mask, leader);
    if (op->list) its_sim_set_pred(x->regs, op->list, 1u << leader, mask);
}

its_sim_verdict its_sim_act_ELECT(its_sim_exec *x, const its_sim_op *op, uint32_t mask) {
    return collect(x, op, mask, elect);
}
