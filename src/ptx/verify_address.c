/* Addresses: the registers and variables that they start from, the spaces that these are in, coordinates of tensors. */
#include "ptx/verify.h"

/* The state space that the instruction names for the operand's address, ITS_SPACE_NONE if any will do. */
static its_space named_space(const its_insn *insn, const its_mnemonic *m, const its_operand *operand) {
    if (m->op == ITS_OP_MBARRIER) return ITS_SPACE_SHARED;
    unsigned before = 0;
    for (const its_operand *other = insn->ops; other < operand; other++) before += other->kind == ITS_OPND_ADDR;
    if (before == 0) return (its_space)m->space;
    return before == 1 ? (its_space)m->space2 : ITS_SPACE_NONE;
}

static bool check_space(its_verifier *v, const its_insn *insn, its_space space, const its_operand *base) {
    const its_symbol *symbol = base->symbol;
    if (space == ITS_SPACE_NONE || symbol->space == space) return true;
    return its_verify_error(v, &insn->node, base->pos, "'%s' is in %s, '%s' accesses %s", symbol->name->text,
                            its_space_text((its_space)symbol->space), insn->name->text, its_space_text(space));
}

static bool check_number(its_verifier *v, const its_insn *insn, its_space space, const its_operand *base) {
    if (space == ITS_SPACE_LOCAL) return true;
    return its_verify_error(v, &insn->node, base->pos,
                            "a number can be an address in .local only; move it to a register");
}

/*
 * Shared, local, parameter and tensor memory may be addressed with 32 bits; global memory takes what .address_size
 * says, and so do the instructions that accept any memory.
 */
static bool short_address(const its_verifier *v, const its_mnemonic *m, its_space space) {
    bool any_memory = m->op == ITS_OP_LD || m->op == ITS_OP_ST || m->op == ITS_OP_LDU || m->op == ITS_OP_ATOM ||
                      m->op == ITS_OP_RED || m->op == ITS_OP_PREFETCH;
    return !any_memory || v->module->address_size == 32 || space == ITS_SPACE_SHARED || space == ITS_SPACE_LOCAL ||
           space == ITS_SPACE_PARAM || space == ITS_SPACE_CONST;
}

/* The base of the address that comes first; the second may be that of an mbarrier, in shared memory. */
static const its_operand *first_base(const its_insn *insn) {
    for (uint16_t i = 0; i < insn->node.count; i++)
        if (insn->ops[i].kind == ITS_OPND_ADDR) return insn->ops[i].list;
    return NULL;
}

static bool check_base(its_verifier *v, const its_insn *insn, const its_mnemonic *m, const its_operand *base,
                       its_space space) {
    its_type type = its_operand_type(base);
    its_type_kind kind = its_type_kind_of(type);
    if (kind == ITS_KIND_NONE) return true;
    bool integer = (kind == ITS_KIND_INT || kind == ITS_KIND_BITS) && its_type_size(type) <= 8;
    if (!integer || its_operand_width(base)) return its_verify_misfit(v, insn, base, "an integer register as address");
    if (its_type_size(type) == 4 && base == first_base(insn) && !short_address(v, m, space))
        return its_verify_misfit(v, insn, base, "an address of 64 bits");
    return its_verify_decoration(v, insn, base, type, 0);
}

/* Coordinates of a tensor copy: as many as it has dimensions, five for four rows. */
unsigned its_verify_dimensions(const its_mnemonic *m) {
    static const uint16_t mods[] = {ITS_MOD_1D, ITS_MOD_2D, ITS_MOD_3D, ITS_MOD_4D, ITS_MOD_5D};
    if (m->op != ITS_OP_CP) return 0;
    if (its_mnemonic_has(m, ITS_MOD_TILE_GATHER4) || its_mnemonic_has(m, ITS_MOD_TILE_SCATTER4)) return 5;
    for (unsigned i = 0; i < sizeof mods / sizeof *mods; i++)
        if (its_mnemonic_has(m, (its_mod)mods[i])) return i + 1;
    return 0;
}

static bool check_coordinates(its_verifier *v, const its_insn *insn, const its_mnemonic *m,
                              const its_operand *address) {
    unsigned count = its_verify_dimensions(m);
    if (!count) return true;
    if (address->count < 2)
        return its_verify_error(v, &insn->node, address->pos, "this address lacks its %u coordinates", count);
    const its_operand *vector = &address->list[1];
    unsigned have = its_operand_width(vector);
    if (have == count) return its_verify_neighbours(v, insn, vector);
    return its_verify_error(v, &insn->node, vector->pos, "%u coordinate%s given, '%s' takes %u", have,
                            have == 1 ? "" : "s", insn->name->text, count);
}

bool its_verify_address(its_verifier *v, const its_insn *insn, const its_mnemonic *m, const its_operand *operand,
                        bool coordinates) {
    if (operand->kind != ITS_OPND_ADDR) return its_verify_misfit(v, insn, operand, "an address '[...]'");
    if (operand->count > 1 && !coordinates)
        return its_verify_error(v, &insn->node, operand->list[1].pos, "'%s' takes no coordinates in this address",
                                insn->name->text);
    if (coordinates && !check_coordinates(v, insn, m, operand)) return false;
    const its_operand *base = &operand->list[0];
    its_space space = named_space(insn, m, operand);
    if (base->kind == ITS_OPND_REG) return check_base(v, insn, m, base, space);
    if (base->kind == ITS_OPND_SYM && base->symbol->kind == ITS_SYM_VAR) return check_space(v, insn, space, base);
    if (base->kind == ITS_OPND_INT) return check_number(v, insn, space, base);
    return its_verify_misfit(v, insn, base, "a register or a variable as address");
}

bool its_verify_variable(its_verifier *v, const its_insn *insn, const its_mnemonic *m, const its_operand *operand) {
    if (operand->kind != ITS_OPND_SYM || operand->symbol->kind != ITS_SYM_VAR)
        return its_verify_misfit(v, insn, operand, "a variable");
    bool cluster = m->op == ITS_OP_MAPA || m->op == ITS_OP_GETCTARANK; /* their variables are shared, said or not */
    return check_space(v, insn, cluster ? ITS_SPACE_SHARED : (its_space)m->space, operand);
}
