/* What the files of the library of names share; see include/intarsia/simhost.h. */
#ifndef ITS_SIMHOST_H
#define ITS_SIMHOST_H

#include "cuda_runtime.h"
#include "intarsia/simhost.h"
#include "sim/backend.h"

typedef struct its_simhost {
    its_sim_backend *sim; /* NULL: none yet */
    bool own;             /* opened here, not attached */
    its_status failed;    /* what its_simhost_check gives */
    uint32_t initialised; /* calls of nvshmem_init that no nvshmem_finalize has answered */
    int device;           /* what cudaSetDevice was given */
    cudaError_t last_error;
    its_stream per_thread; /* cudaStreamPerThread, or 0 */
} its_simhost;

/* The one variable. */
its_simhost *its_simhost_state(void);

/* The PE that is meant, opened from the environment if none is; NULL if that fails, which is recorded. */
its_sim_backend *its_simhost_sim(void);
/* Closes the PE if it was opened here. */
void its_simhost_close(void);

/*
 * The result of a call that can't return one: recorded, or, in a program of its own, printed before the process ends.
 */
void its_simhost_done(its_status status);
/* The same for a mistake of the host file itself, which is no failure of a call below: adds an error first. */
void its_simhost_wrong(const char *hint, const char *format, ...) ITS_PRINTF(2, 3);

/* Remembers an error for cudaGetLastError, and returns it. */
cudaError_t its_simhost_cuda(cudaError_t error);
/* The same from a status. */
cudaError_t its_simhost_error(its_status status);

/* The stream behind a handle of the host file; false if there is no PE. */
bool its_simhost_stream(cudaStream_t handle, its_stream *stream);

#endif
