/* Calls and returns: register frames, stack frames, and the values that pass between them. */
#include "sim/exec.h"

#include "sim/builtin.h"
#include "sim/wgmma.h"

/* Every call takes at least this much of the stack, so that endless recursion ends. */
#define CALL_OVERHEAD 32u
#define MAX_REGISTERS ((size_t)1 << 28) /* bytes of register frames per warp */

/* -- entering a frame ---------------------------------------------------------------------------------------------- */

static void set_lane(char *reg, uint32_t lane, uint32_t size, uint64_t value) {
    if (size == 2)
        ((u16 *)(void *)reg)[lane] = (uint16_t)value;
    else if (size == 4)
        ((u32 *)(void *)reg)[lane] = (uint32_t)value;
    else if (size == 8)
        ((u64 *)(void *)reg)[lane] = value;
    else
        ((b128 *)(void *)reg)[lane] = (b128){value, 0};
}

void its_sim_frame_enter(const its_sim_warp *warp, const its_sim_func *func, char *regs, uint32_t local,
                         uint32_t mask) {
    its_sim_set_pred(regs, 0, ITS_FULL, mask);
    for (uint32_t k = 0; k < func->n_consts; k++) {
        const its_sim_const *constant = &func->consts[k];
        uint64_t value = constant->value;
        if (constant->kind == ITS_SIM_CONST_LOCAL) value += ITS_SIM_LOCAL_BEGIN + local;
        if (constant->kind == ITS_SIM_CONST_SHARED) value += warp->cta->grid->dynamic_begin;
        if (constant->size == 0) {
            its_sim_set_pred(regs, constant->offset, value ? ITS_FULL : 0, mask);
            continue;
        }
        for (uint32_t left = mask; left; left &= left - 1) {
            uint32_t lane = (uint32_t)__builtin_ctz(left);
            if (constant->kind == ITS_SIM_CONST_SREG)
                value = its_sim_sreg_value(warp, (its_sim_sreg)constant->value, lane);
            set_lane(regs + constant->offset, lane, constant->size, value);
        }
    }
}

bool its_sim_warp_reserve(its_sim_warp *warp, size_t size) {
    if (size <= warp->regs_size) return true;
    if (size > MAX_REGISTERS) return false;
    size_t wanted = warp->regs_size * 2 > size ? warp->regs_size * 2 : size;
    wanted = (wanted + 63) & ~(size_t)63;
    its_context *ctx = warp->cta->grid->ctx;
    char *block = its_block_alloc(ctx, wanted + 63);
    if (!block) return false;
    char *bigger = (char *)(((uintptr_t)block + 63) & ~(uintptr_t)63);
    if (warp->regs_size) memcpy(bigger, warp->regs, warp->regs_size);
    memset(bigger + warp->regs_size, 0, wanted - warp->regs_size);
    its_free(ctx, warp->regs_block);
    warp->regs_block = block;
    warp->regs = bigger;
    warp->regs_size = wanted;
    return true;
}

/* -- values that pass ---------------------------------------------------------------------------------------------- */

/* One call's frames. */
typedef struct frame {
    uint32_t base, local;
} frame;

/* Copies a value of lane `lane` out of a register or the stack; predicates are one byte. */
static void slot_read(const its_sim_warp *warp, frame f, const its_sim_slot *slot, uint32_t lane, void *value,
                      uint32_t size) {
    const char *reg = warp->regs + f.base + slot->offset;
    if (!slot->in_reg)
        memcpy(value, warp->local + (size_t)lane * warp->cta->grid->local_size + f.local + slot->offset, size);
    else if (slot->size == 0)
        *(char *)value = (char)(its_sim_pred(reg, 0) >> lane & 1);
    else
        memcpy(value, reg + (size_t)lane * slot->size, size);
}

static void slot_write(its_sim_warp *warp, frame f, const its_sim_slot *slot, uint32_t lane, const void *value,
                       uint32_t size) {
    char *reg = warp->regs + f.base + slot->offset;
    if (!slot->in_reg)
        memcpy(warp->local + (size_t)lane * warp->cta->grid->local_size + f.local + slot->offset, value, size);
    else if (slot->size == 0)
        its_sim_set_pred(reg, 0, *(const char *)value ? ITS_FULL : 0, 1u << lane);
    else
        memcpy(reg + (size_t)lane * slot->size, value, size);
}

static uint32_t slot_bytes(const its_sim_slot *slot) {
    return slot->size ? slot->size : 1;
}

static void pass(its_sim_warp *warp, uint32_t mask, frame from, const its_sim_slot *source, frame to,
                 const its_sim_slot *target) {
    char value[256];
    for (uint32_t left = mask; left; left &= left - 1) {
        uint32_t lane = (uint32_t)__builtin_ctz(left), size = slot_bytes(target->open ? source : target);
        if (size <= sizeof(value)) {
            slot_read(warp, from, source, lane, value, size);
            slot_write(warp, to, target, lane, value, size);
        } else { /* only memory is that large */
            char *local = warp->local + (size_t)lane * warp->cta->grid->local_size;
            memmove(local + to.local + target->offset, local + from.local + source->offset, size);
        }
    }
}

/* -- calls --------------------------------------------------------------------------------------------------------- */

static const its_sim_func *func_of(const its_sim_exec *x, const its_sim_op *op) {
    const its_sim_program *program = x->program;
    return &program->funcs[program->wheres.items[program->op_where[its_sim_op_index(x, op)]].func];
}

static bool reserve_returns(its_sim_warp *warp, uint32_t depth) {
    if (depth < warp->calls_size) return true;
    uint32_t wanted = warp->calls_size ? warp->calls_size * 2 : 8;
    its_context *ctx = warp->cta->grid->ctx;
    its_sim_return *bigger = its_block_alloc(ctx, wanted * sizeof(*bigger));
    if (!bigger) return false;
    if (warp->calls_size) memcpy(bigger, warp->calls, warp->calls_size * sizeof(*bigger));
    its_free(ctx, warp->calls);
    warp->calls = bigger;
    warp->calls_size = wanted;
    return true;
}

static bool slot_takes(const its_sim_slot *formal, const its_sim_slot *value) {
    uint32_t most = slot_bytes(formal), bytes = slot_bytes(value);
    return formal->open ? !value->in_reg && bytes <= most : bytes == most;
}

static bool signatures_fit(const its_sim_call *call, const its_sim_func *callee) {
    if (call->n_args != callee->n_params || call->n_results > callee->n_results) return false;
    for (uint32_t i = 0; i < call->n_args; i++)
        if (!slot_takes(&callee->params[i], &call->args[i])) return false;
    for (uint32_t i = 0; i < call->n_results; i++)
        if (slot_bytes(&call->results[i]) != slot_bytes(&callee->results[i])) return false;
    return true;
}

/*
 * Where the frame of a callee begins: after the caller's. Fragments of a warp share the block of registers, lane by
 * lane, which only works where they have the same function at the same place; if another one has something else there,
 * the frame goes above all of them.
 */
static uint32_t callee_base(const its_sim_exec *x, const its_sim_func *caller, const its_sim_func *callee) {
    const its_sim_warp *warp = x->warp;
    uint32_t base = x->frag->base + caller->frame_size, top = base;
    bool taken = false;
    for (uint32_t i = 0; i < warp->n_frags; i++) {
        const its_sim_frag *other = &warp->frags[i];
        if (other == x->frag) continue;
        const its_sim_func *func = func_of(x, other->pc);
        uint32_t end = other->base + func->frame_size;
        if (end > base && !(other->base == base && func == callee)) taken = true;
        if (end > top) top = end;
    }
    return taken ? top : base;
}

/* Bytes that alloca has taken of a lane's local memory, at most. */
static uint32_t most_taken(const its_sim_warp *warp, uint32_t mask) {
    uint32_t most = 0;
    for (uint32_t lane = 0; lane < ITS_LANES; lane++)
        if ((mask >> lane) & 1 && warp->taken[lane] > most) most = warp->taken[lane];
    return most;
}

/* Lets the lanes of the running fragment go into `callee`. Requires signatures that fit. */
static its_sim_verdict enter(its_sim_exec *x, const its_sim_op *op, const its_sim_call *call,
                             const its_sim_func *callee) {
    its_sim_warp *warp = x->warp;
    its_sim_frag *frag = x->frag;
    const its_sim_func *caller = func_of(x, op);
    frame from = {frag->base, frag->local};
    uint64_t local = (uint64_t)frag->local + caller->local_size + CALL_OVERHEAD;
    local = (local + 15) & ~(uint64_t)15;
    if (local + callee->local_size + most_taken(warp, frag->mask) > x->grid->local_size)
        return its_sim_fault_at(x, op, frag->mask, ITS_SIM_FAULT_STACK, "'%s'", callee->name);
    frame to = {callee_base(x, caller, callee), (uint32_t)local};
    if (!its_sim_warp_reserve(warp, (size_t)to.base + callee->frame_size) || !reserve_returns(warp, frag->depth))
        return its_sim_fault_at(x, op, frag->mask, ITS_SIM_FAULT_NOMEM, "%s", "");
    its_sim_return *back = &warp->calls[frag->depth];
    for (uint32_t left = frag->mask; left; left &= left - 1) {
        uint32_t lane = (uint32_t)__builtin_ctz(left);
        back->pc[lane] = its_sim_op_index(x, op) + 1;
        back->base[lane] = from.base;
        back->local[lane] = from.local;
        back->taken[lane] = warp->taken[lane];
    }
    its_sim_frame_enter(warp, callee, warp->regs + to.base, to.local, frag->mask);
    for (uint32_t i = 0; i < call->n_args; i++) pass(warp, frag->mask, from, &call->args[i], to, &callee->params[i]);
    frag->depth++;
    frag->base = to.base;
    frag->local = to.local;
    frag->pc = x->program->ops + callee->first;
    return ITS_SIM_AGAIN;
}

/* The lanes of `mask` that call what the first of them calls. */
static uint32_t same_target(const its_sim_exec *x, const its_sim_call *call, uint32_t mask, uint64_t *address) {
    const u64 *addresses = (const u64 *)(const void *)(x->regs + call->address);
    uint32_t same = 0;
    *address = addresses[__builtin_ctz(mask)];
    for (uint32_t lane = 0; lane < ITS_LANES; lane++)
        if ((mask >> lane) & 1 && addresses[lane] == *address) same |= 1u << lane;
    return same;
}

static its_sim_verdict call_indirect(its_sim_exec *x, const its_sim_op *op, const its_sim_call *call, uint32_t mask) {
    uint64_t address;
    uint32_t same = same_target(x, call, mask, &address);
    uint64_t index = ((address & ~ITS_SIM_WINDOW_FUNC) >> 4) - 1;
    if (index >= x->program->n_funcs || address != its_sim_func_address((uint32_t)index) ||
        !x->program->funcs[index].has_body)
        return its_sim_fault_at(x, op, same, ITS_SIM_FAULT_CALL, "address 0x%llx is no function",
                                (unsigned long long)address);
    const its_sim_func *callee = &x->program->funcs[index];
    if (!signatures_fit(call, callee))
        return its_sim_fault_at(x, op, same, ITS_SIM_FAULT_CALL, "'%s' has other parameters than the prototype says",
                                callee->name);
    its_sim_frag_split(x, same, op); /* the others come back here for their own function */
    return enter(x, op, call, callee);
}

its_sim_verdict its_sim_act_CALL(its_sim_exec *x, const its_sim_op *op, uint32_t mask) {
    const its_sim_call *call = &x->program->calls.items[op->list];
    if (call->kind != ITS_SIM_CALL_FUNC && call->kind != ITS_SIM_CALL_INDIRECT)
        return its_sim_builtin_call(x, op, call, mask);
    if (mask != x->frag->mask) { /* predicated: those who don't call go on */
        its_sim_frag_split(x, mask, op + 1);
        return ITS_SIM_AGAIN;
    }
    if (call->kind == ITS_SIM_CALL_INDIRECT) return call_indirect(x, op, call, mask);
    return enter(x, op, call, &x->program->funcs[call->func]);
}

/* Lets lanes of `mask`, which all return to the same place, go on there with the results. */
static void leave(its_sim_exec *x, its_sim_frag *frag, const its_sim_func *callee, uint32_t lane) {
    const its_sim_return *back = &x->warp->calls[frag->depth - 1];
    frame from = {frag->base, frag->local}, to = {back->base[lane], back->local[lane]};
    const its_sim_op *pc = x->program->ops + back->pc[lane];
    const its_sim_call *call = &x->program->calls.items[pc[-1].list];
    for (uint32_t i = 0; i < call->n_results; i++)
        pass(x->warp, frag->mask, from, &callee->results[i], to, &call->results[i]);
    for (uint32_t left = frag->mask; left; left &= left - 1) {
        uint32_t each = (uint32_t)__builtin_ctz(left);
        x->warp->taken[each] = back->taken[each];
    }
    frag->pc = pc;
    frag->base = to.base;
    frag->local = to.local;
    frag->depth--;
    its_sim_spin_leave(x, frag);
}

its_sim_verdict its_sim_act_RETURN(its_sim_exec *x, const its_sim_op *op, uint32_t mask) {
    its_sim_frag *frag = x->frag;
    if (frag->depth == 0) return its_sim_act_EXIT(x, op, mask);
    if (its_sim_products_use(x->warp, frag->base))
        return its_sim_fault_at(x, op, mask, ITS_SIM_FAULT_ASYNC, "%s",
                                "returns from a function while a matrix product still writes its registers");
    const its_sim_return *back = &x->warp->calls[frag->depth - 1];
    uint32_t first = (uint32_t)__builtin_ctz(mask), same = 0;
    for (uint32_t lane = 0; lane < ITS_LANES; lane++)
        if ((mask >> lane) & 1 && back->pc[lane] == back->pc[first] && back->base[lane] == back->base[first] &&
            back->local[lane] == back->local[first])
            same |= 1u << lane;
    if (same != mask) { /* called from several places: the rest comes back here */
        its_sim_frag_add(x->warp, frag, mask & ~same, op);
        frag->mask &= ~(mask & ~same);
    }
    its_sim_frag_split(x, same, op + 1);
    leave(x, frag, func_of(x, op), first);
    its_sim_frag_join(x->warp);
    return ITS_SIM_AGAIN;
}

void its_sim_slot_get(const its_sim_exec *x, const its_sim_slot *slot, uint32_t lane, void *value, uint32_t size) {
    slot_read(x->warp, (frame){x->frag->base, x->frag->local}, slot, lane, value, size);
}

void its_sim_slot_set(its_sim_exec *x, const its_sim_slot *slot, uint32_t lane, const void *value, uint32_t size) {
    slot_write(x->warp, (frame){x->frag->base, x->frag->local}, slot, lane, value, size);
}
