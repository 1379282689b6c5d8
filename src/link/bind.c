/*
 * Parameters and results where a call is expanded.
 *
 * Parameters are bytes: the caller writes them in pieces, the callee reads them in pieces, and the pieces need not
 * agree. If both sides touch the same pieces, each piece is a register (a cell), a store becomes a mov into it and a
 * load a mov out of it. Otherwise the callee's side is a .local array, which takes any access, also through its
 * address:
 *
 *     caller                      callee                      becomes
 *     st.param.b32 [p0+0], %r1    ld.param.b32 %r5, [f_0]     mov %p0$b0, %r1; mov %f_0$b0, %p0$b0; mov %r5, %f_0$b0
 *
 * The movs are copies that ptxas removes; that there is one in between keeps a call by value what it is.
 */
#include <stdio.h>

#include "base/intern.h"
#include "link/expand.h"

/* -- types and names ----------------------------------------------------------------------------------------------- */

/* Registers have at least 16 bits. */
static its_type reg_type(uint64_t size) {
    return its_type_of_bytes(size < 2 ? 2 : size);
}

static uint32_t width_of(const its_operand *operand) {
    return its_type_size((its_type)operand->symbol->type);
}

/* -- single moves -------------------------------------------------------------------------------------------------- */

/* Where code for a call or an access goes: its frame, and the instruction that it stands for. */
typedef struct place {
    its_expander *x;
    its_frame *frame;
    its_insn *insn;
    bool guarded; /* by the guard of `insn` */
} place;

static void put_two(const place *at, const char *name, its_operand to, its_operand from) {
    its_insn *insn = its_emit_insn(at->x, at->frame, at->insn, at->guarded, name, 2);
    insn->ops[0] = to;
    insn->ops[1] = from;
    its_emit(at->x, insn);
}

static void put_move(const place *at, its_type type, its_operand to, its_operand from) {
    char name[16];
    snprintf(name, sizeof name, "mov%s", its_type_text(type));
    put_two(at, name, to, from);
}

static void put_memory(const place *at, bool store, const its_slot *slot, uint64_t offset, uint32_t size,
                       its_operand reg) {
    char name[24];
    its_operand variable = {.kind = ITS_OPND_SYM, .symbol = slot->symbol};
    its_operand address = its_address_operand(at->x->out, variable, (int64_t)offset);
    snprintf(name, sizeof name, "%s%s%s", store ? "st" : "ld", slot->form == ITS_SLOT_REAL ? ".param" : ".local",
             its_type_text(its_type_of_bytes(size)));
    put_two(at, name, store ? address : reg, store ? reg : address);
}

/* A register that takes `size` bytes for a moment. */
static its_operand temporary(const place *at, uint32_t size) {
    char number[24];
    snprintf(number, sizeof number, "t%u", at->x->n_temps++);
    its_name name = its_site_name(at->x, at->frame, NULL, 0, number);
    return its_reg_operand(its_new_reg(at->x, at->frame, name, reg_type(size)));
}

static void put_convert(const place *at, const char *kind, uint32_t to_width, uint32_t from_width, its_operand to,
                        its_operand from) {
    char name[24];
    snprintf(name, sizeof name, "cvt.%s%u.%s%u", kind, to_width * 8, kind, from_width * 8);
    put_two(at, name, to, from);
}

static bool is_float_reg(const its_operand *operand) {
    return operand->kind == ITS_OPND_REG && its_type_is_real((its_type)operand->symbol->type);
}

/* As bits of that size: cvt takes no float for an integer, as ld and st of bits do. */
static its_operand bits_of_float(const place *at, its_operand value) {
    its_operand bits = temporary(at, width_of(&value));
    put_move(at, reg_type(width_of(&value)), bits, value);
    return bits;
}

/* A value of an st.param into a cell. Wider registers are cut; immediates keep their type. */
static void put_into_cell(const place *at, uint32_t size, its_operand cell, its_operand value) {
    if (value.kind == ITS_OPND_F32 || value.kind == ITS_OPND_F64) {
        put_move(at, size == 4 ? ITS_TYPE_F32 : ITS_TYPE_F64, cell, value);
    } else if (value.kind == ITS_OPND_REG && width_of(&value) > (size < 2 ? 2 : size)) {
        its_operand bits = is_float_reg(&value) ? bits_of_float(at, value) : value;
        put_convert(at, "u", size < 2 ? 2 : size, width_of(&value), cell, bits);
    } else {
        if (value.kind == ITS_OPND_INT && size == 1) value.bits &= 0xff;
        put_move(at, reg_type(size), cell, value);
    }
}

/* A cell into the register of an ld.param, widened as the load's type says. */
static void put_from_cell(const place *at, its_type type, uint32_t size, its_operand value, its_operand cell) {
    bool is_signed = type >= ITS_TYPE_S8 && type <= ITS_TYPE_S64;
    if (value.kind == ITS_OPND_SINK) return;
    uint32_t width = width_of(&value);
    its_operand to = width != size && is_float_reg(&value) ? temporary(at, width) : value;
    if (width != size) put_convert(at, is_signed ? "s" : "u", width, size, to, cell);
    if (width == size) put_move(at, reg_type(size), value, cell);
    if (to.symbol != value.symbol) put_move(at, reg_type(width), value, to);
}

/* -- slots --------------------------------------------------------------------------------------------------------- */

static its_operand cell_operand(const its_slot *slot, size_t index) {
    return its_reg_operand(slot->cells[index]);
}

static const uint32_t NO_CELL = UINT32_MAX;

static uint32_t find_cell(const its_link_param *param, const its_cell *cell) {
    for (size_t i = 0; i < param->cells.count; i++)
        if (param->cells.items[i].offset == cell->offset && param->cells.items[i].size == cell->size)
            return (uint32_t)i;
    return NO_CELL;
}

static bool overlaps(const its_link_param *param, const its_cell *cell) {
    for (size_t i = 0; i < param->cells.count; i++) {
        const its_cell *other = &param->cells.items[i];
        if (other->offset < cell->offset + cell->size && cell->offset < other->offset + other->size) return true;
    }
    return false;
}

/* Can every piece that `to` has be taken from one of `from`? Pieces that nobody wrote hold nothing. */
static bool covers(const its_link_param *from, const its_link_param *to) {
    for (size_t i = 0; i < to->cells.count; i++) {
        const its_cell *cell = &to->cells.items[i];
        if (find_cell(from, cell) == NO_CELL && overlaps(from, cell)) return false;
    }
    return true;
}

static bool is_whole(const its_link_param *param) {
    if (param->cells.count == 0) return true;
    const its_cell *cell = &param->cells.items[0];
    return param->cells.count == 1 && cell->offset == 0 && cell->size == param->symbol->size;
}

static void make_cells(its_expander *x, its_frame *frame, its_slot *slot) {
    const its_link_param *param = slot->param;
    slot->cells = ITS_NEW_ARRAY(&x->linker->scratch, its_symbol *, param->cells.count);
    for (size_t i = 0; i < param->cells.count; i++) {
        char more[32];
        const its_cell *cell = &param->cells.items[i];
        snprintf(more, sizeof more, "b%u", cell->offset);
        uint32_t alias = frame->func->var_alias[param->symbol->id];
        its_name name = its_site_name(x, frame, param->symbol->name, alias, more);
        slot->cells[i] = its_new_reg(x, frame, name, reg_type(cell->size));
    }
}

/* An array for any access: what a .param has as alignment, or its elements' size, is enough for them. */
static its_symbol *make_memory(its_expander *x, its_frame *frame, const its_symbol *param) {
    its_symbol like = *param;
    uint32_t element = its_type_size((its_type)param->type) * param->vec;
    uint64_t *dims = ITS_NEW_ARRAY(its_module_arena(x->out), uint64_t, 1);
    dims[0] = param->size;
    if (like.align < element) like.align = element;
    if (like.align < 4) like.align = 4;
    like.type = ITS_TYPE_B8;
    like.vec = 1;
    like.dims = dims;
    like.n_dims = 1;
    like.flags = ITS_SYM_DEFINED | ITS_SYM_IN_FUNC | ITS_SYM_ARRAY;
    its_name name = its_site_name(x, frame, param->name, frame->func->var_alias[param->id], "m");
    return its_new_var(x, frame, name, &like, ITS_SPACE_LOCAL);
}

static void declare(its_expander *x, its_frame *frame, its_symbol *param, its_slot_form form) {
    its_slot *slot = &frame->slots[param->id];
    slot->param = frame->func->params[param->id];
    slot->form = (uint8_t)form;
    if (form == ITS_SLOT_CELLS) {
        make_cells(x, frame, slot);
    } else if (form == ITS_SLOT_MEMORY) {
        frame->vars[param->id] = slot->symbol = make_memory(x, frame, param);
    } else {
        its_operand operand = {.kind = ITS_OPND_SYM, .symbol = param};
        slot->symbol = its_map_operand(x, frame, &operand).symbol;
    }
}

/* Usually at its declaration; text that names it earlier is wrong, but must not confuse us. */
its_slot *its_bind_slot(its_expander *x, its_frame *frame, const its_link_param *param) {
    its_slot *slot = &frame->slots[param->symbol->id];
    its_slot_form form = param->regular ? ITS_SLOT_CELLS : ITS_SLOT_MEMORY;
    if (!slot->param) declare(x, frame, param->symbol, param->with_inlined ? form : ITS_SLOT_REAL);
    return slot;
}

static its_slot *slot_of(its_expander *x, its_frame *frame, const its_operand *operand) {
    const its_link_param *param = its_param_of(frame->func, operand);
    return param ? its_bind_slot(x, frame, param) : NULL;
}

/* -- slot to slot -------------------------------------------------------------------------------------------------- */

static uint32_t chunk_size(const its_symbol *param) {
    uint32_t element = its_type_size((its_type)param->type) * param->vec;
    uint32_t align = param->align > element ? param->align : element;
    if (align > 8) align = 8;
    while (align > 1 && param->size % align) align /= 2;
    return align ? align : 1;
}

static void copy_memory(const place *at, const its_slot *to, const its_slot *from) {
    uint64_t size =
        from->param->symbol->size < to->param->symbol->size ? from->param->symbol->size : to->param->symbol->size;
    uint32_t a = chunk_size(to->param->symbol), b = chunk_size(from->param->symbol), chunk = a < b ? a : b;
    its_operand temp = temporary(at, chunk);
    place plain = *at;
    plain.guarded = false;
    for (uint64_t offset = 0; offset + chunk <= size; offset += chunk) {
        put_memory(&plain, false, from, offset, chunk, temp);
        put_memory(at, true, to, offset, chunk, temp);
    }
}

/* A load into a cell. ptxas takes no guard on the load of a result, so only the move behind it has one. */
static void load_cell(const place *at, const its_slot *from, const its_cell *cell, its_operand to) {
    place plain = *at;
    plain.guarded = false;
    if (from->form != ITS_SLOT_REAL || !at->guarded || !at->insn->guard) {
        put_memory(at, false, from, cell->offset, cell->size, to);
        return;
    }
    its_operand temp = temporary(at, cell->size);
    put_memory(&plain, false, from, cell->offset, cell->size, temp);
    put_move(at, reg_type(cell->size), to, temp);
}

/* All of `from` to `to`; covers() holds if both are cells. */
static void copy_slot(const place *at, const its_slot *to, const its_slot *from) {
    if (to->form != ITS_SLOT_CELLS && from->form != ITS_SLOT_CELLS) {
        copy_memory(at, to, from);
        return;
    }
    const its_slot *cells = to->form == ITS_SLOT_CELLS ? to : from;
    for (size_t i = 0; i < cells->param->cells.count; i++) {
        const its_cell *cell = &cells->param->cells.items[i];
        if (from->form != ITS_SLOT_CELLS) {
            load_cell(at, from, cell, cell_operand(to, i));
        } else if (to->form != ITS_SLOT_CELLS) {
            put_memory(at, true, to, cell->offset, cell->size, cell_operand(from, i));
        } else {
            uint32_t source = find_cell(from->param, cell);
            if (source != NO_CELL) put_move(at, reg_type(cell->size), cell_operand(to, i), cell_operand(from, source));
        }
    }
}

/* A register or immediate given as an argument, to a slot that is_whole or memory. */
static void copy_value_in(const place *at, const its_slot *to, its_operand value) {
    uint32_t size = (uint32_t)to->param->symbol->size;
    if (to->form == ITS_SLOT_MEMORY)
        put_memory(at, true, to, 0, size, value);
    else if (to->param->cells.count)
        put_into_cell(at, size, cell_operand(to, 0), value);
}

static void copy_value_out(const place *at, its_operand value, const its_slot *from) {
    uint32_t size = (uint32_t)from->param->symbol->size;
    if (value.kind != ITS_OPND_REG) return;
    if (from->form == ITS_SLOT_MEMORY)
        put_memory(at, false, from, 0, size, value);
    else if (from->param->cells.count)
        put_from_cell(at, ITS_TYPE_NONE, size, value, cell_operand(from, 0));
}

/* -- entering and leaving ------------------------------------------------------------------------------------------ */

/* How a formal parameter lives at this site: in cells if what is passed fits them. */
static its_slot_form form_of(its_expander *x, its_frame *callee, const its_symbol *formal, const its_operand *actual,
                             bool result) {
    const its_link_param *param = callee->func->params[formal->id];
    if (!param->regular) return ITS_SLOT_MEMORY;
    if (!actual) return ITS_SLOT_CELLS;
    const its_slot *other = slot_of(x, callee->caller, actual);
    if (!other) return is_whole(param) || actual->kind == ITS_OPND_SINK ? ITS_SLOT_CELLS : ITS_SLOT_MEMORY;
    if (other->form != ITS_SLOT_CELLS) return ITS_SLOT_CELLS;
    bool fits = result ? covers(param, other->param) : covers(other->param, param);
    return fits ? ITS_SLOT_CELLS : ITS_SLOT_MEMORY;
}

/* `.reg` parameters: registers of the callee. */
static its_symbol *formal_register(its_expander *x, its_frame *callee, const its_symbol *formal) {
    its_name name = its_site_name(x, callee, formal->name, callee->func->reg_alias[formal->id], NULL);
    its_symbol *reg = its_new_reg(x, callee, name, (its_type)formal->type);
    callee->regs[formal->id] = reg;
    return reg;
}

static void move_register(const place *at, its_symbol *reg, const its_operand *actual, bool result) {
    its_slot *slot = slot_of(at->x, at->frame, actual);
    uint32_t size = its_type_size((its_type)reg->type);
    its_operand inner = its_reg_operand(reg);
    if (actual->kind == ITS_OPND_SINK) return;
    if (slot && slot->form == ITS_SLOT_CELLS) {
        its_cell whole = {0, size};
        uint32_t cell = find_cell(slot->param, &whole);
        if (cell == NO_CELL) return;
        its_operand outer = cell_operand(slot, cell);
        put_move(at, reg_type(size), result ? outer : inner, result ? inner : outer);
    } else if (slot) {
        put_memory(at, result, slot, 0, size, inner);
    } else {
        its_operand outer = its_map_operand(at->x, at->frame, actual);
        put_move(at, (its_type)reg->type, result ? outer : inner, result ? inner : outer);
    }
}

static void enter_param(const place *at, its_frame *callee, its_symbol *formal, const its_operand *given) {
    its_operand literal = its_literal_for(formal, *given);
    const its_operand *actual = &literal;
    if (formal->kind == ITS_SYM_REG) {
        move_register(at, formal_register(at->x, callee, formal), actual, false);
        return;
    }
    declare(at->x, callee, formal, form_of(at->x, callee, formal, actual, false));
    const its_slot *from = slot_of(at->x, at->frame, actual), *to = &callee->slots[formal->id];
    if (from)
        copy_slot(at, to, from);
    else
        copy_value_in(at, to, its_map_operand(at->x, at->frame, actual));
}

void its_bind_enter(its_expander *x, its_frame *callee) {
    place at = {x, callee->caller, callee->call, false};
    its_call_parts parts = its_call_take(callee->call);
    const its_params *formals = &callee->func->func->params, *results = &callee->func->func->results;
    for (uint32_t i = 0; i < results->n; i++) {
        its_symbol *formal = results->items[i];
        const its_operand *actual = i < parts.n_results ? &parts.results[i] : NULL;
        if (formal->kind == ITS_SYM_REG)
            formal_register(x, callee, formal);
        else
            declare(x, callee, formal, form_of(x, callee, formal, actual, true));
    }
    for (uint32_t i = 0; i < formals->n; i++) enter_param(&at, callee, formals->items[i], &parts.args[i]);
}

void its_bind_leave(its_expander *x, its_frame *callee) {
    place at = {x, callee->caller, callee->call, false};
    its_call_parts parts = its_call_take(callee->call);
    const its_params *results = &callee->func->func->results;
    for (uint32_t i = 0; i < results->n && i < parts.n_results; i++) {
        its_symbol *formal = results->items[i];
        const its_operand *actual = &parts.results[i];
        if (formal->kind == ITS_SYM_REG) {
            move_register(&at, callee->regs[formal->id], actual, true);
            continue;
        }
        const its_slot *to = slot_of(x, at.frame, actual), *from = &callee->slots[formal->id];
        if (to)
            copy_slot(&at, to, from);
        else
            copy_value_out(&at, its_map_operand(x, at.frame, actual), from);
    }
}

/* -- loads and stores of parameters -------------------------------------------------------------------------------- */

/* `ld.param::func.b32` -> `ld.local.b32` */
its_name its_in_local(its_expander *x, its_name name) {
    const its_mnemonic *m = its_mnemonic_of(x->ctx, name);
    its_arena *scratch = &x->linker->scratch;
    char *text = its_arena_printf(scratch, "%s", its_op_text((its_op)m->op));
    for (unsigned i = 0; i < m->n_mods; i++) {
        bool space = its_mod_space((its_mod)m->mods[i]) == ITS_SPACE_PARAM;
        text = its_arena_printf(scratch, "%s%s", text, space ? ".local" : m->mod_names[i]->text);
    }
    return its_intern_text(x->ctx, text);
}

static void put_in_memory(its_expander *x, its_frame *frame, its_insn *insn) {
    its_insn *copy = (its_insn *)its_clone(&x->cloner, &insn->node, frame->origin ? frame->origin : insn->node.origin);
    copy->name = its_in_local(x, insn->name);
    its_emit(x, copy);
}

static void put_component(const place *at, const its_slot *slot, const its_param_access *access, uint32_t index) {
    const its_operand *value = access->value->kind == ITS_OPND_VEC ? &access->value->list[index] : access->value;
    its_cell cell = {(uint32_t)access->offset + index * access->size, access->size};
    its_operand reg = cell_operand(slot, find_cell(slot->param, &cell));
    its_operand mapped = its_map_operand(at->x, at->frame, value);
    if (access->store)
        put_into_cell(at, access->size, reg, mapped);
    else
        put_from_cell(at, access->type, access->size, mapped, reg);
}

void its_bind_access(its_expander *x, its_frame *frame, its_insn *insn, const its_param_access *access) {
    const its_slot *slot = &frame->slots[access->param->symbol->id];
    if (slot->form == ITS_SLOT_MEMORY) {
        put_in_memory(x, frame, insn);
        return;
    }
    place at = {x, frame, insn, true};
    for (uint32_t i = 0; i < access->count; i++) put_component(&at, slot, access, i);
}

/* -- calls that stay ----------------------------------------------------------------------------------------------- */

/* A .param variable for this one call, in place of an argument that became registers or memory. */
static its_slot make_real(its_expander *x, its_frame *frame, const its_slot *slot) {
    char more[24];
    its_slot real = {.form = ITS_SLOT_REAL, .param = slot->param};
    snprintf(more, sizeof more, "k%u", x->n_temps++);
    const its_symbol *param = slot->param->symbol;
    its_name name = its_site_name(x, frame, param->name, frame->func->var_alias[param->id], more);
    real.symbol = its_new_var(x, frame, name, param, ITS_SPACE_PARAM);
    return real;
}

typedef struct kept_result {
    its_slot real;
    const its_slot *slot;
} kept_result;

static void replace_operand(its_operand *operand, its_symbol *symbol) {
    operand->kind = ITS_OPND_SYM;
    operand->symbol = symbol;
}

void its_bind_kept(its_expander *x, its_frame *frame, its_insn *call) {
    place at = {x, frame, call, false};
    its_call_parts original = its_call_take(call);
    its_insn *copy = (its_insn *)its_clone(&x->cloner, &call->node, frame->origin ? frame->origin : call->node.origin);
    its_call_parts parts = its_call_take(copy);
    kept_result result = {.slot = NULL};
    copy->node.flags &= (uint8_t)~ITS_INSN_REGION;
    for (uint16_t i = 0; i < original.n_args; i++) {
        const its_slot *slot = slot_of(x, frame, &original.args[i]);
        if (!slot || slot->form == ITS_SLOT_REAL) continue;
        its_slot real = make_real(x, frame, slot);
        copy_slot(&at, &real, slot);
        replace_operand(&parts.args[i], real.symbol);
    }
    if (original.n_results) result.slot = slot_of(x, frame, &original.results[0]);
    if (result.slot && result.slot->form != ITS_SLOT_REAL) {
        result.real = make_real(x, frame, result.slot);
        replace_operand(&parts.results[0], result.real.symbol);
    }
    its_emit(x, copy);
    at.guarded = true;
    if (result.slot && result.slot->form != ITS_SLOT_REAL) copy_slot(&at, result.slot, &result.real);
}

/* A special register is the same in all threads of a CTA, and nothing can be concluded from it. */
static its_operand nothing(const place *at, uint64_t size, bool unknown) {
    its_operand value = {.kind = ITS_OPND_INT};
    if (!unknown || (size != 4 && size != 8)) return value;
    value.kind = ITS_OPND_SREG;
    value.name = its_intern_text(at->x->ctx, size == 4 ? "%nctaid.z" : "%gridid");
    return value;
}

void its_bind_nothing(its_expander *x, its_frame *frame, its_insn *call, bool unknown) {
    place at = {x, frame, call, true};
    its_call_parts parts = its_call_take(call);
    its_operand zero = {.kind = ITS_OPND_INT};
    if (!parts.n_results || parts.results[0].kind == ITS_OPND_SINK) return;
    const its_slot *slot = slot_of(x, frame, &parts.results[0]);
    if (!slot) {
        its_operand reg = its_map_operand(x, frame, &parts.results[0]);
        put_move(&at, reg_type(width_of(&reg)), reg, nothing(&at, width_of(&reg), unknown));
    } else if (slot->form == ITS_SLOT_CELLS) {
        for (size_t i = 0; i < slot->param->cells.count; i++) {
            uint32_t size = slot->param->cells.items[i].size;
            put_move(&at, reg_type(size), cell_operand(slot, i), nothing(&at, size, unknown));
        }
    } else {
        uint32_t chunk = chunk_size(slot->param->symbol);
        for (uint64_t offset = 0; offset + chunk <= slot->param->symbol->size; offset += chunk)
            put_memory(&at, true, slot, offset, chunk, zero);
    }
}
