/* Packing entries. Numbers are 64 bits in the machine's own order: a cache is not carried to another machine. */
#include "cc/entry.h"

#include <string.h>

/* Raised whenever the layout below changes; what it was packed by is in the key as well. */
static const char magic[8] = "itsunit1";

typedef struct preamble {
    char magic[8];
    uint64_t checksum; /* of everything behind the preamble */
    char key[32];      /* the long form: two contents may share the short one */
} preamble;

/* -- packing ------------------------------------------------------------------------------------------------------- */

typedef struct packer {
    its_arena *arena;
    ITS_VEC(char) bytes;
} packer;

static void put(packer *p, const void *data, size_t size) {
    while (p->bytes.capacity - p->bytes.count < size)
        p->bytes.items = its_vec_grow(p->arena, p->bytes.items, p->bytes.count, &p->bytes.capacity, 1);
    if (size) memcpy(p->bytes.items + p->bytes.count, data, size);
    p->bytes.count += size;
}

static void put_number(packer *p, uint64_t number) {
    put(p, &number, sizeof number);
}

static void put_text(packer *p, const char *text, size_t size) {
    put_number(p, size);
    put(p, text, size);
    put(p, "", 1);
}

void its_entry_pack(its_arena *arena, const its_digest *key, const its_entry *entry, char **data, size_t *size) {
    packer p = {.arena = arena};
    preamble head = {0};
    put(&p, &head, sizeof head);
    put_text(&p, entry->ptx, entry->ptx_size);
    put_text(&p, entry->log, strlen(entry->log));
    put_number(&p, entry->n_funcs);
    for (uint64_t i = 0; i < entry->n_funcs; i++) {
        put_text(&p, entry->funcs[i].name, strlen(entry->funcs[i].name));
        put_text(&p, entry->funcs[i].spelling, strlen(entry->funcs[i].spelling));
    }
    put_number(&p, entry->n_marks);
    put(&p, entry->marks, entry->n_marks * sizeof *entry->marks);
    memcpy(head.magic, magic, sizeof magic);
    memcpy(head.key, key->wide, sizeof head.key);
    head.checksum = XXH3_64bits(p.bytes.items + sizeof head, p.bytes.count - sizeof head);
    memcpy(p.bytes.items, &head, sizeof head);
    *data = p.bytes.items;
    *size = p.bytes.count;
}

/* -- unpacking ----------------------------------------------------------------------------------------------------- */

typedef struct unpacker {
    char *next, *end;
    bool ok;
} unpacker;

static char *get(unpacker *u, uint64_t size) {
    if (!u->ok || (uint64_t)(u->end - u->next) < size) return u->ok = false, NULL;
    u->next += size;
    return u->next - size;
}

static uint64_t get_number(unpacker *u) {
    uint64_t number = 0;
    const char *at = get(u, sizeof number);
    if (at) memcpy(&number, at, sizeof number);
    return number;
}

static const char *get_text(unpacker *u, uint64_t *size) {
    *size = get_number(u);
    char *text = get(u, *size), *end = get(u, 1);
    if (u->ok && *end) u->ok = false;
    return u->ok ? text : "";
}

/* A count of elements of at least `each` bytes: no larger than what is left allows. */
static uint64_t get_count(unpacker *u, size_t each) {
    uint64_t count = get_number(u);
    if (count > (uint64_t)(u->end - u->next) / each) u->ok = false;
    return u->ok ? count : 0;
}

static bool check_marks(const its_entry *entry) {
    uint64_t done = 0;
    for (uint64_t i = 0; i < entry->n_marks; i++) {
        const its_entry_mark *mark = &entry->marks[i];
        if (mark->offset < done || mark->offset > entry->ptx_size || mark->size > entry->ptx_size - mark->offset)
            return false;
        done = mark->offset + mark->size;
    }
    return true;
}

bool its_entry_unpack(its_arena *arena, const its_digest *key, char *data, size_t size, its_entry *entry) {
    preamble head;
    uint64_t length;
    unpacker u = {data, data + size, true};
    const char *at = get(&u, sizeof head);
    if (!at) return false;
    memcpy(&head, at, sizeof head);
    if (memcmp(head.magic, magic, sizeof magic) != 0 || memcmp(head.key, key->wide, sizeof head.key) != 0 ||
        head.checksum != XXH3_64bits(u.next, (size_t)(u.end - u.next)))
        return false;
    entry->ptx = get_text(&u, &entry->ptx_size);
    entry->log = get_text(&u, &length);
    entry->n_funcs = get_count(&u, 2 * (sizeof(uint64_t) + 1));
    entry->funcs = ITS_NEW_ARRAY(arena, its_unit_func, entry->n_funcs);
    for (uint64_t i = 0; i < entry->n_funcs; i++) {
        entry->funcs[i].name = get_text(&u, &length);
        entry->funcs[i].spelling = get_text(&u, &length);
    }
    entry->n_marks = get_count(&u, sizeof *entry->marks);
    entry->marks = ITS_NEW_ARRAY(arena, its_entry_mark, entry->n_marks);
    at = get(&u, entry->n_marks * sizeof *entry->marks);
    if (u.ok && entry->n_marks) memcpy(entry->marks, at, entry->n_marks * sizeof *entry->marks);
    return u.ok && u.next == u.end && check_marks(entry);
}
