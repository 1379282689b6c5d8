/*
 * The NVSHMEM device library of the simulator, seen from the host: compiling it, telling it where it is, and saying
 * what it complained about. The library itself is device/sim/nvshmem.cu.
 */
#ifndef ITS_SIM_NVSHMEM_LIBRARY_H
#define ITS_SIM_NVSHMEM_LIBRARY_H

#include "sim/pe.h"

enum { ITS_NVSHMEM_NAME = 64 };

/* Writes the state that the library reads into `state`, which has `size` bytes; false if that is not its size. */
bool its_nvshmem_tell(const its_pe *pe, const its_team *teams, void *state, size_t size);

/*
 * If a thread complained (`complaint` may be NULL), adds an error that says which call, and what was wrong with it.
 * Returns whether one did.
 */
bool its_nvshmem_explain(its_context *ctx, uint32_t pe, const void *complaint);

/* The name of a call as the library numbers them (INTARSIA_SIM_CALL); `name` has ITS_NVSHMEM_NAME bytes. */
void its_nvshmem_call_name(uint32_t call, char *name);

#endif
