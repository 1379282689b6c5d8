/* What compiling a source depends on. */
#include "cc/reads.h"

#include <string.h>

#include "base/file.h"
#include "base/path.h"

enum { MOST_FILES = 20000, LARGEST_FILE = 256 << 20, MOST_BYTES = 1 << 30 };

/* -- the map ------------------------------------------------------------------------------------------------------- */

struct its_text_slot {
    const char *key; /* NULL: empty */
    uint64_t hash;
    void *value;
};

static struct its_text_slot *slot_of(const its_text_map *map, const char *key, uint64_t hash) {
    size_t at = hash & (map->capacity - 1);
    while (map->slots[at].key && (map->slots[at].hash != hash || strcmp(map->slots[at].key, key) != 0))
        at = (at + 1) & (map->capacity - 1);
    return &map->slots[at];
}

static void map_grow(its_arena *arena, its_text_map *map) {
    its_text_map grown = {.count = map->count, .capacity = map->capacity ? map->capacity * 2 : 64};
    grown.slots = ITS_NEW_ARRAY(arena, struct its_text_slot, grown.capacity);
    for (size_t i = 0; i < map->capacity; i++)
        if (map->slots[i].key) *slot_of(&grown, map->slots[i].key, map->slots[i].hash) = map->slots[i];
    *map = grown;
}

void **its_text_map_at(its_arena *arena, its_text_map *map, const char *key) {
    if ((map->count + 1) * 2 > map->capacity) map_grow(arena, map);
    size_t size = strlen(key);
    uint64_t hash = XXH3_64bits(key, size);
    struct its_text_slot *slot = slot_of(map, key, hash);
    if (!slot->key) {
        *slot = (struct its_text_slot){its_arena_text(arena, key, size), hash, NULL};
        map->count++;
    }
    return &slot->value;
}

/* -- reading ------------------------------------------------------------------------------------------------------- */

void its_reads_init(its_cc_reads *reads, its_arena *arena) {
    *reads = (its_cc_reads){.arena = arena};
    its_hash_init(&reads->hasher);
    its_buffer_init(&reads->content, arena->ctx);
}

void its_reads_free(its_cc_reads *reads) {
    if (reads->arena) its_buffer_free(&reads->content);
}

void its_reads_text(its_cc_reads *reads, const char *text) {
    its_hash_text(&reads->hasher, text);
}

its_read_file *its_reads_file(its_cc_reads *reads, const char *path, bool *first) {
    const char *full = its_path_absolute(reads->arena, path);
    void **known = its_text_map_at(reads->arena, &reads->known, full);
    its_read_file *file = *known;
    *first = !file;
    if (!file) {
        if (!its_file_is_regular(full)) return NULL;
        file = *known = ITS_NEW(reads->arena, its_read_file);
        *file = (its_read_file){full, reads->files.count};
        ITS_PUSH(reads->arena, &reads->files, file);
    }
    its_hash_field(&reads->hasher, &file->index, sizeof file->index);
    return file;
}

bool its_reads_content(its_cc_reads *reads, const its_read_file *file) {
    if (file->index >= MOST_FILES || reads->bytes > MOST_BYTES) reads->too_much = file->path;
    if (reads->too_much || its_file_read_buffer(&reads->content, file->path, LARGEST_FILE)) {
        its_reads_text(reads, "unreadable");
        return false;
    }
    reads->bytes += reads->content.size;
    its_hash_content(&reads->hasher, reads->content.data, reads->content.size);
    return true;
}

/* -- for dialects from outside ------------------------------------------------------------------------------------- */

typedef struct host_job {
    its_cc_reads *reads;
    const char *path;
    bool read;
} host_job;

static its_status host_body(void *user) {
    host_job *job = user;
    bool first;
    its_read_file *file = its_reads_file(job->reads, job->path, &first);
    if (!file) its_reads_text(job->reads, "absent");
    job->read = file && (!first || its_reads_content(job->reads, file));
    return ITS_OK;
}

bool its_host_reads_file(its_cc_reads *reads, const char *path) {
    host_job job = {.reads = reads, .path = path};
    its_protect(reads->arena->ctx, host_body, &job);
    return job.read;
}

void its_host_reads_text(its_cc_reads *reads, const void *text, size_t size) {
    its_hash_field(&reads->hasher, text, size);
}
