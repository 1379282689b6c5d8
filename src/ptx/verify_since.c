/* What an instruction needs of .version and .target, against what the module says. */
#include <stdlib.h>
#include <string.h>

#include "ptx/verify.h"

#define ANY .specific = 0
#define SPECIFIC .specific = 'f'
#define SPECIFIC_TO(sm_) .specific = 'f', .last = sm_

static const its_since op_since[ITS_OP_COUNT] = {
#define ITS_SINCE_OP(id, version_, sm_, kind) [ITS_OP_##id] = {.version = version_, .sm = sm_, kind},
#include "ptx/ptx_since.def"
};

static const its_since wide_since =
#define ITS_SINCE_WIDE(version_, sm_, kind) {.version = version_, .sm = sm_, kind};
#include "ptx/ptx_since.def"

    static const its_since mod_since[ITS_MOD_COUNT] = {
#define ITS_SINCE_MOD(id, version_, sm_, kind) [ITS_MOD_##id] = {.version = version_, .sm = sm_, kind},
#include "ptx/ptx_since.def"
};

/* What a newer version than the tables describe has done about targets, nobody knows here. */
static bool is_past(const its_verifier *v, its_since need) {
    return need.last && v->sm > need.last && v->version <= ITS_VERIFY_NEWEST;
}

static bool has_suffix(const its_verifier *v, its_since need) {
    return need.specific ? v->suffix == 'a' || v->suffix == need.specific : true;
}

static bool is_enough(const its_verifier *v, its_since need) {
    if (v->version < need.version) return false;
    return !v->sm || (v->sm >= need.sm && has_suffix(v, need) && !is_past(v, need));
}

/* "sm_90a", "sm_80 or higher", "sm_100a to sm_110a", as far as it is one */
static const char *targets_text(const its_verifier *v, its_since need) {
    if (!need.specific) return its_arena_printf(v->scratch, "sm_%u or higher", need.sm);
    if (need.last == need.sm) return its_arena_printf(v->scratch, "sm_%ua", need.sm);
    if (need.last)
        return its_arena_printf(v->scratch, "sm_%ua, or another up to sm_%u that is for one architecture", need.sm,
                                need.last);
    return its_arena_printf(v->scratch, "sm_%ua, or another that is for one architecture", need.sm);
}

/* Reports what is known to be missing: `what`, in quotes as it shall be shown. */
static bool report(its_verifier *v, const its_node *node, uint32_t pos, const char *what, its_since need) {
    const its_module *module = v->module;
    bool version = v->version < need.version;
    if (v->quiet) return false;
    if (version)
        its_verify_error(v, node, pos, "%s needs .version %u.%u, this is %u.%u", what, need.version / 10,
                         need.version % 10, module->version_major, module->version_minor);
    else
        its_verify_error(v, node, pos, "%s needs .target %s, this is %s", what, targets_text(v, need),
                         module->targets[0]->text);
    uint32_t at = version ? module->version_pos : module->target_pos;
    its_diag_also(v->ctx, its_at(module->source, at),
                  version ? "the version is given here" : "the target is given here");
    return false;
}

bool its_since_error(its_verifier *v, const its_node *node, uint32_t pos, const char *what, its_since need) {
    return is_enough(v, need) || report(v, node, pos, its_arena_printf(v->scratch, "'%s'", what), need);
}

bool its_since_ended(const its_verifier *v, const its_mnemonic *m, const char *form) {
    its_since mods[64], whole = its_form_since(m, form, mods);
    return whole.ended && v->version >= whole.version && v->sm >= whole.sm;
}

void its_verify_ended(its_verifier *v, const its_insn *insn, const its_mnemonic *m, const char *form) {
    its_since mods[64], whole = its_form_since(m, form, mods);
    const its_module *module = v->module;
    its_verify_error(v, &insn->node, its_verify_name_pos(insn, m, UINT32_MAX),
                     "'%s' was taken out with .version %u.%u, this is %u.%u", insn->name->text, whole.version / 10,
                     whole.version % 10, module->version_major, module->version_minor);
    its_diag_also(v->ctx, its_at(module->source, module->version_pos), "the version is given here");
}

bool its_verify_since_type(its_verifier *v, const its_node *node, uint32_t pos, its_type type) {
    const char *text = its_type_text(type);
    return its_since_error(v, node, pos, text, mod_since[its_mod_find(text, strlen(text))]);
}

/* True if every modifier may stand in the form that the instruction has. */
static bool check_in_form(its_verifier *v, const its_insn *insn, const its_mnemonic *m, const char *form) {
    its_since mods[64], whole = its_form_since(m, form, mods);
    if (!whole.ended && !is_enough(v, whole))
        return its_since_error(v, &insn->node, its_verify_name_pos(insn, m, UINT32_MAX), insn->name->text, whole);
    for (unsigned i = 0; i < m->n_mods; i++) {
        if (is_enough(v, mods[i])) continue;
        return report(v, &insn->node, its_verify_name_pos(insn, m, i),
                      its_arena_printf(v->scratch, "%s of '%s'", m->mod_names[i]->text, insn->name->text), mods[i]);
    }
    return true;
}

void its_verify_since_access(its_verifier *v, const its_insn *insn, const its_mnemonic *m, uint32_t size) {
    if (size <= ITS_NARROW_ACCESS || is_enough(v, wide_since)) return;
    its_since_error(v, &insn->node, its_verify_name_pos(insn, m, UINT32_MAX), insn->name->text, wide_since);
}

void its_verify_since(its_verifier *v, const its_insn *insn, const its_mnemonic *m, const char *form) {
    if (!is_enough(v, op_since[m->op])) {
        uint32_t pos = its_verify_name_pos(insn, m, UINT32_MAX);
        its_since_error(v, &insn->node, pos, its_op_text((its_op)m->op), op_since[m->op]);
        return;
    }
    for (unsigned i = 0; i < m->n_mods; i++) {
        its_since since = mod_since[m->mods[i]];
        if (is_enough(v, since)) continue;
        its_since_error(v, &insn->node, its_verify_name_pos(insn, m, i), m->mod_names[i]->text, since);
        return;
    }
    if (form && m->gated) check_in_form(v, insn, m, form);
}

#define OLDEST 30u /* before it PTX had another ABI, and no ptxas in use takes it */

/* "sm_90a" is 90 and specific. Other targets (texmode, debug) stand beside it. */
void its_since_target(its_verifier *v) {
    for (uint32_t i = 0; i < v->module->n_targets && !v->sm; i++) {
        const char *text = v->module->targets[i]->text;
        if (strncmp(text, "sm_", 3) != 0) continue;
        char *end;
        unsigned long number = strtoul(text + 3, &end, 10);
        v->sm = number < 10000 ? (uint32_t)number : 0;
        v->suffix = *end;
        bool specific = *end == 'a' || *end == 'f';
        if (v->sm < OLDEST || end[specific])
            its_verify_error(v, NULL, v->module->target_pos,
                             "'%s' is no target of PTX: those are sm_%u and up, such as sm_80, sm_90a or sm_100f", text,
                             OLDEST);
    }
}
