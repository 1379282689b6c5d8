/*
 * Fault reports: one error that says who did what to which address, at the PTX line; then the source line from .loc,
 * and the chain of calls that were inlined.
 */
#include "sim/fault.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/buffer.h"
#include "ptx/module.h"
#include "sim/exec.h"

/* -- recording ----------------------------------------------------------------------------------------------------- */

its_sim_verdict its_sim_fault_at(its_sim_exec *x, const its_sim_op *op, uint32_t mask, its_sim_fault_kind kind,
                                 const char *format, ...) {
    its_sim_grid *grid = x->grid;
    its_sim_fault *fault = &grid->fault;
    *fault = (its_sim_fault){.kind = kind};
    fault->pe = its_sim_memory_pe(x->memory);
    fault->program = x->program;
    fault->kernel = grid->func;
    fault->op = its_sim_op_index(x, op);
    fault->warp = x->warp->index;
    fault->lane = mask ? (uint32_t)__builtin_ctz(mask) : 0;
    fault->n_lanes = (uint32_t)__builtin_popcount(mask);
    memcpy(fault->cta, x->cta->id, sizeof(fault->cta));
    for (unsigned k = 0; k < 3; k++)
        fault->thread[k] = (uint32_t)its_sim_sreg_value(x->warp, (its_sim_sreg)(ITS_SIM_SREG_TID_X + k), fault->lane);
    va_list args, again;
    va_start(args, format);
    va_copy(again, args);
    int size = vsnprintf(NULL, 0, format, args);
    if (size > 0) fault->text = its_block_alloc(grid->ctx, (size_t)size + 1);
    if (fault->text) vsnprintf(fault->text, (size_t)size + 1, format, again);
    va_end(again);
    va_end(args);
    grid->faulted = true;
    return ITS_SIM_STOP;
}

/* -- words --------------------------------------------------------------------------------------------------------- */

static const char *verb(const its_sim_fault *fault) {
    static const char *const verbs[] = {"reads", "writes", "updates"};
    return verbs[fault->access];
}

static const char *bytes_text(uint64_t bytes) {
    return bytes == 1 ? "byte" : "bytes";
}

void its_sim_put_allocation(its_buffer *out, const its_sim_nearby *nearby, uint32_t pe) {
    const its_sim_allocation *allocation = &nearby->allocation;
    const char *kind = its_sim_kind_text((its_sim_kind)allocation->kind);
    if (allocation->name)
        its_buffer_printf(out, "the %" PRIu64 "-byte %s '%s'", allocation->size, kind, allocation->name->text);
    else if (allocation->kind == ITS_SIM_HEAP)
        its_buffer_printf(out, "a %" PRIu64 "-byte %s", allocation->size, kind);
    else
        its_buffer_printf(out, "a %" PRIu64 "-byte allocation of %s", allocation->size, kind);
    if (nearby->pe != pe) its_buffer_printf(out, " on PE %u", (unsigned)nearby->pe);
}

void its_sim_put_nearby(its_buffer *out, const its_sim_nearby *nearby, uint64_t bytes, uint32_t pe) {
    uint64_t over;
    switch (nearby->what) {
    case ITS_SIM_NEAR_NULL:
        its_buffer_text(out, ", a null pointer");
        return;
    case ITS_SIM_NEAR_WINDOW:
        its_buffer_printf(out, ", in the %s of PE %u", nearby->window, (unsigned)nearby->pe);
        return;
    case ITS_SIM_NEAR_HEAP:
        its_buffer_printf(out, ", in the symmetric heap of PE %u where nothing is allocated", (unsigned)nearby->pe);
        return;
    case ITS_SIM_NEAR_INSIDE:
        over = nearby->distance + bytes - nearby->allocation.size;
        its_buffer_printf(out, ", the last %" PRIu64 " of them past the end of ", over);
        break;
    case ITS_SIM_NEAR_AFTER:
        if (nearby->distance)
            its_buffer_printf(out, ", %" PRIu64 " %s past the end of ", nearby->distance, bytes_text(nearby->distance));
        else
            its_buffer_text(out, ", right past the end of ");
        break;
    case ITS_SIM_NEAR_BEFORE:
        its_buffer_printf(out, ", %" PRIu64 " %s before ", nearby->distance, bytes_text(nearby->distance));
        break;
    case ITS_SIM_NEAR_FREED:
        its_buffer_printf(out, ", %" PRIu64 " %s into ", nearby->distance, bytes_text(nearby->distance));
        its_sim_put_allocation(out, nearby, pe);
        its_buffer_text(out, " that was freed");
        return;
    default:
        its_buffer_text(out, ", where nothing is allocated");
        return;
    }
    its_sim_put_allocation(out, nearby, pe);
}

/* "reads 4 bytes at shared address 0x400" */
static void put_access(its_buffer *out, const its_sim_fault *fault) {
    static const char *const spaces[ITS_SPACE_COUNT] = {
        [ITS_SPACE_SHARED] = "shared ",
        [ITS_SPACE_LOCAL] = "local ",
        [ITS_SPACE_PARAM] = "parameter ",
        [ITS_SPACE_CONST] = "constant ",
    };
    const char *space = spaces[fault->window];
    uint64_t address = fault->address;
    if (fault->window != ITS_SPACE_GLOBAL && fault->window != ITS_SPACE_CONST)
        address &= ((uint64_t)1 << ITS_SIM_WINDOW_SHIFT) - 1;
    its_buffer_printf(out, "%s %" PRIu64 " %s at %saddress 0x%" PRIx64, verb(fault), fault->bytes,
                      bytes_text(fault->bytes), space ? space : "", address);
}

static void put_block(its_buffer *out, const its_sim_fault *fault) {
    if (fault->window == ITS_SPACE_SHARED) {
        uint64_t size = fault->limit - ITS_SIM_SHARED_BEGIN;
        if (size == 0)
            its_buffer_text(out, ", but the kernel has no shared memory");
        else
            its_buffer_printf(out, ", outside of the CTA's %" PRIu64 " bytes of shared memory, 0x%x to 0x%" PRIx64,
                              size, ITS_SIM_SHARED_BEGIN, fault->limit);
    } else if (fault->window == ITS_SPACE_LOCAL) {
        its_buffer_printf(out, ", outside of the thread's local memory, 0x%x to 0x%" PRIx64, ITS_SIM_LOCAL_BEGIN,
                          fault->limit);
    } else {
        its_buffer_printf(out, ", outside of the kernel's parameters, 0x%x to 0x%" PRIx64, ITS_SIM_PARAM_BEGIN,
                          fault->limit);
    }
}

/*
 * "reads 4 bytes at address 0x7f00, 16 bytes into ..., which PE 1, kernel 'k' (k.cu:3), CTA 0, thread 32 has written"
 */
static void put_race(its_buffer *out, const its_sim_fault *fault) {
    const its_race_conflict *race = &fault->race;
    put_access(out, fault);
    if (fault->window == ITS_SPACE_GLOBAL && fault->nearby.what == ITS_SIM_NEAR_INSIDE) {
        its_buffer_printf(out, ", %" PRIu64 " bytes into ", fault->nearby.distance);
        its_sim_put_allocation(out, &fault->nearby, fault->pe);
    }
    its_buffer_text(out, ", which ");
    if (race->other_pe) its_buffer_printf(out, "PE %u, ", (unsigned)race->pe);
    its_buffer_text(out, fault->race_site[0] ? fault->race_site : "something");
    if (strncmp(fault->race_site, "kernel", 6) == 0)
        its_buffer_printf(out, ", CTA %" PRIu64 ", thread %u", race->other.cta,
                          (unsigned)(race->other.warp * ITS_LANES + race->other.lane));
    its_buffer_printf(out, " has %s, and nothing orders the two", race->other_writes ? "written" : "read");
}

const char *its_sim_race_advice(const its_race_conflict *race) {
    if (race->other_pe && !race->other_writes)
        return "if it is read too early: whoever reads waits for the signal with nvshmem_signal_wait_until, all threads "
               "behind a barrier of the CTA; if it is written again too early: whoever has read says so, by a signal "
               "that the writer waits for, or in nvshmem_barrier_all";
    if (race->other_pe)
        return "data comes first, then nvshmem_fence or nvshmem_quiet, then the signal (or put both with "
               "nvshmem_putmem_signal); whoever uses it waits for the signal with nvshmem_signal_wait_until, all threads "
               "behind a barrier of the CTA; or meet in nvshmem_barrier_all";
    if (race->both_write)
        return "if not both are to write there: check the index and the mask of each; else release after the one "
               "(__threadfence and an atomic, or st.release) and acquire before the other, or put them into kernels one "
               "after the other on a stream";
    return "release after the one (__threadfence and an atomic, or st.release) and acquire before the other, or put them "
           "into kernels one after the other on a stream";
}

static const char *race_advice(const its_sim_fault *fault) {
    if (fault->window == ITS_SPACE_SHARED) return "put a barrier of the CTA between them: __syncthreads() or bar.sync";
    return its_sim_race_advice(&fault->race);
}

static void put_what(its_buffer *out, const its_sim_fault *fault) {
    const char *text = fault->text ? fault->text : "";
    switch (fault->kind) {
    case ITS_SIM_FAULT_ACCESS:
        put_access(out, fault);
        if (fault->window == ITS_SPACE_GLOBAL || fault->window == ITS_SPACE_CONST)
            its_sim_put_nearby(out, &fault->nearby, fault->bytes, fault->pe);
        else
            put_block(out, fault);
        break;
    case ITS_SIM_FAULT_MISALIGNED:
        put_access(out, fault);
        its_buffer_printf(out, ", which is no multiple of %" PRIu64, fault->bytes);
        break;
    case ITS_SIM_FAULT_READ_ONLY:
        put_access(out, fault);
        its_buffer_text(out, ", which may only be read");
        if (fault->nearby.what == ITS_SIM_NEAR_INSIDE) {
            its_buffer_text(out, ": it is in ");
            its_sim_put_allocation(out, &fault->nearby, fault->pe);
        }
        break;
    case ITS_SIM_FAULT_TRAP:
        its_buffer_text(out, "reaches a trap");
        break;
    case ITS_SIM_FAULT_ASSERT:
        its_buffer_printf(out, "fails an assertion: %s", text);
        break;
    case ITS_SIM_FAULT_STACK:
        its_buffer_printf(out, "runs out of stack in a call of %s", text);
        break;
    case ITS_SIM_FAULT_CALL:
        its_buffer_printf(out, "makes an indirect call that can't be: %s", text);
        break;
    case ITS_SIM_FAULT_BRANCH:
        its_buffer_printf(out, "branches beyond its table: %s", text);
        break;
    case ITS_SIM_FAULT_SYNC:
        its_buffer_printf(out, "synchronises with its warp wrongly: %s", text);
        break;
    case ITS_SIM_FAULT_ASYNC:
        its_buffer_text(out, text);
        break;
    case ITS_SIM_FAULT_BARRIER:
        its_buffer_printf(out, "uses a barrier wrongly: %s", text);
        break;
    case ITS_SIM_FAULT_FREE:
        its_buffer_printf(out, "frees what malloc did not give: %s", text);
        break;
    case ITS_SIM_FAULT_PRINT:
        its_buffer_printf(out, "prints wrongly: %s", text);
        break;
    case ITS_SIM_FAULT_RACE:
        put_race(out, fault);
        break;
    case ITS_SIM_FAULT_REFUSED:
        its_buffer_printf(out, "reaches what the simulator can't run: %s", text);
        break;
    case ITS_SIM_FAULT_NOMEM:
        its_buffer_text(out, "needs more memory for its calls than there is");
        break;
    }
}

static const char *advice(const its_sim_fault *fault) {
    switch (fault->kind) {
    case ITS_SIM_FAULT_ACCESS:
        if (fault->nearby.what == ITS_SIM_NEAR_WINDOW)
            return "only symmetric memory can be reached from another PE: allocate it with nvshmem_malloc";
        if (fault->nearby.what == ITS_SIM_NEAR_NULL) return "check the pointer that was passed to the kernel";
        if (fault->nearby.what == ITS_SIM_NEAR_FREED) return "free the memory after the kernel has finished";
        return "check the index and the mask of the access";
    case ITS_SIM_FAULT_MISALIGNED:
        return "an access must be aligned to its size, vectors to that of the whole vector";
    case ITS_SIM_FAULT_RACE:
        return race_advice(fault);
    case ITS_SIM_FAULT_STACK:
        return "check that the recursion ends";
    default:
        return NULL;
    }
}

/* -- places -------------------------------------------------------------------------------------------------------- */

static const char *file_path(const its_sim_program *program, uint32_t index) {
    for (size_t i = 0; i < program->files.count; i++)
        if (program->files.items[i].index == index) return program->files.items[i].path;
    return NULL;
}

/* The last .loc before number `before` that stands for that position, or 0. */
static uint32_t find_loc(const its_sim_program *program, uint32_t before, uint32_t file, uint32_t line,
                         uint32_t column) {
    for (uint32_t i = before; i-- > 0;) {
        const its_sim_loc *loc = &program->locs.items[i];
        if (loc->file == file && loc->line == line && loc->column == column) return i + 1;
    }
    return 0;
}

/* The source line, and those that it was inlined into, by whoever made the PTX or by us; false if there are no such. */
static bool add_source_lines(its_context *ctx, const its_sim_program *program, uint32_t number) {
    const char *label = "source line";
    const uint32_t first = number;
    for (unsigned depth = 0; number && depth < 64; depth++) {
        const its_sim_loc *loc = &program->locs.items[number - 1];
        const char *path = file_path(program, loc->file);
        if (path) its_diag_also_line(ctx, path, loc->line, loc->column, NULL, label);
        if (!loc->inlined) return depth > 0;
        label = "inlined at this source line";
        uint32_t outer = find_loc(program, number - 1, loc->at_file, loc->at_line, loc->at_column);
        path = file_path(program, loc->at_file);
        if (!outer && path) its_diag_also_line(ctx, path, loc->at_line, loc->at_column, NULL, label);
        number = outer;
    }
    return number != first;
}

/* The way to the operation: by source lines, or by lines of the PTX where those don't tell. */
static void add_way(its_context *ctx, const its_sim_program *program, const its_sim_where *where) {
    if (!add_source_lines(ctx, program, where->loc)) its_diag_also_inlined(ctx, &where->node);
}

void its_sim_report_at(its_context *ctx, const its_sim_program *program, const its_sim_op *op, const char *message) {
    if (!op) {
        its_diag_begin(ctx, ITS_ERROR, ITS_NOWHERE, "%s", message);
        return;
    }
    const its_sim_where *where = &program->wheres.items[program->op_where[op - program->ops]];
    its_diag_begin(ctx, ITS_ERROR, its_node_place(&where->node), "%s", message);
    add_way(ctx, program, where);
}

/* Device files and tile kernels. Our own device code is known by the names that it is compiled under. */
static bool is_user_file(const char *path) {
    size_t size = strlen(path);
    bool source = size > 3 && (strcmp(path + size - 3, ".cu") == 0 || strcmp(path + size - 3, ".py") == 0);
    return source && strncmp(path, "sim/", 4) != 0 && strncmp(path, "intarsia/", 9) != 0;
}

/* Line and file of the innermost source of .loc number `loc` that is a user's; else of the innermost; 0 if unknown. */
static uint32_t user_line(const its_sim_program *program, uint32_t loc, const char **path) {
    uint32_t line = 0;
    *path = NULL;
    for (unsigned depth = 0; loc && depth < 64; depth++) {
        const its_sim_loc *at = &program->locs.items[loc - 1];
        const char *file = file_path(program, at->file);
        if (file && (!line || is_user_file(file))) *path = file, line = at->line;
        if (file && is_user_file(file)) return line;
        if (!at->inlined) return line;
        uint32_t outer = find_loc(program, loc - 1, at->at_file, at->at_line, at->at_column);
        file = file_path(program, at->at_file);
        if (!outer && file && is_user_file(file)) *path = file, line = at->at_line;
        loc = outer;
    }
    return line;
}

uint32_t its_sim_where_line(const its_sim_where *where, const its_sim_program *program, const char **path) {
    uint32_t line = user_line(program, where->loc, path), column;
    if (line) return line;
    its_place place = its_node_place(&where->node);
    *path = place.source->name;
    its_source_position(place.source, place.offset, &line, &column);
    return line;
}

static void report(its_context *ctx, const its_sim_fault *fault, its_buffer *text) {
    const its_sim_program *program = fault->program;
    const its_sim_where *where = &program->wheres.items[program->op_where[fault->op]];
    its_buffer_printf(text, "PE %u, kernel '%s', CTA (%u, %u, %u), thread (%u, %u, %u) ", (unsigned)fault->pe,
                      fault->kernel->name, (unsigned)fault->cta[0], (unsigned)fault->cta[1], (unsigned)fault->cta[2],
                      (unsigned)fault->thread[0], (unsigned)fault->thread[1], (unsigned)fault->thread[2]);
    put_what(text, fault);
    if (fault->n_lanes == 2)
        its_buffer_printf(text, " (and so does 1 more lane of warp %u)", (unsigned)fault->warp);
    else if (fault->n_lanes > 2)
        its_buffer_printf(text, " (and so do %u more lanes of warp %u)", (unsigned)fault->n_lanes - 1,
                          (unsigned)fault->warp);
    its_buffer_char(text, 0);
    its_diag_begin(ctx, ITS_ERROR, its_node_place(&where->node), "%s", text->data);
    add_way(ctx, program, where);
    if (advice(fault)) its_diag_hint(ctx, "%s", advice(fault));
}

void its_sim_fault_report(its_context *ctx, const its_sim_fault *fault) {
    its_buffer text;
    its_buffer_init(&text, ctx);
    its_guard guard;
    if (its_guard_enter(ctx, &guard)) {
        its_buffer_free(&text);
        its_guard_failed(ctx, &guard);
        return;
    }
    report(ctx, fault, &text);
    its_guard_leave(ctx, &guard);
    its_buffer_free(&text);
}
