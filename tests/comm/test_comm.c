/*
 * Communicators and <intarsia/barrier.h> on several simulated PEs: many rounds with the data checked in each, the order
 * in which a communicator is made, teams that overlap, signals, and what is told of mistakes. Kernels: kernels.cu.
 */
#include "../../device/intarsia/comm.h"
#include "../pes.h"
#include "intarsia/cc.h"
#include "intarsia/comm.h"
#include "intarsia/link.h"
#include "intarsia/sim.h"

enum { BLOCK_GROUP = 2, WARP_GROUP = 1, THREAD_GROUP = 0 };

typedef struct session {
    its_context *ctx;
    its_backend *backend;
    its_module *module;
    its_loaded *loaded;
    uint32_t number, n;
} session;

typedef void pe_body(session *s, const void *user);

#define expect(condition) PE_EXPECT(s->ctx, s->number, condition)

/* -- the kernels, compiled once and handed to the PEs by fork ------------------------------------------------------ */

static char *ptx;
static size_t ptx_size;

static int compile(void **state) {
    (void)state;
    its_context *ctx = its_context_new(NULL);
    its_cc_input input = {.path = ITS_SOURCE_DIR "/tests/comm/kernels.cu", .arch = "sm_80"};
    its_unit *unit = NULL;
    if (its_cc(ctx, &input, &unit) != ITS_OK) show(ctx);
    assert_non_null(unit);
    ptx_size = unit->ptx_size;
    ptx = malloc(ptx_size + 1);
    memcpy(ptx, unit->ptx, ptx_size + 1);
    its_unit_free(unit);
    its_context_free(ctx);
    return 0;
}

static int forget(void **state) {
    (void)state;
    free(ptx);
    return 0;
}

/* -- PEs ----------------------------------------------------------------------------------------------------------- */

typedef struct pe_job {
    pe_body *body;
    const void *user;
} pe_job;

static void run_pe(int world, uint32_t number, uint32_t n, const void *user) {
    const pe_job *job = user;
    session me = {.ctx = its_context_new(NULL), .number = number, .n = n}, *s = &me;
    ok(its_sim_open(s->ctx, world, number, NULL, &s->backend));
    ok(its_ptx_parse(s->ctx, "kernels.ptx", ptx, ptx_size, &s->module));
    ok(s->backend->ops->load(s->backend, s->module, &s->loaded));
    job->body(s, job->user);
    its_module_free(s->module);
    s->backend->ops->close(s->backend);
    its_context_free(s->ctx);
}

static void run_world(uint32_t n, pe_body *body, const void *user) {
    run_pes(n, 8 << 20, run_pe, &(pe_job){body, user});
}

static void nap(unsigned ms) {
    struct timespec time = {ms / 1000, (long)(ms % 1000) * 1000000};
    nanosleep(&time, NULL);
}

static void launch(session *s, const char *kernel, uint32_t grid, uint32_t block, const void *const *params,
                   uint32_t n_params) {
    its_function *function;
    ok(s->backend->ops->function(s->backend, s->loaded, kernel, &function));
    its_launch what = {.grid = {grid, 1, 1}, .block = {block, 1, 1}, .params = params, .n_params = n_params};
    ok(s->backend->ops->launch(s->backend, function, &what));
}

static uint64_t alloc(session *s, its_memory kind, size_t size) {
    uint64_t address;
    ok(s->backend->ops->alloc(s->backend, kind, size, 0, &address));
    ok(s->backend->ops->fill(s->backend, address, 0, size, 0));
    ok(s->backend->ops->barrier(s->backend));
    return address;
}

static uint64_t read_word(session *s, uint64_t address, size_t size) {
    uint64_t value = 0;
    ok(s->backend->ops->copy(s->backend, ITS_COPY_FROM_DEVICE, address, (uint64_t)(uintptr_t)&value, size, 0));
    return value;
}

static its_comm *new_comm(session *s, uint32_t n_barriers, uint32_t n_signals, const uint32_t *team, uint32_t n_team) {
    its_comm *comm;
    its_comm_options options = {n_barriers, n_signals, team, n_team};
    ok(its_comm_new(s->backend, &options, &comm));
    return comm;
}

static bool is_told(its_context *ctx, const char *text) {
    for (size_t i = 0; i < its_diag_count(ctx); i++)
        if (strstr(its_diag_get(ctx, i)->message, text)) return true;
    return false;
}

/* -- rounds -------------------------------------------------------------------------------------------------------- */

typedef struct rounds {
    uint32_t n_rounds, grid, block;
    int32_t group, split;
} rounds;

/* The last PE works longer between arrive and wait. */
static void run_rounds(session *s, its_comm *comm, const rounds *it) {
    const its_comm_info *info = its_comm_query(comm);
    uint64_t box = alloc(s, ITS_MEMORY_SYMMETRIC, (size_t)2 * it->grid * it->block * info->size * 8);
    uint64_t errors = alloc(s, ITS_MEMORY_DEVICE, 4);
    int32_t work = s->number == s->n - 1 ? 20 : 0;
    const void *params[] = {&info->device, &box, &errors, &it->n_rounds, &it->group, &it->split, &work};
    if (info->rank != ITS_COMM_NO_RANK) launch(s, "rounds", it->grid, it->block, params, 7);
    expect(read_word(s, errors, 4) == 0);
    if (info->rank != ITS_COMM_NO_RANK) {
        uint64_t states = read_word(s, info->device + offsetof(struct intarsia_comm, states), 8);
        for (uint32_t i = 0; i < it->grid; i++) expect(read_word(s, states + i * 16, 8) == it->n_rounds);
    }
    ok(s->backend->ops->barrier(s->backend));
    ok(s->backend->ops->free(s->backend, ITS_MEMORY_SYMMETRIC, box));
}

static void many_rounds(session *s, const void *user) {
    const rounds *it = user;
    its_comm *comm = new_comm(s, it->grid, 0, NULL, 0);
    run_rounds(s, comm, it);
    ok(its_comm_free(comm));
}

static uint32_t scaled(uint32_t n_rounds) {
    const char *given = getenv("INTARSIA_TEST_ROUNDS");
    return given ? (uint32_t)strtoul(given, NULL, 10) : n_rounds;
}

static void test_split_rounds(void **state) {
    (void)state;
    run_world(2, many_rounds, &(rounds){scaled(300), 1, 64, BLOCK_GROUP, 1});
    run_world(3, many_rounds, &(rounds){scaled(60), 3, 32, BLOCK_GROUP, 1});
}

static void test_syncs(void **state) {
    (void)state;
    run_world(2, many_rounds, &(rounds){scaled(300), 1, 64, BLOCK_GROUP, 0});
    run_world(8, many_rounds, &(rounds){scaled(10), 1, 32, BLOCK_GROUP, 0});
}

static void test_groups(void **state) {
    (void)state;
    for (int32_t split = 0; split < 2; split++) {
        run_world(3, many_rounds, &(rounds){scaled(30), 2, 64, WARP_GROUP, split});
        run_world(3, many_rounds, &(rounds){scaled(30), 2, 64, THREAD_GROUP, split});
        run_world(5, many_rounds, &(rounds){scaled(10), 1, 2, BLOCK_GROUP, split}); /* fewer threads than PEs */
    }
    run_world(1, many_rounds, &(rounds){scaled(30), 1, 32, BLOCK_GROUP, 1});
}

/* -- the order in which a communicator is made --------------------------------------------------------------------- */

static its_status slow_fill(its_backend *backend, uint64_t address, uint8_t value, size_t size, its_stream stream);
static const its_backend_ops *real_ops;

static its_status slow_fill(its_backend *backend, uint64_t address, uint8_t value, size_t size, its_stream stream) {
    nap(300);
    return real_ops->fill(backend, address, value, size, stream);
}

/* PE 1 zeroes its block late. If the others went on before, their arrival would be wiped out, and PE 1 wait forever. */
static void make_slowly(session *s, const void *user) {
    (void)user;
    its_backend_ops slow = *s->backend->ops;
    real_ops = s->backend->ops;
    slow.fill = slow_fill;
    if (s->number == 1) s->backend->ops = &slow;
    its_comm *comm = new_comm(s, 2, 0, NULL, 0);
    s->backend->ops = real_ops;
    const its_comm_info *info = its_comm_query(comm);
    uint32_t index = 1;
    const void *params[] = {&info->device, &index};
    launch(s, "sync_once", 1, 32, params, 2);
    ok(s->backend->ops->wait(s->backend));
    ok(its_comm_free(comm));
}

static void test_zero_before_publish(void **state) {
    (void)state;
    run_world(3, make_slowly, NULL);
}

/* -- teams --------------------------------------------------------------------------------------------------------- */

/* Three communicators at once: all, the even PEs, and PEs 3, 1, 0, whose members also belong to the others. */
static void overlap(session *s, const void *user) {
    static const uint32_t even[] = {0, 2}, some[] = {3, 1, 0};
    its_comm *all = new_comm(s, 1, 0, NULL, 0), *half = new_comm(s, 1, 0, even, 2), *odd = new_comm(s, 1, 0, some, 3);
    const its_comm_info *info = its_comm_query(odd);
    expect(info->size == 3 && info->local_size == 3 && info->pes[0] == 3 && info->pes[2] == 0);
    static const uint32_t ranks[] = {2, 1, ITS_COMM_NO_RANK, 0};
    expect(info->rank == ranks[s->number] && info->local_rank == ranks[s->number]);
    run_rounds(s, odd, user);
    run_rounds(s, all, user);
    run_rounds(s, half, user);
    ok(its_comm_free(half));
    ok(its_comm_free(odd));
    ok(its_comm_free(all));
}

static void test_teams(void **state) {
    (void)state;
    run_world(4, overlap, &(rounds){10, 1, 32, BLOCK_GROUP, 1});
}

/* -- signals and pointers ------------------------------------------------------------------------------------------ */

static void pass_around(session *s, const void *user) {
    (void)user;
    its_comm *comm = new_comm(s, 0, 3, NULL, 0);
    uint64_t cell = alloc(s, ITS_MEMORY_SYMMETRIC, 8), total = alloc(s, ITS_MEMORY_DEVICE, 8), there;
    const void *params[] = {&its_comm_query(comm)->device, &cell, &total};
    launch(s, "ring", 1, 64, params, 3);
    ok(s->backend->ops->barrier(s->backend));
    if (s->number == 0) expect(read_word(s, total, 8) == s->n * (s->n + 1) / 2);
    uint32_t next = (s->number + 1) % s->n;
    ok(its_comm_peer(comm, cell, next, &there));
    expect(read_word(s, there, 8) == (next ? next * (next + 1) / 2 : s->n * (s->n + 1) / 2));
    expect(its_comm_peer(comm, cell, s->n, &there) == ITS_ERR_INPUT);
    ok(its_comm_free(comm));
}

static void test_signals(void **state) {
    (void)state;
    run_world(2, pass_around, NULL);
    run_world(4, pass_around, NULL);
}

/* -- mistakes ------------------------------------------------------------------------------------------------------ */

static void expect_refused(session *s, its_comm_options options, const char *text) {
    its_comm *comm = (its_comm *)s;
    expect(its_comm_new(s->backend, &options, &comm) == ITS_ERR_USAGE);
    expect(comm == NULL && is_told(s->ctx, text));
    its_diag_clear(s->ctx);
}

static void ask_for_nonsense(session *s, const void *user) {
    (void)user;
    static const uint32_t beyond[] = {0, 2}, same[] = {1, 1}, many[] = {0, 1, 0};
    expect_refused(s, (its_comm_options){0, 0, NULL, 0}, "a communicator without barriers and signals is of no use");
    expect_refused(s, (its_comm_options){ITS_COMM_MOST + 1, 0, NULL, 0},
                   "a communicator has 1048576 barriers and signals at most, not 1048577 and 0");
    expect_refused(s, (its_comm_options){1, 0, beyond, 0}, "a team has at least one PE");
    expect_refused(s, (its_comm_options){1, 0, beyond, 2}, "there is no PE 2 for the team; there are 2");
    expect_refused(s, (its_comm_options){1, 0, many, 3}, "a team of 3 PEs is larger than the world of 2");
    expect_refused(s, (its_comm_options){1, 0, same, 2}, "PE 1 is in the team twice, as rank 0 and as rank 1");
    its_comm *comm = new_comm(s, 4, 0, NULL, 0);
    ok(its_comm_check_index(comm, "k", 3, (uint32_t[]){4, 1, 1}));
    expect(its_comm_check_index(comm, "k", 5, (uint32_t[]){3, 2, 1}) == ITS_ERR_INPUT);
    expect(is_told(s->ctx, "kernel 'k' uses barrier 5 of a communicator that has 4; its grid is (3, 2, 1)"));
    ok(its_comm_free(comm));
    ok(its_comm_free(NULL));
}

static void test_nonsense(void **state) {
    (void)state;
    run_world(2, ask_for_nonsense, NULL);
}

typedef struct mistake {
    const char *kernel, *text;
} mistake;

/* PE 0 makes the mistake; PE 1 is told of it. */
static void make_mistake(session *s, const void *user) {
    const mistake *it = user;
    its_comm *comm = new_comm(s, 2, 3, NULL, 0);
    uint64_t cell = alloc(s, ITS_MEMORY_SYMMETRIC, 8);
    uint32_t index = 2;
    const void *with_index[] = {&its_comm_query(comm)->device, &index}, *plain[] = {with_index[0]},
               *with_cell[] = {with_index[0], &cell};
    if (s->number == 0) {
        bool indexed = strcmp(it->kernel, "sync_once") == 0, pointed = strcmp(it->kernel, "bad_pointer_peer") == 0;
        launch(s, it->kernel, 3, 64, indexed ? with_index : pointed ? with_cell : plain, indexed || pointed ? 2 : 1);
        expect(s->backend->ops->wait(s->backend) == ITS_ERR_FAULT);
    } else {
        expect(s->backend->ops->barrier(s->backend) == ITS_ERR_FAULT);
        expect(is_told(s->ctx, "PE 0 faulted: "));
    }
    expect(is_told(s->ctx, it->text));
}

static void test_mistakes(void **state) {
    (void)state;
    static const mistake mistakes[] = {
        {"sync_once", "intarsia_barrier_sync: there is no barrier 2, the communicator has 2 (CTA ("},
        {"sync_once", ", 0, 0) of a grid of (3, 1, 1), PE 0; the team is PEs 0, 1)"},
        {"two_arrives", "intarsia_barrier_arrive: two arrives at barrier 1 without a wait between them"},
        {"arrive_and_sync", "intarsia_barrier_sync: two arrives at barrier 1 without a wait between them"},
        {"lone_wait", "intarsia_barrier_wait: a wait at barrier 1 without an arrive before it"},
        {"bad_group", "intarsia_barrier_wait: 3 is no group of threads"},
        {"bad_order", "intarsia_barrier_wait: 4 is no order"},
        {"bad_peer", "intarsia_signal: there is no rank 2, the team has 2"},
        {"bad_signal", "intarsia_signal: there is no signal 9, the communicator has 3"},
        {"bad_signal_op", "intarsia_signal: 2 is no operation on a signal"},
        {"bad_wait_slot", "intarsia_signal_wait: there is no signal 3, the communicator has 3"},
        {"bad_compare", "intarsia_signal_wait: 6 is no comparison"},
        {"bad_pointer_peer", "intarsia_peer_ptr: there is no rank -1, the team has 2"},
    };
    for (size_t i = 0; i < sizeof mistakes / sizeof *mistakes; i++) run_world(2, make_mistake, &mistakes[i]);
}

static void use_after_free(session *s, const void *user) {
    (void)user;
    its_comm *comm = new_comm(s, 1, 0, NULL, 0);
    uint64_t device = its_comm_query(comm)->device;
    uint32_t index = 0;
    const void *params[] = {&device, &index};
    ok(its_comm_free(comm));
    ok(its_comm_free(new_comm(s, 1, 0, NULL, 0))); /* it does not take the place of the first one */
    launch(s, "sync_once", 1, 32, params, 2);
    expect(s->backend->ops->wait(s->backend) == ITS_ERR_FAULT);
    expect(is_told(s->ctx, "intarsia_barrier_sync: the communicator was freed"));
}

static void test_freed(void **state) {
    (void)state;
    run_world(1, use_after_free, NULL);
}

static void use_others(session *s, const void *user) {
    (void)user;
    static const uint32_t team[] = {1};
    its_comm *comm = new_comm(s, 1, 0, team, 1);
    uint32_t index = 0;
    const void *params[] = {&its_comm_query(comm)->device, &index};
    if (s->number != 0) return;
    launch(s, "sync_once", 1, 32, params, 2);
    expect(s->backend->ops->wait(s->backend) == ITS_ERR_FAULT);
    expect(is_told(s->ctx, "intarsia_barrier_sync: PE 0 is no member of the communicator's team"));
    expect(is_told(s->ctx, "the team is PE 1)"));
}

static void test_not_member(void **state) {
    (void)state;
    run_world(2, use_others, NULL);
}

/* PE 1 never comes to barrier 1: the table says who it is and which barrier. */
static void stay_away(session *s, const void *user) {
    (void)user;
    its_comm *comm = new_comm(s, 2, 0, NULL, 0);
    uint32_t index = 1;
    const void *params[] = {&its_comm_query(comm)->device, &index};
    if (s->number != 1) {
        launch(s, "sync_once", 1, 32, params, 2);
        expect(s->backend->ops->wait(s->backend) == ITS_ERR_FAULT);
        expect(is_told(s->ctx, "deadlock: ") && is_told(s->ctx, "barrier 1 "));
        expect(is_told(s->ctx, "PE 1 has not come: it arrived 0 times, not 1"));
    } else {
        expect(s->backend->ops->barrier(s->backend) == ITS_ERR_FAULT);
    }
}

static void test_never_arrives(void **state) {
    (void)state;
    run_world(3, stay_away, NULL);
}

static void wait_for_nobody(session *s, const void *user) {
    (void)user;
    its_comm *comm = new_comm(s, 1, 3, NULL, 0);
    const void *params[] = {&its_comm_query(comm)->device};
    launch(s, "lone_signal_wait", 1, 32, params, 1);
    expect(s->backend->ops->wait(s->backend) == ITS_ERR_FAULT);
    expect(is_told(s->ctx, "deadlock: ") && is_told(s->ctx, "0 in signal 2"));
}

static void test_signal_never_comes(void **state) {
    (void)state;
    run_world(1, wait_for_nobody, NULL);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_split_rounds),  cmocka_unit_test(test_syncs),
        cmocka_unit_test(test_groups),        cmocka_unit_test(test_zero_before_publish),
        cmocka_unit_test(test_teams),         cmocka_unit_test(test_signals),
        cmocka_unit_test(test_nonsense),      cmocka_unit_test(test_mistakes),
        cmocka_unit_test(test_freed),         cmocka_unit_test(test_not_member),
        cmocka_unit_test(test_never_arrives), cmocka_unit_test(test_signal_never_comes),
    };
    return cmocka_run_group_tests(tests, compile, forget);
}
