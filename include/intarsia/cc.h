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
    const char *dialect; /* "cuda", "ptx", or the path of a shared object; NULL: "cuda" */
    const char *path;    /* the source file; with `source` only the name that diagnostics use, NULL: "source.cu" */
    const char *source;  /* the text itself, NUL-terminated, or NULL to read `path` */
    const char *arch;    /* "sm_80", "sm_90a" */
    const char *const *options; /* "-Idir", "-I", "dir", "-DNAME=1" ...; -I is relative to the current directory */
    uint32_t n_options;
    const char *const *instances; /* template instantiations or C++ names to force out: "scale<float>" */
    uint32_t n_instances;
    bool no_cache;
} its_cc_input;

/* A function that a unit defines. */
typedef struct its_unit_func {
    const char *name;     /* as it is called in PTX */
    const char *spelling; /* as the user spells it: an instance's C++ name, or the demangled name; else `name` */
} its_unit_func;

typedef struct its_unit {
    char id[17];      /* 16 hex digits: the hash of source, includes, dialect and options */
    const char *path; /* as given */
    const char *arch;
    const char *ptx; /* NUL-terminated */
    size_t ptx_size;
    uint32_t n_funcs; /* functions with a body, visible ones first */
    const its_unit_func *funcs;
    uint32_t n_depends; /* the source itself, if it is a file, and every file that it can include */
    const char *const *depends;
    const char *log; /* what the compiler said, warnings included; "" if nothing */
    bool cached;     /* came out of the cache */
} its_unit;

/*
 * Compiles, or takes the result out of the cache. `*unit` is the caller's, to be freed with its_unit_free before the
 * context. On failure: ITS_ERR_INPUT with the compiler's own messages as diagnostics (user's file and line),
 * ITS_ERR_ABSENT if the compiler is not on this machine, ITS_ERR_IO.
 */
ITS_API its_status its_cc(its_context *ctx, const its_cc_input *input, its_unit **unit);
/* Frees a unit and all it points to; NULL does nothing. */
ITS_API void its_unit_free(its_unit *unit);

/*
 * The unit id that its_cc would give, without compiling: what front ends put into kernels and into their own caches.
 * ITS_ERR_ABSENT if the compiler is not on this machine, since its version is part of the id.
 */
ITS_API its_status its_cc_id(its_context *ctx, const its_cc_input *input, char id[17]);

/*
 * The function called `name` or spelled so; "scale" also finds "ns::scale(float*, int)" if there is one such only.
 * ITS_ERR_INPUT with an error that lists those there are if there is none, or those that fit if there are several.
 */
ITS_API its_status its_unit_find(its_context *ctx, const its_unit *unit, const char *name, const its_unit_func **func);

/*
 * What the function called `name` in PTX takes and returns: "(.b64, .f32) -> .b32", without the arrow if it returns
 * nothing; a structure is ".b8[12]". CUDA compilers declare all numbers as .b32 and .b64: one that its body always
 * accesses as a float is told as .f32 or .f64, as an integer as .u32, .s32 and so on. Free `*text` with its_free.
 * ITS_ERR_INPUT if the unit defines no such function, or it is a kernel.
 */
ITS_API its_status its_unit_signature(its_context *ctx, const its_unit *unit, const char *name, char **text);

/*
 * The text of a file of device/ that is built into the library, such as "intarsia/barrier.cu"; NULL if there is none of
 * that name. For `source` of its_cc_input.
 */
ITS_API const char *its_cc_builtin(const char *name);

/* Headers of a FlagCX installation: paths, and what compiling them takes. */
typedef struct its_flagcx_headers {
    const char *const *files;
    uint32_t n_files;
    const char *const *options; /* "-Idir" ... */
    uint32_t n_options;
    bool teams; /* the names that functions with a team take matter as well */
} its_flagcx_headers;

/*
 * Checks that FlagCX's headers give the names and values that barriers are lowered with (src/link/barrier.def), by
 * compiling them for `arch`. ITS_ERR_INPUT with an error for each name that is missing or has another value;
 * ITS_ERR_ABSENT if there is no NVRTC.
 */
ITS_API its_status its_flagcx_check_headers(its_context *ctx, const its_flagcx_headers *headers, const char *arch);

/*
 * Which barrier provider a unit of FlagCX's device code is: "flagcx", the functions for the PEs of a node, or
 * "flagcx_team", those that take a team, if `teams` asks for them or it has no others. ITS_ERR_INPUT if a function is
 * missing or takes other arguments.
 */
ITS_API its_status its_flagcx_provider(its_context *ctx, const its_unit *unit, bool teams, const char **provider);

/* -- dialects ------------------------------------------------------------------------------------------------------ */

#define ITS_DIALECT_ABI 1

/* What compiling depends on; see its_dialect.scan. */
typedef struct its_cc_reads its_cc_reads;

/* How a .file directive names a file whose path is not known until the unit is loaded; see its_dialect.compile. */
#define ITS_FILE_MARK "intarsia:"

/* What a dialect may call; passed to it so that a shared object needs no symbol of this library. */
typedef struct its_cc_host its_cc_host;
struct its_cc_host {
    /* Memory for results, which lives until the compilation ends; NULL when memory ran out. */
    void *(*alloc)(const its_cc_host *host, size_t size);
    /* Adds an error at a place of a source file. `file` NULL: no place; `line`, `column` 0 and `text` (the source line)
     * NULL: unknown; `hint` NULL: none. */
    void (*error)(its_context *ctx, const char *file, uint32_t line, uint32_t column, const char *text,
                  const char *message, const char *hint);
    /* For `scan`: compiling reads this file, whose content becomes part of the unit id. False if it can't be read. */
    bool (*reads_file)(its_cc_reads *reads, const char *path);
    /* For `scan`: anything else that the result depends on. */
    void (*reads_text)(its_cc_reads *reads, const void *text, size_t size);
    /* For `compile`: the absolute path of the file that was read as number `index` from 0, or NULL past the last. */
    const char *(*read_path)(const its_cc_reads *reads, size_t index);
};

/* What a dialect gives back; every text from `alloc`. */
typedef struct its_dialect_result {
    char *ptx;
    size_t ptx_size;
    char *log;             /* NULL: nothing was said */
    char **instance_names; /* the PTX names of the instances asked for, in order; may be NULL if none were */
} its_dialect_result;

/*
 * Callbacks return ITS_OK, or another status after adding an error. They must not keep pointers to their arguments, and
 * must be callable from several threads at once with different contexts.
 */
typedef struct its_dialect {
    uint32_t abi; /* ITS_DIALECT_ABI */
    const char *name;
    /* The compiler's identity and version for the unit id, e.g. "nvrtc 13.0.88"; written into `text`. */
    its_status (*version)(its_context *ctx, const its_cc_host *host, char *text, size_t size);
    /*
     * Finds out what compiling will depend on besides source, architecture and instances, without compiling: included
     * files, and those options that matter. NULL: no file, and every option as it is spelled.
     */
    its_status (*scan)(its_context *ctx, const its_cc_host *host, const its_cc_input *input, const char *source,
                       size_t size, its_cc_reads *reads);
    /*
     * Compiles `source`. A dialect that fails adds errors, or leaves its log in `result->log`, which then becomes the
     * error.
     *
     * Results are found again by content, so they should not hold paths. In .file directives the path
     * ITS_FILE_MARK "0" stands for the source, ITS_FILE_MARK "1" for the first file that `scan` read, and so on; they
     * are replaced when the unit is loaded.
     */
    its_status (*compile)(its_context *ctx, const its_cc_host *host, const its_cc_input *input, const char *source,
                          size_t size, const its_cc_reads *reads, its_dialect_result *result);
} its_dialect;

/* -- the cache ----------------------------------------------------------------------------------------------------- */

typedef struct its_cache_info {
    char *directory; /* free with its_free */
    uint64_t entries, bytes;
} its_cache_info;

/*
 * Where it is (INTARSIA_CACHE_DIR, else XDG_CACHE_HOME/intarsia, else ~/.cache/intarsia) and how much it holds; nothing
 * if it is not there yet. ITS_ERR_IO if there can't be one: no home directory, or a directory that somebody else may
 * write.
 */
ITS_API its_status its_cache_query(its_context *ctx, its_cache_info *info);
/*
 * Removes every entry; other files in the directory are left alone. `removed` (may be NULL) is how many there were.
 * ITS_ERR_IO as its_cache_query, or if a file can't be removed.
 */
ITS_API its_status its_cache_clear(its_context *ctx, uint64_t *removed);

#ifdef __cplusplus
}
#endif
#endif
