/*
 * Hashing content for keys. One pass gives a short form (64 bits, the unit id) and a long one (128 bits, which tells
 * two contents apart whose short forms collide). Both are XXH3: fast, and not meant to stand against an attacker.
 */
#ifndef ITS_BASE_HASH_H
#define ITS_BASE_HASH_H

#define XXH_STATIC_LINKING_ONLY /* for states that need no allocation */
#include <xxhash.h>

#include "intarsia/base.h"

typedef struct its_hasher {
    XXH3_state_t narrow, wide;
} its_hasher;

typedef struct its_digest {
    char narrow[17]; /* 16 hex digits */
    char wide[33];   /* 32 */
} its_digest;

void its_hash_init(its_hasher *hasher);
/* Adds a field: its length goes in as well, so that ("ab", "c") and ("a", "bc") differ. */
void its_hash_field(its_hasher *hasher, const void *data, size_t size);
/* Adds a large field by its own hash: one pass over it and not two. */
void its_hash_content(its_hasher *hasher, const void *data, size_t size);
void its_hash_text(its_hasher *hasher, const char *text);
void its_hash_digest(const its_hasher *hasher, its_digest *digest);

#endif
