/*
 * Region calls become ordinary calls, checked against the function on the way:
 *
 *     intarsia.call (%r7), unit::f, (%rd5, 7, %p1);
 *
 *     {
 *         .param .b64 arg0; st.param.b64 [arg0], %rd5;
 *         .param .b32 arg1; st.param.b32 [arg1], 7;
 *         .param .b32 arg2; .reg .b32 t2; selp.b32 t2, 1, 0, %p1; st.param.b32 [arg2], t2;
 *         .param .b32 result;
 *         call (result), f, (arg0, arg1, arg2);
 *         ld.param.b32 %r7, [result];
 *     }
 *
 * A function that returns nothing gives the token 0. An abstract operation first becomes the call it stands for
 * (lower.c). From here on the linker knows one kind of call.
 */
#include <stdio.h>
#include <string.h>

#include "base/intern.h"
#include "link/linker.h"
#include "link/lower.h"
#include "link/make.h"
#include "ptx/verify.h"

typedef struct region_call {
    its_linker *linker;
    its_module *out;
    const its_insn *insn;
    its_call_parts parts;
    its_symbol *function; /* in the output */
    const its_func *callee;
    its_node_list list; /* what the call becomes */
    its_operand *args;  /* of the ordinary call */
    bool ok;
} region_call;

/* -- checks: both sides are shown ---------------------------------------------------------------------------------- */

static its_place operand_place(const region_call *call, const its_operand *operand) {
    return its_at(call->insn->node.origin->source, operand->pos);
}

static void fail_at(region_call *call, const its_operand *operand, const its_symbol *formal, const char *message) {
    its_diag_begin(call->linker->ctx, ITS_ERROR, operand_place(call, operand), "%s", message);
    if (formal)
        its_diag_also(call->linker->ctx, its_symbol_place(formal), "declared here");
    else
        its_diag_also(call->linker->ctx, its_symbol_place(call->function), "the function");
    its_diag_hint(call->linker->ctx, "convert the value in the kernel, or change the function's signature");
    call->ok = false;
}

static const char *say(region_call *call, const char *format, ...) ITS_PRINTF(2, 3);
static const char *say(region_call *call, const char *format, ...) {
    va_list args;
    va_start(args, format);
    const char *text = its_arena_vprintf(&call->linker->scratch, format, args);
    va_end(args);
    return text;
}

/* Bytes of an argument: 0 if it takes any size (an immediate, a special register). */
static uint32_t size_of(const region_call *call, const its_operand *operand) {
    if (operand->kind == ITS_OPND_SYM) return call->out->address_size / 8;
    if (operand->kind != ITS_OPND_REG) return 0;
    return its_type_size((its_type)operand->symbol->type) * operand->symbol->vec;
}

static bool is_pred(const its_operand *operand) {
    return operand->kind == ITS_OPND_REG && operand->symbol->type == ITS_TYPE_PRED;
}

/* 8-bit values live in 16-bit registers: PTX has no smaller ones. */
static bool fits(uint32_t have, uint64_t want) {
    return have == want || (have == 2 && want == 1);
}

/* A structure may be passed and returned as one value if it is aligned like one, as a half is. */
static bool is_in_pieces(const its_symbol *formal) {
    return formal->n_dims && formal->align < its_param_bytes(formal);
}

static void check_size(region_call *call, uint32_t index, const its_operand *arg, const its_symbol *formal) {
    uint32_t have = size_of(call, arg);
    uint64_t want = its_param_bytes(formal);
    bool shared_address = arg->kind == ITS_OPND_SYM && want == 4;
    if (have == want && is_in_pieces(formal)) {
        fail_at(call, arg, formal,
                say(call, "argument %u of '%s' has %u bytes, but the parameter is a structure", index + 1,
                    call->function->name->text, have));
        return;
    }
    if (fits(have, want) || shared_address) return;
    its_type from = arg->kind == ITS_OPND_REG ? (its_type)arg->symbol->type : ITS_TYPE_NONE;
    const char *kind = its_type_is_real(from) != its_type_is_real((its_type)formal->type)
                           ? "float against integer of another size: "
                           : "";
    fail_at(call, arg, formal,
            say(call, "%sargument %u of '%s' has %u bytes (%s), but the parameter has %llu (%s)", kind, index + 1,
                call->function->name->text, have, arg->kind == ITS_OPND_REG ? its_type_text(from) : "an address",
                (unsigned long long)want, formal->n_dims ? "an array" : its_type_text((its_type)formal->type)));
}

static void check_immediate(region_call *call, uint32_t index, const its_operand *arg, const its_symbol *formal) {
    uint64_t want = its_param_bytes(formal);
    bool scalar = !formal->n_dims && want && want <= 8 && !(want & (want - 1));
    bool real = arg->kind != ITS_OPND_INT;
    if (scalar && (!real || (want >= 4 && (its_type_is_real((its_type)formal->type) || formal->type == ITS_TYPE_B32 ||
                                           formal->type == ITS_TYPE_B64))))
        if (real || !its_type_is_real((its_type)formal->type)) return;
    fail_at(call, arg, formal,
            say(call, "argument %u of '%s' is %s, but the parameter is %s of %llu bytes", index + 1,
                call->function->name->text, real ? "a float" : "an integer",
                formal->n_dims ? "an array" : its_type_text((its_type)formal->type), (unsigned long long)want));
}

static void check_pred(region_call *call, uint32_t index, const its_operand *arg, const its_symbol *formal) {
    uint64_t want = its_param_bytes(formal);
    if (!its_type_is_real((its_type)formal->type) && !formal->n_dims && want && want <= 8) return;
    fail_at(call, arg, formal,
            say(call, "argument %u of '%s' is a predicate, but the parameter is no integer", index + 1,
                call->function->name->text));
}

static void check_special(region_call *call, uint32_t index, const its_operand *arg, const its_symbol *formal) {
    uint64_t want = its_param_bytes(formal);
    its_sreg sreg = its_sreg_find(arg->name->text);
    bool known = sreg.type != ITS_TYPE_NONE;
    bool read = !known || (sreg.parts == 1 && its_sreg_fits(arg->name, sreg, its_type_of_bytes(want), false));
    if (!formal->n_dims && (want == 4 || want == 8) && read) return;
    fail_at(call, arg, formal,
            say(call, "argument %u of '%s' is %s (%s), but the parameter has %llu bytes (%s)", index + 1,
                call->function->name->text, arg->name->text, known ? its_type_text(sreg.type) : "a special register",
                (unsigned long long)want, formal->n_dims ? "an array" : its_type_text((its_type)formal->type)));
}

static void check_arg(region_call *call, uint32_t index, const its_operand *arg, const its_symbol *formal) {
    switch (arg->kind) {
    case ITS_OPND_REG:
    case ITS_OPND_SYM:
        if (arg->suffix)
            fail_at(call, arg, formal,
                    say(call, "argument %u is a part of a register, %s", index + 1, arg->suffix->text));
        else if (is_pred(arg))
            check_pred(call, index, arg, formal);
        else if (arg->kind == ITS_OPND_SYM && arg->symbol->kind != ITS_SYM_VAR && arg->symbol->kind != ITS_SYM_FUNC)
            fail_at(call, arg, formal, say(call, "argument %u is no value", index + 1));
        else
            check_size(call, index, arg, formal);
        return;
    case ITS_OPND_INT:
    case ITS_OPND_F32:
    case ITS_OPND_F64:
        check_immediate(call, index, arg, formal);
        return;
    case ITS_OPND_SREG:
        check_special(call, index, arg, formal);
        return;
    default:
        fail_at(call, arg, formal, say(call, "argument %u is no value", index + 1));
    }
}

static const its_operand *result_of(const region_call *call) {
    if (!call->parts.n_results) return NULL;
    const its_operand *result = &call->parts.results[0];
    return result->kind == ITS_OPND_SINK ? NULL : result;
}

static void check_result(region_call *call) {
    const its_operand *result = result_of(call);
    if (call->parts.n_results > 1) fail_at(call, &call->parts.results[1], NULL, "a call has at most one result");
    if (!result) return;
    if (result->kind != ITS_OPND_REG || result->suffix || is_pred(result) || size_of(call, result) > 8) {
        fail_at(call, result, NULL, "the result of a region call is a register of 16, 32 or 64 bits, or _");
        return;
    }
    if (!call->callee->results.n) return;
    const its_symbol *formal = call->callee->results.items[0];
    uint64_t want = its_param_bytes(formal);
    if (fits(size_of(call, result), want) && !is_in_pieces(formal)) return;
    if (size_of(call, result) == want) {
        fail_at(call, result, formal, say(call, "'%s' returns a structure", call->function->name->text));
        return;
    }
    fail_at(call, result, formal,
            say(call, "the result register has %u bytes (%s), but '%s' returns %llu", size_of(call, result),
                its_type_text((its_type)result->symbol->type), call->function->name->text, (unsigned long long)want));
}

static void check(region_call *call) {
    const its_params *formals = &call->callee->params;
    if (call->parts.n_args != formals->n) {
        fail_at(call, call->parts.target, NULL,
                say(call, "'%s' takes %u argument%s, but this call has %u", call->function->name->text, formals->n,
                    formals->n == 1 ? "" : "s", call->parts.n_args));
        return;
    }
    for (uint16_t i = 0; i < call->parts.n_args; i++) check_arg(call, i, &call->parts.args[i], formals->items[i]);
    check_result(call);
}

/* -- building ------------------------------------------------------------------------------------------------------ */

static void put(region_call *call, void *node) {
    its_list_append(&call->list, node);
}

static its_insn *new_insn(region_call *call, const char *name, uint16_t count) {
    const its_node *site = &call->insn->node;
    return its_insn_new(call->out, its_intern_text(call->linker->ctx, name), count, site->origin, site->pos);
}

static its_operand of_symbol(its_operand_kind kind, its_symbol *symbol, uint32_t pos) {
    return (its_operand){.kind = (uint8_t)kind, .pos = pos, .symbol = symbol};
}

static its_operand address_of(region_call *call, its_symbol *symbol) {
    return its_address_operand(call->out, of_symbol(ITS_OPND_SYM, symbol, call->insn->node.pos), 0);
}

/* Each call has a block of its own, so all calls share these names. */
static its_name local_name(region_call *call, const char *what, uint32_t index) {
    return its_names_new(call->linker, "", what, index);
}

static its_symbol *new_param(region_call *call, const its_symbol *formal, const char *what, uint32_t index) {
    its_var *var = its_node_new(call->out, ITS_NODE_VAR, sizeof *var, call->insn->node.origin, call->insn->node.pos);
    its_symbol *symbol = ITS_NEW(its_module_arena(call->out), its_symbol);
    *symbol = *formal;
    symbol->name = local_name(call, what, index);
    symbol->flags = (uint16_t)((formal->flags & ITS_SYM_ARRAY) | ITS_SYM_DEFINED | ITS_SYM_IN_FUNC);
    symbol->origin = call->insn->node.origin;
    symbol->pos = call->insn->node.pos;
    symbol->node = &var->node;
    symbol->id = UINT32_MAX; /* numbered by the pass's end */
    var->symbol = symbol;
    put(call, var);
    return symbol;
}

static its_symbol *new_reg(region_call *call, uint64_t size, uint32_t index) {
    const its_node *site = &call->insn->node;
    its_type type = its_type_of_bytes(size < 2 ? 2 : size);
    its_symbol *symbol = its_reg_new(call->out, local_name(call, "$temp", index), type, site->origin, site->pos);
    symbol->id = UINT32_MAX; /* as new_param's */
    put(call, symbol->range);
    return symbol;
}

static its_operand immediate(uint64_t bits) {
    return (its_operand){.kind = ITS_OPND_INT, .bits = bits};
}

static bool is_real_number(const its_operand *operand) {
    return operand->kind == ITS_OPND_F32 || operand->kind == ITS_OPND_F64;
}

/* A register of another type than the parameter, which is one too: .f32 for .u32, say. Bits fit both. */
static bool needs_bits(const its_operand *reg, const its_symbol *formal) {
    return formal->kind == ITS_SYM_REG && reg->kind == ITS_OPND_REG && reg->symbol->type != formal->type;
}

/*
 * A value that st.param can take, or a parameter in a register: predicates, special registers and addresses go through
 * a register, and so does a float where the parameter is one of bits, and a register of another type.
 */
static its_operand as_value(region_call *call, uint32_t index, const its_operand *arg, const its_symbol *formal) {
    uint64_t size = its_param_bytes(formal);
    bool pred = is_pred(arg), real = is_real_number(arg) && formal->kind == ITS_SYM_REG;
    bool through = arg->kind == ITS_OPND_SREG || arg->kind == ITS_OPND_SYM || needs_bits(arg, formal);
    if (!pred && !real && !through) return *arg;
    its_symbol *temp = new_reg(call, size, index);
    its_type type = real ? (size == 4 ? ITS_TYPE_F32 : ITS_TYPE_F64) : (its_type)temp->type;
    char name[16];
    snprintf(name, sizeof name, "%s%s", pred ? "selp" : "mov", its_type_text(type));
    its_insn *insn = new_insn(call, name, pred ? 4 : 2);
    insn->ops[0] = of_symbol(ITS_OPND_REG, temp, arg->pos);
    insn->ops[1] = *arg;
    if (pred) {
        bool negated = arg->flags & ITS_OPND_NOT;
        insn->ops[1] = immediate(!negated);
        insn->ops[2] = immediate(negated);
        insn->ops[3] = *arg;
        insn->ops[3].flags &= (uint8_t)~ITS_OPND_NOT;
    }
    put(call, insn);
    return insn->ops[0];
}

static void pass_arg(region_call *call, uint32_t index, const its_operand *arg, its_symbol *formal) {
    uint64_t size = its_param_bytes(formal);
    its_operand value = as_value(call, index, arg, formal);
    if (formal->kind == ITS_SYM_REG) {
        call->args[index] = value;
        return;
    }
    its_symbol *param = new_param(call, formal, "$arg", index);
    its_type type = is_real_number(arg) ? (size == 4 ? ITS_TYPE_F32 : ITS_TYPE_F64) : its_type_of_bytes(size);
    char name[32];
    snprintf(name, sizeof name, "st.param%s", its_type_text(type));
    its_insn *store = new_insn(call, name, 2);
    store->ops[0] = address_of(call, param);
    store->ops[1] = value;
    put(call, store);
    call->args[index] = of_symbol(ITS_OPND_SYM, param, arg->pos);
}

static its_operand group(its_operand *list, uint16_t count, uint32_t pos) {
    return (its_operand){.kind = ITS_OPND_GROUP, .count = count, .pos = pos, .list = list};
}

static void guard_like(its_insn *insn, const its_insn *like) {
    insn->guard = like->guard;
    insn->guard_suffix = like->guard_suffix;
    insn->node.flags = like->node.flags & ITS_INSN_GUARD_NOT;
}

static void put_call(region_call *call, const its_operand *result) {
    uint16_t n = 0;
    its_insn *insn = new_insn(call, "call", 3);
    uint32_t pos = call->parts.target->pos;
    its_operand *results = its_arena_alloc(its_module_arena(call->out), sizeof *results);
    if (result) *results = *result;
    if (result) insn->ops[n++] = group(results, 1, pos);
    insn->ops[n++] = of_symbol(ITS_OPND_SYM, call->function, pos);
    if (call->parts.n_args) insn->ops[n++] = group(call->args, call->parts.n_args, pos);
    insn->node.count = n;
    guard_like(insn, call->insn);
    insn->node.flags |= ITS_INSN_REGION;
    put(call, insn);
}

static void put_move(region_call *call, const its_operand *to, its_operand from, uint64_t size) {
    char name[16];
    snprintf(name, sizeof name, "mov%s", its_type_text(its_type_of_bytes(size < 2 ? 2 : size)));
    its_insn *insn = new_insn(call, name, 2);
    insn->ops[0] = *to;
    insn->ops[1] = from;
    guard_like(insn, call->insn);
    put(call, insn);
}

/* Calls a function that returns a register, and moves that into one of another type if need be. */
static void call_for_register(region_call *call, const its_symbol *formal) {
    const its_operand *result = result_of(call);
    its_operand sink = {.kind = ITS_OPND_SINK}, to = result ? *result : sink;
    bool through = needs_bits(&to, formal);
    uint64_t size = its_param_bytes(formal);
    if (through) to = of_symbol(ITS_OPND_REG, new_reg(call, size, call->parts.n_args), to.pos);
    put_call(call, &to);
    if (through) put_move(call, result, to, size);
}

/* The result register gets the token 0, or what the function returned. ptxas takes no guard on the load of a result. */
static void put_result(region_call *call, its_symbol *param) {
    const its_operand *result = result_of(call);
    char name[24];
    if (!result) return;
    if (!param) {
        put_move(call, result, immediate(0), size_of(call, result));
        return;
    }
    bool guarded = call->insn->guard != NULL;
    uint64_t size = its_param_bytes(param);
    its_operand to = guarded ? of_symbol(ITS_OPND_REG, new_reg(call, size, call->parts.n_args), result->pos) : *result;
    snprintf(name, sizeof name, "ld.param%s", its_type_text(its_type_of_bytes(size)));
    its_insn *load = new_insn(call, name, 2);
    load->ops[0] = to;
    load->ops[1] = address_of(call, param);
    put(call, load);
    if (guarded) put_move(call, result, to, size);
}

static void build(region_call *call) {
    const its_node *site = &call->insn->node;
    const its_params *formals = &call->callee->params, *results = &call->callee->results;
    call->args = ITS_NEW_ARRAY(its_module_arena(call->out), its_operand, formals->n);
    put(call, its_node_new(call->out, ITS_NODE_OPEN, sizeof(its_node), site->origin, site->pos));
    for (uint32_t i = 0; i < formals->n; i++) pass_arg(call, i, &call->parts.args[i], formals->items[i]);
    its_symbol *formal = results->n ? results->items[0] : NULL;
    its_symbol *param = formal && formal->kind == ITS_SYM_VAR ? new_param(call, formal, "$result", 0) : NULL;
    its_operand result = of_symbol(ITS_OPND_SYM, param, site->pos);
    if (formal && !param)
        call_for_register(call, formal);
    else
        put_call(call, formal ? &result : NULL), put_result(call, param);
    put(call, its_node_new(call->out, ITS_NODE_CLOSE, sizeof(its_node), site->origin, site->pos));
}

/* -- the pass ------------------------------------------------------------------------------------------------------ */

static const its_operand *region_operand(const its_insn *insn) {
    for (uint16_t i = 0; i < insn->node.count; i++)
        if (insn->ops[i].kind == ITS_OPND_REGION) return &insn->ops[i];
    return NULL;
}

static bool is_abstract(its_linker *linker, const its_node *node) {
    return node->kind == ITS_NODE_INSN &&
           its_mnemonic_of(linker->ctx, ((const its_insn *)node)->name)->op == ITS_OP_INTARSIA;
}

void its_link_no_operation(its_linker *linker, const its_insn *insn) {
    its_diag_begin(linker->ctx, ITS_ERROR, its_node_place(&insn->node), "'%s' is no operation of Intarsia",
                   insn->name->text);
    its_diag_hint(linker->ctx, "a region call reads: intarsia.call (%%r1), unit::function, (%%rd1, %%r2);");
}

static bool convert(its_linker *linker, its_insn *insn, its_node_list *list) {
    const its_operand *operand = region_operand(insn);
    bool abstract = its_lower_applies(linker, insn);
    if (!operand) {
        its_link_no_operation(linker, insn);
        return false;
    }
    its_symbol *target = its_link_region_target(linker, insn, operand);
    if (!target) return false;
    region_call call = {.linker = linker, .out = linker->out, .insn = insn, .parts = its_call_take(insn), .ok = true};
    if (abstract && !its_lower_arguments(linker, insn, &call.parts)) return false;
    call.function = target->pass;
    call.callee = target->func;
    check(&call);
    if (call.ok) build(&call);
    *list = call.list;
    return call.ok;
}

/* Locals made above get their numbers: the function's numbers go on where they ended. */
static void number_locals(its_link_func *func, its_node *first) {
    for (its_node *node = first; node; node = node->next) {
        its_symbol *symbol = NULL;
        if (node->kind == ITS_NODE_REGS) symbol = ((its_regs *)node)->symbol;
        if (node->kind == ITS_NODE_VAR) symbol = ((its_var *)node)->symbol;
        if (symbol) symbol->id = node->kind == ITS_NODE_REGS ? func->n_regs++ : func->n_vars++;
    }
    func->func->n_regs = func->n_regs;
}

static bool convert_func(its_linker *linker, its_link_func *func) {
    bool ok = true;
    for (its_node **at = &func->func->first; *at;) {
        its_node *node = *at;
        its_node_list list = {0};
        if (is_abstract(linker, node)) ok &= convert(linker, (its_insn *)node, &list);
        if (list.first) {
            number_locals(func, list.first);
            list.last->next = node->next;
            *at = list.first;
            at = &list.last->next;
            if (!*at) func->func->last = list.last;
        } else {
            at = &node->next;
        }
    }
    return ok;
}

/*
 * Requires: its_link_merge.
 * Ensures: no region call is left; each became a call whose arguments fit, marked ITS_INSN_REGION.
 */
bool its_link_regions(its_linker *linker) {
    bool ok = true;
    for (size_t i = 0; i < linker->funcs.count; i++) ok &= convert_func(linker, linker->funcs.items[i]);
    return ok;
}
