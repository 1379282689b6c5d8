/*
 * The parser and the printer: what PTX allows is taken and printed back, what it doesn't is refused at the right place,
 * and running out of memory anywhere is clean.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "../heap.h"
#include "intarsia/ptx.h"

#define HEAD ".version 8.7\n.target sm_80\n.address_size 64\n"

/* -- accepted ------------------------------------------------------------------------------------------------------ */

typedef struct sample {
    const char *text, *printed; /* behind HEAD; the second is NULL where printing changes nothing */
} sample;

/* In a body with these registers; each one line. */
#define REGS                                                                                                       \
    "\t.reg .pred p;\n\t.reg .pred q;\n\t.reg .b32 %r<10>;\n\t.reg .b64 %rd<4>;\n\t.reg .v4 .f32 v;\n\t.reg .b32 " \
    "add;\n"

static const sample statements[] = {
    {"add.s32 %r1, %r2, 3;", NULL},
    {"add .s32 %r1 ,%r2\n , 0x10 ;", "add.s32 %r1, %r2, 16;"},
    {"@p mov.b32 %r1, -1;", NULL},
    {"@!p mov.u32 %r1, 18446744073709551615;", NULL},
    {"@ ! p mov.u32 %r1, 7U;", "@!p mov.u32 %r1, 7U;"},
    {"mov.u32 %r1, 017;", "mov.u32 %r1, 15;"},
    {"mov.u32 %r1, 0b101;", "mov.u32 %r1, 5;"},
    {"mov.u32 %r1, (1<<4)|3;", "mov.u32 %r1, 19;"},
    {"mov.u32 %r1, 1?2:3;", "mov.u32 %r1, 2;"},
    {"mov.u32 %r1, WARP_SZ;", "mov.u32 %r1, 32;"},
    {"mov.u32 %r1, ~0;", "mov.u32 %r1, -1;"},
    {"mov.u32 %r1, (.u64)-1 >> 60;", "mov.u32 %r1, 15U;"},
    {"mov.u32 %r1, 7 % 4 * 2 - 1;", "mov.u32 %r1, 5;"},
    {"mov.b32 %r1, 0f3F800000;", NULL},
    {"mov.b32 %r1, 0F3f800000;", "mov.b32 %r1, 0f3F800000;"},
    {"mov.b64 %rd1, 0D3fF0000000000000;", "mov.b64 %rd1, 0d3FF0000000000000;"},
    {"mov.f32 %r1, .5;", "mov.f32 %r1, 0d3FE0000000000000;"},
    {"mov.f32 %r1, 1.;", "mov.f32 %r1, 0d3FF0000000000000;"},
    {"mov.f32 %r1, -1.5e1;", "mov.f32 %r1, 0dC02E000000000000;"},
    {"mov.u32 %r1, %tid.x;", NULL},
    {"mov.u32 %r1, %some_future_register.y;", NULL},
    {"mov.f32 %r1, v.x;", NULL},
    {"ld.global.v4.f32 {%r1, _, %r2, %r3}, [%rd1];", NULL},
    {"ld.global.b32 { %r1 }, [ %rd1 + 0 ];", "ld.global.b32 {%r1}, [%rd1+0];"},
    {"ld.global.b32 %r1, [%rd1+-4];", NULL},
    {"ld.global.b32 %r1, [%rd1+4].unified;", NULL},
    {"ld.global.b32 %r1, [4096];", NULL},
    {".reg .b32; .u64; .shared .align 4 .b32 ; ret;", "ret;"},
    {".shared .b32 s[4]; ld.shared.v2.u32 {%r1, %r2}, s [2-1];",
     ".shared .b32 s[4];\n\tld.shared.v2.u32 {%r1, %r2}, [s+4];"},
    {".local .u16 l[4][4]; st.local.u16 l[5], %r1;", ".local .u16 l[4][4];\n\tst.local.u16 [l+10], %r1;"},
    {".shared .b64 s[4]; mov.u32 %r1, s[-1];", ".shared .b64 s[4];\n\tmov.u32 %r1, s+-8;"},
    {".shared .b64 s[4]; ldu.shared.b64 %rd1, s[0];", ".shared .b64 s[4];\n\tldu.shared.b64 %rd1, [s];"},
    {"setp.eq.s32 p|q, %r1, %r2;", NULL},
    {"setp.eq.and.s32 _|q, %r1, %r2, !p;", NULL},
    {"setp.eq.s32 q|_, %r1, %r2;", NULL},
    {"shfl.sync.idx.b32 %r1|p, %r2, 0, 31, -1;", NULL},
    {"vadd.s32.s32.s32 %r1, %r2.b0, %r3.h1;", NULL},
    {"tex.2d.v4.f32.f32 {%r1, %r2, %r3, %r4}, [%rd1, {%r5, %r6}];", NULL},
    {"cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%r1], [%rd1, {%r2, %r3}], [%r4];",
     NULL},
    {"wgmma.fence.sync.aligned;", NULL},
    {"frobnicate.v9.shared::galaxy.b32 %r1, {%r2, 3}, [%rd1+8], p|q;", NULL},
    {"call (_), f, (%r1, 3);", NULL},
    {"call (%r1), f, (%r2);", NULL},
    {"intarsia.call (%r1), 5f0c2a9b71d3e846::wait, (%rd1, %r2);", NULL},
    {"intarsia.call (%r1), abcdef0123456789::wait, (%rd1, 4);", NULL},
    {"intarsia.device_intra_barrier.sync.block.acq_rel (%r2), 0123456789abcdef::intarsia, (%rd1, %r2);", NULL},
    {"mov.b32 add, 1;", NULL},
    {"mov.u64 %rd1, table+8;", NULL},
    {"add.s32 %r1 /* one */, %r2, /* two\n */ 3;", "add.s32 %r1, %r2, 3; /* one */ /* two\n */"},
};

static its_status parse(its_context *ctx, const char *text, its_module **module) {
    return its_ptx_parse(ctx, "t.ptx", text, strlen(text), module);
}

static void show_and_fail(its_context *ctx, const char *text) {
    char *errors = its_diag_render(ctx, false);
    fputs(errors, stderr);
    fail_msg("refused: %s", text);
}

static void check_print(const char *text, const char *expected) {
    its_context *ctx = its_context_new(NULL);
    its_module *module;
    if (parse(ctx, text, &module) != ITS_OK) show_and_fail(ctx, text);
    char *printed, *again;
    size_t size;
    assert_int_equal(its_ptx_print(module, &printed, &size), ITS_OK);
    assert_int_equal(size, strlen(printed));
    if (strcmp(printed, expected) != 0) fail_msg("printed:\n%s\nexpected:\n%s", printed, expected);
    its_module_free(module);
    if (parse(ctx, printed, &module) != ITS_OK) show_and_fail(ctx, printed);
    assert_int_equal(its_ptx_print(module, &again, NULL), ITS_OK);
    assert_string_equal(printed, again);
    its_module_free(module);
    its_free(ctx, printed);
    its_free(ctx, again);
    its_context_free(ctx);
}

static void in_a_body(char *out, size_t size, const char *statement) {
    snprintf(out, size, "%s%s%s%s\n}\n",
             HEAD ".global .b64 table[4];\n.func (.param .b32 r) f(.param .b32 a);\n.visible .entry k()\n{\n", REGS,
             "\t", statement);
}

static void test_statements(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof statements / sizeof *statements; i++) {
        char text[2048], expected[2048];
        in_a_body(text, sizeof text, statements[i].text);
        in_a_body(expected, sizeof expected, statements[i].printed ? statements[i].printed : statements[i].text);
        check_print(text, expected);
    }
}

static const sample modules[] = {
    {".global .align 4 .u32 a[4] = {1, 2, 3};\n", NULL},
    {".global .u32 a[2][3] = {{1}, {4, 5}};\n", ".global .u32 a[2][3] = {{1, 4, 5}};\n"},
    {".global .b8 a[] = {1, 2, 0xff};\n", ".global .b8 a[3] = {1, 2, 255};\n"},
    {".global .u64 a;\n.global .u64 b[4] = {a, a+4, generic(a)+8, 7};\n", NULL},
    {".global .b8 a;\n.global .b8 b[2] = {0xff(a), 0xff00(a)};\n", NULL},
    {".global .f32 x = 0f3F800000, y;\n", ".global .f32 x = 0f3F800000;\n.global .f32 y;\n"},
    {".visible .global .attribute(.managed) .align 16 .v4 .f32 m[2];\n", NULL},
    {".common .global .b32 c[8];\n", NULL},
    {".extern .shared .align 16 .b8 smem[];\n", NULL},
    {".extern .global .b32 g;\n.visible .global .b32 g = 4;\n", NULL},
    {".weak .func w()\n{\n\tret;\n}\n", NULL},
    {".extern .func (.param .b32 r) e(.param .align 8 .b8 s[24]);\n", NULL},
    {".func f;\n", NULL},
    {".func f() .func g()\n{\n\tret;\n}\n", ".func f();\n.func g()\n{\n\tret;\n}\n"},
    {".func .attribute(.unified(1, 2)) u()\n{\n\tret;\n}\n",
     ".func .attribute ( .unified ( 1 , 2 ) ) u()\n{\n\tret;\n}\n"},
    {".extern .func (.param .b32 f) f(.param .b32 a);\n.global .u64 t = f;\n", NULL},
    {".func v(.param .b32 a,\n\t.param .align 8 .b8 va[]);\n", NULL},
    {".visible .func a()\n{\n\tret;\n}\n.visible .func b();\n.alias b, a;\n", NULL},
    {".func n()\n.noreturn\n{\n\ttrap;\n}\n", NULL},
    {".entry k(.param .u64 .ptr .global .align 16 p)\n.maxntid 128 , 1 , 1\n.minnctapersm 2\n{\n\tret;\n}\n", NULL},
    {".pragma \"nounroll\";\n", NULL},
    {".file 1 \"a b.cu\", 12, 34\n", NULL},
    {".entry k()\n{\n\t.loc 1 3 5, function_name L+4, inlined_at 1 2 3\n\tret;\n}\n", NULL},
    {".section .debug_str {\nL:\n.b8 1, 2 // }\n}\n", NULL},
    {".unheard_of 1 , 2 ( a ) ;\n", ".unheard_of 1 , 2 ( a );\n"},
    {"// a comment\n.global .b32 x; // another\n", NULL},
    {".entry k()\n{\n\t.reg .b32 %r<4>;\n\t{\n\t\t.reg .b64 %r<4>;\n\t\tmov.u64 %r1, 1;\n\t}\n\tmov.u32 %r1, 1;\n}\n",
     NULL},
    {".entry k()\n{\n\t.reg .pred p;\nL1:\nL2:\n\t@p bra L1;\n\t{\n\t\tbra L3;\n\t\tbra L1;\nL1:\n\t}\nL3:\n}\n", NULL},
    {".entry k()\n{\n\t.reg .b32 i;\nT: .branchtargets A, B;\n\tbrx.idx i, T;\nA:\nB:\n\tret;\n}\n", NULL},
    {".entry k()\n{\n\t.reg .b64 f;\nP: .callprototype (.param .b32 _) _ (.param .b64 _);\n\tcall (_), f, (1), P;\n}\n",
     NULL},
    {".entry k()\n{\n\t.reg .b32 a<0>;\n\tret;\n}\n", ".entry k()\n{\n\tret;\n}\n"},
    {"#line 4 \"x.cu\"\n.global .b32 x;\n", NULL},
};

static void test_modules(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof modules / sizeof *modules; i++) {
        char text[2048], expected[2048];
        snprintf(text, sizeof text, HEAD "%s", modules[i].text);
        snprintf(expected, sizeof expected, HEAD "%s", modules[i].printed ? modules[i].printed : modules[i].text);
        check_print(text, expected);
    }
}

/* -- scopes -------------------------------------------------------------------------------------------------------- */

static its_insn *nth_insn(its_func *func, int n) {
    for (its_node *node = func->first; node; node = node->next)
        if (node->kind == ITS_NODE_INSN && n-- == 0) return (its_insn *)node;
    fail_msg("no such instruction");
    return NULL;
}

static void test_names_mean_the_innermost(void **state) {
    (void)state;
    its_context *ctx = its_context_new(NULL);
    its_module *module;
    const char *text = HEAD ".global .b32 g;\n.entry k() {\n.reg .b32 %r<4>, %r1x;\n"
                            "mov.b32 %r1, 0;\n" /* 0: outer range */
                            "{ mov.b32 %r1, 1; .reg .b64 %r<2>; mov.b64 %r1, 2; mov.b32 %r3, 3; }\n" /* 1, 2, 3 */
                            "{ .reg .b32 g; mov.b32 g, 4; }\n" /* 4: register named like a global */
                            "ld.global.b32 %r1, [g];\n"        /* 5 */
                            "L: { bra L; L: bra L; }\n"        /* 6, 7: the inner L, also before it */
                            "bra L; }";                        /* 8 */
    assert_int_equal(parse(ctx, text, &module), ITS_OK);
    its_func *func = its_module_next_func(module, NULL);
    its_symbol *outer = nth_insn(func, 0)->ops[0].symbol;
    assert_ptr_equal(nth_insn(func, 1)->ops[0].symbol, outer);
    assert_int_equal(nth_insn(func, 2)->ops[0].symbol->type, ITS_TYPE_B64);
    assert_int_equal(nth_insn(func, 3)->ops[0].symbol->type, ITS_TYPE_B32); /* %r3 is outside of the inner range */
    assert_int_equal(nth_insn(func, 4)->ops[0].kind, ITS_OPND_REG);
    its_operand *address = nth_insn(func, 5)->ops[1].list;
    assert_int_equal(address->kind, ITS_OPND_SYM);
    assert_ptr_equal(address->symbol, its_module_find(module, "g"));
    assert_ptr_equal(nth_insn(func, 5)->ops[0].symbol, outer);
    assert_ptr_equal(nth_insn(func, 6)->ops[0].symbol, nth_insn(func, 7)->ops[0].symbol);
    assert_ptr_not_equal(nth_insn(func, 6)->ops[0].symbol, nth_insn(func, 8)->ops[0].symbol);
    its_module_free(module);
    its_context_free(ctx);
}

static void test_ranges_with_digits_in_their_prefix(void **state) {
    (void)state;
    its_context *ctx = its_context_new(NULL);
    its_module *module;
    const char *text = HEAD ".entry k() {\n.reg .b32 %r<10>; .reg .b64 %r5<8>;\n"
                            "mov.b32 %r5, 0; mov.b64 %r57, 0; mov.b64 %r50, 0; }";
    assert_int_equal(parse(ctx, text, &module), ITS_OK);
    its_func *func = its_module_next_func(module, NULL);
    assert_int_equal(nth_insn(func, 0)->ops[0].symbol->type, ITS_TYPE_B32);
    assert_int_equal(nth_insn(func, 1)->ops[0].symbol->type, ITS_TYPE_B64);
    assert_int_equal(nth_insn(func, 2)->ops[0].symbol->type, ITS_TYPE_B64);
    assert_int_equal(func->n_regs, 3);
    its_module_free(module);
    its_context_free(ctx);
}

/* -- refused ------------------------------------------------------------------------------------------------------- */

typedef struct refusal {
    const char *text; /* behind HEAD, so lines count from 4 */
    uint32_t line, column;
    const char *message;
} refusal;

static const refusal refusals[] = {
    {".entry k() { .reg .b32 r; mov.b32 r, x; }", 4, 38, "'x' is not declared"},
    {".entry k() { .reg .b32 %r<4>; mov.b32 %r4, 1; }", 4, 39, "'%r4' is outside of '%r<4>'"},
    {".entry k() { .reg .b32 r; .reg .b32 r; }", 4, 37, "'r' is declared twice"},
    {".entry k() { bra L; }", 4, 18, "'L' is not declared"},
    {".entry k() { bra L; bra M; }", 4, 18, "'L' is not declared"},
    {".entry k() { mov.b32 r1, 1; .reg .b32 r<2>; }", 4, 22, "register 'r1' is used before it is declared"},
    {".entry k() { .reg .b32 r; brx.idx r, T; T: .branchtargets L; L: }", 4, 38,
     "list of targets 'T' is used before it is declared"},
    {".entry k() { .reg .b64 r; call r, (), P; P: .callprototype _ (); }", 4, 39,
     "prototype 'P' is used before it is declared"},
    {".entry k() { bra L; { L: } }", 4, 18, "'L' is not declared"},
    {".entry k() { L: ret; L: ret; }", 4, 22, "'L' is declared twice"},
    {".entry k() { L:; }", 4, 16, "a label takes no ';'"},
    {".entry k() { ; }", 4, 14, "expected an instruction, a label, a directive or '}', found ';'"},
    {".entry k() { ret }", 4, 18, "expected an operand, found '}'"},
    {".entry k() { ret;", 4, 18, "expected '}', found the end of the file"},
    {".entry k() {} .entry k() {}", 4, 22, "'k' is defined twice"},
    {".global .b32 k; .entry k() {}", 4, 24, "'k' is defined twice"},
    {".global .b32 x; .global .b32 x;", 4, 30, "'x' is declared twice"},
    {".global .align 3 .b32 x;", 4, 16, "an alignment is a power of two, not 3"},
    {".global .b32 x[4000000000][4000000000];", 4, 14, "'x' is larger than the address space"},
    {".global .b32 x[2] = {1, 2, 3};", 4, 28, "'x' has no room for this element"},
    {".global .b32 x = 1/0;", 4, 19, "division by zero in a constant"},
    {".global .b32 x = 99999999999999999999;", 4, 18, "this number does not fit into 64 bits"},
    {".global .b32 x = 089;", 4, 18, "this is no number"},
    {".global .b32 x = 0f3f80;", 4, 18, "0f takes 8 hexadecimal digits"},
    {".global .f32 x = -0f3f800000;", 4, 18, "a sign does not go with a hexadecimal float: its first bit is the sign"},
    {".global .b32 x = 7u;", 4, 18, "this is no number"},
    {".entry k() { .reg .b64 r; ld.global.b32 r, [r-4]; }", 4, 46, "expected ',' or ']', found '-'"},
    {".entry k() { .pragma \"open; }", 4, 22, "unterminated string"},
    {"/* open", 4, 1, "unterminated comment"},
    {".global .b32 \x80;", 4, 14, "byte 0x80 does not belong in PTX"},
    {".version 8.0", 4, 1, "a second .version"},
    {"hello", 4, 1, "expected a directive such as .entry, .func or .global, found 'hello'"},
    {".visible .weak .global .b32 x;", 4, 10, "a second linkage directive"},
    {".entry k() { @x ret; }", 4, 15, "'x' is not declared"},
    {".alias a, b;", 4, 8, "'a' is no function declared so far"},
    {".shared .b32 s[4]; .entry k() { .reg .b32 %r<4>; ld.shared.b32 %r1, s[%r2+1]; }", 4, 71,
     "the index of an array must be a constant here"},
    {".section .debug_str { .b8 1", 4, 21, "this '{' is not closed"},
};

static void test_refusals(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof refusals / sizeof *refusals; i++) {
        const refusal *want = &refusals[i];
        its_context *ctx = its_context_new(NULL);
        its_module *module;
        char text[1024];
        snprintf(text, sizeof text, HEAD "%s", want->text);
        assert_int_equal(parse(ctx, text, &module), ITS_ERR_INPUT);
        assert_null(module);
        const its_diag *diag = its_diag_get(ctx, 0);
        if (strcmp(diag->message, want->message) != 0 || diag->places[0].line != want->line ||
            diag->places[0].column != want->column)
            fail_msg("%s\ngot  %u:%u %s\nwant %u:%u %s", want->text, diag->places[0].line, diag->places[0].column,
                     diag->message, want->line, want->column, want->message);
        its_context_free(ctx);
    }
}

static void test_headers(void **state) {
    (void)state;
    static const refusal headers[] = {
        {"", 1, 1, "a PTX module starts with .version, found the end of the file"},
        {"\x7f"
         "ELF",
         1, 1, "byte 0x7f does not belong in PTX"},
        {".target sm_80", 1, 1, "a PTX module starts with .version, found '.target'"},
        {".version 8\n.target sm_80", 1, 10, "expected a version such as 8.0, found '8'"},
        {".version 8.0\n.entry k() {}", 2, 1, "expected .target, found '.entry'"},
        {".version 8.0\n.target sm_80\n.address_size 48", 3, 15, "an address has 32 or 64 bits, not 48"},
    };
    for (size_t i = 0; i < sizeof headers / sizeof *headers; i++) {
        its_context *ctx = its_context_new(NULL);
        its_module *module;
        assert_int_equal(parse(ctx, headers[i].text, &module), ITS_ERR_INPUT);
        const its_diag *diag = its_diag_get(ctx, 0);
        assert_string_equal(diag->message, headers[i].message);
        assert_int_equal(diag->places[0].line, headers[i].line);
        assert_int_equal(diag->places[0].column, headers[i].column);
        its_context_free(ctx);
    }
}

static void test_several_errors_at_once(void **state) {
    (void)state;
    its_context *ctx = its_context_new(NULL);
    its_module *module;
    const char *text = HEAD ".entry k() {\n.reg .b32 r;\nmov.b32 r, x;\nmov.b32 r 1;\nadd.s32 r, r, y;\n}\n"
                            ".global .b32 bad bad;\n.global .b32 good;\n";
    assert_int_equal(parse(ctx, text, &module), ITS_ERR_INPUT);
    assert_int_equal(its_diag_errors(ctx), 4);
    its_context_free(ctx);
}

static void test_a_vector_ends_no_function(void **state) {
    (void)state;
    its_context *ctx = its_context_new(NULL);
    its_module *module;
    const char *text =
        HEAD ".entry k() {\n.reg .b32 %r<4>;\nmov.b64 {%r9, %r1}, 1;\nmov.b64 {%r1, %r9}, 1;\nmov.b32 %r9, 1;\n}\n";
    assert_int_equal(parse(ctx, text, &module), ITS_ERR_INPUT);
    assert_int_equal(its_diag_errors(ctx), 3);
    for (unsigned i = 0; i < 3; i++) assert_int_equal(its_diag_get(ctx, i)->places[0].line, 6 + i);
    its_context_free(ctx);
}

static void test_a_long_name_is_shown_whole(void **state) {
    (void)state;
    char name[4097], text[5000];
    memset(name, 'n', 4096);
    name[4096] = 0;
    snprintf(text, sizeof text, HEAD ".entry k() { bra %s; }", name);
    its_context *ctx = its_context_new(NULL);
    its_module *module;
    assert_int_equal(parse(ctx, text, &module), ITS_ERR_INPUT);
    assert_non_null(strstr(its_diag_get(ctx, 0)->message, name));
    its_context_free(ctx);
}

/* -- hostile sizes ------------------------------------------------------------------------------------------------- */

static char *repeat(const char *head, const char *what, size_t times, const char *tail) {
    size_t n = strlen(what);
    char *text = malloc(strlen(head) + n * times + strlen(tail) + 1), *p = text;
    p = stpcpy(p, head);
    for (size_t i = 0; i < times; i++) p = stpcpy(p, what);
    stpcpy(p, tail);
    return text;
}

static void expect_refused(char *text) {
    its_context *ctx = its_context_new(NULL);
    its_module *module;
    assert_int_equal(parse(ctx, text, &module), ITS_ERR_INPUT);
    assert_true(its_diag_get(ctx, 0)->places[0].line >= 1);
    its_context_free(ctx);
    free(text);
}

static void test_hostile_input(void **state) {
    (void)state;
    expect_refused(repeat(HEAD ".entry k() ", "{", 10000, ""));
    expect_refused(repeat(HEAD ".global .b32 x = ", "(", 100000, "1;"));
    expect_refused(repeat(HEAD ".global .b32 x = ", "-", 100000, "1;"));
    expect_refused(repeat(HEAD ".global .b32 x = ", "1?", 100000, "1;"));
    expect_refused(repeat(HEAD ".entry k() { add ", "{", 100000, ""));
    expect_refused(repeat(HEAD ".entry k() { add ", "0,", 100000, "0; }"));
    expect_refused(repeat(HEAD, "}", 100000, ""));
    expect_refused(repeat("", "x", 1000000, ""));
    char *text = repeat(HEAD ".entry k() {\n", "{ ", 10000, "");
    char *closed = repeat(text, "} ", 10000, "}\n");
    its_context *ctx = its_context_new(NULL);
    its_module *module;
    assert_int_equal(parse(ctx, closed, &module), ITS_OK);
    its_module_free(module);
    its_context_free(ctx);
    free(text);
    free(closed);
}

typedef struct costly {
    const char *head, *what, *tail; /* `what` any number of times between the others */
    its_status status;
} costly;

static const costly costlies[] = {
    {".func f(.param .b32 a", ", .param .b32 _", ") { ret; }", ITS_OK},
    {".entry k() { P: .callprototype _ (.param .b32 _", ", .param .b32 _", "); }", ITS_OK},
    {".global ", ".attribute(.managed) ", ".u32 x;", ITS_OK},
    {".func ", ".attribute(.unified(1, 2)) ", "f() { ret; }", ITS_OK},
    {".entry k() { foo", " .a", "; }", ITS_OK},
    {".entry k() { .global .u32 x = 1;", "{ .global .u32 x[1] = {1}, y = 2, z[1] = {3}; }", " }", ITS_OK},
    {".section .debug_str {\n", "\"\" ", "\n}\n", ITS_OK},
    {".entry k() {", "bra L;", " L: ret; }", ITS_OK},
};

static char *repeat_twice(const char *head, const char *first, const char *second, size_t times, const char *tail) {
    char *front = repeat(head, first, times, ""), *all = repeat(front, second, times, tail);
    free(front);
    return all;
}

/* Parses and frees the text; memory must stay in proportion to it. */
static void expect_proportion(char *text, its_status status) {
    test_heap heap = {0};
    its_allocator allocator = test_heap_allocator(&heap);
    its_context *ctx = its_context_new(&allocator);
    its_module *module;
    assert_int_equal(parse(ctx, text, &module), status);
    its_module_free(module);
    its_context_free(ctx);
    assert_true((size_t)heap.peak < 100 * strlen(text));
    free(text);
}

/* Were one of these a square, it would take gigabytes or minutes. */
static void test_costs_are_in_proportion(void **state) {
    (void)state;
    enum { TIMES = 100000 };
    for (size_t i = 0; i < sizeof costlies / sizeof *costlies; i++) {
        char *head = repeat(HEAD, costlies[i].head, 1, "");
        expect_proportion(repeat(head, costlies[i].what, TIMES, costlies[i].tail), costlies[i].status);
        free(head);
    }
    char *names = malloc(TIMES * 32), *p = names;
    for (unsigned i = 0; i < TIMES; i++) p += sprintf(p, "%sx%u[1] = {%u}", i ? ", " : "", i, i);
    expect_proportion(repeat(HEAD ".global .u32 ", names, 1, ";"), ITS_OK);
    free(names);
    char *open = repeat(HEAD ".entry k() {", "{ ", TIMES, ""), *late = repeat(open, "bra L; ", TIMES, "");
    expect_proportion(repeat(late, "} ", TIMES, "L: ret; }"), ITS_OK);
    expect_proportion(repeat_twice(HEAD ".entry k() {", "{ bra L; ", "L: } ", TIMES, "}"), ITS_OK);
    free(late);
    free(open);
}

/* -- memory -------------------------------------------------------------------------------------------------------- */

static its_status parse_and_print(test_heap *heap) {
    its_allocator allocator = test_heap_allocator(heap);
    its_context *ctx = its_context_new(&allocator);
    if (!ctx) return ITS_ERR_NOMEM;
    its_module *module;
    char text[8192] = HEAD ".global .b32 x[3] = {1, 2, 3};\n.func (.param .b32 r) f(.param .b32 a);\n"
                           ".entry k(.param .b64 p) { .reg .b32 %r<99>; .reg .pred q; .loc 1 2 3\n"
                           "L: @q bra L; { .reg .b64 %r<2>; mov.u64 %r1, x; }\ncall (%r1), f, (%r2); // done\n";
    size_t size = strlen(text);
    for (unsigned i = 3; i < 99; i++) size += (size_t)sprintf(text + size, "add.s32 %%r%u, %%r%u, %u;\n", i, i - 1, i);
    strcpy(text + size, "ret; }\n");
    its_status status = parse(ctx, text, &module);
    char *printed = NULL;
    if (status == ITS_OK) status = its_ptx_print(module, &printed, NULL);
    its_free(ctx, printed);
    its_module_free(module);
    if (status != ITS_OK) {
        assert_true(its_diag_errors(ctx) > 0);
        its_free(ctx, its_diag_render(ctx, false));
        /* the context is still of use */
        test_heap_fail(heap, 0);
        assert_int_equal(parse(ctx, text, &module), ITS_OK);
        its_module_free(module);
    }
    its_context_free(ctx);
    return status;
}

static void test_every_allocation_can_fail(void **state) {
    (void)state;
    test_heap all = {0};
    assert_int_equal(parse_and_print(&all), ITS_OK);
    assert_int_equal(all.held, 0);
    assert_true(all.calls > 10);
    for (size_t n = 1; n <= all.calls; n++) {
        test_heap heap = {.fail_at = n};
        assert_int_equal(parse_and_print(&heap), ITS_ERR_NOMEM);
        assert_int_equal(heap.held, 0);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_statements),
        cmocka_unit_test(test_modules),
        cmocka_unit_test(test_names_mean_the_innermost),
        cmocka_unit_test(test_ranges_with_digits_in_their_prefix),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_headers),
        cmocka_unit_test(test_several_errors_at_once),
        cmocka_unit_test(test_a_vector_ends_no_function),
        cmocka_unit_test(test_a_long_name_is_shown_whole),
        cmocka_unit_test(test_hostile_input),
        cmocka_unit_test(test_costs_are_in_proportion),
        cmocka_unit_test(test_every_allocation_can_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
