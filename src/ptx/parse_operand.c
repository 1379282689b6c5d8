/*
 * Operands, recognised by their shape alone:
 *
 *     %r1  v.x  %r2.b0  !%p1          REG      foo  foo+4           SYM      %tid.x          SREG
 *     42  -1  (1<<4)|3                INT      0f3F800000  1.5      F32 F64  _               SINK
 *     {a, b}  VEC     p|q  PAIR       [%rd1+8]  [t, {x, y}]  ADDR   (a, b)   GROUP, of calls only
 *     5f0c2a9b71d3e846::name          REGION
 */
#include <string.h>

#include "ptx/mnemonic.h"
#include "ptx/parse.h"
#include "ptx/types.h"

/* Moves the operands above `base` from the stack into the module: the list of `result`. */
static bool take_list(its_parser *parser, size_t base, its_operand *result) {
    size_t count = parser->operands.count - base;
    if (count > UINT16_MAX) return its_error(parser, result->pos, "more than 65535 operands");
    result->count = (uint16_t)count;
    result->list = its_arena_alloc(parser->arena, (count ? count : 1) * sizeof(its_operand));
    if (count) memcpy(result->list, parser->operands.items + base, count * sizeof(its_operand));
    parser->operands.count = base;
    return true;
}

static bool parse_operand(its_parser *parser, bool call, its_operand *result);

static bool takes_no_offset(its_parser *parser, const its_operand *operand, const char *where) {
    if (!(operand->flags & ITS_OPND_OFFSET)) return true;
    return its_error(parser, operand->pos, "nothing can be added to %s", where);
}

static bool list_until(its_parser *parser, its_operand *result, its_operand_kind kind, char close) {
    static const char *const wanted[] = {"',' or '}'", "',' or ')'", "',' or ']'"};
    result->kind = (uint8_t)kind;
    size_t base = parser->operands.count;
    next(parser);
    while (!is_kind(parser, close)) {
        its_operand element = {0};
        if (!parse_operand(parser, false, &element)) return false;
        if (kind == ITS_OPND_VEC && !takes_no_offset(parser, &element, "an element of a vector")) return false;
        ITS_PUSH(&parser->scratch, &parser->operands, element);
        if (!its_accept(parser, ',')) break;
        if (is_kind(parser, close)) return its_unexpected(parser, "an operand");
    }
    if (!its_expect(parser, close, wanted[close == '}' ? 0 : close == ')' ? 1 : 2])) return false;
    return take_list(parser, base, result);
}

/* A `.x` right behind a name, a register or an address. */
static void suffix(its_parser *parser, its_operand *result) {
    if (!is_kind(parser, ITS_TOK_DOT)) return;
    result->suffix = its_token_name(parser);
    next(parser);
}

/* `+ constant` behind a name. */
static bool displacement(its_parser *parser, its_operand *result) {
    if (!is_kind(parser, '+')) return true;
    next(parser);
    its_operand value;
    if (!its_parse_const(parser, &value)) return false;
    if (value.kind != ITS_OPND_INT) return its_error(parser, value.pos, "an offset is a whole number of bytes");
    result->offset = (int64_t)value.bits;
    result->flags |= ITS_OPND_OFFSET;
    return true;
}

/*
 * `a[2]`, an element of an array: what is in it for loads and stores, its address for others. The index counts
 * elements, and there is one, whatever dimensions the array has.
 */
static bool element(its_parser *parser, its_operand *result) {
    const its_symbol *symbol = result->symbol;
    uint32_t size = its_type_size((its_type)symbol->type);
    if (!(symbol->flags & ITS_SYM_ARRAY) || !size)
        return its_error(parser, tok(parser)->pos, "'%s' is no array", symbol->name->text);
    next(parser);
    its_symbol *index = is_kind(parser, ITS_TOK_WORD) ? its_lookup(parser, its_token_name(parser)) : NULL;
    if (index && index->kind == ITS_SYM_REG) {
        its_error(parser, tok(parser)->pos, "the index of an array must be a constant here");
        its_diag_hint(parser->ctx, "add %s times %u to the address of '%s'", index->name->text, size,
                      symbol->name->text);
        return false;
    }
    its_operand value;
    if (!its_parse_const(parser, &value)) return false;
    if (value.kind != ITS_OPND_INT) return its_error(parser, value.pos, "an index is a whole number");
    result->offset = (int64_t)(value.bits * size);
    result->flags |= ITS_OPND_ELEMENT;
    return its_expect(parser, ']', "']'");
}

/* Elements of arrays, among the operands above `base`, become what everybody knows: addresses of memory, or sums. */
bool its_resolve_elements(its_parser *parser, its_name name, unsigned op, size_t base) {
    for (size_t i = base; i < parser->operands.count; i++) {
        its_operand *operand = &parser->operands.items[i];
        if (!(operand->flags & ITS_OPND_ELEMENT)) continue;
        operand->flags = 0;
        if (op == ITS_OP_LD || op == ITS_OP_LDU || op == ITS_OP_ST) {
            its_operand *list = ITS_NEW(parser->arena, its_operand);
            *list = *operand;
            *operand = (its_operand){.kind = ITS_OPND_ADDR, .pos = list->pos, .count = 1, .list = list};
        } else if (op != ITS_OP_MOV && op != ITS_OP_CVTA && op != ITS_OP_MAPA) {
            its_error(parser, operand->pos, "'%s' takes no element of an array", name->text);
            its_diag_hint(parser->ctx, "write [%s+%lld]", operand->symbol->name->text, (long long)operand->offset);
            return false;
        }
    }
    return true;
}

static bool region(its_parser *parser, its_operand *result, its_name unit) {
    next(parser);
    if (!is_kind(parser, ITS_TOK_WORD)) return its_unexpected(parser, "the name of a function");
    result->kind = ITS_OPND_REGION;
    result->name = its_token_name(parser);
    result->unit = unit;
    next(parser);
    return true;
}

/* A special register keeps its component in its name: `%tid.x`. */
static void special(its_parser *parser, its_operand *result, its_name name) {
    result->kind = ITS_OPND_SREG;
    result->name = name;
    if (!is_kind(parser, ITS_TOK_DOT)) return;
    const its_token *token = tok(parser);
    char *whole = its_arena_printf(&parser->scratch, "%s%.*s", name->text, (int)token->size, token->text);
    result->name = its_intern_text(parser->ctx, whole);
    next(parser);
}

static bool word(its_parser *parser, its_operand *result) {
    const its_token *token = tok(parser);
    if (token->size == 1 && *token->text == '_') {
        result->kind = ITS_OPND_SINK;
        next(parser);
        return true;
    }
    if (token->size == 7 && memcmp(token->text, "WARP_SZ", 7) == 0) return its_parse_const(parser, result);
    its_name name = its_token_name(parser);
    next(parser);
    if (is_kind(parser, ITS_TOK_COLONS)) return region(parser, result, name);
    its_symbol *symbol = its_lookup(parser, name);
    result->symbol = symbol;
    if (!symbol && *name->text == '%') {
        if (its_outside_range(parser, name, result->pos)) return false;
        special(parser, result, name);
        return true;
    }
    if (!symbol || symbol->kind == ITS_SYM_LABEL) { /* placed later, or hidden by one that is */
        result->kind = ITS_OPND_TOKEN;
        result->name = name;
        parser->has_late = true;
        return displacement(parser, result);
    }
    result->kind = symbol->kind == ITS_SYM_REG ? ITS_OPND_REG : ITS_OPND_SYM;
    if (result->kind == ITS_OPND_SYM && symbol->kind == ITS_SYM_VAR && parser->depth == 1 && is_kind(parser, '['))
        return element(parser, result);
    suffix(parser, result);
    return displacement(parser, result);
}

static bool address(its_parser *parser, its_operand *result) {
    if (!list_until(parser, result, ITS_OPND_ADDR, ']')) return false;
    if (!result->count) return its_error(parser, result->pos, "an address is missing");
    suffix(parser, result);
    return true;
}

static bool negated(its_parser *parser, its_operand *result) {
    uint32_t pos = tok(parser)->pos;
    const char *behind = parser->lexer.p;
    while (*behind == ' ' || *behind == '\t') behind++;
    bool name = strchr("0123456789.(-+!~", *behind) == NULL && strncmp(behind, "WARP_SZ", 7) != 0;
    if (!name) return its_parse_const(parser, result);
    uint8_t flag = is_kind(parser, '!') ? ITS_OPND_NOT : ITS_OPND_NEG;
    next(parser);
    if (!word(parser, result)) return false;
    if (result->kind != ITS_OPND_REG) return its_error(parser, pos, "only a register can be negated");
    result->flags |= flag;
    return true;
}

static bool primary(its_parser *parser, bool call, its_operand *result) {
    switch (tok(parser)->kind) {
    case ITS_TOK_WORD:
        return word(parser, result);
    case '[':
        return address(parser, result);
    case '{':
        return list_until(parser, result, ITS_OPND_VEC, '}');
    case '!':
    case '-':
        return negated(parser, result);
    case '(':
        if (call) return list_until(parser, result, ITS_OPND_GROUP, ')');
        return its_parse_const(parser, result);
    case ITS_TOK_INT:
    case ITS_TOK_F32:
    case ITS_TOK_F64:
    case '~':
    case '+':
        return its_parse_const(parser, result);
    default:
        return its_unexpected(parser, "an operand");
    }
}

/* `p|q`, either of which may be `_`. */
static bool pair(its_parser *parser, its_operand *result) {
    its_operand *both = its_arena_alloc(parser->arena, 2 * sizeof *both);
    both[0] = *result;
    both[1] = (its_operand){.pos = tok(parser)->pos};
    next(parser);
    both[1].pos = tok(parser)->pos;
    if (!primary(parser, false, &both[1])) return false;
    if (!takes_no_offset(parser, &both[1], "a part of a pair")) return false;
    *result = (its_operand){.kind = ITS_OPND_PAIR, .count = 2, .pos = result->pos, .list = both};
    return true;
}

static bool parse_operand(its_parser *parser, bool call, its_operand *result) {
    uint32_t pos = tok(parser)->pos;
    if (++parser->depth > ITS_DEEPEST) return its_error(parser, pos, "operands are nested too deeply");
    *result = (its_operand){.pos = pos};
    if (!primary(parser, call, result)) return false;
    parser->depth--;
    if (is_kind(parser, '|')) return pair(parser, result);
    return true;
}

bool its_parse_operands(its_parser *parser, bool call, size_t *base) {
    *base = parser->operands.count;
    parser->has_late = false;
    if (is_kind(parser, ';')) return true;
    do {
        its_operand operand;
        if (!parse_operand(parser, call, &operand)) return false;
        ITS_PUSH(&parser->scratch, &parser->operands, operand);
    } while (its_accept(parser, ','));
    return true;
}
