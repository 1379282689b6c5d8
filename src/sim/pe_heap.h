/*
 * Handing out ranges of a space of addresses: first fit after the last one handed out, so that what was freed is not
 * used again soon and a stale pointer is noticed. It is deterministic: PEs that ask alike are answered alike, which is
 * how the symmetric heap gives every PE the same offsets without a word being exchanged. Between two ranges lies a gap,
 * so that running over the end of one does not reach the next.
 */
#ifndef ITS_SIM_PE_HEAP_H
#define ITS_SIM_PE_HEAP_H

#include "base/arena.h"

typedef struct its_range {
    uint64_t offset, size;
} its_range;

typedef struct its_heap {
    its_context *ctx;
    uint64_t start, end; /* offsets that may be handed out */
    uint64_t recycle;    /* start over once this much lies behind the first offset; `end` to use all before */
    uint64_t next;       /* where to look first */
    uint64_t used, peak; /* bytes in live ranges */
    its_range *live;     /* sorted by offset */
    size_t count, capacity;
} its_heap;

enum { ITS_HEAP_GAP = 256 };

void its_heap_init(its_heap *heap, its_context *ctx, uint64_t start, uint64_t end, uint64_t recycle);
void its_heap_free(its_heap *heap);
/* ITS_ERR_NOMEM if no range is free, or if the list can't grow; no diagnostics. `align` is a power of two. */
its_status its_heap_take(its_heap *heap, uint64_t size, uint64_t align, uint64_t *offset);
/* The live range that starts at `offset`; NULL if none. */
const its_range *its_heap_find(const its_heap *heap, uint64_t offset);
bool its_heap_give(its_heap *heap, uint64_t offset);

#endif
