/* cp.async and its groups, bulk copies and mbarriers: see async.h. */
#include "sim/async.h"

#include "sim/race_exec.h"
#include "sim/wgmma.h"

/* -- growing ------------------------------------------------------------------------------------------------------- */

void *its_sim_async_grow(its_context *ctx, void *items, uint32_t count, uint32_t *capacity, size_t size) {
    if (count < *capacity) return items;
    uint32_t more = *capacity ? *capacity * 2 : 16;
    void *bigger = its_block_alloc(ctx, more * size);
    if (!bigger) return NULL;
    if (count) memcpy(bigger, items, count * size);
    its_free(ctx, items);
    *capacity = more;
    return bigger;
}

its_sim_verdict its_sim_async_no_memory(its_sim_exec *x, const its_sim_op *op, uint32_t mask) {
    return its_sim_fault_at(x, op, mask, ITS_SIM_FAULT_NOMEM, "%s", "asynchronous copies");
}

its_sim_copies *its_sim_copies_of(its_sim_exec *x) {
    its_sim_warp *warp = x->warp;
    if (warp->copies) return warp->copies;
    warp->copies = its_block_alloc(x->grid->ctx, sizeof(*warp->copies));
    if (warp->copies) memset(warp->copies, 0, sizeof(*warp->copies));
    return warp->copies;
}

its_sim_mbarriers *its_sim_mbarriers_of(its_sim_exec *x, its_sim_cta *cta) {
    if (cta->mbarriers) return cta->mbarriers;
    cta->mbarriers = its_block_alloc(x->grid->ctx, sizeof(*cta->mbarriers));
    if (cta->mbarriers) memset(cta->mbarriers, 0, sizeof(*cta->mbarriers));
    return cta->mbarriers;
}

void its_sim_async_reset(its_context *ctx, its_sim_cta *cta) {
    for (uint32_t w = 0; cta->warps && w < cta->grid->n_warps; w++) {
        its_sim_copies *copies = cta->warps[w].copies;
        if (copies) its_free(ctx, copies->items), its_free(ctx, copies->stores);
        its_free(ctx, copies);
        cta->warps[w].copies = NULL;
        its_sim_products_free(ctx, &cta->warps[w]);
    }
    if (cta->mbarriers) {
        its_free(ctx, cta->mbarriers->items);
        its_free(ctx, cta->mbarriers->bulks);
        its_free(ctx, cta->mbarriers->boxes);
    }
    its_free(ctx, cta->mbarriers);
    cta->mbarriers = NULL;
}

/* -- cp.async ------------------------------------------------------------------------------------------------------ */

/* Checks what is read. A lane that reads nothing may have any address. */
its_sim_verdict its_sim_act_COPY_FROM(its_sim_exec *x, const its_sim_op *op, uint32_t mask) {
    its_sim_copies *copies = its_sim_copies_of(x);
    if (!copies) return its_sim_async_no_memory(x, op, mask);
    const u32 *size = (const u32 *)(const void *)(x->regs + op->b);
    uint32_t ignored =
        op->mode & ITS_COPY_IGNORES ? its_sim_pred(x->regs, op->c) ^ (op->mode & ITS_COPY_NOT ? ~0u : 0) : 0;
    uint32_t whole = 0, part = 0;
    for (uint32_t left = mask; left; left &= left - 1) {
        uint32_t lane = (uint32_t)__builtin_ctz(left), given = (ignored >> lane) & 1 ? 0 : size[lane];
        if (given > op->size)
            return its_sim_fault_at(x, op, 1u << lane, ITS_SIM_FAULT_ASYNC, "copies %u bytes but is to read %u",
                                    (unsigned)op->size, (unsigned)given);
        copies->given[lane] = given;
        if (given == op->size) whole |= 1u << lane;
        if (given && given < op->size) part |= 1u << lane;
    }
    its_sim_access access;
    its_sim_access_addresses(x, op, &access);
    if (whole && !its_sim_access_check(x, op, whole, op->size, false, &access)) return ITS_SIM_STOP;
    for (uint32_t left = part; left; left &= left - 1) {
        uint32_t lane = (uint32_t)__builtin_ctz(left);
        access.address[lane] += copies->given[lane] - 1;
        if (!its_sim_access_check(x, op, 1u << lane, 1, false, &access)) return ITS_SIM_STOP;
        access.address[lane] -= copies->given[lane] - 1;
        if (!its_sim_access_check(x, op, 1u << lane, 1, false, &access)) return ITS_SIM_STOP;
    }
    for (uint32_t left = whole | part; left; left &= left - 1) {
        uint32_t lane = (uint32_t)__builtin_ctz(left), given = copies->given[lane];
        copies->from[lane] = access.pointer[lane];
        if (x->warp->race && !its_sim_race_bytes(x, op, lane, access.pointer[lane], given, given, false, false))
            return ITS_SIM_STOP;
    }
    return ITS_SIM_NEXT;
}

its_sim_verdict its_sim_act_COPY_TO(its_sim_exec *x, const its_sim_op *op, uint32_t mask) {
    its_sim_copies *copies = its_sim_copies_of(x);
    its_sim_access access;
    if (!copies) return its_sim_async_no_memory(x, op, mask);
    its_sim_access_addresses(x, op, &access);
    if (!its_sim_access_check(x, op, mask, op->size, true, &access)) return ITS_SIM_STOP;
    if (x->warp->race && !its_sim_race_before(x, op, mask, access.pointer, op->size, true, false)) return ITS_SIM_STOP;
    its_sim_copy *items =
        its_sim_async_grow(x->grid->ctx, copies->items, copies->count, &copies->capacity, sizeof(*items));
    if (!items) return its_sim_async_no_memory(x, op, mask);
    copies->items = items;
    its_sim_copy *copy = &items[copies->count++];
    copy->mask = mask;
    copy->size = op->size;
    copy->op = op;
    copy->generation = its_sim_memory_generation(x->memory);
    memcpy(copy->to, access.pointer, sizeof(copy->to));
    memcpy(copy->from, copies->from, sizeof(copy->from));
    memcpy(copy->given, copies->given, sizeof(copy->given));
    memcpy(copy->group, copies->committed, sizeof(copy->group));
    x->frag->wrote = true;
    return ITS_SIM_NEXT;
}

/* False, with a fault, if a race was found or what is to be read was freed meanwhile. */
static bool finish_copy(its_sim_exec *x, its_sim_copy *copy, uint32_t mask, int64_t left) {
    const its_sim_copies *copies = x->warp->copies;
    bool changed = copy->generation != its_sim_memory_generation(x->memory);
    uint32_t done = 0;
    for (uint32_t lanes = copy->mask & mask; lanes; lanes &= lanes - 1) {
        uint32_t lane = (uint32_t)__builtin_ctz(lanes);
        if (left >= 0 && (int64_t)copy->group[lane] + left >= (int64_t)copies->committed[lane]) continue;
        uint32_t given = copy->given[lane];
        uint64_t from = (uint64_t)(uintptr_t)copy->from[lane];
        if (given && changed && !its_sim_access_global(x, copy->op, lane, from, given, false)) return false;
        if (given) memcpy(copy->to[lane], copy->from[lane], given);
        if (given < copy->size) memset(copy->to[lane] + given, 0, copy->size - given);
        done |= 1u << lane;
    }
    copy->mask &= ~done;
    /* It is now that the copy is made: whoever has read since it was begun has read too early. */
    return !done || !x->warp->race || its_sim_race_before(x, copy->op, done, copy->to, copy->size, true, false);
}

/* Does the copies of the lanes of `mask` but for the last `left` groups that each has closed; all if it is negative. */
static bool finish_copies(its_sim_exec *x, uint32_t mask, int64_t left) {
    its_sim_copies *copies = x->warp->copies;
    uint32_t kept = 0;
    for (uint32_t i = 0; i < copies->count; i++) {
        if (!finish_copy(x, &copies->items[i], mask, left)) return false;
        if (!copies->items[i].mask) continue;
        if (kept != i) copies->items[kept] = copies->items[i];
        kept++;
    }
    copies->count = kept;
    return true;
}

its_sim_verdict its_sim_act_COPY_GROUP(its_sim_exec *x, const its_sim_op *op, uint32_t mask) {
    its_sim_copies *copies = its_sim_copies_of(x);
    if (!copies) return its_sim_async_no_memory(x, op, mask);
    x->frag->wrote = true;
    bool good = true;
    if (op->mode == ITS_COPY_WAIT) good = finish_copies(x, mask, op->imm);
    if (op->mode == ITS_COPY_COMMIT)
        for (uint32_t left = mask; left; left &= left - 1) copies->committed[__builtin_ctz(left)]++;
    if (op->mode == ITS_COPY_BULK_WAIT) good = its_sim_stores_wait(x, mask, op->imm);
    if (op->mode == ITS_COPY_BULK_COMMIT) its_sim_stores_close_group(copies, mask);
    return good ? ITS_SIM_NEXT : ITS_SIM_STOP;
}

/* -- mbarriers ----------------------------------------------------------------------------------------------------- */

static its_sim_mbarrier *find(its_sim_mbarriers *all, uint32_t address) {
    for (uint32_t i = 0; i < all->count; i++)
        if (all->items[i].address == address) return &all->items[i];
    return NULL;
}

static void settle(its_sim_mbarrier *barrier) {
    if (barrier->pending || barrier->bytes) return;
    barrier->phase++;
    barrier->pending = barrier->expected;
}

/* Is what a copy reads still there? A kernel may free its own memory while a copy is under way. */
static bool still_there(its_sim_exec *x, const its_sim_op *op, uint32_t lane, const char *from, uint32_t size) {
    uint32_t address;
    if (its_sim_shared_owner(x, from, &address)) return true;
    return its_sim_access_global(x, op, lane, (uint64_t)(uintptr_t)from, size, false);
}

static bool make_copy(its_sim_exec *x, const its_sim_op *op, uint32_t lane, const its_sim_bulk *bulk) {
    const char *from = bulk->from ? bulk->from : bulk->data;
    if (bulk->from && !still_there(x, op, lane, bulk->from, bulk->size)) return false;
    if (bulk->mode == ITS_TENSOR_PLAIN) {
        memmove(bulk->to, from, bulk->size);
        return true;
    }
    uint32_t size = its_type_size((its_type)bulk->type);
    for (uint32_t at = 0; at < bulk->size; at += size)
        its_sim_reduce(x, (its_sim_atomic)bulk->mode, (its_type)bulk->type, bulk->to + at, from + at);
    return true;
}

/* Copies that complete on the barrier are done now: somebody looks at it. False after a fault. */
static bool finish_bulks(its_sim_exec *x, const its_sim_op *op, uint32_t lane, its_sim_mbarriers *all,
                         its_sim_mbarrier *barrier) {
    uint32_t kept = 0;
    for (uint32_t i = 0; i < all->n_bulks; i++) {
        its_sim_bulk *bulk = &all->bulks[i];
        if (bulk->barrier == barrier->address) {
            if (!make_copy(x, op, lane, bulk)) return false;
            x->frag->wrote = true;
            barrier->bytes -= bulk->size;
            settle(barrier);
        } else {
            all->bulks[kept++] = *bulk;
        }
    }
    all->n_bulks = kept;
    return true;
}

static bool finish_boxes(its_sim_exec *x, const its_sim_op *op, uint32_t lane, its_sim_mbarriers *all,
                         its_sim_mbarrier *barrier) {
    uint32_t kept = 0;
    for (uint32_t i = 0; i < all->n_boxes; i++) {
        its_sim_box *box = &all->boxes[i];
        if (box->barrier == barrier->address) {
            if (!its_sim_box_finish(x, op, lane, box)) return false;
            x->frag->wrote = true;
            barrier->bytes -= its_sim_tensor_bytes(&box->map);
            settle(barrier);
        } else {
            if (kept != i) all->boxes[kept] = *box;
            kept++;
        }
    }
    all->n_boxes = kept;
    return true;
}

/* Bytes that will come to a barrier, of which it can count so many. */
static bool expect(its_sim_exec *x, const its_sim_op *op, uint32_t lane, its_sim_mbarrier *barrier, uint32_t bytes) {
    if (bytes <= ITS_MBARRIER_MOST_BYTES && barrier->bytes + bytes <= ITS_MBARRIER_MOST_BYTES) {
        barrier->bytes += bytes;
        return true;
    }
    its_sim_fault_at(x, op, 1u << lane, ITS_SIM_FAULT_ASYNC,
                     "expects %u bytes more at the mbarrier at shared address %u, which can wait for 1048575",
                     (unsigned)bytes, (unsigned)barrier->address);
    return false;
}

static its_sim_verdict init(its_sim_exec *x, const its_sim_op *op, uint32_t lane, uint32_t address, uint32_t count,
                            char *pointer) {
    its_sim_mbarriers *all = x->cta->mbarriers;
    its_sim_mbarrier *barrier = find(all, address);
    if (count == 0 || count >= 1u << 20)
        return its_sim_fault_at(x, op, 1u << lane, ITS_SIM_FAULT_ASYNC,
                                "initialises an mbarrier for %u arrivals; it takes 1 to 1048575", (unsigned)count);
    if (!barrier) {
        its_sim_mbarrier *items =
            its_sim_async_grow(x->grid->ctx, all->items, all->count, &all->capacity, sizeof(*items));
        if (!items) return its_sim_async_no_memory(x, op, 1u << lane);
        all->items = items;
        barrier = &items[all->count++];
    }
    *barrier = (its_sim_mbarrier){.address = address, .expected = count, .pending = count};
    uint64_t mark = ITS_MBARRIER_MARK;
    memcpy(pointer, &mark, sizeof(mark));
    return ITS_SIM_NEXT;
}

static its_sim_verdict arrive(its_sim_exec *x, const its_sim_op *op, uint32_t lane, its_sim_mbarrier *barrier,
                              uint32_t count) {
    if (count > barrier->pending)
        return its_sim_fault_at(x, op, 1u << lane, ITS_SIM_FAULT_ASYNC,
                                "makes %u arrivals at the mbarrier at shared address %u, which waits for %u more",
                                (unsigned)count, (unsigned)barrier->address, (unsigned)barrier->pending);
    if (op->size && count == barrier->pending)
        return its_sim_fault_at(x, op, 1u << lane, ITS_SIM_FAULT_ASYNC,
                                "completes a phase of the mbarrier at shared address %u, which noComplete must not",
                                (unsigned)barrier->address);
    if (op->dst != UINT32_MAX)
        ((u64 *)(void *)(x->regs + op->dst))[lane] = (u64)barrier->pending << 32 | barrier->phase;
    barrier->pending -= count;
    settle(barrier);
    return ITS_SIM_NEXT;
}

/* `all`: those of the CTA that has the barrier. */
static its_sim_verdict operate(its_sim_exec *x, const its_sim_op *op, uint32_t lane, its_sim_mbarriers *all,
                               its_sim_mbarrier *barrier) {
    uint32_t value = op->mode == ITS_MBARRIER_TEST ? (uint32_t)((const u64 *)(const void *)(x->regs + op->b))[lane]
                                                   : ((const u32 *)(const void *)(x->regs + op->b))[lane];
    if (op->mode != ITS_MBARRIER_TEST && op->mode != ITS_MBARRIER_TEST_PARITY) x->frag->wrote = true;
    switch (op->mode) {
    case ITS_MBARRIER_INVAL:
        *barrier = all->items[--all->count];
        return ITS_SIM_NEXT;
    case ITS_MBARRIER_ARRIVE_TX:
        if (!expect(x, op, lane, barrier, value)) return ITS_SIM_STOP;
        return arrive(x, op, lane, barrier, 1);
    case ITS_MBARRIER_DROP_TX:
        if (!expect(x, op, lane, barrier, value)) return ITS_SIM_STOP;
        if (barrier->expected) barrier->expected--;
        return arrive(x, op, lane, barrier, 1);
    case ITS_MBARRIER_DROP:
        if (value <= barrier->expected) barrier->expected -= value;
        return arrive(x, op, lane, barrier, value);
    case ITS_MBARRIER_EXPECT:
        return expect(x, op, lane, barrier, value) ? ITS_SIM_NEXT : ITS_SIM_STOP;
    case ITS_MBARRIER_COMPLETE:
        barrier->bytes -= value;
        settle(barrier);
        return ITS_SIM_NEXT;
    case ITS_MBARRIER_ARRIVE_COPIES:
    case ITS_MBARRIER_WAIT_COPIES:
        if (x->warp->copies && !finish_copies(x, 1u << lane, -1)) return ITS_SIM_STOP;
        return op->mode == ITS_MBARRIER_ARRIVE_COPIES ? arrive(x, op, lane, barrier, 1) : ITS_SIM_NEXT;
    case ITS_MBARRIER_TEST:
        if (!finish_bulks(x, op, lane, all, barrier) || !finish_boxes(x, op, lane, all, barrier)) return ITS_SIM_STOP;
        its_sim_set_pred(x->regs, op->dst, barrier->phase != value ? ~0u : 0, 1u << lane);
        return ITS_SIM_NEXT;
    case ITS_MBARRIER_TEST_PARITY:
        if (!finish_bulks(x, op, lane, all, barrier) || !finish_boxes(x, op, lane, all, barrier)) return ITS_SIM_STOP;
        its_sim_set_pred(x->regs, op->dst, (barrier->phase & 1) != (value & 1) ? ~0u : 0, 1u << lane);
        return ITS_SIM_NEXT;
    default:
        return arrive(x, op, lane, barrier, value);
    }
}

/*
 * The barrier at a pointer into shared memory, and the CTA that has it; records a fault and returns NULL if there is
 * none.
 */
static its_sim_mbarrier *barrier_at(its_sim_exec *x, const its_sim_op *op, uint32_t lane, const char *pointer,
                                    its_sim_cta **owner) {
    uint32_t address = 0;
    *owner = its_sim_shared_owner(x, pointer, &address);
    its_sim_mbarrier *barrier = *owner && (*owner)->mbarriers ? find((*owner)->mbarriers, address) : NULL;
    uint64_t mark;
    memcpy(&mark, pointer, sizeof(mark));
    if (barrier && mark == ITS_MBARRIER_MARK) return barrier;
    its_sim_fault_at(x, op, 1u << lane, ITS_SIM_FAULT_ASYNC,
                     barrier ? "uses the mbarrier at shared address %u, which something else was written over"
                             : "uses an mbarrier at shared address %u, which was not initialised",
                     (unsigned)address);
    return NULL;
}

its_sim_verdict its_sim_act_MBARRIER(its_sim_exec *x, const its_sim_op *op, uint32_t mask) {
    its_sim_access access;
    if (!its_sim_mbarriers_of(x, x->cta)) return its_sim_async_no_memory(x, op, mask);
    its_sim_access_addresses(x, op, &access);
    bool tests = op->mode == ITS_MBARRIER_TEST || op->mode == ITS_MBARRIER_TEST_PARITY;
    if (x->frag->spin.looks) its_sim_spin_note(x, op, mask);
    if (!its_sim_access_check(x, op, mask, 8, !tests, &access)) return ITS_SIM_STOP;
    for (uint32_t left = mask; left; left &= left - 1) {
        uint32_t lane = (uint32_t)__builtin_ctz(left);
        its_sim_verdict verdict;
        if (op->mode == ITS_MBARRIER_INIT) {
            uint32_t address;
            if (its_sim_shared_owner(x, access.pointer[lane], &address) != x->cta)
                return its_sim_fault_at(x, op, 1u << lane, ITS_SIM_FAULT_ASYNC, "%s",
                                        "initialises an mbarrier that is not in its own shared memory");
            verdict =
                init(x, op, lane, address, ((const u32 *)(const void *)(x->regs + op->b))[lane], access.pointer[lane]);
            x->frag->wrote = true;
        } else {
            its_sim_cta *owner;
            its_sim_mbarrier *barrier = barrier_at(x, op, lane, access.pointer[lane], &owner);
            if (!barrier) return ITS_SIM_STOP;
            if (x->warp->race) its_sim_race_handover(x, access.pointer[lane], !tests);
            verdict = operate(x, op, lane, owner->mbarriers, barrier);
            if (x->warp->race && tests && (its_sim_pred(x->regs, op->dst) >> lane & 1))
                its_sim_race_handover(x, access.pointer[lane], false);
        }
        if (verdict != ITS_SIM_NEXT) return verdict;
    }
    return ITS_SIM_NEXT;
}

/* -- bulk copies --------------------------------------------------------------------------------------------------- */

/* Checks each lane's range and its alignment; fills access->pointer with where it begins. */
static bool check_range(its_sim_exec *x, const its_sim_op *op, uint32_t mask, const u32 *size, bool writes,
                        its_sim_access *access) {
    its_sim_access_addresses(x, op, access);
    for (uint32_t left = mask; left; left &= left - 1) {
        uint32_t lane = (uint32_t)__builtin_ctz(left), bytes = size[lane];
        if (bytes % 16 || bytes == 0) {
            its_sim_fault_at(x, op, 1u << lane, ITS_SIM_FAULT_ASYNC,
                             "copies %u bytes; a bulk copy takes a multiple of 16", (unsigned)bytes);
            return false;
        }
        if (!its_sim_access_check(x, op, 1u << lane, 16, writes, access)) return false;
        char *begin = access->pointer[lane];
        uint64_t address = access->address[lane];
        if ((uint64_t)(uintptr_t)begin == address) { /* in global memory there may be more than one allocation */
            if (!its_sim_access_global(x, op, lane, address, bytes, writes)) return false;
            continue;
        }
        access->address[lane] += bytes - 16;
        if (!its_sim_access_check(x, op, 1u << lane, 16, writes, access)) return false;
        access->address[lane] = address;
        access->pointer[lane] = begin;
    }
    return true;
}

its_sim_verdict its_sim_act_BULK_FROM(its_sim_exec *x, const its_sim_op *op, uint32_t mask) {
    its_sim_copies *copies = its_sim_copies_of(x);
    its_sim_access access;
    if (!copies) return its_sim_async_no_memory(x, op, mask);
    const u32 *size = (const u32 *)(const void *)(x->regs + op->b);
    if (!check_range(x, op, mask, size, false, &access)) return ITS_SIM_STOP;
    for (uint32_t left = mask; left; left &= left - 1) {
        uint32_t lane = (uint32_t)__builtin_ctz(left);
        copies->from[lane] = access.pointer[lane];
        copies->given[lane] = size[lane];
        if (x->warp->race &&
            !its_sim_race_bytes(x, op, lane, access.pointer[lane], size[lane], size[lane], false, false))
            return ITS_SIM_STOP;
    }
    return ITS_SIM_NEXT;
}

/* Notes a copy in the CTA that has its mbarrier; false if memory ran out. */
static bool note(its_sim_exec *x, its_sim_cta *owner, uint32_t lane, its_sim_bulk *bulk) {
    its_sim_mbarriers *all = its_sim_mbarriers_of(x, owner);
    its_sim_bulk *bulks =
        all ? its_sim_async_grow(x->grid->ctx, all->bulks, all->n_bulks, &all->bulk_capacity, sizeof(*bulks)) : NULL;
    if (!bulks) return false;
    all->bulks = bulks;
    bulk->barrier = x->warp->copies->barrier[lane];
    bulks[all->n_bulks++] = *bulk;
    return true;
}

/* A copy that completes on an mbarrier. In a multicast each CTA gets it at the same place and on its own mbarrier. */
static its_sim_verdict begin(its_sim_exec *x, const its_sim_op *op, uint32_t lane, its_sim_bulk *bulk) {
    its_sim_copies *copies = x->warp->copies;
    its_sim_cta *owner = copies->owner[lane];
    uint32_t address = 0, ctas = 1u << owner->rank;
    its_sim_cta *to = its_sim_shared_owner(x, bulk->to, &address);
    if (op->c) ctas = its_sim_cluster_targets(x, op, lane, to);
    if (!ctas) return ITS_SIM_STOP;
    for (; ctas; ctas &= ctas - 1) {
        if (op->c) {
            owner = &x->cta->cluster[__builtin_ctz(ctas)];
            bulk->to = owner->shared + (address - ITS_SIM_SHARED_BEGIN);
        }
        if (x->warp->race &&
            !its_sim_race_bytes(x, op, lane, bulk->to, bulk->size, bulk->size, true, bulk->mode != ITS_TENSOR_PLAIN))
            return ITS_SIM_STOP;
        if (x->warp->race) /* whoever sees it complete has seen the copy */
            its_sim_race_handover(x, owner->shared + (copies->barrier[lane] - ITS_SIM_SHARED_BEGIN), true);
        if (!note(x, owner, lane, bulk)) return its_sim_async_no_memory(x, op, 1u << lane);
    }
    return ITS_SIM_NEXT;
}

its_sim_verdict its_sim_act_BULK_TO(its_sim_exec *x, const its_sim_op *op, uint32_t mask) {
    its_sim_copies *copies = its_sim_copies_of(x);
    its_sim_access access;
    if (!copies) return its_sim_async_no_memory(x, op, mask);
    if (!check_range(x, op, mask, copies->given, true, &access)) return ITS_SIM_STOP;
    x->frag->wrote = true;
    for (uint32_t left = mask; left; left &= left - 1) {
        uint32_t lane = (uint32_t)__builtin_ctz(left), bytes = copies->given[lane];
        if (op->mode == ITS_BULK_ON_MBARRIER || op->mode == ITS_BULK_REDUCE_ON_MBARRIER) {
            its_sim_bulk bulk = {.to = access.pointer[lane], .from = copies->from[lane], .size = bytes};
            bulk.mode = op->mode == ITS_BULK_ON_MBARRIER ? (uint8_t)ITS_TENSOR_PLAIN : op->vec;
            bulk.type = op->type;
            if (begin(x, op, lane, &bulk) == ITS_SIM_STOP) return ITS_SIM_STOP;
            continue;
        }
        if (x->warp->race &&
            !its_sim_race_bytes(x, op, lane, access.pointer[lane], bytes, bytes, true, op->mode == ITS_BULK_REDUCE))
            return ITS_SIM_STOP;
        if (op->mode == ITS_BULK_AT_ONCE) {
            memmove(access.pointer[lane], copies->from[lane], bytes);
        } else if (!its_sim_store_bytes(x, op, lane, access.pointer[lane], copies->from[lane], bytes)) {
            return its_sim_async_no_memory(x, op, mask);
        }
    }
    return ITS_SIM_NEXT;
}

/* st.async and red.async; op->list: a register for each element. */
its_sim_verdict its_sim_act_STORE_ASYNC(its_sim_exec *x, const its_sim_op *op, uint32_t mask) {
    const uint32_t *list = x->program->lists.items + op->list;
    uint32_t bytes = (uint32_t)op->size * op->vec;
    its_sim_access access;
    its_sim_access_addresses(x, op, &access);
    if (!its_sim_access_check(x, op, mask, bytes, true, &access)) return ITS_SIM_STOP;
    x->frag->wrote = true;
    for (uint32_t left = mask; left; left &= left - 1) {
        uint32_t lane = (uint32_t)__builtin_ctz(left);
        its_sim_bulk bulk = {.to = access.pointer[lane], .size = bytes, .mode = (uint8_t)op->mode, .type = op->type};
        for (uint32_t k = 0; k < op->vec; k++)
            memcpy(bulk.data + k * op->size, x->regs + list[k] + (size_t)lane * op->size, op->size);
        if (x->warp->race) { /* as a bulk copy */
            const its_sim_cta *owner = x->warp->copies->owner[lane];
            if (!its_sim_race_bytes(x, op, lane, bulk.to, bytes, bytes, true, op->mode != ITS_TENSOR_PLAIN))
                return ITS_SIM_STOP;
            its_sim_race_handover(x, owner->shared + (x->warp->copies->barrier[lane] - ITS_SIM_SHARED_BEGIN), true);
        }
        if (!note(x, x->warp->copies->owner[lane], lane, &bulk)) return its_sim_async_no_memory(x, op, mask);
    }
    return ITS_SIM_NEXT;
}

/* Notes the mbarrier that the next bulk copy of these lanes completes on. */
its_sim_verdict its_sim_act_BULK_ON(its_sim_exec *x, const its_sim_op *op, uint32_t mask) {
    its_sim_copies *copies = its_sim_copies_of(x);
    its_sim_access access;
    if (!copies) return its_sim_async_no_memory(x, op, mask);
    its_sim_access_addresses(x, op, &access);
    if (!its_sim_access_check(x, op, mask, 8, true, &access)) return ITS_SIM_STOP;
    for (uint32_t left = mask; left; left &= left - 1) {
        uint32_t lane = (uint32_t)__builtin_ctz(left);
        its_sim_mbarrier *barrier = barrier_at(x, op, lane, access.pointer[lane], &copies->owner[lane]);
        if (!barrier) return ITS_SIM_STOP;
        copies->barrier[lane] = barrier->address;
    }
    return ITS_SIM_NEXT;
}
