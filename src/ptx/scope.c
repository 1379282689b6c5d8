/*
 * Scopes: which symbol a name means.
 *
 * Each name carries the innermost symbol it means (`bind`), each symbol the level of its scope; a scope keeps a list of
 * what it bound, to put the outer meaning back when it closes. Looking a name up is therefore one load.
 *
 *     level 0   the module          functions, variables
 *     level 1   a function          its parameters
 *     level 2   its body            registers, labels, variables; deeper levels are nested blocks
 *
 * Two things need more. A register of a range `%r<12>` gets a symbol when it is first named; it is bound in the scope
 * of its range, which need not be the innermost. And a label may be named before it is placed, in any scope that
 * encloses the use: such operands wait, in the order of the text and by name, until a scope closes that has placed that
 * label and was open when they were read.
 */

#include "ptx/parse.h"

typedef struct binding {
    struct binding *next;
    its_name name;
    void *outer; /* the its_symbol that `name` means outside, or NULL */
} binding;

typedef struct range_binding {
    struct range_binding *outer; /* of the same prefix */
    struct range_binding *next;  /* of the same scope */
    its_regs *regs;
    uint32_t level;
} range_binding;

struct its_late {
    its_name name;
    its_operand *operand; /* NULL: waits no more */
    size_t before;        /* the one of the same name before it, counted from 1; the name's `late` is the last */
};

struct its_scope {
    binding *bound;
    range_binding *ranges;
    size_t first_late; /* operands from this one on were read since it was opened */
    uint32_t pos;
    uint32_t outer_range_level;
};

static uint32_t level_of(const its_symbol *symbol) {
    return (uint32_t)(uintptr_t)symbol->pass;
}

static uint32_t level(const its_parser *parser) {
    return (uint32_t)parser->scopes.count - 1;
}

void its_scope_open(its_parser *parser, uint32_t pos) {
    its_scope scope = {.first_late = parser->lates.count, .pos = pos, .outer_range_level = parser->range_level};
    ITS_PUSH(&parser->scratch, &parser->scopes, scope);
}

uint32_t its_scope_pos(const its_parser *parser) {
    return parser->scopes.items[level(parser)].pos;
}

/*
 * Where the meaning of a name is kept that holds in scope `at`: the name itself, or what an inner scope will put back.
 * A function may be called what its result is called, which was bound before it.
 */
static void **meaning_at(const its_parser *parser, its_name name, uint32_t at) {
    void **meaning = &name->bind;
    for (uint32_t inner = level(parser); inner > at && *meaning && level_of(*meaning) > at; inner--)
        for (binding *entry = parser->scopes.items[inner].bound; entry; entry = entry->next)
            if (entry->name == name) meaning = &entry->outer;
    return meaning;
}

static void bind_at(its_parser *parser, its_symbol *symbol, uint32_t at) {
    binding *entry = its_arena_alloc(&parser->scratch, sizeof *entry);
    its_scope *scope = &parser->scopes.items[at];
    void **meaning = meaning_at(parser, symbol->name, at);
    *entry = (binding){scope->bound, symbol->name, *meaning};
    scope->bound = entry;
    *meaning = symbol;
    symbol->pass = (void *)(uintptr_t)at; /* only until the parser is done */
}

its_symbol *its_symbol_new(its_parser *parser, its_symbol_kind kind, its_name name, uint32_t pos) {
    its_symbol *symbol = ITS_NEW(parser->arena, its_symbol);
    symbol->name = name;
    symbol->kind = (uint8_t)kind;
    symbol->vec = 1;
    symbol->pos = pos;
    symbol->origin = parser->module->origin;
    if (parser->func) {
        symbol->flags = ITS_SYM_IN_FUNC;
        if (kind == ITS_SYM_REG) symbol->id = parser->func->n_regs++;
        if (kind == ITS_SYM_LABEL) symbol->id = parser->func->n_labels++;
    }
    return symbol;
}

bool its_bind(its_parser *parser, its_symbol *symbol) {
    its_symbol *old = its_lookup_innermost(parser, symbol->name);
    if (old) {
        its_diag_begin(parser->ctx, ITS_ERROR, its_parser_place(parser, symbol->pos), "'%s' is declared twice",
                       symbol->name->text);
        its_diag_also(parser->ctx, its_symbol_place(old), "first declared here");
        return false;
    }
    bind_at(parser, symbol, level(parser));
    return true;
}

void its_bind_global(its_parser *parser, its_symbol *symbol) {
    bind_at(parser, symbol, 0);
}

its_symbol *its_lookup_global(its_parser *parser, its_name name) {
    its_symbol *symbol = name->bind;
    if (!symbol || level_of(symbol) == 0) return symbol;
    return its_module_find_name(parser->module, name); /* a parameter of the function being read hides it */
}

bool its_bind_range(its_parser *parser, its_regs *regs) {
    for (range_binding *old = regs->name->range; old && old->level == level(parser); old = old->outer) {
        its_diag_begin(parser->ctx, ITS_ERROR, its_parser_place(parser, regs->node.pos),
                       "registers '%s<%u>' are declared twice", regs->name->text, regs->n);
        its_diag_also(parser->ctx, its_node_place(&old->regs->node), "first declared here");
        return false;
    }
    range_binding *entry = its_arena_alloc(&parser->scratch, sizeof *entry);
    its_scope *scope = &parser->scopes.items[level(parser)];
    *entry = (range_binding){regs->name->range, scope->ranges, regs, level(parser)};
    scope->ranges = entry;
    regs->name->range = entry;
    parser->range_level = level(parser);
    return true;
}

/* -- looking up ---------------------------------------------------------------------------------------------------- */

static its_symbol *register_of(its_parser *parser, its_name name, const range_binding *range) {
    its_symbol *symbol = its_symbol_new(parser, ITS_SYM_REG, name, range->regs->node.pos);
    symbol->space = ITS_SPACE_REG;
    symbol->type = range->regs->type;
    symbol->type_name = range->regs->type_name;
    symbol->vec = range->regs->vec;
    symbol->range = range->regs;
    bind_at(parser, symbol, range->level);
    return symbol;
}

/* A single name and a range in one scope. */
static void declared_twice(its_parser *parser, const its_symbol *symbol, const its_regs *regs) {
    its_diag_begin(parser->ctx, ITS_ERROR, its_parser_place(parser, regs->node.pos),
                   "'%s' of '%s<%u>' is declared twice", symbol->name->text, regs->name->text, regs->n);
    its_diag_also(parser->ctx, its_symbol_place(symbol), "first declared here");
}

/* The innermost range that has a register of this name: `%r57` may be number 57 of `%r<60>` or number 7 of `%r5<8>`. */
static const range_binding *range_of(its_parser *parser, its_name name) {
    const char *text = name->text;
    uint32_t size = name->size, split = size;
    const range_binding *best = NULL;
    uint64_t number = 0, unit = 1;
    while (split > 1 && text[split - 1] >= '0' && text[split - 1] <= '9' && size - split < 10) {
        split--;
        number += (uint64_t)(text[split] - '0') * unit;
        unit *= 10;
        if (text[split] == '0' && size - split > 1) continue; /* no leading zeros */
        its_name prefix = its_intern_find(parser->ctx, text, split);
        const range_binding *range = prefix ? prefix->range : NULL;
        while (range && number >= range->regs->n) range = range->outer;
        if (range && (!best || range->level > best->level)) best = range;
    }
    return best;
}

its_symbol *its_lookup(its_parser *parser, its_name name) {
    its_symbol *symbol = name->bind;
    if (parser->range_level == 0 || (symbol && level_of(symbol) >= parser->range_level)) return symbol;
    const range_binding *range = range_of(parser, name);
    if (!range || (symbol && range->level <= level_of(symbol))) return symbol;
    if (symbol && level_of(symbol) == 1 && range->level == 2) declared_twice(parser, symbol, range->regs);
    return register_of(parser, name, range);
}

its_symbol *its_lookup_innermost(its_parser *parser, its_name name) {
    its_symbol *symbol = its_lookup(parser, name);
    uint32_t at = level(parser), least = at == 2 ? 1 : at; /* a function's parameters and its body are one to ptxas */
    return symbol && level_of(symbol) >= least ? symbol : NULL;
}

/* -- names that wait ----------------------------------------------------------------------------------------------- */

static void wait_for_name(its_parser *parser, its_operand *operand) {
    if (operand->kind != ITS_OPND_TOKEN) return;
    its_late late = {operand->name, operand, operand->name->late};
    ITS_PUSH(&parser->scratch, &parser->lates, late);
    operand->name->late = parser->lates.count;
}

void its_resolve_later(its_parser *parser, its_operand *operands, uint32_t count) {
    for (uint32_t i = 0; i < count; i++) {
        wait_for_name(parser, &operands[i]);
        if (operands[i].kind == ITS_OPND_VEC || operands[i].kind == ITS_OPND_GROUP ||
            operands[i].kind == ITS_OPND_PAIR || operands[i].kind == ITS_OPND_ADDR)
            its_resolve_later(parser, operands[i].list, operands[i].count);
    }
}

bool its_outside_range(its_parser *parser, its_name name, uint32_t pos) {
    size_t digits = name->size;
    while (digits && name->text[digits - 1] >= '0' && name->text[digits - 1] <= '9') digits--;
    its_name prefix = digits < name->size ? its_intern_find(parser->ctx, name->text, digits) : NULL;
    if (!prefix || !prefix->range) return false;
    const its_regs *regs = ((range_binding *)prefix->range)->regs;
    its_error(parser, pos, "'%s' is outside of '%s<%u>'", name->text, prefix->text, regs->n);
    its_diag_also(parser->ctx, its_node_place(&regs->node), "registers 0 to %u are declared here", regs->n - 1);
    return true;
}

static bool report_unknown(its_parser *parser, const its_operand *operand) {
    its_name name = operand->name;
    return !its_outside_range(parser, name, operand->pos) &&
           its_error(parser, operand->pos, "'%s' is not declared", name->text);
}

static bool assign(its_parser *parser, its_operand *operand, its_symbol *symbol) {
    static const char *const wants_declaring[] = {[ITS_SYM_REG] = "register",
                                                  [ITS_SYM_VAR] = "variable",
                                                  [ITS_SYM_PROTO] = "prototype",
                                                  [ITS_SYM_TARGETS] = "list of targets"};
    const char *what = wants_declaring[symbol->kind];
    if (what) {
        its_diag_begin(parser->ctx, ITS_ERROR, its_parser_place(parser, operand->pos),
                       "%s '%s' is used before it is declared", what, symbol->name->text);
        its_diag_also(parser->ctx, its_symbol_place(symbol), "declared here");
        return false;
    }
    operand->kind = ITS_OPND_SYM;
    operand->symbol = symbol;
    return true;
}

/* Operands that wait for a name bound in the closing scope, and were read in it, have found what they mean. */
static bool settle_name(its_parser *parser, its_name name, size_t first) {
    bool ok = true;
    while (name->late > first) {
        its_late *late = &parser->lates.items[name->late - 1];
        if (late->operand) ok &= assign(parser, late->operand, name->bind);
        late->operand = NULL;
        name->late = late->before;
    }
    return ok;
}

/* Where the body ends, the others mean what the function or module has declared, or nothing. */
static bool settle_rest(its_parser *parser, size_t first) {
    bool ok = true;
    for (size_t i = first; i < parser->lates.count; i++) {
        const its_late *late = &parser->lates.items[i];
        if (!late->operand) continue;
        its_symbol *symbol = its_lookup(parser, late->name);
        ok &= symbol ? assign(parser, late->operand, symbol) : report_unknown(parser, late->operand);
    }
    return ok;
}

static void forget_late(its_parser *parser, size_t first) {
    while (parser->lates.count > first) {
        const its_late *late = &parser->lates.items[--parser->lates.count];
        late->name->late = late->before;
    }
}

/* -- closing a scope ----------------------------------------------------------------------------------------------- */

/*
 * A name in the way of a range that was declared after it, in the same scope: known when the scope is complete. (Before
 * that, who looks the name up gets what was declared first.)
 */
static bool in_a_range(its_parser *parser, const its_symbol *symbol) {
    bool of_range = symbol->range && !symbol->range->symbol;
    if (of_range || (symbol->kind != ITS_SYM_REG && symbol->kind != ITS_SYM_VAR)) return false;
    const range_binding *range = range_of(parser, symbol->name);
    uint32_t at = level(parser);
    if (!range || range->level != at || symbol->pos > range->regs->node.pos) return false;
    declared_twice(parser, symbol, range->regs);
    return true;
}

static bool check_ranges(its_parser *parser) {
    uint32_t at = level(parser);
    const its_scope *scope = &parser->scopes.items[at];
    bool ok = true;
    if (!scope->ranges) return true;
    for (const binding *entry = scope->bound; entry; entry = entry->next) ok &= !in_a_range(parser, entry->name->bind);
    if (at == 2)
        for (const binding *entry = scope[-1].bound; entry; entry = entry->next)
            if (entry->name->bind && level_of(entry->name->bind) == 1) ok &= !in_a_range(parser, entry->name->bind);
    return ok;
}

static void unbind(its_parser *parser) {
    its_scope *scope = &parser->scopes.items[level(parser)];
    for (binding *entry = scope->bound; entry; entry = entry->next) entry->name->bind = entry->outer;
    for (range_binding *range = scope->ranges; range; range = range->next) range->regs->name->range = range->outer;
    parser->range_level = scope->outer_range_level;
    parser->scopes.count--;
}

void its_scope_drop(its_parser *parser) {
    forget_late(parser, parser->scopes.items[level(parser)].first_late);
    unbind(parser);
}

bool its_scope_close(its_parser *parser) {
    const its_scope *scope = &parser->scopes.items[level(parser)];
    bool ok = true, body = level(parser) == 2;
    for (const binding *entry = scope->bound; entry; entry = entry->next)
        ok &= settle_name(parser, entry->name, scope->first_late);
    if (body) ok &= settle_rest(parser, scope->first_late);
    ok &= check_ranges(parser);
    if (body) forget_late(parser, scope->first_late);
    unbind(parser);
    return ok;
}

void its_scope_unwind(its_parser *parser) {
    while (parser->scopes.count) its_scope_drop(parser);
}
