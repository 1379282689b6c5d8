/*
 * Why a blocked grid doesn't get on: a row for each group of threads that waits. A group that goes round a loop is
 * shown with what the loop reads (its last load, and what is there now) and what it compares that with.
 */
#include "sim/waiting.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/buffer.h"
#include "sim/comm_report.h"
#include "sim/exec.h"
#include "sim/fault.h"

enum { MOST_ROWS = 16 };

/* The branch that closes the loop that begins at `from`, or NULL. */
static const its_sim_op *loop_end(const its_sim_grid *grid, const its_sim_op *from) {
    const its_sim_op *end = grid->program->ops + grid->func->first + grid->program->n_ops - grid->func->first;
    for (const its_sim_op *op = from; op < end; op++)
        if (op->kind == ITS_SIM_OP_BRANCH && op->target == from) return op;
    return NULL;
}

static uint64_t value_of(const char *regs, uint32_t offset, uint32_t size, uint32_t lane) {
    uint64_t value = 0;
    if (size) memcpy(&value, regs + offset + (size_t)lane * size, size);
    return value;
}

/* The load that a loop waits on, an acquire if there is one, else the last; and the comparison of what it read. */
static void find_poll(const its_sim_op *from, const its_sim_op *end, const its_sim_op **load,
                      const its_sim_op **compare) {
    *load = *compare = NULL;
    for (const its_sim_op *op = from; op < end; op++) {
        bool polls =
            op->kind == ITS_SIM_OP_ACT && (op->handler == ITS_SIM_ACT_LOAD || op->handler == ITS_SIM_ACT_MBARRIER);
        if (polls && !(*load && ((*load)->flags & ITS_SIM_ACQUIRE) && !(op->flags & ITS_SIM_ACQUIRE))) {
            *load = op;
            *compare = NULL;
        } else if (*load && !*compare && op->kind == ITS_SIM_OP_ALU && op->dst_size == 0 &&
                   (op->a == (*load)->dst || op->b == (*load)->dst)) {
            *compare = op;
        }
    }
}

/* A finding about one fragment: where it waits, for what, and what it sees. */
typedef struct wait_row {
    const its_sim_op *op;
    char wanted[32], seen[64];
} wait_row;

static void describe_poll(const its_sim_grid *grid, const its_sim_warp *warp, const its_sim_frag *frag, wait_row *row) {
    const its_sim_op *end = loop_end(grid, frag->loop), *load, *compare;
    if (!end) return;
    find_poll(frag->loop, end, &load, &compare);
    if (!load) return;
    row->op = load;
    uint32_t lane = (uint32_t)__builtin_ctz(frag->mask);
    const char *regs = warp->regs + frag->base;
    if (load->handler == ITS_SIM_ACT_MBARRIER) {
        snprintf(row->wanted, sizeof(row->wanted), "a phase");
        snprintf(row->seen, sizeof(row->seen), "an mbarrier that is not complete");
        return;
    }
    uint64_t address =
        (load->flags & ITS_SIM_ADDRESS32 ? value_of(regs, load->a, 4, lane) : value_of(regs, load->a, 8, lane)) +
        (uint64_t)load->imm;
    snprintf(row->seen, sizeof(row->seen), "%" PRIu64 " at 0x%" PRIx64, value_of(regs, load->dst, load->reg_size, lane),
             address);
    if (!compare) return;
    uint32_t other = compare->a == load->dst ? compare->b : compare->a;
    uint64_t wanted = value_of(regs, other, load->reg_size, lane);
    snprintf(row->wanted, sizeof(row->wanted), "%" PRIu64, wanted);
    its_sim_comm_describe(its_sim_grid_memory(grid), address, wanted, row->wanted, sizeof row->wanted, row->seen,
                          sizeof row->seen);
}

static bool describe(const its_sim_grid *grid, const its_sim_warp *warp, const its_sim_frag *frag, wait_row *row) {
    *row = (wait_row){.op = frag->pc};
    switch (frag->state) {
    case ITS_SIM_AT_BARRIER:
        snprintf(row->wanted, sizeof(row->wanted), "the CTA");
        snprintf(row->seen, sizeof(row->seen), "barrier %u", (unsigned)frag->barrier);
        return true;
    case ITS_SIM_AT_SYNC:
        snprintf(row->wanted, sizeof(row->wanted), "its warp");
        snprintf(row->seen, sizeof(row->seen), "lanes 0x%08x", (unsigned)frag->member);
        return true;
    default:
        snprintf(row->wanted, sizeof(row->wanted), "-");
        snprintf(row->seen, sizeof(row->seen), "-");
        if (frag->loop) describe_poll(grid, warp, frag, row);
        return true;
    }
}

static void put_row(its_buffer *out, const its_sim_grid *grid, const its_sim_warp *warp, const its_sim_frag *frag,
                    const wait_row *row, uint32_t pe) {
    const its_sim_program *program = grid->program;
    const its_sim_where *where = &program->wheres.items[program->op_where[row->op - program->ops]];
    char cta[48], at[96];
    const char *path;
    uint32_t line = its_sim_user_line(program, where->loc, &path);
    snprintf(cta, sizeof(cta), "(%u, %u, %u)", (unsigned)warp->cta->id[0], (unsigned)warp->cta->id[1],
             (unsigned)warp->cta->id[2]);
    if (line)
        snprintf(at, sizeof(at), "%.80s:%u", path, (unsigned)line);
    else
        snprintf(at, sizeof(at), "line not known");
    its_buffer_printf(out, "\n  %-3u %-16s %-14s %-5u %-8d %-28s %-10s %s", (unsigned)pe, grid->func->name, cta,
                      (unsigned)warp->index, __builtin_popcount(frag->mask), at, row->wanted, row->seen);
}

bool its_sim_grid_sleeps(const its_sim_grid *grid) {
    for (uint32_t s = 0; s < grid->n_slots; s++)
        for (uint32_t w = 0; grid->slots[s].running && w < grid->n_warps; w++) {
            const its_sim_warp *warp = &grid->slots[s].warps[w];
            for (uint32_t f = 0; warp->live && f < warp->n_frags; f++)
                if (warp->frags[f].state == ITS_SIM_ASLEEP && !warp->frags[f].spins) return true;
        }
    return false;
}

typedef struct waits_job {
    its_context *ctx;
    const its_sim_grid *grid;
    uint32_t pe;
    its_buffer text;
} waits_job;

static its_status waits_body(void *user) {
    waits_job *job = user;
    const its_sim_grid *grid = job->grid;
    const its_sim_op *first = NULL;
    uint64_t rows = 0;
    its_buffer_printf(&job->text, "deadlock: no PE can go on, and kernel '%s' of PE %u waits", grid->func->name,
                      (unsigned)job->pe);
    its_buffer_printf(&job->text, "\n  %-3s %-16s %-14s %-5s %-8s %-28s %-10s %s", "PE", "kernel", "CTA", "warp",
                      "threads", "waits at", "for", "and sees");
    for (uint32_t s = 0; s < grid->n_slots; s++) {
        const its_sim_cta *cta = &grid->slots[s];
        for (uint32_t w = 0; cta->running && w < grid->n_warps; w++) {
            const its_sim_warp *warp = &cta->warps[w];
            for (uint32_t f = 0; warp->live && f < warp->n_frags; f++) {
                wait_row row;
                if (!describe(grid, warp, &warp->frags[f], &row)) continue;
                bool polls = warp->frags[f].state == ITS_SIM_READY;
                if (!first || (polls && first->handler != ITS_SIM_ACT_LOAD)) first = row.op;
                if (rows++ < MOST_ROWS) put_row(&job->text, grid, warp, &warp->frags[f], &row, job->pe);
            }
        }
    }
    if (rows > MOST_ROWS) its_buffer_printf(&job->text, "\n  ... and %" PRIu64 " more", rows - MOST_ROWS);
    its_buffer_char(&job->text, 0);
    its_sim_report_at(job->ctx, grid->program, first, job->text.data);
    its_diag_hint(job->ctx,
                  "somebody must write what is waited for: check who should, and that it comes to that point");
    return ITS_OK;
}

void its_sim_grid_waits(its_context *ctx, const its_sim_grid *grid, uint32_t pe) {
    waits_job job = {.ctx = ctx, .grid = grid, .pe = pe};
    its_buffer_init(&job.text, ctx);
    its_protect(ctx, waits_body, &job);
    its_buffer_free(&job.text);
}
