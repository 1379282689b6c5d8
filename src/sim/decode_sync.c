/* Barriers, votes, shuffles: instructions that threads take part in together. */
#include <string.h>

#include "sim/decode.h"
#include "sim/modes.h"

static uint32_t word(its_sim_decoder *d, unsigned operand) {
    return its_sim_source(d, its_sim_operand(d, operand), ITS_TYPE_B32);
}

/* -- CTA barriers -------------------------------------------------------------------------------------------------- */

static void warp_barrier(its_sim_decoder *d) {
    its_sim_has(d, ITS_MOD_SYNC);
    uint32_t members = word(d, 0);
    its_sim_emit_act(d, ITS_SIM_ACT_WARP_BARRIER)->e = members;
}

/* Operands from `first` on: barrier, then the thread count if there is one. */
static its_sim_op *counted_barrier(its_sim_decoder *d, unsigned first, bool has_count, unsigned mode) {
    uint32_t id = word(d, first), count = has_count ? word(d, first + 1) : 0;
    its_sim_op *op = its_sim_emit_act(d, ITS_SIM_ACT_BARRIER);
    op->a = id;
    op->b = count;
    op->mode = (uint16_t)mode;
    return op;
}

/* bar.red.popc.u32 d, a{, b}, {!}c and bar.red.and.pred p, a{, b}, {!}c */
static void reducing_barrier(its_sim_decoder *d) {
    its_mod operation = its_sim_first(d, ITS_MODCLASS_OPERATION);
    bool popc = operation == ITS_MOD_POPC, inverted;
    unsigned mode = popc ? ITS_BARRIER_POPC : operation == ITS_MOD_AND ? ITS_BARRIER_AND : ITS_BARRIER_OR;
    if (!popc && operation != ITS_MOD_AND && operation != ITS_MOD_OR) its_sim_refuse_form(d);
    its_sim_type(d, 0);
    unsigned last = d->insn->node.count ? d->insn->node.count - 1u : 0;
    uint32_t dst = its_sim_target(d, its_sim_operand(d, 0), popc ? ITS_TYPE_U32 : ITS_TYPE_PRED);
    uint32_t source = its_sim_predicate(d, its_sim_operand(d, last), &inverted);
    its_sim_op *op = counted_barrier(d, 1, last > 2, mode);
    op->dst = dst;
    op->c = source;
    op->imm = inverted;
}

/* Memory is coherent in a CTA, whatever the order that is asked for. */
static void cluster_barrier(its_sim_decoder *d) {
    its_sim_tick_class(d, ITS_MODCLASS_SEMANTICS);
    bool arrives = its_sim_has(d, ITS_MOD_ARRIVE);
    if (!arrives && !its_sim_has(d, ITS_MOD_WAIT)) its_sim_refuse_form(d);
    its_sim_emit_act(d, arrives ? ITS_SIM_ACT_CLUSTER_ARRIVE : ITS_SIM_ACT_CLUSTER_WAIT)->mode = ITS_BARRIER_SYNC;
}

void its_sim_decode_barrier(its_sim_decoder *d) {
    its_sim_has(d, ITS_MOD_CTA);
    its_sim_has(d, ITS_MOD_ALIGNED);
    if (its_sim_has(d, ITS_MOD_CLUSTER)) {
        cluster_barrier(d);
        return;
    }
    bool has_count = d->insn->node.count > 1;
    if (its_sim_has(d, ITS_MOD_WARP)) {
        warp_barrier(d);
    } else if (its_sim_has(d, ITS_MOD_SYNC)) {
        counted_barrier(d, 0, has_count, ITS_BARRIER_SYNC);
    } else if (its_sim_has(d, ITS_MOD_ARRIVE)) {
        if (!has_count) its_sim_refuse_form(d);
        counted_barrier(d, 0, has_count, ITS_BARRIER_ARRIVE);
    } else if (its_sim_has(d, ITS_MOD_RED)) {
        reducing_barrier(d);
    } else {
        its_sim_decode_none(d);
    }
}

/* -- shuffles ------------------------------------------------------------------------------------------------------ */

/* Places for a result and a predicate that may both be missing. Offset 0 is never a destination: it means none. */
static void set_pair(its_sim_op *op, uint32_t dst, uint32_t predicate) {
    op->dst = dst;
    op->list = predicate == ITS_SIM_NOWHERE ? 0 : predicate;
}

static bool is_literal(its_sim_decoder *d, unsigned index, uint32_t *value) {
    const its_operand *operand = its_sim_operand(d, index);
    *value = (uint32_t)operand->bits;
    return operand->kind == ITS_OPND_INT;
}

/* A shuffle of all lanes by literals: who reads from whom is worked out once, for act_SHUFFLE of all lanes. */
static void know_sources(its_sim_decoder *d, its_sim_op *op) {
    uint32_t b, c, members, inside = 0;
    uint8_t source[32];
    if (!is_literal(d, 2, &b) || !is_literal(d, 3, &c) || !is_literal(d, 4, &members) || members != UINT32_MAX) return;
    for (uint32_t lane = 0; lane < 32; lane++) {
        uint32_t from;
        if (its_sim_shuffle_source(op->mode, lane, b, c, &from)) inside |= 1u << lane;
        source[lane] = (uint8_t)from;
    }
    op->flags |= ITS_SIM_KNOWN;
    op->imm = (int64_t)d->program->lists.count;
    for (unsigned i = 0; i < 8; i++) {
        uint32_t word_of_sources;
        memcpy(&word_of_sources, source + 4 * i, sizeof(word_of_sources));
        ITS_PUSH(d->arena, &d->program->lists, word_of_sources);
    }
    ITS_PUSH(d->arena, &d->program->lists, inside);
}

void its_sim_decode_shuffle(its_sim_decoder *d) {
    its_sim_type(d, 0);
    if (!its_sim_has(d, ITS_MOD_SYNC)) {
        its_sim_refuse(d, "use shfl.sync", "the simulator doesn't have '%s' without .sync", d->insn->name->text);
        return;
    }
    unsigned mode = 0;
    if (its_sim_has(d, ITS_MOD_UP))
        mode = ITS_SHUFFLE_UP;
    else if (its_sim_has(d, ITS_MOD_DOWN))
        mode = ITS_SHUFFLE_DOWN;
    else if (its_sim_has(d, ITS_MOD_BFLY))
        mode = ITS_SHUFFLE_BUTTERFLY;
    else if (its_sim_has(d, ITS_MOD_IDX))
        mode = ITS_SHUFFLE_INDEX;
    else
        its_sim_refuse_form(d);
    uint32_t dst, predicate, a = word(d, 1), b = word(d, 2), c = word(d, 3), members = word(d, 4);
    its_sim_pair(d, its_sim_operand(d, 0), ITS_TYPE_B32, ITS_TYPE_PRED, &dst, &predicate);
    its_sim_op *op = its_sim_emit_act(d, ITS_SIM_ACT_SHUFFLE);
    set_pair(op, dst, predicate);
    op->a = a;
    op->b = b;
    op->c = c;
    op->e = members;
    op->mode = (uint16_t)mode;
    know_sources(d, op);
}

/* -- votes --------------------------------------------------------------------------------------------------------- */

static void vote(its_sim_decoder *d) {
    its_sim_type(d, 0);
    unsigned mode = ITS_VOTE_BALLOT;
    if (its_sim_has(d, ITS_MOD_ALL))
        mode = ITS_VOTE_ALL;
    else if (its_sim_has(d, ITS_MOD_ANY))
        mode = ITS_VOTE_ANY;
    else if (its_sim_has(d, ITS_MOD_UNI))
        mode = ITS_VOTE_UNIFORM;
    else if (!its_sim_has(d, ITS_MOD_BALLOT))
        its_sim_refuse_form(d);
    if (!its_sim_has(d, ITS_MOD_SYNC)) its_sim_refuse_form(d);
    bool inverted;
    uint32_t a = its_sim_predicate(d, its_sim_operand(d, 1), &inverted), members = word(d, 2);
    uint32_t dst = its_sim_target(d, its_sim_operand(d, 0), mode == ITS_VOTE_BALLOT ? ITS_TYPE_B32 : ITS_TYPE_PRED);
    its_sim_op *op = its_sim_emit_act(d, ITS_SIM_ACT_VOTE);
    op->dst = dst;
    op->a = a;
    op->e = members;
    op->mode = (uint16_t)mode;
    op->imm = inverted;
}

static void match(its_sim_decoder *d) {
    its_type type = its_sim_type(d, 0);
    bool all = its_sim_has(d, ITS_MOD_ALL);
    if (all == its_sim_has(d, ITS_MOD_ANY) || !its_sim_has(d, ITS_MOD_SYNC)) its_sim_refuse_form(d);
    if (its_type_size(type) != 4 && its_type_size(type) != 8) its_sim_refuse_form(d);
    uint32_t dst, predicate, a = its_sim_source(d, its_sim_operand(d, 1), type), members = word(d, 2);
    its_sim_pair(d, its_sim_operand(d, 0), ITS_TYPE_B32, ITS_TYPE_PRED, &dst, &predicate);
    its_sim_op *op = its_sim_emit_act(d, ITS_SIM_ACT_MATCH);
    set_pair(op, dst, predicate);
    op->a = a;
    op->e = members;
    op->size = (uint8_t)its_type_size(type);
    op->mode = all ? ITS_MATCH_ALL : ITS_MATCH_ANY;
}

static void reduce(its_sim_decoder *d) {
    its_type type = its_sim_type(d, 0);
    unsigned mode = ITS_REDUX_ADD;
    switch (its_sim_first(d, ITS_MODCLASS_OPERATION)) {
    case ITS_MOD_ADD:
        mode = ITS_REDUX_ADD;
        break;
    case ITS_MOD_MIN:
        mode = ITS_REDUX_MIN;
        break;
    case ITS_MOD_MAX:
        mode = ITS_REDUX_MAX;
        break;
    case ITS_MOD_AND:
        mode = ITS_REDUX_AND;
        break;
    case ITS_MOD_OR:
        mode = ITS_REDUX_OR;
        break;
    case ITS_MOD_XOR:
        mode = ITS_REDUX_XOR;
        break;
    default:
        its_sim_refuse_form(d);
        break;
    }
    if (!its_sim_has(d, ITS_MOD_SYNC)) its_sim_refuse_form(d);
    unsigned real = mode == ITS_REDUX_MAX ? ITS_MAX_OF : 0;
    if (its_type_kind_of(type) == ITS_KIND_FLOAT) {
        if (type != ITS_TYPE_F32 || (mode != ITS_REDUX_MIN && mode != ITS_REDUX_MAX)) its_sim_refuse_form(d);
        if (its_sim_has(d, ITS_MOD_PROPAGATE_NAN)) real |= ITS_MIN_MAX_NAN;
        if (its_sim_has(d, ITS_MOD_ABS)) real |= ITS_REDUX_ABS;
    }
    uint32_t a = its_sim_source(d, its_sim_operand(d, 1), type), members = word(d, 2);
    uint32_t dst = its_sim_target(d, its_sim_operand(d, 0), type);
    its_sim_op *op = its_sim_emit_act(d, ITS_SIM_ACT_REDUX);
    op->dst = dst;
    op->a = a;
    op->e = members;
    op->mode = (uint16_t)mode;
    op->type = (uint8_t)type;
    op->imm = real;
    if (its_sim_is_signed(type)) op->flags |= ITS_SIM_SIGNED;
}

static void elect(its_sim_decoder *d) {
    if (!its_sim_has(d, ITS_MOD_SYNC)) its_sim_refuse_form(d);
    uint32_t dst, predicate, members = word(d, 1);
    its_sim_pair(d, its_sim_operand(d, 0), ITS_TYPE_B32, ITS_TYPE_PRED, &dst, &predicate);
    its_sim_op *op = its_sim_emit_act(d, ITS_SIM_ACT_ELECT);
    set_pair(op, dst, predicate);
    op->e = members;
}

void its_sim_decode_vote(its_sim_decoder *d) {
    switch (d->m->op) {
    case ITS_OP_VOTE:
        vote(d);
        break;
    case ITS_OP_MATCH:
        match(d);
        break;
    case ITS_OP_REDUX:
        reduce(d);
        break;
    case ITS_OP_ELECT:
        elect(d);
        break;
    default: {
        its_sim_type(d, 0);
        uint32_t dst = its_sim_target(d, its_sim_operand(d, 0), ITS_TYPE_B32);
        its_sim_emit_act(d, ITS_SIM_ACT_ACTIVEMASK)->dst = dst;
    }
    }
}
