/* Tensor copies, and making tensor maps. What the simulator lacks of them (im2col, gathering) is left to be refused. */
#include "sim/async.h"
#include "sim/decode.h"

static uint32_t rank_of(its_sim_decoder *d) {
    static const its_mod dims[] = {ITS_MOD_1D, ITS_MOD_2D, ITS_MOD_3D, ITS_MOD_4D, ITS_MOD_5D};
    for (uint32_t i = 0; i < ITS_TENSOR_RANK; i++)
        if (its_sim_has(d, dims[i])) return i + 1;
    its_sim_refuse_form(d);
    return 1;
}

/* The coordinates of `[map, {x, y}]`; their index in the program's lists. */
static uint32_t take_coordinates(its_sim_decoder *d, unsigned index, uint32_t rank) {
    const its_operand *address = its_sim_operand(d, index), *items = NULL;
    uint32_t count = 0, places[ITS_TENSOR_RANK] = {0};
    if (address->kind == ITS_OPND_ADDR && address->count == 2) {
        bool vector = address->list[1].kind == ITS_OPND_VEC;
        items = vector ? address->list[1].list : &address->list[1];
        count = vector ? address->list[1].count : 1;
    }
    if (count != rank) {
        its_sim_refuse(d, NULL, "'%s' takes %u coordinates but is given %u", d->insn->name->text, (unsigned)rank,
                       (unsigned)count);
        return 0;
    }
    for (uint32_t i = 0; i < rank; i++) places[i] = its_sim_source(d, &items[i], ITS_TYPE_B32);
    uint32_t list = (uint32_t)d->program->lists.count;
    for (uint32_t i = 0; i < rank; i++) ITS_PUSH(d->arena, &d->program->lists, places[i]);
    return list;
}

static void load(its_sim_decoder *d, uint32_t rank) {
    uint32_t list = take_coordinates(d, 1, rank);
    uint32_t ctas = 0;
    if (its_sim_has(d, ITS_MOD_MULTICAST_CLUSTER)) ctas = its_sim_source(d, its_sim_operand(d, 3), ITS_TYPE_B16);
    its_sim_has(d, ITS_MOD_CTA_GROUP_1);
    its_sim_emit_at(d, ITS_SIM_ACT_BULK_ON, 2, ITS_SPACE_SHARED);
    its_sim_emit_at(d, ITS_SIM_ACT_TENSOR_MAP, 1, ITS_SPACE_NONE);
    its_sim_op *op = its_sim_emit_at(d, ITS_SIM_ACT_TENSOR_LOAD, 0, ITS_SPACE_SHARED);
    op->list = list;
    op->vec = (uint8_t)rank;
    op->c = ctas;
}

bool its_sim_decode_reduction(its_sim_decoder *d, its_sim_atomic *mode) {
    static const struct {
        its_mod mod;
        its_sim_atomic mode;
    } modes[] = {{ITS_MOD_ADD, ITS_ATOM_ADD}, {ITS_MOD_MIN, ITS_ATOM_MIN}, {ITS_MOD_MAX, ITS_ATOM_MAX},
                 {ITS_MOD_INC, ITS_ATOM_INC}, {ITS_MOD_DEC, ITS_ATOM_DEC}, {ITS_MOD_AND, ITS_ATOM_AND},
                 {ITS_MOD_OR, ITS_ATOM_OR},   {ITS_MOD_XOR, ITS_ATOM_XOR}};
    for (size_t i = 0; i < sizeof(modes) / sizeof(*modes); i++)
        if (its_sim_has(d, modes[i].mod)) {
            *mode = modes[i].mode;
            return true;
        }
    its_sim_refuse_form(d);
    return false;
}

static void store(its_sim_decoder *d, uint32_t rank) {
    its_sim_atomic reduction;
    unsigned mode = ITS_TENSOR_PLAIN;
    if (its_sim_has(d, ITS_MOD_REDUCE) && its_sim_decode_reduction(d, &reduction)) mode = reduction;
    uint32_t list = take_coordinates(d, 0, rank);
    its_sim_emit_at(d, ITS_SIM_ACT_TENSOR_MAP, 0, ITS_SPACE_NONE);
    its_sim_op *op = its_sim_emit_at(d, ITS_SIM_ACT_TENSOR_STORE, 1, ITS_SPACE_SHARED);
    op->list = list;
    op->vec = (uint8_t)rank;
    op->mode = (uint16_t)mode;
}

/* cp{.reduce}.async.bulk{.prefetch}.tensor */
void its_sim_decode_tensor(its_sim_decoder *d) {
    its_sim_has(d, ITS_MOD_TENSOR);
    its_sim_has(d, ITS_MOD_TILE);
    its_sim_tick_class(d, ITS_MODCLASS_SPACE);
    its_sim_tick_class(d, ITS_MODCLASS_CACHE);
    uint32_t rank = rank_of(d);
    if (its_sim_has(d, ITS_MOD_PREFETCH))
        its_sim_emit_at(d, ITS_SIM_ACT_TENSOR_MAP, 0, ITS_SPACE_NONE);
    else if (its_sim_has(d, ITS_MOD_MBARRIER_COMPLETE_TX_BYTES))
        load(d, rank);
    else if (its_sim_has(d, ITS_MOD_BULK_GROUP))
        store(d, rank);
    else
        its_sim_refuse_form(d);
}

/* -- tensormap ----------------------------------------------------------------------------------------------------- */

typedef struct field {
    its_mod mod;
    uint8_t mode, count; /* count: how many of them there are, 0 if just one */
} field;

static const field fields[] = {
    {ITS_MOD_GLOBAL_ADDRESS, ITS_TENSOR_ADDRESS, 0},
    {ITS_MOD_RANK, ITS_TENSOR_SET_RANK, 0},
    {ITS_MOD_BOX_DIM, ITS_TENSOR_BOX, 5},
    {ITS_MOD_GLOBAL_DIM, ITS_TENSOR_DIM, 5},
    {ITS_MOD_GLOBAL_STRIDE, ITS_TENSOR_STRIDE, 4},
    {ITS_MOD_ELEMENT_STRIDE, ITS_TENSOR_STEP, 5},
    {ITS_MOD_ELEMTYPE, ITS_TENSOR_TYPE, 0},
    {ITS_MOD_INTERLEAVE_LAYOUT, ITS_TENSOR_INTERLEAVE, 0},
    {ITS_MOD_SWIZZLE_MODE, ITS_TENSOR_SWIZZLE, 0},
    {ITS_MOD_SWIZZLE_ATOMICITY, ITS_TENSOR_ATOMICITY, 0},
    {ITS_MOD_FILL_MODE, ITS_TENSOR_FILL, 0},
};

static const field *field_of(its_sim_decoder *d) {
    for (size_t i = 0; i < sizeof(fields) / sizeof(*fields); i++)
        if (its_sim_has(d, fields[i].mod)) return &fields[i];
    its_sim_refuse_form(d);
    return &fields[0];
}

static void replace(its_sim_decoder *d) {
    const field *f = field_of(d);
    its_sim_has(d, ITS_MOD_TILE);
    its_sim_has(d, ITS_MOD_B1024);
    its_type type = its_sim_type(d, 0);
    uint64_t which = 0;
    if (f->count) {
        const its_operand *ordinal = its_sim_operand(d, 1);
        which = ordinal->bits;
        if (ordinal->kind != ITS_OPND_INT || which >= f->count)
            its_sim_refuse(d, NULL, "a tensor map has %u of what '%s' replaces", (unsigned)f->count,
                           d->insn->name->text);
    }
    if (d->refused) return;
    uint32_t value = its_sim_source(d, its_sim_operand(d, f->count ? 2 : 1), type);
    its_sim_op *op = its_sim_emit_at(d, ITS_SIM_ACT_TENSOR_REPLACE, 0, (its_space)d->m->space);
    its_sim_tick_class(d, ITS_MODCLASS_SPACE);
    op->b = value;
    op->vec = (uint8_t)which;
    op->mode = f->mode;
    op->size = (uint8_t)its_type_size(type);
}

/* Copies a map from shared to global memory: a copy of 128 bytes by one thread for its warp. */
static void publish(its_sim_decoder *d) {
    its_sim_tick_all(d);
    uint32_t size = its_sim_const_bits(d, ITS_TENSOR_MAP_SIZE, 4);
    its_sim_emit_at(d, ITS_SIM_ACT_BULK_FROM, 1, ITS_SPACE_SHARED)->b = size;
    its_sim_emit_at(d, ITS_SIM_ACT_BULK_TO, 0, ITS_SPACE_GLOBAL)->mode = ITS_BULK_AT_ONCE;
}

void its_sim_decode_tensormap(its_sim_decoder *d) {
    if (its_sim_has(d, ITS_MOD_REPLACE))
        replace(d);
    else if (its_sim_has(d, ITS_MOD_CP_FENCEPROXY))
        publish(d);
    else
        its_sim_decode_none(d);
}
