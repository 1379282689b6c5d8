/* What mma, wmma and wgmma have in common: their shapes, the types of elements, and the registers of a fragment. */
#ifndef ITS_SIM_DECODE_FRAGMENT_H
#define ITS_SIM_DECODE_FRAGMENT_H

#include "sim/decode.h"
#include "sim/matrix.h"

typedef struct its_sim_element_type {
    its_mod mod;
    uint8_t kind; /* its_sim_element */
    uint8_t bits; /* that it takes in a register */
} its_sim_element_type;

/* What the index-th type modifier says of elements; refuses any other, and answers with f16. */
const its_sim_element_type *its_sim_element_of(its_sim_decoder *d, unsigned index);

static inline bool its_sim_is_integer(const its_sim_element_type *e) {
    return e->kind >= ITS_ELEMENT_S8 && e->kind <= ITS_ELEMENT_U4;
}

/* The type of the registers that hold such elements. */
static inline its_type its_sim_fragment_type(const its_sim_element_type *e) {
    return e->bits == 64 ? ITS_TYPE_B64 : ITS_TYPE_B32;
}

/* The instruction's shape, ticked off; refuses one that has not all three numbers. */
its_matrix_shape its_sim_shape(its_sim_decoder *d);

/* The registers of an operand: a vector of them, or one. */
static inline uint32_t its_sim_fragment_count(const its_operand *operand) {
    return operand->kind == ITS_OPND_VEC ? operand->count : 1;
}
/* Adds them to the program's lists; refuses any number but `count`. */
void its_sim_take_fragment(its_sim_decoder *d, const its_operand *operand, uint32_t count, its_type type, bool writes);

#endif
