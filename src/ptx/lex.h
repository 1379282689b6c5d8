/*
 * Tokens of PTX. The lexer knows nothing of instructions: a word, a number, a string, a sign, or a word with a leading
 * dot. Words are not interned here; the parser does that when it needs a name.
 *
 *     @%p1 ld.global.b32 %r1, [%rd2+0x10];
 *     '@' WORD WORD(its_lex_dots: "ld.global.b32") WORD ',' '[' WORD '+' INT ']' ';'
 */
#ifndef ITS_PTX_LEX_H
#define ITS_PTX_LEX_H

#include "base/arena.h"
#include "base/diag.h"

typedef enum its_token_kind {
    ITS_TOK_END = 0,
    /* a sign of one character is its own code, 33 to 126 */
    ITS_TOK_WORD = 128, /* `%r1`, `add`, `$L__BB0_1`, `_`; also the digits of a unit before `::` */
    ITS_TOK_DOT,        /* `.reg`, `.shared::cta`: the text has its dot */
    ITS_TOK_INT,        /* `bits`, `is_unsigned` */
    ITS_TOK_F32,        /* 0f...: `bits` */
    ITS_TOK_F64,        /* 0d... or decimal: `bits` */
    ITS_TOK_STRING,     /* the text is what stands between the quotes */
    ITS_TOK_COLONS,     /* :: */
    ITS_TOK_SHL,
    ITS_TOK_SHR,
    ITS_TOK_LE,
    ITS_TOK_GE,
    ITS_TOK_EQ,
    ITS_TOK_NE,
    ITS_TOK_AND,
    ITS_TOK_OR,
    ITS_TOK_BAD, /* reported already */
} its_token_kind;

typedef struct its_token {
    uint8_t kind;
    bool is_unsigned;
    bool first_on_line;
    uint32_t pos, size;
    const char *text;
    uint64_t bits;
} its_token;

/* A comment, or a `#line` line, between two tokens. */
typedef struct its_trivia {
    uint32_t pos, size;
    bool same_line; /* as the token before it */
} its_trivia;

typedef struct its_lexer {
    its_context *ctx;
    const its_source *source;
    const char *start, *p, *end; /* *end is NUL */
    its_token token;             /* the current one; `p` is right behind it */
    its_arena *scratch;
    ITS_VEC(its_trivia) trivia;
    void *locale; /* "C", for decimal floats; made on first use */
} its_lexer;

void its_lex_init(its_lexer *lexer, its_context *ctx, const its_source *source, its_arena *scratch);
void its_lex_end(its_lexer *lexer);
void its_lex_next(its_lexer *lexer);
/* The current token is a WORD: makes everything that follows without a space and with dots part of it. */
void its_lex_dots(its_lexer *lexer);
/* Skips from right behind the current token `{` to its `}` over text that is kept as it is. False if there is none. */
bool its_lex_raw_block(its_lexer *lexer, const char **body, uint32_t *size);
/* "'%s'" or what the token is, for "unexpected ..."; in the scratch arena. */
const char *its_token_show(its_lexer *lexer);

#endif
