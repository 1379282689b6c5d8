/*
 * Computing the matrix products of a warpgroup that a warp has begun (wgmma.h), its 16 rows of them: A is unpacked
 * once, B eight columns at a time, and multiplied as for mma (exec_matrix.inc.h).
 */

enum { WGMMA_MOST_K = 32 };

typedef struct wgmma_job {
    const u32 *list;
    char *regs;
    const char *shared; /* where shared address 0 would be */
    its_sim_matrix a, b;
    const u32 (*rows)[ITS_LANES]; /* of A, if they are in registers */
    u32 flags, row;               /* the first row of A that is this warp's */
    bool accumulates;
} wgmma_job;

static inline char *wgmma_reg(const wgmma_job *job, u32 index) {
    return job->regs + job->list[ITS_WGMMA_REGS + index];
}

/* A and eight columns of B as numbers; each piece is unpacked by `unpack` of a tile of one row. */
#define ITS_WGMMA_UNPACK(T, name, unpack)                                                                             \
    static void wgmma_a_##name(const wgmma_job *job, T(*a)[WGMMA_MOST_K]) {                                           \
        const u32 kind = job->list[ITS_WGMMA_A_TYPE], wide = mma_columns(kind);                                       \
        for (u32 j = 0; job->flags & ITS_WGMMA_A_IN_REGS && j < 4; j++)                                               \
            for (u32 r = 0; r < 8; r++) unpack(kind, job->rows[j], r, wide, &a[8 * (j % 2) + r][wide * (j / 2)]);     \
        for (u32 r = 0; !(job->flags & (ITS_WGMMA_A_IN_REGS | ITS_WGMMA_A_MN_MAJOR)) && r < 16; r++)                  \
            for (u32 c = 0; c < 2; c++)                                                                               \
                unpack(kind, job->shared + its_sim_k_major(&job->a, job->row + r, c), 0, wide, &a[r][wide * c]);      \
        for (u32 k = 0; job->flags & ITS_WGMMA_A_MN_MAJOR && k < 16; k++)                                             \
            for (u32 q = 0; q < 2; q++) {                                                                             \
                T line[8] = {0};                                                                                      \
                unpack(kind, job->shared + its_sim_mn_major(&job->a, job->row / 8 + q, k), 0, 8, line);               \
                for (u32 i = 0; i < 8; i++) a[8 * q + i][k] = line[i];                                                \
            }                                                                                                         \
        for (u32 r = 0; job->flags & ITS_WGMMA_NEGATE && r < 16; r++)                                                 \
            for (u32 k = 0; k < 2 * wide; k++) a[r][k] = -a[r][k];                                                    \
    }                                                                                                                 \
    static void wgmma_b_##name(const wgmma_job *job, u32 block, T(*b)[8]) {                                           \
        const u32 kind = job->list[ITS_WGMMA_B_TYPE], wide = mma_columns(kind);                                       \
        if (job->flags & ITS_WGMMA_B_MN_MAJOR) {                                                                      \
            for (u32 k = 0; k < 16; k++) unpack(kind, job->shared + its_sim_mn_major(&job->b, block, k), 0, 8, b[k]); \
            return;                                                                                                   \
        }                                                                                                             \
        for (u32 n = 0; n < 8; n++)                                                                                   \
            for (u32 c = 0; c < 2; c++) {                                                                             \
                T line[16] = {0};                                                                                     \
                unpack(kind, job->shared + its_sim_k_major(&job->b, 8 * block + n, c), 0, wide, line);                \
                for (u32 i = 0; i < wide; i++) b[wide * c + i][n] = line[i];                                          \
            }                                                                                                         \
    }
ITS_WGMMA_UNPACK(float, f32, mma_unpack_f32)
ITS_WGMMA_UNPACK(s32, s32, mma_unpack_s32)
#undef ITS_WGMMA_UNPACK

/* Rows 8 i to 8 i + 7 of eight columns of D. */
static void wgmma_load(const wgmma_job *job, u32 block, u32 i, mma_row *rows) {
    if (!job->accumulates) {
        memset(rows, 0, 8 * sizeof(*rows));
    } else if (job->list[ITS_WGMMA_D_TYPE] == ITS_ELEMENT_F32) {
        mma_rows_load(wgmma_reg(job, 4 * block + 2 * i), wgmma_reg(job, 4 * block + 2 * i + 1), rows);
    } else {
        const u16 *half = (const u16 *)(const void *)wgmma_reg(job, 2 * block + i);
        for (u32 at = 0; at < 64; at++) rows[at / 8][at % 8] = f32_f16(half[at]);
    }
}

static void wgmma_store(const wgmma_job *job, u32 block, u32 i, const mma_row *rows) {
    if (job->list[ITS_WGMMA_D_TYPE] == ITS_ELEMENT_F32) {
        mma_rows_store(wgmma_reg(job, 4 * block + 2 * i), wgmma_reg(job, 4 * block + 2 * i + 1), rows);
        return;
    }
    u16 *half = (u16 *)(void *)wgmma_reg(job, 2 * block + i);
    for (u32 at = 0; at < 64; at++) {
        float value = rows[at / 8][at % 8];
        half[at] = f16_f32(value != value ? f32_bits(0x7fffffffu) : value);
    }
}

static void wgmma_f32(const wgmma_job *job) {
    _Alignas(32) float a[16][WGMMA_MOST_K], b[WGMMA_MOST_K][8];
    const u32 depth = 2 * mma_columns(job->list[ITS_WGMMA_A_TYPE]);
    wgmma_a_f32(job, a);
    for (u32 block = 0; block < job->list[ITS_WGMMA_N] / 8; block++) {
        wgmma_b_f32(job, block, b);
        for (u32 i = 0; i < 2; i++) {
            mma_row rows[8];
            wgmma_load(job, block, i, rows);
            for (u32 k = 0; k < depth; k++) {
                mma_row columns;
                memcpy(&columns, b[k], sizeof(columns));
#pragma GCC unroll 8
                for (u32 r = 0; r < 8; r++) rows[r] += a[8 * i + r][k] * columns;
            }
            wgmma_store(job, block, i, rows);
        }
    }
}

static void wgmma_s32(const wgmma_job *job) {
    s32 a[16][WGMMA_MOST_K], b[WGMMA_MOST_K][8];
    wgmma_a_s32(job, a);
    for (u32 block = 0; block < job->list[ITS_WGMMA_N] / 8; block++) {
        wgmma_b_s32(job, block, b);
        for (u32 row = 0; row < 16; row++)
            for (u32 n = 0; n < 8; n++) {
                s32 *d = (s32 *)(void *)wgmma_reg(job, 4 * block + 2 * (row / 8) + n % 2);
                s64 sum = job->accumulates ? d[row % 8 * 4 + n / 2] : 0;
                for (u32 k = 0; k < WGMMA_MOST_K; k++) sum += a[row][k] * b[k][n];
                if (job->flags & ITS_WGMMA_SATURATE)
                    sum = sum > INT32_MAX ? INT32_MAX : sum < INT32_MIN ? INT32_MIN : sum;
                d[row % 8 * 4 + n / 2] = (s32)(u32)(u64)sum;
            }
    }
}

static void wgmma_run(its_sim_exec *x, const its_sim_product *product) {
    const u32 *list = x->program->lists.items + product->op->list;
    wgmma_job job = {.list = list,
                     .regs = x->warp->regs + product->base,
                     .shared = x->cta->shared - ITS_SIM_SHARED_BEGIN,
                     .a = its_sim_matrix_of(product->a),
                     .b = its_sim_matrix_of(product->b),
                     .rows = product->rows,
                     .flags = list[ITS_WGMMA_FLAGS],
                     .row = x->warp->index % 4 * 16,
                     .accumulates = product->accumulates};
    if (list[ITS_WGMMA_D_TYPE] == ITS_ELEMENT_S32)
        wgmma_s32(&job);
    else
        wgmma_f32(&job);
}

static bool wgmma_writes(const its_sim_exec *x, const its_sim_product *product, const u32 *regs, u32 count) {
    const u32 *list = x->program->lists.items + product->op->list;
    if (product->base != x->frag->base) return false;
    for (u32 i = 0; i < list[ITS_WGMMA_N_D]; i++)
        for (u32 j = 0; j < count; j++)
            if (list[ITS_WGMMA_REGS + i] == regs[j]) return true;
    return false;
}

/* Stands before an instruction that uses registers which some product writes. */
static its_sim_verdict act_WGMMA_TOUCH(its_sim_exec *x, const its_sim_op *op, uint32_t mask) {
    its_sim_products *all = x->warp->products;
    const u32 *list = x->program->lists.items + op->list;
    bool in_flight = false;
    for (u32 i = 0; all && i < all->count; i++) in_flight |= wgmma_writes(x, &all->items[i], list + 1, list[0]);
    if (!in_flight) return ITS_SIM_NEXT;
    if (op->mode == ITS_WGMMA_USES)
        return its_sim_fault_at(x, op, mask, ITS_SIM_FAULT_ASYNC, "%s",
                                "uses a register that a matrix product still writes: wait for its group first");
    for (u32 i = 0; i < all->count; i++) wgmma_run(x, &all->items[i]);
    all->count = 0;
    x->frag->wrote = true;
    return ITS_SIM_NEXT;
}

/* Computes what belongs to all but the last `left` groups. */
static its_sim_verdict wgmma_group(its_sim_exec *x, const its_sim_op *op, uint32_t group) {
    (void)group;
    its_sim_products *all = x->warp->products;
    if (!all) return ITS_SIM_NEXT;
    if (op->mode == ITS_WGMMA_COMMIT) {
        all->committed++;
        return ITS_SIM_NEXT;
    }
    u32 done = 0;
    while (done < all->count && (s64)all->items[done].group + op->imm < (s64)all->committed)
        wgmma_run(x, &all->items[done++]);
    all->count -= done;
    if (done) memmove(all->items, all->items + done, all->count * sizeof(*all->items));
    if (done) x->frag->wrote = true;
    return ITS_SIM_NEXT;
}

static its_sim_verdict act_WGMMA_GROUP(its_sim_exec *x, const its_sim_op *op, uint32_t mask) {
    return its_sim_collect_warp(x, op, mask, wgmma_group);
}
