/*
 * Of the simulator's NVSHMEM device library the middle layer, included by nvshmem.cu alone: from a symmetric address and
 * a PE to addresses that this PE can reach, for a thread, warp or block; waits and tests; barriers. `call` is the call
 * that a complaint names.
 */
#ifndef INTARSIA_SIM_OPERATIONS_H
#define INTARSIA_SIM_OPERATIONS_H

#include <sim/elements.h>

namespace its {

/* -- puts and gets ------------------------------------------------------------------------------------------------- */

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

#endif
