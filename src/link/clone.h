/* Copies of nodes whose symbols are replaced by others. */
#ifndef ITS_LINK_CLONE_H
#define ITS_LINK_CLONE_H

#include "ptx/module.h"

typedef struct its_cloner {
    its_module *out;
    its_symbol *(*symbol)(void *user, its_symbol *symbol); /* what stands for a symbol of the original */
    void *user;
} its_cloner;

/* A copy of the node, not linked to a list. Registers (ITS_NODE_REGS) and functions are the caller's business. */
its_node *its_clone(const its_cloner *cloner, const its_node *node, const its_origin *origin);
its_operand its_clone_operand(const its_cloner *cloner, const its_operand *operand);
/* A copy of the symbol that belongs to nothing yet. */
its_symbol *its_clone_symbol(its_module *out, const its_symbol *symbol, its_name name, const its_origin *origin);
its_params its_clone_params(its_module *out, const its_params *params);
/* Of a definition all, of a declaration those that stand for themselves. */
its_node *its_clone_directives(const its_cloner *cloner, its_node *first, bool definition);

/* Visits every operand of a node, those of a prototype's or function's directives and of initialisers included. */
void its_visit_deep(its_node *node, its_operand_visitor *visit, void *user);

#endif
