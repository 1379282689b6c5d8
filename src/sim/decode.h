/*
 * Decoding: from instructions to operations. One file per group of instructions, decode_GROUP.c, named in the `sim`
 * column of ptx_ops.def.
 *
 * A decoder takes what it knows out of the instruction with the functions below and emits operations. Every modifier
 * that it asks for is ticked off; what is left at the end was not understood, and the instruction is refused: a
 * modifier is never passed over in silence. The first refusal of an instruction counts; everything after it has no
 * effect.
 */
#ifndef ITS_SIM_DECODE_H
#define ITS_SIM_DECODE_H

#include "ptx/mnemonic.h"
#include "ptx/module.h"
#include "ptx/types.h"
#include "sim/modes.h"
#include "sim/program.h"

typedef struct its_sim_fixup {
    uint32_t op; /* a branch whose target isn't placed yet */
    its_symbol *label;
} its_sim_fixup;

typedef struct its_sim_table_fixup {
    uint32_t *target; /* an element of a branch table */
    its_symbol *label;
} its_sim_table_fixup;

typedef struct its_sim_decoder {
    its_context *ctx;
    its_sim_program *program;
    const its_module *module;
    its_arena *arena; /* the program's */
    its_arena scratch;
    const its_func *node; /* the function */
    its_sim_func *func;
    const its_insn *insn; /* the instruction */
    const its_mnemonic *m;
    uint64_t ticked[(ITS_MOD_COUNT + 63) / 64];
    bool refused;
    uint32_t where; /* index in program->wheres */
    uint32_t loc;
    ITS_VEC(its_sim_op) ops; /* of all functions so far */
    ITS_VEC(uint32_t) op_where;
    uint32_t *regs;   /* register id -> offset in the frame, 0: none yet */
    uint32_t *labels; /* label id -> operation + 1 */
    ITS_VEC(its_sim_fixup) fixups;
    ITS_VEC(its_sim_table_fixup) table_fixups;
    ITS_VEC(its_sim_const) consts;
    uint32_t *const_slots; /* hash table: index in consts + 1 */
    uint32_t const_capacity;
    uint32_t frame;               /* bytes so far */
    uint32_t pred_next, pred_end; /* room for predicates */
    uint32_t stack;               /* bytes of .local and .param variables */
    uint64_t open_bytes;          /* room for a parameter `va[]`: the most that any call of the module passes to one */
    ITS_VEC(uint32_t) callees;
    ITS_VEC(uint32_t) shared;
    bool *accumulators; /* by register id: written by a wgmma of the function; NULL if it has none */
    its_sim_op dummy;   /* what a refused instruction emits into */
} its_sim_decoder;

#define ITS_SIM_CARRY 4u /* offset of the carry flag in a frame */
#define ITS_SIM_NOWHERE UINT32_MAX

/* Notes that the instruction can't be run. `hint` may be NULL. */
void its_sim_refuse(its_sim_decoder *d, const char *hint, const char *format, ...) ITS_PRINTF(3, 4);
void its_sim_refuse_form(its_sim_decoder *d); /* "... is not implemented in this form" */

/* -- modifiers ----------------------------------------------------------------------------------------------------- */

bool its_sim_has(its_sim_decoder *d, its_mod mod); /* and ticks it off */
void its_sim_tick_class(its_sim_decoder *d, its_mod_class class);
void its_sim_tick_all(its_sim_decoder *d);
its_type its_sim_type(its_sim_decoder *d, unsigned index); /* of type modifiers; and ticks it off */
its_mod its_sim_type_mod(its_sim_decoder *d, unsigned index);
/* The first modifier of the class, ticked off; ITS_MOD_UNKNOWN if there is none. */
its_mod its_sim_first(its_sim_decoder *d, its_mod_class class);

/* -- operands ------------------------------------------------------------------------------------------------------ */

/* Bytes per lane of a register that holds a value of the type: 0 for a predicate, 2 for 8-bit types. */
uint32_t its_sim_reg_size(its_type type);
/* The index-th operand of the instruction; refuses and returns a sink if there are fewer. */
const its_operand *its_sim_operand(its_sim_decoder *d, unsigned index);
/* The integer that is the index-th operand; refuses anything else and returns 0. */
uint64_t its_sim_literal(its_sim_decoder *d, unsigned index);
/* Where the value of a source is; registers must have the type's size. */
uint32_t its_sim_source(its_sim_decoder *d, const its_operand *operand, its_type type);
/* The same for a source whose register may be wider: `*size` says how wide. Immediates get the type's own. */
uint32_t its_sim_wide_source(its_sim_decoder *d, const its_operand *operand, its_type type, uint32_t *size);
/* Where a result goes; `_` gets a place that nobody reads. */
uint32_t its_sim_target(its_sim_decoder *d, const its_operand *operand, its_type type);
uint32_t its_sim_wide_target(its_sim_decoder *d, const its_operand *operand, its_type type, uint32_t *size);
/* A predicate source; `*inverted` says whether it is written with a `!`. */
uint32_t its_sim_predicate(its_sim_decoder *d, const its_operand *operand, bool *inverted);
/* d|p: the two places; without a `|` the second is ITS_SIM_NOWHERE. Both are NOWHERE for `_`. */
void its_sim_pair(its_sim_decoder *d, const its_operand *operand, its_type first, its_type second, uint32_t *a,
                  uint32_t *b);
uint32_t its_sim_const_bits(its_sim_decoder *d, uint64_t bits, uint32_t size);
uint32_t its_sim_const_of(its_sim_decoder *d, uint8_t kind, uint64_t value, uint32_t size);
uint32_t its_sim_temp(its_sim_decoder *d, uint32_t size);
/* The source of an instruction with `.ftz`: subnormal numbers become zero. */
uint32_t its_sim_flushed(its_sim_decoder *d, its_type type, uint32_t source);
/* A parameter of the kernel that is decoded; its offset in the parameter block. */
bool its_sim_is_kernel_param(const its_sim_decoder *d, const its_symbol *symbol);
uint32_t its_sim_param_offset(const its_symbol *symbol);
uint32_t its_sim_register(its_sim_decoder *d, const its_symbol *symbol);
/* Where an operation finds its address, `[register + offset]` in op->space: fills a, imm and a flag of `op`. */
void its_sim_take_address(its_sim_decoder *d, its_sim_op *op, const its_operand *operand);

/* -- emitting ------------------------------------------------------------------------------------------------------ */

/* Appends an operation under the instruction's guard. */
its_sim_op *its_sim_emit(its_sim_decoder *d, its_sim_handler handler, uint32_t dst, uint32_t dst_size);
its_sim_op *its_sim_emit1(its_sim_decoder *d, its_sim_handler handler, uint32_t dst, uint32_t dst_size, uint32_t a);
its_sim_op *its_sim_emit2(its_sim_decoder *d, its_sim_handler handler, uint32_t dst, uint32_t dst_size, uint32_t a,
                          uint32_t b);
its_sim_op *its_sim_emit3(its_sim_decoder *d, its_sim_handler handler, uint32_t dst, uint32_t dst_size, uint32_t a,
                          uint32_t b, uint32_t c);
its_sim_op *its_sim_emit_act(its_sim_decoder *d, its_sim_handler handler);
/* One in which the whole warp takes part: its members (op->e) are all lanes. */
its_sim_op *its_sim_emit_warp(its_sim_decoder *d, its_sim_handler handler);
/* One on the address that the index-th operand is, in `space`; what stands behind the address is left to others. */
its_sim_op *its_sim_emit_at(its_sim_decoder *d, its_sim_handler handler, unsigned index, its_space space);
/* A branch; the target is filled in when its label is known. */
void its_sim_emit_branch(its_sim_decoder *d, its_symbol *label);
/* Copies a register of `size` bytes per lane. */
void its_sim_emit_copy(its_sim_decoder *d, uint32_t dst, uint32_t src, uint32_t size);

/* The handler for a type, from those for 16, 32 and 64 bits; refuses any other. */
its_sim_handler its_sim_by_width(its_sim_decoder *d, its_type type, its_sim_handler h16, its_sim_handler h32,
                                 its_sim_handler h64);
/* The same for unsigned and signed types; bit types count as unsigned. */
its_sim_handler its_sim_by_int(its_sim_decoder *d, its_type type, its_sim_handler u16, its_sim_handler s16,
                               its_sim_handler u32, its_sim_handler s32, its_sim_handler u64, its_sim_handler s64);
/* Of the four half formats: F16, F16X2, BF16, BF16X2 follow each other in the table. */
its_sim_handler its_sim_by_half(its_sim_decoder *d, its_type type, its_sim_handler f16);
bool its_sim_is_half(its_type type);
bool its_sim_is_signed(its_type type);

/* -- groups: the sim column of ptx_ops.def ------------------------------------------------------------------------- */

/* The reduction that a modifier names; refuses if there is none. */
bool its_sim_decode_reduction(its_sim_decoder *d, its_sim_atomic *mode);

typedef void its_sim_decode_group(its_sim_decoder *d);
its_sim_decode_group its_sim_decode_alu, its_sim_decode_setp, its_sim_decode_mov, its_sim_decode_cvt;
its_sim_decode_group its_sim_decode_address, its_sim_decode_memory, its_sim_decode_atom, its_sim_decode_fence;
its_sim_decode_group its_sim_decode_hint, its_sim_decode_branch, its_sim_decode_call, its_sim_decode_barrier;
its_sim_decode_group its_sim_decode_vote, its_sim_decode_shuffle, its_sim_decode_matrix;
its_sim_decode_group its_sim_decode_copy, its_sim_decode_mbarrier, its_sim_decode_cluster, its_sim_decode_stack;
its_sim_decode_group its_sim_decode_tensormap, its_sim_decode_wgmma, its_sim_decode_video;
/* Refused by name. */
its_sim_decode_group its_sim_decode_none;

/* Bytes of what a call passes to a parameter `va[]`; 0 if it has none. */
uint64_t its_sim_open_bytes(const its_insn *insn);

/* Notes which registers the products of matrices of d->node write. */
void its_sim_find_accumulators(its_sim_decoder *d);
/* Emits a check before an instruction that uses one of them. */
void its_sim_touch_accumulators(its_sim_decoder *d);

/* Parts of copy, memory, matrix and alu. */
its_sim_decode_group its_sim_decode_store_async, its_sim_decode_tensor, its_sim_decode_wmma;
its_sim_decode_group its_sim_decode_int, its_sim_decode_float, its_sim_decode_float_pair, its_sim_decode_logic;

#endif
