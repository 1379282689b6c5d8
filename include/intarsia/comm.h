/*
 * Communicators: what barriers and signals inside kernels work on (device/intarsia/barrier.h, docs/barriers.md).
 *
 * A communicator belongs to a team, some PEs of the world in an order of their own: ranks. It has a number of barriers
 * and of signals, in symmetric memory that belongs to this communicator alone, so teams may overlap.
 */
#ifndef INTARSIA_COMM_H
#define INTARSIA_COMM_H

#include "intarsia/backend.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct its_comm its_comm;

#define ITS_COMM_MOST (1u << 20) /* barriers, and signals, of one communicator */
#define ITS_COMM_NO_RANK UINT32_MAX

typedef struct its_comm_options {
    uint32_t n_barriers, n_signals;
    const uint32_t *team; /* PEs, the one of rank 0 first; NULL: all, in their order */
    uint32_t n_team;
} its_comm_options;

typedef struct its_comm_info {
    uint64_t device; /* what kernels are given */
    uint32_t n_barriers, n_signals;
    uint32_t rank, size;             /* of this PE, ITS_COMM_NO_RANK if it is no member; of the team */
    uint32_t local_rank, local_size; /* among the members that are reached by loads and stores: all of them, so far */
    const uint32_t *pes;             /* by rank; lives as long as the communicator */
} its_comm_info;

/*
 * Collective: every PE of the world makes the call with the same options, also those that are not in the team. Memory
 * is allocated and zeroed, then all PEs meet, then the communicator is published: nobody can arrive at a barrier that
 * another PE is still about to zero. ITS_ERR_USAGE if the options make no sense, ITS_ERR_INPUT if a member is not
 * reached by loads and stores. On failure `*comm` is NULL; symmetric memory that was allocated already stays, since
 * giving it back is collective.
 */
ITS_API its_status its_comm_new(its_backend *backend, const its_comm_options *options, its_comm **comm);

/*
 * Collective. Waits for this PE's work and for all PEs, then gives the memory back. What kernels were given stays as a
 * mark that says "freed", until the backend is closed, so that a kernel that still uses it is told. `comm` is gone
 * whatever is returned: ITS_ERR_FAULT if a kernel failed before. Before the backend is closed; NULL is fine.
 */
ITS_API its_status its_comm_free(its_comm *comm);

/* What the communicator is; lives as long as it. */
ITS_API const its_comm_info *its_comm_query(const its_comm *comm);

/*
 * The address at which this PE reaches `address`, symmetric memory of its own, on the PE of rank `rank`; ITS_ERR_INPUT
 * if there is no such rank or `address` is not symmetric.
 */
ITS_API its_status its_comm_peer(its_comm *comm, uint64_t address, uint32_t rank, uint64_t *mapped);

/*
 * For launchers: whether a launch of `kernel` on `grid` whose largest index is `most`, counted from 0, stays within the
 * barriers that there are; ITS_ERR_INPUT with all three in the error if not.
 */
ITS_API its_status its_comm_check_index(its_comm *comm, const char *kernel, uint64_t most, const uint32_t grid[3]);

#ifdef __cplusplus
}
#endif
#endif
