/* What a warp tells the finder of races; nothing of it is to be called unless x->warp->race is there. */
#ifndef ITS_SIM_RACE_EXEC_H
#define ITS_SIM_RACE_EXEC_H

#include "sim/exec.h"

/*
 * Before an access of `bytes` at each lane's pointer. False: a fault was recorded. After a write that was allowed
 * comes `after`: it may have conflicted with another write, which is a fault unless both wrote the same.
 */
bool its_sim_race_before(its_sim_exec *x, const its_sim_op *op, uint32_t mask, char *const *pointer, uint32_t bytes,
                         bool write, bool strong);
its_sim_verdict its_sim_race_after(its_sim_exec *x, const its_sim_op *op);
/* The same of `size` bytes from one pointer on, `bytes` of them by each lane from `lane` on. */
bool its_sim_race_bytes(its_sim_exec *x, const its_sim_op *op, uint32_t lane, const char *at, uint32_t size,
                        uint32_t bytes, bool write, bool strong);
/* Before a strong store, after a strong load; the operation says whether it releases or acquires. */
void its_sim_race_release(its_sim_exec *x, const its_sim_op *op, uint32_t mask, char *const *pointer);
void its_sim_race_acquire(its_sim_exec *x, const its_sim_op *op, uint32_t mask, char *const *pointer);
/* An mbarrier: who arrives gives, who sees it complete takes. */
void its_sim_race_handover(its_sim_exec *x, const char *at, bool give);

/* A CTA's place is made and freed; a CTA begins and has ended. These may be called without a finder. */
bool its_sim_race_slot(its_sim_cta *cta);
void its_sim_race_slot_free(its_sim_cta *cta);
void its_sim_race_start(its_sim_cta *cta);
void its_sim_race_end(its_sim_cta *cta);
/* A warp arrives at a barrier, one that has waited goes on, and all have. The same. */
void its_sim_race_arrive(its_sim_exec *x, uint32_t barrier);
void its_sim_race_pass(its_sim_warp *warp, uint32_t barrier);
void its_sim_race_passed(its_sim_cta *cta, uint32_t barrier);

#endif
