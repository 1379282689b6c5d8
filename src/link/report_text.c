/* The report for people, and as JSON. */
#include "base/buffer.h"
#include "base/json.h"
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

static void json_kept(its_json *json, cJSON *root, const its_report *report) {
    cJSON *array = its_json_array(json, root, "calls_left");
    for (uint32_t i = 0; i < report->n_kept; i++) {
        const its_report_call *call = &report->kept[i];
        cJSON *object = its_json_item(json, array);
        its_json_text(json, object, "caller", call->caller);
        its_json_text(json, object, "callee", call->callee);
        its_json_text(json, object, "reason", its_kept_reason_text(call->reason));
        its_json_text(json, object, "detail", call->detail);
        its_json_text(json, object, "file", call->file);
        its_json_number(json, object, "line", call->line);
        its_json_number(json, object, "column", call->column);
    }
}

static void json_externs(its_json *json, cJSON *root, const its_report *report) {
    cJSON *array = its_json_array(json, root, "externs");
    for (uint32_t i = 0; i < report->n_externs; i++) {
        const its_report_extern *entry = &report->externs[i];
        cJSON *object = its_json_item(json, array);
        its_json_text(json, object, "name", entry->name);
        its_json_bool(json, object, "function", entry->function);
        its_json_text(json, object, "first_user", entry->first_user);
        its_json_text(json, object, "library", entry->library);
    }
}

static void json_funcs(its_json *json, cJSON *root, const its_report *report) {
    cJSON *array = its_json_array(json, root, "functions");
    for (uint32_t i = 0; i < report->n_funcs; i++) {
        const its_report_func *func = &report->funcs[i];
        cJSON *object = its_json_item(json, array);
        its_json_text(json, object, "name", func->name);
        its_json_bool(json, object, "entry", func->entry);
        its_json_number(json, object, "instructions", func->instructions);
        its_json_number(json, object, "local_bytes", func->local_bytes);
        its_json_number(json, object, "shared_bytes", func->shared_bytes);
    }
}

char *its_report_json(its_context *ctx, const its_report *report) {
    its_json json;
    cJSON *root = its_json_begin(&json, ctx);
    its_json_number(&json, root, "regions_inlined", report->regions_inlined);
    its_json_number(&json, root, "calls_inlined", report->calls_inlined);
    json_kept(&json, root, report);
    json_externs(&json, root, report);
    json_funcs(&json, root, report);
    its_json_number(&json, root, "stripped", report->n_stripped);
    its_json_number(&json, root, "shared_bytes", report->shared_bytes);
    return its_json_end(&json);
}
