/* <string.h> and <cstring> for device files: NVRTC has these two built in, and no others. */
#pragma once
#include <stddef.h>
namespace std {
using ::memcpy;
using ::memset;
} // namespace std
