/*
 * CTA barriers: 16 of them, each counts threads.
 *
 * Without a count, a barrier is complete when every thread of the CTA that has not exited has arrived. With one,
 * arrivals are counted; a warp's threads that have exited, or never were, count with the first of its lanes that
 * arrives, since hardware counts whole warps.
 *
 * That of a cluster is one more barrier of each of its CTAs, complete when all of them are. Arriving and waiting are
 * two instructions there: a lane that has arrived waits until all have, or passes if that has happened meanwhile.
 */
#include "sim/modes.h"
#include "sim/race_exec.h"

/* The lanes that use the same barrier with the same count as the first of them. */
static uint32_t same_barrier(const its_sim_exec *x, const its_sim_op *op, uint32_t mask, uint32_t *id,
                             uint32_t *count) {
    const u32 *ids = (const u32 *)(const void *)(x->regs + op->a);
    const u32 *counts = op->b ? (const u32 *)(const void *)(x->regs + op->b) : NULL;
    uint32_t first = (uint32_t)__builtin_ctz(mask), same = 0;
    *id = ids[first];
    *count = counts ? counts[first] : 0;
    for (uint32_t lane = 0; lane < ITS_LANES; lane++)
        if ((mask >> lane) & 1 && ids[lane] == *id && (!counts || counts[lane] == *count)) same |= 1u << lane;
    return same;
}

static bool complete(const its_sim_cta *cta, const its_sim_barrier *barrier) {
    uint64_t arrived = 0;
    for (uint32_t w = 0; w < cta->grid->n_warps; w++) {
        const its_sim_warp *warp = &cta->warps[w];
        uint32_t waiting = barrier->waiting[w];
        if (barrier->expected == 0 && (waiting & warp->live) != warp->live) return false;
        if (waiting) arrived += (uint32_t)__builtin_popcount(waiting | ~warp->live);
    }
    return barrier->expected == 0 || arrived >= barrier->expected;
}

/* Gives the result of a bar.red to the lanes of a fragment that has waited for it. */
static void give_result(const its_sim_barrier *barrier, its_sim_warp *warp, const its_sim_frag *frag) {
    const its_sim_op *op = frag->pc;
    char *regs = warp->regs + frag->base;
    if (op->mode == ITS_BARRIER_AND) its_sim_set_pred(regs, op->dst, barrier->all, frag->mask);
    if (op->mode == ITS_BARRIER_OR) its_sim_set_pred(regs, op->dst, barrier->any, frag->mask);
    if (op->mode != ITS_BARRIER_POPC) return;
    for (uint32_t lane = 0; lane < ITS_LANES; lane++)
        if ((frag->mask >> lane) & 1) ((u32 *)(void *)(regs + op->dst))[lane] = barrier->popc;
}

/* What has arrived at the cluster's barrier may pass: now, if it waits already, or when it comes to wait. */
static void pass(its_sim_cta *cta) {
    for (uint32_t w = 0; w < cta->grid->n_warps; w++) {
        its_sim_warp *warp = &cta->warps[w];
        cta->passed[w] |= cta->barriers[ITS_SIM_CLUSTER_BARRIER].waiting[w];
        for (uint32_t i = 0; i < warp->n_frags; i++)
            if (warp->frags[i].state == ITS_SIM_AT_BARRIER && warp->frags[i].barrier == ITS_SIM_CLUSTER_BARRIER)
                cta->passed[w] &= ~warp->frags[i].mask;
    }
}

static void release(its_sim_cta *cta, uint32_t id) {
    its_sim_barrier *barrier = &cta->barriers[id];
    if (id == ITS_SIM_CLUSTER_BARRIER) pass(cta);
    for (uint32_t w = 0; w < cta->grid->n_warps; w++) {
        its_sim_warp *warp = &cta->warps[w];
        bool waited = id == ITS_SIM_CLUSTER_BARRIER; /* or will */
        for (uint32_t i = 0; i < warp->n_frags; i++) {
            its_sim_frag *frag = &warp->frags[i];
            if (frag->state != ITS_SIM_AT_BARRIER || frag->barrier != id) continue;
            waited = true;
            give_result(barrier, warp, frag);
            frag->pc++;
            frag->state = ITS_SIM_READY;
        }
        its_sim_frag_join(warp);
        if (waited) its_sim_race_pass(warp, id);
    }
    its_sim_race_passed(cta, id);
    *barrier = (its_sim_barrier){.in_use = false};
}

/* Releases the barrier of the running CTA's cluster if all of its CTAs have arrived, and one of them at all. */
static void check_cluster(its_sim_exec *x) {
    its_sim_cta *cluster = x->cta->cluster;
    bool in_use = false;
    for (uint32_t i = 0; i < x->grid->cluster_size; i++) {
        its_sim_barrier *barrier = &cluster[i].barriers[ITS_SIM_CLUSTER_BARRIER];
        if (cluster[i].running && !complete(&cluster[i], barrier)) return;
        in_use |= barrier->in_use;
    }
    for (uint32_t i = 0; in_use && i < x->grid->cluster_size; i++) release(&cluster[i], ITS_SIM_CLUSTER_BARRIER);
}

void its_sim_barrier_check_all(its_sim_exec *x) {
    for (uint32_t id = 0; id < ITS_SIM_BARRIERS; id++)
        if (x->cta->barriers[id].in_use && complete(x->cta, &x->cta->barriers[id])) release(x->cta, id);
    check_cluster(x);
}

/* What is wrong with this use of the barrier, or NULL. */
static const char *misuse(const its_sim_exec *x, const its_sim_op *op, uint32_t group, uint32_t id, uint32_t count) {
    uint32_t all = x->grid->n_warps * ITS_LANES;
    if (id >= ITS_SIM_BARRIERS) return "a CTA has barriers 0 to 15";
    if (op->b && (count == 0 || count % ITS_LANES)) return "the thread count must be a multiple of 32, and not 0";
    if (op->b && count > all) return "the CTA has fewer threads than the barrier waits for";
    const its_sim_barrier *barrier = &x->cta->barriers[id];
    if (!barrier->in_use) return NULL;
    if (barrier->waiting[x->warp->index] & group) return "a thread arrives again before the barrier is complete";
    uint32_t expected = barrier->expected ? barrier->expected : all;
    if ((count ? count : all) != expected) return "threads of the same barrier expect different counts";
    return NULL;
}

static void arrive(its_sim_exec *x, const its_sim_op *op, uint32_t group, uint32_t id, uint32_t count) {
    its_sim_barrier *barrier = &x->cta->barriers[id];
    if (!barrier->in_use) *barrier = (its_sim_barrier){.in_use = true, .all = ITS_FULL, .first = op};
    if (count) barrier->expected = count;
    barrier->watch = x->grid->watch;
    its_sim_race_arrive(x, id);
    barrier->waiting[x->warp->index] |= group;
    if (op->mode < ITS_BARRIER_POPC) return;
    x->frag->wrote = true; /* its result depends on others */
    uint32_t yes = (its_sim_pred(x->regs, op->c) ^ (op->imm ? ITS_FULL : 0)) & group;
    barrier->popc += (uint32_t)__builtin_popcount(yes);
    if (yes) barrier->any = ITS_FULL;
    if (yes != group) barrier->all = 0;
}

its_sim_verdict its_sim_act_BARRIER(its_sim_exec *x, const its_sim_op *op, uint32_t mask) {
    its_sim_frag *frag = x->frag;
    uint32_t id, count, group = same_barrier(x, op, mask, &id, &count);
    const char *wrong = misuse(x, op, group, id, count);
    if (wrong)
        return its_sim_fault_at(x, op, group, ITS_SIM_FAULT_BARRIER, "barrier %u with %u threads: %s", (unsigned)id,
                                (unsigned)(count ? count : x->grid->threads), wrong);
    if (group != mask) { /* the others come back here for their own barrier */
        its_sim_frag_add(x->warp, frag, mask & ~group, op);
        frag->mask &= ~(mask & ~group);
    }
    its_sim_frag_split(x, group, op + 1);
    arrive(x, op, group, id, count);
    if (op->mode == ITS_BARRIER_ARRIVE) {
        frag->pc = op + 1;
    } else {
        frag->state = ITS_SIM_AT_BARRIER;
        frag->barrier = (uint8_t)id;
    }
    if (complete(x->cta, &x->cta->barriers[id])) release(x->cta, id);
    return ITS_SIM_AGAIN;
}

/* -- the barrier of the cluster ------------------------------------------------------------------------------------ */

its_sim_verdict its_sim_act_CLUSTER_ARRIVE(its_sim_exec *x, const its_sim_op *op, uint32_t mask) {
    its_sim_frag *frag = x->frag;
    its_sim_barrier *barrier = &x->cta->barriers[ITS_SIM_CLUSTER_BARRIER];
    uint32_t again = mask & (barrier->waiting[x->warp->index] | x->cta->passed[x->warp->index]);
    if (again)
        return its_sim_fault_at(x, op, again, ITS_SIM_FAULT_BARRIER, "%s",
                                "barrier.cluster: a thread arrives again and has not waited");
    its_sim_frag_split(x, mask, op + 1);
    arrive(x, op, mask, ITS_SIM_CLUSTER_BARRIER, 0);
    frag->pc = op + 1;
    frag->wrote = true;
    check_cluster(x);
    return ITS_SIM_AGAIN;
}

its_sim_verdict its_sim_act_CLUSTER_WAIT(its_sim_exec *x, const its_sim_op *op, uint32_t mask) {
    its_sim_frag *frag = x->frag;
    uint32_t *passed = &x->cta->passed[x->warp->index], free_to_go = mask & *passed;
    uint32_t stray = mask & ~*passed & ~x->cta->barriers[ITS_SIM_CLUSTER_BARRIER].waiting[x->warp->index];
    if (stray)
        return its_sim_fault_at(x, op, stray, ITS_SIM_FAULT_BARRIER, "%s",
                                "barrier.cluster: a thread waits and has not arrived");
    *passed &= ~mask;
    frag->wrote = true;
    if (free_to_go == mask) return ITS_SIM_NEXT;
    its_sim_frag_split(x, mask, op + 1);
    if (free_to_go) {
        its_sim_frag_add(x->warp, frag, free_to_go, op + 1);
        frag->mask &= ~free_to_go;
    }
    frag->state = ITS_SIM_AT_BARRIER;
    frag->barrier = ITS_SIM_CLUSTER_BARRIER;
    return ITS_SIM_AGAIN;
}
