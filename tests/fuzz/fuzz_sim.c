/*
 * Fuzzes the simulator's decoder, and runs what it decodes for a while.
 *
 * Oracle: what doesn't decode, or an entry that can't be run, leaves an error with a text; what runs ends, is stopped
 * after some steps, or has a fault that can be reported. Sanitizers watch all of it, so an access that the simulator's
 * own checks let pass is seen. What the verifier refuses is decoded too, but not run: a module may be loaded without
 * having been linked.
 */
#include <stdlib.h>
#include <string.h>

#include "sim/machine.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { MOST_ENTRIES = 4, MOST_PARAMS = 4096, BUFFER = 4096, STEPS = 12, BUDGET = 2000, HEAP = 1 << 20 };

static void *take(void *user, size_t size, size_t align) {
    (void)user;
    return size > HEAP ? NULL : aligned_alloc(align, (size + align - 1) / align * align);
}
static void give(void *user, void *block, size_t size) {
    (void)user;
    (void)size;
    free(block);
}

/* Parameters are addresses of the buffer and small numbers, in turn. */
static void fill_params(const its_sim_entry *entry, const char *buffer, char *params) {
    for (uint32_t at = 0; at + 8 <= entry->param_size; at += 8) {
        uint64_t value = at % 24 == 16 ? 40 : (uint64_t)(uintptr_t)buffer;
        memcpy(params + at, &value, sizeof value);
    }
}

static void step(its_context *ctx, its_sim_grid *grid) {
    its_sim_progress progress = ITS_SIM_RAN;
    for (unsigned i = 0; i < STEPS && progress == ITS_SIM_RAN; i++) progress = its_sim_grid_step(grid, BUDGET);
    const its_sim_fault *fault = its_sim_grid_fault(grid);
    if ((progress == ITS_SIM_FAULT) != (fault != NULL)) abort();
    if (!fault) return;
    size_t before = its_diag_errors(ctx);
    its_sim_fault_report(ctx, fault);
    if (its_diag_errors(ctx) == before) abort();
}

static void run(its_context *ctx, const its_sim_entry *entry, const char *buffer) {
    char params[MOST_PARAMS] = {0};
    its_sim_grid *grid;
    its_sim_launch launch = {.grid = {4, 1, 1}, .block = {128, 1, 1}, .shared = 256, .params = params};
    if (entry->param_size > sizeof params) return;
    if (entry->reqntid[0]) memcpy(launch.block, entry->reqntid, sizeof launch.block);
    if ((uint64_t)launch.block[0] * launch.block[1] * launch.block[2] > 256) return;
    if (launch.block[0] > entry->max_threads) launch.block[0] = entry->max_threads;
    fill_params(entry, buffer, params);
    if (its_sim_grid_new(ctx, entry, &launch, &grid) == ITS_OK)
        step(ctx, grid);
    else if (its_diag_errors(ctx) == 0)
        abort();
    its_sim_grid_free(grid);
}

static void run_entries(its_context *ctx, const its_sim_program *program, const its_module *module, bool valid,
                        const char *buffer) {
    unsigned n = 0;
    for (its_func *f = its_module_next_func(module, NULL); f && n < MOST_ENTRIES; f = its_module_next_func(module, f)) {
        const its_sim_entry *entry;
        if (!(f->symbol->flags & ITS_SYM_ENTRY)) continue;
        n++;
        its_diag_clear(ctx);
        its_status status = its_sim_program_entry(ctx, program, f->symbol->name->text, &entry);
        if (status != ITS_OK && its_diag_errors(ctx) == 0) abort();
        if (status == ITS_OK && valid) run(ctx, entry, buffer);
    }
}

static void decode(its_context *ctx, const its_module *module, bool valid) {
    char *buffer = aligned_alloc(256, BUFFER);
    memset(buffer, 1, BUFFER);
    its_sim_machine machine = {.memory = its_sim_memory_new(ctx, 0), .multiprocessors = 2, .take = take, .give = give};
    machine.compute_major = 9;
    machine.stack_size = 4096;
    machine.heap_limit = HEAP;
    its_sim_memory_add(machine.memory, (uint64_t)(uintptr_t)buffer, BUFFER, ITS_SIM_DEVICE, false, NULL);
    its_sim_program *program;
    its_diag_clear(ctx);
    if (its_sim_program_new(ctx, &machine, module, &program) == ITS_OK) {
        run_entries(ctx, program, module, valid, buffer);
        its_sim_program_free(program);
    } else if (its_diag_errors(ctx) == 0) {
        abort();
    }
    its_sim_memory_free(machine.memory);
    free(buffer);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    its_context *ctx = its_context_new(NULL);
    its_module *module;
    if (its_ptx_parse(ctx, "fuzz.ptx", (const char *)data, size, &module) == ITS_OK) {
        bool valid = its_ptx_verify(module) == ITS_OK;
        decode(ctx, module, valid);
        its_module_free(module);
    }
    its_free(ctx, its_diag_render(ctx, false));
    its_context_free(ctx);
    return 0;
}
