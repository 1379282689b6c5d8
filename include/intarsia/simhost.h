/*
 * The library of names, libintarsia_simhost: NVSHMEM's host API and the CUDA runtime API for host files that run in the
 * simulator. It holds the one process-wide variable that Intarsia has: the PE that those names mean.
 *
 * A front end that has opened a simulated PE attaches it. In a program of its own nothing needs to be attached: the
 * first call opens the PE that the environment names.
 *
 * What goes wrong: functions that return a status or an error code return it, and the diagnostics are in the context of
 * the attached backend. For functions that can't (a barrier whose peer has died) the first failure is kept: a front end
 * asks for it with its_simhost_check when a function of the host file has returned. In a program of its own such a
 * failure prints the diagnostics and ends the process with exit code 1, as NVSHMEM does.
 */
#ifndef INTARSIA_SIMHOST_H
#define INTARSIA_SIMHOST_H

#include "intarsia/backend.h"

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Makes `backend` what the names mean, until another one is attached; NULL detaches, which must be done before the
 * backend is closed. ITS_ERR_USAGE, and no change, if it is not a simulated PE.
 */
ITS_API its_status its_simhost_attach(its_backend *backend);

/*
 * The first failure since the last call that no function could return: ITS_ERR_FAULT and others, as the backend's own
 * functions; ITS_OK if there was none.
 */
ITS_API its_status its_simhost_check(void);

#ifdef __cplusplus
}
#endif
#endif
