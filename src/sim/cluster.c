/* Shared memory of a cluster, and the stack that alloca takes memory from: the end of each lane's local memory,
 * downwards. */
#include "sim/exec.h"
#include "sim/modes.h"

static uint64_t value_of(const its_sim_exec *x, const its_sim_op *op, uint32_t lane) {
    const char *reg = x->regs + op->a;
    return op->size == 8 ? ((const u64 *)(const void *)reg)[lane] : ((const u32 *)(const void *)reg)[lane];
}

static void set_value(its_sim_exec *x, const its_sim_op *op, uint32_t lane, uint64_t value) {
    if (op->size == 8)
        ((u64 *)(void *)(x->regs + op->dst))[lane] = value;
    else
        ((u32 *)(void *)(x->regs + op->dst))[lane] = (u32)value;
}

/* The same place in the shared memory of the CTA with a rank; in its own it is the address that it has anyway. */
its_sim_verdict its_sim_act_MAP_SHARED(its_sim_exec *x, const its_sim_op *op, uint32_t mask) {
    const u32 *ranks = (const u32 *)(const void *)(x->regs + op->b);
    const uint64_t place = ((uint64_t)1 << ITS_SIM_RANK_SHIFT) - 1;
    for (uint32_t left = mask; left; left &= left - 1) {
        uint32_t lane = (uint32_t)__builtin_ctz(left);
        if (ranks[lane] >= x->grid->cluster_size)
            return its_sim_fault_at(x, op, 1u << lane, ITS_SIM_FAULT_ASYNC,
                                    "asks for the shared memory of CTA %u of a cluster that has %u",
                                    (unsigned)ranks[lane], (unsigned)x->grid->cluster_size);
        uint64_t window = value_of(x, op, lane) & ~(uint64_t)UINT32_MAX, address = value_of(x, op, lane) & place;
        if (ranks[lane] != x->cta->rank) address |= (uint64_t)(ranks[lane] + 1) << ITS_SIM_RANK_SHIFT;
        set_value(x, op, lane, window | address);
    }
    return ITS_SIM_NEXT;
}

its_sim_verdict its_sim_act_RANK_OF(its_sim_exec *x, const its_sim_op *op, uint32_t mask) {
    u32 *dst = (u32 *)(void *)(x->regs + op->dst);
    for (uint32_t left = mask; left; left &= left - 1) {
        uint32_t lane = (uint32_t)__builtin_ctz(left);
        uint32_t rank = (uint32_t)(value_of(x, op, lane) >> ITS_SIM_RANK_SHIFT & 0xff);
        dst[lane] = rank ? rank - 1 : x->cta->rank;
    }
    return ITS_SIM_NEXT;
}

/* -- the stack ----------------------------------------------------------------------------------------------------- */

/* The address up to which local memory is free. */
static uint64_t pointer_of(const its_sim_exec *x, uint32_t lane) {
    return (uint64_t)ITS_SIM_LOCAL_BEGIN + x->grid->local_size - x->warp->taken[lane];
}

static its_sim_verdict allocate(its_sim_exec *x, const its_sim_op *op, uint32_t lane, uint64_t used) {
    uint64_t align = op->imm > 16 ? (uint64_t)op->imm : 16, size = value_of(x, op, lane), top = pointer_of(x, lane);
    uint64_t bottom = ITS_SIM_LOCAL_BEGIN + used;
    if (size <= top - bottom && ((top - size) & ~(align - 1)) >= bottom) {
        x->warp->taken[lane] += (uint32_t)(top - ((top - size) & ~(align - 1)));
        return ITS_SIM_NEXT;
    }
    return its_sim_fault_at(x, op, 1u << lane, ITS_SIM_FAULT_ASYNC,
                            "allocates %llu bytes of its stack, which has %llu left", (unsigned long long)size,
                            (unsigned long long)(top - bottom));
}

static its_sim_verdict restore(its_sim_exec *x, const its_sim_op *op, uint32_t lane) {
    uint64_t to = value_of(x, op, lane), end = (uint64_t)ITS_SIM_LOCAL_BEGIN + x->grid->local_size;
    if (to < pointer_of(x, lane) || to > end)
        return its_sim_fault_at(x, op, 1u << lane, ITS_SIM_FAULT_ASYNC,
                                "restores its stack to 0x%llx, which is not what it was before",
                                (unsigned long long)to);
    x->warp->taken[lane] = (uint32_t)(end - to);
    return ITS_SIM_NEXT;
}

its_sim_verdict its_sim_act_STACK(its_sim_exec *x, const its_sim_op *op, uint32_t mask) {
    const its_sim_where *where = &x->program->wheres.items[x->program->op_where[its_sim_op_index(x, op)]];
    uint64_t used = (uint64_t)x->frag->local + x->program->funcs[where->func].local_size;
    x->frag->wrote = true;
    for (uint32_t left = mask; left; left &= left - 1) {
        uint32_t lane = (uint32_t)__builtin_ctz(left);
        its_sim_verdict verdict = op->mode == ITS_STACK_ALLOCATE  ? allocate(x, op, lane, used)
                                  : op->mode == ITS_STACK_RESTORE ? restore(x, op, lane)
                                                                  : ITS_SIM_NEXT;
        if (verdict != ITS_SIM_NEXT) return verdict;
        if (op->mode == ITS_STACK_RESTORE) continue;
        set_value(x, op, lane, pointer_of(x, lane));
    }
    return ITS_SIM_NEXT;
}
