/* nvJitLink: the module and NVSHMEM's device library to one piece of machine code. */
#include <string.h>

#include "asm/asm.h"

enum { INPUT_PTX = 2, INPUT_LIBRARY = 6 }; /* nvJitLinkInputType */

typedef struct jit {
    its_asm_job *job;
    const its_asm_nvshmem_files *files;
    its_nvjitlink api;
    void *handle;
} jit;

static char *read_log(jit *j, int (*get_size)(void *, size_t *), int (*get)(void *, char *)) {
    size_t size = 0;
    if (!j->handle || get_size(j->handle, &size) != 0 || size == 0) return its_arena_text(j->job->arena, "", 0);
    char *log = its_arena_zalloc(j->job->arena, size + 1);
    get(j->handle, log);
    return log;
}

static its_status refused(jit *j) {
    char *log = read_log(j, j->api.nvJitLinkGetErrorLogSize, j->api.nvJitLinkGetErrorLog);
    size_t size = strlen(log);
    while (size && (log[size - 1] == '\n' || log[size - 1] == ' ')) log[--size] = 0;
    const char *hint = strstr(log, "nvshmemi_transfer_")
                           ? "this NVSHMEM has no way through a network for that; transport=\"p2p\" does without"
                       : size ? NULL
                              : "the library may have no code for that architecture: `intarsia doctor` tells";
    return its_fail(j->job->ctx, ITS_ERR_INPUT, hint, "nvJitLink %s can't link the module for %s with '%s': %.4000s",
                    j->job->result.version, j->job->arch, j->files->library, size ? log : "it does not say why");
}

static its_status lacks_code(jit *j) {
    return its_fail(j->job->ctx, ITS_ERR_INPUT,
                    "a newer NVSHMEM may have it; with transport=\"p2p\" kernels do without that library",
                    "NVSHMEM's device library '%s' has no code for %s", j->files->library, j->job->arch);
}

/* The options for nvJitLink: ptxas's own go through -Xptxas. */
static const char **arguments(its_asm_job *job, uint32_t *count) {
    ITS_VEC(const char *) list = {0};
    const its_asm_options *o = job->options;
    ITS_PUSH(job->arena, &list, its_arena_printf(job->arena, "-arch=%s", job->arch));
    ITS_PUSH(job->arena, &list, "-O3");
    ITS_PUSH(job->arena, &list, "-verbose");
    if (o->line_info) ITS_PUSH(job->arena, &list, "-lineinfo");
    for (uint32_t i = 0; i < o->n_options; i++)
        ITS_PUSH(job->arena, &list, its_arena_printf(job->arena, "-Xptxas=%s", o->options[i]));
    *count = (uint32_t)list.count;
    return list.items;
}

static its_status link_all(void *user) {
    jit *j = user;
    its_asm_job *job = j->job;
    uint32_t count;
    const char **options = arguments(job, &count);
    its_asm_mend_names(job->ptx); /* a device file may have included NVSHMEM's headers itself */
    if (j->api.nvJitLinkCreate(&j->handle, count, options) != 0)
        return its_fail(job->ctx, ITS_ERR_INPUT, "INTARSIA_NVJITLINK names another one",
                        "nvJitLink %s in '%s' can't link for %s", job->result.version, job->result.path, job->arch);
    if (j->api.nvJitLinkAddData(j->handle, INPUT_PTX, job->ptx, job->ptx_size + 1, "module.ptx") != 0)
        return refused(j);
    if (j->api.nvJitLinkAddFile(j->handle, INPUT_LIBRARY, j->files->library) != 0) return lacks_code(j);
    if (j->api.nvJitLinkComplete(j->handle) != 0) return refused(j);
    size_t size;
    if (j->api.nvJitLinkGetLinkedCubinSize(j->handle, &size) != 0) return refused(j);
    void *cubin = its_arena_alloc(job->arena, size);
    if (j->api.nvJitLinkGetLinkedCubin(j->handle, cubin) != 0) return refused(j);
    job->result.cubin = cubin;
    job->result.cubin_size = size;
    its_asm_read_log(job->arena, read_log(j, j->api.nvJitLinkGetInfoLogSize, j->api.nvJitLinkGetInfoLog), &job->result);
    return ITS_OK;
}

its_status its_asm_run_nvjitlink(its_asm_job *job) {
    its_library_search search;
    its_asm_nvshmem_files files;
    its_library library;
    its_status status = its_asm_find_nvshmem(job->ctx, job->arena, &files);
    if (status != ITS_OK) return status;
    jit j = {.job = job, .files = &files};
    its_library_find(job->arena, ITS_LIBRARY_NVJITLINK, &search);
    status = its_library_open(job->ctx, &search, &library, &j.api);
    if (status != ITS_OK) return status;
    unsigned major = 0, minor = 0;
    j.api.nvJitLinkVersion(&major, &minor);
    job->result.tool = "nvJitLink";
    job->result.path = search.path;
    job->result.version = its_arena_printf(job->arena, "%u.%u", major, minor);
    job->result.library = files.library;
    status = its_protect(job->ctx, link_all, &j);
    if (j.handle) j.api.nvJitLinkDestroy(&j.handle);
    its_library_close(&library);
    return status;
}
