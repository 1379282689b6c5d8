/* <stdio.h> and <cstdio> for device files: printf is all that a GPU has, and NVRTC has it built in. */
#pragma once
#include <stddef.h>
namespace std {
using ::printf;
}
