/*
 * The simulator's speed: `make bench-sim`. Warp-instructions per second of plain code on one core, and FLOP/s of
 * mma.sync, for each copy of the loop that this CPU can run; and what memory a large launch takes. Every figure is the
 * median of several runs, taken in turn, with the slowest and the fastest beside it.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

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

/* Runs kernel `k` of the text to its end: CPU time in seconds; `*instructions`: warp-instructions. */
static double run_kernel(its_context *ctx, const its_sim_machine *machine, const char *text,
                         const its_sim_launch *launch, uint64_t *instructions) {
    its_module *module;
    its_sim_program *program;
    const its_sim_entry *entry;
    its_sim_grid *grid;
    if (its_ptx_parse(ctx, "bench.ptx", text, strlen(text), &module) != ITS_OK) fail(ctx);
    if (its_sim_program_new(ctx, machine, module, &program) != ITS_OK) fail(ctx);
    if (its_sim_program_entry(ctx, program, "k", &entry) != ITS_OK) fail(ctx);
    if (its_sim_grid_new(ctx, entry, launch, &grid) != ITS_OK) fail(ctx);
    double begin = now();
    its_sim_progress progress;
    do progress = its_sim_grid_step(grid, 1 << 20);
    while (progress == ITS_SIM_RAN);
    double seconds = now() - begin;
    if (progress != ITS_SIM_DONE) {
        its_sim_fault_report(ctx, its_sim_grid_fault(grid));
        fail(ctx);
    }
    *instructions = its_sim_grid_instructions(grid);
    its_sim_grid_free(grid);
    its_sim_program_free(program);
    its_module_free(module);
    return seconds;
}

/* One CTA of 128 threads. */
static double run_mix(const mix *m, uint32_t isa, uint64_t *instructions) {
    its_context *ctx = its_context_new(NULL);
    its_sim_machine machine = {.memory = its_sim_memory_new(ctx, 0), .multiprocessors = 1, .isa = isa + 1};
    char *data = aligned_alloc(256, 4096), text[4096];
    memset(data, 0, 4096);
    snprintf(text, sizeof(text), "%s%s%s", HEAD, m->body, TAIL);
    uint64_t address = (uint64_t)(uintptr_t)data;
    if (its_sim_memory_add(machine.memory, address, 4096, ITS_SIM_DEVICE, false, NULL) != ITS_OK) fail(ctx);
    its_sim_launch launch = {.grid = {1, 1, 1}, .block = {128, 1, 1}, .params = &address};
    double seconds = run_kernel(ctx, &machine, text, &launch, instructions);
    its_sim_memory_free(machine.memory);
    its_context_free(ctx);
    free(data);
    return seconds;
}

/* -- memory -------------------------------------------------------------------------------------------------------- */

#define LARGE                                                                  \
    ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry k()\n{\n"  \
    ".reg .b32 %r<200>; .reg .b64 %rd<2>; .local .align 16 .b8 stack[1024];\n" \
    ".shared .align 16 .b8 tile[32768];\n"                                     \
    "mov.u32 %r1, %tid.x; mov.u64 %rd1, stack; st.local.u32 [%rd1], %r1; bar.sync 0; ret;\n}\n"

static long peak_kilobytes(void) {
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return usage.ru_maxrss;
}

/*
 * 4096 CTAs of 1024 threads with 200 registers, 1 KiB of stack and 32 KiB of shared memory: what places for them take.
 */
static void run_large(void) {
    its_context *ctx = its_context_new(NULL);
    its_sim_machine machine = {.memory = its_sim_memory_new(ctx, 0)};
    its_sim_launch launch = {.grid = {4096, 1, 1}, .block = {1024, 1, 1}};
    uint64_t instructions;
    run_kernel(ctx, &machine, LARGE, &launch, &instructions);
    its_sim_memory_free(machine.memory);
    its_context_free(ctx);
}

/* -- figures ------------------------------------------------------------------------------------------------------- */

static void print_machine(void) {
    char line[256], model[128] = "a CPU of unknown name";
    double load = 0;
    FILE *file = fopen("/proc/cpuinfo", "r");
    while (file && fgets(line, sizeof line, file))
        if (sscanf(line, "model name : %127[^\n]", model) == 1) break;
    if (file) fclose(file);
    if (getloadavg(&load, 1) != 1) load = -1;
    printf("%s, %ld cores, load %.1f; compiler %s\n", model, sysconf(_SC_NPROCESSORS_ONLN), load, __VERSION__);
}

static int by_value(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void measure(uint32_t isa) {
    enum { MIXES = sizeof(mixes) / sizeof(*mixes) };
    static const char *const units[] = {"million warp-instructions/s", "GFLOP/s"};
    double rate[MIXES][RUNS];
    for (int n = 0; n < RUNS; n++)
        for (int i = 0; i < MIXES; i++) {
            uint64_t instructions;
            double seconds = run_mix(&mixes[i], isa, &instructions);
            double work = mixes[i].flops > 0 ? mixes[i].flops * ROUNDS * 4 / 1e9 : (double)instructions / 1e6;
            rate[i][n] = work / seconds;
        }
    for (int i = 0; i < MIXES; i++) {
        qsort(rate[i], RUNS, sizeof **rate, by_value);
        printf("%-10s %-18s %8.1f  (%.1f to %.1f) %s\n", its_sim_isa_name(isa), mixes[i].name, rate[i][RUNS / 2],
               rate[i][0], rate[i][RUNS - 1], units[mixes[i].flops > 0]);
    }
}

int main(void) {
    print_machine();
    long before = peak_kilobytes();
    run_large();
    printf("a launch of 4096 CTAs x 1024 threads, 200 registers, 1 KiB of stack, 32 KiB of shared memory: %.1f MB\n\n",
           (double)(peak_kilobytes() - before) / 1024);
    printf("one core, memory checks on; seconds of CPU time, median of %d (slowest to fastest)\n", RUNS);
    for (uint32_t isa = 0; its_sim_isa_name(isa); isa++) measure(isa);
    return 0;
}
