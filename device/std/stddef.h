/* <stddef.h> and <cstddef> for device files: NVRTC has size_t built in, and no standard library. See docs/dialects.md. */
#pragma once
typedef decltype((char *)0 - (char *)0) ptrdiff_t;
typedef decltype(nullptr) nullptr_t;
#ifndef NULL
#define NULL 0
#endif
#ifndef offsetof /* no constant expression: NVRTC has no built-in of that kind */
#define offsetof(TYPE, MEMBER) ((size_t)&((TYPE *)0)->MEMBER)
#endif
namespace std {
using ::nullptr_t;
using ::ptrdiff_t;
using ::size_t;
} // namespace std
