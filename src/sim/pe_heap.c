/* See pe_heap.h. */
#include "sim/pe_heap.h"

#include <string.h>

void its_heap_init(its_heap *heap, its_context *ctx, uint64_t start, uint64_t end, uint64_t recycle) {
    *heap = (its_heap){.ctx = ctx, .start = start, .end = end, .recycle = recycle, .next = start};
}

void its_heap_free(its_heap *heap) {
    its_free(heap->ctx, heap->live);
    heap->live = NULL;
    heap->count = heap->capacity = 0;
}

/* The index of the first live range that starts at or after `offset`. */
static size_t lower_bound(const its_heap *heap, uint64_t offset) {
    size_t low = 0, high = heap->count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (heap->live[middle].offset < offset)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

const its_range *its_heap_find(const its_heap *heap, uint64_t offset) {
    size_t at = lower_bound(heap, offset);
    return at < heap->count && heap->live[at].offset == offset ? &heap->live[at] : NULL;
}

static bool reserve(its_heap *heap) {
    if (heap->count < heap->capacity) return true;
    size_t capacity = heap->capacity ? heap->capacity * 2 : 32;
    its_range *live = its_block_alloc(heap->ctx, capacity * sizeof *live);
    if (!live) return false;
    if (heap->count) memcpy(live, heap->live, heap->count * sizeof *live);
    its_free(heap->ctx, heap->live);
    heap->live = live;
    heap->capacity = capacity;
    return true;
}

/* The first place from `from` on whose `size` bytes end by `limit`; `*index` is where it goes in the list. */
static bool first_fit(const its_heap *heap, uint64_t from, uint64_t limit, uint64_t size, uint64_t align,
                      uint64_t *offset, size_t *index) {
    size_t at = lower_bound(heap, from);
    uint64_t place = from;
    if (at && heap->live[at - 1].offset + heap->live[at - 1].size + ITS_HEAP_GAP > place)
        place = heap->live[at - 1].offset + heap->live[at - 1].size + ITS_HEAP_GAP;
    for (;; at++) {
        place = (place + align - 1) & ~(align - 1);
        uint64_t end = at < heap->count && heap->live[at].offset < limit ? heap->live[at].offset : limit;
        uint64_t gap = end == limit ? 0 : ITS_HEAP_GAP;
        if (place <= end && end - place >= gap && end - place - gap >= size) {
            *offset = place;
            *index = at;
            return true;
        }
        if (end == limit) return false;
        place = heap->live[at].offset + heap->live[at].size + ITS_HEAP_GAP;
    }
}

its_status its_heap_take(its_heap *heap, uint64_t size, uint64_t align, uint64_t *offset) {
    size_t index;
    if (size > heap->end - heap->start || align > heap->end || !reserve(heap)) return ITS_ERR_NOMEM;
    uint64_t soft = 2 * heap->peak + heap->recycle;
    if (heap->next - heap->start > soft) heap->next = heap->start;
    if (!first_fit(heap, heap->next, heap->end, size, align, offset, &index) &&
        !first_fit(heap, heap->start, heap->end, size, align, offset, &index))
        return ITS_ERR_NOMEM;
    memmove(&heap->live[index + 1], &heap->live[index], (heap->count - index) * sizeof *heap->live);
    heap->live[index] = (its_range){*offset, size};
    heap->count++;
    heap->next = *offset + size;
    heap->used += size;
    if (heap->used > heap->peak) heap->peak = heap->used;
    return ITS_OK;
}

bool its_heap_give(its_heap *heap, uint64_t offset) {
    size_t at = lower_bound(heap, offset);
    if (at == heap->count || heap->live[at].offset != offset) return false;
    heap->used -= heap->live[at].size;
    heap->count--;
    memmove(&heap->live[at], &heap->live[at + 1], (heap->count - at) * sizeof *heap->live);
    return true;
}
