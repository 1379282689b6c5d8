/* Loops in which a thread waits for memory to change: found in waits.c, bounded in limit.c. */
#ifndef ITS_LINK_WAITS_H
#define ITS_LINK_WAITS_H

#include "link/linker.h"

/* A branch in a loop, and where it stands. */
typedef struct its_wait_branch {
    its_insn *insn;
    its_node **at; /* the pointer to it in the function's list */
} its_wait_branch;

/*
 * One loop. `seen` and `expected` are what it compares, if that could be told: then it ends when
 * `seen` `until` `expected`, or at some outcome of the comparison if `until` is ITS_MOD_UNKNOWN. Otherwise `seen` is
 * what it has read, and `expected` is NULL.
 */
typedef struct its_wait {
    its_symbol *header; /* the label that the loop goes back to */
    its_node **header_at;
    bool entered_by_loop; /* what stands in front of the label is in the loop as well, and falls through */
    ITS_VEC(its_wait_branch) latches;
    ITS_VEC(its_insn *) entries; /* branches to the header from elsewhere */
    const its_insn *load;
    const its_operand *address; /* base and offset */
    const its_operand *seen, *expected;
    its_type type;
    its_mod until;
    const its_loc *loc; /* in force at the load, or NULL */
} its_wait;

typedef ITS_VEC(its_wait) its_waits;

/* The loops of `func`, in the order of its text. Uses `pass` of its symbols, and leaves it NULL. */
void its_waits_find(its_linker *linker, its_func *func, its_waits *waits);

#endif
