/*
 * Declarations: variables and their initialisers, parameters of entries and functions, prototypes of one function
 * against each other, aliases, and performance directives.
 */
#include <string.h>

#include "ptx/verify.h"

enum {
    LARGEST_VECTOR = 16,       /* bytes */
    CONST_BYTES = 65536,       /* of .const variables in a module */
    ENTRY_PARAM_BYTES = 32764, /* of an entry's parameters, from PTX 8.1 on */
};

/* Reports at the place where the symbol is declared. */
static bool symbol_error(its_verifier *v, const its_symbol *symbol, const char *format, ...) ITS_PRINTF(3, 4);
static bool symbol_error(its_verifier *v, const its_symbol *symbol, const char *format, ...) {
    va_list args;
    va_start(args, format);
    const char *message = its_arena_vprintf(v->scratch, format, args);
    va_end(args);
    its_diag_begin(v->ctx, ITS_ERROR, its_symbol_place(symbol), "%s", message);
    v->errors++;
    return false;
}

/* -- types --------------------------------------------------------------------------------------------------------- */

static bool is_opaque(its_type type) {
    return type == ITS_TYPE_TEXREF || type == ITS_TYPE_SAMPLERREF || type == ITS_TYPE_SURFREF;
}

/* Types that instructions have but nothing can be declared with, and vectors that are too long. */
static bool check_type(its_verifier *v, const its_symbol *symbol) {
    its_type type = (its_type)symbol->type;
    if (type == ITS_TYPE_NONE && v->version > ITS_VERIFY_NEWEST) return true;
    if (type == ITS_TYPE_NONE)
        return symbol_error(v, symbol, "nothing can be declared with the type %s",
                            symbol->type_name ? symbol->type_name->text : "given");
    if (type == ITS_TYPE_BF16 || type == ITS_TYPE_BF16X2)
        return symbol_error(v, symbol, "nothing can be declared with the type %s, take .b%u", its_type_text(type),
                            its_type_size(type) * 8);
    if (type == ITS_TYPE_PRED && symbol->vec > 1) return symbol_error(v, symbol, "there are no vectors of predicates");
    if (type == ITS_TYPE_PRED && symbol->space != ITS_SPACE_REG)
        return symbol_error(v, symbol, "'%s' is a predicate and can only be a register", symbol->name->text);
    if (symbol->vec > 4 || its_type_size(type) * symbol->vec > LARGEST_VECTOR)
        return symbol_error(v, symbol, "a vector of %u %s is too long, 128 bits and 4 elements are the most",
                            symbol->vec, its_type_text(type));
    return symbol->flags & ITS_SYM_ARRAY || its_verify_since_type(v, NULL, symbol->pos, type);
}

/* -- initialisers -------------------------------------------------------------------------------------------------- */

static bool init_fits(const its_symbol *symbol, const its_init *init) {
    its_type type = (its_type)symbol->type;
    switch (init->kind) {
    case ITS_OPND_INT:
        return !its_type_is_real(type);
    case ITS_OPND_F32:
    case ITS_OPND_F64:
        return its_type_kind_of(type) != ITS_KIND_INT;
    default: /* an address, or with a mask one byte of it */
        return init->byte ? type == ITS_TYPE_U8 : type == ITS_TYPE_U32 || type == ITS_TYPE_U64;
    }
}

static bool check_init_symbol(its_verifier *v, const its_var *var, const its_init *init) {
    const its_symbol *symbol = init->symbol;
    if (symbol->kind != ITS_SYM_VAR || symbol->space == ITS_SPACE_GLOBAL || symbol->space == ITS_SPACE_CONST)
        return true;
    return its_verify_error(v, &var->node, init->pos,
                            "'%s' is in %s, only addresses of .global and .const are constant", symbol->name->text,
                            its_space_text((its_space)symbol->space));
}

/* Which fields which kind of opaque reference has. */
enum { TEX = 1, SAMPLER = 2, SURF = 4 };
static const struct {
    const char *name;
    unsigned kinds;
} fields[] = {
    {"width", TEX | SURF},
    {"height", TEX | SURF},
    {"depth", TEX | SURF},
    {"channel_data_type", TEX | SURF},
    {"channel_order", TEX | SURF},
    {"array_size", TEX | SURF},
    {"num_mipmap_levels", TEX},
    {"num_samples", TEX},
    {"normalized_coords", TEX},
    {"memory_layout", SURF},
    {"addr_mode_0", TEX | SAMPLER},
    {"addr_mode_1", TEX | SAMPLER},
    {"addr_mode_2", TEX | SAMPLER},
    {"filter_mode", TEX | SAMPLER},
    {"force_unnormalized_coords", SAMPLER},
};
static const char *const field_words[] = {"wrap",    "mirror", "clamp_ogl", "clamp_to_edge", "clamp_to_border",
                                          "nearest", "linear"};

static bool is_field_of(its_name field, its_type type) {
    unsigned kind = type == ITS_TYPE_TEXREF ? TEX : type == ITS_TYPE_SAMPLERREF ? SAMPLER : SURF;
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++)
        if (strcmp(fields[i].name, field->text) == 0) return fields[i].kinds & kind;
    return false;
}

static bool is_field_word(its_name word) {
    for (size_t i = 0; i < sizeof field_words / sizeof *field_words; i++)
        if (strcmp(field_words[i], word->text) == 0) return true;
    return false;
}

static void check_fields(its_verifier *v, const its_var *var) {
    its_type type = (its_type)var->symbol->type;
    for (uint32_t i = 0; i < var->n_init; i++) {
        const its_init *init = &var->init[i];
        bool known = is_field_of(init->field, type);
        if (known && (init->kind != ITS_OPND_TOKEN || is_field_word(init->word))) continue;
        if (known)
            its_verify_error(v, &var->node, init->pos, "'%s' is no value for '%s'", init->word->text,
                             init->field->text);
        else
            its_verify_error(v, &var->node, init->pos, "a %s has no field '%s'", its_type_text(type),
                             init->field->text);
        return;
    }
}

static void check_init(its_verifier *v, const its_var *var) {
    const its_symbol *symbol = var->symbol;
    its_type type = (its_type)symbol->type;
    if (is_opaque(type)) {
        check_fields(v, var);
        return;
    }
    if (symbol->space != ITS_SPACE_GLOBAL && symbol->space != ITS_SPACE_CONST) {
        symbol_error(v, symbol, "'%s' is in %s, which can't be initialised", symbol->name->text,
                     its_space_text((its_space)symbol->space));
        return;
    }
    if (type == ITS_TYPE_F16 || type == ITS_TYPE_F16X2) {
        symbol_error(v, symbol, "a variable of type %s can't be initialised, take .b%u", its_type_text(type),
                     its_type_size(type) * 8);
        return;
    }
    for (uint32_t i = 0; i < var->n_init; i++) {
        const its_init *init = &var->init[i];
        if (init->kind == ITS_OPND_SYM && !check_init_symbol(v, var, init)) return;
        if (init_fits(symbol, init)) continue;
        its_verify_error(v, &var->node, init->pos, "'%s' is %s, this is %s", symbol->name->text, its_type_text(type),
                         init->kind == ITS_OPND_INT   ? "an integer"
                         : init->kind == ITS_OPND_SYM ? "an address: a .u32 or .u64, or with a mask a .u8"
                                                      : "a floating-point number");
        return;
    }
}

/* -- variables ----------------------------------------------------------------------------------------------------- */

/* In a function such a name hides the special register, in a module ptxas takes it for a second declaration. */
static bool check_global_name(its_verifier *v, const its_symbol *symbol) {
    const char *name = symbol->name->text;
    if (*name != '%' || its_sreg_find(name).type == ITS_TYPE_NONE) return true;
    return symbol_error(v, symbol, "'%s' is a special register, take another name", name);
}

static bool check_module_space(its_verifier *v, const its_symbol *symbol) {
    switch (symbol->space) {
    case ITS_SPACE_LOCAL:
        return symbol_error(v, symbol, "'%s' is .local and can only be declared in a function", symbol->name->text);
    case ITS_SPACE_PARAM:
        return symbol_error(v, symbol, "'%s' is .param and can only be declared in a function", symbol->name->text);
    case ITS_SPACE_TEX:
        return symbol_error(v, symbol, "'%s' is in .tex, which PTX 1.5 has done away with; take a .global .texref",
                            symbol->name->text);
    default:
        return true;
    }
}

static bool is_incomplete(const its_symbol *symbol) {
    if (symbol->flags & ITS_SYM_UNSIZED) return true;
    return symbol->flags & ITS_SYM_ARRAY && symbol->n_dims && symbol->dims[0] == 0;
}

void its_verify_var(its_verifier *v, const its_var *var) {
    const its_symbol *symbol = var->symbol;
    if (!check_type(v, symbol)) return;
    if (!v->func && !(check_global_name(v, symbol) && check_module_space(v, symbol))) return;
    if (is_opaque((its_type)symbol->type) && (v->func || symbol->space != ITS_SPACE_GLOBAL)) {
        symbol_error(v, symbol, "'%s' is a %s and must be a .global of the module", symbol->name->text,
                     its_type_text((its_type)symbol->type));
        return;
    }
    if (is_incomplete(symbol) && !(symbol->flags & ITS_SYM_EXTERN)) {
        symbol_error(v, symbol, "'%s' has no size: only .extern variables go without", symbol->name->text);
        return;
    }
    if (symbol->flags & ITS_SYM_COMMON && symbol->space != ITS_SPACE_GLOBAL) {
        symbol_error(v, symbol, "'%s' is .common and in %s, only .global variables are common", symbol->name->text,
                     its_space_text((its_space)symbol->space));
        return;
    }
    if (symbol->flags & ITS_SYM_MANAGED && symbol->space != ITS_SPACE_GLOBAL)
        symbol_error(v, symbol, "'%s' is .managed and in %s, only .global variables are managed", symbol->name->text,
                     its_space_text((its_space)symbol->space));
    if (var->has_init) check_init(v, var);
}

void its_verify_regs(its_verifier *v, const its_regs *regs) {
    its_type type = (its_type)regs->type;
    if (type == ITS_TYPE_NONE && v->version > ITS_VERIFY_NEWEST) return;
    if (type == ITS_TYPE_NONE || type == ITS_TYPE_BF16 || type == ITS_TYPE_BF16X2)
        its_verify_error(v, &regs->node, regs->node.pos, "there are no registers of type %s",
                         type == ITS_TYPE_NONE && regs->type_name ? regs->type_name->text : its_type_text(type));
    else if (is_opaque(type))
        its_verify_error(v, &regs->node, regs->node.pos, "a %s can't be in a register", its_type_text(type));
    else if (type == ITS_TYPE_PRED && regs->vec > 1)
        its_verify_error(v, &regs->node, regs->node.pos, "there are no vectors of predicates");
    else if (regs->vec > 4 || its_type_size(type) * regs->vec > LARGEST_VECTOR)
        its_verify_error(v, &regs->node, regs->node.pos,
                         "a vector of %u %s is too long, 128 bits and 4 elements are the most", regs->vec,
                         its_type_text(type));
    else
        its_verify_since_type(v, &regs->node, regs->node.pos, type);
}

/* -- parameters ---------------------------------------------------------------------------------------------------- */

static void check_param(its_verifier *v, const its_func *func, const its_symbol *param, bool last) {
    bool entry = func->symbol->flags & ITS_SYM_ENTRY;
    const char *name = param->name->text;
    if (!check_type(v, param)) return;
    if (param->space != ITS_SPACE_REG && param->vec > 1)
        symbol_error(v, param, "'%s' is a vector, a parameter can't be one; take an array", name);
    else if (entry && param->space == ITS_SPACE_REG)
        symbol_error(v, param, "'%s' is a register, an entry's parameters are .param", name);
    else if (param->flags & ITS_SYM_UNSIZED && (entry || !last))
        symbol_error(v, param, "'%s' has no size: only the last parameter of a function goes without", name);
    else if (!entry && is_opaque((its_type)param->type))
        symbol_error(v, param, "'%s' is a %s, which only an entry can be given", name,
                     its_type_text((its_type)param->type));
    else if (!entry && param->flags & ITS_SYM_PTR)
        symbol_error(v, param, "'%s' has .ptr, which is for the parameters of entries", name);
    else if (entry && param->flags & ITS_SYM_PTR && param->ptr_space == ITS_SPACE_PARAM)
        symbol_error(v, param, "'%s' can't point to .param", name);
}

static void check_entry_size(its_verifier *v, const its_func *func) {
    uint64_t total = 0;
    for (uint32_t i = 0; i < func->params.n; i++) {
        const its_symbol *param = func->params.items[i];
        uint64_t align = param->align ? param->align : its_type_size((its_type)param->type);
        if (align) total = (total + align - 1) / align * align;
        if (param->size > ENTRY_PARAM_BYTES - total % ENTRY_PARAM_BYTES || total > ENTRY_PARAM_BYTES) {
            symbol_error(v, param, "the parameters of '%s' take more than %d bytes, the most that an entry has",
                         func->symbol->name->text, ENTRY_PARAM_BYTES);
            return;
        }
        total += param->size;
    }
}

/* -- several declarations of one function -------------------------------------------------------------------------- */

static uint32_t effective_align(const its_symbol *symbol) {
    return symbol->align ? symbol->align : its_type_size((its_type)symbol->type) * symbol->vec;
}

static const char *difference(const its_symbol *a, const its_symbol *b) {
    if (a->space != b->space) return "state space";
    if (a->type != b->type || a->vec != b->vec || a->size != b->size) return "type";
    return effective_align(a) != effective_align(b) ? "alignment" : NULL;
}

/* True if both lists agree; else says where. */
static bool same_params(its_verifier *v, const its_func *func, const its_func *other, const its_params *mine,
                        const its_params *theirs, const char *what) {
    const char *name = func->symbol->name->text;
    if (mine->n != theirs->n) {
        its_verify_error(v, &func->node, func->node.pos, "'%s' has %u %s%s here and %u elsewhere", name, mine->n, what,
                         mine->n == 1 ? "" : "s", theirs->n);
        its_diag_also(v->ctx, its_node_place(&other->node), "declared here as well");
        return false;
    }
    for (uint32_t i = 0; i < mine->n; i++) {
        const char *different = difference(mine->items[i], theirs->items[i]);
        if (!different) continue;
        symbol_error(v, mine->items[i], "%s %u of '%s' has another %s elsewhere", what, i + 1, name, different);
        its_diag_also(v->ctx, its_symbol_place(theirs->items[i]), "declared here as well");
        return false;
    }
    return true;
}

static void check_redeclaration(its_verifier *v, const its_func *func) {
    const its_func *other = func->symbol->func;
    if (!other || other == func || !other->has_params || !func->has_params) return;
    if (same_params(v, func, other, &func->results, &other->results, "result"))
        same_params(v, func, other, &func->params, &other->params, "parameter");
}

void its_verify_alias(its_verifier *v, const its_alias *alias) {
    const its_symbol *symbol = alias->symbol, *aliasee = symbol->link;
    if (!aliasee) return;
    if (aliasee->flags & ITS_SYM_WEAK) {
        its_verify_error(v, &alias->node, alias->node.pos, "'%s' is .weak and can't have an alias",
                         aliasee->name->text);
        return;
    }
    const its_func *mine = symbol->func, *theirs = aliasee->func;
    if (!mine || !theirs || (mine->params.n == theirs->params.n && mine->results.n == theirs->results.n)) return;
    its_verify_error(v, &alias->node, alias->node.pos,
                     "'%s' has %u parameters and %u results, its aliasee '%s' %u and %u", symbol->name->text,
                     mine->params.n, mine->results.n, aliasee->name->text, theirs->params.n, theirs->results.n);
}

/* -- directives ---------------------------------------------------------------------------------------------------- */

typedef enum tuning {
    TUNE_NONE,
    TUNE_MAXNTID,
    TUNE_REQNTID,
    TUNE_REQNCTA,
    TUNE_BLOCKS,
    TUNE_NORETURN,
    TUNE_OTHER,
} tuning;

typedef struct tuning_row {
    const char *name;
    uint8_t kind, least, most; /* how many numbers, none of them zero */
    its_since since;
} tuning_row;

static const tuning_row tunings[] = {
    {".maxntid", TUNE_MAXNTID, 1, 3, {0}},
    {".reqntid", TUNE_REQNTID, 1, 3, {0}},
    {".reqnctapercluster", TUNE_REQNCTA, 1, 3, {.version = 78, .sm = 90}},
    {".blocksareclusters", TUNE_BLOCKS, 0, 0, {.version = 90, .sm = 90}},
    {".maxnreg", TUNE_OTHER, 1, 1, {0}},
    {".minnctapersm", TUNE_OTHER, 1, 1, {0}},
    {".maxclusterrank", TUNE_OTHER, 1, 1, {.version = 78, .sm = 90}},
    {".explicitcluster", TUNE_OTHER, 0, 0, {.version = 78, .sm = 90}},
    {".noreturn", TUNE_NORETURN, 0, 0, {.version = 64, .sm = 30}},
};

static const tuning_row *tuning_of(const its_directive *directive) {
    for (size_t i = 0; i < sizeof tunings / sizeof *tunings; i++)
        if (strcmp(directive->name->text, tunings[i].name) == 0) return &tunings[i];
    return NULL;
}

static void check_numbers(its_verifier *v, const its_directive *directive, const tuning_row *row) {
    unsigned count = (directive->node.count + 1u) / 2;
    for (uint16_t i = 0; i < directive->node.count; i++) {
        const its_operand *operand = &directive->ops[i];
        bool comma = operand->kind == ITS_OPND_TOKEN && strcmp(operand->name->text, ",") == 0;
        if (i % 2 ? comma : operand->kind == ITS_OPND_INT && operand->bits) continue;
        its_verify_error(v, &directive->node, operand->pos,
                         i % 2 ? "%s takes numbers with commas between them" : "%s takes numbers above zero",
                         row->name);
        return;
    }
    if (count >= row->least && count <= row->most) return;
    its_verify_error(v, &directive->node, directive->node.pos, "%s has %u number%s, it takes %u to %u", row->name,
                     count, count == 1 ? "" : "s", row->least, row->most);
}

static void check_conflicts(its_verifier *v, const its_directive *const *seen) {
    if (seen[TUNE_MAXNTID] && seen[TUNE_REQNTID]) {
        its_verify_error(v, &seen[TUNE_MAXNTID]->node, seen[TUNE_MAXNTID]->node.pos,
                         ".maxntid and .reqntid can't both be given");
        its_diag_also(v->ctx, its_node_place(&seen[TUNE_REQNTID]->node), ".reqntid is here");
    }
    if (seen[TUNE_BLOCKS] && !(seen[TUNE_REQNTID] && seen[TUNE_REQNCTA]))
        its_verify_error(v, &seen[TUNE_BLOCKS]->node, seen[TUNE_BLOCKS]->node.pos,
                         ".blocksareclusters needs .reqntid and .reqnctapercluster as well");
}

static void check_directives(its_verifier *v, const its_func *func) {
    const its_directive *seen[TUNE_OTHER + 1] = {0};
    bool entry = func->symbol->flags & ITS_SYM_ENTRY;
    for (const its_node *node = func->directives; node; node = node->next) {
        if (node->kind != ITS_NODE_DIRECTIVE) continue;
        const its_directive *directive = (const its_directive *)node;
        const tuning_row *row = tuning_of(directive);
        if (!row) continue;
        if (entry == (row->kind == TUNE_NORETURN)) {
            its_verify_error(v, node, node->pos, "%s is for %s only", row->name, entry ? "functions" : "entries");
            continue;
        }
        if (row->kind == TUNE_NORETURN && func->results.n) {
            its_verify_error(v, node, node->pos, "'%s' has a result and can't be .noreturn", func->symbol->name->text);
            continue;
        }
        if (its_since_error(v, node, node->pos, row->name, row->since)) check_numbers(v, directive, row);
        seen[row->kind] = directive;
    }
    check_conflicts(v, seen);
}

void its_verify_proto(its_verifier *v, const its_proto *proto) {
    for (const its_node *node = proto->directives; node; node = node->next) {
        if (node->kind != ITS_NODE_DIRECTIVE) continue;
        const tuning_row *row = tuning_of((const its_directive *)node);
        if (row && row->kind == TUNE_NORETURN && proto->results.n)
            its_verify_error(v, node, node->pos, "'%s' has a result and can't be .noreturn", proto->symbol->name->text);
    }
}

void its_verify_directive(its_verifier *v, const its_directive *directive) {
    const tuning_row *row = tuning_of(directive);
    if (row)
        its_verify_error(v, &directive->node, directive->node.pos,
                         "%s stands between the head of a function and its body", row->name);
}

/* -- functions, module --------------------------------------------------------------------------------------------- */

void its_verify_function(its_verifier *v, const its_func *func) {
    const its_symbol *symbol = func->symbol;
    bool entry = symbol->flags & ITS_SYM_ENTRY;
    check_global_name(v, symbol);
    if (entry && func->results.n)
        symbol_error(v, func->results.items[0], "'%s' is an entry and can't have results", symbol->name->text);
    if (!entry && func->results.n > 1 && func->results.items[1]->space == ITS_SPACE_PARAM)
        symbol_error(v, func->results.items[1], "'%s' has a second result, but only registers can be several",
                     symbol->name->text);
    for (uint32_t i = 0; i < func->results.n; i++) check_param(v, func, func->results.items[i], false);
    for (uint32_t i = 0; i < func->params.n; i++) check_param(v, func, func->params.items[i], i + 1 == func->params.n);
    if (entry) check_entry_size(v, func);
    if (func->has_body && symbol->flags & ITS_SYM_EXTERN)
        symbol_error(v, symbol, "'%s' is .extern and defined here as well", symbol->name->text);
    check_redeclaration(v, func);
    check_directives(v, func);
}

static void check_const_bytes(its_verifier *v) {
    uint64_t total = 0;
    for (const its_node *node = v->module->first; node; node = node->next) {
        if (node->kind != ITS_NODE_VAR) continue;
        const its_symbol *symbol = ((const its_var *)node)->symbol;
        if (symbol->space != ITS_SPACE_CONST || symbol->flags & ITS_SYM_EXTERN) continue;
        if (symbol->size > CONST_BYTES - total) {
            symbol_error(v, symbol, "the .const variables take more than %d bytes, the most that a module has",
                         CONST_BYTES);
            return;
        }
        total += symbol->size;
    }
}

void its_verify_header(its_verifier *v) {
    check_const_bytes(v);
}
