/*
 * What a function of a unit takes and returns, as PTX tells it.
 *
 * CUDA compilers declare ints and floats alike: `.param .b32`. Which one it is shows in the body: a parameter that is
 * read as a whole and only as .f32 is a float, one that is read only as .u32 or .s32 is an integer (or a float whose
 * bits are taken), a result that is written only so as well.
 */
#include <inttypes.h>

#include "base/buffer.h"
#include "base/diag.h"
#include "intarsia/cc.h"
#include "ptx/mnemonic.h"
#include "ptx/types.h"

typedef struct signature_job {
    its_context *ctx;
    const its_unit *unit;
    const char *name;
    its_module *module;
    its_buffer text;
    char *result;
} signature_job;

/* The parameter that a load or store accesses: [p] or [p+offset]; NULL if it is another operand. */
static const its_operand *address_of(const its_operand *operand) {
    return operand->kind == ITS_OPND_ADDR && operand->count == 1 && operand->list[0].kind == ITS_OPND_SYM
               ? &operand->list[0]
               : NULL;
}

/* The type in which `insn` accesses `param` as a whole; ITS_TYPE_NONE if it accesses a part; `*found`: at all. */
static its_type access_type(its_context *ctx, const its_insn *insn, const its_symbol *param, bool *found) {
    const its_mnemonic *mnemonic = its_mnemonic_of(ctx, insn->name);
    bool load = mnemonic->op == ITS_OP_LD, store = mnemonic->op == ITS_OP_ST;
    *found = false;
    if ((!load && !store) || insn->node.count < 2) return ITS_TYPE_NONE;
    const its_operand *base = address_of(&insn->ops[load ? 1 : 0]);
    if (base == NULL || base->symbol != param) return ITS_TYPE_NONE;
    *found = true;
    its_type type = its_mnemonic_type(mnemonic, 0);
    return base->offset == 0 && mnemonic->vec == 1 && its_type_size(type) == param->size ? type : ITS_TYPE_NONE;
}

/* Whether the type says more than how many bits there are. */
static bool tells(its_type type) {
    return its_type_is_real(type) || its_type_kind_of(type) == ITS_KIND_INT;
}

/*
 * The type in which the body always accesses `param`, up to the sign, or ITS_TYPE_NONE if it is now this and now that.
 */
static its_type type_in_body(its_context *ctx, const its_func *func, const its_symbol *param) {
    its_type result = ITS_TYPE_NONE;
    for (const its_node *node = func->first; node != NULL; node = node->next) {
        if (node->kind != ITS_NODE_INSN) continue;
        bool found;
        its_type type = access_type(ctx, (const its_insn *)node, param, &found);
        if (!found) continue;
        bool other = result != ITS_TYPE_NONE && its_type_kind_of(type) != its_type_kind_of(result);
        if (!tells(type) || other) return ITS_TYPE_NONE;
        result = type;
    }
    return result;
}

static void put_type(signature_job *job, const its_func *func, const its_symbol *param) {
    if (param->flags & ITS_SYM_ARRAY) {
        its_buffer_printf(&job->text, ".b8[%" PRIu64 "]", param->size);
        return;
    }
    its_type type = tells((its_type)param->type) ? (its_type)param->type : type_in_body(job->ctx, func, param);
    if (type == ITS_TYPE_NONE && param->size <= 8) type = its_type_of_bytes(param->size);
    its_buffer_text(&job->text, type != ITS_TYPE_NONE ? its_type_text(type) : its_type_text(param->type));
}

static its_status signature_body(void *user) {
    signature_job *job = user;
    its_status status = its_ptx_parse(job->ctx, job->unit->path, job->unit->ptx, job->unit->ptx_size, &job->module);
    if (status != ITS_OK) return status;
    const its_symbol *symbol = its_module_find(job->module, job->name);
    if (symbol == NULL || symbol->kind != ITS_SYM_FUNC || symbol->func == NULL || !symbol->func->has_body) {
        return its_fail(job->ctx, ITS_ERR_INPUT, NULL, "%s defines no function %s", job->unit->path, job->name);
    }
    const its_func *func = symbol->func;
    if (symbol->flags & ITS_SYM_ENTRY)
        return its_fail(job->ctx, ITS_ERR_INPUT, "declare it __device__",
                        "'%s' is a kernel (__global__), which no kernel can call", job->name);
    its_buffer_char(&job->text, '(');
    for (uint32_t i = 0; i < func->params.n; i++) {
        if (i > 0) its_buffer_text(&job->text, ", ");
        put_type(job, func, func->params.items[i]);
    }
    its_buffer_char(&job->text, ')');
    if (func->results.n > 0) {
        its_buffer_text(&job->text, " -> ");
        put_type(job, func, func->results.items[0]);
    }
    job->result = its_buffer_take(&job->text, NULL);
    return ITS_OK;
}

its_status its_unit_signature(its_context *ctx, const its_unit *unit, const char *name, char **text) {
    signature_job job = {.ctx = ctx, .unit = unit, .name = name};
    its_buffer_init(&job.text, ctx);
    *text = NULL;
    its_status status = its_protect(ctx, signature_body, &job);
    its_module_free(job.module);
    if (status == ITS_OK) *text = job.result;
    its_buffer_free(&job.text);
    return status;
}
