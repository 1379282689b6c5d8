/* Fragments of a warp: splitting, joining, choosing the next one. */
#include "base/clock.h"
#include "sim/exec.h"

its_sim_frag *its_sim_frag_add(its_sim_warp *warp, const its_sim_frag *like, uint32_t mask, const its_sim_op *pc) {
    its_sim_frag *frag = &warp->frags[warp->n_frags++];
    *frag = *like;
    frag->mask = mask;
    frag->pc = pc;
    frag->state = ITS_SIM_READY;
    return frag;
}

void its_sim_frag_split(its_sim_exec *x, uint32_t mask, const its_sim_op *rest) {
    its_sim_frag *frag = x->frag;
    if (frag->mask == mask) return;
    its_sim_frag_add(x->warp, frag, frag->mask & ~mask, rest);
    frag->mask = mask;
}

void its_sim_frag_remove(its_sim_warp *warp, its_sim_frag *frag) {
    *frag = warp->frags[--warp->n_frags];
}

static bool same_call(const its_sim_frag *a, const its_sim_frag *b) {
    return a->depth == b->depth && a->base == b->base && a->local == b->local;
}

static bool joinable(const its_sim_frag *a, const its_sim_frag *b) {
    return a->state == ITS_SIM_READY && b->state == ITS_SIM_READY && same_call(a, b);
}

void its_sim_frag_join(its_sim_warp *warp) {
    for (uint32_t i = 0; i < warp->n_frags; i++) {
        its_sim_frag *a = &warp->frags[i];
        for (uint32_t k = i + 1; k < warp->n_frags;) {
            its_sim_frag *b = &warp->frags[k];
            if (a->pc != b->pc || !joinable(a, b)) {
                k++;
                continue;
            }
            a->mask |= b->mask;
            a->wrote |= b->wrote;
            its_sim_spin_join(a, b);
            if (b->turn < a->turn) a->turn = b->turn;
            its_sim_frag_remove(warp, b);
        }
    }
}

const its_sim_op *its_sim_frag_meet(const its_sim_warp *warp, const its_sim_frag *frag) {
    const its_sim_op *meet = NULL;
    for (uint32_t i = 0; i < warp->n_frags; i++) {
        const its_sim_frag *other = &warp->frags[i];
        if (other == frag || other->pc < frag->pc || !joinable(frag, other)) continue;
        if (!meet || other->pc < meet) meet = other->pc;
    }
    return meet;
}

static bool awake(its_sim_frag *frag) {
    if (frag->state == ITS_SIM_ASLEEP && its_clock_ns() >= frag->wake) frag->state = ITS_SIM_READY;
    return frag->state == ITS_SIM_READY;
}

static bool runs_before(const its_sim_frag *a, const its_sim_frag *b) {
    if (a->turn != b->turn) return a->turn < b->turn;
    if (a->depth != b->depth) return a->depth > b->depth;
    return a->pc < b->pc;
}

its_sim_frag *its_sim_frag_pick(its_sim_warp *warp, uint32_t tried) {
    if (warp->n_frags == 1) {
        its_sim_frag *only = &warp->frags[0];
        return awake(only) && only->mask & ~tried ? only : NULL;
    }
    its_sim_frag *best = NULL;
    for (uint32_t i = 0; i < warp->n_frags; i++) {
        its_sim_frag *frag = &warp->frags[i];
        if (!awake(frag) || !(frag->mask & ~tried)) continue;
        if (!best || runs_before(frag, best)) best = frag;
    }
    return best;
}

void its_sim_frag_yield(its_sim_warp *warp, its_sim_frag *frag) {
    uint32_t last = 0;
    for (uint32_t i = 0; i < warp->n_frags; i++)
        if (&warp->frags[i] != frag && warp->frags[i].turn > last) last = warp->frags[i].turn;
    frag->turn = last + 1;
}

void its_sim_frag_exit(its_sim_exec *x, uint32_t mask) {
    its_sim_warp *warp = x->warp;
    x->frag->mask &= ~mask;
    if (x->frag->mask == 0) its_sim_frag_remove(warp, x->frag);
    warp->live &= ~mask;
    if (warp->live == 0) x->cta->live_warps--;
}
