/*
 * Declarations of variables and registers:
 *
 *     .visible .global .attribute(.managed) .align 16 .v4 .f32 name[10][2] = { {1, 2}, {3} }, other;
 *     linkage  space   head: attributes, alignment, vector, type    names with dimensions and initialisers
 *
 *     .reg .b32 %r<12>, a;
 *
 * Each name becomes a node of its own.
 */
#include <string.h>

#include "ptx/parse.h"
#include "ptx/types.h"

/* -- what stands in front of the names ----------------------------------------------------------------------------- */

static its_space space_of(const char *text, size_t size) {
    for (int space = ITS_SPACE_REG; space < ITS_SPACE_COUNT; space++) {
        const char *known = its_space_text((its_space)space);
        if (strlen(known) == size && memcmp(known, text, size) == 0) return (its_space)space;
    }
    return ITS_SPACE_NONE;
}

bool its_is_space(const its_parser *parser) {
    return is_kind(parser, ITS_TOK_DOT) && space_of(tok(parser)->text, tok(parser)->size) > ITS_SPACE_REG;
}

static bool alignment(its_parser *parser, uint32_t *align) {
    next(parser);
    uint32_t pos = tok(parser)->pos;
    if (!its_parse_u32(parser, align)) return false;
    if (*align == 0 || (*align & (*align - 1)) != 0)
        return its_error(parser, pos, "an alignment is a power of two, not %u", *align);
    return true;
}

/* `.attribute(...)`: what stands between the parentheses, as it is. */
static bool attribute(its_parser *parser, its_decl_head *head) {
    next(parser);
    if (!is_kind(parser, '(')) return its_unexpected(parser, "'('");
    uint32_t open = tok(parser)->pos, depth = 0;
    const char *from = parser->lexer.p;
    do {
        if (is_kind(parser, '(')) depth++;
        if (is_kind(parser, ')')) depth--;
        if (is_kind(parser, ITS_TOK_END)) return its_error(parser, open, "this '(' is not closed");
        if (depth) next(parser);
    } while (depth);
    its_name name = its_intern_raise(parser->ctx, from, (size_t)(tok(parser)->text - from));
    ITS_PUSH(parser->arena, &head->attributes, name);
    if (strcmp(name->text, ".managed") == 0) head->flags |= ITS_SYM_MANAGED;
    next(parser);
    return true;
}

/* `.ptr`, and the space and alignment of what it points to. */
static bool pointer(its_parser *parser, its_decl_head *head) {
    head->flags |= ITS_SYM_PTR;
    next(parser);
    if (its_is_space(parser)) {
        head->ptr_space = space_of(tok(parser)->text, tok(parser)->size);
        next(parser);
    }
    if (its_is_dot(parser, ".align") && !alignment(parser, &head->ptr_align)) return false;
    return is_kind(parser, ITS_TOK_WORD) || its_unexpected(parser, "a name");
}

static bool vector_or_type(its_parser *parser, its_decl_head *head) {
    const its_token *token = tok(parser);
    if (token->size == 3 && token->text[1] == 'v' && strchr("248", token->text[2])) {
        head->vec = (uint8_t)(token->text[2] - '0');
    } else if (head->type || head->type_name) {
        return its_unexpected(parser, "a name");
    } else {
        head->type = its_type_of_text(token->text, token->size);
        if (!head->type) head->type_name = its_token_name(parser);
    }
    next(parser);
    return true;
}

bool its_parse_decl_head(its_parser *parser, its_decl_head *head) {
    head->vec = 1;
    while (is_kind(parser, ITS_TOK_DOT)) {
        bool ok;
        if (its_is_dot(parser, ".align"))
            ok = alignment(parser, &head->align);
        else if (its_is_dot(parser, ".attribute"))
            ok = attribute(parser, head);
        else if (its_is_dot(parser, ".ptr"))
            ok = pointer(parser, head);
        else
            ok = vector_or_type(parser, head);
        if (!ok) return false;
    }
    if (!head->type && !head->type_name) return its_unexpected(parser, "a type");
    return true;
}

its_symbol *its_symbol_of_head(its_parser *parser, const its_decl_head *head) {
    its_symbol *symbol = its_symbol_new(parser, ITS_SYM_VAR, its_token_name(parser), tok(parser)->pos);
    symbol->space = (uint8_t)head->space;
    symbol->type = (uint8_t)head->type;
    symbol->type_name = head->type_name;
    symbol->vec = head->vec;
    symbol->flags |= head->flags;
    symbol->align = head->align;
    symbol->ptr_space = (uint8_t)head->ptr_space;
    symbol->ptr_align = head->ptr_align;
    return symbol;
}

/* -- dimensions ---------------------------------------------------------------------------------------------------- */

enum { MOST_DIMS = 255, MOST_REGISTERS = 1 << 26 };

static bool set_size(its_parser *parser, its_symbol *symbol) {
    uint64_t size = (uint64_t)its_type_size((its_type)symbol->type) * symbol->vec;
    for (uint8_t i = 0; i < symbol->n_dims; i++) {
        uint64_t n = symbol->dims[i];
        if (n && size > INT64_MAX / n)
            return its_error(parser, symbol->pos, "'%s' is larger than the address space", symbol->name->text);
        size *= n;
    }
    symbol->size = size;
    return true;
}

bool its_parse_dims(its_parser *parser, its_symbol *symbol) {
    ITS_VEC(uint64_t) dims = {0};
    while (is_kind(parser, '[')) {
        uint32_t pos = tok(parser)->pos;
        uint64_t n = 0;
        next(parser);
        symbol->flags |= ITS_SYM_ARRAY;
        if (is_kind(parser, ']')) {
            if (dims.count) return its_error(parser, pos, "only the first dimension can be left open");
            symbol->flags |= ITS_SYM_UNSIZED;
        } else if (!its_parse_u64(parser, &n)) {
            return false;
        }
        if (dims.count == MOST_DIMS) return its_error(parser, pos, "more than %d dimensions", MOST_DIMS);
        ITS_PUSH(&parser->scratch, &dims, n);
        if (!its_expect(parser, ']', "']'")) return false;
    }
    uint64_t *kept = its_arena_alloc(parser->arena, (dims.count ? dims.count : 1) * sizeof *kept);
    if (dims.count) memcpy(kept, dims.items, dims.count * sizeof *kept);
    symbol->dims = kept;
    symbol->n_dims = (uint8_t)dims.count;
    return set_size(parser, symbol);
}

/* -- initialisers -------------------------------------------------------------------------------------------------- */

static void add_init(its_parser *parser, const its_init *init) {
    ITS_PUSH(&parser->scratch, &parser->inits, *init);
}

/* `+ constant` behind a symbol, or nothing. */
static bool init_offset(its_parser *parser, its_init *init) {
    if (!its_accept(parser, '+')) return true;
    its_operand value;
    if (!its_parse_const(parser, &value)) return false;
    int64_t offset = (int64_t)value.bits;
    if (offset != (int32_t)offset) return its_error(parser, value.pos, "an offset of more than 2 GiB");
    init->offset = (int32_t)offset;
    return true;
}

/* `0xff00(symbol)`: one byte of an address. */
static bool init_mask(its_parser *parser, its_init *init, uint64_t mask) {
    while (init->byte < 8 && mask != 0xffULL << 8 * init->byte) init->byte++;
    if (init->byte++ == 8) return its_error(parser, init->pos, "a mask selects one byte: 0xff, 0xff00 and so on");
    return true;
}

static bool init_symbol(its_parser *parser, its_init *init) {
    if (!is_kind(parser, ITS_TOK_WORD)) return its_unexpected(parser, "the name of a variable or function");
    its_name name = its_token_name(parser);
    init->symbol = its_lookup(parser, name);
    if (!init->symbol) return its_error(parser, tok(parser)->pos, "'%s' is not declared", name->text);
    if (init->symbol->kind != ITS_SYM_VAR && init->symbol->kind != ITS_SYM_FUNC)
        return its_error(parser, tok(parser)->pos, "'%s' has no address", name->text);
    init->kind = ITS_OPND_SYM;
    init->symbol->flags |= ITS_SYM_ADDRESS_TAKEN;
    next(parser);
    return true;
}

/* `symbol`, `symbol+4`, `generic(symbol)+8`. */
static bool init_address(its_parser *parser, its_init *init) {
    init->generic = is_kind(parser, ITS_TOK_WORD) && tok(parser)->size == 7 && !memcmp(tok(parser)->text, "generic", 7);
    if (!init->generic) return init_symbol(parser, init) && init_offset(parser, init);
    next(parser);
    return its_expect(parser, '(', "'('") && init_symbol(parser, init) && its_expect(parser, ')', "')'") &&
           init_offset(parser, init);
}

/* An address, `0xff00(address)`, or a constant. */
static bool init_element(its_parser *parser, its_init *init) {
    init->pos = tok(parser)->pos;
    if (is_kind(parser, ITS_TOK_WORD)) return init_address(parser, init);
    its_operand value;
    if (!its_parse_const(parser, &value)) return false;
    if (value.kind == ITS_OPND_INT && is_kind(parser, '(')) {
        next(parser);
        return init_mask(parser, init, value.bits) && init_address(parser, init) && its_expect(parser, ')', "')'");
    }
    init->kind = value.kind;
    init->bits = value.bits;
    return true;
}

/* How many scalars one element at this depth of braces has: a vector is the innermost dimension. */
static uint64_t stride_of(const its_symbol *symbol, unsigned depth) {
    uint64_t stride = depth > symbol->n_dims ? 1 : symbol->vec;
    for (unsigned i = depth; i < symbol->n_dims; i++) stride *= symbol->dims[i];
    return stride;
}

static bool init_braces(its_parser *parser, const its_symbol *symbol, uint64_t from, unsigned depth, uint64_t *end) {
    uint32_t open = tok(parser)->pos;
    uint64_t at = from, limit = depth == 0 && (symbol->flags & ITS_SYM_UNSIZED) ? UINT32_MAX : from + *end;
    next(parser);
    while (!is_kind(parser, '}')) {
        if (at >= limit)
            return its_error(parser, tok(parser)->pos, "'%s' has no room for this element", symbol->name->text);
        if (is_kind(parser, '{')) {
            uint64_t stride = stride_of(symbol, depth + 1);
            if (depth > symbol->n_dims) return its_error(parser, tok(parser)->pos, "more braces than dimensions");
            if (!init_braces(parser, symbol, at, depth + 1, &stride)) return false;
            at += stride_of(symbol, depth + 1);
        } else {
            its_init init = {.index =
                                 (uint32_t)parser->inits.count}; /* ptxas leaves no gap behind a short inner list */
            at++;
            if (!init_element(parser, &init)) return false;
            add_init(parser, &init);
        }
        if (!its_accept(parser, ',')) break;
        if (is_kind(parser, '}')) return its_unexpected(parser, "an element");
    }
    if (is_kind(parser, ITS_TOK_END)) return its_error(parser, open, "this '{' is not closed");
    *end = at;
    return its_expect(parser, '}', "',' or '}'");
}

/* -- initialisers of opaque references: { addr_mode_0 = wrap, filter_mode = linear } ------------------------------- */

static bool is_opaque(const its_symbol *symbol) {
    return symbol->type == ITS_TYPE_TEXREF || symbol->type == ITS_TYPE_SAMPLERREF || symbol->type == ITS_TYPE_SURFREF;
}

static bool init_field(its_parser *parser, its_init *init) {
    init->pos = tok(parser)->pos;
    if (!is_kind(parser, ITS_TOK_WORD)) return its_unexpected(parser, "the name of a field, or '}'");
    init->field = its_token_name(parser);
    next(parser);
    if (!its_expect(parser, '=', "'='")) return false;
    if (is_kind(parser, ITS_TOK_WORD)) {
        init->kind = ITS_OPND_TOKEN;
        init->word = its_token_name(parser);
        next(parser);
        return true;
    }
    its_operand value;
    if (!its_parse_const(parser, &value)) return false;
    init->kind = value.kind;
    init->bits = value.bits;
    return true;
}

/*
 * The braces of elements from number `*at` on. Fields that stand where an element's braces could, as in
 * `s[2] = { filter_mode = linear }`, belong to the next element.
 */
static bool init_fields(its_parser *parser, const its_symbol *symbol, uint64_t *at, unsigned depth) {
    bool unsized = depth == 0 && (symbol->flags & ITS_SYM_UNSIZED);
    uint64_t limit = unsized ? UINT32_MAX : *at + stride_of(symbol, depth);
    uint32_t open = tok(parser)->pos;
    next(parser);
    while (!is_kind(parser, '}')) {
        if (is_kind(parser, '{')) {
            uint64_t inner = *at;
            if (depth == symbol->n_dims) return its_error(parser, tok(parser)->pos, "more braces than dimensions");
            if (*at >= limit)
                return its_error(parser, tok(parser)->pos, "'%s' has no room for this element", symbol->name->text);
            if (!init_fields(parser, symbol, &inner, depth + 1)) return false;
            *at += stride_of(symbol, depth + 1);
        } else {
            its_init init = {.index = (uint32_t)*at};
            if (!init_field(parser, &init)) return false;
            add_init(parser, &init);
        }
        if (!its_accept(parser, ',')) break;
    }
    if (is_kind(parser, ITS_TOK_END)) return its_error(parser, open, "this '{' is not closed");
    return its_expect(parser, '}', "',' or '}'");
}

/* `x[] = { ... }` has as many rows as were given. */
static bool size_from(its_parser *parser, its_symbol *symbol, uint64_t end) {
    uint64_t row = stride_of(symbol, 1);
    if (!(symbol->flags & ITS_SYM_UNSIZED) || !row) return true;
    uint64_t *dims = its_arena_alloc(parser->arena, symbol->n_dims * sizeof *dims);
    memcpy(dims, symbol->dims, symbol->n_dims * sizeof *dims);
    dims[0] = (end + row - 1) / row;
    symbol->dims = dims;
    symbol->flags &= (uint16_t)~ITS_SYM_UNSIZED;
    return set_size(parser, symbol);
}

static bool initialiser(its_parser *parser, its_var *var) {
    its_symbol *symbol = var->symbol;
    var->has_init = true;
    parser->inits.count = 0;
    if (is_opaque(symbol)) {
        uint64_t end = 0;
        if (symbol->size > UINT32_MAX) return its_error(parser, symbol->pos, "'%s' is too large", symbol->name->text);
        if (!is_kind(parser, '{')) return its_unexpected(parser, "'{'");
        if (!init_fields(parser, symbol, &end, 0) || !size_from(parser, symbol, end)) return false;
    } else if (is_kind(parser, '{')) {
        uint64_t end = stride_of(symbol, 0);
        if (!init_braces(parser, symbol, 0, 0, &end) || !size_from(parser, symbol, end)) return false;
    } else {
        its_init init = {0};
        if (!init_element(parser, &init)) return false;
        add_init(parser, &init);
    }
    var->n_init = (uint32_t)parser->inits.count;
    var->init = its_arena_array(parser->arena, var->n_init, sizeof *var->init);
    if (var->n_init) memcpy(var->init, parser->inits.items, var->n_init * sizeof *var->init);
    return true;
}

/* -- variables ----------------------------------------------------------------------------------------------------- */

/* A variable may be declared .extern before and after it is defined, and weak or common ones may meet. */
static bool declare(its_parser *parser, its_var *var) {
    its_symbol *symbol = var->symbol, *old = its_lookup_innermost(parser, symbol->name);
    bool both_vars = old && old->kind == ITS_SYM_VAR && symbol->kind == ITS_SYM_VAR && !parser->func;
    if (both_vars && ((old->flags & ITS_SYM_EXTERN) || (symbol->flags & ITS_SYM_EXTERN))) {
        if (old->space != symbol->space) {
            its_error(parser, symbol->pos, "'%s' is declared again in another space", symbol->name->text);
            its_diag_also(parser->ctx, its_symbol_place(old), "first declared here");
            return false;
        }
        bool defines = !(symbol->flags & ITS_SYM_EXTERN);
        if (defines && !(symbol->flags & (ITS_SYM_VISIBLE | ITS_SYM_WEAK | ITS_SYM_COMMON))) {
            its_error(parser, symbol->pos, "'%s' is .extern elsewhere and needs a linkage here", symbol->name->text);
            its_diag_also(parser->ctx, its_symbol_place(old), "declared .extern here");
            its_diag_hint(parser->ctx, "make it .visible, or remove the .extern");
            return false;
        }
        if (!defines) { /* the first declaration stands */
            var->node.flags |= ITS_VAR_DECLARES;
            var->symbol = old;
            return true;
        }
        old->node->flags |= ITS_VAR_DECLARES;
        uint16_t taken = old->flags & ITS_SYM_ADDRESS_TAKEN;
        void *level = old->pass;
        *old = *symbol; /* who named it before means the definition */
        old->pass = level;
        old->flags |= taken;
        var->symbol = old;
        return true;
    }
    return its_bind(parser, symbol);
}

static bool one_var(its_parser *parser, const its_decl_head *head) {
    if (!is_kind(parser, ITS_TOK_WORD)) return its_unexpected(parser, "a name");
    uint32_t pos = tok(parser)->pos;
    its_var *var = its_node_new(parser->module, ITS_NODE_VAR, sizeof *var, parser->module->origin, pos);
    var->symbol = its_symbol_of_head(parser, head);
    var->symbol->node = &var->node;
    var->attributes = head->attributes.items;
    var->n_attributes = (uint32_t)head->attributes.count;
    if (!(head->flags & ITS_SYM_EXTERN)) var->symbol->flags |= ITS_SYM_DEFINED;
    next(parser);
    if (!its_parse_dims(parser, var->symbol) || !declare(parser, var)) return false;
    if (!parser->func) its_module_add_symbol(parser->module, var->symbol);
    if (is_kind(parser, '=') && head->flags & ITS_SYM_EXTERN)
        return its_error(parser, pos, "'%s' is .extern and can't be initialised here", var->symbol->name->text);
    if (its_accept(parser, '=') && !initialiser(parser, var)) return false;
    its_list_append(parser->list, &var->node);
    return true;
}

bool its_parse_vars(its_parser *parser, its_decl_head *head) {
    head->space = space_of(tok(parser)->text, tok(parser)->size);
    next(parser);
    if (!its_parse_decl_head(parser, head)) return false;
    if (its_accept(parser, ';')) return true; /* a declaration of nothing */
    do
        if (!one_var(parser, head)) return false;
    while (its_accept(parser, ','));
    return its_expect(parser, ';', "',' or ';'");
}

/* -- registers ----------------------------------------------------------------------------------------------------- */

static bool register_range(its_parser *parser, its_regs *regs) {
    next(parser);
    const its_token *token = tok(parser); /* no expression: `>` would be part of it */
    if (!is_kind(parser, ITS_TOK_INT)) return its_unexpected(parser, "the number of registers");
    if (token->bits > MOST_REGISTERS) return its_error(parser, token->pos, "more than %d registers", MOST_REGISTERS);
    regs->n = (uint32_t)token->bits;
    next(parser);
    if (!its_expect(parser, '>', "'>'")) return false;
    if (!regs->n) return true; /* declares nothing, and ptxas takes it: there is no node for it */
    its_list_append(parser->list, &regs->node);
    return its_bind_range(parser, regs);
}

static bool one_register(its_parser *parser, const its_decl_head *head) {
    if (!is_kind(parser, ITS_TOK_WORD)) return its_unexpected(parser, "a name");
    uint32_t pos = tok(parser)->pos;
    its_regs *regs = its_node_new(parser->module, ITS_NODE_REGS, sizeof *regs, parser->module->origin, pos);
    regs->name = its_token_name(parser);
    regs->type = (uint8_t)head->type;
    regs->type_name = head->type_name;
    regs->vec = head->vec;
    next(parser);
    if (is_kind(parser, '<')) return register_range(parser, regs);
    its_list_append(parser->list, &regs->node);
    its_symbol *symbol = its_symbol_new(parser, ITS_SYM_REG, regs->name, pos);
    symbol->space = ITS_SPACE_REG;
    symbol->type = regs->type;
    symbol->type_name = regs->type_name;
    symbol->vec = regs->vec;
    symbol->range = regs;
    regs->symbol = symbol;
    return its_bind(parser, symbol);
}

bool its_parse_regs(its_parser *parser) {
    its_decl_head head = {.space = ITS_SPACE_REG};
    next(parser);
    if (!its_parse_decl_head(parser, &head)) return false;
    if (its_accept(parser, ';')) return true; /* a declaration of nothing */
    do
        if (!one_register(parser, &head)) return false;
    while (its_accept(parser, ','));
    return its_expect(parser, ';', "',' or ';'");
}
