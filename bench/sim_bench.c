/*
 * The simulator's speed: `make bench-sim`. Warp-instructions per second of plain code on one core, and FLOP/s of
 * mma.sync, for each copy of the loop that this CPU can run. Every figure is the best of several runs, taken in turn.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "sim/machine.h"

enum { RUNS = 7, ROUNDS = 20000 };

#define HEAD                                                                                              \
    ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry k(.param .u64 p)\n{\n"                \
    ".reg .pred %p<4>; .reg .b32 %r<32>; .reg .b64 %rd<8>; .reg .f32 %f<16>;\n"                           \
    "ld.param.u64 %rd1, [p]; mov.u32 %r1, %tid.x; mul.wide.u32 %rd2, %r1, 4; add.u64 %rd1, %rd1, %rd2;\n" \
    "mov.u32 %r2, 0; mov.f32 %f1, 0f3F800000; mov.f32 %f2, 0f3F7FBE77;\n"                                 \
    "LOOP:\n"
#define TAIL                                                             \
    "add.u32 %r2, %r2, 1; setp.lt.u32 %p1, %r2, 20000; @%p1 bra LOOP;\n" \
    "st.global.f32 [%rd1], %f1; st.global.u32 [%rd1+512], %r4;\nret;\n}\n"

typedef struct mix {
    const char *name, *body;
    double flops; /* per round and warp; 0: instructions are counted */
} mix;

static const mix mixes[] = {
    {"ALU mix",
     "fma.rn.f32 %f1, %f1, %f2, %f2; add.u32 %r4, %r4, %r1; xor.b32 %r5, %r4, %r2; mul.lo.u32 %r6, %r5, %r1;\n"
     "shl.b32 %r7, %r6, 3; and.b32 %r8, %r7, 255; add.f32 %f3, %f1, %f2; mul.f32 %f4, %f3, %f2;\n"
     "max.f32 %f5, %f4, %f1; sub.u32 %r9, %r8, %r5; min.s32 %r4, %r9, %r6; fma.rn.f32 %f1, %f5, %f2, %f1;\n",
     0},
    {"memory mix",
     "ld.global.f32 %f3, [%rd1]; fma.rn.f32 %f3, %f3, %f2, %f1; st.global.f32 [%rd1], %f3;\n"
     "ld.global.u32 %r5, [%rd1+512]; add.u32 %r5, %r5, 1; st.global.u32 [%rd1+512], %r5;\n",
     0},
    {"branchy mix",
     "and.b32 %r5, %r2, 1; setp.eq.u32 %p2, %r5, 0; @%p2 bra EVEN; add.u32 %r4, %r4, 3; bra NEXT;\n"
     "EVEN: sub.u32 %r4, %r4, 1;\nNEXT: and.b32 %r6, %r1, 16; setp.eq.u32 %p3, %r6, 0; @%p3 add.u32 %r4, %r4, 7;\n",
     0},
    {"mma.m16n8k16 f16",
     "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%f4, %f5, %f6, %f7}, {%r4, %r5, %r6, %r7}, {%r8, %r9}, "
     "{%f4, %f5, %f6, %f7};\n",
     2.0 * 16 * 8 * 16},
};

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void fail(its_context *ctx) {
    fputs(its_diag_render(ctx, false), stderr);
    exit(1);
}

/* Seconds of one CTA of 128 threads; `*instructions` are the warp-instructions it ran. */
static double run(const mix *m, uint64_t *instructions) {
    its_context *ctx = its_context_new(NULL);
    its_sim_machine machine = {.memory = its_sim_memory_new(ctx, 0), .multiprocessors = 1};
    char *data = aligned_alloc(256, 4096), text[4096];
    its_module *module;
    its_sim_program *program;
    const its_sim_entry *entry;
    its_sim_grid *grid;
    memset(data, 0, 4096);
    snprintf(text, sizeof(text), "%s%s%s", HEAD, m->body, TAIL);
    uint64_t address = (uint64_t)(uintptr_t)data;
    if (its_sim_memory_add(machine.memory, address, 4096, ITS_SIM_DEVICE, false, NULL) != ITS_OK) fail(ctx);
    if (its_ptx_parse(ctx, "bench.ptx", text, strlen(text), &module) != ITS_OK) fail(ctx);
    if (its_sim_program_new(ctx, &machine, module, &program) != ITS_OK) fail(ctx);
    if (its_sim_program_entry(ctx, program, "k", &entry) != ITS_OK) fail(ctx);
    its_sim_launch launch = {.grid = {1, 1, 1}, .block = {128, 1, 1}, .params = &address};
    if (its_sim_grid_new(ctx, entry, &launch, &grid) != ITS_OK) fail(ctx);
    double begin = now();
    its_sim_progress progress;
    do progress = its_sim_grid_step(grid, 1 << 20);
    while (progress == ITS_SIM_RAN);
    double seconds = now() - begin;
    if (progress != ITS_SIM_DONE) {
        fprintf(stderr, "%s did not end well\n", m->name);
        exit(1);
    }
    *instructions = its_sim_grid_instructions(grid);
    its_sim_grid_free(grid);
    its_sim_program_free(program);
    its_module_free(module);
    its_sim_memory_free(machine.memory);
    its_context_free(ctx);
    free(data);
    return seconds;
}

int main(void) {
    enum { MIXES = sizeof(mixes) / sizeof(*mixes) };
    double best[MIXES];
    uint64_t instructions[MIXES];
    for (int i = 0; i < MIXES; i++) best[i] = 1e9;
    for (int n = 0; n < RUNS; n++)
        for (int i = 0; i < MIXES; i++) {
            double seconds = run(&mixes[i], &instructions[i]);
            if (seconds < best[i]) best[i] = seconds;
        }
    printf("one core, checks on; seconds of CPU time, best of %d\n", RUNS);
    for (int i = 0; i < MIXES; i++) {
        if (mixes[i].flops > 0)
            printf("%-18s %8.1f GFLOP/s\n", mixes[i].name, mixes[i].flops * ROUNDS * 4 / best[i] / 1e9);
        else
            printf("%-18s %8.1f million warp-instructions/s\n", mixes[i].name, (double)instructions[i] / best[i] / 1e6);
    }
    return 0;
}
