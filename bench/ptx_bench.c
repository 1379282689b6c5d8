/*
 * The PTX library's speed and memory: `make bench-ptx`.
 *
 *     bench_ptx KERNEL.ptx REGION.ptx
 *
 * KERNEL.ptx is a kernel that calls a region of REGION.ptx; texts of other sizes are made of KERNEL's functions under
 * new names. Each row is the median of several runs, the runs of all rows taken in turn.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "intarsia/link.h"

enum { RUNS = 15, ROWS = 4 };

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static int by_value(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

static double median(double *values) {
    qsort(values, RUNS, sizeof(*values), by_value);
    return values[RUNS / 2];
}

static char *read_file(const char *path, size_t *size) {
    FILE *file = fopen(path, "rb");
    if (!file || fseek(file, 0, SEEK_END)) {
        fprintf(stderr, "can't read %s\n", path);
        exit(1);
    }
    *size = (size_t)ftell(file);
    rewind(file);
    char *text = malloc(*size + 1);
    if (!text || fread(text, 1, *size, file) != *size) exit(1);
    text[*size] = 0;
    fclose(file);
    return text;
}

/* A module of about `wanted` bytes: functions of some forty instructions each. */
static char *make_text(size_t wanted, size_t *size) {
    char *text = malloc(wanted + 8192);
    if (!text) exit(1);
    size_t used = (size_t)sprintf(text, ".version 8.0\n.target sm_80\n.address_size 64\n");
    for (unsigned f = 0; used < wanted; f++) {
        used += (size_t)sprintf(text + used,
                                ".visible .func (.param .b32 result) f%u(.param .b32 a, .param .b64 p)\n{\n"
                                "\t.reg .pred %%p<4>;\n\t.reg .b32 %%r<64>;\n\t.reg .b64 %%rd<8>;\n"
                                "\tld.param.u32 %%r1, [a];\n\tld.param.u64 %%rd1, [p];\n",
                                f);
        for (unsigned i = 2; i < 32; i++)
            used += (size_t)sprintf(text + used, "\tmad.lo.s32 %%r%u, %%r%u, %u, %%r1;\n", i, i - 1, i * f);
        used += (size_t)sprintf(text + used,
                                "\tsetp.lt.s32 %%p1, %%r31, 0;\n\t@%%p1 bra $L__BB%u_2;\n"
                                "\tst.global.u32 [%%rd1+4], %%r31;\n$L__BB%u_2:\n"
                                "\tst.param.b32 [result+0], %%r31;\n\tret;\n}\n",
                                f, f);
    }
    *size = used;
    return text;
}

static void fail(its_context *ctx) {
    fputs(its_diag_render(ctx, false), stderr);
    exit(1);
}

static double parse_once(const char *text, size_t size, size_t *memory, double *print_time) {
    its_context *ctx = its_context_new(NULL);
    its_module *module;
    double begin = now();
    if (its_ptx_parse(ctx, "bench.ptx", text, size, &module) != ITS_OK) fail(ctx);
    double parsed = now();
    char *printed;
    if (its_ptx_print(module, &printed, NULL) != ITS_OK) fail(ctx);
    *print_time = now() - parsed;
    *memory = its_module_memory(module);
    its_free(ctx, printed);
    its_module_free(module);
    its_context_free(ctx);
    return parsed - begin;
}

/* Parse of both, link, print: what a compile of a kernel with a region pays. */
static double link_once(const char *kernel, size_t kernel_size, const char *region, size_t region_size) {
    its_context *ctx = its_context_new(NULL);
    its_module *main, *device;
    its_linked *linked;
    const char *const *units;
    uint32_t n_units;
    char *printed;
    double begin = now();
    if (its_ptx_parse(ctx, "kernel.ptx", kernel, kernel_size, &main) != ITS_OK) fail(ctx);
    if (its_ptx_parse(ctx, "region.ptx", region, region_size, &device) != ITS_OK) fail(ctx);
    if (its_link_units(main, &units, &n_units) != ITS_OK || n_units == 0) {
        fprintf(stderr, "the kernel calls no region\n");
        exit(1);
    }
    its_link_region region_of = {.unit = units[0], .module = device};
    static const char *const deferred[] = {"nvshmem"};
    its_link_input input = {
        .main = main, .regions = &region_of, .n_regions = 1, .options = {.deferred = deferred, .n_deferred = 1}};
    if (its_link(ctx, &input, &linked) != ITS_OK) fail(ctx);
    if (its_ptx_print(its_linked_module(linked), &printed, NULL) != ITS_OK) fail(ctx);
    double time = now() - begin;
    its_free(ctx, printed);
    its_linked_free(linked);
    its_module_free(main);
    its_module_free(device);
    its_context_free(ctx);
    return time;
}

int main(int argc, char **argv) {
    static const size_t wanted[ROWS] = {10 << 10, 60 << 10, 1 << 20, 14 << 20};
    static double parse[ROWS][RUNS], print[ROWS][RUNS], link[RUNS];
    char *texts[ROWS];
    size_t sizes[ROWS], memory[ROWS], kernel_size, region_size;
    if (argc != 3) {
        fprintf(stderr, "usage: bench_ptx KERNEL.ptx REGION.ptx\n");
        return 2;
    }
    char *kernel = read_file(argv[1], &kernel_size), *region = read_file(argv[2], &region_size);
    for (int row = 0; row < ROWS; row++) texts[row] = make_text(wanted[row], &sizes[row]);
    for (int run = 0; run < RUNS; run++) {
        for (int row = 0; row < ROWS; row++)
            parse[row][run] = parse_once(texts[row], sizes[row], &memory[row], &print[row][run]);
        link[run] = link_once(kernel, kernel_size, region, region_size);
    }
    printf("%-12s %12s %12s %12s %12s %14s\n", "text", "parse ms", "parse MB/s", "print ms", "print MB/s",
           "bytes per byte");
    for (int row = 0; row < ROWS; row++) {
        double p = median(parse[row]), q = median(print[row]), bytes = (double)sizes[row];
        printf("%9zu KB %12.3f %12.0f %12.3f %12.0f %14.1f\n", sizes[row] >> 10, p * 1e3, bytes / p / 1e6, q * 1e3,
               bytes / q / 1e6, (double)memory[row] / bytes);
    }
    printf("\nparse, link and print of a kernel of %zu KB with a region of %zu KB: %.3f ms\n", kernel_size >> 10,
           region_size >> 10, median(link) * 1e3);
    return 0;
}
