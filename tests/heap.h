/*
 * The memory of a context under test: it counts what is held, and it runs out where the test says.
 *
 *     test_heap heap = {.fail_at = 3};
 *     its_allocator allocator = test_heap_allocator(&heap);
 *     its_context *ctx = its_context_new(&allocator); // its third allocation fails
 *     ...
 *     its_context_free(ctx);
 *     assert_int_equal(heap.held, 0);
 */
#ifndef TESTS_HEAP_H
#define TESTS_HEAP_H

#include <stdint.h>
#include <stdlib.h>

#include "intarsia/base.h"

typedef struct test_heap {
    _Atomic uint64_t calls;   /* allocations asked for so far */
    _Atomic uint64_t fail_at; /* the one that fails, counted from 1; 0: none */
    _Atomic int64_t held;     /* bytes in use */
    int64_t peak;             /* the most that was; of contexts in one thread only */
    bool stays_empty;         /* all that follow fail as well */
} test_heap;

static inline void *test_heap_resize(void *user, void *block, size_t old_size, size_t new_size) {
    test_heap *heap = user;
    int64_t old = block ? (int64_t)old_size : 0;
    if (new_size == 0) {
        heap->held -= old;
        free(block);
        return NULL;
    }
    uint64_t call = ++heap->calls, fail_at = heap->fail_at;
    if (fail_at && (heap->stays_empty ? call >= fail_at : call == fail_at)) return NULL;
    heap->held += (int64_t)new_size - old;
    if (heap->held > heap->peak) heap->peak = heap->held;
    return realloc(block, new_size);
}

static inline its_allocator test_heap_allocator(test_heap *heap) {
    return (its_allocator){test_heap_resize, heap};
}

/* The n-th allocation from now on fails; 0: none does. */
static inline void test_heap_fail(test_heap *heap, uint64_t n) {
    heap->calls = 0;
    heap->fail_at = n;
}

#endif
