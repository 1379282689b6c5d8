/* Modules with very many functions or calls, and calls that would grow without bound. */
#include "example.h"

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

/*
 * A function of one instruction that is nevertheless long, called very often: what is copied is bounded by what it
 * takes in memory, not by instructions alone.
 */
static void weigh(example *e, const char *head, const char *part, const char *behind, const char *tail) {
    enum { PARTS = 2000, CALLS = 10000 };
    text_out out = {0};
    put(&out, HEAD ".func f0()\n{\n%s", head);
    for (unsigned i = 0; i < PARTS; i++) put(&out, "%s%u%s", part, i, behind);
    put(&out, "%s\nret;\n}\n.visible .entry k()\n{\n", tail);
    for (unsigned i = 0; i < CALLS; i++) put(&out, "call f0;\n");
    put(&out, "ret;\n}\n");
    its_report report = link_large(e, &out);
    assert_in_range(report.calls_inlined, 100, 8000000 / PARTS);
    assert_int_equal(report.n_kept, CALLS - report.calls_inlined);
}

static void long_functions_of_few_instructions(void **state) {
    weigh(*state, "", "L", ":\n", "");
    weigh(*state, "", ".reg .b32 r", ";\n", "");
    weigh(*state, "", ".local .b32 x", ";\n", "");
    weigh(*state, ".reg .b32 %r<2000>;\nfoo 0", ", %r", "", ";");
    weigh(*state, "", "{ .reg .b32 a", "; }\n", "");
}

/* A call may copy its structure, byte by byte. Where there are too many of them, all stay. */
static void structures_weigh_as_well(void **state) {
    text_out out = {0};
    put(&out, HEAD ".func f(.param .align 1 .b8 a[4000])\n{\n.reg .b64 %%a;\nmov.b64 %%a, a;\nret;\n}\n"
                   ".visible .entry k()\n{\n.param .align 1 .b8 p[4000];\n");
    for (unsigned i = 0; i < 400; i++) put(&out, "call f, (p);\n");
    put(&out, "ret;\n}\n.visible .entry k2()\n{\n.param .align 1 .b8 p[4000];\n");
    for (unsigned i = 0; i < 1000; i++) put(&out, "call f, (p);\n");
    put(&out, "ret;\n}\n");
    its_report report = link_large(*state, &out);
    assert_int_equal(report.calls_inlined, 400);
    assert_int_equal(report.n_kept, 1000);
}

static void put_calls_of_long(text_out *out, const char *head) {
    put(out, ".func long()\n{\n.reg .b32 %%r;\n");
    for (unsigned i = 0; i < 1000; i++) put(out, "add.u32 %%r, %%r, %u;\n", i);
    put(out, "ret;\n}\n%s", head);
    for (unsigned i = 0; i < 600; i++) put(out, "call long;\n");
    put(out, "ret;\n}\n");
}

/* What is not inlined for want of room is still changed: its barriers are mapped, its prints removed. */
static void what_stays_is_changed_all_the_same(void **state) {
    example *e = *state;
    text_out main = {0}, region = {0};
    char *printed;
    put(&main, HEAD ".extern .func (.param .b32 r) vprintf(.param .b64 f, .param .b64 a);\n");
    put_calls_of_long(&main, ".visible .entry k()\n{\n");
    put(&main, ".visible .entry k2()\n.reqntid 256\n{\n.reg .b32 r;\ncall (r), vprintf, (0, 0);\n"
               "intarsia.call (_), " OTHER "::g, ();\n");
    for (unsigned i = 0; i < 600; i++) put(&main, "call long;\n");
    put(&main, "ret;\n}\n");
    put(&region, HEAD);
    put_calls_of_long(&region, ".visible .func g()\n{\nbar.sync 0;\n");
    its_module *kernel = parse(e->ctx, "main.ptx", main.data), *device = parse(e->ctx, "region.ptx", region.data);
    its_link_region regions[] = {{OTHER, device, 0, "0=2:128"}};
    its_link_input input = {.main = kernel, .regions = regions, .n_regions = 1};
    input.options = (its_link_options){.strip_prints = true, .budget = UINT32_MAX};
    if (its_link(e->ctx, &input, &e->linked) != ITS_OK) fail_msg("%s", its_diag_render(e->ctx, false));
    assert_int_equal(its_linked_report(e->linked)->calls_inlined, 600);
    assert_int_equal(its_ptx_print(its_linked_module(e->linked), &printed, NULL), ITS_OK);
    assert_non_null(strstr(printed, "call g"));
    assert_non_null(strstr(printed, "bar.sync 2, 128;"));
    assert_null(strstr(printed, "bar.sync 0"));
    assert_null(strstr(printed, "call (r), vprintf"));
    its_free(e->ctx, printed);
    its_linked_free(e->linked);
    e->linked = NULL;
    its_module_free(kernel);
    its_module_free(device);
    free(main.data);
    free(region.data);
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

/* One file of regions for a kernel that names very many units. */
static void many_units_of_one_module(void **state) {
    example *e = *state;
    enum { UNITS = 20000 };
    text_out out = {0};
    its_link_region *regions = calloc(UNITS, sizeof *regions);
    char(*names)[17] = calloc(UNITS, sizeof *names);
    put(&out, HEAD ".visible .entry k() {\n");
    for (unsigned i = 0; i < UNITS; i++) {
        snprintf(names[i], sizeof names[i], "%016x", i);
        regions[i] = (its_link_region){.unit = names[i], .module = e->other};
        put(&out, "intarsia.call (_), %s::g, ();\n", names[i]);
    }
    put(&out, "ret;\n}\n");
    its_module *module = parse(e->ctx, "units.ptx", out.data);
    its_link_input input = {.main = module, .regions = regions, .n_regions = UNITS};
    assert_int_equal(its_link(e->ctx, &input, &e->linked), ITS_OK);
    assert_int_equal(its_linked_report(e->linked)->regions_inlined, UNITS);
    its_linked_free(e->linked);
    e->linked = NULL;
    its_module_free(module);
    free(out.data);
    free(regions);
    free(names);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(two_hundred_thousand_functions),
        TEST(twenty_thousand_functions),
        TEST(a_chain_of_calls),
        TEST(doubling_calls),
        TEST(a_caller_takes_in_so_much),
        TEST(long_functions_of_few_instructions),
        TEST(structures_weigh_as_well),
        TEST(what_stays_is_changed_all_the_same),
        TEST(a_ring_of_calls),
        TEST(everybody_calls_everybody),
        TEST(a_large_switch_of_regions),
        TEST(many_units_of_one_module),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
