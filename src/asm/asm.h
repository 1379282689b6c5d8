/* The inside of src/asm: what its files give each other. */
#ifndef ITS_ASM_ASM_H
#define ITS_ASM_ASM_H

#include "base/buffer.h"
#include "base/diag.h"
#include "base/dynload.h"
#include "intarsia/asm.h"

/* One run of an assembler. The result and all its texts are in `arena`. */
typedef struct its_asm_job {
    its_context *ctx;
    const its_module *module;
    const its_asm_options *options;
    const char *arch;
    char *ptx; /* free with its_free */
    size_t ptx_size;
    its_asm_result result;
    its_arena *arena;
} its_asm_job;

typedef ITS_VEC(its_asm_func) its_asm_funcs;
typedef ITS_VEC(its_asm_advice) its_asm_advices;

/* Reads what `ptxas -v` says into `result`; takes any text. */
void its_asm_read_log(its_arena *arena, const char *log, its_asm_result *result);

/* Requires `ptx`. Ensures that `result` is filled in, or an error. */
its_status its_asm_run_ptxas(its_asm_job *job);
its_status its_asm_run_nvjitlink(its_asm_job *job);

/* The ptxas for an architecture, and its version (CUDA's own, 12 and 8). */
its_status its_asm_find_ptxas(its_context *ctx, its_arena *arena, const char *arch, its_library_search *search);
its_status its_asm_ptxas_version(its_context *ctx, const char *path, uint32_t *major, uint32_t *minor);

/* sm_90a -> 90; 0 if it is none. */
uint32_t its_asm_arch_number(const char *arch);
/* The PTX version that came with a CUDA version: 12.8 has 8.7. */
void its_asm_isa_of_cuda(uint32_t cuda_major, uint32_t cuda_minor, uint32_t *major, uint32_t *minor);
/* The first CUDA version that knows an architecture, as 10 * major + minor; 0 if that is not known. */
uint32_t its_asm_cuda_of_arch(uint32_t number);

/*
 * NVSHMEM as it lies on this machine. `library` is its one archive, which holds code for several architectures; the
 * bitcode files that newer releases have, one for each, are not used.
 */
typedef struct its_asm_nvshmem_files {
    its_library_search host;
    const char *include, *library;
    uint32_t major, minor, patch; /* of the headers; 0 if they have none */
} its_asm_nvshmem_files;
/* Requires NUL-terminated PTX. Ensures that calls of NVSHMEM's library have the names that the library gives them. */
void its_asm_mend_names(char *text);
/* Copies the text, its NUL included: those of `names` that are internal to a source get their own names. */
void its_asm_own_names(its_buffer *out, const char *text, const char *const *names, size_t count);
/* Copies PTX that leaves nothing open: NVSHMEM's ways through a network become traps, its device state is defined. */
void its_asm_p2p(its_buffer *out, const char *text);
its_status its_asm_find_nvshmem(its_context *ctx, its_arena *arena, its_asm_nvshmem_files *files);
/* Links next to nothing with the archive: has it code for the architecture? */
its_status its_asm_try_nvshmem(its_context *ctx, const char *arch);

#endif
