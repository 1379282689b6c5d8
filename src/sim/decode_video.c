/* Video instructions. Averages are refused: how they round is nowhere said. */
#include <string.h>

#include "sim/decode.h"
#include "sim/video.h"

typedef struct form {
    its_op op;
    uint8_t what, parts;
} form;

static const form forms[] = {
    {ITS_OP_VADD, ITS_VIDEO_ADD, 1},  {ITS_OP_VSUB, ITS_VIDEO_SUB, 1},  {ITS_OP_VABSDIFF, ITS_VIDEO_ABSDIFF, 1},
    {ITS_OP_VMIN, ITS_VIDEO_MIN, 1},  {ITS_OP_VMAX, ITS_VIDEO_MAX, 1},  {ITS_OP_VSHL, ITS_VIDEO_SHL, 1},
    {ITS_OP_VSHR, ITS_VIDEO_SHR, 1},  {ITS_OP_VSET, ITS_VIDEO_SET, 1},  {ITS_OP_VMAD, ITS_VIDEO_MAD, 1},
    {ITS_OP_VADD2, ITS_VIDEO_ADD, 2}, {ITS_OP_VSUB2, ITS_VIDEO_SUB, 2}, {ITS_OP_VABSDIFF2, ITS_VIDEO_ABSDIFF, 2},
    {ITS_OP_VMIN2, ITS_VIDEO_MIN, 2}, {ITS_OP_VMAX2, ITS_VIDEO_MAX, 2}, {ITS_OP_VSET2, ITS_VIDEO_SET, 2},
    {ITS_OP_VADD4, ITS_VIDEO_ADD, 4}, {ITS_OP_VSUB4, ITS_VIDEO_SUB, 4}, {ITS_OP_VABSDIFF4, ITS_VIDEO_ABSDIFF, 4},
    {ITS_OP_VMIN4, ITS_VIDEO_MIN, 4}, {ITS_OP_VMAX4, ITS_VIDEO_MAX, 4}, {ITS_OP_VSET4, ITS_VIDEO_SET, 4},
};

/* -- parts of operands --------------------------------------------------------------------------------------------- */

static const char *suffix_of(const its_operand *operand) {
    return operand->kind == ITS_OPND_REG && operand->suffix ? operand->suffix->text + 1 : "";
}

/* `b2`, `h1`: which part of a register a scalar instruction takes. */
static unsigned scalar_part(its_sim_decoder *d, const char *text) {
    if (!*text) return ITS_VIDEO_WHOLE;
    unsigned most = *text == 'b' ? 3 : 1, which = (unsigned)(text[1] - '0');
    if ((*text != 'b' && *text != 'h') || which > most || text[2]) its_sim_refuse_form(d);
    return (*text == 'b' ? ITS_VIDEO_B0 : ITS_VIDEO_H0) + (which & most);
}

/* `h32`, `b7340`: a digit for each part, the highest first; three bits each. */
static unsigned selector(its_sim_decoder *d, const char *text, unsigned parts, unsigned first) {
    unsigned result = 0;
    for (unsigned i = 0; i < parts; i++) result |= (first + i) << 3 * i;
    if (!*text) return result;
    if (*text != (parts == 2 ? 'h' : 'b') || strlen(text) != parts + 1) its_sim_refuse_form(d);
    result = 0;
    for (unsigned i = 0; i < parts && text[1 + i]; i++) {
        unsigned digit = (unsigned)(text[1 + i] - '0');
        if (digit >= 2 * parts) its_sim_refuse_form(d);
        result = result << 3 | (digit & 7);
    }
    return result;
}

/* `h1`, `b20`: the parts of the result that are written, the highest first. */
static unsigned mask_of(its_sim_decoder *d, const char *text, unsigned parts) {
    if (!*text) return (1u << parts) - 1;
    unsigned result = 0;
    if (*text != (parts == 2 ? 'h' : 'b')) its_sim_refuse_form(d);
    for (text++; *text; text++) {
        unsigned digit = (unsigned)(*text - '0');
        if (digit >= parts) its_sim_refuse_form(d);
        result |= 1u << (digit & 3);
    }
    return result;
}

/* The register itself. */
static uint32_t whole(its_sim_decoder *d, unsigned index, bool *negated) {
    its_operand plain = *its_sim_operand(d, index);
    *negated = plain.flags & ITS_OPND_NEG;
    if (plain.kind == ITS_OPND_REG) {
        plain.suffix = NULL;
        plain.flags = (uint8_t)(plain.flags & ~ITS_OPND_NEG);
    }
    return its_sim_source(d, &plain, ITS_TYPE_B32);
}

static uint32_t target(its_sim_decoder *d) {
    its_operand plain = *its_sim_operand(d, 0);
    if (plain.kind == ITS_OPND_REG) plain.suffix = NULL;
    return its_sim_target(d, &plain, ITS_TYPE_B32);
}

/* -- modifiers ----------------------------------------------------------------------------------------------------- */

static unsigned second_of(its_sim_decoder *d) {
    if (its_sim_has(d, ITS_MOD_ADD)) return ITS_VIDEO_THEN_ADD;
    if (its_sim_has(d, ITS_MOD_MIN)) return ITS_VIDEO_THEN_MIN;
    return its_sim_has(d, ITS_MOD_MAX) ? ITS_VIDEO_THEN_MAX : ITS_VIDEO_NONE;
}

static unsigned comparison_of(its_sim_decoder *d) {
    static const its_mod mods[] = {ITS_MOD_EQ, ITS_MOD_NE, ITS_MOD_LT, ITS_MOD_LE, ITS_MOD_GT, ITS_MOD_GE};
    for (unsigned i = 0; i < sizeof(mods) / sizeof(*mods); i++)
        if (its_sim_has(d, mods[i])) return i;
    its_sim_refuse_form(d);
    return 0;
}

static void take_modifiers(its_sim_decoder *d, its_sim_video *v) {
    bool sets = v->what == ITS_VIDEO_SET; /* its result has no type of its own */
    unsigned at = sets ? 0 : 1;
    v->d_signed = !sets && its_sim_is_signed(its_sim_type(d, 0));
    v->a_signed = its_sim_is_signed(its_sim_type(d, at));
    v->b_signed = its_sim_is_signed(its_sim_type(d, at + 1));
    v->saturates = its_sim_has(d, ITS_MOD_SAT);
    if (sets) v->compare = comparison_of(d) & 7;
    if (v->what == ITS_VIDEO_SHL || v->what == ITS_VIDEO_SHR) {
        v->wraps = its_sim_has(d, ITS_MOD_WRAP);
        its_sim_has(d, ITS_MOD_CLAMP);
    }
    if (v->what != ITS_VIDEO_MAD) v->second = second_of(d) & 3;
}

/* vmad d, {-}a, {-}b, {-}c */
static void take_product(its_sim_decoder *d, its_sim_video *v, bool a_negated, bool b_negated, bool c_negated) {
    v->plus_one = its_sim_has(d, ITS_MOD_PO);
    v->negates_product = a_negated != b_negated;
    v->negates_c = c_negated;
    v->shift = its_sim_has(d, ITS_MOD_SHR7) ? 7 : its_sim_has(d, ITS_MOD_SHR15) ? 15 : 0;
    if ((v->plus_one && (a_negated || b_negated || c_negated)) || (v->negates_product && v->negates_c))
        its_sim_refuse_form(d);
}

static void take_parts(its_sim_decoder *d, its_sim_video *v) {
    const char *to = suffix_of(its_sim_operand(d, 0));
    const char *a = suffix_of(its_sim_operand(d, 1)), *b = suffix_of(its_sim_operand(d, 2));
    if (v->parts == 1) {
        v->d_part = scalar_part(d, to) & 15;
        v->a_part = scalar_part(d, a) & 15;
        v->b_part = scalar_part(d, b) & 15;
    } else {
        v->d_part = mask_of(d, to, v->parts) & 15;
        v->a_part = selector(d, a, v->parts, 0) & 0xfff;
        v->b_part = selector(d, b, v->parts, v->parts) & 0xfff;
    }
}

void its_sim_decode_video(its_sim_decoder *d) {
    size_t i = 0;
    while (i < sizeof(forms) / sizeof(*forms) && forms[i].op != (its_op)d->m->op) i++;
    if (i == sizeof(forms) / sizeof(*forms)) {
        its_sim_decode_none(d);
        return;
    }
    its_sim_video v = {.what = forms[i].what & 15u, .parts = forms[i].parts & 7u};
    bool a_negated, b_negated, c_negated = false;
    take_modifiers(d, &v);
    take_parts(d, &v);
    uint32_t a = whole(d, 1, &a_negated), b = whole(d, 2, &b_negated), c = 0;
    bool has_c = d->insn->node.count > 3;
    if (has_c) c = whole(d, 3, &c_negated);
    if (v.what == ITS_VIDEO_MAD)
        take_product(d, &v, a_negated, b_negated, c_negated);
    else if (a_negated || b_negated || c_negated || (!has_c && (v.second || v.d_part != ITS_VIDEO_WHOLE)))
        its_sim_refuse_form(d);
    its_sim_op *op = its_sim_emit3(d, ITS_SIM_VIDEO, target(d), 4, a, b, c);
    memcpy(&op->imm, &v, sizeof(v));
}
