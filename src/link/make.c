/* See make.h. */
#include "link/make.h"

its_operand its_address_operand(its_module *out, its_operand base, int64_t offset) {
    its_operand *inner = its_arena_alloc(its_module_arena(out), sizeof *inner);
    *inner = base;
    inner->offset = offset;
    return (its_operand){.kind = ITS_OPND_ADDR, .count = 1, .pos = base.pos, .list = inner};
}

static its_symbol *new_symbol(its_module *out, its_symbol_kind kind, its_name name, const its_origin *origin,
                              uint32_t pos) {
    its_symbol *symbol = ITS_NEW(its_module_arena(out), its_symbol);
    symbol->name = name;
    symbol->kind = (uint8_t)kind;
    symbol->vec = 1;
    symbol->flags = ITS_SYM_IN_FUNC;
    symbol->origin = origin;
    symbol->pos = pos;
    return symbol;
}

its_symbol *its_reg_new(its_module *out, its_name name, its_type type, const its_origin *origin, uint32_t pos) {
    its_symbol *symbol = new_symbol(out, ITS_SYM_REG, name, origin, pos);
    its_regs *regs = its_node_new(out, ITS_NODE_REGS, sizeof *regs, origin, pos);
    regs->name = name;
    regs->type = symbol->type = (uint8_t)type;
    regs->vec = 1;
    regs->symbol = symbol;
    symbol->space = ITS_SPACE_REG;
    symbol->range = regs;
    return symbol;
}

its_symbol *its_label_new(its_module *out, its_name name, const its_origin *origin, uint32_t pos) {
    its_symbol *label = new_symbol(out, ITS_SYM_LABEL, name, origin, pos);
    label->flags |= ITS_SYM_DEFINED;
    return label;
}

its_node *its_label_place(its_module *out, its_symbol *label, const its_origin *origin, uint32_t pos) {
    its_decl *place = its_node_new(out, ITS_NODE_LABEL, sizeof *place, origin, pos);
    place->symbol = label;
    label->node = &place->node;
    return &place->node;
}
