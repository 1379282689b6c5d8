/*
 * How many registers of which type a matrix fragment takes: the elements of the matrix, divided among the threads that
 * hold it, packed into 32-bit registers (64-bit ones for .f64).
 */
#include <string.h>

#include "ptx/verify.h"

static bool is_narrow_float(its_mod type) {
    return type == ITS_MOD_E4M3 || type == ITS_MOD_E5M2 || type == ITS_MOD_E3M2 || type == ITS_MOD_E2M3 ||
           type == ITS_MOD_E2M1;
}

/* Bits that an element takes in a register; 0 if not known. */
static unsigned element_bits(const its_mnemonic *m, its_mod type) {
    bool dense4 = its_mnemonic_has(m, ITS_MOD_KIND_MXF4) || its_mnemonic_has(m, ITS_MOD_KIND_MXF4NVF4);
    switch (type) {
    case ITS_MOD_F64:
        return 64;
    case ITS_MOD_F32:
    case ITS_MOD_S32:
    case ITS_MOD_TF32:
        return 32;
    case ITS_MOD_F16:
    case ITS_MOD_BF16:
        return 16;
    case ITS_MOD_S8:
    case ITS_MOD_U8:
        return 8;
    case ITS_MOD_S4:
    case ITS_MOD_U4:
        return 4;
    case ITS_MOD_B1:
        return 1;
    default:
        if (!is_narrow_float(type)) return 0;
        return dense4 ? 4 : 8;
    }
}

static its_fragment pack(its_mod type, unsigned bits, unsigned elements, unsigned threads) {
    its_fragment fragment = {ITS_TYPE_NONE, 0};
    if (!bits) return fragment;
    unsigned each = bits == 64 ? 64 : 32;
    fragment.count = elements * bits / (threads * each);
    if (!fragment.count) fragment.count = 1;
    fragment.type =
        type == ITS_MOD_F64 || type == ITS_MOD_F32 || type == ITS_MOD_S32 ? its_mod_type(type) : ITS_TYPE_B32;
    return fragment;
}

static its_mod type_at(const its_mnemonic *m, unsigned index) {
    return index < m->n_types ? (its_mod)m->type_mods[index] : ITS_MOD_UNKNOWN;
}

static unsigned elements_of(its_matrix_shape s, char which) {
    return which == 'A' ? s.m * s.k : which == 'B' ? s.k * s.n : s.m * s.n;
}

static its_fragment mma_fragment(const its_mnemonic *m, char which) {
    its_matrix_shape s = its_mnemonic_shape(m);
    static const char order[] = "DABC";
    its_mod type = type_at(m, (unsigned)(strchr(order, which) - order));
    unsigned bits = element_bits(m, type), elements = elements_of(s, which);
    bool sparse = its_mnemonic_has(m, ITS_MOD_SP) || its_mnemonic_has(m, ITS_MOD_SP_ORDERED_METADATA);
    if (sparse && which == 'A') elements /= 2;
    if (s.m == 8 && s.k == 4 && bits <= 32) { /* four quads, each with a matrix of its own */
        its_fragment quads = pack(type, bits, elements, 8);
        if (which == 'A' || which == 'B') quads.count = bits == 32 ? 4 : 2;
        return quads;
    }
    if (which == 'B' && is_narrow_float(type) && s.k == 16)
        return (its_fragment){ITS_TYPE_NONE, 0}; /* ptxas takes any */
    return pack(type, bits, elements, 32);
}

static its_fragment wmma_fragment(const its_mnemonic *m, char which) {
    its_matrix_shape s = its_mnemonic_shape(m);
    its_mod type = type_at(m, 0);
    if (its_mnemonic_has(m, ITS_MOD_MMA)) {
        static const char long_order[] = "DABC", short_order[] = "DC";
        const char *order = m->n_types == 2 ? short_order : long_order;
        const char *place = strchr(order, which);
        type = place ? type_at(m, (unsigned)(place - order)) : ITS_MOD_F16;
    } else {
        which = its_mnemonic_has(m, ITS_MOD_A) ? 'A' : its_mnemonic_has(m, ITS_MOD_B) ? 'B' : 'C';
    }
    if (type == ITS_MOD_F16 && (which == 'A' || which == 'B')) return (its_fragment){ITS_TYPE_B32, 8};
    return pack(type, element_bits(m, type), elements_of(s, which), 32);
}

static its_fragment wgmma_fragment(const its_mnemonic *m, char which) {
    if (which == 'A') return (its_fragment){ITS_TYPE_B32, 4};
    its_mod type = type_at(m, 0);
    return pack(type, element_bits(m, type), elements_of(its_mnemonic_shape(m), 'D'), 128);
}

its_fragment its_verify_fragment(const its_mnemonic *m, char which) {
    if (its_mnemonic_find(m, ITS_MODCLASS_SHAPE, 0) != ITS_MOD_UNKNOWN) {
        if (m->op == ITS_OP_MMA) return mma_fragment(m, which);
        if (m->op == ITS_OP_WMMA) return wmma_fragment(m, which);
        if (m->op == ITS_OP_WGMMA) return wgmma_fragment(m, which);
    }
    return (its_fragment){ITS_TYPE_NONE, 0};
}

static unsigned read_number(const char **at) {
    unsigned value = 0;
    while (**at >= '0' && **at <= '9') value = value * 10 + (unsigned)(*(*at)++ - '0');
    return value;
}

unsigned its_verify_multiple(const its_mnemonic *m) {
    unsigned times = 0;
    for (unsigned i = 0; i < m->n_mods && !times; i++) {
        const char *text = its_mod_text((its_mod)m->mods[i]);
        if (text[1] != 'x') continue;
        text += 2;
        times = read_number(&text);
    }
    switch (its_mnemonic_find(m, ITS_MODCLASS_SHAPE, 0)) {
    case ITS_MOD_M16N16:
    case ITS_MOD_16X128B:
        return times * 2;
    case ITS_MOD_16X256B:
        return times * 4;
    default:
        return times;
    }
}
