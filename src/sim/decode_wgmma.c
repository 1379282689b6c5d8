/* wgmma: products of matrices with a dense A. Sparse ones, and those of single bits, are refused. */
#include "sim/decode_fragment.h"
#include "sim/wgmma.h"

/* .m64nNkK */
static uint32_t columns_of(its_sim_decoder *d, uint32_t depth) {
    its_matrix_shape s = its_sim_shape(d);
    if (s.m != 64 || s.n > 256 || s.n % 8 || s.k != depth) its_sim_refuse_form(d);
    return s.n;
}

/* Of A and B; the rest are of D only, or not of wgmma. */
static bool is_factor(const its_sim_element_type *e) {
    return e->kind <= ITS_ELEMENT_U8;
}

static bool types_fit(const its_sim_element_type *dd, const its_sim_element_type *a, const its_sim_element_type *b) {
    if (!is_factor(a) || !is_factor(b) || a->bits != b->bits || its_sim_is_integer(a) != its_sim_is_integer(b))
        return false;
    if (its_sim_is_integer(a)) return dd->kind == ITS_ELEMENT_S32;
    return dd->kind == ITS_ELEMENT_F32 || dd->kind == ITS_ELEMENT_F16;
}

static bool is_negated(its_sim_decoder *d, unsigned index) {
    int32_t scale = (int32_t)its_sim_literal(d, index);
    if (scale != 1 && scale != -1) its_sim_refuse(d, NULL, "'%s' scales by 1 or -1", d->insn->name->text);
    return scale == -1;
}

/* What follows the descriptors: scales, and for elements of 16 bits which matrix is MN-major. */
static uint32_t take_flags(its_sim_decoder *d, const its_sim_element_type *a, bool in_regs) {
    uint32_t flags = in_regs ? ITS_WGMMA_A_IN_REGS : 0;
    if (its_sim_has(d, ITS_MOD_SATFINITE)) flags |= ITS_WGMMA_SATURATE;
    if (its_sim_is_integer(a)) return flags;
    if (is_negated(d, 4) != is_negated(d, 5)) flags |= ITS_WGMMA_NEGATE;
    if (a->bits != 16) return flags;
    if (!in_regs && its_sim_literal(d, 6)) flags |= ITS_WGMMA_A_MN_MAJOR;
    if (its_sim_literal(d, in_regs ? 6 : 7)) flags |= ITS_WGMMA_B_MN_MAJOR;
    return flags;
}

/* wgmma.mma_async d, a, b, accumulates, ... */
static void product(its_sim_decoder *d) {
    const its_sim_element_type *dd = its_sim_element_of(d, 0), *a = its_sim_element_of(d, 1),
                               *b = its_sim_element_of(d, 2);
    if (!types_fit(dd, a, b)) its_sim_refuse_form(d);
    if (d->refused) return;
    uint32_t n = columns_of(d, 256u / a->bits), n_d = dd->kind == ITS_ELEMENT_F16 ? n / 4 : n / 2;
    bool in_regs = its_sim_operand(d, 1)->kind == ITS_OPND_VEC, inverted = false;
    uint32_t flags = take_flags(d, a, in_regs), a_at = 0;
    if (!in_regs) a_at = its_sim_source(d, its_sim_operand(d, 1), ITS_TYPE_B64);
    uint32_t b_at = its_sim_source(d, its_sim_operand(d, 2), ITS_TYPE_B64);
    uint32_t accumulates = its_sim_predicate(d, its_sim_operand(d, 3), &inverted);
    if (d->refused) return;
    uint32_t head[ITS_WGMMA_REGS] = {n, a->kind, b->kind, dd->kind, flags, n_d},
             list = (uint32_t)d->program->lists.count;
    for (unsigned i = 0; i < ITS_WGMMA_REGS; i++) ITS_PUSH(d->arena, &d->program->lists, head[i]);
    its_sim_take_fragment(d, its_sim_operand(d, 0), n_d, ITS_TYPE_B32, true);
    if (in_regs) its_sim_take_fragment(d, its_sim_operand(d, 1), 4, ITS_TYPE_B32, false);
    its_sim_op *op = its_sim_emit_warp(d, ITS_SIM_ACT_WGMMA);
    op->list = list;
    op->a = a_at;
    op->b = b_at;
    op->c = accumulates;
    op->imm = inverted;
}

/* -- registers that products write --------------------------------------------------------------------------------- */

void its_sim_find_accumulators(its_sim_decoder *d) {
    for (const its_node *node = d->node->first; node; node = node->next) {
        const its_insn *insn = (const its_insn *)node;
        if (node->kind != ITS_NODE_INSN || node->count == 0 || insn->ops[0].kind != ITS_OPND_VEC) continue;
        if (its_mnemonic_of(d->ctx, insn->name)->op != ITS_OP_WGMMA) continue;
        if (!d->accumulators) d->accumulators = ITS_NEW_ARRAY(&d->scratch, bool, d->node->n_regs + 1);
        for (uint32_t i = 0; i < insn->ops[0].count; i++)
            if (insn->ops[0].list[i].kind == ITS_OPND_REG) d->accumulators[insn->ops[0].list[i].symbol->id] = true;
    }
}

/* Adds the registers among `items`, and in their lists, to the program's lists. */
static uint32_t list_accumulators(its_sim_decoder *d, const its_operand *items, uint32_t count) {
    uint32_t found = 0;
    for (uint32_t i = 0; i < count; i++) {
        const its_operand *item = &items[i];
        if (item->kind == ITS_OPND_VEC || item->kind == ITS_OPND_PAIR || item->kind == ITS_OPND_ADDR)
            found += list_accumulators(d, item->list, item->kind == ITS_OPND_PAIR ? 2 : item->count);
        if (item->kind != ITS_OPND_REG || !d->accumulators[item->symbol->id]) continue;
        uint32_t at = its_sim_register(d, item->symbol);
        ITS_PUSH(d->arena, &d->program->lists, at);
        found++;
    }
    return found;
}

void its_sim_touch_accumulators(its_sim_decoder *d) {
    if (d->m->op == ITS_OP_WGMMA) return;
    uint32_t list = (uint32_t)d->program->lists.count;
    ITS_PUSH(d->arena, &d->program->lists, list);
    uint32_t found = list_accumulators(d, d->insn->ops, d->insn->node.count);
    d->program->lists.items[list] = found;
    if (found == 0) {
        d->program->lists.count = list;
        return;
    }
    its_sim_op *op = its_sim_emit_act(d, ITS_SIM_ACT_WGMMA_TOUCH);
    op->list = list;
    op->mode = d->m->op == ITS_OP_MOV ? ITS_WGMMA_MOVES : ITS_WGMMA_USES;
}

void its_sim_decode_wgmma(its_sim_decoder *d) {
    its_sim_has(d, ITS_MOD_SYNC);
    its_sim_has(d, ITS_MOD_ALIGNED);
    if (its_sim_has(d, ITS_MOD_FENCE)) {
        its_sim_emit_act(d, ITS_SIM_ACT_FENCE);
    } else if (its_sim_has(d, ITS_MOD_COMMIT_GROUP)) {
        its_sim_emit_warp(d, ITS_SIM_ACT_WGMMA_GROUP)->mode = ITS_WGMMA_COMMIT;
    } else if (its_sim_has(d, ITS_MOD_WAIT_GROUP)) {
        int64_t left = (int64_t)its_sim_literal(d, 0);
        its_sim_op *op = its_sim_emit_warp(d, ITS_SIM_ACT_WGMMA_GROUP);
        op->mode = ITS_WGMMA_WAIT;
        op->imm = left;
    } else if (its_sim_has(d, ITS_MOD_MMA_ASYNC)) {
        product(d);
    } else {
        its_sim_decode_none(d);
    }
}
