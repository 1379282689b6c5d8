/*
 * Loops, and which registers they may change: so that whoever compares the state of a thread from round to round need
 * not look at all of them.
 *
 * A loop is what lies between an operation and the last branch back to it. Code that leaves it comes back only through
 * a branch from behind its end, or to before its beginning, which is noticed when it is taken (spin.c). A table of
 * targets may lead anywhere, so loops of functions that have one are not looked at; nor are long ones, ones with calls,
 * and ones with operations that are not listed here.
 */
#include "sim/loops.h"

#include "sim/async.h"
#include "sim/modes.h"

enum { LONGEST = 256, MOST_CHANGED = 128 };
#define CARRY 4u /* its place in every frame: no operation names it */

typedef struct changes {
    its_sim_changed items[MOST_CHANGED];
    uint32_t count;
    bool good; /* false: something is not known, or there are too many */
} changes;

static void add(changes *c, uint32_t offset, uint32_t size) {
    if (offset == UINT32_MAX) return;
    for (uint32_t i = 0; i < c->count; i++)
        if (c->items[i].offset == offset) {
            if (size > c->items[i].size) c->items[i].size = size;
            return;
        }
    if (c->count == MOST_CHANGED)
        c->good = false;
    else
        c->items[c->count++] = (its_sim_changed){offset, size};
}

static void add_list(const its_sim_program *program, changes *c, const its_sim_op *op, uint32_t size) {
    for (uint32_t k = 0; k < op->vec; k++) add(c, program->lists.items[op->list + k], size);
}

static void add_act(const its_sim_program *program, changes *c, const its_sim_op *op) {
    switch (op->handler) {
    case ITS_SIM_ACT_STORE:
    case ITS_SIM_ACT_FENCE:
    case ITS_SIM_ACT_PREFETCH:
    case ITS_SIM_ACT_WARP_BARRIER:
    case ITS_SIM_ACT_NANOSLEEP:
    case ITS_SIM_ACT_EXIT:
    case ITS_SIM_ACT_RETURN:
    case ITS_SIM_ACT_TRAP:
        return;
    case ITS_SIM_ACT_BARRIER:
        if (op->mode >= ITS_BARRIER_POPC) c->good = false;
        return;
    case ITS_SIM_ACT_LOAD:
    case ITS_SIM_ACT_LOAD_PARAM:
        if (op->vec == 1)
            add(c, op->dst, op->reg_size);
        else
            add_list(program, c, op, op->reg_size);
        return;
    case ITS_SIM_ACT_ATOM:
        if (op->size == 16)
            add(c, op->dst, 16);
        else
            add_list(program, c, op, op->size);
        return;
    case ITS_SIM_ACT_MBARRIER:
        add(c, op->dst, op->mode == ITS_MBARRIER_TEST || op->mode == ITS_MBARRIER_TEST_PARITY ? 0 : 8);
        return;
    case ITS_SIM_ACT_SHUFFLE:
        add(c, op->dst, 4);
        if (op->list) add(c, op->list, 0);
        return;
    case ITS_SIM_ACT_VOTE:
        add(c, op->dst, op->mode == ITS_VOTE_BALLOT ? 4 : 0);
        return;
    default:
        c->good = false;
    }
}

static void add_op(const its_sim_program *program, changes *c, const its_sim_op *op) {
    if (op->kind == ITS_SIM_OP_ALU)
        add(c, op->dst, op->dst_size);
    else if (op->kind == ITS_SIM_OP_ACT)
        add_act(program, c, op);
}

/* Appends to the program's lists: end, count, then offset and size of each. Returns where that is, + 1. */
static uint32_t describe(its_sim_program *program, uint32_t begin, uint32_t end) {
    changes c = {.items = {{CARRY, 0}}, .count = 1, .good = true};
    for (uint32_t i = begin; i <= end && c.good; i++) add_op(program, &c, &program->ops[i]);
    if (!c.good) return 0;
    uint32_t at = (uint32_t)program->lists.count;
    ITS_PUSH(&program->arena, &program->lists, end);
    ITS_PUSH(&program->arena, &program->lists, c.count);
    for (uint32_t i = 0; i < c.count; i++) {
        ITS_PUSH(&program->arena, &program->lists, c.items[i].offset);
        ITS_PUSH(&program->arena, &program->lists, c.items[i].size);
    }
    return at + 1;
}

static bool has_table(const its_sim_program *program, const its_sim_func *func) {
    for (uint32_t i = func->first; i < func->first + func->n_ops; i++)
        if (program->ops[i].kind == ITS_SIM_OP_ACT && program->ops[i].handler == ITS_SIM_ACT_BRANCH_TABLE) return true;
    return false;
}

/*
 * From the last operation on, so that the first branch that is met to a target is the loop's end. The branches back to
 * one target share a description.
 */
static void find_in(its_sim_program *program, const its_sim_func *func) {
    for (uint32_t i = func->first + func->n_ops; i-- > func->first;) {
        its_sim_op *branch = &program->ops[i];
        if (branch->kind != ITS_SIM_OP_BRANCH || branch->target > branch || branch->list) continue;
        uint32_t begin = (uint32_t)(branch->target - program->ops);
        if (i - begin > LONGEST) continue;
        uint32_t list = describe(program, begin, i);
        for (uint32_t k = begin; k <= i; k++)
            if (program->ops[k].kind == ITS_SIM_OP_BRANCH && program->ops[k].target == branch->target)
                program->ops[k].list = list;
    }
}

void its_sim_program_find_loops(its_sim_program *program) {
    for (uint32_t f = 0; f < program->n_funcs; f++)
        if (program->funcs[f].has_body && !has_table(program, &program->funcs[f])) find_in(program, &program->funcs[f]);
}

bool its_sim_loop_of(const its_sim_program *program, const its_sim_op *branch, its_sim_loop *loop) {
    if (!branch->list) return false;
    const uint32_t *list = &program->lists.items[branch->list - 1];
    *loop =
        (its_sim_loop){.end = list[0], .count = list[1], .changed = (const its_sim_changed *)(const void *)&list[2]};
    return true;
}
