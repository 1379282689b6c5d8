/* Every kind of fault, with its whole report. */
#include "intarsia/link.h"
#include "kit.h"

#define REGISTERS ".reg .pred %p<8>; .reg .b32 %r<32>; .reg .b64 %rd<16>;\n"

static char text_of_report[8192];

/* Runs entry f, which must fault, and returns the message with `0x...` of `base` made "BASE+...". */
static const char *fault_at(kit *k, const char *body, kit_launch l, const void *base) {
    kit_load(k, body);
    its_sim_progress progress = kit_launch_run(k, l);
    assert_int_equal(progress, ITS_SIM_FAULT);
    assert_int_equal(its_sim_grid_step(k->grid, 1), ITS_SIM_FAULT);
    its_diag_clear(k->ctx);
    its_sim_fault_report(k->ctx, its_sim_grid_fault(k->grid));
    assert_int_equal(its_diag_errors(k->ctx), 1);
    const char *message = kit_message(k), *at = strstr(message, "address 0x");
    if (!base || !at) return message;
    char *end;
    uint64_t address = strtoull(at + 8, &end, 16);
    snprintf(text_of_report, sizeof(text_of_report), "%.*s address BASE%+lld%s", (int)(at - message - 1), message,
             (long long)(address - kit_address(base)), end);
    return text_of_report;
}

static const its_diag *diag(kit *k) {
    return its_diag_get(k->ctx, its_diag_count(k->ctx) - 1);
}

#define KERNEL(body)                                                 \
    ".visible .entry f(.param .u64 a, .param .u64 b)\n{\n" REGISTERS \
    "ld.param.u64 %rd0, [a]; ld.param.u64 %rd1, [b];\n" body "\nret;\n}\n"

/* Each test: the body, the launch, what the report says. */
static void expect_fault(const char *body, uint32_t threads, size_t bytes, int64_t offset, const char *message,
                         const char *hint) {
    kit k;
    kit_open(&k);
    char *block = kit_alloc(&k, bytes);
    kit_launch l = {"f", 1, threads, 0, {kit_address(block) + (uint64_t)offset, kit_address(block)}};
    assert_string_equal(fault_at(&k, body, l, block), message);
    if (hint)
        assert_string_equal(diag(&k)->hint, hint);
    else
        assert_null(diag(&k)->hint);
    assert_string_equal(diag(&k)->places[0].file, "test.ptx");
    kit_free(&k, block);
    kit_close(&k);
}

#define WHO(thread) "PE 0, kernel 'f', CTA (0, 0, 0), thread (" #thread ", 0, 0) "
#define CHECK_INDEX "check the index and the mask of the access"

static void test_out_of_bounds(void **state) {
    (void)state;
    expect_fault(
        KERNEL("mov.u32 %r0, %tid.x; mul.wide.u32 %rd2, %r0, 4; add.u64 %rd0, %rd0, %rd2;\nst.global.u32 [%rd0], %r0;"),
        32, 100, 0,
        WHO(25) "writes 4 bytes at address BASE+100, right past the end of a 100-byte allocation of device "
                "memory (and so do 6 more lanes of warp 0)",
        CHECK_INDEX);
    expect_fault(
        KERNEL("ld.global.u64 %rd3, [%rd0];"), 1, 4096, 4104,
        WHO(0) "reads 8 bytes at address BASE+4104, 8 bytes past the end of a 4096-byte allocation of device memory",
        CHECK_INDEX);
    expect_fault(
        KERNEL("ld.global.u64 %rd3, [%rd0];"), 1, 4092, 4088,
        WHO(0) "reads 8 bytes at address BASE+4088, the last 4 of them past the end of a 4092-byte allocation of "
               "device memory",
        CHECK_INDEX);
    expect_fault(KERNEL("atom.global.add.u32 %r0, [%rd0], 1;"), 1, 64, -4,
                 WHO(0) "updates 4 bytes at address BASE-4, 4 bytes before a 64-byte allocation of device memory",
                 CHECK_INDEX);
    expect_fault(KERNEL("ld.u32 %r0, [%rd0+0x1000000000];"), 1, 64, 0,
                 WHO(0) "reads 4 bytes at address BASE+68719476736, where nothing is allocated", CHECK_INDEX);
}

static void test_null(void **state) {
    (void)state;
    kit k;
    kit_open(&k);
    assert_string_equal(fault_at(&k, KERNEL("ld.global.f32 %r0, [%rd0+12];"), (kit_launch){"f", 1, 1, 0, {0}}, NULL),
                        WHO(0) "reads 4 bytes at address 0xc, a null pointer");
    assert_string_equal(diag(&k)->hint, "check the pointer that was passed to the kernel");
    kit_close(&k);
}

static void test_misaligned(void **state) {
    (void)state;
    expect_fault(KERNEL("ld.global.v4.b32 {%r0,%r1,%r2,%r3}, [%rd0];"), 1, 64, 8,
                 WHO(0) "reads 16 bytes at address BASE+8, which is no multiple of 16",
                 "an access must be aligned to its size, vectors to that of the whole vector");
    expect_fault(
        KERNEL("mov.u32 %r0, %tid.x; cvt.u64.u32 %rd2, %r0; add.u64 %rd0, %rd0, %rd2; st.global.u16 [%rd0], 1;"), 4, 64,
        0, WHO(1) "writes 2 bytes at address BASE+1, which is no multiple of 2 (and so does 1 more lane of warp 0)",
        "an access must be aligned to its size, vectors to that of the whole vector");
}

static void test_freed(void **state) {
    (void)state;
    kit k;
    kit_open(&k);
    char *block = kit_alloc(&k, 256);
    uint64_t address = kit_address(block);
    assert_true(its_sim_memory_remove(k.machine.memory, address));
    assert_string_equal(
        fault_at(&k, KERNEL("st.global.u32 [%rd0+16], 1;"), (kit_launch){"f", 1, 1, 0, {address}}, block),
        WHO(0) "writes 4 bytes at address BASE+16, 16 bytes into a 256-byte allocation of device memory "
               "that was freed");
    assert_string_equal(diag(&k)->hint, "free the memory after the kernel has finished");
    free(block);
    kit_close(&k);
}

static void test_read_only(void **state) {
    (void)state;
    kit k;
    kit_open(&k);
    fault_at(&k, ".const .align 4 .u32 table[4] = {1,2,3,4};\n" KERNEL("mov.u64 %rd3, table; st.u32 [%rd3+8], 9;"),
             (kit_launch){"f", 1, 1, 0, {0}}, NULL);
    assert_non_null(strstr(kit_message(&k), WHO(0) "writes 4 bytes at address 0x"));
    assert_non_null(
        strstr(kit_message(&k), ", which may only be read: it is in the 16-byte constant variable 'table'"));
    assert_string_equal(
        fault_at(&k, KERNEL("cvta.param.u64 %rd3, a; st.u32 [%rd3], 9;"), (kit_launch){"f", 1, 1, 0, {0}}, NULL),
        WHO(0) "writes 4 bytes at parameter address 0x100, which may only be read");
    kit_close(&k);
}

static void test_variable_bounds(void **state) {
    (void)state;
    kit k;
    kit_open(&k);
    fault_at(&k, ".global .align 4 .u32 table[4];\n" KERNEL("st.global.u32 [table+16], 9;"),
             (kit_launch){"f", 1, 1, 0, {0}}, NULL);
    assert_non_null(strstr(kit_message(&k), ", right past the end of the 16-byte global variable 'table'"));
    kit_close(&k);
}

static void test_other_spaces(void **state) {
    (void)state;
    kit k;
    kit_open(&k);
    kit_launch one = {"f", 1, 1, 0, {0}};
    assert_string_equal(
        fault_at(&k, ".shared .align 4 .b8 s[64];\n" KERNEL("mov.u32 %r0, s; st.shared.u32 [%r0+64], 9;"), one, NULL),
        WHO(0) "writes 4 bytes at shared address 0x440, outside of the CTA's 64 bytes of shared memory, "
               "0x400 to 0x440");
    assert_string_equal(fault_at(&k, KERNEL("ld.shared.u32 %r1, [1024];"), one, NULL),
                        WHO(0) "reads 4 bytes at shared address 0x400, but the kernel has no shared memory");
    one.shared = 128;
    assert_string_equal(fault_at(&k,
                                 ".extern .shared .align 16 .b8 d[];\n" KERNEL(
                                     "mov.u64 %rd2, d; cvta.shared.u64 %rd2, %rd2; ld.v2.u64 {%rd3,%rd4}, [%rd2+128];"),
                                 one, NULL),
                        WHO(0) "reads 16 bytes at shared address 0x480, outside of the CTA's 128 bytes of shared "
                               "memory, 0x400 to 0x480");
    assert_string_equal(
        fault_at(&k, KERNEL(".local .align 8 .b8 l[40];\nmov.u64 %rd2, l; ld.local.u64 %rd3, [%rd2+48];"), one, NULL),
        WHO(0) "reads 8 bytes at local address 0x130, outside of the thread's local memory, 0x100 to 0x130");
    assert_string_equal(
        fault_at(&k, KERNEL("cvta.param.u64 %rd2, b; ld.u64 %rd3, [%rd2+8];"), one, NULL),
        WHO(0) "reads 8 bytes at parameter address 0x110, outside of the kernel's parameters, 0x100 to 0x110");
    kit_close(&k);
}

/* Symmetric memory of peers is checked by our own; private memory of others is told by its window. */
static void test_other_pes(void **state) {
    (void)state;
    kit k;
    kit_open(&k);
    size_t stride = 1 << 16;
    char *heaps = aligned_alloc(1 << 16, 3 * stride);
    assert_non_null(heaps);
    memset(heaps, 0, 3 * stride);
    uint64_t base = kit_address(heaps);
    its_sim_memory *memory = k.machine.memory;
    assert_int_equal(its_sim_memory_set_symmetric(memory, base, stride, 3), ITS_OK);
    assert_int_equal(its_sim_memory_add(memory, base + 512, 256, ITS_SIM_SYMMETRIC, false, NULL), ITS_OK);
    assert_int_equal(its_sim_memory_add_window(memory, (uint64_t)1 << 46, 1 << 30, "private memory", 2), ITS_OK);
    kit_load(&k, KERNEL("st.global.u32 [%rd0], 77;"));
    kit_run(&k, (kit_launch){"f", 1, 1, 0, {base + 2 * stride + 512 + 252}});
    assert_int_equal(*(uint32_t *)(void *)(heaps + 2 * stride + 512 + 252), 77);
    assert_string_equal(
        fault_at(&k, KERNEL("st.global.u32 [%rd0], 77;"), (kit_launch){"f", 1, 1, 0, {base + stride + 768}}, heaps),
        WHO(0) "writes 4 bytes at address BASE+66304, right past the end of a 256-byte allocation of "
               "symmetric memory on PE 1");
    assert_string_equal(
        fault_at(&k, KERNEL("st.global.u32 [%rd0], 77;"), (kit_launch){"f", 1, 1, 0, {((uint64_t)1 << 46) + 64}}, NULL),
        WHO(0) "writes 4 bytes at address 0x400000000040, in the private memory of PE 2");
    assert_string_equal(diag(&k)->hint,
                        "only symmetric memory can be reached from another PE: allocate it with nvshmem_malloc");
    free(heaps);
    kit_close(&k);
}

static void test_control(void **state) {
    (void)state;
    kit k;
    kit_open(&k);
    kit_launch one = {"f", 1, 32, 0, {0}};
    assert_string_equal(fault_at(&k, KERNEL("trap;"), one, NULL),
                        WHO(0) "reaches a trap (and so do 31 more lanes of warp 0)");
    assert_string_equal(
        fault_at(&k, KERNEL("mov.u32 %r0, %tid.x; T: .branchtargets A, B; brx.idx %r0, T; A: B:"), one, NULL),
        WHO(2) "branches beyond its table: index 2 of 2 targets");
    assert_string_equal(fault_at(&k, ".func g() { call g, (); ret; }\n" KERNEL("call g, ();"), one, NULL),
                        WHO(0) "runs out of stack in a call of 'g' (and so do 31 more lanes of warp 0)");
    assert_string_equal(diag(&k)->hint, "check that the recursion ends");
    assert_string_equal(
        fault_at(&k, KERNEL("P: .callprototype _ (); mov.u64 %rd2, 4096; call %rd2, (), P;"), one, NULL),
        WHO(0) "makes an indirect call that can't be: address 0x1000 is no function (and so do 31 more "
               "lanes of warp 0)");
    assert_string_equal(fault_at(&k,
                                 ".func g(.param .b32 x) { ret; }\n" KERNEL(
                                     "P: .callprototype _ (); mov.u64 %rd2, g; call %rd2, (), P;"),
                                 one, NULL),
                        WHO(0) "makes an indirect call that can't be: 'g' has other parameters than the prototype says "
                               "(and so do 31 more "
                               "lanes of warp 0)");
    kit_close(&k);
}

static void test_synchronisation(void **state) {
    (void)state;
    kit k;
    kit_open(&k);
    kit_launch one = {"f", 1, 64, 0, {0}};
    assert_string_equal(fault_at(&k, KERNEL("bar.warp.sync 0xf;"), one, NULL),
                        WHO(4) "synchronises with its warp wrongly: lane takes part but is not in the member mask "
                               "0x0000000f (and so do 27 more lanes of warp 0)");
    assert_string_equal(fault_at(&k,
                                 KERNEL("mov.u32 %r0, %tid.x; setp.lt.u32 %p1, %r0, 16; @%p1 bra A; shfl.sync.idx.b32 "
                                        "%r1, %r0, 0, 31, -1; bra E;\nA: shfl.sync.up.b32 %r1, %r0, 1, 0, -1; E:"),
                                 one, NULL),
                        WHO(16) "synchronises with its warp wrongly: the lanes of member mask 0xffffffff came to "
                                "different instructions "
                                "(and so do 15 more lanes of warp 0)");
    assert_string_equal(
        fault_at(&k, KERNEL("mov.u32 %r0, 16; bar.sync %r0;"), one, NULL),
        WHO(0) "uses a barrier wrongly: barrier 16 with 64 threads: a CTA has barriers 0 to 15 (and so do "
               "31 more lanes of warp 0)");
    assert_string_equal(
        fault_at(&k, KERNEL("mov.u32 %r0, 33; bar.sync 1, %r0;"), one, NULL),
        WHO(0) "uses a barrier wrongly: barrier 1 with 33 threads: the thread count must be a multiple of "
               "32, and not 0 (and so do 31 more lanes of warp 0)");
    assert_string_equal(fault_at(&k, KERNEL("bar.sync 1, 96;"), one, NULL),
                        WHO(0) "uses a barrier wrongly: barrier 1 with 96 threads: the CTA has fewer threads than the "
                               "barrier waits for (and so do 31 more lanes of warp 0)");
    assert_string_equal(fault_at(&k, KERNEL("bar.arrive 1, 64; bar.arrive 1, 64;"), one, NULL),
                        WHO(0) "uses a barrier wrongly: barrier 1 with 64 threads: a thread arrives again before the "
                               "barrier is complete (and so do 31 more lanes of warp 0)");
    assert_string_equal(
        fault_at(
            &k, KERNEL("mov.u32 %r0, %tid.x; setp.lt.u32 %p1, %r0, 32; @%p1 bra A; bar.sync 1, 32; A: bar.sync 1, 64;"),
            one, NULL),
        "PE 0, kernel 'f', CTA (0, 0, 0), thread (32, 0, 0) uses a barrier wrongly: barrier 1 with 32 threads: threads "
        "of "
        "the same barrier expect different counts (and so do 31 more lanes of warp 1)");
    kit_close(&k);
}

/* The place of the instruction, the source line from .loc, and the inlined-at chain that the compiler wrote. */
static void test_places(void **state) {
    (void)state;
    kit k;
    kit_open(&k);
    static const char body[] = ".visible .entry f(.param .u64 a)\n{\n.reg .b64 %rd<2>; .reg .b32 %r<2>;\n"
                               ".loc 1 10 3\n"
                               "ld.param.u64 %rd0, [a];\n"
                               ".loc 2 77 9, function_name L0, inlined_at 1 10 3\n"
                               "    ld.global.u32 %r0, [%rd0];\n"
                               "ret;\n}\n"
                               ".file 1 \"kernel.py\"\n.file 2 \"device.cu\"\n"
                               ".section .debug_str { L0: .b8 102,0 }\n";
    fault_at(&k, body, (kit_launch){"f", 1, 1, 0, {4096}}, NULL);
    const its_diag *d = diag(&k);
    assert_int_equal(d->n_places, 3);
    assert_string_equal(d->places[0].file, "test.ptx");
    assert_int_equal(d->places[0].line, 10);
    assert_string_equal(d->places[0].text, "    ld.global.u32 %r0, [%rd0];");
    assert_string_equal(d->places[1].file, "device.cu");
    assert_int_equal(d->places[1].line, 77);
    assert_int_equal(d->places[1].column, 9);
    assert_string_equal(d->places[1].label, "source line");
    assert_string_equal(d->places[2].file, "kernel.py");
    assert_int_equal(d->places[2].line, 10);
    assert_string_equal(d->places[2].label, "inlined at this source line");
    kit_close(&k);
}

/* The calls that the linker inlined, from the inside out, after the linked module and its inputs are gone. */
static void test_inlined_calls(void **state) {
    (void)state;
    static const char text[] = KIT_HEAD ".func inner(.param .b64 p)\n{\n.reg .b64 %a;\nld.param.u64 %a, [p];\n"
                                        "st.global.u32 [%a], 1;\nret;\n}\n"
                                        ".func outer(.param .b64 p)\n{\n.reg .b64 %a;\nld.param.u64 %a, [p];\n"
                                        "{ .param .b64 q; st.param.b64 [q], %a;\ncall inner, (q); }\nret;\n}\n"
                                        ".visible .entry f(.param .u64 a)\n{\n.reg .b64 %a;\nld.param.u64 %a, [a];\n"
                                        "{ .param .b64 q; st.param.b64 [q], %a;\ncall outer, (q); }\nret;\n}\n";
    kit k;
    kit_open(&k);
    its_context *linking = its_context_new(NULL); /* gone before the program, as in the Python package */
    its_module *module;
    assert_int_equal(its_ptx_parse(linking, "kernel.ptx", text, sizeof(text) - 1, &module), ITS_OK);
    its_linked *linked;
    its_link_input input = {.main = module};
    assert_int_equal(its_link(linking, &input, &linked), ITS_OK);
    assert_int_equal(its_sim_program_new(k.ctx, &k.machine, its_linked_module(linked), &k.program), ITS_OK);
    its_linked_free(linked);
    its_module_free(module);
    its_context_free(linking);
    assert_int_equal(kit_launch_run(&k, (kit_launch){"f", 1, 1, 0, {64}}), ITS_SIM_FAULT);
    its_diag_clear(k.ctx);
    its_sim_fault_report(k.ctx, its_sim_grid_fault(k.grid));
    const its_diag *d = diag(&k);
    assert_int_equal(d->n_places, 3);
    assert_string_equal(d->places[0].text, "st.global.u32 [%a], 1;");
    assert_int_equal(d->places[0].line, 8);
    assert_string_equal(d->places[1].label, "'inner' is inlined from here");
    assert_string_equal(d->places[1].text, "call inner, (q); }");
    assert_string_equal(d->places[2].label, "'outer' is inlined from here");
    assert_string_equal(d->places[2].text, "call outer, (q); }");
    kit_close(&k);
}

/* What the simulator doesn't have is told when the kernel that reaches it is looked up, with its place; never run. */
static void test_refusals(void **state) {
    (void)state;
    kit k;
    kit_open(&k);
    kit_load(
        &k,
        ".func g() { .reg .b64 %t; tex.frobnicate.v4 %t, 5; ret; }\n"
        ".extern .func nowhere();\n"
        ".visible .entry good() { ret; }\n"
        ".visible .entry bad() {\n.reg .f32 %f<4>; .reg .b32 %r<2>; call g, ();\n"
        "add.rn.wobbly.f32 %f0, %f1, %f2;\nvavrg4.u32.u32.u32 %r0, %r1, %r1, %r1;\ncall nowhere, (); mov.u32 "
        "%r0, %nonsense; mma.sp.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%f0,%f1,%f2,%f3}, {%r0,%r1}, {%r0,%r1}, "
        "{%f0,%f1,%f2,%f3}, %r0, 0; ret; }\n");
    const its_sim_entry *entry;
    assert_int_equal(its_sim_program_entry(k.ctx, k.program, "good", &entry), ITS_OK);
    assert_int_equal(its_diag_errors(k.ctx), 0);
    assert_int_equal(its_sim_program_entry(k.ctx, k.program, "bad", &entry), ITS_ERR_INPUT);
    assert_null(entry);
    assert_int_equal(its_diag_count(k.ctx), 6);
    static const char *const messages[] = {
        "the simulator doesn't have 'add' with '.wobbly'",
        "the simulator doesn't have the instruction 'vavrg4.u32.u32.u32'",
        "nobody defines 'nowhere'",
        "the simulator doesn't have the special register '%nonsense'",
        "the simulator doesn't have 'mma' with a sparse matrix ('.sp')",
        "the simulator doesn't have the instruction 'tex.frobnicate.v4'",
    };
    for (size_t i = 0; i < 6; i++) assert_string_equal(its_diag_get(k.ctx, i)->message, messages[i]);
    assert_int_equal(its_diag_get(k.ctx, 0)->places[0].line, 9);
    its_diag_clear(k.ctx);
    assert_int_equal(its_sim_program_entry(k.ctx, k.program, "goood", &entry), ITS_ERR_INPUT);
    assert_string_equal(kit_message(&k), "there is no kernel 'goood' in the module");
    assert_string_equal(diag(&k)->hint, "did you mean 'good'? The module has 'good', 'bad'");
    kit_close(&k);
}

static void test_launches(void **state) {
    (void)state;
    kit k;
    kit_open(&k);
    kit_load(&k, ".shared .b8 s[1000];\n"
                 ".visible .entry f() .maxntid 128 { .reg .b32 %r<2>; mov.u32 %r0, s; ret; }\n"
                 ".visible .entry g() .reqntid 64, 1, 1 { ret; }\n"
                 ".visible .entry h() .reqntid 8, 4, 2 { ret; }\n.visible .entry i() .maxntid 8, 4, 2 { ret; }\n");
    static const struct {
        kit_launch launch;
        const char *message;
    } cases[] = {
        {{"f", 1, 129, 0, {0}}, "kernel 'f' can't be launched: 129 threads per CTA, it allows 128"},
        {{"f", 0, 1, 0, {0}}, "kernel 'f' can't be launched: a dimension is 0"},
        {{"f", 1, 2000, 0, {0}}, "kernel 'f' can't be launched: a block dimension is more than 1024"},
        {{"f", 1, 1, 232000, {0}},
         "kernel 'f' can't be launched: 233000 bytes of shared memory per CTA, the device has 232448"},
        {{"f", 0xffffffff, 1, 0, {0}},
         "kernel 'f' can't be launched: the grid is larger than 2147483647 x 65535 x 65535"},
        {{"g", 1, 32, 0, {0}}, "kernel 'g' can't be launched: it requires blocks of 64 x 1 x 1, not 32 x 1 x 1"},
        {{"h", 1, 64, 0, {0}}, "kernel 'h' can't be launched: it requires blocks of 8 x 4 x 2, not 64 x 1 x 1"},
        {{"i", 1, 65, 0, {0}}, "kernel 'i' can't be launched: 65 threads per CTA, it allows 64"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        assert_int_equal(kit_make_grid(&k, &cases[i].launch), ITS_ERR_INPUT);
        assert_string_equal(kit_message(&k), cases[i].message);
    }
    kit_run(&k, (kit_launch){"g", 1, 64, 0, {0}});
    k.machine.max_shared = 163 << 10; /* sm_80 */
    kit_launch large = {"f", 1, 1, 170000, {0}};
    assert_int_equal(kit_make_grid(&k, &large), ITS_ERR_INPUT);
    assert_string_equal(kit_message(&k),
                        "kernel 'f' can't be launched: 171000 bytes of shared memory per CTA, the device has 166912");
    kit_close(&k);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_out_of_bounds), cmocka_unit_test(test_null),
        cmocka_unit_test(test_misaligned),    cmocka_unit_test(test_freed),
        cmocka_unit_test(test_read_only),     cmocka_unit_test(test_variable_bounds),
        cmocka_unit_test(test_other_spaces),  cmocka_unit_test(test_other_pes),
        cmocka_unit_test(test_control),       cmocka_unit_test(test_synchronisation),
        cmocka_unit_test(test_places),        cmocka_unit_test(test_inlined_calls),
        cmocka_unit_test(test_refusals),      cmocka_unit_test(test_launches),
    };
    return cmocka_run_group_tests_name("sim/faults", tests, NULL, NULL);
}
