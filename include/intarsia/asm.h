/*
 * PTX to machine code.
 *
 * A module that needs nothing else goes through ptxas, whole: no `-c`, which would serialise wgmma and ignore
 * setmaxnreg. One that still needs NVSHMEM goes through nvJitLink, together with NVSHMEM's device library. Which of the
 * two is told by the externs that are left, never by a name of a kernel.
 */
#ifndef INTARSIA_ASM_H
#define INTARSIA_ASM_H

#include "intarsia/ptx.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct its_asm_options {
    const char *arch;           /* "sm_90a"; NULL: the module's own target */
    const char *const *options; /* given to ptxas (and, behind -Xptxas=, to nvJitLink) as they are */
    uint32_t n_options;
    bool line_info; /* keep line tables */
} its_asm_options;

/* What a kernel or function came to. */
typedef struct its_asm_func {
    const char *name;
    bool entry;
    uint32_t registers, barriers;
    uint64_t stack, spill_stores, spill_loads, shared; /* bytes */
} its_asm_func;

/* Something that the assembler did on its own and that costs speed. */
typedef struct its_asm_advice {
    const char *code;     /* "C7509" */
    const char *function; /* which it is about, "" if it isn't said */
    const char *text;     /* the assembler's own words */
    bool serialised;      /* wgmma instructions run one after the other, or are waited for early: C7509 to C7520 */
    bool no_setmaxnreg;   /* setmaxnreg is ignored: C7504 to C7508 */
} its_asm_advice;

typedef struct its_asm_result {
    const void *cubin;
    size_t cubin_size;
    const char *tool;    /* "ptxas" or "nvJitLink" */
    const char *path;    /* of it */
    const char *version; /* "12.8" */
    const char *library; /* the device library that was linked, or NULL */
    uint32_t n_funcs;
    const its_asm_func *funcs;
    uint32_t n_advice;
    const its_asm_advice *advice;
    const char *log; /* all that was said */
} its_asm_result;

/*
 * Assembles a module; `options` may be NULL. On success `*result` is the caller's, to be freed with its_asm_free before
 * its context. ITS_ERR_INPUT with what the assembler said, or with the externs that no library provides;
 * ITS_ERR_ABSENT if the assembler or a library is not on this machine; ITS_ERR_IO if a file for it can't be written.
 */
ITS_API its_status its_assemble(its_context *ctx, const its_module *module, const its_asm_options *options,
                                its_asm_result **result);
/* Frees a result and all it points to; NULL does nothing. */
ITS_API void its_asm_free(its_asm_result *result);

/*
 * What the numbers came to, and every advice, as text for people; free with its_free. NULL if memory ran out. With
 * `before` (may be NULL), what the module came to without something, each number has the one before behind it.
 */
ITS_API char *its_asm_text(its_context *ctx, const its_asm_result *before, const its_asm_result *result);
/* The same as JSON; free with its_free. NULL if memory ran out. */
ITS_API char *its_asm_json(its_context *ctx, const its_asm_result *before, const its_asm_result *result);

/* Whether `result` has an advice of this code about this function. */
ITS_API bool its_asm_says(const its_asm_result *result, const its_asm_advice *advice);

/* Whether a module holds NVSHMEM's device state, and so must be made known to NVSHMEM when it is loaded. */
ITS_API bool its_asm_holds_nvshmem(const its_module *module);

/*
 * The newest PTX version that the ptxas of this machine takes for `arch` (NULL: any), for its_link_options.
 * ITS_ERR_ABSENT if there is no ptxas.
 */
ITS_API its_status its_asm_ptx_version(its_context *ctx, const char *arch, uint32_t *major, uint32_t *minor);

/* -- NVSHMEM's device functions ------------------------------------------------------------------------------------ */

typedef enum its_transport {
    ITS_TRANSPORT_ALL, /* what a peer is not reached by loads and stores goes through NVSHMEM's transports */
    ITS_TRANSPORT_P2P, /* loads and stores only: a kernel that would need more traps */
} its_transport;

/*
 * NVSHMEM's device functions with the given names, made from the headers of the NVSHMEM that is on this machine and
 * compiled for `arch`, as library modules for its_link. Its common functions are compiled together, once for each
 * version and architecture; others when they are asked for. Names that NVSHMEM doesn't define are left out.
 * `*modules` and each module are the caller's: free the modules with its_module_free, the array with its_free.
 * ITS_ERR_ABSENT without NVSHMEM's headers and library or without NVRTC, else as its_cc; `*count` is then 0.
 */
ITS_API its_status its_asm_nvshmem(its_context *ctx, const char *arch, its_transport transport,
                                   const char *const *names, uint32_t n_names, its_module ***modules, uint32_t *count);

/* The version of the NVSHMEM on this machine, from its headers: major, minor, patch. ITS_ERR_ABSENT without one. */
ITS_API its_status its_asm_nvshmem_version(its_context *ctx, uint32_t version[3]);

#ifdef __cplusplus
}
#endif
#endif
