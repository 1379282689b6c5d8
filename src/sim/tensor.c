/*
 * Tensor copies (TMA): boxes of an array in global memory, from and to shared memory, by a tensor map.
 *
 * A box is copied row by row along its innermost dimension. In shared memory its rows follow each other without gaps;
 * with a swizzle the 16-byte pieces of a row change places, by the bits of their address, as wgmma reads them.
 *
 *     global   . . . . . . . . . .        shared   | row 0 | row 1 | row 2 | ...
 *              . . [ row 0 ] . . .
 *              . . [ row 1 ] . . .        what is outside of the tensor is filled with zeros, and not written
 */
#include "sim/async.h"

#define MOST_ROW (256u * 8u) /* bytes */

/* -- rows ---------------------------------------------------------------------------------------------------------- */

typedef struct row {
    uint64_t global;      /* of its first element inside of the tensor */
    uint32_t first, size; /* bytes of it that are inside */
    uint32_t shared;      /* address, before the swizzle */
} row;

typedef struct walk {
    const its_sim_box *box;
    uint32_t element, bytes; /* of a row */
    uint32_t count[ITS_TENSOR_RANK], index[ITS_TENSOR_RANK];
    uint32_t shared;
} walk;

static walk begin(const its_sim_box *box) {
    walk w = {.box = box, .element = its_sim_tensor_element(&box->map), .shared = box->shared};
    for (uint32_t i = 0; i < ITS_TENSOR_RANK; i++) w.count[i] = its_sim_tensor_count(&box->map, i);
    w.bytes = w.count[0] * w.element;
    return w;
}

static uint64_t clamp(int64_t value, uint32_t most) {
    return value < 0 ? 0 : value > most ? most : (uint64_t)value;
}

/* Where the row that the walk is at lies; of size 0 if none of it is inside. */
static row place(const walk *w) {
    const its_sim_tensor_map *map = &w->box->map;
    row r = {.global = map->address, .shared = w->shared};
    for (uint32_t i = 1; i < map->rank; i++) {
        int64_t at = (int64_t)w->box->at[i] + (int64_t)w->index[i] * map->steps[i];
        if (at < 0 || at >= (int64_t)map->dims[i]) return r;
        r.global += (uint64_t)at * map->strides[i - 1];
    }
    int64_t begin = w->box->at[0], end = begin + w->count[0];
    uint64_t first = clamp(begin, map->dims[0]), last = clamp(end, map->dims[0]);
    if (first >= last) return r;
    r.global += first * w->element;
    r.first = (uint32_t)((int64_t)first - begin) * w->element;
    r.size = (uint32_t)(last - first) * w->element;
    return r;
}

/* To the next row; false behind the last. */
static bool step(walk *w) {
    w->shared += w->bytes;
    for (uint32_t i = 1; i < ITS_TENSOR_RANK; i++) {
        if (++w->index[i] < w->count[i]) return true;
        w->index[i] = 0;
    }
    return false;
}

static char *piece(const its_sim_box *box, uint32_t address) {
    return box->cta->shared + (its_sim_swizzle(address, box->map.swizzle) - ITS_SIM_SHARED_BEGIN);
}

/* -- copying ------------------------------------------------------------------------------------------------------- */

/* What is outside of the tensor: zeros, or NaNs if the map says so and there are any. */
static void fill(const its_sim_tensor_map *map, char *to, uint32_t bytes) {
    static const uint16_t half = 0x7fff;
    static const uint32_t single = 0x7fffffff;
    static const uint64_t wide = 0x7fffffffffffffff;
    const void *nan = NULL;
    if (map->type == ITS_TENSOR_F16 || map->type == ITS_TENSOR_BF16) nan = &half;
    if (map->type == ITS_TENSOR_F32) nan = &single;
    if (map->type == ITS_TENSOR_F64) nan = &wide;
    memset(to, 0, bytes);
    uint32_t element = its_sim_tensor_element(map);
    for (uint32_t at = 0; map->fill && nan && at < bytes; at += element) memcpy(to + at, nan, element);
}

bool its_sim_box_finish(its_sim_exec *x, const its_sim_op *op, uint32_t lane, const its_sim_box *box) {
    walk w = begin(box);
    char line[MOST_ROW];
    do {
        row r = place(&w);
        if (r.size && !its_sim_access_global(x, op, lane, r.global, r.size, false)) return false;
        if (r.size < w.bytes) fill(&box->map, line, w.bytes);
        if (r.size) memcpy(line + r.first, (const char *)(uintptr_t)r.global, r.size);
        for (uint32_t at = 0; at < w.bytes; at += 16) memcpy(piece(box, r.shared + at), line + at, 16);
    } while (step(&w));
    return true;
}

static its_type type_of(const its_sim_tensor_map *map) {
    static const uint8_t types[] = {
        [ITS_TENSOR_U8] = ITS_TYPE_NONE,  [ITS_TENSOR_U16] = ITS_TYPE_NONE, [ITS_TENSOR_U32] = ITS_TYPE_U32,
        [ITS_TENSOR_S32] = ITS_TYPE_S32,  [ITS_TENSOR_U64] = ITS_TYPE_U64,  [ITS_TENSOR_S64] = ITS_TYPE_S64,
        [ITS_TENSOR_F16] = ITS_TYPE_F16,  [ITS_TENSOR_F32] = ITS_TYPE_F32,  [ITS_TENSOR_F64] = ITS_TYPE_F64,
        [ITS_TENSOR_BF16] = ITS_TYPE_BF16};
    return (its_type)types[map->type];
}

bool its_sim_box_put(its_sim_exec *x, const its_sim_op *op, uint32_t lane, const its_sim_box *box, bool check) {
    walk w = begin(box);
    char line[MOST_ROW];
    unsigned mode = op->mode; /* ITS_TENSOR_PLAIN, or an its_sim_atomic */
    do {
        row r = place(&w);
        if (r.size == 0) continue;
        if (check && !its_sim_access_global(x, op, lane, r.global, r.size, true)) return false;
        for (uint32_t at = 0; at < w.bytes; at += 16) memcpy(line + at, piece(box, r.shared + at), 16);
        char *to = (char *)(uintptr_t)r.global;
        if (mode == ITS_TENSOR_PLAIN)
            memcpy(to, line + r.first, r.size);
        else
            for (uint32_t at = 0; at < r.size; at += w.element)
                its_sim_reduce(x, (its_sim_atomic)mode, type_of(&box->map), to + at, line + r.first + at);
    } while (step(&w));
    return true;
}

/* -- checks -------------------------------------------------------------------------------------------------------- */

/* Copies the map at access->pointer to `map`; records a fault if it is none. */
static bool read_map(its_sim_exec *x, const its_sim_op *op, uint32_t lane, const char *from, its_sim_tensor_map *map) {
    memcpy(map, from, sizeof(*map));
    const char *wrong = its_sim_tensor_wrong(map);
    if (!wrong) return true;
    its_sim_fault_at(x, op, 1u << lane, ITS_SIM_FAULT_ASYNC, "uses a tensor map that %s", wrong);
    return false;
}

/* A tensor map is aligned to 64 bytes; fills access->pointer. */
static bool find_map(its_sim_exec *x, const its_sim_op *op, uint32_t mask, bool writes, its_sim_access *access) {
    its_sim_access_addresses(x, op, access);
    for (uint32_t lane = 0; lane < ITS_LANES; lane++) access->address[lane] += 64;
    if (!its_sim_access_check(x, op, mask, 64, writes, access)) return false;
    for (uint32_t lane = 0; lane < ITS_LANES; lane++) access->address[lane] -= 64;
    return its_sim_access_check(x, op, mask, 64, writes, access);
}

static bool check_shared(its_sim_exec *x, const its_sim_op *op, uint32_t lane, const its_sim_box *box) {
    uint64_t end = (uint64_t)box->shared + its_sim_tensor_bytes(&box->map);
    if (box->map.swizzle) end = (end + 127) & ~(uint64_t)127; /* pieces move within their 128 bytes */
    if (box->shared % 128) {
        its_sim_fault_at(x, op, 1u << lane, ITS_SIM_FAULT_ASYNC,
                         "copies a tensor with shared address 0x%x, which is no multiple of 128", box->shared);
        return false;
    }
    if (box->shared >= ITS_SIM_SHARED_BEGIN && end <= (uint64_t)ITS_SIM_SHARED_BEGIN + x->grid->shared_size)
        return true;
    its_sim_fault_at(
        x, op, 1u << lane, ITS_SIM_FAULT_ASYNC,
        "copies a box of %u bytes with shared address 0x%x, outside of the CTA's %u bytes of shared memory",
        its_sim_tensor_bytes(&box->map), box->shared, x->grid->shared_size);
    return false;
}

static bool check_rows(its_sim_exec *x, const its_sim_op *op, uint32_t lane, const its_sim_box *box, bool writes) {
    walk w = begin(box);
    do {
        row r = place(&w);
        if (r.size && !its_sim_access_global(x, op, lane, r.global, r.size, writes)) return false;
    } while (step(&w));
    return true;
}

/* The box that a lane copies. op->list: a register for each coordinate. */
static bool take_box(its_sim_exec *x, const its_sim_op *op, uint32_t lane, uint64_t shared, its_sim_box *box) {
    const uint32_t *list = x->program->lists.items + op->list;
    uint32_t rank = (uint32_t)(shared & UINT32_MAX) >> ITS_SIM_RANK_SHIFT;
    *box = (its_sim_box){.cta = rank && rank <= x->grid->cluster_size ? &x->cta->cluster[rank - 1] : x->cta,
                         .shared = (uint32_t)(shared & (((uint64_t)1 << ITS_SIM_RANK_SHIFT) - 1))};
    if (!read_map(x, op, lane, x->warp->copies->from[lane], &box->map)) return false;
    if (box->map.rank != op->vec) {
        its_sim_fault_at(x, op, 1u << lane, ITS_SIM_FAULT_ASYNC, "gives %u coordinates for a tensor map of rank %u",
                         (unsigned)op->vec, (unsigned)box->map.rank);
        return false;
    }
    for (uint32_t i = 0; i < op->vec; i++) box->at[i] = ((const s32 *)(const void *)(x->regs + list[i]))[lane];
    return check_shared(x, op, lane, box);
}

/* -- operations ---------------------------------------------------------------------------------------------------- */

/* Notes the tensor map that the next operation of these lanes uses. */
its_sim_verdict its_sim_act_TENSOR_MAP(its_sim_exec *x, const its_sim_op *op, uint32_t mask) {
    its_sim_copies *copies = its_sim_copies_of(x);
    its_sim_access access;
    if (!copies) return its_sim_async_no_memory(x, op, mask);
    if (!find_map(x, op, mask, false, &access)) return ITS_SIM_STOP;
    for (uint32_t left = mask; left; left &= left - 1) {
        uint32_t lane = (uint32_t)__builtin_ctz(left);
        its_sim_tensor_map map;
        if (!read_map(x, op, lane, access.pointer[lane], &map)) return ITS_SIM_STOP;
        copies->from[lane] = access.pointer[lane];
    }
    return ITS_SIM_NEXT;
}

uint32_t its_sim_cluster_targets(its_sim_exec *x, const its_sim_op *op, uint32_t lane, const its_sim_cta *cta) {
    uint32_t ctas = op->c ? ((const u16 *)(const void *)(x->regs + op->c))[lane] : 1u << cta->rank;
    if (ctas && ctas >> x->grid->cluster_size == 0) return ctas;
    its_sim_fault_at(x, op, 1u << lane, ITS_SIM_FAULT_ASYNC, "copies to the CTAs 0x%x of a cluster that has %u",
                     (unsigned)ctas, (unsigned)x->grid->cluster_size);
    return 0;
}

/* Notes a copy in the CTA that it goes to; false if memory ran out. */
static bool note(its_sim_exec *x, its_sim_box *box, its_sim_cta *cta) {
    its_sim_mbarriers *all = its_sim_mbarriers_of(x, cta);
    its_sim_box *boxes =
        all ? its_sim_async_grow(x->grid->ctx, all->boxes, all->n_boxes, &all->box_capacity, sizeof(*boxes)) : NULL;
    if (!boxes) return false;
    all->boxes = boxes;
    box->cta = cta;
    boxes[all->n_boxes++] = *box;
    return true;
}

its_sim_verdict its_sim_act_TENSOR_LOAD(its_sim_exec *x, const its_sim_op *op, uint32_t mask) {
    its_sim_access access;
    its_sim_access_addresses(x, op, &access);
    x->frag->wrote = true;
    for (uint32_t left = mask; left; left &= left - 1) {
        uint32_t lane = (uint32_t)__builtin_ctz(left);
        its_sim_box box;
        if (!take_box(x, op, lane, access.address[lane], &box)) return ITS_SIM_STOP;
        if (!check_rows(x, op, lane, &box, false)) return ITS_SIM_STOP;
        uint32_t ctas = its_sim_cluster_targets(x, op, lane, box.cta);
        if (!ctas) return ITS_SIM_STOP;
        box.barrier = x->warp->copies->barrier[lane];
        for (; ctas; ctas &= ctas - 1)
            if (!note(x, &box, &x->cta->cluster[__builtin_ctz(ctas)])) return its_sim_async_no_memory(x, op, mask);
    }
    return ITS_SIM_NEXT;
}

its_sim_verdict its_sim_act_TENSOR_STORE(its_sim_exec *x, const its_sim_op *op, uint32_t mask) {
    its_sim_access access;
    its_sim_access_addresses(x, op, &access);
    x->frag->wrote = true;
    for (uint32_t left = mask; left; left &= left - 1) {
        uint32_t lane = (uint32_t)__builtin_ctz(left);
        its_sim_box box;
        if (!take_box(x, op, lane, access.address[lane], &box)) return ITS_SIM_STOP;
        if (op->mode != ITS_TENSOR_PLAIN && type_of(&box.map) == ITS_TYPE_NONE)
            return its_sim_fault_at(x, op, 1u << lane, ITS_SIM_FAULT_ASYNC, "%s",
                                    "reduces a tensor whose elements have less than 32 bits and are no floats");
        if (!check_rows(x, op, lane, &box, true)) return ITS_SIM_STOP;
        if (!its_sim_store_box(x, op, lane, &box)) return its_sim_async_no_memory(x, op, mask);
    }
    return ITS_SIM_NEXT;
}

/* -- tensormap.replace --------------------------------------------------------------------------------------------- */

/* Types have other numbers here than on the host, from f32.ftz on. */
static uint8_t host_type(uint64_t type) {
    static const uint8_t types[] = {0, 1, 2, 3, 4, 5, 6, 7, ITS_TENSOR_F32_FTZ, ITS_TENSOR_F64, ITS_TENSOR_BF16};
    return type < sizeof(types) ? types[type] : ITS_TENSOR_TYPES;
}

static uint8_t small(uint64_t value) {
    return value > UINT8_MAX ? UINT8_MAX : (uint8_t)value;
}

static void replace(its_sim_tensor_map *map, const its_sim_op *op, uint64_t value) {
    map->mark = ITS_TENSOR_MAP_MARK;
    switch (op->mode) {
    case ITS_TENSOR_ADDRESS:
        map->address = value;
        break;
    case ITS_TENSOR_SET_RANK: /* one less is given */
        map->rank = value < ITS_TENSOR_RANK ? (uint8_t)(value + 1) : UINT8_MAX;
        break;
    case ITS_TENSOR_BOX:
        map->box[op->vec] = (uint32_t)value;
        break;
    case ITS_TENSOR_DIM:
        map->dims[op->vec] = (uint32_t)value;
        break;
    case ITS_TENSOR_STRIDE:
        map->strides[op->vec] = value;
        break;
    case ITS_TENSOR_STEP:
        map->steps[op->vec] = small(value);
        break;
    case ITS_TENSOR_TYPE:
        map->type = host_type(value);
        break;
    case ITS_TENSOR_INTERLEAVE:
        map->interleave = small(value);
        break;
    case ITS_TENSOR_SWIZZLE:
        map->swizzle = small(value);
        break;
    case ITS_TENSOR_ATOMICITY:
        map->atomicity = small(value);
        break;
    default:
        map->fill = small(value);
        break;
    }
}

its_sim_verdict its_sim_act_TENSOR_REPLACE(its_sim_exec *x, const its_sim_op *op, uint32_t mask) {
    its_sim_access access;
    if (!find_map(x, op, mask, true, &access)) return ITS_SIM_STOP;
    x->frag->wrote = true;
    for (uint32_t left = mask; left; left &= left - 1) {
        uint32_t lane = (uint32_t)__builtin_ctz(left);
        const char *reg = x->regs + op->b;
        uint64_t value =
            op->size == 8 ? ((const u64 *)(const void *)reg)[lane] : ((const u32 *)(const void *)reg)[lane];
        its_sim_tensor_map map;
        memcpy(&map, access.pointer[lane], sizeof(map));
        replace(&map, op, value);
        memcpy(access.pointer[lane], &map, sizeof(map));
    }
    return ITS_SIM_NEXT;
}
