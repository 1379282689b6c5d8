/* See nvshmem_library.h. */
#include "sim/nvshmem_library.h"

#include <stdio.h>
#include <string.h>

#include "../../device/sim/state.h"
#include "cc/embed.h"
#include "intarsia/cc.h"
#include "intarsia/sim.h"

_Static_assert(sizeof(struct intarsia_sim_barrier) == sizeof(its_team_area),
               "the library and the world share barriers");
_Static_assert(INTARSIA_SIM_MAX_PES == ITS_WORLD_MAX_PES && INTARSIA_SIM_MAX_TEAMS == ITS_WORLD_MAX_TEAMS,
               "the library and the world agree on limits");
_Static_assert(sizeof(struct intarsia_sim_barrier) * INTARSIA_SIM_MAX_TEAMS == sizeof(its_heap_library),
               "a heap begins with the barriers");

/* -- compiling ----------------------------------------------------------------------------------------------------- */

its_status its_sim_nvshmem_library(its_context *ctx, const char *arch, its_module **library) {
    *library = NULL;
    const its_embedded *source = its_embedded_file("sim/nvshmem.cu");
    if (!source) return its_fail(ctx, ITS_ERR_ABSENT, NULL, "this build of Intarsia has no device/sim/nvshmem.cu");
    its_cc_input input = {.dialect = "cuda", .path = "sim/nvshmem.cu", .source = source->text, .arch = arch};
    its_unit *unit;
    its_status status = its_cc(ctx, &input, &unit);
    if (status != ITS_OK) return status;
    status = its_ptx_parse(ctx, "intarsia/sim/nvshmem.ptx", unit->ptx, unit->ptx_size, library);
    its_unit_free(unit);
    return status;
}

/* -- telling ------------------------------------------------------------------------------------------------------- */

bool its_nvshmem_tell(const its_pe *pe, const its_team *teams, void *out, size_t size) {
    const its_world *world = pe->world;
    const its_world_control *control = world->control;
    uint64_t heap = (uint64_t)(uintptr_t)its_world_heap(world, world->pe);
    struct intarsia_sim_state state = {
        .my_pe = world->pe,
        .n_pes = control->n_pes,
        .heap = heap,
        .stride = control->stride,
        .start = heap + ITS_WORLD_LIBRARY_BYTES,
        .size = control->heap_size,
    };
    if (size != sizeof state) return false;
    for (size_t i = 0; i < INTARSIA_SIM_MAX_TEAMS; i++)
        if (teams[i].size)
            state.teams[i] = (struct intarsia_sim_team){teams[i].start, teams[i].stride, teams[i].size,
                                                        (world->pe - teams[i].start) / teams[i].stride};
    memcpy(out, &state, sizeof state);
    return true;
}

/* -- complaints ---------------------------------------------------------------------------------------------------- */

#define OP_TEXT(id, text) text,
#define TYPE_TEXT(name) #name,
static const char *const op_texts[] = {INTARSIA_SIM_OPS(OP_TEXT)};
static const char *const type_texts[] = {INTARSIA_SIM_TYPES(TYPE_TEXT)};

/* nvshmem[x]_[type_]op[size][_rest][_nbi][_warp|_block]: a size or `mem` comes right after the first word of the op. */
void its_nvshmem_call_name(uint32_t call, char *name) {
    uint32_t op = call & 255, type = call >> 8 & 255, group = call >> 16 & 3, nbi = call >> 18 & 1;
    static const char *const groups[] = {"", "_warp", "_block", ""};
    if (op >= INTARSIA_SIM_N_OPS || type >= INTARSIA_SIM_N_TYPES) {
        snprintf(name, ITS_NVSHMEM_NAME, "a call");
        return;
    }
    bool sized = type <= INTARSIA_SIM_TYPE_128, extension = group || op == INTARSIA_SIM_OP_SIGNAL_OP;
    size_t word = op == INTARSIA_SIM_OP_PUT_SIGNAL ? strlen("put") : strlen(op_texts[op]);
    const char *type_text = type == INTARSIA_SIM_TYPE_none ? "" : type_texts[type];
    snprintf(name, ITS_NVSHMEM_NAME, "nvshmem%s_%s%s%.*s%s%s%s%s", extension ? "x" : "", sized ? "" : type_text,
             sized ? "" : "_", (int)word, op_texts[op], sized ? type_text : "", op_texts[op] + word, nbi ? "_nbi" : "",
             groups[group]);
}

static its_status explain(its_context *ctx, uint32_t pe, const struct intarsia_sim_complaint *it, const char *name) {
    switch (it->reason) {
    case INTARSIA_SIM_NOT_SYMMETRIC:
        return its_fail(ctx, ITS_ERR_FAULT,
                        "only memory from nvshmem_malloc, nvshmem_calloc and nvshmem_align is symmetric",
                        "%s to PE %d: 0x%llx is not in the symmetric heap of PE %u, which called it", name, it->number,
                        it->address, pe);
    case INTARSIA_SIM_NO_SUCH_PE:
        return its_fail(ctx, ITS_ERR_FAULT, "PEs are numbered from 0 to nvshmem_n_pes() - 1",
                        "%s at address 0x%llx: there is no PE %d", name, it->address, it->number);
    case INTARSIA_SIM_NO_SUCH_TEAM:
        return its_fail(ctx, ITS_ERR_FAULT, "a call on a team is made by its members only",
                        "%s: PE %u belongs to no team %d", name, pe, it->number);
    case INTARSIA_SIM_BAD_COMPARE:
        return its_fail(ctx, ITS_ERR_FAULT, "compare with NVSHMEM_CMP_EQ, NE, GT, LE, LT or GE",
                        "%s: %d is no comparison", name, it->number);
    case INTARSIA_SIM_BAD_SIGNAL:
        return its_fail(ctx, ITS_ERR_FAULT, "use NVSHMEM_SIGNAL_SET or NVSHMEM_SIGNAL_ADD",
                        "%s: %d is no signal operation", name, it->number);
    case INTARSIA_SIM_TWO_BARRIERS:
        return its_fail(ctx, ITS_ERR_FAULT,
                        "one thread, warp or block per PE makes the call, and one after the other on each team",
                        "%s: PE %u entered a barrier of team %d while it was in one", name, pe, it->number);
    default:
        return its_fail(ctx, ITS_ERR_FAULT, NULL, "%s: unknown complaint %u", name, it->reason);
    }
}

bool its_nvshmem_explain(its_context *ctx, uint32_t pe, const void *complaint) {
    const struct intarsia_sim_complaint *it = complaint;
    if (!it || !it->reason || !it->ready) return false;
    char name[ITS_NVSHMEM_NAME];
    its_nvshmem_call_name(it->call, name);
    explain(ctx, pe, it, name);
    return true;
}
