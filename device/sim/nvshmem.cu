/*
 * The simulator's NVSHMEM device library: the same functions as NVSHMEM's, on nothing but loads, stores and atomics.
 *
 * Every PE sees the symmetric heaps of all PEs at the same addresses, one stride apart. A put to PE p is thus a copy to
 * the address plus (p - me) * stride, and what the simulator checks of a store it checks of a put: bounds, alignment, and
 * that the memory is allocated. What it can't know, that an address must be symmetric and a PE must exist, is checked
 * here; a call that makes no sense writes down why and traps.
 *
 *     layer                        functions
 *     elements, elements.h         store, load, copy, compare: on addresses that this PE can reach
 *     operations, operations.h     put, get, put_signal, ...: from a symmetric address and a PE to those
 *     names, here                  one function per type and group, generated; all they do is to call an operation
 *
 * Operations that need a body of some size exist once per size of element, not per type.
 */
#include <sim/operations.h>

struct alignas(2) __half {
    unsigned short bits;
};
struct alignas(2) __nv_bfloat16 {
    unsigned short bits;
};

using namespace its;

#define CALL(op, type, group, nbi)                                                                                     \
    INTARSIA_SIM_CALL(INTARSIA_SIM_OP_##op, INTARSIA_SIM_TYPE_##type, group, nbi)
#define WORD(TYPE) Word<(int)sizeof(TYPE), (TYPE)-1 < (TYPE)0>::type
#define UNSIGNED(TYPE) Bits<(int)sizeof(TYPE)>::type

extern "C" {

/* -- PEs and teams ------------------------------------------------------------------------------------------------- */

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

/* -- puts and gets ------------------------------------------------------------------------------------------------- */

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

/* -- order and signals --------------------------------------------------------------------------------------------- */

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

/* -- waits and tests ----------------------------------------------------------------------------------------------- */

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

/* -- atomics ------------------------------------------------------------------------------------------------------- */

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

/* -- barriers ------------------------------------------------------------------------------------------------------ */

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
