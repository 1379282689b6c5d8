/*
 * Building and changing modules: what the parser, the linker and tests use to make nodes. Everything made here lies in
 * the module's arena; see base/arena.h for what happens when memory runs out.
 */
#ifndef ITS_PTX_MODULE_H
#define ITS_PTX_MODULE_H

#include "base/arena.h"
#include "base/buffer.h"
#include "base/diag.h"
#include "intarsia/ptx.h"

struct its_module_private {
    its_arena arena;
    ITS_VEC(its_symbol *) symbols; /* of the module level, in order of first appearance */
    its_symbol **by_name;          /* open addressing over names; a power of two of slots */
    size_t by_name_capacity;
    bool says_address_size; /* the text has .address_size */
};

its_arena *its_module_arena(its_module *module);
/* An empty module whose text is `name`/`text` (copied). The caller has set a guard. */
its_module *its_module_new(its_context *ctx, const char *name, const char *text, size_t size);
its_symbol *its_module_find_name(const its_module *module, its_name name);
void its_module_add_symbol(its_module *module, its_symbol *symbol);

/* Allocates a node of `size` bytes, cleared, with kind, origin and position set. */
void *its_node_new(its_module *module, its_node_kind kind, size_t size, const its_origin *origin, uint32_t pos);
its_insn *its_insn_new(its_module *module, its_name name, uint16_t count, const its_origin *origin, uint32_t pos);

/* A list of nodes under construction. */
typedef struct its_node_list {
    its_node *first, *last;
} its_node_list;
void its_list_append(its_node_list *list, its_node *node);
void its_module_append(its_module *module, its_node *node);
void its_func_append(its_func *func, its_node *node);

/* The function that `symbol` stands for after following aliases and link resolution; may be without a body. */
its_symbol *its_symbol_final(its_symbol *symbol);

/*
 * Where a node stands, and the chain of calls it was inlined through: adds the "inlined from" places to the diagnostic.
 */
its_place its_node_place(const its_node *node);
its_place its_symbol_place(const its_symbol *symbol);
void its_diag_also_inlined(its_context *ctx, const its_node *node);

/* The bytes of a formal parameter, in memory or in a register; 0 if it has no fixed size. */
uint64_t its_param_bytes(const its_symbol *param);
/*
 * A float among the arguments of a call, where the parameter is none of that size. As ptxas does it: .f32 gets the
 * number, everything else the literal's bits. Other operands come back as they are.
 */
its_operand its_literal_for(const its_symbol *formal, its_operand value);

/* Calls `visit` for every operand of the node, those inside vectors, pairs, groups and addresses included. */
typedef void its_operand_visitor(its_operand *operand, void *user);
void its_node_visit(its_node *node, its_operand_visitor *visit, void *user);

#endif
