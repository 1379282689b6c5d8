/* Accesses that the fast path can't vouch for: each lane's address is resolved on its own, and faults are found. */
#include "sim/exec.h"

/* What is wrong with one lane's access; ITS_SIM_FAULT_NOMEM stands for nothing. */
#define GOOD ITS_SIM_FAULT_NOMEM

typedef struct request {
    its_sim_exec *x;
    const its_sim_op *op;
    uint64_t bytes;
    bool writes;
    uint8_t window; /* out: the space that the address is in */
    uint64_t limit; /* out: the end of that space, if it has one */
} request;

void its_sim_access_addresses(const its_sim_exec *x, const its_sim_op *op, its_sim_access *access) {
    for (uint32_t i = 0; i < ITS_LANES; i++) {
        if (op->flags & ITS_SIM_ADDRESS32)
            access->address[i] = (uint32_t)(((const u32 *)(const void *)(x->regs + op->a))[i] + (uint32_t)op->imm);
        else
            access->address[i] = ((const u64 *)(const void *)(x->regs + op->a))[i] + (uint64_t)op->imm;
    }
}

static const its_sim_range *find_range(its_sim_warp *warp, const its_sim_memory *memory, uint64_t address) {
    uint64_t generation = its_sim_memory_generation(memory);
    for (uint32_t k = 0; k < ITS_SIM_RANGES; k++) {
        const its_sim_range *range = &warp->ranges[k];
        if (range->generation == generation && address >= range->base && address < range->end) return range;
    }
    its_sim_range *range = &warp->ranges[warp->next_range];
    if (!its_sim_memory_find(memory, address, range)) {
        *range = (its_sim_range){0};
        return NULL;
    }
    warp->next_range = (warp->next_range + 1) % ITS_SIM_RANGES;
    return range;
}

static its_sim_fault_kind check_global(request *r, uint64_t address, char **pointer) {
    const its_sim_range *range = find_range(r->x->warp, r->x->memory, address);
    if (!range || range->end - address < r->bytes) return ITS_SIM_FAULT_ACCESS;
    *pointer = (char *)(uintptr_t)address;
    if (r->writes && range->read_only) return ITS_SIM_FAULT_READ_ONLY;
    return GOOD;
}

/* Of a space that is one block of memory, [begin, begin + size) in its own addresses. */
static its_sim_fault_kind check_block(request *r, uint64_t address, uint64_t begin, uint64_t size, char *block,
                                      char **pointer) {
    r->limit = begin + size;
    if (address < begin || size < r->bytes || address - begin > size - r->bytes) return ITS_SIM_FAULT_ACCESS;
    *pointer = block + (address - begin);
    return GOOD;
}

/* Bytes of local memory that the calls so far have taken. */
static uint64_t stack_top(const its_sim_exec *x, const its_sim_op *op) {
    const its_sim_program *program = x->program;
    const its_sim_where *where = &program->wheres.items[program->op_where[its_sim_op_index(x, op)]];
    return (uint64_t)x->frag->local + program->funcs[where->func].local_size;
}

/* What alloca gave lies at the end of a lane's local memory, everything else at its beginning. */
static its_sim_fault_kind check_local(request *r, uint32_t lane, uint64_t address, char **pointer) {
    const its_sim_warp *warp = r->x->warp;
    uint32_t size = r->x->grid->local_size, taken = warp->taken[lane];
    char *block = size ? warp->local + (size_t)lane * size : NULL;
    if (taken && address >= ITS_SIM_LOCAL_BEGIN + size - taken)
        return check_block(r, address, ITS_SIM_LOCAL_BEGIN, size, block, pointer);
    return check_block(r, address, ITS_SIM_LOCAL_BEGIN, stack_top(r->x, r->op), block, pointer);
}

static its_sim_fault_kind check_shared(request *r, uint64_t address, char **pointer) {
    const its_sim_grid *grid = r->x->grid;
    const its_sim_cta *cta = r->x->cta;
    uint64_t rank = address >> ITS_SIM_RANK_SHIFT;
    if (rank > grid->cluster_size) return ITS_SIM_FAULT_ACCESS;
    if (rank) cta = &cta->cluster[rank - 1];
    address &= ((uint64_t)1 << ITS_SIM_RANK_SHIFT) - 1;
    return check_block(r, address, ITS_SIM_SHARED_BEGIN, grid->shared_size, cta->shared, pointer);
}

its_sim_cta *its_sim_shared_owner(const its_sim_exec *x, const char *pointer, uint32_t *address) {
    for (uint32_t i = 0; i < x->grid->cluster_size; i++) {
        its_sim_cta *cta = &x->cta->cluster[(x->cta->rank + i) % x->grid->cluster_size];
        uintptr_t at = (uintptr_t)pointer, begin = (uintptr_t)cta->shared;
        if (at < begin || at - begin >= x->grid->shared_size) continue;
        *address = (uint32_t)(at - begin) + ITS_SIM_SHARED_BEGIN;
        return cta;
    }
    return NULL;
}

static its_sim_fault_kind check_lane(request *r, uint32_t lane, uint64_t address, char **pointer) {
    its_sim_exec *x = r->x;
    const its_sim_grid *grid = x->grid;
    uint8_t space = r->op->space;
    if (space == ITS_SPACE_NONE) {
        switch (address >> ITS_SIM_WINDOW_SHIFT) {
        case ITS_SIM_WINDOW_SHARED >> ITS_SIM_WINDOW_SHIFT:
            space = ITS_SPACE_SHARED;
            break;
        case ITS_SIM_WINDOW_LOCAL >> ITS_SIM_WINDOW_SHIFT:
            space = ITS_SPACE_LOCAL;
            break;
        case ITS_SIM_WINDOW_PARAM >> ITS_SIM_WINDOW_SHIFT:
            space = ITS_SPACE_PARAM;
            break;
        default:
            space = ITS_SPACE_GLOBAL;
            break;
        }
        if (space != ITS_SPACE_GLOBAL) address &= ((uint64_t)1 << ITS_SIM_WINDOW_SHIFT) - 1;
    }
    r->window = space;
    its_sim_fault_kind kind;
    if (space == ITS_SPACE_SHARED)
        kind = check_shared(r, address, pointer);
    else if (space == ITS_SPACE_LOCAL)
        kind = check_local(r, lane, address, pointer);
    else if (space == ITS_SPACE_PARAM)
        kind = check_block(r, address, ITS_SIM_PARAM_BEGIN, grid->func->entry.param_size, grid->params, pointer);
    else
        kind = check_global(r, address, pointer);
    if (kind == GOOD && space == ITS_SPACE_PARAM && r->writes) kind = ITS_SIM_FAULT_READ_ONLY;
    if (kind != ITS_SIM_FAULT_ACCESS && address & (r->bytes - 1)) kind = ITS_SIM_FAULT_MISALIGNED;
    return kind;
}

/* Records the fault of the first bad lane; the others of the same kind are counted. */
static void record(request *r, uint32_t mask, its_sim_fault_kind kind, const its_sim_access *access, uint8_t window,
                   uint64_t limit) {
    its_sim_exec *x = r->x;
    its_sim_fault_at(x, r->op, mask, kind, "%s", "");
    its_sim_fault *fault = &x->grid->fault;
    fault->access = r->op->handler == ITS_SIM_ACT_ATOM ? ITS_SIM_UPDATES : r->writes ? ITS_SIM_WRITES : ITS_SIM_READS;
    fault->space = r->op->space;
    fault->window = window;
    fault->limit = limit;
    fault->bytes = r->bytes;
    fault->address = access->address[fault->lane];
    if (window == ITS_SPACE_GLOBAL || window == ITS_SPACE_CONST)
        its_sim_memory_explain(x->memory, fault->address, &fault->nearby);
}

bool its_sim_access_check(its_sim_exec *x, const its_sim_op *op, uint32_t mask, uint32_t bytes, bool writes,
                          its_sim_access *access) {
    request r = {.x = x, .op = op, .bytes = bytes, .writes = writes};
    its_sim_fault_kind first = GOOD;
    uint8_t window = 0;
    uint64_t limit = 0;
    uint32_t bad = 0;
    for (uint32_t left = mask; left; left &= left - 1) {
        uint32_t lane = (uint32_t)__builtin_ctz(left);
        r.limit = 0;
        its_sim_fault_kind kind = check_lane(&r, lane, access->address[lane], &access->pointer[lane]);
        if (kind == GOOD) continue;
        if (first == GOOD) {
            first = kind;
            window = r.window;
            limit = r.limit;
        }
        if (kind == first) bad |= 1u << lane;
    }
    if (!bad) return true;
    record(&r, bad, first, access, window, limit);
    return false;
}

bool its_sim_access_global(its_sim_exec *x, const its_sim_op *op, uint32_t lane, uint64_t address, uint64_t bytes,
                           bool writes) {
    request r = {.x = x, .op = op, .bytes = bytes, .writes = writes};
    its_sim_access access;
    its_sim_fault_kind kind = check_global(&r, address, &access.pointer[lane]);
    if (kind == GOOD) return true;
    access.address[lane] = address;
    record(&r, 1u << lane, kind, &access, ITS_SPACE_GLOBAL, 0);
    x->grid->fault.space = ITS_SPACE_GLOBAL;
    return false;
}
