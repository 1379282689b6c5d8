/*
 * Every call of the NVSHMEM device API, used once at least: one kernel per type and kind of call, launched by
 * tests/sim/test_nvshmem.c with one block of 64 threads on every PE. A kernel that finds something wrong leaves the number
 * of the step in *errors.
 */
#include <intarsia/nvshmem.h>

struct alignas(2) __half {
    unsigned short bits;
};
struct alignas(2) __nv_bfloat16 {
    unsigned short bits;
};

enum { THREADS = 64 };

/* -- help ---------------------------------------------------------------------------------------------------------- */

template <class T> __device__ T make(int value) { return (T)value; }
template <> __device__ __half make<__half>(int value) { return __half{(unsigned short)value}; }
template <> __device__ __nv_bfloat16 make<__nv_bfloat16>(int value) { return __nv_bfloat16{(unsigned short)value}; }

struct Wide {
    long long low, high;
};
template <> __device__ Wide make<Wide>(int value) { return Wide{value, ~(long long)value}; }

template <class T> __device__ bool same(const T &a, const T &b) {
    for (size_t i = 0; i < sizeof(T); i++)
        if (((const char *)&a)[i] != ((const char *)&b)[i]) return false;
    return true;
}

__device__ __noinline__ void check(unsigned *errors, int step, bool good) {
    if (!good) atomicCAS(errors, 0u, (unsigned)step);
}

/* What PE `pe` has in element i of its source. */
template <class T> __device__ T given(int pe, int i) { return make<T>(pe * 37 + i + 1); }

template <class T> struct Ring {
    T *to, *from;
    unsigned *errors;
    int me, n, left, right, thread;

    __device__ Ring(char *heap, unsigned *errors)
        : to((T *)heap), from((T *)(heap + 2048)), errors(errors), me(nvshmem_my_pe()), n(nvshmem_n_pes()),
          left((me + n - 1) % n), right((me + 1) % n), thread((int)threadIdx.x) {
        from[thread] = given<T>(me, thread);
        clear();
    }
    /* Between two barriers: nobody puts before everybody has cleared, nobody clears before everybody has looked. */
    __device__ __noinline__ void clear() {
        nvshmemx_barrier_all_block();
        to[thread] = make<T>(0);
        nvshmemx_barrier_all_block();
    }
    /* Elements first, first + step, ... (`count` of them) hold those of `pe` from `source` on by `by`; others nothing. */
    __device__ __noinline__ void look(int number, int first, int step, int count, int pe, int source, int by) {
        int k = (thread - first) / step;
        bool hit = thread >= first && (thread - first) % step == 0 && k < count;
        check(errors, number, same(to[thread], hit ? given<T>(pe, source + k * by) : make<T>(0)));
        clear();
    }
};

/* Inlining everything makes 60 MB of PTX: with SOME_TYPES there are kernels for a few types of different sizes. */
#ifdef SOME_TYPES
#define RMA_TYPES(X) X(half, half) X(uchar, unsigned char) X(int, int) X(double, double)
#define WAIT_TYPES(X) X(short, short) X(uint64, uint64_t)
#define BITWISE_TYPES(X) X(uint, unsigned int)
#define STANDARD_TYPES(X) X(long, long)
#define EXTENDED_TYPES(X) X(float, float)
#else
#define RMA_TYPES(X) INTARSIA_NVSHMEM_RMA_TYPES(X)
#define WAIT_TYPES(X) INTARSIA_NVSHMEM_WAIT_TYPES(X)
#define BITWISE_TYPES(X) INTARSIA_NVSHMEM_BITWISE_TYPES(X)
#define STANDARD_TYPES(X) INTARSIA_NVSHMEM_STANDARD_TYPES(X)
#define EXTENDED_TYPES(X) INTARSIA_NVSHMEM_EXTENDED_TYPES(X)
#endif

/* -- puts and gets ------------------------------------------------------------------------------------------------- */

/* `who` says which threads make the call; 5 elements from the second on go to the fourth. */
#define PUTS(STEP, who, PUT, SIGNAL_PUT, IPUT)                                                                         \
    if (who) PUT(ring.to + 3, ring.from + 1, 5, ring.right);                                                           \
    nvshmemx_barrier_all_block();                                                                                      \
    ring.look(STEP, 3, 1, 5, ring.left, 1, 1);                                                                         \
    if (who) SIGNAL_PUT(ring.to + 2, ring.from, 40, signals, 7, NVSHMEM_SIGNAL_ADD, ring.right);                       \
    if (ring.thread == 0) {                                                                                            \
        nvshmem_signal_wait_until(signals, NVSHMEM_CMP_GE, 7);                                                         \
        *signals = 0;                                                                                                  \
    }                                                                                                                  \
    __syncthreads();                                                                                                   \
    ring.look(STEP + 1, 2, 1, 40, ring.left, 0, 1);                                                                    \
    if (who) IPUT(ring.to, ring.from, 3, 2, 7, ring.right);                                                            \
    nvshmemx_barrier_all_block();                                                                                      \
    ring.look(STEP + 2, 0, 3, 7, ring.left, 0, 2);
#define GETS(STEP, who, GET, GET_NBI, IGET)                                                                            \
    if (who) GET(ring.to + 3, ring.from + 1, 50, ring.right);                                                          \
    __syncthreads();                                                                                                   \
    ring.look(STEP, 3, 1, 50, ring.right, 1, 1);                                                                       \
    if (who) GET_NBI(ring.to, ring.from, 64, ring.left);                                                               \
    if (who) nvshmem_quiet();                                                                                          \
    __syncthreads();                                                                                                   \
    ring.look(STEP + 1, 0, 1, 64, ring.left, 0, 1);                                                                    \
    if (who) IGET(ring.to + 1, ring.from, 2, 3, 9, ring.right);                                                        \
    __syncthreads();                                                                                                   \
    ring.look(STEP + 2, 1, 2, 9, ring.right, 0, 3);
#define PUT_NBI(STEP, who, PUT)                                                                                        \
    if (who) PUT(ring.to + 1, ring.from + 2, 33, ring.right);                                                          \
    nvshmemx_barrier_all_block();                                                                                      \
    ring.look(STEP, 1, 1, 33, ring.left, 2, 1);

#define ALL(STEP, who, X, SUFFIX, END)                                                                                 \
    PUTS(STEP, who, X##put##SUFFIX##END, X##put##SUFFIX##_signal##END, X##iput##SUFFIX##END)                           \
    GETS(STEP + 3, who, X##get##SUFFIX##END, X##get##SUFFIX##_nbi##END, X##iget##SUFFIX##END)                          \
    PUT_NBI(STEP + 6, who, X##put##SUFFIX##_nbi##END)                                                                  \
    if (who) X##put##SUFFIX##_signal_nbi##END(ring.to, ring.from, 64, signals + 1, 9, NVSHMEM_SIGNAL_SET, ring.right); \
    if (ring.thread == 0) {                                                                                            \
        check(errors, STEP + 7, nvshmem_signal_wait_until(signals + 1, NVSHMEM_CMP_EQ, 9) == 9);                       \
        signals[1] = 0;                                                                                                \
    }                                                                                                                  \
    __syncthreads();                                                                                                   \
    ring.look(STEP + 8, 0, 1, 64, ring.left, 0, 1);

#define KERNEL(NAME, TYPE)                                                                                             \
    extern "C" __global__ void rma_##NAME(char *heap, uint64_t *signals, unsigned *errors) {                           \
        Ring<TYPE> ring(heap, errors);                                                                                 \
        nvshmem_##NAME##_p(&ring.to[ring.thread], given<TYPE>(ring.me, ring.thread + 3), ring.right);                  \
        nvshmemx_barrier_all_block();                                                                                  \
        ring.look(1, 0, 1, 64, ring.left, 3, 1);                                                                       \
        check(errors, 2, same(nvshmem_##NAME##_g(&ring.from[ring.thread], ring.right),                                 \
                              given<TYPE>(ring.right, ring.thread)));                                                  \
        ALL(10, ring.thread == 0, nvshmem_##NAME##_, , )                                                               \
        ALL(20, ring.thread < 32, nvshmemx_##NAME##_, , _warp)                                                         \
        ALL(30, true, nvshmemx_##NAME##_, , _block)                                                                    \
    }
RMA_TYPES(KERNEL)
#undef KERNEL

#define KERNEL(BITS, TYPE)                                                                                             \
    extern "C" __global__ void rma_##BITS(char *heap, uint64_t *signals, unsigned *errors) {                           \
        Ring<TYPE> ring(heap, errors);                                                                                 \
        ALL(10, ring.thread == 0, nvshmem_, BITS, )                                                                    \
        ALL(20, ring.thread < 32, nvshmemx_, BITS, _warp)                                                              \
        ALL(30, true, nvshmemx_, BITS, _block)                                                                         \
    }
#ifndef SOME_TYPES
KERNEL(8, char)
KERNEL(16, short)
KERNEL(32, int)
KERNEL(64, long long)
#endif
KERNEL(128, Wide)
#undef KERNEL

/* Bytes have no strided calls; sizes and alignments that are no multiple of anything. */
#define MEM(STEP, who, X, END)                                                                                         \
    for (int size = 1; size <= 50; size += 7) {                                                                        \
        if (who) X##putmem##END(ring.to + size % 5, ring.from + size % 3, size, ring.right);                           \
        nvshmemx_barrier_all_block();                                                                                  \
        ring.look(STEP, size % 5, 1, size, ring.left, size % 3, 1);                                                    \
        if (who) X##getmem_nbi##END(ring.to + size % 4, ring.from + size % 7, size, ring.left);                        \
        __syncthreads();                                                                                               \
        ring.look(STEP + 1, size % 4, 1, size, ring.left, size % 7, 1);                                                \
    }                                                                                                                  \
    if (who) X##putmem_nbi##END(ring.to, ring.from, 64, ring.right);                                                   \
    nvshmemx_barrier_all_block();                                                                                      \
    ring.look(STEP + 2, 0, 1, 64, ring.left, 0, 1);                                                                    \
    if (who) X##getmem##END(ring.to + 1, ring.from, 63, ring.right);                                                   \
    __syncthreads();                                                                                                   \
    ring.look(STEP + 3, 1, 1, 63, ring.right, 0, 1);                                                                   \
    if (who) X##putmem_signal##END(ring.to, ring.from, 13, signals, 1, NVSHMEM_SIGNAL_SET, ring.right);                \
    if (who) X##putmem_signal_nbi##END(ring.to + 13, ring.from + 13, 20, signals + 1, 1, NVSHMEM_SIGNAL_ADD,           \
                                       ring.right);                                                                    \
    if (ring.thread == 0)                                                                                              \
        for (int i = 0; i < 2; i++) {                                                                                  \
            nvshmem_signal_wait_until(signals + i, NVSHMEM_CMP_NE, 0);                                                 \
            signals[i] = 0;                                                                                            \
        }                                                                                                              \
    __syncthreads();                                                                                                   \
    ring.look(STEP + 4, 0, 1, 33, ring.left, 0, 1);
extern "C" __global__ void rma_mem(char *heap, uint64_t *signals, unsigned *errors) {
    Ring<char> ring(heap, errors);
    MEM(10, ring.thread == 0, nvshmem_, )
    MEM(20, ring.thread < 32, nvshmemx_, _warp)
    MEM(30, true, nvshmemx_, _block)
}

/* -- waits and tests ----------------------------------------------------------------------------------------------- */

/* By one thread: the left neighbour writes eight words, in an order and at times of its own. */
#define KERNEL(NAME, TYPE)                                                                                             \
    extern "C" __global__ void wait_##NAME(char *heap, uint64_t *signals, unsigned *errors) {                          \
        TYPE *w = (TYPE *)heap, to[4];                                                                                 \
        int status[4] = {0, 0, 1, 0}, all_off[4] = {1, 1, 1, 1}, me = nvshmem_my_pe(), n = nvshmem_n_pes();            \
        int right = (me + 1) % n;                                                                                      \
        size_t found[4], count;                                                                                        \
        if (threadIdx.x == 0)                                                                                          \
            for (int i = 0; i < 8; i++) w[i] = 0;                                                                      \
        nvshmemx_barrier_all_block();                                                                                  \
        if (threadIdx.x == 1) { /* the writer */                                                                       \
            nvshmem_##NAME##_p(&w[0], 5, right);                                                                       \
            for (int i = 3; i >= 0; i--) nvshmem_##NAME##_p(&w[i], (TYPE)(10 + i), right);                             \
            nvshmem_##NAME##_p(&w[5], 3, right);                                                                       \
        }                                                                                                              \
        if (threadIdx.x == 0) {                                                                                        \
            nvshmem_##NAME##_wait_until(&w[0], NVSHMEM_CMP_GE, 5);                                                     \
            nvshmem_##NAME##_wait_until_all(w, 4, status, NVSHMEM_CMP_GT, 9);                                          \
            check(errors, 1, w[0] == 10 && w[1] == 11 && w[3] == 13);                                                  \
            check(errors, 2, nvshmem_##NAME##_wait_until_any(w + 4, 4, status, NVSHMEM_CMP_EQ, 3) == 1);               \
            check(errors, 3, nvshmem_##NAME##_wait_until_any(w + 4, 4, all_off, NVSHMEM_CMP_EQ, 3) == (size_t)-1);     \
            check(errors, 4, nvshmem_##NAME##_wait_until_some(w + 4, 4, found, status, NVSHMEM_CMP_EQ, 3) == 1);       \
            check(errors, 5, found[0] == 1);                                                                           \
            nvshmem_##NAME##_wait_until(&w[2], NVSHMEM_CMP_NE, 0);                                                     \
            for (int i = 0; i < 4; i++) to[i] = (TYPE)(10 + i);                                                        \
            nvshmem_##NAME##_wait_until_all_vector(w, 4, nullptr, NVSHMEM_CMP_EQ, to);                                 \
            check(errors, 6, nvshmem_##NAME##_test_all_vector(w, 4, nullptr, NVSHMEM_CMP_EQ, to) == 1);                \
            to[0] = to[2] = 77;                                                                                        \
            check(errors, 7, nvshmem_##NAME##_test_all_vector(w, 4, nullptr, NVSHMEM_CMP_EQ, to) == 0);                \
            count = nvshmem_##NAME##_wait_until_any_vector(w, 4, nullptr, NVSHMEM_CMP_EQ, to);                         \
            check(errors, 8, count == 1 || count == 3);                                                                \
            count = nvshmem_##NAME##_test_any_vector(w, 4, nullptr, NVSHMEM_CMP_GE, to);                               \
            check(errors, 9, count == 1 || count == 3);                                                                \
            count = nvshmem_##NAME##_wait_until_some_vector(w, 4, found, nullptr, NVSHMEM_CMP_EQ, to);                 \
            check(errors, 10, count == 2 && found[0] == 1 && found[1] == 3);                                           \
            count = nvshmem_##NAME##_test_some_vector(w, 4, found, status, NVSHMEM_CMP_LT, to);                        \
            check(errors, 11, count == 1 && found[0] == 0);                                                            \
            check(errors, 12, nvshmem_##NAME##_test(&w[1], NVSHMEM_CMP_EQ, 11) == 1);                                  \
            check(errors, 13, nvshmem_##NAME##_test(&w[1], NVSHMEM_CMP_LT, 11) == 0);                                  \
            check(errors, 14, nvshmem_##NAME##_test_all(w, 4, nullptr, NVSHMEM_CMP_LE, 13) == 1);                      \
            check(errors, 15, nvshmem_##NAME##_test_all(w, 4, status, NVSHMEM_CMP_NE, 12) == 1);                       \
            check(errors, 16, nvshmem_##NAME##_test_any(w, 4, status, NVSHMEM_CMP_GE, 12) == 3);                       \
            check(errors, 17, nvshmem_##NAME##_test_any(w, 4, nullptr, NVSHMEM_CMP_GT, 13) == (size_t)-1);             \
            count = nvshmem_##NAME##_test_some(w, 4, found, nullptr, NVSHMEM_CMP_NE, 12);                              \
            check(errors, 18, count == 3 && found[0] == 0 && found[1] == 1 && found[2] == 3);                          \
            check(errors, 19, nvshmem_##NAME##_test_all(w, 0, nullptr, NVSHMEM_CMP_EQ, 0) == 1);                       \
            w[6] = (TYPE)-1; /* the largest number, or the smallest step below nothing */                              \
            check(errors, 20, nvshmem_##NAME##_test(&w[6], NVSHMEM_CMP_LT, 0) == ((TYPE)-1 < (TYPE)0));                \
            check(errors, 21, nvshmem_##NAME##_test(&w[6], NVSHMEM_CMP_GT, 100) == ((TYPE)-1 > (TYPE)0));              \
        }                                                                                                              \
        nvshmemx_barrier_all_block();                                                                                  \
    }
WAIT_TYPES(KERNEL)
#undef KERNEL

/* -- atomics ------------------------------------------------------------------------------------------------------- */

/* All threads of all PEs count on PE 0; its words are the sums in the end. `first` words were zero. */
#define KERNEL(NAME, TYPE)                                                                                             \
    extern "C" __global__ void add_##NAME(char *heap, uint64_t *signals, unsigned *errors) {                           \
        TYPE *w = (TYPE *)heap, old, all = (TYPE)(nvshmem_n_pes() * THREADS);                                          \
        if (threadIdx.x == 0)                                                                                          \
            for (int i = 0; i < 8; i++) w[i] = 0;                                                                      \
        nvshmemx_barrier_all_block();                                                                                  \
        old = nvshmem_##NAME##_atomic_fetch_inc(&w[0], 0);                                                             \
        check(errors, 1, old < all);                                                                                   \
        nvshmem_##NAME##_atomic_inc(&w[1], 0);                                                                         \
        old = nvshmem_##NAME##_atomic_fetch_add(&w[2], 3, 0);                                                          \
        check(errors, 2, old % 3 == 0 && old < 3 * all);                                                               \
        nvshmem_##NAME##_atomic_add(&w[3], (TYPE)(threadIdx.x % 2 ? 5 : -5), 0);                                       \
        do old = nvshmem_##NAME##_atomic_fetch(&w[4], 0);                                                              \
        while (nvshmem_##NAME##_atomic_compare_swap(&w[4], old, old + 1, 0) != old);                                   \
        check(errors, 3, nvshmem_##NAME##_atomic_compare_swap(&w[5], 1, 2, 0) == 0);                                   \
        nvshmemx_barrier_all_block();                                                                                  \
        check(errors, 4, nvshmem_##NAME##_atomic_fetch(&w[0], 0) == all);                                              \
        check(errors, 5, nvshmem_##NAME##_atomic_fetch(&w[1], 0) == all);                                              \
        check(errors, 6, nvshmem_##NAME##_atomic_fetch(&w[2], 0) == 3 * all);                                          \
        check(errors, 7, nvshmem_##NAME##_atomic_fetch(&w[3], 0) == 0);                                                \
        check(errors, 8, nvshmem_##NAME##_atomic_fetch(&w[4], 0) == all);                                              \
        check(errors, 9, nvshmem_##NAME##_atomic_fetch(&w[5], 0) == 0);                                                \
        nvshmemx_barrier_all_block();                                                                                  \
    }
STANDARD_TYPES(KERNEL)
#undef KERNEL

#define KERNEL(NAME, TYPE)                                                                                             \
    extern "C" __global__ void swap_##NAME(char *heap, uint64_t *signals, unsigned *errors) {                          \
        TYPE *w = (TYPE *)heap;                                                                                        \
        int me = nvshmem_my_pe(), n = nvshmem_n_pes(), right = (me + 1) % n, left = (me + n - 1) % n;                  \
        if (threadIdx.x == 0) w[0] = (TYPE)100, w[1] = 0;                                                              \
        nvshmemx_barrier_all_block();                                                                                  \
        if (threadIdx.x == 0) {                                                                                        \
            nvshmem_##NAME##_atomic_set(&w[1], (TYPE)(me + 7), right);                                                 \
            check(errors, 1, nvshmem_##NAME##_atomic_swap(&w[0], (TYPE)me, right) == (TYPE)100);                       \
        }                                                                                                              \
        nvshmemx_barrier_all_block();                                                                                  \
        check(errors, 2, w[0] == (TYPE)left && w[1] == (TYPE)(left + 7));                                              \
        check(errors, 3, nvshmem_##NAME##_atomic_fetch(&w[1], right) == (TYPE)(me + 7));                               \
        nvshmemx_barrier_all_block();                                                                                  \
    }
EXTENDED_TYPES(KERNEL)
#undef KERNEL

/* Thread t of PE p owns bit (p * 8 + t) % 32 of words on PE 0; eight threads a PE. */
#define KERNEL(NAME, TYPE)                                                                                             \
    extern "C" __global__ void bits_##NAME(char *heap, uint64_t *signals, unsigned *errors) {                          \
        TYPE *w = (TYPE *)heap, bit = (TYPE)1 << ((nvshmem_my_pe() * 8 + threadIdx.x) % 32), mask = 0;                 \
        int n = nvshmem_n_pes();                                                                                       \
        if (threadIdx.x == 0)                                                                                          \
            for (int i = 0; i < 6; i++) w[i] = i < 2 ? (TYPE)-1 : 0;                                                   \
        for (int i = 0; i < n * 8; i++) mask |= (TYPE)1 << i % 32;                                                     \
        nvshmemx_barrier_all_block();                                                                                  \
        if (threadIdx.x < 8) {                                                                                         \
            check(errors, 1, (nvshmem_##NAME##_atomic_fetch_and(&w[0], ~bit, 0) & bit) == bit);                        \
            nvshmem_##NAME##_atomic_and(&w[1], ~bit, 0);                                                               \
            check(errors, 2, (nvshmem_##NAME##_atomic_fetch_or(&w[2], bit, 0) & bit) == 0);                            \
            nvshmem_##NAME##_atomic_or(&w[3], bit, 0);                                                                 \
            check(errors, 3, (nvshmem_##NAME##_atomic_fetch_xor(&w[4], bit, 0) & bit) == 0);                           \
            nvshmem_##NAME##_atomic_xor(&w[5], bit, 0);                                                                \
        }                                                                                                              \
        nvshmemx_barrier_all_block();                                                                                  \
        for (int i = 0; i < 6; i++)                                                                                    \
            check(errors, 4 + i, nvshmem_##NAME##_atomic_fetch(&w[i], 0) == (i < 2 ? (TYPE)~mask : mask));             \
        nvshmemx_barrier_all_block();                                                                                  \
    }
BITWISE_TYPES(KERNEL)
#undef KERNEL

/* -- the rest ------------------------------------------------------------------------------------------------------ */

extern "C" __global__ void who_and_where(char *heap, uint64_t *signals, unsigned *errors) {
    int me = nvshmem_my_pe(), n = nvshmem_n_pes(), right = (me + 1) % n, major, minor, patch;
    check(errors, 1, nvshmem_team_my_pe(NVSHMEM_TEAM_WORLD) == me && nvshmem_team_n_pes(NVSHMEM_TEAM_WORLD) == n);
    check(errors, 2, nvshmem_team_my_pe(NVSHMEMX_TEAM_NODE) == me && nvshmem_team_n_pes(NVSHMEMX_TEAM_NODE) == n);
    check(errors, 3, nvshmem_team_n_pes(NVSHMEMX_TEAM_SAME_MYPE_NODE) == 1);
    check(errors, 4, nvshmem_team_my_pe(NVSHMEM_TEAM_INVALID) == -1);
    check(errors, 5, nvshmem_team_translate_pe(NVSHMEM_TEAM_WORLD, right, NVSHMEMX_TEAM_NODE) == right);
    check(errors, 6, nvshmem_team_translate_pe(NVSHMEMX_TEAM_SAME_MYPE_NODE, 0, NVSHMEM_TEAM_WORLD) == me);
    check(errors, 7, nvshmem_team_translate_pe(NVSHMEM_TEAM_WORLD, n, NVSHMEM_TEAM_WORLD) == -1);
    check(errors, 8, nvshmem_ptr(heap + 5, me) == heap + 5 && nvshmem_ptr(heap, n) == nullptr);
    check(errors, 9, nvshmem_ptr(errors, me) == nullptr && nvshmem_ptr(heap, -1) == nullptr);
    char *theirs = (char *)nvshmem_ptr(heap, right);
    if (threadIdx.x == 0) theirs[9] = (char)(me + 1);
    nvshmemx_barrier_all_block();
    check(errors, 10, heap[9] == (char)((me + n - 1) % n + 1));
    nvshmem_info_get_version(&major, &minor);
    check(errors, 11, major == 1 && minor == 3);
    nvshmemx_vendor_get_version_info(&major, &minor, &patch);
    check(errors, 12, major == 3);
    char name[64];
    nvshmem_info_get_name(name);
    check(errors, 13, name[0] == 'I' && name[17] == 'r' && name[18] == 0);
    nvshmemx_barrier_all_block();
}

extern "C" __global__ void signals_only(char *heap, uint64_t *signals, unsigned *errors) {
    int me = nvshmem_my_pe(), n = nvshmem_n_pes(), right = (me + 1) % n;
    if (threadIdx.x == 0)
        for (int i = 0; i < 3; i++) signals[i] = 0;
    nvshmemx_barrier_all_block();
    nvshmemx_signal_op(&signals[0], 2, NVSHMEM_SIGNAL_ADD, right);
    if (threadIdx.x == 5) nvshmemx_signal_op(&signals[1], (uint64_t)1 << 40, NVSHMEM_SIGNAL_SET, right);
    check(errors, 1, nvshmem_signal_wait_until(&signals[0], NVSHMEM_CMP_EQ, 2 * THREADS) == 2 * THREADS);
    check(errors, 2, nvshmem_signal_wait_until(&signals[1], NVSHMEM_CMP_GT, 5) == (uint64_t)1 << 40);
    check(errors, 3, nvshmem_signal_fetch(&signals[1]) == (uint64_t)1 << 40);
    nvshmem_fence();
    nvshmemx_barrier_all_block();
    if (threadIdx.x == 0)
        for (int i = 0; i < 3; i++) signals[i] = 0;
}

/* In every round each PE writes, all meet, each PE reads what the others wrote, all meet. */
#define ROUNDS(STEP, who, MEET)                                                                                        \
    for (int round = 1; round <= 20; round++) {                                                                        \
        if (threadIdx.x == 0) *(volatile int *)heap = round;                                                           \
        __syncthreads();                                                                                               \
        if (who) MEET;                                                                                                 \
        __syncthreads();                                                                                               \
        for (int pe = 0; pe < n; pe++) check(errors, STEP, *(volatile int *)nvshmem_ptr(heap, pe) == round);           \
        __syncthreads();                                                                                               \
        if (who) MEET;                                                                                                 \
        __syncthreads();                                                                                               \
    }
extern "C" __global__ void barriers(char *heap, uint64_t *signals, unsigned *errors) {
    int n = nvshmem_n_pes();
    ROUNDS(1, threadIdx.x == 40, nvshmem_barrier_all())
    ROUNDS(2, threadIdx.x >= 32, nvshmemx_barrier_all_warp())
    ROUNDS(3, true, nvshmemx_barrier_all_block())
    ROUNDS(4, threadIdx.x == 0, nvshmem_sync_all())
    ROUNDS(5, threadIdx.x < 32, nvshmemx_sync_all_warp())
    ROUNDS(6, true, nvshmemx_sync_all_block())
    ROUNDS(7, threadIdx.x == 1, nvshmem_barrier(NVSHMEMX_TEAM_NODE))
    ROUNDS(8, threadIdx.x < 32, nvshmemx_barrier_warp(NVSHMEM_TEAM_SHARED))
    ROUNDS(9, true, nvshmemx_barrier_block(NVSHMEM_TEAM_WORLD))
    ROUNDS(10, threadIdx.x == 63, nvshmem_team_sync(NVSHMEM_TEAM_WORLD))
    ROUNDS(11, threadIdx.x < 32, nvshmemx_team_sync_warp(NVSHMEMX_TEAM_NODE))
    ROUNDS(12, true, nvshmemx_team_sync_block(NVSHMEM_TEAM_WORLD))
    if (threadIdx.x == 0) check(errors, 13, nvshmem_sync(NVSHMEMX_TEAM_SAME_MYPE_NODE) == 0);
}
