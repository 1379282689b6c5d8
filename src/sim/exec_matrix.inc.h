/*
 * mma: D = A B + C of one warp. Fragments are unpacked into plain matrices (matrix.h says why that is a copy),
 * multiplied row by row with eight columns at a time, and packed again. Products of half-precision elements are exact
 * in single precision; sums are rounded to nearest after each step. A GPU sums a few products at once and truncates, so
 * results agree to the accumulator's precision, not to the bit; integers and f64 agree exactly.
 */

typedef struct mma_job {
    const u32 *list;
    char *regs;
    u32 m, k;
} mma_job;

static inline const void *mma_reg(const mma_job *job, u32 index) {
    return ITS_ALIGNED64(job->regs + job->list[ITS_MMA_REGS + index]);
}

static inline float mma_e4m3(u8 bits) {
    u32 magnitude = bits & 0x7fu;
    float value = magnitude == 0x7f ? f32_bits(0x7fffffffu)
                  : magnitude < 8   ? (float)magnitude * 0x1p-9f
                                    : f32_bits((magnitude << 20) + (120u << 23));
    return bits & 0x80 ? -value : value;
}

#if defined(__F16C__) && defined(__AVX2__)
static inline void mma_eight_f16(const u16 *from, float *to) {
    _mm256_storeu_ps(to, _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(const void *)from)));
}
#else
static inline void mma_eight_f16(const u16 *from, float *to) {
    for (u32 i = 0; i < 8; i++) to[i] = f32_f16(from[i]);
}
#endif

/* One row of a tile of eight: `columns` elements as floats. */
static inline void mma_unpack_f32(u32 kind, const void *tile, u32 row, u32 columns, float *out) {
    switch (kind) {
    case ITS_ELEMENT_F16:
        mma_eight_f16((const u16 *)tile + row * 8, out);
        break;
    case ITS_ELEMENT_BF16:
        for (u32 i = 0; i < 8; i++) out[i] = f32_bits((u32)((const u16 *)tile)[row * 8 + i] << 16);
        break;
    case ITS_ELEMENT_TF32:
        for (u32 i = 0; i < 4; i++) out[i] = f32_bits(((const u32 *)tile)[row * 4 + i] & 0xffffe000u);
        break;
    case ITS_ELEMENT_E4M3:
        for (u32 i = 0; i < columns; i++) out[i] = mma_e4m3(((const u8 *)tile)[row * columns + i]);
        break;
    default: /* E5M2 is the upper half of an f16 */
        for (u32 i = 0; i < columns; i++) out[i] = f32_f16((u16)(((const u8 *)tile)[row * columns + i] << 8));
        break;
    }
}

static void mma_unpack_s32(u32 kind, const void *tile, u32 row, u32 columns, s32 *out) {
    const u8 *bytes = tile;
    for (u32 i = 0; i < columns; i++) {
        u32 at = row * columns + i;
        u32 nibble = ((u32)bytes[at / 2] >> (4 * (at % 2))) & 15u;
        out[i] = kind == ITS_ELEMENT_S8   ? (s8)bytes[at]
                 : kind == ITS_ELEMENT_U8 ? bytes[at]
                 : kind == ITS_ELEMENT_S4 ? (s32)(nibble ^ 8u) - 8
                                          : (s32)nibble;
    }
}

static inline u32 mma_columns(u32 kind) {
    return kind == ITS_ELEMENT_F16 || kind == ITS_ELEMENT_BF16   ? 8
           : kind == ITS_ELEMENT_TF32 || kind == ITS_ELEMENT_F64 ? 4
           : kind == ITS_ELEMENT_S4 || kind == ITS_ELEMENT_U4    ? 32
                                                                 : 16;
}

/* A as rows, B as rows of its transpose turned around, so that eight columns of a row of D are one vector. */
#define ITS_MMA_LOAD(T, unpack)                                                                        \
    _Alignas(32) T a[16][ITS_MMA_MOST_K], b[ITS_MMA_MOST_K][8], line[32];                              \
    const u32 *const list = job->list;                                                                 \
    const u32 wide_a = mma_columns(list[ITS_MMA_A_TYPE]), wide_b = mma_columns(list[ITS_MMA_B_TYPE]);  \
    const u32 blocks = job->m / 8, first_a = list[ITS_MMA_N_D], first_b = first_a + list[ITS_MMA_N_A]; \
    for (u32 j = 0; j < list[ITS_MMA_N_A]; j++)                                                        \
        for (u32 r = 0; r < 8; r++)                                                                    \
            unpack(list[ITS_MMA_A_TYPE], mma_reg(job, first_a + j), r, wide_a,                         \
                   &a[8 * (j % blocks) + r][wide_a * (j / blocks)]);                                   \
    for (u32 j = 0; j < list[ITS_MMA_N_B]; j++)                                                        \
        for (u32 r = 0; r < 8; r++) {                                                                  \
            unpack(list[ITS_MMA_B_TYPE], mma_reg(job, first_b + j), r, wide_b, line);                  \
            for (u32 i = 0; i < wide_b; i++) b[wide_b * j + i][r] = line[i];                           \
        }

/* Element (row, column) of C or D, of 32 or 64 bits: two registers per block of eight rows. */
#define ITS_MMA_CELL(T, first, row, column) \
    ((T *)(void *)(job->regs +              \
                   list[ITS_MMA_REGS + (first) + 2 * ((row) / 8) + (column) % 2]))[(row) % 8 * 4 + (column) / 2]
typedef float mma_row __attribute__((vector_size(32))); /* eight columns of a row of D */

/* A block of eight rows of C or D: `words` are its two registers of f32, or one of pairs of f16. */
static inline void mma_rows_load(const char *even, const char *odd, mma_row *rows) {
    for (u32 r = 0; r < 8; r++)
        for (u32 j = 0; j < 4; j++) {
            rows[r][2 * j] = ((const f32 *)(const void *)even)[4 * r + j];
            rows[r][2 * j + 1] = ((const f32 *)(const void *)odd)[4 * r + j];
        }
}

static inline void mma_rows_store(char *even, char *odd, const mma_row *rows) {
    for (u32 r = 0; r < 8; r++)
        for (u32 j = 0; j < 4; j++) {
            float low = rows[r][2 * j], high = rows[r][2 * j + 1];
            ((f32 *)(void *)even)[4 * r + j] = low != low ? f32_bits(0x7fffffffu) : low;
            ((f32 *)(void *)odd)[4 * r + j] = high != high ? f32_bits(0x7fffffffu) : high;
        }
}

static void mma_f32(const mma_job *job) {
    ITS_MMA_LOAD(float, mma_unpack_f32)
    const u32 first_c = first_b + list[ITS_MMA_N_B];
    const bool half_c = list[ITS_MMA_C_TYPE] == ITS_ELEMENT_F16, half_d = list[ITS_MMA_D_TYPE] == ITS_ELEMENT_F16;
    mma_row out[2][8];
    for (u32 block = 0; block < blocks; block++) {
        mma_row rows[8];
        const u32 *c = list + ITS_MMA_REGS + first_c + (half_c ? block : 2 * block);
        if (half_c)
            for (u32 i = 0; i < 64; i++)
                rows[i / 8][i % 8] = f32_f16(((const u16 *)(const void *)(job->regs + c[0]))[i]);
        else
            mma_rows_load(job->regs + c[0], job->regs + c[1], rows);
        for (u32 k = 0; k < job->k; k++) {
            mma_row columns;
            memcpy(&columns, b[k], sizeof(columns));
#pragma GCC unroll 8
            for (u32 r = 0; r < 8; r++) rows[r] += a[8 * block + r][k] * columns;
        }
        memcpy(out[block], rows, sizeof(rows));
    }
    for (u32 block = 0; block < blocks; block++) {
        const u32 *d = list + ITS_MMA_REGS + (half_d ? block : 2 * block);
        if (!half_d) {
            mma_rows_store(job->regs + d[0], job->regs + d[1], out[block]);
            continue;
        }
        for (u32 i = 0; i < 64; i++) {
            float value = out[block][i / 8][i % 8];
            ((u16 *)(void *)(job->regs + d[0]))[i] = f16_f32(value != value ? f32_bits(0x7fffffffu) : value);
        }
    }
}

static void mma_s32(const mma_job *job) {
    ITS_MMA_LOAD(s32, mma_unpack_s32)
    const u32 first_c = first_b + list[ITS_MMA_N_B];
    s64 out[16][8];
    for (u32 row = 0; row < job->m; row++) {
        s32 sum[8] = {0}; /* at most 64 products of 16 bits */
        for (u32 k = 0; k < job->k; k++)
            for (u32 n = 0; n < 8; n++) sum[n] += a[row][k] * b[k][n];
        for (u32 n = 0; n < 8; n++) out[row][n] = (s64)sum[n] + ITS_MMA_CELL(s32, first_c, row, n);
    }
    for (u32 row = 0; row < job->m; row++)
        for (u32 n = 0; n < 8; n++) {
            s64 value = out[row][n];
            if (list[ITS_MMA_SATURATE]) value = value > INT32_MAX ? INT32_MAX : value < INT32_MIN ? INT32_MIN : value;
            ITS_MMA_CELL(u32, 0, row, n) = (u32)(u64)value;
        }
}

static void mma_b1(const mma_job *job) {
    const u32 *const list = job->list;
    const u32 blocks = job->m / 8, first_a = list[ITS_MMA_N_D], first_b = first_a + list[ITS_MMA_N_A];
    const u32 first_c = first_b + list[ITS_MMA_N_B];
    const bool either = list[ITS_MMA_A_TYPE] == ITS_ELEMENT_B1_XOR;
    u32 out[16][8];
    for (u32 row = 0; row < job->m; row++)
        for (u32 n = 0; n < 8; n++) {
            u32 sum = ITS_MMA_CELL(u32, first_c, row, n);
            for (u32 j = 0; j < list[ITS_MMA_N_B]; j++) {
                const u32 *a = (const u32 *)mma_reg(job, first_a + j * blocks + row / 8) + row % 8 * 4;
                const u32 *b = (const u32 *)mma_reg(job, first_b + j) + n * 4;
                for (u32 i = 0; i < 4; i++) sum += (u32)__builtin_popcount(either ? a[i] ^ b[i] : a[i] & b[i]);
            }
            out[row][n] = sum;
        }
    for (u32 row = 0; row < job->m; row++)
        for (u32 n = 0; n < 8; n++) ITS_MMA_CELL(u32, 0, row, n) = out[row][n];
}

static void mma_unpack_f64(u32 kind, const void *tile, u32 row, u32 columns, double *out) {
    (void)kind;
    for (u32 i = 0; i < columns; i++) out[i] = ((const f64 *)tile)[row * columns + i];
}

static void mma_f64(const mma_job *job) {
    ITS_MMA_LOAD(double, mma_unpack_f64)
    const u32 first_c = first_b + list[ITS_MMA_N_B];
    double out[16][8];
    for (u32 row = 0; row < job->m; row++)
        for (u32 n = 0; n < 8; n++) {
            double sum = ITS_MMA_CELL(f64, first_c, row, n);
            for (u32 k = 0; k < job->k; k++) sum = __builtin_fma(a[row][k], b[k][n], sum);
            out[row][n] = sum;
        }
    for (u32 row = 0; row < job->m; row++)
        for (u32 n = 0; n < 8; n++) ITS_MMA_CELL(f64, 0, row, n) = out[row][n];
}

static its_sim_verdict mma_group(its_sim_exec *x, const its_sim_op *op, uint32_t group) {
    (void)group;
    const u32 *list = x->program->lists.items + op->list;
    mma_job job = {list, x->regs, list[ITS_MMA_M], list[ITS_MMA_K]};
    if (list[ITS_MMA_A_TYPE] >= ITS_ELEMENT_B1)
        mma_b1(&job);
    else if (list[ITS_MMA_C_TYPE] == ITS_ELEMENT_S32)
        mma_s32(&job);
    else if (list[ITS_MMA_C_TYPE] == ITS_ELEMENT_F64)
        mma_f64(&job);
    else
        mma_f32(&job);
    return ITS_SIM_NEXT;
}

static its_sim_verdict act_MMA(its_sim_exec *x, const its_sim_op *op, uint32_t mask) {
    return its_sim_collect_warp(x, op, mask, mma_group);
}
