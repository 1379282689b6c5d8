/*
 * <stdint.h> and <cstdint> for device files. Types and macros are those of <cuda/std/cstdint>, so that both may be included:
 * uint64_t is unsigned long long, as in CUDA's headers, and not the host's unsigned long.
 */
#pragma once
#include <limits.h>

#define INTARSIA_INTS(BITS, TYPE)                    \
    typedef signed TYPE int##BITS##_t;               \
    typedef unsigned TYPE uint##BITS##_t;            \
    typedef int##BITS##_t int_least##BITS##_t;       \
    typedef uint##BITS##_t uint_least##BITS##_t;     \
    typedef int##BITS##_t int_fast##BITS##_t;        \
    typedef uint##BITS##_t uint_fast##BITS##_t;      \
    namespace std {                                  \
    using ::int##BITS##_t;                           \
    using ::uint##BITS##_t;                          \
    using ::int_least##BITS##_t;                     \
    using ::uint_least##BITS##_t;                    \
    using ::int_fast##BITS##_t;                      \
    using ::uint_fast##BITS##_t;                     \
    }
INTARSIA_INTS(8, char)
INTARSIA_INTS(16, short)
INTARSIA_INTS(32, int)
INTARSIA_INTS(64, long long)
#undef INTARSIA_INTS

typedef int64_t intptr_t, intmax_t;
typedef uint64_t uintptr_t, uintmax_t;
namespace std {
using ::intmax_t;
using ::intptr_t;
using ::uintmax_t;
using ::uintptr_t;
} // namespace std

#ifndef INT8_MIN
#define INT8_MIN SCHAR_MIN
#define INT16_MIN SHRT_MIN
#define INT32_MIN INT_MIN
#define INT64_MIN LLONG_MIN
#define INT8_MAX SCHAR_MAX
#define INT16_MAX SHRT_MAX
#define INT32_MAX INT_MAX
#define INT64_MAX LLONG_MAX
#define UINT8_MAX UCHAR_MAX
#define UINT16_MAX USHRT_MAX
#define UINT32_MAX UINT_MAX
#define UINT64_MAX ULLONG_MAX
#define INTPTR_MIN INT64_MIN
#define INTPTR_MAX INT64_MAX
#define UINTPTR_MAX UINT64_MAX
#define INTMAX_MIN INT64_MIN
#define INTMAX_MAX INT64_MAX
#define UINTMAX_MAX UINT64_MAX
#define PTRDIFF_MIN INT64_MIN
#define PTRDIFF_MAX INT64_MAX
#define SIZE_MAX UINT64_MAX
#endif
#ifndef INT64_C
#define INT32_C(X) ((::int_least32_t)(X))
#define INT64_C(X) ((::int_least64_t)(X))
#define UINT32_C(X) ((::uint_least32_t)(X))
#define UINT64_C(X) ((::uint_least64_t)(X))
#endif
