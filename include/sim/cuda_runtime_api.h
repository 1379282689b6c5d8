/* In the simulator the same as cuda_runtime.h. */
#include "cuda_runtime.h"
