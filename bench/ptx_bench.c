/*
 * The PTX library's speed and memory; bench/ptx.py makes the texts and runs it.
 *
 *     bench_ptx RUNS REGION.ptx KERNEL.ptx ...
 *
 * Each KERNEL.ptx calls one region, which is REGION.ptx, as often as it likes. One line per kernel, numbers between
 * tabs:
 *
 *     bytes of text
 *     parse, parse and print, link: median and quartiles of each, in ms    9 numbers
 *     bytes of the parsed module; bytes of memory at most while parsing; while linking
 *
 * "Link" is what a compile of a kernel with a region pays: both are parsed, linked, and the result printed. Times are
 * CPU time of the process, page faults included, since wall time on a shared machine says little; the runs of all rows
 * are taken in turn. Memory is what becomes resident, as the kernel counts it, the copy of the text included.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "intarsia/link.h"

enum { PARSE, PRINT, LINK, PHASES };

typedef struct text {
    char *data;
    size_t size;
} text;

typedef struct row {
    text kernel;
    double *times[PHASES];
    size_t module, peak_parse, peak_link;
} row;

static _Noreturn void stop(const char *what, const char *name) {
    fprintf(stderr, "bench_ptx: %s%s\n", what, name);
    exit(1);
}

static void check(its_context *ctx, its_status status) {
    if (status == ITS_OK) return;
    char *said = its_diag_render(ctx, false);
    stop(said ? said : "out of memory", "");
}

static text read_file(const char *path) {
    FILE *file = fopen(path, "rb");
    if (!file || fseek(file, 0, SEEK_END)) stop("can't read ", path);
    text whole = {.size = (size_t)ftell(file)};
    rewind(file);
    whole.data = malloc(whole.size + 1);
    if (!whole.data || fread(whole.data, 1, whole.size, file) != whole.size) stop("can't read ", path);
    fclose(file);
    return whole;
}

/* -- what is measured ---------------------------------------------------------------------------------------------- */

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return 1e3 * (double)t.tv_sec + 1e-6 * (double)t.tv_nsec;
}

static its_module *parse(its_context *ctx, const char *name, text from) {
    its_module *module;
    check(ctx, its_ptx_parse(ctx, name, from.data, from.size, &module));
    return module;
}

static void print(its_context *ctx, const its_module *module) {
    char *printed;
    check(ctx, its_ptx_print(module, &printed, NULL));
    its_free(ctx, printed);
}

/* The bytes of a parsed module; times of parsing, and of parsing and printing, unless `times` is NULL. */
static size_t parse_once(text kernel, double times[PHASES]) {
    double begin = now();
    its_context *ctx = its_context_new(NULL);
    if (!ctx) stop("out of memory", "");
    its_module *module = parse(ctx, "kernel.ptx", kernel);
    if (times) times[PARSE] = now() - begin;
    if (times) print(ctx, module);
    if (times) times[PRINT] = now() - begin;
    size_t size = its_module_memory(module);
    its_module_free(module);
    its_context_free(ctx);
    return size;
}

static double link_once(text kernel, text region) {
    double begin = now();
    its_context *ctx = its_context_new(NULL);
    if (!ctx) stop("out of memory", "");
    its_module *main = parse(ctx, "kernel.ptx", kernel), *device = parse(ctx, "region.ptx", region);
    const char *const *units;
    uint32_t n_units;
    check(ctx, its_link_units(main, &units, &n_units));
    if (n_units != 1) stop("the kernel must call functions of one region", "");
    its_link_region only = {.unit = units[0], .module = device};
    static const char *const deferred[] = {"nvshmem"}; /* as front ends do until the kernel is loaded */
    its_link_input input = {
        .main = main, .regions = &only, .n_regions = 1, .options = {.deferred = deferred, .n_deferred = 1}};
    its_linked *linked;
    check(ctx, its_link(ctx, &input, &linked));
    if (its_linked_report(linked)->regions_inlined == 0) stop("no region call was inlined", "");
    print(ctx, its_linked_module(linked));
    double time = now() - begin;
    its_linked_free(linked);
    its_module_free(main);
    its_module_free(device);
    its_context_free(ctx);
    return time;
}

/* -- resident memory ----------------------------------------------------------------------------------------------- */

static size_t status_line(const char *key) {
    FILE *file = fopen("/proc/self/status", "r");
    char line[256];
    size_t kilobytes = 0;
    while (file && fgets(line, sizeof line, file))
        if (strncmp(line, key, strlen(key)) == 0) kilobytes = strtoul(line + strlen(key), NULL, 10);
    if (!file || !kilobytes) stop("can't read /proc/self/status for ", key);
    fclose(file);
    return kilobytes << 10;
}

/* Makes what is resident now the peak, and returns it. */
static size_t reset_peak(void) {
    FILE *file = fopen("/proc/self/clear_refs", "w");
    if (!file || fputs("5", file) < 0 || fclose(file)) stop("can't write ", "/proc/self/clear_refs");
    return status_line("VmRSS:");
}

/* In a process of its own, whose heap holds nothing yet that was freed. */
static void measure_memory(row *r, text region, bool link) {
    int ends[2], status;
    size_t found[2] = {0};
    if (pipe(ends)) stop("can't make ", "a pipe");
    pid_t child = fork();
    if (child == 0) {
        size_t before = reset_peak();
        if (link)
            link_once(r->kernel, region);
        else
            found[0] = parse_once(r->kernel, NULL);
        found[1] = status_line("VmHWM:") - before;
        _exit(write(ends[1], found, sizeof found) != sizeof found);
    }
    close(ends[1]);
    bool came = child > 0 && read(ends[0], found, sizeof found) == sizeof found;
    close(ends[0]);
    if (child < 0 || waitpid(child, &status, 0) != child || status != 0 || !came) stop("can't measure ", "memory");
    *(link ? &r->peak_link : &r->peak_parse) = found[1];
    if (!link) r->module = found[0];
}

/* -- the table ----------------------------------------------------------------------------------------------------- */

static int by_value(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

static void print_row(row *r, size_t runs) {
    printf("%zu", r->kernel.size);
    for (int phase = 0; phase < PHASES; phase++) {
        double *times = r->times[phase];
        qsort(times, runs, sizeof *times, by_value);
        printf("\t%.4f\t%.4f\t%.4f", times[runs / 2], times[runs / 4], times[runs - 1 - runs / 4]);
    }
    printf("\t%zu\t%zu\t%zu\n", r->module, r->peak_parse, r->peak_link);
}

int main(int argc, char **argv) {
    size_t runs = argc > 3 ? strtoul(argv[1], NULL, 10) : 0, n = argc > 3 ? (size_t)argc - 3 : 0;
    if (runs == 0) stop("usage: bench_ptx RUNS REGION.ptx KERNEL.ptx ...", "");
    text region = read_file(argv[2]);
    row *rows = calloc(n, sizeof *rows);
    if (!rows) stop("out of memory", "");
    for (size_t i = 0; i < n; i++) {
        rows[i].kernel = read_file(argv[3 + i]);
        for (int phase = 0; phase < PHASES; phase++)
            if (!(rows[i].times[phase] = calloc(runs, sizeof(double)))) stop("out of memory", "");
    }
    for (size_t i = 0; i < 2 * n; i++) measure_memory(&rows[i / 2], region, i % 2);
    for (size_t run = 0; run < runs; run++) {
        for (size_t i = 0; i < n; i++) {
            double times[PHASES];
            parse_once(rows[i].kernel, times);
            times[LINK] = link_once(rows[i].kernel, region);
            for (int phase = 0; phase < PHASES; phase++) rows[i].times[phase][run] = times[phase];
        }
    }
    for (size_t i = 0; i < n; i++) print_row(&rows[i], runs);
    return 0;
}
