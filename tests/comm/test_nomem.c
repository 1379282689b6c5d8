/* Every allocation of making a communicator fails once: that is an error, and nothing of the host is lost. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "../heap.h"
#include "intarsia/comm.h"
#include "intarsia/sim.h"

static void test_every_allocation(void **state) {
    (void)state;
    test_heap heap = {0};
    its_allocator allocator = test_heap_allocator(&heap);
    its_context *ctx = its_context_new(&allocator);
    its_backend *backend;
    assert_int_equal(its_sim_open(ctx, -1, 0, NULL, &backend), ITS_OK);
    its_comm_options options = {.n_barriers = 3, .n_signals = 2};
    its_comm *comm = NULL;
    uint64_t tries = 0;
    for (its_status status = ITS_ERR_NOMEM; status != ITS_OK; tries++) {
        assert_true(tries < 500);
        its_diag_clear(ctx);
        test_heap_fail(&heap, tries + 1);
        status = its_comm_new(backend, &options, &comm);
        test_heap_fail(&heap, 0);
        if (status == ITS_OK) break;
        assert_int_equal(status, ITS_ERR_NOMEM);
        assert_null(comm);
        assert_true(its_diag_errors(ctx) > 0);
    }
    assert_in_range(tries, 4, 499); /* the communicator, its PEs, their places, the header */
    assert_int_equal(its_comm_query(comm)->n_barriers, 3);
    assert_int_equal(its_comm_free(comm), ITS_OK);
    backend->ops->close(backend);
    its_context_free(ctx);
    assert_int_equal(heap.held, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_every_allocation)};
    return cmocka_run_group_tests_name("comm/nomem", tests, NULL, NULL);
}
