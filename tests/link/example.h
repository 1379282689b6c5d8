/*
 * A kernel that calls two regions and a function, for the linker's tests: each gets it parsed and ready to be linked.
 */
#ifndef TESTS_LINK_EXAMPLE_H
#define TESTS_LINK_EXAMPLE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "intarsia/link.h"

#define UNIT "5f0c2a9b71d3e846"
#define OTHER "0123456789abcdef"
#define HEAD ".version 8.0\n.target sm_80\n.address_size 64\n"

static const char main_text[] =
    HEAD ".extern .func (.param .b32 r) nvshmem_my_pe();\n"
         ".func (.param .b32 r) twice(.param .b32 a)\n{\n.reg .b32 x;\nld.param.b32 x, [a];\nadd.u32 x, x, x;\n"
         "st.param.b32 [r], x;\nret;\n}\n"
         ".visible .entry k(.param .u64 p)\n{\n.reg .b32 %r<6>;\n.reg .b64 %rd1;\nld.param.u64 %rd1, [p];\n"
         "intarsia.call (%r1), " UNIT "::f, (7);\nintarsia.call (%r2), " OTHER "::g, ();\n"
         "intarsia.call (%r3), " UNIT "::f, (%r1);\ncall (%r4), twice, (%r3);\n"
         "add.u32 %r4, %r4, %r2;\nst.global.u32 [%rd1], %r4;\nret;\n}\n";

static const char region_text[] =
    HEAD ".extern .func (.param .b32 r) nvshmem_my_pe();\n"
         ".visible .func (.param .b32 r) f(.param .b32 a)\n{\n.reg .b32 x, y;\n.local .align 4 .b8 d[8];\n"
         ".shared .b32 s[4];\nld.param.b32 x, [a];\ncall (y), nvshmem_my_pe;\nadd.u32 x, x, y;\nst.local.u32 [d], x;\n"
         "st.shared.u32 [s], x;\nld.local.u32 x, [d];\nst.param.b32 [r], x;\nret;\n}\n";

static const char other_text[] = HEAD ".visible .func g() { ret; }\n";

static inline its_module *parse(its_context *ctx, const char *name, const char *text) {
    its_module *module;
    if (its_ptx_parse(ctx, name, text, strlen(text), &module) == ITS_OK) return module;
    fail_msg("%s", its_diag_render(ctx, false));
    return NULL;
}

typedef struct example {
    its_context *ctx;
    its_module *main, *region, *other;
    its_link_region regions[2];
    const char *deferred[1];
    its_link_input input;
    its_linked *linked;
} example;

static inline int setup(void **state) {
    example *e = calloc(1, sizeof *e);
    e->ctx = its_context_new(NULL);
    e->main = parse(e->ctx, "main.ptx", main_text);
    e->region = parse(e->ctx, "region.ptx", region_text);
    e->other = parse(e->ctx, "other.ptx", other_text);
    e->regions[0] = (its_link_region){UNIT, e->region, 0, NULL};
    e->regions[1] = (its_link_region){OTHER, e->other, 0, NULL};
    e->deferred[0] = "nvshmem";
    e->input = (its_link_input){.main = e->main, .regions = e->regions, .n_regions = 2};
    e->input.options.deferred = e->deferred;
    e->input.options.n_deferred = 1;
    *state = e;
    return 0;
}

static inline int teardown(void **state) {
    example *e = *state;
    its_linked_free(e->linked);
    its_module_free(e->main);
    its_module_free(e->region);
    its_module_free(e->other);
    its_context_free(e->ctx);
    free(e);
    return 0;
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

#endif
