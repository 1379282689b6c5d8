/*
 * Compiling a region's source to PTX through a dialect, with a cache on disk.
 *
 * Dialects built in: "cuda" (NVRTC, loaded at run time), "ptx" (the source is PTX already). An out-of-tree dialect is a
 * shared object that exports `const its_dialect its_dialect_descriptor`.
 */
#ifndef INTARSIA_CC_H
#define INTARSIA_CC_H

#include "intarsia/base.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct its_cc_input {
    const char *dialect;  /* "cuda", "ptx", or the path of a shared object; NULL: "cuda" */
    const char *path;     /* the source file; with `source` only the name that diagnostics use */
    const char *source;   /* the text itself, or NULL to read `path` */
    const char *arch;     /* "sm_80", "sm_90a" */
    const char *const *options; /* "-I", "dir", "-DNAME=1", "-lineinfo" ...; -I paths are relative to the current directory */
    uint32_t n_options;
    const char *const *instances; /* template instantiations or C++ names to force out: "scale<float>" */
    uint32_t n_instances;
    bool no_cache;
} its_cc_input;

/* A function that a unit defines. */
typedef struct its_unit_func {
    const char *name;      /* as it is called in PTX */
    const char *spelling;  /* as the user spells it: an instance's C++ name, or the demangled name; else `name` */
} its_unit_func;

typedef struct its_unit {
    char id[17];           /* 16 hex digits: the hash of source, includes, dialect and options */
    const char *path;      /* as given */
    const char *arch;
    const char *ptx;       /* NUL-terminated */
    size_t ptx_size;
    uint32_t n_funcs;      /* functions with a body, visible ones first */
    const its_unit_func *funcs;
    uint32_t n_depends;    /* every file that was read: the source itself and its includes */
    const char *const *depends;
    const char *log;       /* what the compiler said, warnings included; "" if nothing */
    bool cached;           /* came out of the cache */
} its_unit;

/*
 * Compiles, or takes the result out of the cache. `*unit` is the caller's, to be freed with its_unit_free before the
 * context. On failure: ITS_ERR_INPUT with the compiler's own messages as diagnostics (user's file and line),
 * ITS_ERR_ABSENT if the compiler is not on this machine, ITS_ERR_IO.
 */
ITS_API its_status its_cc(its_context *ctx, const its_cc_input *input, its_unit **unit);
ITS_API void its_unit_free(its_unit *unit);

/* The function called `name` or spelled so; an error that lists those there are if there is none. */
ITS_API its_status its_unit_find(its_context *ctx, const its_unit *unit, const char *name, const its_unit_func **func);

/* -- dialects ------------------------------------------------------------------------------------------------------ */

#define ITS_DIALECT_ABI 1

/* What a dialect gives back; every text from `alloc`. */
typedef struct its_dialect_result {
    char *ptx;
    size_t ptx_size;
    char *log;
    char **depends;
    uint32_t n_depends;
    char **instance_names; /* PTX names of the instances asked for, in order */
} its_dialect_result;

typedef struct its_dialect {
    uint32_t abi; /* ITS_DIALECT_ABI */
    const char *name;
    /* The compiler's identity and version for the cache key, e.g. "nvrtc 13.0.88"; written into `text`. */
    its_status (*version)(its_context *ctx, char *text, size_t size);
    /*
     * Compiles `source`. A dialect that fails adds diagnostics with its_cc_error, or leaves its log in `result->log`.
     * Memory in `result` comes from `alloc(ctx, size)`, which returns NULL when memory ran out.
     */
    its_status (*compile)(its_context *ctx, const its_cc_input *input, const char *source, size_t size,
                          void *(*alloc)(its_context *ctx, size_t size), its_dialect_result *result);
} its_dialect;

/* Adds an error at a place of a source file; for dialects. `column` may be 0, `text` (the source line) NULL. */
ITS_API void its_cc_error(its_context *ctx, const char *file, uint32_t line, uint32_t column, const char *text,
                          const char *message);

/* -- the cache ----------------------------------------------------------------------------------------------------- */

typedef struct its_cache_info {
    char *directory; /* free with its_free */
    uint64_t entries, bytes;
} its_cache_info;

/* Where it is (INTARSIA_CACHE_DIR, else XDG_CACHE_HOME/intarsia, else ~/.cache/intarsia) and how much it holds. */
ITS_API its_status its_cache_query(its_context *ctx, its_cache_info *info);
ITS_API its_status its_cache_clear(its_context *ctx, uint64_t *removed);

#ifdef __cplusplus
}
#endif
#endif
