/*
 * Runs the cells of ../cells.txt on a GPU: prints each line with the hash of what the GPU computed, and, with a second
 * argument, writes all results to that file, CELL_COUNT * CELL_OUT bytes per cell. Cells that this GPU or driver can't
 * compile keep the hash they have.
 *
 *     cc -O1 -D_GNU_SOURCE -I.. cells_cuda.c -ldl -o cells_cuda && ./cells_cuda ../cells.txt > new.txt
 */
#include <dlfcn.h>

#include "cells.h"

#define HEAD ".version 8.0\n.target sm_90\n.address_size 64\n"

static int (*cuInit)(unsigned), (*cuDeviceGet)(int *, int), (*cuCtxCreate)(void **, unsigned, int);
static int (*cuModuleLoadData)(void **, const void *), (*cuModuleUnload)(void *);
static int (*cuModuleGetFunction)(void **, void *, const char *), (*cuMemAlloc)(uint64_t *, size_t);
static int (*cuMemcpyHtoD)(uint64_t, const void *, size_t), (*cuMemcpyDtoH)(void *, uint64_t, size_t);
static int (*cuMemsetD8)(uint64_t, unsigned char, size_t), (*cuCtxSynchronize)(void);
static int (*cuLaunchKernel)(void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *,
                             void **, void **);

static void need(int result, const char *what) {
    if (result == 0) return;
    fprintf(stderr, "%s failed with %d\n", what, result);
    exit(1);
}

static void open_driver(void) {
    void *lib = dlopen("libcuda.so.1", RTLD_NOW);
    if (!lib) {
        fprintf(stderr, "%s\n", dlerror());
        exit(1);
    }
#define LOAD(f, symbol) *(void **)&f = dlsym(lib, symbol)
    LOAD(cuInit, "cuInit");
    LOAD(cuDeviceGet, "cuDeviceGet");
    LOAD(cuCtxCreate, "cuCtxCreate_v2");
    LOAD(cuModuleLoadData, "cuModuleLoadData");
    LOAD(cuModuleUnload, "cuModuleUnload");
    LOAD(cuModuleGetFunction, "cuModuleGetFunction");
    LOAD(cuMemAlloc, "cuMemAlloc_v2");
    LOAD(cuMemcpyHtoD, "cuMemcpyHtoD_v2");
    LOAD(cuMemcpyDtoH, "cuMemcpyDtoH_v2");
    LOAD(cuMemsetD8, "cuMemsetD8_v2");
    LOAD(cuCtxSynchronize, "cuCtxSynchronize");
    LOAD(cuLaunchKernel, "cuLaunchKernel");
    int device;
    void *context;
    need(cuInit(0), "cuInit");
    need(cuDeviceGet(&device, 0), "cuDeviceGet");
    need(cuCtxCreate(&context, 0, device), "cuCtxCreate");
}

int main(int argc, char **argv) {
    FILE *cells = fopen(argc > 1 ? argv[1] : "cells.txt", "r"), *dump = argc > 2 ? fopen(argv[2], "wb") : NULL;
    if (!cells) return 1;
    open_driver();
    uint64_t in, out;
    size_t in_size = (size_t)CELL_COUNT * CELL_SLOT, out_size = (size_t)CELL_COUNT * CELL_OUT;
    need(cuMemAlloc(&in, in_size), "cuMemAlloc");
    need(cuMemAlloc(&out, out_size), "cuMemAlloc");
    unsigned char *host_in = malloc(in_size), *host_out = malloc(out_size);
    char line[1024], kernel[4096], text[4200];
    while (fgets(line, sizeof(line), cells)) {
        cell c;
        if (!cell_parse(line, &c)) {
            fputs(line, stdout);
            continue;
        }
        cell_kernel(&c, kernel, sizeof(kernel));
        snprintf(text, sizeof(text), "%s%s", HEAD, kernel);
        memset(host_out, 0, out_size);
        void *module, *function;
        int loaded = cuModuleLoadData(&module, text);
        if (loaded != 0) {
            fprintf(stderr, "not compiled (%d): %s\n", loaded, c.ptx);
            fputs(line, stdout);
        } else {
            cell_inputs(&c, host_in);
            need(cuModuleGetFunction(&function, module, "cell"), "cuModuleGetFunction");
            need(cuMemcpyHtoD(in, host_in, in_size), "cuMemcpyHtoD");
            need(cuMemsetD8(out, 0, out_size), "cuMemsetD8");
            void *params[] = {&in, &out};
            need(cuLaunchKernel(function, CELL_COUNT / CELL_BLOCK, 1, 1, CELL_BLOCK, 1, 1, 0, NULL, params, NULL),
                 "cuLaunchKernel");
            need(cuCtxSynchronize(), c.ptx);
            need(cuMemcpyDtoH(host_out, out, out_size), "cuMemcpyDtoH");
            need(cuModuleUnload(module), "cuModuleUnload");
            if (c.approximate)
                fputs(line, stdout);
            else
                printf("%016llx%s", (unsigned long long)cell_hash(host_out), line + strcspn(line, " "));
        }
        if (dump) fwrite(host_out, out_size, 1, dump);
    }
    return 0;
}
