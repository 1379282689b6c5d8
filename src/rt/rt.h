/* The inside of the NVIDIA runtime. */
#ifndef ITS_RT_RT_H
#define ITS_RT_RT_H

#include "base/arena.h"
#include "base/diag.h"
#include "base/dynload.h"
#include "intarsia/asm.h"
#include "intarsia/rt.h"

typedef struct its_gpu its_gpu;

struct its_function {
    its_gpu *gpu;
    void *handle; /* CUfunction */
    its_function_info info;
    uint32_t shared_limit; /* dynamic shared memory that the function was opened up for */
    its_function *next;
};

struct its_loaded {
    its_gpu *gpu;
    its_loaded *next;
    void *handle; /* CUmodule */
    bool holds_nvshmem, known_to_nvshmem;
    its_function *functions;
    its_arena arena; /* what is known of its entries */
    its_function_info *entries;
    uint32_t n_entries;
};

/* A module that another library has loaded. */
typedef struct its_adopted {
    struct its_adopted *next;
    void *handle;
} its_adopted;

typedef struct its_gpu_waits its_gpu_waits;

typedef enum its_world_state { ITS_WORLD_NONE, ITS_WORLD_OURS, ITS_WORLD_FOREIGN } its_world_state;

struct its_gpu {
    its_backend base;
    its_cuda cuda;
    its_library cuda_library;
    its_nvshmem nvshmem;
    its_library nvshmem_library;
    const char *nvshmem_path;
    its_world_state world;
    its_cuda_options options;
    unsigned char unique_id[ITS_UNIQUE_ID_SIZE];
    int device;
    void *context; /* the primary one, which torch and Triton use as well */
    bool abandoned;
    uint64_t notes;           /* agree.c: of what PEs ask for; 0 with one PE */
    uint64_t n_asked;         /* collective calls so far */
    uint64_t n_symmetric;     /* symmetric allocations so far */
    uint64_t symmetric_bytes; /* allocated now, as asked for */
    its_loaded *loaded;
    its_adopted *adopted;
    struct its_symmetric *symmetric;
    uint64_t *wait_record; /* ITS_WAIT_WORDS, or NULL: no module waits with a limit */
    uint64_t wait_record_on_gpu;
    its_gpu_waits *waits; /* of each module that does */
    struct its_hosted *hosted;
    uint64_t n_waits; /* such modules so far */
    its_arena arena;  /* as long as the backend */
};

typedef struct its_symmetric {
    struct its_symmetric *next;
    uint64_t address;
    size_t size;
    uint64_t number; /* the same on all PEs */
} its_symmetric;

/* Memory of the host that kernels reach. */
typedef struct its_hosted {
    struct its_hosted *next;
    uint64_t address; /* the same for both */
    size_t size;
} its_hosted;

/* -- driver.c ------------------------------------------------------------------------------------------------------ */

its_status its_gpu_load_driver(its_context *ctx, its_cuda *cuda, its_library *library);
/* The error of a driver call; ITS_ERR_FAULT if a kernel is at fault. `what` is what was tried: "copy 16 bytes". */
its_status its_gpu_failed(its_gpu *gpu, int error, const char *what, ...) ITS_PRINTF(3, 4);
/* Makes our context the thread's. */
its_status its_gpu_enter(its_gpu *gpu);

/* -- world.c ------------------------------------------------------------------------------------------------------- */

its_status its_gpu_need_world(its_gpu *gpu);
void its_gpu_leave_world(its_gpu *gpu);
its_status its_gpu_symmetric_alloc(its_gpu *gpu, size_t size, size_t align, uint64_t *address);
its_status its_gpu_symmetric_free(its_gpu *gpu, uint64_t address);
its_status its_gpu_make_known(its_gpu *gpu, void *module);

/* -- agree.c ------------------------------------------------------------------------------------------------------- */

typedef enum its_gpu_asked { ITS_GPU_ALLOC = 1, ITS_GPU_FREE } its_gpu_asked;
enum { ITS_NOTE_BYTES = 256 };

its_status its_gpu_agree_begin(its_gpu *gpu);
/* Collective. ITS_ERR_USAGE, on every PE, if they don't all ask for the same. */
its_status its_gpu_agree(its_gpu *gpu, its_gpu_asked kind, uint64_t a, uint64_t b);

/* -- waits.c ------------------------------------------------------------------------------------------------------- */

/* Tells a module that was loaded how long its waits may take, if it was linked so and there is a limit. */
its_status its_gpu_limit_waits(its_gpu *gpu, void *module);
void its_gpu_forget_waits(its_gpu *gpu, const void *module); /* NULL: of all modules */
/* After a trap: whether it was a wait's; then that is reported. */
bool its_gpu_waited_too_long(its_gpu *gpu);

/* -- hosted.c ------------------------------------------------------------------------------------------------------ */

its_status its_gpu_host_alloc(its_gpu *gpu, size_t size, uint64_t *address);
its_status its_gpu_host_free(its_gpu *gpu, uint64_t address);
/* After a trap: whether it was that of a barrier or signal which made no sense; then that is reported. */
bool its_gpu_complained(its_gpu *gpu);

/* -- modules.c ----------------------------------------------------------------------------------------------------- */

its_status its_gpu_load(its_backend *backend, its_module *module, its_loaded **loaded);
void its_gpu_unload(its_backend *backend, its_loaded *loaded);
its_status its_gpu_function(its_backend *backend, its_loaded *loaded, const char *name, its_function **function);
its_status its_gpu_function_info(its_backend *backend, its_function *function, its_function_info *info);
its_status its_gpu_variable(its_backend *backend, its_loaded *loaded, const char *name, uint64_t *address,
                            size_t *size);
its_status its_gpu_launch(its_backend *backend, its_function *function, const its_launch *launch);

static inline its_gpu *its_gpu_of(its_backend *backend) {
    return (its_gpu *)(void *)backend;
}

#endif
