/* What a cache entry of a unit holds, and how it is packed: lengths in front of texts, a checksum in front of all. */
#ifndef ITS_CC_ENTRY_H
#define ITS_CC_ENTRY_H

#include "base/arena.h"
#include "base/hash.h"
#include "intarsia/cc.h"

/* Where in the PTX the mark of a file stands, to be replaced by its path. */
typedef struct its_entry_mark {
    uint64_t offset, size;
    uint64_t number; /* 0: the source, n: the n-th file that was read */
} its_entry_mark;

typedef struct its_entry {
    const char *ptx; /* NUL-terminated, as are all texts */
    uint64_t ptx_size;
    const char *log;
    uint64_t n_funcs;
    its_unit_func *funcs;
    uint64_t n_marks;
    its_entry_mark *marks;
} its_entry;

void its_entry_pack(its_arena *arena, const its_digest *key, const its_entry *entry, char **data, size_t *size);
/* False if the data is damaged or of another key; else the entry points into the data and the arena. */
bool its_entry_unpack(its_arena *arena, const its_digest *key, char *data, size_t size, its_entry *entry);

#endif
