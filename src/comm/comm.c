/*
 * Communicators, on any backend: see intarsia/comm.h, and device/intarsia/comm.h for how they lie in memory.
 *
 *     allocate, zero      the block that peers write
 *     meet                nobody goes on before everybody's block is zero
 *     publish             the header, which is what kernels are given
 */
#include "intarsia/comm.h"

#include <string.h>

#include "../../device/intarsia/comm.h"
#include "base/arena.h"
#include "base/diag.h"

struct its_comm {
    its_backend *backend;
    its_comm_info info;
    uint64_t block;     /* symmetric */
    size_t block_size;  /* bytes */
    uint64_t complaint; /* of the host */
    uint64_t *deltas;   /* by rank */
    uint32_t *pes;
};

/* -- sizes --------------------------------------------------------------------------------------------------------- */

enum { WORD = sizeof(uint64_t) };

static size_t slots_at(void) {
    return sizeof(struct intarsia_comm_block);
}
static size_t signals_at(const its_comm_info *info) {
    return slots_at() + (size_t)info->n_barriers * info->size * WORD;
}
static size_t block_size(const its_comm_info *info) {
    return signals_at(info) + (size_t)info->n_signals * WORD;
}

static size_t states_at(const its_comm_info *info) {
    size_t pes = sizeof(struct intarsia_comm) + (size_t)info->size * (WORD + sizeof(uint32_t));
    return (pes + 15) & ~(size_t)15;
}
static size_t header_size(const its_comm_info *info) {
    return states_at(info) + (size_t)info->n_barriers * sizeof(struct intarsia_barrier_state);
}
static size_t complaint_size(const its_comm_info *info) {
    return sizeof(struct intarsia_comm_complaint) + info->size * sizeof(uint32_t);
}

/* -- options ------------------------------------------------------------------------------------------------------- */

static its_status check_counts(its_context *ctx, const its_comm_options *options, uint32_t n_pes) {
    if (options->n_barriers > ITS_COMM_MOST || options->n_signals > ITS_COMM_MOST)
        return its_fail(ctx, ITS_ERR_USAGE, NULL, "a communicator has %u barriers and signals at most, not %u and %u",
                        ITS_COMM_MOST, options->n_barriers, options->n_signals);
    if (options->n_barriers == 0 && options->n_signals == 0)
        return its_fail(ctx, ITS_ERR_USAGE, "say how many: one barrier for each CTA that takes part is usual",
                        "a communicator without barriers and signals is of no use");
    if (options->team && options->n_team == 0)
        return its_fail(ctx, ITS_ERR_USAGE, "leave the team away to mean all PEs", "a team has at least one PE");
    if (options->team && options->n_team > n_pes)
        return its_fail(ctx, ITS_ERR_USAGE, NULL, "a team of %u PEs is larger than the world of %u", options->n_team,
                        n_pes);
    return ITS_OK;
}

static its_status check_team(its_context *ctx, const its_comm_options *options, uint32_t n_pes) {
    its_status status = check_counts(ctx, options, n_pes);
    for (uint32_t i = 0; options->team && i < options->n_team && status == ITS_OK; i++) {
        if (options->team[i] >= n_pes)
            return its_fail(ctx, ITS_ERR_USAGE, "PEs are numbered from 0",
                            "there is no PE %u for the team; there are %u", options->team[i], n_pes);
        for (uint32_t j = 0; j < i; j++)
            if (options->team[j] == options->team[i])
                return its_fail(ctx, ITS_ERR_USAGE, NULL, "PE %u is in the team twice, as rank %u and as rank %u",
                                options->team[i], j, i);
    }
    return status;
}

/* -- making -------------------------------------------------------------------------------------------------------- */

static void release(its_comm *comm) {
    its_context *ctx = comm->backend->ctx;
    its_free(ctx, comm->deltas);
    its_free(ctx, comm->pes);
    its_free(ctx, comm);
}

static its_comm *new_comm(its_backend *backend, const its_comm_options *options, uint32_t pe, uint32_t n_pes) {
    its_comm *comm = its_block_alloc(backend->ctx, sizeof *comm);
    if (!comm) return NULL;
    *comm = (its_comm){.backend = backend};
    its_comm_info *info = &comm->info;
    *info =
        (its_comm_info){.n_barriers = options->n_barriers, .n_signals = options->n_signals, .rank = ITS_COMM_NO_RANK};
    info->size = options->team ? options->n_team : n_pes;
    info->pes = comm->pes = its_block_alloc(backend->ctx, info->size * sizeof *comm->pes);
    comm->deltas = its_block_alloc(backend->ctx, info->size * sizeof *comm->deltas);
    if (!comm->pes || !comm->deltas) {
        release(comm);
        return NULL;
    }
    for (uint32_t rank = 0; rank < info->size; rank++) {
        comm->pes[rank] = options->team ? options->team[rank] : rank;
        comm->deltas[rank] = 0;
        if (comm->pes[rank] == pe) info->rank = rank;
    }
    info->local_rank = info->rank;
    info->local_size = info->size;
    return comm;
}

/* Memory that every PE's block is zero of, before any PE goes on. */
static its_status make_block(its_comm *comm) {
    its_backend *backend = comm->backend;
    const its_backend_ops *ops = backend->ops;
    comm->block_size = block_size(&comm->info);
    its_status status = ops->alloc(backend, ITS_MEMORY_SYMMETRIC, comm->block_size, 0, &comm->block);
    if (status == ITS_OK) status = ops->fill(backend, comm->block, 0, comm->block_size, 0);
    if (status == ITS_OK) status = ops->barrier(backend);
    return status;
}

static its_status find_peers(its_comm *comm) {
    its_backend *backend = comm->backend;
    for (uint32_t rank = 0; rank < comm->info.size; rank++) {
        uint64_t mapped;
        its_status status = backend->ops->peer(backend, comm->block, comm->pes[rank], &mapped);
        if (status != ITS_OK) return status;
        comm->deltas[rank] = mapped - comm->block;
    }
    return ITS_OK;
}

/* Stays as long as the header, whose kernels may complain. */
static its_status make_complaint(its_comm *comm, uint32_t pe) {
    const its_comm_info *info = &comm->info;
    its_backend *backend = comm->backend;
    its_status status = backend->ops->alloc(backend, ITS_MEMORY_HOST, complaint_size(info), 0, &comm->complaint);
    if (status != ITS_OK) return status;
    struct intarsia_comm_complaint *complaint = (struct intarsia_comm_complaint *)(uintptr_t)comm->complaint;
    *complaint = (struct intarsia_comm_complaint){.pe = pe,
                                                  .size = info->size,
                                                  .n_barriers = info->n_barriers,
                                                  .n_signals = info->n_signals,
                                                  .magic = INTARSIA_COMM_COMPLAINT};
    memcpy(complaint + 1, comm->pes, info->size * sizeof *comm->pes);
    return ITS_OK;
}

static void write_header(const its_comm *comm, uint32_t pe, uint32_t n_pes, char *out) {
    const its_comm_info *info = &comm->info;
    uint64_t at = info->device;
    struct intarsia_comm header = {
        .magic = INTARSIA_COMM_LIVE,
        .rank = info->rank,
        .size = info->size,
        .n_barriers = info->n_barriers,
        .n_signals = info->n_signals,
        .local_rank = info->local_rank,
        .local_size = info->local_size,
        .pe = pe,
        .n_pes = n_pes,
        .block = comm->block,
        .slots = comm->block + slots_at(),
        .signals = comm->block + signals_at(info),
        .deltas = at + sizeof header,
        .pes = at + sizeof header + (uint64_t)info->size * WORD,
        .states = at + states_at(info),
        .complaint = comm->complaint,
    };
    memset(out, 0, header_size(info));
    memcpy(out, &header, sizeof header);
    memcpy(out + sizeof header, comm->deltas, info->size * sizeof *comm->deltas);
    memcpy(out + sizeof header + (size_t)info->size * WORD, comm->pes, info->size * sizeof *comm->pes);
}

static its_status publish(its_comm *comm, uint32_t pe, uint32_t n_pes) {
    its_backend *backend = comm->backend;
    size_t size = header_size(&comm->info);
    char *header = its_block_alloc(backend->ctx, size);
    if (!header) return its_fail(backend->ctx, ITS_ERR_NOMEM, NULL, "no memory for a communicator");
    its_status status = backend->ops->alloc(backend, ITS_MEMORY_DEVICE, size, 0, &comm->info.device);
    if (status != ITS_OK) {
        its_free(backend->ctx, header);
        return status;
    }
    write_header(comm, pe, n_pes, header);
    struct intarsia_comm_block mark = {INTARSIA_COMM_BLOCK, comm->info.device};
    status = backend->ops->copy(backend, ITS_COPY_TO_DEVICE, comm->block, (uint64_t)(uintptr_t)&mark, sizeof mark, 0);
    if (status == ITS_OK)
        status =
            backend->ops->copy(backend, ITS_COPY_TO_DEVICE, comm->info.device, (uint64_t)(uintptr_t)header, size, 0);
    its_free(backend->ctx, header);
    return status;
}

its_status its_comm_new(its_backend *backend, const its_comm_options *options, its_comm **out) {
    *out = NULL;
    uint32_t pe, n_pes;
    backend->ops->identity(backend, &pe, &n_pes);
    its_status status = check_team(backend->ctx, options, n_pes);
    if (status != ITS_OK) return status;
    its_comm *comm = new_comm(backend, options, pe, n_pes);
    if (!comm) return its_fail(backend->ctx, ITS_ERR_NOMEM, NULL, "no memory for a communicator");
    status = make_block(comm);
    if (status == ITS_OK) status = find_peers(comm);
    if (status == ITS_OK) status = make_complaint(comm, pe);
    if (status == ITS_OK) status = publish(comm, pe, n_pes);
    if (status == ITS_OK)
        *out = comm;
    else
        release(comm);
    return status;
}

/* -- freeing ------------------------------------------------------------------------------------------------------- */

its_status its_comm_free(its_comm *comm) {
    if (!comm) return ITS_OK;
    its_backend *backend = comm->backend;
    uint64_t freed = INTARSIA_COMM_FREED;
    its_status status = backend->ops->barrier(backend);
    if (status == ITS_OK)
        status = backend->ops->copy(backend, ITS_COPY_TO_DEVICE, comm->info.device, (uint64_t)(uintptr_t)&freed,
                                    sizeof freed, 0);
    if (status == ITS_OK) status = backend->ops->free(backend, ITS_MEMORY_SYMMETRIC, comm->block);
    release(comm);
    return status;
}

/* -- asking -------------------------------------------------------------------------------------------------------- */

const its_comm_info *its_comm_query(const its_comm *comm) {
    return &comm->info;
}

its_status its_comm_peer(its_comm *comm, uint64_t address, uint32_t rank, uint64_t *mapped) {
    its_backend *backend = comm->backend;
    if (rank >= comm->info.size)
        return its_fail(backend->ctx, ITS_ERR_INPUT, "ranks count from 0 within the team",
                        "there is no rank %u; the team has %u", rank, comm->info.size);
    return backend->ops->peer(backend, address, comm->pes[rank], mapped);
}

its_status its_comm_check_index(its_comm *comm, const char *kernel, uint64_t most, const uint32_t grid[3]) {
    if (most < comm->info.n_barriers) return ITS_OK;
    return its_fail(comm->backend->ctx, ITS_ERR_INPUT, "make the communicator with more barriers, or launch fewer CTAs",
                    "kernel '%s' uses barrier %llu of a communicator that has %u; its grid is (%u, %u, %u)", kernel,
                    (unsigned long long)most, comm->info.n_barriers, grid[0], grid[1], grid[2]);
}
