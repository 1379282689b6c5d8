/*
 * The NVSHMEM device library: every call of the device API, compiled, linked and run on several PEs, with calls inlined
 * and as calls; and what happens when a call makes no sense. The kernels are in tests/sim/nvshmem.
 */
#include "../../device/sim/state.h"
#include "../pes.h"
#include "intarsia/cc.h"
#include "intarsia/link.h"
#include "sim/backend.h"
#include "sim/nvshmem_library.h"

enum { HEAP = 4096, SIGNALS = 64, THREADS = 64 };

#define expect(condition) PE_EXPECT(s->ctx, s->number, condition)

/* -- the linked kernels, made once and handed to the PEs by fork -------------------------------------------------- */

typedef struct program {
    char *text;
    size_t size;
} program;

static program inlined, with_calls, meetings, meetings_with_calls;

static its_module *compile(its_context *ctx, const char *path, const char *option) {
    its_cc_input input = {.path = path, .arch = "sm_80", .options = &option, .n_options = option ? 1 : 0};
    its_unit *unit = NULL;
    its_module *module = NULL;
    if (its_cc(ctx, &input, &unit) != ITS_OK ||
        its_ptx_parse(ctx, "calls.ptx", unit->ptx, unit->ptx_size, &module) != ITS_OK)
        show(ctx);
    if (unit) its_unit_free(unit);
    assert_non_null(module);
    return module;
}

static program link_program(its_context *ctx, const char *path, const char *option, its_module *library,
                            bool no_inline) {
    its_module *main = compile(ctx, path, option);
    its_link_input input = {.main = main, .libraries = &library, .n_libraries = 1, .options = {.no_inline = no_inline}};
    its_linked *linked = NULL;
    program out = {NULL, 0};
    if (its_link(ctx, &input, &linked) != ITS_OK) show(ctx);
    assert_non_null(linked);
    char *text;
    assert_int_equal(its_ptx_print(its_linked_module(linked), &text, &out.size), ITS_OK);
    out.text = malloc(out.size + 1);
    memcpy(out.text, text, out.size + 1);
    its_free(ctx, text);
    its_linked_free(linked);
    its_module_free(main);
    return out;
}

static int make_programs(void **state) {
    (void)state;
    its_context *ctx = its_context_new(NULL);
    its_module *library = NULL;
    if (its_sim_nvshmem_library(ctx, "sm_80", &library) != ITS_OK) show(ctx);
    assert_non_null(library);
    static const char calls[] = ITS_SOURCE_DIR "/tests/sim/nvshmem/calls.cu";
    static const char others[] = ITS_SOURCE_DIR "/tests/sim/nvshmem/meetings.cu";
    inlined = link_program(ctx, calls, "-DSOME_TYPES", library, false);
    with_calls = link_program(ctx, calls, NULL, library, true);
    meetings = link_program(ctx, others, NULL, library, false);
    meetings_with_calls = link_program(ctx, others, NULL, library, true);
    its_module_free(library);
    its_context_free(ctx);
    return 0;
}

static int free_programs(void **state) {
    (void)state;
    free(inlined.text);
    free(with_calls.text);
    free(meetings.text);
    free(meetings_with_calls.text);
    return 0;
}

/* -- PEs ----------------------------------------------------------------------------------------------------------- */

typedef struct session {
    its_context *ctx;
    its_backend *backend;
    its_sim_backend *sim;
    its_module *module;
    its_loaded *loaded;
    uint32_t number, n;
    uint64_t heap, signals, errors;
} session;

typedef void pe_body(session *s, const void *user);

static void open_session(session *s, const program *p) {
    const its_backend_ops *ops = s->backend->ops;
    ok(its_sim_backend_of(s->backend, &s->sim));
    ok(its_ptx_parse(s->ctx, "linked.ptx", p->text, p->size, &s->module));
    ok(ops->load(s->backend, s->module, &s->loaded));
    ok(ops->alloc(s->backend, ITS_MEMORY_SYMMETRIC, HEAP, 0, &s->heap));
    ok(ops->alloc(s->backend, ITS_MEMORY_SYMMETRIC, SIGNALS * 8, 0, &s->signals));
    ok(ops->alloc(s->backend, ITS_MEMORY_DEVICE, 4, 0, &s->errors));
    ok(ops->fill(s->backend, s->signals, 0, SIGNALS * 8, 0));
    ok(ops->fill(s->backend, s->errors, 0, 4, 0));
    ok(ops->barrier(s->backend));
}

typedef struct pe_job {
    const program *program;
    pe_body *body;
    const void *user;
} pe_job;

static void run_pe(int world, uint32_t number, uint32_t n, const void *user) {
    const pe_job *job = user;
    session me = {.ctx = its_context_new(NULL), .number = number, .n = n}, *s = &me;
    ok(its_sim_open(s->ctx, world, number, NULL, &s->backend));
    open_session(s, job->program);
    job->body(s, job->user);
    its_module_free(s->module);
    s->backend->ops->close(s->backend);
    its_context_free(s->ctx);
}

static void run_world(uint32_t n, const program *p, pe_body *body, const void *user) {
    run_pes(n, 1 << 20, run_pe, &(pe_job){p, body, user});
}

static void launch(session *s, const char *kernel, const void *const *params, uint32_t n_params) {
    its_function *function;
    ok(s->backend->ops->function(s->backend, s->loaded, kernel, &function));
    its_launch what = {.grid = {1, 1, 1}, .block = {THREADS, 1, 1}, .params = params, .n_params = n_params};
    ok(s->backend->ops->launch(s->backend, function, &what));
}

static void launch_usual(session *s, const char *kernel) {
    const void *params[] = {&s->heap, &s->signals, &s->errors};
    launch(s, kernel, params, 3);
}

static void check_errors(session *s, const char *kernel) {
    uint32_t step = 0;
    ok(s->backend->ops->copy(s->backend, ITS_COPY_FROM_DEVICE, s->errors, (uint64_t)(uintptr_t)&step, sizeof step, 0));
    if (step) fprintf(stderr, "PE %u of %u: kernel %s: step %u\n", s->number, s->n, kernel, step);
    expect(step == 0);
}

/* -- every call ---------------------------------------------------------------------------------------------------- */

static bool is_check(const char *name) {
    static const char *const prefixes[] = {"rma_", "wait_", "add_", "swap_", "bits_", "who_", "signals_", "barriers"};
    for (size_t i = 0; i < sizeof prefixes / sizeof *prefixes; i++)
        if (strncmp(name, prefixes[i], strlen(prefixes[i])) == 0) return true;
    return false;
}

/* `user` is how many there should be. */
static void all_kernels(session *s, const void *user) {
    int count = 0;
    for (its_func *f = NULL; (f = its_module_next_func(s->module, f));) {
        if (!(f->symbol->flags & ITS_SYM_ENTRY) || !is_check(f->symbol->name->text)) continue;
        const char *name = f->symbol->name->text;
        launch_usual(s, name);
        check_errors(s, name);
        ok(s->backend->ops->barrier(s->backend));
        count++;
    }
    expect(count == *(const int *)user);
}

static void test_inlined(void **state) {
    (void)state;
    static const int count = 6 + 2 + 1 + 1 + 1 + 3;
    run_world(1, &inlined, all_kernels, &count);
    run_world(4, &inlined, all_kernels, &count);
}

static void test_with_calls(void **state) {
    (void)state;
    static const int count = 31 + 14 + 12 + 14 + 7 + 3;
    run_world(1, &with_calls, all_kernels, &count);
    run_world(3, &with_calls, all_kernels, &count);
}

/* -- barriers of device, stream and host meet ---------------------------------------------------------------------- */

static void meet(session *s, const void *user) {
    (void)user;
    for (int round = 0; round < 20; round++) {
        switch ((s->number + (uint32_t)round) % 3) {
        case 0:
            launch_usual(s, "meet_once");
            ok(s->backend->ops->wait(s->backend));
            break;
        case 1:
            ok(its_sim_barrier_on_stream(s->sim, 0, 0));
            ok(s->backend->ops->wait(s->backend));
            break;
        default:
            ok(s->backend->ops->barrier(s->backend));
        }
    }
}

static void test_meet(void **state) {
    (void)state;
    run_world(3, &meetings, meet, NULL);
}

static void teams(session *s, const void *user) {
    (void)user;
    int32_t team, other;
    uint32_t half = s->n / 2;
    bool upper = s->number >= half;
    ok(its_sim_team_new(s->sim, (its_team){0, 1, half}, &team));
    ok(its_sim_team_new(s->sim, (its_team){half, 1, s->n - half}, &other));
    int32_t mine = upper ? other : team;
    int32_t number = (int32_t)(s->number - (upper ? half : 0)), size = (int32_t)(upper ? s->n - half : half);
    const void *params[] = {&mine, &number, &size, &s->errors};
    launch(s, "meet_team", params, 4);
    check_errors(s, "meet_team");
    ok(s->backend->ops->barrier(s->backend));
}

static void test_teams(void **state) {
    (void)state;
    run_world(4, &meetings, teams, NULL);
}

/* -- mistakes ------------------------------------------------------------------------------------------------------ */

typedef struct mistake {
    const char *kernel, *text;
} mistake;

static bool is_told(its_context *ctx, const char *text) {
    for (size_t i = 0; i < its_diag_count(ctx); i++)
        if (strstr(its_diag_get(ctx, i)->message, text)) return true;
    return false;
}

/* PE 0 makes the mistake; the others wait for it, and are told of it. */
static void make_mistake(session *s, const void *user) {
    const mistake *it = user;
    if (s->number == 0) {
        launch_usual(s, it->kernel);
        expect(s->backend->ops->wait(s->backend) == ITS_ERR_FAULT);
        expect(is_told(s->ctx, it->text));
        expect(s->backend->ops->wait(s->backend) == ITS_ERR_FAULT);
        return;
    }
    expect(its_sim_barrier(s->sim, 0, true) == ITS_ERR_FAULT);
    expect(is_told(s->ctx, "PE 0 faulted: ") && is_told(s->ctx, it->text));
}

static void test_mistakes(void **state) {
    (void)state;
    static const mistake mistakes[] = {
        {"wrong_address", "nvshmem_int_p to PE 1: 0x"},
        {"wrong_pe", "nvshmemx_putmem_nbi_block at address 0x"},
        {"wrong_compare", "nvshmem_long_wait_until: 17 is no comparison"},
        {"wrong_signal", "nvshmemx_signal_op: 3 is no signal operation"},
        {"wrong_team", "nvshmemx_team_sync_warp: PE 0 belongs to no team 30"},
        {"wrong_barrier", "nvshmem_barrier_all: PE 0 entered a barrier of team 0 while it was in one"},
        {"beyond_block", "8 bytes"},
    };
    for (size_t i = 0; i < sizeof mistakes / sizeof *mistakes; i++) {
        run_world(2, &meetings, make_mistake, &mistakes[i]);
        run_world(2, &meetings_with_calls, make_mistake, &mistakes[i]);
    }
}

static void test_names(void **state) {
    (void)state;
    static const struct {
        uint32_t call;
        const char *name;
    } cases[] = {
#define CALL(op, type, group, nbi) \
    INTARSIA_SIM_CALL(INTARSIA_SIM_OP_##op, INTARSIA_SIM_TYPE_##type, INTARSIA_SIM_##group, nbi)
        {CALL(P, uint64, THREAD, 0), "nvshmem_uint64_p"},
        {CALL(PUT, mem, BLOCK, 1), "nvshmemx_putmem_nbi_block"},
        {CALL(GET, 128, WARP, 0), "nvshmemx_get128_warp"},
        {CALL(PUT_SIGNAL, mem, THREAD, 0), "nvshmem_putmem_signal"},
        {CALL(PUT_SIGNAL, 8, BLOCK, 1), "nvshmemx_put8_signal_nbi_block"},
        {CALL(PUT_SIGNAL, half, WARP, 1), "nvshmemx_half_put_signal_nbi_warp"},
        {CALL(IPUT, 16, THREAD, 0), "nvshmem_iput16"},
        {CALL(SIGNAL_OP, none, THREAD, 0), "nvshmemx_signal_op"},
        {CALL(SIGNAL_WAIT_UNTIL, none, THREAD, 0), "nvshmem_signal_wait_until"},
        {CALL(WAIT_UNTIL_ALL_VECTOR, size, THREAD, 0), "nvshmem_size_wait_until_all_vector"},
        {CALL(ATOMIC_COMPARE_SWAP, ptrdiff, THREAD, 0), "nvshmem_ptrdiff_atomic_compare_swap"},
        {CALL(BARRIER_ALL, none, BLOCK, 0), "nvshmemx_barrier_all_block"},
        {CALL(TEAM_SYNC, none, THREAD, 0), "nvshmem_team_sync"},
        {0xFFFFFFFF, "a call"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char name[ITS_NVSHMEM_NAME];
        its_nvshmem_call_name(cases[i].call, name);
        assert_string_equal(name, cases[i].name);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_names), cmocka_unit_test(test_inlined), cmocka_unit_test(test_with_calls),
        cmocka_unit_test(test_meet),  cmocka_unit_test(test_teams),   cmocka_unit_test(test_mistakes),
    };
    return cmocka_run_group_tests(tests, make_programs, free_programs);
}
