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

typedef enum its_mod_class {
    ITS_MODCLASS_NONE,      /* of an unknown modifier */
    ITS_MODCLASS_TYPE,      /* .u32 .tf32 .e4m3x2 */
    ITS_MODCLASS_SPACE,     /* .global .shared::cta */
    ITS_MODCLASS_VEC,       /* .v2 */
    ITS_MODCLASS_ROUND,     /* .rn .rzi */
    ITS_MODCLASS_COMPARE,   /* .lt .hs .num */
    ITS_MODCLASS_OPERATION, /* .and .add .cas .popc */
    ITS_MODCLASS_CACHE,     /* .ca .nc .L1::evict_last .L2::128B */
    ITS_MODCLASS_SEMANTICS, /* .weak .relaxed .acquire .volatile */
    ITS_MODCLASS_SCOPE,     /* .cta .cluster .gpu .sys */
    ITS_MODCLASS_GEOMETRY,  /* of textures and surfaces: .2d .level .width */
    ITS_MODCLASS_SHAPE,     /* of matrices: .m16n8k16 .32x32b */
    ITS_MODCLASS_LAX,       /* like FLAG, but ptxas ignores it where it means nothing */
    ITS_MODCLASS_FLAG,      /* everything else: .wide .sync .ftz .init */
} its_mod_class;

/* What an instruction does beyond computing its results from its operands: a set of these. */
typedef enum its_effect {
    ITS_FX_PURE = 0,
    ITS_FX_READ = 1 << 0,       /* reads memory */
    ITS_FX_WRITE = 1 << 1,      /* writes memory */
    ITS_FX_ATOMIC = 1 << 2,     /* reads and writes in one step */
    ITS_FX_ASYNC = 1 << 3,      /* finishes later than the instruction */
    ITS_FX_FENCE = 1 << 4,      /* orders memory accesses */
    ITS_FX_BARRIER = 1 << 5,    /* waits for, or counts towards, other threads of the CTA or cluster */
    ITS_FX_CONVERGENT = 1 << 6, /* several threads take part: may not be cloned across branches */
    ITS_FX_BRANCH = 1 << 7,     /* goes on elsewhere in the function */
    ITS_FX_CALL = 1 << 8,
    ITS_FX_RETURN = 1 << 9,  /* ends the function */
    ITS_FX_EXIT = 1 << 10,   /* ends the thread */
    ITS_FX_TRAP = 1 << 11,   /* ends or interrupts the kernel */
    ITS_FX_CARRY = 1 << 12,  /* reads or writes the carry flag: tied to its neighbours */
    ITS_FX_STACK = 1 << 13,  /* moves the stack pointer */
    ITS_FX_MATRIX = 1 << 14, /* uses the tensor cores */
    ITS_FX_HINT = 1 << 15,   /* changes no value and orders nothing, but must not be dropped or repeated */
} its_effect;

#define ITS_MNEMONIC_TYPES 6

typedef struct its_mnemonic {
    uint16_t op;                       /* its_op */
    uint8_t n_mods;                    /* past 255 modifiers the name counts as unknown */
    uint8_t n_types;                   /* of types and type_mods */
    bool unknown_mod;                  /* one of them is not in ptx_mods.def */
    uint8_t space;                     /* its_space of the first state-space modifier, ITS_SPACE_NONE for generic */
    uint8_t space2;                    /* of the second, ITS_SPACE_NONE if there is none: the source of a copy */
    uint8_t vec;                       /* 1, or 2, 4, 8 for .v2, .v4, .v8 */
    uint8_t types[ITS_MNEMONIC_TYPES]; /* its_type that each type modifier names or is carried in, in order */
    uint16_t type_mods[ITS_MNEMONIC_TYPES]; /* the modifiers themselves: ITS_MOD_E4M3X2 where types has ITS_TYPE_B16 */
    bool form_known;                        /* the verifier has set `form` and `gated` */
    bool gated;                             /* verifier: a form that the modifiers fit needs a version or target */
    const char *form;    /* verifier: the operands of the form that the modifiers fit, or NULL; see ptx_ops.def */
    uint16_t *mods;      /* its_mod, in order, types included */
    its_name *mod_names; /* each with its dot, in the same order */
    uint64_t set[(ITS_MOD_COUNT + 63) / 64];
} its_mnemonic;

/* Never NULL; jumps to the context's guard if memory runs out. Lives as long as the context. */
const its_mnemonic *its_mnemonic_of(its_context *ctx, its_name name);

static inline bool its_mnemonic_has(const its_mnemonic *m, its_mod mod) {
    return (m->set[(unsigned)mod / 64] >> ((unsigned)mod % 64)) & 1;
}

/* The first modifier of the class from index `from` on, or ITS_MOD_UNKNOWN. */
its_mod its_mnemonic_find(const its_mnemonic *m, its_mod_class class, unsigned from);
/* ITS_TYPE_NONE if there are fewer types. */
static inline its_type its_mnemonic_type(const its_mnemonic *m, unsigned index) {
    return index < m->n_types ? (its_type)m->types[index] : ITS_TYPE_NONE;
}
static inline its_mod its_mnemonic_compare(const its_mnemonic *m) {
    return its_mnemonic_find(m, ITS_MODCLASS_COMPARE, 0);
}
/*
 * The first .and, .add, .cas ...: for mbarrier and bar, which have sub-opcodes of the class FLAG, use its_mnemonic_has.
 */
static inline its_mod its_mnemonic_operation(const its_mnemonic *m) {
    return its_mnemonic_find(m, ITS_MODCLASS_OPERATION, 0);
}
typedef struct its_matrix_shape {
    unsigned m, n, k;
} its_matrix_shape;
/* ".m16n8k16"; a number that is not there is 0. */
its_matrix_shape its_mnemonic_shape(const its_mnemonic *m);
/* What the instruction does, its modifiers considered: an its_effect set. Unknown opcodes may do anything: all bits. */
uint32_t its_mnemonic_effects(const its_mnemonic *m);
/* The pattern of the opcode as ptx_ops.def has it, "" for ITS_OP_UNKNOWN. */
const char *its_op_pattern(its_op op);
const char *its_op_text(its_op op);    /* "add" */
const char *its_mod_text(its_mod mod); /* ".rn" */
its_type its_mod_type(its_mod mod);
its_space its_mod_space(its_mod mod);
its_mod_class its_mod_class_of(its_mod mod);
/* ITS_OP_UNKNOWN, ITS_MOD_UNKNOWN if there is none. A modifier's text begins with its dot. */
its_op its_op_find(const char *text, size_t size);
its_mod its_mod_find(const char *text, size_t size);

#endif
