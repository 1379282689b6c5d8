/* Matrix instructions: mma, ldmatrix, stmatrix, movmatrix. */
#include "sim/decode.h"
#include "sim/matrix.h"

/* -- mma ----------------------------------------------------------------------------------------------------------- */

typedef struct shape {
    its_mod mod;
    uint8_t m, k;
} shape;

static const shape shapes[] = {
    {ITS_MOD_M16N8K4, 16, 4},   {ITS_MOD_M16N8K8, 16, 8}, {ITS_MOD_M16N8K16, 16, 16}, {ITS_MOD_M16N8K32, 16, 32},
    {ITS_MOD_M16N8K64, 16, 64}, {ITS_MOD_M8N8K4, 8, 4},   {ITS_MOD_M8N8K16, 8, 16},   {ITS_MOD_M8N8K32, 8, 32},
};

typedef struct element {
    its_mod mod;
    uint8_t kind, bits; /* its_sim_element */
    uint8_t type;       /* of the registers: its_type */
} element;

static const element elements[] = {
    {ITS_MOD_F16, ITS_ELEMENT_F16, 16, ITS_TYPE_B32},   {ITS_MOD_BF16, ITS_ELEMENT_BF16, 16, ITS_TYPE_B32},
    {ITS_MOD_TF32, ITS_ELEMENT_TF32, 32, ITS_TYPE_B32}, {ITS_MOD_E4M3, ITS_ELEMENT_E4M3, 8, ITS_TYPE_B32},
    {ITS_MOD_E5M2, ITS_ELEMENT_E5M2, 8, ITS_TYPE_B32},  {ITS_MOD_S8, ITS_ELEMENT_S8, 8, ITS_TYPE_B32},
    {ITS_MOD_U8, ITS_ELEMENT_U8, 8, ITS_TYPE_B32},      {ITS_MOD_S4, ITS_ELEMENT_S4, 4, ITS_TYPE_B32},
    {ITS_MOD_U4, ITS_ELEMENT_U4, 4, ITS_TYPE_B32},      {ITS_MOD_F64, ITS_ELEMENT_F64, 64, ITS_TYPE_B64},
    {ITS_MOD_F32, ITS_ELEMENT_F32, 32, ITS_TYPE_B32},   {ITS_MOD_S32, ITS_ELEMENT_S32, 32, ITS_TYPE_B32},
};

static const element *element_of(its_sim_decoder *d, unsigned index) {
    its_mod mod = its_sim_type_mod(d, index);
    for (size_t i = 0; i < sizeof(elements) / sizeof(*elements); i++)
        if (elements[i].mod == mod) return &elements[i];
    its_sim_refuse_form(d);
    return &elements[0];
}

/* Registers that hold rows x columns elements of a matrix: 32 lanes, of 32 or 64 bits. */
static uint32_t registers_of(const element *e, uint32_t rows, uint32_t columns) {
    return rows * columns * e->bits / (e->bits == 64 ? 64u * 32u : 32u * 32u);
}

static void take_registers(its_sim_decoder *d, const its_operand *operand, const element *e, uint32_t count,
                           bool writes) {
    const its_operand *items = operand->kind == ITS_OPND_VEC ? operand->list : operand;
    uint32_t given = operand->kind == ITS_OPND_VEC ? operand->count : 1;
    if (given != count) {
        its_sim_refuse(d, NULL, "'%s' takes %u registers here but is given %u", d->insn->name->text, (unsigned)count,
                       (unsigned)given);
        return;
    }
    for (uint32_t i = 0; i < count; i++) {
        uint32_t at =
            writes ? its_sim_target(d, &items[i], (its_type)e->type) : its_sim_source(d, &items[i], (its_type)e->type);
        ITS_PUSH(d->arena, &d->program->lists, at);
    }
}

static const shape *take_shape(its_sim_decoder *d) {
    for (size_t i = 0; i < sizeof(shapes) / sizeof(*shapes); i++)
        if (its_mnemonic_has(d->m, shapes[i].mod)) {
            its_sim_has(d, shapes[i].mod);
            return &shapes[i];
        }
    its_sim_refuse_form(d);
    return &shapes[0];
}

static bool is_number(uint8_t kind) {
    return kind == ITS_ELEMENT_F32 || kind == ITS_ELEMENT_F16;
}

/* Which element types go together; everything else was refused by the verifier's forms, or is not there. */
static bool types_fit(const element *a, const element *b, const element *c, const element *dd) {
    if (a->bits != b->bits || c->bits > 64 || dd->bits != c->bits) return false;
    if (a->kind == ITS_ELEMENT_F64) return b->kind == ITS_ELEMENT_F64 && c->kind == ITS_ELEMENT_F64;
    bool integers = a->kind >= ITS_ELEMENT_S8 && a->kind <= ITS_ELEMENT_U4;
    if (integers) return b->kind >= ITS_ELEMENT_S8 && b->kind <= ITS_ELEMENT_U4 && c->kind == ITS_ELEMENT_S32;
    return a->kind <= ITS_ELEMENT_E5M2 && b->kind <= ITS_ELEMENT_E5M2 && is_number(c->kind) && is_number(dd->kind);
}

static void mma(its_sim_decoder *d) {
    bool aligned = its_sim_has(d, ITS_MOD_SYNC) && its_sim_has(d, ITS_MOD_ALIGNED);
    bool normal = its_sim_has(d, ITS_MOD_ROW) && its_sim_has(d, ITS_MOD_COL);
    const shape *s = take_shape(d);
    const element *dd = element_of(d, 0), *a = element_of(d, 1), *b = element_of(d, 2), *c = element_of(d, 3);
    bool saturate = its_sim_has(d, ITS_MOD_SATFINITE);
    if (!aligned || !normal || !types_fit(a, b, c, dd)) its_sim_refuse_form(d);
    if (s->m == 8 && s->k == 4 && a->kind != ITS_ELEMENT_F64) its_sim_refuse_form(d); /* another layout */
    if (registers_of(a, s->m, s->k) == 0 || registers_of(b, 8, s->k) == 0) its_sim_refuse_form(d);
    if (d->refused) return;
    uint32_t n[4] = {registers_of(dd, s->m, 8), registers_of(a, s->m, s->k), registers_of(b, 8, s->k),
                     registers_of(c, s->m, 8)};
    uint32_t head[ITS_MMA_REGS] = {s->m, s->k, a->kind, b->kind, c->kind, dd->kind, saturate, n[1], n[2], n[3], n[0]};
    uint32_t list = (uint32_t)d->program->lists.count;
    for (unsigned i = 0; i < ITS_MMA_REGS; i++) ITS_PUSH(d->arena, &d->program->lists, head[i]);
    take_registers(d, its_sim_operand(d, 0), dd, n[0], true);
    take_registers(d, its_sim_operand(d, 1), a, n[1], false);
    take_registers(d, its_sim_operand(d, 2), b, n[2], false);
    take_registers(d, its_sim_operand(d, 3), c, n[3], false);
    its_sim_emit_warp(d, ITS_SIM_ACT_MMA)->list = list;
}

/* -- ldmatrix, stmatrix, movmatrix --------------------------------------------------------------------------------- */

static void move(its_sim_decoder *d, bool load) {
    static const element words = {ITS_MOD_UNKNOWN, 0, 32, ITS_TYPE_B32};
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
    take_registers(d, its_sim_operand(d, load ? 0 : 1), &words, count, load);
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
