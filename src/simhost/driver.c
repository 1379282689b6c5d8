/* The CUDA driver API for host files: tensor maps. */
#include "cuda.h"

#include "intarsia/sim.h"
#include "simhost/simhost.h"

#define EXPORT __attribute__((visibility("default")))

static its_sim_tensor describe(cuuint32_t rank, const void *address, const cuuint64_t *dims, const cuuint64_t *strides,
                               const cuuint32_t *box, const cuuint32_t *steps) {
    its_sim_tensor tensor = {.rank = rank, .address = (uint64_t)(uintptr_t)address};
    for (cuuint32_t i = 0; i < rank; i++) {
        tensor.dims[i] = dims[i];
        tensor.box[i] = box[i];
        tensor.steps[i] = steps[i];
        if (i) tensor.strides[i - 1] = strides[i - 1];
    }
    return tensor;
}

EXPORT CUresult cuTensorMapEncodeTiled(CUtensorMap *tensorMap, CUtensorMapDataType tensorDataType,
                                       cuuint32_t tensorRank, void *globalAddress, const cuuint64_t *globalDim,
                                       const cuuint64_t *globalStrides, const cuuint32_t *boxDim,
                                       const cuuint32_t *elementStrides, CUtensorMapInterleave interleave,
                                       CUtensorMapSwizzle swizzle, CUtensorMapL2promotion l2Promotion,
                                       CUtensorMapFloatOOBfill oobFill) {
    its_sim_backend *sim = its_simhost_sim();
    if (!sim) return CUDA_ERROR_NOT_INITIALIZED;
    bool strides_missing = tensorRank > 1 && !globalStrides;
    if (!tensorMap || !globalDim || !boxDim || !elementStrides || strides_missing || tensorRank == 0 ||
        tensorRank > 5 || (unsigned)l2Promotion > CU_TENSOR_MAP_L2_PROMOTION_L2_256B)
        return CUDA_ERROR_INVALID_VALUE;
    its_sim_tensor tensor = describe(tensorRank, globalAddress, globalDim, globalStrides, boxDim, elementStrides);
    tensor.type = (uint32_t)tensorDataType;
    tensor.interleave = (uint32_t)interleave;
    tensor.swizzle = (uint32_t)swizzle;
    tensor.fill = (uint32_t)oobFill;
    return its_sim_tensor_encode(sim->base.ctx, &tensor, tensorMap) == ITS_OK ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
