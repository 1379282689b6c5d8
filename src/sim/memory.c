/* The table of allocations: a sorted array, a ring of freed entries and a few named windows. See memory.h. */
#include "sim/memory.h"

#include <string.h>

#include "base/arena.h"

#define FREED_COUNT 512u
#define NULL_END 65536u
/* Addresses further away than this from any allocation are not described by their neighbour. */
#define NEAR_LIMIT ((uint64_t)1 << 20)

typedef struct window {
    uint64_t base, size;
    const char *what;
    uint32_t pe;
} window;

struct its_sim_memory {
    its_context *ctx;
    its_sim_allocation *items; /* sorted by base, disjoint */
    size_t count, capacity;
    window *windows;
    size_t n_windows, windows_capacity;
    uint64_t generation, serial;
    uint64_t sym_base, sym_stride;
    uint32_t n_pes, pe;
    size_t freed_next;
    its_sim_allocation freed[FREED_COUNT]; /* size 0: empty */
};

const char *its_sim_kind_text(its_sim_kind kind) {
    static const char *const texts[ITS_SIM_KINDS] = {
        [ITS_SIM_DEVICE] = "device memory",   [ITS_SIM_SYMMETRIC] = "symmetric memory",
        [ITS_SIM_GLOBAL] = "global variable", [ITS_SIM_CONST] = "constant variable",
        [ITS_SIM_HEAP] = "device heap block", [ITS_SIM_HOST] = "host memory",
    };
    return (unsigned)kind < ITS_SIM_KINDS ? texts[kind] : "memory";
}

void its_sim_memory_fresh(void *memory, size_t size) {
    uint16_t pattern[32];
    for (size_t i = 0; i < 32; i++) pattern[i] = ITS_SIM_FRESH;
    char *at = memory;
    for (; size >= sizeof pattern; size -= sizeof pattern, at += sizeof pattern) memcpy(at, pattern, sizeof pattern);
    memcpy(at, pattern, size);
}

its_sim_memory *its_sim_memory_new(its_context *ctx, uint32_t pe) {
    its_sim_memory *memory = its_block_alloc(ctx, sizeof(*memory));
    if (!memory) return NULL;
    memset(memory, 0, sizeof(*memory));
    memory->ctx = ctx;
    memory->pe = pe;
    memory->generation = 1;
    return memory;
}

void its_sim_memory_free(its_sim_memory *memory) {
    if (!memory) return;
    its_context *ctx = memory->ctx;
    its_free(ctx, memory->items);
    its_free(ctx, memory->windows);
    its_free(ctx, memory);
}

uint32_t its_sim_memory_pe(const its_sim_memory *memory) {
    return memory->pe;
}
size_t its_sim_memory_count(const its_sim_memory *memory) {
    return memory->count;
}
uint64_t its_sim_memory_generation(const its_sim_memory *memory) {
    return memory->generation;
}

const its_sim_allocation *its_sim_memory_get(const its_sim_memory *memory, size_t index) {
    return index < memory->count ? &memory->items[index] : NULL;
}

/* -- entries ------------------------------------------------------------------------------------------------------- */

/* Makes room for one more element; false if memory ran out. */
static bool grow(its_context *ctx, void **items, size_t count, size_t *capacity, size_t size) {
    if (count < *capacity) return true;
    size_t wanted = *capacity ? *capacity * 2 : 16;
    if (wanted > SIZE_MAX / size) return false;
    void *bigger = its_block_alloc(ctx, wanted * size);
    if (!bigger) return false;
    if (count) memcpy(bigger, *items, count * size);
    its_free(ctx, *items);
    *items = bigger;
    *capacity = wanted;
    return true;
}

/* The number of entries whose base is at or below `address`: the last of them is the one that may hold it. */
static size_t entries_up_to(const its_sim_memory *memory, uint64_t address) {
    size_t low = 0, high = memory->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (memory->items[middle].base <= address)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static bool holds(const its_sim_allocation *allocation, uint64_t address) {
    return address - allocation->base < allocation->size;
}

static void forget_freed(its_sim_memory *memory, uint64_t base, uint64_t size) {
    for (size_t i = 0; i < FREED_COUNT; i++) {
        its_sim_allocation *freed = &memory->freed[i];
        if (freed->base < base + size && base < freed->base + freed->size) freed->size = 0;
    }
}

its_status its_sim_memory_add(its_sim_memory *memory, uint64_t base, uint64_t size, its_sim_kind kind, bool read_only,
                              its_name name) {
    if (size == 0 || base + size < base) return ITS_ERR_USAGE;
    size_t at = entries_up_to(memory, base);
    if (at > 0 && holds(&memory->items[at - 1], base)) return ITS_ERR_USAGE;
    if (at < memory->count && memory->items[at].base < base + size) return ITS_ERR_USAGE;
    void *items = memory->items;
    if (!grow(memory->ctx, &items, memory->count, &memory->capacity, sizeof(*memory->items))) return ITS_ERR_NOMEM;
    memory->items = items;
    memmove(&memory->items[at + 1], &memory->items[at], (memory->count - at) * sizeof(*memory->items));
    memory->items[at] = (its_sim_allocation){
        .base = base,
        .size = size,
        .serial = ++memory->serial,
        .name = name,
        .kind = (uint8_t)kind,
        .read_only = read_only,
    };
    memory->count++;
    memory->generation++;
    forget_freed(memory, base, size);
    return ITS_OK;
}

bool its_sim_memory_remove(its_sim_memory *memory, uint64_t base) {
    size_t at = entries_up_to(memory, base);
    if (at == 0 || memory->items[at - 1].base != base) return false;
    at--;
    memory->freed[memory->freed_next] = memory->items[at];
    memory->freed_next = (memory->freed_next + 1) % FREED_COUNT;
    memmove(&memory->items[at], &memory->items[at + 1], (memory->count - at - 1) * sizeof(*memory->items));
    memory->count--;
    memory->generation++;
    return true;
}

bool its_sim_memory_set_owner(its_sim_memory *memory, uint64_t base, const void *owner) {
    size_t at = entries_up_to(memory, base);
    if (at == 0 || memory->items[at - 1].base != base) return false;
    memory->items[at - 1].owner = owner;
    return true;
}

const its_sim_allocation *its_sim_memory_at(const its_sim_memory *memory, uint64_t address) {
    size_t at = entries_up_to(memory, address);
    return at > 0 && holds(&memory->items[at - 1], address) ? &memory->items[at - 1] : NULL;
}

its_status its_sim_memory_set_symmetric(its_sim_memory *memory, uint64_t base, uint64_t stride, uint32_t n_pes) {
    if (stride == 0 || n_pes == 0 || memory->pe >= n_pes) return ITS_ERR_USAGE;
    if (stride > (UINT64_MAX - base) / n_pes) return ITS_ERR_USAGE;
    memory->sym_base = base;
    memory->sym_stride = stride;
    memory->n_pes = n_pes;
    memory->generation++;
    return ITS_OK;
}

its_status its_sim_memory_add_window(its_sim_memory *memory, uint64_t base, uint64_t size, const char *what,
                                     uint32_t pe) {
    if (size == 0 || base + size < base) return ITS_ERR_USAGE;
    void *windows = memory->windows;
    if (!grow(memory->ctx, &windows, memory->n_windows, &memory->windows_capacity, sizeof(window)))
        return ITS_ERR_NOMEM;
    memory->windows = windows;
    memory->windows[memory->n_windows++] = (window){base, size, what, pe};
    return ITS_OK;
}

/* -- looking up ---------------------------------------------------------------------------------------------------- */

/*
 * Turns an address in a peer's part of the symmetric region into the one with the same offset in ours. Returns what was
 * subtracted (0 for any other address) and whose part it was.
 */
static uint64_t to_own(const its_sim_memory *memory, uint64_t *address, uint32_t *pe) {
    *pe = memory->pe;
    uint64_t offset = *address - memory->sym_base;
    if (memory->n_pes == 0 || offset >= memory->sym_stride * memory->n_pes) return 0;
    *pe = (uint32_t)(offset / memory->sym_stride);
    uint64_t moved = ((uint64_t)*pe - memory->pe) * memory->sym_stride; /* may wrap: it is added back */
    *address -= moved;
    return moved;
}

bool its_sim_memory_find(const its_sim_memory *memory, uint64_t address, its_sim_range *range) {
    uint32_t pe;
    uint64_t moved = to_own(memory, &address, &pe);
    const its_sim_allocation *found = its_sim_memory_at(memory, address);
    if (!found || (moved && found->kind != ITS_SIM_SYMMETRIC)) return false;
    *range = (its_sim_range){
        .base = found->base + moved,
        .end = found->base + moved + found->size,
        .generation = memory->generation,
        .pe = pe,
        .kind = found->kind,
        .read_only = found->read_only,
    };
    return true;
}

static void near_is(its_sim_nearby *nearby, its_sim_near what, const its_sim_allocation *allocation,
                    uint64_t distance) {
    nearby->what = what;
    nearby->allocation = *allocation;
    nearby->distance = distance;
}

/* Freed blocks, the newest first: memory is used again. */
static bool explain_freed(const its_sim_memory *memory, uint64_t address, its_sim_nearby *nearby) {
    for (size_t i = 1; i <= FREED_COUNT; i++) {
        const its_sim_allocation *freed = &memory->freed[(memory->freed_next + FREED_COUNT - i) % FREED_COUNT];
        if (!holds(freed, address)) continue;
        near_is(nearby, ITS_SIM_NEAR_FREED, freed, address - freed->base);
        return true;
    }
    return false;
}

/* The closest neighbour, if it is close enough to be what was meant. */
static bool explain_neighbour(const its_sim_memory *memory, uint64_t address, its_sim_nearby *nearby) {
    size_t at = entries_up_to(memory, address);
    uint64_t past = UINT64_MAX, before = UINT64_MAX;
    if (at > 0) past = address - (memory->items[at - 1].base + memory->items[at - 1].size);
    if (at < memory->count) before = memory->items[at].base - address;
    if (past <= before && past < NEAR_LIMIT)
        near_is(nearby, ITS_SIM_NEAR_AFTER, &memory->items[at - 1], past);
    else if (before < past && before < NEAR_LIMIT)
        near_is(nearby, ITS_SIM_NEAR_BEFORE, &memory->items[at], before);
    else
        return false;
    return true;
}

static bool explain_window(const its_sim_memory *memory, uint64_t address, its_sim_nearby *nearby) {
    for (size_t i = 0; i < memory->n_windows; i++) {
        const window *w = &memory->windows[i];
        if (address - w->base >= w->size) continue;
        nearby->what = ITS_SIM_NEAR_WINDOW;
        nearby->window = w->what;
        nearby->pe = w->pe;
        nearby->distance = address - w->base;
        return true;
    }
    return false;
}

void its_sim_memory_explain(const its_sim_memory *memory, uint64_t address, its_sim_nearby *nearby) {
    *nearby = (its_sim_nearby){.what = ITS_SIM_NEAR_NOTHING};
    if (address < NULL_END) {
        nearby->what = ITS_SIM_NEAR_NULL;
        return;
    }
    uint64_t own = address;
    uint64_t moved = to_own(memory, &own, &nearby->pe);
    bool in_heap = memory->n_pes && address - memory->sym_base < memory->sym_stride * memory->n_pes;
    const its_sim_allocation *found = its_sim_memory_at(memory, own);
    if (found && (!moved || found->kind == ITS_SIM_SYMMETRIC))
        near_is(nearby, ITS_SIM_NEAR_INSIDE, found, own - found->base);
    else if (explain_freed(memory, own, nearby)) {
    } else if (!in_heap && explain_window(memory, address, nearby)) {
        return;
    } else if (!explain_neighbour(memory, own, nearby)) {
        if (in_heap) nearby->what = ITS_SIM_NEAR_HEAP;
        return;
    }
    nearby->allocation.base += moved;
}
