/*
 * A map from pointers to pointers, for names and symbols: open addressing in an arena, no deletion. A cleared map
 * (all zero) is empty.
 */
#ifndef ITS_LINK_MAP_H
#define ITS_LINK_MAP_H

#include "base/arena.h"

typedef struct its_map_slot {
    const void *key;
    void *value;
} its_map_slot;

typedef struct its_map {
    its_map_slot *slots;
    size_t count, capacity; /* capacity is 0 or a power of two */
} its_map;

void *its_map_get(const its_map *map, const void *key); /* NULL if it is not there */
void its_map_put(its_map *map, its_arena *arena, const void *key, void *value);
void its_map_clear(its_map *map); /* keeps the memory */

#endif
