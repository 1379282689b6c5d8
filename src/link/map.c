/* Keys are addresses of objects at least eight bytes apart: the low bits say nothing, a multiplication spreads the
 * rest. */
#include "link/map.h"

#include <string.h>

static size_t slot_of(const its_map *map, const void *key) {
    uint64_t hash = ((uint64_t)(uintptr_t)key >> 3) * UINT64_C(0x9E3779B97F4A7C15);
    size_t mask = map->capacity - 1, at = (size_t)(hash >> 20) & mask;
    while (map->slots[at].key && map->slots[at].key != key) at = (at + 1) & mask;
    return at;
}

void *its_map_get(const its_map *map, const void *key) {
    return map->capacity ? map->slots[slot_of(map, key)].value : NULL;
}

static void grow(its_map *map, its_arena *arena) {
    its_map old = *map;
    map->capacity = old.capacity ? old.capacity * 2 : 16;
    map->slots = ITS_NEW_ARRAY(arena, its_map_slot, map->capacity);
    for (size_t i = 0; i < old.capacity; i++)
        if (old.slots[i].key) map->slots[slot_of(map, old.slots[i].key)] = old.slots[i];
}

void its_map_put(its_map *map, its_arena *arena, const void *key, void *value) {
    if (map->count >= map->capacity / 2) grow(map, arena);
    its_map_slot *slot = &map->slots[slot_of(map, key)];
    if (!slot->key) map->count++;
    *slot = (its_map_slot){key, value};
}

void its_map_clear(its_map *map) {
    if (map->count) memset(map->slots, 0, map->capacity * sizeof *map->slots);
    map->count = 0;
}
