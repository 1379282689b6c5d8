/* The report for people, and as JSON. */
#include <cjson/cJSON.h>
#include <string.h>

#include "base/buffer.h"
#include "intarsia/link.h"

/* -- text ---------------------------------------------------------------------------------------------------------- */

static const char *plural(uint64_t n) {
    return n == 1 ? "" : "s";
}

static void put_counts(its_buffer *out, const its_report *report) {
    its_buffer_printf(out, "%u region call%s and %u call%s inlined", report->regions_inlined,
                      plural(report->regions_inlined), report->calls_inlined, plural(report->calls_inlined));
    its_buffer_printf(out, ", %u function%s and variables removed\n", report->n_stripped, plural(report->n_stripped));
}

static void put_funcs(its_buffer *out, const its_report *report) {
    for (uint32_t i = 0; i < report->n_funcs; i++) {
        const its_report_func *func = &report->funcs[i];
        its_buffer_printf(out, "%s %s: %u instruction%s", func->entry ? "entry" : "function", func->name,
                          func->instructions, plural(func->instructions));
        if (func->local_bytes) its_buffer_printf(out, ", %llu bytes of .local", (unsigned long long)func->local_bytes);
        if (func->shared_bytes)
            its_buffer_printf(out, ", %llu bytes of static .shared", (unsigned long long)func->shared_bytes);
        its_buffer_char(out, '\n');
    }
    if (report->shared_bytes)
        its_buffer_printf(out, "%llu bytes of static .shared in all\n", (unsigned long long)report->shared_bytes);
}

static void put_kept(its_buffer *out, const its_report *report) {
    if (!report->n_kept)
        its_buffer_text(out, "no call is left\n");
    else
        its_buffer_printf(out, "%u call%s left:\n", report->n_kept, report->n_kept == 1 ? " is" : "s are");
    for (uint32_t i = 0; i < report->n_kept; i++) {
        const its_report_call *call = &report->kept[i];
        its_buffer_printf(out, "  %s:%u:%u: %s calls %s: %s", call->file, call->line, call->column, call->caller,
                          *call->callee ? call->callee : "through a register", its_kept_reason_text(call->reason));
        if (*call->detail) its_buffer_printf(out, " (%s)", call->detail);
        its_buffer_char(out, '\n');
    }
}

static void put_externs(its_buffer *out, const its_report *report) {
    if (report->n_externs)
        its_buffer_printf(out, "%u extern%s left:\n", report->n_externs, report->n_externs == 1 ? " is" : "s are");
    for (uint32_t i = 0; i < report->n_externs; i++) {
        const its_report_extern *entry = &report->externs[i];
        its_buffer_printf(out, "  %s %s", entry->function ? "function" : "variable", entry->name);
        if (*entry->first_user) its_buffer_printf(out, ", used by %s", entry->first_user);
        if (entry->library) its_buffer_printf(out, ", which %s has", entry->library);
        its_buffer_char(out, '\n');
    }
}

typedef struct text_job {
    its_buffer out;
    const its_report *report;
    char *text;
} text_job;

static its_status text_body(void *user) {
    text_job *job = user;
    put_counts(&job->out, job->report);
    put_funcs(&job->out, job->report);
    put_kept(&job->out, job->report);
    put_externs(&job->out, job->report);
    job->text = its_buffer_take(&job->out, NULL);
    return ITS_OK;
}

char *its_report_text(its_context *ctx, const its_report *report) {
    text_job job = {.report = report};
    its_buffer_init(&job.out, ctx);
    its_protect(ctx, text_body, &job);
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

static bool add_kept(cJSON *root, const its_report *report) {
    cJSON *array = cJSON_AddArrayToObject(root, "calls_left");
    for (uint32_t i = 0; array && i < report->n_kept; i++) {
        const its_report_call *call = &report->kept[i];
        cJSON *object = add_object(array);
        bool ok = object && add_text(object, "caller", call->caller) && add_text(object, "callee", call->callee) &&
                  add_text(object, "reason", its_kept_reason_text(call->reason)) &&
                  add_text(object, "detail", call->detail) && add_text(object, "file", call->file) &&
                  add_number(object, "line", call->line) && add_number(object, "column", call->column);
        if (!ok) return false;
    }
    return array != NULL;
}

static bool add_externs(cJSON *root, const its_report *report) {
    cJSON *array = cJSON_AddArrayToObject(root, "externs");
    for (uint32_t i = 0; array && i < report->n_externs; i++) {
        const its_report_extern *entry = &report->externs[i];
        cJSON *object = add_object(array);
        bool ok = object && add_text(object, "name", entry->name) &&
                  cJSON_AddBoolToObject(object, "function", entry->function) &&
                  add_text(object, "first_user", entry->first_user);
        if (ok)
            ok = entry->library ? add_text(object, "library", entry->library)
                                : cJSON_AddNullToObject(object, "library") != NULL;
        if (!ok) return false;
    }
    return array != NULL;
}

static bool add_funcs(cJSON *root, const its_report *report) {
    cJSON *array = cJSON_AddArrayToObject(root, "functions");
    for (uint32_t i = 0; array && i < report->n_funcs; i++) {
        const its_report_func *func = &report->funcs[i];
        cJSON *object = add_object(array);
        bool ok = object && add_text(object, "name", func->name) &&
                  cJSON_AddBoolToObject(object, "entry", func->entry) &&
                  add_number(object, "instructions", func->instructions) &&
                  add_number(object, "local_bytes", func->local_bytes) &&
                  add_number(object, "shared_bytes", func->shared_bytes);
        if (!ok) return false;
    }
    return array != NULL;
}

static char *print_json(cJSON *root, const its_report *report) {
    bool ok = add_number(root, "regions_inlined", report->regions_inlined) &&
              add_number(root, "calls_inlined", report->calls_inlined) && add_kept(root, report) &&
              add_externs(root, report) && add_funcs(root, report) &&
              add_number(root, "stripped", report->n_stripped) &&
              add_number(root, "shared_bytes", report->shared_bytes);
    return ok ? cJSON_Print(root) : NULL;
}

static its_status no_memory(void *user) {
    its_guard_raise(user);
}

/* cJSON has an allocator of its own; its text is copied to where its_free finds it. */
char *its_report_json(its_context *ctx, const its_report *report) {
    cJSON *root = cJSON_CreateObject();
    char *text = root ? print_json(root, report) : NULL;
    size_t size = text ? strlen(text) + 1 : 0;
    char *copy = text ? its_block_alloc(ctx, size) : NULL;
    if (copy) memcpy(copy, text, size);
    cJSON_free(text);
    cJSON_Delete(root);
    if (!copy) its_protect(ctx, no_memory, ctx);
    return copy;
}
