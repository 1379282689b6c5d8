/* <stdbool.h> for device files: C++ has bool. */
#pragma once
