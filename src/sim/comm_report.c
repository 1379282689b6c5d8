/* See comm_report.h. Global memory is host memory, so what a communicator holds is read where it lies. */
#include "sim/comm_report.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "../../device/intarsia/comm.h"
#include "comm/explain.h"

/* -- finding ------------------------------------------------------------------------------------------------------- */

static const void *host(uint64_t address) {
    return (const void *)(uintptr_t)address;
}

static bool is_header(const its_sim_allocation *allocation) {
    if (!allocation || allocation->kind != ITS_SIM_DEVICE || allocation->size < sizeof(struct intarsia_comm))
        return false;
    const struct intarsia_comm *comm = host(allocation->base);
    return comm->magic == INTARSIA_COMM_LIVE || comm->magic == INTARSIA_COMM_FREED;
}

/* Kernels can write headers: nothing in one is believed that does not fit the memory around it. */
static const struct intarsia_comm *header_at(const its_sim_memory *memory, uint64_t address) {
    const its_sim_allocation *allocation = its_sim_memory_at(memory, address);
    if (!is_header(allocation) || allocation->base != address) return NULL;
    const struct intarsia_comm *comm = host(address);
    uint64_t most = (allocation->size - sizeof *comm) / (sizeof(uint64_t) + sizeof(uint32_t));
    return comm->size && comm->size <= most ? comm : NULL;
}

static uint32_t pe_of(const struct intarsia_comm *comm, uint32_t rank) {
    uint32_t pe;
    memcpy(&pe, (const char *)(comm + 1) + comm->size * sizeof(uint64_t) + rank * sizeof pe, sizeof pe);
    return pe;
}

/* -- complaints ---------------------------------------------------------------------------------------------------- */

bool its_sim_comm_explain(its_context *ctx, const its_sim_memory *memory) {
    for (size_t i = 0; i < its_sim_memory_count(memory); i++) {
        const its_sim_allocation *allocation = its_sim_memory_get(memory, i);
        if (allocation->kind == ITS_SIM_HOST && its_comm_explain(ctx, host(allocation->base), allocation->size))
            return true;
    }
    return false;
}

/* -- polls --------------------------------------------------------------------------------------------------------- */

bool its_sim_comm_describe(const its_sim_memory *memory, uint64_t address, uint64_t wanted, char *waits,
                           size_t waits_size, char *sees, size_t sees_size) {
    const its_sim_allocation *allocation = its_sim_memory_at(memory, address);
    if (!allocation || allocation->kind != ITS_SIM_SYMMETRIC || allocation->size < sizeof(struct intarsia_comm_block))
        return false;
    const struct intarsia_comm_block *block = host(allocation->base);
    if (block->magic != INTARSIA_COMM_BLOCK) return false;
    const struct intarsia_comm *comm = header_at(memory, block->comm);
    if (!comm || address < comm->slots) return false;
    uint64_t word = (address - comm->slots) / sizeof(uint64_t), slots = (uint64_t)comm->n_barriers * comm->size, seen;
    memcpy(&seen, host(address), sizeof seen);
    if (word < slots) {
        snprintf(waits, waits_size, "barrier %" PRIu64, word / comm->size);
        snprintf(sees, sees_size, "PE %u has not come: it arrived %" PRIu64 " times, not %" PRIu64,
                 (unsigned)pe_of(comm, (uint32_t)(word % comm->size)), seen, wanted);
    } else {
        snprintf(waits, waits_size, "%" PRIu64, wanted);
        snprintf(sees, sees_size, "%" PRIu64 " in signal %" PRIu64, seen, word - slots);
    }
    return true;
}
