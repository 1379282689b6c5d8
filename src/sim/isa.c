/* Which copy of the loop this CPU can run, and the handlers of a program's operations. */
#include "sim/exec.h"

const its_sim_isa *its_sim_isa_get(uint32_t index) {
    if (index == 0) return &its_sim_isa_base;
#ifdef ITS_SIM_HAVE_X86_LEVELS
    __builtin_cpu_init();
    bool v3 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2") &&
              __builtin_cpu_supports("fma") && __builtin_cpu_supports("popcnt");
    bool v4 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
              __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512dq") &&
              __builtin_cpu_supports("avx512vl");
    if (index == 1 && v3) return &its_sim_isa_v3;
    if (index == 2 && v3 && v4) return &its_sim_isa_v4;
#endif
    return NULL;
}

const its_sim_isa *its_sim_isa_best(void) {
    uint32_t index = 0;
    while (its_sim_isa_get(index + 1)) index++;
    return its_sim_isa_get(index);
}

const char *its_sim_isa_name(uint32_t index) {
    const its_sim_isa *isa = its_sim_isa_get(index);
    return isa ? isa->name : NULL;
}

void its_sim_program_bind(its_sim_program *program) {
    const its_sim_isa *isa = program->isa;
    for (uint32_t i = 0; i < program->n_ops; i++) {
        its_sim_op *op = &program->ops[i];
        if (op->kind == ITS_SIM_OP_ALU)
            op->alu = isa->alus[op->handler];
        else if (op->kind == ITS_SIM_OP_ACT)
            op->act = isa->acts[op->handler];
    }
}
