/*
 * Arenas, and what happens when memory runs out.
 *
 * An arena hands out memory by advancing a pointer and frees it all at once. Code that allocates from one never checks
 * for NULL: when memory runs out, control jumps to the innermost guard of the context, as Lua's error handling does.
 * Each public function that allocates does its work in a body that its_protect runs, and cleans up after it:
 *
 *     its_status status = its_protect(ctx, parse_body, &job);   // ITS_ERR_NOMEM if memory ran out in it
 *     if (status != ITS_OK) its_module_free(job.module);
 *
 * A function that would rather not be cut in two opens a guard by hand (locals that change after it must be volatile):
 *
 *     its_guard guard;
 *     if (its_guard_enter(ctx, &guard)) {          // taken when memory ran out below
 *         its_arena_free(&scratch);
 *         return its_guard_failed(ctx, &guard);
 *     }
 *     ... allocate freely ...
 *     its_guard_leave(ctx, &guard);
 *
 * Guards nest. What holds a resource that no arena owns (a file, a library) must hold its own guard.
 */
#ifndef ITS_BASE_ARENA_H
#define ITS_BASE_ARENA_H

#include <setjmp.h>
#include <stdarg.h>

#include "intarsia/base.h"

typedef struct its_arena_chunk its_arena_chunk;

typedef struct its_arena {
    its_context *ctx;
    its_arena_chunk *chunks; /* newest first */
    char *next, *end;
    size_t total; /* bytes taken from the context's allocator */
} its_arena;

void its_arena_init(its_arena *arena, its_context *ctx);
void its_arena_free(its_arena *arena); /* also makes it usable again */

#define ITS_ARENA_ROUND(size) (((size) + 7u) & ~(size_t)7u)

/* `size` bytes aligned for any type, not cleared. Never NULL. */
void *its_arena_alloc_slow(its_arena *arena, size_t size);
static inline void *its_arena_alloc(its_arena *arena, size_t size) {
    if (size == 0 || size > (size_t)(arena->end - arena->next)) return its_arena_alloc_slow(arena, size);
    size = ITS_ARENA_ROUND(size); /* fits as well: what is left is a multiple of 8 */
    void *block = arena->next;
    arena->next += size;
    return block;
}
void *its_arena_zalloc(its_arena *arena, size_t size);
/* `count` elements of `size` bytes, cleared; the product is checked. */
void *its_arena_array(its_arena *arena, size_t count, size_t size);
char *its_arena_text(its_arena *arena, const char *text, size_t size); /* a NUL-terminated copy */
char *its_arena_printf(its_arena *arena, const char *format, ...) ITS_PRINTF(2, 3);
char *its_arena_vprintf(its_arena *arena, const char *format, va_list args) ITS_PRINTF(2, 0);

#define ITS_NEW(arena, type) ((type *)its_arena_zalloc((arena), sizeof(type)))
#define ITS_NEW_ARRAY(arena, type, count) ((type *)its_arena_array((arena), (count), sizeof(type)))

/* -- growing arrays ------------------------------------------------------------------------------------------------ */

/* Appends room for one element to an arena-backed vector `v` with fields `items`, `count`, `capacity`. */
void *its_vec_grow(its_arena *arena, void *items, size_t count, size_t *capacity, size_t size);
#define ITS_VEC(type)           \
    struct {                    \
        type *items;            \
        size_t count, capacity; \
    }
#define ITS_PUSH(arena, vec, value)                                                                                    \
    do {                                                                                                               \
        if ((vec)->count == (vec)->capacity)                                                                           \
            (vec)->items = its_vec_grow((arena), (vec)->items, (vec)->count, &(vec)->capacity, sizeof(*(vec)->items)); \
        (vec)->items[(vec)->count++] = (value);                                                                        \
    } while (0)

/* -- guards -------------------------------------------------------------------------------------------------------- */

typedef struct its_guard {
    struct its_guard *outer;
    jmp_buf jump;
} its_guard;

jmp_buf *its_guard_push(its_context *ctx, its_guard *guard);
void its_guard_leave(its_context *ctx, its_guard *guard);
/* After the jump: removes the guard, records "out of memory" and returns ITS_ERR_NOMEM. */
its_status its_guard_failed(its_context *ctx, its_guard *guard);
#define its_guard_enter(ctx, guard) setjmp(*its_guard_push((ctx), (guard)))
/* Runs `body(user)` under a guard; its status, or ITS_ERR_NOMEM if memory ran out. */
its_status its_protect(its_context *ctx, its_status (*body)(void *user), void *user);
/* Jumps to the innermost guard; the only way that running out of memory is reported from inside the library. */
_Noreturn void its_guard_raise(its_context *ctx);
/* For code that checks for NULL instead: records "out of memory", which needs none, and returns ITS_ERR_NOMEM. */
its_status its_no_memory(its_context *ctx);

/* -- blocks that no arena owns ------------------------------------------------------------------------------------- */

/* From the context's allocator; NULL if memory ran out. Such blocks are freed with its_free. */
void *its_block_alloc(its_context *ctx, size_t size);
/*
 * The same block with another size, perhaps elsewhere; a new one if it is NULL. NULL, and no change, if memory ran out.
 */
void *its_block_resize(its_context *ctx, void *block, size_t size);

#endif
