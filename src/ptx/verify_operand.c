/*
 * Operands against the operands of a form; the notation is explained in ptx_ops.def.
 *
 * A register fits an instruction's type if both have the same size and either one is untyped (.bNN), or both are
 * integers of any sign, or both are the same kind of float. `ld`, `st` and `cvt` take wider registers as well.
 */
#include <string.h>

#include "ptx/verify.h"

/* -- types --------------------------------------------------------------------------------------------------------- */

bool its_type_fits(its_type type, its_type reg, bool wider) {
    its_type_kind want = its_type_kind_of(type), have = its_type_kind_of(reg);
    if (want == ITS_KIND_NONE || have == ITS_KIND_NONE) return true;
    if (want == ITS_KIND_PRED || have == ITS_KIND_PRED)
        return want == have || reg == ITS_TYPE_F16X2; /* as ptxas has it */
    uint32_t want_size = its_type_size(type), have_size = its_type_size(reg);
    if (wider ? have_size < want_size : have_size != want_size) return false;
    if (want == ITS_KIND_BITS || have == ITS_KIND_BITS) return true;
    if (want == ITS_KIND_FLOAT && have == ITS_KIND_FLOAT) return type == reg;
    if (reg == ITS_TYPE_F16X2) return want == ITS_KIND_INT; /* ptxas takes it for an integer */
    return want == have;
}

/* -- messages ------------------------------------------------------------------------------------------------------ */

static bool is_component(its_name suffix) {
    return suffix && suffix->size == 2 && strchr("xyzwrgba", suffix->text[1]);
}

its_type its_operand_type(const its_operand *operand) {
    return operand->kind == ITS_OPND_REG ? (its_type)operand->symbol->type : ITS_TYPE_NONE;
}

static bool is_vector(const its_operand *operand) {
    return operand->kind == ITS_OPND_REG && operand->symbol->vec > 1 && !is_component(operand->suffix);
}

unsigned its_operand_width(const its_operand *operand) {
    if (operand->kind == ITS_OPND_VEC) return operand->count;
    return is_vector(operand) ? operand->symbol->vec : 0;
}

/* What an operand is, for messages: "%r1 is .b32", "5 is an immediate". Lives in the arena. */
static const char *operand_text(its_arena *arena, const its_operand *operand) {
    switch (operand->kind) {
    case ITS_OPND_REG:
        if (is_vector(operand))
            return its_arena_printf(arena, "'%s' is a vector of %u %s", operand->symbol->name->text,
                                    operand->symbol->vec, its_type_text((its_type)operand->symbol->type));
        return its_arena_printf(arena, "'%s' is %s", operand->symbol->name->text,
                                its_type_text((its_type)operand->symbol->type));
    case ITS_OPND_SYM:
        switch (operand->symbol->kind) {
        case ITS_SYM_VAR:
            return its_arena_printf(arena, "'%s' is a variable", operand->symbol->name->text);
        case ITS_SYM_LABEL:
            return its_arena_printf(arena, "'%s' is a label", operand->symbol->name->text);
        case ITS_SYM_FUNC:
            return its_arena_printf(arena, "'%s' is a function", operand->symbol->name->text);
        default:
            return its_arena_printf(arena, "'%s' is neither register nor variable", operand->symbol->name->text);
        }
    case ITS_OPND_INT:
        return "this is an integer";
    case ITS_OPND_F32:
    case ITS_OPND_F64:
        return "this is a floating-point number";
    case ITS_OPND_SREG:
        return its_arena_printf(arena, "'%s' is a special register", operand->name->text);
    case ITS_OPND_SINK:
        return "this is the sink '_'";
    case ITS_OPND_VEC:
        return its_arena_printf(arena, "this is a vector of %u", operand->count);
    case ITS_OPND_PAIR:
        return "this is a pair";
    case ITS_OPND_ADDR:
        return "this is an address";
    default:
        return "this is no value";
    }
}

/* -- single values ------------------------------------------------------------------------------------------------- */

bool its_verify_misfit(its_verifier *v, const its_insn *insn, const its_operand *operand, const char *what) {
    if (v->quiet) return false;
    return its_verify_error(v, &insn->node, operand->pos, "%s, '%s' takes %s here", operand_text(v->scratch, operand),
                            insn->name->text, what);
}

static const char *type_and_bits(its_verifier *v, its_type type) {
    if (v->quiet) return "";
    if (type == ITS_TYPE_PRED) return "a predicate";
    return its_arena_printf(v->scratch, "%s (%u bits)", its_type_text(type), its_type_size(type) * 8);
}

/* True for vadd, vset4 and their kin, whose registers may have a byte or half-word selected and be negated. */
static bool is_video(const its_insn *insn, its_verifier *v) {
    unsigned op = its_mnemonic_of(v->ctx, insn->name)->op;
    return op >= ITS_OP_VADD && op <= ITS_OP_VSET4;
}

bool its_verify_decoration(its_verifier *v, const its_insn *insn, const its_operand *operand, its_type type,
                           unsigned flags) {
    const char *name = operand->symbol->name->text;
    if (operand->flags & ITS_OPND_NOT && (flags & ITS_WRITTEN || type != ITS_TYPE_PRED))
        return its_verify_error(v, &insn->node, operand->pos, "'!' stands before a predicate that is read only");
    if (operand->flags & ITS_OPND_NEG && !is_video(insn, v))
        return its_verify_error(v, &insn->node, operand->pos, "'%s' takes no negated registers", insn->name->text);
    if (!operand->suffix || is_video(insn, v)) return true;
    if (is_component(operand->suffix) && operand->symbol->vec > 1) return true; /* ptxas takes .z of a .v2 */
    return its_verify_error(v, &insn->node, operand->pos, "'%s' has no component %s", name, operand->suffix->text);
}

static bool register_fits(its_type type, its_type have, unsigned flags) {
    if (flags & ITS_ELEMENT && have == ITS_TYPE_F16X2) have = ITS_TYPE_B32; /* beside an immediate */
    if (flags & ITS_COUNT && have == ITS_TYPE_F16X2) return false;
    if (!(flags & ITS_EXACT)) return its_type_fits(type, have, flags & ITS_WIDER);
    its_type_kind kind = its_type_kind_of(have);
    bool untyped = kind == ITS_KIND_BITS || kind == ITS_KIND_NONE || (have == ITS_TYPE_F16X2 && type == ITS_TYPE_B32);
    return untyped && its_type_fits(type, have, false);
}

static bool check_register(its_verifier *v, const its_insn *insn, const its_operand *operand, its_type type,
                           unsigned flags) {
    if (flags & ITS_IMMEDIATE) return its_verify_misfit(v, insn, operand, "an immediate");
    if (is_vector(operand)) return its_verify_misfit(v, insn, operand, type_and_bits(v, type));
    if (register_fits(type, its_operand_type(operand), flags))
        return its_verify_decoration(v, insn, operand, type, flags);
    if (flags & ITS_WIDER && !(flags & ITS_EXACT) && type != ITS_TYPE_PRED && !v->quiet)
        return its_verify_misfit(v, insn, operand,
                                 its_arena_printf(v->scratch, "a register of at least %s", type_and_bits(v, type)));
    return its_verify_misfit(v, insn, operand, type_and_bits(v, type));
}

/*
 * Integers stand for integers, bits and predicates; floats for floats. A float of just the size may stand for bits, and
 * any in a vector; the halves have no immediates.
 */
static bool number_fits(const its_operand *operand, its_type type, unsigned flags) {
    its_type_kind kind = its_type_kind_of(type);
    uint32_t size = its_type_size(type);
    if (kind == ITS_KIND_NONE) return true;
    if (flags & ITS_EXACT) return flags & ITS_ELEMENT;
    if (operand->kind == ITS_OPND_INT) return kind == ITS_KIND_BITS || kind == ITS_KIND_INT || kind == ITS_KIND_PRED;
    if (kind == ITS_KIND_FLOAT) return size >= 4 && type != ITS_TYPE_F16X2 && type != ITS_TYPE_BF16X2;
    if (kind != ITS_KIND_BITS) return false;
    return flags & ITS_ELEMENT || size == (operand->kind == ITS_OPND_F32 ? 4 : 8);
}

static bool check_sreg(its_verifier *v, const its_insn *insn, const its_operand *operand, its_type type,
                       unsigned flags) {
    its_sreg sreg = its_sreg_find(operand->name->text);
    if (sreg.type == ITS_TYPE_NONE) return true; /* reported on its own, or newer than this library */
    if (!(flags & (ITS_SREG_TOO | ITS_ELEMENT)))
        return its_verify_error(v, &insn->node, operand->pos, "'%s' can be read by mov and cvt only",
                                operand->name->text);
    if (flags & ITS_ELEMENT || (sreg.parts == 1 && its_sreg_fits(operand->name, sreg, type, flags & ITS_WIDER)))
        return true;
    if (sreg.parts > 1)
        return its_verify_error(v, &insn->node, operand->pos, "'%s' is a vector, say which component: '%s.x'",
                                operand->name->text, operand->name->text);
    return its_verify_misfit(v, insn, operand, type_and_bits(v, type));
}

/*
 * Functions stand for anything to ptxas; variables for integers and bits, if an offset is added (elsewhere mov it is).
 */
static bool check_symbol(its_verifier *v, const its_insn *insn, const its_operand *operand, its_type type) {
    its_type_kind kind = its_type_kind_of(type);
    if (operand->symbol->kind == ITS_SYM_FUNC) return true;
    if (operand->symbol->kind == ITS_SYM_VAR && operand->offset && kind != ITS_KIND_FLOAT && kind != ITS_KIND_PRED)
        return true;
    return its_verify_misfit(v, insn, operand, type_and_bits(v, type));
}

bool its_verify_value(its_verifier *v, const its_insn *insn, const its_operand *operand, its_type type,
                      unsigned flags) {
    if (flags & ITS_WRITTEN && operand->kind != ITS_OPND_REG)
        return its_verify_misfit(v, insn, operand, "a register to write to");
    if (flags & ITS_WRITTEN && operand->flags & ITS_OPND_OFFSET)
        return its_verify_error(v, &insn->node, operand->pos, "'%s' is written to, nothing can be added to it",
                                operand->symbol->name->text);
    switch (operand->kind) {
    case ITS_OPND_REG:
        return check_register(v, insn, operand, type, flags);
    case ITS_OPND_INT:
    case ITS_OPND_F32:
    case ITS_OPND_F64:
        return number_fits(operand, type, flags) || its_verify_misfit(v, insn, operand, type_and_bits(v, type));
    case ITS_OPND_SREG:
        return check_sreg(v, insn, operand, type, flags);
    case ITS_OPND_SYM:
        return check_symbol(v, insn, operand, type);
    default:
        return its_verify_misfit(v, insn, operand, type_and_bits(v, type));
    }
}

/* -- vectors ------------------------------------------------------------------------------------------------------- */

static bool vector_size(its_verifier *v, const its_insn *insn, const its_operand *operand, unsigned count) {
    if (v->quiet) return false;
    const char *wanted = count == 1 && operand->kind == ITS_OPND_VEC && operand->count != 1
                             ? "one value"
                             : its_arena_printf(v->scratch, "a vector of %u", count);
    return its_verify_misfit(v, insn, operand, wanted);
}

bool its_is_all_registers(const its_operand *vector) {
    if (vector->kind != ITS_OPND_VEC) return true;
    for (unsigned i = 0; i < vector->count; i++)
        if (vector->list[i].kind != ITS_OPND_REG && vector->list[i].kind != ITS_OPND_SINK) return false;
    return true;
}

/* To ptxas a predicate is as large as .b32 here. */
static bool are_neighbours(its_type a, its_type b) {
    bool untyped = its_type_kind_of(a) == ITS_KIND_BITS || its_type_kind_of(b) == ITS_KIND_BITS;
    if (a == ITS_TYPE_PRED || b == ITS_TYPE_PRED) return a == b || a == ITS_TYPE_B32 || b == ITS_TYPE_B32;
    if ((a == ITS_TYPE_F16X2) != (b == ITS_TYPE_F16X2) && !untyped) return false;
    return its_type_size(a) == its_type_size(b) && its_type_fits(a, b, false);
}

/*
 * A vector of registers has a type of its own: neighbours must be of one size and kind, .bNN going with anything, and
 * one .bNN makes the whole untyped. Stores the register that stands for all; NULL if there is none.
 */
static bool merge_elements(its_verifier *v, const its_insn *insn, const its_operand *vector,
                           const its_operand **merged) {
    const its_operand *last = NULL;
    *merged = NULL;
    for (unsigned i = 0; i < vector->count; i++) {
        const its_operand *element = &vector->list[i];
        if (element->kind != ITS_OPND_REG) continue;
        its_type type = its_operand_type(element), before = last ? its_operand_type(last) : type;
        if (!are_neighbours(type, before))
            return its_verify_error(v, &insn->node, element->pos, "%s and %s: they can't be neighbours in a vector",
                                    operand_text(v->scratch, last), operand_text(v->scratch, element));
        if (!*merged || its_type_kind_of(type) == ITS_KIND_BITS) *merged = element;
        last = element;
    }
    return true;
}

bool its_verify_neighbours(its_verifier *v, const its_insn *insn, const its_operand *operand) {
    const its_operand *merged;
    if (operand->kind == ITS_OPND_ADDR)
        for (unsigned i = 0; i < operand->count; i++)
            if (!its_verify_neighbours(v, insn, &operand->list[i])) return false;
    return operand->kind != ITS_OPND_VEC || !its_is_all_registers(operand) || merge_elements(v, insn, operand, &merged);
}

static bool check_elements(its_verifier *v, const its_insn *insn, const its_operand *operand, its_type type,
                           unsigned flags) {
    if (!its_is_all_registers(operand)) {
        for (unsigned i = 0; i < operand->count; i++)
            if (!its_verify_value(v, insn, &operand->list[i], type, flags | ITS_ELEMENT)) return false;
        return true;
    }
    for (unsigned i = 0; i < operand->count; i++)
        if (operand->list[i].kind == ITS_OPND_SINK && !(flags & (ITS_WRITTEN | ITS_SINK_TOO)))
            return its_verify_misfit(v, insn, &operand->list[i], type_and_bits(v, type));
    const its_operand *merged;
    if (!merge_elements(v, insn, operand, &merged)) return false;
    if (!merged) return its_verify_error(v, &insn->node, operand->pos, "every element is '_', one must be a register");
    return its_verify_value(v, insn, merged, type, flags);
}

bool its_verify_vector(its_verifier *v, const its_insn *insn, const its_operand *operand, its_type type, unsigned count,
                       unsigned flags) {
    if (is_vector(operand)) {
        if (operand->symbol->vec != count) return vector_size(v, insn, operand, count);
        if (its_type_fits(type, (its_type)operand->symbol->type, flags & ITS_WIDER)) return true;
        return its_verify_misfit(v, insn, operand, type_and_bits(v, type));
    }
    if (operand->kind != ITS_OPND_VEC) {
        if (count == 1) return its_verify_value(v, insn, operand, type, flags);
        return vector_size(v, insn, operand, count);
    }
    if (operand->count != count) return vector_size(v, insn, operand, count);
    return check_elements(v, insn, operand, type, flags);
}

/* -- literals ------------------------------------------------------------------------------------------------------ */

static uint64_t read_literal(const char **at) {
    uint64_t value = 0;
    bool negative = **at == '-';
    if (negative) ++*at;
    while (**at >= '0' && **at <= '9') value = value * 10 + (uint64_t)(*(*at)++ - '0');
    return negative ? 0 - value : value;
}

/* "0..15", "24..256*8" */
static bool check_range(its_verifier *v, const its_insn *insn, const its_operand *operand, const char *shape) {
    uint64_t first = read_literal(&shape), step = 1;
    shape += strlen("..");
    uint64_t last = read_literal(&shape);
    if (*shape == '*') {
        shape++;
        step = read_literal(&shape);
    }
    bool fits = operand->bits >= first && operand->bits <= last && (step < 2 || operand->bits % step == 0);
    if (operand->kind == ITS_OPND_INT && fits) return true;
    if (v->quiet) return false;
    const char *text =
        its_arena_printf(v->scratch, "a number from %llu to %llu", (unsigned long long)first, (unsigned long long)last);
    if (step > 1) text = its_arena_printf(v->scratch, "%s that is a multiple of %llu", text, (unsigned long long)step);
    return its_verify_misfit(v, insn, operand, text);
}

/* "16", or "8" of "4/8/16": the message names all that would do. */
static bool check_literal(its_verifier *v, const its_insn *insn, const its_operand *operand, const char *shape) {
    if (shape[strspn(shape, "0123456789")] == '.') return check_range(v, insn, operand, shape);
    if (operand->kind == ITS_OPND_INT && operand->bits == read_literal(&(const char *){shape})) return true;
    if (v->quiet) return false;
    const char *text = its_arena_printf(v->scratch, "the number %lld", (long long)read_literal(&shape));
    while (*shape == '/') {
        shape++;
        uint64_t next = read_literal(&shape);
        const char *join = *shape == '/' ? ", " : " or ";
        text = its_arena_printf(v->scratch, "%s%s%lld", text, join, (long long)next);
    }
    return its_verify_misfit(v, insn, operand, text);
}

/* -- one operand of a form ----------------------------------------------------------------------------------------- */

typedef struct wanted {
    const char *shapes, *end; /* alternatives, separated by '/' */
    const char *pair;         /* after '|', or NULL */
    bool written, wider, sink, optional, pair_optional, pair_sink;
} wanted;

/* Reads one operand of a form; returns what follows it, NULL if there is none left. */
static const char *read_wanted(const char *at, wanted *w) {
    *w = (wanted){0};
    while (*at == ' ') at++;
    if (!*at || *at == ';') return NULL;
    if (*at == '=') w->written = true, at++;
    if (*at == '_') w->sink = true, at++;
    if (*at == '~') w->wider = true, at++;
    w->shapes = at;
    while (*at && *at != ' ' && *at != ';') {
        if (*at == '|') w->pair = at + 1, w->end = at;
        at++;
    }
    const char *stop = at;
    if (stop[-1] == '?') {
        w->optional = !w->pair;
        w->pair_optional = w->pair != NULL;
        stop--;
    }
    w->pair_sink = stop[-1] != '!';
    if (!w->pair) w->end = stop;
    return at;
}

static bool is_rest(const wanted *w) {
    return w->end - w->shapes == 3 && memcmp(w->shapes, "...", 3) == 0;
}

/* A cache policy counts if the instruction says that it has one. */
static bool is_absent(const its_mnemonic *m, const wanted *w) {
    return *w->shapes == 'h' && !its_mnemonic_has(m, ITS_MOD_L2_CACHE_HINT);
}

its_count_range its_form_counts(const its_mnemonic *m, const char *operands) {
    its_count_range range = {0, 0};
    wanted w;
    for (bool optional = false; (operands = read_wanted(operands, &w));) {
        if (is_rest(&w)) {
            range.most = UINT16_MAX;
            return range;
        }
        if (is_absent(m, &w)) continue;
        optional |= w.optional;
        range.most++;
        if (!optional || *w.shapes == 'h') range.least++;
    }
    return range;
}

/* True for types that are carried in a register of another type: .tf32, .e4m3x2, .u16x2. */
static bool is_carried(its_mod mod) {
    return mod == ITS_MOD_BF16 || mod == ITS_MOD_BF16X2 ||
           strcmp(its_mod_text(mod), its_type_text(its_mod_type(mod))) != 0;
}

/* The type that a pattern's letter or name stands for; sets flags that go with it. */
static its_type wanted_type(const its_mnemonic *m, const char *text, size_t size, unsigned *flags) {
    static const char letters[] = "TSUV";
    const char *letter = size == 1 ? strchr(letters, *text) : NULL;
    if (letter) {
        unsigned index = (unsigned)(letter - letters);
        if (index < m->n_types && is_carried((its_mod)m->type_mods[index])) *flags |= ITS_EXACT;
        return its_mnemonic_type(m, index);
    }
    if (size > 1 && *text == 'n') {
        *flags |= ITS_COUNT;
        return text[1] == '3' ? ITS_TYPE_U32 : ITS_TYPE_U64;
    }
    if (size > 1) return its_type_of_name(text, size);
    if (*text == 'B') return its_type_of_bytes(its_type_size(its_mnemonic_type(m, 0)));
    return *text == 'W' ? its_type_doubled(its_mnemonic_type(m, 0)) : ITS_TYPE_PRED;
}

/* `{T,v}`, `{b32,4}`, `{T,A}` */
static bool check_braces(its_verifier *v, const its_insn *insn, const its_mnemonic *m, const its_operand *operand,
                         const char *shape, unsigned flags) {
    const char *comma = strchr(shape, ',');
    its_type type = wanted_type(m, shape + 1, (size_t)(comma - shape - 1), &flags);
    char size = comma[1];
    unsigned count = 0;
    if (size >= 'A' && size <= 'D') {
        its_fragment fragment = its_verify_fragment(m, size);
        type = fragment.type, count = fragment.count;
        flags &= ~(unsigned)ITS_EXACT;
    } else if (size == 'v') {
        count = m->vec;
    } else if (size == 'x') {
        count = its_verify_multiple(m);
    } else if (size == 'o') {
        count = its_verify_dimensions(m) - 2;
    } else {
        count = (unsigned)(size - '0');
    }
    if (!count) return true;
    bool braces = size == 'x' || size == 'o' || (size >= 'A' && size <= 'D');
    if (braces && operand->kind != ITS_OPND_VEC && !is_vector(operand)) return vector_size(v, insn, operand, count);
    return its_verify_vector(v, insn, operand, type, count, flags);
}

static bool check_label(its_verifier *v, const its_insn *insn, const its_mnemonic *m, const its_operand *operand) {
    const its_symbol *symbol = operand->kind == ITS_OPND_SYM ? operand->symbol : NULL;
    if (m->op != ITS_OP_BRX)
        return (symbol && symbol->kind == ITS_SYM_LABEL) || its_verify_misfit(v, insn, operand, "a label");
    if (symbol && symbol->kind == ITS_SYM_TARGETS && !((const its_targets *)symbol->node)->calls) return true;
    return its_verify_misfit(v, insn, operand, "the label of a .branchtargets");
}

/* Tensor memory has addresses of 32 bits, and no others. */
static bool check_short(its_verifier *v, const its_insn *insn, const its_operand *base) {
    if (base->kind != ITS_OPND_REG || its_type_size(its_operand_type(base)) == 4) return true;
    return its_verify_misfit(v, insn, base, "an address of 32 bits");
}

static bool check_shape(its_verifier *v, const its_insn *insn, const its_mnemonic *m, const its_operand *operand,
                        const char *shape, const char *end, unsigned flags) {
    switch (*shape) {
    case '[':
        return its_verify_address(v, insn, m, operand, shape[1] == ',') &&
               (shape[1] != '3' || check_short(v, insn, &operand->list[0]));
    case '{':
        return check_braces(v, insn, m, operand, shape, flags);
    case 'L':
        return check_label(v, insn, m, operand);
    case '&':
        return its_verify_variable(v, insn, m, operand);
    case '*':
        return its_verify_neighbours(v, insn, operand);
    case 'h':
        return its_verify_value(v, insn, operand, ITS_TYPE_B64, flags | ITS_COUNT);
    default: {
        if (*shape == '-' || (*shape >= '0' && *shape <= '9')) return check_literal(v, insn, operand, shape);
        if (end[-1] == '#') flags |= ITS_IMMEDIATE, end--;
        if (m->op == ITS_OP_MOV || m->op == ITS_OP_CVT) flags |= ITS_SREG_TOO;
        its_type type = wanted_type(m, shape, (size_t)(end - shape), &flags);
        return its_verify_value(v, insn, operand, type, flags);
    }
    }
}

/* Either of several shapes; if none fits, the message is about the first. */
static bool check_shapes(its_verifier *v, const its_insn *insn, const its_mnemonic *m, const its_operand *operand,
                         const char *shapes, const char *end, unsigned flags) {
    const char *stop = memchr(shapes, '/', (size_t)(end - shapes));
    if (!stop) return check_shape(v, insn, m, operand, shapes, end, flags);
    v->quiet++;
    bool fits = false;
    for (const char *shape = shapes; !fits && shape < end; shape = stop + 1) {
        stop = memchr(shape, '/', (size_t)(end - shape));
        if (!stop) stop = end;
        fits = check_shape(v, insn, m, operand, shape, stop, flags);
    }
    v->quiet--;
    if (fits) return true;
    stop = memchr(shapes, '/', (size_t)(end - shapes));
    return check_shape(v, insn, m, operand, shapes, stop, flags);
}

static bool check_one(its_verifier *v, const its_insn *insn, const its_mnemonic *m, const its_operand *operand,
                      const wanted *w) {
    unsigned flags = (w->written ? ITS_WRITTEN : 0u) | (w->wider ? ITS_WIDER : 0u);
    if (w->sink && operand->kind == ITS_OPND_SINK) return true;
    if (w->shapes == w->end) return its_verify_misfit(v, insn, operand, "the sink '_'");
    if (operand->kind != ITS_OPND_PAIR) {
        if (w->pair && !w->pair_optional) return its_verify_misfit(v, insn, operand, "a pair 'd|p'");
        return check_shapes(v, insn, m, operand, w->shapes, w->end, flags);
    }
    const its_operand *first = &operand->list[0], *second = &operand->list[1];
    if (!w->pair && second->kind == ITS_OPND_SINK) return check_shapes(v, insn, m, first, w->shapes, w->end, flags);
    if (!w->pair) return its_verify_misfit(v, insn, operand, "a single operand");
    bool ok = (w->sink && first->kind == ITS_OPND_SINK) || check_shapes(v, insn, m, first, w->shapes, w->end, flags);
    if (!ok || (w->pair_sink && second->kind == ITS_OPND_SINK)) return ok;
    return its_verify_value(v, insn, second, ITS_TYPE_PRED, flags);
}

bool its_verify_operands(its_verifier *v, const its_insn *insn, const its_mnemonic *m, const char *operands) {
    bool ok = true;
    wanted w;
    unsigned missing = its_form_counts(m, operands).most - insn->node.count;
    uint16_t i = 0;
    while (i < insn->node.count && (operands = read_wanted(operands, &w)) && !is_rest(&w)) {
        if (is_absent(m, &w)) continue;
        if (w.optional && missing == 1 && its_mnemonic_has(m, ITS_MOD_L2_CACHE_HINT) && i + 1 == insn->node.count)
            continue; /* what is there is the cache policy behind it */
        ok &= check_one(v, insn, m, &insn->ops[i++], &w);
    }
    for (; i < insn->node.count; i++) ok &= its_verify_neighbours(v, insn, &insn->ops[i]);
    return ok;
}
