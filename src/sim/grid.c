/*
 * Launches: which CTAs are resident, and whose turn it is.
 *
 * As many CTAs are resident as the multiprocessors hold, by threads and shared memory; the others begin as places
 * become free. The CTAs of a cluster begin together. Warps run a slice each, in turn. A grid is blocked when a whole
 * round of its warps changed nothing.
 */
#include "sim/async.h"
#include "sim/race_exec.h"

#define SLICE 1024u                  /* operations a warp runs before the next one's turn */
#define LONG_RUN ((uint64_t)1 << 18) /* operations of a CTA after which one more place is opened */
#define THREADS_PER_MULTIPROCESSOR 2048u
#define CTAS_PER_MULTIPROCESSOR 32u
#define SHARED_PER_MULTIPROCESSOR (228u << 10)
#define MAX_THREADS 1024u
#define MAX_CLUSTER 16u
#define MAX_SLOT_MEMORY ((size_t)4 << 30)
/* Larger stacks are for recursion: clearing them would make all of their pages real. */
#define CLEARED_STACK ((size_t)1 << 20)

static uint32_t round_up(uint32_t n, uint32_t to) {
    return (n + to - 1) / to * to;
}

/* -- checks -------------------------------------------------------------------------------------------------------- */

static its_status wrong(its_context *ctx, const its_sim_entry *entry, const char *hint, const char *what) {
    return its_fail(ctx, ITS_ERR_INPUT, hint, "kernel '%s' can't be launched: %s", entry->name, what);
}

static its_status check_block(its_context *ctx, const its_sim_entry *entry, const its_sim_launch *launch) {
    uint64_t threads = 1;
    for (unsigned k = 0; k < 3; k++) {
        if (launch->block[k] == 0 || launch->grid[k] == 0)
            return wrong(ctx, entry, "give every dimension at least 1", "a dimension is 0");
        if (launch->block[k] > MAX_THREADS) return wrong(ctx, entry, NULL, "a block dimension is more than 1024");
        threads *= launch->block[k];
    }
    if (launch->grid[0] > INT32_MAX || launch->grid[1] > 65535 || launch->grid[2] > 65535)
        return wrong(ctx, entry, NULL, "the grid is larger than 2147483647 x 65535 x 65535");
    if (threads > entry->max_threads)
        return its_fail(ctx, ITS_ERR_INPUT, NULL, "kernel '%s' can't be launched: %llu threads per CTA, it allows %u",
                        entry->name, (unsigned long long)threads, (unsigned)entry->max_threads);
    if (entry->reqntid[0] && memcmp(entry->reqntid, launch->block, sizeof(entry->reqntid)) != 0)
        return its_fail(ctx, ITS_ERR_INPUT, NULL,
                        "kernel '%s' can't be launched: it requires blocks of %u x %u x %u, not %u x %u x %u",
                        entry->name, (unsigned)entry->reqntid[0], (unsigned)entry->reqntid[1],
                        (unsigned)entry->reqntid[2], (unsigned)launch->block[0], (unsigned)launch->block[1],
                        (unsigned)launch->block[2]);
    return ITS_OK;
}

static its_status check_clusters(its_context *ctx, const its_sim_entry *entry, const its_sim_launch *launch) {
    const uint32_t *c = entry->cluster;
    uint64_t size = (uint64_t)c[0] * c[1] * c[2];
    if (size == 0 || c[0] > MAX_CLUSTER || c[1] > MAX_CLUSTER || c[2] > MAX_CLUSTER || size > MAX_CLUSTER)
        return wrong(ctx, entry, NULL, "its clusters have more than 16 CTAs, or none");
    if (launch->grid[0] % c[0] == 0 && launch->grid[1] % c[1] == 0 && launch->grid[2] % c[2] == 0) return ITS_OK;
    return its_fail(
        ctx, ITS_ERR_INPUT, NULL,
        "kernel '%s' can't be launched: a grid of %u x %u x %u CTAs is no multiple of clusters of %u x %u x %u",
        entry->name, (unsigned)launch->grid[0], (unsigned)launch->grid[1], (unsigned)launch->grid[2], (unsigned)c[0],
        (unsigned)c[1], (unsigned)c[2]);
}

static its_status check_shared(its_context *ctx, const its_sim_entry *entry, const its_sim_launch *launch) {
    uint32_t max = entry->program->machine->max_shared;
    uint64_t wanted = (uint64_t)entry->shared + launch->shared;
    if (wanted <= (max ? max : 227u << 10)) return ITS_OK;
    return its_fail(ctx, ITS_ERR_INPUT, NULL,
                    "kernel '%s' can't be launched: %llu bytes of shared memory per CTA, the device has %u",
                    entry->name, (unsigned long long)wanted, (unsigned)(max ? max : 227u << 10));
}

/* -- memory -------------------------------------------------------------------------------------------------------- */

/* Bytes of local memory per thread: all calls below the entry, or the machine's limit if they can't be counted. */
static uint32_t stack_size(const its_sim_program *program, const its_sim_func *func) {
    uint32_t limit = program->machine->stack_size ? program->machine->stack_size : 64u << 10;
    if (!func->bounded) return func->local_size > limit ? func->local_size : limit;
    return func->stack_size;
}

static uint32_t slots_of(const its_sim_grid *grid) {
    uint32_t per = THREADS_PER_MULTIPROCESSOR / (grid->n_warps * ITS_LANES);
    uint32_t shared = grid->shared_size + ITS_SIM_SHARED_BEGIN;
    if (per > SHARED_PER_MULTIPROCESSOR / shared) per = SHARED_PER_MULTIPROCESSOR / shared;
    if (per > CTAS_PER_MULTIPROCESSOR) per = CTAS_PER_MULTIPROCESSOR;
    if (per == 0) per = 1;
    uint64_t slots = (uint64_t)per * its_sim_multiprocessors(grid->program->machine);
    return slots > grid->n_ctas ? (uint32_t)grid->n_ctas : (uint32_t)slots;
}

static void free_slot(its_sim_grid *grid, its_sim_cta *cta) {
    its_sim_async_reset(grid->ctx, cta);
    its_sim_race_slot_free(cta);
    for (uint32_t w = 0; cta->warps && w < grid->n_warps; w++) {
        its_free(grid->ctx, cta->warps[w].regs_block);
        its_free(grid->ctx, cta->warps[w].calls);
        its_free(grid->ctx, cta->warps[w].local);
    }
    its_free(grid->ctx, cta->warps);
    its_free(grid->ctx, cta->shared_block);
}

static void free_workspace(its_sim_grid *grid) {
    if (!grid->workspace) return;
    its_sim_memory_remove(grid->program->machine->memory, (uint64_t)(uintptr_t)grid->workspace);
    its_sim_program_give(grid->program, grid->workspace, ITS_SIM_WORKSPACE);
}

static bool make_workspace(its_sim_grid *grid) {
    if (!grid->program->uses_workspace) return true;
    void *block = its_sim_program_take(grid->program, ITS_SIM_WORKSPACE, 16);
    if (!block) return false;
    memset(block, 0, ITS_SIM_WORKSPACE);
    its_sim_memory *memory = grid->program->machine->memory;
    if (its_sim_memory_add(memory, (uint64_t)(uintptr_t)block, ITS_SIM_WORKSPACE, ITS_SIM_DEVICE, false, NULL)) {
        its_sim_program_give(grid->program, block, ITS_SIM_WORKSPACE);
        return false;
    }
    grid->workspace = block;
    return true;
}

void its_sim_grid_free(its_sim_grid *grid) {
    if (!grid) return;
    for (uint32_t s = 0; grid->slots && s < grid->n_open; s++) free_slot(grid, &grid->slots[s]);
    its_free(grid->ctx, grid->slots);
    free_workspace(grid);
    its_free(grid->ctx, grid->params);
    its_free(grid->ctx, grid->fault.text);
    its_free(grid->ctx, grid->race_begun);
    its_free(grid->ctx, grid->race_ended);
    its_free(grid->ctx, grid);
}

static void *zalloc(its_context *ctx, size_t size) {
    void *block = its_block_alloc(ctx, size ? size : 1);
    if (block) memset(block, 0, size);
    return block;
}

static bool make_slot(its_sim_grid *grid, its_sim_cta *cta) {
    cta->grid = grid;
    cta->shared_block = its_block_alloc(grid->ctx, (size_t)grid->shared_size + 1023);
    cta->warps = zalloc(grid->ctx, grid->n_warps * sizeof(its_sim_warp));
    if (!cta->warps || !cta->shared_block) return false;
    cta->shared = (char *)(((uintptr_t)cta->shared_block + 1023) & ~(uintptr_t)1023);
    for (uint32_t w = 0; w < grid->n_warps; w++) {
        its_sim_warp *warp = &cta->warps[w];
        warp->cta = cta;
        warp->index = w;
        if (grid->local_size) {
            size_t size = (size_t)grid->local_size * ITS_LANES;
            warp->local = its_block_alloc(grid->ctx, size);
            if (!warp->local) return false;
            if (size <= CLEARED_STACK) memset(warp->local, 0, size);
        }
        if (!its_sim_warp_reserve(warp, grid->func->frame_size)) return false;
    }
    return its_sim_race_slot(cta);
}

/* Opens places for one more cluster; false if all are open or memory ran out, in which case there will be no more. */
static bool open_slots(its_sim_grid *grid) {
    if (grid->n_open + grid->cluster_size > grid->n_slots) return false;
    its_sim_cta *cluster = &grid->slots[grid->n_open];
    uint32_t made = 0;
    while (made < grid->cluster_size && make_slot(grid, &cluster[made])) {
        cluster[made].cluster = cluster;
        cluster[made].rank = made;
        made++;
    }
    if (made == grid->cluster_size) {
        grid->n_open += made;
        return true;
    }
    for (uint32_t i = 0; i <= made; i++) free_slot(grid, &cluster[i]);
    memset(cluster, 0, grid->cluster_size * sizeof(*cluster));
    grid->n_slots = grid->n_open;
    return false;
}

static bool make_slots(its_sim_grid *grid) {
    size_t each = (size_t)grid->n_warps * (grid->func->frame_size + (size_t)grid->local_size * ITS_LANES);
    uint32_t wanted = slots_of(grid);
    if (each && wanted > MAX_SLOT_MEMORY / each) wanted = (uint32_t)(MAX_SLOT_MEMORY / each);
    wanted = wanted / grid->cluster_size * grid->cluster_size;
    if (wanted == 0) wanted = grid->cluster_size;
    grid->slots = zalloc(grid->ctx, wanted * sizeof(its_sim_cta));
    if (!grid->slots) return false;
    grid->n_slots = wanted;
    while (grid->n_open < its_sim_multiprocessors(grid->program->machine))
        if (!open_slots(grid)) break;
    return grid->n_open > 0;
}

/* -- a launch ------------------------------------------------------------------------------------------------------ */

static void set_sizes(its_sim_grid *grid, const its_sim_entry *entry, const its_sim_launch *launch) {
    memcpy(grid->dim, launch->grid, sizeof(grid->dim));
    memcpy(grid->block, launch->block, sizeof(grid->block));
    memcpy(grid->cluster, entry->cluster, sizeof(grid->cluster));
    grid->cluster_size = entry->cluster[0] * entry->cluster[1] * entry->cluster[2];
    grid->id = launch->id;
    grid->threads = launch->block[0] * launch->block[1] * launch->block[2];
    grid->n_warps = round_up(grid->threads, ITS_LANES) / ITS_LANES;
    uint32_t fixed = round_up(entry->shared_end, grid->program->dynamic_align);
    grid->dynamic_begin = ITS_SIM_SHARED_BEGIN + fixed;
    grid->dynamic_shared = launch->shared;
    grid->shared_size = launch->shared ? fixed + launch->shared : entry->shared_end;
    grid->local_size = round_up(stack_size(grid->program, grid->func), 16);
    grid->n_ctas = (uint64_t)launch->grid[0] * launch->grid[1] * launch->grid[2];
}

its_status its_sim_grid_new(its_context *ctx, const its_sim_entry *entry, const its_sim_launch *launch,
                            its_sim_grid **result) {
    *result = NULL;
    its_status status = check_block(ctx, entry, launch);
    if (status == ITS_OK) status = check_clusters(ctx, entry, launch);
    if (status == ITS_OK) status = check_shared(ctx, entry, launch);
    if (status != ITS_OK) return status;
    its_sim_grid *grid = zalloc(ctx, sizeof(*grid));
    if (!grid) return its_fail(ctx, ITS_ERR_NOMEM, NULL, "out of memory for a launch of '%s'", entry->name);
    grid->ctx = ctx;
    grid->watch = 1;
    grid->program = entry->program;
    grid->func = &entry->program->funcs[entry->func];
    set_sizes(grid, entry, launch);
    grid->params = zalloc(ctx, entry->param_size);
    if (!grid->params || !make_workspace(grid) || !make_slots(grid)) {
        its_sim_grid_free(grid);
        return its_fail(ctx, ITS_ERR_NOMEM, NULL, "out of memory for a launch of '%s'", entry->name);
    }
    if (entry->param_size) memcpy(grid->params, launch->params, entry->param_size);
    *result = grid;
    return ITS_OK;
}

static void start_warp(its_sim_grid *grid, its_sim_warp *warp) {
    uint32_t first = warp->index * ITS_LANES, left = grid->threads - first;
    warp->born = warp->live = left >= ITS_LANES ? ITS_FULL : (1u << left) - 1;
    warp->n_frags = 1;
    warp->ran = 0;
    memset(warp->taken, 0, sizeof(warp->taken));
    warp->frags[0] = (its_sim_frag){.pc = grid->program->ops + grid->func->first, .mask = warp->live};
    its_sim_frame_enter(warp, grid->func, warp->regs, 0, ITS_FULL);
}

/* What the CTA before left there means nothing to this one. CUDA's own part begins as zeros. */
static void fresh_shared(const its_sim_cta *cta) {
    const its_sim_program *program = cta->grid->program;
    its_sim_memory_fresh(cta->shared, cta->grid->shared_size);
    if (!program->reserved) return;
    const its_sim_variable *own = &program->variables.items[program->reserved - 1];
    uint64_t begin = own->address - ITS_SIM_SHARED_BEGIN;
    if (begin + own->size <= cta->grid->shared_size) memset(cta->shared + begin, 0, own->size);
}

/* Lets a CTA begin, at the place that the cluster with number `n` has in the grid. */
static void start_cta(its_sim_grid *grid, its_sim_cta *cta, uint64_t n) {
    uint32_t inner = cta->rank;
    cta->number = n * grid->cluster_size + cta->rank;
    for (unsigned k = 0; k < 3; k++) {
        uint32_t clusters = grid->dim[k] / grid->cluster[k];
        cta->id[k] = (uint32_t)(n % clusters) * grid->cluster[k] + inner % grid->cluster[k];
        n /= clusters;
        inner /= grid->cluster[k];
    }
    cta->running = true;
    cta->live_warps = grid->n_warps;
    cta->next_warp = 0;
    cta->ran = 0;
    memset(cta->barriers, 0, sizeof(cta->barriers));
    memset(cta->passed, 0, sizeof(cta->passed));
    its_sim_async_reset(grid->ctx, cta);
    fresh_shared(cta);
    for (uint32_t w = 0; w < grid->n_warps; w++) start_warp(grid, &cta->warps[w]);
    its_sim_race_start(cta);
}

/* Gives the places of a cluster to the next one; false if there is none left, or one of its CTAs still runs. */
static bool start_cluster(its_sim_grid *grid, its_sim_cta *cluster) {
    if (grid->next_cta == grid->n_ctas) return false;
    for (uint32_t i = 0; i < grid->cluster_size; i++)
        if (cluster[i].running) return false;
    uint64_t n = grid->next_cluster++;
    grid->next_cta += grid->cluster_size;
    for (uint32_t i = 0; i < grid->cluster_size; i++) start_cta(grid, &cluster[i], n);
    return true;
}

/* -- stepping ------------------------------------------------------------------------------------------------------ */

/* Warps that have not ended, in all places. */
static uint64_t live_warps(const its_sim_grid *grid) {
    uint64_t count = 0;
    for (uint32_t s = 0; s < grid->n_open; s++)
        if (grid->slots[s].running) count += grid->slots[s].live_warps;
    return count;
}

/* The next warp of the CTA that has not ended. Requires one. */
static its_sim_warp *next_warp(its_sim_cta *cta) {
    for (;;) {
        its_sim_warp *warp = &cta->warps[cta->next_warp];
        cta->next_warp = (cta->next_warp + 1) % cta->grid->n_warps;
        if (warp->live) return warp;
    }
}

/* One slice of each of the CTA's warps. `*moved`: something was done. False after a fault. */
static bool run_cta(its_sim_exec *x, its_sim_grid *grid, its_sim_cta *cta, bool *moved) {
    const its_sim_isa *isa = grid->program->isa;
    for (uint32_t turns = cta->live_warps; turns > 0 && cta->live_warps > 0; turns--) {
        bool good = isa->slice(x, next_warp(cta), SLICE);
        grid->instructions += x->count;
        cta->ran += x->count;
        if (!good) return false;
        grid->quiet = x->progress ? 0 : grid->quiet + 1;
        *moved |= x->progress;
    }
    if (cta->live_warps == 0) {
        *moved = true;
        cta->running = false;
        its_sim_race_end(cta);
        grid->done_ctas++;
        grid->quiet = 0;
    }
    return true;
}

/* Opens places for a cluster that has not begun; false if there are none, of either. */
static bool admit(its_sim_grid *grid) {
    return grid->next_cta < grid->n_ctas && open_slots(grid);
}

its_sim_progress its_sim_grid_step(its_sim_grid *grid, uint64_t budget) {
    if (grid->faulted) return ITS_SIM_FAULT;
    its_sim_exec x;
    memset(&x, 0, sizeof(x));
    x.grid = grid;
    x.program = grid->program;
    x.memory = grid->program->machine->memory;
    uint64_t end = grid->instructions + budget;
    bool moved = false;
    while (grid->done_ctas < grid->n_ctas) {
        its_sim_cta *cta = &grid->slots[grid->next_slot];
        grid->next_slot = grid->next_slot + 1 == grid->n_open ? 0 : grid->next_slot + 1;
        if (!cta->running && !start_cluster(grid, cta->cluster)) continue;
        if (!run_cta(&x, grid, cta, &moved)) return ITS_SIM_FAULT;
        if (grid->quiet && grid->quiet >= live_warps(grid) + grid->n_warps) {
            bool any = false;
            grid->quiet = 0;
            if (!admit(grid)) {
                if (!its_sim_stores_settle(&x, false, &any)) return ITS_SIM_FAULT;
                if (!any) return moved ? ITS_SIM_RAN : ITS_SIM_BLOCKED;
                moved = true;
            }
        }
        if (cta->running && cta->ran >= LONG_RUN) {
            cta->ran = 0;
            admit(grid);
        }
        if (grid->instructions >= end && grid->done_ctas < grid->n_ctas)
            return its_sim_stores_settle(&x, true, &moved) ? ITS_SIM_RAN : ITS_SIM_FAULT;
    }
    return ITS_SIM_DONE;
}

void its_sim_grid_watch(its_sim_grid *grid) {
    grid->watch++;
}

bool its_sim_grid_stuck(const its_sim_grid *grid) {
    for (uint32_t s = 0; s < grid->n_open; s++) {
        const its_sim_cta *cta = &grid->slots[s];
        for (uint32_t w = 0; cta->running && w < grid->n_warps; w++) {
            const its_sim_warp *warp = &cta->warps[w];
            for (uint32_t f = 0; warp->live && f < warp->n_frags; f++)
                if (!its_sim_frag_stuck(cta, &warp->frags[f])) return false;
        }
    }
    return true;
}

void its_sim_grid_follows(its_sim_grid *grid, its_race_agent *agent) {
    if (!grid->race_begun) grid->race_begun = its_race_vector(agent->race);
    if (grid->race_begun) its_race_give(agent, grid->race_begun);
}

const uint32_t *its_sim_grid_gave(const its_sim_grid *grid) {
    return grid->race_ended;
}

uint64_t its_sim_grid_instructions(const its_sim_grid *grid) {
    return grid->instructions;
}
const its_sim_fault *its_sim_grid_fault(const its_sim_grid *grid) {
    return grid->faulted ? &grid->fault : NULL;
}
const its_sim_memory *its_sim_grid_memory(const its_sim_grid *grid) {
    return grid->program->machine->memory;
}
