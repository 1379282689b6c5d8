/*
 * The cache on disk. It knows nothing of what it holds:
 *
 *     DIRECTORY/              $INTARSIA_CACHE_DIR, $XDG_CACHE_HOME/intarsia or ~/.cache/intarsia; mode 0700
 *         cc/                 a kind of entries
 *             5f0c.../        one entry, named by the 16 hex digits of its key; written aside and renamed into place
 *                 data
 *             5f0c....lock    who holds a lock on it is making that entry
 *             .new-...        one being written
 *
 * Nothing here is an error for the caller: without a usable directory everything misses, and the context has one
 * warning that says why.
 */
#ifndef ITS_CC_CACHE_H
#define ITS_CC_CACHE_H

#include "base/arena.h"
#include "base/hash.h"

typedef struct its_cache {
    its_context *ctx;
    const char *path; /* of the directory of that kind */
    int fd;           /* of it; -1: there is no cache */
} its_cache;

/* Opens, or makes, the directory for entries of a kind. Close it with its_cache_close. */
void its_cache_open(its_context *ctx, its_arena *arena, const char *kind, its_cache *cache);
void its_cache_close(its_cache *cache);

/* The entry's data into the arena; false if there is none. */
bool its_cache_load(const its_cache *cache, its_arena *arena, const char *key, char **data, size_t *size);
/* Puts an entry in place, unless another process has done so. */
void its_cache_store(its_cache *cache, its_arena *arena, const char *key, const char *data, size_t size);
/* Takes an entry that turned out to be damaged away. */
void its_cache_drop(const its_cache *cache, const char *key);

/*
 * Waits until no other process makes that entry, and takes its place. The lock goes with its holder, however that ends;
 * a holder that stands still is waited for no longer than a minute. -1 if there is no lock, which does no harm. Release
 * it with its_cache_unlock.
 */
int its_cache_lock(const its_cache *cache, const char *key);
void its_cache_unlock(const its_cache *cache, const char *key, int lock);

#endif
