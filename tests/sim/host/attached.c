/* A front end with a host file in it: the PE is attached, and failures come back to the front end instead of ending it.
 */
#include <nvshmem.h>
#include <nvshmemx.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "intarsia/sim.h"
#include "intarsia/simhost.h"

#define EXPECT(condition)                                                   \
    do {                                                                    \
        if (!(condition)) {                                                 \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition); \
            exit(2);                                                        \
        }                                                                   \
    } while (0)

static const char *last_message(its_context *ctx) {
    return its_diag_count(ctx) ? its_diag_get(ctx, its_diag_count(ctx) - 1)->message : "";
}

int main(void) {
    its_context *ctx = its_context_new(NULL);
    its_backend *backend;
    EXPECT(its_sim_open_env(ctx, &backend) == ITS_OK);
    EXPECT(its_simhost_attach(backend) == ITS_OK && its_simhost_check() == ITS_OK);
    EXPECT(nvshmemx_init_status() == NVSHMEM_STATUS_IS_INITIALIZED);

    /* One memory for both sides. */
    int *block = nvshmem_malloc(64), value = 42, back = 0;
    EXPECT(block && backend->ops->copy(backend, ITS_COPY_TO_DEVICE, (uint64_t)(uintptr_t)block,
                                       (uint64_t)(uintptr_t)&value, sizeof value, 0) == ITS_OK);
    EXPECT(cudaMemcpy(&back, block, sizeof back, cudaMemcpyDeviceToHost) == cudaSuccess && back == 42);
    uint64_t address;
    EXPECT(backend->ops->alloc(backend, ITS_MEMORY_DEVICE, 4, 0, &address) == ITS_OK);
    EXPECT(cudaMemcpy((void *)(uintptr_t)address, block, 4, cudaMemcpyDefault) == cudaSuccess);
    EXPECT(cudaFree((void *)(uintptr_t)address) == cudaSuccess);

    /* A failure that no function returns is kept, the first one, with its diagnostics. */
    nvshmem_int_p(&value, 1, 0);
    EXPECT(strstr(last_message(ctx), "nvshmem_int_p to PE 0") &&
           strstr(last_message(ctx), "is not in the symmetric heap"));
    EXPECT(its_simhost_check() == ITS_ERR_USAGE && its_simhost_check() == ITS_OK);

    /* The end of NVSHMEM in the host file is not the end of the front end's PE. */
    nvshmem_init();
    nvshmem_finalize();
    nvshmem_finalize();
    EXPECT(nvshmem_my_pe() == 0 && its_simhost_check() == ITS_OK);
    nvshmem_free(block);
    EXPECT(its_simhost_attach(NULL) == ITS_OK);
    backend->ops->close(backend);
    its_context_free(ctx);
    puts("ok");
    return 0;
}
