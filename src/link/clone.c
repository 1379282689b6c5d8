/* Copies of nodes. Names, paths and texts of comments and sections are shared: they outlive both modules' nodes. */
#include "link/clone.h"

#include <string.h>

its_symbol *its_clone_symbol(its_module *out, const its_symbol *symbol, its_name name, const its_origin *origin) {
    its_symbol *copy = its_arena_alloc(its_module_arena(out), sizeof *copy);
    *copy = *symbol;
    copy->name = name;
    copy->origin = origin;
    copy->func = NULL;
    copy->range = NULL;
    copy->node = NULL;
    copy->link = NULL;
    copy->pass = NULL;
    return copy;
}

its_params its_clone_params(its_module *out, const its_params *params) {
    its_params copy = {.n = params->n};
    copy.items = ITS_NEW_ARRAY(its_module_arena(out), its_symbol *, params->n);
    for (uint32_t i = 0; i < params->n; i++)
        copy.items[i] = its_clone_symbol(out, params->items[i], params->items[i]->name, params->items[i]->origin);
    return copy;
}

/* -- operands ------------------------------------------------------------------------------------------------------ */

static void clone_operands(const its_cloner *cloner, its_operand *to, const its_operand *from, uint32_t count) {
    for (uint32_t i = 0; i < count; i++) to[i] = its_clone_operand(cloner, &from[i]);
}

its_operand its_clone_operand(const its_cloner *cloner, const its_operand *operand) {
    its_operand copy = *operand;
    switch (operand->kind) {
    case ITS_OPND_REG:
    case ITS_OPND_SYM:
        copy.symbol = cloner->symbol(cloner->user, operand->symbol);
        break;
    case ITS_OPND_VEC:
    case ITS_OPND_PAIR:
    case ITS_OPND_GROUP:
    case ITS_OPND_ADDR:
        copy.list = its_arena_alloc(its_module_arena(cloner->out), operand->count * sizeof *copy.list);
        clone_operands(cloner, copy.list, operand->list, operand->count);
        break;
    default:
        break;
    }
    return copy;
}

/* -- nodes --------------------------------------------------------------------------------------------------------- */

static void *copy_of(const its_cloner *cloner, const void *node, size_t size) {
    its_node *copy = its_arena_alloc(its_module_arena(cloner->out), size);
    memcpy(copy, node, size);
    copy->next = NULL;
    return copy;
}

static its_node *clone_insn(const its_cloner *cloner, const its_insn *insn) {
    its_insn *copy = copy_of(cloner, insn, sizeof *insn + insn->node.count * sizeof *insn->ops);
    if (insn->guard) copy->guard = cloner->symbol(cloner->user, insn->guard);
    clone_operands(cloner, copy->ops, insn->ops, insn->node.count);
    return &copy->node;
}

static its_node *clone_label(const its_cloner *cloner, const its_decl *decl) {
    its_decl *copy = copy_of(cloner, decl, sizeof *decl);
    copy->symbol = cloner->symbol(cloner->user, decl->symbol);
    copy->symbol->node = &copy->node;
    return &copy->node;
}

static its_node *clone_proto(const its_cloner *cloner, const its_proto *proto) {
    its_proto *copy = copy_of(cloner, proto, sizeof *proto);
    copy->symbol = cloner->symbol(cloner->user, proto->symbol);
    copy->symbol->node = &copy->node;
    copy->results = its_clone_params(cloner->out, &proto->results);
    copy->params = its_clone_params(cloner->out, &proto->params);
    copy->directives = its_clone_directives(cloner, proto->directives, true);
    return &copy->node;
}

static its_node *clone_targets(const its_cloner *cloner, const its_targets *targets) {
    its_targets *copy = copy_of(cloner, targets, sizeof *targets + targets->node.count * sizeof *targets->ops);
    copy->symbol = cloner->symbol(cloner->user, targets->symbol);
    copy->symbol->node = &copy->node;
    clone_operands(cloner, copy->ops, targets->ops, targets->node.count);
    return &copy->node;
}

static its_node *clone_var(const its_cloner *cloner, const its_var *var) {
    its_var *copy = copy_of(cloner, var, sizeof *var);
    copy->symbol = cloner->symbol(cloner->user, var->symbol);
    if (!(var->node.flags & ITS_VAR_DECLARES)) copy->symbol->node = &copy->node;
    if (!var->n_init) return &copy->node;
    copy->init = ITS_NEW_ARRAY(its_module_arena(cloner->out), its_init, var->n_init);
    memcpy(copy->init, var->init, var->n_init * sizeof *var->init);
    for (uint32_t i = 0; i < var->n_init; i++)
        if (copy->init[i].kind == ITS_OPND_SYM)
            copy->init[i].symbol = cloner->symbol(cloner->user, var->init[i].symbol);
    return &copy->node;
}

static its_node *clone_directive(const its_cloner *cloner, const its_directive *directive) {
    its_directive *copy =
        copy_of(cloner, directive, sizeof *directive + directive->node.count * sizeof *directive->ops);
    clone_operands(cloner, copy->ops, directive->ops, directive->node.count);
    return &copy->node;
}

static its_node *clone_any(const its_cloner *cloner, const its_node *node) {
    switch ((its_node_kind)node->kind) {
    case ITS_NODE_INSN:
        return clone_insn(cloner, (const its_insn *)node);
    case ITS_NODE_LABEL:
        return clone_label(cloner, (const its_decl *)node);
    case ITS_NODE_OPEN:
    case ITS_NODE_CLOSE:
        return copy_of(cloner, node, sizeof *node);
    case ITS_NODE_PROTO:
        return clone_proto(cloner, (const its_proto *)node);
    case ITS_NODE_TARGETS:
        return clone_targets(cloner, (const its_targets *)node);
    case ITS_NODE_LOC:
        return copy_of(cloner, node, sizeof(its_loc));
    case ITS_NODE_VAR:
        return clone_var(cloner, (const its_var *)node);
    case ITS_NODE_PRAGMA:
    case ITS_NODE_DIRECTIVE:
        return clone_directive(cloner, (const its_directive *)node);
    case ITS_NODE_COMMENT:
        return copy_of(cloner, node, sizeof(its_comment));
    case ITS_NODE_FILE:
        return copy_of(cloner, node, sizeof(its_file));
    case ITS_NODE_SECTION:
        return copy_of(cloner, node, sizeof(its_section));
    case ITS_NODE_REGS:
    case ITS_NODE_FUNC:
    case ITS_NODE_ALIAS:
        break;
    }
    return NULL;
}

its_node *its_clone(const its_cloner *cloner, const its_node *node, const its_origin *origin) {
    its_node *copy = clone_any(cloner, node);
    if (copy) copy->origin = origin;
    return copy;
}

static void note_symbol(its_operand *operand, void *user) {
    *(bool *)user |= operand->kind == ITS_OPND_SYM || operand->kind == ITS_OPND_REG;
}

static bool names_symbol(its_node *node) {
    bool names = false;
    its_node_visit(node, note_symbol, &names);
    return names;
}

its_node *its_clone_directives(const its_cloner *cloner, its_node *first, bool definition) {
    its_node_list list = {0};
    for (its_node *node = first; node; node = node->next)
        if (definition || (node->kind != ITS_NODE_PRAGMA && !names_symbol(node)))
            its_list_append(&list, its_clone(cloner, node, node->origin));
    return list.first;
}

/* -- visiting ------------------------------------------------------------------------------------------------------ */

static void visit_list(its_node *first, its_operand_visitor *visit, void *user) {
    for (its_node *node = first; node; node = node->next) its_node_visit(node, visit, user);
}

static void visit_init(const its_var *var, its_operand_visitor *visit, void *user) {
    for (uint32_t i = 0; i < var->n_init; i++) {
        if (var->init[i].kind != ITS_OPND_SYM) continue;
        its_operand operand = {.kind = ITS_OPND_SYM, .pos = var->init[i].pos, .symbol = var->init[i].symbol};
        visit(&operand, user);
    }
}

void its_visit_deep(its_node *node, its_operand_visitor *visit, void *user) {
    switch ((its_node_kind)node->kind) {
    case ITS_NODE_VAR:
        visit_init((const its_var *)node, visit, user);
        break;
    case ITS_NODE_PROTO:
        visit_list(((its_proto *)node)->directives, visit, user);
        break;
    case ITS_NODE_FUNC:
        visit_list(((its_func *)node)->directives, visit, user);
        break;
    default:
        its_node_visit(node, visit, user);
    }
}
