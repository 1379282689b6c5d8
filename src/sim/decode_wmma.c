/* wmma. Elements of less than 8 bits are refused. */
#include "sim/decode_fragment.h"
#include "sim/wmma.h"

/* The types that wmma has of them. */
static const its_sim_element_type *element_of(its_sim_decoder *d, unsigned index) {
    const its_sim_element_type *e = its_sim_element_of(d, index);
    if (e->bits < 8 || e->kind == ITS_ELEMENT_E4M3 || e->kind == ITS_ELEMENT_E5M2) its_sim_refuse_form(d);
    return e;
}

static its_matrix_shape shape_of(its_sim_decoder *d) {
    its_matrix_shape s = its_sim_shape(d);
    if (s.m > 32 || s.n > 32 || s.k > 16 || s.m * s.n > 512) its_sim_refuse_form(d);
    return s;
}

/* Registers of a matrix of `count` elements at least: a matrix may be given more, in which it is repeated. */
static uint32_t take_registers(its_sim_decoder *d, const its_operand *operand, const its_sim_element_type *e,
                               uint32_t count, bool writes) {
    uint32_t given = its_sim_fragment_count(operand), width = e->bits == 64 ? 64 : 32;
    uint32_t slots = given * 32 * width / e->bits;
    if (slots < count || slots % count) {
        its_sim_refuse(d, NULL, "'%s' is given %u registers for a matrix of %u elements", d->insn->name->text,
                       (unsigned)given, (unsigned)count);
        return 0;
    }
    its_sim_take_fragment(d, operand, given, its_sim_fragment_type(e), writes);
    return given;
}

static uint32_t begin_list(its_sim_decoder *d, uint32_t count) {
    uint32_t list = (uint32_t)d->program->lists.count;
    for (uint32_t i = 0; i < count; i++) ITS_PUSH(d->arena, &d->program->lists, i);
    return list;
}

static void move(its_sim_decoder *d, bool stores) {
    its_matrix_shape s = shape_of(d);
    const its_sim_element_type *e = element_of(d, 0);
    bool a = its_sim_has(d, ITS_MOD_A), b = its_sim_has(d, ITS_MOD_B), by_columns = its_sim_has(d, ITS_MOD_COL);
    if (!by_columns && !its_sim_has(d, ITS_MOD_ROW)) its_sim_refuse_form(d);
    if (!a && !b && !its_sim_has(d, ITS_MOD_C) && !its_sim_has(d, ITS_MOD_D)) its_sim_refuse_form(d);
    uint32_t rows = b ? s.k : s.m, columns = a ? s.k : s.n;
    unsigned vector = stores ? 1 : 0, address = stores ? 0 : 1;
    its_sim_op where = {.space = d->m->space};
    its_sim_tick_class(d, ITS_MODCLASS_SPACE);
    its_sim_take_address(d, &where, its_sim_operand(d, address));
    uint32_t stride = d->insn->node.count > 2 ? its_sim_source(d, its_sim_operand(d, 2), ITS_TYPE_B32)
                                              : its_sim_const_bits(d, by_columns ? rows : columns, 4);
    if (d->refused) return;
    uint32_t list = begin_list(d, ITS_WMMA_REGS);
    uint32_t given = take_registers(d, its_sim_operand(d, vector), e, rows * columns, !stores);
    uint32_t *head = d->program->lists.items + list;
    head[ITS_WMMA_ROWS] = rows;
    head[ITS_WMMA_COLUMNS] = columns;
    head[ITS_WMMA_BYTES] = e->bits / 8u;
    head[ITS_WMMA_N_REGS] = given;
    its_sim_op *op = its_sim_emit_warp(d, ITS_SIM_ACT_WMMA_MOVE);
    op->list = list;
    op->a = where.a;
    op->imm = where.imm;
    op->flags = where.flags;
    op->space = where.space;
    op->b = stride;
    op->mode = (uint16_t)((stores ? ITS_WMMA_STORES : 0) | (by_columns ? ITS_WMMA_BY_COLUMNS : 0));
}

/* Of halves only the types of D and C are written. */
static void multiply(its_sim_decoder *d) {
    its_matrix_shape s = shape_of(d);
    bool halves = d->m->n_types == 2;
    static const its_sim_element_type half = {ITS_MOD_F16, ITS_ELEMENT_F16, 16};
    const its_sim_element_type *types[4] = {element_of(d, 0), halves ? &half : element_of(d, 1),
                                            halves ? &half : element_of(d, 2), element_of(d, halves ? 1 : 3)};
    const uint32_t counts[4] = {s.m * s.n, s.m * s.k, s.k * s.n, s.m * s.n};
    bool saturates = its_sim_has(d, ITS_MOD_SATFINITE);
    its_sim_has(d, ITS_MOD_ROW);
    its_sim_has(d, ITS_MOD_COL);
    if (types[0]->kind == ITS_ELEMENT_F64) its_sim_has(d, ITS_MOD_RN);
    if (saturates && types[0]->kind != ITS_ELEMENT_S32) its_sim_refuse_form(d);
    if (d->refused) return;
    uint32_t list = begin_list(d, ITS_WMMA_PRODUCT_REGS), given[4];
    for (unsigned i = 0; i < 4; i++) given[i] = take_registers(d, its_sim_operand(d, i), types[i], counts[i], i == 0);
    uint32_t *head = d->program->lists.items + list;
    head[ITS_WMMA_M] = s.m;
    head[ITS_WMMA_N] = s.n;
    head[ITS_WMMA_K] = s.k;
    head[ITS_WMMA_SATURATES] = saturates;
    for (unsigned i = 0; i < 4; i++) {
        head[ITS_WMMA_TYPE_D + i] = types[i]->kind;
        head[ITS_WMMA_N_D + i] = given[i];
    }
    its_sim_emit_warp(d, ITS_SIM_ACT_WMMA)->list = list;
}

void its_sim_decode_wmma(its_sim_decoder *d) {
    its_sim_has(d, ITS_MOD_SYNC);
    its_sim_has(d, ITS_MOD_ALIGNED);
    if (its_sim_has(d, ITS_MOD_LOAD))
        move(d, false);
    else if (its_sim_has(d, ITS_MOD_STORE))
        move(d, true);
    else if (its_sim_has(d, ITS_MOD_MMA))
        multiply(d);
    else
        its_sim_decode_none(d);
}
