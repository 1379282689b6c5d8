/* Contexts: the allocator that everything goes through, guards for when it fails, and the table of names. */
#include "base/context.h"

#include <string.h>
#include <xxhash.h>

#include "base/heap.h"
#include "base/intern.h"

const char *its_status_text(its_status status) {
    switch (status) {
    case ITS_OK:
        return "ok";
    case ITS_ERR_INPUT:
        return "bad input";
    case ITS_ERR_NOMEM:
        return "out of memory";
    case ITS_ERR_IO:
        return "input or output failed";
    case ITS_ERR_ABSENT:
        return "something needed is not on this machine";
    case ITS_ERR_USAGE:
        return "wrong use of a function";
    case ITS_ERR_FAULT:
        return "a kernel faulted";
    case ITS_ERR_INTERRUPTED:
        return "interrupted";
    }
    return "unknown status";
}

const char *its_version(void) {
    return ITS_VERSION_STRING;
}

/* -- allocation ---------------------------------------------------------------------------------------------------- */

its_context *its_context_new(const its_allocator *allocator) {
    its_allocator from = {its_heap_resize, NULL};
    if (allocator) from = *allocator;
    its_context *ctx = from.resize(from.user, NULL, 0, sizeof *ctx);
    if (!ctx) return NULL;
    memset(ctx, 0, sizeof *ctx);
    ctx->allocator = from;
    its_arena_init(&ctx->names_arena, ctx);
    its_arena_init(&ctx->diag_arena, ctx);
    return ctx;
}

void its_context_free(its_context *ctx) {
    if (!ctx) return;
    its_arena_free(&ctx->names_arena);
    its_arena_free(&ctx->diag_arena);
    if (ctx->names.slots)
        ctx->allocator.resize(ctx->allocator.user, ctx->names.slots, ctx->names.capacity * sizeof(its_name), 0);
    ctx->allocator.resize(ctx->allocator.user, ctx, sizeof *ctx, 0);
}

/* Blocks carry their size in front, so that any allocator can be told it when they are freed. */
typedef union block_header {
    size_t size;
    max_align_t align;
} block_header;

void *its_block_alloc(its_context *ctx, size_t size) {
    if (size > SIZE_MAX - sizeof(block_header)) return NULL;
    block_header *header = ctx->allocator.resize(ctx->allocator.user, NULL, 0, size + sizeof *header);
    if (!header) return NULL;
    header->size = size;
    return header + 1;
}

void *its_block_resize(its_context *ctx, void *block, size_t size) {
    if (!block) return its_block_alloc(ctx, size);
    if (size > SIZE_MAX - sizeof(block_header)) return NULL;
    block_header *header = (block_header *)block - 1;
    header = ctx->allocator.resize(ctx->allocator.user, header, header->size + sizeof *header, size + sizeof *header);
    if (!header) return NULL;
    header->size = size;
    return header + 1;
}

void its_free(its_context *ctx, void *block) {
    if (!block) return;
    block_header *header = (block_header *)block - 1;
    ctx->allocator.resize(ctx->allocator.user, header, header->size + sizeof *header, 0);
}

/* -- guards -------------------------------------------------------------------------------------------------------- */

jmp_buf *its_guard_push(its_context *ctx, its_guard *guard) {
    guard->outer = ctx->guard;
    ctx->guard = guard;
    return &guard->jump;
}

void its_guard_leave(its_context *ctx, its_guard *guard) {
    ctx->guard = guard->outer;
}

its_status its_guard_failed(its_context *ctx, its_guard *guard) {
    ctx->guard = guard->outer;
    return its_no_memory(ctx);
}

its_status its_no_memory(its_context *ctx) {
    ctx->out_of_memory = true;
    return ITS_ERR_NOMEM;
}

its_status its_protect(its_context *ctx, its_status (*body)(void *user), void *user) {
    its_guard guard;
    if (its_guard_enter(ctx, &guard)) return its_guard_failed(ctx, &guard);
    its_status status = body(user);
    its_guard_leave(ctx, &guard);
    return status;
}

void its_guard_raise(its_context *ctx) {
    /* A missing guard is a bug of this library: stop at its place rather than run on with a NULL block. */
    if (!ctx->guard) __builtin_trap();
    longjmp(ctx->guard->jump, 1);
}

/* -- names --------------------------------------------------------------------------------------------------------- */

static bool names_grow(its_context *ctx) {
    its_name_table *table = &ctx->names;
    size_t capacity = table->capacity ? table->capacity * 2 : 1024;
    its_name *slots = ctx->allocator.resize(ctx->allocator.user, NULL, 0, capacity * sizeof *slots);
    if (!slots) return false;
    memset(slots, 0, capacity * sizeof *slots);
    for (size_t i = 0; i < table->capacity; i++) {
        its_name name = table->slots[i];
        if (!name) continue;
        size_t at = name->hash & (capacity - 1);
        while (slots[at]) at = (at + 1) & (capacity - 1);
        slots[at] = name;
    }
    if (table->slots) ctx->allocator.resize(ctx->allocator.user, table->slots, table->capacity * sizeof *slots, 0);
    table->slots = slots;
    table->capacity = capacity;
    return true;
}

/* Short texts, most of them registers, hash fastest a word at a time; long ones go to xxHash. */
static uint32_t hash_of(const char *text, size_t size) {
    if (size > 16) return (uint32_t)XXH3_64bits(text, size);
    uint64_t a = 0, b = 0;
    if (size >= 8) {
        memcpy(&a, text, 8);
        memcpy(&b, text + size - 8, 8);
    } else if (size >= 4) {
        uint32_t low, high;
        memcpy(&low, text, 4);
        memcpy(&high, text + size - 4, 4);
        a = low | (uint64_t)high << 32;
    } else if (size) {
        a = (uint64_t)(unsigned char)text[0] | (uint64_t)(unsigned char)text[size / 2] << 8 |
            (uint64_t)(unsigned char)text[size - 1] << 16;
    }
    uint64_t h = (a ^ size) * 0x9E3779B97F4A7C15u;
    h = (h ^ (h >> 32) ^ b) * 0xD6E8FEB86659FD93u;
    return (uint32_t)(h ^ (h >> 32));
}

/* The place of a name, or the empty one where it would go. */
static its_name *find_slot(const its_name_table *table, const char *text, size_t size, uint32_t hash) {
    size_t mask = table->capacity - 1, at = hash & mask;
    for (its_name name; (name = table->slots[at]); at = (at + 1) & mask)
        if (name->hash == hash && name->size == size && memcmp(name->text, text, size) == 0) break;
    return &table->slots[at];
}

its_name its_intern_raise(its_context *ctx, const char *text, size_t size) {
    its_name_table *table = &ctx->names;
    if ((table->count + 1) * 2 > table->capacity && !names_grow(ctx)) its_guard_raise(ctx);
    uint32_t hash = hash_of(text, size);
    its_name *slot = find_slot(table, text, size, hash);
    if (*slot) return *slot;
    if (size > UINT32_MAX - 1) its_guard_raise(ctx);
    its_str *name = its_arena_alloc(&ctx->names_arena, sizeof *name + size + 1);
    *name = (its_str){.size = (uint32_t)size, .hash = hash};
    memcpy(name->text, text, size);
    name->text[size] = 0;
    table->count++;
    return *slot = name;
}

its_name its_intern_text(its_context *ctx, const char *text) {
    return its_intern_raise(ctx, text, strlen(text));
}

its_name its_intern_find(its_context *ctx, const char *text, size_t size) {
    return ctx->names.count ? *find_slot(&ctx->names, text, size, hash_of(text, size)) : NULL;
}

typedef struct intern_job {
    its_context *ctx;
    const char *text;
    size_t size;
    its_name name;
} intern_job;

static its_status intern_body(void *user) {
    intern_job *job = user;
    job->name = its_intern_raise(job->ctx, job->text, job->size);
    return ITS_OK;
}

its_name its_intern(its_context *ctx, const char *text, size_t size) {
    intern_job job = {ctx, text, size, NULL};
    its_protect(ctx, intern_body, &job);
    return job.name;
}

its_arena *its_names_arena(its_context *ctx) {
    return &ctx->names_arena;
}
