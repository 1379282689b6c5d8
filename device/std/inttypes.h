/* <inttypes.h> and <cinttypes> for device files: the types, and what prints those of 64 bits. */
#pragma once
#include <stdint.h>
#ifndef PRId64
#define PRId32 "d"
#define PRIu32 "u"
#define PRIx32 "x"
#define PRId64 "lld"
#define PRIu64 "llu"
#define PRIx64 "llx"
#endif
