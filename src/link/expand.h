/*
 * One function written anew with its calls expanded: the state of that, shared by expand.c and bind.c.
 *
 * Each expanded call is a site, and has a frame while its nodes are copied; the function itself is site 0. A frame maps
 * the callee's symbols to copies of this site. Where a .param variable lives is its slot's form:
 *
 *     REAL     it stays a .param variable: formal parameters of the function itself, arguments of calls that stay
 *     CELLS    one register for each piece that is written or read as a whole
 *     MEMORY   a .local array
 */
#ifndef ITS_LINK_EXPAND_H
#define ITS_LINK_EXPAND_H

#include "link/clone.h"
#include "link/linker.h"
#include "link/make.h"

typedef enum its_slot_form { ITS_SLOT_REAL, ITS_SLOT_CELLS, ITS_SLOT_MEMORY } its_slot_form;

typedef struct its_slot {
    uint8_t form; /* its_slot_form */
    const its_link_param *param;
    its_symbol *symbol; /* REAL, MEMORY */
    its_symbol **cells; /* CELLS: as many as param->cells */
} its_slot;

typedef struct its_frame {
    struct its_frame *caller; /* NULL: the function itself */
    its_link_func *func;
    its_node *next; /* of the original's nodes */
    uint32_t site;
    const its_origin *origin;      /* of this site's nodes; NULL: they keep theirs */
    const its_link_region *region; /* whose barrier map counts here, or NULL */
    its_symbol **regs, **labels, **vars;
    its_regs **ranges;
    uint32_t n_ranges;            /* copied so far */
    size_t n_calls;               /* met so far */
    its_slot *slots;              /* by variable id */
    bool in_place;                /* the nodes are needed by nobody else: symbols keep their ids */
    its_insn *call;               /* the call in the caller's original, or NULL */
    its_symbol *exit;             /* label behind the body, when something branches there */
    its_symbol *skip;             /* label behind a guarded call */
    const its_loc *loc;           /* in force, or NULL */
    struct its_frame *line_frame; /* of the callers, the innermost that has a loc at the call */
} its_frame;

typedef struct its_expander {
    its_linker *linker;
    its_context *ctx;
    its_module *out;
    its_cloner cloner; /* its user is the expander: it maps by `frame` */
    its_frame *frame;
    its_node_list list;
    char *text; /* where names are put together */
    size_t text_capacity;
    bool rename_all;
    uint32_t n_sites, n_temps, n_regs, n_labels, depth;
    uint32_t loc_site; /* whose loc was written last */
    bool loc_written;
    const its_frame *root;
    const its_insn *loose_ret; /* a conditional return of a body expanded before */
    const its_insn *loose_call;
} its_expander;

/* The function with its calls expanded; its old body is not to be used any more. Needs linker->marker and
 * linker->taken. */
its_node_list its_expand(its_linker *linker, its_link_func *func, bool rename_all);

/* -- expand.c for bind.c ------------------------------------------------------------------------------------------- */

void its_emit(its_expander *x, void *node);
/* An instruction of `frame` at the position of `at`, whose guard it takes over if `guarded`. Not emitted yet. */
its_insn *its_emit_insn(its_expander *x, its_frame *frame, const its_insn *at, bool guarded, const char *name,
                        uint16_t count);
its_operand its_map_operand(its_expander *x, its_frame *frame, const its_operand *operand);
its_symbol *its_new_reg(its_expander *x, its_frame *frame, its_name name, its_type type);
its_symbol *its_new_var(its_expander *x, its_frame *frame, its_name name, const its_symbol *like, its_space space);
/* The name of a local of this site: `base` with the site's mark, and `more` behind it. */
its_name its_site_name(its_expander *x, const its_frame *frame, its_name base, uint32_t alias, const char *more);

/* `ld.param.b32` -> `ld.local.b32` (bind.c) */
its_name its_in_local(its_expander *x, its_name name);

/* -- bind.c -------------------------------------------------------------------------------------------------------- */

/* Where a parameter lives in the frame; declares it if that was not done. */
its_slot *its_bind_slot(its_expander *x, its_frame *frame, const its_link_param *param);
void its_bind_enter(its_expander *x, its_frame *callee); /* declares the formals and copies the arguments in */
void its_bind_leave(its_expander *x, its_frame *callee); /* copies the result out */
void its_bind_access(its_expander *x, its_frame *frame, its_insn *insn, const its_param_access *access);
void its_bind_kept(its_expander *x, its_frame *frame, its_insn *call); /* a call that stays, with its arguments */
/* In place of what a removed call would have returned: 0, or something that the assembler can't know. */
void its_bind_nothing(its_expander *x, its_frame *frame, its_insn *call, bool unknown);

#endif
