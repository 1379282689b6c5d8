/* What an entry can reach: functions, shared memory, stack, and what the simulator refuses to run. */
#include "ptx/module.h"
#include "sim/exec.h"

#define CALL_BYTES 48u /* what a call may take beyond its function's own stack; see call.c */

/* -- walking the calls --------------------------------------------------------------------------------------------- */

typedef struct walk {
    const its_sim_program *program;
    its_arena scratch;
    bool *seen;
    ITS_VEC(uint32_t) order; /* functions that the entry reaches, itself first */
} walk;

static void visit(walk *w, uint32_t func) {
    if (w->seen[func]) return;
    w->seen[func] = true;
    ITS_PUSH(&w->scratch, &w->order, func);
}

/* Fills w->order. An indirect call reaches every function whose address is taken anywhere. */
static void reach(walk *w, uint32_t entry) {
    const its_sim_program *program = w->program;
    w->seen = ITS_NEW_ARRAY(&w->scratch, bool, program->n_funcs);
    bool all_taken = false;
    visit(w, entry);
    for (size_t i = 0; i < w->order.count; i++) {
        const its_sim_func *func = &program->funcs[w->order.items[i]];
        for (uint32_t k = 0; k < func->n_callees; k++) visit(w, func->callees[k]);
        if (!func->calls_indirect || all_taken) continue;
        all_taken = true;
        for (uint32_t f = 0; f < program->n_funcs; f++)
            if (program->funcs[f].address_taken && program->funcs[f].has_body) visit(w, f);
    }
}

/* -- stacks -------------------------------------------------------------------------------------------------------- */

enum { NEW, OPEN, DONE };

typedef struct step {
    uint32_t func, next; /* next: the callee that is looked at next */
} step;

/* Visits `func` and all that it calls, callees first, without recursion: chains of calls may be long. */
static void measure_from(its_sim_program *program, its_arena *scratch, uint8_t *state, uint32_t func) {
    ITS_VEC(step) stack = {0};
    step first = {func, 0};
    ITS_PUSH(scratch, &stack, first);
    state[func] = OPEN;
    program->funcs[func].bounded = true;
    program->funcs[func].stack_size = 0;
    while (stack.count) {
        step *top = &stack.items[stack.count - 1];
        its_sim_func *f = &program->funcs[top->func];
        if (top->next < f->n_callees) {
            uint32_t callee = f->callees[top->next++];
            if (state[callee] == OPEN) f->bounded = false;
            if (state[callee] != NEW) continue;
            state[callee] = OPEN;
            program->funcs[callee].bounded = true;
            step inner = {callee, 0};
            ITS_PUSH(scratch, &stack, inner);
            continue;
        }
        uint64_t deepest = 0;
        for (uint32_t k = 0; k < f->n_callees; k++) {
            const its_sim_func *callee = &program->funcs[f->callees[k]];
            if (!callee->bounded) f->bounded = false;
            if (callee->stack_size + CALL_BYTES > deepest) deepest = callee->stack_size + (uint64_t)CALL_BYTES;
        }
        if (f->calls_indirect || f->allocates) f->bounded = false;
        deepest += f->local_size;
        f->stack_size = deepest > INT32_MAX ? INT32_MAX : (uint32_t)deepest;
        state[top->func] = DONE;
        stack.count--;
    }
}

static void measure_shared(its_sim_program *program, its_arena *scratch, its_sim_func *entry, uint32_t index) {
    walk w = {.program = program, .scratch = *scratch};
    reach(&w, index);
    bool *counted = ITS_NEW_ARRAY(&w.scratch, bool, program->variables.count + 1);
    for (size_t i = 0; i < w.order.count; i++) {
        const its_sim_func *func = &program->funcs[w.order.items[i]];
        for (uint32_t k = 0; k < func->n_shared; k++) {
            const its_sim_variable *variable = &program->variables.items[func->shared[k]];
            if (variable->dynamic || counted[func->shared[k]]) continue;
            counted[func->shared[k]] = true;
            if (func->shared[k] + 1 != program->reserved) entry->entry.shared += (uint32_t)variable->size;
            uint32_t end = (uint32_t)(variable->address + variable->size - ITS_SIM_SHARED_BEGIN);
            if (end > entry->entry.shared_end) entry->entry.shared_end = end;
        }
    }
    *scratch = w.scratch;
}

typedef struct measure_job {
    its_sim_program *program;
    its_arena scratch;
} measure_job;

static its_status measure_body(void *user) {
    measure_job *job = user;
    its_sim_program *program = job->program;
    uint8_t *state = ITS_NEW_ARRAY(&job->scratch, uint8_t, program->n_funcs);
    for (uint32_t f = 0; f < program->n_funcs; f++)
        if (state[f] == NEW) measure_from(program, &job->scratch, state, f);
    for (uint32_t f = 0; f < program->n_funcs; f++)
        if (program->funcs[f].is_entry) measure_shared(program, &job->scratch, &program->funcs[f], f);
    return ITS_OK;
}

void its_sim_program_measure(its_sim_program *program) {
    measure_job job = {.program = program};
    its_arena_init(&job.scratch, program->ctx);
    its_status status = its_protect(program->ctx, measure_body, &job);
    its_arena_free(&job.scratch);
    if (status != ITS_OK) its_guard_raise(program->ctx);
}

/* -- looking an entry up ------------------------------------------------------------------------------------------- */

static void tell_entries(its_context *ctx, const its_sim_program *program, its_arena *scratch, const char *name) {
    const char **names = ITS_NEW_ARRAY(scratch, const char *, program->n_funcs + 1);
    size_t count = 0;
    const char *list = "";
    for (uint32_t f = 0; f < program->n_funcs; f++) {
        const its_sim_func *func = &program->funcs[f];
        if (!func->is_entry || !func->has_body) continue;
        names[count++] = func->name;
        list = its_arena_printf(scratch, "%s%s'%s'", list, *list ? ", " : "", func->name);
    }
    its_diag_begin(ctx, ITS_ERROR, ITS_NOWHERE, "there is no kernel '%s' in the module", name);
    const char *closest = its_closest(name, names, count);
    if (count == 0)
        its_diag_hint(ctx, "the module has no kernels: mark one with .visible .entry, in CUDA with __global__");
    else if (closest)
        its_diag_hint(ctx, "did you mean '%s'? The module has %s", closest, list);
    else
        its_diag_hint(ctx, "the module has %s", list);
}

/* Reports everything in reach that can't run; the number of errors. */
static uint32_t tell_refusals(its_context *ctx, const its_sim_program *program, its_arena *scratch, uint32_t entry) {
    walk w = {.program = program, .scratch = *scratch};
    uint32_t count = 0;
    reach(&w, entry);
    for (size_t i = 0; i < w.order.count; i++) {
        const its_sim_func *func = &program->funcs[w.order.items[i]];
        for (uint32_t k = 0; k < func->n_refusals; k++, count++) {
            const its_sim_refusal *refusal = &program->refusals.items[func->refusal + k];
            its_diag_begin(ctx, ITS_ERROR, its_node_place(&refusal->where.node), "%s", refusal->message);
            its_diag_also_inlined(ctx, &refusal->where.node);
            if (refusal->hint) its_diag_hint(ctx, "%s", refusal->hint);
        }
    }
    *scratch = w.scratch;
    return count;
}

typedef struct entry_job {
    its_context *ctx;
    const its_sim_program *program;
    const char *name;
    const its_sim_entry **entry;
    its_arena scratch;
} entry_job;

static its_status entry_body(void *user) {
    entry_job *job = user;
    const its_sim_program *program = job->program;
    for (uint32_t f = 0; f < program->n_funcs; f++) {
        const its_sim_func *func = &program->funcs[f];
        if (!func->is_entry || !func->has_body || strcmp(func->name, job->name) != 0) continue;
        if (tell_refusals(job->ctx, program, &job->scratch, f)) return ITS_ERR_INPUT;
        *job->entry = &func->entry;
        return ITS_OK;
    }
    tell_entries(job->ctx, program, &job->scratch, job->name);
    return ITS_ERR_INPUT;
}

its_status its_sim_program_entry(its_context *ctx, const its_sim_program *program, const char *name,
                                 const its_sim_entry **entry) {
    entry_job job = {.ctx = ctx, .program = program, .name = name, .entry = entry};
    *entry = NULL;
    its_arena_init(&job.scratch, ctx);
    its_status status = its_protect(ctx, entry_body, &job);
    its_arena_free(&job.scratch);
    return status;
}
