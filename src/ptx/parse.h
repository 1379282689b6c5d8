/*
 * The parser's inside, shared by its files in the order of the pipeline:
 *
 *     lex.c            text -> tokens
 *     parse.c          the module: header, items, recovery after errors
 *     parse_func.c     functions, parameters, bodies, instructions
 *     parse_decl.c     variables, registers, initialisers
 *     parse_operand.c  operands
 *     parse_const.c    constant expressions
 *     scope.c          which symbol a name means
 *
 * A parsing function reads from the current token and leaves the token behind what it read. One that returns bool says
 * false after it has reported an error; its caller passes that on up to the statement, where the parser skips to the
 * next
 * `;` and goes on.
 */
#ifndef ITS_PTX_PARSE_H
#define ITS_PTX_PARSE_H

#include "base/intern.h"
#include "ptx/lex.h"
#include "ptx/module.h"

typedef struct its_scope its_scope;
typedef struct its_late its_late;

typedef struct its_parser {
    its_context *ctx;
    its_module *module;
    its_arena *arena;  /* the module's */
    its_arena scratch; /* freed with the parser */
    its_lexer lexer;
    ITS_VEC(its_scope) scopes;     /* [0] is the module, [1] a function's parameters, [2] its body, then blocks */
    ITS_VEC(its_operand) operands; /* a stack: operands of the lists being read */
    ITS_VEC(its_late) lates;       /* scope.c: operands whose name is not placed yet */
    ITS_VEC(its_init) inits;       /* elements of the initialiser being read */
    its_func *func;                /* the one whose body is being read */
    its_node_list *list;           /* where nodes go: the module, a body, a function's directives */
    uint32_t range_level;          /* deepest scope that has register ranges; names bound below it need a second look */
    uint32_t depth;                /* of nested lists and expressions */
    bool semicolon;                /* its_parse_directive has taken one */
    bool has_late;                 /* the operands just read name something that is not declared yet */
    size_t errors_before;
    size_t trivia_done;
} its_parser;

enum { ITS_DEEPEST = 200 /* nested lists and expressions */, ITS_MOST_ERRORS = 20 };

/* -- tokens -------------------------------------------------------------------------------------------------------- */

static inline const its_token *tok(const its_parser *parser) {
    return &parser->lexer.token;
}
static inline bool is_kind(const its_parser *parser, int kind) {
    return parser->lexer.token.kind == kind;
}
static inline void next(its_parser *parser) {
    its_lex_next(&parser->lexer);
}
bool its_accept(its_parser *parser, int kind);
bool its_expect(its_parser *parser, int kind, const char *what); /* "expected WHAT, found ..." */
bool its_is_dot(const its_parser *parser, const char *text);     /* the current token is this `.word` */
its_name its_token_name(its_parser *parser);                     /* the current token's text, interned */
bool its_error(its_parser *parser, uint32_t pos, const char *format, ...) ITS_PRINTF(3, 4); /* always false */
bool its_unexpected(its_parser *parser, const char *wanted);
its_place its_parser_place(const its_parser *parser, uint32_t pos);
void its_flush_trivia(its_parser *parser); /* comments read so far become nodes of the current list */

/* -- scopes (scope.c) ---------------------------------------------------------------------------------------------- */

void its_scope_open(its_parser *parser, uint32_t pos);
bool its_scope_close(its_parser *parser);         /* resolves labels named before they were placed */
void its_scope_drop(its_parser *parser);          /* without resolving: after an error, or where no label can wait */
uint32_t its_scope_pos(const its_parser *parser); /* of the innermost open brace */
void its_scope_unwind(its_parser *parser);        /* unbinds every name, whatever happened */
its_symbol *its_symbol_new(its_parser *parser, its_symbol_kind kind, its_name name, uint32_t pos);
/* Makes the name mean the symbol in the innermost scope; an error if it means something there already. */
bool its_bind(its_parser *parser, its_symbol *symbol);
void its_bind_global(its_parser *parser, its_symbol *symbol);
its_symbol *its_lookup_global(its_parser *parser, its_name name);
bool its_bind_range(its_parser *parser, its_regs *regs);
/* What the name means here, or NULL. A label that an outer scope has placed may be hidden by one that comes later. */
its_symbol *its_lookup(its_parser *parser, its_name name);
its_symbol *its_lookup_innermost(its_parser *parser, its_name name); /* in the innermost scope only */
/* Reports a register past the end of a range, `%r9` of `%r<4>`; false if the name is nothing of that kind. */
bool its_outside_range(its_parser *parser, its_name name, uint32_t pos);
/* Operands whose name was not known or may change: resolved when scopes close. */
void its_resolve_later(its_parser *parser, its_operand *operands, uint32_t count);

/* -- the rest ------------------------------------------------------------------------------------------------------ */

/* parse_const.c: the result is an INT, F32 or F64 operand. */
bool its_parse_const(its_parser *parser, its_operand *result);
bool its_parse_u64(its_parser *parser, uint64_t *value);
bool its_parse_u32(its_parser *parser, uint32_t *value);

/* parse_operand.c: operands up to but without `;`. They are left on the parser's stack above `*base`. */
bool its_parse_operands(its_parser *parser, bool call, size_t *base);
enum { ITS_OPND_ELEMENT = 1 << 7 }; /* its_operand.flags while an instruction is parsed: `a[2]` */
bool its_resolve_elements(its_parser *parser, its_name name, unsigned op, size_t base);

/* parse_decl.c */
typedef struct its_decl_head { /* what stands in front of the names of a declaration */
    uint16_t flags;
    its_space space;
    its_type type;
    its_name type_name;
    uint8_t vec;
    uint32_t align;
    its_space ptr_space;
    uint32_t ptr_align;
    ITS_VEC(its_name) attributes;
} its_decl_head;
bool its_is_space(const its_parser *parser);
bool its_parse_decl_head(its_parser *parser, its_decl_head *head);
bool its_parse_dims(its_parser *parser, its_symbol *symbol);
bool its_parse_vars(its_parser *parser, its_decl_head *head); /* after the space; with its `;` */
bool its_parse_regs(its_parser *parser);                      /* at `.reg` */
its_symbol *its_symbol_of_head(its_parser *parser, const its_decl_head *head);

/* parse_func.c */
bool its_parse_func(its_parser *parser, uint16_t flags); /* at `.func` or `.entry` */

/* parse.c */
bool its_starts_item(const its_parser *parser); /* of a module */
bool its_parse_directive(its_parser *parser);   /* any, at its `.word`: see parse.c */
bool its_parse_file(its_parser *parser);
bool its_parse_section(its_parser *parser);
void its_recover(its_parser *parser); /* to behind the next `;`, or to a `}` */
bool its_too_many_errors(const its_parser *parser);

#endif
