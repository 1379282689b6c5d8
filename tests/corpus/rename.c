/*
 * Gives every local name of a module a new one: registers, labels, prototypes, parameters and variables of functions.
 *
 * Each symbol gets a number of its own, so that two that share a name in different scopes part: if the parser bound a
 * use to the wrong one, the machine code shows it. roundtrip.py compiles this file and calls it between parsing and
 * printing.
 *
 * Where DWARF sections name labels and variables as text, those stay.
 */
#include <stdio.h>
#include <stdlib.h>

#include "intarsia/ptx.h"

typedef struct list {
    void **items;
    size_t count, capacity;
} list;

static void add(list *to, void *item) {
    if (to->count == to->capacity) {
        to->capacity = to->capacity ? 2 * to->capacity : 256;
        to->items = realloc(to->items, to->capacity * sizeof *to->items);
        if (!to->items) abort();
    }
    to->items[to->count++] = item;
}

static int by_address(const void *a, const void *b) {
    const char *x = *(char *const *)a, *y = *(char *const *)b;
    return (x > y) - (x < y);
}

static void sort_unique(list *it) {
    if (it->count) qsort(it->items, it->count, sizeof *it->items, by_address);
    size_t kept = 0;
    for (size_t i = 0; i < it->count; i++)
        if (!kept || it->items[kept - 1] != it->items[i]) it->items[kept++] = it->items[i];
    it->count = kept;
}

static size_t place_of(const list *in, const void *item) {
    void **found = bsearch(&item, in->items, in->count, sizeof *in->items, by_address);
    return found ? (size_t)(found - in->items) : SIZE_MAX;
}

/* -- finding them -------------------------------------------------------------------------------------------------- */

typedef struct finder {
    list symbols, ranges;
    bool only_registers;
} finder;

static void found(finder *f, its_symbol *symbol) {
    if (!symbol || (f->only_registers && symbol->kind != ITS_SYM_REG)) return;
    bool local = symbol->kind != ITS_SYM_FUNC && symbol->kind != ITS_SYM_VAR;
    if (local || symbol->flags & (ITS_SYM_IN_FUNC | ITS_SYM_PARAM | ITS_SYM_RESULT)) add(&f->symbols, symbol);
}

static void in_operands(finder *f, its_operand *operands, unsigned count) {
    for (unsigned i = 0; i < count; i++) {
        its_operand *o = &operands[i];
        if (o->kind == ITS_OPND_REG || o->kind == ITS_OPND_SYM)
            found(f, o->symbol);
        else if (o->kind == ITS_OPND_VEC || o->kind == ITS_OPND_PAIR || o->kind == ITS_OPND_GROUP ||
                 o->kind == ITS_OPND_ADDR)
            in_operands(f, o->list, o->count);
    }
}

static void in_params(finder *f, const its_params *params) {
    for (uint32_t i = 0; i < params->n; i++) found(f, params->items[i]);
}

static void in_node(finder *f, its_node *node) {
    switch ((its_node_kind)node->kind) {
    case ITS_NODE_INSN:
        found(f, ((its_insn *)node)->guard);
        in_operands(f, ((its_insn *)node)->ops, node->count);
        break;
    case ITS_NODE_REGS:
        if (((its_regs *)node)->n)
            add(&f->ranges, node);
        else
            found(f, ((its_regs *)node)->symbol);
        break;
    case ITS_NODE_LABEL:
        found(f, ((its_decl *)node)->symbol);
        break;
    case ITS_NODE_PROTO:
        found(f, ((its_proto *)node)->symbol);
        break;
    case ITS_NODE_TARGETS:
        found(f, ((its_targets *)node)->symbol);
        in_operands(f, ((its_targets *)node)->ops, node->count);
        break;
    case ITS_NODE_VAR:
        found(f, ((its_var *)node)->symbol);
        break;
    default:
        break;
    }
}

/* -- renaming them ------------------------------------------------------------------------------------------------- */

static its_name numbered(its_context *ctx, const char *format, size_t number, const char *tail) {
    char text[64];
    int size = snprintf(text, sizeof text, format, number, tail);
    its_name name = size > 0 && (size_t)size < sizeof text ? its_intern(ctx, text, (size_t)size) : NULL;
    if (!name) abort();
    return name;
}

static its_name new_name(its_context *ctx, const finder *f, const its_symbol *symbol, size_t number) {
    const its_regs *range = symbol->range;
    if (symbol->kind == ITS_SYM_REG && range && range->n)
        return numbered(ctx, "zr%zu_%s", place_of(&f->ranges, range), symbol->name->text + range->name->size);
    return numbered(ctx, symbol->kind == ITS_SYM_REG ? "z%zu%s" : "local%zu%s", number, "");
}

__attribute__((visibility("default"))) size_t rename_locals(its_module *module) {
    finder f = {0};
    for (its_node *node = module->first; node; node = node->next) f.only_registers |= node->kind == ITS_NODE_SECTION;
    for (its_node *node = module->first; node; node = node->next) {
        if (node->kind != ITS_NODE_FUNC) continue;
        its_func *func = (its_func *)node;
        in_params(&f, &func->results);
        in_params(&f, &func->params);
        for (its_node *inner = func->first; inner; inner = inner->next) in_node(&f, inner);
    }
    sort_unique(&f.symbols);
    sort_unique(&f.ranges);
    for (size_t i = 0; i < f.symbols.count; i++) {
        its_symbol *symbol = f.symbols.items[i];
        its_name name = new_name(module->ctx, &f, symbol, i);
        if (symbol->kind == ITS_SYM_REG && symbol->range && !symbol->range->n) symbol->range->name = name;
        symbol->name = name;
    }
    for (size_t i = 0; i < f.ranges.count; i++)
        ((its_regs *)f.ranges.items[i])->name = numbered(module->ctx, "zr%zu_%s", i, "");
    size_t renamed = f.symbols.count;
    free(f.symbols.items);
    free(f.ranges.items);
    return renamed;
}
