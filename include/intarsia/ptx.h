/*
 * PTX in and out: parse, look at, verify and print PTX modules.
 *
 * A module is a list of nodes in the order of the text: variables, functions, directives. A function's body is again a
 * flat list of nodes, in which `{` and `}` are nodes of their own; nothing is nested, so passes are loops.
 *
 * Operands are recognised by their shape and carry the symbols they name, resolved by scope. No meaning of an
 * instruction is needed for that: an opcode, a modifier or a directive that this library has never heard of is carried
 * through. What an instruction means is the business of the verifier and of the simulator.
 *
 * All memory of a module lies in one arena and goes with its_module_free. The structures below are for reading;
 * the passes of the library change them.
 */
#ifndef INTARSIA_PTX_H
#define INTARSIA_PTX_H

#include "intarsia/base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* -- types and state spaces ---------------------------------------------------------------------------------------- */

/* Fundamental types, ITS_TYPE_U32 and so on; src/ptx/types.c is the table of them. */
typedef enum its_type {
    ITS_TYPE_NONE, /* none given, or one this library doesn't know: see its_symbol.type_name */
    ITS_TYPE_PRED,
    ITS_TYPE_B8,
    ITS_TYPE_B16,
    ITS_TYPE_B32,
    ITS_TYPE_B64,
    ITS_TYPE_B128,
    ITS_TYPE_U8,
    ITS_TYPE_U16,
    ITS_TYPE_U32,
    ITS_TYPE_U64,
    ITS_TYPE_S8,
    ITS_TYPE_S16,
    ITS_TYPE_S32,
    ITS_TYPE_S64,
    ITS_TYPE_F16,
    ITS_TYPE_F16X2,
    ITS_TYPE_BF16,
    ITS_TYPE_BF16X2,
    ITS_TYPE_F32,
    ITS_TYPE_F64,
    ITS_TYPE_TEXREF,
    ITS_TYPE_SAMPLERREF,
    ITS_TYPE_SURFREF,
    ITS_TYPE_COUNT
} its_type;

/* Size in bytes of a value of the type; 1 for a predicate, 8 for an opaque reference, 0 for ITS_TYPE_NONE. */
ITS_API uint32_t its_type_size(its_type type);
/* The type as PTX spells it, with the dot: ".u32". "" for ITS_TYPE_NONE. */
ITS_API const char *its_type_text(its_type type);

typedef enum its_space {
    ITS_SPACE_NONE,
    ITS_SPACE_REG,
    ITS_SPACE_PARAM,
    ITS_SPACE_LOCAL,
    ITS_SPACE_SHARED,
    ITS_SPACE_GLOBAL,
    ITS_SPACE_CONST,
    ITS_SPACE_TEX,
    ITS_SPACE_COUNT
} its_space;

ITS_API const char *its_space_text(its_space space); /* ".shared", "" for ITS_SPACE_NONE */

/* -- symbols ------------------------------------------------------------------------------------------------------- */

typedef struct its_node its_node;
typedef struct its_symbol its_symbol;
typedef struct its_operand its_operand;
typedef struct its_origin its_origin;
typedef struct its_func its_func;
typedef struct its_regs its_regs;
typedef struct its_module its_module;

typedef enum its_symbol_kind {
    ITS_SYM_REG,     /* a register, declared alone or in a range `%r<12>` */
    ITS_SYM_LABEL,   /* a label in a function body */
    ITS_SYM_VAR,     /* a variable in any space but .reg, parameters included */
    ITS_SYM_FUNC,    /* a .func, an .entry, or an .alias */
    ITS_SYM_PROTO,   /* the label of a .callprototype */
    ITS_SYM_TARGETS, /* the label of .branchtargets or .calltargets */
} its_symbol_kind;

enum { /* its_symbol.flags */
       ITS_SYM_EXTERN = 1 << 0,
       ITS_SYM_VISIBLE = 1 << 1,
       ITS_SYM_WEAK = 1 << 2,
       ITS_SYM_COMMON = 1 << 3,
       ITS_SYM_ENTRY = 1 << 4,   /* function: an .entry */
       ITS_SYM_DEFINED = 1 << 5, /* function: has a body here or is an alias; variable: not .extern; label: placed */
       ITS_SYM_NORETURN = 1 << 6,
       ITS_SYM_ARRAY = 1 << 7,         /* variable: declared with brackets */
       ITS_SYM_UNSIZED = 1 << 8,       /* variable: the first dimension is empty `[]` and no initialiser gives it */
       ITS_SYM_ADDRESS_TAKEN = 1 << 9, /* named other than as the target of a direct call, load, store or branch */
       ITS_SYM_MANAGED = 1 << 10,
       ITS_SYM_PTR = 1 << 11,     /* kernel parameter: has .ptr; then ptr_space and ptr_align say what it points to */
       ITS_SYM_IN_FUNC = 1 << 12, /* declared inside a function: not visible outside it */
       ITS_SYM_PARAM = 1 << 13,   /* a formal parameter of its function */
       ITS_SYM_RESULT = 1 << 14,  /* a formal return parameter of its function */
};

struct its_symbol {
    its_name name;
    uint8_t kind;  /* its_symbol_kind */
    uint8_t space; /* its_space: variables, registers */
    uint8_t type;  /* its_type: variables, registers; of one element or vector component */
    uint8_t vec;   /* 1, or 2, 4, 8 for .v2, .v4, .v8 */
    uint16_t flags;
    uint8_t ptr_space; /* its_space, for ITS_SYM_PTR */
    uint8_t n_dims;
    uint32_t align;     /* bytes; 0 if not given */
    uint32_t ptr_align; /* bytes; for ITS_SYM_PTR */
    uint32_t pos;       /* byte offset of the name where it is declared, in origin->source */
    uint32_t id;   /* number among the registers (or labels) of its function, from 0, in order of first appearance */
    uint64_t size; /* variables: bytes in all, 0 if unsized */
    its_name type_name; /* the type as spelled, when `type` is ITS_TYPE_NONE; else NULL */
    const uint64_t *dims;
    const its_origin *origin;
    its_func *func;   /* functions: the node that declares or defines it (the definition wins) */
    its_regs *range;  /* registers: the declaration it comes from */
    its_node *node;   /* variables, labels, prototypes, targets: the node that declares it; NULL for parameters */
    its_symbol *link; /* after linking: the definition that stands for this symbol, or NULL; an alias's target */
    void *pass;       /* scratch of the running pass; no pass relies on what an earlier one left */
};

/* -- operands ------------------------------------------------------------------------------------------------------ */

typedef enum its_operand_kind {
    ITS_OPND_REG,    /* a register: `symbol`, `suffix`, `offset` (in an address), ITS_OPND_NOT */
    ITS_OPND_SYM,    /* a label, variable, function, prototype or target list: `symbol`, `offset` */
    ITS_OPND_INT,    /* an integer: `bits`, ITS_OPND_UNSIGNED if it was written as, or is too large for, unsigned */
    ITS_OPND_F32,    /* a single: its IEEE bits in `bits` */
    ITS_OPND_F64,    /* a double (also any decimal with a point): its IEEE bits in `bits` */
    ITS_OPND_SREG,   /* a special register, or any other undeclared name that starts with %: `name`, "%tid.x" */
    ITS_OPND_SINK,   /* _ */
    ITS_OPND_VEC,    /* { a, b }: `list`, `count` */
    ITS_OPND_PAIR,   /* p|q: `list` of two */
    ITS_OPND_GROUP,  /* ( a, b ): `list`, `count` */
    ITS_OPND_ADDR,   /* [ a ] or [ a, b ]: `list`, `count`; list[0] is the base with its offset */
    ITS_OPND_REGION, /* unit::function in a region call: `name` is the function, `unit` the 16 hex digits (or NULL) */
    ITS_OPND_STRING, /* a quoted string in a directive: `name` holds what is between the quotes */
    ITS_OPND_TOKEN,  /* in a directive: a word or a sign that stands for itself, `name` */
} its_operand_kind;

enum {                             /* its_operand.flags */
       ITS_OPND_NOT = 1 << 0,      /* !p */
       ITS_OPND_UNSIGNED = 1 << 1, /* ITS_OPND_INT */
       ITS_OPND_NEG = 1 << 2,      /* -r: a negated source of vmad */
       ITS_OPND_OFFSET = 1 << 3, /* REG, SYM: an offset was written, if only +0, of which ptxas -O0 makes an addition */
};

struct its_operand {
    uint8_t kind; /* its_operand_kind */
    uint8_t flags;
    uint16_t count;  /* of `list` */
    uint32_t pos;    /* byte offset in the source of the node that holds it */
    its_name suffix; /* what follows with a dot: component `.x`, selector `.b0`, `.unified`; with its dot, or NULL */
    union {
        its_symbol *symbol;
        its_name name;
        its_operand *list;
        uint64_t bits;
    };
    union {
        int64_t offset; /* bytes added to a REG or SYM */
        its_name unit;
    };
};

/* -- nodes --------------------------------------------------------------------------------------------------------- */

typedef enum its_node_kind {
    /* in a body */
    ITS_NODE_INSN,    /* its_insn */
    ITS_NODE_LABEL,   /* its_decl: `L:` */
    ITS_NODE_OPEN,    /* its_node: `{` */
    ITS_NODE_CLOSE,   /* its_node: `}` */
    ITS_NODE_REGS,    /* its_regs: one name of a .reg declaration */
    ITS_NODE_PROTO,   /* its_proto: `P: .callprototype ...` */
    ITS_NODE_TARGETS, /* its_targets: `T: .branchtargets ...`, `.calltargets` */
    ITS_NODE_LOC,     /* its_loc */
    /* in a body or at module level */
    ITS_NODE_VAR,       /* its_var: a variable in any space but .reg */
    ITS_NODE_PRAGMA,    /* its_directive: operands are strings */
    ITS_NODE_DIRECTIVE, /* its_directive: one that this library doesn't know, or needs no more of than its operands */
    ITS_NODE_COMMENT,   /* its_comment: kept for people; no pass looks at one */
    /* at module level */
    ITS_NODE_FUNC,    /* its_func */
    ITS_NODE_ALIAS,   /* its_alias */
    ITS_NODE_FILE,    /* its_file */
    ITS_NODE_SECTION, /* its_section */
} its_node_kind;

/*
 * Where a node comes from. The nodes of a parsed module share one origin with no `call`. An inlined node has the origin
 * of its site: `source` is the callee's text, `call` the call that was replaced (kept for its position), `outer` the
 * origin of that call, and so on up to the kernel.
 */
struct its_origin {
    const struct its_source *source; /* the text that positions point into */
    const its_module *module;
    const its_origin *outer;
    const struct its_insn *call;
    its_name callee;
};

struct its_node {
    its_node *next;
    const its_origin *origin;
    uint32_t pos; /* byte offset in origin->source */
    uint8_t kind; /* its_node_kind */
    uint8_t flags;
    uint16_t count; /* operands of an instruction or directive */
};

enum {                              /* its_node.flags of an instruction */
       ITS_INSN_GUARD_NOT = 1 << 0, /* @!p */
};

enum {                            /* its_node.flags of a variable */
       ITS_VAR_DECLARES = 1 << 0, /* an `.extern` line beside the definition that its symbol stands for */
};

enum {                                 /* its_node.flags of a comment */
       ITS_COMMENT_SAME_LINE = 1 << 0, /* as what stands in front of it */
};

typedef struct its_insn {
    its_node node;
    its_name name;     /* opcode with all modifiers, one word: "ld.global.v4.b32" */
    its_symbol *guard; /* predicate register of @p or @!p, or NULL */
    its_name guard_suffix;
    ITS_FLEXIBLE(its_operand, ops); /* node.count of them, in the order of the text; `call (r), f, (a)` has three */
} its_insn;

typedef struct its_decl {
    its_node node;
    its_symbol *symbol;
} its_decl;

struct its_regs {
    its_node node;
    its_name name; /* of one register, or the prefix of a range */
    uint32_t n;    /* 0: one register called `name`; else `name`0 to `name`(n-1) */
    uint8_t type, vec;
    its_name type_name; /* when `type` is ITS_TYPE_NONE */
    its_symbol *symbol; /* when n is 0 */
};

/*
 * One element of an initialiser; braces were flattened, missing elements are not listed. Of an opaque reference
 * (.texref, .samplerref, .surfref) it is one field of an element: `field` = `bits`, or the word `word`.
 */
typedef struct its_init {
    uint8_t kind;   /* ITS_OPND_INT, F32, F64, SYM, or TOKEN for a word */
    bool generic;   /* SYM: generic(symbol) + offset */
    uint8_t byte;   /* SYM: 0, or 1 + n for byte n of the address: the mask `0xff00(symbol)` is byte 1 */
    uint32_t index; /* which element of the flattened array this is */
    uint32_t pos;
    int32_t offset; /* SYM: bytes added */
    union {
        its_symbol *symbol;
        its_name word; /* TOKEN: "clamp_to_edge" */
        uint64_t bits;
    };
    its_name field; /* "addr_mode_0", or NULL */
} its_init;

typedef struct its_var {
    its_node node;
    its_symbol *symbol;
    uint32_t n_init;
    bool has_init;
    its_init *init;
    its_name *attributes; /* each as spelled between the parentheses of .attribute(...) */
    uint32_t n_attributes;
} its_var;

/* A parameter list: kernel, function or prototype. Prototype parameters may be called `_`. */
typedef struct its_params {
    uint32_t n;
    its_symbol **items;
} its_params;

struct its_func {
    its_node node;
    its_symbol *symbol;
    its_params results; /* at most one in PTX today */
    its_params params;
    bool has_params; /* a parameter list was written, if only `()` */
    bool has_body;
    its_node *directives;   /* .reqntid, .maxnreg, .noreturn, .pragma, attributes ...: its_directive nodes */
    its_node *first, *last; /* body, without the outer braces */
    uint32_t end_pos;       /* of the closing brace */
    uint32_t n_regs;        /* registers that have an its_symbol; their ids are 0 to n_regs-1 */
    uint32_t n_labels;      /* likewise */
};

typedef struct its_proto {
    its_node node;
    its_symbol *symbol;
    its_params results, params;
    its_node *directives;
} its_proto;

typedef struct its_targets {
    its_node node;
    its_symbol *symbol;
    bool calls;                     /* .calltargets, else .branchtargets */
    ITS_FLEXIBLE(its_operand, ops); /* node.count of them */
} its_targets;

/* `.loc file line column[, function_name label[+offset], inlined_at file line column]` */
typedef struct its_loc {
    its_node node;
    uint32_t file, line, column;
    bool inlined;
    its_name function; /* a label of section .debug_str, or NULL */
    uint64_t function_offset;
    uint32_t at_file, at_line, at_column;
} its_loc;

typedef struct its_directive {
    its_node node;
    its_name name;                  /* with its dot: ".maxntid" */
    bool semicolon;                 /* ended by one */
    ITS_FLEXIBLE(its_operand, ops); /* node.count of them; every sign is one, commas included */
} its_directive;

typedef struct its_comment {
    its_node node;
    const char *text; /* with its slashes, without the end of the line */
    uint32_t size;
} its_comment;

typedef struct its_alias {
    its_node node;
    its_symbol *symbol; /* its `link` is the aliasee */
} its_alias;

typedef struct its_file {
    its_node node;
    uint32_t index;
    its_name path;
    bool has_stat;
    uint64_t mtime, size;
} its_file;

/* A DWARF section, kept as text: `body` is what stands between the braces. */
typedef struct its_section {
    its_node node;
    its_name name; /* ".debug_str" */
    const char *body;
    uint32_t body_size;
} its_section;

/* -- modules ------------------------------------------------------------------------------------------------------- */

struct its_module {
    its_context *ctx;
    const struct its_source *source;
    const its_origin *origin;
    uint32_t version_major, version_minor;
    uint32_t address_size; /* 32 or 64 */
    uint32_t version_pos, target_pos;
    its_name *targets; /* "sm_80", "texmode_independent", "debug" ... */
    uint32_t n_targets;
    its_node *first, *last; /* everything after .version, .target and .address_size */
    struct its_module_private *priv;
};

/*
 * Parses `size` bytes of PTX. `name` is what diagnostics call the text, usually a path; both are copied.
 *
 * On success `*module` is the caller's to free with its_module_free, before its context. On failure it is NULL and the
 * context has at least one error: syntax errors (the parser goes on at the next `;`, so there may be several),
 * undeclared or twice declared names, or ITS_ERR_NOMEM.
 */
ITS_API its_status its_ptx_parse(its_context *ctx, const char *name, const char *text, size_t size,
                                 its_module **module);
/* Frees a module and everything in it; NULL does nothing. A module of its_linked_module is freed by its_linked_free. */
ITS_API void its_module_free(its_module *module);

/* Reads and parses a file; "-" is standard input. ITS_ERR_IO if it can't be read. */
ITS_API its_status its_ptx_parse_file(its_context *ctx, const char *path, its_module **module);

/*
 * Prints a module. `*text` is NUL-terminated, `*size` (may be NULL) is its length; free with its_free. ptxas turns it
 * into the same machine code as the text that was parsed. ITS_ERR_NOMEM is the only failure.
 */
ITS_API its_status its_ptx_print(const its_module *module, char **text, size_t *size);

/*
 * Checks what the parser leaves open: that operands fit the instruction in number, shape, type and size, that calls fit
 * their functions, that versions and targets allow what is used. Opcodes and modifiers this library doesn't know are
 * passed over. Each fault is an error in the context; ITS_ERR_INPUT if there was any.
 */
ITS_API its_status its_ptx_verify(const its_module *module);

/* The module-level symbol of that name, or NULL. After linking, follow `link` for its definition. */
ITS_API its_symbol *its_module_find(const its_module *module, const char *name);
/* Iterates over functions: NULL starts, NULL ends. Declarations without a body are included. */
ITS_API its_func *its_module_next_func(const its_module *module, const its_func *after);
/* Bytes of memory that the module holds. */
ITS_API size_t its_module_memory(const its_module *module);

#ifdef __cplusplus
}
#endif
#endif
