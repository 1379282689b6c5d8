/*
 * Memory runs out behind every allocation of parsing, linking and reporting: an error each time, and nothing is lost.
 */
#include "../heap.h"
#include "example.h"

/* Two waits, for linking with a limit. */
static const char waiting_text[] =
    HEAD ".visible .entry k(.param .u64 p)\n{\n.reg .b32 %r<6>;\n.reg .b64 %rd1;\n.reg .pred %p1;\n"
         "ld.param.u64 %rd1, [p];\nL: ld.volatile.global.u32 %r1, [%rd1];\nsetp.eq.u32 %p1, %r1, 0;\n@%p1 bra L;\n"
         "M: ld.volatile.global.u32 %r1, [%rd1];\nsetp.eq.u32 %p1, %r1, 0;\n@%p1 bra M;\nret;\n}\n";

/* Everything that linking takes, with memory for `n` allocations; false if that was not enough. */
static bool link_with(size_t n, bool limit, uint32_t leave_out) {
    test_heap heap = {.fail_at = n + 1, .stays_empty = true};
    its_allocator allocator = test_heap_allocator(&heap);
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
    assert_int_equal(heap.held, 0);
    return ok;
}

static void memory_may_run_out(bool limit, uint32_t leave_out) {
    size_t n = 0;
    while (!link_with(n, limit, leave_out)) assert_true(++n < 100000);
    assert_true(n > 10);
}

static void memory_may_run_out_anywhere(void **state) {
    (void)state;
    memory_may_run_out(false, 0);
    memory_may_run_out(true, 0);
    memory_may_run_out(false, ITS_LEAVE_OUT_ALL);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(memory_may_run_out_anywhere)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
