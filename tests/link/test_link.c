/* The linker's interface: reports, units, misuse, names. */
#include "example.h"

#include <cjson/cJSON.h>

#include "link/linker.h"

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

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(report_says_what_was_done),         TEST(report_is_json),
        TEST(every_reason_has_a_text),           TEST(units_are_listed_once),
        TEST(inlined_nodes_know_their_calls),    TEST(output_symbols_are_its_own),
        TEST(the_same_link_gives_the_same_text), TEST(misuse_is_refused),
        TEST(a_module_may_serve_twice),          TEST(names_of_four_kilobytes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
