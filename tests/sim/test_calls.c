/* Functions, parameters in all their forms, local memory, variables, and what the CUDA run time provides. */
#include "kit.h"

#define REGISTERS \
    ".reg .pred %p<8>; .reg .b32 %r<32>; .reg .b64 %rd<16>; .reg .b16 %rs<8>; .reg .f32 %f<8>; .reg .f64 %fd<8>;\n"
#define THREAD_INDEX \
    "mov.u32 %r0, %tid.x; ld.param.u64 %rd0, [out]; mul.wide.u32 %rd1, %r0, 4; add.u64 %rd1, %rd0, %rd1;\n"

static uint32_t *run(kit *k, const char *before, const char *body, uint32_t threads) {
    uint32_t *out = kit_alloc(k, 4 * 1024);
    char text[8192];
    snprintf(text, sizeof(text), "%s.visible .entry f(.param .u64 out)\n{\n%s%s%s}\n", before, REGISTERS, THREAD_INDEX,
             body);
    kit_load(k, text);
    kit_run(k, (kit_launch){"f", 1, threads, 0, {kit_address(out)}});
    return out;
}

static void test_direct_call(void **state) {
    (void)state;
    kit k;
    kit_open(&k);
    uint32_t *out =
        run(&k,
            ".func (.param .b32 r) sum(.param .b32 a, .param .b64 b, .param .align 4 .b8 c[12])\n{\n"
            ".reg .b32 %r<8>; .reg .b64 %rd<2>;\n"
            "ld.param.u32 %r1, [a]; ld.param.u64 %rd1, [b]; ld.param.u32 %r2, [c+8]; ld.param.v2.u16 {%r5,%r6}, [c];\n"
            "cvt.u32.u64 %r3, %rd1; add.u32 %r1, %r1, %r2; add.u32 %r1, %r1, %r3; mad.lo.u32 %r1, %r6, 1000, %r1;\n"
            "st.param.u32 [r], %r1; ret;\n}\n",
            "{ .param .b32 p0; .param .b64 p1; .param .align 4 .b8 p2[12]; .param .b32 q;\n"
            "st.param.u32 [p0], %r0; st.param.u64 [p1], 500; st.param.u32 [p2+8], 20; st.param.u32 [p2], 0x70000;\n"
            "call.uni (q), sum, (p0, p1, p2);\n"
            "ld.param.u32 %r1, [q]; }\n"
            "st.global.u32 [%rd1], %r1; ret;\n",
            64);
    for (uint32_t i = 0; i < 64; i++) assert_int_equal(out[i], i + 7520);
    kit_free(&k, out);
    kit_close(&k);
}

/* Depth and result differ from lane to lane. */
static void test_recursion(void **state) {
    (void)state;
    kit k;
    kit_open(&k);
    uint32_t *out = run(&k,
                        ".func (.param .b32 r) fib(.param .b32 n)\n{\n.reg .pred %p; .reg .b32 %r<8>;\n"
                        "ld.param.u32 %r1, [n]; setp.lt.u32 %p, %r1, 2; @%p bra SMALL;\n"
                        "sub.u32 %r2, %r1, 1; { .param .b32 a; .param .b32 b; st.param.b32 [a], %r2; call (b), fib, "
                        "(a); ld.param.b32 %r3, [b]; }\n"
                        "sub.u32 %r4, %r1, 2; { .param .b32 a; .param .b32 b; st.param.b32 [a], %r4; call (b), fib, "
                        "(a); ld.param.b32 %r5, [b]; }\n"
                        "add.u32 %r3, %r3, %r5; st.param.b32 [r], %r3; ret;\n"
                        "SMALL: st.param.b32 [r], %r1; ret;\n}\n",
                        "and.b32 %r1, %r0, 15; { .param .b32 a; .param .b32 b; st.param.b32 [a], %r1; call (b), fib, "
                        "(a); ld.param.b32 %r2, [b]; }\n"
                        "st.global.u32 [%rd1], %r2; ret;\n",
                        48);
    for (uint32_t i = 0; i < 48; i++) {
        uint32_t a = 0, b = 1;
        for (uint32_t n = 0; n < (i & 15); n++) {
            uint32_t next = a + b;
            a = b;
            b = next;
        }
        assert_int_equal(out[i], a);
    }
    kit_free(&k, out);
    kit_close(&k);
}

/* Through a table of functions, each lane another one, under a predicate. */
static void test_indirect_calls(void **state) {
    (void)state;
    kit k;
    kit_open(&k);
    uint32_t *out =
        run(&k,
            ".func (.param .b32 r) twice(.param .b32 n) { .reg .b32 %x; ld.param.u32 %x, [n]; shl.b32 %x, %x, 1; "
            "st.param.b32 [r], %x; ret; }\n"
            ".func (.param .b32 r) square(.param .b32 n) { .reg .b32 %x; ld.param.u32 %x, [n]; mul.lo.u32 %x, %x, %x; "
            "st.param.b32 [r], %x; ret; }\n"
            ".global .align 8 .u64 table[3] = {twice, square, generic(twice)};\n",
            "rem.u32 %r1, %r0, 3; mul.wide.u32 %rd2, %r1, 8; mov.u64 %rd3, table; add.u64 %rd2, %rd2, %rd3;\n"
            "ld.global.u64 %rd4, [%rd2]; mov.u32 %r2, 12345; setp.ne.u32 %p1, %r0, 7;\n"
            "P: .callprototype (.param .b32 _) _ (.param .b32 _);\n"
            "{ .param .b32 a; .param .b32 b; st.param.b32 [a], %r0; @%p1 call (b), %rd4, (a), P; @%p1 ld.param.b32 "
            "%r2, [b]; }\n"
            "st.global.u32 [%rd1], %r2; ret;\n",
            32);
    for (uint32_t i = 0; i < 32; i++) assert_int_equal(out[i], i == 7 ? 12345 : i % 3 == 1 ? i * i : 2 * i);
    kit_free(&k, out);
    kit_close(&k);
}

/* The sum of n numbers behind the last parameter, as compilers write a function with an ellipsis. */
#define SUM_OF                                                                                                \
    ".func (.param .b32 r) sum(.param .b32 n, .param .align 8 .b8 %va[])\n{\n.reg .b32 %r<4>; .reg .b64 %a; " \
    ".reg .pred %p;\nld.param.u32 %r0, [n]; mov.u64 %a, %va; mov.u32 %r1, 0;\n"                               \
    "L: ld.local.u32 %r2, [%a]; add.u32 %r1, %r1, %r2; add.u64 %a, %a, 4; sub.u32 %r0, %r0, 1; "              \
    "setp.ne.u32 %p, %r0, 0; @%p bra L;\nst.param.b32 [r], %r1; ret;\n}\n"

/* Calls of one function that pass 4, 16 and, through its address, 8 bytes to it. */
static void test_varargs(void **state) {
    (void)state;
    kit k;
    kit_open(&k);
    uint32_t *out = run(
        &k, SUM_OF,
        "P: .callprototype (.param .b32 _) _ (.param .b32 _, .param .align 8 .b8 _[]);\n"
        "{ .param .b32 n; .param .align 8 .b8 va[4]; .param .b32 r; st.param.b32 [n], 1; st.param.b32 [va], %r0;\n"
        "call (r), sum, (n, va); ld.param.b32 %r1, [r]; }\n"
        "{ .param .b32 n; .param .align 8 .b8 va[16]; .param .b32 r; st.param.b32 [n], 4;\n"
        "st.param.v2.b32 [va], {%r0, 100}; st.param.v2.b32 [va+8], {2000, 30000};\ncall (r), sum, (n, va); ld.param.b32 %r2, [r]; }\n"
        "{ .param .b32 n; .param .align 8 .b8 va[8]; .param .b32 r; st.param.b32 [n], 2;\n"
        "st.param.v2.b32 [va], {%r1, 700000}; mov.u64 %rd5, sum;\ncall (r), %rd5, (n, va), P; ld.param.b32 %r3, [r]; }\n"
        "add.u32 %r2, %r2, %r3; st.global.u32 [%rd1], %r2; ret;\n",
        40);
    for (uint32_t i = 0; i < 40; i++) assert_int_equal(out[i], 2 * i + 732100);
    kit_free(&k, out);
    kit_load(&k, SUM_OF ".visible .entry f() { .reg .b32 %r; call (%r), sum, (1, %r); ret; }\n");
    const its_sim_entry *entry;
    assert_int_equal(its_sim_program_entry(k.ctx, k.program, "f", &entry), ITS_ERR_INPUT);
    assert_string_equal(kit_message(&k), "argument 2 of the call has 4 bytes, the function's has 0");
    kit_close(&k);
}

/* Old style: parameters in registers, literals as arguments. */
static void test_register_parameters(void **state) {
    (void)state;
    kit k;
    kit_open(&k);
    uint32_t *out = run(&k,
                        ".func (.reg .b32 r) scale(.reg .b32 n, .reg .b32 m, .reg .pred odd)\n"
                        "{ mul.lo.u32 r, n, m; @odd add.u32 r, r, 100000; ret; }\n",
                        "and.b32 %r1, %r0, 1; setp.ne.u32 %p1, %r1, 0; call (%r2), scale, (%r0, 3, %p1);\n"
                        "st.global.u32 [%rd1], %r2; ret;\n",
                        32);
    for (uint32_t i = 0; i < 32; i++) assert_int_equal(out[i], 3 * i + (i & 1) * 100000);
    kit_free(&k, out);
    kit_close(&k);
}

/* A number for a parameter of every size, also of one byte; with its sign, and cut off. */
static void test_integer_arguments(void **state) {
    (void)state;
    kit k;
    kit_open(&k);
    uint32_t *out = run(&k,
                        ".func (.param .b32 r) sum(.param .b8 a, .param .b16 b, .param .b32 c, .param .b64 d)\n"
                        "{ .reg .b32 %x<5>; .reg .b64 %d; ld.param.s8 %x1, [a]; ld.param.u8 %x2, [a];\n"
                        "ld.param.s16 %x3, [b]; ld.param.b32 %x4, [c]; ld.param.b64 %d, [d]; add.u32 %x1, %x1, %x2;\n"
                        "add.u32 %x1, %x1, %x3; add.u32 %x1, %x1, %x4; cvt.u32.u64 %x2, %d; add.u32 %x1, %x1, %x2;\n"
                        "st.param.b32 [r], %x1; ret; }\n",
                        "call (%r2), sum, (-5, -1000, 100000, 0x700000000); call (%r3), sum, (100, 7, 0, 50000);\n"
                        "add.u32 %r2, %r2, %r3; st.global.u32 [%rd1], %r2; ret;\n",
                        32);
    for (uint32_t i = 0; i < 32; i++) assert_int_equal(out[i], -5 + 251 - 1000 + 100000 + 200 + 7 + 50000);
    kit_free(&k, out);
    kit_close(&k);
}

/* A float among the arguments: its number where the parameter is .f32, else its bits. As ptxas does it. */
static void test_float_arguments(void **state) {
    (void)state;
    kit k;
    kit_open(&k);
    uint32_t *out = run(&k,
                        ".func (.param .b32 r) pick(.param .f32 a, .param .b64 b, .param .f64 c, .reg .b32 d)\n"
                        "{ .reg .b32 %x<5>; .reg .b64 %d<4>; ld.param.b32 %x1, [a]; ld.param.b64 %d1, [b];\n"
                        "ld.param.b64 %d2, [c]; shr.u64 %d2, %d2, 32; cvt.u32.u64 %x2, %d1; cvt.u32.u64 %x3, %d2;\n"
                        "xor.b32 %x1, %x1, %x2; xor.b32 %x1, %x1, %x3; xor.b32 %x1, %x1, d; st.param.b32 [r], %x1; "
                        "ret; }\n",
                        "call (%r2), pick, (2.5, 0f12345678, 1.5, 0d0123456789ABCDEF);\n"
                        "st.global.u32 [%rd1], %r2; ret;\n",
                        32);
    uint32_t wanted = 0x40200000 ^ 0x12345678 ^ 0x3ff80000 ^ 0x89abcdef;
    for (uint32_t i = 0; i < 32; i++) assert_int_equal(out[i], wanted);
    kit_free(&k, out);
    kit_close(&k);
}

/* Every thread has its own local memory, reached by its own and by generic addresses, also from a callee. */
static void test_local_memory(void **state) {
    (void)state;
    kit k;
    kit_open(&k);
    uint32_t *out =
        run(&k,
            ".func add_to(.param .b64 where, .param .b32 what)\n{ .reg .b64 %a; .reg .b32 %x<3>; .local .b8 own[64];\n"
            "ld.param.u64 %a, [where]; ld.param.u32 %x1, [what]; st.local.u32 [own+4], %x1; ld.u32 %x2, [%a];\n"
            "ld.local.u32 %x1, [own+4]; add.u32 %x2, %x2, %x1; st.u32 [%a], %x2; ret; }\n",
            ".local .align 8 .b8 l[128];\n"
            "mov.u64 %rd2, l; mul.wide.u32 %rd3, %r0, 4; add.u64 %rd2, %rd2, %rd3; st.local.u32 [%rd2], %r0;\n"
            "cvta.local.u64 %rd4, %rd2; { .param .b64 a; .param .b32 b; st.param.b64 [a], %rd4; st.param.b32 [b], 9; "
            "call add_to, (a, b); }\n"
            "ld.local.u32 %r3, [%rd2]; isspacep.local %p1, %rd4; @!%p1 mov.u32 %r3, 0; isspacep.global %p2, %rd4; @%p2 "
            "mov.u32 %r3, 0;\n"
            "cvta.to.local.u64 %rd5, %rd4; sub.u64 %rd5, %rd5, %rd2; cvt.u32.u64 %r4, %rd5; add.u32 %r3, %r3, %r4;\n"
            "st.global.u32 [%rd1], %r3; ret;\n",
            32);
    for (uint32_t i = 0; i < 32; i++) assert_int_equal(out[i], i + 9);
    kit_free(&k, out);
    kit_close(&k);
}

/* The address of a parameter of a function is local memory; of a kernel, parameter memory. */
static void test_parameter_addresses(void **state) {
    (void)state;
    kit k;
    kit_open(&k);
    uint32_t *out =
        run(&k,
            ".func (.param .b32 r) pick(.param .align 4 .b8 a[16], .param .b32 i)\n{ .reg .b64 %a<3>; .reg .b32 %x; \n"
            "mov.b64 %a1, a; ld.param.u32 %x, [i]; mul.wide.u32 %a2, %x, 4; add.u64 %a1, %a1, %a2; ld.local.u32 %x, "
            "[%a1]; st.param.b32 [r], %x; ret; }\n",
            "{ .param .align 4 .b8 a[16]; .param .b32 i; .param .b32 q; st.param.v4.b32 [a], {10, 20, 30, 40}; and.b32 "
            "%r1, %r0, 3; st.param.b32 [i], %r1;\n"
            "call (q), pick, (a, i); ld.param.b32 %r2, [q]; }\n"
            "mov.b64 %rd2, out; ld.param.u64 %rd3, [%rd2]; cvta.param.u64 %rd4, %rd2; ld.u64 %rd5, [%rd4]; setp.ne.u64 "
            "%p1, %rd3, %rd5; @%p1 mov.u32 %r2, 0;\n"
            "setp.ne.u64 %p1, %rd3, %rd0; @%p1 mov.u32 %r2, 0; st.global.u32 [%rd1], %r2; ret;\n",
            32);
    for (uint32_t i = 0; i < 32; i++) assert_int_equal(out[i], 10 * ((i & 3) + 1));
    kit_free(&k, out);
    kit_close(&k);
}

/*
 * A function that is given the address of a kernel's parameter reads it there, whatever its own parameters are; that of
 * its own is in no such space.
 */
static void test_kernel_parameters_in_functions(void **state) {
    (void)state;
    kit k;
    kit_open(&k);
    uint32_t *out =
        run(&k,
            ".func (.param .b32 r) read(.param .b64 a, .param .b64 b)\n{ .reg .b64 %a<9>; .reg .b32 %x<3>; .reg .pred "
            "%p<5>;\nld.param.u64 %a1, [a]; ld.param::entry.u64 %a2, [%a1]; mov.b64 %a3, b; ld.param::func.u64 %a4, "
            "[%a3]; cvta.param.u64 %a5, %a1; ld.u64 %a6, [%a5];\n"
            "isspacep.param %p1, %a5; cvta.local.u64 %a3, %a3; isspacep.param %p2, %a3; isspacep.local %p3, %a3;\n"
            "setp.eq.u64 %p4, %a2, %a4; selp.b32 %x1, 1, 0, %p4; setp.eq.and.u64 %p4, %a4, %a6, %p1; @%p4 or.b32 %x1, "
            "%x1, 2; @!%p2 or.b32 %x1, %x1, 4; @%p3 or.b32 %x1, %x1, 8; st.param.b32 [r], %x1; ret; }\n",
            "mov.b64 %rd2, out; call (%r2), read, (%rd2, %rd0); st.global.u32 [%rd1], %r2; ret;\n", 32);
    for (uint32_t i = 0; i < 32; i++) assert_int_equal(out[i], 15);
    kit_free(&k, out);
    kit_close(&k);
}

static void test_kernel_parameters(void **state) {
    (void)state;
    kit k;
    kit_open(&k);
    kit_load(&k, ".visible .entry f(.param .u8 a, .param .f32 b, .param .u16 c, .param .align 16 .b8 d[20], .param .s8 "
                 "e, .param .u64 out)\n"
                 "{\n" REGISTERS "ld.param.u64 %rd0, [out]; ld.param.u8 %r1, [a]; ld.param.s8 %r2, [e]; ld.param.u16 "
                 "%rs1, [c]; cvt.u32.u16 %r3, %rs1;\n"
                 "ld.param.v2.b32 {%r4, %r5}, [d+8]; ld.param.b32 %r6, [b];\n"
                 "st.global.v4.b32 [%rd0], {%r1, %r2, %r3, %r4}; st.global.v2.b32 [%rd0+16], {%r5, %r6}; ret;\n}\n");
    const its_sim_entry *entry;
    assert_int_equal(its_sim_program_entry(k.ctx, k.program, "f", &entry), ITS_OK);
    assert_int_equal(entry->n_params, 6);
    static const uint32_t offsets[] = {0, 4, 8, 16, 36, 40}, sizes[] = {1, 4, 2, 20, 1, 8};
    for (uint32_t i = 0; i < 6; i++) {
        assert_int_equal(entry->params[i].offset, offsets[i]);
        assert_int_equal(entry->params[i].size, sizes[i]);
    }
    uint32_t *out = kit_alloc(&k, 32);
    unsigned char block[48] = {0};
    block[0] = 200;
    memcpy(block + 4, &(float){2.5f}, 4);
    memcpy(block + 8, &(uint16_t){50000}, 2);
    memcpy(block + 24, (uint32_t[]){11, 22}, 8);
    block[36] = 0xfe;
    memcpy(block + 40, &out, 8);
    its_sim_launch launch = {.grid = {1, 1, 1}, .block = {1, 1, 1}, .params = block};
    assert_int_equal(its_sim_grid_new(k.ctx, entry, &launch, &k.grid), ITS_OK);
    assert_int_equal(kit_finish(&k, 1000, 1), ITS_SIM_DONE);
    static const uint32_t expected[] = {200, 0xfffffffe, 50000, 11, 22, 0x40200000};
    assert_memory_equal(out, expected, sizeof(expected));
    kit_free(&k, out);
    kit_close(&k);
}

/* Initialisers of all kinds, and addresses in them. */
static void test_variables(void **state) {
    (void)state;
    kit k;
    kit_open(&k);
    kit_load(&k, ".global .align 4 .u32 a[4] = {1, 2, 3};\n"
                 ".global .align 8 .u64 pointers[2] = {a+8, generic(a)};\n"
                 ".global .align 1 .b8 bytes[9] = {0xff(a), 0xff00(a), 0xff0000(a), 0xff000000(a), 0xff00000000(a), "
                 "0xff0000000000(a), 0xff000000000000(a), 0xff00000000000000(a), 7};\n"
                 ".const .align 4 .f32 c[2] = {1.5, 0f40000000};\n"
                 ".global .f64 d = 0.25;\n.global .s8 neg = -3;\n"
                 ".visible .entry f(.param .u64 out)\n{\n" REGISTERS
                 "ld.param.u64 %rd0, [out]; ld.global.u64 %rd1, [pointers]; ld.global.u32 %r1, [%rd1]; ld.global.u64 "
                 "%rd2, [pointers+8]; ld.u32 %r2, [%rd2+4];\n"
                 "ld.const.f32 %f1, [c+4]; cvt.rzi.u32.f32 %r3, %f1; ld.global.f64 %fd1, [d]; mul.f64 %fd1, %fd1, "
                 "0d4030000000000000; cvt.rzi.u32.f64 %r4, %fd1;\n"
                 "ld.global.s8 %r5, [neg]; st.global.v4.u32 [%rd0], {%r1, %r2, %r3, %r4}; mov.u64 %rd3, c; "
                 "isspacep.const %p1, %rd3; @%p1 add.s32 %r5, %r5, 100; isspacep.global %p2, %rd3; @%p2 add.s32 %r5, "
                 "%r5, 1000; st.global.u32 [%rd0+16], %r5;\n"
                 "red.global.add.u32 [a+12], 5; ret;\n}\n");
    uint64_t address, bytes;
    size_t size;
    assert_true(its_sim_program_variable(k.program, "a", &address, &size));
    assert_int_equal(size, 16);
    assert_int_equal(address % 4, 0);
    uint32_t *a = (uint32_t *)(uintptr_t)address;
    assert_int_equal(a[3], 0);
    uint32_t *out = kit_alloc(&k, 32);
    kit_run(&k, (kit_launch){"f", 2, 32, 0, {kit_address(out)}});
    static const uint32_t expected[] = {3, 2, 2, 4, 97};
    assert_memory_equal(out, expected, sizeof(expected));
    assert_int_equal(a[3], 5 * 64);
    assert_true(its_sim_program_variable(k.program, "bytes", &bytes, NULL));
    uint64_t spelled;
    memcpy(&spelled, (void *)(uintptr_t)bytes, 8);
    assert_int_equal(spelled, address);
    assert_false(its_sim_program_variable(k.program, "b", &address, NULL));
    size_t entries = its_sim_memory_count(k.machine.memory);
    kit_free(&k, out);
    kit_unload(&k);
    assert_int_equal(its_sim_memory_count(k.machine.memory), entries - 1 - 6);
    kit_close(&k);
}

/* Two kernels with static shared memory of their own, and dynamic shared memory behind it. */
static void test_shared_layout(void **state) {
    (void)state;
    kit k;
    kit_open(&k);
    kit_load(
        &k,
        ".shared .align 4 .b8 one[100];\n.shared .align 8 .b8 two[200];\n.extern .shared .align 128 .b8 more[];\n"
        ".visible .entry f(.param .u64 out)\n{\n" REGISTERS
        "ld.param.u64 %rd0, [out]; mov.u32 %r0, two; mov.u32 %r1, more; mov.u32 %r2, %dynamic_smem_size; mov.u32 %r3, "
        "%total_smem_size;\n"
        "st.shared.u32 [%r0+196], 5; st.shared.u32 [%r1+60], 6; st.global.v4.u32 [%rd0], {%r0,%r1,%r2,%r3}; ret;\n}\n"
        ".visible .entry g() { .reg .b32 %r; mov.u32 %r, one; ret; }\n");
    const its_sim_entry *f, *g;
    assert_int_equal(its_sim_program_entry(k.ctx, k.program, "f", &f), ITS_OK);
    assert_int_equal(its_sim_program_entry(k.ctx, k.program, "g", &g), ITS_OK);
    assert_int_equal(f->shared, 200);
    assert_int_equal(g->shared, 100);
    uint32_t *out = kit_alloc(&k, 16);
    kit_run(&k, (kit_launch){"f", 1, 1, 64, {kit_address(out)}});
    assert_int_equal(out[0] % 8, 0);
    assert_int_equal(out[1] % 128, 0);
    assert_true(out[1] >= out[0] + 200);
    assert_int_equal(out[2], 64);
    kit_free(&k, out);
    kit_close(&k);
}

/* Nobody has written shared memory when a CTA begins, also if another one had it before; CUDA's own part is zero. */
static void test_fresh_shared(void **state) {
    (void)state;
    kit k;
    kit_open(&k);
    kit_load(&k, ".extern .shared .align 16 .b8 more[];\n.shared .b32 one[32];\n"
                 ".visible .entry f(.param .u64 out)\n{\n" REGISTERS
                 "ld.param.u64 %rd0, [out]; mov.u32 %r0, %tid.x; mov.u32 %r1, %ctaid.x; mad.lo.u32 %r2, %r1, 32, %r0;\n"
                 "mul.wide.u32 %rd1, %r2, 8; add.u64 %rd0, %rd0, %rd1; mov.u32 %r3, one; mov.u32 %r4, more;\n"
                 "shl.b32 %r5, %r0, 2; add.u32 %r3, %r3, %r5; add.u32 %r4, %r4, %r5;\n"
                 "ld.shared.u32 %r6, [%r3]; ld.shared.u32 %r7, [%r4]; mov.u32 %r8, %reserved_smem_offset_1;\n"
                 "ld.shared.u32 %r9, [%r8]; add.u32 %r7, %r7, %r9;\n"
                 "st.shared.u32 [%r3], 5; st.shared.u32 [%r4], 6; st.global.v2.u32 [%rd0], {%r6, %r7}; ret;\n}\n");
    uint32_t *out = kit_alloc(&k, 300 * 32 * 8), fresh = ITS_SIM_FRESH * 0x10001u;
    kit_run(&k, (kit_launch){"f", 300, 32, 128, {kit_address(out)}});
    for (uint32_t i = 0; i < 300 * 64; i++) assert_int_equal(out[i], fresh);
    kit_free(&k, out);
    kit_close(&k);
}

#define PRINTF ".extern .func (.param .b32 r) vprintf(.param .b64 f, .param .b64 a);\n"
#define CALL_PRINTF                                                                                                 \
    "{ .param .b64 a; .param .b64 b; .param .b32 q; st.param.b64 [a], %rd2; st.param.b64 [b], %rd3; call.uni (q), " \
    "vprintf, (a, b); ld.param.b32 %r5, [q]; }\n"

static void test_printf(void **state) {
    (void)state;
    kit k;
    kit_open(&k);
    char text[4096];
    static const char format[] = "t %d|%5u|%-6s|%.3f|%lld|%x|%c|%%|%p|%s|%*d|\n";
    int at = snprintf(text, sizeof(text), PRINTF ".global .align 1 .b8 fmt[%zu] = {", sizeof(format));
    for (size_t i = 0; i < sizeof(format); i++)
        at += snprintf(text + at, sizeof(text) - (size_t)at, "%s%d", i ? "," : "", format[i]);
    snprintf(text + at, sizeof(text) - (size_t)at, "};\n.global .align 1 .b8 word[4] = {97,98,99,0};\n");
    uint32_t *out = run(&k, text,
                        ".local .align 8 .b8 args[80];\n"
                        "setp.ge.u32 %p1, %r0, 2; @%p1 ret; mov.u64 %rd2, fmt; cvta.global.u64 %rd2, %rd2; mov.u64 "
                        "%rd4, args; cvta.local.u64 %rd3, %rd4; mov.u64 %rd5, word;\n"
                        "sub.s32 %r1, %r0, 1; st.local.u32 [%rd4], %r1; st.local.u32 [%rd4+4], 42; st.local.u64 "
                        "[%rd4+8], %rd5; mov.f64 %fd1, 0d400921fb54442d18; st.local.f64 [%rd4+16], %fd1;\n"
                        "st.local.u64 [%rd4+24], -5000000000; st.local.u32 [%rd4+32], 255; st.local.u32 [%rd4+36], 65; "
                        "st.local.u64 [%rd4+40], 4096; st.local.u64 [%rd4+48], %rd5; st.local.u32 [%rd4+56], 4; "
                        "st.local.u32 [%rd4+60], 7;\n" CALL_PRINTF "st.global.u32 [%rd1], %r5; ret;\n",
                        32);
    assert_string_equal(k.printed, "t -1|   42|abc   |3.142|-5000000000|ff|A|%|0x1000|abc|   7|\n"
                                   "t 0|   42|abc   |3.142|-5000000000|ff|A|%|0x1000|abc|   7|\n");
    assert_int_equal(out[0], 10);
    kit_free(&k, out);
    kit_close(&k);
}

/* %h and %hh take the lowest bits of their argument, as in C. */
static void test_printf_sizes(void **state) {
    (void)state;
    kit k;
    kit_open(&k);
    char text[4096];
    static const char format[] = "%hd %hu %hx %hhd %hhu %hhx %hhX";
    int at = snprintf(text, sizeof(text), PRINTF ".global .align 1 .b8 fmt[%zu] = {", sizeof(format));
    for (size_t i = 0; i < sizeof(format); i++)
        at += snprintf(text + at, sizeof(text) - (size_t)at, "%s%d", i ? "," : "", format[i]);
    snprintf(text + at, sizeof(text) - (size_t)at, "};\n");
    static const int numbers[7] = {100000, -2, -2, 300, 511, -1, 0xABCD};
    char body[1024], want[64];
    at = snprintf(
        body, sizeof(body),
        ".local .align 8 .b8 args[32];\nmov.u64 %%rd2, fmt; cvta.global.u64 %%rd2, %%rd2; mov.u64 %%rd4, args; "
        "cvta.local.u64 %%rd3, %%rd4;\n");
    for (int i = 0; i < 7; i++)
        at += snprintf(body + at, sizeof(body) - (size_t)at, "st.local.u32 [%%rd4+%d], %d; ", 4 * i, numbers[i]);
    snprintf(body + at, sizeof(body) - (size_t)at, "%s ret;\n", CALL_PRINTF);
    kit_free(&k, run(&k, text, body, 1));
    snprintf(want, sizeof(want), "%hd %hu %hx %hhd %hhu %hhx %hhX", (short)numbers[0], (unsigned short)numbers[1],
             (unsigned short)numbers[2], (signed char)numbers[3], (unsigned char)numbers[4], (unsigned char)numbers[5],
             (unsigned char)numbers[6]);
    assert_string_equal(k.printed, want);
    kit_close(&k);
}

static void test_assert(void **state) {
    (void)state;
    kit k;
    kit_open(&k);
    kit_load(
        &k,
        ".extern .func __assertfail(.param .b64 m, .param .b64 f, .param .b32 l, .param .b64 n, .param .b64 s);\n"
        ".global .b8 m[6] = {120,32,62,32,48,0};\n.global .b8 f[5] = {97,46,99,117,0};\n.global .b8 n[3] = "
        "{103,111,0};\n"
        ".visible .entry f1()\n{\n" REGISTERS
        "mov.u32 %r0, %tid.x; setp.ne.u32 %p1, %r0, 3; @%p1 ret; mov.u64 %rd1, m; mov.u64 %rd2, f; mov.u64 %rd3, n;\n"
        "{ .param .b64 a; .param .b64 b; .param .b32 c; .param .b64 d; .param .b64 e; st.param.b64 [a], %rd1; "
        "st.param.b64 [b], %rd2; st.param.b32 [c], 17; st.param.b64 [d], %rd3; st.param.b64 [e], 1;\n"
        "call.uni __assertfail, (a, b, c, d, e); } ret;\n}\n");
    assert_int_equal(kit_launch_run(&k, (kit_launch){"f1", 1, 32, 0, {0}}), ITS_SIM_FAULT);
    its_sim_fault_report(k.ctx, its_sim_grid_fault(k.grid));
    assert_string_equal(
        kit_message(&k),
        "PE 0, kernel 'f1', CTA (0, 0, 0), thread (3, 0, 0) fails an assertion: 'x > 0' at a.cu:17 in go");
    kit_close(&k);
}

#define HEAP ".extern .func (.param .b64 r) malloc(.param .b64 n);\n.extern .func free(.param .b64 p);\n"
#define CALL_MALLOC(n) \
    "{ .param .b64 a; .param .b64 q; st.param.b64 [a], " n "; call.uni (q), malloc, (a); ld.param.b64 %rd2, [q]; }\n"
#define CALL_FREE "{ .param .b64 a; st.param.b64 [a], %rd2; call.uni free, (a); }\n"

static void test_device_heap(void **state) {
    (void)state;
    kit k;
    kit_open(&k);
    size_t before = its_sim_memory_count(k.machine.memory);
    uint32_t *out = run(&k, HEAP,
                        CALL_MALLOC("100") "st.u32 [%rd2+96], %r0; ld.u32 %r1, [%rd2+96]; st.global.u32 [%rd1], %r1;\n"
                                           "setp.lt.u32 %p1, %r0, 5; @%p1 bra KEEP;\n" CALL_FREE "KEEP: ret;\n",
                        64);
    for (uint32_t i = 0; i < 64; i++) assert_int_equal(out[i], i);
    assert_int_equal(its_sim_memory_count(k.machine.memory), before + 1 + 5);
    kit_free(&k, out);
    out = run(&k, HEAP, CALL_MALLOC("100") "ld.u32 %r1, [%rd2+96]; st.global.u32 [%rd1], %r1; ret;\n", 4);
    for (uint32_t i = 0; i < 4; i++) assert_int_equal(out[i], ITS_SIM_FRESH * 0x10001u);
    kit_free(&k, out);
    out = run(&k, HEAP, CALL_MALLOC("100000000") "cvt.u32.u64 %r1, %rd2; st.global.u32 [%rd1], %r1; ret;\n", 1);
    assert_int_equal(out[0], 0); /* more than the heap has: a null pointer */
    kit_free(&k, out);
    assert_int_equal(its_sim_memory_count(k.machine.memory), before);
    kit_load(&k, HEAP ".visible .entry f()\n{\n" REGISTERS CALL_MALLOC("100") "add.u64 %rd2, %rd2, 8;\n" CALL_FREE
                                                                              "ret;\n}\n");
    assert_int_equal(kit_launch_run(&k, (kit_launch){"f", 1, 1, 0, {0}}), ITS_SIM_FAULT);
    its_sim_fault_report(k.ctx, its_sim_grid_fault(k.grid));
    assert_non_null(strstr(kit_message(&k), "frees what malloc did not give: address 0x"));
    kit_load(&k, HEAP ".visible .entry f()\n{\n" REGISTERS CALL_MALLOC("100") CALL_FREE "st.u8 [%rd2+1], 1; ret;\n}\n");
    assert_int_equal(kit_launch_run(&k, (kit_launch){"f", 1, 1, 0, {0}}), ITS_SIM_FAULT);
    its_sim_fault_report(k.ctx, its_sim_grid_fault(k.grid));
    assert_non_null(strstr(kit_message(&k), "1 byte into a 100-byte device heap block that was freed"));
    kit_close(&k);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_direct_call),
        cmocka_unit_test(test_recursion),
        cmocka_unit_test(test_indirect_calls),
        cmocka_unit_test(test_varargs),
        cmocka_unit_test(test_register_parameters),
        cmocka_unit_test(test_integer_arguments),
        cmocka_unit_test(test_float_arguments),
        cmocka_unit_test(test_local_memory),
        cmocka_unit_test(test_parameter_addresses),
        cmocka_unit_test(test_kernel_parameters_in_functions),
        cmocka_unit_test(test_kernel_parameters),
        cmocka_unit_test(test_variables),
        cmocka_unit_test(test_shared_layout),
        cmocka_unit_test(test_fresh_shared),
        cmocka_unit_test(test_printf),
        cmocka_unit_test(test_printf_sizes),
        cmocka_unit_test(test_assert),
        cmocka_unit_test(test_device_heap),
    };
    return cmocka_run_group_tests_name("sim/calls", tests, NULL, NULL);
}
