/*
 * Checks what the parser leaves open. A module is walked once; every instruction is held against the forms of
 * ptx_ops.def, and the few that no pattern can describe (mov, call) are looked at by code.
 */
#include "ptx/verify.h"

#include <string.h>

/* -- reporting ----------------------------------------------------------------------------------------------------- */

bool its_verify_error(its_verifier *v, const its_node *node, uint32_t pos, const char *format, ...) {
    if (v->quiet) return false;
    va_list args;
    va_start(args, format);
    const char *message = its_arena_vprintf(v->scratch, format, args);
    va_end(args);
    its_place place = node ? its_node_place(node) : its_at(v->module->source, pos);
    place.offset = pos;
    its_diag_begin(v->ctx, ITS_ERROR, place, "%s", message);
    if (node) its_diag_also_inlined(v->ctx, node);
    v->errors++;
    return false;
}

uint32_t its_verify_name_pos(const its_insn *insn, const its_mnemonic *m, unsigned mod) {
    const its_source *source = insn->node.origin->source;
    uint32_t pos = insn->node.pos;
    if (pos >= source->size) return pos;
    const char *text = source->text + pos;
    size_t left = source->size - pos, limit = insn->name->size + 4096; /* a guard and blanks lie in between at most */
    const char *found = memmem(text, left < limit ? left : limit, insn->name->text, insn->name->size);
    if (!found) return pos;
    size_t skip = strlen(its_op_text((its_op)m->op));
    for (unsigned i = 0; i < mod && i < m->n_mods; i++) skip += m->mod_names[i]->size;
    return pos + (uint32_t)(found - text) + (mod == UINT32_MAX ? 0 : (uint32_t)skip);
}

/* -- names --------------------------------------------------------------------------------------------------------- */

/* Reports a type that no form has in this place; false if another type would be no better. */
static bool report_type(its_verifier *v, const its_insn *insn, const its_mnemonic *m, unsigned index) {
    if (its_mod_class_of((its_mod)m->mods[index]) != ITS_MODCLASS_TYPE) return false;
    const char *types = its_form_types(v->scratch, m, index);
    if (!*types) return false;
    its_verify_error(v, &insn->node, its_verify_name_pos(insn, m, index), "'%s' takes no %s here, but %s",
                     its_op_text((its_op)m->op), m->mod_names[index]->text, types);
    return true;
}

/* The operands of the first form with all modifiers, or NULL; looked up once for each name. */
static const char *operands_of(const its_mnemonic *m) {
    its_mnemonic *cached = (its_mnemonic *)m; /* lives in the context's arena; only this remembers into it */
    if (!cached->form_known) {
        cached->form = its_form_find(m, NULL);
        for (const char *form = cached->form; form && !cached->gated; form = its_form_find(m, form))
            cached->gated = its_form_is_gated(m, form);
        cached->form_known = true;
    }
    return cached->form;
}

/* Says why no form of the opcode has room for all modifiers. */
static void report_no_form(its_verifier *v, const its_insn *insn, const its_mnemonic *m) {
    int stranger = its_form_stranger(m);
    if (stranger >= 0) {
        if (report_type(v, insn, m, (unsigned)stranger)) return;
        its_verify_error(v, &insn->node, its_verify_name_pos(insn, m, (unsigned)stranger), "'%s' has no form with %s",
                         its_op_text((its_op)m->op), m->mod_names[stranger]->text);
        return;
    }
    uint32_t pos = its_verify_name_pos(insn, m, UINT32_MAX);
    const char *missing = its_form_missing(v->scratch, m);
    if (*missing) {
        its_verify_error(v, &insn->node, pos, "'%s' lacks %s", insn->name->text, missing);
        return;
    }
    if (operands_of(m)) {
        its_verify_ended(v, insn, m, operands_of(m));
        return;
    }
    for (unsigned i = 0; i < m->n_mods; i++)
        if (report_type(v, insn, m, i)) return;
    unsigned first, second;
    if (its_form_conflict(m, &first, &second)) {
        its_verify_error(v, &insn->node, its_verify_name_pos(insn, m, second), "'%s' has no form with both %s and %s",
                         its_op_text((its_op)m->op), m->mod_names[first]->text, m->mod_names[second]->text);
        return;
    }
    its_verify_error(v, &insn->node, pos, "the modifiers of '%s' don't go together", insn->name->text);
}

/* The first form that the version and target haven't left behind, or the next one after `form`; NULL if none is left.
 */
static const char *living_form(its_verifier *v, const its_mnemonic *m, const char *form) {
    form = form ? its_form_find(m, form) : operands_of(m);
    while (form && m->gated && its_since_ended(v, m, form)) form = its_form_find(m, form);
    return form;
}

static void report_count(its_verifier *v, const its_insn *insn, const its_mnemonic *m) {
    its_count_range all = {UINT32_MAX, 0};
    for (const char *form = living_form(v, m, NULL); form; form = living_form(v, m, form)) {
        its_count_range range = its_form_counts(m, form);
        if (range.least < all.least) all.least = range.least;
        if (range.most > all.most) all.most = range.most;
    }
    unsigned count = insn->node.count;
    const char *wanted = all.least == all.most ? its_arena_printf(v->scratch, "%u", all.least)
                                               : its_arena_printf(v->scratch, "%u to %u", all.least, all.most);
    uint32_t pos =
        count > all.most && all.most < count ? insn->ops[all.most].pos : its_verify_name_pos(insn, m, UINT32_MAX);
    its_verify_error(v, &insn->node, pos, "'%s' has %u operand%s, it takes %s", insn->name->text, count,
                     count == 1 ? "" : "s", wanted);
}

/* True if there is a form with all modifiers; its operands may be wrong nevertheless. */
static bool check_form(its_verifier *v, const its_insn *insn, const its_mnemonic *m) {
    const char *form = living_form(v, m, NULL);
    if (!form) {
        if (v->version <= ITS_VERIFY_NEWEST) report_no_form(v, insn, m);
        return false;
    }
    for (; form; form = living_form(v, m, form)) {
        its_count_range range = its_form_counts(m, form);
        if (insn->node.count >= range.least && insn->node.count <= range.most) break;
    }
    if (form)
        its_verify_operands(v, insn, m, form);
    else
        report_count(v, insn, m);
    its_verify_since(v, insn, m, form);
    return true;
}

/* -- instructions -------------------------------------------------------------------------------------------------- */

static void check_guard(its_verifier *v, const its_insn *insn) {
    if (!insn->guard || insn->guard->type == ITS_TYPE_PRED) return;
    its_verify_error(v, &insn->node, insn->node.pos, "'%s' is %s, a guard is a predicate", insn->guard->name->text,
                     its_type_text((its_type)insn->guard->type));
}

/* Cache policies are for what goes through the L2: global memory, also as generic. */
static void check_cache_policy(its_verifier *v, const its_insn *insn, const its_mnemonic *m) {
    bool atomic = m->op == ITS_OP_ATOM || m->op == ITS_OP_RED;
    if (!atomic || !its_mnemonic_has(m, ITS_MOD_L2_CACHE_HINT) || m->space != ITS_SPACE_SHARED) return;
    its_verify_error(v, &insn->node, its_verify_name_pos(insn, m, UINT32_MAX), "%s memory has no L2 cache policy",
                     its_space_text((its_space)m->space));
}

/* Bytes that a load or store may access at once: global memory gives more than any other, but only in large pieces. */
static unsigned most_at_once(const its_mnemonic *m) {
    its_type type = its_mnemonic_type(m, 0);
    bool global = m->op != ITS_OP_LDU && !its_mnemonic_has(m, ITS_MOD_ASYNC) &&
                  (m->space == ITS_SPACE_GLOBAL || m->space == ITS_SPACE_NONE);
    return global && its_type_size(type) >= 4 && type != ITS_TYPE_B128 ? 2 * ITS_NARROW_ACCESS : ITS_NARROW_ACCESS;
}

/* What a form can't say about loads and stores: parameters that are written or read the wrong way, sizes. */
static void check_access(its_verifier *v, const its_insn *insn, const its_mnemonic *m) {
    check_cache_policy(v, insn, m);
    if (m->op != ITS_OP_LD && m->op != ITS_OP_LDU && m->op != ITS_OP_ST) return;
    uint32_t size = its_type_size(its_mnemonic_type(m, 0)) * m->vec;
    unsigned most = most_at_once(m);
    if (size > most) {
        its_verify_error(v, &insn->node, its_verify_name_pos(insn, m, UINT32_MAX),
                         "'%s' accesses %u bits at once, %u are the most", insn->name->text, size * 8, most * 8);
        return;
    }
    its_verify_since_access(v, insn, m, size);
    unsigned at = m->op == ITS_OP_ST ? 0 : 1;
    if (insn->node.count <= at || insn->ops[at].kind != ITS_OPND_ADDR) return;
    const its_operand *base = &insn->ops[at].list[0];
    if (base->kind != ITS_OPND_SYM || base->symbol->kind != ITS_SYM_VAR) return;
    const char *name = base->symbol->name->text;
    if (m->op == ITS_OP_LD && base->symbol->flags & ITS_SYM_RESULT)
        its_verify_error(v, &insn->node, base->pos, "'%s' is a result of this function and can't be read", name);
    else if (m->op == ITS_OP_ST && base->symbol->flags & ITS_SYM_PARAM)
        its_verify_error(v, &insn->node, base->pos, "'%s' is a parameter of this function and can't be written", name);
    else if (m->space == ITS_SPACE_NONE && base->symbol->space == ITS_SPACE_PARAM)
        its_verify_error(v, &insn->node, base->pos, "'%s' is in .param, '%s' must say so", name, insn->name->text);
}

/* Numbers of barriers and of threads, where they are constants. */
static void check_barrier(its_verifier *v, const its_insn *insn, const its_mnemonic *m) {
    if ((m->op != ITS_OP_BAR && m->op != ITS_OP_BARRIER) || its_mnemonic_has(m, ITS_MOD_WARP)) return;
    unsigned at = its_mnemonic_has(m, ITS_MOD_RED) ? 1 : 0;
    if (insn->node.count <= at) return;
    const its_operand *barrier = &insn->ops[at], *threads = &insn->ops[at + 1];
    if (barrier->kind == ITS_OPND_INT && barrier->bits > 15)
        its_verify_error(v, &insn->node, barrier->pos, "there are barriers 0 to 15 only");
    bool counted = insn->node.count > at + 1 + (at ? 1u : 0u);
    if (!counted || threads->kind != ITS_OPND_INT) return;
    if (threads->bits % 32)
        its_verify_error(v, &insn->node, threads->pos, "a barrier takes whole warps: a multiple of 32 threads");
    else if (threads->bits == 0 && its_mnemonic_has(m, ITS_MOD_ARRIVE))
        its_verify_error(v, &insn->node, threads->pos, "'%s' needs a number of threads above zero", insn->name->text);
}

typedef struct special_search {
    its_verifier *v;
    const its_insn *insn;
} special_search;

/* An undeclared name that starts with % may be a special register of a later PTX. */
static void check_special(its_operand *operand, void *user) {
    special_search *search = user;
    its_verifier *v = search->v;
    if (operand->kind != ITS_OPND_SREG) return;
    its_sreg sreg = its_sreg_find(operand->name->text);
    if (sreg.type != ITS_TYPE_NONE)
        its_since_error(v, &search->insn->node, operand->pos, operand->name->text, sreg.since);
    else if (v->version <= ITS_VERIFY_NEWEST)
        its_verify_error(v, &search->insn->node, operand->pos,
                         "'%s' is not declared, and there is no such special register", operand->name->text);
}

static void check_specials(its_verifier *v, const its_insn *insn) {
    special_search search = {v, insn};
    its_node_visit((its_node *)&insn->node, check_special, &search); /* only looks */
}

static void check_insn(its_verifier *v, const its_insn *insn) {
    check_guard(v, insn);
    check_specials(v, insn);
    const its_mnemonic *m = its_mnemonic_of(v->ctx, insn->name);
    if (m->op == ITS_OP_CALL && m->unknown_mod) its_verify_call(v, insn, m); /* whatever it adds, it is a call */
    if (m->op == ITS_OP_UNKNOWN || m->unknown_mod || !*its_op_pattern((its_op)m->op)) return;
    if (check_form(v, insn, m)) check_access(v, insn, m);
    check_barrier(v, insn, m);
    if (m->op == ITS_OP_MOV) its_verify_mov(v, insn, m);
    if (m->op == ITS_OP_CALL) its_verify_call(v, insn, m);
}

/* -- the walk ------------------------------------------------------------------------------------------------------ */

static void check_targets(its_verifier *v, const its_targets *targets) {
    for (uint16_t i = 0; i < targets->node.count; i++) {
        const its_operand *operand = &targets->ops[i];
        if (operand->kind != ITS_OPND_SYM) continue;
        if (operand->symbol->kind == (targets->calls ? ITS_SYM_FUNC : ITS_SYM_LABEL)) continue;
        if (!targets->calls && operand->symbol->kind == ITS_SYM_TARGETS) continue;
        its_verify_error(v, &targets->node, operand->pos, "'%s' is no %s", operand->symbol->name->text,
                         targets->calls ? "function" : "label");
    }
}

static void check_in_body(its_verifier *v, const its_node *node) {
    switch (node->kind) {
    case ITS_NODE_INSN:
        check_insn(v, (const its_insn *)node);
        break;
    case ITS_NODE_VAR:
        its_verify_var(v, (const its_var *)node);
        break;
    case ITS_NODE_REGS:
        its_verify_regs(v, (const its_regs *)node);
        break;
    case ITS_NODE_TARGETS:
        check_targets(v, (const its_targets *)node);
        break;
    case ITS_NODE_PROTO:
        its_verify_proto(v, (const its_proto *)node);
        break;
    case ITS_NODE_DIRECTIVE:
        its_verify_directive(v, (const its_directive *)node);
        break;
    default:
        break;
    }
}

static void check_function(its_verifier *v, const its_func *func) {
    its_verify_function(v, func);
    v->func = func;
    for (const its_node *node = func->first; node; node = node->next) check_in_body(v, node);
    v->func = NULL;
}

static void check_module(its_verifier *v) {
    its_verify_header(v);
    for (const its_node *node = v->module->first; node; node = node->next) {
        if (node->kind == ITS_NODE_VAR) its_verify_var(v, (const its_var *)node);
        if (node->kind == ITS_NODE_ALIAS) its_verify_alias(v, (const its_alias *)node);
        if (node->kind == ITS_NODE_FUNC) check_function(v, (const its_func *)node);
        if (node->kind == ITS_NODE_DIRECTIVE) its_verify_directive(v, (const its_directive *)node);
    }
}

its_status its_ptx_verify(const its_module *module) {
    its_context *ctx = module->ctx;
    its_arena scratch;
    its_arena_init(&scratch, ctx);
    its_guard guard;
    if (its_guard_enter(ctx, &guard)) {
        its_arena_free(&scratch);
        return its_guard_failed(ctx, &guard);
    }
    its_verifier v = {.ctx = ctx, .module = module, .scratch = &scratch};
    v.version = module->version_major * 10 + module->version_minor;
    its_since_target(&v);
    check_module(&v);
    its_arena_free(&scratch);
    its_guard_leave(ctx, &guard);
    return v.errors ? ITS_ERR_INPUT : ITS_OK;
}
