/*
 * The linker's limit for waits, run: a wait that takes too long traps and its record says what it was, for each way of
 * comparing; one that ends does not.
 */
#include "kit.h"

#include "intarsia/link.h"

/* Links `body` with the limit and loads what comes out. */
static void load_limited(kit *k, const char *body) {
    char *text = malloc(strlen(KIT_HEAD) + strlen(body) + 1);
    assert_non_null(text);
    strcat(strcpy(text, KIT_HEAD), body);
    its_link_input input = {.options = {.limit_waits = true}};
    its_linked *linked = NULL;
    its_status status = its_ptx_parse(k->ctx, "wait.ptx", text, strlen(text), &input.main);
    if (status == ITS_OK) status = its_link(k->ctx, &input, &linked);
    if (status == ITS_OK) status = its_sim_program_new(k->ctx, &k->machine, its_linked_module(linked), &k->program);
    if (status != ITS_OK) kit_show(k);
    assert_int_equal(status, ITS_OK);
    its_linked_free(linked);
    its_module_free(input.main);
    free(text);
}

static void *variable(kit *k, const char *name) {
    uint64_t address = 0;
    size_t size = 0;
    assert_true(its_sim_program_variable(k->program, name, &address, &size));
    return (void *)(uintptr_t)address;
}

static void set_limit(kit *k, uint64_t nanoseconds, const uint64_t *record) {
    uint64_t state[4] = {nanoseconds, kit_address(record), 77, 0};
    memcpy(variable(k, ITS_WAIT_STATE), state, sizeof state);
}

#define KERNEL(wait)                                                             \
    ".file 1 \"app-device.cu\"\n"                                                \
    ".visible .entry k(.param .u64 p) {\n"                                       \
    ".reg .pred %p<8>; .reg .b16 %h<4>; .reg .b32 %r<8>; .reg .b64 %a, %l<4>;\n" \
    ".loc 1 40 1\nld.param.u64 %a, [p];\nadd.u64 %a, %a, 8;\n" wait ".loc 1 50 1\nret;\n}\n"

typedef struct expectation {
    const char *body, *line; /* of the table */
    uint64_t enough;         /* a value at +8 that ends the wait */
    uint64_t seen, expected;
} expectation;

static const expectation cases[] = {
    {KERNEL(".loc 1 41 7\nL: ld.volatile.global.u32 %r1, [%a];\nsetp.ne.u32 %p1, %r1, 3;\n@%p1 bra L;\n"),
     "k\tapp-device.cu:41\teq\tu32\n", 3, 0x90000002, 3},
    {KERNEL(
         ".loc 1 42 7\nL: ld.acquire.sys.global.u32 %r1, [%a];\nsetp.ge.s32 %p1, %r1, 0;\n@%p1 bra M;\nbra L;\nM:\n"),
     "k\tapp-device.cu:42\tge\ts32\n", 5, 0xffffffff90000002, 0},
    {KERNEL(
         "mov.u64 %l2, 9;\n.loc 1 43 7\nL: ld.relaxed.sys.global.u64 %l1, [%a];\nsetp.gt.u64 %p1, %l2, %l1;\n@!%p1 bra M;\n"
         "nanosleep.u32 20;\nbra.uni L;\nM:\n"),
     "k\tapp-device.cu:43\tge\tu64\n", UINT64_C(0x1000000000), 2, 9},
    {KERNEL(".loc 1 44 7\nL: ld.volatile.global.u16 %h1, [%a];\nsetp.eq.u16 %p1, %h1, 2;\n@%p1 bra L;\n"),
     "k\tapp-device.cu:44\tne\tu16\n", 4, 2, 2},
    {KERNEL(
         ".loc 1 45 7\nL: atom.global.cas.b32 %r1, [%a], 0, 0;\nsetp.ne.u32 %p1, %r1, 1;\nsetp.ne.and.u32 %p2, %r1, 2, %p1;\n"
         "setp.ne.or.u32 %p3, %r2, %r2, %p2;\n@%p3 bra L;\n"),
     "k\tapp-device.cu:45\t?\tu32\n", 1, 0x90000002, 1},
    {KERNEL(".loc 1 46 7\nL: ld.volatile.global.u64 %l1, [%a];\nshr.u64 %l2, %l1, 63;\ncvt.u32.u64 %r1, %l2;\n"
            "setp.eq.u32 %p1, %r1, 0;\n@%p1 bra L;\n"),
     "k\tapp-device.cu:46\tne\tu32\n", UINT64_C(1) << 63, 0, 0},
};

/* What is in memory while the wait goes on: nothing of the above ends at it. */
static uint64_t not_enough(const expectation *e) {
    if (strstr(e->line, "u16")) return 2;
    return strstr(e->line, "u64") ? 2 : 0x90000002;
}

static void test_too_long(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const expectation *e = &cases[i];
        kit k;
        kit_open(&k);
        load_limited(&k, cases[i].body);
        uint64_t *memory = kit_alloc(&k, 64), *record = kit_alloc(&k, ITS_WAIT_WORDS * 8);
        memory[1] = not_enough(e);
        set_limit(&k, 2000000, record);
        const kit_launch launch = {.entry = "k", .grid = 3, .block = 2, .params = {kit_address(memory)}};
        assert_int_equal(kit_make_grid(&k, &launch), ITS_OK);
        its_sim_progress end = kit_finish(&k, 10000, UINT64_MAX); /* until the time is over, however often it polls */
        assert_int_equal(end, ITS_SIM_FAULT);
        assert_string_equal(variable(&k, ITS_WAIT_TABLE), e->line);
        assert_int_equal(record[ITS_WAIT_WRITTEN], 1);
        assert_int_equal(record[ITS_WAIT_MODULE], 77);
        assert_int_equal(record[ITS_WAIT_NUMBER], 0);
        assert_int_equal(record[ITS_WAIT_SEEN], e->seen);
        assert_int_equal(record[ITS_WAIT_EXPECTED], e->expected);
        assert_int_equal(record[ITS_WAIT_ADDRESS], kit_address(memory + 1));
        assert_true(record[ITS_WAIT_CTA] < 3 && record[ITS_WAIT_THREAD] < 2);
        assert_int_equal(record[ITS_WAIT_CTA + 1], 0);
        kit_unload(&k);
        kit_free(&k, memory);
        kit_free(&k, record);
        kit_close(&k);
    }
}

static void test_ends(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        kit k;
        kit_open(&k);
        load_limited(&k, cases[i].body);
        uint64_t *memory = kit_alloc(&k, 64), *record = kit_alloc(&k, ITS_WAIT_WORDS * 8);
        memory[1] = cases[i].enough;
        set_limit(&k, 0, record);
        kit_run(&k, (kit_launch){.entry = "k", .grid = 3, .block = 2, .params = {kit_address(memory)}});
        assert_int_equal(record[ITS_WAIT_WRITTEN], 0);
        kit_unload(&k);
        kit_free(&k, memory);
        kit_free(&k, record);
        kit_close(&k);
    }
}

/*
 * The time counts from the beginning of each wait, not of the first. The kernel spends more than the limit in between.
 */
static void test_each_begins_anew(void **state) {
    (void)state;
    kit k;
    kit_open(&k);
    load_limited(&k, ".visible .entry k(.param .u64 p) {\n"
                     ".reg .pred %p<8>; .reg .b32 %r<8>; .reg .b64 %a, %t<4>;\n"
                     "ld.param.u64 %a, [p];\nmov.u32 %r3, 0;\n"
                     "ROUND:\nmov.u32 %r2, 0;\n"
                     "L: ld.volatile.global.u32 %r1, [%a];\nadd.u32 %r2, %r2, 1;\nsetp.lt.u32 %p1, %r2, 2;\n"
                     "@%p1 bra L;\n"
                     "mov.u64 %t1, %globaltimer;\n"
                     "PAUSE: mov.u64 %t2, %globaltimer;\nsub.u64 %t2, %t2, %t1;\nsetp.lt.u64 %p1, %t2, 700000000;\n"
                     "@%p1 bra PAUSE;\n"
                     "st.global.u32 [%a+4], %r3;\nadd.u32 %r3, %r3, 1;\nsetp.lt.u32 %p2, %r3, 2;\n@%p2 bra ROUND;\n"
                     "ret;\n}\n");
    uint64_t *memory = kit_alloc(&k, 64), *record = kit_alloc(&k, ITS_WAIT_WORDS * 8);
    set_limit(&k, 600000000, record);
    kit_run(&k, (kit_launch){.entry = "k", .grid = 1, .block = 1, .params = {kit_address(memory)}});
    assert_int_equal(((uint32_t *)memory)[1], 1);
    kit_unload(&k);
    kit_free(&k, memory);
    kit_free(&k, record);
    kit_close(&k);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_too_long),
        cmocka_unit_test(test_ends),
        cmocka_unit_test(test_each_begins_anew),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
