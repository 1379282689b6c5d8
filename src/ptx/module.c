/* Modules: making them, taking them apart, finding things in them. See module.h. */
#include "ptx/module.h"

#include <string.h>

#include "base/file.h"
#include "base/intern.h"
#include "ptx/types.h"

enum { LARGEST_FILE = 1 << 30 };

/* -- making and freeing -------------------------------------------------------------------------------------------- */

typedef struct module_block {
    its_module module;
    struct its_module_private priv;
    its_source source;
} module_block;

typedef struct new_job {
    module_block *block;
    const char *name, *text;
    size_t size;
} new_job;

static its_status new_body(void *user) {
    new_job *job = user;
    module_block *block = job->block;
    its_arena *arena = &block->priv.arena;
    block->source.name = its_arena_text(arena, job->name, strlen(job->name));
    block->source.text = its_arena_text(arena, job->text, job->size);
    block->source.size = job->size;
    its_origin *origin = ITS_NEW(arena, its_origin);
    origin->source = &block->source;
    origin->module = &block->module;
    block->module.origin = origin;
    return ITS_OK;
}

its_module *its_module_new(its_context *ctx, const char *name, const char *text, size_t size) {
    module_block *block = its_block_alloc(ctx, sizeof *block);
    if (!block) its_guard_raise(ctx);
    memset(block, 0, sizeof *block);
    block->module.ctx = ctx;
    block->module.priv = &block->priv;
    block->module.source = &block->source;
    block->module.address_size = 32; /* what PTX means when it says nothing */
    its_arena_init(&block->priv.arena, ctx);
    new_job job = {block, name, text, size};
    if (its_protect(ctx, new_body, &job) != ITS_OK) {
        its_module_free(&block->module);
        its_guard_raise(ctx);
    }
    return &block->module;
}

void its_module_free(its_module *module) {
    if (!module) return;
    its_context *ctx = module->ctx;
    its_arena_free(&module->priv->arena);
    its_free(ctx, module);
}

its_arena *its_module_arena(its_module *module) {
    return &module->priv->arena;
}

size_t its_module_memory(const its_module *module) {
    const its_arena *arena = &module->priv->arena;
    return arena->total - (size_t)(arena->end - arena->next) + sizeof(module_block);
}

typedef struct file_job {
    its_context *ctx;
    its_arena scratch;
    const char *path;
    its_module **module;
} file_job;

static its_status file_body(void *user) {
    file_job *job = user;
    const char *name = strcmp(job->path, "-") == 0 ? "<stdin>" : job->path;
    char *text;
    size_t size;
    int error = its_file_read_stream(&job->scratch, job->path, LARGEST_FILE, &text, &size);
    if (!error) return its_ptx_parse(job->ctx, name, text, size, job->module);
    its_diag_begin(job->ctx, ITS_ERROR, ITS_NOWHERE, "can't read '%s': %s", name, strerror(error));
    return ITS_ERR_IO;
}

its_status its_ptx_parse_file(its_context *ctx, const char *path, its_module **module) {
    file_job job = {.ctx = ctx, .path = path, .module = module};
    *module = NULL;
    its_arena_init(&job.scratch, ctx);
    its_status status = its_protect(ctx, file_body, &job);
    its_arena_free(&job.scratch);
    return status;
}

/* -- symbols of the module level ----------------------------------------------------------------------------------- */

static void put(its_symbol **slots, size_t capacity, its_symbol *symbol) {
    size_t at = symbol->name->hash & (capacity - 1);
    while (slots[at]) at = (at + 1) & (capacity - 1);
    slots[at] = symbol;
}

its_symbol *its_module_find_name(const its_module *module, its_name name) {
    const struct its_module_private *priv = module->priv;
    if (!priv->by_name_capacity) return NULL;
    size_t mask = priv->by_name_capacity - 1;
    for (size_t at = name->hash & mask; priv->by_name[at]; at = (at + 1) & mask)
        if (priv->by_name[at]->name == name) return priv->by_name[at];
    return NULL;
}

void its_module_add_symbol(its_module *module, its_symbol *symbol) {
    struct its_module_private *priv = module->priv;
    if (its_module_find_name(module, symbol->name)) return;
    if ((priv->symbols.count + 1) * 2 > priv->by_name_capacity) {
        size_t capacity = priv->by_name_capacity ? priv->by_name_capacity * 2 : 16;
        its_symbol **slots = ITS_NEW_ARRAY(&priv->arena, its_symbol *, capacity);
        for (size_t i = 0; i < priv->symbols.count; i++) put(slots, capacity, priv->symbols.items[i]);
        priv->by_name = slots;
        priv->by_name_capacity = capacity;
    }
    ITS_PUSH(&priv->arena, &priv->symbols, symbol);
    put(priv->by_name, priv->by_name_capacity, symbol);
}

its_symbol *its_module_find(const its_module *module, const char *name) {
    its_name interned = its_intern_find(module->ctx, name, strlen(name));
    return interned ? its_module_find_name(module, interned) : NULL;
}

its_func *its_module_next_func(const its_module *module, const its_func *after) {
    its_node *node = after ? after->node.next : module->first;
    while (node && node->kind != ITS_NODE_FUNC) node = node->next;
    return (its_func *)node;
}

its_symbol *its_symbol_final(its_symbol *symbol) {
    while (symbol->link) symbol = symbol->link;
    return symbol;
}

/* -- nodes --------------------------------------------------------------------------------------------------------- */

void *its_node_new(its_module *module, its_node_kind kind, size_t size, const its_origin *origin, uint32_t pos) {
    its_node *node = its_arena_zalloc(&module->priv->arena, size);
    node->kind = (uint8_t)kind;
    node->origin = origin;
    node->pos = pos;
    return node;
}

its_insn *its_insn_new(its_module *module, its_name name, uint16_t count, const its_origin *origin, uint32_t pos) {
    its_insn *insn = its_node_new(module, ITS_NODE_INSN, sizeof *insn + count * sizeof *insn->ops, origin, pos);
    insn->name = name;
    insn->node.count = count;
    return insn;
}

void its_list_append(its_node_list *list, its_node *node) {
    *(list->last ? &list->last->next : &list->first) = node;
    list->last = node;
}

void its_module_append(its_module *module, its_node *node) {
    *(module->last ? &module->last->next : &module->first) = node;
    module->last = node;
}

void its_func_append(its_func *func, its_node *node) {
    *(func->last ? &func->last->next : &func->first) = node;
    func->last = node;
}

/* -- places -------------------------------------------------------------------------------------------------------- */

its_place its_node_place(const its_node *node) {
    return node->origin ? its_at(node->origin->source, node->pos) : ITS_NOWHERE;
}

its_place its_symbol_place(const its_symbol *symbol) {
    return symbol->origin ? its_at(symbol->origin->source, symbol->pos) : ITS_NOWHERE;
}

void its_diag_also_inlined(its_context *ctx, const its_node *node) {
    for (const its_origin *origin = node->origin; origin && origin->call; origin = origin->outer)
        its_diag_also(ctx, its_node_place(&origin->call->node), "'%s' is inlined from here",
                      origin->callee ? origin->callee->text : "a function");
}

/* -- operands ------------------------------------------------------------------------------------------------------ */

static void visit_all(its_operand *operands, uint32_t count, its_operand_visitor *visit, void *user) {
    for (uint32_t i = 0; i < count; i++) {
        its_operand *operand = &operands[i];
        visit(operand, user);
        if (operand->kind == ITS_OPND_VEC || operand->kind == ITS_OPND_GROUP || operand->kind == ITS_OPND_PAIR ||
            operand->kind == ITS_OPND_ADDR)
            visit_all(operand->list, operand->count, visit, user);
    }
}

void its_node_visit(its_node *node, its_operand_visitor *visit, void *user) {
    switch (node->kind) {
    case ITS_NODE_INSN:
        visit_all(((its_insn *)node)->ops, node->count, visit, user);
        break;
    case ITS_NODE_TARGETS:
        visit_all(((its_targets *)node)->ops, node->count, visit, user);
        break;
    case ITS_NODE_PRAGMA:
    case ITS_NODE_DIRECTIVE:
        visit_all(((its_directive *)node)->ops, node->count, visit, user);
        break;
    default:
        break;
    }
}

/* -- parameters ---------------------------------------------------------------------------------------------------- */

uint64_t its_param_bytes(const its_symbol *param) {
    if (param->kind == ITS_SYM_VAR) return param->size;
    return (uint64_t)its_type_size((its_type)param->type) * param->vec;
}

its_operand its_literal_for(const its_symbol *formal, its_operand value) {
    if (value.kind != ITS_OPND_F32 && value.kind != ITS_OPND_F64) return value;
    uint64_t size = its_param_bytes(formal), have = value.kind == ITS_OPND_F32 ? 4 : 8;
    bool real = its_type_is_real((its_type)formal->type);
    if (real && size == have) return value;
    if (real && size == 4) {
        double wide;
        memcpy(&wide, &value.bits, sizeof wide);
        float narrow = (float)wide;
        value.bits = 0;
        memcpy(&value.bits, &narrow, sizeof narrow);
    }
    value.kind = !real ? ITS_OPND_INT : size == 4 ? ITS_OPND_F32 : ITS_OPND_F64;
    value.flags = real ? 0 : ITS_OPND_UNSIGNED;
    if (size < 8) value.bits &= ((uint64_t)1 << 8 * size) - 1;
    return value;
}
