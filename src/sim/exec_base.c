/* The copy of the loop that any CPU can run. */
#define ITS_SIM_ISA base
#define ITS_SIM_ISA_TEXT "baseline"
#include "sim/exec.inc.h"
