/* Functions that the CUDA run time gives to device code: vprintf, __assertfail, malloc, free. */
#ifndef ITS_SIM_BUILTIN_H
#define ITS_SIM_BUILTIN_H

#include "sim/exec.h"

/* Which one a declaration without a body is; ITS_SIM_CALL_FUNC if it is none. */
its_sim_builtin its_sim_builtin_named(const char *name);
/* Arguments and results that it must have, in bytes each; false if the call's differ. */
bool its_sim_builtin_fits(const its_sim_call *call);
its_sim_verdict its_sim_builtin_call(its_sim_exec *x, const its_sim_op *op, const its_sim_call *call, uint32_t mask);
/* A slot's bytes of one lane, in the running fragment. */
void its_sim_slot_get(const its_sim_exec *x, const its_sim_slot *slot, uint32_t lane, void *value, uint32_t size);
void its_sim_slot_set(its_sim_exec *x, const its_sim_slot *slot, uint32_t lane, const void *value, uint32_t size);

#endif
