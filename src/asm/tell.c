/* What an assembler made, for people and as JSON: numbers of now, and behind them those of before. */
#include <string.h>

#include "asm/asm.h"
#include "base/json.h"

bool its_asm_says(const its_asm_result *result, const its_asm_advice *advice) {
    for (uint32_t i = 0; i < result->n_advice; i++)
        if (strcmp(result->advice[i].code, advice->code) == 0 &&
            strcmp(result->advice[i].function, advice->function) == 0)
            return true;
    return false;
}

static const its_asm_func *func_of(const its_asm_result *result, const char *name) {
    for (uint32_t i = 0; result && i < result->n_funcs; i++)
        if (strcmp(result->funcs[i].name, name) == 0) return &result->funcs[i];
    return NULL;
}

/* -- text ---------------------------------------------------------------------------------------------------------- */

typedef struct text_job {
    its_buffer out;
    const its_asm_result *before, *result;
    char *text;
} text_job;

/* "122 registers (96 before), " */
static void put_number(its_buffer *out, uint64_t now, const uint64_t *before, const char *unit, const char *end) {
    its_buffer_printf(out, " %llu %s", (unsigned long long)now, unit);
    if (before && *before != now) its_buffer_printf(out, " (%llu before)", (unsigned long long)*before);
    its_buffer_text(out, end);
}

static void put_func(its_buffer *out, const its_asm_func *f, const its_asm_func *old) {
    uint64_t registers = old ? old->registers : 0;
    its_buffer_printf(out, "  %s %s:", f->entry ? "kernel" : "function", f->name);
    if (f->registers) put_number(out, f->registers, old ? &registers : NULL, "registers", ",");
    put_number(out, f->stack, old ? &old->stack : NULL, "bytes of stack", ",");
    put_number(out, f->spill_stores, old ? &old->spill_stores : NULL, "spilled", ",");
    put_number(out, f->shared, old ? &old->shared : NULL, "of shared memory", "\n");
}

static void put_advice(its_buffer *out, const its_asm_advice *advice, const its_asm_result *before) {
    bool old = before && its_asm_says(before, advice);
    its_buffer_printf(out, "  warning %s%s: %s\n", advice->code, old ? ", as before" : "", advice->text);
}

static its_status put_text(void *user) {
    text_job *job = user;
    const its_asm_result *r = job->result, *before = job->before;
    its_buffer_printf(&job->out, "%s %s: %zu bytes of machine code%s%s\n", r->tool, r->version, r->cubin_size,
                      r->library ? ", with " : "", r->library ? r->library : "");
    for (uint32_t i = 0; i < r->n_funcs; i++) put_func(&job->out, &r->funcs[i], func_of(before, r->funcs[i].name));
    for (uint32_t i = 0; i < r->n_advice; i++) put_advice(&job->out, &r->advice[i], before);
    for (uint32_t i = 0; before && i < before->n_advice; i++)
        if (!its_asm_says(r, &before->advice[i]))
            its_buffer_printf(&job->out, "  no more, but before: %s: %s\n", before->advice[i].code,
                              before->advice[i].text);
    job->text = its_buffer_take(&job->out, NULL);
    return ITS_OK;
}

char *its_asm_text(its_context *ctx, const its_asm_result *before, const its_asm_result *result) {
    text_job job = {.before = before, .result = result};
    its_buffer_init(&job.out, ctx);
    its_protect(ctx, put_text, &job);
    its_buffer_free(&job.out);
    return job.text;
}

/* -- JSON ---------------------------------------------------------------------------------------------------------- */

static void json_funcs(its_json *json, cJSON *root, const its_asm_result *r) {
    cJSON *array = its_json_array(json, root, "functions");
    for (uint32_t i = 0; i < r->n_funcs; i++) {
        const its_asm_func *f = &r->funcs[i];
        cJSON *object = its_json_item(json, array);
        its_json_text(json, object, "name", f->name);
        its_json_bool(json, object, "entry", f->entry);
        its_json_number(json, object, "registers", f->registers);
        its_json_number(json, object, "barriers", f->barriers);
        its_json_number(json, object, "stack_bytes", f->stack);
        its_json_number(json, object, "spill_store_bytes", f->spill_stores);
        its_json_number(json, object, "spill_load_bytes", f->spill_loads);
        its_json_number(json, object, "shared_bytes", f->shared);
    }
}

static void json_advice(its_json *json, cJSON *root, const its_asm_result *r) {
    cJSON *array = its_json_array(json, root, "warnings");
    for (uint32_t i = 0; i < r->n_advice; i++) {
        const its_asm_advice *advice = &r->advice[i];
        cJSON *object = its_json_item(json, array);
        its_json_text(json, object, "code", advice->code);
        its_json_text(json, object, "function", advice->function);
        its_json_text(json, object, "text", advice->text);
        its_json_bool(json, object, "wgmma_serialised", advice->serialised);
        its_json_bool(json, object, "setmaxnreg_ignored", advice->no_setmaxnreg);
    }
}

static void json_result(its_json *json, cJSON *root, const char *name, const its_asm_result *r) {
    if (!r) {
        its_json_null(json, root, name);
        return;
    }
    cJSON *object = its_json_object(json, root, name);
    its_json_text(json, object, "tool", r->tool);
    its_json_text(json, object, "version", r->version);
    its_json_number(json, object, "code_bytes", r->cubin_size);
    json_funcs(json, object, r);
    json_advice(json, object, r);
}

char *its_asm_json(its_context *ctx, const its_asm_result *before, const its_asm_result *result) {
    its_json json;
    cJSON *root = its_json_begin(&json, ctx);
    json_result(&json, root, "before", before);
    json_result(&json, root, "after", result);
    return its_json_end(&json);
}
