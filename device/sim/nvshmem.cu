/*
 * The simulator's NVSHMEM device library: the same functions as NVSHMEM's, on nothing but loads, stores and atomics.
 *
 * Every PE sees the symmetric heaps of all PEs at the same addresses, one stride apart. A put to PE p is thus a copy to
 * the address plus (p - me) * stride, and what the simulator checks of a store it checks of a put: bounds, alignment, and
 * that the memory is allocated. What it can't know, that an address must be symmetric and a PE must exist, is checked
 * here; a call that makes no sense writes down why and traps.
 *
 *     layer        functions
 *     elements     store, load, copy, compare: on addresses that this PE can reach
 *     operations   put, get, put_signal, ...: from a symmetric address and a PE to those; for a thread, warp or block
 *     names        one function per type and group, generated; all they do is to call an operation
 *
 * Operations that need a body of some size exist once per size of element, not per type.
 */
#include <intarsia/nvshmem.h>

#include <sim/state.h>

struct alignas(2) __half {
    unsigned short bits;
};
struct alignas(2) __nv_bfloat16 {
    unsigned short bits;
};

extern "C" {
__constant__ intarsia_sim_state intarsia_nvshmem_state;
__device__ intarsia_sim_complaint intarsia_nvshmem_complaint;
}

/* Named, and not static, for the sake of short names in PTX. */
namespace its {

typedef unsigned int u32;
typedef unsigned long long u64;

enum Group { THREAD = INTARSIA_SIM_THREAD, WARP = INTARSIA_SIM_WARP, BLOCK = INTARSIA_SIM_BLOCK };

#define CALL(op, type, group, nbi)                                                                                     \
    INTARSIA_SIM_CALL(INTARSIA_SIM_OP_##op, INTARSIA_SIM_TYPE_##type, group, nbi)

/* -- complaints ---------------------------------------------------------------------------------------------------- */

/* A thread that comes second waits until the first has said everything, or its trap would come too early. */
__device__ __noinline__ void complain(u32 reason, u32 call, int number, const void *address) {
    volatile intarsia_sim_complaint *complaint = &intarsia_nvshmem_complaint;
    if (atomicCAS(&intarsia_nvshmem_complaint.reason, 0u, reason) == 0) {
        complaint->call = call;
        complaint->number = number;
        complaint->address = (u64)address;
        __threadfence();
        complaint->ready = 1;
    }
    while (!complaint->ready) {}
    asm volatile("trap;");
}

__device__ __noinline__ void complain_reach(int pe, u32 call, const void *address) {
    bool bad_pe = (u32)pe >= intarsia_nvshmem_state.n_pes;
    complain(bad_pe ? INTARSIA_SIM_NO_SUCH_PE : INTARSIA_SIM_NOT_SYMMETRIC, call, pe, address);
}

/* -- elements ------------------------------------------------------------------------------------------------------ */

template <int SIZE> struct Bits;
template <> struct Bits<1> { typedef unsigned char type; };
template <> struct Bits<2> { typedef unsigned short type; };
template <> struct Bits<4> { typedef u32 type; };
template <> struct Bits<8> { typedef u64 type; };
template <> struct Bits<16> { typedef uint4 type; };

template <class To, class From> __device__ __forceinline__ To bits(From value) {
    static_assert(sizeof(To) == sizeof(From), "same size");
    To to;
    memcpy(&to, &value, sizeof to);
    return to;
}

/* Single elements are moved whole and seen by everybody: strong accesses at system scope. */
__device__ __forceinline__ void store(unsigned char *at, unsigned char value) {
    asm volatile("st.relaxed.sys.u8 [%0], %1;" ::"l"(at), "r"((u32)value) : "memory");
}
__device__ __forceinline__ void store(unsigned short *at, unsigned short value) {
    asm volatile("st.relaxed.sys.u16 [%0], %1;" ::"l"(at), "h"(value) : "memory");
}
__device__ __forceinline__ void store(u32 *at, u32 value) {
    asm volatile("st.relaxed.sys.u32 [%0], %1;" ::"l"(at), "r"(value) : "memory");
}
__device__ __forceinline__ void store(u64 *at, u64 value) {
    asm volatile("st.relaxed.sys.u64 [%0], %1;" ::"l"(at), "l"(value) : "memory");
}
__device__ __forceinline__ void store_release(u64 *at, u64 value) {
    asm volatile("st.release.sys.u64 [%0], %1;" ::"l"(at), "l"(value) : "memory");
}

__device__ __forceinline__ unsigned char load(const unsigned char *at) {
    u32 value;
    asm volatile("ld.relaxed.sys.u8 %0, [%1];" : "=r"(value) : "l"(at) : "memory");
    return (unsigned char)value;
}
__device__ __forceinline__ unsigned short load(const unsigned short *at) {
    unsigned short value;
    asm volatile("ld.relaxed.sys.u16 %0, [%1];" : "=h"(value) : "l"(at) : "memory");
    return value;
}
__device__ __forceinline__ u32 load(const u32 *at) {
    u32 value;
    asm volatile("ld.relaxed.sys.u32 %0, [%1];" : "=r"(value) : "l"(at) : "memory");
    return value;
}
__device__ __forceinline__ u64 load(const u64 *at) {
    u64 value;
    asm volatile("ld.relaxed.sys.u64 %0, [%1];" : "=l"(value) : "l"(at) : "memory");
    return value;
}

/* What a wait has seen, everything before it is seen after it. */
__device__ __forceinline__ short load_acquire(const short *at) {
    short value;
    asm volatile("ld.acquire.sys.s16 %0, [%1];" : "=h"(value) : "l"(at) : "memory");
    return value;
}
__device__ __forceinline__ unsigned short load_acquire(const unsigned short *at) {
    unsigned short value;
    asm volatile("ld.acquire.sys.u16 %0, [%1];" : "=h"(value) : "l"(at) : "memory");
    return value;
}
__device__ __forceinline__ int load_acquire(const int *at) {
    int value;
    asm volatile("ld.acquire.sys.s32 %0, [%1];" : "=r"(value) : "l"(at) : "memory");
    return value;
}
__device__ __forceinline__ u32 load_acquire(const u32 *at) {
    u32 value;
    asm volatile("ld.acquire.sys.u32 %0, [%1];" : "=r"(value) : "l"(at) : "memory");
    return value;
}
__device__ __forceinline__ long long load_acquire(const long long *at) {
    long long value;
    asm volatile("ld.acquire.sys.s64 %0, [%1];" : "=l"(value) : "l"(at) : "memory");
    return value;
}
__device__ __forceinline__ u64 load_acquire(const u64 *at) {
    u64 value;
    asm volatile("ld.acquire.sys.u64 %0, [%1];" : "=l"(value) : "l"(at) : "memory");
    return value;
}

/* Copies what can be copied in elements of U, thread `index` of `count` every count-th; advances past it. */
template <class U>
__device__ __forceinline__ void copy_as(char *&to, const char *&from, size_t &bytes, u32 index, u32 count) {
    if (((size_t)to | (size_t)from) % sizeof(U)) return;
    size_t n = bytes / sizeof(U);
#pragma unroll 1
    for (size_t i = index; i < n; i += count) ((U *)to)[i] = ((const U *)from)[i];
    to += n * sizeof(U);
    from += n * sizeof(U);
    bytes -= n * sizeof(U);
}

__device__ __noinline__ void copy(void *to, const void *from, size_t bytes, u32 index, u32 count) {
    char *d = (char *)to;
    const char *s = (const char *)from;
    copy_as<uint4>(d, s, bytes, index, count);
    copy_as<u64>(d, s, bytes, index, count);
    copy_as<u32>(d, s, bytes, index, count);
    copy_as<unsigned short>(d, s, bytes, index, count);
    copy_as<char>(d, s, bytes, index, count);
}

template <class T> __device__ __forceinline__ bool compares(T value, int cmp, T to, u32 call) {
    switch (cmp) {
    case NVSHMEM_CMP_EQ: return value == to;
    case NVSHMEM_CMP_NE: return value != to;
    case NVSHMEM_CMP_GT: return value > to;
    case NVSHMEM_CMP_LE: return value <= to;
    case NVSHMEM_CMP_LT: return value < to;
    case NVSHMEM_CMP_GE: return value >= to;
    }
    complain(INTARSIA_SIM_BAD_COMPARE, call, cmp, &cmp);
    return true;
}

/* -- groups of threads --------------------------------------------------------------------------------------------- */

__device__ __forceinline__ u32 block_size() { return blockDim.x * blockDim.y * blockDim.z; }

template <Group G> __device__ __forceinline__ u32 group_index() {
    if (G == THREAD) return 0;
    u32 index = threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
    return G == WARP ? index % 32 : index;
}
template <Group G> __device__ __forceinline__ u32 group_count() {
    if (G == THREAD) return 1;
    return G == WARP && block_size() > 32 ? 32 : block_size();
}
template <Group G> __device__ __forceinline__ void group_sync() {
    if (G == WARP) __syncwarp();
    if (G == BLOCK) __syncthreads();
}

/* -- operations ---------------------------------------------------------------------------------------------------- */

/* Where this PE reaches a symmetric address of another one. */
template <class T> __device__ __forceinline__ T *reach(T *address, int pe, u32 call) {
    const intarsia_sim_state *state = &intarsia_nvshmem_state;
    if ((u32)pe >= state->n_pes || (u64)address - state->start >= state->size)
        complain_reach(pe, call, (const void *)address);
    return (T *)((u64)address + ((u64)(u32)pe - state->my_pe) * state->stride);
}

template <Group G> __device__ __noinline__ void put(void *dest, const void *source, size_t bytes, int pe, u32 call) {
    group_sync<G>();
    if (bytes) copy(reach(dest, pe, call), source, bytes, group_index<G>(), group_count<G>());
    group_sync<G>();
}

template <Group G> __device__ __noinline__ void get(void *dest, const void *source, size_t bytes, int pe, u32 call) {
    group_sync<G>();
    if (bytes) copy(dest, reach(source, pe, call), bytes, group_index<G>(), group_count<G>());
    group_sync<G>();
}

/* A signal by itself orders nothing: what was put before is there first only behind a fence. */
__device__ __forceinline__ void set_signal(u64 *at, u64 signal, int op, u32 call) {
    if (op == NVSHMEM_SIGNAL_SET)
        store(at, signal);
    else if (op == NVSHMEM_SIGNAL_ADD)
        asm volatile("red.relaxed.sys.add.u64 [%0], %1;" ::"l"(at), "l"(signal) : "memory");
    else
        complain(INTARSIA_SIM_BAD_SIGNAL, call, op, at);
}

/* The data is there for everybody before the signal is. */
template <Group G>
__device__ __noinline__ void put_signal(void *dest, const void *source, size_t bytes, u64 *sig_addr, u64 signal,
                                        int sig_op, int pe, u32 call) {
    put<G>(dest, source, bytes, pe, call);
    if (group_index<G>() == 0) {
        __threadfence_system();
        set_signal(reach(sig_addr, pe, call), signal, sig_op, call);
    }
    group_sync<G>();
}

template <class U, Group G>
__device__ __noinline__ void strided(U *dest, const U *source, ptrdiff_t dst, ptrdiff_t sst, size_t n) {
    group_sync<G>();
#pragma unroll 1
    for (size_t i = group_index<G>(); i < n; i += group_count<G>())
        dest[(ptrdiff_t)i * dst] = source[(ptrdiff_t)i * sst];
    group_sync<G>();
}

template <int SIZE, Group G>
__device__ __forceinline__ void iput(void *dest, const void *source, ptrdiff_t dst, ptrdiff_t sst, size_t n, int pe,
                                     u32 call) {
    typedef typename Bits<SIZE>::type U;
    strided<U, G>((U *)reach(dest, pe, call), (const U *)source, dst, sst, n);
}

template <int SIZE, Group G>
__device__ __forceinline__ void iget(void *dest, const void *source, ptrdiff_t dst, ptrdiff_t sst, size_t n, int pe,
                                     u32 call) {
    typedef typename Bits<SIZE>::type U;
    strided<U, G>((U *)dest, (const U *)reach(source, pe, call), dst, sst, n);
}

/* -- waits and tests ----------------------------------------------------------------------------------------------- */

template <class T> __device__ __noinline__ T wait(const T *at, int cmp, T value, u32 call) {
    T seen;
    while (!compares(seen = load_acquire(at), cmp, value, call)) {}
    return seen;
}

/* What an array of words is compared to: one value for all (step 0), or one for each. */
template <class T> struct Condition {
    const T *at;
    size_t n;
    const int *status; /* words with a nonzero status are left out; may be null */
    int cmp;
    const T *values;
    u32 call;
    bool each;

    __device__ __forceinline__ bool counts(size_t i) const { return !status || status[i] == 0; }
    __device__ __forceinline__ T value(size_t i) const { return values[each ? i : 0]; }
    __device__ __forceinline__ bool holds(size_t i) const {
        return compares(load_acquire(at + i), cmp, value(i), call);
    }
};

template <class T> __device__ __noinline__ void wait_all(const Condition<T> &condition) {
#pragma unroll 1
    for (size_t i = 0; i < condition.n; i++)
        if (condition.counts(i)) wait(condition.at + i, condition.cmp, condition.value(i), condition.call);
}

template <class T> __device__ __noinline__ int test_all(const Condition<T> &condition) {
#pragma unroll 1
    for (size_t i = 0; i < condition.n; i++)
        if (condition.counts(i) && !condition.holds(i)) return 0;
    return 1;
}

/* The index of a word that holds, or the largest number; `*none` says whether any word counted at all. */
template <class T> __device__ __noinline__ size_t test_any(const Condition<T> &condition, bool *none) {
    *none = true;
#pragma unroll 1
    for (size_t i = 0; i < condition.n; i++) {
        if (!condition.counts(i)) continue;
        *none = false;
        if (condition.holds(i)) return i;
    }
    return (size_t)-1;
}

template <class T> __device__ __noinline__ size_t wait_any(const Condition<T> &condition) {
    bool none;
    size_t index;
    do index = test_any(condition, &none);
    while (index == (size_t)-1 && !none);
    return index;
}

template <class T> __device__ __noinline__ size_t test_some(const Condition<T> &condition, size_t *indices) {
    size_t n = 0;
#pragma unroll 1
    for (size_t i = 0; i < condition.n; i++)
        if (condition.counts(i) && condition.holds(i)) indices[n++] = i;
    return n;
}

template <class T> __device__ __noinline__ size_t wait_some(const Condition<T> &condition, size_t *indices) {
    if (wait_any(condition) == (size_t)-1) return 0;
    return test_some(condition, indices); /* a word that held may hold no more */
}

/* The words of a type are waited for as words of the same size and sign. */
template <int SIZE, bool SIGNED> struct Word;
template <> struct Word<2, true> { typedef short type; };
template <> struct Word<2, false> { typedef unsigned short type; };
template <> struct Word<4, true> { typedef int type; };
template <> struct Word<4, false> { typedef u32 type; };
template <> struct Word<8, true> { typedef long long type; };
template <> struct Word<8, false> { typedef u64 type; };
#define WORD(TYPE) Word<(int)sizeof(TYPE), (TYPE)-1 < (TYPE)0>::type

/* -- atomics ------------------------------------------------------------------------------------------------------- */

#define UNSIGNED(TYPE) Bits<(int)sizeof(TYPE)>::type

/* -- barriers ------------------------------------------------------------------------------------------------------ */

__device__ __forceinline__ intarsia_sim_barrier *barrier_of(u32 pe, int team) {
    const intarsia_sim_state *state = &intarsia_nvshmem_state;
    return (intarsia_sim_barrier *)(state->heap + ((u64)pe - state->my_pe) * state->stride) + team;
}

__device__ __forceinline__ const intarsia_sim_team *find_team(int team, u32 call) {
    if ((u32)team >= INTARSIA_SIM_MAX_TEAMS || intarsia_nvshmem_state.teams[(u32)team % INTARSIA_SIM_MAX_TEAMS].size == 0)
        complain(INTARSIA_SIM_NO_SUCH_TEAM, call, team, nullptr);
    return &intarsia_nvshmem_state.teams[team];
}

/* By one thread: tells every member that this PE has come, and waits until all have told it. */
__device__ __noinline__ void meet(int number, u32 call) {
    const intarsia_sim_team *team = find_team(number, call);
    u32 me = intarsia_nvshmem_state.my_pe;
    intarsia_sim_barrier *mine = barrier_of(me, number);
    if (atomicExch_system(&mine->inside, 1ull)) complain(INTARSIA_SIM_TWO_BARRIERS, call, number, nullptr);
    u64 epoch = load(&mine->epoch) + 1;
#pragma unroll 1
    for (u32 i = 0; i < team->size; i++)
        store_release(&barrier_of(team->start + i * team->stride, number)->arrived[me], epoch);
#pragma unroll 1
    for (u32 i = 0; i < team->size; i++)
        while (load_acquire(&mine->arrived[team->start + i * team->stride]) < epoch) {}
    store(&mine->epoch, epoch);
    store_release(&mine->inside, 0);
}

template <Group G> __device__ __noinline__ void barrier(int team, u32 call) {
    group_sync<G>();
    if (group_index<G>() == 0) {
        __threadfence_system();
        meet(team, call);
    }
    group_sync<G>();
}

} // namespace its

using namespace its;

/* -- names --------------------------------------------------------------------------------------------------------- */

extern "C" {

__device__ int nvshmem_my_pe(void) { return (int)intarsia_nvshmem_state.my_pe; }
__device__ int nvshmem_n_pes(void) { return (int)intarsia_nvshmem_state.n_pes; }

__device__ int nvshmem_team_my_pe(nvshmem_team_t team) {
    if (team == NVSHMEM_TEAM_INVALID) return -1;
    return (int)find_team(team, CALL(TEAM_MY_PE, none, THREAD, 0))->my_pe;
}
__device__ int nvshmem_team_n_pes(nvshmem_team_t team) {
    if (team == NVSHMEM_TEAM_INVALID) return -1;
    return (int)find_team(team, CALL(TEAM_N_PES, none, THREAD, 0))->size;
}
__device__ int nvshmem_team_translate_pe(nvshmem_team_t src_team, int src_pe, nvshmem_team_t dest_team) {
    if (src_team == NVSHMEM_TEAM_INVALID || dest_team == NVSHMEM_TEAM_INVALID) return -1;
    const intarsia_sim_team *from = find_team(src_team, CALL(TEAM_TRANSLATE_PE, none, THREAD, 0));
    const intarsia_sim_team *to = find_team(dest_team, CALL(TEAM_TRANSLATE_PE, none, THREAD, 0));
    if ((u32)src_pe >= from->size) return -1;
    u32 distance = from->start + (u32)src_pe * from->stride - to->start;
    return distance % to->stride || distance / to->stride >= to->size ? -1 : (int)(distance / to->stride);
}

__device__ void *nvshmem_ptr(const void *ptr, int pe) {
    const intarsia_sim_state *state = &intarsia_nvshmem_state;
    if ((u32)pe >= state->n_pes || (u64)ptr - state->start >= state->size) return nullptr;
    return (void *)((u64)ptr + ((u64)(u32)pe - state->my_pe) * state->stride);
}

__device__ void nvshmem_info_get_version(int *major, int *minor) {
    *major = 1;
    *minor = 3;
}
__device__ void nvshmem_info_get_name(char *name) {
    const char text[] = "Intarsia simulator";
#pragma unroll 1
    for (size_t i = 0; i < sizeof text; i++) name[i] = text[i];
}
__device__ void nvshmemx_vendor_get_version_info(int *major, int *minor, int *patch) {
    *major = 3;
    *minor = 4;
    *patch = 5;
}

#define DEFINE(NAME, TYPE)                                                                                             \
    __device__ void nvshmem_##NAME##_p(TYPE *dest, const TYPE value, int pe) {                                         \
        typedef Bits<(int)sizeof(TYPE)>::type U;                                                                       \
        store((U *)reach(dest, pe, CALL(P, NAME, THREAD, 0)), bits<U>(value));                                         \
    }                                                                                                                  \
    __device__ TYPE nvshmem_##NAME##_g(const TYPE *source, int pe) {                                                   \
        typedef Bits<(int)sizeof(TYPE)>::type U;                                                                       \
        return bits<TYPE>(load((const U *)reach(source, pe, CALL(G, NAME, THREAD, 0))));                               \
    }
INTARSIA_NVSHMEM_RMA_TYPES(DEFINE)
#undef DEFINE

#define DEFINE_COPY(FUNCTION, OPERATION, OP, NAME, TYPE, BYTES, GROUP, NBI)                                            \
    __device__ void FUNCTION(TYPE *dest, const TYPE *source, size_t nelems, int pe) {                                  \
        OPERATION<GROUP>(dest, source, nelems * (BYTES), pe, CALL(OP, NAME, GROUP, NBI));                              \
    }
#define DEFINE_SIGNAL(FUNCTION, NAME, TYPE, BYTES, GROUP, NBI)                                                         \
    __device__ void FUNCTION(TYPE *dest, const TYPE *source, size_t nelems, uint64_t *sig_addr, uint64_t signal,       \
                             int sig_op, int pe) {                                                                     \
        put_signal<GROUP>(dest, source, nelems * (BYTES), (u64 *)sig_addr, signal, sig_op, pe,                         \
                          CALL(PUT_SIGNAL, NAME, GROUP, NBI));                                                         \
    }
#define DEFINE_STRIDED(FUNCTION, OPERATION, OP, NAME, TYPE, BYTES, GROUP)                                              \
    __device__ void FUNCTION(TYPE *dest, const TYPE *source, ptrdiff_t dst, ptrdiff_t sst, size_t nelems, int pe) {    \
        OPERATION<BYTES, GROUP>(dest, source, dst, sst, nelems, pe, CALL(OP, NAME, GROUP, 0));                         \
    }
#define DEFINE_COPIES(X, SUFFIX, END, NAME, TYPE, BYTES, GROUP)                                                        \
    DEFINE_COPY(X##put##SUFFIX##END, put, PUT, NAME, TYPE, BYTES, GROUP, 0)                                            \
    DEFINE_COPY(X##get##SUFFIX##END, get, GET, NAME, TYPE, BYTES, GROUP, 0)                                            \
    DEFINE_COPY(X##put##SUFFIX##_nbi##END, put, PUT, NAME, TYPE, BYTES, GROUP, 1)                                      \
    DEFINE_COPY(X##get##SUFFIX##_nbi##END, get, GET, NAME, TYPE, BYTES, GROUP, 1)                                      \
    DEFINE_SIGNAL(X##put##SUFFIX##_signal##END, NAME, TYPE, BYTES, GROUP, 0)                                           \
    DEFINE_SIGNAL(X##put##SUFFIX##_signal_nbi##END, NAME, TYPE, BYTES, GROUP, 1)
#define DEFINE_ALL(X, SUFFIX, END, NAME, TYPE, BYTES, GROUP)                                                           \
    DEFINE_COPIES(X, SUFFIX, END, NAME, TYPE, BYTES, GROUP)                                                            \
    DEFINE_STRIDED(X##iput##SUFFIX##END, iput, IPUT, NAME, TYPE, BYTES, GROUP)                                         \
    DEFINE_STRIDED(X##iget##SUFFIX##END, iget, IGET, NAME, TYPE, BYTES, GROUP)

#define DEFINE(NAME, TYPE)                                                                                             \
    DEFINE_ALL(nvshmem_##NAME##_, , , NAME, TYPE, (int)sizeof(TYPE), THREAD)                                           \
    DEFINE_ALL(nvshmemx_##NAME##_, , _warp, NAME, TYPE, (int)sizeof(TYPE), WARP)                                       \
    DEFINE_ALL(nvshmemx_##NAME##_, , _block, NAME, TYPE, (int)sizeof(TYPE), BLOCK)
INTARSIA_NVSHMEM_RMA_TYPES(DEFINE)
#undef DEFINE

#define DEFINE(SIZE)                                                                                                   \
    DEFINE_ALL(nvshmem_, SIZE, , SIZE, void, SIZE / 8, THREAD)                                                         \
    DEFINE_ALL(nvshmemx_, SIZE, _warp, SIZE, void, SIZE / 8, WARP)                                                     \
    DEFINE_ALL(nvshmemx_, SIZE, _block, SIZE, void, SIZE / 8, BLOCK)
INTARSIA_NVSHMEM_SIZES(DEFINE)
#undef DEFINE

DEFINE_COPIES(nvshmem_, mem, , mem, void, 1, THREAD)
DEFINE_COPIES(nvshmemx_, mem, _warp, mem, void, 1, WARP)
DEFINE_COPIES(nvshmemx_, mem, _block, mem, void, 1, BLOCK)

__device__ void nvshmem_fence(void) { __threadfence_system(); }
__device__ void nvshmem_quiet(void) { __threadfence_system(); }

__device__ void nvshmemx_signal_op(uint64_t *sig_addr, uint64_t signal, int sig_op, int pe) {
    set_signal(reach((u64 *)sig_addr, pe, CALL(SIGNAL_OP, none, THREAD, 0)), signal, sig_op,
               CALL(SIGNAL_OP, none, THREAD, 0));
}
__device__ uint64_t nvshmem_signal_fetch(uint64_t *sig_addr) { return load_acquire((const u64 *)sig_addr); }
__device__ uint64_t nvshmem_signal_wait_until(uint64_t *sig_addr, int cmp, uint64_t cmp_val) {
    return wait((const u64 *)sig_addr, cmp, (u64)cmp_val, CALL(SIGNAL_WAIT_UNTIL, none, THREAD, 0));
}

#define CONDITION(OP, NAME, TYPE, VALUES, EACH)                                                                        \
    Condition<WORD(TYPE)> condition = {(const WORD(TYPE) *)ivars,  nelems, status, cmp, (const WORD(TYPE) *)(VALUES),  \
                                       CALL(OP, NAME, THREAD, 0), EACH};
#define DEFINE(NAME, TYPE)                                                                                             \
    __device__ void nvshmem_##NAME##_wait_until(TYPE *ivar, int cmp, TYPE cmp_value) {                                 \
        wait((const WORD(TYPE) *)ivar, cmp, (WORD(TYPE))cmp_value, CALL(WAIT_UNTIL, NAME, THREAD, 0));                 \
    }                                                                                                                  \
    __device__ void nvshmem_##NAME##_wait_until_all(TYPE *ivars, size_t nelems, const int *status, int cmp,            \
                                                    TYPE cmp_value) {                                                  \
        CONDITION(WAIT_UNTIL_ALL, NAME, TYPE, &cmp_value, false)                                                       \
        wait_all(condition);                                                                                           \
    }                                                                                                                  \
    __device__ size_t nvshmem_##NAME##_wait_until_any(TYPE *ivars, size_t nelems, const int *status, int cmp,          \
                                                      TYPE cmp_value) {                                                \
        CONDITION(WAIT_UNTIL_ANY, NAME, TYPE, &cmp_value, false)                                                       \
        return wait_any(condition);                                                                                    \
    }                                                                                                                  \
    __device__ size_t nvshmem_##NAME##_wait_until_some(TYPE *ivars, size_t nelems, size_t *indices,                    \
                                                       const int *status, int cmp, TYPE cmp_value) {                   \
        CONDITION(WAIT_UNTIL_SOME, NAME, TYPE, &cmp_value, false)                                                      \
        return wait_some(condition, indices);                                                                          \
    }                                                                                                                  \
    __device__ void nvshmem_##NAME##_wait_until_all_vector(TYPE *ivars, size_t nelems, const int *status, int cmp,     \
                                                           TYPE *cmp_values) {                                         \
        CONDITION(WAIT_UNTIL_ALL_VECTOR, NAME, TYPE, cmp_values, true)                                                 \
        wait_all(condition);                                                                                           \
    }                                                                                                                  \
    __device__ size_t nvshmem_##NAME##_wait_until_any_vector(TYPE *ivars, size_t nelems, const int *status, int cmp,   \
                                                             TYPE *cmp_values) {                                       \
        CONDITION(WAIT_UNTIL_ANY_VECTOR, NAME, TYPE, cmp_values, true)                                                 \
        return wait_any(condition);                                                                                    \
    }                                                                                                                  \
    __device__ size_t nvshmem_##NAME##_wait_until_some_vector(TYPE *ivars, size_t nelems, size_t *indices,             \
                                                              const int *status, int cmp, TYPE *cmp_values) {          \
        CONDITION(WAIT_UNTIL_SOME_VECTOR, NAME, TYPE, cmp_values, true)                                                \
        return wait_some(condition, indices);                                                                          \
    }                                                                                                                  \
    __device__ int nvshmem_##NAME##_test(TYPE *ivar, int cmp, TYPE cmp_value) {                                        \
        return compares(load_acquire((const WORD(TYPE) *)ivar), cmp, (WORD(TYPE))cmp_value,                            \
                        CALL(TEST, NAME, THREAD, 0));                                                                  \
    }                                                                                                                  \
    __device__ int nvshmem_##NAME##_test_all(TYPE *ivars, size_t nelems, const int *status, int cmp,                   \
                                             TYPE cmp_value) {                                                         \
        CONDITION(TEST_ALL, NAME, TYPE, &cmp_value, false)                                                             \
        return test_all(condition);                                                                                    \
    }                                                                                                                  \
    __device__ size_t nvshmem_##NAME##_test_any(TYPE *ivars, size_t nelems, const int *status, int cmp,                \
                                                TYPE cmp_value) {                                                      \
        CONDITION(TEST_ANY, NAME, TYPE, &cmp_value, false)                                                             \
        bool none;                                                                                                     \
        return test_any(condition, &none);                                                                             \
    }                                                                                                                  \
    __device__ size_t nvshmem_##NAME##_test_some(TYPE *ivars, size_t nelems, size_t *indices, const int *status,       \
                                                 int cmp, TYPE cmp_value) {                                            \
        CONDITION(TEST_SOME, NAME, TYPE, &cmp_value, false)                                                            \
        return test_some(condition, indices);                                                                          \
    }                                                                                                                  \
    __device__ int nvshmem_##NAME##_test_all_vector(TYPE *ivars, size_t nelems, const int *status, int cmp,            \
                                                    TYPE *cmp_values) {                                                \
        CONDITION(TEST_ALL_VECTOR, NAME, TYPE, cmp_values, true)                                                       \
        return test_all(condition);                                                                                    \
    }                                                                                                                  \
    __device__ size_t nvshmem_##NAME##_test_any_vector(TYPE *ivars, size_t nelems, const int *status, int cmp,         \
                                                       TYPE *cmp_values) {                                             \
        CONDITION(TEST_ANY_VECTOR, NAME, TYPE, cmp_values, true)                                                       \
        bool none;                                                                                                     \
        return test_any(condition, &none);                                                                             \
    }                                                                                                                  \
    __device__ size_t nvshmem_##NAME##_test_some_vector(TYPE *ivars, size_t nelems, size_t *indices,                   \
                                                        const int *status, int cmp, TYPE *cmp_values) {                \
        CONDITION(TEST_SOME_VECTOR, NAME, TYPE, cmp_values, true)                                                      \
        return test_some(condition, indices);                                                                          \
    }
INTARSIA_NVSHMEM_WAIT_TYPES(DEFINE)
#undef DEFINE

#define DEFINE(NAME, TYPE)                                                                                             \
    __device__ TYPE nvshmem_##NAME##_atomic_fetch(const TYPE *source, int pe) {                                        \
        return bits<TYPE>(load((const UNSIGNED(TYPE) *)reach(source, pe, CALL(ATOMIC_FETCH, NAME, THREAD, 0))));       \
    }                                                                                                                  \
    __device__ void nvshmem_##NAME##_atomic_set(TYPE *dest, TYPE value, int pe) {                                      \
        atomicExch_system((UNSIGNED(TYPE) *)reach(dest, pe, CALL(ATOMIC_SET, NAME, THREAD, 0)),                        \
                          bits<UNSIGNED(TYPE)>(value));                                                                \
    }                                                                                                                  \
    __device__ TYPE nvshmem_##NAME##_atomic_swap(TYPE *dest, TYPE value, int pe) {                                     \
        return bits<TYPE>(atomicExch_system((UNSIGNED(TYPE) *)reach(dest, pe, CALL(ATOMIC_SWAP, NAME, THREAD, 0)),     \
                                            bits<UNSIGNED(TYPE)>(value)));                                             \
    }
INTARSIA_NVSHMEM_EXTENDED_TYPES(DEFINE)
#undef DEFINE

#define DEFINE(NAME, TYPE)                                                                                             \
    __device__ TYPE nvshmem_##NAME##_atomic_compare_swap(TYPE *dest, TYPE cond, TYPE value, int pe) {                  \
        return (TYPE)atomicCAS_system(                                                                                 \
            (UNSIGNED(TYPE) *)reach(dest, pe, CALL(ATOMIC_COMPARE_SWAP, NAME, THREAD, 0)), (UNSIGNED(TYPE))cond,       \
            (UNSIGNED(TYPE))value);                                                                                    \
    }                                                                                                                  \
    __device__ TYPE nvshmem_##NAME##_atomic_fetch_inc(TYPE *dest, int pe) {                                            \
        return (TYPE)atomicAdd_system(                                                                                 \
            (UNSIGNED(TYPE) *)reach(dest, pe, CALL(ATOMIC_FETCH_INC, NAME, THREAD, 0)), (UNSIGNED(TYPE))1);            \
    }                                                                                                                  \
    __device__ void nvshmem_##NAME##_atomic_inc(TYPE *dest, int pe) {                                                  \
        atomicAdd_system((UNSIGNED(TYPE) *)reach(dest, pe, CALL(ATOMIC_INC, NAME, THREAD, 0)), (UNSIGNED(TYPE))1);     \
    }
INTARSIA_NVSHMEM_STANDARD_TYPES(DEFINE)
#undef DEFINE

#define DEFINE_ATOMIC(NAME, TYPE, OP, LOWER, ATOMIC)                                                                   \
    __device__ TYPE nvshmem_##NAME##_atomic_fetch_##LOWER(TYPE *dest, TYPE value, int pe) {                            \
        return (TYPE)ATOMIC((UNSIGNED(TYPE) *)reach(dest, pe, CALL(ATOMIC_FETCH_##OP, NAME, THREAD, 0)),               \
                            (UNSIGNED(TYPE))value);                                                                    \
    }                                                                                                                  \
    __device__ void nvshmem_##NAME##_atomic_##LOWER(TYPE *dest, TYPE value, int pe) {                                  \
        ATOMIC((UNSIGNED(TYPE) *)reach(dest, pe, CALL(ATOMIC_##OP, NAME, THREAD, 0)), (UNSIGNED(TYPE))value);          \
    }
#define DEFINE(NAME, TYPE) DEFINE_ATOMIC(NAME, TYPE, ADD, add, atomicAdd_system)
INTARSIA_NVSHMEM_STANDARD_TYPES(DEFINE)
#undef DEFINE
#define DEFINE(NAME, TYPE)                                                                                             \
    DEFINE_ATOMIC(NAME, TYPE, AND, and, atomicAnd_system)                                                              \
    DEFINE_ATOMIC(NAME, TYPE, OR, or, atomicOr_system)                                                                 \
    DEFINE_ATOMIC(NAME, TYPE, XOR, xor, atomicXor_system)
INTARSIA_NVSHMEM_BITWISE_TYPES(DEFINE)
#undef DEFINE

#define DEFINE(X, END, GROUP)                                                                                          \
    __device__ int X##barrier##END(nvshmem_team_t team) {                                                              \
        barrier<GROUP>(team, CALL(BARRIER, none, GROUP, 0));                                                           \
        return 0;                                                                                                      \
    }                                                                                                                  \
    __device__ void X##barrier_all##END(void) {                                                                        \
        barrier<GROUP>(NVSHMEM_TEAM_WORLD, CALL(BARRIER_ALL, none, GROUP, 0));                                         \
    }                                                                                                                  \
    __device__ int X##team_sync##END(nvshmem_team_t team) {                                                            \
        barrier<GROUP>(team, CALL(TEAM_SYNC, none, GROUP, 0));                                                         \
        return 0;                                                                                                      \
    }                                                                                                                  \
    __device__ void X##sync_all##END(void) { barrier<GROUP>(NVSHMEM_TEAM_WORLD, CALL(SYNC_ALL, none, GROUP, 0)); }
DEFINE(nvshmem_, , THREAD)
DEFINE(nvshmemx_, _warp, WARP)
DEFINE(nvshmemx_, _block, BLOCK)
#undef DEFINE

} /* extern "C" */
