/*
 * Loading libraries at run time: the only file of Intarsia that calls dlopen.
 *
 * A library is searched in this order; the first file there is wins:
 *
 *     1. its knob, an environment variable such as INTARSIA_NVRTC: a file, a directory that holds it, or `none`, which
 *        means "as if it were not on this machine". A knob that names nothing is an error, not a reason to search on.
 *     2. CUDA toolkits: $CUDA_HOME, $CUDA_PATH, /usr/local/cuda, /usr/local/cuda-* (highest version first)
 *     3. Python wheels: each directory in $INTARSIA_SITE_PACKAGES (separated by colons), the virtual environment
 *        $VIRTUAL_ENV, and the environments around this library or program (their own, or a .venv further up)
 *     4. the system: $LD_LIBRARY_PATH and the usual directories, at last what the loader itself finds
 *
 * INTARSIA_CUDA=toolkit leaves out 3, INTARSIA_CUDA=wheels leaves out 2.
 *
 * Searching only looks at files, so that it is cheap enough to be done for every key of the cache; loading comes after.
 */
#ifndef ITS_BASE_DYNLOAD_H
#define ITS_BASE_DYNLOAD_H

#include "base/arena.h"
#include "base/diag.h"

typedef enum its_library_id {
#define ITS_LIBRARY(id, what, file, versions, knob, wheels, hint) ITS_LIBRARY_##id,
#include "base/libraries.def"
#undef ITS_LIBRARY
    ITS_LIBRARY_COUNT
} its_library_id;

/* One place that was looked at. */
typedef struct its_looked {
    const char *path;
    const char *origin; /* why there: "INTARSIA_NVRTC", "CUDA_HOME", "site-packages of VIRTUAL_ENV", "system" ... */
    bool found;
} its_looked;

typedef struct its_library_search {
    its_library_id id;
    const char *what;         /* "NVRTC" */
    const char *path;         /* of the file that will be loaded; NULL: there is none */
    const char *origin;       /* of `path` */
    const char *problem;      /* what is wrong with the knob, or NULL */
    const char *hint;         /* what to install */
    const its_looked *looked; /* in order; `path` is the last one */
    size_t n_looked;
} its_library_search;

/* Looks for a library; everything in `search` is static or in the arena. */
void its_library_find(its_arena *arena, its_library_id id, its_library_search *search);
/* Says that the library is absent, and what to install; returns ITS_ERR_ABSENT. */
its_status its_library_absent(its_context *ctx, const its_library_search *search);

/* The directories of CUDA's own headers, those next to the library that was found first. */
typedef struct its_header_search {
    const char *const *dirs; /* to be given to the compiler in this order */
    size_t n_dirs;           /* 0: there are none */
    const char *origin;
} its_header_search;
void its_cuda_headers_find(its_arena *arena, const its_library_search *library, its_header_search *search);

/*
 * A program or file that comes with CUDA or in a wheel. The first of `knobs` (NULL at the end) that is set decides;
 * then each directory below the wheels' (`wheels`, separated by commas), each below the toolkits' (`toolkit`), then
 * PATH if `in_path`. `search` as for libraries.
 */
typedef struct its_tool {
    const char *what, *file;
    const char *const *knobs;
    const char *wheels, *toolkit; /* "" for none */
    bool in_path;
    const char *hint;
} its_tool;
void its_tool_find(its_arena *arena, const its_tool *tool, its_library_search *search);
/* Says that it is absent; returns ITS_ERR_ABSENT. */
its_status its_tool_absent(its_context *ctx, const its_tool *tool, const its_library_search *search);

/* -- loading ------------------------------------------------------------------------------------------------------- */

typedef struct its_library {
    void *handle;
} its_library;

/* The functions of each library, named as in its header. */
typedef struct its_nvrtc {
#define ITS_SYMBOL(result, name, params) result(*name) params;
#include "base/libnvrtc.def"
#undef ITS_SYMBOL
} its_nvrtc;

typedef struct its_cxx {
#define ITS_SYMBOL(result, name, params) result(*name) params;
#include "base/libcxx.def"
#undef ITS_SYMBOL
} its_cxx;

typedef struct its_nvjitlink {
#define ITS_SYMBOL(result, name, params) result(*name) params;
#include "base/libnvjitlink.def"
#undef ITS_SYMBOL
} its_nvjitlink;

typedef struct its_cuda {
#define ITS_SYMBOL(result, name, params) result(*name) params;
#include "base/libcuda.def"
#undef ITS_SYMBOL
} its_cuda;

typedef struct its_nvshmem {
#define ITS_SYMBOL(result, name, params) result(*name) params;
#include "base/libnvshmem.def"
#undef ITS_SYMBOL
} its_nvshmem;

/*
 * Loads what its_library_find found and fills `functions`, the structure of that library. ITS_ERR_ABSENT with a
 * diagnostic if there is none, if it can't be loaded or lacks a function. A function that a library has only under a
 * name with its version (__nvJitLinkCreate_12_8 for nvJitLinkCreate) is found by that. Close it with its_library_close;
 * its code stays mapped, so that loading it again is cheap.
 */
its_status its_library_open(its_context *ctx, const its_library_search *search, its_library *library, void *functions);
/* The same for a library that can be done without: false and no diagnostic. */
bool its_library_load(const its_library_search *search, its_library *library, void *functions);
void its_library_close(its_library *library);

/* A shared object by its path, for plug-ins; ITS_ERR_ABSENT with a diagnostic that says what `what` it is. */
its_status its_plugin_open(its_context *ctx, const char *path, const char *what, its_library *library);
void *its_plugin_symbol(const its_library *library, const char *name); /* NULL if it has none of that name */

#endif
