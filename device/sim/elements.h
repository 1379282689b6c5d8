/*
 * Of the simulator's NVSHMEM device library the lowest layer, included by nvshmem.cu alone: what it knows of its PE, how
 * it complains, single elements and copies on addresses that this PE can reach, and groups of threads.
 */
#ifndef INTARSIA_SIM_ELEMENTS_H
#define INTARSIA_SIM_ELEMENTS_H

#include <intarsia/nvshmem.h>

#include <sim/state.h>

extern "C" {
__constant__ intarsia_sim_state intarsia_nvshmem_state;
__device__ intarsia_sim_complaint intarsia_nvshmem_complaint;
}

/* Named, and not static, for the sake of short names in PTX. */
namespace its {

typedef unsigned int u32;
typedef unsigned long long u64;

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

enum Group { THREAD = INTARSIA_SIM_THREAD, WARP = INTARSIA_SIM_WARP, BLOCK = INTARSIA_SIM_BLOCK };

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

} // namespace its

#endif
