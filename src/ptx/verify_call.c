/*
 * Calls against the functions they name: the parser has resolved the callee, so results and arguments can be counted
 * and their sizes, and for register parameters their types, compared one by one.
 *
 *     call (results), function, (arguments);
 *     call (results), %register, (arguments), prototype or target list;
 */
#include "ptx/verify.h"

typedef struct call_parts {
    const its_operand *results, *target, *arguments, *shape; /* NULL where absent */
} call_parts;

static call_parts split(const its_insn *insn) {
    call_parts parts = {0};
    const its_operand *op = insn->ops, *end = op + insn->node.count;
    if (op < end && op->kind == ITS_OPND_GROUP) parts.results = op++;
    if (op < end) parts.target = op++;
    if (op < end && op->kind == ITS_OPND_GROUP) parts.arguments = op++;
    if (op < end) parts.shape = op++;
    return parts;
}

/* What a callee takes: from its declaration, or from a .callprototype. */
typedef struct signature {
    const its_params *results, *params;
    its_place place; /* of the declaration */
    const char *name;
} signature;

static uint32_t alignment_of(const its_symbol *symbol) {
    if (symbol->align) return symbol->align;
    return its_type_size((its_type)symbol->type) * symbol->vec;
}

/* Adds where the parameter is declared to the error just made. */
static bool with_formal(its_verifier *v, const its_symbol *formal) {
    if (!v->quiet) its_diag_also(v->ctx, its_symbol_place(formal), "the parameter is declared here");
    return false;
}

static bool check_variable(its_verifier *v, const its_insn *insn, const its_operand *argument,
                           const its_symbol *formal) {
    const its_symbol *actual = argument->symbol;
    const char *name = actual->name->text;
    if (actual->kind == ITS_SYM_FUNC) return true;
    if (actual->space != ITS_SPACE_PARAM || actual->kind != ITS_SYM_VAR)
        return its_verify_error(v, &insn->node, argument->pos,
                                "'%s' is no .param variable, and an argument must be one", name);
    if (actual->flags & (ITS_SYM_PARAM | ITS_SYM_RESULT))
        return its_verify_error(v, &insn->node, argument->pos,
                                "'%s' is a parameter of this function and can't be handed on as it is", name);
    if (formal->space != ITS_SPACE_PARAM || formal->flags & ITS_SYM_UNSIZED || !formal->size || !actual->size)
        return true;
    if (actual->size != formal->size || (actual->flags & ITS_SYM_ARRAY) != (formal->flags & ITS_SYM_ARRAY)) {
        its_verify_error(v, &insn->node, argument->pos, "'%s' is %s of %llu bytes, '%s' takes %s of %llu", name,
                         actual->flags & ITS_SYM_ARRAY ? "an array" : "one value", (unsigned long long)actual->size,
                         formal->name->text, formal->flags & ITS_SYM_ARRAY ? "an array" : "one value",
                         (unsigned long long)formal->size);
        return with_formal(v, formal);
    }
    if (alignment_of(actual) == alignment_of(formal)) return true;
    its_verify_error(v, &insn->node, argument->pos, "'%s' is aligned to %u bytes, '%s' to %u", name,
                     alignment_of(actual), formal->name->text, alignment_of(formal));
    return with_formal(v, formal);
}

static bool check_register(its_verifier *v, const its_insn *insn, const its_operand *argument,
                           const its_symbol *formal) {
    its_type have = its_operand_type(argument), want = (its_type)formal->type;
    if (argument->suffix || argument->flags & (ITS_OPND_NOT | ITS_OPND_NEG))
        return its_verify_error(v, &insn->node, argument->pos, "a call passes whole registers as they are");
    if (formal->flags & ITS_SYM_ARRAY || have == ITS_TYPE_NONE || want == ITS_TYPE_NONE) return true;
    bool in_register = formal->space == ITS_SPACE_REG;
    bool fits = in_register ? its_type_fits(want, have, false)
                            : its_type_size(have) == its_type_size(want) || its_type_size(want) < 2;
    if (fits) return true;
    its_verify_error(v, &insn->node, argument->pos, "'%s' is %s (%u bits), '%s' takes %s (%u bits)",
                     argument->symbol->name->text, its_type_text(have), its_type_size(have) * 8, formal->name->text,
                     its_type_text(want), its_type_size(want) * 8);
    return with_formal(v, formal);
}

/* A float for bits or a float, an integer for bits or an integer, whatever their sizes. */
static bool check_literal(its_verifier *v, const its_insn *insn, const its_operand *argument,
                          const its_symbol *formal) {
    its_type_kind want = its_type_kind_of((its_type)formal->type);
    bool real = argument->kind != ITS_OPND_INT;
    if (formal->flags & ITS_SYM_ARRAY || want != (real ? ITS_KIND_INT : ITS_KIND_FLOAT)) return true;
    its_verify_error(v, &insn->node, argument->pos, "this is %s number, '%s' takes %s",
                     real ? "a floating-point" : "an integer", formal->name->text,
                     its_type_text((its_type)formal->type));
    return with_formal(v, formal);
}

static void check_argument(its_verifier *v, const its_insn *insn, const its_operand *argument,
                           const its_symbol *formal) {
    if (argument->kind == ITS_OPND_SYM)
        check_variable(v, insn, argument, formal);
    else if (argument->kind == ITS_OPND_REG)
        check_register(v, insn, argument, formal);
    else if (argument->kind == ITS_OPND_INT || argument->kind == ITS_OPND_F32 || argument->kind == ITS_OPND_F64)
        check_literal(v, insn, argument, formal);
    else if (formal->space == ITS_SPACE_REG && argument->kind != ITS_OPND_SINK &&
             !its_verify_value(v, insn, argument, (its_type)formal->type, 0))
        with_formal(v, formal);
}

/* `what` is "result" or "argument". */
static void check_list(its_verifier *v, const its_insn *insn, const its_operand *group, const its_params *formals,
                       const signature *callee, const char *what) {
    unsigned count = group ? group->count : 0;
    if (count != formals->n) {
        uint32_t pos = !group ? insn->node.pos : count > formals->n ? group->list[formals->n].pos : group->pos;
        its_verify_error(v, &insn->node, pos, "%u %s%s given, '%s' has %u", count, what, count == 1 ? "" : "s",
                         callee->name, formals->n);
        its_diag_also(v->ctx, callee->place, "declared here");
        return;
    }
    for (unsigned i = 0; i < count; i++) check_argument(v, insn, &group->list[i], formals->items[i]);
}

/* A function may be an argument, but not take a result. */
static void check_results(its_verifier *v, const its_insn *insn, const its_operand *group) {
    for (unsigned i = 0; group && i < group->count; i++)
        if (group->list[i].kind == ITS_OPND_SYM && group->list[i].symbol->kind == ITS_SYM_FUNC)
            its_verify_error(v, &insn->node, group->list[i].pos, "'%s' is a function and can't take a result",
                             group->list[i].symbol->name->text);
}

static void check_against(its_verifier *v, const its_insn *insn, const call_parts *parts, const signature *callee) {
    check_list(v, insn, parts->results, callee->results, callee, "result");
    check_results(v, insn, parts->results);
    check_list(v, insn, parts->arguments, callee->params, callee, "argument");
}

static void check_direct(its_verifier *v, const its_insn *insn, const call_parts *parts) {
    its_symbol *symbol = its_symbol_final(parts->target->symbol);
    const its_func *func = symbol->func;
    if (symbol->flags & ITS_SYM_ENTRY) {
        its_verify_error(v, &insn->node, parts->target->pos, "'%s' is an entry and can't be called",
                         parts->target->symbol->name->text);
        return;
    }
    if (parts->shape) {
        its_verify_error(v, &insn->node, parts->shape->pos, "a prototype is for calls through a register only");
        return;
    }
    if (!func) return;
    signature callee = {&func->results, &func->params, its_symbol_place(symbol), symbol->name->text};
    check_against(v, insn, parts, &callee);
}

static void check_targets(its_verifier *v, const its_insn *insn, const call_parts *parts, const its_targets *targets) {
    for (uint16_t i = 0; i < targets->node.count; i++) {
        if (targets->ops[i].kind != ITS_OPND_SYM || targets->ops[i].symbol->kind != ITS_SYM_FUNC) continue;
        its_symbol *symbol = its_symbol_final(targets->ops[i].symbol);
        if (!symbol->func) continue;
        signature callee = {&symbol->func->results, &symbol->func->params, its_symbol_place(symbol),
                            symbol->name->text};
        check_against(v, insn, parts, &callee);
    }
}

static void check_indirect(its_verifier *v, const its_insn *insn, const call_parts *parts) {
    const its_operand *shape = parts->shape;
    if (!shape || shape->kind != ITS_OPND_SYM ||
        (shape->symbol->kind != ITS_SYM_PROTO && shape->symbol->kind != ITS_SYM_TARGETS)) {
        its_verify_error(v, &insn->node, shape ? shape->pos : parts->target->pos,
                         "a call through a register needs a prototype or a list of targets");
        its_diag_hint(v->ctx, "declare one with 'P: .callprototype ...;' and name it last");
        return;
    }
    if (shape->symbol->kind == ITS_SYM_PROTO) {
        const its_proto *proto = (const its_proto *)shape->symbol->node;
        signature callee = {&proto->results, &proto->params, its_symbol_place(shape->symbol),
                            shape->symbol->name->text};
        check_against(v, insn, parts, &callee);
    } else {
        check_targets(v, insn, parts, (const its_targets *)shape->symbol->node);
    }
}

void its_verify_call(its_verifier *v, const its_insn *insn, const its_mnemonic *m) {
    (void)m;
    call_parts parts = split(insn);
    if (parts.target && parts.target->kind == ITS_OPND_SYM && parts.target->symbol->kind == ITS_SYM_FUNC) {
        check_direct(v, insn, &parts);
    } else if (parts.target && parts.target->kind == ITS_OPND_REG) {
        check_indirect(v, insn, &parts);
    } else {
        uint32_t pos = parts.target ? parts.target->pos : insn->node.pos;
        its_verify_error(v, &insn->node, pos, "'%s' takes a function or a register that holds one's address",
                         insn->name->text);
    }
}
