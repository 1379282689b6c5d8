/*
 * Functions and their bodies:
 *
 *     .visible .func (.param .b32 result) name (.param .b64 a, .param .b32 b) .noreturn { ... }
 *     .visible .entry name (.param .u64 .ptr .global .align 16 a) .reqntid 128 { ... }
 *
 * A body is a flat list of nodes; blocks are opened and closed by nodes of their own.
 */
#include <string.h>

#include "ptx/mnemonic.h"
#include "ptx/parse.h"

/* -- parameters ---------------------------------------------------------------------------------------------------- */

static its_symbol *one_param(its_parser *parser, bool bind, bool results) {
    its_decl_head head = {.space = ITS_SPACE_PARAM};
    bool in_register = its_is_dot(parser, ".reg");
    if (!in_register && !its_is_dot(parser, ".param")) {
        its_unexpected(parser, ".param or .reg");
        return NULL;
    }
    next(parser);
    if (!its_parse_decl_head(parser, &head)) return NULL;
    if (!is_kind(parser, ITS_TOK_WORD)) {
        its_unexpected(parser, "the name of the parameter");
        return NULL;
    }
    its_symbol *symbol = its_symbol_of_head(parser, &head);
    if (in_register) {
        symbol->kind = ITS_SYM_REG;
        symbol->space = ITS_SPACE_REG;
        symbol->id = parser->func ? parser->func->n_regs++ : 0;
    }
    symbol->flags |= (uint16_t)(ITS_SYM_DEFINED | ITS_SYM_IN_FUNC | (results ? ITS_SYM_RESULT : ITS_SYM_PARAM));
    next(parser);
    if (!its_parse_dims(parser, symbol)) return NULL;
    if (bind && strcmp(symbol->name->text, "_") != 0 && !its_bind(parser, symbol)) return NULL;
    return symbol;
}

static bool parse_params(its_parser *parser, its_params *params, bool bind, bool results) {
    ITS_VEC(its_symbol *) list = {0};
    if (!its_expect(parser, '(', "'('")) return false;
    if (its_accept(parser, ')')) return true;
    do {
        its_symbol *symbol = one_param(parser, bind, results);
        if (!symbol) return false;
        ITS_PUSH(parser->arena, &list, symbol);
    } while (its_accept(parser, ','));
    params->n = (uint32_t)list.count;
    params->items = list.items;
    return its_expect(parser, ')', "',' or ')'");
}

/* -- instructions -------------------------------------------------------------------------------------------------- */

static bool guard(its_parser *parser, its_symbol **predicate, its_name *suffix, uint8_t *flags) {
    next(parser);
    if (its_accept(parser, '!')) *flags |= ITS_INSN_GUARD_NOT;
    if (!is_kind(parser, ITS_TOK_WORD)) return its_unexpected(parser, "a predicate register");
    its_symbol *symbol = its_lookup(parser, its_token_name(parser));
    if (!symbol) return its_error(parser, tok(parser)->pos, "'%s' is not declared", its_token_name(parser)->text);
    if (symbol->kind != ITS_SYM_REG)
        return its_error(parser, tok(parser)->pos, "a guard is a predicate register, '%s' is none", symbol->name->text);
    *predicate = symbol;
    next(parser);
    if (is_kind(parser, ITS_TOK_DOT)) {
        *suffix = its_token_name(parser);
        next(parser);
    }
    return true;
}

/* Functions and variables that an instruction names other than to call, load or store them. */
static void note_addresses(its_insn *insn, bool call) {
    for (uint16_t i = 0; i < insn->node.count; i++) {
        its_operand *operand = &insn->ops[i];
        if (operand->kind == ITS_OPND_SYM && !(call && operand->symbol->kind == ITS_SYM_FUNC))
            operand->symbol->flags |= ITS_SYM_ADDRESS_TAKEN;
        for (uint16_t j = 0; operand->kind == ITS_OPND_VEC && j < operand->count; j++)
            if (operand->list[j].kind == ITS_OPND_SYM) operand->list[j].symbol->flags |= ITS_SYM_ADDRESS_TAKEN;
        for (uint16_t j = 0; operand->kind == ITS_OPND_GROUP && j < operand->count; j++)
            if (operand->list[j].kind == ITS_OPND_SYM && operand->list[j].symbol->kind == ITS_SYM_FUNC)
                operand->list[j].symbol->flags |= ITS_SYM_ADDRESS_TAKEN;
    }
}

/* Modifiers that stand apart from their opcode: `ld .global .u32`. */
static its_name join_modifiers(its_parser *parser, its_name name) {
    ITS_VEC(char) whole = {0};
    for (uint32_t i = 0; i < name->size; i++) ITS_PUSH(&parser->scratch, &whole, name->text[i]);
    for (; is_kind(parser, ITS_TOK_DOT); next(parser))
        for (uint32_t i = 0; i < tok(parser)->size; i++) ITS_PUSH(&parser->scratch, &whole, tok(parser)->text[i]);
    return its_intern_raise(parser->ctx, whole.items, whole.count);
}

static bool instruction(its_parser *parser, its_name name, uint32_t pos, its_symbol *predicate, its_name suffix,
                        uint8_t flags) {
    if (is_kind(parser, ITS_TOK_DOT)) name = join_modifiers(parser, name);
    unsigned op = its_mnemonic_of(parser->ctx, name)->op;
    bool call = op == ITS_OP_CALL || op == ITS_OP_INTARSIA;
    size_t base;
    if (!its_parse_operands(parser, call, &base)) return false;
    if (!is_kind(parser, ';')) return its_unexpected(parser, "',' or ';'");
    size_t count = parser->operands.count - base;
    if (count > UINT16_MAX) return its_error(parser, pos, "more than 65535 operands");
    if (!its_resolve_elements(parser, name, op, base)) return false;
    its_insn *insn = its_insn_new(parser->module, name, (uint16_t)count, parser->module->origin, pos);
    if (count) memcpy(insn->ops, parser->operands.items + base, count * sizeof *insn->ops);
    parser->operands.count = base;
    insn->guard = predicate;
    insn->guard_suffix = suffix;
    insn->node.flags = flags;
    if (parser->has_late) its_resolve_later(parser, insn->ops, insn->node.count);
    note_addresses(insn, call);
    its_list_append(parser->list, &insn->node);
    next(parser);
    return true;
}

/* -- labels -------------------------------------------------------------------------------------------------------- */

static bool place_label(its_parser *parser, its_name name, uint32_t pos) {
    its_decl *decl = its_node_new(parser->module, ITS_NODE_LABEL, sizeof *decl, parser->module->origin, pos);
    decl->symbol = its_symbol_new(parser, ITS_SYM_LABEL, name, pos);
    decl->symbol->flags |= ITS_SYM_DEFINED;
    decl->symbol->node = &decl->node;
    its_list_append(parser->list, &decl->node);
    return its_bind(parser, decl->symbol);
}

/* `P: .callprototype (.param .b32 _) _ (.param .b64 _, .param .b32 _) .noreturn;` */
static bool prototype(its_parser *parser, its_name name, uint32_t pos) {
    its_proto *proto = its_node_new(parser->module, ITS_NODE_PROTO, sizeof *proto, parser->module->origin, pos);
    proto->symbol = its_symbol_new(parser, ITS_SYM_PROTO, name, pos);
    proto->symbol->flags |= ITS_SYM_DEFINED;
    proto->symbol->node = &proto->node;
    its_list_append(parser->list, &proto->node);
    if (!its_bind(parser, proto->symbol)) return false;
    next(parser);
    if (is_kind(parser, '(') && !parse_params(parser, &proto->results, false, true)) return false;
    if (!is_kind(parser, ITS_TOK_WORD)) return its_unexpected(parser, "'_'");
    next(parser);
    if (is_kind(parser, '(') && !parse_params(parser, &proto->params, false, false)) return false;
    its_node_list directives = {0}, *outer = parser->list;
    parser->list = &directives;
    bool ok = true;
    parser->semicolon = false;
    while (ok && !parser->semicolon && is_kind(parser, ITS_TOK_DOT)) ok = its_parse_directive(parser);
    parser->list = outer;
    proto->directives = directives.first;
    return ok && (parser->semicolon || its_expect(parser, ';', "';'"));
}

/* `T: .branchtargets A, B;` and `T: .calltargets f, g;` */
static bool targets(its_parser *parser, its_name name, uint32_t pos, bool calls) {
    size_t base;
    next(parser);
    if (!its_parse_operands(parser, false, &base)) return false;
    size_t count = parser->operands.count - base;
    if (count > UINT16_MAX) return its_error(parser, pos, "more than 65535 targets");
    its_targets *node = its_node_new(parser->module, ITS_NODE_TARGETS, sizeof *node + count * sizeof *node->ops,
                                     parser->module->origin, pos);
    node->node.count = (uint16_t)count;
    if (count) memcpy(node->ops, parser->operands.items + base, count * sizeof *node->ops);
    parser->operands.count = base;
    node->calls = calls;
    node->symbol = its_symbol_new(parser, ITS_SYM_TARGETS, name, pos);
    node->symbol->flags |= ITS_SYM_DEFINED;
    node->symbol->node = &node->node;
    for (size_t i = 0; i < count; i++)
        if (node->ops[i].kind == ITS_OPND_SYM) node->ops[i].symbol->flags |= ITS_SYM_ADDRESS_TAKEN;
    if (parser->has_late) its_resolve_later(parser, node->ops, node->node.count);
    its_list_append(parser->list, &node->node);
    return its_bind(parser, node->symbol) && its_expect(parser, ';', "',' or ';'");
}

static bool labelled(its_parser *parser, its_name name, uint32_t pos) {
    if (strchr(name->text, '.')) return its_error(parser, pos, "'%s' can't be a label, it has a dot", name->text);
    next(parser);
    if (its_is_dot(parser, ".callprototype")) return prototype(parser, name, pos);
    if (its_is_dot(parser, ".branchtargets")) return targets(parser, name, pos, false);
    if (its_is_dot(parser, ".calltargets")) return targets(parser, name, pos, true);
    if (is_kind(parser, ';')) return its_error(parser, tok(parser)->pos, "a label takes no ';'");
    return place_label(parser, name, pos);
}

/* -- line information ---------------------------------------------------------------------------------------------- */

static bool is_word(const its_parser *parser, const char *text) {
    return is_kind(parser, ITS_TOK_WORD) && tok(parser)->size == strlen(text) &&
           memcmp(tok(parser)->text, text, tok(parser)->size) == 0;
}

static bool three(its_parser *parser, uint32_t *file, uint32_t *line, uint32_t *column) {
    return its_parse_u32(parser, file) && its_parse_u32(parser, line) && its_parse_u32(parser, column);
}

static bool location(its_parser *parser) {
    its_loc *loc = its_node_new(parser->module, ITS_NODE_LOC, sizeof *loc, parser->module->origin, tok(parser)->pos);
    next(parser);
    if (!three(parser, &loc->file, &loc->line, &loc->column)) return false;
    its_list_append(parser->list, &loc->node);
    if (!its_accept(parser, ',')) return true;
    loc->inlined = true;
    if (is_word(parser, "function_name")) {
        next(parser);
        if (!is_kind(parser, ITS_TOK_WORD)) return its_unexpected(parser, "a label of .debug_str");
        loc->function = its_token_name(parser);
        next(parser);
        if (its_accept(parser, '+') && !its_parse_u64(parser, &loc->function_offset)) return false;
        if (!its_expect(parser, ',', "','")) return false;
    }
    if (!is_word(parser, "inlined_at")) return its_unexpected(parser, "inlined_at");
    next(parser);
    return three(parser, &loc->at_file, &loc->at_line, &loc->at_column);
}

/* -- bodies -------------------------------------------------------------------------------------------------------- */

static void brace(its_parser *parser, its_node_kind kind) {
    its_list_append(parser->list,
                    its_node_new(parser->module, kind, sizeof(its_node), parser->module->origin, tok(parser)->pos));
    next(parser);
}

static bool directive_in_body(its_parser *parser) {
    if (its_is_dot(parser, ".loc")) return location(parser);
    if (its_is_dot(parser, ".reg")) return its_parse_regs(parser);
    its_decl_head head = {0};
    if (its_is_space(parser)) return its_parse_vars(parser, &head);
    if (its_starts_item(parser) || its_is_dot(parser, ".version") || its_is_dot(parser, ".address_size"))
        return its_error(parser, tok(parser)->pos, "%s belongs to the module and stands outside of functions",
                         its_token_name(parser)->text);
    return its_parse_directive(parser);
}

static bool word_in_body(its_parser *parser, its_symbol *predicate, its_name suffix, uint8_t flags, uint32_t pos) {
    if (!is_kind(parser, ITS_TOK_WORD)) return its_unexpected(parser, "an instruction");
    uint32_t at = tok(parser)->pos;
    char first = *tok(parser)->text;
    its_lex_dots(&parser->lexer);
    its_name name = its_token_name(parser);
    next(parser);
    if (!predicate && is_kind(parser, ':')) return labelled(parser, name, at);
    if (first == '%' || (first >= '0' && first <= '9'))
        return its_error(parser, at, "expected an instruction, found '%s'", name->text);
    return instruction(parser, name, pos, predicate, suffix, flags);
}

static bool statement(its_parser *parser) {
    const its_token *token = tok(parser);
    uint32_t pos = token->pos;
    switch (token->kind) {
    case ITS_TOK_WORD:
        return word_in_body(parser, NULL, NULL, 0, pos);
    case ITS_TOK_DOT:
        return directive_in_body(parser);
    case '@': {
        its_symbol *predicate = NULL;
        its_name suffix = NULL;
        uint8_t flags = 0;
        return guard(parser, &predicate, &suffix, &flags) && word_in_body(parser, predicate, suffix, flags, pos);
    }
    default:
        return its_unexpected(parser, "an instruction, a label, a directive or '}'");
    }
}

static bool unclosed(its_parser *parser) {
    its_error(parser, tok(parser)->pos, "expected '}', found the end of the file");
    its_diag_also(parser->ctx, its_parser_place(parser, its_scope_pos(parser)), "to close this '{'");
    return false;
}

/* From behind the `{` to behind its `}`. */
static bool body(its_parser *parser, uint32_t open) {
    size_t outermost = parser->scopes.count;
    bool ok = true;
    its_scope_open(parser, open);
    for (;;) {
        its_flush_trivia(parser);
        if (is_kind(parser, ITS_TOK_END)) return unclosed(parser);
        if (is_kind(parser, '{')) {
            its_scope_open(parser, tok(parser)->pos);
            brace(parser, ITS_NODE_OPEN);
        } else if (is_kind(parser, '}')) {
            ok &= its_scope_close(parser);
            if (parser->scopes.count == outermost) break;
            brace(parser, ITS_NODE_CLOSE);
        } else if (!statement(parser)) {
            ok = false;
            if (its_too_many_errors(parser)) return false;
            its_recover(parser);
        }
    }
    parser->func->end_pos = tok(parser)->pos;
    next(parser);
    return ok;
}

/* -- functions ----------------------------------------------------------------------------------------------------- */

static const char *linkage_text(uint16_t linkage) {
    return linkage & ITS_SYM_EXTERN    ? ".extern"
           : linkage & ITS_SYM_VISIBLE ? ".visible"
           : linkage & ITS_SYM_WEAK    ? ".weak"
           : linkage & ITS_SYM_COMMON  ? ".common"
                                       : "without linkage";
}

static bool redefined(its_parser *parser, const its_symbol *old, uint32_t pos) {
    its_diag_begin(parser->ctx, ITS_ERROR, its_parser_place(parser, pos), "'%s' is defined twice", old->name->text);
    its_diag_also(parser->ctx, its_symbol_place(old), "first defined here");
    its_diag_hint(parser->ctx, "a name has one definition in a module; remove one or rename it");
    return false;
}

/*
 * A function may be declared several times before its definition. The linkage stays the same, or is said by the first
 * one only: as ptxas wants it.
 */
static bool may_follow(its_parser *parser, const its_symbol *old, uint16_t flags, uint32_t pos) {
    const uint16_t linkages = ITS_SYM_EXTERN | ITS_SYM_VISIBLE | ITS_SYM_WEAK | ITS_SYM_COMMON;
    uint16_t before = old->flags & linkages, now = flags & linkages;
    const char *name = old->name->text;
    if ((old->flags ^ flags) & ITS_SYM_ENTRY)
        its_diag_begin(parser->ctx, ITS_ERROR, its_parser_place(parser, pos),
                       "'%s' can't be an entry in one place and a function in another", name);
    else if (before != now && (now || !(before & (ITS_SYM_VISIBLE | ITS_SYM_WEAK))))
        its_diag_begin(parser->ctx, ITS_ERROR, its_parser_place(parser, pos),
                       "'%s' is %s here and %s elsewhere: it has one linkage", name, linkage_text(now),
                       linkage_text(before));
    else
        return true;
    its_diag_also(parser->ctx, its_symbol_place(old), "declared here as well");
    return false;
}

/* The symbol of the function's name: a new one, or that of an earlier declaration. */
static its_symbol *function_symbol(its_parser *parser, its_name name, uint32_t pos, uint16_t flags) {
    its_symbol *symbol = its_lookup_global(parser, name);
    if (!symbol) {
        its_func *func = parser->func;
        parser->func = NULL; /* the name itself belongs to the module */
        symbol = its_symbol_new(parser, ITS_SYM_FUNC, name, pos);
        parser->func = func;
        symbol->flags = flags;
        its_bind_global(parser, symbol);
        its_module_add_symbol(parser->module, symbol);
        return symbol;
    }
    bool ok = symbol->kind == ITS_SYM_FUNC ? may_follow(parser, symbol, flags, pos) : redefined(parser, symbol, pos);
    return ok ? symbol : NULL;
}

static bool header(its_parser *parser, its_func *func, uint16_t flags) {
    its_node_list directives = {0}, *outer = parser->list;
    parser->list = &directives;
    bool ok = true;
    while (ok && its_is_dot(parser, ".attribute")) ok = its_parse_directive(parser);
    if (ok && is_kind(parser, '(')) ok = parse_params(parser, &func->results, true, true);
    if (ok && !is_kind(parser, ITS_TOK_WORD)) ok = its_unexpected(parser, "the name of the function");
    if (ok) {
        func->node.pos = tok(parser)->pos;
        func->symbol = function_symbol(parser, its_token_name(parser), tok(parser)->pos, flags);
        ok = func->symbol != NULL;
        next(parser);
    }
    if (ok && is_kind(parser, '(')) {
        func->has_params = true;
        ok = parse_params(parser, &func->params, true, false);
    }
    parser->semicolon = false;
    while (ok && !parser->semicolon && is_kind(parser, ITS_TOK_DOT) && !its_starts_item(parser))
        ok = its_is_dot(parser, ".attribute") ? its_unexpected(parser, "attributes in front of the function's name")
                                              : its_parse_directive(parser);
    parser->list = outer;
    func->directives = directives.first;
    for (its_node *node = func->directives; ok && node; node = node->next)
        if (strcmp(((its_directive *)node)->name->text, ".noreturn") == 0) func->symbol->flags |= ITS_SYM_NORETURN;
    return ok;
}

static bool define(its_parser *parser, its_func *func, uint16_t flags) {
    its_symbol *symbol = func->symbol;
    if (symbol->flags & ITS_SYM_DEFINED) return redefined(parser, symbol, func->node.pos);
    symbol->flags |= (uint16_t)(flags | ITS_SYM_DEFINED);
    symbol->pos = func->node.pos;
    symbol->func = func;
    func->has_body = true;
    its_node_list nodes = {0}, *outer = parser->list;
    uint32_t open = tok(parser)->pos;
    parser->list = &nodes;
    next(parser);
    bool ok = body(parser, open);
    parser->list = outer;
    func->first = nodes.first;
    func->last = nodes.last;
    return ok;
}

static bool declared_late(its_parser *parser, const its_func *func) {
    its_error(parser, func->node.pos, "'%s' is declared after its definition", func->symbol->name->text);
    its_diag_also(parser->ctx, its_symbol_place(func->symbol), "defined here");
    its_diag_hint(parser->ctx, "remove this declaration");
    return false;
}

bool its_parse_func(its_parser *parser, uint16_t flags) {
    bool entry = its_is_dot(parser, ".entry");
    if (entry) flags |= ITS_SYM_ENTRY;
    its_func *func =
        its_node_new(parser->module, ITS_NODE_FUNC, sizeof *func, parser->module->origin, tok(parser)->pos);
    uint32_t open = tok(parser)->pos;
    next(parser);
    parser->func = func;
    its_scope_open(parser, open);
    bool ok = header(parser, func, flags);
    if (ok) its_list_append(parser->list, &func->node);
    if (ok && !parser->semicolon && is_kind(parser, '{')) {
        ok = define(parser, func, flags);
    } else if (ok) {
        if (func->symbol->func && func->symbol->func->has_body) ok = declared_late(parser, func);
        if (!func->symbol->func) func->symbol->func = func;
        func->symbol->flags |= flags;
        /* ptxas, too, wants no `;` where the next item begins */
        if (!parser->semicolon && !its_starts_item(parser)) ok = its_expect(parser, ';', "'{' or ';'");
    }
    if (parser->scopes.count > 2 && !ok) /* the body broke off: drop its scopes */
        while (parser->scopes.count > 2) its_scope_drop(parser);
    its_scope_drop(parser);
    parser->func = NULL;
    return ok;
}
