/* What the tests of streams share: PEs that are processes and run one body, and functions of the host. */
#ifndef TESTS_SIM_STREAMS_H
#define TESTS_SIM_STREAMS_H

#include <stdatomic.h>

#include "../pes.h"
#include "sim/backend.h"

#define expect(condition) PE_EXPECT(ctx, number, condition)

typedef void pe_body(its_context *ctx, its_sim_backend *sim, uint32_t number, uint32_t n);

static inline void run_pe(int world, uint32_t number, uint32_t n, const void *user) {
    pe_body *const *body = user;
    its_context *ctx = its_context_new(NULL);
    its_backend *backend;
    its_sim_backend *sim = NULL;
    ok(its_sim_open(ctx, world, number, NULL, &backend));
    ok(its_sim_backend_of(backend, &sim));
    (*body)(ctx, sim, number, n);
    backend->ops->close(backend);
    its_context_free(ctx);
}

static inline void run(uint32_t n, pe_body *body) {
    run_pes(n, 1 << 20, run_pe, &body);
}

#define OPS sim->base.ops
#define BACKEND &sim->base

static inline uint64_t new_block(its_context *ctx, its_sim_backend *sim, uint32_t number, size_t size) {
    uint64_t address;
    ok(OPS->alloc(BACKEND, ITS_MEMORY_DEVICE, size, 0, &address));
    return address;
}

/* A function of the host that does not return before it is allowed to: it holds up its stream. */
typedef struct gate {
    _Atomic bool open, reached;
} gate;

static inline void wait_at_gate(void *user) {
    gate *g = user;
    atomic_store(&g->reached, true);
    while (!atomic_load(&g->open)) usleep(100);
}

static inline void add_one(void *user) {
    atomic_fetch_add((_Atomic int *)user, 1);
}

#endif
