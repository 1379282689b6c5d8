/* NVSHMEM's extensions for host files in C; <nvshmem_host.h> has them too. */
#include "nvshmem.h"
