/*
 * A decoded program: functions as arrays of operations on a register frame.
 *
 * A register frame belongs to one call of a function in one warp. Operands of an operation are byte offsets into it:
 *
 *     0         4       8                 64 ...                            constants              frame_size
 *     | all set | carry | predicates ...  | registers and more predicates   | constants, %tid ...  |
 *
 * Predicates are 32-bit words with a bit per lane, registers 32 elements (lanes.h). The first word is all ones: what an
 * instruction without a guard is guarded by. Constants, addresses of variables and special registers that don't change
 * are put into the frame when the function is entered, so that an operation never asks what kind its operand is.
 *
 * One PTX instruction becomes one operation or a few. Arithmetic (is_act false) is a function from the frame to the
 * destination; everything else is an act, which may change the fragment that runs it.
 */
#ifndef ITS_SIM_PROGRAM_H
#define ITS_SIM_PROGRAM_H

#include "base/arena.h"
#include "base/diag.h"
#include "sim/machine.h"

typedef struct its_sim_op its_sim_op;
typedef struct its_sim_exec its_sim_exec;

/* -- handlers ------------------------------------------------------------------------------------------------------ */

/* ITS_SIM_ADD_32 ... of arithmetic, ITS_SIM_ACT_LOAD ... of acts. */
typedef enum its_sim_handler {
    ITS_SIM_NO_HANDLER,
#define ITS_ALU1(id, ...) ITS_SIM_##id,
#define ITS_ALU2 ITS_ALU1
#define ITS_ALU3 ITS_ALU1
#define ITS_ALU4 ITS_ALU1
#define ITS_CMP1 ITS_ALU1
#define ITS_CMP2 ITS_ALU1
#define ITS_CMP3 ITS_ALU1
#define ITS_PRED ITS_ALU1
#define ITS_ALU_RAW ITS_ALU1
#include "sim/alu.def"
    ITS_SIM_BRANCH, /* in the loop itself */
#define ITS_ACT(id) ITS_SIM_ACT_##id,
#define ITS_ACT_FAST ITS_ACT
#include "sim/acts.def"
#undef ITS_ACT
#undef ITS_ACT_FAST
    ITS_SIM_HANDLERS
} its_sim_handler;

typedef void its_sim_alu(const its_sim_op *op, const char *regs, char *dst);

typedef enum its_sim_verdict {
    ITS_SIM_NEXT,  /* the fragment goes on with the next operation */
    ITS_SIM_AGAIN, /* fragments were changed: look which one runs next */
    ITS_SIM_STOP   /* a fault was recorded */
} its_sim_verdict;
typedef its_sim_verdict its_sim_act(its_sim_exec *x, const its_sim_op *op, uint32_t mask);

/* -- operations ---------------------------------------------------------------------------------------------------- */

enum { /* its_sim_op.kind */
       ITS_SIM_OP_ALU,
       ITS_SIM_OP_ACT,
       ITS_SIM_OP_BRANCH
};

enum {                             /* its_sim_op.flags of memory operations */
       ITS_SIM_SIGNED = 1 << 0,    /* loads: sign-extend into a wider register */
       ITS_SIM_STRONG = 1 << 1,    /* volatile, relaxed, acquire, release: whole elements at once, in program order */
       ITS_SIM_ACQUIRE = 1 << 2,   /* nothing after it moves before it */
       ITS_SIM_RELEASE = 1 << 3,   /* nothing before it moves after it */
       ITS_SIM_ADDRESS32 = 1 << 4, /* the address register has 32 bits */
       ITS_SIM_KNOWN = 1 << 6      /* shuffles of all lanes: where each reads from is in the lists, from op->imm on */
};

struct its_sim_op {
    union {
        its_sim_alu *alu;
        its_sim_act *act;
        const its_sim_op *target; /* of a branch */
    };
    uint32_t guard, guard_xor; /* lanes that take part: the word at `guard` ^ guard_xor */
    uint32_t dst, a, b, c, e;  /* offsets in the frame */
    uint16_t handler;
    uint8_t kind;
    uint8_t dst_size; /* bytes per lane of dst; 0: a predicate */
    int64_t imm;
    uint16_t mode;
    uint8_t size;  /* memory: bytes of an element */
    uint8_t vec;   /* memory: elements */
    uint8_t space; /* its_space */
    uint8_t flags;
    uint8_t reg_size; /* memory: bytes of a register that holds an element */
    uint8_t type;     /* its_type, where the act wants it */
    uint32_t list;    /* index into its_sim_program.lists, or of a call, table, refusal */
    uint8_t scope;    /* its_race_scope of strong accesses and fences */
};

/* -- functions ----------------------------------------------------------------------------------------------------- */

typedef enum its_sim_sreg {
#define ITS_SREG(id, text, size, kind) ITS_SIM_SREG_##id,
#include "sim/sregs.def"
#undef ITS_SREG
    ITS_SIM_SREGS
} its_sim_sreg;

typedef struct its_sim_const {
    uint32_t offset;
    uint8_t size; /* as dst_size */
    uint8_t kind; /* ITS_SIM_CONST_... */
    uint64_t value;
} its_sim_const;

enum {
    ITS_SIM_CONST_BITS,  /* value */
    ITS_SIM_CONST_SREG,  /* its_sim_sreg */
    ITS_SIM_CONST_LOCAL, /* the local address of byte `value` of this call's stack frame */
    ITS_SIM_CONST_SHARED /* the address of dynamic shared memory of the kernel */
};

/* Where an argument or formal parameter is. */
typedef struct its_sim_slot {
    uint32_t offset; /* in the register frame, or in the call's stack frame */
    uint32_t size;   /* bytes */
    bool in_reg;
    bool open; /* the formal parameter `va[]`, which takes any argument that has no more bytes */
} its_sim_slot;

typedef enum its_sim_builtin {
    ITS_SIM_CALL_FUNC,
    ITS_SIM_CALL_INDIRECT,
    ITS_SIM_CALL_PRINT,
    ITS_SIM_CALL_ASSERT,
    ITS_SIM_CALL_MALLOC,
    ITS_SIM_CALL_FREE,
} its_sim_builtin;

typedef struct its_sim_call {
    uint8_t kind;     /* its_sim_builtin */
    uint32_t func;    /* CALL_FUNC */
    uint32_t address; /* CALL_INDIRECT: the register that holds the function's address */
    uint32_t n_args, n_results;
    const its_sim_slot *args, *results;
} its_sim_call;

typedef struct its_sim_table { /* of brx.idx */
    uint32_t n;
    uint32_t *targets; /* indices of operations of the program */
} its_sim_table;

typedef struct its_sim_func {
    const char *name;
    bool is_entry, has_body, address_taken, calls_indirect, allocates;
    bool bounded;          /* all that it can call is known, no call comes back to it, and there is no alloca */
    uint32_t stack_size;   /* bounded: bytes of local memory of itself and its calls */
    uint32_t first, n_ops; /* in its_sim_program.ops */
    uint32_t frame_size;
    uint32_t consts_begin; /* offset of the first constant */
    uint32_t local_size;   /* bytes of stack per thread and call */
    uint32_t n_consts;
    const its_sim_const *consts;
    uint32_t n_params, n_results;
    const its_sim_slot *params, *results; /* of a .func */
    uint32_t n_callees, n_shared;
    const uint32_t *callees;      /* functions called by name */
    const uint32_t *shared;       /* indices of shared variables that it names */
    uint32_t refusal, n_refusals; /* in its_sim_program.refusals */
    its_node where;               /* for diagnostics: kind, origin, pos */
    its_sim_entry entry;          /* of an .entry */
} its_sim_func;

/* -- where things are ---------------------------------------------------------------------------------------------- */

/* A copy of what a node says about its place, for reports after the module is gone. */
typedef struct its_sim_where {
    its_node node; /* kind, origin and pos only */
    uint32_t loc;  /* 1 + index in its_sim_program.locs of the .loc in force; 0: none */
    uint32_t func;
} its_sim_where;

typedef struct its_sim_loc {
    uint32_t file, line, column;
    bool inlined;
    uint32_t at_file, at_line, at_column;
} its_sim_loc;

typedef struct its_sim_file {
    uint32_t index;
    const char *path;
} its_sim_file;

/*
 * Something that the simulator doesn't have, or that makes no sense: told when an entry that can reach it is looked up.
 */
typedef struct its_sim_refusal {
    its_sim_where where;
    const char *message, *hint;
} its_sim_refusal;

/* -- variables ----------------------------------------------------------------------------------------------------- */

typedef struct its_sim_variable {
    its_name name;
    uint8_t space;
    bool dynamic;     /* .extern .shared x[] */
    uint64_t address; /* .global, .const: where it is; .shared: its address there */
    uint64_t size;
    uint32_t align;
} its_sim_variable;

/* What was copied out of the module, by address: open addressing, a power of two of slots. */
typedef struct its_sim_copied {
    const void *from, *to;
} its_sim_copied;

typedef struct its_sim_copies_made {
    its_sim_copied *slots;
    size_t count, capacity;
} its_sim_copies_made;

struct its_sim_program {
    its_context *ctx;
    const its_sim_machine *machine;
    const struct its_sim_isa *isa; /* the copy of the loop that runs it */
    its_arena arena;
    its_sim_op *ops;
    uint32_t *op_where; /* per operation, in `wheres` */
    uint32_t n_ops;
    its_sim_func *funcs;
    uint32_t n_funcs;
    ITS_VEC(its_sim_variable) variables;
    ITS_VEC(uint32_t) lists;
    ITS_VEC(its_sim_call) calls;
    ITS_VEC(its_sim_table) tables;
    ITS_VEC(its_sim_refusal) refusals;
    ITS_VEC(its_sim_where) wheres;
    ITS_VEC(its_sim_loc) locs;
    ITS_VEC(its_sim_file) files;
    its_sim_copies_made copied; /* sources and origins; see its_sim_where_of */
    char *data;                 /* all .global and .const variables lie in one block */
    size_t data_size;
    uint64_t heap_used;     /* bytes of device malloc */
    uint32_t shared_size;   /* static shared memory of the module, from ITS_SIM_SHARED_BEGIN on */
    uint32_t dynamic_align; /* of dynamic shared memory; at least 16 */
    uint32_t reserved;      /* the variable that stands for CUDA's own shared memory, + 1; 0: nobody asks for it */
    bool uses_workspace;    /* somebody asks for the barrier of the grid */
};

/* -- addresses ----------------------------------------------------------------------------------------------------- */

/*
 * The windows of generic addresses: the top byte says which. Global (and constant) memory is host memory, whose
 * addresses have a top byte of zero.
 */
#define ITS_SIM_WINDOW_SHIFT 56
#define ITS_SIM_WINDOW_SHARED ((uint64_t)1 << ITS_SIM_WINDOW_SHIFT)
#define ITS_SIM_WINDOW_LOCAL ((uint64_t)2 << ITS_SIM_WINDOW_SHIFT)
#define ITS_SIM_WINDOW_PARAM ((uint64_t)3 << ITS_SIM_WINDOW_SHIFT)
#define ITS_SIM_WINDOW_FUNC ((uint64_t)4 << ITS_SIM_WINDOW_SHIFT)
/* Address 0 is never good, in no space: shared memory begins at 1024, as on the GPU, and local memory at 256. */
#define ITS_SIM_SHARED_BEGIN 1024u
#define ITS_SIM_LOCAL_BEGIN 256u
#define ITS_SIM_PARAM_BEGIN 256u
/*
 * In the shared memory of a cluster, bits 24 and up of an address are 1 + the rank of its CTA; 0: the CTA that uses it.
 */
#define ITS_SIM_RANK_SHIFT 24
static inline uint64_t its_sim_func_address(uint32_t func) {
    return ITS_SIM_WINDOW_FUNC | ((uint64_t)func + 1) << 4;
}

/* -- the parts of its_sim_program_new ------------------------------------------------------------------------------ */

/* Gives every variable its address; symbol->pass becomes its number + 1. */
its_status its_sim_program_place_variables(its_sim_program *program, const its_module *module);
/* Writes the initialisers. Requires all functions and variables to be placed. */
its_status its_sim_program_initialise(its_sim_program *program, const its_module *module);
/* Decodes every function with a body. */
void its_sim_program_decode(its_sim_program *program, const its_module *module);
/* Works out what each entry can reach: its stack, its shared memory. */
void its_sim_program_measure(its_sim_program *program);
/* Sets the handlers of `ops` to the copies of program->isa. */
void its_sim_program_bind(its_sim_program *program);

/* Memory for variables and device malloc, from the machine's `take` or the context; NULL if there is none. */
void *its_sim_program_take(const its_sim_program *program, size_t size, size_t align);
void its_sim_program_give(const its_sim_program *program, void *block, size_t size);

/* The lane that `lane` reads from in a shuffle (mode ITS_SHUFFLE_...); false if that is outside of its segment. */
bool its_sim_shuffle_source(unsigned mode, uint32_t lane, uint32_t b, uint32_t c, uint32_t *source);

/* Records a copy of the place of `node`; returns its index in `wheres`. */
its_sim_where its_sim_where_of(its_sim_program *program, const its_node *node);

#endif
