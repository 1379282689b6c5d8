/* Whole kernels: parameters, memory, control flow, calls, variables. */
#include "kit.h"

static void test_vector_add(void **state) {
    (void)state;
    kit k;
    kit_open(&k);
    kit_load(&k, ".visible .entry add(.param .u64 a, .param .u64 b, .param .u64 c, .param .u32 n)\n"
                 "{\n"
                 ".reg .pred %p<2>; .reg .b32 %r<6>; .reg .b64 %rd<8>; .reg .f32 %f<4>;\n"
                 "ld.param.u64 %rd1, [a]; ld.param.u64 %rd2, [b]; ld.param.u64 %rd3, [c]; ld.param.u32 %r1, [n];\n"
                 "mov.u32 %r2, %ctaid.x; mov.u32 %r3, %ntid.x; mov.u32 %r4, %tid.x;\n"
                 "mad.lo.s32 %r5, %r2, %r3, %r4;\n"
                 "setp.ge.s32 %p1, %r5, %r1;\n"
                 "@%p1 bra DONE;\n"
                 "mul.wide.s32 %rd4, %r5, 4;\n"
                 "add.s64 %rd5, %rd1, %rd4; add.s64 %rd6, %rd2, %rd4; add.s64 %rd7, %rd3, %rd4;\n"
                 "ld.global.f32 %f1, [%rd5]; ld.global.f32 %f2, [%rd6];\n"
                 "add.f32 %f3, %f1, %f2;\n"
                 "st.global.f32 [%rd7], %f3;\n"
                 "DONE: ret;\n"
                 "}\n");
    enum { N = 1000 };
    float *a = kit_alloc(&k, N * 4), *b = kit_alloc(&k, N * 4), *c = kit_alloc(&k, N * 4);
    for (int i = 0; i < N; i++) {
        a[i] = (float)i * 0.5f;
        b[i] = (float)(N - i);
    }
    kit_run(&k, (kit_launch){"add", 8, 128, 0, {kit_address(a), kit_address(b), kit_address(c), N}});
    for (int i = 0; i < N; i++) assert_true(c[i] == a[i] + b[i]);
    kit_free(&k, a);
    kit_free(&k, b);
    kit_free(&k, c);
    kit_close(&k);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_vector_add)};
    return cmocka_run_group_tests_name("sim/exec", tests, NULL, NULL);
}
