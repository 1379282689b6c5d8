/*
 * Why a blocked grid doesn't get on: a row for each group of threads that waits. A group that goes round a loop is
 * shown with what the loop reads (its last load, and what is there now) and what it compares that with.
 */
#include "sim/waiting.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/buffer.h"
#include "ptx/module.h"
#include "sim/async.h"
#include "sim/comm_report.h"
#include "sim/fault.h"
#include "sim/modes.h"

enum { MOST_ROWS = 16, LONGEST_PATH = 72 };

static uint64_t value_of(const char *regs, uint32_t offset, uint32_t size, uint32_t lane) {
    uint64_t value = 0;
    if (size) memcpy(&value, regs + offset + (size_t)lane * size, size);
    return value;
}

static bool is_copy(const its_sim_op *op) {
    return op->handler == ITS_SIM_COPY_16 || op->handler == ITS_SIM_COPY_32 || op->handler == ITS_SIM_COPY_64;
}

/* What a loop compares with what `load` has read: where that is, in the frame; UINT32_MAX if it can't be told. */
static uint32_t compared_with(const its_sim_op *load, const its_sim_op *end) {
    uint32_t read = load->dst;
    for (const its_sim_op *op = load + 1; op <= end; op++) {
        if (op->kind != ITS_SIM_OP_ALU) continue;
        if (is_copy(op) && op->a == read)
            read = op->dst;
        else if (op->dst_size == 0 && (op->a == read || op->b == read))
            return op->a == read ? op->b : op->a;
    }
    if (load->handler == ITS_SIM_ACT_ATOM && load->mode == ITS_ATOM_CAS) return load->b;
    for (const its_sim_op *op = end; op > load; op--) /* by a detour: what ends the loop */
        if (op->kind == ITS_SIM_OP_ALU && op->dst_size == 0 && op->dst == end->guard) return op->b;
    return UINT32_MAX;
}

/* A finding about one fragment: where it waits, for what, and what it sees. */
typedef struct wait_row {
    const its_sim_op *op;
    bool polls; /* it goes round a loop */
    char wanted[32], seen[96];
} wait_row;

static void describe_mbarrier(const its_sim_cta *cta, uint32_t address, wait_row *row) {
    snprintf(row->wanted, sizeof(row->wanted), "a phase");
    snprintf(row->seen, sizeof(row->seen), "an mbarrier that is not complete");
    for (uint32_t i = 0; cta->mbarriers && i < cta->mbarriers->count; i++) {
        const its_sim_mbarrier *barrier = &cta->mbarriers->items[i];
        if (barrier->address != address) continue;
        snprintf(row->wanted, sizeof(row->wanted), "phase %u", (unsigned)barrier->phase);
        snprintf(row->seen, sizeof(row->seen), "%u arrivals, %d bytes missing", (unsigned)barrier->pending,
                 (int)barrier->bytes);
    }
}

/* The word of `size` bytes that is at an address now; false if that can't be told. */
static bool read_word(const its_sim_cta *cta, const its_sim_op *op, uint64_t address, uint32_t size, uint64_t *word) {
    its_sim_range range;
    const void *at = NULL;
    uint64_t shared = (address & UINT32_MAX) - ITS_SIM_SHARED_BEGIN;
    if (op->space == ITS_SPACE_SHARED ||
        address >> ITS_SIM_WINDOW_SHIFT == ITS_SIM_WINDOW_SHARED >> ITS_SIM_WINDOW_SHIFT)
        at = size <= cta->grid->shared_size && shared <= cta->grid->shared_size - size ? cta->shared + shared : NULL;
    else if (its_sim_memory_find(cta->grid->program->machine->memory, address, &range) && size <= range.end - address)
        at = (const void *)(uintptr_t)address;
    *word = 0;
    if (at) memcpy(word, at, size);
    return at != NULL;
}

/* "5 at 0x200040222130, byte 24 of 72": which of an array of flags it is. */
static void describe_word(const its_sim_cta *cta, uint64_t address, uint64_t word, wait_row *row) {
    const its_sim_memory *memory = its_sim_grid_memory(cta->grid);
    its_sim_nearby nearby = {0};
    int size = snprintf(row->seen, sizeof(row->seen), "%" PRIu64 " at 0x%" PRIx64, word, address);
    its_sim_memory_explain(memory, address, &nearby);
    if (nearby.what == ITS_SIM_NEAR_INSIDE && nearby.allocation.size > sizeof(uint64_t))
        snprintf(row->seen + size, sizeof(row->seen) - (size_t)size, ", byte %" PRIu64 " of %" PRIu64, nearby.distance,
                 nearby.allocation.size);
}

static void describe_poll(const its_sim_warp *warp, const its_sim_frag *frag, wait_row *row) {
    const its_sim_op *op = frag->spin.polled;
    if (!op) return;
    row->op = op;
    row->polls = true;
    if (op->handler == ITS_SIM_ACT_MBARRIER) {
        describe_mbarrier(warp->cta, (uint32_t)frag->spin.polled_at, row);
        return;
    }
    uint32_t size = op->size <= 8 ? op->size : 8, lane = (uint32_t)__builtin_ctz(frag->mask);
    uint64_t word;
    if (read_word(warp->cta, op, frag->spin.polled_at, size, &word))
        describe_word(warp->cta, frag->spin.polled_at, word, row);
    uint32_t other = compared_with(op, frag->spin.end);
    if (other == UINT32_MAX) return;
    uint64_t wanted = value_of(warp->regs + frag->spin.base, other, size < 4 ? 4 : size, lane);
    snprintf(row->wanted, sizeof(row->wanted), "%" PRIu64, wanted);
    its_sim_comm_describe(its_sim_grid_memory(warp->cta->grid), frag->spin.polled_at, wanted, row->wanted,
                          sizeof row->wanted, row->seen, sizeof row->seen);
}

/* Threads of the CTA that a barrier waits for, and those that have come. */
static void describe_barrier(const its_sim_cta *cta, uint32_t id, wait_row *row) {
    const its_sim_barrier *barrier = &cta->barriers[id];
    uint32_t come = 0, live = 0;
    for (uint32_t w = 0; w < cta->grid->n_warps; w++) {
        come += (uint32_t)__builtin_popcount(barrier->waiting[w]);
        live += (uint32_t)__builtin_popcount(cta->warps[w].live);
    }
    if (id == ITS_SIM_CLUSTER_BARRIER) {
        snprintf(row->wanted, sizeof(row->wanted), "the cluster");
        snprintf(row->seen, sizeof(row->seen), "%u of this CTA's %u threads there", (unsigned)come, (unsigned)live);
        return;
    }
    snprintf(row->wanted, sizeof(row->wanted), "barrier %u", (unsigned)id);
    snprintf(row->seen, sizeof(row->seen), "%u of %u threads there", (unsigned)come,
             (unsigned)(barrier->expected ? barrier->expected : live));
}

static void describe(const its_sim_warp *warp, const its_sim_frag *frag, wait_row *row) {
    *row = (wait_row){.op = frag->pc, .wanted = "-", .seen = "-"};
    if (frag->spin.spins) describe_poll(warp, frag, row);
    if (row->op != frag->pc) return;
    if (frag->state == ITS_SIM_AT_BARRIER) describe_barrier(warp->cta, frag->barrier, row);
    if (frag->state != ITS_SIM_AT_SYNC) return;
    snprintf(row->wanted, sizeof(row->wanted), "its warp");
    snprintf(row->seen, sizeof(row->seen), "lanes 0x%08x missing", (unsigned)(frag->member & warp->live & ~frag->mask));
}

static void put_row(its_buffer *out, const its_sim_grid *grid, const its_sim_warp *warp, const its_sim_frag *frag,
                    const wait_row *row, uint32_t pe) {
    const its_sim_program *program = grid->program;
    const its_sim_where *where = &program->wheres.items[program->op_where[row->op - program->ops]];
    char cta[48], at[96];
    const char *path;
    uint32_t line = its_sim_where_line(where, program, &path);
    snprintf(cta, sizeof(cta), "(%u, %u, %u)", (unsigned)warp->cta->id[0], (unsigned)warp->cta->id[1],
             (unsigned)warp->cta->id[2]);
    size_t size = strlen(path), cut = size > LONGEST_PATH ? size - LONGEST_PATH : 0;
    snprintf(at, sizeof(at), "%s%s:%u", cut ? "..." : "", path + cut, (unsigned)line);
    its_buffer_printf(out, "\n  %-3u %-16s %-14s %-5u %-8d %-28s %-10s %s", (unsigned)pe, grid->func->name, cta,
                      (unsigned)warp->index, __builtin_popcount(frag->mask), at, row->wanted, row->seen);
}

typedef struct waits_job {
    its_context *ctx;
    const its_sim_grid *grid;
    uint32_t pe;
    its_buffer text;
    const its_sim_op *first; /* where the first of them waits */
    uint64_t rows;
} waits_job;

/* A row for each group of threads that goes round a loop, or for each of the others. */
static void put_rows(waits_job *job, bool polling) {
    const its_sim_grid *grid = job->grid;
    for (uint32_t s = 0; s < grid->n_open; s++) {
        const its_sim_cta *cta = &grid->slots[s];
        for (uint32_t w = 0; cta->running && w < grid->n_warps; w++) {
            const its_sim_warp *warp = &cta->warps[w];
            for (uint32_t f = 0; warp->live && f < warp->n_frags; f++) {
                wait_row row;
                describe(warp, &warp->frags[f], &row);
                if (row.polls != polling) continue;
                if (!job->first) job->first = row.op;
                if (job->rows++ < MOST_ROWS) put_row(&job->text, grid, warp, &warp->frags[f], &row, job->pe);
            }
        }
    }
}

/* Who polls comes first: the others mostly wait for those. */
static its_status waits_body(void *user) {
    waits_job *job = user;
    const its_sim_grid *grid = job->grid;
    its_buffer_printf(&job->text, "deadlock: no PE can go on, and kernel '%s' of PE %u waits", grid->func->name,
                      (unsigned)job->pe);
    its_buffer_printf(&job->text, "\n  %-3s %-16s %-14s %-5s %-8s %-28s %-10s %s", "PE", "kernel", "CTA", "warp",
                      "threads", "waits at", "for", "and sees");
    put_rows(job, true);
    put_rows(job, false);
    if (job->rows > MOST_ROWS) its_buffer_printf(&job->text, "\n  ... and %" PRIu64 " more", job->rows - MOST_ROWS);
    its_buffer_char(&job->text, 0);
    its_sim_report_at(job->ctx, grid->program, job->first, job->text.data);
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
