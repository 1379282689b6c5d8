/* The lexer: see lex.h. */
#include "ptx/lex.h"

#include <locale.h>
#include <stdlib.h>
#include <string.h>

enum { LONGEST_SHOWN = 4096 }; /* bytes of a token in a message */

enum { SPACE = 1, DIGIT = 2, START = 4, WORD = 8 }; /* character classes; WORD: may follow in a word */

#define D (DIGIT | WORD)
#define L (START | WORD)
static const uint8_t class_of[256] = {
    [' '] = SPACE, ['\t'] = SPACE, ['\n'] = SPACE, ['\r'] = SPACE, ['\v'] = SPACE, ['\f'] = SPACE, ['0'] = D,
    ['1'] = D,     ['2'] = D,      ['3'] = D,      ['4'] = D,      ['5'] = D,      ['6'] = D,      ['7'] = D,
    ['8'] = D,     ['9'] = D,      ['a'] = L,      ['b'] = L,      ['c'] = L,      ['d'] = L,      ['e'] = L,
    ['f'] = L,     ['g'] = L,      ['h'] = L,      ['i'] = L,      ['j'] = L,      ['k'] = L,      ['l'] = L,
    ['m'] = L,     ['n'] = L,      ['o'] = L,      ['p'] = L,      ['q'] = L,      ['r'] = L,      ['s'] = L,
    ['t'] = L,     ['u'] = L,      ['v'] = L,      ['w'] = L,      ['x'] = L,      ['y'] = L,      ['z'] = L,
    ['A'] = L,     ['B'] = L,      ['C'] = L,      ['D'] = L,      ['E'] = L,      ['F'] = L,      ['G'] = L,
    ['H'] = L,     ['I'] = L,      ['J'] = L,      ['K'] = L,      ['L'] = L,      ['M'] = L,      ['N'] = L,
    ['O'] = L,     ['P'] = L,      ['Q'] = L,      ['R'] = L,      ['S'] = L,      ['T'] = L,      ['U'] = L,
    ['V'] = L,     ['W'] = L,      ['X'] = L,      ['Y'] = L,      ['Z'] = L,      ['_'] = L,      ['$'] = L,
    ['%'] = START,
};
#undef D
#undef L

static bool is(char c, unsigned classes) {
    return class_of[(unsigned char)c] & classes;
}

void its_lex_init(its_lexer *lexer, its_context *ctx, const its_source *source, its_arena *scratch) {
    *lexer = (its_lexer){.ctx = ctx, .source = source, .scratch = scratch};
    lexer->start = lexer->p = source->text;
    lexer->end = source->text + source->size;
}

void its_lex_end(its_lexer *lexer) {
    if (lexer->locale) freelocale((locale_t)lexer->locale);
    lexer->locale = NULL;
}

static uint32_t at(const its_lexer *lexer, const char *p) {
    return (uint32_t)(p - lexer->start);
}

/* -- spaces and comments ------------------------------------------------------------------------------------------- */

static void add_trivia(its_lexer *lexer, const char *from, const char *to, bool same_line) {
    if (to > from && to[-1] == '\r') to--;
    its_trivia trivia = {at(lexer, from), (uint32_t)(to - from), same_line};
    ITS_PUSH(lexer->scratch, &lexer->trivia, trivia);
}

static const char *line_end(const its_lexer *lexer, const char *p) {
    const char *end = memchr(p, '\n', (size_t)(lexer->end - p));
    return end ? end : lexer->end;
}

/* Skips blanks and comments; true if a line ended on the way. */
static bool skip_space(its_lexer *lexer) {
    const char *p = lexer->p;
    bool line = p == lexer->start;
    for (;;) {
        while (is(*p, SPACE)) line |= *p++ == '\n';
        const char *from = p;
        if (p[0] == '/' && p[1] == '/') {
            p = line_end(lexer, p);
        } else if (p[0] == '/' && p[1] == '*') {
            const char *close = p + 2;
            while ((close = memchr(close, '*', (size_t)(lexer->end - close))) && close[1] != '/') close++;
            if (!close) {
                its_diag_begin(lexer->ctx, ITS_ERROR, its_at(lexer->source, at(lexer, p)), "unterminated comment");
                its_diag_hint(lexer->ctx, "close it with */");
            }
            p = close ? close + 2 : lexer->end;
        } else if (*p == '#' && line) {
            p = line_end(lexer, p);
        } else {
            break;
        }
        add_trivia(lexer, from, p, !line);
    }
    lexer->p = p;
    return line;
}

/* -- numbers ------------------------------------------------------------------------------------------------------- */

static bool bad(its_lexer *lexer, const char *message) {
    its_diag_begin(lexer->ctx, ITS_ERROR, its_at(lexer->source, lexer->token.pos), "%s", message);
    lexer->token.kind = ITS_TOK_BAD;
    return false;
}

static unsigned digit_of(char c) {
    if (c >= '0' && c <= '9') return (unsigned)(c - '0');
    if (c >= 'a' && c <= 'f') return (unsigned)(c - 'a') + 10;
    if (c >= 'A' && c <= 'F') return (unsigned)(c - 'A') + 10;
    return 99;
}

/* Digits of `base` up to `end`; false if one is none of the base's, or there are none, or 64 bits overflow. */
static bool digits(its_lexer *lexer, const char *p, const char *end, unsigned base) {
    uint64_t value = 0;
    if (p == end) return bad(lexer, "a number without digits");
    for (; p < end; p++) {
        unsigned digit = digit_of(*p);
        if (digit >= base) return bad(lexer, "this is no number");
        if (value > (UINT64_MAX - digit) / base) return bad(lexer, "this number does not fit into 64 bits");
        value = value * base + digit;
    }
    lexer->token.bits = value;
    return true;
}

static void lex_integer(its_lexer *lexer, const char *p, const char *end) {
    its_token *token = &lexer->token;
    token->kind = ITS_TOK_INT;
    if (end - p > 1 && end[-1] == 'U') token->is_unsigned = true, end--;
    unsigned base = 10;
    if (p[0] == '0' && (p[1] == 'x' || p[1] == 'X'))
        base = 16, p += 2;
    else if (p[0] == '0' && (p[1] == 'b' || p[1] == 'B') && end - p > 2)
        base = 2, p += 2;
    else if (p[0] == '0' && end - p > 1)
        base = 8, p += 1;
    if (digits(lexer, p, end, base) && token->bits > INT64_MAX) token->is_unsigned = true;
}

static void lex_decimal(its_lexer *lexer, const char *p) {
    if (!lexer->locale) lexer->locale = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    if (!lexer->locale) its_guard_raise(lexer->ctx);
    char *end;
    double value = strtod_l(p, &end, (locale_t)lexer->locale);
    lexer->token.kind = ITS_TOK_F64;
    memcpy(&lexer->token.bits, &value, sizeof value);
    lexer->p = end;
    if (is(*end, WORD)) bad(lexer, "this is no number");
}

/* Where a decimal float would end: digits, point, digits, exponent; NULL if it is no float. */
static bool is_decimal(const char *p) {
    while (is(*p, DIGIT)) p++;
    if (*p == '.') return true;
    if (*p != 'e' && *p != 'E') return false;
    p += p[1] == '+' || p[1] == '-' ? 2 : 1;
    return is(*p, DIGIT);
}

static void lex_number(its_lexer *lexer, const char *p) {
    const char *end = p;
    while (is(*end, WORD)) end++;
    its_token *token = &lexer->token;
    lexer->p = end;
    if (end[0] == ':' && end[1] == ':') { /* a unit, `5f0c2a9b71d3e846::name` */
        token->kind = ITS_TOK_WORD;
        return;
    }
    char kind = p[0] == '0' ? p[1] : 0;
    if (kind == 'f' || kind == 'F' || kind == 'd' || kind == 'D') {
        bool single = kind == 'f' || kind == 'F';
        token->kind = single ? ITS_TOK_F32 : ITS_TOK_F64;
        if (end - p != (single ? 10 : 18))
            bad(lexer, single ? "0f takes 8 hexadecimal digits" : "0d takes 16 hexadecimal digits");
        else
            digits(lexer, p + 2, end, 16);
    } else if (kind != 'x' && kind != 'X' && is_decimal(p)) {
        lex_decimal(lexer, p);
    } else {
        lex_integer(lexer, p, end);
    }
}

/* -- everything else ----------------------------------------------------------------------------------------------- */

static void lex_string(its_lexer *lexer) {
    const char *p = lexer->p + 1, *end = p;
    while (end < lexer->end && *end != '"' && *end != '\n') end += *end == '\\' && end + 1 < lexer->end ? 2 : 1;
    if (end >= lexer->end || *end != '"') {
        bad(lexer, "unterminated string");
        lexer->p = end < lexer->end ? end : lexer->end;
        return;
    }
    lexer->token.kind = ITS_TOK_STRING;
    lexer->token.text = p;
    lexer->token.size = (uint32_t)(end - p);
    lexer->p = end + 1;
}

static its_token_kind pair_of(char a, char b) {
    switch (a) {
    case ':':
        return b == ':' ? ITS_TOK_COLONS : ITS_TOK_END;
    case '<':
        return b == '<' ? ITS_TOK_SHL : b == '=' ? ITS_TOK_LE : ITS_TOK_END;
    case '>':
        return b == '>' ? ITS_TOK_SHR : b == '=' ? ITS_TOK_GE : ITS_TOK_END;
    case '=':
        return b == '=' ? ITS_TOK_EQ : ITS_TOK_END;
    case '!':
        return b == '=' ? ITS_TOK_NE : ITS_TOK_END;
    case '&':
        return b == '&' ? ITS_TOK_AND : ITS_TOK_END;
    case '|':
        return b == '|' ? ITS_TOK_OR : ITS_TOK_END;
    default:
        return ITS_TOK_END;
    }
}

static void lex_sign(its_lexer *lexer) {
    its_token *token = &lexer->token;
    char c = *lexer->p;
    its_token_kind pair = pair_of(c, lexer->p[1]);
    if (pair) {
        token->kind = (uint8_t)pair;
        lexer->p += 2;
    } else if (c > ' ' && c <= '~') {
        token->kind = (uint8_t)c;
        lexer->p++;
    } else {
        lexer->p++;
        its_diag_begin(lexer->ctx, ITS_ERROR, its_at(lexer->source, token->pos), "byte 0x%02x does not belong in PTX",
                       (unsigned char)c);
        its_diag_hint(lexer->ctx, "PTX is ASCII text; is this a cubin or some other binary file?");
        token->kind = ITS_TOK_BAD;
    }
    token->size = (uint32_t)(lexer->p - token->text);
}

/* `.word`, with any `::word` that follows. */
static void lex_dot(its_lexer *lexer) {
    const char *p = lexer->p + 1;
    while (is(*p, WORD) || (p[0] == ':' && p[1] == ':' && is(p[2], WORD))) p += *p == ':' ? 2 : 1;
    lexer->token.kind = ITS_TOK_DOT;
    lexer->p = p;
}

void its_lex_next(its_lexer *lexer) {
    bool line = false;
    if (is(*lexer->p, SPACE) || *lexer->p == '/' || *lexer->p == '#' || lexer->p == lexer->start)
        line = skip_space(lexer);
    const char *p = lexer->p;
    its_token *token = &lexer->token;
    token->text = p;
    token->pos = at(lexer, p);
    token->first_on_line = line;
    token->is_unsigned = false;
    if (is(*p, START) && (*p != '%' || is(p[1], WORD))) {
        do p++;
        while (is(*p, WORD));
        token->kind = ITS_TOK_WORD;
        lexer->p = p;
    } else if (is(*p, DIGIT)) {
        lex_number(lexer, p);
    } else if (*p == '.' && is(p[1], DIGIT)) {
        lex_decimal(lexer, p);
    } else if (*p == '.' && is(p[1], WORD)) {
        lex_dot(lexer);
    } else if (*p == '"') {
        lex_string(lexer);
        return;
    } else if (p >= lexer->end) {
        token->kind = ITS_TOK_END;
    } else {
        lex_sign(lexer);
    }
    token->size = (uint32_t)(lexer->p - token->text);
}

void its_lex_dots(its_lexer *lexer) {
    const char *p = lexer->p;
    while ((p[0] == '.' && is(p[1], WORD)) || (p[0] == ':' && p[1] == ':' && is(p[2], WORD))) {
        p += *p == ':' ? 2 : 1;
        while (is(*p, WORD)) p++;
    }
    lexer->p = p;
    lexer->token.size = (uint32_t)(p - lexer->token.text);
}

bool its_lex_raw_block(its_lexer *lexer, const char **body, uint32_t *size) {
    const char *from = lexer->p, *p = from, *line = from; /* where the line of p ends */
    size_t depth = 1;
    for (; p < lexer->end; p++) {
        if (p >= line) line = line_end(lexer, p);
        if (*p == '{') depth++;
        if (*p == '}' && --depth == 0) break;
        if (p[0] == '/' && p[1] == '/') p = line;
        if (p[0] == '"') { /* a brace in a string closes nothing */
            const char *close = memchr(p + 1, '"', (size_t)(line - p - 1));
            if (close) p = close;
        }
        if (p >= lexer->end) break;
    }
    if (p >= lexer->end) return false;
    *body = from;
    *size = (uint32_t)(p - from);
    lexer->p = p + 1;
    its_lex_next(lexer);
    return true;
}

const char *its_token_show(its_lexer *lexer) {
    const its_token *token = &lexer->token;
    if (token->kind == ITS_TOK_END) return "the end of the file";
    if (token->kind == ITS_TOK_STRING) return "a string";
    bool whole = token->size <= LONGEST_SHOWN;
    return its_arena_printf(lexer->scratch, whole ? "'%.*s'" : "'%.*s...'", (int)(whole ? token->size : LONGEST_SHOWN),
                            token->text);
}
