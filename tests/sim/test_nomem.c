/* Every allocation fails once: decoding, launching and running end with an error or a fault, and nothing is lost. */
#include "../heap.h"
#include "kit.h"

static const char text[] = KIT_HEAD
    ".extern .func (.param .b32 r) vprintf(.param .b64 f, .param .b64 a);\n"
    ".extern .func (.param .b64 r) malloc(.param .b64 n);\n"
    ".global .align 1 .b8 fmt[4] = {37, 100, 10, 0};\n"
    ".func (.param .b32 r) g(.param .b32 n)\n{ .reg .b32 %x; .reg .pred %p; .local .b8 l[256]; ld.param.u32 %x, [n];\n"
    "setp.eq.u32 %p, %x, 0; @%p bra E; sub.u32 %x, %x, 1; { .param .b32 a; .param .b32 b; st.param.b32 [a], %x; call (b), "
    "g, (a); ld.param.b32 %x, [b]; add.u32 %x, %x, 2; }\n"
    "E: st.param.b32 [r], %x; ret; }\n"
    ".global .align 8 .u64 table[2] = {generic(g), 5};\n"
    ".visible .entry f(.param .u64 out)\n{ .reg .b32 %r<8>; .reg .b64 %rd<8>; .shared .b8 s[64];\n"
    "ld.param.u64 %rd0, [out]; mov.u32 %r0, %tid.x; and.b32 %r1, %r0, 15;\n"
    "{ .param .b32 a; .param .b32 b; st.param.b32 [a], %r1; call (b), g, (a); ld.param.b32 %r2, [b]; }\n"
    "{ .param .b64 a; .param .b64 b; .param .b32 q; mov.u64 %rd1, fmt; st.param.b64 [a], %rd1; st.param.b64 [b], %rd0; call "
    "(q), vprintf, (a, b); }\n"
    "{ .param .b64 a; .param .b64 q; st.param.b64 [a], 8; call (q), malloc, (a); ld.param.b64 %rd2, [q]; }\n"
    "mul.wide.u32 %rd1, %r0, 4; add.u64 %rd1, %rd0, %rd1; st.global.u32 [%rd1], %r2; bar.sync 0; ret; }\n";

/* Runs everything; true if it came to its end. */
static bool attempt(its_context *ctx, its_sim_machine *machine, const its_module *module, uint32_t *out) {
    its_sim_program *program;
    its_sim_grid *grid = NULL;
    const its_sim_entry *entry;
    uint64_t address = kit_address(out);
    bool done = false;
    its_status status = its_sim_program_new(ctx, machine, module, &program);
    if (status == ITS_OK) status = its_sim_program_entry(ctx, program, "f", &entry);
    if (status == ITS_OK) {
        its_sim_launch launch = {.grid = {6, 1, 1}, .block = {64, 1, 1}, .params = &address};
        status = its_sim_grid_new(ctx, entry, &launch, &grid);
    }
    if (status != ITS_OK) {
        assert_int_equal(status, ITS_ERR_NOMEM);
        assert_true(its_diag_errors(ctx) > 0);
    } else {
        its_sim_progress progress;
        do progress = its_sim_grid_step(grid, 10000);
        while (progress == ITS_SIM_RAN || progress == ITS_SIM_BLOCKED);
        done = progress == ITS_SIM_DONE;
        if (!done) {
            its_sim_fault_report(ctx, its_sim_grid_fault(grid));
            assert_true(its_diag_errors(ctx) > 0);
        }
    }
    its_sim_grid_free(grid);
    its_sim_program_free(program);
    return done;
}

static void test_every_allocation(void **state) {
    (void)state;
    test_heap heap = {0};
    its_allocator allocator = test_heap_allocator(&heap);
    its_context *ctx = its_context_new(&allocator);
    its_sim_machine machine = {.memory = its_sim_memory_new(ctx, 0), .stack_size = 16384};
    its_module *module;
    assert_int_equal(its_ptx_parse(ctx, "nomem.ptx", text, sizeof(text) - 1, &module), ITS_OK);
    uint32_t *out = aligned_alloc(256, 256);
    assert_non_null(out);
    assert_int_equal(its_sim_memory_add(machine.memory, kit_address(out), 256, ITS_SIM_DEVICE, false, NULL), ITS_OK);
    assert_true(attempt(ctx, &machine, module, out)); /* names and tables of the context are there after this */
    uint64_t tries = 0;
    for (bool done = false; !done && tries < 5000; tries++) {
        its_diag_clear(ctx);
        memset(out, 0, 256);
        test_heap_fail(&heap, tries + 1);
        done = attempt(ctx, &machine, module, out);
        bool reached = heap.calls > tries;
        test_heap_fail(&heap, 0);
        if (done && reached) done = false; /* an allocation that it could do without, such as of one more place */
    }
    assert_in_range(tries, 10, 4999);
    for (uint32_t i = 0; i < 64; i++) assert_int_equal(out[i], 2 * (i & 15));
    its_module_free(module);
    its_sim_memory_free(machine.memory);
    its_context_free(ctx);
    free(out);
    assert_int_equal(heap.held, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_every_allocation)};
    return cmocka_run_group_tests_name("sim/nomem", tests, NULL, NULL);
}
