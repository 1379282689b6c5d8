/*
 * Atomic operations: one after the other in the order of the lanes, each a compare-and-swap of the CPU, since other PEs
 * are processes that share the memory.
 */
#include "sim/modes.h"

#include "sim/alu_float.h"
#include "sim/alu_int.h"
#include "sim/race_exec.h"

typedef unsigned __int128 wide;

static uint32_t add_f32(uint32_t a, uint32_t b, bool flush) {
    float x = f32_bits(a), y = f32_bits(b);
    if (!flush) return bits_f32(canon_f32(x + y));
    return bits_f32(ftz_f32(flush_f32(x) + flush_f32(y)));
}

/* A NaN is handed on as it is, a signalling one too. */
static uint64_t add_f64(uint64_t a, uint64_t b) {
    double x = f64_bits(a), y = f64_bits(b), r = x + y;
    if (r == r) return bits_f64(r);
    return y != y ? b : x != x ? a : ITS_NAN_F64;
}

static uint32_t each_half(uint32_t a, uint32_t b, uint16_t (*f)(uint16_t, uint16_t)) {
    return ITS_X2(f(lo16(a), lo16(b)), f(hi16(a), hi16(b)));
}

static uint64_t add(its_type type, uint64_t a, uint64_t b, bool flush) {
    switch (type) {
    case ITS_TYPE_F32:
        return add_f32((uint32_t)a, (uint32_t)b, flush);
    case ITS_TYPE_F64:
        return add_f64(a, b);
    case ITS_TYPE_F16:
        return f16_add((uint16_t)a, (uint16_t)b);
    case ITS_TYPE_BF16:
        return bf16_add((uint16_t)a, (uint16_t)b);
    case ITS_TYPE_F16X2:
        return each_half((uint32_t)a, (uint32_t)b, f16_add);
    case ITS_TYPE_BF16X2:
        return each_half((uint32_t)a, (uint32_t)b, bf16_add);
    default:
        return a + b;
    }
}

static bool less(its_type type, uint64_t a, uint64_t b) {
    switch (type) {
    case ITS_TYPE_S32:
        return (int32_t)a < (int32_t)b;
    case ITS_TYPE_S64:
        return (int64_t)a < (int64_t)b;
    default:
        return a < b;
    }
}

static uint16_t f16_min(uint16_t a, uint16_t b) {
    return f16_min_max(a, b, 0);
}
static uint16_t f16_max(uint16_t a, uint16_t b) {
    return f16_min_max(a, b, ITS_MAX_OF);
}
static uint16_t bf16_min(uint16_t a, uint16_t b) {
    return bf16_min_max(a, b, 0);
}
static uint16_t bf16_max(uint16_t a, uint16_t b) {
    return bf16_min_max(a, b, ITS_MAX_OF);
}

static uint64_t min_max(its_type type, uint64_t a, uint64_t b, bool max) {
    switch (type) {
    case ITS_TYPE_F16:
        return (max ? f16_max : f16_min)((uint16_t)a, (uint16_t)b);
    case ITS_TYPE_BF16:
        return (max ? bf16_max : bf16_min)((uint16_t)a, (uint16_t)b);
    case ITS_TYPE_F16X2:
        return each_half((uint32_t)a, (uint32_t)b, max ? f16_max : f16_min);
    case ITS_TYPE_BF16X2:
        return each_half((uint32_t)a, (uint32_t)b, max ? bf16_max : bf16_min);
    default:
        return less(type, a, b) != max ? a : b;
    }
}

static uint64_t result_of(const its_sim_op *op, uint64_t old, uint64_t b, uint64_t c, bool flush) {
    its_type type = (its_type)op->type;
    switch ((its_sim_atomic)op->mode) {
    case ITS_ATOM_ADD:
        return add(type, old, b, flush);
    case ITS_ATOM_MIN:
        return min_max(type, old, b, false);
    case ITS_ATOM_MAX:
        return min_max(type, old, b, true);
    case ITS_ATOM_AND:
        return old & b;
    case ITS_ATOM_OR:
        return old | b;
    case ITS_ATOM_XOR:
        return old ^ b;
    case ITS_ATOM_CAS:
        return old == b ? c : old;
    case ITS_ATOM_INC:
        return old >= b ? 0 : old + 1;
    case ITS_ATOM_DEC:
        return old == 0 || old > b ? b : old - 1;
    default:
        return b;
    }
}

/* What one lane does to memory of type T; the old value. */
#define ITS_DEFINE_ATOM(T)                                                                                 \
    static uint64_t atom_##T(its_sim_exec *x, const its_sim_op *op, char *pointer, uint64_t b, uint64_t c, \
                             bool flush) {                                                                 \
        T *at = (T *)(void *)pointer;                                                                      \
        T old = __atomic_load_n(at, __ATOMIC_SEQ_CST), new;                                                \
        do new = (T)result_of(op, old, b, c, flush);                                                       \
        while (!__atomic_compare_exchange_n(at, &old, new, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST));    \
        if (new != old) x->frag->wrote = true;                                                             \
        return old;                                                                                        \
    }
ITS_DEFINE_ATOM(u16)
ITS_DEFINE_ATOM(u32)
ITS_DEFINE_ATOM(u64)
#undef ITS_DEFINE_ATOM

static uint64_t source(const its_sim_exec *x, uint32_t offset, uint32_t size, uint32_t lane) {
    const char *reg = x->regs + offset;
    if (size == 2) return ((const u16 *)(const void *)reg)[lane];
    if (size == 4) return ((const u32 *)(const void *)reg)[lane];
    return ((const u64 *)(const void *)reg)[lane];
}

static void set_old(its_sim_exec *x, uint32_t dst, uint32_t size, uint32_t lane, uint64_t old) {
    char *reg = x->regs + dst;
    if (size == 2)
        ((u16 *)(void *)reg)[lane] = (uint16_t)old;
    else if (size == 4)
        ((u32 *)(void *)reg)[lane] = (uint32_t)old;
    else
        ((u64 *)(void *)reg)[lane] = old;
}

/* One lane; of a vector each element by itself, in their order. */
static void atom_lane(its_sim_exec *x, const its_sim_op *op, uint32_t lane, char *pointer, bool global) {
    const uint32_t *list = x->program->lists.items + op->list;
    bool flush = global && op->type == ITS_TYPE_F32;
    uint64_t c = source(x, op->c, op->size, lane);
    for (uint32_t k = 0; k < op->vec; k++, pointer += op->size) {
        uint64_t b = source(x, list[op->vec + k], op->size, lane);
        uint64_t old = op->size == 2   ? atom_u16(x, op, pointer, b, c, flush)
                       : op->size == 4 ? atom_u32(x, op, pointer, b, c, flush)
                                       : atom_u64(x, op, pointer, b, c, flush);
        if (list[k] != UINT32_MAX) set_old(x, list[k], op->size, lane, old);
    }
}

static void atom_wide(its_sim_exec *x, const its_sim_op *op, uint32_t lane, char *pointer) {
    wide b, c, old, *at = (wide *)(void *)pointer;
    memcpy(&b, x->regs + op->b + lane * 16, sizeof(b));
    memcpy(&c, x->regs + op->c + lane * 16, sizeof(c));
    if (op->mode == ITS_ATOM_CAS) {
        old = __sync_val_compare_and_swap(at, b, c);
    } else {
        wide seen = __sync_val_compare_and_swap(at, 0, 0);
        do old = seen;
        while ((seen = __sync_val_compare_and_swap(at, old, b)) != old);
    }
    if (op->mode == ITS_ATOM_CAS ? old == b && b != c : old != b) x->frag->wrote = true;
    if (op->dst != UINT32_MAX) memcpy(x->regs + op->dst + lane * 16, &old, sizeof(old));
}

its_sim_verdict its_sim_act_ATOM(its_sim_exec *x, const its_sim_op *op, uint32_t mask) {
    its_sim_access access;
    its_sim_access_addresses(x, op, &access);
    if (!its_sim_access_check(x, op, mask, (uint32_t)op->size * op->vec, true, &access)) return ITS_SIM_STOP;
    if (x->frag->spin.looks) its_sim_spin_note(x, op, mask);
    if (x->warp->race) {
        if (!its_sim_race_before(x, op, mask, access.pointer, (uint32_t)op->size * op->vec, true, true))
            return ITS_SIM_STOP;
        its_sim_race_release(x, op, mask, access.pointer);
    }
    for (uint32_t left = mask; left; left &= left - 1) {
        uint32_t lane = (uint32_t)__builtin_ctz(left);
        char *pointer = access.pointer[lane];
        if (op->size == 16)
            atom_wide(x, op, lane, pointer);
        else
            atom_lane(x, op, lane, pointer, (uint64_t)(uintptr_t)pointer == access.address[lane]);
    }
    if (!x->warp->race) return ITS_SIM_NEXT;
    its_sim_race_acquire(x, op, mask, access.pointer);
    return its_sim_race_after(x, op);
}

void its_sim_reduce(its_sim_exec *x, its_sim_atomic mode, its_type type, char *pointer, const char *value) {
    its_sim_op op = {.mode = (uint16_t)mode, .type = (uint8_t)type};
    uint32_t size = its_type_size(type);
    uint64_t b = 0;
    memcpy(&b, value, size);
    if (size == 2)
        atom_u16(x, &op, pointer, b, 0, false);
    else if (size == 4)
        atom_u32(x, &op, pointer, b, 0, type == ITS_TYPE_F32);
    else
        atom_u64(x, &op, pointer, b, 0, false);
}
