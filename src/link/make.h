/* Operands, registers and labels that the passes make, and not only copy. */
#ifndef ITS_LINK_MAKE_H
#define ITS_LINK_MAKE_H

#include "ptx/module.h"
#include "ptx/types.h"

static inline its_operand its_reg_operand(its_symbol *symbol) {
    return (its_operand){.kind = ITS_OPND_REG, .symbol = symbol};
}
/* `[base+offset]` */
its_operand its_address_operand(its_module *out, its_operand base, int64_t offset);

/* Symbols of a function's body. Their ids are the caller's to give, and what declares them is in no list yet. */

/* A register with a declaration of its own, symbol->range. */
its_symbol *its_reg_new(its_module *out, its_name name, its_type type, const its_origin *origin, uint32_t pos);
/* A label, and its place. */
its_symbol *its_label_new(its_module *out, its_name name, const its_origin *origin, uint32_t pos);
its_node *its_label_place(its_module *out, its_symbol *label, const its_origin *origin, uint32_t pos);

#endif
