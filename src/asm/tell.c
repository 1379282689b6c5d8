/* What an assembler made, for people and as JSON: numbers of now, and behind them those of before. */
#include <cjson/cJSON.h>
#include <string.h>

#include "asm/asm.h"

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

static bool add_text(cJSON *object, const char *name, const char *text) {
    return cJSON_AddStringToObject(object, name, text) != NULL;
}

static bool add_number(cJSON *object, const char *name, uint64_t number) {
    return cJSON_AddNumberToObject(object, name, (double)number) != NULL;
}

/* A new object at the end of the array; NULL if memory ran out. */
static cJSON *add_object(cJSON *array) {
    cJSON *object = cJSON_CreateObject();
    if (object && cJSON_AddItemToArray(array, object)) return object;
    cJSON_Delete(object);
    return NULL;
}

static bool add_funcs(cJSON *root, const its_asm_result *r) {
    cJSON *array = cJSON_AddArrayToObject(root, "functions");
    for (uint32_t i = 0; array && i < r->n_funcs; i++) {
        const its_asm_func *f = &r->funcs[i];
        cJSON *object = add_object(array);
        bool ok =
            object && add_text(object, "name", f->name) && cJSON_AddBoolToObject(object, "entry", f->entry) &&
            add_number(object, "registers", f->registers) && add_number(object, "barriers", f->barriers) &&
            add_number(object, "stack_bytes", f->stack) && add_number(object, "spill_store_bytes", f->spill_stores) &&
            add_number(object, "spill_load_bytes", f->spill_loads) && add_number(object, "shared_bytes", f->shared);
        if (!ok) return false;
    }
    return array != NULL;
}

static bool add_advice(cJSON *root, const its_asm_result *r) {
    cJSON *array = cJSON_AddArrayToObject(root, "warnings");
    for (uint32_t i = 0; array && i < r->n_advice; i++) {
        const its_asm_advice *advice = &r->advice[i];
        cJSON *object = add_object(array);
        bool ok = object && add_text(object, "code", advice->code) && add_text(object, "function", advice->function) &&
                  add_text(object, "text", advice->text) &&
                  cJSON_AddBoolToObject(object, "wgmma_serialised", advice->serialised) &&
                  cJSON_AddBoolToObject(object, "setmaxnreg_ignored", advice->no_setmaxnreg);
        if (!ok) return false;
    }
    return array != NULL;
}

static bool add_result(cJSON *root, const char *name, const its_asm_result *r) {
    if (!r) return cJSON_AddNullToObject(root, name) != NULL;
    cJSON *object = cJSON_AddObjectToObject(root, name);
    return object && add_text(object, "tool", r->tool) && add_text(object, "version", r->version) &&
           add_number(object, "code_bytes", r->cubin_size) && add_funcs(object, r) && add_advice(object, r);
}

static its_status no_memory(void *user) {
    its_guard_raise(user);
}

/* cJSON has an allocator of its own; its text is copied to where its_free finds it. */
char *its_asm_json(its_context *ctx, const its_asm_result *before, const its_asm_result *result) {
    cJSON *root = cJSON_CreateObject();
    bool ok = root && add_result(root, "before", before) && add_result(root, "after", result);
    char *text = ok ? cJSON_Print(root) : NULL, *copy = text ? its_block_alloc(ctx, strlen(text) + 1) : NULL;
    if (copy) strcpy(copy, text);
    cJSON_free(text);
    cJSON_Delete(root);
    if (!copy) its_protect(ctx, no_memory, ctx);
    return copy;
}
