/*
 * Which definition each name stands for.
 *
 * Functions and variables that a module shows to others (.visible, .weak, .common, .extern) share one space of names.
 * A strong definition wins over a weak one, a weak one over a common one, the largest common one over the others; two
 * strong ones are an error. `link` of every other symbol of that name then leads to the winner. What has no linkage
 * stays the module's own, and so do entries, which no code can name.
 *
 * Then a walk from what the main module shows finds out what is needed from elsewhere, and what nobody provides.
 */
#include <stdio.h>
#include <string.h>

#include "link/clone.h"
#include "link/linker.h"
#include "link/lower.h"

typedef struct resolution {
    its_linker *linker;
    its_context *ctx;
    its_map conflicts;          /* names that are a function here and a variable there */
    its_map names;              /* name -> the symbol that stands for it */
    ITS_VEC(its_symbol *) todo; /* definitions whose contents are not walked yet */
    const its_symbol *user;     /* the definition being walked */
    const its_node *user_node;
    bool ok;
} resolution;

/* -- names that somebody knows ------------------------------------------------------------------------------------- */

static const char *const builtins[] = {"vprintf", "malloc", "free", "__assertfail"};

/* What is told about an extern that nobody provides. */
static const struct {
    const char *prefix; /* of the extern's name */
    const char *library;
} libraries[] = {
    {"nvshmem", "the NVSHMEM device library"},     {"__nv_", "CUDA's libdevice"},
    {"cuda", "CUDA's device runtime (cudadevrt)"}, {"flagcx", "the FlagCX device library"},
    {"nccl", "the NCCL device library"},
};

bool its_link_is_builtin(its_name name) {
    for (size_t i = 0; i < sizeof builtins / sizeof *builtins; i++)
        if (strcmp(name->text, builtins[i]) == 0) return true;
    return false;
}

/* C++ names are looked at behind their `_Z<length>`. */
static const char *plain_name(its_name name) {
    const char *text = name->text;
    if (strncmp(text, "_Z", 2) != 0) return text;
    for (text += 2; *text && !(*text >= '0' && *text <= '9'); text++) continue;
    while (*text >= '0' && *text <= '9') text++;
    return text;
}

const char *its_link_library_of(its_name name) {
    const char *plain = plain_name(name);
    for (size_t i = 0; i < sizeof libraries / sizeof *libraries; i++)
        if (strncmp(plain, libraries[i].prefix, strlen(libraries[i].prefix)) == 0) return libraries[i].library;
    return NULL;
}

static bool is_deferred(const its_link_options *options, its_name name) {
    const char *plain = plain_name(name);
    for (uint32_t i = 0; i < options->n_deferred; i++) {
        size_t size = strlen(options->deferred[i]);
        if (strncmp(plain, options->deferred[i], size) == 0 || strncmp(name->text, options->deferred[i], size) == 0)
            return true;
    }
    return false;
}

/* -- one space of names -------------------------------------------------------------------------------------------- */

static bool is_function(const its_symbol *symbol) {
    return symbol->kind == ITS_SYM_FUNC;
}
static bool is_defined(const its_symbol *symbol) {
    return symbol->flags & ITS_SYM_DEFINED;
}
static bool in_main(const resolution *resolver, const its_symbol *symbol) {
    return symbol->origin->module == its_link_main(resolver->linker);
}

static bool is_window(const its_symbol *symbol) {
    return symbol->kind == ITS_SYM_VAR && symbol->space == ITS_SPACE_SHARED && (symbol->flags & ITS_SYM_EXTERN) &&
           (symbol->flags & ITS_SYM_UNSIZED);
}

static bool has_linkage(const its_symbol *symbol) {
    if (symbol->flags & ITS_SYM_ENTRY) return false; /* nothing can call it: a region may define its kernel's name */
    if (is_function(symbol) && !is_defined(symbol)) return true;
    return symbol->flags & (ITS_SYM_EXTERN | ITS_SYM_VISIBLE | ITS_SYM_WEAK | ITS_SYM_COMMON);
}

typedef enum strength { DECLARED, COMMON, WEAK, STRONG } strength;

static strength strength_of(const its_symbol *symbol) {
    if (!is_defined(symbol)) return DECLARED;
    if (symbol->flags & ITS_SYM_WEAK) return WEAK;
    return symbol->flags & ITS_SYM_COMMON ? COMMON : STRONG;
}

static void report_kinds(resolution *resolver, const its_symbol *symbol, const its_symbol *other) {
    its_diag_begin(resolver->ctx, ITS_ERROR, its_symbol_place(symbol), "'%s' is a %s here and a %s elsewhere",
                   symbol->name->text, is_function(symbol) ? "function" : "variable",
                   is_function(other) ? "function" : "variable");
    its_diag_also(resolver->ctx, its_symbol_place(other), "the other one");
    its_map_put(&resolver->conflicts, &resolver->linker->scratch, symbol->name, resolver);
    resolver->ok = false;
}

static void report_duplicate(resolution *resolver, const its_symbol *symbol, const its_symbol *first) {
    its_diag_begin(resolver->ctx, ITS_ERROR, its_symbol_place(symbol), "'%s' is defined twice", symbol->name->text);
    its_diag_also(resolver->ctx, its_symbol_place(first), "first defined here");
    its_diag_hint(resolver->ctx, "rename one of them, make one .weak, or make it static to its file");
    resolver->ok = false;
}

static bool replaces(const its_symbol *symbol, const its_symbol *old) {
    if (strength_of(symbol) != strength_of(old)) return strength_of(symbol) > strength_of(old);
    return strength_of(symbol) == COMMON && symbol->size > old->size;
}

static void enter(resolution *resolver, its_symbol *symbol) {
    its_symbol *old = its_map_get(&resolver->names, symbol->name);
    if (old == symbol) return; /* a module that serves two units */
    if (old && is_function(old) != is_function(symbol)) {
        report_kinds(resolver, symbol, old);
    } else if (old && strength_of(old) == STRONG && strength_of(symbol) == STRONG) {
        report_duplicate(resolver, symbol, old);
    } else if (!old || replaces(symbol, old)) {
        its_map_put(&resolver->names, &resolver->linker->scratch, symbol->name, symbol);
    }
}

static void enter_all(resolution *resolver) {
    for (uint32_t i = 0; i < resolver->linker->n_sources; i++) {
        const struct its_module_private *priv = resolver->linker->sources[i].module->priv;
        if (resolver->linker->sources[i].repeats) continue;
        for (size_t j = 0; j < priv->symbols.count; j++) {
            its_symbol *symbol = priv->symbols.items[j];
            if (!its_is_alias(symbol)) symbol->link = NULL;
            symbol->pass = NULL;
            if (has_linkage(symbol)) enter(resolver, symbol);
        }
    }
}

/* An alias that lost against a strong definition elsewhere keeps its own aliasee: ptxas has no weak aliases. */
static void link_all(resolution *resolver) {
    its_linker *linker = resolver->linker;
    for (uint32_t i = 0; i < linker->n_sources; i++) {
        const struct its_module_private *priv = linker->sources[i].module->priv;
        if (linker->sources[i].repeats) continue;
        for (size_t j = 0; j < priv->symbols.count; j++) {
            its_symbol *symbol = priv->symbols.items[j];
            if (!has_linkage(symbol) || its_is_alias(symbol)) continue;
            its_symbol *winner = its_map_get(&resolver->names, symbol->name);
            if (is_window(symbol) && !is_defined(winner)) {
                if (!linker->window) linker->window = symbol;
                winner = linker->window;
            }
            if (winner != symbol) symbol->link = winner;
        }
    }
}

/* Aliases of different modules may go round in a circle; nothing could be followed then. */
static bool goes_round(const its_symbol *alias, size_t most) {
    const its_symbol *at = alias;
    for (size_t steps = 0; at->link; steps++) {
        if (steps > most) return true;
        at = at->link;
    }
    return false;
}

static bool check_aliases(resolution *resolver) {
    its_linker *linker = resolver->linker;
    ITS_VEC(its_symbol *) aliases = {0};
    for (uint32_t i = 0; i < linker->n_sources; i++)
        for (its_node *node = linker->sources[i].module->first; node && !linker->sources[i].repeats; node = node->next)
            if (node->kind == ITS_NODE_ALIAS) ITS_PUSH(&linker->scratch, &aliases, ((its_alias *)node)->symbol);
    for (size_t i = 0; i < aliases.count; i++) {
        if (!goes_round(aliases.items[i], 2 * aliases.count)) continue;
        its_diag_begin(resolver->ctx, ITS_ERROR, its_node_place(aliases.items[i]->node), "alias '%s' stands for itself",
                       aliases.items[i]->name->text);
        its_diag_also(resolver->ctx, its_symbol_place(aliases.items[i]->link), "by way of this");
        return resolver->ok = false;
    }
    return true;
}

/* -- do declaration and definition agree? -------------------------------------------------------------------------- */

static void disagree(resolution *resolver, const its_symbol *used, const its_symbol *definition, const char *how) {
    its_diag_begin(resolver->ctx, ITS_ERROR, its_symbol_place(used), "'%s' is declared with %s", used->name->text, how);
    its_diag_also(resolver->ctx, its_symbol_place(definition),
                  is_defined(definition) ? "defined here" : "declared here");
    its_diag_hint(resolver->ctx, "declare it as it is defined, in the source that this PTX came from");
    resolver->ok = false;
}

static void compare_params(resolution *resolver, const its_symbol *used, const its_symbol *definition, bool results) {
    const its_params *a = results ? &used->func->results : &used->func->params;
    const its_params *b = results ? &definition->func->results : &definition->func->params;
    const char *what = results ? "result" : "parameter";
    char how[160];
    if (a->n != b->n) {
        snprintf(how, sizeof how, "%u %s%s, but has %u", a->n, what, a->n == 1 ? "" : "s", b->n);
        disagree(resolver, used, definition, how);
        return;
    }
    for (uint32_t i = 0; i < a->n; i++) {
        uint64_t size_a = its_param_bytes(a->items[i]), size_b = its_param_bytes(b->items[i]);
        if (size_a == size_b) continue;
        snprintf(how, sizeof how, "a %s %u of %llu bytes, but it has %llu", what, i + 1, (unsigned long long)size_a,
                 (unsigned long long)size_b);
        disagree(resolver, used, definition, how);
        return;
    }
}

static void compare_variables(resolution *resolver, const its_symbol *used, const its_symbol *definition) {
    char how[160];
    if (used->space != definition->space) {
        snprintf(how, sizeof how, "the space %s, but lies in %s", its_space_text((its_space)used->space),
                 its_space_text((its_space)definition->space));
        disagree(resolver, used, definition, how);
    } else if (used->size && definition->size && used->size != definition->size && !(used->flags & ITS_SYM_COMMON) &&
               strength_of(used) < WEAK) {
        snprintf(how, sizeof how, "%llu bytes, but has %llu", (unsigned long long)used->size,
                 (unsigned long long)definition->size);
        disagree(resolver, used, definition, how);
    }
}

static void compare(resolution *resolver, const its_symbol *used, const its_symbol *definition) {
    if (!is_function(used)) {
        if (definition != resolver->linker->window) compare_variables(resolver, used, definition);
    } else if (used->func && definition->func) {
        compare_params(resolver, used, definition, false);
        compare_params(resolver, used, definition, true);
    }
}

/* -- what is reached ----------------------------------------------------------------------------------------------- */

static its_place user_place(const resolution *resolver, uint32_t pos) {
    if (!resolver->user_node) return ITS_NOWHERE;
    return its_at(resolver->user_node->origin->source, pos);
}

/* Both would begin at the same address. */
static void report_window(resolution *resolver, const its_symbol *window, uint32_t pos) {
    its_diag_begin(resolver->ctx, ITS_ERROR, user_place(resolver, pos),
                   "'%s' uses dynamic shared memory, '%s', where the kernel has its own", resolver->user->name->text,
                   window->name->text);
    its_diag_also(resolver->ctx, its_symbol_place(window), "declared here");
    its_diag_hint(resolver->ctx, "give the array a size: `__shared__ float x[256]` in place of `extern __shared__`");
    resolver->ok = false;
}

static void reach(resolution *resolver, its_symbol *symbol, uint32_t pos) {
    its_linker *linker = resolver->linker;
    if (symbol->flags & ITS_SYM_IN_FUNC || (symbol->kind != ITS_SYM_FUNC && symbol->kind != ITS_SYM_VAR)) return;
    its_symbol *target = its_symbol_final(symbol);
    if (is_window(symbol) && symbol->align > linker->window_align) linker->window_align = symbol->align;
    if (symbol->pass) return;
    symbol->pass = resolver;
    if (is_window(symbol) && linker->input->options.own_window && !in_main(resolver, symbol))
        report_window(resolver, symbol, pos);
    if (target != symbol && !its_is_alias(symbol)) compare(resolver, symbol, target);
    if (target->pass && target != symbol) return;
    target->pass = resolver;
    if (is_defined(target)) {
        ITS_PUSH(&linker->scratch, &resolver->todo, target);
        if (!in_main(resolver, target)) ITS_PUSH(&linker->scratch, &linker->reached, target);
    } else if (is_window(target)) {
        if (!in_main(resolver, target)) ITS_PUSH(&linker->scratch, &linker->reached, target);
    } else {
        its_link_open open = {target, resolver->user, user_place(resolver, pos)};
        ITS_PUSH(&linker->scratch, &linker->open, open);
    }
}

static void visit(its_operand *operand, void *user) {
    resolution *resolver = user;
    if (operand->kind == ITS_OPND_SYM) {
        reach(resolver, operand->symbol, operand->pos);
    } else if (operand->kind == ITS_OPND_REGION) {
        its_symbol *target = its_link_region_target(resolver->linker, (const its_insn *)resolver->user_node, operand);
        if (target)
            reach(resolver, target, operand->pos);
        else
            resolver->ok = false;
    }
}

static void walk_node(resolution *resolver, its_node *node) {
    resolver->user_node = node;
    its_visit_deep(node, visit, resolver);
}

static void walk(resolution *resolver, const its_symbol *symbol) {
    resolver->user = symbol;
    if (symbol->kind == ITS_SYM_VAR) {
        walk_node(resolver, symbol->node);
        return;
    }
    walk_node(resolver, &symbol->func->node);
    for (its_node *node = symbol->func->first; node; node = node->next) walk_node(resolver, node);
}

/* Directives at module level may name anything. */
static void walk_directives(resolution *resolver) {
    resolver->user = NULL;
    for (its_node *node = its_link_main(resolver->linker)->first; node; node = node->next)
        if (node->kind == ITS_NODE_DIRECTIVE || node->kind == ITS_NODE_PRAGMA) walk_node(resolver, node);
}

static void walk_all(resolution *resolver) {
    const struct its_module_private *priv = its_link_main(resolver->linker)->priv;
    for (size_t i = 0; i < priv->symbols.count; i++) {
        its_symbol *symbol = priv->symbols.items[i];
        bool shown = symbol->flags & (ITS_SYM_VISIBLE | ITS_SYM_WEAK | ITS_SYM_COMMON | ITS_SYM_ENTRY);
        if (is_defined(symbol) && shown) reach(resolver, symbol, symbol->pos);
        while (resolver->todo.count) walk(resolver, resolver->todo.items[--resolver->todo.count]);
    }
}

/* -- what nobody provides ------------------------------------------------------------------------------------------ */

static void report_missing(resolution *resolver, const its_link_open *open) {
    its_name name = open->symbol->name;
    const char *library = its_link_library_of(name);
    const char *verb = is_function(open->symbol) ? "calls" : "uses";
    its_diag_begin(resolver->ctx, ITS_ERROR, open->place, "nobody provides '%s', which '%s' %s", name->text,
                   open->user ? open->user->name->text : "a directive", verb);
    its_diag_also(resolver->ctx, its_symbol_place(open->symbol), "declared here");
    if (library)
        its_diag_hint(resolver->ctx, "%s has it: link that library, or declare the name as deferred to leave it open",
                      library);
    else
        its_diag_hint(resolver->ctx, "link a module that defines it, or declare the name as deferred to leave it open");
    resolver->ok = false;
}

static void check_missing(resolution *resolver) {
    const its_link_options *options = &resolver->linker->input->options;
    for (size_t i = 0; i < resolver->linker->open.count && !options->keep_externs; i++) {
        const its_link_open *open = &resolver->linker->open.items[i];
        its_name name = open->symbol->name;
        if (its_map_get(&resolver->conflicts, name)) continue; /* has an error already */
        if (!its_link_is_builtin(name) && !is_deferred(options, name)) report_missing(resolver, open);
    }
}

/* -- region calls -------------------------------------------------------------------------------------------------- */

enum { MOST_LISTED = 12 };

/* The unit's functions, by name. */
static const char *list_functions(its_linker *linker, const its_module *module, const char *word,
                                  const char **closest) {
    ITS_VEC(const char *) names = {0};
    const char *list = "";
    for (its_func *func = NULL; (func = its_module_next_func(module, func));)
        if (func->has_body && !(func->symbol->flags & ITS_SYM_ENTRY))
            ITS_PUSH(&linker->scratch, &names, func->symbol->name->text);
    for (size_t i = 0; i < names.count && i < MOST_LISTED; i++)
        list = its_arena_printf(&linker->scratch, "%s%s'%s'", list, i ? ", " : "", names.items[i]);
    *closest = its_closest(word, names.items, names.count);
    return names.count > MOST_LISTED ? its_arena_printf(&linker->scratch, "%s ...", list) : list;
}

static void report_unknown_function(its_linker *linker, const its_link_source *source, its_name name, its_place place) {
    const char *closest;
    const char *list = list_functions(linker, source->module, name->text, &closest);
    its_diag_begin(linker->ctx, ITS_ERROR, place, "unit %s has no function '%s'", source->region->unit, name->text);
    if (closest)
        its_diag_hint(linker->ctx, "did you mean '%s'? It defines %s", closest, list);
    else
        its_diag_hint(linker->ctx, "%s%s", *list ? "it defines " : "it defines no function", list);
}

/* The function's definition, or NULL. */
static its_symbol *find_function(const its_module *module, its_name name) {
    its_symbol *symbol = its_module_find_name(module, name);
    if (!symbol || symbol->kind != ITS_SYM_FUNC || (symbol->flags & ITS_SYM_ENTRY)) return NULL;
    its_symbol *final = its_symbol_final(symbol);
    return is_defined(final) ? final : NULL;
}

/* The first of all regions, where no unit is named, that has the function. */
static its_symbol *find_anywhere(const its_linker *linker, its_name name) {
    its_symbol *function = NULL;
    for (uint32_t i = 0; i < linker->n_sources && !function; i++) {
        const its_link_source *source = &linker->sources[i];
        if (source->region && !source->repeats) function = find_function(source->module, name);
    }
    return function;
}

/* The first operand that a call `(results), unit::function, (arguments)` has no place for, or NULL. */
static const its_operand *misplaced(const its_insn *insn, const its_operand *operand) {
    its_call_parts parts = its_call_take((its_insn *)insn); /* only looks */
    if (parts.target != operand) return parts.target;
    const its_operand *behind = operand + 1 + (parts.args != NULL), *end = insn->ops + insn->node.count;
    return behind < end ? behind : NULL;
}

/* Is it one of our operations, and in its form? An instruction has one error, at its first function. */
static bool check_operation(its_linker *linker, const its_insn *insn, const its_operand *operand) {
    for (const its_operand *at = insn->ops; at < operand; at++)
        if (at->kind == ITS_OPND_REGION) return false;
    const its_operand *stranger = misplaced(insn, operand);
    if (strcmp(insn->name->text, "intarsia.call") != 0 && !its_lower_applies(linker, insn)) {
        its_link_no_operation(linker, insn);
    } else if (stranger) {
        its_diag_begin(linker->ctx, ITS_ERROR, its_at(insn->node.origin->source, stranger->pos),
                       "'%s' has no such operand", insn->name->text);
        its_diag_hint(linker->ctx, "what it takes is (result), unit::function, (arguments)");
    } else {
        return true;
    }
    return false;
}

/*
 * A region call names its unit, so the function need not be visible. Without a unit the first region that has it is
 * taken. An abstract operation names a provider instead of a function.
 */
its_symbol *its_link_region_target(its_linker *linker, const its_insn *insn, const its_operand *operand) {
    const its_link_source *unit = operand->unit ? its_map_get(&linker->units, operand->unit) : NULL;
    its_place place = its_at(insn->node.origin->source, operand->pos);
    if (!check_operation(linker, insn, operand)) return NULL;
    its_name name = its_lower_applies(linker, insn) ? its_lower_target(linker, insn, operand) : operand->name;
    if (!name) return NULL;
    its_symbol *function = operand->unit ? NULL : find_anywhere(linker, name);
    for (const its_link_source *source = unit; source && !function; source = source->next)
        function = find_function(source->module, name);
    if (function) return function;
    if (unit) {
        report_unknown_function(linker, unit, name, place);
    } else {
        its_diag_begin(linker->ctx, ITS_ERROR, place, "no region is given for '%s%s%s'",
                       operand->unit ? operand->unit->text : "", operand->unit ? "::" : "", name->text);
        its_diag_hint(linker->ctx, "link the PTX of that unit: its source was compiled when the kernel was traced");
    }
    return NULL;
}

/* -- the window ---------------------------------------------------------------------------------------------------- */

static bool holds_shared(const its_symbol *symbol) {
    if (symbol->kind == ITS_SYM_VAR) return symbol->space == ITS_SPACE_SHARED && symbol->size;
    for (const its_node *node = symbol->func ? symbol->func->first : NULL; node; node = node->next)
        if (node->kind == ITS_NODE_VAR && ((const its_var *)node)->symbol->space == ITS_SPACE_SHARED) return true;
    return false;
}

/*
 * Static shared memory lies in front of the dynamic window. A kernel that had none finds its window at the start of
 * shared memory and relies on it, whatever alignment it asks for: wgmma and TMA need 1024 bytes.
 */
static void keep_window_in_place(its_linker *linker) {
    for (size_t i = 0; linker->window && i < linker->reached.count; i++)
        if (holds_shared(linker->reached.items[i]) && linker->window_align < ITS_WINDOW_ALIGN)
            linker->window_align = ITS_WINDOW_ALIGN;
}

/* -- the pass ------------------------------------------------------------------------------------------------------ */

/*
 * Requires: parsed modules of one context.
 * Ensures: its_symbol_final of every symbol that is reached is its definition, or an extern of `open`; `reached` lists
 * the definitions outside of the main module that are needed.
 */
bool its_link_resolve(its_linker *linker) {
    resolution resolver = {.linker = linker, .ctx = linker->ctx, .ok = true};
    enter_all(&resolver);
    link_all(&resolver);
    if (!check_aliases(&resolver)) return false;
    walk_directives(&resolver);
    walk_all(&resolver);
    keep_window_in_place(linker);
    check_missing(&resolver);
    return resolver.ok;
}
