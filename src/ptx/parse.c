/* The parser's upper half: the header of a module, its items, directives, and going on after an error. */
#include "ptx/parse.h"
#include "ptx/types.h"

#include <string.h>

/* -- tokens -------------------------------------------------------------------------------------------------------- */

its_place its_parser_place(const its_parser *parser, uint32_t pos) {
    return its_at(parser->module->source, pos);
}

bool its_error(its_parser *parser, uint32_t pos, const char *format, ...) {
    va_list args;
    va_start(args, format);
    char *message = its_arena_vprintf(&parser->scratch, format, args);
    va_end(args);
    its_diag_begin(parser->ctx, ITS_ERROR, its_parser_place(parser, pos), "%s", message);
    return false;
}

bool its_unexpected(its_parser *parser, const char *wanted) {
    if (is_kind(parser, ITS_TOK_BAD)) return false; /* the lexer has said why */
    return its_error(parser, tok(parser)->pos, "expected %s, found %s", wanted, its_token_show(&parser->lexer));
}

bool its_accept(its_parser *parser, int kind) {
    if (!is_kind(parser, kind)) return false;
    next(parser);
    return true;
}

bool its_expect(its_parser *parser, int kind, const char *what) {
    return its_accept(parser, kind) || its_unexpected(parser, what);
}

bool its_is_dot(const its_parser *parser, const char *text) {
    const its_token *token = tok(parser);
    return token->kind == ITS_TOK_DOT && token->size == strlen(text) && memcmp(token->text, text, token->size) == 0;
}

its_name its_token_name(its_parser *parser) {
    return its_intern_raise(parser->ctx, tok(parser)->text, tok(parser)->size);
}

bool its_too_many_errors(const its_parser *parser) {
    return its_diag_errors(parser->ctx) - parser->errors_before >= ITS_MOST_ERRORS;
}

void its_flush_trivia(its_parser *parser) {
    its_lexer *lexer = &parser->lexer;
    for (; parser->trivia_done < lexer->trivia.count; parser->trivia_done++) {
        const its_trivia *trivia = &lexer->trivia.items[parser->trivia_done];
        its_comment *node =
            its_node_new(parser->module, ITS_NODE_COMMENT, sizeof *node, parser->module->origin, trivia->pos);
        node->text = parser->module->source->text + trivia->pos;
        node->size = trivia->size;
        node->node.flags = trivia->same_line ? ITS_COMMENT_SAME_LINE : 0;
        its_list_append(parser->list, &node->node);
    }
    parser->trivia_done = lexer->trivia.count = 0;
}

/* -- going on after an error --------------------------------------------------------------------------------------- */

/* True for a brace that opens or closes a block, and is not one of a vector in the middle of an instruction. */
static bool is_block(its_parser *parser) {
    const char *behind = parser->lexer.p + strspn(parser->lexer.p, " \t");
    if (is_kind(parser, '{')) return tok(parser)->first_on_line;
    return is_kind(parser, '}') && !(*behind && strchr(",;]|", *behind));
}

void its_recover(its_parser *parser) {
    parser->depth = 0;
    parser->operands.count = 0;
    while (!is_kind(parser, ITS_TOK_END) && !is_block(parser))
        if (its_accept(parser, ';'))
            return;
        else
            next(parser);
}

bool its_starts_item(const its_parser *parser) {
    static const char *const starts[] = {".visible", ".extern", ".weak",   ".common", ".func",    ".entry",
                                         ".global",  ".const",  ".shared", ".file",   ".section", ".alias"};
    for (size_t i = 0; i < sizeof starts / sizeof *starts; i++)
        if (its_is_dot(parser, starts[i])) return true;
    return false;
}

/* At module level: to the next line that looks like the start of an item. */
static void recover_item(its_parser *parser) {
    parser->depth = 0;
    parser->operands.count = 0;
    while (!is_kind(parser, ITS_TOK_END) && !(tok(parser)->first_on_line && its_starts_item(parser))) next(parser);
}

/* -- directives that are carried through --------------------------------------------------------------------------- */

static bool directive_token(its_parser *parser, its_operand *operand) {
    const its_token *token = tok(parser);
    *operand = (its_operand){.kind = ITS_OPND_TOKEN, .pos = token->pos};
    switch (token->kind) {
    case ITS_TOK_BAD:
        return false;
    case ITS_TOK_INT:
        operand->kind = ITS_OPND_INT;
        operand->flags = token->is_unsigned ? ITS_OPND_UNSIGNED : 0;
        operand->bits = token->bits;
        break;
    case ITS_TOK_F32:
    case ITS_TOK_F64:
        operand->kind = token->kind == ITS_TOK_F32 ? ITS_OPND_F32 : ITS_OPND_F64;
        operand->bits = token->bits;
        break;
    case ITS_TOK_STRING:
        operand->kind = ITS_OPND_STRING;
        operand->name = its_token_name(parser);
        break;
    default:
        operand->name = its_token_name(parser);
        its_symbol *symbol = token->kind == ITS_TOK_WORD ? its_lookup(parser, operand->name) : NULL;
        if (!symbol) break;
        operand->kind = symbol->kind == ITS_SYM_REG ? ITS_OPND_REG : ITS_OPND_SYM;
        operand->symbol = symbol;
    }
    next(parser);
    return true;
}

/* Whether a directive ends in front of the next token, no bracket being open; `comma` tells that one stands there. */
static bool directive_ends(const its_parser *parser, bool comma) {
    const its_token *token = tok(parser);
    bool in_header = parser->func && !parser->func->has_body;
    return token->kind == '{' || token->kind == '}' || token->kind == ';' ||
           (!comma && (token->first_on_line || (in_header && token->kind == ITS_TOK_DOT)));
}

enum { MOST_BRACKETS = 32 };

typedef struct brackets {
    uint32_t depth;
    char close[MOST_BRACKETS]; /* what the open ones end with */
    uint32_t pos[MOST_BRACKETS];
} brackets;

/* Counts the current token in, if it is a bracket. */
static bool bracket(its_parser *parser, brackets *open) {
    uint8_t kind = tok(parser)->kind;
    uint32_t pos = tok(parser)->pos;
    if (kind == '(' || kind == '[' || kind == '{') {
        if (open->depth == MOST_BRACKETS)
            return its_error(parser, pos, "a directive with more than %d open brackets", MOST_BRACKETS);
        open->close[open->depth] = kind == '(' ? ')' : kind == '[' ? ']' : '}';
        open->pos[open->depth++] = pos;
    } else if (kind == ')' || kind == ']' || kind == '}' || (kind == ITS_TOK_END && open->depth)) {
        if (!open->depth) return its_unexpected(parser, "the end of the directive");
        char wanted[4] = {'\'', open->close[--open->depth], '\''};
        if (kind == wanted[1]) return true;
        its_unexpected(parser, wanted);
        its_diag_also(parser->ctx, its_at(parser->module->source, open->pos[open->depth]), "opened here");
        return false;
    }
    return true;
}

/* `.pragma "nounroll", "used_bytes_mask 0xff";` */
static bool are_pragmas(its_parser *parser, size_t base) {
    if (!parser->semicolon) return its_unexpected(parser, "';'");
    for (size_t i = base; i < parser->operands.count; i++) {
        const its_operand *word = &parser->operands.items[i];
        bool comma = word->kind == ITS_OPND_TOKEN && strcmp(word->name->text, ",") == 0;
        if ((i - base) % 2 ? !comma : word->kind != ITS_OPND_STRING)
            return its_error(parser, word->pos, "a .pragma takes strings with commas between them");
    }
    return parser->operands.count > base || its_unexpected(parser, "a string");
}

/* Words of declarations begin nothing. */
static bool is_no_directive(const its_parser *parser) {
    static const char *const words[] = {".align", ".func", ".loc", ".param", ".ptr", ".reg"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (its_is_dot(parser, words[i])) return true;
    return false;
}

/* The words behind the directive's name, onto the parser's stack. */
static bool directive_words(its_parser *parser, bool attribute) {
    brackets open = {0};
    bool comma = false;
    if (attribute && !is_kind(parser, '(')) return its_unexpected(parser, "'('");
    for (bool first = true;; first = false) {
        if (!open.depth && (is_kind(parser, ITS_TOK_END) || (attribute ? !first : directive_ends(parser, comma))))
            break;
        if (!bracket(parser, &open)) return false;
        comma = is_kind(parser, ',');
        its_operand operand;
        if (!directive_token(parser, &operand)) return false;
        ITS_PUSH(&parser->scratch, &parser->operands, operand);
    }
    return !comma || its_unexpected(parser, "something behind the ','");
}

/*
 * `.word` and what follows it, up to a `;`, which is then part of it. Without one it ends where the line does, if no
 * bracket is open and no comma stands at the end; in front of a `{` or `}`; in a function's header also in front of the
 * next directive. `.attribute(...)` ends with its `)`. A type alone, `.u64;`, declares nothing.
 */
bool its_parse_directive(its_parser *parser) {
    if (is_no_directive(parser)) return its_unexpected(parser, "a directive");
    its_name name = its_token_name(parser);
    uint32_t pos = tok(parser)->pos;
    size_t base = parser->operands.count;
    bool attribute = strcmp(name->text, ".attribute") == 0;
    bool type = its_type_of_text(name->text, name->size) != ITS_TYPE_NONE;
    next(parser);
    if (type) return its_accept(parser, ';') || its_error(parser, pos, "expected a directive, found '%s'", name->text);
    if (!directive_words(parser, attribute)) return false;
    parser->semicolon = !attribute && is_kind(parser, ';');
    size_t count = parser->operands.count - base;
    its_node_kind kind = strcmp(name->text, ".pragma") == 0 ? ITS_NODE_PRAGMA : ITS_NODE_DIRECTIVE;
    if (kind == ITS_NODE_PRAGMA && !are_pragmas(parser, base)) return false;
    if (count > UINT16_MAX) return its_error(parser, pos, "a directive of more than 65535 words");
    its_directive *node =
        its_node_new(parser->module, kind, sizeof *node + count * sizeof *node->ops, parser->module->origin, pos);
    node->name = name;
    node->semicolon = parser->semicolon;
    node->node.count = (uint16_t)count;
    if (count) memcpy(node->ops, parser->operands.items + base, count * sizeof *node->ops);
    parser->operands.count = base;
    its_list_append(parser->list, &node->node);
    /* a header's `;` ends the declaration, and its caller wants to know; pragmas have one of their own */
    if (parser->semicolon) next(parser);
    if (kind == ITS_NODE_PRAGMA) parser->semicolon = false;
    return true;
}

bool its_parse_file(its_parser *parser) {
    its_file *file =
        its_node_new(parser->module, ITS_NODE_FILE, sizeof *file, parser->module->origin, tok(parser)->pos);
    next(parser);
    if (!its_parse_u32(parser, &file->index)) return false;
    if (!is_kind(parser, ITS_TOK_STRING)) return its_unexpected(parser, "the path of a file");
    file->path = its_token_name(parser);
    next(parser);
    if (is_kind(parser, ',')) {
        file->has_stat = true;
        next(parser);
        if (!its_parse_u64(parser, &file->mtime) || !its_expect(parser, ',', "','") ||
            !its_parse_u64(parser, &file->size))
            return false;
    }
    its_accept(parser, ';');
    its_list_append(parser->list, &file->node);
    return true;
}

bool its_parse_section(its_parser *parser) {
    its_section *section =
        its_node_new(parser->module, ITS_NODE_SECTION, sizeof *section, parser->module->origin, tok(parser)->pos);
    next(parser);
    if (!is_kind(parser, ITS_TOK_DOT)) return its_unexpected(parser, "the name of a section");
    section->name = its_token_name(parser);
    next(parser);
    if (!is_kind(parser, '{')) return its_unexpected(parser, "'{'");
    uint32_t open = tok(parser)->pos;
    if (!its_lex_raw_block(&parser->lexer, &section->body, &section->body_size))
        return its_error(parser, open, "this '{' is not closed");
    its_list_append(parser->list, &section->node);
    return true;
}

/* -- items --------------------------------------------------------------------------------------------------------- */

static bool alias(its_parser *parser) {
    uint32_t pos = tok(parser)->pos;
    its_symbol *symbols[2];
    next(parser);
    for (int i = 0; i < 2; i++) {
        if (i && !its_expect(parser, ',', "','")) return false;
        if (!is_kind(parser, ITS_TOK_WORD)) return its_unexpected(parser, "the name of a function");
        its_name name = its_token_name(parser);
        symbols[i] = its_lookup(parser, name);
        if (!symbols[i] || symbols[i]->kind != ITS_SYM_FUNC)
            return its_error(parser, tok(parser)->pos, "'%s' is no function declared so far", name->text);
        next(parser);
    }
    if (symbols[0]->flags & ITS_SYM_DEFINED)
        return its_error(parser, pos, "'%s' has a definition and can't be an alias", symbols[0]->name->text);
    if (symbols[1]->link || symbols[0] == symbols[1]) /* so they never go round in a circle */
        return its_error(parser, pos, "'%s' is an alias itself and can't have one", symbols[1]->name->text);
    its_alias *node = its_node_new(parser->module, ITS_NODE_ALIAS, sizeof *node, parser->module->origin, pos);
    node->symbol = symbols[0];
    symbols[0]->flags |= ITS_SYM_DEFINED;
    symbols[0]->node = &node->node;
    symbols[0]->link = symbols[1];
    its_list_append(parser->list, &node->node);
    return its_expect(parser, ';', "';'");
}

static bool linkage(its_parser *parser, uint16_t *flags) {
    static const struct {
        const char *text;
        uint16_t flag;
    } words[] = {{".visible", ITS_SYM_VISIBLE},
                 {".extern", ITS_SYM_EXTERN},
                 {".weak", ITS_SYM_WEAK},
                 {".common", ITS_SYM_COMMON}};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        if (!its_is_dot(parser, words[i].text)) continue;
        if (*flags) return its_error(parser, tok(parser)->pos, "a second linkage directive");
        *flags = words[i].flag;
        next(parser);
        return true;
    }
    return false;
}

static bool item(its_parser *parser) {
    if (!is_kind(parser, ITS_TOK_DOT)) return its_unexpected(parser, "a directive such as .entry, .func or .global");
    uint16_t flags = 0;
    while (linkage(parser, &flags)) continue;
    if (its_too_many_errors(parser)) return false;
    if (its_is_dot(parser, ".func") || its_is_dot(parser, ".entry")) return its_parse_func(parser, flags);
    its_decl_head head = {.flags = flags};
    if (its_is_space(parser)) return its_parse_vars(parser, &head);
    if (flags) return its_unexpected(parser, ".func, .entry or a state space");
    if (its_is_dot(parser, ".reg")) return its_error(parser, tok(parser)->pos, "registers are declared in functions");
    if (its_is_dot(parser, ".file")) return its_parse_file(parser);
    if (its_is_dot(parser, ".section")) return its_parse_section(parser);
    if (its_is_dot(parser, ".alias")) return alias(parser);
    if (its_is_dot(parser, ".version")) return its_error(parser, tok(parser)->pos, "a second .version");
    return its_parse_directive(parser);
}

/* -- the header ---------------------------------------------------------------------------------------------------- */

static bool version(its_parser *parser) {
    its_module *module = parser->module;
    if (!its_is_dot(parser, ".version")) {
        if (is_kind(parser, ITS_TOK_BAD)) return false;
        its_error(parser, tok(parser)->pos, "a PTX module starts with .version, found %s",
                  its_token_show(&parser->lexer));
        its_diag_hint(parser->ctx, "for instance: .version 8.0");
        return false;
    }
    next(parser);
    const its_token *token = tok(parser);
    uint32_t number[2] = {0, 0}, part = 0;
    module->version_pos = token->pos;
    for (uint32_t i = 0; i < token->size; i++) {
        char c = token->text[i];
        if (c == '.' && part == 0 && i)
            part = 1;
        else if (c >= '0' && c <= '9' && number[part] < 100000)
            number[part] = number[part] * 10 + (uint32_t)(c - '0');
        else
            return its_unexpected(parser, "a version such as 8.0");
    }
    if (!part) return its_unexpected(parser, "a version such as 8.0");
    module->version_major = number[0];
    module->version_minor = number[1];
    next(parser);
    return true;
}

static bool target(its_parser *parser) {
    its_module *module = parser->module;
    ITS_VEC(its_name) names = {0};
    if (!its_is_dot(parser, ".target")) return its_unexpected(parser, ".target");
    next(parser);
    module->target_pos = tok(parser)->pos;
    do {
        if (!is_kind(parser, ITS_TOK_WORD)) return its_unexpected(parser, "a target such as sm_80");
        ITS_PUSH(parser->arena, &names, its_token_name(parser));
        next(parser);
    } while (its_accept(parser, ','));
    module->targets = names.items;
    module->n_targets = (uint32_t)names.count;
    return true;
}

static bool address_size(its_parser *parser) {
    if (!its_is_dot(parser, ".address_size")) return true;
    next(parser);
    uint32_t pos = tok(parser)->pos, size;
    if (!its_parse_u32(parser, &size)) return false;
    if (size != 32 && size != 64) return its_error(parser, pos, "an address has 32 or 64 bits, not %u", size);
    parser->module->address_size = size;
    parser->module->priv->says_address_size = true;
    return true;
}

/* -- the whole ----------------------------------------------------------------------------------------------------- */

static bool parse_module(its_parser *parser) {
    its_node_list list = {0};
    parser->list = &list;
    its_scope_open(parser, 0);
    next(parser);
    its_flush_trivia(parser);
    bool ok = version(parser) && target(parser) && address_size(parser);
    while (ok && (its_flush_trivia(parser), !is_kind(parser, ITS_TOK_END))) {
        if (item(parser)) continue;
        if (its_too_many_errors(parser)) break;
        recover_item(parser);
    }
    parser->module->first = list.first;
    parser->module->last = list.last;
    return its_diag_errors(parser->ctx) == parser->errors_before;
}

typedef struct parse_job {
    its_parser parser;
    const char *name, *text;
    size_t size;
} parse_job;

static its_status parse_body(void *user) {
    parse_job *job = user;
    its_parser *parser = &job->parser;
    if (job->size >= UINT32_MAX) {
        its_diag_begin(parser->ctx, ITS_ERROR, ITS_NOWHERE, "'%s' is larger than 4 GiB", job->name);
        return ITS_ERR_INPUT;
    }
    parser->module = its_module_new(parser->ctx, job->name, job->text, job->size);
    parser->arena = its_module_arena(parser->module);
    const char *nul = memchr(job->text, 0, job->size);
    if (nul) {
        its_error(parser, (uint32_t)(nul - job->text), "byte 0x00 does not belong in PTX");
        its_diag_hint(parser->ctx, "PTX is ASCII text; is this a cubin or some other binary file?");
        return ITS_ERR_INPUT;
    }
    its_lex_init(&parser->lexer, parser->ctx, parser->module->source, &parser->scratch);
    return parse_module(parser) ? ITS_OK : ITS_ERR_INPUT;
}

its_status its_ptx_parse(its_context *ctx, const char *name, const char *text, size_t size, its_module **module) {
    parse_job job = {.name = name, .text = text, .size = size};
    its_parser *parser = &job.parser;
    parser->ctx = ctx;
    parser->errors_before = its_diag_errors(ctx);
    its_arena_init(&parser->scratch, ctx);
    its_status status = its_protect(ctx, parse_body, &job);
    its_scope_unwind(parser);
    its_lex_end(&parser->lexer);
    its_arena_free(&parser->scratch);
    if (status != ITS_OK) {
        its_module_free(parser->module);
        parser->module = NULL;
    }
    *module = parser->module;
    return status;
}
