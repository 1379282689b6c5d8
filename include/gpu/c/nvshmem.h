/*
 * NVSHMEM's host API for host files in C. NVSHMEM's own <nvshmem.h> brings its device code along, which only C++ can
 * read; its <nvshmem_host.h> is C but for a few names that it takes for granted. A C++ or CUDA host file includes
 * NVSHMEM's headers without any of this.
 */
#ifndef INTARSIA_GPU_NVSHMEM_H
#define INTARSIA_GPU_NVSHMEM_H

#include <assert.h>
#include <stdbool.h>

#include <cuda_bf16.h>
#include <cuda_fp16.h>

/* In C these types have no names but those of their bits. */
typedef __half_raw half;
typedef __nv_bfloat16_raw __nv_bfloat16;

#include <nvshmem_host.h>

#endif
