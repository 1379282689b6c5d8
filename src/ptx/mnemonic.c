/*
 * Splits instruction names at their dots and looks the words up. A module has some hundred distinct names, however many
 * instructions: each is decoded once per context and the result hangs in the name.
 */
#include "ptx/mnemonic.h"

#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "base/intern.h"

/* -- the tables ---------------------------------------------------------------------------------------------------- */

typedef struct op_row {
    const char *text, *pattern;
    uint32_t effects;
    uint8_t size;
} op_row;

typedef struct mod_row {
    const char *text;
    uint8_t size, type, space, class;
} mod_row;

static const op_row op_rows[] = {
    {"", "", UINT32_MAX, 0},
#define ITS_OP(id, text, pattern, effect, sim) {text, pattern, (uint32_t)(effect), sizeof(text) - 1},
#include "ptx/ptx_ops.def"
#undef ITS_OP
};

static const mod_row mod_rows[] = {
    {"", 0, ITS_TYPE_NONE, ITS_SPACE_NONE, ITS_MODCLASS_NONE},
#define ITS_MOD(id, text, type, space, class) \
    {text, sizeof(text) - 1, ITS_TYPE_##type, ITS_SPACE_##space, ITS_MODCLASS_##class},
#include "ptx/ptx_mods.def"
#undef ITS_MOD
};

_Static_assert(sizeof op_rows / sizeof *op_rows == ITS_OP_COUNT, "one row per opcode");
_Static_assert(sizeof mod_rows / sizeof *mod_rows == ITS_MOD_COUNT, "one row per modifier");
_Static_assert(ITS_OP_COUNT <= UINT16_MAX && ITS_MOD_COUNT <= UINT16_MAX, "its_mnemonic holds both in 16 bits");

const char *its_op_text(its_op op) {
    return (unsigned)op < ITS_OP_COUNT ? op_rows[op].text : "";
}

const char *its_op_pattern(its_op op) {
    return (unsigned)op < ITS_OP_COUNT ? op_rows[op].pattern : "";
}

const char *its_mod_text(its_mod mod) {
    return (unsigned)mod < ITS_MOD_COUNT ? mod_rows[mod].text : "";
}

its_type its_mod_type(its_mod mod) {
    return (unsigned)mod < ITS_MOD_COUNT ? (its_type)mod_rows[mod].type : ITS_TYPE_NONE;
}

its_space its_mod_space(its_mod mod) {
    return (unsigned)mod < ITS_MOD_COUNT ? (its_space)mod_rows[mod].space : ITS_SPACE_NONE;
}

its_mod_class its_mod_class_of(its_mod mod) {
    return (unsigned)mod < ITS_MOD_COUNT ? (its_mod_class)mod_rows[mod].class : ITS_MODCLASS_NONE;
}

/* The opcodes are in the order of the manual, and each distinct name is looked up once: a scan is fast enough. */
its_op its_op_find(const char *text, size_t size) {
    for (unsigned op = 1; op < ITS_OP_COUNT; op++)
        if (op_rows[op].size == size && memcmp(op_rows[op].text, text, size) == 0) return (its_op)op;
    return ITS_OP_UNKNOWN;
}

static int compare_words(const char *a, size_t a_size, const char *b, size_t b_size) {
    int order = memcmp(a, b, a_size < b_size ? a_size : b_size);
    return order ? order : (a_size > b_size) - (a_size < b_size);
}

its_mod its_mod_find(const char *text, size_t size) {
    unsigned low = 1, high = ITS_MOD_COUNT;
    while (low < high) {
        unsigned middle = low + (high - low) / 2;
        int order = compare_words(text, size, mod_rows[middle].text, mod_rows[middle].size);
        if (order == 0) return (its_mod)middle;
        if (order < 0)
            high = middle;
        else
            low = middle + 1;
    }
    return ITS_MOD_UNKNOWN;
}

/* -- decoding ------------------------------------------------------------------------------------------------------ */

/* The end of the word that starts at `at`: the next dot or the end of the name. `::` is part of a word. */
static size_t word_end(its_name name, size_t at) {
    const char *dot = memchr(name->text + at + 1, '.', name->size - at - 1);
    return dot ? (size_t)(dot - name->text) : name->size;
}

static size_t count_mods(its_name name) {
    size_t count = 0;
    for (size_t i = 1; i < name->size; i++) count += name->text[i] == '.';
    return count;
}

static uint8_t vector_width(its_mod mod) {
    switch (mod) {
    case ITS_MOD_V2:
        return 2;
    case ITS_MOD_V4:
        return 4;
    case ITS_MOD_V8:
        return 8;
    default:
        return 1;
    }
}

/* Takes one modifier into the summary: the set, types, spaces, vector width. */
static void note_mod(its_mnemonic *m, its_mod mod) {
    const mod_row *row = &mod_rows[mod];
    m->set[(unsigned)mod / 64] |= (uint64_t)1 << ((unsigned)mod % 64);
    if (mod == ITS_MOD_UNKNOWN) m->unknown_mod = true;
    if (row->class == ITS_MODCLASS_TYPE && m->n_types < ITS_MNEMONIC_TYPES) {
        m->type_mods[m->n_types] = (uint16_t)mod;
        m->types[m->n_types++] = row->type;
    }
    if (row->space != ITS_SPACE_NONE) {
        if (m->space == ITS_SPACE_NONE)
            m->space = row->space;
        else if (m->space2 == ITS_SPACE_NONE)
            m->space2 = row->space;
    }
    if (row->class == ITS_MODCLASS_VEC) m->vec = vector_width(mod);
}

static its_mnemonic *decode(its_context *ctx, its_name name) {
    its_arena *arena = its_names_arena(ctx);
    size_t n_mods = count_mods(name);
    its_mnemonic *m = ITS_NEW(arena, its_mnemonic);
    m->vec = 1;
    if (n_mods > UINT8_MAX) {
        m->unknown_mod = true;
        return m;
    }
    size_t at = name->size ? word_end(name, 0) : 0;
    m->op = (uint16_t)its_op_find(name->text, at);
    m->n_mods = (uint8_t)n_mods;
    m->mods = ITS_NEW_ARRAY(arena, uint16_t, n_mods);
    m->mod_names = ITS_NEW_ARRAY(arena, its_name, n_mods);
    for (size_t i = 0; i < n_mods; i++) {
        size_t end = word_end(name, at);
        its_mod mod = its_mod_find(name->text + at, end - at);
        m->mods[i] = (uint16_t)mod;
        m->mod_names[i] = its_intern_raise(ctx, name->text + at, end - at);
        note_mod(m, mod);
        at = end;
    }
    return m;
}

const its_mnemonic *its_mnemonic_of(its_context *ctx, its_name name) {
    if (!name->mnemonic) name->mnemonic = decode(ctx, name);
    return name->mnemonic;
}

/* -- questions ----------------------------------------------------------------------------------------------------- */

its_mod its_mnemonic_find(const its_mnemonic *m, its_mod_class class, unsigned from) {
    for (unsigned i = from; i < m->n_mods; i++)
        if (mod_rows[m->mods[i]].class == class) return (its_mod)m->mods[i];
    return ITS_MOD_UNKNOWN;
}

its_matrix_shape its_mnemonic_shape(const its_mnemonic *m) {
    its_matrix_shape shape = {0, 0, 0};
    sscanf(its_mod_text(its_mnemonic_find(m, ITS_MODCLASS_SHAPE, 0)), ".m%un%uk%u", &shape.m, &shape.n, &shape.k);
    return shape;
}

uint32_t its_mnemonic_effects(const its_mnemonic *m) {
    uint32_t effects = op_rows[m->op].effects;
    switch ((its_op)m->op) {
    case ITS_OP_ADD:
    case ITS_OP_SUB:
    case ITS_OP_MAD:
        return its_mnemonic_has(m, ITS_MOD_CC) ? effects | ITS_FX_CARRY : effects;
    case ITS_OP_BAR:
        return its_mnemonic_has(m, ITS_MOD_WARP) ? effects & ~(uint32_t)ITS_FX_BARRIER : effects;
    case ITS_OP_ST:
        return its_mnemonic_has(m, ITS_MOD_ASYNC) ? effects | ITS_FX_ASYNC : effects;
    case ITS_OP_RED:
        return its_mnemonic_has(m, ITS_MOD_ASYNC) ? effects | ITS_FX_ASYNC : effects;
    default:
        return effects;
    }
}
