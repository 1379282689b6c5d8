/* See explain.h. */
#include "comm/explain.h"

#include <inttypes.h>

#include "../../device/intarsia/comm.h"
#include "base/buffer.h"
#include "base/context.h"
#include "base/diag.h"

#define OP_TEXT(id, text) text,
static const char *const op_texts[] = {INTARSIA_COMM_OPS(OP_TEXT)};

static void put_team(its_buffer *out, const struct intarsia_comm_complaint *it) {
    const uint32_t *pes = (const uint32_t *)(it + 1);
    its_buffer_printf(out, "PE%s ", it->size == 1 ? "" : "s");
    for (uint32_t rank = 0; rank < it->size; rank++) its_buffer_printf(out, "%s%" PRIu32, rank ? ", " : "", pes[rank]);
}

static void put_reason(its_buffer *out, const struct intarsia_comm_complaint *it, const char **hint) {
    *hint = NULL;
    switch (it->reason) {
    case INTARSIA_COMM_WAS_FREED:
        its_buffer_text(out, "the communicator was freed");
        *hint = "free a communicator after the last kernel that uses it";
        return;
    case INTARSIA_COMM_NOT_MEMBER:
        its_buffer_printf(out, "PE %u is no member of the communicator's team", it->pe);
        *hint = "only the members of a team use its communicator in kernels";
        return;
    case INTARSIA_COMM_NO_BARRIER:
        its_buffer_printf(out, "there is no barrier %u, the communicator has %u", it->number, it->n_barriers);
        *hint = "make the communicator with more barriers, or launch fewer CTAs";
        return;
    case INTARSIA_COMM_NO_SIGNAL:
        its_buffer_printf(out, "there is no signal %u, the communicator has %u", it->number, it->n_signals);
        *hint = "make the communicator with more signals";
        return;
    case INTARSIA_COMM_NO_PEER:
        its_buffer_printf(out, "there is no rank %d, the team has %u", (int)it->number, it->size);
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
    const struct intarsia_comm_complaint *it;
    its_buffer text;
} explain_job;

static its_status explain_body(void *user) {
    explain_job *job = user;
    const struct intarsia_comm_complaint *it = job->it;
    const char *hint;
    its_buffer_printf(&job->text, "%s: ", it->op < INTARSIA_COMM_N_OPS ? op_texts[it->op] : "a communicator");
    put_reason(&job->text, it, &hint);
    its_buffer_printf(&job->text, " (CTA (%u, %u, %u) of a grid of (%u, %u, %u), PE %u; the team is ", it->cta[0],
                      it->cta[1], it->cta[2], it->grid[0], it->grid[1], it->grid[2], it->pe);
    put_team(&job->text, it);
    its_buffer_char(&job->text, ')');
    its_buffer_char(&job->text, 0);
    return its_fail(job->ctx, ITS_ERR_FAULT, hint, "%s", job->text.data);
}

bool its_comm_explain(its_context *ctx, const void *memory, size_t size) {
    const struct intarsia_comm_complaint *it = memory;
    if (size < sizeof *it || it->magic != INTARSIA_COMM_COMPLAINT) return false;
    if (!*(const volatile unsigned *)&it->ready || it->size > (size - sizeof *it) / sizeof(uint32_t)) return false;
    explain_job job = {.ctx = ctx, .it = it};
    its_buffer_init(&job.text, ctx);
    its_protect(ctx, explain_body, &job);
    its_buffer_free(&job.text);
    return true;
}
