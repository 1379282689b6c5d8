/*
 * Names that nothing can catch.
 *
 * What the linker makes up holds a marker that no name of any input holds: "$i", or "$i_" and so on if somebody has
 * that already. What it names is therefore never hidden by a local of a function that it is copied into. The other way
 * round, a function's own locals may hide what copied code names; those are `taken`, and renamed.
 */
#include <string.h>

#include "base/intern.h"
#include "link/linker.h"

its_name its_declared_name(const its_node *node) {
    switch ((its_node_kind)node->kind) {
    case ITS_NODE_REGS:
        return ((const its_regs *)node)->name;
    case ITS_NODE_VAR:
        return ((const its_var *)node)->symbol->name;
    case ITS_NODE_LABEL:
        return ((const its_decl *)node)->symbol->name;
    case ITS_NODE_PROTO:
        return ((const its_proto *)node)->symbol->name;
    case ITS_NODE_TARGETS:
        return ((const its_targets *)node)->symbol->name;
    default:
        return NULL;
    }
}

static bool holds(its_name name, const char *marker) {
    return strstr(name->text, marker) != NULL;
}

static bool params_hold(const its_params *params, const char *marker) {
    for (uint32_t i = 0; i < params->n; i++)
        if (holds(params->items[i]->name, marker)) return true;
    return false;
}

static bool body_holds(const its_func *func, const char *marker) {
    if (params_hold(&func->params, marker) || params_hold(&func->results, marker)) return true;
    for (const its_node *node = func->first; node; node = node->next) {
        its_name name = its_declared_name(node);
        if (name && holds(name, marker)) return true;
    }
    return false;
}

static bool module_holds(const its_module *module, const char *marker) {
    for (size_t i = 0; i < module->priv->symbols.count; i++)
        if (holds(module->priv->symbols.items[i]->name, marker)) return true;
    for (const its_node *node = module->first; node; node = node->next) {
        const its_section *section = (const its_section *)node;
        if (node->kind == ITS_NODE_FUNC && body_holds((const its_func *)node, marker)) return true;
        if (node->kind == ITS_NODE_SECTION && memmem(section->body, section->body_size, marker, strlen(marker)))
            return true;
    }
    return false;
}

static bool is_free(const its_linker *linker, const char *marker) {
    for (uint32_t i = 0; i < linker->n_sources; i++)
        if (!linker->sources[i].repeats && module_holds(linker->sources[i].module, marker)) return false;
    return true;
}

void its_names_mark(its_linker *linker) {
    const char *marker = "$i";
    while (!is_free(linker, marker)) marker = its_arena_printf(&linker->scratch, "%s_", marker);
    linker->marker = marker;
}

its_name its_names_new(its_linker *linker, const char *base, const char *what, uint32_t number) {
    return its_intern_text(linker->ctx,
                           its_arena_printf(&linker->scratch, "%s%s%s%u", base, linker->marker, what, number));
}

/* `%r57` is taken for the ranges %r and %r5, if such prefixes are known at all. */
static void take_ranges(its_linker *linker, const char *text, size_t size) {
    uint64_t number = 0, unit = 1;
    for (size_t at = size; at > 1 && text[at - 1] >= '0' && text[at - 1] <= '9' && size - at < 9; unit *= 10) {
        number += (uint64_t)(text[--at] - '0') * unit;
        its_name prefix = its_intern_find(linker->ctx, text, at);
        uintptr_t old = prefix ? (uintptr_t)its_map_get(&linker->taken_ranges, prefix) : 0;
        if (prefix && (!old || number + 1 < old))
            its_map_put(&linker->taken_ranges, &linker->scratch, prefix, (void *)(uintptr_t)(number + 1));
    }
}

static void take(its_linker *linker, const char *text, size_t size) {
    its_map_put(&linker->taken, &linker->scratch, its_intern_raise(linker->ctx, text, size), linker);
    take_ranges(linker, text, size);
}

static void take_special(its_operand *operand, void *user) {
    if (operand->kind != ITS_OPND_SREG) return;
    const char *dot = strchr(operand->name->text, '.');
    its_name whole = operand->name;
    if (its_map_get(&((its_linker *)user)->taken, whole)) return;
    take(user, whole->text, whole->size);
    if (dot) take(user, whole->text, (size_t)(dot - whole->text));
}

/* What expanded code may name: the module's symbols and special registers. */
void its_names_take(its_linker *linker) {
    const struct its_module_private *priv = linker->out->priv;
    for (size_t i = 0; i < priv->symbols.count; i++)
        take(linker, priv->symbols.items[i]->name->text, priv->symbols.items[i]->name->size);
    for (size_t i = 0; i < linker->funcs.count; i++) {
        const its_link_func *func = linker->funcs.items[i];
        if (!func->is_inlined) continue;
        for (its_node *node = func->func->first; node; node = node->next) its_node_visit(node, take_special, linker);
    }
}
