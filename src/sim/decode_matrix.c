/* Matrix instructions: mma, ldmatrix, stmatrix, movmatrix. */
#include "sim/decode_fragment.h"

/* -- mma ----------------------------------------------------------------------------------------------------------- */

/* Registers that hold rows x columns elements of a matrix: 32 lanes, of 32 or 64 bits. */
static uint32_t registers_of(const its_sim_element_type *e, uint32_t rows, uint32_t columns) {
    return rows * columns * e->bits / (e->bits == 64 ? 64u * 32u : 32u * 32u);
}

static bool is_number(uint8_t kind) {
    return kind == ITS_ELEMENT_F32 || kind == ITS_ELEMENT_F16;
}

/* Which element types go together; everything else was refused by the verifier's forms, or is not there. */
static bool types_fit(const its_sim_element_type *a, const its_sim_element_type *b, const its_sim_element_type *c,
                      const its_sim_element_type *dd) {
    if (a->bits != b->bits || c->bits > 64 || dd->bits != c->bits) return false;
    if (a->kind == ITS_ELEMENT_B1) return b->kind == ITS_ELEMENT_B1 && c->kind == ITS_ELEMENT_S32;
    if (a->kind == ITS_ELEMENT_F64) return b->kind == ITS_ELEMENT_F64 && c->kind == ITS_ELEMENT_F64;
    if (its_sim_is_integer(a)) return its_sim_is_integer(b) && c->kind == ITS_ELEMENT_S32;
    return a->kind <= ITS_ELEMENT_E5M2 && b->kind <= ITS_ELEMENT_E5M2 && is_number(c->kind) && is_number(dd->kind);
}

/* What of A's type the program says: how bits are combined is part of it. */
static uint32_t kind_of_a(its_sim_decoder *d, const its_sim_element_type *a) {
    if (a->kind != ITS_ELEMENT_B1) return a->kind;
    bool both = its_sim_has(d, ITS_MOD_AND), either = its_sim_has(d, ITS_MOD_XOR);
    if (both == either || !its_sim_has(d, ITS_MOD_POPC)) its_sim_refuse_form(d);
    return both ? ITS_ELEMENT_B1 : ITS_ELEMENT_B1_XOR;
}

static void mma(its_sim_decoder *d) {
    if (its_mnemonic_has(d->m, ITS_MOD_SP) || its_mnemonic_has(d->m, ITS_MOD_SP_ORDERED_METADATA)) {
        its_sim_refuse(d, NULL, "the simulator doesn't have 'mma' with a sparse matrix ('.sp')");
        return;
    }
    bool aligned = its_sim_has(d, ITS_MOD_SYNC) && its_sim_has(d, ITS_MOD_ALIGNED);
    bool normal = its_sim_has(d, ITS_MOD_ROW) && its_sim_has(d, ITS_MOD_COL);
    its_matrix_shape s = its_sim_shape(d);
    const its_sim_element_type *dd = its_sim_element_of(d, 0), *a = its_sim_element_of(d, 1);
    const its_sim_element_type *b = its_sim_element_of(d, 2), *c = its_sim_element_of(d, 3);
    bool saturate = its_sim_has(d, ITS_MOD_SATFINITE);
    if (a->kind == ITS_ELEMENT_F64) its_sim_has(d, ITS_MOD_RN);
    uint32_t most = a->kind == ITS_ELEMENT_B1 ? ITS_MMA_MOST_BITS : ITS_MMA_MOST_K, kind = kind_of_a(d, a);
    if (s.m > 16 || s.n != 8 || s.k > most) its_sim_refuse_form(d);
    if (!aligned || !normal || !types_fit(a, b, c, dd)) its_sim_refuse_form(d);
    if (s.m == 8 && s.k == 4 && a->kind != ITS_ELEMENT_F64) its_sim_refuse_form(d); /* another layout */
    if (registers_of(a, s.m, s.k) == 0 || registers_of(b, 8, s.k) == 0) its_sim_refuse_form(d);
    if (d->refused) return;
    uint32_t n[4] = {registers_of(dd, s.m, 8), registers_of(a, s.m, s.k), registers_of(b, 8, s.k),
                     registers_of(c, s.m, 8)};
    uint32_t head[ITS_MMA_REGS] = {s.m, s.k, kind, b->kind, c->kind, dd->kind, saturate, n[1], n[2], n[3], n[0]};
    uint32_t list = (uint32_t)d->program->lists.count;
    for (unsigned i = 0; i < ITS_MMA_REGS; i++) ITS_PUSH(d->arena, &d->program->lists, head[i]);
    its_sim_take_fragment(d, its_sim_operand(d, 0), n[0], its_sim_fragment_type(dd), true);
    its_sim_take_fragment(d, its_sim_operand(d, 1), n[1], its_sim_fragment_type(a), false);
    its_sim_take_fragment(d, its_sim_operand(d, 2), n[2], its_sim_fragment_type(b), false);
    its_sim_take_fragment(d, its_sim_operand(d, 3), n[3], its_sim_fragment_type(c), false);
    its_sim_emit_warp(d, ITS_SIM_ACT_MMA)->list = list;
}

/* -- ldmatrix, stmatrix, movmatrix --------------------------------------------------------------------------------- */

static void move(its_sim_decoder *d, bool load) {
    its_sim_has(d, ITS_MOD_SYNC);
    its_sim_has(d, ITS_MOD_ALIGNED);
    uint32_t count = its_sim_has(d, ITS_MOD_X1)   ? 1
                     : its_sim_has(d, ITS_MOD_X2) ? 2
                     : its_sim_has(d, ITS_MOD_X4) ? 4
                                                  : 0;
    bool square = its_sim_has(d, ITS_MOD_M8N8), transposed = its_sim_has(d, ITS_MOD_TRANS);
    if (!count || !square || its_sim_type_mod(d, 0) != ITS_MOD_B16) its_sim_refuse_form(d);
    uint8_t space = (uint8_t)d->m->space;
    its_sim_tick_class(d, ITS_MODCLASS_SPACE);
    if (d->refused) return;
    uint32_t list = (uint32_t)d->program->lists.count;
    its_sim_take_fragment(d, its_sim_operand(d, load ? 0 : 1), count, ITS_TYPE_B32, load);
    its_sim_op address = {.space = space};
    its_sim_take_address(d, &address, its_sim_operand(d, load ? 1 : 0));
    its_sim_op *op = its_sim_emit_warp(d, load ? ITS_SIM_ACT_LDMATRIX : ITS_SIM_ACT_STMATRIX);
    op->list = list;
    op->vec = (uint8_t)count;
    op->a = address.a;
    op->imm = address.imm;
    op->space = address.space;
    op->flags = (uint8_t)(address.flags | (transposed ? ITS_MATRIX_TRANSPOSED : 0));
}

static void transpose(its_sim_decoder *d) {
    its_sim_has(d, ITS_MOD_SYNC);
    its_sim_has(d, ITS_MOD_ALIGNED);
    its_sim_type_mod(d, 0);
    if (!its_sim_has(d, ITS_MOD_M8N8) || !its_sim_has(d, ITS_MOD_TRANS)) its_sim_refuse_form(d);
    uint32_t dst = its_sim_target(d, its_sim_operand(d, 0), ITS_TYPE_B32);
    uint32_t src = its_sim_source(d, its_sim_operand(d, 1), ITS_TYPE_B32);
    its_sim_op *op = its_sim_emit_warp(d, ITS_SIM_ACT_MOVMATRIX);
    op->dst = dst;
    op->a = src;
}

void its_sim_decode_matrix(its_sim_decoder *d) {
    switch (d->m->op) {
    case ITS_OP_MMA:
        mma(d);
        break;
    case ITS_OP_WMMA:
        its_sim_decode_wmma(d);
        break;
    case ITS_OP_LDMATRIX:
        move(d, true);
        break;
    case ITS_OP_STMATRIX:
        move(d, false);
        break;
    case ITS_OP_MOVMATRIX:
        transpose(d);
        break;
    default:
        its_sim_decode_none(d);
        break;
    }
}
