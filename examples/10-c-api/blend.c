/*
 * Intarsia from a C program: compiles a device file, links it into a kernel's PTX, runs the result on the simulator and
 * checks it.
 *
 *     cc blend.c -o blend $(pkg-config --cflags --libs intarsia)
 *     ./blend blend-device.cu kernel.ptx
 *
 * Every function of the library that can fail returns a status and leaves what there is to say in the context. So the
 * steps below return statuses, and main prints the context once.
 */
#include <intarsia/cc.h>
#include <intarsia/link.h>
#include <intarsia/sim.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { N = 1000, BLOCK = 256 };
static const float T = 0.25f;

/* The device file as a module. What is not set, such as options, has its default. */
static its_status compile(its_context *ctx, const char *path, its_module **region) {
    its_cc_input input = {.path = path, .arch = "sm_80"};
    its_unit *unit;
    its_status status = its_cc(ctx, &input, &unit);
    if (status != ITS_OK) return status;
    printf("compiled %s: unit %s with %s\n", unit->path, unit->id, unit->funcs[0].spelling);
    status = its_ptx_parse(ctx, unit->path, unit->ptx, unit->ptx_size, region);
    its_unit_free(unit);
    return status;
}

/* The kernel names the unit it calls into; here there is one region, so it is that one's. */
static its_status join(its_context *ctx, its_module *kernel, its_module *region, its_linked **linked) {
    const char *const *units;
    uint32_t n_units;
    its_status status = its_link_units(kernel, &units, &n_units);
    if (status != ITS_OK) return status;
    its_link_region only = {.unit = n_units ? units[0] : "0000000000000000", .module = region};
    its_link_input input = {.main = kernel, .regions = &only, .n_regions = 1};
    status = its_link(ctx, &input, linked);
    if (status != ITS_OK) return status;
    const its_report *report = its_linked_report(*linked);
    printf("linked: %u region call inlined, %u calls left, %u instructions\n", report->regions_inlined, report->n_kept,
           report->funcs[0].instructions);
    return ITS_OK;
}

/* Room on the device, holding what is at `data`. */
static its_status put(its_backend *backend, const void *data, size_t size, uint64_t *address) {
    its_status status = backend->ops->alloc(backend, ITS_MEMORY_DEVICE, size, 0, address);
    if (status != ITS_OK) return status;
    return backend->ops->copy(backend, ITS_COPY_TO_DEVICE, *address, (uint64_t)(uintptr_t)data, size, 0);
}

static its_status launch(its_backend *backend, its_function *kernel, const float *x, const float *y, float *out) {
    uint64_t on_device[3]; /* out, x, y */
    const float *const from[3] = {out, x, y};
    its_status status = ITS_OK;
    for (int i = 0; i < 3 && status == ITS_OK; i++) status = put(backend, from[i], N * sizeof *out, &on_device[i]);
    if (status != ITS_OK) return status;
    uint32_t n = N;
    const void *const params[] = {&on_device[0], &on_device[1], &on_device[2], &T, &n};
    its_launch how = {.grid = {(N + BLOCK - 1) / BLOCK, 1, 1}, .block = {BLOCK, 1, 1}, .params = params, .n_params = 5};
    status = backend->ops->launch(backend, kernel, &how);
    if (status == ITS_OK) /* which waits for the kernel: both are in the default stream */
        status = backend->ops->copy(backend, ITS_COPY_FROM_DEVICE, on_device[0], (uint64_t)(uintptr_t)out,
                                    N * sizeof *out, 0);
    if (status == ITS_OK) status = backend->ops->stream_wait(backend, 0);
    return status; /* closing the backend frees the memory */
}

static its_status run(its_context *ctx, its_module *module, const float *x, const float *y, float *out) {
    its_backend *backend;
    its_loaded *loaded;
    its_function *kernel;
    its_status status = its_sim_open(ctx, -1, 0, NULL, &backend);
    if (status != ITS_OK) return status;
    status = backend->ops->load(backend, module, &loaded);
    if (status == ITS_OK) {
        status = backend->ops->function(backend, loaded, "blend_all", &kernel);
        if (status == ITS_OK) status = launch(backend, kernel, x, y, out);
        backend->ops->unload(backend, loaded);
    }
    backend->ops->close(backend);
    return status;
}

static its_status link_and_run(its_context *ctx, const char *device, const char *kernel_path, const float *x,
                               const float *y, float *out) {
    its_module *region, *kernel;
    its_linked *linked;
    its_status status = compile(ctx, device, &region);
    if (status != ITS_OK) return status;
    status = its_ptx_parse_file(ctx, kernel_path, &kernel);
    if (status == ITS_OK) {
        status = join(ctx, kernel, region, &linked);
        if (status == ITS_OK) {
            status = run(ctx, its_linked_module(linked), x, y, out);
            its_linked_free(linked);
        }
        its_module_free(kernel);
    }
    its_module_free(region);
    return status;
}

static void fill(float *x, float *y, float *out) {
    for (int i = 0; i < N; i++) {
        x[i] = (float)i;
        y[i] = (float)(N - i);
        out[i] = NAN;
    }
}

/* How many results are what the C of the host makes of the same numbers. */
static int count_right(const float *x, const float *y, const float *out) {
    int right = 0;
    for (int i = 0; i < N; i++) right += fabsf(out[i] - (x[i] + T * (y[i] - x[i]))) <= 1e-6f * N;
    return right;
}

/* What was said, on standard error: errors, or no more than a warning. */
static void print_diagnostics(its_context *ctx) {
    if (its_diag_count(ctx) == 0) return;
    char *text = its_diag_render(ctx, false);
    fputs(text ? text : "out of memory\n", stderr);
    its_free(ctx, text);
}

int main(int argc, char **argv) {
    static float x[N], y[N], out[N];
    if (argc != 3) {
        fprintf(stderr, "usage: %s DEVICE.cu KERNEL.ptx\n", argv[0]);
        return 2;
    }
    its_context *ctx = its_context_new(NULL);
    if (!ctx) {
        fputs("out of memory\n", stderr);
        return 1;
    }
    printf("intarsia %s\n", its_version());
    fill(x, y, out);
    its_status status = link_and_run(ctx, argv[1], argv[2], x, y, out);
    print_diagnostics(ctx);
    its_context_free(ctx);
    if (status != ITS_OK) {
        fprintf(stderr, "%s\n", its_status_text(status));
        return 1;
    }
    int right = count_right(x, y, out);
    printf("ran on the simulator: %d of %d values are right, out[1] is %g\n", right, N, out[1]);
    return right == N ? 0 : 1;
}
