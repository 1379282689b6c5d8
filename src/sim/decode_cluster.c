/* Clusters and the stack. */
#include "sim/decode.h"
#include "sim/modes.h"

/* The type of the address: of the window in shared memory, or of generic addresses. */
static its_type address_type(its_sim_decoder *d) {
    its_type type = its_sim_type(d, 0);
    its_sim_tick_class(d, ITS_MODCLASS_SPACE);
    if (d->m->space == ITS_SPACE_NONE && its_type_size(type) != 8) its_sim_refuse_form(d);
    return type;
}

/* mapa d, a, rank: the address that `a` has in the CTA of that rank. */
static void map(its_sim_decoder *d) {
    its_type type = address_type(d);
    uint32_t dst = its_sim_target(d, its_sim_operand(d, 0), type);
    uint32_t address = its_sim_source(d, its_sim_operand(d, 1), type);
    uint32_t rank = its_sim_source(d, its_sim_operand(d, 2), ITS_TYPE_B32);
    its_sim_op *op = its_sim_emit_act(d, ITS_SIM_ACT_MAP_SHARED);
    op->dst = dst;
    op->a = address;
    op->b = rank;
    op->size = (uint8_t)its_type_size(type);
    op->space = d->m->space;
}

static void rank_of(its_sim_decoder *d) {
    its_type type = address_type(d);
    uint32_t dst = its_sim_target(d, its_sim_operand(d, 0), ITS_TYPE_B32);
    uint32_t address = its_sim_source(d, its_sim_operand(d, 1), type);
    its_sim_op *op = its_sim_emit_act(d, ITS_SIM_ACT_RANK_OF);
    op->dst = dst;
    op->a = address;
    op->size = (uint8_t)its_type_size(type);
}

void its_sim_decode_cluster(its_sim_decoder *d) {
    if (d->m->op == ITS_OP_MAPA)
        map(d);
    else
        rank_of(d);
}

/* -- the stack ----------------------------------------------------------------------------------------------------- */

void its_sim_decode_stack(its_sim_decoder *d) {
    its_type type = its_sim_type(d, 0);
    its_sim_op *op;
    d->func->allocates = true;
    if (d->m->op == ITS_OP_STACKRESTORE) {
        uint32_t to = its_sim_source(d, its_sim_operand(d, 0), type);
        op = its_sim_emit_act(d, ITS_SIM_ACT_STACK);
        op->a = to;
        op->mode = ITS_STACK_RESTORE;
    } else if (d->m->op == ITS_OP_STACKSAVE) {
        uint32_t dst = its_sim_target(d, its_sim_operand(d, 0), type);
        op = its_sim_emit_act(d, ITS_SIM_ACT_STACK);
        op->dst = dst;
        op->mode = ITS_STACK_SAVE;
    } else {
        uint32_t dst = its_sim_target(d, its_sim_operand(d, 0), type);
        uint32_t size = its_sim_source(d, its_sim_operand(d, 1), type);
        op = its_sim_emit_act(d, ITS_SIM_ACT_STACK);
        op->dst = dst;
        op->a = size;
        op->imm = d->insn->node.count > 2 ? (int64_t)its_sim_operand(d, 2)->bits : 8;
        op->mode = ITS_STACK_ALLOCATE;
    }
    op->size = (uint8_t)its_type_size(type);
}
