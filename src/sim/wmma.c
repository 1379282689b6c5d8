/* Loading, storing and multiplying the matrices of wmma: see wmma.h. */
#include "sim/wmma.h"

#include <math.h>

#include "sim/alu_float.h"
#include "sim/exec.h"
#include "sim/matrix.h"

enum { MOST = 512 }; /* elements of a matrix */

/* -- moving -------------------------------------------------------------------------------------------------------- */

/* The place of element `index` of registers that hold elements of `bytes`; each register has 32 lanes of 4, or of 8. */
static char *element(const its_sim_exec *x, const u32 *regs, u32 index, u32 bytes) {
    u32 per_reg = ITS_LANES * (bytes == 8 ? 8u : 4u) / bytes;
    return x->regs + regs[index / per_reg] + (size_t)(index % per_reg) * bytes;
}

typedef struct area {
    u32 lines, width, bytes; /* rows, or columns if they lie side by side in memory; elements of each */
    u64 stride;              /* bytes from one to the next */
    u32 piece;               /* bytes that are checked at a time */
    char *pieces[MOST];
} area;

/* Checks a matrix in memory piece by piece and notes where each is. */
static bool locate(its_sim_exec *x, const its_sim_op *op, area *a) {
    its_sim_access access;
    its_sim_access_addresses(x, op, &access);
    u64 begin = access.address[0];
    a->piece = a->width * a->bytes < 16 ? a->width * a->bytes : 16;
    u32 per_line = a->width * a->bytes / a->piece, pieces = a->lines * per_line;
    for (u32 first = 0; first < pieces; first += ITS_LANES) {
        u32 count = pieces - first < ITS_LANES ? pieces - first : ITS_LANES;
        for (u32 i = 0; i < count; i++)
            access.address[i] = begin + (first + i) / per_line * a->stride + (u64)((first + i) % per_line) * a->piece;
        u32 mask = count == ITS_LANES ? ITS_FULL : (1u << count) - 1;
        if (!its_sim_access_check(x, op, mask, a->piece, op->mode & ITS_WMMA_STORES, &access)) return false;
        memcpy(&a->pieces[first], access.pointer, count * sizeof(char *));
    }
    return true;
}

static its_sim_verdict move(its_sim_exec *x, const its_sim_op *op, uint32_t group) {
    (void)group;
    const u32 *list = x->program->lists.items + op->list, *regs = list + ITS_WMMA_REGS;
    bool columns = op->mode & ITS_WMMA_BY_COLUMNS, stores = op->mode & ITS_WMMA_STORES;
    u32 bytes = list[ITS_WMMA_BYTES], total = list[ITS_WMMA_ROWS] * list[ITS_WMMA_COLUMNS];
    u32 slots = list[ITS_WMMA_N_REGS] * ITS_LANES * (bytes == 8 ? 8u : 4u) / bytes;
    area a = {.lines = list[columns ? ITS_WMMA_COLUMNS : ITS_WMMA_ROWS],
              .width = list[columns ? ITS_WMMA_ROWS : ITS_WMMA_COLUMNS],
              .bytes = bytes,
              .stride = (u64)((const u32 *)(const void *)(x->regs + op->b))[0] * bytes};
    if (!locate(x, op, &a)) return ITS_SIM_STOP;
    for (u32 slot = 0; slot < (stores ? total : slots); slot++) {
        u32 row = slot % total / list[ITS_WMMA_COLUMNS], column = slot % total % list[ITS_WMMA_COLUMNS];
        u32 at = ((columns ? column : row) * a.width + (columns ? row : column)) * bytes;
        char *memory = a.pieces[at / a.piece] + at % a.piece, *reg = element(x, regs, slot, bytes);
        memcpy(stores ? memory : reg, stores ? reg : memory, bytes);
    }
    if (stores) x->frag->wrote = true;
    return ITS_SIM_NEXT;
}

its_sim_verdict its_sim_act_WMMA_MOVE(its_sim_exec *x, const its_sim_op *op, uint32_t mask) {
    return its_sim_collect_warp(x, op, mask, move);
}

/* -- multiplying --------------------------------------------------------------------------------------------------- */

static u32 bytes_of(u32 type) {
    switch (type) {
    case ITS_ELEMENT_F16:
    case ITS_ELEMENT_BF16:
        return 2;
    case ITS_ELEMENT_S8:
    case ITS_ELEMENT_U8:
        return 1;
    case ITS_ELEMENT_F64:
        return 8;
    default:
        return 4;
    }
}

static double number(u32 type, const char *from) {
    u16 half;
    u32 word;
    double real;
    memcpy(&half, from, type == ITS_ELEMENT_S8 || type == ITS_ELEMENT_U8 ? 1 : 2);
    switch (type) {
    case ITS_ELEMENT_F16:
        return f32_f16(half);
    case ITS_ELEMENT_BF16:
        return f32_bits((u32)half << 16);
    case ITS_ELEMENT_S8:
        return *(const s8 *)from;
    case ITS_ELEMENT_U8:
        return *(const u8 *)from;
    case ITS_ELEMENT_F64:
        memcpy(&real, from, sizeof(real));
        return real;
    default:
        memcpy(&word, from, sizeof(word));
        return type == ITS_ELEMENT_S32    ? (double)(s32)word
               : type == ITS_ELEMENT_TF32 ? f32_bits(word & 0xffffe000u)
                                          : f32_bits(word);
    }
}

static void put(u32 type, char *to, double value, bool saturates) {
    if (type == ITS_ELEMENT_F64) {
        memcpy(to, &value, sizeof(value));
    } else if (type == ITS_ELEMENT_S32) {
        s64 whole = (s64)value;
        if (saturates) whole = whole > INT32_MAX ? INT32_MAX : whole < INT32_MIN ? INT32_MIN : whole;
        u32 word = (u32)(u64)whole;
        memcpy(to, &word, sizeof(word));
    } else {
        float single = value != value ? f32_bits(0x7fffffffu) : (float)value;
        u16 half = f16_f32(single);
        if (type == ITS_ELEMENT_F16)
            memcpy(to, &half, sizeof(half));
        else
            memcpy(to, &single, sizeof(single));
    }
}

static void read_matrix(const its_sim_exec *x, const u32 *regs, u32 type, u32 count, double *out) {
    for (u32 i = 0; i < count; i++) out[i] = number(type, element(x, regs, i, bytes_of(type)));
}

/* One sum, rounded after each product as its type has it. Whole numbers are exact. */
static double sum_of(u32 type, const double *a, const double *b, u32 stride, u32 k, double c) {
    double sum = c;
    for (u32 i = 0; i < k; i++)
        if (type == ITS_ELEMENT_F64)
            sum = fma(a[i], b[(size_t)i * stride], sum);
        else if (type == ITS_ELEMENT_S32)
            sum += a[i] * b[(size_t)i * stride];
        else
            sum = (float)(sum + a[i] * b[(size_t)i * stride]);
    return sum;
}

static its_sim_verdict multiply(its_sim_exec *x, const its_sim_op *op, uint32_t group) {
    (void)group;
    const u32 *list = x->program->lists.items + op->list, *d = list + ITS_WMMA_PRODUCT_REGS;
    const u32 *a_regs = d + list[ITS_WMMA_N_D], *b_regs = a_regs + list[ITS_WMMA_N_A],
              *c_regs = b_regs + list[ITS_WMMA_N_B];
    const u32 m = list[ITS_WMMA_M], n = list[ITS_WMMA_N], k = list[ITS_WMMA_K], type = list[ITS_WMMA_TYPE_D];
    double a[MOST] = {0}, b[MOST] = {0}, c[MOST] = {0};
    read_matrix(x, a_regs, list[ITS_WMMA_TYPE_A], m * k, a);
    read_matrix(x, b_regs, list[ITS_WMMA_TYPE_B], k * n, b);
    read_matrix(x, c_regs, list[ITS_WMMA_TYPE_C], m * n, c);
    for (u32 i = 0; i < m * n; i++)
        put(type, element(x, d, i, bytes_of(type)), sum_of(type, a + i / n * k, b + i % n, n, k, c[i]),
            list[ITS_WMMA_SATURATES]);
    return ITS_SIM_NEXT;
}

its_sim_verdict its_sim_act_WMMA(its_sim_exec *x, const its_sim_op *op, uint32_t mask) {
    return its_sim_collect_warp(x, op, mask, multiply);
}
