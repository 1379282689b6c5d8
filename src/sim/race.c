/* Clocks, what is handed on through memory, and what was done to memory: see race.h. */
#include "sim/race.h"

#include <string.h>
#include <sys/mman.h>

#include "base/arena.h"

enum {
    CELLS = 1 << 20,   /* of each PE's heap, and of what is private: 8 MiB of memory without a cell taken twice */
    PLACES = 16384,    /* words, and values, that something is released through */
    SITES = 4096,      /* of each PE */
    SITE_KEYS = 16384, /* slots to find them by */
};

/* -- what PEs share ------------------------------------------------------------------------------------------------ */

typedef struct race_place {
    _Atomic uint64_t key; /* 0: free */
    uint64_t value;
    _Atomic uint32_t busy;
    _Atomic bool crowded; /* other keys share it */
    uint32_t vector[];
} race_place;

typedef struct race_site {
    char text[ITS_RACE_SITE_TEXT];
} race_site;

typedef struct race_key {
    const void *key;
    uint32_t site; /* + 1; 0: free */
} race_key;

struct its_race {
    its_context *ctx;
    const its_world *world;
    uint32_t n_agents, per_pe;
    _Atomic uint32_t *clocks; /* of the agents of this PE */
    its_race_cell *cells;     /* of private memory */
    its_race_cell *shared;    /* of all heaps */
    race_site *sites;         /* of all PEs */
    char *far, *near;         /* places: of all PEs, and of this one */
    uint32_t n_sites;
    _Atomic uint32_t n_warps;
    race_key *keys;
};

/* Fewer agents per PE if there are many PEs: a vector has an entry for each. */
static uint32_t agents_per_pe(uint32_t n_pes) {
    return n_pes <= 8 ? 256 : n_pes <= 16 ? 128 : 64;
}

static size_t place_size(uint32_t n_agents) {
    return sizeof(race_place) + n_agents * sizeof(uint32_t);
}

static size_t pages(size_t size) {
    return (size + ((size_t)1 << 16) - 1) >> 16 << 16;
}

uint64_t its_race_shared_size(uint32_t n_pes) {
    return n_pes * (pages(CELLS * sizeof(its_race_cell)) + pages(SITES * sizeof(race_site))) +
           pages(PLACES * place_size(n_pes * agents_per_pe(n_pes)));
}

static void *map_private(size_t size) {
    void *mapped = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return mapped == MAP_FAILED ? NULL : mapped;
}

static bool map_shared(its_race *race) {
    const its_world_control *control = race->world->control;
    uint32_t n = control->n_pes;
    char *mapped = mmap(NULL, its_race_shared_size(n), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE,
                        race->world->fd, (off_t)control->race_offset);
    if (mapped == MAP_FAILED) return false;
    race->shared = (its_race_cell *)(void *)mapped;
    mapped += n * pages(CELLS * sizeof(its_race_cell));
    race->sites = (race_site *)(void *)mapped;
    race->far = mapped + n * pages(SITES * sizeof(race_site));
    return true;
}

its_status its_race_open(its_context *ctx, const its_world *world, its_race **out) {
    *out = NULL;
    its_race *race = its_block_alloc(ctx, sizeof *race);
    if (!race) return ITS_ERR_NOMEM;
    *race = (its_race){.ctx = ctx, .world = world};
    race->per_pe = agents_per_pe(world->control->n_pes);
    race->n_agents = race->per_pe * world->control->n_pes;
    race->clocks = its_block_alloc(ctx, race->per_pe * sizeof(uint32_t));
    race->cells = map_private(CELLS * sizeof(its_race_cell));
    race->near = map_private(PLACES * place_size(race->n_agents));
    race->keys = its_block_alloc(ctx, SITE_KEYS * sizeof(race_key));
    if (!race->clocks || !race->cells || !race->near || !race->keys || !map_shared(race)) {
        its_race_close(race);
        return ITS_ERR_NOMEM;
    }
    for (uint32_t i = 0; i < race->per_pe; i++) atomic_store(&race->clocks[i], 1);
    memset(race->keys, 0, SITE_KEYS * sizeof(race_key));
    *out = race;
    return ITS_OK;
}

void its_race_close(its_race *race) {
    if (!race) return;
    if (race->cells) munmap(race->cells, CELLS * sizeof(its_race_cell));
    if (race->near) munmap(race->near, PLACES * place_size(race->n_agents));
    if (race->shared) munmap(race->shared, its_race_shared_size(race->world->control->n_pes));
    its_free(race->ctx, race->clocks);
    its_free(race->ctx, race->keys);
    its_free(race->ctx, race);
}

/* -- agents -------------------------------------------------------------------------------------------------------- */

uint32_t *its_race_vector(const its_race *race) {
    uint32_t *vector = its_block_alloc(race->ctx, race->n_agents * sizeof(uint32_t));
    if (vector) memset(vector, 0, race->n_agents * sizeof(uint32_t));
    return vector;
}

static void clear_vector(const its_race *race, uint32_t *vector) {
    memset(vector, 0, race->n_agents * sizeof(uint32_t));
}

static void join(const its_race *race, uint32_t *restrict to, const uint32_t *restrict from) {
    for (uint32_t i = 0; i < race->n_agents; i++) to[i] = from[i] > to[i] ? from[i] : to[i];
}

static its_race_agent *agent_new(its_race *race, uint32_t index) {
    size_t size = race->n_agents * sizeof(uint32_t);
    its_race_agent *agent = its_block_alloc(race->ctx, sizeof *agent + 5 * size);
    if (!agent) return NULL;
    memset(agent, 0, sizeof *agent + 5 * size);
    agent->race = race;
    agent->number = race->world->pe * race->per_pe + index;
    agent->vector = (uint32_t *)(void *)(agent + 1);
    agent->fence = agent->vector + race->n_agents;
    agent->near_seen = agent->fence + race->n_agents;
    agent->far_seen = agent->near_seen + race->n_agents;
    agent->carried = agent->far_seen + race->n_agents;
    its_race_begin(agent, NULL);
    return agent;
}

/* In turn, so that warps of grids that run side by side have numbers of their own. */
its_race_agent *its_race_warp(its_race *race) {
    return agent_new(race, atomic_fetch_add(&race->n_warps, 1) % (race->per_pe - ITS_RACE_STREAMS - 1));
}
its_race_agent *its_race_stream(its_race *race, uint64_t index) {
    return agent_new(race, race->per_pe - 1 - ITS_RACE_STREAMS + (uint32_t)(index % ITS_RACE_STREAMS));
}
its_race_agent *its_race_host(its_race *race) {
    return agent_new(race, race->per_pe - 1);
}

void its_race_agent_free(its_race_agent *agent) {
    if (agent) its_free(agent->race->ctx, agent);
}

static void tick(its_race_agent *agent) {
    agent->now = atomic_fetch_add(&agent->race->clocks[agent->number % agent->race->per_pe], 1) + 1;
}

/* What others of the same number did before is known only as far as `vector` says. */
void its_race_begin(its_race_agent *agent, const uint32_t *vector) {
    const its_race *race = agent->race;
    if (vector)
        memcpy(agent->vector, vector, race->n_agents * sizeof(uint32_t));
    else
        clear_vector(race, agent->vector);
    clear_vector(race, agent->near_seen);
    clear_vector(race, agent->far_seen);
    agent->fenced = false;
    tick(agent);
    agent->birth = agent->now;
}

/* Joins the agent's vector, with its own clock in it, into another. */
static void join_own(const its_race_agent *agent, uint32_t *vector) {
    join(agent->race, vector, agent->vector);
    if (vector[agent->number] < agent->now) vector[agent->number] = agent->now;
}

void its_race_give(its_race_agent *agent, uint32_t *vector) {
    join_own(agent, vector);
    tick(agent);
}

void its_race_take(its_race_agent *agent, const uint32_t *vector) {
    join(agent->race, agent->vector, vector);
}

/* Four vectors, as an agent has, and the scope of the fence: + 1, 0 if there was none. */
static size_t meeting_size(const its_race *race) {
    return (4 * (size_t)race->n_agents + 1) * sizeof(uint32_t);
}

uint32_t *its_race_meeting(const its_race *race) {
    uint32_t *meeting = its_block_alloc(race->ctx, meeting_size(race));
    if (meeting) memset(meeting, 0, meeting_size(race));
    return meeting;
}

void its_race_clear_meeting(const its_race *race, uint32_t *meeting) {
    memset(meeting, 0, meeting_size(race));
}

void its_race_meet(its_race_agent *agent, uint32_t *meeting) {
    const its_race *race = agent->race;
    const size_t n = race->n_agents;
    if (agent->fenced) {
        join(race, meeting + n, agent->fence);
        if (meeting[4 * n] < agent->fence_scope + 1u) meeting[4 * n] = agent->fence_scope + 1u;
    }
    join(race, meeting + 2 * n, agent->near_seen);
    join(race, meeting + 3 * n, agent->far_seen);
    its_race_give(agent, meeting);
}

/* Of two fences the wider scope counts: that of the narrower one is not told apart. */
void its_race_part(its_race_agent *agent, const uint32_t *meeting) {
    const its_race *race = agent->race;
    const size_t n = race->n_agents;
    join(race, agent->vector, meeting);
    join(race, agent->near_seen, meeting + 2 * n);
    join(race, agent->far_seen, meeting + 3 * n);
    if (!meeting[4 * n]) return;
    if (!agent->fenced) clear_vector(race, agent->fence);
    join(race, agent->fence, meeting + n);
    if (!agent->fenced || agent->fence_scope < meeting[4 * n] - 1) agent->fence_scope = (uint8_t)(meeting[4 * n] - 1);
    agent->fenced = true;
}

/* -- through memory ------------------------------------------------------------------------------------------------ */

static size_t hash(uint64_t key) {
    return (size_t)(key * 0x9e3779b97f4a7c15ull >> 40);
}

/*
 * The place of a key, made if there is none. When all are taken some keys share one, which then keeps whatever is
 * released through any of them.
 */
static race_place *place_of(const its_race *race, char *places, uint64_t key, bool make) {
    size_t size = place_size(race->n_agents);
    race_place *place = NULL;
    for (size_t i = 0; i < 64; i++) {
        place = (race_place *)(void *)(places + (hash(key) + i) % PLACES * size);
        uint64_t is = atomic_load(&place->key);
        if (is == key) return place;
        if (is) continue;
        if (!make) return NULL;
        if (atomic_compare_exchange_strong(&place->key, &is, key) || is == key) return place;
    }
    if (make) atomic_store(&place->crowded, true);
    return place;
}

/* A PE may have died with it: then it is taken. */
static void hold(race_place *place) {
    uint32_t free = 0;
    for (uint32_t i = 0; i < 1u << 20; i++, free = 0)
        if (atomic_compare_exchange_weak(&place->busy, &free, 1)) return;
}

/* `vector` NULL: the agent's own. A value that was not there before replaces what was released with another one. */
static void put(const its_race_agent *agent, char *places, uint64_t key, uint64_t value, const uint32_t *vector) {
    race_place *place = place_of(agent->race, places, key, true);
    hold(place);
    if (place->value != value && !atomic_load(&place->crowded)) clear_vector(agent->race, place->vector);
    place->value = value;
    if (vector)
        join(agent->race, place->vector, vector);
    else
        join_own(agent, place->vector);
    atomic_store(&place->busy, 0);
}

/* With another value than that which is there: something later, which is good enough. */
static void get(const its_race *race, char *places, uint64_t key, uint32_t *vector) {
    race_place *place = place_of(race, places, key, false);
    if (!place) return;
    hold(place);
    join(race, vector, place->vector);
    atomic_store(&place->busy, 0);
}

/* Four places for the values of a word in turn, and one for atomics. */
static uint64_t key_of(const its_race_word *word, bool atomic, bool for_cta) {
    uint64_t key = (word->address & ~(uint64_t)7) | (atomic ? 4 : word->value & 3);
    return for_cta ? key ^ ((word->cta + 1) * 0x100000001b3ull << 8 | (uint64_t)1 << 63) : key;
}

/* `vector` NULL: the agent's own. */
static void publish(its_race_agent *agent, const its_race_word *word, its_race_scope scope, const uint32_t *vector) {
    const its_race *race = agent->race;
    const uint64_t value = word->atomic ? 0 : word->value;
    const bool for_cta = scope == ITS_RACE_CTA;
    put(agent, race->near, key_of(word, word->atomic, for_cta), value, vector);
    if (scope == ITS_RACE_SYS && its_world_heap_owner(race->world, word->address) >= 0)
        put(agent, race->far, key_of(word, word->atomic, false), value, vector);
}

static void look(its_race_agent *agent, const its_race_word *word, uint32_t *near, uint32_t *far) {
    const its_race *race = agent->race;
    const bool is_far = word->scope == ITS_RACE_SYS && its_world_heap_owner(race->world, word->address) >= 0;
    for (int atomic = 0; atomic < 2; atomic++) {
        get(race, race->near, key_of(word, atomic, false), near);
        get(race, race->near, key_of(word, atomic, true), near);
        if (is_far) get(race, race->far, key_of(word, atomic, false), far);
    }
}

static void carry_one(its_race_agent *agent, char *places, const its_race_word *word) {
    const its_race *race = agent->race;
    if (!place_of(race, places, key_of(word, false, false), false)) return;
    clear_vector(race, agent->carried);
    get(race, places, key_of(word, false, false), agent->carried);
    put(agent, places, key_of(word, true, false), 0, agent->carried);
}

/* An atomic hands on what was released with the value that it changes. */
static void carry(its_race_agent *agent, its_race_word word) {
    const its_race *race = agent->race;
    const bool is_far = word.scope == ITS_RACE_SYS && its_world_heap_owner(race->world, word.address) >= 0;
    for (word.value = 0; word.value < 4; word.value++) {
        carry_one(agent, race->near, &word);
        if (is_far) carry_one(agent, race->far, &word);
    }
}

void its_race_release(its_race_agent *agent, its_race_word word) {
    if (word.atomic) carry(agent, word);
    publish(agent, &word, word.scope, NULL);
    tick(agent);
}

void its_race_acquire(its_race_agent *agent, its_race_word word) {
    look(agent, &word, agent->vector, agent->vector);
}

void its_race_strong_store(its_race_agent *agent, its_race_word word) {
    if (word.atomic) carry(agent, word);
    if (!agent->fenced) return;
    its_race_scope fenced = (its_race_scope)agent->fence_scope;
    publish(agent, &word, word.scope < fenced ? word.scope : fenced, agent->fence);
}

void its_race_strong_load(its_race_agent *agent, its_race_word word) {
    look(agent, &word, agent->near_seen, agent->far_seen);
}

void its_race_fence(its_race_agent *agent, its_race_scope scope) {
    const its_race *race = agent->race;
    join(race, agent->vector, agent->near_seen);
    if (scope == ITS_RACE_SYS) join(race, agent->vector, agent->far_seen);
    clear_vector(race, agent->fence);
    join_own(agent, agent->fence);
    agent->fence_scope = (uint8_t)scope;
    agent->fenced = true;
    tick(agent);
}

/* -- calls that PEs make together ---------------------------------------------------------------------------------- */

static its_race_word arrival(const its_race *race, uint32_t of, uint32_t at, uint32_t team, uint64_t value) {
    return (its_race_word){.address = (uint64_t)(uintptr_t)&its_world_library(race->world, at)->teams[team].arrived[of],
                           .value = value,
                           .scope = ITS_RACE_SYS};
}

void its_race_arrive(its_race_agent *agent, its_team members, uint32_t team) {
    const its_race *race = agent->race;
    const uint32_t me = race->world->pe;
    const uint64_t epoch = atomic_load(&its_world_library(race->world, me)->teams[team].epoch) + 1;
    for (uint32_t i = 0; i < members.size; i++) {
        its_race_word word = arrival(race, me, members.start + i * members.stride, team, epoch);
        publish(agent, &word, ITS_RACE_SYS, NULL);
    }
    tick(agent);
}

void its_race_leave(its_race_agent *agent, its_team members, uint32_t team) {
    const its_race *race = agent->race;
    its_team_area *mine = &its_world_library(race->world, race->world->pe)->teams[team];
    for (uint32_t i = 0; i < members.size; i++) {
        uint32_t of = members.start + i * members.stride;
        its_race_acquire(agent, arrival(race, of, race->world->pe, team, atomic_load(&mine->epoch)));
    }
}

/* One word stands for all collective calls, and its value for which. */
void its_race_collective(its_race_agent *agent, bool after) {
    const its_race *race = agent->race;
    its_race_word word = {.address = (uint64_t)(uintptr_t)its_world_heap(race->world, 0) + ITS_WORLD_LIBRARY_BYTES - 8,
                          .value = atomic_load(&its_world_me(race->world)->collectives) + !after,
                          .scope = ITS_RACE_SYS};
    if (after)
        its_race_acquire(agent, word);
    else
        its_race_release(agent, word);
}

/* -- sites --------------------------------------------------------------------------------------------------------- */

uint32_t its_race_site(its_race *race, const void *key,
                       const char *(*text)(const void *user, char *buffer, size_t size), const void *user) {
    size_t at = (size_t)((uint64_t)(uintptr_t)key * 0x9e3779b97f4a7c15ull >> 40) % SITE_KEYS;
    while (race->keys[at].site && race->keys[at].key != key) at = (at + 1) % SITE_KEYS;
    if (race->keys[at].site) return race->keys[at].site - 1;
    if (race->n_sites == SITES - 1) return race->world->pe * SITES + SITES - 1; /* its text is empty */
    uint32_t site = race->world->pe * SITES + race->n_sites++;
    char buffer[ITS_RACE_SITE_TEXT];
    const char *is = text(user, buffer, sizeof buffer);
    memset(race->sites[site].text, 0, ITS_RACE_SITE_TEXT);
    strncpy(race->sites[site].text, is, ITS_RACE_SITE_TEXT - 1);
    race->keys[at] = (race_key){key, site + 1};
    return site;
}

void its_race_forget_sites(its_race *race) {
    memset(race->keys, 0, SITE_KEYS * sizeof(race_key));
    if (race->n_sites > SITES / 2) race->n_sites = 0; /* old ones may still be told about, with a wrong text */
}

/* -- accesses ------------------------------------------------------------------------------------------------------ */

static uint64_t word_of(uint64_t address) {
    return address & ~(uint64_t)7;
}

/* clock | address / 8 MiB | agent | bytes | strong. The address is there twice: other PEs may be about to change the
 * tag. */
static uint64_t pack(const its_race_agent *agent, uint64_t address, uint32_t mask, bool strong) {
    return (uint64_t)agent->now << 32 | (address >> 23 & 0x1ff) << 23 | (uint64_t)agent->number << 9 |
           (uint64_t)mask << 1 | strong;
}
static uint32_t mask_of(uint64_t word) {
    return word >> 1 & 0xff;
}
static uint32_t agent_of(uint64_t word) {
    return (uint32_t)word >> 9 & 0x3fff;
}
static uint32_t clock_of(uint64_t word) {
    return (uint32_t)(word >> 32);
}

/* CTAs beyond 2^32 are told apart no more; that is for reports only. */
static uint64_t pack_by(its_race_by by) {
    return (by.cta & UINT32_MAX) << 32 | (uint64_t)by.site << 10 | (uint64_t)(by.warp & 31) << 5 | (by.lane & 31);
}

static bool ordered(const its_race_agent *agent, uint64_t word) {
    uint32_t other = agent_of(word), clock = clock_of(word);
    if (other == agent->number && clock >= agent->birth) return true;
    return clock <= agent->vector[other];
}

static bool conflicts(const its_race_agent *agent, uint64_t word, uint64_t mine) {
    return word && (uint32_t)word >> 23 == (uint32_t)mine >> 23 && mask_of(word) & mask_of(mine) &&
           !(word & mine & 1) && !ordered(agent, word);
}

static void tell(const its_race *race, its_race_conflict *conflict, uint64_t address, uint64_t word, uint64_t mine,
                 uint64_t by, bool other_writes, bool write) {
    uint32_t pe = agent_of(word) / race->per_pe;
    *conflict = (its_race_conflict){.both_write = other_writes && write, .other_writes = other_writes};
    conflict->address = address;
    conflict->bytes = mask_of(word) & mask_of(mine);
    conflict->pe = pe < race->world->control->n_pes ? pe : 0;
    conflict->other_pe = pe != race->world->pe;
    conflict->other =
        (its_race_by){.site = (uint32_t)(by >> 10) & 0x3fffff, .warp = by >> 5 & 31, .lane = by & 31, .cta = by >> 32};
    uint32_t limit = race->world->control->n_pes * SITES;
    conflict->site = race->sites[conflict->other.site < limit ? conflict->other.site : limit - 1].text;
}

static void remember(uint64_t *word, uint64_t *who, uint64_t mine, uint64_t by) {
    uint64_t was = __atomic_load_n(word, __ATOMIC_RELAXED);
    if (was >> 9 == mine >> 9) mine = (mine | (was & 0x1fe)) & (was | ~(uint64_t)1); /* the same agent, more bytes */
    *who = by;
    __atomic_store_n(word, mine, __ATOMIC_RELAXED);
}

/* True if there is a conflict, which `conflict` then tells: with who has read, or else with who has written. */
static bool check_cell(its_race_agent *agent, its_race_cell *cell, uint64_t tag, uint64_t mine, uint64_t by, bool write,
                       its_race_conflict *conflict) {
    if (cell->tag != tag) *cell = (its_race_cell){.tag = tag};
    uint64_t w = __atomic_load_n(&cell->write, __ATOMIC_RELAXED), r = __atomic_load_n(&cell->read, __ATOMIC_RELAXED);
    bool read = write && conflicts(agent, r, mine), found = read || conflicts(agent, w, mine);
    if (read)
        tell(agent->race, conflict, tag, r, mine, cell->reader, false, write);
    else if (found)
        tell(agent->race, conflict, tag, w, mine, cell->writer, true, write);
    if (write)
        remember(&cell->write, &cell->writer, mine, by);
    else
        remember(&cell->read, &cell->reader, mine, by);
    return found;
}

/* Which of the cells of its table. */
static size_t cell_index(const its_race *race, uint64_t address) {
    int pe = its_world_heap_owner(race->world, address);
    if (pe < 0) return (address >> 3) % CELLS;
    return ((address - (uint64_t)(uintptr_t)its_world_heap(race->world, (uint32_t)pe)) >> 3) % CELLS;
}

static its_race_cell *cell_of(const its_race *race, its_race_cell *cells, const char *begin, uint64_t address) {
    if (cells) return &cells[(address >> 3) - ((uint64_t)(uintptr_t)begin >> 3)];
    int pe = its_world_heap_owner(race->world, address);
    its_race_cell *table =
        pe < 0 ? race->cells : race->shared + (size_t)pe * (pages(CELLS * sizeof *cells) / sizeof *cells);
    return &table[cell_index(race, address)];
}

bool its_race_access(its_race_agent *agent, its_race_cell *cells, const char *begin, const char *at, size_t bytes,
                     bool write, bool strong, its_race_by by, its_race_conflict *conflict,
                     its_race_writes_differ *differ, void *user) {
    const uint64_t start = (uint64_t)(uintptr_t)at, end = start + bytes;
    const uint32_t first = by.lane;
    uint64_t address = start;
    bool good = true;
    while (address < end) {
        uint64_t word = word_of(address), last = word + 8 < end ? word + 8 : end;
        uint32_t mask = (0xffu << (address - word) & 0xffu) & (0xffu >> (word + 8 - last));
        its_race_cell *cell = cell_of(agent->race, cells, begin, address);
        its_race_conflict found;
        if (by.each) by.lane = first + (uint32_t)((address - start) / by.each);
        if (check_cell(agent, cell, word, pack(agent, word, mask, strong), pack_by(by), write, &found) && good &&
            (!found.both_write || differ(user, &found))) {
            good = false;
            *conflict = found;
        }
        address = last;
    }
    return good;
}

void its_race_fresh(its_race *race, uint64_t address, size_t bytes) {
    if (bytes >= (size_t)CELLS * 8) { /* every cell may be one of them */
        memset(cell_of(race, NULL, NULL, address) - (cell_index(race, address)), 0, CELLS * sizeof(its_race_cell));
        return;
    }
    for (uint64_t at = word_of(address); at < address + bytes; at += 8) {
        its_race_cell *cell = cell_of(race, NULL, NULL, at);
        if (cell->tag == at) *cell = (its_race_cell){0};
    }
}
