/*
 * Kernels that split their warps into partitions, and barriers that wait for all of them.
 *
 * A warp-specialised kernel gives each group of warps work of its own: Triton's sets registers per group (setmaxnreg)
 * and synchronises a group by `bar.sync id, count` with fewer threads than the CTA has. A region inlined into one group
 * that executes `bar.sync 0` waits for warps that never come; one that asks for %tid or %ntid counts threads that are
 * not its own. Both are errors, unless the region was declared for a group by a map
 *
 *     0=2:128      barrier 0 of the whole CTA becomes barrier 2 of 128 threads; several maps are separated by commas
 */
#include <stdlib.h>
#include <string.h>

#include "link/linker.h"

/* -- maps ---------------------------------------------------------------------------------------------------------- */

typedef struct barrier_map {
    unsigned long from, id, count;
} barrier_map;

static bool read_number(const char **at, char end, unsigned long most, unsigned long *value) {
    char *stop;
    if (**at < '0' || **at > '9') return false;
    *value = strtoul(*at, &stop, 10);
    if (*value > most || (end && *stop != end)) return false;
    *at = stop + (end != 0);
    return true;
}

/* The map at `*text`, which then points behind it. */
static bool read_map(const char **text, barrier_map *map) {
    if (!read_number(text, '=', 15, &map->from) || !read_number(text, ':', 15, &map->id)) return false;
    if (!read_number(text, 0, 1024, &map->count) || !map->count || map->count % 32) return false;
    if (**text == ',')
        (*text)++;
    else if (**text)
        return false;
    return true;
}

static bool check_maps(its_linker *linker) {
    for (uint32_t i = 0; i < linker->input->n_regions; i++) {
        const char *text = linker->input->regions[i].barrier_map;
        barrier_map map;
        while (text && *text) {
            if (read_map(&text, &map)) continue;
            its_diag_begin(linker->ctx, ITS_ERROR, ITS_NOWHERE, "'%s' is no barrier map",
                           linker->input->regions[i].barrier_map);
            its_diag_hint(linker->ctx,
                          "for instance 0=2:128: barrier 0 becomes barrier 2 of 128 threads, a multiple of 32");
            return false;
        }
    }
    return true;
}

static bool find_map(const its_link_region *region, uint64_t from, barrier_map *map) {
    for (const char *text = region->barrier_map; *text;) {
        if (!read_map(&text, map)) return false;
        if (map->from == from) return true;
    }
    return false;
}

/* The operand with the barrier's number; NULL if it has none, as bar.warp, whose operand is a mask. */
static its_operand *id_operand(its_linker *linker, its_insn *insn) {
    const its_mnemonic *m = its_mnemonic_of(linker->ctx, insn->name);
    uint16_t at = its_mnemonic_has(m, ITS_MOD_RED);
    if (its_mnemonic_has(m, ITS_MOD_CLUSTER) || its_mnemonic_has(m, ITS_MOD_WARP)) return NULL;
    if (at >= insn->node.count) return NULL;
    return insn->ops[at].kind == ITS_OPND_INT ? &insn->ops[at] : NULL;
}

static bool is_mapped(its_linker *linker, const its_link_region *region, its_insn *insn) {
    barrier_map map;
    const its_operand *id = id_operand(linker, insn);
    return region && region->barrier_map && id && find_map(region, id->bits, &map);
}

/*
 * A copy of a CTA-wide barrier that waits for the region's partition instead, or NULL if the map does not name it. Made
 * for the output: operands of `insn` may be shared.
 */
its_insn *its_map_barrier(its_linker *linker, const its_link_region *region, its_insn *insn) {
    barrier_map map;
    const its_operand *id = id_operand(linker, insn);
    if (!region || !region->barrier_map || !id || !find_map(region, id->bits, &map)) return NULL;
    uint16_t at = (uint16_t)(id - insn->ops), n = insn->node.count;
    bool has_count = n >= (at ? 4 : 2);
    its_insn *copy =
        its_insn_new(linker->out, insn->name, (uint16_t)(n + !has_count), insn->node.origin, insn->node.pos);
    uint16_t to = 0;
    for (uint16_t i = 0; i < n; i++) {
        copy->ops[to++] = insn->ops[i];
        if (i == at && !has_count) to++;
    }
    copy->ops[at].bits = map.id;
    copy->ops[at + 1] = (its_operand){.kind = ITS_OPND_INT, .bits = map.count, .pos = id->pos};
    copy->guard = insn->guard;
    copy->guard_suffix = insn->guard_suffix;
    copy->node.flags = insn->node.flags;
    return copy;
}

/* -- the check ----------------------------------------------------------------------------------------------------- */

typedef struct call_step {
    its_link_func *func;
    const its_link_region *region; /* whose map counts here, or NULL */
    const struct call_step *caller;
    const its_insn *call;
} call_step;

typedef struct check {
    its_linker *linker;
    const its_insn *splits; /* where the kernel shows that it splits its warps */
    ITS_VEC(call_step *) steps;
    its_map plain, mapped; /* functions already on the way, without and with a map */
    bool ok;
} check;

static bool is_foreign(const check *checker, const its_link_func *func) {
    return func->source->module != its_link_main(checker->linker);
}

static void report(check *checker, const call_step *step, const its_insn *insn, const char *what) {
    its_context *ctx = checker->linker->ctx;
    its_diag_begin(ctx, ITS_ERROR, its_node_place(&insn->node),
                   "'%s' %s, but the kernel splits its warps into partitions", step->func->symbol->name->text, what);
    its_diag_also(ctx, its_node_place(&checker->splits->node), "the kernel does so here");
    for (const call_step *at = step; at->caller; at = at->caller)
        its_diag_also(ctx, its_node_place(&at->call->node), "called from here");
    its_diag_hint(ctx, "give the region a barrier map such as 0=2:128 if it is made for one partition, or turn warp "
                       "specialisation off");
    checker->ok = false;
}

static void check_step(check *checker, const call_step *step) {
    its_link_func *func = step->func;
    if (!is_foreign(checker, func)) return;
    bool mapped = step->region && step->region->barrier_map;
    for (size_t i = 0; i < func->barriers.count; i++) {
        if (is_mapped(checker->linker, step->region, func->barriers.items[i])) continue;
        report(checker, step, func->barriers.items[i], "waits for the whole CTA");
        return;
    }
    if (!mapped && func->reads_tid) report(checker, step, func->reads_tid, "asks for its thread's place in the CTA");
}

static void add_step(check *checker, its_link_func *func, const call_step *caller, const its_link_call *call) {
    const its_link_region *region = func->source->region;
    if (!region && caller && call->fate == ITS_CALL_INLINED) region = caller->region;
    if (region && !region->barrier_map) region = NULL;
    its_map *seen = region ? &checker->mapped : &checker->plain;
    if (its_map_get(seen, func)) return;
    its_arena *scratch = &checker->linker->scratch;
    call_step *step = ITS_NEW(scratch, call_step);
    *step = (call_step){func, region, caller, call ? call->insn : NULL};
    its_map_put(seen, scratch, func, step);
    ITS_PUSH(scratch, &checker->steps, step);
}

/* All that the kernel can reach; the steps are a queue. */
static void reach_all(check *checker, its_link_func *entry) {
    add_step(checker, entry, NULL, NULL);
    for (size_t i = 0; i < checker->steps.count; i++) {
        const call_step *step = checker->steps.items[i];
        if (step->func->splits && !is_foreign(checker, step->func) && !checker->splits)
            checker->splits = step->func->splits;
        for (size_t j = 0; j < step->func->calls.count; j++)
            if (step->func->calls.items[j].callee)
                add_step(checker, step->func->calls.items[j].callee, step, &step->func->calls.items[j]);
    }
}

static bool check_entry(its_linker *linker, its_link_func *entry) {
    check checker = {.linker = linker, .ok = true};
    reach_all(&checker, entry);
    for (size_t i = 0; i < checker.steps.count && checker.splits; i++) check_step(&checker, checker.steps.items[i]);
    return checker.ok;
}

/* Only kernels that call into other modules can be wrong; most modules have no sign of a split at all. */
static bool may_split(const its_linker *linker) {
    if (linker->n_sources == 1) return false;
    for (size_t i = 0; i < linker->funcs.count; i++)
        if (linker->funcs.items[i]->splits) return true;
    return false;
}

/*
 * Requires: its_link_plan.
 * Ensures: no partitioned kernel reaches a CTA-wide barrier, or a read of the thread's place in the CTA, of another
 * module but where a map covers it.
 */
bool its_link_partitions(its_linker *linker) {
    bool ok = check_maps(linker);
    for (size_t i = 0; i < linker->funcs.count && ok && may_split(linker); i++) {
        its_link_func *func = linker->funcs.items[i];
        if (func->symbol->flags & ITS_SYM_ENTRY) ok = check_entry(linker, func);
    }
    return ok;
}
