/*
 * Copies from shared to global memory, bulk and tensor, and their groups.
 *
 * As all that is asynchronous they are made as late as the program lets them be: when a thread waits for the group, be
 * it that what was read may be overwritten (.read) or that all is done, and when it ends. So a thread that fills its
 * buffer again without a wait sends what it has filled it with. But copies get done without anybody's wait: they are
 * made, too, when nobody in the grid can go on, and when they are old, since a loop may look at a clock.
 */
#include "sim/async.h"

#include "sim/race_exec.h"

#define OLD (1u << 20) /* instructions of the grid since it was begun */

/* A copy that was begun and not made yet. */
typedef struct its_sim_store {
    const its_sim_op *op;
    uint32_t lane, group, size; /* size 0: the box */
    char *to;
    const char *from;
    its_sim_box box;
    uint64_t generation; /* of the memory table, when the range to write was checked */
    uint64_t begun;      /* instructions of the grid */
} its_sim_store;

static its_sim_store *add(its_sim_exec *x, const its_sim_op *op, uint32_t lane) {
    its_sim_copies *copies = x->warp->copies;
    its_sim_store *items =
        its_sim_async_grow(x->grid->ctx, copies->stores, copies->n_stores, &copies->store_capacity, sizeof(*items));
    if (!items) return NULL;
    copies->stores = items;
    its_sim_store *store = &items[copies->n_stores++];
    *store = (its_sim_store){.op = op,
                             .lane = lane,
                             .group = copies->closed[lane],
                             .generation = its_sim_memory_generation(x->memory),
                             .begun = x->grid->instructions};
    return store;
}

bool its_sim_store_bytes(its_sim_exec *x, const its_sim_op *op, uint32_t lane, char *to, const char *from,
                         uint32_t size) {
    its_sim_store *store = add(x, op, lane);
    if (!store) return false;
    store->to = to;
    store->from = from;
    store->size = size;
    return true;
}

bool its_sim_store_box(its_sim_exec *x, const its_sim_op *op, uint32_t lane, const its_sim_box *box) {
    its_sim_store *store = add(x, op, lane);
    if (store) store->box = *box;
    return store != NULL;
}

/* False, with a fault, if a race was found or what is to be written was freed meanwhile. */
static bool make_bytes(its_sim_exec *x, const its_sim_store *store, bool changed) {
    const its_sim_op *op = store->op;
    uint64_t to = (uint64_t)(uintptr_t)store->to;
    if (changed && !its_sim_access_global(x, op, store->lane, to, store->size, true)) return false;
    /* It is now that the source is read: whoever has written there since without a wait of this thread was too early.
     */
    if (x->warp->race && !its_sim_race_bytes(x, op, store->lane, store->from, store->size, store->size, false, false))
        return false;
    uint32_t size = op->mode == ITS_BULK_REDUCE ? its_type_size((its_type)op->type) : store->size;
    for (uint32_t at = 0; at < store->size; at += size)
        if (op->mode == ITS_BULK_REDUCE)
            its_sim_reduce(x, (its_sim_atomic)op->vec, (its_type)op->type, store->to + at, store->from + at);
        else
            memmove(store->to + at, store->from + at, size);
    return true;
}

static bool make(its_sim_exec *x, const its_sim_store *store) {
    bool changed = store->generation != its_sim_memory_generation(x->memory);
    if (store->size) return make_bytes(x, store, changed);
    return its_sim_box_put(x, store->op, store->lane, &store->box, changed);
}

/* Makes what `wanted` says of the current warp's copies, in the order of their beginning. */
typedef struct choice {
    uint32_t mask;
    int64_t left;    /* groups that each lane may leave; all copies are made, in a group or not, if it is negative */
    uint64_t before; /* only what was begun before this instruction */
} choice;

static bool chosen(const its_sim_copies *copies, const its_sim_store *store, const choice *wanted) {
    if (!(wanted->mask >> store->lane & 1) || store->begun >= wanted->before) return false;
    return wanted->left < 0 || (int64_t)store->group + wanted->left < (int64_t)copies->closed[store->lane];
}

static bool make_all(its_sim_exec *x, choice wanted, bool *any) {
    its_sim_copies *copies = x->warp->copies;
    uint32_t kept = 0;
    for (uint32_t i = 0; i < copies->n_stores; i++) {
        its_sim_store *store = &copies->stores[i];
        if (chosen(copies, store, &wanted)) {
            if (!make(x, store)) return false;
            *any = true;
        } else {
            if (kept != i) copies->stores[kept] = *store;
            kept++;
        }
    }
    copies->n_stores = kept;
    return true;
}

void its_sim_stores_close_group(its_sim_copies *copies, uint32_t mask) {
    for (uint32_t left = mask; left; left &= left - 1) copies->closed[__builtin_ctz(left)]++;
}

bool its_sim_stores_wait(its_sim_exec *x, uint32_t mask, int64_t left) {
    bool any = false;
    if (!x->warp->copies) return true;
    bool good = make_all(x, (choice){mask, left, UINT64_MAX}, &any);
    if (any) x->frag->wrote = true;
    return good;
}

bool its_sim_stores_settle(its_sim_exec *x, bool old, bool *any) {
    its_sim_grid *grid = x->grid;
    choice wanted = {ITS_FULL, -1, UINT64_MAX};
    if (old) wanted.before = grid->instructions > OLD ? grid->instructions - OLD : 0;
    for (uint32_t s = 0; s < grid->n_open; s++) {
        its_sim_cta *cta = &grid->slots[s];
        for (uint32_t w = 0; cta->running && w < grid->n_warps; w++) {
            its_sim_warp *warp = &cta->warps[w];
            if (!warp->copies || !warp->copies->n_stores) continue;
            x->cta = cta;
            x->warp = warp;
            x->frag = &warp->frags[0];
            if (!make_all(x, wanted, any)) return false;
        }
    }
    return true;
}
