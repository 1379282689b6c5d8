/* The functions of a unit: which there are, how they are spelled, and finding one by what the user calls it. */
#ifndef ITS_CC_FUNCTIONS_H
#define ITS_CC_FUNCTIONS_H

#include "base/arena.h"
#include "intarsia/cc.h"
#include "intarsia/ptx.h"

/*
 * Those of `module` that have a body, visible ones first. `instances[i]` is spelled in the unit what `names[i]` is
 * called in PTX; other C++ names are demangled if the C++ runtime is on this machine. `complete` is false if it is
 * needed and isn't.
 */
its_unit_func *its_functions_list(its_arena *arena, const its_module *module, const char *const *instances,
                                  char *const *names, uint32_t n_instances, uint32_t *count, bool *complete);

#endif
