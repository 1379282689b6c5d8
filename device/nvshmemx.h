/* NVSHMEM's extensions are declared with the rest. */
#include <intarsia/nvshmem.h>
