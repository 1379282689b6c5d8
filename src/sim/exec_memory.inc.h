/*
 * Loads and stores. An access of a warp is checked as a whole where it can be: lowest and highest address against one
 * allocation, all alignments in one go. Only what fails that is looked at lane by lane (access.c), which also finds the
 * fault. Lanes that take no part get the address of one that does, so that loads need no mask until the result is
 * merged.
 */

typedef struct span {
    uint64_t low, high, bits; /* lowest and highest address, and all their bits */
} span;

/* Addresses of all lanes into access->address; inactive lanes copy the first active one. Requires mask != 0. */
static inline span addresses(const its_sim_exec *x, const its_sim_op *op, uint32_t mask, its_sim_access *access) {
    u64 *const address = access->address;
    const u64 add = (u64)op->imm;
    if (op->flags & ITS_SIM_ADDRESS32) {
        const u32 *const a = ITS_ALIGNED64(x->regs + op->a);
        ITS_EACH_LANE address[i] = (u32)(a[i] + (u32)add);
    } else {
        const u64 *const a = ITS_ALIGNED64(x->regs + op->a);
        ITS_EACH_LANE address[i] = a[i] + add;
    }
    if (mask != ITS_FULL) {
        const u64 first = address[__builtin_ctz(mask)];
        ITS_EACH_LANE address[i] = (mask >> i) & 1 ? address[i] : first;
    }
    u64 low = address[0], high = address[0], bits = 0;
    for (unsigned i = 0; i < ITS_LANES; i++) {
        low = address[i] < low ? address[i] : low;
        high = address[i] > high ? address[i] : high;
        bits |= address[i];
    }
    return (span){low, high, bits};
}

/* True if the lanes access one block of memory in their order; `*first` is where it begins. */
static inline bool coalesced(const its_sim_exec *x, const its_sim_op *op, uint32_t bytes, uint64_t *first) {
    if (op->flags & ITS_SIM_ADDRESS32) {
        const u32 *const a = ITS_ALIGNED64(x->regs + op->a);
        const u32 begin = a[0], step = bytes;
        u32 differs = 0;
        for (u32 i = 0; i < ITS_LANES; i++) differs |= a[i] ^ (begin + i * step);
        *first = (u32)(begin + (u32)op->imm);
        return differs == 0;
    }
    const u64 *const a = ITS_ALIGNED64(x->regs + op->a);
    const u64 begin = a[0], step = bytes;
    u64 differs = 0;
    for (u64 i = 0; i < ITS_LANES; i++) differs |= a[i] ^ (begin + i * step);
    *first = begin + (u64)op->imm;
    return differs == 0;
}

static inline bool in_known_range(const its_sim_exec *x, const span *s, uint64_t bytes, bool writes) {
    const uint64_t generation = its_sim_memory_generation(x->memory);
    for (unsigned k = 0; k < ITS_SIM_RANGES; k++) {
        const its_sim_range *range = &x->warp->ranges[k];
        if (s->low >= range->base && s->high < range->end && range->end - s->high >= bytes)
            return range->generation == generation && !(writes && range->read_only);
    }
    return false;
}

/* Turns addresses into pointers by adding the same number to all. */
static inline void to_pointers(its_sim_access *access, uint64_t add) {
    const u64 *const address = access->address;
    u64 *const pointer = (u64 *)(void *)access->pointer;
    ITS_EACH_LANE pointer[i] = address[i] + add;
}

static inline bool in_window(const span *s, uint64_t begin, uint64_t size, uint64_t bytes) {
    return size >= bytes && s->low >= begin && s->low <= s->high && s->high - begin <= size - bytes;
}

/* The memory behind a coalesced access of all lanes, or NULL if it isn't one that can be vouched for here. */
static inline char *block_of(const its_sim_exec *x, const its_sim_op *op, uint32_t mask, uint32_t bytes, bool writes) {
    uint64_t first;
    if (mask != ITS_FULL || op->flags & ITS_SIM_STRONG || !coalesced(x, op, bytes, &first)) return NULL;
    span s = {first, first + (uint64_t)(ITS_LANES - 1) * bytes, first};
    if (first & (bytes - 1) || s.high < s.low) return NULL;
    if (op->space == ITS_SPACE_SHARED)
        return in_window(&s, ITS_SIM_SHARED_BEGIN, x->grid->shared_size, bytes)
                   ? x->cta->shared + (first - ITS_SIM_SHARED_BEGIN)
                   : NULL;
    if (op->space != ITS_SPACE_GLOBAL && (op->space != ITS_SPACE_NONE || s.high >> ITS_SIM_WINDOW_SHIFT)) return NULL;
    return in_known_range(x, &s, bytes, writes) ? (char *)(uintptr_t)first : NULL;
}

/* Fills access->pointer for all lanes; false if a fault was recorded. */
static inline bool locate(its_sim_exec *x, const its_sim_op *op, uint32_t mask, uint32_t bytes, bool writes,
                          its_sim_access *access) {
    span s = addresses(x, op, mask, access);
    if ((s.bits & (bytes - 1)) == 0) {
        if (op->space == ITS_SPACE_GLOBAL || (op->space == ITS_SPACE_NONE && s.high >> ITS_SIM_WINDOW_SHIFT == 0)) {
            if (in_known_range(x, &s, bytes, writes)) {
                to_pointers(access, 0);
                return true;
            }
        } else if (op->space == ITS_SPACE_SHARED) {
            if (in_window(&s, ITS_SIM_SHARED_BEGIN, x->grid->shared_size, bytes)) {
                to_pointers(access, (uint64_t)(uintptr_t)x->cta->shared - ITS_SIM_SHARED_BEGIN);
                return true;
            }
        }
    }
    if (!its_sim_access_check(x, op, mask, bytes, writes, access)) return false;
    char *first = access->pointer[__builtin_ctz(mask)];
    for (unsigned i = 0; i < ITS_LANES; i++)
        if (!((mask >> i) & 1)) access->pointer[i] = first;
    return true;
}

/* -- loads --------------------------------------------------------------------------------------------------------- */

/* Keeps the compiler from making a gather of a loop: they are slower than loads on many CPUs. */
static inline const void *scalar(const char *pointer) {
    __asm__("" : "+r"(pointer));
    return pointer;
}

/* Loads an element of type M at `at` bytes from each pointer into a register of type R. */
#define ITS_LOAD(M, R)                                                                                   \
    do {                                                                                                 \
        R *const d = ITS_ALIGNED64(dst);                                                                 \
        if (strong)                                                                                      \
            for (unsigned i = 0; i < ITS_LANES; i++)                                                     \
                d[i] = (R)__atomic_load_n((const M *)(const void *)(pointer[i] + at), __ATOMIC_RELAXED); \
        else                                                                                             \
            ITS_EACH_LANE d[i] = (R) * (const M *)(const void *)(pointer[i] + at);                       \
    } while (0)
#define ITS_LOAD_CASE(size, reg, U, S, R, SR) \
    case (size)*16 + (reg):                   \
        if (is_signed)                        \
            ITS_LOAD(S, SR);                  \
        else                                  \
            ITS_LOAD(U, R);                   \
        break

static void load_element(const its_sim_op *op, char *const *pointer, unsigned at, char *dst) {
    const bool strong = op->flags & ITS_SIM_STRONG, is_signed = op->flags & ITS_SIM_SIGNED;
    switch (op->size * 16 + op->reg_size) {
        ITS_LOAD_CASE(1, 2, u8, s8, u16, s16);
        ITS_LOAD_CASE(1, 4, u8, s8, u32, s32);
        ITS_LOAD_CASE(1, 8, u8, s8, u64, s64);
        ITS_LOAD_CASE(2, 2, u16, s16, u16, s16);
        ITS_LOAD_CASE(2, 4, u16, s16, u32, s32);
        ITS_LOAD_CASE(2, 8, u16, s16, u64, s64);
        ITS_LOAD_CASE(4, 4, u32, s32, u32, s32);
        ITS_LOAD_CASE(4, 8, u32, s32, u64, s64);
        ITS_LOAD_CASE(8, 8, u64, s64, u64, s64);
    default:
        for (unsigned i = 0; i < ITS_LANES; i++) memcpy(dst + i * 16, pointer[i] + at, 16);
    }
}

/* Between a block and a register of its elements; constant sizes let the compiler use its widest registers. */
static inline void copy_block(char *to, const char *from, unsigned size) {
    if (size == 4)
        memcpy(to, from, 4 * ITS_LANES);
    else if (size == 8)
        memcpy(to, from, 8 * ITS_LANES);
    else if (size == 2)
        memcpy(to, from, 2 * ITS_LANES);
    else
        memcpy(to, from, (size_t)size * ITS_LANES);
}

#ifdef __SSE2__
/* Four rows of four words, each at an address of its own, become four times four neighbouring lanes. */
static inline void transpose4(const char *const *row, char *const *to) {
    __m128 a = _mm_loadu_ps((const float *)(const void *)row[0]), b = _mm_loadu_ps((const float *)(const void *)row[1]);
    __m128 c = _mm_loadu_ps((const float *)(const void *)row[2]), d = _mm_loadu_ps((const float *)(const void *)row[3]);
    _MM_TRANSPOSE4_PS(a, b, c, d);
    _mm_storeu_ps((float *)(void *)to[0], a);
    _mm_storeu_ps((float *)(void *)to[1], b);
    _mm_storeu_ps((float *)(void *)to[2], c);
    _mm_storeu_ps((float *)(void *)to[3], d);
}
#endif

/* What an element of a vector operation is loaded into, or stored from. */
static inline uint32_t element_register(const its_sim_exec *x, const its_sim_op *op, unsigned k, uint32_t only) {
    return op->vec == 1 ? only : x->program->lists.items[op->list + k];
}

static void load_into(its_sim_exec *x, const its_sim_op *op, char *const *pointer, unsigned k, uint32_t mask) {
    uint32_t dst = element_register(x, op, k, op->dst);
    if (dst == UINT32_MAX) return;
    if (mask == ITS_FULL) {
        load_element(op, pointer, k * op->size, x->regs + dst);
    } else {
        load_element(op, pointer, k * op->size, x->scratch);
        its_lanes_merge(x->regs + dst, x->scratch, mask, op->reg_size);
    }
}

/* Whether all four words of a .v4 go to registers, by all lanes: then they are turned around four lanes at a time. */
static inline bool is_four_words(const its_sim_exec *x, const its_sim_op *op, uint32_t mask) {
    if (op->vec != 4 || op->size != 4 || op->reg_size != 4 || mask != ITS_FULL || op->flags & ITS_SIM_STRONG)
        return false;
    const uint32_t *list = x->program->lists.items + op->list;
    return list[0] != UINT32_MAX && list[1] != UINT32_MAX && list[2] != UINT32_MAX && list[3] != UINT32_MAX;
}

#ifdef __SSE2__
static void load_four_words(its_sim_exec *x, const its_sim_op *op, char *const *pointer) {
    const uint32_t *list = x->program->lists.items + op->list;
    for (unsigned i = 0; i < ITS_LANES; i += 4) {
        const char *const row[4] = {pointer[i], pointer[i + 1], pointer[i + 2], pointer[i + 3]};
        char *const to[4] = {x->regs + list[0] + 4 * i, x->regs + list[1] + 4 * i, x->regs + list[2] + 4 * i,
                             x->regs + list[3] + 4 * i};
        transpose4(row, to);
    }
}

static void store_four_words(its_sim_exec *x, const its_sim_op *op, char *const *pointer) {
    const uint32_t *list = x->program->lists.items + op->list;
    for (unsigned i = 0; i < ITS_LANES; i += 4) {
        const char *const row[4] = {x->regs + list[0] + 4 * i, x->regs + list[1] + 4 * i, x->regs + list[2] + 4 * i,
                                    x->regs + list[3] + 4 * i};
        char *const to[4] = {pointer[i], pointer[i + 1], pointer[i + 2], pointer[i + 3]};
        transpose4(row, to);
    }
}
#endif

/* Where each lane's part of a block is. */
static inline void pointers_into(char **pointer, char *block, uint32_t bytes) {
    for (unsigned i = 0; i < ITS_LANES; i++) pointer[i] = block + (size_t)i * bytes;
}

static its_sim_verdict load(its_sim_exec *x, const its_sim_op *op, uint32_t mask) {
    const uint32_t bytes = (uint32_t)op->size * op->vec;
    its_sim_access access;
    char *block = block_of(x, op, mask, bytes, false);
    if (x->frag->spin.looks) its_sim_spin_note(x, op, mask);
    if (block && op->vec == 1 && op->size == op->reg_size) {
        if (op->dst != UINT32_MAX) copy_block(x->regs + op->dst, block, op->size);
        return ITS_SIM_NEXT;
    }
    if (block)
        pointers_into(access.pointer, block, bytes);
    else if (!locate(x, op, mask, bytes, false, &access))
        return ITS_SIM_STOP;
#ifdef __SSE2__
    if (is_four_words(x, op, mask)) {
        load_four_words(x, op, access.pointer);
        return ITS_SIM_NEXT;
    }
#endif
    for (unsigned k = 0; k < op->vec; k++) load_into(x, op, access.pointer, k, mask);
    if (op->flags & ITS_SIM_ACQUIRE) __atomic_thread_fence(__ATOMIC_ACQUIRE);
    return ITS_SIM_NEXT;
}

static its_sim_verdict act_LOAD(its_sim_exec *x, const its_sim_op *op, uint32_t mask) {
    if (!x->warp->race || op->space == ITS_SPACE_LOCAL) return load(x, op, mask);
    const uint32_t bytes = (uint32_t)op->size * op->vec;
    const bool strong = op->flags & ITS_SIM_STRONG;
    its_sim_access access;
    if (!locate(x, op, mask, bytes, false, &access)) return ITS_SIM_STOP;
    if (!its_sim_race_before(x, op, mask, access.pointer, bytes, false, strong)) return ITS_SIM_STOP;
    its_sim_verdict verdict = load(x, op, mask);
    if (strong) its_sim_race_acquire(x, op, mask, access.pointer);
    return verdict;
}

/* Of a kernel's parameters, at an offset that was checked when it was decoded: the same for all lanes. */
static its_sim_verdict act_LOAD_PARAM(its_sim_exec *x, const its_sim_op *op, uint32_t mask) {
    char *pointer[ITS_LANES];
    for (unsigned i = 0; i < ITS_LANES; i++) pointer[i] = x->grid->params + op->imm;
    for (unsigned k = 0; k < op->vec; k++) load_into(x, op, pointer, k, mask);
    return ITS_SIM_NEXT;
}

/* -- stores -------------------------------------------------------------------------------------------------------- */

#define ITS_STORE(M, R)                                          \
    do {                                                         \
        const R *const s = ITS_ALIGNED64(src);                   \
        for (uint32_t left = mask; left; left &= left - 1) {     \
            unsigned i = (unsigned)__builtin_ctz(left);          \
            M *to = (M *)(void *)(pointer[i] + at);              \
            if (strong)                                          \
                __atomic_store_n(to, (M)s[i], __ATOMIC_RELAXED); \
            else                                                 \
                *to = (M)s[i];                                   \
        }                                                        \
    } while (0)
#define ITS_STORE_CASE(size, reg, M, R) \
    case (size)*16 + (reg):             \
        ITS_STORE(M, R);                \
        break

static void store_element(const its_sim_op *op, char *const *pointer, unsigned at, const char *src, uint32_t mask) {
    const bool strong = op->flags & ITS_SIM_STRONG;
    switch (op->size * 16 + op->reg_size) {
        ITS_STORE_CASE(1, 2, u8, u16);
        ITS_STORE_CASE(1, 4, u8, u32);
        ITS_STORE_CASE(1, 8, u8, u64);
        ITS_STORE_CASE(2, 2, u16, u16);
        ITS_STORE_CASE(2, 4, u16, u32);
        ITS_STORE_CASE(2, 8, u16, u64);
        ITS_STORE_CASE(4, 4, u32, u32);
        ITS_STORE_CASE(4, 8, u32, u64);
        ITS_STORE_CASE(8, 8, u64, u64);
    default:
        for (uint32_t left = mask; left; left &= left - 1) {
            unsigned i = (unsigned)__builtin_ctz(left);
            memcpy(pointer[i] + at, src + i * 16, 16);
        }
    }
}

static uint64_t fingerprint(char *const *pointer, uint32_t mask, uint32_t bytes) {
    uint64_t hash = 0;
    for (uint32_t left = mask; left; left &= left - 1)
        for (uint32_t i = 0; i < bytes; i++)
            hash = (hash ^ (u8)pointer[__builtin_ctz(left)][i]) * 0x9e3779b97f4a7c15ull;
    return hash;
}

/* Whether an access went to the stacks of the warp's threads. */
static bool is_local(const its_sim_exec *x, uint32_t mask, char *const *pointer) {
    const uintptr_t begin = (uintptr_t)x->warp->local, size = (uintptr_t)x->grid->local_size * ITS_LANES;
    for (uint32_t left = mask; left; left &= left - 1)
        if ((uintptr_t)pointer[__builtin_ctz(left)] - begin >= size) return false;
    return true;
}

/*
 * What a thread hands to its CTA in each round of a loop changes nothing if it is what was there before. A thread's
 * stack is part of its state, as its registers are.
 */
static its_sim_verdict store_and_compare(its_sim_exec *x, const its_sim_op *op, uint32_t mask) {
    const uint32_t bytes = (uint32_t)op->size * op->vec;
    its_sim_access access;
    if (!locate(x, op, mask, bytes, true, &access)) return ITS_SIM_STOP;
    if (op->flags & ITS_SIM_RELEASE) __atomic_thread_fence(__ATOMIC_RELEASE);
    uint64_t before = fingerprint(access.pointer, mask, bytes);
    for (unsigned k = 0; k < op->vec; k++)
        store_element(op, access.pointer, k * op->size, x->regs + element_register(x, op, k, op->b), mask);
    if (before != fingerprint(access.pointer, mask, bytes) && !is_local(x, mask, access.pointer)) x->frag->wrote = true;
    return ITS_SIM_NEXT;
}

static its_sim_verdict store(its_sim_exec *x, const its_sim_op *op, uint32_t mask) {
    if (x->frag->spin.looks) return store_and_compare(x, op, mask);
    const uint32_t bytes = (uint32_t)op->size * op->vec;
    its_sim_access access;
    char *block = block_of(x, op, mask, bytes, true);
    x->frag->wrote |= op->space != ITS_SPACE_LOCAL;
    if (block && op->vec == 1 && op->size == op->reg_size) {
        copy_block(block, x->regs + op->b, op->size);
        return ITS_SIM_NEXT;
    }
    if (block)
        pointers_into(access.pointer, block, bytes);
    else if (!locate(x, op, mask, bytes, true, &access))
        return ITS_SIM_STOP;
    if (op->flags & ITS_SIM_RELEASE) __atomic_thread_fence(__ATOMIC_RELEASE);
#ifdef __SSE2__
    if (is_four_words(x, op, mask)) {
        store_four_words(x, op, access.pointer);
        return ITS_SIM_NEXT;
    }
#endif
    for (unsigned k = 0; k < op->vec; k++)
        store_element(op, access.pointer, k * op->size, x->regs + element_register(x, op, k, op->b), mask);
    return ITS_SIM_NEXT;
}

static its_sim_verdict act_STORE(its_sim_exec *x, const its_sim_op *op, uint32_t mask) {
    if (!x->warp->race || op->space == ITS_SPACE_LOCAL) return store(x, op, mask);
    const uint32_t bytes = (uint32_t)op->size * op->vec;
    const bool strong = op->flags & ITS_SIM_STRONG;
    its_sim_access access;
    if (!locate(x, op, mask, bytes, true, &access)) return ITS_SIM_STOP;
    if (!its_sim_race_before(x, op, mask, access.pointer, bytes, true, strong)) return ITS_SIM_STOP;
    if (strong) its_sim_race_release(x, op, mask, access.pointer);
    its_sim_verdict verdict = store(x, op, mask);
    return verdict == ITS_SIM_NEXT ? its_sim_race_after(x, op) : verdict;
}
