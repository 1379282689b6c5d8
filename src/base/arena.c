/* Arenas: see arena.h. Chunks grow with the arena, so that a module of any size takes few of them. */
#include "base/arena.h"

#include <stdio.h>
#include <string.h>

#include "base/buffer.h"
#include "base/context.h"

struct its_arena_chunk {
    its_arena_chunk *older;
    size_t size; /* with this header */
    max_align_t data[];
};

enum { FIRST_CHUNK = 4096, LARGEST_CHUNK = 16 << 20, WHOLE_CHUNK = 2 << 20 };

void its_arena_init(its_arena *arena, its_context *ctx) {
    *arena = (its_arena){.ctx = ctx};
}

void its_arena_free(its_arena *arena) {
    its_allocator *from = &arena->ctx->allocator;
    for (its_arena_chunk *chunk = arena->chunks, *older; chunk; chunk = older) {
        older = chunk->older;
        from->resize(from->user, chunk, chunk->size, 0);
    }
    its_arena_init(arena, arena->ctx);
}

/* Grows with the arena. From 2 MB on in multiples of that, the size of a huge page. */
static size_t next_chunk(size_t total) {
    if (total < FIRST_CHUNK) return FIRST_CHUNK;
    size_t size = ITS_ARENA_ROUND(total / 2 + FIRST_CHUNK);
    if (size < WHOLE_CHUNK) return size;
    return size < LARGEST_CHUNK ? size - size % WHOLE_CHUNK : LARGEST_CHUNK;
}

void *its_arena_alloc_slow(its_arena *arena, size_t size) {
    its_allocator *from = &arena->ctx->allocator;
    if (size == 0) return its_arena_alloc(arena, 8);
    if (size > SIZE_MAX / 2) its_guard_raise(arena->ctx);
    size = ITS_ARENA_ROUND(size);
    size_t chunk_size = next_chunk(arena->total);
    bool large = size > chunk_size / 2;
    if (large) chunk_size = size + sizeof(its_arena_chunk);
    its_arena_chunk *chunk = from->resize(from->user, NULL, 0, chunk_size);
    if (!chunk) its_guard_raise(arena->ctx);
    chunk->size = chunk_size;
    arena->total += chunk_size;
    char *block = (char *)chunk->data;
    if (large && arena->chunks) { /* keep filling the current chunk */
        chunk->older = arena->chunks->older;
        arena->chunks->older = chunk;
        return block;
    }
    chunk->older = arena->chunks;
    arena->chunks = chunk;
    arena->next = block + size;
    arena->end = (char *)chunk + chunk_size;
    return block;
}

void *its_arena_zalloc(its_arena *arena, size_t size) {
    void *block = its_arena_alloc(arena, size);
    memset(block, 0, size);
    return block;
}

void *its_arena_array(its_arena *arena, size_t count, size_t size) {
    if (size && count > SIZE_MAX / 2 / size) its_guard_raise(arena->ctx);
    return its_arena_zalloc(arena, count * size);
}

char *its_arena_text(its_arena *arena, const char *text, size_t size) {
    char *copy = its_arena_alloc(arena, size + 1);
    memcpy(copy, text, size);
    copy[size] = 0;
    return copy;
}

char *its_arena_vprintf(its_arena *arena, const char *format, va_list args) {
    va_list again;
    va_copy(again, args);
    int size = vsnprintf(NULL, 0, format, args);
    if (size < 0) {
        va_end(again);
        return its_arena_text(arena, format, strlen(format));
    }
    char *text = its_arena_alloc(arena, (size_t)size + 1);
    vsnprintf(text, (size_t)size + 1, format, again);
    va_end(again);
    return text;
}

char *its_arena_printf(its_arena *arena, const char *format, ...) {
    va_list args;
    va_start(args, format);
    char *text = its_arena_vprintf(arena, format, args);
    va_end(args);
    return text;
}

void *its_vec_grow(its_arena *arena, void *items, size_t count, size_t *capacity, size_t size) {
    size_t more = *capacity ? *capacity * 2 : 8;
    if (more < *capacity || more > SIZE_MAX / 2 / size) its_guard_raise(arena->ctx);
    void *grown = its_arena_alloc(arena, more * size);
    if (count) memcpy(grown, items, count * size);
    *capacity = more;
    return grown;
}

/* -- buffers ------------------------------------------------------------------------------------------------------- */

void its_buffer_init(its_buffer *buffer, its_context *ctx) {
    *buffer = (its_buffer){.ctx = ctx};
}

void its_buffer_free(its_buffer *buffer) {
    its_free(buffer->ctx, buffer->data);
    its_buffer_init(buffer, buffer->ctx);
}

void its_buffer_reserve(its_buffer *buffer, size_t more) {
    if (more > SIZE_MAX / 4 || buffer->size > SIZE_MAX / 4) its_guard_raise(buffer->ctx);
    if (buffer->capacity - buffer->size >= more) return;
    size_t capacity = buffer->capacity ? buffer->capacity : 256;
    while (capacity - buffer->size < more) capacity *= 2;
    char *data = its_block_resize(buffer->ctx, buffer->data, capacity);
    if (!data) its_guard_raise(buffer->ctx);
    buffer->data = data;
    buffer->capacity = capacity;
}

void its_buffer_text(its_buffer *buffer, const char *text) {
    its_buffer_put(buffer, text, strlen(text));
}

void its_buffer_printf(its_buffer *buffer, const char *format, ...) {
    va_list args, again;
    va_start(args, format);
    va_copy(again, args);
    int size = vsnprintf(NULL, 0, format, args);
    va_end(args);
    if (size > 0) {
        its_buffer_reserve(buffer, (size_t)size + 1);
        vsnprintf(buffer->data + buffer->size, (size_t)size + 1, format, again);
        buffer->size += (size_t)size;
    }
    va_end(again);
}

char *its_buffer_take(its_buffer *buffer, size_t *size) {
    its_buffer_char(buffer, 0);
    char *data = buffer->data;
    if (size) *size = buffer->size - 1;
    its_buffer_init(buffer, buffer->ctx);
    return data;
}
