/*
 * NVSHMEM's host API as host files see it in the simulator: the same names, types and values. A file that compiles
 * against this header also compiles, unchanged, against NVSHMEM's own; what is not here fails to compile, by name.
 * docs/nvshmem.md lists what there is.
 *
 * Symmetric memory of the simulator is memory of this process, so reading it through its pointer happens to work here.
 * It does not on a GPU: use cudaMemcpy.
 */
#ifndef INTARSIA_SIM_NVSHMEM_H
#define INTARSIA_SIM_NVSHMEM_H

#include <limits.h>
#include <stddef.h>
#include <stdint.h>

#include "cuda_runtime.h"

#ifdef __cplusplus
extern "C" {
#endif

#define NVSHMEM_MAJOR_VERSION 1
#define NVSHMEM_MINOR_VERSION 3
#define NVSHMEM_VENDOR_MAJOR_VERSION 3
#define NVSHMEM_VENDOR_MINOR_VERSION 4
#define NVSHMEM_VENDOR_PATCH_VERSION 5
#define NVSHMEM_VENDOR_VERSION \
    ((NVSHMEM_VENDOR_MAJOR_VERSION)*10000 + (NVSHMEM_VENDOR_MINOR_VERSION)*100 + (NVSHMEM_VENDOR_PATCH_VERSION))
#define NVSHMEM_MAX_NAME_LEN 256

/* -- types and constants ------------------------------------------------------------------------------------------- */

typedef int32_t nvshmem_team_t;
typedef nvshmem_team_t nvshmemx_team_t;

typedef enum {
    NVSHMEM_TEAM_INVALID = -1,
    NVSHMEM_TEAM_WORLD = 0,
    NVSHMEM_TEAM_SHARED = 1,
    NVSHMEMX_TEAM_NODE = 2,
    NVSHMEMX_TEAM_SAME_MYPE_NODE = 3
} nvshmem_team_id_t;

typedef struct {
    int version;
    int num_contexts;
    uint64_t uniqueid;
    char padding[48];
} nvshmem_team_config_t;

typedef enum nvshmemi_cmp_type {
    NVSHMEM_CMP_EQ = 0,
    NVSHMEM_CMP_NE = 1,
    NVSHMEM_CMP_GT = 2,
    NVSHMEM_CMP_LE = 3,
    NVSHMEM_CMP_LT = 4,
    NVSHMEM_CMP_GE = 5
} nvshmemx_cmp_type_t;

typedef enum { NVSHMEM_SIGNAL_SET = 9, NVSHMEM_SIGNAL_ADD = 10 } nvshmemx_signal_op_t;

enum nvshmemi_thread_support {
    NVSHMEM_THREAD_SINGLE = 0,
    NVSHMEM_THREAD_FUNNELED = 1,
    NVSHMEM_THREAD_SERIALIZED = 2,
    NVSHMEM_THREAD_MULTIPLE = 3
};

/* The types that host calls exist for: X(name in the call, C type). */
#define INTARSIA_NVSHMEM_HOST_TYPES(X) \
    X(float, float)                    \
    X(double, double)                  \
    X(char, char)                      \
    X(short, short)                    \
    X(schar, signed char)              \
    X(int, int)                        \
    X(long, long)                      \
    X(longlong, long long)             \
    X(uchar, unsigned char)            \
    X(ushort, unsigned short)          \
    X(uint, unsigned int)              \
    X(ulong, unsigned long)            \
    X(ulonglong, unsigned long long)   \
    X(int8, int8_t)                    \
    X(int16, int16_t)                  \
    X(int32, int32_t)                  \
    X(int64, int64_t)                  \
    X(uint8, uint8_t)                  \
    X(uint16, uint16_t)                \
    X(uint32, uint32_t)                \
    X(uint64, uint64_t)                \
    X(size, size_t)                    \
    X(ptrdiff, ptrdiff_t)

#define INTARSIA_NVSHMEM_HOST_WAIT_TYPES(X) \
    X(short, short)                         \
    X(int, int)                             \
    X(long, long)                           \
    X(longlong, long long)                  \
    X(ushort, unsigned short)               \
    X(uint, unsigned int)                   \
    X(ulong, unsigned long)                 \
    X(ulonglong, unsigned long long)        \
    X(int32, int32_t)                       \
    X(int64, int64_t)                       \
    X(uint32, uint32_t)                     \
    X(uint64, uint64_t)                     \
    X(size, size_t)                         \
    X(ptrdiff, ptrdiff_t)

/* -- beginning and end --------------------------------------------------------------------------------------------- */

void nvshmem_init(void);
int nvshmem_init_thread(int requested, int *provided);
void nvshmem_query_thread(int *provided);
void nvshmem_finalize(void);
void nvshmem_global_exit(int status);

int nvshmem_my_pe(void);
int nvshmem_n_pes(void);
void nvshmem_info_get_version(int *major, int *minor);
void nvshmem_info_get_name(char *name);
void nvshmemx_vendor_get_version_info(int *major, int *minor, int *patch);

/* -- teams --------------------------------------------------------------------------------------------------------- */

int nvshmem_team_my_pe(nvshmem_team_t team);
int nvshmem_team_n_pes(nvshmem_team_t team);
int nvshmem_team_translate_pe(nvshmem_team_t src_team, int src_pe, nvshmem_team_t dest_team);
int nvshmem_team_split_strided(nvshmem_team_t parent_team, int PE_start, int PE_stride, int PE_size,
                               const nvshmem_team_config_t *config, long config_mask, nvshmem_team_t *new_team);
void nvshmem_team_destroy(nvshmem_team_t team);

/* -- memory -------------------------------------------------------------------------------------------------------- */

void *nvshmem_malloc(size_t size);
void *nvshmem_calloc(size_t count, size_t size);
void *nvshmem_align(size_t alignment, size_t size);
void nvshmem_free(void *ptr);
void *nvshmem_ptr(const void *ptr, int pe);

/* -- order and barriers -------------------------------------------------------------------------------------------- */

void nvshmem_quiet(void);
void nvshmem_fence(void);
int nvshmem_barrier(nvshmem_team_t team);
void nvshmem_barrier_all(void);
int nvshmem_team_sync(nvshmem_team_t team);
void nvshmem_sync_all(void);
#define nvshmem_sync nvshmem_team_sync

/* -- puts and gets ------------------------------------------------------------------------------------------------- */

void nvshmem_putmem(void *dest, const void *source, size_t bytes, int pe);
void nvshmem_getmem(void *dest, const void *source, size_t bytes, int pe);
void nvshmem_putmem_nbi(void *dest, const void *source, size_t bytes, int pe);
void nvshmem_getmem_nbi(void *dest, const void *source, size_t bytes, int pe);
uint64_t nvshmem_signal_fetch(uint64_t *sig_addr);

#define INTARSIA_DECLARE(NAME, TYPE)                                                      \
    void nvshmem_##NAME##_p(TYPE *dest, const TYPE value, int pe);                        \
    TYPE nvshmem_##NAME##_g(const TYPE *source, int pe);                                  \
    void nvshmem_##NAME##_put(TYPE *dest, const TYPE *source, size_t nelems, int pe);     \
    void nvshmem_##NAME##_get(TYPE *dest, const TYPE *source, size_t nelems, int pe);     \
    void nvshmem_##NAME##_put_nbi(TYPE *dest, const TYPE *source, size_t nelems, int pe); \
    void nvshmem_##NAME##_get_nbi(TYPE *dest, const TYPE *source, size_t nelems, int pe);
INTARSIA_NVSHMEM_HOST_TYPES(INTARSIA_DECLARE)
#undef INTARSIA_DECLARE

#ifdef __cplusplus
} /* extern "C" */
#endif
#endif
