/* Decoding functions: nodes one after the other, labels, and what all groups share. */
#include "sim/decode.h"

#include <string.h>

#define LARGEST_FRAME ((uint32_t)64 << 20)
#define LARGEST_STACK ((uint64_t)512 << 10)

static its_sim_decode_group *const groups[ITS_OP_COUNT] = {
    [ITS_OP_UNKNOWN] = its_sim_decode_none,
#define ITS_OP(id, text, pattern, effect, sim) [ITS_OP_##id] = its_sim_decode_##sim,
#include "ptx/ptx_ops.def"
#undef ITS_OP
};

/* -- refusing ------------------------------------------------------------------------------------------------------ */

void its_sim_refuse(its_sim_decoder *d, const char *hint, const char *format, ...) {
    if (d->refused) return;
    d->refused = true;
    va_list args;
    va_start(args, format);
    its_sim_refusal refusal = {.where = d->program->wheres.items[d->where], .hint = hint};
    refusal.message = its_arena_vprintf(d->arena, format, args);
    va_end(args);
    ITS_PUSH(d->arena, &d->program->refusals, refusal);
}

void its_sim_refuse_form(its_sim_decoder *d) {
    its_sim_refuse(d, NULL, "the simulator doesn't have '%s' in this form", d->insn->name->text);
}

void its_sim_decode_none(its_sim_decoder *d) {
    its_sim_refuse(d, NULL, "the simulator doesn't have the instruction '%s'", d->insn->name->text);
}

/* -- modifiers ----------------------------------------------------------------------------------------------------- */

static void tick(its_sim_decoder *d, its_mod mod) {
    d->ticked[(unsigned)mod / 64] |= (uint64_t)1 << ((unsigned)mod % 64);
}

bool its_sim_has(its_sim_decoder *d, its_mod mod) {
    tick(d, mod);
    return its_mnemonic_has(d->m, mod);
}

void its_sim_tick_class(its_sim_decoder *d, its_mod_class class) {
    for (unsigned i = 0; i < d->m->n_mods; i++)
        if (its_mod_class_of((its_mod)d->m->mods[i]) == class) tick(d, (its_mod)d->m->mods[i]);
}

void its_sim_tick_all(its_sim_decoder *d) {
    memset(d->ticked, 0xff, sizeof(d->ticked));
}

its_mod its_sim_type_mod(its_sim_decoder *d, unsigned index) {
    if (index >= d->m->n_types || index >= ITS_MNEMONIC_TYPES) return ITS_MOD_UNKNOWN;
    tick(d, (its_mod)d->m->type_mods[index]);
    return (its_mod)d->m->type_mods[index];
}

its_type its_sim_type(its_sim_decoder *d, unsigned index) {
    its_sim_type_mod(d, index);
    return its_mnemonic_type(d->m, index);
}

its_mod its_sim_first(its_sim_decoder *d, its_mod_class class) {
    its_mod mod = its_mnemonic_find(d->m, class, 0);
    if (mod != ITS_MOD_UNKNOWN) tick(d, mod);
    return mod;
}

static void check_ticked(its_sim_decoder *d) {
    for (unsigned i = 0; i < d->m->n_mods; i++) {
        unsigned mod = d->m->mods[i];
        if (mod != ITS_MOD_UNKNOWN && (d->ticked[mod / 64] >> (mod % 64)) & 1) continue;
        its_sim_refuse(d, NULL, "the simulator doesn't have '%s' with '%s'", its_op_text((its_op)d->m->op),
                       d->m->mod_names[i]->text);
        return;
    }
}

/* -- room in the frame --------------------------------------------------------------------------------------------- */

static uint32_t allocate(its_sim_decoder *d, uint32_t size) {
    if (d->frame > LARGEST_FRAME) {
        its_sim_refuse(d, NULL, "function '%s' has more registers than the simulator can hold", d->func->name);
        return 64;
    }
    uint32_t offset = d->frame;
    d->frame += size;
    return offset;
}

uint32_t its_sim_temp(its_sim_decoder *d, uint32_t size) {
    if (size) return allocate(d, size * 32);
    if (d->pred_next == d->pred_end) {
        d->pred_next = allocate(d, 64);
        d->pred_end = d->pred_next + 64;
    }
    d->pred_next += 4;
    return d->pred_next - 4;
}

static uint32_t const_hash(uint8_t kind, uint64_t value, uint32_t size) {
    return (uint32_t)(((value + kind) * 0x9e3779b97f4a7c15ull + size) >> 32);
}

static void grow_consts(its_sim_decoder *d) {
    uint32_t capacity = d->const_capacity ? d->const_capacity * 2 : 64;
    uint32_t *slots = ITS_NEW_ARRAY(&d->scratch, uint32_t, capacity);
    for (uint32_t i = 0; i < d->consts.count; i++) {
        const its_sim_const *c = &d->consts.items[i];
        uint32_t at = const_hash(c->kind, c->value, c->size) & (capacity - 1);
        while (slots[at]) at = (at + 1) & (capacity - 1);
        slots[at] = i + 1;
    }
    d->const_slots = slots;
    d->const_capacity = capacity;
}

uint32_t its_sim_const_of(its_sim_decoder *d, uint8_t kind, uint64_t value, uint32_t size) {
    if ((d->consts.count + 1) * 2 > d->const_capacity) grow_consts(d);
    uint32_t at = const_hash(kind, value, size) & (d->const_capacity - 1);
    for (; d->const_slots[at]; at = (at + 1) & (d->const_capacity - 1)) {
        const its_sim_const *c = &d->consts.items[d->const_slots[at] - 1];
        if (c->kind == kind && c->value == value && c->size == size) return c->offset;
    }
    its_sim_const made = {its_sim_temp(d, size), (uint8_t)size, kind, value};
    ITS_PUSH(&d->scratch, &d->consts, made);
    d->const_slots[at] = (uint32_t)d->consts.count;
    return made.offset;
}

uint32_t its_sim_const_bits(its_sim_decoder *d, uint64_t bits, uint32_t size) {
    if (size == 0)
        bits = bits != 0;
    else if (size < 8)
        bits &= ((uint64_t)1 << (8 * size)) - 1;
    return its_sim_const_of(d, ITS_SIM_CONST_BITS, bits, size);
}

/* Room in the stack frame; offset from its start. */
static uint32_t stack_room(its_sim_decoder *d, uint64_t size, uint32_t align) {
    uint64_t offset = ((uint64_t)d->stack + align - 1) & ~(uint64_t)(align - 1);
    if (size > LARGEST_STACK || offset + size > LARGEST_STACK) {
        its_sim_refuse(d, NULL, "function '%s' has more than 512 KiB of .local variables", d->func->name);
        return 0;
    }
    d->stack = (uint32_t)(offset + size);
    return (uint32_t)offset;
}

/* -- emitting ------------------------------------------------------------------------------------------------------ */

static its_sim_op *append(its_sim_decoder *d, its_sim_op op) {
    if (d->refused) {
        d->dummy = op;
        return &d->dummy;
    }
    ITS_PUSH(&d->scratch, &d->ops, op);
    ITS_PUSH(&d->scratch, &d->op_where, d->where);
    return &d->ops.items[d->ops.count - 1];
}

its_sim_op *its_sim_emit(its_sim_decoder *d, its_sim_handler handler, uint32_t dst, uint32_t dst_size) {
    its_sim_op op = {.handler = (uint16_t)handler, .kind = ITS_SIM_OP_ALU, .dst = dst, .dst_size = (uint8_t)dst_size};
    if (d->insn->guard) {
        op.guard = its_sim_register(d, d->insn->guard);
        if (d->insn->node.flags & ITS_INSN_GUARD_NOT) op.guard_xor = UINT32_MAX;
        if (d->insn->guard->type != ITS_TYPE_PRED || d->insn->guard_suffix) its_sim_refuse_form(d);
    }
    return append(d, op);
}

its_sim_op *its_sim_emit1(its_sim_decoder *d, its_sim_handler handler, uint32_t dst, uint32_t dst_size, uint32_t a) {
    its_sim_op *op = its_sim_emit(d, handler, dst, dst_size);
    op->a = a;
    return op;
}

its_sim_op *its_sim_emit2(its_sim_decoder *d, its_sim_handler handler, uint32_t dst, uint32_t dst_size, uint32_t a,
                          uint32_t b) {
    its_sim_op *op = its_sim_emit1(d, handler, dst, dst_size, a);
    op->b = b;
    return op;
}

its_sim_op *its_sim_emit3(its_sim_decoder *d, its_sim_handler handler, uint32_t dst, uint32_t dst_size, uint32_t a,
                          uint32_t b, uint32_t c) {
    its_sim_op *op = its_sim_emit2(d, handler, dst, dst_size, a, b);
    op->c = c;
    return op;
}

its_sim_op *its_sim_emit_act(its_sim_decoder *d, its_sim_handler handler) {
    its_sim_op *op = its_sim_emit(d, handler, 0, 0);
    op->kind = ITS_SIM_OP_ACT;
    return op;
}

its_sim_op *its_sim_emit_warp(its_sim_decoder *d, its_sim_handler handler) {
    uint32_t all = its_sim_const_bits(d, UINT32_MAX, 4);
    its_sim_op *op = its_sim_emit_act(d, handler);
    op->e = all;
    return op;
}

its_sim_op *its_sim_emit_at(its_sim_decoder *d, its_sim_handler handler, unsigned index, its_space space) {
    its_sim_op address = {.space = (uint8_t)space};
    its_operand base = *its_sim_operand(d, index);
    if (base.kind == ITS_OPND_ADDR && base.count > 1) base.count = 1;
    its_sim_take_address(d, &address, &base);
    its_sim_op *op = its_sim_emit_act(d, handler);
    op->a = address.a;
    op->imm = address.imm;
    op->flags = address.flags;
    op->space = (uint8_t)space;
    return op;
}

void its_sim_emit_branch(its_sim_decoder *d, its_symbol *label) {
    its_sim_op *op = its_sim_emit(d, ITS_SIM_BRANCH, 0, 0);
    op->kind = ITS_SIM_OP_BRANCH;
    if (d->refused) return;
    its_sim_fixup fixup = {(uint32_t)d->ops.count - 1, label};
    ITS_PUSH(&d->scratch, &d->fixups, fixup);
}

void its_sim_emit_copy(its_sim_decoder *d, uint32_t dst, uint32_t src, uint32_t size) {
    its_sim_handler handler = size == 0   ? ITS_SIM_PRED_COPY
                              : size == 2 ? ITS_SIM_COPY_16
                              : size == 4 ? ITS_SIM_COPY_32
                              : size == 8 ? ITS_SIM_COPY_64
                                          : ITS_SIM_COPY_128;
    its_sim_emit1(d, handler, dst, size, src);
}

/* -- a function ---------------------------------------------------------------------------------------------------- */

static void set_where(its_sim_decoder *d, const its_node *node) {
    its_sim_where where = its_sim_where_of(d->program, node);
    where.loc = d->loc;
    where.func = (uint32_t)(d->func - d->program->funcs);
    d->where = (uint32_t)d->program->wheres.count;
    ITS_PUSH(d->arena, &d->program->wheres, where);
}

static void decode_insn(its_sim_decoder *d, const its_insn *insn) {
    d->insn = insn;
    d->m = its_mnemonic_of(d->ctx, insn->name);
    d->refused = false;
    memset(d->ticked, 0, sizeof(d->ticked));
    set_where(d, &insn->node);
    size_t ops = d->ops.count, fixups = d->fixups.count;
    if (d->accumulators) its_sim_touch_accumulators(d);
    groups[d->m->op](d);
    if (!d->refused) check_ticked(d);
    if (!d->refused) return;
    d->ops.count = d->op_where.count = ops;
    d->fixups.count = fixups;
    d->refused = false;
    its_sim_op op = {.handler = ITS_SIM_ACT_REFUSE, .kind = ITS_SIM_OP_ACT};
    op.list = (uint32_t)d->program->refusals.count - 1;
    append(d, op);
}

static void decode_loc(its_sim_decoder *d, const its_loc *loc) {
    its_sim_loc copy = {.file = loc->file,
                        .line = loc->line,
                        .column = loc->column,
                        .inlined = loc->inlined,
                        .at_file = loc->at_file,
                        .at_line = loc->at_line,
                        .at_column = loc->at_column};
    ITS_PUSH(d->arena, &d->program->locs, copy);
    d->loc = (uint32_t)d->program->locs.count;
}

static uint32_t symbol_align(const its_symbol *symbol) {
    uint32_t natural = its_type_size((its_type)symbol->type) * (symbol->vec ? symbol->vec : 1u);
    uint32_t align = symbol->align > natural ? symbol->align : natural;
    return align == 0 || (align & (align - 1)) ? 16 : align;
}

static uint32_t place_on_stack(its_sim_decoder *d, its_symbol *symbol, uint64_t size) {
    uint32_t offset = stack_room(d, size, symbol_align(symbol));
    symbol->pass = (void *)((uintptr_t)offset + 1);
    return offset;
}

static void decode_node(its_sim_decoder *d, const its_node *node) {
    switch (node->kind) {
    case ITS_NODE_INSN:
        decode_insn(d, (const its_insn *)node);
        break;
    case ITS_NODE_LABEL:
        d->labels[((const its_decl *)node)->symbol->id] = (uint32_t)d->ops.count + 1 - d->func->first;
        break;
    case ITS_NODE_LOC:
        decode_loc(d, (const its_loc *)node);
        break;
    case ITS_NODE_VAR: {
        its_symbol *symbol = ((const its_var *)node)->symbol;
        if (symbol->space == ITS_SPACE_LOCAL || symbol->space == ITS_SPACE_PARAM)
            place_on_stack(d, symbol, symbol->size);
        break;
    }
    default:
        break;
    }
}

/* Formal parameters of a .func lie in its stack frame or in registers. */
static const its_sim_slot *place_formals(its_sim_decoder *d, const its_params *params) {
    its_sim_slot *slots = ITS_NEW_ARRAY(d->arena, its_sim_slot, params->n ? params->n : 1);
    for (uint32_t i = 0; i < params->n; i++) {
        its_symbol *symbol = params->items[i];
        if (symbol->space == ITS_SPACE_REG) {
            slots[i] =
                (its_sim_slot){its_sim_register(d, symbol), its_sim_reg_size((its_type)symbol->type), true, false};
            continue;
        }
        bool open = symbol->flags & ITS_SYM_UNSIZED;
        uint64_t size = open ? d->open_bytes : symbol->size;
        slots[i] = (its_sim_slot){place_on_stack(d, symbol, size), (uint32_t)size, false, open};
    }
    return slots;
}

static void place_params(its_sim_decoder *d) {
    const its_func *node = d->node;
    if (d->func->is_entry) {
        for (uint32_t i = 0; i < node->params.n; i++)
            node->params.items[i]->pass = (void *)((uintptr_t)d->func->entry.params[i].offset + 1);
        return;
    }
    d->func->n_params = node->params.n;
    d->func->params = place_formals(d, &node->params);
    d->func->n_results = node->results.n;
    d->func->results = place_formals(d, &node->results);
}

static void place_labels(its_sim_decoder *d) {
    for (size_t i = 0; i < d->fixups.count; i++) {
        const its_sim_fixup *fixup = &d->fixups.items[i];
        uint32_t at = d->labels[fixup->label->id];
        d->ops.items[fixup->op].imm = (int64_t)d->func->first + at - 1;
    }
    for (size_t i = 0; i < d->table_fixups.count; i++) {
        const its_sim_table_fixup *fixup = &d->table_fixups.items[i];
        *fixup->target = d->func->first + d->labels[fixup->label->id] - 1;
    }
}

/* A body may end without a ret: the end is one. */
static void end_body(its_sim_decoder *d) {
    its_node end = {.origin = d->node->node.origin, .pos = d->node->end_pos, .kind = ITS_NODE_INSN};
    set_where(d, &end);
    d->refused = false;
    its_sim_op op = {.handler = ITS_SIM_ACT_RETURN, .kind = ITS_SIM_OP_ACT};
    append(d, op);
}

static const uint32_t *keep(its_sim_decoder *d, const uint32_t *items, size_t count) {
    uint32_t *copy = ITS_NEW_ARRAY(d->arena, uint32_t, count ? count : 1);
    if (count) memcpy(copy, items, count * sizeof(*copy));
    return copy;
}

static void finish(its_sim_decoder *d) {
    its_sim_func *func = d->func;
    func->n_ops = (uint32_t)d->ops.count - func->first;
    func->frame_size = (d->frame + 63u) & ~63u;
    func->consts_begin = func->frame_size;
    func->local_size = (d->stack + 15u) & ~15u;
    func->n_consts = (uint32_t)d->consts.count;
    its_sim_const *consts = ITS_NEW_ARRAY(d->arena, its_sim_const, d->consts.count ? d->consts.count : 1);
    if (d->consts.count) memcpy(consts, d->consts.items, d->consts.count * sizeof(*consts));
    func->consts = consts;
    func->n_callees = (uint32_t)d->callees.count;
    func->callees = keep(d, d->callees.items, d->callees.count);
    func->n_shared = (uint32_t)d->shared.count;
    func->shared = keep(d, d->shared.items, d->shared.count);
    func->n_refusals = (uint32_t)d->program->refusals.count - func->refusal;
}

static void start(its_sim_decoder *d, const its_func *node, uint32_t index) {
    d->node = node;
    d->func = &d->program->funcs[index];
    d->func->first = (uint32_t)d->ops.count;
    d->func->refusal = (uint32_t)d->program->refusals.count;
    d->regs = ITS_NEW_ARRAY(&d->scratch, uint32_t, node->n_regs + 1);
    d->labels = ITS_NEW_ARRAY(&d->scratch, uint32_t, node->n_labels + 1);
    d->fixups.count = d->table_fixups.count = d->consts.count = d->callees.count = d->shared.count = 0;
    d->const_slots = NULL;
    d->const_capacity = 0;
    d->frame = 512; /* so that an unused operand, at offset 0, is memory of the frame whatever its size */
    d->pred_next = 8;
    d->pred_end = 64;
    d->stack = 0;
    d->loc = 0;
    d->accumulators = NULL;
}

static void decode_func(its_sim_decoder *d, const its_func *node, uint32_t index) {
    start(d, node, index);
    set_where(d, &node->node);
    d->refused = false;
    place_params(d);
    its_sim_find_accumulators(d);
    for (const its_node *at = node->first; at; at = at->next) decode_node(d, at);
    end_body(d);
    place_labels(d);
    finish(d);
}

/* -- a module ------------------------------------------------------------------------------------------------------ */

static void take_ops(its_sim_decoder *d) {
    its_sim_program *program = d->program;
    program->n_ops = (uint32_t)d->ops.count;
    program->ops = its_arena_array(d->arena, d->ops.count + 1, sizeof(its_sim_op));
    program->op_where = its_arena_array(d->arena, d->ops.count + 1, sizeof(uint32_t));
    if (d->ops.count == 0) return;
    memcpy(program->ops, d->ops.items, d->ops.count * sizeof(its_sim_op));
    memcpy(program->op_where, d->op_where.items, d->ops.count * sizeof(uint32_t));
    for (uint32_t i = 0; i < program->n_ops; i++)
        if (program->ops[i].kind == ITS_SIM_OP_BRANCH) program->ops[i].target = program->ops + program->ops[i].imm;
}

/* Nothing says which calls reach a varargs function that is called by its address: they all count for each. */
static void measure_open(its_sim_decoder *d) {
    for (const its_func *f = its_module_next_func(d->module, NULL); f; f = its_module_next_func(d->module, f)) {
        for (const its_node *at = f->first; at; at = at->next) {
            const its_insn *insn = (const its_insn *)at;
            if (at->kind != ITS_NODE_INSN || its_mnemonic_of(d->ctx, insn->name)->op != ITS_OP_CALL) continue;
            uint64_t bytes = its_sim_open_bytes(insn);
            if (bytes > d->open_bytes) d->open_bytes = bytes;
        }
    }
}

static its_status decode_body(void *user) {
    its_sim_decoder *d = user;
    measure_open(d);
    for (const its_func *f = its_module_next_func(d->module, NULL); f; f = its_module_next_func(d->module, f)) {
        uintptr_t index = (uintptr_t)f->symbol->pass;
        if (f->has_body && index) decode_func(d, f, (uint32_t)index - 1);
    }
    take_ops(d);
    return ITS_OK;
}

void its_sim_program_decode(its_sim_program *program, const its_module *module) {
    its_sim_decoder *d = its_block_alloc(program->ctx, sizeof(*d));
    if (!d) its_guard_raise(program->ctx);
    memset(d, 0, sizeof(*d));
    d->ctx = program->ctx;
    d->program = program;
    d->module = module;
    d->arena = &program->arena;
    its_arena_init(&d->scratch, program->ctx);
    its_status status = its_protect(program->ctx, decode_body, d);
    its_arena_free(&d->scratch);
    its_free(program->ctx, d);
    if (status != ITS_OK) its_guard_raise(program->ctx);
}
