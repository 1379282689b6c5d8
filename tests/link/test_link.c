/* The linker's interface: reports, units, misuse, memory that runs out, large inputs, and renaming as such. */
#include "common.h"

#include <cjson/cJSON.h>
#include <dirent.h>

#include "link/linker.h"

#define UNIT "5f0c2a9b71d3e846"
#define OTHER "0123456789abcdef"
#define HEAD ".version 8.0\n.target sm_80\n.address_size 64\n"

static const char main_text[] =
    HEAD ".extern .func (.param .b32 r) nvshmem_my_pe();\n"
         ".func (.param .b32 r) twice(.param .b32 a)\n{\n.reg .b32 x;\nld.param.b32 x, [a];\nadd.u32 x, x, x;\n"
         "st.param.b32 [r], x;\nret;\n}\n"
         ".visible .entry k(.param .u64 p)\n{\n.reg .b32 %r<6>;\n.reg .b64 %rd1;\nld.param.u64 %rd1, [p];\n"
         "intarsia.call (%r1), " UNIT "::f, (7);\nintarsia.call (%r2), " OTHER "::g, ();\n"
         "intarsia.call (%r3), " UNIT "::f, (%r1);\ncall (%r4), twice, (%r3);\n"
         "add.u32 %r4, %r4, %r2;\nst.global.u32 [%rd1], %r4;\nret;\n}\n";

static const char region_text[] =
    HEAD ".extern .func (.param .b32 r) nvshmem_my_pe();\n"
         ".visible .func (.param .b32 r) f(.param .b32 a)\n{\n.reg .b32 x, y;\n.local .align 4 .b8 d[8];\n"
         ".shared .b32 s[4];\nld.param.b32 x, [a];\ncall (y), nvshmem_my_pe;\nadd.u32 x, x, y;\nst.local.u32 [d], x;\n"
         "st.shared.u32 [s], x;\nld.local.u32 x, [d];\nst.param.b32 [r], x;\nret;\n}\n";

/* Two waits, for linking with a limit. */
static const char waiting_text[] =
    HEAD ".visible .entry k(.param .u64 p)\n{\n.reg .b32 %r<6>;\n.reg .b64 %rd1;\n.reg .pred %p1;\n"
         "ld.param.u64 %rd1, [p];\nL: ld.volatile.global.u32 %r1, [%rd1];\nsetp.eq.u32 %p1, %r1, 0;\n@%p1 bra L;\n"
         "M: ld.volatile.global.u32 %r1, [%rd1];\nsetp.eq.u32 %p1, %r1, 0;\n@%p1 bra M;\nret;\n}\n";

static const char other_text[] = HEAD ".visible .func g() { ret; }\n";

static its_module *parse(its_context *ctx, const char *name, const char *text) {
    its_module *module;
    if (its_ptx_parse(ctx, name, text, strlen(text), &module) == ITS_OK) return module;
    fail_msg("%s", its_diag_render(ctx, false));
    return NULL;
}

typedef struct example {
    its_context *ctx;
    its_module *main, *region, *other;
    its_link_region regions[2];
    const char *deferred[1];
    its_link_input input;
    its_linked *linked;
} example;

static int setup(void **state) {
    example *e = calloc(1, sizeof *e);
    e->ctx = its_context_new(NULL);
    e->main = parse(e->ctx, "main.ptx", main_text);
    e->region = parse(e->ctx, "region.ptx", region_text);
    e->other = parse(e->ctx, "other.ptx", other_text);
    e->regions[0] = (its_link_region){UNIT, e->region, 0, NULL};
    e->regions[1] = (its_link_region){OTHER, e->other, 0, NULL};
    e->deferred[0] = "nvshmem";
    e->input = (its_link_input){.main = e->main, .regions = e->regions, .n_regions = 2};
    e->input.options.deferred = e->deferred;
    e->input.options.n_deferred = 1;
    *state = e;
    return 0;
}

static int teardown(void **state) {
    example *e = *state;
    its_linked_free(e->linked);
    its_module_free(e->main);
    its_module_free(e->region);
    its_module_free(e->other);
    its_context_free(e->ctx);
    free(e);
    return 0;
}

/* -- reports ------------------------------------------------------------------------------------------------------- */

static void report_says_what_was_done(void **state) {
    example *e = *state;
    assert_int_equal(its_link(e->ctx, &e->input, &e->linked), ITS_OK);
    const its_report *report = its_linked_report(e->linked);
    assert_int_equal(report->regions_inlined, 3);
    assert_int_equal(report->calls_inlined, 1);
    assert_int_equal(report->n_kept, 2);
    assert_string_equal(report->kept[0].caller, "k");
    assert_string_equal(report->kept[0].callee, "nvshmem_my_pe");
    assert_int_equal(report->kept[0].reason, ITS_KEPT_EXTERN);
    assert_string_equal(report->kept[0].detail, "the NVSHMEM device library");
    assert_string_equal(report->kept[0].file, "region.ptx");
    assert_int_equal(report->kept[0].line, 11);
    assert_int_equal(report->kept[0].column, 1);
    assert_int_equal(report->n_externs, 1);
    assert_string_equal(report->externs[0].name, "nvshmem_my_pe");
    assert_true(report->externs[0].function);
    assert_string_equal(report->externs[0].first_user, "k");
    assert_string_equal(report->externs[0].library, "the NVSHMEM device library");
    assert_int_equal(report->n_funcs, 1);
    assert_string_equal(report->funcs[0].name, "k");
    assert_true(report->funcs[0].entry);
    assert_int_equal(report->funcs[0].local_bytes, 16);
    assert_int_equal(report->funcs[0].shared_bytes, 16);
    assert_int_equal(report->shared_bytes, 16);
    assert_int_equal(report->n_stripped, 3);
}

static void report_is_json(void **state) {
    example *e = *state;
    assert_int_equal(its_link(e->ctx, &e->input, &e->linked), ITS_OK);
    char *text = its_report_json(e->ctx, its_linked_report(e->linked));
    assert_non_null(text);
    cJSON *root = cJSON_Parse(text);
    assert_non_null(root);
    assert_int_equal(cJSON_GetObjectItem(root, "regions_inlined")->valueint, 3);
    const cJSON *left = cJSON_GetArrayItem(cJSON_GetObjectItem(root, "calls_left"), 0);
    assert_string_equal(cJSON_GetObjectItem(left, "callee")->valuestring, "nvshmem_my_pe");
    assert_string_equal(cJSON_GetObjectItem(left, "reason")->valuestring, "not defined here");
    assert_int_equal(cJSON_GetObjectItem(left, "line")->valueint, 11);
    const cJSON *entry = cJSON_GetArrayItem(cJSON_GetObjectItem(root, "externs"), 0);
    assert_string_equal(cJSON_GetObjectItem(entry, "library")->valuestring, "the NVSHMEM device library");
    const cJSON *func = cJSON_GetArrayItem(cJSON_GetObjectItem(root, "functions"), 0);
    assert_int_equal(cJSON_GetObjectItem(func, "local_bytes")->valueint, 16);
    cJSON_Delete(root);
    its_free(e->ctx, text);
}

static void every_reason_has_a_text(void **state) {
    (void)state;
    for (int reason = ITS_KEPT_EXTERN; reason <= ITS_KEPT_CALLER; reason++)
        assert_string_not_equal(its_kept_reason_text((its_kept_reason)reason), "unknown");
    assert_string_equal(its_kept_reason_text((its_kept_reason)99), "unknown");
}

static void units_are_listed_once(void **state) {
    example *e = *state;
    const char *const *units;
    uint32_t count;
    assert_int_equal(its_link_units(e->main, &units, &count), ITS_OK);
    assert_int_equal(count, 2);
    assert_string_equal(units[0], UNIT);
    assert_string_equal(units[1], OTHER);
    assert_int_equal(its_link_units(e->other, &units, &count), ITS_OK);
    assert_int_equal(count, 0);
}

/* -- what nodes say about where they come from --------------------------------------------------------------------- */

static void inlined_nodes_know_their_calls(void **state) {
    example *e = *state;
    assert_int_equal(its_link(e->ctx, &e->input, &e->linked), ITS_OK);
    const its_func *k = its_module_find(its_linked_module(e->linked), "k")->func;
    const its_insn *found = NULL;
    for (const its_node *node = k->first; node && !found; node = node->next)
        if (node->kind == ITS_NODE_INSN && strncmp(((const its_insn *)node)->name->text, "st.shared", 9) == 0)
            found = (const its_insn *)node;
    assert_non_null(found);
    assert_ptr_equal(found->node.origin->source, e->region->source);
    assert_string_equal(found->node.origin->callee->text, "f");
    assert_ptr_equal(found->node.origin->call->node.origin->source, e->main->source);
    assert_null(found->node.origin->outer->call);
    uint32_t line, column;
    its_source_position(e->main->source, found->node.origin->call->node.pos, &line, &column);
    assert_int_equal(line, 18);
}

static void output_symbols_are_its_own(void **state) {
    example *e = *state;
    assert_int_equal(its_link(e->ctx, &e->input, &e->linked), ITS_OK);
    its_module *out = its_linked_module(e->linked);
    assert_ptr_not_equal(its_module_find(out, "k"), its_module_find(e->main, "k"));
    assert_null(its_module_find(out, "f"));
    assert_null(its_module_find(out, "twice"));
    assert_ptr_equal(its_module_find(e->region, "nvshmem_my_pe")->link, its_module_find(e->main, "nvshmem_my_pe"));
    assert_true(its_module_memory(out) > 0);
}

static void the_same_link_gives_the_same_text(void **state) {
    example *e = *state;
    char *texts[2];
    for (int i = 0; i < 2; i++) {
        assert_int_equal(its_link(e->ctx, &e->input, &e->linked), ITS_OK);
        assert_int_equal(its_ptx_print(its_linked_module(e->linked), &texts[i], NULL), ITS_OK);
        its_linked_free(e->linked);
        e->linked = NULL;
    }
    assert_string_equal(texts[0], texts[1]);
    its_free(e->ctx, texts[0]);
    its_free(e->ctx, texts[1]);
}

/* -- misuse -------------------------------------------------------------------------------------------------------- */

static void misuse_is_refused(void **state) {
    example *e = *state;
    its_link_input input = e->input;
    its_context *elsewhere = its_context_new(NULL);
    its_module *foreign = parse(elsewhere, "foreign.ptx", other_text);
    its_module *const libraries[] = {foreign, NULL};
    input.main = NULL;
    assert_int_equal(its_link(e->ctx, &input, &e->linked), ITS_ERR_USAGE);
    assert_null(e->linked);
    input = e->input;
    input.libraries = libraries;
    input.n_libraries = 1;
    assert_int_equal(its_link(e->ctx, &input, &e->linked), ITS_ERR_USAGE);
    input.n_libraries = 2;
    assert_int_equal(its_link(e->ctx, &input, &e->linked), ITS_ERR_USAGE);
    input = e->input;
    e->regions[1].module = e->main;
    assert_int_equal(its_link(e->ctx, &input, &e->linked), ITS_ERR_USAGE);
    e->regions[1].module = NULL;
    assert_int_equal(its_link(e->ctx, &input, &e->linked), ITS_ERR_USAGE);
    assert_int_equal(its_diag_errors(e->ctx), 5);
    its_module_free(foreign);
    its_context_free(elsewhere);
}

static void a_module_may_serve_twice(void **state) {
    example *e = *state;
    its_module *const libraries[] = {e->other, e->main, e->region};
    e->input.libraries = libraries;
    e->input.n_libraries = 3;
    assert_int_equal(its_link(e->ctx, &e->input, &e->linked), ITS_OK);
    its_linked_free(e->linked);
    its_link_region regions[3] = {e->regions[0], e->regions[1], {"ffffffffffffffff", e->region, 0, NULL}};
    e->input.regions = regions;
    e->input.n_regions = 3;
    assert_int_equal(its_link(e->ctx, &e->input, &e->linked), ITS_OK);
}

/* -- memory runs out ----------------------------------------------------------------------------------------------- */

typedef struct failing {
    size_t left; /* allocations that still succeed */
    size_t blocks;
} failing;

static void *failing_resize(void *user, void *block, size_t old_size, size_t new_size) {
    failing *f = user;
    (void)old_size;
    if (new_size == 0) {
        f->blocks -= block != NULL;
        free(block);
        return NULL;
    }
    if (f->left == 0) return NULL;
    f->left--;
    f->blocks += block == NULL;
    return realloc(block, new_size);
}

/* Everything that linking takes, with memory for `n` allocations; false if that was not enough. */
static bool link_with(size_t n, bool limit, uint32_t leave_out, size_t *blocks_left) {
    failing f = {n, 0};
    its_allocator allocator = {failing_resize, &f};
    its_context *ctx = its_context_new(&allocator);
    its_module *main = NULL, *region = NULL, *other = NULL;
    its_linked *linked = NULL;
    char *text = NULL, *report = NULL, *json = NULL;
    bool ok = ctx &&
              its_ptx_parse(ctx, "main", limit ? waiting_text : main_text, strlen(limit ? waiting_text : main_text),
                            &main) == ITS_OK &&
              its_ptx_parse(ctx, "region", region_text, strlen(region_text), &region) == ITS_OK &&
              its_ptx_parse(ctx, "other", other_text, strlen(other_text), &other) == ITS_OK;
    if (ok) {
        const char *deferred[] = {"nvshmem"};
        its_link_region regions[2] = {{UNIT, region, 0, NULL}, {OTHER, other, 0, NULL}};
        its_link_input input = {.main = main, .regions = regions, .n_regions = 2};
        input.options =
            (its_link_options){.deferred = deferred, .n_deferred = 1, .limit_waits = limit, .leave_out = leave_out};
        its_status status = its_link(ctx, &input, &linked);
        assert_true(status == ITS_OK || status == ITS_ERR_NOMEM);
        assert_int_equal(status == ITS_OK, linked != NULL);
        ok = status == ITS_OK && its_ptx_print(its_linked_module(linked), &text, NULL) == ITS_OK;
    }
    if (ok) {
        report = its_report_text(ctx, its_linked_report(linked));
        json = its_report_json(ctx, its_linked_report(linked));
        ok = report && json;
    }
    if (ctx) {
        its_free(ctx, text);
        its_free(ctx, report);
        its_free(ctx, json);
    }
    its_linked_free(linked);
    its_module_free(main);
    its_module_free(region);
    its_module_free(other);
    if (ctx) its_context_free(ctx);
    *blocks_left = f.blocks;
    return ok;
}

static void memory_may_run_out(bool limit, uint32_t leave_out) {
    size_t blocks, n = 0;
    while (!link_with(n, limit, leave_out, &blocks)) {
        assert_int_equal(blocks, 0);
        assert_true(++n < 100000);
    }
    assert_int_equal(blocks, 0);
    assert_true(n > 10);
}

static void memory_may_run_out_anywhere(void **state) {
    (void)state;
    memory_may_run_out(false, 0);
    memory_may_run_out(true, 0);
    memory_may_run_out(false, ITS_LEAVE_OUT_ALL);
}

/* -- names --------------------------------------------------------------------------------------------------------- */

static void names_of_four_kilobytes(void **state) {
    example *e = *state;
    static char name[4097], text[40000];
    memset(name, 'n', 4096);
    snprintf(text, sizeof text,
             HEAD
             ".func %s() { .reg .b32 %s_r; mov.u32 %s_r, 1; ret; }\n.visible .entry k() { call %s; call %s; ret; }\n",
             name, name, name, name, name);
    its_module *module = parse(e->ctx, "long.ptx", text);
    its_link_input input = {.main = module};
    assert_int_equal(its_link(e->ctx, &input, &e->linked), ITS_OK);
    char *out;
    assert_int_equal(its_ptx_print(its_linked_module(e->linked), &out, NULL), ITS_OK);
    assert_non_null(strstr(out, "n_r$i2, 1;"));
    its_free(e->ctx, out);
    its_linked_free(e->linked);
    e->linked = NULL;
    its_module_free(module);
    snprintf(text, sizeof text, HEAD ".extern .func %s();\n.visible .entry k() { call %s; ret; }\n", name, name);
    module = parse(e->ctx, "long.ptx", text);
    input.main = module;
    assert_int_equal(its_link(e->ctx, &input, &e->linked), ITS_ERR_INPUT);
    assert_non_null(strstr(its_diag_get(e->ctx, its_diag_count(e->ctx) - 1)->message, name));
    its_module_free(module);
}

/* -- large inputs -------------------------------------------------------------------------------------------------- */

typedef struct text_out {
    char *data;
    size_t size, capacity;
} text_out;

static void put(text_out *out, const char *format, ...) ITS_PRINTF(2, 3);
static void put(text_out *out, const char *format, ...) {
    va_list args;
    if (out->capacity - out->size < 1024) {
        out->capacity = out->capacity * 2 + 4096;
        out->data = realloc(out->data, out->capacity);
    }
    va_start(args, format);
    out->size += (size_t)vsnprintf(out->data + out->size, out->capacity - out->size, format, args);
    va_end(args);
}

static void put_func(text_out *out, const char *linkage, unsigned index, const int *callees, unsigned n) {
    put(out, "%s.func (.param .b32 r) f%u(.param .b32 a)\n{\n.reg .b32 %%r<4>;\nld.param.b32 %%r1, [a];\n", linkage,
        index);
    for (unsigned i = 0; i < n; i++) put(out, "call (%%r1), f%d, (%%r1);\n", callees[i]);
    put(out, "add.u32 %%r1, %%r1, 1;\nst.param.b32 [r], %%r1;\nret;\n}\n");
}

static void put_entry(text_out *out, unsigned first, unsigned n) {
    put(out, ".visible .entry k(.param .u64 p)\n{\n.reg .b32 %%r<4>;\n.reg .b64 %%rd1;\nld.param.u64 %%rd1, [p];\n");
    for (unsigned i = 0; i < n; i++) put(out, "call (%%r1), f%u, (%%r1);\n", first + i);
    put(out, "st.global.u32 [%%rd1], %%r1;\nret;\n}\n");
}

/* Links it and frees the text; the report's numbers are checked by the caller. */
static its_report link_large(example *e, text_out *out) {
    its_module *module = parse(e->ctx, "large.ptx", out->data);
    its_link_input input = {.main = module};
    if (its_link(e->ctx, &input, &e->linked) != ITS_OK) fail_msg("%s", its_diag_render(e->ctx, false));
    its_report report = *its_linked_report(e->linked);
    its_linked_free(e->linked);
    e->linked = NULL;
    its_module_free(module);
    free(out->data);
    return report;
}

static void twenty_thousand_functions(void **state) {
    text_out out = {0};
    put(&out, HEAD);
    for (unsigned i = 0; i < 20000; i++) put_func(&out, "", i, NULL, 0);
    put_entry(&out, 0, 20000);
    its_report report = link_large(*state, &out);
    assert_int_equal(report.calls_inlined, 20000);
    assert_int_equal(report.n_kept, 0);
    assert_int_equal(report.n_funcs, 1);
}

/* Ten times as many: read, verified, printed, read again and linked; a tenth of them is called, the rest goes. */
static void two_hundred_thousand_functions(void **state) {
    example *e = *state;
    text_out out = {0};
    its_module *module, *again;
    char *printed;
    put(&out, HEAD);
    for (unsigned i = 0; i < 200000; i++) put_func(&out, "", i, NULL, 0);
    put_entry(&out, 180000, 20000);
    module = parse(e->ctx, "large.ptx", out.data);
    free(out.data);
    assert_int_equal(its_ptx_verify(module), ITS_OK);
    assert_int_equal(its_ptx_print(module, &printed, NULL), ITS_OK);
    again = parse(e->ctx, "printed.ptx", printed);
    its_free(e->ctx, printed);
    its_link_input input = {.main = again};
    assert_int_equal(its_link(e->ctx, &input, &e->linked), ITS_OK);
    const its_report *report = its_linked_report(e->linked);
    assert_int_equal(report->calls_inlined, 20000);
    assert_int_equal(report->n_funcs, 1);
    assert_int_equal(report->n_stripped, 200000);
    its_linked_free(e->linked);
    e->linked = NULL;
    its_module_free(again);
    its_module_free(module);
}

static void a_chain_of_calls(void **state) {
    for (int visible = 0; visible < 2; visible++) {
        text_out out = {0};
        int length = visible ? 500 : 5000;
        put(&out, HEAD);
        for (int i = 0; i < length; i++) {
            int callee = i - 1;
            put_func(&out, visible ? ".visible " : "", (unsigned)i, &callee, i > 0);
        }
        put_entry(&out, (unsigned)length - 1, 1);
        its_report report = link_large(*state, &out);
        assert_int_equal(report.n_funcs, visible ? 501 : 1);
        if (!visible) assert_int_equal(report.n_kept, 0);
        if (!visible) assert_int_equal(report.calls_inlined, 5000);
    }
}

/* Each function calls the one before it twice: without a budget that would be 2^50 copies. */
static void doubling_calls(void **state) {
    text_out out = {0};
    put(&out, HEAD);
    for (int i = 0; i < 50; i++) {
        int callees[] = {i - 1, i - 1};
        put_func(&out, "", (unsigned)i, callees, i ? 2 : 0);
    }
    put_entry(&out, 49, 1);
    its_report report = link_large(*state, &out);
    assert_true(report.n_kept > 0);
    assert_true(report.n_funcs < 50);
}

/* A function of `size` instructions, called over and over from one place after another. */
static its_report call_often(example *e, unsigned size, unsigned calls, uint32_t budget) {
    text_out out = {0};
    put(&out, HEAD ".func (.param .b32 r) f0(.param .b32 a)\n{\n.reg .b32 %%r<4>;\nld.param.b32 %%r1, [a];\n");
    for (unsigned i = 3; i < size; i++) put(&out, "add.u32 %%r1, %%r1, %u;\n", i);
    put(&out, "st.param.b32 [r], %%r1;\nret;\n}\n.visible .entry k(.param .u64 p)\n{\n.reg .b32 %%r<4>;\n");
    for (unsigned i = 0; i < calls; i++) put(&out, "call (%%r1), f0, (%%r1);\n");
    put(&out, "ret;\n}\n");
    its_module *module = parse(e->ctx, "often.ptx", out.data);
    its_link_input input = {.main = module, .options = {.budget = budget}};
    assert_int_equal(its_link(e->ctx, &input, &e->linked), ITS_OK);
    its_report report = *its_linked_report(e->linked);
    for (uint32_t i = 0; i < report.n_kept; i++) {
        assert_int_equal(report.kept[i].reason, ITS_KEPT_CALLER);
        assert_string_equal(report.kept[i].detail, "50000 instructions were inlined into it");
    }
    its_linked_free(e->linked);
    e->linked = NULL;
    its_module_free(module);
    free(out.data);
    return report;
}

/* What is within the budget may not fill a caller without end; what is small, or always wanted, may. */
static void a_caller_takes_in_so_much(void **state) {
    its_report report = call_often(*state, 1000, 60, 0);
    assert_int_equal(report.calls_inlined, 50);
    assert_int_equal(report.n_kept, 10);
    assert_int_equal(call_often(*state, 1000, 50, 0).n_kept, 0);
    assert_int_equal(call_often(*state, 1000, 60, UINT32_MAX).n_kept, 0);
    assert_int_equal(call_often(*state, 49, 2000, 0).n_kept, 0);
}

static void a_ring_of_calls(void **state) {
    text_out out = {0};
    put(&out, HEAD);
    for (unsigned i = 0; i < 100; i++) put(&out, ".func (.param .b32 r) f%u(.param .b32 a);\n", i);
    for (int i = 0; i < 100; i++) {
        int callee = (i + 1) % 100;
        put_func(&out, "", (unsigned)i, &callee, 1);
    }
    put_entry(&out, 0, 1);
    its_report report = link_large(*state, &out);
    assert_int_equal(report.n_kept, 2); /* from the kernel, and round the ring */
    assert_int_equal(report.n_funcs, 2);
    assert_int_equal(report.calls_inlined, 99);
}

static void everybody_calls_everybody(void **state) {
    text_out out = {0};
    int callees[100];
    put(&out, HEAD);
    for (int i = 0; i < 100; i++) put(&out, ".func (.param .b32 r) f%d(.param .b32 a);\n", callees[i] = i);
    for (unsigned i = 0; i < 100; i++) put_func(&out, "", i, callees, 100);
    put_entry(&out, 0, 1);
    its_report report = link_large(*state, &out);
    assert_int_equal(report.n_kept, 10001);
    assert_int_equal(report.n_funcs, 101);
}

static void a_large_switch_of_regions(void **state) {
    example *e = *state;
    text_out out = {0};
    put(&out, HEAD ".visible .entry k() {\n.reg .b32 %%r<4>;\n");
    for (unsigned i = 0; i < 5000; i++) put(&out, "intarsia.call (%%r1), " OTHER "::g, ();\n");
    put(&out, "ret;\n}\n");
    its_module *module = parse(e->ctx, "many.ptx", out.data);
    e->input.main = module;
    assert_int_equal(its_link(e->ctx, &e->input, &e->linked), ITS_OK);
    assert_int_equal(its_linked_report(e->linked)->regions_inlined, 5000);
    its_linked_free(e->linked);
    e->linked = NULL;
    its_module_free(module);
    free(out.data);
}

/* -- renaming alone ------------------------------------------------------------------------------------------------ */

static tools found;

typedef struct section {
    uint32_t name, type;
    uint64_t flags, address, offset, size;
} section;

static uint64_t read_le(const char *at, unsigned size) {
    uint64_t value = 0;
    while (size--) value = value << 8 | (unsigned char)at[size];
    return value;
}

/* The n-th section of an ELF64 file; false behind the last. */
static bool read_section(const char *elf, uint64_t n, section *s) {
    const char *at = elf + read_le(elf + 40, 8) + n * read_le(elf + 58, 2);
    if (n >= read_le(elf + 60, 2)) return false;
    *s = (section){(uint32_t)read_le(at, 4), (uint32_t)read_le(at + 4, 4), read_le(at + 8, 8),
                   read_le(at + 16, 8),      read_le(at + 24, 8),          read_le(at + 32, 8)};
    return true;
}

/* Adds up the sections that hold code or data (.text.*, .nv.constant*, .nv.info.*), names included. */
static uint64_t digest(const char *elf, size_t *n_code) {
    section names, s;
    uint64_t sum = 14695981039346656037u;
    assert_true(read_section(elf, read_le(elf + 62, 2), &names));
    for (uint64_t i = 0; read_section(elf, i, &s); i++) {
        const char *name = elf + names.offset + s.name;
        bool code = strncmp(name, ".text.", 6) == 0;
        *n_code += code;
        if (s.type == 8 || (!code && strncmp(name, ".nv.constant", 12) != 0)) continue;
        for (const char *at = name; *at; at++) sum = (sum ^ (unsigned char)*at) * 1099511628211u;
        for (uint64_t k = 0; k < s.size; k++) sum = (sum ^ (unsigned char)elf[s.offset + k]) * 1099511628211u;
    }
    return sum;
}

/* The same machine code to the byte; debug information holds the PTX text and is left out. */
static bool same_code(its_context *ctx, const its_module *a, const its_module *b) {
    const its_module *modules[] = {a, b};
    uint64_t sums[2];
    for (int i = 0; i < 2; i++) {
        char cubin[1200], *text;
        size_t size, n_code = 0;
        assert_int_equal(its_ptx_print(modules[i], &text, &size), ITS_OK);
        bool ok = assemble(ctx, &found, text, size, a->targets[0]->text, false, cubin, sizeof cubin);
        if (!ok) fail_msg("%s", text);
        its_free(ctx, text);
        char *code = read_file(cubin, &size);
        sums[i] = digest(code, &n_code);
        assert_true(n_code > 0);
        free(code);
    }
    return sums[0] == sums[1];
}

/* Every name is another, and the machine code is the same to the byte. */
static void renaming_changes_nothing(void **state) {
    example *e = *state;
    static const char *const files[] = {"capture.ptx",      "names.ptx",       "params-struct.ptx", "statics.ptx",
                                        "recursion.ptx",    "local-depot.ptx", "indirect.ptx",      "uniform.ptx",
                                        "result-twice.ptx", "deep-braces.ptx", "builtins.ptx"};
    if (!*found.ptxas) skip();
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        char path[1024];
        its_module *module;
        its_linked *linked;
        snprintf(path, sizeof path, ITS_SOURCE_DIR "/tests/link/data/%s", files[i]);
        assert_int_equal(its_ptx_parse_file(e->ctx, path, &module), ITS_OK);
        if (its_link_renamed(e->ctx, module, &linked) != ITS_OK) fail_msg("%s", its_diag_render(e->ctx, false));
        if (!same_code(e->ctx, module, its_linked_module(linked))) fail_msg("%s: other code after renaming", files[i]);
        its_linked_free(linked);
        its_module_free(module);
    }
}

static int open_tools(void **state) {
    (void)state;
    find_tools(&found);
    return 0;
}

static int close_tools(void **state) {
    (void)state;
    remove_tools(&found);
    return 0;
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(report_says_what_was_done),
        TEST(report_is_json),
        TEST(every_reason_has_a_text),
        TEST(units_are_listed_once),
        TEST(inlined_nodes_know_their_calls),
        TEST(output_symbols_are_its_own),
        TEST(the_same_link_gives_the_same_text),
        TEST(misuse_is_refused),
        TEST(a_module_may_serve_twice),
        TEST(memory_may_run_out_anywhere),
        TEST(names_of_four_kilobytes),
        TEST(two_hundred_thousand_functions),
        TEST(twenty_thousand_functions),
        TEST(a_chain_of_calls),
        TEST(doubling_calls),
        TEST(a_caller_takes_in_so_much),
        TEST(a_ring_of_calls),
        TEST(everybody_calls_everybody),
        TEST(a_large_switch_of_regions),
        TEST(renaming_changes_nothing),
    };
    return cmocka_run_group_tests(tests, open_tools, close_tools);
}
