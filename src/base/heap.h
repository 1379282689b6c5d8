/* Where contexts take memory from that were given no allocator of their own. */
#ifndef ITS_BASE_HEAP_H
#define ITS_BASE_HEAP_H

#include <stddef.h>

/* An its_allocator's `resize` (intarsia/base.h). */
void *its_heap_resize(void *user, void *block, size_t old_size, size_t new_size);

#endif
