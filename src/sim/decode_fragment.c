/* The matrix instructions' common parts. */
#include "sim/decode_fragment.h"

static const its_sim_element_type elements[] = {
    {ITS_MOD_F16, ITS_ELEMENT_F16, 16},  {ITS_MOD_BF16, ITS_ELEMENT_BF16, 16}, {ITS_MOD_TF32, ITS_ELEMENT_TF32, 32},
    {ITS_MOD_E4M3, ITS_ELEMENT_E4M3, 8}, {ITS_MOD_E5M2, ITS_ELEMENT_E5M2, 8},  {ITS_MOD_S8, ITS_ELEMENT_S8, 8},
    {ITS_MOD_U8, ITS_ELEMENT_U8, 8},     {ITS_MOD_S4, ITS_ELEMENT_S4, 4},      {ITS_MOD_U4, ITS_ELEMENT_U4, 4},
    {ITS_MOD_F64, ITS_ELEMENT_F64, 64},  {ITS_MOD_F32, ITS_ELEMENT_F32, 32},   {ITS_MOD_S32, ITS_ELEMENT_S32, 32},
    {ITS_MOD_B1, ITS_ELEMENT_B1, 1},
};

const its_sim_element_type *its_sim_element_of(its_sim_decoder *d, unsigned index) {
    its_mod mod = its_sim_type_mod(d, index);
    for (size_t i = 0; i < sizeof(elements) / sizeof(*elements); i++)
        if (elements[i].mod == mod) return &elements[i];
    its_sim_refuse_form(d);
    return &elements[0];
}

its_matrix_shape its_sim_shape(its_sim_decoder *d) {
    its_sim_first(d, ITS_MODCLASS_SHAPE);
    its_matrix_shape shape = its_mnemonic_shape(d->m);
    if (!shape.m || !shape.n || !shape.k) its_sim_refuse_form(d);
    return shape;
}

void its_sim_take_fragment(its_sim_decoder *d, const its_operand *operand, uint32_t count, its_type type, bool writes) {
    const its_operand *items = operand->kind == ITS_OPND_VEC ? operand->list : operand;
    uint32_t given = its_sim_fragment_count(operand);
    if (given != count) {
        its_sim_refuse(d, NULL, "'%s' takes %u registers here but is given %u", d->insn->name->text, (unsigned)count,
                       (unsigned)given);
        return;
    }
    for (uint32_t i = 0; i < count; i++) {
        uint32_t at = writes ? its_sim_target(d, &items[i], type) : its_sim_source(d, &items[i], type);
        ITS_PUSH(d->arena, &d->program->lists, at);
    }
}
