/* The values of special registers; those of clocks are read in flow.c. */
#include "sim/exec.h"

uint64_t its_sim_sreg_value(const its_sim_warp *warp, its_sim_sreg sreg, uint32_t lane) {
    const its_sim_cta *cta = warp->cta;
    const its_sim_grid *grid = cta->grid;
    const its_sim_machine *machine = grid->program->machine;
    uint32_t thread = warp->index * ITS_LANES + lane;
    switch (sreg) {
    case ITS_SIM_SREG_TID_X:
        return thread % grid->block[0];
    case ITS_SIM_SREG_TID_Y:
        return thread / grid->block[0] % grid->block[1];
    case ITS_SIM_SREG_TID_Z:
        return thread / grid->block[0] / grid->block[1];
    case ITS_SIM_SREG_NTID_X:
        return grid->block[0];
    case ITS_SIM_SREG_NTID_Y:
        return grid->block[1];
    case ITS_SIM_SREG_NTID_Z:
        return grid->block[2];
    case ITS_SIM_SREG_CTAID_X:
        return cta->id[0];
    case ITS_SIM_SREG_CTAID_Y:
        return cta->id[1];
    case ITS_SIM_SREG_CTAID_Z:
        return cta->id[2];
    case ITS_SIM_SREG_NCTAID_X:
        return grid->dim[0];
    case ITS_SIM_SREG_NCTAID_Y:
        return grid->dim[1];
    case ITS_SIM_SREG_NCTAID_Z:
        return grid->dim[2];
    case ITS_SIM_SREG_CLUSTERID_X:
        return cta->id[0] / grid->cluster[0];
    case ITS_SIM_SREG_CLUSTERID_Y:
        return cta->id[1] / grid->cluster[1];
    case ITS_SIM_SREG_CLUSTERID_Z:
        return cta->id[2] / grid->cluster[2];
    case ITS_SIM_SREG_NCLUSTERID_X:
        return grid->dim[0] / grid->cluster[0];
    case ITS_SIM_SREG_NCLUSTERID_Y:
        return grid->dim[1] / grid->cluster[1];
    case ITS_SIM_SREG_NCLUSTERID_Z:
        return grid->dim[2] / grid->cluster[2];
    case ITS_SIM_SREG_CLUSTER_CTAID_X:
        return cta->id[0] % grid->cluster[0];
    case ITS_SIM_SREG_CLUSTER_CTAID_Y:
        return cta->id[1] % grid->cluster[1];
    case ITS_SIM_SREG_CLUSTER_CTAID_Z:
        return cta->id[2] % grid->cluster[2];
    case ITS_SIM_SREG_CLUSTER_NCTAID_X:
        return grid->cluster[0];
    case ITS_SIM_SREG_CLUSTER_NCTAID_Y:
        return grid->cluster[1];
    case ITS_SIM_SREG_CLUSTER_NCTAID_Z:
        return grid->cluster[2];
    case ITS_SIM_SREG_CLUSTER_CTARANK:
        return cta->rank;
    case ITS_SIM_SREG_CLUSTER_NCTARANK:
        return grid->cluster_size;
    case ITS_SIM_SREG_IS_EXPLICIT_CLUSTER:
        return grid->cluster_size > 1;
    case ITS_SIM_SREG_LANEID:
        return lane;
    case ITS_SIM_SREG_WARPID:
        return warp->index;
    case ITS_SIM_SREG_NWARPID:
        return 64;
    case ITS_SIM_SREG_SMID:
        return cta->number % its_sim_multiprocessors(machine);
    case ITS_SIM_SREG_NSMID:
        return its_sim_multiprocessors(machine);
    case ITS_SIM_SREG_GRIDID:
        return grid->id;
    case ITS_SIM_SREG_LANEMASK_EQ:
        return 1u << lane;
    case ITS_SIM_SREG_LANEMASK_LE:
        return ITS_FULL >> (31 - lane);
    case ITS_SIM_SREG_LANEMASK_LT:
        return (1u << lane) - 1;
    case ITS_SIM_SREG_LANEMASK_GE:
        return ITS_FULL << lane;
    case ITS_SIM_SREG_LANEMASK_GT:
        return ITS_FULL << lane << 1;
    case ITS_SIM_SREG_TOTAL_SMEM_SIZE:
        return grid->shared_size;
    case ITS_SIM_SREG_AGGR_SMEM_SIZE:
        return grid->shared_size + ITS_SIM_SHARED_BEGIN;
    case ITS_SIM_SREG_DYNAMIC_SMEM_SIZE:
        return grid->dynamic_shared;
    case ITS_SIM_SREG_WORKSPACE_HIGH:
        return (uint64_t)(uintptr_t)grid->workspace >> 32;
    case ITS_SIM_SREG_WORKSPACE_LOW:
        return (uint64_t)(uintptr_t)grid->workspace;
    case ITS_SIM_SREG_RESERVED_SMEM_CAP:
    case ITS_SIM_SREG_RESERVED_SMEM_END:
        return ITS_SIM_SHARED_BEGIN;
    default:
        return 0;
    }
}
