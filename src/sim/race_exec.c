/* What warps tell the finder of races (race.h): accesses before they are made, and what orders them. */
#include "sim/race_exec.h"

#include <stdio.h>

/* -- who ----------------------------------------------------------------------------------------------------------- */

typedef struct place {
    const its_sim_exec *x;
    const its_sim_op *op;
} place;

static const char *place_text(const void *user, char *buffer, size_t size) {
    const place *p = user;
    const its_sim_program *program = p->x->program;
    const its_sim_where *where = &program->wheres.items[program->op_where[its_sim_op_index(p->x, p->op)]];
    const char *path;
    uint32_t line = its_sim_where_line(where, program, &path);
    size_t length = strlen(path);
    snprintf(buffer, size, "kernel '%.60s' (%s:%u)", p->x->grid->func->name, length > 70 ? path + length - 70 : path,
             (unsigned)line);
    return buffer;
}

static its_race_by by_lanes(const its_sim_exec *x, const its_sim_op *op, uint32_t lane, uint32_t each) {
    place p = {x, op};
    its_race_by by = {.lane = lane, .each = each, .warp = x->warp->index, .cta = x->cta->number};
    /* A kernel's own name is part of the text, and functions may be called by several. */
    by.site =
        its_race_site(x->warp->race->race, (const char *)op + (x->grid->func - x->program->funcs) % 64, place_text, &p);
    return by;
}

/* -- accesses ------------------------------------------------------------------------------------------------------ */

static its_sim_verdict fault(its_sim_exec *x, const its_sim_op *op, uint32_t lane, uint32_t bytes, bool write,
                             const its_race_conflict *conflict) {
    its_sim_fault_at(x, op, 1u << lane, ITS_SIM_FAULT_RACE, "%s", "");
    its_sim_fault *fault = &x->grid->fault;
    fault->access = op->handler == ITS_SIM_ACT_ATOM ? ITS_SIM_UPDATES : write ? ITS_SIM_WRITES : ITS_SIM_READS;
    fault->bytes = bytes;
    fault->race = *conflict;
    snprintf(fault->race_site, sizeof fault->race_site, "%s", conflict->site);
    fault->window = ITS_SPACE_GLOBAL;
    fault->address = conflict->address + (uint32_t)__builtin_ctz(conflict->bytes);
    uint32_t address;
    if (its_sim_shared_owner(x, (const char *)(uintptr_t)fault->address, &address)) {
        fault->window = ITS_SPACE_SHARED;
        fault->address = address;
    } else {
        its_sim_memory_explain(x->memory, fault->address, &fault->nearby);
    }
    return ITS_SIM_STOP;
}

/* Whether memory here is one that threads share: neither their stacks nor parameters. `*cta`: whose shared memory. */
static bool is_shared(its_sim_exec *x, const char *at, its_sim_cta **cta) {
    const its_sim_grid *grid = x->grid;
    uint32_t address;
    *cta = its_sim_shared_owner(x, at, &address);
    return *cta || ((uintptr_t)at - (uintptr_t)x->warp->local >= (uintptr_t)grid->local_size * ITS_LANES &&
                    (uintptr_t)at - (uintptr_t)grid->params >= grid->func->entry.param_size);
}

/* An access of `bytes` by each lane from `lane` on, one behind the other from `at` on. */
typedef struct run {
    its_sim_exec *x;
    const char *at;
    uint32_t lane, bytes;
} run;

static uint32_t lane_of(const run *r, const its_race_conflict *conflict) {
    uint64_t at = (uint64_t)(uintptr_t)r->at;
    uint64_t further = conflict->address > at ? (conflict->address - at) / r->bytes : 0;
    return (r->lane + (uint32_t)further) % ITS_LANES;
}

/* Two writes of the same are no harm: what is there now is kept, to be compared when the write has been made. */
static bool suspect(void *user, const its_race_conflict *conflict) {
    const run *r = user;
    its_sim_race_doubts *doubts = &r->x->doubts;
    if (doubts->count == ITS_SIM_MOST_DOUBTS) return false;
    its_sim_race_doubt *doubt = &doubts->items[doubts->count++];
    *doubt = (its_sim_race_doubt){.conflict = *conflict, .lane = lane_of(r, conflict), .bytes = r->bytes};
    memcpy(doubt->before, (const void *)(uintptr_t)conflict->address, sizeof doubt->before);
    return false;
}

bool its_sim_race_bytes(its_sim_exec *x, const its_sim_op *op, uint32_t lane, const char *at, uint32_t size,
                        uint32_t bytes, bool write, bool strong) {
    its_sim_cta *cta;
    its_race_conflict conflict;
    run r = {x, at, lane, bytes};
    if (!is_shared(x, at, &cta)) return true;
    if (its_race_access(x->warp->race, cta ? cta->race_cells : NULL, cta ? cta->shared : NULL, at, size, write, strong,
                        by_lanes(x, op, lane, bytes), &conflict, suspect, &r))
        return true;
    fault(x, op, lane_of(&r, &conflict), bytes, write, &conflict);
    return false;
}

bool its_sim_race_before(its_sim_exec *x, const its_sim_op *op, uint32_t mask, char *const *pointer, uint32_t bytes,
                         bool write, bool strong) {
    x->doubts.count = 0;
    while (mask) {
        uint32_t first = (uint32_t)__builtin_ctz(mask), lane = first;
        do mask &= ~(1u << lane++);
        while (lane < ITS_LANES && mask >> lane & 1 && pointer[lane] == pointer[lane - 1] + bytes);
        if (!its_sim_race_bytes(x, op, first, pointer[first], (lane - first) * bytes, bytes, write, strong))
            return false;
    }
    return true;
}

static bool differs(const its_race_conflict *conflict, const char *before, const char *after) {
    for (uint32_t i = 0; i < 8; i++)
        if (conflict->bytes >> i & 1 && before[i] != after[i]) return true;
    return false;
}

its_sim_verdict its_sim_race_after(its_sim_exec *x, const its_sim_op *op) {
    for (uint32_t i = 0; i < x->doubts.count; i++) {
        const its_sim_race_doubt *doubt = &x->doubts.items[i];
        if (differs(&doubt->conflict, doubt->before, (const char *)(uintptr_t)doubt->conflict.address))
            return fault(x, op, doubt->lane, doubt->bytes, true, &doubt->conflict);
    }
    return ITS_SIM_NEXT;
}

/* -- order --------------------------------------------------------------------------------------------------------- */

/* The word that a strong operation of a lane is on; `value` is at that of its registers. */
static its_race_word word_of(const its_sim_exec *x, const its_sim_op *op, uint32_t lane, const char *pointer,
                             uint32_t value) {
    its_race_word word = {.address = (uint64_t)(uintptr_t)pointer,
                          .atomic = op->handler == ITS_SIM_ACT_ATOM,
                          .scope = (its_race_scope)op->scope,
                          .cta = (uint64_t)(uintptr_t)x->cta};
    const uint32_t size = op->size < op->reg_size ? op->size : op->reg_size;
    if (!word.atomic && value != UINT32_MAX && size <= 8 && op->vec == 1)
        memcpy(&word.value, x->regs + value + (size_t)lane * op->reg_size, size);
    return word;
}

/* Lanes mostly use one word: each is looked at once in a row. */
#define EACH_WORD(mask, register, word)                                                                   \
    its_race_word word = {0}, previous = {0};                                                             \
    for (uint32_t left = (mask); left; left &= left - 1, previous = word)                                 \
        if (word = word_of(x, op, (uint32_t)__builtin_ctz(left), pointer[__builtin_ctz(left)], register), \
            word.address != previous.address || word.value != previous.value)

void its_sim_race_release(its_sim_exec *x, const its_sim_op *op, uint32_t mask, char *const *pointer) {
    EACH_WORD(mask, op->b, word) {
        if (op->flags & ITS_SIM_RELEASE)
            its_race_release(x->warp->race, word);
        else
            its_race_strong_store(x->warp->race, word);
    }
}

void its_sim_race_acquire(its_sim_exec *x, const its_sim_op *op, uint32_t mask, char *const *pointer) {
    EACH_WORD(mask, op->dst, word) {
        if (op->flags & ITS_SIM_ACQUIRE)
            its_race_acquire(x->warp->race, word);
        else
            its_race_strong_load(x->warp->race, word);
    }
}

void its_sim_race_handover(its_sim_exec *x, const char *at, bool give) {
    its_race_word word = {.address = (uint64_t)(uintptr_t)at, .atomic = true, .scope = ITS_RACE_GPU};
    if (give)
        its_race_release(x->warp->race, word);
    else
        its_race_acquire(x->warp->race, word);
}

/* -- CTAs and grids ------------------------------------------------------------------------------------------------ */

bool its_sim_race_slot(its_sim_cta *cta) {
    const its_sim_grid *grid = cta->grid;
    its_race *race = grid->program->machine->race;
    size_t cells = (grid->shared_size / 8 + 2) * sizeof(its_race_cell);
    if (!race) return true;
    cta->race_cells = its_block_alloc(grid->ctx, cells);
    cta->race_barriers = its_block_alloc(grid->ctx, (ITS_SIM_BARRIERS + 1) * sizeof(uint32_t *));
    if (!cta->race_cells || !cta->race_barriers) return false;
    memset(cta->race_barriers, 0, (ITS_SIM_BARRIERS + 1) * sizeof(uint32_t *));
    for (uint32_t w = 0; w < grid->n_warps; w++) {
        cta->warps[w].race = its_race_warp(race);
        if (!cta->warps[w].race) return false;
    }
    return true;
}

void its_sim_race_slot_free(its_sim_cta *cta) {
    const its_sim_grid *grid = cta->grid;
    if (!grid) return;
    for (uint32_t w = 0; cta->warps && w < grid->n_warps; w++) its_race_agent_free(cta->warps[w].race);
    for (uint32_t i = 0; cta->race_barriers && i <= ITS_SIM_BARRIERS; i++) its_free(grid->ctx, cta->race_barriers[i]);
    its_free(grid->ctx, cta->race_barriers);
    its_free(grid->ctx, cta->race_cells);
}

void its_sim_race_start(its_sim_cta *cta) {
    const its_sim_grid *grid = cta->grid;
    if (!cta->race_cells) return;
    memset(cta->race_cells, 0, (grid->shared_size / 8 + 2) * sizeof(its_race_cell));
    for (uint32_t w = 0; w < grid->n_warps; w++) its_race_begin(cta->warps[w].race, grid->race_begun);
}

void its_sim_race_end(its_sim_cta *cta) {
    its_sim_grid *grid = cta->grid;
    if (!cta->race_cells) return;
    if (!grid->race_ended) grid->race_ended = its_race_vector(grid->program->machine->race);
    for (uint32_t w = 0; grid->race_ended && w < grid->n_warps; w++)
        its_race_give(cta->warps[w].race, grid->race_ended);
}

/* What is given at a barrier; that of a cluster is with its first CTA. */
static uint32_t **meeting_at(const its_sim_cta *cta, uint32_t barrier) {
    if (barrier == ITS_SIM_CLUSTER_BARRIER) cta = cta->cluster;
    return cta->race_barriers ? &cta->race_barriers[barrier] : NULL;
}

void its_sim_race_arrive(its_sim_exec *x, uint32_t barrier) {
    uint32_t **meeting = meeting_at(x->cta, barrier);
    if (!meeting) return;
    if (!*meeting) *meeting = its_race_meeting(x->program->machine->race);
    if (*meeting) its_race_meet(x->warp->race, *meeting);
}

void its_sim_race_pass(its_sim_warp *warp, uint32_t barrier) {
    uint32_t **meeting = meeting_at(warp->cta, barrier);
    if (meeting && *meeting) its_race_part(warp->race, *meeting);
}

/* The CTAs of a cluster pass one after the other. */
void its_sim_race_passed(its_sim_cta *cta, uint32_t barrier) {
    const its_sim_grid *grid = cta->grid;
    uint32_t **meeting = meeting_at(cta, barrier);
    if (barrier == ITS_SIM_CLUSTER_BARRIER && cta->rank + 1 != grid->cluster_size) return;
    if (meeting && *meeting) its_race_clear_meeting(grid->program->machine->race, *meeting);
}
