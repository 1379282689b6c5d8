/* <stdlib.h> and <cstdlib> for device files: NVRTC has these built in. */
#pragma once
#include <stddef.h>
namespace std {
using ::abs;
using ::free;
using ::malloc;
} // namespace std
