/* Beginning matrix products of a warpgroup: they are noted here, and computed by exec_wgmma.inc.h. See wgmma.h. */
#include "sim/wgmma.h"

#define DESCRIPTOR_ZEROS 0x3ff1c000c000c000ull /* bits that must be 0 */
#define DESCRIPTOR_BASE 0x000e000000000000ull

static its_sim_products *products_of(its_sim_exec *x) {
    its_sim_warp *warp = x->warp;
    if (warp->products) return warp->products;
    warp->products = its_block_alloc(x->grid->ctx, sizeof(*warp->products));
    if (warp->products) memset(warp->products, 0, sizeof(*warp->products));
    return warp->products;
}

void its_sim_products_free(its_context *ctx, its_sim_warp *warp) {
    if (warp->products) its_free(ctx, warp->products->items);
    its_free(ctx, warp->products);
    warp->products = NULL;
}

bool its_sim_products_use(const its_sim_warp *warp, uint32_t base) {
    for (uint32_t i = 0; warp->products && i < warp->products->count; i++)
        if (warp->products->items[i].base == base) return true;
    return false;
}

static bool grow(its_context *ctx, its_sim_products *all) {
    if (all->count < all->capacity) return true;
    uint32_t more = all->capacity ? all->capacity * 2 : 16;
    its_sim_product *bigger = its_block_alloc(ctx, more * sizeof(*bigger));
    if (!bigger) return false;
    if (all->count) memcpy(bigger, all->items, all->count * sizeof(*bigger));
    its_free(ctx, all->items);
    all->items = bigger;
    all->capacity = more;
    return true;
}

/* -- checks -------------------------------------------------------------------------------------------------------- */

static bool wrong(its_sim_exec *x, const its_sim_op *op, const char *text) {
    its_sim_fault_at(x, op, 1, ITS_SIM_FAULT_ASYNC, "%s", text);
    return false;
}

/* A descriptor, which all lanes must give alike. */
static bool take_descriptor(its_sim_exec *x, const its_sim_op *op, uint32_t reg, uint64_t *descriptor) {
    const u64 *lanes = (const u64 *)(const void *)(x->regs + reg);
    *descriptor = lanes[0];
    for (uint32_t lane = 1; lane < ITS_LANES; lane++)
        if (lanes[lane] != *descriptor)
            return wrong(x, op, "gives a matrix descriptor that differs between the threads of its warp");
    if (*descriptor & DESCRIPTOR_ZEROS)
        return wrong(x, op,
                     "gives a matrix descriptor with bits set that must be 0: addresses and offsets are in "
                     "units of 16 bytes");
    if (*descriptor & DESCRIPTOR_BASE)
        return wrong(x, op, "gives a matrix descriptor with a base offset, which the simulator doesn't have");
    return true;
}

static bool is_inside(its_sim_exec *x, const its_sim_op *op, uint32_t address) {
    if (address >= ITS_SIM_SHARED_BEGIN &&
        (uint64_t)address + 16 <= (uint64_t)ITS_SIM_SHARED_BEGIN + x->grid->shared_size)
        return true;
    its_sim_fault_at(x, op, 1, ITS_SIM_FAULT_ASYNC,
                     "reads a matrix at shared address 0x%x, outside of the CTA's %u bytes of shared memory",
                     (unsigned)address, (unsigned)x->grid->shared_size);
    return false;
}

/* All pieces of rows (or columns) `first` to `first + count - 1`. */
static bool check_matrix(its_sim_exec *x, const its_sim_op *op, uint64_t descriptor, bool mn_major, uint32_t first,
                         uint32_t count) {
    its_sim_matrix m = its_sim_matrix_of(descriptor);
    for (uint32_t row = first; !mn_major && row < first + count; row++)
        for (uint32_t piece = 0; piece < 2; piece++)
            if (!is_inside(x, op, its_sim_k_major(&m, row, piece))) return false;
    for (uint32_t q = first / 8; mn_major && q < (first + count) / 8; q++)
        for (uint32_t k = 0; k < 16; k++)
            if (!is_inside(x, op, its_sim_mn_major(&m, q, k))) return false;
    return true;
}

/* -- operations ---------------------------------------------------------------------------------------------------- */

static its_sim_verdict start(its_sim_exec *x, const its_sim_op *op, uint32_t group) {
    (void)group;
    const u32 *list = x->program->lists.items + op->list;
    its_sim_product product = {.op = op, .base = x->frag->base};
    its_sim_products *all = products_of(x);
    uint32_t in_group = x->warp->index % 4, flags = list[ITS_WGMMA_FLAGS];
    if (x->warp->index - in_group + 4 > x->grid->n_warps)
        return its_sim_fault_at(x, op, ITS_FULL, ITS_SIM_FAULT_SYNC, "%s",
                                "a warpgroup is four warps that follow each other, and there are fewer");
    if (!all || !grow(x->grid->ctx, all)) return its_sim_fault_at(x, op, ITS_FULL, ITS_SIM_FAULT_NOMEM, "%s", "");
    if (!take_descriptor(x, op, op->b, &product.b) ||
        !check_matrix(x, op, product.b, flags & ITS_WGMMA_B_MN_MAJOR, 0, list[ITS_WGMMA_N]))
        return ITS_SIM_STOP;
    if (!(flags & ITS_WGMMA_A_IN_REGS) &&
        (!take_descriptor(x, op, op->a, &product.a) ||
         !check_matrix(x, op, product.a, flags & ITS_WGMMA_A_MN_MAJOR, 16 * in_group, 16)))
        return ITS_SIM_STOP;
    uint32_t accumulates = its_sim_pred(x->regs, op->c) ^ (op->imm ? ITS_FULL : 0);
    if (accumulates && accumulates != ITS_FULL) {
        wrong(x, op, "gives a predicate for accumulating that differs between the threads of its warp");
        return ITS_SIM_STOP;
    }
    product.accumulates = accumulates;
    product.group = all->committed;
    for (uint32_t i = 0; flags & ITS_WGMMA_A_IN_REGS && i < 4; i++)
        memcpy(product.rows[i], x->regs + list[ITS_WGMMA_REGS + list[ITS_WGMMA_N_D] + i], sizeof(product.rows[i]));
    all->items[all->count++] = product;
    x->frag->wrote = true;
    return ITS_SIM_NEXT;
}

its_sim_verdict its_sim_act_WGMMA(its_sim_exec *x, const its_sim_op *op, uint32_t mask) {
    return its_sim_collect_warp(x, op, mask, start);
}
