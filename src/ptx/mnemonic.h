/*
 * What an instruction's name says: the opcode and its modifiers, split once per distinct name and remembered in the
 * name itself, so that asking again is a pointer load. Everything comes from ptx_ops.def, ptx_mods.def: no opcode or
 * modifier is spelled in another C file.
 */
#ifndef ITS_PTX_MNEMONIC_H
#define ITS_PTX_MNEMONIC_H

#include "intarsia/ptx.h"

/* ITS_OP_ADD and so on; ITS_OP_UNKNOWN is 0. */
typedef enum its_op {
    ITS_OP_UNKNOWN,
#define ITS_OP(id, ...) ITS_OP_##id,
#include "ptx/ptx_ops.def"
#undef ITS_OP
    ITS_OP_COUNT
} its_op;

/* ITS_MOD_RN, ITS_MOD_F32 and so on: types and spaces are modifiers too. ITS_MOD_UNKNOWN is 0. */
typedef enum its_mod {
    ITS_MOD_UNKNOWN,
#define ITS_MOD(id, ...) ITS_MOD_##id,
#include "ptx/ptx_mods.def"
#undef ITS_MOD
    ITS_MOD_COUNT
} its_mod;

typedef struct its_mnemonic {
    uint16_t op;      /* its_op */
    uint8_t n_mods;
    uint8_t n_types;
    bool unknown_mod; /* one of them is not in ptx_mods.def */
    uint8_t space;    /* its_space of the first state-space modifier, ITS_SPACE_NONE for generic */
    uint8_t vec;      /* 1, or 2, 4, 8 for .v2, .v4, .v8 */
    uint8_t types[4]; /* its_type of the type modifiers that have one, in order */
    uint16_t *mods;   /* its_mod, in order, types included */
    its_name *mod_names; /* each with its dot, in the same order */
    uint64_t set[(ITS_MOD_COUNT + 63) / 64];
} its_mnemonic;

/* Never NULL; jumps to the context's guard if memory runs out. Lives as long as the context. */
const its_mnemonic *its_mnemonic_of(its_context *ctx, its_name name);
static inline bool its_mnemonic_has(const its_mnemonic *m, its_mod mod) {
    return (m->set[(unsigned)mod / 64] >> ((unsigned)mod % 64)) & 1;
}
const char *its_op_text(its_op op);   /* "add" */
const char *its_mod_text(its_mod mod); /* ".rn" */

#endif
