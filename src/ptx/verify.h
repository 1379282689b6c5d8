/*
 * The verifier's inside:
 *
 *     verify.c          walks a module and its functions; instructions that no pattern can describe
 *     verify_form.c     instruction names against the forms of ptx_ops.def
 *     verify_operand.c  operands against the operands of a form
 *     verify_address.c  operands that are addresses
 *     verify_sreg.c     special registers
 *     verify_matrix.c   how many registers a matrix fragment takes
 *     verify_since.c    versions and targets
 *     verify_mov.c      mov
 *     verify_call.c     calls against the functions they name
 *     verify_decl.c     variables, parameters, directives, the module's header
 *
 * Rule: what is rejected here, ptxas rejects as well. Whatever this library does not know, a newer PTX ISA may have
 * given a meaning, and passes.
 */
#ifndef ITS_PTX_VERIFY_H
#define ITS_PTX_VERIFY_H

#include "ptx/mnemonic.h"
#include "ptx/module.h"
#include "ptx/types.h"

typedef struct its_verifier {
    its_context *ctx;
    const its_module *module;
    const its_func *func; /* the one whose body is being walked */
    uint32_t version;     /* .version times ten: 90 for 9.0 */
    uint32_t sm;          /* of .target: 90 for sm_90a; 0 if not known */
    char suffix;          /* of the target: 'a' of sm_90a, 'f' of sm_100f, 0 */
    unsigned quiet;       /* above 0: checks answer without reporting */
    its_arena *scratch;   /* of texts for messages */
    size_t errors;
} its_verifier;

/* The newest PTX ISA that the tables describe: modifiers of later modules are not judged. */
#define ITS_VERIFY_NEWEST 90

/* Always false, so that a check can end with it. */
bool its_verify_error(its_verifier *v, const its_node *node, uint32_t pos, const char *format, ...) ITS_PRINTF(4, 5);
/* Where the instruction's name, or the modifier number `mod` in it, stands in the text. */
uint32_t its_verify_name_pos(const its_insn *insn, const its_mnemonic *m, unsigned mod);

/* -- forms --------------------------------------------------------------------------------------------------------- */

/*
 * The operands of the first form of the opcode that has room for all modifiers, or of the next one after `after`, which
 * an earlier call returned. NULL if there is none.
 */
const char *its_form_find(const its_mnemonic *m, const char *after);
/* The index of the first modifier that no form of the opcode has room for at all, or -1. */
int its_form_stranger(const its_mnemonic *m);
/* Two modifiers that no form of the opcode has room for together; false if there are no such. */
bool its_form_conflict(const its_mnemonic *m, unsigned *first, unsigned *second);
/* The types that could stand in place of modifier `index`, as text: ".b16, .b32 or .b64"; "" if none. */
const char *its_form_types(its_arena *arena, const its_mnemonic *m, unsigned index);
/* The modifiers of which one is all that is missing, as text; "" if there is no such. */
const char *its_form_missing(its_arena *arena, const its_mnemonic *m);

#define ITS_NARROW_ACCESS 16u /* bytes that any memory is loaded from and stored to at once */

/* -- versions and targets ------------------------------------------------------------------------------------------ */

typedef struct its_since {
    uint16_t version; /* times ten */
    uint16_t sm;
    uint16_t last; /* no target above this one has it; 0: no limit */
    char specific; /* 'a' for one architecture, 'f' for that or a family, 0 for any target */
    bool ended;    /* of a form, the other way round: from that version on, those targets don't have it any more */
} its_since;

/*
 * What a form needs beyond its opcode and modifiers; `form` is what its_form_find returned. Stores in mods[], which has
 * room for as many as m has, what each modifier needs in it.
 */
its_since its_form_since(const its_mnemonic *m, const char *form, its_since *mods);
/* True if the form needs any such thing. */
bool its_form_is_gated(const its_mnemonic *m, const char *form);
void its_since_target(its_verifier *v);
/* Reports at `pos` unless the module's version and target are enough for `what`; returns true if they are. */
bool its_since_error(its_verifier *v, const its_node *node, uint32_t pos, const char *what, its_since need);
/* What an access of `size` bytes needs, beyond what its_verify_since looks at. */
void its_verify_since_access(its_verifier *v, const its_insn *insn, const its_mnemonic *m, uint32_t size);
/* True if the module's version and target are past the end of the form. */
bool its_since_ended(const its_verifier *v, const its_mnemonic *m, const char *form);
/* Reports that it is. */
void its_verify_ended(its_verifier *v, const its_insn *insn, const its_mnemonic *m, const char *form);
/* What a register or variable of the type needs; `node` may be NULL, then `pos` is one of the module's own text. */
bool its_verify_since_type(its_verifier *v, const its_node *node, uint32_t pos, its_type type);
void its_verify_since(its_verifier *v, const its_insn *insn, const its_mnemonic *m, const char *form);

/* -- operands ------------------------------------------------------------------------------------------------------ */

typedef struct its_count_range {
    unsigned least, most;
} its_count_range;
its_count_range its_form_counts(const its_mnemonic *m, const char *operands);
bool its_verify_operands(its_verifier *v, const its_insn *insn, const its_mnemonic *m, const char *operands);

enum {
    ITS_WRITTEN = 1 << 0,   /* the operand is a destination */
    ITS_WIDER = 1 << 1,     /* a register may be wider than the type */
    ITS_IMMEDIATE = 1 << 2, /* only an immediate will do */
    ITS_EXACT = 1 << 3,     /* a packed or narrow float: a register must be untyped, and of just the size */
    ITS_COUNT = 1 << 4,     /* a shift amount or the like: an integer whatever the instruction's type is */
    ITS_SREG_TOO = 1 << 5,  /* a special register will do */
    ITS_SINK_TOO = 1 << 6,  /* of a vector that is read: elements may be '_' */
    ITS_ELEMENT = 1 << 7,   /* of a vector: ptxas is laxer about immediates */
};
bool its_verify_value(its_verifier *v, const its_insn *insn, const its_operand *operand, its_type type, unsigned flags);

/* "'%r1' is .b32, 'add.f64' takes .f64 (64 bits) here", `what` being what it takes. */
bool its_verify_misfit(its_verifier *v, const its_insn *insn, const its_operand *operand, const char *what);
/* What stands around the register's name: `!p`, `-r`, `v.x`, `r.b0`. */
bool its_verify_decoration(its_verifier *v, const its_insn *insn, const its_operand *operand, its_type type,
                           unsigned flags);
unsigned its_verify_dimensions(const its_mnemonic *m); /* coordinates of a tensor copy, 0 if it is none */
/* An address, which may have coordinates only if the form says so. */
bool its_verify_address(its_verifier *v, const its_insn *insn, const its_mnemonic *m, const its_operand *operand,
                        bool coordinates);
/* A variable in the space that the instruction names. */
bool its_verify_variable(its_verifier *v, const its_insn *insn, const its_mnemonic *m, const its_operand *operand);

bool its_verify_vector(its_verifier *v, const its_insn *insn, const its_operand *operand, its_type type, unsigned count,
                       unsigned flags);
/* Elements of a vector operand, in braces or a vector register; 0 for anything else. */
unsigned its_operand_width(const its_operand *operand);
/* Whether registers that stand side by side in a vector, or in those of an address, may: see docs/opcodes.md. */
bool its_verify_neighbours(its_verifier *v, const its_insn *insn, const its_operand *operand);
bool its_is_all_registers(const its_operand *vector); /* or sinks; no immediates among the elements */

/* The type of a register operand, its component selected: of one element if it is a vector. */
its_type its_operand_type(const its_operand *operand);
/* True if a register declared as `reg` may stand where the instruction says `type`. */
bool its_type_fits(its_type type, its_type reg, bool wider);

/* -- special registers --------------------------------------------------------------------------------------------- */

typedef struct its_sreg {
    its_type type;  /* ITS_TYPE_NONE: there is no such special register */
    unsigned parts; /* 4 for a whole vector such as %tid */
    its_since since;
} its_sreg;
its_sreg its_sreg_find(const char *text);
bool its_sreg_fits(its_name name, its_sreg sreg, its_type type, bool wider);

/* -- the rest ------------------------------------------------------------------------------------------------------ */

typedef struct its_fragment {
    its_type type;  /* of each register; ITS_TYPE_NONE: not known, not checked */
    unsigned count; /* registers; 0: not known */
} its_fragment;
/* `which` is 'A', 'B', 'C' or 'D'. */
its_fragment its_verify_fragment(const its_mnemonic *m, char which);
/* Registers that .x1, .x2 ... of ldmatrix, stmatrix, tcgen05.ld and .st stand for; 0 if not known. */
unsigned its_verify_multiple(const its_mnemonic *m);

void its_verify_mov(its_verifier *v, const its_insn *insn, const its_mnemonic *m);
void its_verify_call(its_verifier *v, const its_insn *insn, const its_mnemonic *m);
void its_verify_header(its_verifier *v);
void its_verify_var(its_verifier *v, const its_var *var);
void its_verify_regs(its_verifier *v, const its_regs *regs);
void its_verify_alias(its_verifier *v, const its_alias *alias);
void its_verify_proto(its_verifier *v, const its_proto *proto);
void its_verify_directive(its_verifier *v, const its_directive *directive); /* in a body */
void its_verify_function(its_verifier *v, const its_func *func);

#endif
