/*
 * Noticing that a fragment goes round in circles.
 *
 * At some back edges the state of a fragment is kept: where it is, its lanes, a hash of its registers. If it comes back
 * to that state, and has neither changed memory nor looked at a clock in between, then it will go round the same way
 * for as long as what it reads in memory stays the same. That holds for any loop, whatever it polls and however many
 * words:
 *
 *     back edges   . . . K . . = . . = . . =      K: the state is kept    =: the same state again
 *                              |_____|
 *                               a round
 *
 * A loop that waits comes to the same target again and again, so the 16th, 32nd, 64th ... time in a row is a good
 * moment to keep the state; loops with loops in them are looked at now and then. Only a few back edges after that are
 * compared, so a loop that computes is hardly slowed down. Of a loop without calls only the registers that it may
 * change count (loops.c); of any other all of the fragment's calls.
 *
 * A fragment that is split and joined in each round, and one that waits at barriers, keeps its state if it had it alone
 * with the same lanes.
 */
#include "sim/async.h"
#include "sim/loops.h"

#define FIRST_STREAK 16u
#define FIRST_PERIOD 64u
#define LONGEST_PERIOD 65536u
#define LONGEST_WINDOW 1024u

/* -- the state ----------------------------------------------------------------------------------------------------- */

static inline uint64_t mix(uint64_t hash, uint64_t word) {
    hash = (hash ^ word) * 0x9e3779b97f4a7c15ull;
    return hash ^ hash >> 29;
}

static const its_sim_func *running(const its_sim_exec *x) {
    const its_sim_program *program = x->program;
    return &program->funcs[program->wheres.items[program->op_where[its_sim_op_index(x, x->frag->pc)]].func];
}

/* All registers of the fragment's calls. */
static uint64_t hash_wide(const its_sim_exec *x) {
    const u64 *words = (const u64 *)(const void *)x->warp->regs;
    size_t count = (x->frag->base + running(x)->consts_begin) / sizeof(u64);
    uint64_t hash[4] = {1, 2, 3, 4};
    for (size_t i = 0; i + 4 <= count; i += 4)
        for (unsigned k = 0; k < 4; k++) hash[k] = mix(hash[k], words[i + k]);
    return mix(mix(hash[0], hash[1]), mix(hash[2], hash[3]));
}

/* The lanes of a register, bytes `size` each, that belong to the fragment. */
static uint64_t hash_register(uint64_t hash, const char *reg, uint32_t size, uint32_t mask) {
    if (size == 0) return mix(hash, its_sim_pred(reg, 0) & mask);
    if (mask == ITS_FULL) {
        const u64 *words = (const u64 *)(const void *)reg;
        uint64_t second = 5;
        for (uint32_t i = 0; i < size * ITS_LANES / sizeof(u64); i += 2) {
            hash = mix(hash, words[i]);
            second = mix(second, words[i + 1]);
        }
        return mix(hash, second);
    }
    for (uint32_t left = mask; left; left &= left - 1) {
        uint64_t word[2] = {0, 0};
        memcpy(word, reg + (size_t)__builtin_ctz(left) * size, size);
        hash = mix(mix(hash, word[0]), word[1]);
    }
    return hash;
}

static uint64_t hash_narrow(const its_sim_exec *x, const its_sim_loop *loop) {
    uint64_t hash = 1;
    for (uint32_t i = 0; i < loop->count; i++)
        hash = hash_register(hash, x->regs + loop->changed[i].offset, loop->changed[i].size, x->frag->mask);
    return hash;
}

/* Bytes `begin` to `end` of a thread's stack, which are multiples of 16. */
static uint64_t hash_bytes(uint64_t hash, const char *bytes, size_t begin, size_t end) {
    for (size_t at = begin; at < end; at += sizeof(u64)) hash = mix(hash, *(const u64 *)(const void *)(bytes + at));
    return hash;
}

/* The stacks of the fragment's threads: what its calls have from the beginning on, and what alloca took at the end. */
static uint64_t hash_local(const its_sim_exec *x, uint64_t hash) {
    const size_t size = x->grid->local_size;
    if (size == 0) return hash;
    size_t used = (x->frag->local + (size_t)running(x)->local_size + 15) & ~(size_t)15;
    if (used > size) used = size;
    for (uint32_t left = x->frag->mask; left; left &= left - 1) {
        const uint32_t lane = (uint32_t)__builtin_ctz(left);
        const char *bytes = x->warp->local + lane * size;
        size_t taken = (x->warp->taken[lane] + (size_t)15) & ~(size_t)15;
        if (taken > size - used) taken = size - used;
        hash = hash_bytes(hash_bytes(hash, bytes, 0, used), bytes, size - taken, size);
    }
    return hash;
}

static uint64_t hash_state(const its_sim_exec *x, const its_sim_op *branch) {
    its_sim_loop loop;
    return hash_local(x, its_sim_loop_of(x->program, branch, &loop) ? hash_narrow(x, &loop) : hash_wide(x));
}

/*
 * A little of the state, which differs in nearly every round of a loop that computes: what the first lane has in the
 * registers that the loop may change, or some word of every register.
 */
static uint64_t probe_state(const its_sim_exec *x, const its_sim_op *branch) {
    its_sim_loop loop;
    const size_t lane = (size_t)__builtin_ctz(x->frag->mask);
    uint64_t sum = 0;
    if (its_sim_loop_of(x->program, branch, &loop)) {
        for (uint32_t i = 0; i < loop.count; i++) {
            const char *reg = x->regs + loop.changed[i].offset + lane * loop.changed[i].size;
            sum = (sum << 5 | sum >> 59) + *(const u16 *)(const void *)reg;
        }
        return sum;
    }
    const size_t size = x->frag->base + running(x)->consts_begin, step = ITS_LANES * sizeof(u32);
    for (size_t at = lane * sizeof(u32); at + sizeof(u32) <= size; at += step)
        sum = (sum << 5 | sum >> 59) + *(const u32 *)(const void *)(x->warp->regs + at);
    return sum;
}

/* -- looking ------------------------------------------------------------------------------------------------------- */

void its_sim_spin_forget(its_sim_frag *frag) {
    its_sim_spin *spin = &frag->spin;
    spin->loop = NULL;
    spin->looks = spin->spins = false;
    spin->proven = 0;
}

static bool is_due(const its_sim_frag *frag) {
    const its_sim_spin *spin = &frag->spin;
    if (spin->outer && frag->depth <= spin->depth) return true;
    if (spin->streak >= FIRST_STREAK && (spin->streak & (spin->streak - 1)) == 0) return true;
    return spin->rounds >= (spin->period ? spin->period : FIRST_PERIOD);
}

/* How many back edges are compared after so many were not. */
static uint32_t window_after(uint32_t rounds) {
    uint32_t window = rounds / 16 < 4 ? 4 : rounds / 16;
    return window < LONGEST_WINDOW ? window : LONGEST_WINDOW;
}

static void keep(its_sim_exec *x, const its_sim_op *branch, uint64_t now) {
    its_sim_frag *frag = x->frag;
    its_sim_spin *spin = &frag->spin;
    its_sim_loop loop;
    spin->wide = !its_sim_loop_of(x->program, branch, &loop);
    spin->loop = spin->first = branch->target;
    spin->end = spin->wide ? branch : x->program->ops + loop.end;
    spin->mask = frag->mask;
    spin->depth = frag->depth;
    spin->base = frag->base;
    spin->probe = probe_state(x, branch);
    spin->hash = hash_state(x, branch);
    spin->looks = true;
    spin->outer = spin->spins = false;
    spin->polled = NULL;
    spin->since = 0;
    spin->mark = now;
    spin->began = x->grid->watch;
    if (spin->period == 0) spin->period = FIRST_PERIOD;
    spin->window = window_after(spin->streak > spin->period ? spin->streak : spin->period);
    if (spin->rounds >= spin->period && spin->period < LONGEST_PERIOD) spin->period *= 2;
    spin->rounds = 0;
}

static void came_back(its_sim_exec *x, uint64_t now) {
    its_sim_spin *spin = &x->frag->spin;
    if (!spin->spins) x->progress = true;
    spin->length = now - spin->mark;
    spin->mark = now;
    spin->proven = spin->began;
    spin->began = x->grid->watch;
    spin->spins = true;
}

/* Requires a kept state of the fragment's lanes. */
static bool compare(its_sim_exec *x, const its_sim_op *branch, uint64_t now) {
    its_sim_frag *frag = x->frag;
    its_sim_spin *spin = &frag->spin;
    if (branch->target < spin->first) spin->first = branch->target; /* another loop around it */
    if (branch > spin->end) spin->end = branch;
    if (branch->target == spin->loop && frag->depth == spin->depth && frag->base == spin->base &&
        probe_state(x, branch) == spin->probe && hash_state(x, branch) == spin->hash) {
        came_back(x, now);
        return true;
    }
    if (!spin->spins && ++spin->since > spin->window) its_sim_spin_forget(frag);
    return false;
}

/* Whether a loop, of which only some registers are looked at, was left for another one. */
static bool went_elsewhere(const its_sim_spin *spin, const its_sim_op *branch) {
    return !spin->wide && (branch->target < spin->first || branch > spin->end);
}

/* Until the next look is due, if the same branch is taken until then. */
static void skip(its_sim_spin *spin) {
    uint32_t streak = FIRST_STREAK, period = spin->period ? spin->period : FIRST_PERIOD;
    while (streak <= spin->streak && streak < UINT32_MAX / 2) streak *= 2;
    uint32_t more = streak - spin->streak - 1;
    if (more > period - spin->rounds - 1) more = period - spin->rounds - 1;
    spin->skip = more;
    spin->streak += more;
    spin->rounds += more;
}

bool its_sim_spin_look(its_sim_exec *x, const its_sim_op *branch, uint64_t ran) {
    its_sim_frag *frag = x->frag;
    its_sim_spin *spin = &frag->spin;
    uint64_t now = frag->ran + ran;
    spin->streak = branch->target == spin->last ? spin->streak + 1 : 1;
    spin->last = branch->target;
    spin->skip = 0;
    spin->rounds++;
    if (frag->wrote || (spin->loop && went_elsewhere(spin, branch))) {
        x->progress = true;
        its_sim_spin_forget(frag);
    }
    frag->wrote = false;
    if (spin->loop && spin->mask == frag->mask) return compare(x, branch, now);
    if (is_due(frag))
        keep(x, branch, now);
    else
        skip(spin);
    return false;
}

/* -- what it waits for --------------------------------------------------------------------------------------------- */

/* How likely it is that a loop waits for what this operation reads; 0: it reads nothing. */
static unsigned polls(const its_sim_op *op) {
    switch (op->handler) {
    case ITS_SIM_ACT_ATOM:
        return 4;
    case ITS_SIM_ACT_MBARRIER:
        return op->mode == ITS_MBARRIER_TEST || op->mode == ITS_MBARRIER_TEST_PARITY ? 3 : 0;
    case ITS_SIM_ACT_LOAD:
        if (op->flags & ITS_SIM_ACQUIRE) return 4;
        return op->space == ITS_SPACE_GLOBAL || op->space == ITS_SPACE_NONE ? 2 : 1;
    default:
        return 0;
    }
}

void its_sim_spin_note(its_sim_exec *x, const its_sim_op *op, uint32_t mask) {
    its_sim_spin *spin = &x->frag->spin;
    if (polls(op) < (spin->polled ? polls(spin->polled) : 1)) return;
    uint32_t lane = (uint32_t)__builtin_ctz(mask);
    spin->polled = op;
    if (op->flags & ITS_SIM_ADDRESS32)
        spin->polled_at = (uint32_t)(((const u32 *)(const void *)(x->regs + op->a))[lane] + (uint32_t)op->imm);
    else
        spin->polled_at = ((const u64 *)(const void *)(x->regs + op->a))[lane] + (uint64_t)op->imm;
}

/* -- what else may happen to a fragment ---------------------------------------------------------------------------- */

void its_sim_spin_leave(its_sim_exec *x, its_sim_frag *frag) {
    its_sim_spin *spin = &frag->spin;
    if (!spin->loop || frag->depth >= spin->depth) return;
    x->progress = true;
    its_sim_spin_forget(frag);
    spin->outer = true;
    spin->depth = frag->depth;
}

void its_sim_spin_join(its_sim_frag *a, const its_sim_frag *b) {
    const its_sim_spin *one = &a->spin, *two = &b->spin;
    if (b->ran > a->ran) a->ran = b->ran;
    if (one->loop && one->loop == two->loop && one->hash == two->hash && one->mask == two->mask &&
        one->spins == two->spins && (one->mask & a->mask) == a->mask)
        return;
    its_sim_spin_forget(a);
}

/* Twice a round: operations of fragments that split and join are counted for one of them. */
bool its_sim_spin_holds(const its_sim_frag *frag) {
    return frag->spin.spins && frag->ran - frag->spin.mark <= 2 * frag->spin.length;
}

bool its_sim_frag_stuck(const its_sim_cta *cta, const its_sim_frag *frag) {
    if (frag->spin.spins && frag->spin.proven >= cta->grid->watch) return true;
    if (frag->state == ITS_SIM_AT_SYNC) return true;
    return frag->state == ITS_SIM_AT_BARRIER && cta->barriers[frag->barrier].watch < cta->grid->watch;
}
