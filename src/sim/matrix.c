/* Moving 8 x 8 matrices of 16-bit elements between shared memory and registers, and transposing them. */
#include "sim/matrix.h"
#include "sim/race_exec.h"

static void transpose(const u16 *from, u16 *to) {
    for (unsigned row = 0; row < 8; row++)
        for (unsigned column = 0; column < 8; column++) to[column * 8 + row] = from[row * 8 + column];
}

/* Lanes 8 j to 8 j + 7 have the addresses of the rows of matrix j. */
static bool locate_rows(its_sim_exec *x, const its_sim_op *op, bool writes, its_sim_access *access) {
    uint32_t lanes = op->vec == 4 ? ITS_FULL : (1u << (8 * op->vec)) - 1;
    its_sim_access_addresses(x, op, access);
    return its_sim_access_check(x, op, lanes, 16, writes, access);
}

static bool look_for_races(its_sim_exec *x, const its_sim_op *op, bool writes, const its_sim_access *access) {
    uint32_t lanes = op->vec == 4 ? ITS_FULL : (1u << (8 * op->vec)) - 1;
    return !x->warp->race || its_sim_race_before(x, op, lanes, access->pointer, 16, writes, false);
}

static its_sim_verdict load(its_sim_exec *x, const its_sim_op *op, uint32_t group) {
    (void)group;
    its_sim_access access;
    if (!locate_rows(x, op, false, &access) || !look_for_races(x, op, false, &access)) return ITS_SIM_STOP;
    u16 tiles[4][64];
    for (unsigned i = 0; i < 8u * op->vec; i++) memcpy(&tiles[i / 8][i % 8 * 8], access.pointer[i], 16);
    for (unsigned j = 0; j < op->vec; j++) {
        u16 *reg = (u16 *)(void *)(x->regs + x->program->lists.items[op->list + j]);
        if (op->flags & ITS_MATRIX_TRANSPOSED)
            transpose(tiles[j], reg);
        else
            memcpy(reg, tiles[j], sizeof(tiles[j]));
    }
    return ITS_SIM_NEXT;
}

static its_sim_verdict store(its_sim_exec *x, const its_sim_op *op, uint32_t group) {
    (void)group;
    its_sim_access access;
    if (!locate_rows(x, op, true, &access) || !look_for_races(x, op, true, &access)) return ITS_SIM_STOP;
    for (unsigned j = 0; j < op->vec; j++) {
        const u16 *reg = (const u16 *)(const void *)(x->regs + x->program->lists.items[op->list + j]);
        u16 turned[64];
        if (op->flags & ITS_MATRIX_TRANSPOSED) transpose(reg, turned), reg = turned;
        for (unsigned row = 0; row < 8; row++) memcpy(access.pointer[8 * j + row], reg + 8 * row, 16);
    }
    x->frag->wrote = true;
    return x->warp->race ? its_sim_race_after(x, op) : ITS_SIM_NEXT;
}

static its_sim_verdict turn(its_sim_exec *x, const its_sim_op *op, uint32_t group) {
    (void)group;
    u16 turned[64];
    transpose((const u16 *)(const void *)(x->regs + op->a), turned);
    memcpy(x->regs + op->dst, turned, sizeof(turned));
    return ITS_SIM_NEXT;
}

its_sim_verdict its_sim_act_LDMATRIX(its_sim_exec *x, const its_sim_op *op, uint32_t mask) {
    return its_sim_collect_warp(x, op, mask, load);
}

its_sim_verdict its_sim_act_STMATRIX(its_sim_exec *x, const its_sim_op *op, uint32_t mask) {
    return its_sim_collect_warp(x, op, mask, store);
}

its_sim_verdict its_sim_act_MOVMATRIX(its_sim_exec *x, const its_sim_op *op, uint32_t mask) {
    return its_sim_collect_warp(x, op, mask, turn);
}
