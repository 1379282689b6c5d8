/*
 * What a FlagCX installation gives against our table of what barriers are lowered to.
 *
 * Its headers against our names and values: a probe that includes them is compiled,
 *
 *     __device__ unsigned int intarsia_values[] = { FLAGCX_COOP_THREAD, ... };
 *
 * and the numbers are read from its PTX. So it is the headers that speak, whatever they define a name by.
 */
#include <string.h>

#include "base/arena.h"
#include "base/buffer.h"
#include "base/context.h"
#include "base/diag.h"
#include "intarsia/cc.h"
#include "link/lower.h"

#define VALUES "intarsia_values"

typedef struct probe {
    its_context *ctx;
    const its_flagcx_headers *headers;
    const char *arch;
    its_arena arena;
    its_buffer source;
    its_unit *unit;
    its_module *module;
} probe;

static bool matters(const probe *p, const its_barrier_choice *choice) {
    bool of_team = choice->field == ITS_BARRIER_TEAM || choice->field == ITS_BARRIER_SCOPE;
    return choice->enumerator && (p->headers->teams || !of_team);
}

static void write_source(probe *p) {
    its_buffer_text(&p->source, "extern \"C\" __device__ unsigned int " VALUES "[] = {\n");
    for (const its_barrier_choice *choice = its_barrier_choices(); choice->name; choice++)
        if (matters(p, choice)) its_buffer_printf(&p->source, "    (unsigned int)%s,\n", choice->enumerator);
    its_buffer_text(&p->source, "};\n");
    its_buffer_char(&p->source, 0);
}

static its_status compile(probe *p) {
    const its_flagcx_headers *headers = p->headers;
    size_t n = (size_t)headers->n_options + 2 * (size_t)headers->n_files;
    const char **options = ITS_NEW_ARRAY(&p->arena, const char *, n), **next = options;
    for (uint32_t i = 0; i < headers->n_options; i++) *next++ = headers->options[i];
    for (uint32_t i = 0; i < headers->n_files; i++) {
        *next++ = "-include";
        *next++ = headers->files[i];
    }
    its_cc_input input = {.path = "names-of-flagcx.cu",
                          .source = p->source.data,
                          .arch = p->arch,
                          .options = options,
                          .n_options = (uint32_t)n};
    its_status status = its_cc(p->ctx, &input, &p->unit);
    if (status == ITS_ERR_INPUT)
        its_fail(p->ctx, status, "give the headers that define them, and -I options if they include others",
                 "FlagCX's headers don't define the names that barriers need");
    if (status != ITS_OK) return status;
    return its_ptx_parse(p->ctx, "names-of-flagcx.ptx", p->unit->ptx, p->unit->ptx_size, &p->module);
}

static const its_var *find_values(const probe *p) {
    for (its_node *node = p->module->first; node; node = node->next)
        if (node->kind == ITS_NODE_VAR && strcmp(((its_var *)node)->symbol->name->text, VALUES) == 0)
            return (its_var *)node;
    return NULL;
}

/*
 * The array may be one of bytes, and elements that are zero may be left out: the bytes of number `index` are put
 * together from what there is.
 */
static uint32_t value_at(const its_var *values, uint32_t index) {
    uint32_t size = its_type_size((its_type)values->symbol->type), value = 0;
    if (size != 1 && size != sizeof value) return UINT32_MAX;
    for (uint32_t i = 0; i < values->n_init; i++) {
        uint64_t at = (uint64_t)values->init[i].index * size;
        if (at / sizeof value == index) value |= (uint32_t)values->init[i].bits << at % sizeof value * 8;
    }
    return value;
}

static its_status compare(const probe *p) {
    const its_var *values = find_values(p);
    if (!values) return its_fail(p->ctx, ITS_ERR_INPUT, NULL, "the compiler dropped the probe of FlagCX's headers");
    its_status status = ITS_OK;
    uint32_t index = 0;
    for (const its_barrier_choice *choice = its_barrier_choices(); choice->name; choice++) {
        if (!matters(p, choice)) continue;
        uint32_t value = value_at(values, index++);
        if (value != choice->value)
            status = its_fail(p->ctx, ITS_ERR_INPUT, "this version of FlagCX is one that barriers can't be lowered to",
                              "FlagCX's headers give %s the value %u, and barriers are lowered with %u",
                              choice->enumerator, value, choice->value);
    }
    return status;
}

static its_status check_body(void *user) {
    probe *p = user;
    write_source(p);
    its_status status = compile(p);
    return status == ITS_OK ? compare(p) : status;
}

its_status its_flagcx_check_headers(its_context *ctx, const its_flagcx_headers *headers, const char *arch) {
    probe p = {.ctx = ctx, .headers = headers, .arch = arch};
    its_arena_init(&p.arena, ctx);
    its_buffer_init(&p.source, ctx);
    its_status status = its_protect(ctx, check_body, &p);
    its_module_free(p.module);
    its_unit_free(p.unit);
    its_buffer_free(&p.source);
    its_arena_free(&p.arena);
    return status;
}

/* -- functions ----------------------------------------------------------------------------------------------------- */

static bool has_function(const its_unit *unit, const char *name) {
    for (uint32_t i = 0; i < unit->n_funcs; i++)
        if (strcmp(unit->funcs[i].name, name) == 0) return true;
    return false;
}

static bool has_all(const its_unit *unit, const its_barrier_provider *provider) {
    for (int kind = 0; kind < ITS_BARRIER_KINDS; kind++)
        if (!has_function(unit, provider->functions[kind])) return false;
    return true;
}

/* "(.b64, .b32)", as its_unit_signature says it; `text` has room for it. */
static void write_signature(const its_barrier_provider *provider, bool promoted, char *text) {
    *text = 0;
    for (int i = 0; i < ITS_BARRIER_ARGUMENTS && provider->arguments[i] != ITS_BARGUMENT_NONE; i++) {
        strcat(text, i ? ", " : "(");
        strcat(text, its_barrier_argument_type(provider->arguments[i], promoted));
    }
    strcat(text, ")");
}

/* Integers are bits here. */
static void forget_signs(char *signature) {
    for (char *p = signature; (p = strchr(p, '.')); p++)
        if (p[1] == 'u' || p[1] == 's') p[1] = 'b';
}

static its_status check_function(its_context *ctx, const its_unit *unit, const its_barrier_provider *provider,
                                 const char *name) {
    if (!has_function(unit, name))
        return its_fail(ctx, ITS_ERR_INPUT, "barriers need all three of arrive, wait and sync",
                        "'%s' does not define %s", unit->path, name);
    char wanted[ITS_BARRIER_ARGUMENTS * 8], promoted[ITS_BARRIER_ARGUMENTS * 8], *text;
    write_signature(provider, false, wanted);
    write_signature(provider, true, promoted);
    its_status status = its_unit_signature(ctx, unit, name, &text);
    if (status != ITS_OK) return status;
    forget_signs(text);
    if (strcmp(text, wanted) != 0 && strcmp(text, promoted) != 0)
        status =
            its_fail(ctx, ITS_ERR_INPUT, "this version of FlagCX is one that barriers can't be lowered to",
                     "%s in '%s' takes %s, and barriers are lowered to calls with %s", name, unit->path, text, wanted);
    its_free(ctx, text);
    return status;
}

its_status its_flagcx_provider(its_context *ctx, const its_unit *unit, bool teams, const char **name) {
    const its_barrier_provider *provider = its_barrier_provider_named("flagcx");
    const its_barrier_provider *with_team = its_barrier_provider_named("flagcx_team");
    if (teams || (!has_all(unit, provider) && has_all(unit, with_team))) provider = with_team;
    its_status status = ITS_OK;
    for (int kind = 0; kind < ITS_BARRIER_KINDS; kind++) {
        its_status one = check_function(ctx, unit, provider, provider->functions[kind]);
        if (one != ITS_OK) status = one;
    }
    *name = provider->name;
    return status;
}
