/* Operands: registers, immediates, special registers and addresses become offsets in the frame. */
#include <string.h>

#include "base/intern.h"
#include "sim/decode.h"

uint32_t its_sim_reg_size(its_type type) {
    if (type == ITS_TYPE_PRED) return 0;
    uint32_t size = its_type_size(type);
    return size < 2 ? 2 : size;
}

const its_operand *its_sim_operand(its_sim_decoder *d, unsigned index) {
    static const its_operand nothing = {.kind = ITS_OPND_SINK};
    if (index < d->insn->node.count) return &d->insn->ops[index];
    its_sim_refuse(d, NULL, "'%s' lacks an operand", d->insn->name->text);
    return &nothing;
}

/* -- registers ----------------------------------------------------------------------------------------------------- */

static its_symbol *register_symbol(const its_operand *operand) {
    return operand->symbol;
}

/* Which component of a vector register an operand names: `.x` 0, `.y` 1 ...; -1: none. */
static int component(const its_operand *operand) {
    static const char letters[] = "xyzw", colours[] = "rgba";
    if (!operand->suffix) return -1;
    const char *text = operand->suffix->text;
    if (text[0] != '.' || !text[1] || text[2]) return -1;
    const char *at = strchr(letters, text[1]);
    if (at) return (int)(at - letters);
    at = strchr(colours, text[1]);
    return at ? (int)(at - colours) : -1;
}

uint32_t its_sim_register(its_sim_decoder *d, const its_symbol *symbol) {
    uint32_t *slot = &d->regs[symbol->id];
    if (*slot) return *slot;
    its_type type = (its_type)symbol->type;
    if (type == ITS_TYPE_NONE) {
        its_sim_refuse(d, NULL, "the simulator doesn't have registers of type '%s'",
                       symbol->type_name ? symbol->type_name->text : "?");
        return 0;
    }
    uint32_t size = its_sim_reg_size(type), n = symbol->vec > 1 ? symbol->vec : 1;
    *slot = its_sim_temp(d, size);
    for (uint32_t i = 1; i < n; i++) its_sim_temp(d, size);
    return *slot;
}

/* The place and size of a register operand. */
static uint32_t find_register(its_sim_decoder *d, const its_operand *operand, uint32_t *size) {
    const its_symbol *symbol = register_symbol(operand);
    uint32_t at = its_sim_register(d, symbol);
    *size = its_sim_reg_size((its_type)symbol->type);
    if (!operand->suffix && symbol->vec <= 1) return at;
    int part = component(operand);
    if (part < 0 || part >= symbol->vec || *size == 0) {
        its_sim_refuse(d, NULL, "the simulator doesn't have '%s' with operands of this form", d->insn->name->text);
        return at;
    }
    return at + (uint32_t)part * *size * 32;
}

/* -- values that are known ----------------------------------------------------------------------------------------- */

/* The bits of a literal as a value of the type. */
static uint64_t literal(const its_operand *operand, its_type type) {
    float single;
    double real;
    uint64_t bits = operand->bits;
    if (operand->kind == ITS_OPND_F64 && its_type_size(type) == 4) {
        memcpy(&real, &bits, sizeof(real));
        single = (float)real;
        bits = 0;
        memcpy(&bits, &single, sizeof(single));
    } else if (operand->kind == ITS_OPND_F32 && type == ITS_TYPE_F64) {
        memcpy(&single, &bits, sizeof(single));
        real = (double)single;
        memcpy(&bits, &real, sizeof(real));
    }
    return bits;
}

static const struct sreg {
    const char *name;
    uint8_t size, clock;
} sregs[ITS_SIM_SREGS] = {
#define LANE 0
#define WARP 0
#define CLOCK 1
#define ITS_SREG(id, text, size, kind) {text, size, kind},
#include "sim/sregs.def"
#undef ITS_SREG
#undef LANE
#undef WARP
#undef CLOCK
};

static void use_shared(its_sim_decoder *d, uint32_t variable) {
    for (size_t i = d->shared.count; i-- > 0;)
        if (d->shared.items[i] == variable) return;
    ITS_PUSH(&d->scratch, &d->shared, variable);
}

/*
 * Shared memory of CUDA's own, in which threads of cooperative groups that span warps meet. It is a variable that no
 * module names.
 */
#define RESERVED_BYTES 288u

static uint32_t reserved_shared(its_sim_decoder *d, uint32_t size) {
    its_sim_program *program = d->program;
    if (!program->reserved) {
        uint32_t begin = (program->shared_size + 15u) & ~15u;
        its_sim_variable variable = {.name = its_intern_raise(d->ctx, "reserved shared memory", 22),
                                     .space = ITS_SPACE_SHARED,
                                     .size = RESERVED_BYTES,
                                     .align = 16,
                                     .address = ITS_SIM_SHARED_BEGIN + begin};
        ITS_PUSH(d->arena, &program->variables, variable);
        program->reserved = (uint32_t)program->variables.count;
        program->shared_size = begin + RESERVED_BYTES;
    }
    use_shared(d, program->reserved - 1);
    return its_sim_const_bits(d, program->variables.items[program->reserved - 1].address, size);
}

/* A special register as a value of `size` bytes; those that tick are read into a temporary each time. */
static uint32_t special(its_sim_decoder *d, const its_operand *operand, uint32_t size) {
    for (unsigned i = 0; i < ITS_SIM_SREGS; i++) {
        if (strcmp(sregs[i].name, operand->name->text) != 0) continue;
        if (i == ITS_SIM_SREG_RESERVED_SMEM_1) return reserved_shared(d, size);
        if (i == ITS_SIM_SREG_WORKSPACE_HIGH || i == ITS_SIM_SREG_WORKSPACE_LOW) d->program->uses_workspace = true;
        if (!sregs[i].clock) return its_sim_const_of(d, ITS_SIM_CONST_SREG, i, size);
        uint32_t temp = its_sim_temp(d, size);
        its_sim_op *op = its_sim_emit_act(d, ITS_SIM_ACT_CLOCK);
        op->dst = temp;
        op->dst_size = (uint8_t)size;
        op->mode = (uint16_t)i;
        return temp;
    }
    if (strncmp(operand->name->text, "%envreg", 7) == 0 || strncmp(operand->name->text, "%pm", 3) == 0)
        return its_sim_const_bits(d, 0, size);
    its_sim_refuse(d, NULL, "the simulator doesn't have the special register '%s'", operand->name->text);
    return 0;
}

bool its_sim_is_kernel_param(const its_sim_decoder *d, const its_symbol *symbol) {
    return d->func->is_entry && symbol->kind == ITS_SYM_VAR && symbol->flags & ITS_SYM_PARAM;
}

uint32_t its_sim_param_offset(const its_symbol *symbol) {
    return (uint32_t)(uintptr_t)symbol->pass - 1;
}

/* The address of a variable or function, as a source of that size. */
static uint32_t address_of(its_sim_decoder *d, its_symbol *symbol, int64_t offset, uint32_t size) {
    symbol = its_symbol_final(symbol);
    uintptr_t number = (uintptr_t)symbol->pass;
    if (number == 0 || (symbol->kind != ITS_SYM_FUNC && symbol->kind != ITS_SYM_VAR)) {
        its_sim_refuse(d, "link the module that defines it", "nobody defines '%s'", symbol->name->text);
        return 0;
    }
    uint64_t at = (uint64_t)offset;
    if (symbol->kind == ITS_SYM_FUNC) {
        if (!d->program->funcs[number - 1].has_body)
            its_sim_refuse(d, "link the module that defines it", "nobody defines '%s'", symbol->name->text);
        d->program->funcs[number - 1].address_taken = true;
        return its_sim_const_bits(d, its_sim_func_address((uint32_t)number - 1) + at, size);
    }
    if (its_sim_is_kernel_param(d, symbol)) return its_sim_const_bits(d, ITS_SIM_PARAM_BEGIN + number - 1 + at, size);
    if (symbol->space == ITS_SPACE_LOCAL || symbol->space == ITS_SPACE_PARAM)
        return its_sim_const_of(d, ITS_SIM_CONST_LOCAL, number - 1 + at, size);
    const its_sim_variable *variable = &d->program->variables.items[number - 1];
    if (variable->space != ITS_SPACE_SHARED) return its_sim_const_bits(d, variable->address + at, size);
    use_shared(d, (uint32_t)number - 1);
    if (variable->dynamic) return its_sim_const_of(d, ITS_SIM_CONST_SHARED, at, size);
    return its_sim_const_bits(d, variable->address + at, size);
}

/* -- sources and targets ------------------------------------------------------------------------------------------- */

uint32_t its_sim_wide_source(its_sim_decoder *d, const its_operand *operand, its_type type, uint32_t *size) {
    *size = its_sim_reg_size(type);
    switch (operand->kind) {
    case ITS_OPND_REG:
        if (operand->flags & (ITS_OPND_NOT | ITS_OPND_NEG)) break;
        if (operand->offset) {
            uint32_t base = find_register(d, operand, size), sum = its_sim_temp(d, *size);
            its_sim_handler add =
                its_sim_by_width(d, (its_type)operand->symbol->type, ITS_SIM_ADD_16, ITS_SIM_ADD_32, ITS_SIM_ADD_64);
            its_sim_emit2(d, add, sum, *size, base, its_sim_const_bits(d, (uint64_t)operand->offset, *size));
            return sum;
        }
        return find_register(d, operand, size);
    case ITS_OPND_INT:
    case ITS_OPND_F32:
    case ITS_OPND_F64:
        return its_sim_const_bits(d, literal(operand, type), *size);
    case ITS_OPND_SREG:
        return special(d, operand, *size);
    case ITS_OPND_SYM:
        return address_of(d, operand->symbol, operand->offset, *size);
    default:
        break;
    }
    its_sim_refuse(d, NULL, "the simulator doesn't have '%s' with operands of this form", d->insn->name->text);
    return 0;
}

static void check_size(its_sim_decoder *d, uint32_t have, uint32_t want) {
    if (have == want) return;
    its_sim_refuse(d, NULL, "'%s' is given a register of %u bits where it needs %u", d->insn->name->text,
                   have ? (unsigned)have * 8 : 1u, want ? (unsigned)want * 8 : 1u);
}

uint64_t its_sim_literal(its_sim_decoder *d, unsigned index) {
    const its_operand *operand = its_sim_operand(d, index);
    if (operand->kind == ITS_OPND_INT) return operand->bits;
    its_sim_refuse_form(d);
    return 0;
}

uint32_t its_sim_source(its_sim_decoder *d, const its_operand *operand, its_type type) {
    uint32_t size, at = its_sim_wide_source(d, operand, type, &size);
    check_size(d, size, its_sim_reg_size(type));
    return at;
}

uint32_t its_sim_wide_target(its_sim_decoder *d, const its_operand *operand, its_type type, uint32_t *size) {
    *size = its_sim_reg_size(type);
    if (operand->kind == ITS_OPND_SINK) return its_sim_temp(d, *size);
    if (operand->kind == ITS_OPND_REG && !operand->offset && !operand->flags) return find_register(d, operand, size);
    its_sim_refuse(d, NULL, "'%s' needs a register to write to", d->insn->name->text);
    return 0;
}

uint32_t its_sim_target(its_sim_decoder *d, const its_operand *operand, its_type type) {
    uint32_t size, at = its_sim_wide_target(d, operand, type, &size);
    check_size(d, size, its_sim_reg_size(type));
    return at;
}

uint32_t its_sim_predicate(its_sim_decoder *d, const its_operand *operand, bool *inverted) {
    *inverted = operand->flags & ITS_OPND_NOT;
    its_operand plain = *operand;
    plain.flags = (uint8_t)(plain.flags & ~ITS_OPND_NOT);
    return its_sim_source(d, &plain, ITS_TYPE_PRED);
}

void its_sim_pair(its_sim_decoder *d, const its_operand *operand, its_type first, its_type second, uint32_t *a,
                  uint32_t *b) {
    const its_operand *one = operand, *two = NULL;
    if (operand->kind == ITS_OPND_PAIR) {
        one = &operand->list[0];
        two = &operand->list[1];
    }
    *a = one->kind == ITS_OPND_SINK ? ITS_SIM_NOWHERE : its_sim_target(d, one, first);
    *b = !two || two->kind == ITS_OPND_SINK ? ITS_SIM_NOWHERE : its_sim_target(d, two, second);
}

/* -- types --------------------------------------------------------------------------------------------------------- */

bool its_sim_is_half(its_type type) {
    return type == ITS_TYPE_F16 || type == ITS_TYPE_F16X2 || type == ITS_TYPE_BF16 || type == ITS_TYPE_BF16X2;
}

bool its_sim_is_signed(its_type type) {
    return type == ITS_TYPE_S8 || type == ITS_TYPE_S16 || type == ITS_TYPE_S32 || type == ITS_TYPE_S64;
}

its_sim_handler its_sim_by_width(its_sim_decoder *d, its_type type, its_sim_handler h16, its_sim_handler h32,
                                 its_sim_handler h64) {
    its_sim_handler handler = ITS_SIM_NO_HANDLER;
    switch (its_type_size(type)) {
    case 2:
        handler = h16;
        break;
    case 4:
        handler = h32;
        break;
    case 8:
        handler = h64;
        break;
    default:
        break;
    }
    if (handler == ITS_SIM_NO_HANDLER) its_sim_refuse_form(d);
    return handler;
}

its_sim_handler its_sim_by_int(its_sim_decoder *d, its_type type, its_sim_handler u16, its_sim_handler s16,
                               its_sim_handler u32, its_sim_handler s32, its_sim_handler u64, its_sim_handler s64) {
    if (its_type_kind_of(type) == ITS_KIND_FLOAT) its_sim_refuse_form(d);
    if (its_sim_is_signed(type)) return its_sim_by_width(d, type, s16, s32, s64);
    return its_sim_by_width(d, type, u16, u32, u64);
}

its_sim_handler its_sim_by_half(its_sim_decoder *d, its_type type, its_sim_handler f16) {
    switch (type) {
    case ITS_TYPE_F16:
        return f16;
    case ITS_TYPE_F16X2:
        return (its_sim_handler)(f16 + 1);
    case ITS_TYPE_BF16:
        return (its_sim_handler)(f16 + 2);
    case ITS_TYPE_BF16X2:
        return (its_sim_handler)(f16 + 3);
    default:
        its_sim_refuse_form(d);
        return f16;
    }
}

uint32_t its_sim_flushed(its_sim_decoder *d, its_type type, uint32_t source) {
    uint32_t size = its_sim_reg_size(type), temp = its_sim_temp(d, size);
    its_sim_handler flush = type == ITS_TYPE_F32 ? ITS_SIM_FLUSH_F32 : its_sim_by_half(d, type, ITS_SIM_FLUSH_F16);
    its_sim_emit1(d, flush, temp, size, source);
    return temp;
}
