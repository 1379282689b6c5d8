/*
 * The heap: malloc for what is small, huge pages for what is large.
 *
 * A module of megabytes is written once and then walked by one pass after the other. With pages of 4 KB a third of the
 * time goes into bringing them in, and more into finding them again; pages of 2 MB take most of that away. Blocks of
 * that size and more are mapped, aligned so that the system can use such pages; where it doesn't, nothing is lost.
 * Which kind a block is, is told by its size, which callers know.
 *
 * Under AddressSanitizer everything comes from malloc, which it watches.
 */
#include "base/heap.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#ifndef __has_feature
#define __has_feature(name) 0
#endif

enum { HUGE_PAGE = 2 << 20 };

#if defined(__SANITIZE_ADDRESS__) || __has_feature(address_sanitizer)
static const size_t least_mapped = SIZE_MAX;
#else
static const size_t least_mapped = HUGE_PAGE;
#endif

static size_t whole_pages(size_t size) {
    return (size + HUGE_PAGE - 1) & ~(size_t)(HUGE_PAGE - 1);
}

/* Maps one page too much and gives back what stands over at both ends. */
static void *map(size_t size) {
    size = whole_pages(size);
    char *from = mmap(NULL, size + HUGE_PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (from == MAP_FAILED) return NULL;
    size_t before = whole_pages((uintptr_t)from) - (uintptr_t)from;
    if (before) munmap(from, before);
    munmap(from + before + size, HUGE_PAGE - before);
    madvise(from + before, size, MADV_HUGEPAGE);
    return from + before;
}

static void *take(size_t size) {
    if (size > SIZE_MAX / 2) return NULL;
    return size < least_mapped ? malloc(size) : map(size);
}

static void give(void *block, size_t size) {
    if (size < least_mapped)
        free(block);
    else
        munmap(block, whole_pages(size));
}

/* Moves the pages, not what is in them. */
static void *remap(void *block, size_t old_size, size_t new_size) {
    void *to = take(new_size);
    if (!to) return NULL;
    void *moved = mremap(block, whole_pages(old_size), whole_pages(new_size), MREMAP_MAYMOVE | MREMAP_FIXED, to);
    if (moved != MAP_FAILED) return moved;
    munmap(to, whole_pages(new_size));
    return NULL;
}

static void *move(void *block, size_t old_size, size_t new_size) {
    void *moved = take(new_size);
    if (!moved) return NULL;
    memcpy(moved, block, old_size < new_size ? old_size : new_size);
    give(block, old_size);
    return moved;
}

void *its_heap_resize(void *user, void *block, size_t old_size, size_t new_size) {
    (void)user;
    if (new_size == 0) {
        if (block) give(block, old_size);
        return NULL;
    }
    if (!block) return take(new_size);
    bool was_mapped = old_size >= least_mapped, mapped = new_size >= least_mapped;
    if (was_mapped != mapped) return move(block, old_size, new_size);
    return mapped ? remap(block, old_size, new_size) : realloc(block, new_size);
}
