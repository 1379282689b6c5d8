/* What a function takes and returns, as PTX tells it. */
#include "common.h"

static const char module[] =
    ".version 8.0\n.target sm_80\n.address_size 64\n"
    ".visible .func nothing()\n{\n    ret;\n}\n"
    ".visible .func (.param .b32 r) floats(.param .b32 a, .param .b64 b, .param .b32 c, .param .b32 d)\n{\n"
    "    .reg .f32 %f<4>;\n    .reg .f64 %fd<2>;\n    .reg .b32 %r<3>;\n"
    "    ld.param.f32 %f1, [a];\n    ld.param.f64 %fd1, [b];\n" /* a float, a double */
    "    ld.param.u32 %r1, [c];\n    ld.param.f32 %f2, [c];\n"  /* read as both: bits */
    "    ld.param.u16 %r2, [d+2];\n"                            /* read in part */
    "    st.param.f32 [r+0], %f1;\n    ret;\n}\n"
    ".visible .func (.param .b64 r) others(.param .align 4 .b8 s[12], .param .u16 h, .param .f32 f, .param .s64 l)\n{\n"
    "    .reg .b64 %rd<2>;\n    ld.param.u64 %rd1, [l];\n    st.param.b64 [r], %rd1;\n    ret;\n}\n"
    ".visible .func (.param .b64 r) whole(.param .b32 a, .param .b32 b)\n{\n" /* either sign; only bits */
    "    .reg .b64 %rd<2>;\n    .reg .b32 %r<4>;\n    ld.param.u32 %r1, [a];\n    ld.param.s32 %r2, [a];\n"
    "    ld.param.b32 %r3, [b];\n    st.param.u64 [r], %rd1;\n    ret;\n}\n"
    ".visible .func (.param .align 8 .b8 r[16]) pair()\n{\n    ret;\n}\n"
    ".extern .func elsewhere(.param .b32 x);\n";

static void expect_signature(fixture *f, const char *name, const char *expected) {
    char *text = NULL;
    assert_int_equal(its_unit_signature(f->ctx, f->unit, name, &text), ITS_OK);
    assert_string_equal(text, expected);
    its_free(f->ctx, text);
}

static void signatures(void **state) {
    fixture *f = *state;
    its_cc_input input = {.dialect = "ptx", .source = module, .arch = "sm_80"};
    compile_ok(f, &input);
    expect_signature(f, "nothing", "()");
    expect_signature(f, "floats", "(.f32, .f64, .b32, .b32) -> .f32");
    expect_signature(f, "others", "(.b8[12], .u16, .f32, .s64) -> .b64");
    expect_signature(f, "whole", "(.s32, .b32) -> .u64");
    expect_signature(f, "pair", "() -> .b8[16]");
}

static void functions_without_a_body(void **state) {
    fixture *f = *state;
    its_cc_input input = {.dialect = "ptx", .path = "mine.ptx", .source = module, .arch = "sm_80"};
    compile_ok(f, &input);
    static const char *const names[] = {"elsewhere", "never"};
    for (size_t i = 0; i < 2; i++) {
        char *text = NULL;
        its_diag_clear(f->ctx);
        assert_int_equal(its_unit_signature(f->ctx, f->unit, names[i], &text), ITS_ERR_INPUT);
        assert_null(text);
        assert_int_equal(its_diag_errors(f->ctx), 1);
        assert_non_null(strstr(its_diag_get(f->ctx, 0)->message, names[i]));
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {CC_TEST(signatures), CC_TEST(functions_without_a_body)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
