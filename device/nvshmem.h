/* NVSHMEM's device API under its own header's name; NVSHMEM's own header is used where -I names its directory. */
#include <intarsia/nvshmem.h>
