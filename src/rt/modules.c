/* Modules and kernels on a GPU: from a linked module to machine code, to the driver, and to NVSHMEM if it holds its
 * state. */
#include <string.h>

#include "rt/rt.h"

enum {
    ATTRIBUTE_MAX_THREADS = 0,    /* CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK */
    ATTRIBUTE_SHARED = 1,         /* CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES */
    ATTRIBUTE_DYNAMIC_SHARED = 8, /* CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES */
    ATTRIBUTE_COMPUTE_MAJOR = 75, /* CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR */
    ATTRIBUTE_COMPUTE_MINOR = 76
};

static const char state_name[] = "nvshmemi_device_state_d";

/* -- loading ------------------------------------------------------------------------------------------------------- */

static bool needs_nvshmem(its_gpu *gpu, void *module) {
    uint64_t address;
    size_t size;
    return gpu->cuda.cuModuleGetGlobal_v2(&address, &size, module, state_name) == 0;
}

typedef struct load_job {
    its_gpu *gpu;
    its_module *module;
    its_loaded *loaded;
    its_asm_result *code;
} load_job;

static uint32_t count_entries(const its_module *module) {
    uint32_t count = 0;
    for (its_func *f = its_module_next_func(module, NULL); f; f = its_module_next_func(module, f))
        count += (f->symbol->flags & ITS_SYM_ENTRY) != 0;
    return count;
}

/* Parameters are known from the PTX only: the module is gone when they are asked for. */
static void note_entries(its_loaded *loaded, const its_module *module) {
    its_arena *arena = &loaded->arena;
    loaded->entries = ITS_NEW_ARRAY(arena, its_function_info, count_entries(module) + 1);
    for (its_func *f = its_module_next_func(module, NULL); f; f = its_module_next_func(module, f)) {
        if (!(f->symbol->flags & ITS_SYM_ENTRY)) continue;
        uint32_t *sizes = ITS_NEW_ARRAY(arena, uint32_t, f->params.n + 1);
        for (uint32_t i = 0; i < f->params.n; i++) sizes[i] = (uint32_t)f->params.items[i]->size;
        loaded->entries[loaded->n_entries++] = (its_function_info){
            .name = its_arena_text(arena, f->symbol->name->text, f->symbol->name->size),
            .n_params = f->params.n,
            .param_sizes = sizes,
        };
    }
}

/* Machine code is for one architecture: this GPU's, whatever older one the module was written for. */
static const char *arch_of_gpu(its_gpu *gpu, its_arena *arena) {
    int major = 0, minor = 0;
    gpu->cuda.cuDeviceGetAttribute(&major, ATTRIBUTE_COMPUTE_MAJOR, gpu->device);
    gpu->cuda.cuDeviceGetAttribute(&minor, ATTRIBUTE_COMPUTE_MINOR, gpu->device);
    return its_arena_printf(arena, "sm_%d%d%s", major, minor, major >= 9 ? "a" : "");
}

/* The driver loads a kernel when it is first asked for, and may wait for running ones then: better now than later. */
static its_status load_functions(its_loaded *loaded) {
    its_status status = ITS_OK;
    its_function *function;
    for (uint32_t i = 0; i < loaded->n_entries && status == ITS_OK; i++)
        status = its_gpu_function(&loaded->gpu->base, loaded, loaded->entries[i].name, &function);
    return status;
}

static its_status load_body(void *user) {
    load_job *job = user;
    its_gpu *gpu = job->gpu;
    its_asm_options options = {.arch = arch_of_gpu(gpu, &job->loaded->arena), .line_info = true};
    its_status status = its_assemble(gpu->base.ctx, job->module, &options, &job->code);
    if (status != ITS_OK) return status;
    note_entries(job->loaded, job->module);
    int error = gpu->cuda.cuModuleLoadDataEx(&job->loaded->handle, job->code->cubin, 0, NULL, NULL);
    if (error) return its_gpu_failed(gpu, error, "load a module of %zu bytes", job->code->cubin_size);
    status = its_gpu_limit_waits(gpu, job->loaded->handle);
    if (status != ITS_OK) return status;
    job->loaded->holds_nvshmem = needs_nvshmem(gpu, job->loaded->handle);
    if (!job->loaded->holds_nvshmem) return load_functions(job->loaded);
    status = its_gpu_make_known(gpu, job->loaded->handle);
    job->loaded->known_to_nvshmem = status == ITS_OK;
    return status == ITS_OK ? load_functions(job->loaded) : status;
}

its_status its_gpu_load(its_backend *backend, its_module *module, its_loaded **loaded) {
    its_gpu *gpu = its_gpu_of(backend);
    *loaded = NULL;
    its_status status = its_gpu_enter(gpu);
    if (status != ITS_OK) return status;
    load_job job = {.gpu = gpu, .module = module, .loaded = its_block_alloc(backend->ctx, sizeof(its_loaded))};
    if (!job.loaded) return its_fail(backend->ctx, ITS_ERR_NOMEM, NULL, "no memory for a module");
    *job.loaded = (its_loaded){.gpu = gpu, .next = gpu->loaded};
    its_arena_init(&job.loaded->arena, backend->ctx);
    gpu->loaded = job.loaded;
    if (module->ctx != backend->ctx) { /* the assembler's diagnostics belong to this backend */
        char *text;
        size_t size;
        its_module *copy = NULL;
        status = its_ptx_print(module, &text, &size);
        if (status == ITS_OK) {
            status = its_ptx_parse(backend->ctx, "module.ptx", text, size, &copy);
            its_free(module->ctx, text);
        }
        job.module = copy;
    }
    if (status == ITS_OK) status = its_protect(backend->ctx, load_body, &job);
    its_asm_free(job.code);
    if (job.module != module) its_module_free(job.module);
    if (status == ITS_OK)
        *loaded = job.loaded;
    else
        its_gpu_unload(backend, job.loaded);
    return status;
}

void its_gpu_unload(its_backend *backend, its_loaded *loaded) {
    its_gpu *gpu = its_gpu_of(backend);
    if (!loaded) return;
    for (its_loaded **link = &gpu->loaded; *link; link = &(*link)->next)
        if (*link == loaded) {
            *link = loaded->next;
            break;
        }
    gpu->cuda.cuCtxSetCurrent(gpu->context);
    if (loaded->known_to_nvshmem && !gpu->abandoned) gpu->nvshmem.nvshmemx_cumodule_finalize(loaded->handle);
    if (loaded->handle) its_gpu_forget_waits(gpu, loaded->handle);
    if (loaded->handle) gpu->cuda.cuModuleUnload(loaded->handle);
    its_arena_free(&loaded->arena);
    its_free(backend->ctx, loaded);
}

/* -- modules of others --------------------------------------------------------------------------------------------- */

its_status its_cuda_adopt(its_backend *backend, void *module, bool *holds) {
    its_gpu *gpu = its_gpu_of(backend);
    its_status status = its_gpu_enter(gpu);
    if (status != ITS_OK) return status;
    status = its_gpu_limit_waits(gpu, module);
    if (status != ITS_OK) return status;
    bool does = needs_nvshmem(gpu, module);
    if (holds) *holds = does;
    if (!does) return ITS_OK;
    for (const its_adopted *a = gpu->adopted; a; a = a->next)
        if (a->handle == module) return ITS_OK;
    its_adopted *item = its_block_alloc(backend->ctx, sizeof *item);
    if (!item) return its_fail(backend->ctx, ITS_ERR_NOMEM, NULL, "no memory to note a module");
    status = its_gpu_make_known(gpu, module);
    if (status != ITS_OK) return its_free(backend->ctx, item), status;
    *item = (its_adopted){.next = gpu->adopted, .handle = module};
    gpu->adopted = item;
    return ITS_OK;
}

void its_cuda_forget(its_backend *backend, void *module) {
    its_gpu *gpu = its_gpu_of(backend);
    its_gpu_forget_waits(gpu, module);
    for (its_adopted **link = &gpu->adopted; *link; link = &(*link)->next) {
        its_adopted *item = *link;
        if (item->handle != module) continue;
        *link = item->next;
        if (!gpu->abandoned) gpu->nvshmem.nvshmemx_cumodule_finalize(module);
        its_free(backend->ctx, item);
        return;
    }
}

/* -- functions ----------------------------------------------------------------------------------------------------- */

static const its_function_info *find_entry(const its_loaded *loaded, const char *name) {
    for (uint32_t i = 0; i < loaded->n_entries; i++)
        if (strcmp(loaded->entries[i].name, name) == 0) return &loaded->entries[i];
    return NULL;
}

typedef struct function_job {
    its_loaded *loaded;
    const its_function_info *entry;
    its_function *made;
} function_job;

static its_status make_function(void *user) {
    function_job *job = user;
    its_gpu *gpu = job->loaded->gpu;
    its_function *f = ITS_NEW(&job->loaded->arena, its_function);
    f->gpu = gpu;
    f->info = *job->entry;
    int error = gpu->cuda.cuModuleGetFunction(&f->handle, job->loaded->handle, f->info.name);
    if (error) return its_gpu_failed(gpu, error, "find the kernel %.160s", f->info.name);
    int threads = 0, shared = 0;
    gpu->cuda.cuFuncGetAttribute(&threads, ATTRIBUTE_MAX_THREADS, f->handle);
    gpu->cuda.cuFuncGetAttribute(&shared, ATTRIBUTE_SHARED, f->handle);
    f->info.max_threads = (uint32_t)threads;
    f->info.shared = (uint32_t)shared;
    f->next = job->loaded->functions;
    job->loaded->functions = f;
    job->made = f;
    return ITS_OK;
}

its_status its_gpu_function(its_backend *backend, its_loaded *loaded, const char *name, its_function **function) {
    for (*function = loaded->functions; *function; *function = (*function)->next)
        if (strcmp((*function)->info.name, name) == 0) return ITS_OK;
    function_job job = {.loaded = loaded, .entry = find_entry(loaded, name)};
    if (!job.entry) return its_fail(backend->ctx, ITS_ERR_INPUT, NULL, "the module has no kernel called '%s'", name);
    its_status status = its_protect(backend->ctx, make_function, &job);
    *function = job.made;
    return status;
}

its_status its_gpu_function_info(its_backend *backend, its_function *function, its_function_info *info) {
    (void)backend;
    *info = function->info;
    return ITS_OK;
}

its_status its_gpu_variable(its_backend *backend, its_loaded *loaded, const char *name, uint64_t *address,
                            size_t *size) {
    its_gpu *gpu = its_gpu_of(backend);
    if (gpu->cuda.cuModuleGetGlobal_v2(address, size, loaded->handle, name) == 0) return ITS_OK;
    return its_fail(backend->ctx, ITS_ERR_INPUT, NULL, "the module has no variable called '%s'", name);
}

/* More than 48 KiB of dynamic shared memory must be asked for. */
static its_status open_shared(its_gpu *gpu, its_function *f, uint32_t shared) {
    if (shared <= f->shared_limit || shared <= 48 * 1024) return ITS_OK;
    int error = gpu->cuda.cuFuncSetAttribute(f->handle, ATTRIBUTE_DYNAMIC_SHARED, (int)shared);
    if (error) return its_gpu_failed(gpu, error, "give %.100s %u bytes of dynamic shared memory", f->info.name, shared);
    f->shared_limit = shared;
    return ITS_OK;
}

its_status its_gpu_launch(its_backend *backend, its_function *function, const its_launch *launch) {
    its_gpu *gpu = its_gpu_of(backend);
    if (launch->n_params != function->info.n_params)
        return its_fail(backend->ctx, ITS_ERR_USAGE, NULL, "%s takes %u parameters, %u were given", function->info.name,
                        function->info.n_params, launch->n_params);
    its_status status = its_gpu_enter(gpu);
    if (status == ITS_OK) status = open_shared(gpu, function, launch->shared);
    if (status != ITS_OK) return status;
    const uint32_t *g = launch->grid, *b = launch->block;
    int error = gpu->cuda.cuLaunchKernel(function->handle, g[0], g[1], g[2], b[0], b[1], b[2], launch->shared,
                                         (void *)(uintptr_t)launch->stream, (void **)(uintptr_t)launch->params, NULL);
    return error ? its_gpu_failed(gpu, error, "launch %.160s", function->info.name) : ITS_OK;
}
