/*
 * The linker's inside, shared by its files in the order of the pipeline:
 *
 *     link.c       the pipeline and the public functions
 *     target.c     the output's version and target
 *     names.c      names that nothing can catch
 *     resolve.c    which definition each name stands for; what is reached; what is missing
 *     merge.c      one module with all of that: the output, its calls still calls
 *     clone.c      copies of nodes with other symbols, used by merge.c and expand.c
 *     make.c       registers, labels and addresses of the linker's own
 *     lines.c      .file, .loc and .debug_str across modules
 *     lower.c      abstract operations become region calls
 *     region.c     region calls become ordinary calls
 *     partition.c  CTA-wide barriers in kernels that split their warps
 *     analyse.c    what each function holds: calls, parameters, returns
 *     plan.c       which calls are inlined
 *     inline.c     functions written anew with their calls expanded
 *     expand.c     one such function: frames, names, nodes
 *     bind.c       parameters and results at an expanded call
 *     strip.c      what nobody reaches goes
 *     waits.c      which loops wait for memory to change
 *     limit.c      a time limit for those, if it is wanted
 *     report.c     what was done, as data; report_text.c shows it
 *
 * The input modules are read only, but for `link` and `pass` of their symbols. The output has nodes and symbols of its
 * own. Its symbols keep the position of what they were copied from, and its nodes say through their origin which calls
 * they were inlined through.
 */
#ifndef ITS_LINK_LINKER_H
#define ITS_LINK_LINKER_H

#include "intarsia/link.h"
#include "link/map.h"
#include "ptx/mnemonic.h"
#include "ptx/module.h"
#include "ptx/types.h"

/* Functions of fewer instructions are inlined whatever the budget says. */
#define ITS_INLINE_SMALL 50
/*
 * Bounds on what inlining may add to a module, in instructions and in weight, which memory goes with: input must not
 * exhaust it. A node, an operand, a symbol weigh 1 each, so that ordinary code comes to its bound of instructions
 * first.
 */
#define ITS_INLINE_GROWTH 1000000
#define ITS_INLINE_WEIGHT 8000000
/* A parameter of more bytes is not copied: its calls stay. */
#define ITS_INLINE_PARAM 4096
/* What the dynamic window is aligned to if a region puts static shared memory in front of it. */
#define ITS_WINDOW_ALIGN 1024
/* Braces nested deeper are left out of expanded functions, whose names are unique anyway; ptxas takes some 1600. */
#define ITS_INLINE_BRACES 32
/* A parameter written and read in more pieces lives in memory. */
#define ITS_PARAM_CELLS 256

/* One input module. */
typedef struct its_link_source {
    its_module *module;
    const its_link_region *region; /* NULL for the main module and for libraries */
    bool repeats;                  /* an earlier source has the same module */
    struct its_link_source *next;  /* region: the next one of its unit, as given */
    its_map files;                 /* its .file numbers -> its_file; see lines.c */
    its_map labels;                /* its labels in .debug_str -> their texts */
    bool files_read, labels_read;
} its_link_source;

/* An extern that is reached and has no definition. */
typedef struct its_link_open {
    its_symbol *symbol;
    const its_symbol *user; /* the function or variable that names it first */
    its_place place;
} its_link_open;

/* -- what is known about a function of the output (analyse.c) ------------------------------------------------------ */

typedef struct its_link_func its_link_func;

typedef enum its_call_fate {
    ITS_CALL_KEPT,
    ITS_CALL_INLINED,
    ITS_CALL_REMOVED, /* vprintf, if the options say so */
    ITS_CALL_TRAPS,   /* __assertfail likewise */
} its_call_fate;

typedef struct its_link_call {
    its_insn *insn;
    its_symbol *target;    /* NULL: indirect */
    its_link_func *callee; /* NULL: indirect, or without a body */
    uint32_t site;         /* plan.c: which entry into a region or library it is, from 1, or 0 */
    const its_loc *loc;    /* plan.c: the line that a site is on, or NULL */
    uint8_t fate;          /* its_call_fate */
    uint8_t reason;        /* its_kept_reason, if it is kept */
    const char *detail;
} its_link_call;

/* A piece of a parameter that is written or read as a whole. */
typedef struct its_cell {
    uint32_t offset, size;
} its_cell;

/*
 * How a function uses one of its parameters, or a .param variable that it declares for its calls. If it is `regular`,
 * every access is a load or store of whole cells at constant offsets, and no two cells overlap; otherwise it must be
 * memory when it is inlined.
 */
typedef struct its_link_param {
    its_symbol *symbol;
    bool regular;
    bool with_inlined; /* passed to calls that are expanded */
    ITS_VEC(its_cell) cells;
} its_link_param;

struct its_link_func {
    its_func *func;
    its_symbol *symbol;
    its_link_source *source;
    bool root;           /* visible in the main module, an entry, or its address is taken */
    bool queued, is_new; /* inline.c: is part of the result; has a new body, which is */
    its_node_list body;
    /* local symbols are numbered: `id` of registers, of labels, of everything else */
    uint32_t n_regs, n_labels, n_vars;
    uint32_t *reg_alias, *label_alias, *var_alias,
        *range_alias;    /* which of the equal names of the function: 0, 1 ... */
    uint32_t *reg_range; /* by register id: its .reg node, counted from 1 if that is a range, else 0 */
    uint32_t n_ranges;
    its_link_param **params; /* by variable id; NULL for what is no .param */
    ITS_VEC(its_link_call) calls;
    ITS_VEC(its_insn *) barriers; /* that wait for the whole CTA or cluster */
    its_insn *reads_tid;          /* the first that reads %tid or %ntid */
    its_insn *splits;             /* the first sign that the function splits its warps into partitions */
    its_insn *conditional_ret;
    its_node *last_insn;
    uint32_t n_insns, n_rets, depth; /* of nested braces */
    bool falls_off, ends_in_label, param_by_register;
    bool is_inlined;         /* plan.c: somewhere */
    bool is_recursive;       /* plan.c: the one function of a cycle of calls that stays */
    const char *uncloneable; /* why it can't be inlined, or NULL */
    uint64_t own_weight;     /* of its own nodes */
    uint64_t size, weight;   /* plan.c: instructions and weight with all that is inlined into it */
    uint64_t taken;          /* plan.c: of those, what ITS_INLINE_CALLER bounds */
    uint32_t n_callers;      /* plan.c: calls of it */
    uint8_t state;           /* plan.c: of the walk */
};

/* A call that is left in the output. */
typedef struct its_link_kept {
    const its_link_func *caller;
    const its_link_call *call;
    its_kept_reason reason;
    const char *detail;
    size_t order; /* report.c */
} its_link_kept;

/* -- the linker ---------------------------------------------------------------------------------------------------- */

typedef struct its_lines its_lines;

typedef struct its_linker {
    its_context *ctx;
    const its_link_input *input;
    its_arena scratch; /* of the whole link */
    its_module *out;
    its_link_source *sources; /* main, regions, libraries */
    uint32_t n_sources;
    its_map modules, units;        /* its_module -> its first source; unit -> its first region */
    ITS_VEC(its_symbol *) reached; /* definitions outside of the main module, in order of discovery */
    ITS_VEC(its_link_open) open;
    its_symbol *window; /* the first `.extern .shared x[]`, which stands for all of them */
    uint32_t window_align;
    ITS_VEC(its_link_func *) funcs; /* functions of the output that have bodies */
    its_lines *lines;
    const char *marker;          /* names.c: a text that no name of the inputs holds */
    its_map taken, taken_ranges; /* names.c: names a function's own locals must not have */
    bool has_debug;              /* link.c, for renaming: the module has debug sections */
    uint64_t growth, weight;     /* instructions that inlining has added, and their weight */
    uint32_t n_stripped, regions_inlined, calls_inlined;
    ITS_VEC(its_link_kept) kept;
    ITS_VEC(its_link_kept) sites; /* plan.c: calls by which the main module enters others */
    its_report *report;
} its_linker;

/* The passes. Each returns false after it has reported an error. Their contracts stand over their definitions. */
bool its_link_target(its_linker *linker);
bool its_link_resolve(its_linker *linker);
bool its_link_merge(its_linker *linker);
bool its_link_regions(its_linker *linker);
bool its_link_partitions(its_linker *linker);
bool its_link_plan(its_linker *linker);
bool its_link_inline(its_linker *linker);
bool its_link_strip(its_linker *linker);
bool its_link_limit(its_linker *linker);
bool its_link_report(its_linker *linker);

/* -- shared helpers ------------------------------------------------------------------------------------------------ */

static inline its_module *its_link_main(const its_linker *linker) {
    return linker->input->main;
}
static inline bool its_is_alias(const its_symbol *symbol) {
    return symbol->node && symbol->node->kind == ITS_NODE_ALIAS;
}

/* resolve.c */
bool its_link_is_builtin(its_name name);        /* a function that the driver has built in */
const char *its_link_library_of(its_name name); /* "the NVSHMEM device library", or NULL */
/* The function that a region call or an abstract operation calls; NULL: error. */
its_symbol *its_link_region_target(its_linker *linker, const its_insn *insn, const its_operand *operand);

/* A call taken apart. Missing groups have a count of 0. */
typedef struct its_call_parts {
    its_operand *results, *target, *args;
    uint16_t n_results, n_args;
} its_call_parts;
its_call_parts its_call_take(its_insn *insn);

/* analyse.c */
void its_link_analyse(its_linker *linker, its_link_func *func);
/* The base of `[x + offset]` if it is a .param variable, else NULL. */
its_link_param *its_param_of(const its_link_func *func, const its_operand *operand);
typedef struct its_param_access {
    its_link_param *param;
    its_operand *value, *address;
    its_type type;
    uint32_t size, count; /* of one component; how many */
    uint64_t offset;
    bool store;
} its_param_access;
/* False if the instruction is no load or store of a .param variable by name. */
bool its_param_access_of(its_linker *linker, const its_link_func *func, its_insn *insn, its_param_access *access);

/* names.c */
its_name its_declared_name(const its_node *node); /* of what a node in a body declares, or NULL */
void its_names_mark(its_linker *linker);          /* chooses the marker */
void its_names_take(its_linker *linker);          /* fills `taken` and `taken_ranges` */
/* `base`, the marker, `what` and the number: a name of the linker's own. */
its_name its_names_new(its_linker *linker, const char *base, const char *what, uint32_t number);

/* region.c */
void its_link_no_operation(its_linker *linker, const its_insn *insn); /* reports that it is none of ours */
enum { ITS_INSN_REGION = 1 << 7 }; /* its_node.flags while linking: a call that was a region call */

/* inline.c */
void its_link_keep(its_linker *linker, const its_link_func *caller, const its_link_call *call, its_kept_reason reason,
                   const char *detail);
bool its_link_rename(its_linker *linker);

/* link.c, for tests: the module with every local name changed, and nothing else. */
its_status its_link_renamed(its_context *ctx, its_module *module, its_linked **linked);

/* partition.c */
its_insn *its_map_barrier(its_linker *linker, const its_link_region *region, its_insn *insn); /* NULL: not mapped */

#endif
