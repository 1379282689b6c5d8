/*
 * Constant expressions, as in C: 64-bit signed or unsigned integers (a literal is unsigned if it says U or needs the
 * 64th bit; an operation is unsigned if an operand is), or doubles. Precedence climbing over one table.
 */
#include <string.h>

#include "ptx/parse.h"

typedef struct binary {
    uint8_t token, level; /* a higher level binds tighter */
} binary;

static const binary binaries[] = {
    {ITS_TOK_OR, 1},  {ITS_TOK_AND, 2}, {'|', 3}, {'^', 4},        {'&', 5},        {ITS_TOK_EQ, 6},
    {ITS_TOK_NE, 6},  {'<', 7},         {'>', 7}, {ITS_TOK_LE, 7}, {ITS_TOK_GE, 7}, {ITS_TOK_SHL, 8},
    {ITS_TOK_SHR, 8}, {'+', 9},         {'-', 9}, {'*', 10},       {'/', 10},       {'%', 10},
};

static unsigned level_of(uint8_t token) {
    for (size_t i = 0; i < sizeof binaries / sizeof *binaries; i++)
        if (binaries[i].token == token) return binaries[i].level;
    return 0;
}

static bool is_float(const its_operand *value) {
    return value->kind != ITS_OPND_INT;
}
static bool is_unsigned(const its_operand *value) {
    return value->flags & ITS_OPND_UNSIGNED;
}

static double as_double(const its_operand *value) {
    double d;
    float f;
    uint32_t low = (uint32_t)value->bits;
    switch (value->kind) {
    case ITS_OPND_F64:
        memcpy(&d, &value->bits, sizeof d);
        return d;
    case ITS_OPND_F32:
        memcpy(&f, &low, sizeof f);
        return f;
    default:
        return is_unsigned(value) ? (double)value->bits : (double)(int64_t)value->bits;
    }
}

static void set_int(its_operand *value, uint64_t bits, bool uns) {
    value->kind = ITS_OPND_INT;
    value->flags = uns ? ITS_OPND_UNSIGNED : 0;
    value->bits = bits;
}

static void set_double(its_operand *value, double d) {
    value->kind = ITS_OPND_F64;
    value->flags = 0;
    memcpy(&value->bits, &d, sizeof d);
}

/*
 * Whether a comparison holds; false if `token` is none. Of two numbers with a NaN neither is less, nor are they equal.
 */
static bool compare(uint8_t token, bool less, bool equal, bool greater, bool *holds) {
    switch (token) {
    case '<':
        *holds = less;
        return true;
    case '>':
        *holds = greater;
        return true;
    case ITS_TOK_LE:
        *holds = less || equal;
        return true;
    case ITS_TOK_GE:
        *holds = greater || equal;
        return true;
    case ITS_TOK_EQ:
        *holds = equal;
        return true;
    case ITS_TOK_NE:
        *holds = !equal;
        return true;
    default:
        return false;
    }
}

static bool float_binary(its_parser *parser, uint8_t token, uint32_t pos, its_operand *left, const its_operand *right) {
    double a = as_double(left), b = as_double(right);
    bool holds;
    switch (token) {
    case '+':
        set_double(left, a + b);
        return true;
    case '-':
        set_double(left, a - b);
        return true;
    case '*':
        set_double(left, a * b);
        return true;
    case '/':
        set_double(left, a / b);
        return true;
    default:
        if (!compare(token, a<b, a == b, a> b, &holds)) return its_error(parser, pos, "this operator takes integers");
        set_int(left, holds, false);
        return true;
    }
}

static bool divide(its_parser *parser, uint8_t token, uint32_t pos, its_operand *left, uint64_t b, bool uns) {
    uint64_t a = left->bits;
    if (b == 0) return its_error(parser, pos, "division by zero in a constant");
    if (uns)
        a = token == '/' ? a / b : a % b;
    else if (b == UINT64_MAX)
        a = token == '/' ? 0 - a : 0; /* INT64_MIN / -1 wraps */
    else
        a = (uint64_t)(token == '/' ? (int64_t)a / (int64_t)b : (int64_t)a % (int64_t)b);
    set_int(left, a, uns);
    return true;
}

static bool less(uint64_t a, uint64_t b, bool uns) {
    return uns ? a < b : (int64_t)a < (int64_t)b;
}

static bool int_binary(its_parser *parser, uint8_t token, uint32_t pos, its_operand *left, const its_operand *right) {
    uint64_t a = left->bits, b = right->bits;
    bool uns = is_unsigned(left) || is_unsigned(right), holds;
    if (compare(token, less(a, b, uns), a == b, less(b, a, uns), &holds)) {
        set_int(left, holds, false);
        return true;
    }
    switch (token) {
    case '+':
        set_int(left, a + b, uns);
        return true;
    case '-':
        set_int(left, a - b, uns);
        return true;
    case '*':
        set_int(left, a * b, uns);
        return true;
    case '/':
    case '%':
        return divide(parser, token, pos, left, b, uns);
    case '|':
        set_int(left, a | b, uns);
        return true;
    case '^':
        set_int(left, a ^ b, uns);
        return true;
    case '&':
        set_int(left, a & b, uns);
        return true;
    case ITS_TOK_SHL:
        set_int(left, b < 64 ? a << b : 0, is_unsigned(left));
        return true;
    case ITS_TOK_SHR:
        if (is_unsigned(left))
            set_int(left, b < 64 ? a >> b : 0, true);
        else
            set_int(left, (uint64_t)((int64_t)a >> (b < 63 ? b : 63)), false);
        return true;
    case ITS_TOK_AND:
        set_int(left, a && b, false);
        return true;
    default:
        set_int(left, a || b, false);
        return true; /* ITS_TOK_OR */
    }
}

static bool expression(its_parser *parser, its_operand *value);
static bool unary(its_parser *parser, its_operand *value);

/* `(expression)`, or the casts `(.s64)` and `(.u64)`. */
static bool parenthesis(its_parser *parser, its_operand *value) {
    next(parser);
    if (!is_kind(parser, ITS_TOK_DOT)) return expression(parser, value) && its_expect(parser, ')', "')'");
    bool to_unsigned = its_is_dot(parser, ".u64");
    if (!to_unsigned && !its_is_dot(parser, ".s64")) return its_unexpected(parser, "(.s64) or (.u64)");
    next(parser);
    if (!its_expect(parser, ')', "')'") || !unary(parser, value)) return false;
    uint64_t bits = value->bits;
    if (is_float(value)) {
        double d = as_double(value);
        bool fits = to_unsigned ? d >= 0 && d < 0x1p64 : d >= -0x1p63 && d < 0x1p63;
        if (!fits) return its_error(parser, value->pos, "this constant does not fit into 64 bits");
        bits = to_unsigned ? (uint64_t)d : (uint64_t)(int64_t)d;
    }
    set_int(value, bits, to_unsigned);
    return true;
}

static bool primary(its_parser *parser, its_operand *value) {
    const its_token *token = tok(parser);
    value->pos = token->pos;
    switch (token->kind) {
    case ITS_TOK_INT:
        set_int(value, token->bits, token->is_unsigned);
        break;
    case ITS_TOK_F32:
        set_int(value, token->bits, false);
        value->kind = ITS_OPND_F32;
        break;
    case ITS_TOK_F64:
        set_int(value, token->bits, false);
        value->kind = ITS_OPND_F64;
        break;
    case '(':
        return parenthesis(parser, value);
    case ITS_TOK_WORD:
        if (token->size != 7 || memcmp(token->text, "WARP_SZ", 7) != 0) return its_unexpected(parser, "a constant");
        set_int(value, 32, false);
        break;
    default:
        return its_unexpected(parser, "a constant");
    }
    next(parser);
    return true;
}

static bool unary(its_parser *parser, its_operand *value) {
    uint8_t token = tok(parser)->kind;
    uint32_t pos = tok(parser)->pos;
    if (token != '-' && token != '+' && token != '!' && token != '~') return primary(parser, value);
    if (++parser->depth > ITS_DEEPEST) return its_error(parser, pos, "this expression is nested too deeply");
    next(parser);
    bool hex_float = is_kind(parser, ITS_TOK_F32) || (is_kind(parser, ITS_TOK_F64) && tok(parser)->text[1] > '9');
    if (hex_float && tok(parser)->size > 2 && tok(parser)->text[1] != '.')
        return its_error(parser, pos, "a sign does not go with a hexadecimal float: its first bit is the sign");
    bool ok = unary(parser, value);
    parser->depth--;
    value->pos = pos;
    if (!ok) return false;
    if (is_float(value)) {
        if (token == '-') set_double(value, -as_double(value));
        return token == '-' || token == '+' || its_error(parser, pos, "this operator takes an integer");
    }
    if (token == '-') set_int(value, 0 - value->bits, is_unsigned(value) && (int64_t)value->bits > 0);
    if (token == '~') value->bits = ~value->bits;
    if (token == '!') set_int(value, !value->bits, false);
    return true;
}

static bool binary_above(its_parser *parser, its_operand *left, unsigned above) {
    if (!unary(parser, left)) return false;
    for (unsigned level; (level = level_of(tok(parser)->kind)) > above;) {
        uint8_t token = tok(parser)->kind;
        uint32_t pos = tok(parser)->pos;
        its_operand right = {0};
        next(parser);
        if (!binary_above(parser, &right, level)) return false;
        bool floats = is_float(left) || is_float(&right);
        if (!(floats ? float_binary : int_binary)(parser, token, pos, left, &right)) return false;
    }
    return true;
}

static bool conditional(its_parser *parser, its_operand *value) {
    if (!binary_above(parser, value, 0)) return false;
    if (!is_kind(parser, '?')) return true;
    its_operand yes = {0}, no = {0};
    bool condition = is_float(value) ? as_double(value) != 0 : value->bits != 0;
    next(parser);
    if (!expression(parser, &yes) || !its_expect(parser, ':', "':'") || !expression(parser, &no)) return false;
    yes.pos = no.pos = value->pos;
    *value = condition ? yes : no;
    return true;
}

static bool expression(its_parser *parser, its_operand *value) {
    if (++parser->depth > ITS_DEEPEST)
        return its_error(parser, tok(parser)->pos, "this expression is nested too deeply");
    bool ok = conditional(parser, value);
    parser->depth--;
    return ok;
}

bool its_parse_const(its_parser *parser, its_operand *result) {
    const its_token *token = tok(parser);
    *result = (its_operand){.kind = ITS_OPND_INT, .pos = token->pos};
    return expression(parser, result);
}

bool its_parse_u64(its_parser *parser, uint64_t *value) {
    its_operand result;
    uint32_t pos = tok(parser)->pos;
    if (!its_parse_const(parser, &result)) return false;
    if (result.kind != ITS_OPND_INT || (!is_unsigned(&result) && (int64_t)result.bits < 0))
        return its_error(parser, pos, "expected a whole number that is not negative");
    *value = result.bits;
    return true;
}

bool its_parse_u32(its_parser *parser, uint32_t *value) {
    uint64_t wide = 0;
    uint32_t pos = tok(parser)->pos;
    if (!its_parse_u64(parser, &wide)) return false;
    if (wide > UINT32_MAX) return its_error(parser, pos, "this number is too large");
    *value = (uint32_t)wide;
    return true;
}
