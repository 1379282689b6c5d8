/*
 * Abstract operations, and the region calls they stand for: see barrier.def for the forms and for the table.
 */
#ifndef ITS_LINK_LOWER_H
#define ITS_LINK_LOWER_H

#include "link/linker.h"

/* A name that a field may have; an array of them ends with a NULL name. */
typedef struct its_barrier_choice {
    its_barrier_field field;
    const char *name;
    uint32_t value;
    const char *enumerator; /* in FlagCX's headers, or NULL */
    const char *refusal;    /* why it can't be used, or NULL */
} its_barrier_choice;

const its_barrier_choice *its_barrier_choices(void);

enum { ITS_BARRIER_ARGUMENTS = 8, ITS_BARRIER_KINDS = 3 };

typedef enum its_barrier_argument {
    ITS_BARGUMENT_NONE,
    ITS_BARGUMENT_COMM,
    ITS_BARGUMENT_GROUP,
    ITS_BARGUMENT_INDEX,
    ITS_BARGUMENT_MULTIMEM,
    ITS_BARGUMENT_ORDER,
    ITS_BARGUMENT_TEAM,
    ITS_BARGUMENT_CONTEXT,
    ITS_BARGUMENT_SCOPE
} its_barrier_argument;

typedef struct its_barrier_provider {
    const char *name;
    const char *functions[ITS_BARRIER_KINDS];              /* by the value of the kind */
    its_barrier_argument arguments[ITS_BARRIER_ARGUMENTS]; /* up to the first NONE */
} its_barrier_provider;

/* NULL if there is none of that name. */
const its_barrier_provider *its_barrier_provider_named(const char *name);
/*
 * The PTX type in which an argument is passed, ".b64"; `promoted`: LLVM passes nothing that is narrower than 32 bits.
 */
const char *its_barrier_argument_type(its_barrier_argument argument, bool promoted);

/* Whether the instruction is an abstract operation, and no region call already. */
bool its_lower_applies(its_linker *linker, const its_insn *insn);

/* The function of its unit that the operation calls; NULL after an error. `operand` is its unit::provider. */
its_name its_lower_target(its_linker *linker, const its_insn *insn, const its_operand *operand);

/* Replaces the operation's arguments by those of the function, in its order; false after an error. */
bool its_lower_arguments(its_linker *linker, const its_insn *insn, its_call_parts *parts);

#endif
