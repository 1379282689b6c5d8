/* Asynchronous copies (cp.async, cp.async.bulk) and mbarriers. */
#include "sim/async.h"
#include "sim/decode.h"

/* -- cp.async ------------------------------------------------------------------------------------------------------ */

static void copy(its_sim_decoder *d) {
    uint64_t size = its_sim_literal(d, 2);
    if (d->refused) return;
    bool through = its_sim_has(d, ITS_MOD_CG), all = its_sim_has(d, ITS_MOD_CA);
    if (!(size == 16 || (all && !through && (size == 4 || size == 8)))) {
        its_sim_refuse(d, "cp.async.ca copies 4, 8 or 16 bytes, cp.async.cg 16", "cp.async of %llu bytes",
                       (unsigned long long)size);
        return;
    }
    bool hint = its_mnemonic_has(d->m, ITS_MOD_L2_CACHE_HINT);
    its_sim_tick_class(d, ITS_MODCLASS_SPACE);
    its_sim_tick_class(d, ITS_MODCLASS_CACHE);
    unsigned count = d->insn->node.count - (hint ? 1u : 0u);
    const its_operand *last = count > 3 ? its_sim_operand(d, 3) : NULL;
    bool ignores = last && last->kind == ITS_OPND_REG && last->symbol->type == ITS_TYPE_PRED, inverted = false;
    uint32_t given = last && !ignores ? its_sim_source(d, last, ITS_TYPE_B32) : its_sim_const_bits(d, size, 4);
    uint32_t ignored = ignores ? its_sim_predicate(d, last, &inverted) : 0;
    its_sim_op *from = its_sim_emit_at(d, ITS_SIM_ACT_COPY_FROM, 1, ITS_SPACE_GLOBAL);
    from->size = (uint8_t)size;
    from->b = given;
    from->c = ignored;
    from->mode = (uint16_t)((ignores ? ITS_COPY_IGNORES : 0) | (inverted ? ITS_COPY_NOT : 0));
    its_sim_emit_at(d, ITS_SIM_ACT_COPY_TO, 0, ITS_SPACE_SHARED)->size = (uint8_t)size;
}

static void group(its_sim_decoder *d, uint16_t mode, int64_t left) {
    its_sim_op *op = its_sim_emit_act(d, ITS_SIM_ACT_COPY_GROUP);
    op->mode = mode;
    op->imm = left;
}

/* -- cp.async.bulk ------------------------------------------------------------------------------------------------- */

/* The first two space modifiers: where to, where from. */
static bool two_spaces(its_sim_decoder *d, its_space *to, its_space *from) {
    unsigned n = 0;
    *to = *from = ITS_SPACE_NONE;
    for (unsigned i = 0; i < d->m->n_mods; i++) {
        its_space space = its_mod_space((its_mod)d->m->mods[i]);
        if (space == ITS_SPACE_NONE) continue;
        if (n == 0) *to = space;
        if (n == 1) *from = space;
        n++;
    }
    return n == 2;
}

static void bulk(its_sim_decoder *d) {
    if (its_sim_has(d, ITS_MOD_COMMIT_GROUP)) {
        group(d, ITS_COPY_BULK_COMMIT, 0);
        return;
    }
    if (its_sim_has(d, ITS_MOD_WAIT_GROUP)) {
        its_sim_has(d, ITS_MOD_READ); /* what is read and what is written are done at the same time here */
        group(d, ITS_COPY_BULK_WAIT, (int64_t)its_sim_literal(d, 0));
        return;
    }
    if (its_mnemonic_has(d->m, ITS_MOD_TENSOR)) {
        its_sim_decode_tensor(d);
        return;
    }
    its_sim_tick_class(d, ITS_MODCLASS_CACHE);
    if (its_sim_has(d, ITS_MOD_PREFETCH)) {
        its_sim_tick_class(d, ITS_MODCLASS_SPACE);
        its_sim_emit_act(d, ITS_SIM_ACT_PREFETCH);
        return;
    }
    its_space to, from;
    its_sim_atomic reduction = ITS_ATOM_ADD;
    bool barrier = its_sim_has(d, ITS_MOD_MBARRIER_COMPLETE_TX_BYTES), reduces = its_sim_has(d, ITS_MOD_REDUCE);
    its_sim_has(d, ITS_MOD_BULK_GROUP);
    if (!two_spaces(d, &to, &from)) {
        its_sim_refuse_form(d);
        return;
    }
    its_sim_tick_class(d, ITS_MODCLASS_SPACE);
    if (reduces && !its_sim_decode_reduction(d, &reduction)) return;
    its_type type = reduces ? its_sim_type(d, 0) : ITS_TYPE_NONE;
    if (its_sim_has(d, ITS_MOD_NOFTZ) && !its_sim_is_half(type)) its_sim_refuse_form(d);
    uint32_t size = its_sim_source(d, its_sim_operand(d, 2), ITS_TYPE_B32), ctas = 0;
    if (barrier && its_sim_has(d, ITS_MOD_MULTICAST_CLUSTER))
        ctas = its_sim_source(d, its_sim_operand(d, 4), ITS_TYPE_B16);
    if (barrier) its_sim_emit_at(d, ITS_SIM_ACT_BULK_ON, 3, ITS_SPACE_SHARED);
    its_sim_emit_at(d, ITS_SIM_ACT_BULK_FROM, 1, from)->b = size;
    its_sim_op *op = its_sim_emit_at(d, ITS_SIM_ACT_BULK_TO, 0, to);
    op->mode = barrier ? (reduces ? ITS_BULK_REDUCE_ON_MBARRIER : ITS_BULK_ON_MBARRIER)
                       : (reduces ? ITS_BULK_REDUCE : ITS_BULK_IN_GROUP);
    op->vec = (uint8_t)reduction;
    op->type = (uint8_t)type;
    op->c = ctas;
}

/* st.async [a], b, [mbarrier] and red.async.op */
void its_sim_decode_store_async(its_sim_decoder *d) {
    its_type type = its_sim_type(d, 0);
    its_sim_atomic reduction;
    unsigned mode = ITS_TENSOR_PLAIN;
    its_sim_has(d, ITS_MOD_ASYNC);
    if (d->m->op != ITS_OP_ST && its_sim_decode_reduction(d, &reduction)) mode = reduction;
    its_sim_tick_class(d, ITS_MODCLASS_SPACE);
    its_sim_tick_class(d, ITS_MODCLASS_SEMANTICS);
    its_sim_tick_class(d, ITS_MODCLASS_SCOPE);
    its_sim_tick_class(d, ITS_MODCLASS_VEC);
    const its_operand *data = its_sim_operand(d, 1);
    bool vector = data->kind == ITS_OPND_VEC;
    uint32_t count = vector ? data->count : 1, size = its_type_size(type);
    if (!its_sim_has(d, ITS_MOD_MBARRIER_COMPLETE_TX_BYTES) || (size != 4 && size != 8) || count * size > 16 ||
        count != d->m->vec)
        its_sim_refuse_form(d);
    if (d->refused) return;
    uint32_t places[4] = {0};
    for (uint32_t i = 0; i < count; i++) places[i] = its_sim_source(d, vector ? &data->list[i] : data, type);
    uint32_t list = (uint32_t)d->program->lists.count;
    for (uint32_t i = 0; i < count; i++) ITS_PUSH(d->arena, &d->program->lists, places[i]);
    its_sim_emit_at(d, ITS_SIM_ACT_BULK_ON, 2, ITS_SPACE_SHARED);
    its_sim_op *op = its_sim_emit_at(d, ITS_SIM_ACT_STORE_ASYNC, 0, ITS_SPACE_SHARED);
    op->list = list;
    op->vec = (uint8_t)count;
    op->size = (uint8_t)size;
    op->type = (uint8_t)type;
    op->mode = (uint16_t)mode;
}

void its_sim_decode_copy(its_sim_decoder *d) {
    if (d->m->op != ITS_OP_CP || !its_sim_has(d, ITS_MOD_ASYNC)) {
        its_sim_decode_none(d);
    } else if (its_sim_has(d, ITS_MOD_BULK)) {
        bulk(d);
    } else if (its_sim_has(d, ITS_MOD_COMMIT_GROUP)) {
        group(d, ITS_COPY_COMMIT, 0);
    } else if (its_sim_has(d, ITS_MOD_WAIT_ALL)) {
        group(d, ITS_COPY_WAIT, -1);
    } else if (its_sim_has(d, ITS_MOD_WAIT_GROUP)) {
        group(d, ITS_COPY_WAIT, (int64_t)its_sim_literal(d, 0));
    } else if (its_sim_has(d, ITS_MOD_MBARRIER)) {
        its_sim_has(d, ITS_MOD_ARRIVE);
        its_sim_type(d, 0);
        its_space space = (its_space)d->m->space;
        its_sim_tick_class(d, ITS_MODCLASS_SPACE);
        bool counted = its_sim_has(d, ITS_MOD_NOINC);
        uint32_t one = its_sim_const_bits(d, 1, 4);
        its_sim_op *op = its_sim_emit_at(d, ITS_SIM_ACT_MBARRIER, 0, space);
        op->mode = counted ? ITS_MBARRIER_ARRIVE_COPIES : ITS_MBARRIER_WAIT_COPIES;
        op->b = one;
        op->dst = ITS_SIM_NOWHERE;
    } else {
        copy(d);
    }
}

/* -- mbarrier ------------------------------------------------------------------------------------------------------ */

typedef struct mbarrier_form {
    its_mod mod;
    uint8_t mode;
    bool result; /* the first operand is written */
} mbarrier_form;

static const mbarrier_form forms[] = {
    {ITS_MOD_INIT, ITS_MBARRIER_INIT, false},
    {ITS_MOD_INVAL, ITS_MBARRIER_INVAL, false},
    {ITS_MOD_COMPLETE_TX, ITS_MBARRIER_COMPLETE, false},
    {ITS_MOD_ARRIVE, ITS_MBARRIER_ARRIVE, true},
    {ITS_MOD_ARRIVE_DROP, ITS_MBARRIER_DROP, true},
    {ITS_MOD_TEST_WAIT, ITS_MBARRIER_TEST, true},
    {ITS_MOD_TRY_WAIT, ITS_MBARRIER_TEST, true},
    {ITS_MOD_EXPECT_TX, ITS_MBARRIER_EXPECT, false},
};

static const mbarrier_form *form_of(its_sim_decoder *d) {
    for (size_t i = 0; i < sizeof(forms) / sizeof(*forms); i++)
        if (its_sim_has(d, forms[i].mod)) return &forms[i];
    return NULL;
}

/* What was pending when the arrival was made stands in the upper half of the state. */
static void pending_count(its_sim_decoder *d) {
    its_sim_type(d, 0);
    uint32_t state = its_sim_source(d, its_sim_operand(d, 1), ITS_TYPE_B64);
    its_sim_emit1(d, ITS_SIM_UPPER_64, its_sim_target(d, its_sim_operand(d, 0), ITS_TYPE_U32), 4, state);
}

void its_sim_decode_mbarrier(its_sim_decoder *d) {
    if (its_sim_has(d, ITS_MOD_PENDING_COUNT)) {
        pending_count(d);
        return;
    }
    const mbarrier_form *form = form_of(d);
    if (!form) {
        its_sim_decode_none(d);
        return;
    }
    uint8_t mode = form->mode;
    bool tests = mode == ITS_MBARRIER_TEST, bytes = its_sim_has(d, ITS_MOD_EXPECT_TX);
    if (bytes && mode == ITS_MBARRIER_ARRIVE) mode = ITS_MBARRIER_ARRIVE_TX;
    if (bytes && mode == ITS_MBARRIER_DROP) mode = ITS_MBARRIER_DROP_TX;
    if (its_sim_has(d, ITS_MOD_PARITY)) mode = ITS_MBARRIER_TEST_PARITY;
    bool stays = its_sim_has(d, ITS_MOD_NOCOMPLETE);
    its_sim_type(d, 0);
    its_sim_tick_class(d, ITS_MODCLASS_SEMANTICS);
    its_sim_tick_class(d, ITS_MODCLASS_SCOPE);
    its_space space = (its_space)d->m->space;
    its_sim_tick_class(d, ITS_MODCLASS_SPACE);
    unsigned at = form->result ? 1 : 0;
    if (form->result && its_sim_operand(d, 0)->kind == ITS_OPND_ADDR) at = 0;
    uint32_t dst = ITS_SIM_NOWHERE, value = its_sim_const_bits(d, 1, 4);
    if (tests)
        dst = its_sim_target(d, its_sim_operand(d, 0), ITS_TYPE_PRED);
    else if (at == 1 && its_sim_operand(d, 0)->kind != ITS_OPND_SINK)
        dst = its_sim_target(d, its_sim_operand(d, 0), ITS_TYPE_B64);
    if (d->insn->node.count > at + 1u) {
        bool state = mode == ITS_MBARRIER_TEST;
        value = its_sim_source(d, its_sim_operand(d, at + 1), state ? ITS_TYPE_B64 : ITS_TYPE_B32);
    }
    its_sim_op *op = its_sim_emit_at(d, ITS_SIM_ACT_MBARRIER, at, space);
    op->mode = mode;
    op->dst = dst;
    op->b = value;
    op->size = stays;
}
