/* See comm_report.h. Global memory is host memory, so what a communicator holds is read where it lies. */
#include "sim/comm_report.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "../../device/intarsia/comm.h"
#include "base/buffer.h"
#include "base/context.h"
#include "base/diag.h"

#define OP_TEXT(id, text) text,
static const char *const op_texts[] = {INTARSIA_COMM_OPS(OP_TEXT)};

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

static void put_team(its_buffer *out, const struct intarsia_comm *comm) {
    its_buffer_printf(out, "PE%s ", comm->size == 1 ? "" : "s");
    for (uint32_t rank = 0; rank < comm->size; rank++)
        its_buffer_printf(out, "%s%" PRIu32, rank ? ", " : "", pe_of(comm, rank));
}

static void put_reason(its_buffer *out, const struct intarsia_comm *comm, const char **hint) {
    const struct intarsia_comm_complaint *it = &comm->complaint;
    *hint = NULL;
    switch (it->reason) {
    case INTARSIA_COMM_WAS_FREED:
        its_buffer_text(out, "the communicator was freed");
        *hint = "free a communicator after the last kernel that uses it";
        return;
    case INTARSIA_COMM_NOT_MEMBER:
        its_buffer_printf(out, "PE %u is no member of the communicator's team", comm->pe);
        *hint = "only the members of a team use its communicator in kernels";
        return;
    case INTARSIA_COMM_NO_BARRIER:
        its_buffer_printf(out, "there is no barrier %u, the communicator has %u", it->number, comm->n_barriers);
        *hint = "make the communicator with more barriers, or launch fewer CTAs";
        return;
    case INTARSIA_COMM_NO_SIGNAL:
        its_buffer_printf(out, "there is no signal %u, the communicator has %u", it->number, comm->n_signals);
        *hint = "make the communicator with more signals";
        return;
    case INTARSIA_COMM_NO_PEER:
        its_buffer_printf(out, "there is no rank %d, the team has %u", (int)it->number, comm->size);
        *hint = "ranks count from 0 within the team";
        return;
    case INTARSIA_COMM_TWO_ARRIVES:
        its_buffer_printf(out, "two arrives at barrier %u without a wait between them", it->number);
        *hint = "each arrive is followed by one wait, of the same index; CTAs that share an index share a barrier";
        return;
    case INTARSIA_COMM_NO_ARRIVE:
        its_buffer_printf(out, "a wait at barrier %u without an arrive before it", it->number);
        *hint = "each wait follows one arrive, of the same index";
        return;
    case INTARSIA_COMM_BAD_GROUP:
        its_buffer_printf(out, "%u is no group of threads", it->number);
        *hint = "use INTARSIA_THREAD, INTARSIA_WARP or INTARSIA_BLOCK";
        return;
    case INTARSIA_COMM_BAD_ORDER:
        its_buffer_printf(out, "%u is no order", it->number);
        *hint = "use INTARSIA_RELAXED, INTARSIA_ACQUIRE, INTARSIA_RELEASE or INTARSIA_ACQ_REL";
        return;
    case INTARSIA_COMM_BAD_SIGNAL_OP:
        its_buffer_printf(out, "%u is no operation on a signal", it->number);
        *hint = "use INTARSIA_SIGNAL_SET or INTARSIA_SIGNAL_ADD";
        return;
    default:
        its_buffer_printf(out, "%u is no comparison", it->number);
        *hint = "compare with INTARSIA_CMP_EQ, NE, GE, GT, LE or LT";
    }
}

typedef struct explain_job {
    its_context *ctx;
    const struct intarsia_comm *comm;
    its_buffer text;
} explain_job;

static its_status explain_body(void *user) {
    explain_job *job = user;
    const struct intarsia_comm_complaint *it = &job->comm->complaint;
    const char *hint;
    its_buffer_printf(&job->text, "%s: ", it->op < INTARSIA_COMM_N_OPS ? op_texts[it->op] : "a communicator");
    put_reason(&job->text, job->comm, &hint);
    its_buffer_printf(&job->text, " (CTA (%u, %u, %u) of a grid of (%u, %u, %u), PE %u; the team is ", it->cta[0],
                      it->cta[1], it->cta[2], it->grid[0], it->grid[1], it->grid[2], job->comm->pe);
    put_team(&job->text, job->comm);
    its_buffer_char(&job->text, ')');
    its_buffer_char(&job->text, 0);
    return its_fail(job->ctx, ITS_ERR_FAULT, hint, "%s", job->text.data);
}

bool its_sim_comm_explain(its_context *ctx, const its_sim_memory *memory) {
    for (size_t i = 0; i < its_sim_memory_count(memory); i++) {
        const its_sim_allocation *allocation = its_sim_memory_get(memory, i);
        if (!is_header(allocation)) continue;
        explain_job job = {.ctx = ctx, .comm = header_at(memory, allocation->base)};
        if (!job.comm || !job.comm->complaint.reason || !job.comm->complaint.ready) continue;
        its_buffer_init(&job.text, ctx);
        its_protect(ctx, explain_body, &job);
        its_buffer_free(&job.text);
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
