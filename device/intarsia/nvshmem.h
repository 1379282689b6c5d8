/*
 * NVSHMEM's device API, declared only.
 *
 * NVSHMEM's own headers bring its implementation along and take seconds to compile. These declarations have the same names
 * and signatures and cost next to nothing; the definitions are linked in later, only those that are called: NVSHMEM's
 * device library on a GPU, Intarsia's own in the simulator. A device file may also declare by hand what it calls:
 *
 *     extern "C" __device__ void nvshmem_int_p(int *dest, int value, int pe);
 *
 * Works with NVRTC without any other header, with nvcc and with clang, before or after cuda_fp16.h and cuda_bf16.h. If
 * NVSHMEM's own header was included first, this one declares nothing.
 *
 * What the calls do is said in NVSHMEM's documentation; docs/nvshmem.md lists which of them exist here.
 */
#ifndef INTARSIA_NVSHMEM_H
#define INTARSIA_NVSHMEM_H

/* -- types --------------------------------------------------------------------------------------------------------- */

#if defined(__CUDACC_RTC__)
/* Spelled as in <cuda/std/cstdint>, so that both may be included. */
typedef signed char int8_t;
typedef short int16_t;
typedef int int32_t;
typedef long long int64_t;
typedef unsigned char uint8_t;
typedef unsigned short uint16_t;
typedef unsigned int uint32_t;
typedef unsigned long long uint64_t;
typedef decltype((char *)0 - (char *)0) ptrdiff_t;
#else
#include <stddef.h>
#include <stdint.h>
#endif

#if !defined(_NVSHMEM_H_)

struct __half;
typedef struct __half half;
struct __nv_bfloat16;

typedef int32_t nvshmem_team_t;
typedef nvshmem_team_t nvshmemx_team_t;

enum {
    NVSHMEM_TEAM_INVALID = -1,
    NVSHMEM_TEAM_WORLD = 0,
    NVSHMEM_TEAM_SHARED = 1,
    NVSHMEMX_TEAM_NODE = 2,
    NVSHMEMX_TEAM_SAME_MYPE_NODE = 3
};

typedef enum nvshmemi_cmp_type {
    NVSHMEM_CMP_EQ = 0,
    NVSHMEM_CMP_NE = 1,
    NVSHMEM_CMP_GT = 2,
    NVSHMEM_CMP_LE = 3,
    NVSHMEM_CMP_LT = 4,
    NVSHMEM_CMP_GE = 5
} nvshmemx_cmp_type_t;

typedef enum { NVSHMEM_SIGNAL_SET = 9, NVSHMEM_SIGNAL_ADD = 10 } nvshmemx_signal_op_t;

/* -- the types that calls exist for: X(name in the call, C type) ----------------------------------------------------- */

/* Puts and gets. */
#define INTARSIA_NVSHMEM_RMA_TYPES(X)                                                                                  \
    X(bfloat16, __nv_bfloat16)                                                                                         \
    X(half, half)                                                                                                      \
    X(float, float)                                                                                                    \
    X(double, double)                                                                                                  \
    X(char, char)                                                                                                      \
    X(short, short)                                                                                                    \
    X(schar, signed char)                                                                                              \
    X(int, int)                                                                                                        \
    X(long, long)                                                                                                      \
    X(longlong, long long)                                                                                             \
    X(uchar, unsigned char)                                                                                            \
    X(ushort, unsigned short)                                                                                          \
    X(uint, unsigned int)                                                                                              \
    X(ulong, unsigned long)                                                                                            \
    X(ulonglong, unsigned long long)                                                                                   \
    X(int8, int8_t)                                                                                                    \
    X(int16, int16_t)                                                                                                  \
    X(int32, int32_t)                                                                                                  \
    X(int64, int64_t)                                                                                                  \
    X(uint8, uint8_t)                                                                                                  \
    X(uint16, uint16_t)                                                                                                \
    X(uint32, uint32_t)                                                                                                \
    X(uint64, uint64_t)                                                                                                \
    X(size, size_t)                                                                                                    \
    X(ptrdiff, ptrdiff_t)

/* Waits and tests. */
#define INTARSIA_NVSHMEM_WAIT_TYPES(X)                                                                                 \
    X(short, short)                                                                                                    \
    X(int, int)                                                                                                        \
    X(long, long)                                                                                                      \
    X(longlong, long long)                                                                                             \
    X(ushort, unsigned short)                                                                                          \
    X(uint, unsigned int)                                                                                              \
    X(ulong, unsigned long)                                                                                            \
    X(ulonglong, unsigned long long)                                                                                   \
    X(int32, int32_t)                                                                                                  \
    X(int64, int64_t)                                                                                                  \
    X(uint32, uint32_t)                                                                                                \
    X(uint64, uint64_t)                                                                                                \
    X(size, size_t)                                                                                                    \
    X(ptrdiff, ptrdiff_t)

/* Atomics: bitwise; those that can also be added to; those that can only be fetched, set and swapped. */
#define INTARSIA_NVSHMEM_BITWISE_TYPES(X)                                                                              \
    X(uint, unsigned int)                                                                                              \
    X(ulong, unsigned long)                                                                                            \
    X(ulonglong, unsigned long long)                                                                                   \
    X(int32, int32_t)                                                                                                  \
    X(uint32, uint32_t)                                                                                                \
    X(int64, int64_t)                                                                                                  \
    X(uint64, uint64_t)

#define INTARSIA_NVSHMEM_STANDARD_TYPES(X)                                                                             \
    INTARSIA_NVSHMEM_BITWISE_TYPES(X)                                                                                  \
    X(int, int)                                                                                                        \
    X(long, long)                                                                                                      \
    X(longlong, long long)                                                                                             \
    X(size, size_t)                                                                                                    \
    X(ptrdiff, ptrdiff_t)

#define INTARSIA_NVSHMEM_EXTENDED_TYPES(X)                                                                             \
    INTARSIA_NVSHMEM_STANDARD_TYPES(X)                                                                                 \
    X(float, float)                                                                                                    \
    X(double, double)

/* Sizes of elements in bits. */
#define INTARSIA_NVSHMEM_SIZES(X) X(8) X(16) X(32) X(64) X(128)

extern "C" {

/* -- who and where ------------------------------------------------------------------------------------------------- */

__device__ int nvshmem_my_pe(void);
__device__ int nvshmem_n_pes(void);
__device__ int nvshmem_team_my_pe(nvshmem_team_t team);
__device__ int nvshmem_team_n_pes(nvshmem_team_t team);
__device__ int nvshmem_team_translate_pe(nvshmem_team_t src_team, int src_pe, nvshmem_team_t dest_team);
__device__ void *nvshmem_ptr(const void *ptr, int pe);
__device__ void nvshmem_info_get_version(int *major, int *minor);
__device__ void nvshmem_info_get_name(char *name);
__device__ void nvshmemx_vendor_get_version_info(int *major, int *minor, int *patch);

/* -- puts and gets of one value ------------------------------------------------------------------------------------ */

#define INTARSIA_DECLARE(NAME, TYPE)                                                                                   \
    __device__ void nvshmem_##NAME##_p(TYPE *dest, const TYPE value, int pe);                                          \
    __device__ TYPE nvshmem_##NAME##_g(const TYPE *source, int pe);
INTARSIA_NVSHMEM_RMA_TYPES(INTARSIA_DECLARE)
#undef INTARSIA_DECLARE

/* -- puts and gets of many: by one thread, and by all threads of a warp or a block together -------------------------- */

#define INTARSIA_DECLARE_GROUP(X, OP, GROUP, T)                                                                        \
    __device__ void X##OP##GROUP(T *dest, const T *source, size_t nelems, int pe);
#define INTARSIA_DECLARE_STRIDED(X, OP, GROUP, T)                                                                      \
    __device__ void X##OP##GROUP(T *dest, const T *source, ptrdiff_t dst, ptrdiff_t sst, size_t nelems, int pe);
#define INTARSIA_DECLARE_SIGNAL(X, OP, GROUP, T)                                                                       \
    __device__ void X##OP##GROUP(T *dest, const T *source, size_t nelems, uint64_t *sig_addr, uint64_t signal,         \
                                 int sig_op, int pe);
#define INTARSIA_DECLARE_ALL(X, GROUP, T, SUFFIX)                                                                      \
    INTARSIA_DECLARE_GROUP(X, put##SUFFIX, GROUP, T)                                                                   \
    INTARSIA_DECLARE_GROUP(X, get##SUFFIX, GROUP, T)                                                                   \
    INTARSIA_DECLARE_GROUP(X, put##SUFFIX##_nbi, GROUP, T)                                                             \
    INTARSIA_DECLARE_GROUP(X, get##SUFFIX##_nbi, GROUP, T)                                                             \
    INTARSIA_DECLARE_SIGNAL(X, put##SUFFIX##_signal, GROUP, T)                                                         \
    INTARSIA_DECLARE_SIGNAL(X, put##SUFFIX##_signal_nbi, GROUP, T)
#define INTARSIA_DECLARE_BOTH(X, GROUP, T, SUFFIX)                                                                     \
    INTARSIA_DECLARE_ALL(X, GROUP, T, SUFFIX)                                                                          \
    INTARSIA_DECLARE_STRIDED(X, iput##SUFFIX, GROUP, T)                                                                \
    INTARSIA_DECLARE_STRIDED(X, iget##SUFFIX, GROUP, T)

#define INTARSIA_DECLARE(NAME, TYPE)                                                                                   \
    INTARSIA_DECLARE_BOTH(nvshmem_##NAME##_, , TYPE, )                                                                 \
    INTARSIA_DECLARE_BOTH(nvshmemx_##NAME##_, _warp, TYPE, )                                                           \
    INTARSIA_DECLARE_BOTH(nvshmemx_##NAME##_, _block, TYPE, )
INTARSIA_NVSHMEM_RMA_TYPES(INTARSIA_DECLARE)
#undef INTARSIA_DECLARE

#define INTARSIA_DECLARE(BITS)                                                                                         \
    INTARSIA_DECLARE_BOTH(nvshmem_, , void, BITS)                                                                      \
    INTARSIA_DECLARE_BOTH(nvshmemx_, _warp, void, BITS)                                                                \
    INTARSIA_DECLARE_BOTH(nvshmemx_, _block, void, BITS)
INTARSIA_NVSHMEM_SIZES(INTARSIA_DECLARE)
#undef INTARSIA_DECLARE

/* Here `nelems` counts bytes. */
INTARSIA_DECLARE_ALL(nvshmem_, , void, mem)
INTARSIA_DECLARE_ALL(nvshmemx_, _warp, void, mem)
INTARSIA_DECLARE_ALL(nvshmemx_, _block, void, mem)

#undef INTARSIA_DECLARE_GROUP
#undef INTARSIA_DECLARE_STRIDED
#undef INTARSIA_DECLARE_SIGNAL
#undef INTARSIA_DECLARE_ALL
#undef INTARSIA_DECLARE_BOTH

/* -- order --------------------------------------------------------------------------------------------------------- */

__device__ void nvshmem_fence(void);
__device__ void nvshmem_quiet(void);

/* -- signals, waits and tests -------------------------------------------------------------------------------------- */

__device__ void nvshmemx_signal_op(uint64_t *sig_addr, uint64_t signal, int sig_op, int pe);
__device__ uint64_t nvshmem_signal_fetch(uint64_t *sig_addr);
__device__ uint64_t nvshmem_signal_wait_until(uint64_t *sig_addr, int cmp, uint64_t cmp_val);

#define INTARSIA_DECLARE(NAME, TYPE)                                                                                   \
    __device__ void nvshmem_##NAME##_wait_until(TYPE *ivar, int cmp, TYPE cmp_value);                                  \
    __device__ void nvshmem_##NAME##_wait_until_all(TYPE *ivars, size_t nelems, const int *status, int cmp,            \
                                                    TYPE cmp_value);                                                   \
    __device__ size_t nvshmem_##NAME##_wait_until_any(TYPE *ivars, size_t nelems, const int *status, int cmp,          \
                                                      TYPE cmp_value);                                                 \
    __device__ size_t nvshmem_##NAME##_wait_until_some(TYPE *ivars, size_t nelems, size_t *indices,                    \
                                                       const int *status, int cmp, TYPE cmp_value);                    \
    __device__ void nvshmem_##NAME##_wait_until_all_vector(TYPE *ivars, size_t nelems, const int *status, int cmp,     \
                                                           TYPE *cmp_values);                                          \
    __device__ size_t nvshmem_##NAME##_wait_until_any_vector(TYPE *ivars, size_t nelems, const int *status, int cmp,   \
                                                             TYPE *cmp_values);                                        \
    __device__ size_t nvshmem_##NAME##_wait_until_some_vector(TYPE *ivars, size_t nelems, size_t *indices,             \
                                                              const int *status, int cmp, TYPE *cmp_values);           \
    __device__ int nvshmem_##NAME##_test(TYPE *ivar, int cmp, TYPE cmp_value);                                         \
    __device__ int nvshmem_##NAME##_test_all(TYPE *ivars, size_t nelems, const int *status, int cmp, TYPE cmp_value);  \
    __device__ size_t nvshmem_##NAME##_test_any(TYPE *ivars, size_t nelems, const int *status, int cmp,                \
                                                TYPE cmp_value);                                                       \
    __device__ size_t nvshmem_##NAME##_test_some(TYPE *ivars, size_t nelems, size_t *indices, const int *status,       \
                                                 int cmp, TYPE cmp_value);                                             \
    __device__ int nvshmem_##NAME##_test_all_vector(TYPE *ivars, size_t nelems, const int *status, int cmp,            \
                                                    TYPE *cmp_values);                                                 \
    __device__ size_t nvshmem_##NAME##_test_any_vector(TYPE *ivars, size_t nelems, const int *status, int cmp,         \
                                                       TYPE *cmp_values);                                              \
    __device__ size_t nvshmem_##NAME##_test_some_vector(TYPE *ivars, size_t nelems, size_t *indices,                   \
                                                        const int *status, int cmp, TYPE *cmp_values);
INTARSIA_NVSHMEM_WAIT_TYPES(INTARSIA_DECLARE)
#undef INTARSIA_DECLARE

/* -- atomics ------------------------------------------------------------------------------------------------------- */

#define INTARSIA_DECLARE(NAME, TYPE)                                                                                   \
    __device__ TYPE nvshmem_##NAME##_atomic_fetch(const TYPE *source, int pe);                                         \
    __device__ void nvshmem_##NAME##_atomic_set(TYPE *dest, TYPE value, int pe);                                       \
    __device__ TYPE nvshmem_##NAME##_atomic_swap(TYPE *dest, TYPE value, int pe);
INTARSIA_NVSHMEM_EXTENDED_TYPES(INTARSIA_DECLARE)
#undef INTARSIA_DECLARE

#define INTARSIA_DECLARE(NAME, TYPE)                                                                                   \
    __device__ TYPE nvshmem_##NAME##_atomic_compare_swap(TYPE *dest, TYPE cond, TYPE value, int pe);                   \
    __device__ TYPE nvshmem_##NAME##_atomic_fetch_inc(TYPE *dest, int pe);                                             \
    __device__ void nvshmem_##NAME##_atomic_inc(TYPE *dest, int pe);                                                   \
    __device__ TYPE nvshmem_##NAME##_atomic_fetch_add(TYPE *dest, TYPE value, int pe);                                 \
    __device__ void nvshmem_##NAME##_atomic_add(TYPE *dest, TYPE value, int pe);
INTARSIA_NVSHMEM_STANDARD_TYPES(INTARSIA_DECLARE)
#undef INTARSIA_DECLARE

#define INTARSIA_DECLARE(NAME, TYPE)                                                                                   \
    __device__ TYPE nvshmem_##NAME##_atomic_fetch_and(TYPE *dest, TYPE value, int pe);                                 \
    __device__ void nvshmem_##NAME##_atomic_and(TYPE *dest, TYPE value, int pe);                                       \
    __device__ TYPE nvshmem_##NAME##_atomic_fetch_or(TYPE *dest, TYPE value, int pe);                                  \
    __device__ void nvshmem_##NAME##_atomic_or(TYPE *dest, TYPE value, int pe);                                        \
    __device__ TYPE nvshmem_##NAME##_atomic_fetch_xor(TYPE *dest, TYPE value, int pe);                                 \
    __device__ void nvshmem_##NAME##_atomic_xor(TYPE *dest, TYPE value, int pe);
INTARSIA_NVSHMEM_BITWISE_TYPES(INTARSIA_DECLARE)
#undef INTARSIA_DECLARE

/* -- barriers ------------------------------------------------------------------------------------------------------ */

__device__ int nvshmem_barrier(nvshmem_team_t team);
__device__ int nvshmemx_barrier_warp(nvshmem_team_t team);
__device__ int nvshmemx_barrier_block(nvshmem_team_t team);
__device__ void nvshmem_barrier_all(void);
__device__ void nvshmemx_barrier_all_warp(void);
__device__ void nvshmemx_barrier_all_block(void);
__device__ int nvshmem_team_sync(nvshmem_team_t team);
__device__ int nvshmemx_team_sync_warp(nvshmem_team_t team);
__device__ int nvshmemx_team_sync_block(nvshmem_team_t team);
__device__ void nvshmem_sync_all(void);
__device__ void nvshmemx_sync_all_warp(void);
__device__ void nvshmemx_sync_all_block(void);
#define nvshmem_sync nvshmem_team_sync

} /* extern "C" */

#endif /* !_NVSHMEM_H_ */
#endif
