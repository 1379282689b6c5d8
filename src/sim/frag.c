/* Fragments of a warp: splitting, joining, choosing the next one, and noticing that one goes round in circles. */
#include "sim/exec.h"

#include <time.h>

/* A loop is looked at for spinning after this many rounds, and again whenever that number has doubled. */
#define FIRST_LOOK 16u
#define LOOKS 4u /* rounds that a look compares: a loop may poll several things in turn */

its_sim_frag *its_sim_frag_add(its_sim_warp *warp, const its_sim_frag *like, uint32_t mask, const its_sim_op *pc) {
    its_sim_frag *frag = &warp->frags[warp->n_frags++];
    *frag = *like;
    frag->mask = mask;
    frag->pc = pc;
    frag->state = ITS_SIM_READY;
    frag->spins = false;
    frag->loop = NULL;
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
            a->spins = false;
            a->loop = NULL;
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

static uint64_t now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

static bool awake(its_sim_frag *frag) {
    if (frag->state == ITS_SIM_ASLEEP && now() >= frag->wake) frag->state = ITS_SIM_READY;
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

/* -- spinning ------------------------------------------------------------------------------------------------------ */

/* A number that differs, but for a chance of 2^-64, if a register of the fragment's frame does. */
static uint64_t hash_frame(const its_sim_exec *x) {
    const its_sim_program *program = x->program;
    const its_sim_where *where = &program->wheres.items[program->op_where[its_sim_op_index(x, x->frag->pc)]];
    const u64 *words = (const u64 *)(const void *)x->regs;
    size_t count = program->funcs[where->func].consts_begin / sizeof(u64);
    uint64_t hash[4] = {1, 2, 3, 4};
    for (size_t i = 0; i + 4 <= count; i += 4)
        for (unsigned k = 0; k < 4; k++) {
            hash[k] = (hash[k] ^ words[i + k]) * 0x9e3779b97f4a7c15ull;
            hash[k] ^= hash[k] >> 29;
        }
    return (hash[0] ^ hash[1] >> 1) * 0xbf58476d1ce4e5b9ull + (hash[2] ^ hash[3] >> 1) * 0x94d049bb133111ebull;
}

bool its_sim_frag_spins(its_sim_exec *x, const its_sim_op *branch) {
    its_sim_frag *frag = x->frag;
    const its_sim_op *target = branch->target;
    bool inside = frag->loop && frag->loop < target && branch < frag->loop_end;
    if (inside && !frag->wrote) return false;
    if (frag->loop == target && branch > frag->loop_end) frag->loop_end = branch;
    if (frag->loop != target || frag->wrote) {
        frag->loop = target;
        frag->loop_end = branch;
        frag->loop_depth = frag->depth;
        frag->loop_count = 0;
        frag->wrote = frag->spins = false;
        return false;
    }
    uint32_t count = ++frag->loop_count;
    if (frag->spins) {
        if (hash_frame(x) == frag->loop_hash) return true;
        frag->spins = false;
        frag->loop_count = 0;
        return false;
    }
    if (count < FIRST_LOOK) return false;
    uint32_t since = count - (1u << (31 - __builtin_clz(count)));
    if (since > LOOKS) return false;
    uint64_t hash = hash_frame(x);
    if (since == 0)
        frag->loop_hash = hash;
    else if (hash == frag->loop_hash)
        frag->spins = true;
    return frag->spins;
}
