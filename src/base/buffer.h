/*
 * A growing byte buffer from the context's allocator. Like arenas it never fails in the hand of its user: running out
 * of memory jumps to the context's guard, which must free the buffer.
 */
#ifndef ITS_BASE_BUFFER_H
#define ITS_BASE_BUFFER_H

#include <string.h>

#include "base/arena.h"

typedef struct its_buffer {
    its_context *ctx;
    char *data;
    size_t size, capacity;
} its_buffer;

void its_buffer_init(its_buffer *buffer, its_context *ctx);
void its_buffer_free(its_buffer *buffer);
void its_buffer_reserve(its_buffer *buffer, size_t more);
static inline void its_buffer_put(its_buffer *buffer, const char *text, size_t size) {
    if (buffer->capacity - buffer->size < size) its_buffer_reserve(buffer, size);
    if (size) memcpy(buffer->data + buffer->size, text, size);
    buffer->size += size;
}
static inline void its_buffer_char(its_buffer *buffer, char c) {
    its_buffer_put(buffer, &c, 1);
}
void its_buffer_text(its_buffer *buffer, const char *text);
void its_buffer_printf(its_buffer *buffer, const char *format, ...) ITS_PRINTF(2, 3);
/* Hands over the bytes, NUL-terminated (the NUL is not counted in `size`); free with its_free. */
char *its_buffer_take(its_buffer *buffer, size_t *size);

#endif
