/*
 * mov, which no pattern describes: it copies a value, takes an address or a special register, packs a vector into one
 * register and unpacks one.
 */
#include "ptx/verify.h"

/* `mov.b64 d, {a, b}` and back: the elements together are as large as the register. */
static void check_pack(its_verifier *v, const its_insn *insn, its_type type, bool unpack) {
    const its_operand *vector = &insn->ops[unpack ? 0 : 1], *whole = &insn->ops[unpack ? 1 : 0];
    unsigned count = its_operand_width(vector);
    if (its_type_kind_of(type) != ITS_KIND_BITS || its_operand_width(whole) > 1) {
        its_verify_error(v, &insn->node, vector->pos, "only mov.b16 to mov.b128 pack or unpack a vector, '%s' can't",
                         insn->name->text);
        return;
    }
    uint32_t size = its_type_size(type);
    its_type each = count == 1 || count == 2 || count == 4 ? its_type_of_bytes(size / count) : ITS_TYPE_NONE;
    if (count == 1) each = type;
    if (each == ITS_TYPE_NONE) {
        its_verify_error(v, &insn->node, vector->pos, "%u bits can't be split into %u registers", size * 8, count);
        return;
    }
    if (whole->kind == ITS_OPND_VEC) whole = &whole->list[0];
    /* With an immediate among the elements ptxas does not look at their types. */
    if (unpack || its_is_all_registers(vector))
        its_verify_vector(v, insn, vector, each, count, unpack ? ITS_WRITTEN : ITS_SINK_TOO);
    its_verify_value(v, insn, whole, type, unpack ? ITS_SREG_TOO : ITS_WRITTEN);
}

static void check_vectors(its_verifier *v, const its_insn *insn, const its_mnemonic *m, its_type type) {
    if (its_type_size(type) * m->vec > 16) {
        its_verify_error(v, &insn->node, insn->ops[0].pos, "%u elements of %s are more than 128 bits", m->vec,
                         its_type_text(type));
        return;
    }
    type = its_type_of_bytes(its_type_size(type)); /* ptxas only looks at the size here */
    its_verify_vector(v, insn, &insn->ops[0], type, m->vec, ITS_WRITTEN);
    const its_operand *source = &insn->ops[1];
    bool single = !its_operand_width(source); /* goes into every element */
    if (single && source->kind != ITS_OPND_SREG && source->kind != ITS_OPND_SYM)
        its_verify_value(v, insn, source, type, 0);
    else if (!single)
        its_verify_vector(v, insn, source, type, m->vec, ITS_SINK_TOO);
}

/* Addresses are integers; those of global memory are as long as .address_size says. */
static void check_address(its_verifier *v, const its_insn *insn, its_type type) {
    const its_operand *operand = &insn->ops[1];
    const its_symbol *symbol = operand->symbol;
    if (symbol->kind == ITS_SYM_FUNC) return;
    if (symbol->kind != ITS_SYM_VAR) {
        its_verify_value(v, insn, operand, type, 0); /* reports a label */
        return;
    }
    if (its_type_kind_of(type) != ITS_KIND_BITS && its_type_kind_of(type) != ITS_KIND_INT) {
        its_verify_error(v, &insn->node, operand->pos, "the address of '%s' is an integer, '%s' moves none",
                         symbol->name->text, insn->name->text);
        return;
    }
    if (v->module->address_size == 64 && symbol->space == ITS_SPACE_GLOBAL && its_type_size(type) == 4 &&
        !operand->offset)
        its_verify_error(v, &insn->node, operand->pos, "the address of '%s' has 64 bits, '%s' moves 32",
                         symbol->name->text, insn->name->text);
}

void its_verify_mov(its_verifier *v, const its_insn *insn, const its_mnemonic *m) {
    if (insn->node.count != 2 || !m->n_types) return;
    its_type type = its_mnemonic_type(m, 0);
    if (m->vec > 1) {
        check_vectors(v, insn, m, type);
        return;
    }
    unsigned to = its_operand_width(&insn->ops[0]), from = its_operand_width(&insn->ops[1]);
    if (type == ITS_TYPE_B128 && (from || insn->ops[1].kind == ITS_OPND_SREG)) { /* ptxas is lax about the rest */
        its_verify_neighbours(v, insn, &insn->ops[1]);
        return;
    }
    if (to || from) {
        check_pack(v, insn, type, to != 0);
        return;
    }
    its_verify_value(v, insn, &insn->ops[0], type, ITS_WRITTEN);
    if (insn->ops[1].kind == ITS_OPND_SYM)
        check_address(v, insn, type);
    else
        its_verify_value(v, insn, &insn->ops[1], type, ITS_SREG_TOO);
}
