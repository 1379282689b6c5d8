/* NVSHMEM's host API for host files, on the simulator's backend: what does not involve a stream. */
#include "nvshmem.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "nvshmemx.h"
#include "simhost/simhost.h"

#define EXPORT __attribute__((visibility("default")))

static const char unique[] = "intarsia";

/* The PE, if NVSHMEM was initialised; what to do about it otherwise is a matter of the caller's return type. */
static its_sim_backend *initialised(const char *call) {
    its_sim_backend *sim = its_simhost_sim();
    if (sim && its_simhost_state()->initialised) return sim;
    its_simhost_wrong("call nvshmem_init first", "%s was called before nvshmem_init or after nvshmem_finalize", call);
    return NULL;
}

/* -- beginning and end --------------------------------------------------------------------------------------------- */

EXPORT void nvshmem_init(void) {
    if (its_simhost_sim()) its_simhost_state()->initialised++;
}

EXPORT int nvshmem_init_thread(int requested, int *provided) {
    (void)requested;
    nvshmem_init();
    if (provided) *provided = NVSHMEM_THREAD_SERIALIZED;
    return its_simhost_state()->initialised ? 0 : 1;
}

EXPORT void nvshmem_query_thread(int *provided) {
    if (provided) *provided = NVSHMEM_THREAD_SERIALIZED;
}

/* As in NVSHMEM, the end is a barrier. A PE that was attached stays open for its front end. */
EXPORT void nvshmem_finalize(void) {
    its_simhost *state = its_simhost_state();
    its_sim_backend *sim = initialised("nvshmem_finalize");
    if (!sim) return;
    its_simhost_done(its_sim_barrier(sim, NVSHMEM_TEAM_WORLD, true));
    if (!state->own && state->initialised == 1) return;
    if (--state->initialised == 0) its_simhost_close();
}

EXPORT void nvshmem_global_exit(int status) {
    exit(status);
}

EXPORT int nvshmemx_init_status(void) {
    return its_simhost_state()->initialised ? NVSHMEM_STATUS_IS_INITIALIZED : NVSHMEM_STATUS_NOT_INITIALIZED;
}

EXPORT int nvshmemx_get_uniqueid(nvshmemx_uniqueid_t *uniqueid) {
    if (!uniqueid) return 1;
    *uniqueid = (nvshmemx_uniqueid_t)NVSHMEMX_UNIQUEID_INITIALIZER;
    memcpy(uniqueid->internal, unique, sizeof unique);
    return 0;
}

EXPORT int nvshmemx_set_attr_uniqueid_args(const int myrank, const int nranks, const nvshmemx_uniqueid_t *uniqueid,
                                           nvshmemx_init_attr_t *attr) {
    if (!uniqueid || !attr || memcmp(uniqueid->internal, unique, sizeof unique) != 0) return 1;
    attr->args.uid_args.id = (nvshmemx_uniqueid_t *)(uintptr_t)uniqueid;
    attr->args.uid_args.myrank = myrank;
    attr->args.uid_args.nranks = nranks;
    return 0;
}

/* The world was made by the launcher; the file's own idea of its rank must be the same. */
EXPORT int nvshmemx_init_attr(unsigned int flags, nvshmemx_init_attr_t *attributes) {
    its_sim_backend *sim = its_simhost_sim();
    if (!sim) return 1;
    if (flags & (NVSHMEMX_INIT_WITH_MPI_COMM | NVSHMEMX_INIT_WITH_SHMEM)) {
        its_simhost_wrong("use nvshmem_init, or a unique id",
                          "the simulator can't be initialised from MPI or OpenSHMEM");
        return 1;
    }
    uint32_t pe, n_pes;
    sim->base.ops->identity(&sim->base, &pe, &n_pes);
    const nvshmemx_uniqueid_args_t *args = attributes ? &attributes->args.uid_args : NULL;
    if (flags & NVSHMEMX_INIT_WITH_UNIQUEID && (!args || args->myrank != (int)pe || args->nranks != (int)n_pes)) {
        its_simhost_wrong("take rank and size from the launcher (RANK and WORLD_SIZE)",
                          "nvshmemx_init_attr was told rank %d of %d, but this is PE %u of %u",
                          args ? args->myrank : -1, args ? args->nranks : -1, pe, n_pes);
        return 1;
    }
    nvshmem_init();
    return 0;
}

EXPORT int nvshmemx_cumodule_init(CUmodule module) {
    (void)module;
    return initialised("nvshmemx_cumodule_init") ? 0 : 1;
}

EXPORT int nvshmemx_cumodule_finalize(CUmodule module) {
    (void)module;
    return initialised("nvshmemx_cumodule_finalize") ? 0 : 1;
}

/* -- information --------------------------------------------------------------------------------------------------- */

EXPORT int nvshmem_my_pe(void) {
    its_sim_backend *sim = initialised("nvshmem_my_pe");
    uint32_t pe = 0, n_pes;
    if (sim) sim->base.ops->identity(&sim->base, &pe, &n_pes);
    return sim ? (int)pe : -1;
}

EXPORT int nvshmem_n_pes(void) {
    its_sim_backend *sim = initialised("nvshmem_n_pes");
    uint32_t pe, n_pes = 0;
    if (sim) sim->base.ops->identity(&sim->base, &pe, &n_pes);
    return sim ? (int)n_pes : -1;
}

EXPORT void nvshmem_info_get_version(int *major, int *minor) {
    *major = NVSHMEM_MAJOR_VERSION;
    *minor = NVSHMEM_MINOR_VERSION;
}

EXPORT void nvshmem_info_get_name(char *name) {
    static const char text[] = "Intarsia simulator";
    memcpy(name, text, sizeof text);
}

EXPORT void nvshmemx_vendor_get_version_info(int *major, int *minor, int *patch) {
    *major = NVSHMEM_VENDOR_MAJOR_VERSION;
    *minor = NVSHMEM_VENDOR_MINOR_VERSION;
    *patch = NVSHMEM_VENDOR_PATCH_VERSION;
}

/* -- teams --------------------------------------------------------------------------------------------------------- */

EXPORT int nvshmem_team_my_pe(nvshmem_team_t team) {
    its_sim_backend *sim = initialised("nvshmem_team_my_pe");
    const its_team *it = sim ? its_sim_team(sim, team) : NULL;
    return it ? (int)(((uint32_t)nvshmem_my_pe() - it->start) / it->stride) : -1;
}

EXPORT int nvshmem_team_n_pes(nvshmem_team_t team) {
    its_sim_backend *sim = initialised("nvshmem_team_n_pes");
    const its_team *it = sim ? its_sim_team(sim, team) : NULL;
    return it ? (int)it->size : -1;
}

EXPORT int nvshmem_team_translate_pe(nvshmem_team_t src_team, int src_pe, nvshmem_team_t dest_team) {
    its_sim_backend *sim = initialised("nvshmem_team_translate_pe");
    const its_team *from = sim ? its_sim_team(sim, src_team) : NULL, *to = sim ? its_sim_team(sim, dest_team) : NULL;
    if (!from || !to || src_pe < 0 || (uint32_t)src_pe >= from->size) return -1;
    uint32_t pe = from->start + (uint32_t)src_pe * from->stride;
    if (pe < to->start || (pe - to->start) % to->stride || (pe - to->start) / to->stride >= to->size) return -1;
    return (int)((pe - to->start) / to->stride);
}

EXPORT int nvshmem_team_split_strided(nvshmem_team_t parent_team, int PE_start, int PE_stride, int PE_size,
                                      const nvshmem_team_config_t *config, long config_mask, nvshmem_team_t *new_team) {
    (void)config, (void)config_mask;
    its_sim_backend *sim = initialised("nvshmem_team_split_strided");
    *new_team = NVSHMEM_TEAM_INVALID;
    const its_team *parent = sim ? its_sim_team(sim, parent_team) : NULL;
    if (!parent || PE_start < 0 || PE_stride <= 0 || PE_size <= 0 ||
        (uint64_t)(unsigned)PE_start + (uint64_t)(unsigned)(PE_size - 1) * (unsigned)PE_stride >= parent->size)
        return 1;
    if (parent->size != (uint32_t)nvshmem_n_pes()) {
        its_simhost_wrong("split NVSHMEM_TEAM_WORLD",
                          "nvshmem_team_split_strided: the simulator splits teams of all PEs only");
        return 1;
    }
    its_team members = {parent->start + (uint32_t)PE_start * parent->stride, (uint32_t)PE_stride * parent->stride,
                        (uint32_t)PE_size};
    its_status status = its_sim_team_new(sim, members, new_team);
    if (status != ITS_OK) its_simhost_done(status);
    return status == ITS_OK ? 0 : 1;
}

EXPORT void nvshmem_team_destroy(nvshmem_team_t team) {
    its_sim_backend *sim = initialised("nvshmem_team_destroy");
    if (sim && team != NVSHMEM_TEAM_INVALID) its_simhost_done(its_sim_team_free(sim, team));
}

/* -- memory -------------------------------------------------------------------------------------------------------- */

/* A lack of room is told by NULL, as in NVSHMEM; calls that don't agree and PEs that died are failures. */
static void *allocate(const char *call, size_t size, size_t align, bool clear) {
    its_sim_backend *sim = initialised(call);
    uint64_t address;
    if (!sim || !size) return NULL;
    its_status status = its_sim_symmetric_alloc(sim, call, size, align, &address);
    if (status != ITS_OK) {
        if (status != ITS_ERR_NOMEM) its_simhost_done(status);
        return NULL;
    }
    void *block = (void *)(uintptr_t)address;
    if (!clear) return block;
    memset(block, 0, size);
    /* Nobody may put into it before it is cleared. */
    its_simhost_done(its_sim_barrier(sim, NVSHMEM_TEAM_WORLD, false));
    return block;
}

EXPORT void *nvshmem_malloc(size_t size) {
    return allocate("nvshmem_malloc", size, 0, false);
}

EXPORT void *nvshmem_calloc(size_t count, size_t size) {
    if (size && count > SIZE_MAX / size) return NULL;
    return allocate("nvshmem_calloc", count * size, 0, true);
}

EXPORT void *nvshmem_align(size_t alignment, size_t size) {
    return allocate("nvshmem_align", size, alignment, false);
}

EXPORT void nvshmem_free(void *ptr) {
    its_sim_backend *sim = initialised("nvshmem_free");
    if (sim && ptr) its_simhost_done(its_sim_symmetric_free(sim, "nvshmem_free", (uint64_t)(uintptr_t)ptr));
}

EXPORT void *nvshmem_ptr(const void *ptr, int pe) {
    its_sim_backend *sim = initialised("nvshmem_ptr");
    uint64_t mapped;
    if (!sim || pe < 0 || !its_sim_peer(sim, (uint64_t)(uintptr_t)ptr, (uint32_t)pe, &mapped)) return NULL;
    return (void *)(uintptr_t)mapped;
}

/* -- order and barriers -------------------------------------------------------------------------------------------- */

EXPORT void nvshmem_quiet(void) {
    atomic_thread_fence(memory_order_seq_cst);
}

EXPORT void nvshmem_fence(void) {
    atomic_thread_fence(memory_order_seq_cst);
}

static int barrier(const char *call, nvshmem_team_t team) {
    its_sim_backend *sim = initialised(call);
    if (!sim) return 1;
    its_status status = its_sim_barrier(sim, team, false);
    its_simhost_done(status);
    return status == ITS_OK ? 0 : 1;
}

EXPORT int nvshmem_barrier(nvshmem_team_t team) {
    return barrier("nvshmem_barrier", team);
}
EXPORT void nvshmem_barrier_all(void) {
    barrier("nvshmem_barrier_all", NVSHMEM_TEAM_WORLD);
}
EXPORT int nvshmem_team_sync(nvshmem_team_t team) {
    return barrier("nvshmem_team_sync", team);
}
EXPORT void nvshmem_sync_all(void) {
    barrier("nvshmem_sync_all", NVSHMEM_TEAM_WORLD);
}

/* -- puts and gets ------------------------------------------------------------------------------------------------- */

/* The host's own puts and gets are done when they return; both ends are checked as those of a kernel are. */
static void put(const char *call, void *dest, const void *source, size_t bytes, int pe) {
    its_sim_backend *sim = initialised(call);
    uint64_t to;
    if (!sim) return;
    its_status status = its_sim_put_target(sim, call, (uint64_t)(uintptr_t)dest, bytes, pe, &to);
    if (status == ITS_OK) memmove((void *)(uintptr_t)to, source, bytes);
    its_simhost_done(status);
}

static void get(const char *call, void *dest, const void *source, size_t bytes, int pe) {
    its_sim_backend *sim = initialised(call);
    uint64_t from;
    if (!sim) return;
    its_status status = its_sim_put_target(sim, call, (uint64_t)(uintptr_t)source, bytes, pe, &from);
    if (status == ITS_OK) memmove(dest, (const void *)(uintptr_t)from, bytes);
    its_simhost_done(status);
}

EXPORT void nvshmem_putmem(void *dest, const void *source, size_t bytes, int pe) {
    put("nvshmem_putmem", dest, source, bytes, pe);
}
EXPORT void nvshmem_getmem(void *dest, const void *source, size_t bytes, int pe) {
    get("nvshmem_getmem", dest, source, bytes, pe);
}
EXPORT void nvshmem_putmem_nbi(void *dest, const void *source, size_t bytes, int pe) {
    put("nvshmem_putmem_nbi", dest, source, bytes, pe);
}
EXPORT void nvshmem_getmem_nbi(void *dest, const void *source, size_t bytes, int pe) {
    get("nvshmem_getmem_nbi", dest, source, bytes, pe);
}

EXPORT uint64_t nvshmem_signal_fetch(uint64_t *sig_addr) {
    return __atomic_load_n(sig_addr, __ATOMIC_ACQUIRE);
}

#define DEFINE(NAME, TYPE)                                                                        \
    EXPORT void nvshmem_##NAME##_p(TYPE *dest, const TYPE value, int pe) {                        \
        put("nvshmem_" #NAME "_p", dest, &value, sizeof value, pe);                               \
    }                                                                                             \
    EXPORT TYPE nvshmem_##NAME##_g(const TYPE *source, int pe) {                                  \
        TYPE value = 0;                                                                           \
        get("nvshmem_" #NAME "_g", &value, source, sizeof value, pe);                             \
        return value;                                                                             \
    }                                                                                             \
    EXPORT void nvshmem_##NAME##_put(TYPE *dest, const TYPE *source, size_t nelems, int pe) {     \
        put("nvshmem_" #NAME "_put", dest, source, nelems * sizeof(TYPE), pe);                    \
    }                                                                                             \
    EXPORT void nvshmem_##NAME##_get(TYPE *dest, const TYPE *source, size_t nelems, int pe) {     \
        get("nvshmem_" #NAME "_get", dest, source, nelems * sizeof(TYPE), pe);                    \
    }                                                                                             \
    EXPORT void nvshmem_##NAME##_put_nbi(TYPE *dest, const TYPE *source, size_t nelems, int pe) { \
        put("nvshmem_" #NAME "_put_nbi", dest, source, nelems * sizeof(TYPE), pe);                \
    }                                                                                             \
    EXPORT void nvshmem_##NAME##_get_nbi(TYPE *dest, const TYPE *source, size_t nelems, int pe) { \
        get("nvshmem_" #NAME "_get_nbi", dest, source, nelems * sizeof(TYPE), pe);                \
    }
INTARSIA_NVSHMEM_HOST_TYPES(DEFINE)
