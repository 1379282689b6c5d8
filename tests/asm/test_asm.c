/* The assemblers: what goes to which, what they say, and what is refused before they run. */
#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "../heap.h"
#include "asm/asm.h"

/* nvJitLink loses 176 bytes of its own when it refuses an archive. LeakSanitizer asks for this, under this name. */
__attribute__((visibility("default"))) const char *__lsan_default_suppressions(void);
const char *__lsan_default_suppressions(void) {
    return "leak:libnvJitLink";
}

static const char kernel[] = ".version 8.0\n.target sm_90a\n.address_size 64\n"
                             ".visible .entry k(.param .u64 p)\n{\n.reg .b64 %d<2>;\n.shared .align 4 .b8 s[64];\n"
                             "ld.param.u64 %d1, [p];\nst.global.u64 [%d1], %d1;\nst.shared.u32 [s], 1;\nret;\n}\n";

static its_module *parse(its_context *ctx, const char *text) {
    its_module *module;
    assert_int_equal(its_ptx_parse(ctx, "k.ptx", text, strlen(text), &module), ITS_OK);
    return module;
}

static bool has_ptxas(its_context *ctx) {
    uint32_t major, minor;
    bool found = its_asm_ptx_version(ctx, NULL, &major, &minor) == ITS_OK;
    its_diag_clear(ctx);
    return found;
}

static void test_assemble(void **state) {
    (void)state;
    its_context *ctx = its_context_new(NULL);
    if (!has_ptxas(ctx)) {
        its_context_free(ctx);
        skip();
    }
    its_module *module = parse(ctx, kernel);
    its_asm_result *result;
    assert_int_equal(its_assemble(ctx, module, NULL, &result), ITS_OK);
    assert_memory_equal(result->cubin,
                        "\x7f"
                        "ELF",
                        4);
    assert_string_equal(result->tool, "ptxas");
    assert_null(result->library);
    assert_int_equal(result->n_funcs, 1);
    assert_string_equal(result->funcs[0].name, "k");
    assert_true(result->funcs[0].entry);
    assert_true(result->funcs[0].registers > 0);
    assert_int_equal(result->funcs[0].shared, 64);
    char *text = its_asm_text(ctx, NULL, result);
    assert_non_null(strstr(text, "kernel k:"));
    its_free(ctx, text);
    its_asm_free(result);
    its_module_free(module);
    its_context_free(ctx);
}

/* What NVSHMEM's archive holds code for, and what not: sm_87 is a module for cars and robots. */
static void test_try_nvshmem(void **state) {
    (void)state;
    its_context *ctx = its_context_new(NULL);
    uint32_t version[3];
    if (its_asm_nvshmem_version(ctx, version) != ITS_OK || its_asm_try_nvshmem(ctx, "sm_90") == ITS_ERR_ABSENT) {
        its_context_free(ctx);
        skip();
    }
    its_diag_clear(ctx);
    assert_int_equal(its_asm_try_nvshmem(ctx, "sm_90"), ITS_OK);
    assert_int_equal(its_asm_try_nvshmem(ctx, "sm_87"), ITS_ERR_INPUT);
    const char *message = its_diag_get(ctx, 0)->message;
    assert_non_null(strstr(message, "libnvshmem_device.a' has no code for sm_87"));
    its_context_free(ctx);
}

/* -- memory runs out ----------------------------------------------------------------------------------------------- */

/* Assembling and telling with memory for `n` allocations behind the parser's; false if that was not enough. */
static bool assemble_with(size_t n) {
    test_heap heap = {.stays_empty = true};
    its_allocator allocator = test_heap_allocator(&heap);
    its_context *ctx = its_context_new(&allocator);
    its_module *module = parse(ctx, kernel);
    its_asm_result *result;
    char *text = NULL, *json = NULL;
    test_heap_fail(&heap, n + 1);
    its_status status = its_assemble(ctx, module, NULL, &result);
    assert_true(status == ITS_OK || status == ITS_ERR_NOMEM);
    assert_int_equal(status == ITS_OK, result != NULL);
    if (result) text = its_asm_text(ctx, result, result);
    if (text) json = its_asm_json(ctx, result, result);
    bool ok = json != NULL;
    its_free(ctx, text);
    its_free(ctx, json);
    its_asm_free(result);
    its_module_free(module);
    its_context_free(ctx);
    assert_int_equal(heap.held, 0);
    return ok;
}

static bool is_empty(const char *path) {
    DIR *dir = opendir(path);
    assert_non_null(dir);
    size_t n = 0;
    while (readdir(dir)) n++;
    closedir(dir);
    return n == 2;
}

/* ptxas is run for each: its process and its files must be gone whichever allocation fails. */
static void test_memory(void **state) {
    (void)state;
    its_context *ctx = its_context_new(NULL);
    bool found = has_ptxas(ctx);
    its_context_free(ctx);
    if (!found) skip();
    char folder[] = "/tmp/intarsia-asm-XXXXXX";
    assert_non_null(mkdtemp(folder));
    const char *temp = getenv("TMPDIR");
    char *before = temp ? strdup(temp) : NULL;
    setenv("TMPDIR", folder, 1);
    size_t n = 0;
    for (; !assemble_with(n); n++) {
        assert_true(is_empty(folder));
        assert_true(n < 1000);
    }
    assert_true(n > 5 && is_empty(folder));
    if (before)
        setenv("TMPDIR", before, 1);
    else
        unsetenv("TMPDIR");
    free(before);
    rmdir(folder);
}

static void expect_refusal(const char *text, const char *message) {
    its_context *ctx = its_context_new(NULL);
    its_module *module = parse(ctx, text);
    its_asm_result *result;
    assert_int_not_equal(its_assemble(ctx, module, NULL, &result), ITS_OK);
    assert_null(result);
    assert_true(its_diag_count(ctx) > 0);
    const char *said = its_diag_get(ctx, 0)->message;
    if (!strstr(said, message)) fail_msg("expected '%s' in '%s'", message, said);
    its_module_free(module);
    its_context_free(ctx);
}

static void test_refusals(void **state) {
    (void)state;
    its_context *ctx = its_context_new(NULL);
    bool found = has_ptxas(ctx);
    its_context_free(ctx);
    if (!found) skip();
    expect_refusal(".version 99.0\n.target sm_90a\n.address_size 64\n.visible .entry k() { ret; }\n",
                   "the module is PTX 99.0, of a newer compiler than the ptxas");
    expect_refusal(
        ".version 99.0\n.target sm_90a\n.address_size 64\n// Generated by ACME C\n.visible .entry k() { ret; }\n",
        "the module is PTX 99.0, of a newer compiler (ACME C) than the ptxas");
    expect_refusal(
        "// Generated by ACME C\n.version 8.0\n.target sm_777a\n.address_size 64\n.visible .entry k() { ret; }\n",
        "the module is for sm_777a (ACME C), which the ptxas");
    expect_refusal(".version 8.0\n.target sm_90a\n.address_size 64\n.visible .entry k() { frobnicate; ret; }\n",
                   "refuses the module: line");
    expect_refusal(".version 8.0\n.target sm_90a\n.address_size 64\n.extern .func other();\n"
                   ".visible .entry k() { call other, (); ret; }\n",
                   "the module needs 'other', which nothing here provides");
}

static void test_absent(void **state) {
    (void)state;
    setenv("INTARSIA_PTXAS", "none", 1);
    expect_refusal(kernel, "ptxas can't be used: INTARSIA_PTXAS is set to 'none'");
    setenv("INTARSIA_PTXAS", "/nowhere/ptxas", 1);
    expect_refusal(kernel, "INTARSIA_PTXAS names '/nowhere/ptxas', which is no file");
    unsetenv("INTARSIA_PTXAS");
    setenv("INTARSIA_NVSHMEM", "none", 1);
    expect_refusal(".version 8.0\n.target sm_90a\n.address_size 64\n.extern .const .align 8 .b8 "
                   "nvshmemi_device_state_d[776];\n.visible .entry k(.param .u64 p) { .reg .b32 %r; ld.const.u32 %r, "
                   "[nvshmemi_device_state_d]; ret; }\n",
                   "NVSHMEM's host library");
    unsetenv("INTARSIA_NVSHMEM");
}

static void test_log(void **state) {
    (void)state;
    static const char log[] =
        "ptxas info    : (C7509) Potential Performance Loss: wgmma.mma_async instructions are serialized due to the "
        "presence of Extern calls in the function 'gemm'\n"
        "ptxas info    : (C7508) Potential Performance Loss: 'setmaxnreg' ignored to maintain minimum register "
        "requirements.\n"
        "ptxas info    : Compiling entry function 'gemm' for 'sm_90a'\n"
        "ptxas info    : Function properties for gemm\n"
        "    16 bytes stack frame, 8 bytes spill stores, 12 bytes spill loads\n"
        "ptxas info    : Used 168 registers, used 2 barriers, 4096 bytes smem, 16 bytes cumulative stack size\n"
        "(C\n(C12\n: Used \n'\n";
    its_context *ctx = its_context_new(NULL);
    its_arena arena;
    its_arena_init(&arena, ctx);
    its_asm_result result = {0};
    its_asm_read_log(&arena, log, &result);
    assert_int_equal(result.n_advice, 2);
    assert_string_equal(result.advice[0].code, "C7509");
    assert_string_equal(result.advice[0].function, "gemm");
    assert_true(result.advice[0].serialised && !result.advice[0].no_setmaxnreg);
    assert_true(result.advice[1].no_setmaxnreg && !result.advice[1].serialised);
    assert_int_equal(result.n_funcs, 1);
    assert_int_equal(result.funcs[0].registers, 168);
    assert_int_equal(result.funcs[0].barriers, 2);
    assert_int_equal(result.funcs[0].stack, 16);
    assert_int_equal(result.funcs[0].spill_stores, 8);
    assert_int_equal(result.funcs[0].spill_loads, 12);
    assert_int_equal(result.funcs[0].shared, 4096);
    its_arena_free(&arena);
    its_context_free(ctx);
}

/* NVRTC's names for NVSHMEM's functions become the library's: parameters change, template arguments don't. */
static void test_names(void **state) {
    (void)state;
    static const char *const names[][2] = {
        {"_Z28nvshmemi_transfer_put_signalIL13threadgroup_t0EEvPvS1_mS1_y14nvshmemi_amo_tib",
         "_Z28nvshmemi_transfer_put_signalIL13threadgroup_t0EEvPvS1_mS1_m14nvshmemi_amo_tib"},
        {"_Z23nvshmemi_transfer_rma_pIyEvPvT_i", "_Z23nvshmemi_transfer_rma_pIyEvPvT_i"},
        {"_Z27nvshmemi_transfer_amo_fetchIyET_PvS0_S0_i14nvshmemi_amo_t",
         "_Z27nvshmemi_transfer_amo_fetchIyET_PvS0_S0_i14nvshmemi_amo_t"},
        {"_Z23nvshmemi_transfer_rma_pI13__nv_bfloat16EvPvT_i", "_Z23nvshmemi_transfer_rma_pI13__nv_bfloat16EvPvT_i"},
        {"_Z21nvshmemi_transfer_rmaIL13threadgroup_t3EL13nvshmemi_op_t1EEvPvS2_mi",
         "_Z21nvshmemi_transfer_rmaIL13threadgroup_t3EL13nvshmemi_op_t1EEvPvS2_mi"},
        {"y_nvshmemi_transfer_y", "y_nvshmemi_transfer_y"},
        {"_Z99nvshmemi_transfer_x", "_Z99nvshmemi_transfer_x"},
        {"_Znvshmemi_transfer_I9", "_Znvshmemi_transfer_I9"},
    };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char text[256];
        strcpy(text, names[i][0]);
        its_asm_mend_names(text);
        assert_string_equal(text, names[i][1]);
    }
}

static void test_own_names(void **state) {
    (void)state;
    static const char *const wanted[] = {"nvshmem_sync_all", "nvshmemx_barrier_block"};
    static const char *const texts[][2] = {
        {".func _ZN41_INTERNAL_00000000_10_nvshmem_cu_2414a4d916nvshmem_sync_allEv()\n", ".func nvshmem_sync_all()\n"},
        {"(r) _ZN13_INTERNAL_a_b22nvshmemx_barrier_blockEi(.param .b32 _ZN13_INTERNAL_a_b22nvshmemx_barrier_blockEi_param_0)",
         "(r) nvshmemx_barrier_block(.param .b32 nvshmemx_barrier_block_param_0)"},
        /* not asked for; another name that begins so; no name of this form; cut off */
        {"_ZN13_INTERNAL_a_b15nvshmem_my_pe_yEv", "_ZN13_INTERNAL_a_b15nvshmem_my_pe_yEv"},
        {"_ZN13_INTERNAL_a_b18nvshmem_sync_all_bEv", "_ZN13_INTERNAL_a_b18nvshmem_sync_all_bEv"},
        {"x_ZN13_INTERNAL_a_b16nvshmem_sync_allEv", "x_ZN13_INTERNAL_a_b16nvshmem_sync_allEv"},
        {"_ZN13_INTERNAL_a_b16nvshmem_sync_allLv", "_ZN13_INTERNAL_a_b16nvshmem_sync_allLv"},
        {"_ZN999_INTERNAL_a", "_ZN999_INTERNAL_a"},
        {"_ZN13_INTERNAL_a_b99nvshmem_sync_allE", "_ZN13_INTERNAL_a_b99nvshmem_sync_allE"},
        {"_ZN", "_ZN"},
        {"", ""},
    };
    its_context *ctx = its_context_new(NULL);
    its_buffer out;
    its_buffer_init(&out, ctx);
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        out.size = 0;
        its_asm_own_names(&out, texts[i][0], wanted, 2);
        assert_string_equal(out.data, texts[i][1]);
    }
    its_buffer_free(&out);
    its_context_free(ctx);
}

/* Without a network its ways are traps; what is behind every wait is no way, it orders. The rest stays. */
static void test_p2p(void **state) {
    (void)state;
    static const char *const texts[][2] = {
        {".extern .func _Z23nvshmemi_transfer_fenceIL13threadgroup_t0EEvv\n()\n;\n.visible",
         ".func _Z23nvshmemi_transfer_fenceIL13threadgroup_t0EEvv\n()\n{\n\ttrap;\n\tret;\n}\n.visible"},
        {".extern .func _Z36nvshmemi_transfer_syncapi_update_memv\n()\n;\n",
         ".func _Z36nvshmemi_transfer_syncapi_update_memv\n()\n{\n\tfence.acq_rel.sys;\n\tret;\n}\n"},
        {".extern .const .align 8 .b8 nvshmemi_device_state_d[776];",
         ".weak .const .align 8 .b8 nvshmemi_device_state_d[776];"},
        {".extern .func (.param .b32 r) vprintf(.param .b64 a, .param .b64 b);\n",
         ".extern .func (.param .b32 r) vprintf(.param .b64 a, .param .b64 b);\n"},
        {".extern .func nvshmemi_transfer_", ".extern .func nvshmemi_transfer_"},
        {"", ""},
    };
    its_context *ctx = its_context_new(NULL);
    its_buffer out;
    its_buffer_init(&out, ctx);
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        out.size = 0;
        its_asm_p2p(&out, texts[i][0]);
        its_buffer_char(&out, 0);
        assert_string_equal(out.data, texts[i][1]);
    }
    its_buffer_free(&out);
    its_context_free(ctx);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_assemble), cmocka_unit_test(test_memory),    cmocka_unit_test(test_try_nvshmem),
        cmocka_unit_test(test_refusals), cmocka_unit_test(test_absent),    cmocka_unit_test(test_log),
        cmocka_unit_test(test_names),    cmocka_unit_test(test_own_names), cmocka_unit_test(test_p2p),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
