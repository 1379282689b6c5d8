/*
 * The parts of the `cuda` dialect:
 *
 *     cuda_options.c   what the user's options mean
 *     cuda_includes.c  which files the source can read
 *     cuda_log.c       what NVRTC says, as diagnostics
 *     cuda_finish.c    forcing templates out, and putting the PTX right
 *     cuda.c           the dialect: NVRTC's version, and compiling
 */
#ifndef ITS_CC_CUDA_H
#define ITS_CC_CUDA_H

#include "base/dynload.h"
#include "cc/reads.h"

/* -- options ------------------------------------------------------------------------------------------------------- */

typedef struct its_cuda_options {
    ITS_VEC(const char *) passed;       /* to NVRTC as they are */
    ITS_VEC(const char *) include_dirs; /* absolute, in order */
    ITS_VEC(const char *) pre_includes; /* -include */
    bool no_lineinfo, debug, has_std;
} its_cuda_options;

/* ITS_ERR_INPUT with an error for an option that would break what is built on the result. */
its_status its_cuda_options_parse(its_context *ctx, its_arena *arena, const its_cc_input *input,
                                  its_cuda_options *options);
/* "sm_90a" and "compute_90a" as "compute_90a"; NULL if it is neither. */
const char *its_cuda_arch(its_arena *arena, const char *arch);

/* -- the source and what it includes ------------------------------------------------------------------------------- */

/* Where files are searched; made once for scanning and once for compiling. */
typedef struct its_cuda_search {
    const its_cuda_options *options;
    const char *source_dir; /* absolute */
    its_header_search cuda; /* CUDA's own headers */
    const char **dirs;      /* all directories for NVRTC, in order: the user's, the source's, CUDA's */
    size_t n_dirs;
} its_cuda_search;

void its_cuda_search_init(its_arena *arena, const its_cc_input *input, const its_cuda_options *options,
                          const its_library_search *nvrtc, its_cuda_search *search);
/* True unless a directory that the user gave with -I, or the source's own, has a file of that name. */
bool its_cuda_use_embedded(its_arena *arena, const its_cuda_search *search, const char *name);
/* Reads the source's includes and theirs. */
void its_cuda_read_includes(its_arena *arena, const its_cuda_search *search, const char *source, size_t size,
                            its_cc_reads *reads);

/*
 * The source's path as NVRTC gets it, and the name that it has in `__FILE__`, line tables and messages: the same for
 * all directories, so that a moved project finds its cache entries again.
 */
const char *its_cuda_source_path(its_arena *arena, const its_cc_input *input);
const char *its_cuda_source_name(its_arena *arena, const its_cc_input *input);

/* -- messages ------------------------------------------------------------------------------------------------------ */

/* Turns NVRTC's log into errors of the context; true if there was at least one. */
bool its_cuda_log_errors(its_context *ctx, its_arena *arena, const its_cc_input *input, const its_cuda_search *search,
                         const char *name, const char *log);

/* The log with marks (see its_dialect.compile) in place of the files that its messages start with. */
const char *its_cuda_mark_log(its_arena *arena, const its_cc_input *input, const its_cc_reads *reads, const char *log);

/* -- instances ----------------------------------------------------------------------------------------------------- */

#define ITS_INSTANCES_FILE "intarsia instances" /* what messages about them name as their file */

/* Text to be appended to the source: a function for each instance that returns its address. */
const char *its_cuda_instances_text(its_arena *arena, const its_cc_input *input);

/* -- what NVRTC gives ---------------------------------------------------------------------------------------------- */

/*
 * Puts the PTX right: reads what the instances are called out of the functions that were appended for them and takes
 * those away, and replaces the paths in .file directives with marks. `*ptx` is replaced by a text in the arena.
 * ITS_ERR_INPUT if the PTX can't be parsed.
 */
its_status its_cuda_finish(its_context *ctx, its_arena *arena, const its_cc_input *input, const its_cc_reads *reads,
                           const char **ptx, size_t *size, char **instance_names);

#endif
