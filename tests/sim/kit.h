/* What the tests of execution share: a machine with its memory, and one call that runs a kernel of a PTX text. */
#ifndef TESTS_SIM_KIT_H
#define TESTS_SIM_KIT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "sim/machine.h"

typedef struct kit {
    its_context *ctx;
    its_sim_machine machine;
    its_module *module;
    its_sim_program *program;
    its_sim_grid *grid;
    char printed[4096];
    size_t printed_size;
    uint64_t steps, blocked; /* of the last run */
} kit;

static inline void kit_print(void *user, const char *text, size_t size) {
    kit *k = user;
    assert_true(k->printed_size + size < sizeof(k->printed));
    memcpy(k->printed + k->printed_size, text, size);
    k->printed_size += size;
    k->printed[k->printed_size] = 0;
}

static inline void kit_open(kit *k) {
    memset(k, 0, sizeof(*k));
    k->ctx = its_context_new(NULL);
    assert_non_null(k->ctx);
    k->machine.memory = its_sim_memory_new(k->ctx, 0);
    assert_non_null(k->machine.memory);
    k->machine.multiprocessors = 4;
    k->machine.print = kit_print;
    k->machine.user = k;
}

static inline void kit_unload(kit *k) {
    its_sim_grid_free(k->grid);
    its_sim_program_free(k->program);
    its_module_free(k->module);
    k->grid = NULL;
    k->program = NULL;
    k->module = NULL;
}

static inline void kit_close(kit *k) {
    kit_unload(k);
    its_sim_memory_free(k->machine.memory);
    its_context_free(k->ctx);
}

/* All diagnostics as text; prints them when a test is about to fail because of them. */
static inline void kit_show(kit *k) {
    char *text = its_diag_render(k->ctx, false);
    if (text) print_message("%s", text);
    its_free(k->ctx, text);
}

static inline const char *kit_message(kit *k) {
    size_t count = its_diag_count(k->ctx);
    assert_true(count > 0);
    return its_diag_get(k->ctx, count - 1)->message;
}

#define KIT_HEAD ".version 8.3\n.target sm_90\n.address_size 64\n"

/* For fuzzers: writes the text into the folder that the environment names, under a name that follows from it. */
static inline void kit_write_down(const char *text) {
    const char *folder = getenv("INTARSIA_TEST_TEXTS");
    if (!folder) return;
    uint64_t hash = 0xcbf29ce484222325ull;
    for (const char *at = text; *at; at++) hash = (hash ^ (unsigned char)*at) * 0x100000001b3ull;
    char path[1024];
    snprintf(path, sizeof path, "%s/%016llx.ptx", folder, (unsigned long long)hash);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    assert_int_equal(fputs(text, file) < 0, 0);
    assert_int_equal(fclose(file), 0);
}

/* Parses and decodes a module; the text begins after the three lines of KIT_HEAD. */
static inline void kit_load(kit *k, const char *body) {
    size_t size = strlen(KIT_HEAD) + strlen(body);
    char *text = malloc(size + 1);
    assert_non_null(text);
    strcpy(text, KIT_HEAD);
    strcat(text, body);
    kit_write_down(text);
    kit_unload(k);
    its_diag_clear(k->ctx);
    its_status status = its_ptx_parse(k->ctx, "test.ptx", text, size, &k->module);
    free(text);
    if (status == ITS_OK) status = its_sim_program_new(k->ctx, &k->machine, k->module, &k->program);
    if (status != ITS_OK) kit_show(k);
    assert_int_equal(status, ITS_OK);
    /* A program keeps nothing of its module: every test runs without it. */
    its_module_free(k->module);
    k->module = NULL;
}

/* Steps the grid to its end; BLOCKED more than `patience` times in a row ends it too. */
static inline its_sim_progress kit_finish(kit *k, uint64_t budget, uint64_t patience) {
    its_sim_progress progress;
    uint64_t blocked = 0;
    k->steps = k->blocked = 0;
    do {
        progress = its_sim_grid_step(k->grid, budget);
        k->steps++;
        blocked = progress == ITS_SIM_BLOCKED ? blocked + 1 : 0;
        k->blocked += progress == ITS_SIM_BLOCKED;
    } while (progress == ITS_SIM_RAN || (progress == ITS_SIM_BLOCKED && blocked < patience));
    return progress;
}

typedef struct kit_launch {
    const char *entry;
    uint32_t grid, block, shared;
    uint64_t params[8]; /* as 64-bit values, cut to each parameter's size */
} kit_launch;

static inline its_status kit_make_grid(kit *k, const kit_launch *l) {
    const its_sim_entry *entry;
    its_status status = its_sim_program_entry(k->ctx, k->program, l->entry, &entry);
    if (status != ITS_OK) return status;
    char *block = calloc(1, entry->param_size + 1);
    assert_non_null(block);
    for (uint32_t i = 0; i < entry->n_params; i++)
        memcpy(block + entry->params[i].offset, &l->params[i], entry->params[i].size < 8 ? entry->params[i].size : 8);
    its_sim_launch launch = {.grid = {l->grid, 1, 1}, .block = {l->block, 1, 1}, .shared = l->shared, .params = block};
    its_sim_grid_free(k->grid);
    status = its_sim_grid_new(k->ctx, entry, &launch, &k->grid);
    free(block);
    return status;
}

/* Runs a kernel to its end. */
static inline its_sim_progress kit_launch_run(kit *k, kit_launch l) {
    its_status status = kit_make_grid(k, &l);
    if (status != ITS_OK) kit_show(k);
    assert_int_equal(status, ITS_OK);
    return kit_finish(k, 10000, 100);
}

/* Runs it and expects it to end well. */
static inline void kit_run(kit *k, kit_launch l) {
    its_sim_progress progress = kit_launch_run(k, l);
    if (progress == ITS_SIM_FAULT) {
        its_sim_fault_report(k->ctx, its_sim_grid_fault(k->grid));
        kit_show(k);
    }
    assert_int_equal(progress, ITS_SIM_DONE);
}

/* Memory that kernels may use. */
static inline void *kit_alloc(kit *k, size_t size) {
    void *block = aligned_alloc(256, (size + 255) & ~(size_t)255);
    assert_non_null(block);
    memset(block, 0, size);
    assert_int_equal(
        its_sim_memory_add(k->machine.memory, (uint64_t)(uintptr_t)block, size, ITS_SIM_DEVICE, false, NULL), ITS_OK);
    return block;
}

static inline void kit_free(kit *k, void *block) {
    assert_true(its_sim_memory_remove(k->machine.memory, (uint64_t)(uintptr_t)block));
    free(block);
}

static inline uint64_t kit_address(const void *block) {
    return (uint64_t)(uintptr_t)block;
}

#endif
