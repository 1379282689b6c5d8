/* Control flow beyond branches and calls, fences, clocks: the acts that need few words. */
#include "sim/async.h"

#include <time.h>

#define ITS_DISCARDED 128u /* bytes of discard */

its_sim_verdict its_sim_act_EXIT(its_sim_exec *x, const its_sim_op *op, uint32_t mask) {
    its_sim_frag *frag = x->frag;
    if (!its_sim_stores_wait(x, mask, -1)) return ITS_SIM_STOP;
    frag->pc = op + 1; /* where those go on that stay */
    its_sim_frag_exit(x, mask);
    its_sim_barrier_check_all(x);
    return its_sim_sync_check(x);
}

its_sim_verdict its_sim_act_TRAP(its_sim_exec *x, const its_sim_op *op, uint32_t mask) {
    return its_sim_fault_at(x, op, mask, ITS_SIM_FAULT_TRAP, "%s", "");
}

its_sim_verdict its_sim_act_REFUSE(its_sim_exec *x, const its_sim_op *op, uint32_t mask) {
    return its_sim_fault_at(x, op, mask, ITS_SIM_FAULT_REFUSED, "%s", x->program->refusals.items[op->list].message);
}

its_sim_verdict its_sim_act_BRANCH_TABLE(its_sim_exec *x, const its_sim_op *op, uint32_t mask) {
    const its_sim_table *table = &x->program->tables.items[op->list];
    const u32 *index = (const u32 *)(const void *)(x->regs + op->a);
    uint32_t first = (uint32_t)__builtin_ctz(mask), same = 0;
    for (uint32_t lane = 0; lane < ITS_LANES; lane++)
        if ((mask >> lane) & 1 && index[lane] == index[first]) same |= 1u << lane;
    if (index[first] >= table->n)
        return its_sim_fault_at(x, op, same, ITS_SIM_FAULT_BRANCH, "index %u of %u targets", (unsigned)index[first],
                                (unsigned)table->n);
    its_sim_frag *frag = x->frag;
    if (same != mask) { /* the others come back here for their own target */
        its_sim_frag_add(x->warp, frag, mask & ~same, op);
        frag->mask &= ~(mask & ~same);
    }
    its_sim_frag_split(x, same, op + 1);
    frag->pc = x->program->ops + table->targets[index[first]];
    its_sim_frag_join(x->warp);
    return ITS_SIM_AGAIN;
}

its_sim_verdict its_sim_act_ACTIVEMASK(its_sim_exec *x, const its_sim_op *op, uint32_t mask) {
    u32 *dst = (u32 *)(void *)(x->regs + op->dst);
    for (uint32_t lane = 0; lane < ITS_LANES; lane++)
        if ((mask >> lane) & 1) dst[lane] = mask;
    return ITS_SIM_NEXT;
}

/* -- memory order, caches ------------------------------------------------------------------------------------------ */

its_sim_verdict its_sim_act_FENCE(its_sim_exec *x, const its_sim_op *op, uint32_t mask) {
    (void)mask;
    if (x->warp->race) its_race_fence(x->warp->race, (its_race_scope)op->scope);
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
    return ITS_SIM_NEXT;
}

/* Changes nothing, and the hardware forgives any address: so do we. */
its_sim_verdict its_sim_act_PREFETCH(its_sim_exec *x, const its_sim_op *op, uint32_t mask) {
    (void)x, (void)op, (void)mask;
    return ITS_SIM_NEXT;
}

/* Nobody may count on what is there afterwards: something else than before. */
its_sim_verdict its_sim_act_DISCARD(its_sim_exec *x, const its_sim_op *op, uint32_t mask) {
    its_sim_access access;
    its_sim_access_addresses(x, op, &access);
    if (!its_sim_access_check(x, op, mask, ITS_DISCARDED, true, &access)) return ITS_SIM_STOP;
    for (uint32_t lane = 0; lane < ITS_LANES; lane++)
        if ((mask >> lane) & 1) memset(access.pointer[lane], 0xdb, ITS_DISCARDED);
    x->frag->wrote = true;
    return ITS_SIM_NEXT;
}

its_sim_verdict its_sim_act_IS_CONST(its_sim_exec *x, const its_sim_op *op, uint32_t mask) {
    const u64 *address = (const u64 *)(const void *)(x->regs + op->a);
    uint32_t result = 0;
    for (uint32_t lane = 0; lane < ITS_LANES; lane++) {
        if (address[lane] >> ITS_SIM_WINDOW_SHIFT) continue;
        const its_sim_allocation *found = its_sim_memory_at(x->memory, address[lane]);
        bool is_const = found && found->kind == ITS_SIM_CONST;
        if (op->mode == is_const) result |= 1u << lane; /* mode 1: isspacep.const, 0: isspacep.global */
    }
    its_sim_set_pred(x->regs, op->dst, result, mask);
    return ITS_SIM_NEXT;
}

/* -- time ---------------------------------------------------------------------------------------------------------- */

static uint64_t nanoseconds(clockid_t clock) {
    struct timespec time;
    clock_gettime(clock, &time);
    return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

/* A multiprocessor's clock ticks once per nanosecond here. */
its_sim_verdict its_sim_act_CLOCK(its_sim_exec *x, const its_sim_op *op, uint32_t mask) {
    bool global = op->mode == ITS_SIM_SREG_GLOBALTIMER || op->mode == ITS_SIM_SREG_GLOBALTIMER_LO ||
                  op->mode == ITS_SIM_SREG_GLOBALTIMER_HI;
    uint64_t time = nanoseconds(global ? CLOCK_REALTIME : CLOCK_MONOTONIC);
    x->frag->wrote = true; /* the next time may be another: no loop that looks at the clock is stuck */
    if (op->mode == ITS_SIM_SREG_CLOCK_HI || op->mode == ITS_SIM_SREG_GLOBALTIMER_HI) time >>= 32;
    for (uint32_t lane = 0; lane < ITS_LANES; lane++) {
        if (!((mask >> lane) & 1)) continue;
        if (op->dst_size == 8)
            ((u64 *)(void *)(x->regs + op->dst))[lane] = time;
        else
            ((u32 *)(void *)(x->regs + op->dst))[lane] = (uint32_t)time;
    }
    return ITS_SIM_NEXT;
}

its_sim_verdict its_sim_act_NANOSLEEP(its_sim_exec *x, const its_sim_op *op, uint32_t mask) {
    const u32 *time = (const u32 *)(const void *)(x->regs + op->a);
    uint32_t longest = 0;
    for (uint32_t lane = 0; lane < ITS_LANES; lane++)
        if ((mask >> lane) & 1 && time[lane] > longest) longest = time[lane];
    if (longest > 1000000) longest = 1000000; /* at most a millisecond, as PTX says */
    its_sim_frag *frag = x->frag;
    its_sim_frag_split(x, mask, op + 1);
    frag->pc = op + 1;
    frag->state = ITS_SIM_ASLEEP;
    frag->wake = nanoseconds(CLOCK_MONOTONIC) + longest;
    return ITS_SIM_AGAIN;
}
