/*
 * Linking PTX: resolve externs, inline regions and functions, strip what is not reached, report what was done.
 *
 * Input is one main module (a kernel), any number of regions (modules named by a unit, whose functions are called by
 * `intarsia.call (result), unit::function, (arguments);`) and any number of libraries (modules that only provide
 * definitions for externs). Output is one new module and a report. The inputs are left as they were, except for the
 * `link` and `pass` fields of their symbols, and must outlive the output: its positions point into their sources.
 */
#ifndef INTARSIA_LINK_H
#define INTARSIA_LINK_H

#include "intarsia/ptx.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A budget in instructions: functions larger than this and called more than once stay calls. */
#define ITS_INLINE_BUDGET 2000
/*
 * What such functions, those within the budget and called more than once, may add to one caller, in instructions. Past
 * it ptxas takes more than a minute for the caller: further calls stay, unless the budget of what is called is
 * UINT32_MAX.
 */
#define ITS_INLINE_CALLER 50000

#define ITS_LEAVE_OUT_ALL UINT32_MAX

typedef struct its_link_region {
    const char *unit; /* 16 hex digits */
    its_module *module;
    uint32_t budget;         /* 0: ITS_INLINE_BUDGET; UINT32_MAX: always inline */
    const char *barrier_map; /* NULL, or "0=id:count" for regions made for a warp partition; see docs/linking.md */
} its_link_region;

typedef struct its_link_options {
    bool keep_externs;           /* unresolved externs are reported, not an error */
    bool no_inline;              /* resolve and strip only: every call stays a call (regions become calls) */
    bool strip_prints;           /* calls of vprintf are removed */
    bool trap_asserts;           /* calls of __assertfail become trap */
    uint32_t budget;             /* 0: ITS_INLINE_BUDGET */
    const char *const *deferred; /* prefixes of externs that may stay open, e.g. "nvshmem" */
    uint32_t n_deferred;
    /*
     * 0: the output has the highest PTX version of the inputs. Else it has this one at most, say 8 and 7: what the
     * assembler takes, which still checks for each instruction that the version has it. Compilers write their own
     * version whatever they use, so a region from a newer NVRTC may well pass an older ptxas.
     */
    uint32_t version_major, version_minor;
    bool limit_waits; /* loops that wait for memory to change trap past a time limit; see its_wait_record */
    /*
     * For finding out what linking costs: ITS_LEAVE_OUT_ALL removes the calls by which the main module enters regions
     * and libraries, n only the n-th of its_report.sites, counted from 1. Where a result was, something stands that the
     * assembler can't know.
     */
    uint32_t leave_out;
    bool own_window; /* dynamic shared memory is the main module's alone, as Triton's: regions that use it are errors */
} its_link_options;

/*
 * What the host and a module that was linked with `limit_waits` say to each other. The module has two variables, if it
 * waits at all. ITS_WAIT_STATE is four 64-bit words, set after loading: the limit in nanoseconds (no limit before
 * that), the address of a record that the device can write, any number that tells modules apart, 0. ITS_WAIT_TABLE is
 * text: a line for each wait with the kernel, file:line, how the value seen is compared with the one expected ("eq",
 * "ge" ...: the wait ends when that holds; "?": unclear; "": nothing is compared), and its type ("u32"; "": no value),
 * separated by tabs. The first thread whose wait is too long fills the record, which is ITS_WAIT_WORDS 64-bit words,
 * and traps.
 */
#define ITS_WAIT_STATE "intarsia_wait"
#define ITS_WAIT_TABLE "intarsia_waits"
typedef enum its_wait_record {
    ITS_WAIT_WRITTEN, /* 1 when the others are there */
    ITS_WAIT_MODULE,
    ITS_WAIT_NUMBER, /* of the line in the table, from 0 */
    ITS_WAIT_SEEN,
    ITS_WAIT_EXPECTED,
    ITS_WAIT_ADDRESS, /* 0 if unknown */
    ITS_WAIT_CTA,     /* x, y, z */
    ITS_WAIT_THREAD = ITS_WAIT_CTA + 3,
    ITS_WAIT_WORDS = ITS_WAIT_THREAD + 3
} its_wait_record;

typedef struct its_link_input {
    its_module *main;
    const its_link_region *regions;
    uint32_t n_regions;
    its_module *const *libraries;
    uint32_t n_libraries;
    its_link_options options;
} its_link_input;

typedef enum its_kept_reason {
    ITS_KEPT_EXTERN,    /* the callee has no definition here */
    ITS_KEPT_RECURSIVE, /* the callee is on a cycle of calls */
    ITS_KEPT_INDIRECT,  /* through a register */
    ITS_KEPT_NORETURN,
    ITS_KEPT_BUDGET,      /* too large and called more than once, or the module has grown too much */
    ITS_KEPT_OPTION,      /* no_inline */
    ITS_KEPT_UNSUPPORTED, /* the callee holds something that can't be cloned; the report names it */
    ITS_KEPT_CALLER       /* ITS_INLINE_CALLER: enough was inlined into the caller */
} its_kept_reason;
/* A short phrase such as "recursive"; static storage, never NULL. */
ITS_API const char *its_kept_reason_text(its_kept_reason reason);

typedef struct its_report_call {
    const char *caller, *callee; /* callee "" for indirect */
    its_kept_reason reason;
    const char *detail; /* "" or what stands in the way */
    const char *file;
    uint32_t line, column; /* of the call in its PTX text */
} its_report_call;

typedef struct its_report_extern {
    const char *name;
    bool function;
    const char *first_user; /* a function that uses it */
    const char *library;    /* which library is known to have it, or NULL */
} its_report_extern;

typedef struct its_report_func {
    const char *name;
    bool entry;
    uint32_t instructions; /* in the output */
    uint64_t local_bytes;  /* .local variables of the function itself */
    uint64_t shared_bytes; /* static .shared that it names; for an entry also what those that it calls name */
} its_report_func;

/* A call in the main module of a function that a region or a library defines. */
typedef struct its_report_site {
    const char *caller, *callee;
    const char *file;
    uint32_t line, column;
    const char *source; /* the file that the PTX's line information names, or NULL */
    uint32_t source_line, source_column;
} its_report_site;

typedef struct its_report {
    uint32_t regions_inlined; /* copies of region calls expanded */
    uint32_t calls_inlined;   /* ordinary calls expanded */
    uint32_t n_kept;
    const its_report_call *kept;
    uint32_t n_sites;
    const its_report_site *sites; /* in the order of the main module; inlined or not */
    uint32_t n_externs;
    const its_report_extern *externs;
    uint32_t n_funcs;
    const its_report_func *funcs;
    uint32_t n_stripped;   /* functions and variables removed */
    uint64_t shared_bytes; /* static .shared in the module */
} its_report;

typedef struct its_linked its_linked;

/*
 * Links. On success `*linked` is the caller's, to be freed with its_linked_free before the input modules. On failure it
 * is NULL and the context has errors that show both sides of each conflict: ITS_ERR_INPUT, or ITS_ERR_NOMEM;
 * ITS_ERR_USAGE if a module is missing, belongs to another context, or is given as main and region.
 */
ITS_API its_status its_link(its_context *ctx, const its_link_input *input, its_linked **linked);
/* The linked module; owned by `linked`. */
ITS_API its_module *its_linked_module(its_linked *linked);
/* What was done; owned by `linked`. */
ITS_API const its_report *its_linked_report(const its_linked *linked);
/* Frees the module and the report with it; NULL does nothing. */
ITS_API void its_linked_free(its_linked *linked);

/* The report as text for people; free with its_free. NULL if memory ran out. */
ITS_API char *its_report_text(its_context *ctx, const its_report *report);
/* The report as JSON; free with its_free. NULL if memory ran out. */
ITS_API char *its_report_json(its_context *ctx, const its_report *report);

/* -- abstract barriers --------------------------------------------------------------------------------------------- */

/*
 * A front end writes `intarsia.device_intra_barrier.KIND.GROUP.ORDER (token), unit::PROVIDER, (communicator, index);`
 * and linking makes of it a call of a function of that unit, then inlines it. docs/barriers.md says more.
 */
typedef enum its_barrier_field {
    ITS_BARRIER_KIND,
    ITS_BARRIER_GROUP,
    ITS_BARRIER_ORDER,
    ITS_BARRIER_TEAM,
    ITS_BARRIER_SCOPE,
    ITS_BARRIER_SPACE,
    ITS_BARRIER_FIELDS
} its_barrier_field;

/* The index-th name that the field may have; NULL past the last. */
ITS_API const char *its_barrier_name(its_barrier_field field, uint32_t index);
/* Why a name that is known, and that its_barrier_name does not list, can't be used; NULL if there is nothing to say. */
ITS_API const char *its_barrier_refusal(its_barrier_field field, const char *name);

/*
 * The units that a module's region calls name, each once, in order of appearance; the array lives as long as the
 * module. ITS_ERR_NOMEM is the only failure.
 */
ITS_API its_status its_link_units(its_module *module, const char *const **units, uint32_t *count);

#ifdef __cplusplus
}
#endif
#endif
