/* Hashing content for keys. */
#include "base/hash.h"

#include <stdio.h>
#include <string.h>

void its_hash_init(its_hasher *hasher) {
    XXH3_INITSTATE(&hasher->narrow);
    XXH3_INITSTATE(&hasher->wide);
    XXH3_64bits_reset(&hasher->narrow);
    XXH3_128bits_reset(&hasher->wide);
}

static void add(its_hasher *hasher, const void *data, size_t size) {
    XXH3_64bits_update(&hasher->narrow, data, size);
    XXH3_128bits_update(&hasher->wide, data, size);
}

void its_hash_field(its_hasher *hasher, const void *data, size_t size) {
    unsigned char length[8];
    for (int i = 0; i < 8; i++) length[i] = (unsigned char)((uint64_t)size >> (8 * i));
    add(hasher, length, sizeof length);
    if (size) add(hasher, data, size);
}

void its_hash_content(its_hasher *hasher, const void *data, size_t size) {
    XXH128_canonical_t digest;
    XXH128_canonicalFromHash(&digest, XXH3_128bits(data, size));
    its_hash_field(hasher, &size, sizeof size);
    add(hasher, digest.digest, sizeof digest.digest);
}

void its_hash_text(its_hasher *hasher, const char *text) {
    its_hash_field(hasher, text, strlen(text));
}

void its_hash_digest(const its_hasher *hasher, its_digest *digest) {
    XXH128_hash_t wide = XXH3_128bits_digest(&hasher->wide);
    snprintf(digest->narrow, sizeof digest->narrow, "%016llx", (unsigned long long)XXH3_64bits_digest(&hasher->narrow));
    snprintf(digest->wide, sizeof digest->wide, "%016llx%016llx", (unsigned long long)wide.high64,
             (unsigned long long)wide.low64);
}
