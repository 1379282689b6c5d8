/*
 * NVSHMEM's host library: who the PEs are, symmetric memory, and which modules it has to know.
 *
 * The structures below are those of NVSHMEM's public headers, version 1 of each, which every 3.x library takes; each
 * carries its own version and size.
 */
#include <limits.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rt/rt.h"

enum { INIT_WITH_UNIQUEID = 1 << 3, STATUS_IS_INITIALIZED = 2, DEFAULT_ALIGN = 256 };

typedef struct unique_id {
    int version;
    char internal[ITS_UNIQUE_ID_SIZE - sizeof(int)];
} unique_id;

typedef struct uid_args {
    int version;
    unique_id *id;
    int rank, n_ranks;
} uid_args;

typedef struct init_args {
    int version;
    uid_args uid;
    char content[96];
} init_args;

typedef struct init_attributes {
    int version;
    void *mpi_comm;
    init_args args;
} init_attributes;

_Static_assert(sizeof(unique_id) == 128 && sizeof(uid_args) == 24 && sizeof(init_args) == 128 &&
                   sizeof(init_attributes) == 144,
               "the sizes that NVSHMEM's headers assert");

#define VERSION_OF(type) ((1 << 16) + (int)sizeof(type))

/* -- loading ------------------------------------------------------------------------------------------------------- */

typedef struct load_job {
    its_context *ctx;
    its_nvshmem *nvshmem;
    its_library *library;
    its_arena *arena;
    const char *path;
} load_job;

static its_status load_body(void *user) {
    load_job *job = user;
    its_library_search search;
    its_library_find(job->arena, ITS_LIBRARY_NVSHMEM, &search);
    job->path = search.path;
    return its_library_open(job->ctx, &search, job->library, job->nvshmem);
}

its_status its_cuda_unique_id(its_context *ctx, void *out) {
    its_nvshmem nvshmem;
    its_library library;
    its_arena arena;
    its_arena_init(&arena, ctx);
    load_job job = {.ctx = ctx, .nvshmem = &nvshmem, .library = &library, .arena = &arena};
    its_status status = its_protect(ctx, load_body, &job);
    unique_id id = {.version = VERSION_OF(unique_id)};
    if (status == ITS_OK && nvshmem.nvshmemx_get_uniqueid(&id) != 0)
        status = its_fail(ctx, ITS_ERR_IO, "NVSHMEM_BOOTSTRAP_UID_SOCK_IFNAME names the network interface",
                          "NVSHMEM can't open a socket for PEs to meet at");
    memcpy(out, &id, sizeof id);
    its_arena_free(&arena);
    return status;
}

/* -- is it the right one ------------------------------------------------------------------------------------------- */

typedef struct other_library {
    const char *mine; /* real path of the one that is to be loaded */
    char found[PATH_MAX];
} other_library;

static int look_at_object(struct dl_phdr_info *info, size_t size, void *user) {
    other_library *other = user;
    char path[PATH_MAX];
    const char *name = strrchr(info->dlpi_name, '/');
    (void)size;
    if (!name || strncmp(name, "/libnvshmem_host.so", 19) != 0 || !realpath(info->dlpi_name, path)) return 0;
    if (strcmp(path, other->mine) == 0) return 0;
    memcpy(other->found, path, sizeof path);
    return 1;
}

/* Two host libraries in one process are two worlds, of which kernels know one. */
static its_status check_only_one(its_gpu *gpu) {
    char mine[PATH_MAX];
    other_library other = {.mine = realpath(gpu->nvshmem_path, mine)};
    if (!other.mine || !dl_iterate_phdr(look_at_object, &other)) return ITS_OK;
    return its_fail(
        gpu->base.ctx, ITS_ERR_INPUT, "set INTARSIA_NVSHMEM to the one that is loaded, or remove one of them",
        "there are two NVSHMEM host libraries: '%s' is loaded already, and '%s' was to be used", other.found, mine);
}

/*
 * Kernels are compiled with the headers beside the library; a wheel that was half replaced has another version there.
 */
static its_status check_headers(its_gpu *gpu) {
    uint32_t headers[3] = {0};
    int host[3] = {0};
    its_context *quiet = its_context_new(NULL); /* kernels may well do without headers */
    if (!quiet) return ITS_OK;
    its_status found = its_asm_nvshmem_version(quiet, headers);
    its_context_free(quiet);
    gpu->nvshmem.nvshmemx_vendor_get_version_info(&host[0], &host[1], &host[2]);
    bool same = true;
    for (int i = 0; i < 3; i++) same &= (uint32_t)host[i] == headers[i];
    if (found != ITS_OK || !headers[0] || same) return ITS_OK;
    return its_fail(gpu->base.ctx, ITS_ERR_INPUT,
                    "install one version: `pip install --force-reinstall nvidia-nvshmem-cu13`",
                    "NVSHMEM's host library '%s' is version %d.%d.%d, but the headers beside it are %u.%u.%u",
                    gpu->nvshmem_path, host[0], host[1], host[2], headers[0], headers[1], headers[2]);
}

/* -- beginning ----------------------------------------------------------------------------------------------------- */

/* NVSHMEM may have been initialised by somebody else, such as a host file: then it must agree. */
static its_status check_identity(its_gpu *gpu) {
    int pe = gpu->nvshmem.nvshmem_my_pe(), n_pes = gpu->nvshmem.nvshmem_n_pes();
    if (pe == (int)gpu->options.pe && n_pes == (int)gpu->options.n_pes) return ITS_OK;
    return its_fail(gpu->base.ctx, ITS_ERR_USAGE,
                    "let intarsia.init() come first, or start NVSHMEM with the same ranks",
                    "NVSHMEM is initialised already, as PE %d of %d, and this process is PE %u of %u", pe, n_pes,
                    gpu->options.pe, gpu->options.n_pes);
}

static its_status begin(its_gpu *gpu) {
    its_nvshmem *nvshmem = &gpu->nvshmem;
    unique_id id = {.version = VERSION_OF(unique_id)};
    if (gpu->options.unique_id)
        memcpy(&id, gpu->unique_id, sizeof id);
    else if (nvshmem->nvshmemx_get_uniqueid(&id) != 0)
        return its_fail(gpu->base.ctx, ITS_ERR_IO, "NVSHMEM_BOOTSTRAP_UID_SOCK_IFNAME names the network interface",
                        "NVSHMEM can't open a socket for PEs to meet at");
    init_attributes attributes = {.version = VERSION_OF(init_attributes)};
    attributes.args.version = VERSION_OF(init_args);
    attributes.args.uid.version = VERSION_OF(uid_args);
    int error =
        nvshmem->nvshmemx_set_attr_uniqueid_args((int)gpu->options.pe, (int)gpu->options.n_pes, &id, &attributes);
    if (!error) error = nvshmem->nvshmemx_hostlib_init_attr(INIT_WITH_UNIQUEID, &attributes);
    if (!error) return ITS_OK;
    return its_fail(gpu->base.ctx, ITS_ERR_IO, "NVSHMEM_DEBUG=INFO makes NVSHMEM say more",
                    "NVSHMEM in '%s' could not be initialised for PE %u of %u (status %d)", gpu->nvshmem_path,
                    gpu->options.pe, gpu->options.n_pes, error);
}

/*
 * Every peer must be reached by loads and stores; asked with memory of our own, since that is what NVSHMEM answers for.
 */
static its_status check_peers(its_gpu *gpu) {
    void *probe = gpu->nvshmem.nvshmem_align(DEFAULT_ALIGN, DEFAULT_ALIGN);
    int unreached = -1;
    for (int pe = 0; probe && pe < (int)gpu->options.n_pes && unreached < 0; pe++)
        if (!gpu->nvshmem.nvshmem_ptr(probe, pe)) unreached = pe;
    if (probe) gpu->nvshmem.nvshmem_free(probe);
    if (unreached < 0) return ITS_OK;
    return its_fail(gpu->base.ctx, ITS_ERR_INPUT, "leave transport=\"p2p\" away",
                    "PE %u does not reach PE %d by loads and stores, which transport=\"p2p\" promises", gpu->options.pe,
                    unreached);
}

its_status its_gpu_need_world(its_gpu *gpu) {
    if (gpu->world != ITS_WORLD_NONE) return ITS_OK;
    load_job job = {
        .ctx = gpu->base.ctx, .nvshmem = &gpu->nvshmem, .library = &gpu->nvshmem_library, .arena = &gpu->arena};
    its_status status = its_protect(gpu->base.ctx, load_body, &job);
    if (status != ITS_OK) return status;
    gpu->nvshmem_path = job.path;
    status = check_only_one(gpu);
    if (status == ITS_OK) status = check_headers(gpu);
    if (status != ITS_OK) return status;
    if (gpu->nvshmem.nvshmemx_init_status() >= STATUS_IS_INITIALIZED) {
        gpu->world = ITS_WORLD_FOREIGN;
    } else {
        status = begin(gpu);
        if (status == ITS_OK) gpu->world = ITS_WORLD_OURS;
    }
    if (status == ITS_OK) status = check_identity(gpu);
    if (status == ITS_OK && gpu->options.peers_only) status = check_peers(gpu);
    if (status == ITS_OK) status = its_gpu_agree_begin(gpu);
    return status;
}

void its_gpu_leave_world(its_gpu *gpu) {
    if (gpu->world == ITS_WORLD_OURS && !gpu->abandoned) gpu->nvshmem.nvshmemx_hostlib_finalize();
    gpu->world = ITS_WORLD_NONE;
    its_library_close(&gpu->nvshmem_library);
}

its_status its_cuda_need_nvshmem(its_backend *backend) {
    return its_gpu_need_world(its_gpu_of(backend));
}

/* -- symmetric memory ---------------------------------------------------------------------------------------------- */

static const char *setting(const char *name, const char *otherwise) {
    const char *value = getenv(name);
    return value && *value ? value : otherwise;
}

/*
 * NVSHMEM's heap grows as it is used, up to a limit, where the driver can map memory piece by piece; else it is fixed.
 */
static its_status full(its_gpu *gpu, size_t size) {
    bool fixed = strcmp(setting("NVSHMEM_DISABLE_CUDA_VMM", "0"), "0") != 0;
    const char *name = fixed ? "NVSHMEM_SYMMETRIC_SIZE" : "NVSHMEM_MAX_MEMORY_PER_GPU";
    return its_fail(gpu->base.ctx, ITS_ERR_NOMEM,
                    fixed ? "set NVSHMEM_SYMMETRIC_SIZE (bytes, or 4G) to more, or give "
                            "`intarsia run --heap-size`"
                          : "set NVSHMEM_MAX_MEMORY_PER_GPU (bytes, or 160G) to more, or "
                            "use less: the GPU itself may be full",
                    "PE %u has no room for %zu bytes in the symmetric heap: %llu bytes are in use, %s is %s",
                    gpu->options.pe, size, (unsigned long long)gpu->symmetric_bytes, name,
                    setting(name, fixed ? "1G, the default" : "128G, the default"));
}

static its_status remember(its_gpu *gpu, uint64_t address, size_t size) {
    its_symmetric *item = its_block_alloc(gpu->base.ctx, sizeof *item);
    if (!item) return its_fail(gpu->base.ctx, ITS_ERR_NOMEM, NULL, "no memory to note an allocation");
    *item = (its_symmetric){.next = gpu->symmetric, .address = address, .size = size, .number = gpu->n_symmetric++};
    gpu->symmetric = item;
    gpu->symmetric_bytes += size;
    return ITS_OK;
}

its_status its_gpu_symmetric_alloc(its_gpu *gpu, size_t size, size_t align, uint64_t *address) {
    its_status status = its_gpu_need_world(gpu);
    if (!align) align = DEFAULT_ALIGN;
    if (status == ITS_OK) status = its_gpu_agree(gpu, ITS_GPU_ALLOC, size, align);
    if (status != ITS_OK) return status;
    void *block = gpu->nvshmem.nvshmem_align(align, size);
    if (!block) return full(gpu, size);
    *address = (uint64_t)(uintptr_t)block;
    return remember(gpu, *address, size);
}

its_status its_gpu_symmetric_free(its_gpu *gpu, uint64_t address) {
    for (its_symmetric **link = &gpu->symmetric; *link; link = &(*link)->next) {
        its_symmetric *item = *link;
        if (item->address != address) continue;
        its_status status = its_gpu_agree(gpu, ITS_GPU_FREE, item->number, 0);
        if (status != ITS_OK) return status;
        *link = item->next;
        gpu->symmetric_bytes -= item->size;
        its_free(gpu->base.ctx, item);
        gpu->nvshmem.nvshmem_free((void *)(uintptr_t)address);
        return ITS_OK;
    }
    return its_fail(gpu->base.ctx, ITS_ERR_USAGE, NULL, "0x%llx is no symmetric allocation of PE %u",
                    (unsigned long long)address, gpu->options.pe);
}

/* -- modules ------------------------------------------------------------------------------------------------------- */

its_status its_gpu_make_known(its_gpu *gpu, void *module) {
    its_status status = its_gpu_need_world(gpu);
    if (status != ITS_OK) return status;
    int error = gpu->nvshmem.nvshmemx_cumodule_init(module);
    if (!error) return ITS_OK;
    int major = 0, minor = 0, patch = 0;
    gpu->nvshmem.nvshmemx_vendor_get_version_info(&major, &minor, &patch);
    return its_fail(gpu->base.ctx, ITS_ERR_INPUT,
                    "headers, device library and host library must be of one version: `intarsia doctor` tells",
                    "NVSHMEM %d.%d.%d in '%s' does not accept a module that was linked for NVSHMEM (status %d)", major,
                    minor, patch, gpu->nvshmem_path, error);
}
