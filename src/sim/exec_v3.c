/* The copy of the loop for x86-64-v3; CMakeLists.txt gives the flags, its_sim_isa_best decides whether it is used. */
#ifdef ITS_SIM_HAVE_X86_LEVELS
#define ITS_SIM_ISA v3
#define ITS_SIM_ISA_TEXT "x86-64-v3"
#include "sim/exec.inc.h"
#else
typedef int its_sim_no_x86_v3;
#endif
