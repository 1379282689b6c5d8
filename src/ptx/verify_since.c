/* What an instruction needs of .version and .target, against what the module says. */
#include <stdlib.h>
#include <string.h>

#include "ptx/verify.h"

enum { ANY, SPECIFIC };

static const its_since op_since[ITS_OP_COUNT] = {
#define ITS_SINCE_OP(id, version, sm, kind) [ITS_OP_##id] = {version, sm, kind},
#include "ptx/ptx_since.def"
};

static const its_since mod_since[ITS_MOD_COUNT] = {
#define ITS_SINCE_MOD(id, version, sm, kind) [ITS_MOD_##id] = {version, sm, kind},
#include "ptx/ptx_since.def"
};

static bool is_enough(const its_verifier *v, its_since need) {
    if (v->version < need.version) return false;
    return !v->sm || (v->sm >= need.sm && (v->specific || !need.specific));
}

bool its_since_error(its_verifier *v, const its_node *node, uint32_t pos, const char *what, its_since need) {
    if (is_enough(v, need)) return true;
    const its_module *module = v->module;
    bool version = v->version < need.version;
    if (version)
        its_verify_error(v, node, pos, "'%s' needs .version %u.%u, this is %u.%u", what, need.version / 10,
                         need.version % 10, module->version_major, module->version_minor);
    else
        its_verify_error(v, node, pos, "'%s' needs .target sm_%u%s, this is %s", what, need.sm,
                         need.specific ? "a, or another that is for one architecture" : " or higher",
                         module->targets[0]->text);
    uint32_t at = version ? module->version_pos : module->target_pos;
    its_diag_also(v->ctx, its_at(module->source, at),
                  version ? "the version is given here" : "the target is given here");
    return false;
}

void its_verify_since(its_verifier *v, const its_insn *insn, const its_mnemonic *m, const char *form) {
    its_since whole = form ? its_form_since(m, form) : (its_since){0, 0, 0};
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
    if (is_enough(v, whole)) return;
    its_since_error(v, &insn->node, its_verify_name_pos(insn, m, UINT32_MAX), insn->name->text, whole);
}

/* "sm_90a" is 90 and specific. Other targets (texmode, debug) stand beside it. */
void its_since_target(its_verifier *v) {
    for (uint32_t i = 0; i < v->module->n_targets && !v->sm; i++) {
        const char *text = v->module->targets[i]->text;
        if (strncmp(text, "sm_", 3) != 0) continue;
        char *end;
        unsigned long number = strtoul(text + 3, &end, 10);
        v->sm = number < 10000 ? (uint32_t)number : 0;
        v->specific = *end != 0;
    }
}
