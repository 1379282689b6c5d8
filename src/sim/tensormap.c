/* Making and checking tensor maps: see tensormap.h. The limits are those of the CUDA driver. */
#include "sim/tensormap.h"

#include <string.h>

#include "base/diag.h"
#include "intarsia/sim.h"

uint32_t its_sim_tensor_element(const its_sim_tensor_map *map) {
    static const uint8_t sizes[ITS_TENSOR_TYPES] = {1, 2, 4, 4, 8, 8, 2, 4, 8, 2};
    return map->type < ITS_TENSOR_TYPES ? sizes[map->type] : 0;
}

uint32_t its_sim_tensor_bytes(const its_sim_tensor_map *map) {
    uint32_t bytes = its_sim_tensor_element(map);
    for (uint32_t i = 0; i < map->rank; i++) bytes *= its_sim_tensor_count(map, i);
    return bytes;
}

static const char *wrong_dimension(const its_sim_tensor_map *map, uint32_t i) {
    if (map->dims[i] == 0) return "has a dimension of 0 elements";
    if (map->box[i] == 0 || map->box[i] > 256) return "has a box of a dimension that is not 1 to 256 elements";
    if (map->steps[i] == 0 || map->steps[i] > 8) return "has an element stride that is not 1 to 8";
    if (i == 0) return NULL;
    uint64_t stride = map->strides[i - 1];
    if (stride % 16 || stride == 0 || stride >> 40) return "has a stride that is no multiple of 16 bytes below 2^40";
    return NULL;
}

const char *its_sim_tensor_wrong(const its_sim_tensor_map *map) {
    static const uint32_t widest[] = {[ITS_SWIZZLE_32] = 32, [ITS_SWIZZLE_64] = 64, [ITS_SWIZZLE_128] = 128};
    uint32_t element = its_sim_tensor_element(map);
    uint64_t bytes = element;
    if (map->mark != ITS_TENSOR_MAP_MARK) return "was not made by this simulator";
    if (element == 0) return "has elements of a type that the simulator doesn't have";
    if (map->rank == 0 || map->rank > ITS_TENSOR_RANK) return "has a rank that is not 1 to 5";
    if (map->interleave) return "interleaves, which the simulator doesn't do";
    if (map->atomicity) return "has a swizzle atomicity that the simulator doesn't have";
    if (map->swizzle > ITS_SWIZZLE_128) return "has a swizzle mode that the simulator doesn't have";
    if (map->fill > 1) return "has a fill mode that does not exist";
    if (map->address % 16 || map->address == 0) return "has a global address that is no multiple of 16";
    for (uint32_t i = 0; i < map->rank; i++) {
        const char *wrong = wrong_dimension(map, i);
        if (wrong) return wrong;
        if (i) bytes *= its_sim_tensor_count(map, i);
    }
    uint32_t inner = map->box[0] * element;
    if (inner % 16) return "has a box whose innermost dimension is no multiple of 16 bytes";
    if (map->swizzle && inner > widest[map->swizzle])
        return "has a box whose innermost dimension is wider than its swizzle";
    if (bytes * map->box[0] > 256u << 10) return "has a box larger than shared memory";
    return NULL;
}

its_status its_sim_tensor_encode(its_context *ctx, const its_sim_tensor *tensor, void *out) {
    its_sim_tensor_map map = {.mark = ITS_TENSOR_MAP_MARK, .address = tensor->address};
    bool fits = tensor->rank <= ITS_TENSOR_RANK && tensor->type <= UINT8_MAX && tensor->interleave <= UINT8_MAX &&
                tensor->swizzle <= UINT8_MAX && tensor->fill <= UINT8_MAX;
    for (uint32_t i = 0; fits && i < tensor->rank; i++) {
        fits = tensor->dims[i] <= UINT32_MAX && tensor->steps[i] <= UINT8_MAX;
        map.dims[i] = (uint32_t)tensor->dims[i];
        map.box[i] = tensor->box[i];
        map.steps[i] = (uint8_t)tensor->steps[i];
        if (i) map.strides[i - 1] = tensor->strides[i - 1];
    }
    map.rank = (uint8_t)tensor->rank;
    map.type = (uint8_t)tensor->type;
    map.interleave = (uint8_t)tensor->interleave;
    map.swizzle = (uint8_t)tensor->swizzle;
    map.fill = (uint8_t)tensor->fill;
    const char *wrong = fits ? its_sim_tensor_wrong(&map) : "has a number that is too large";
    if (wrong) return its_fail(ctx, ITS_ERR_INPUT, NULL, "this tensor map %s", wrong);
    memset(out, 0, ITS_TENSOR_MAP_SIZE);
    memcpy(out, &map, sizeof map);
    return ITS_OK;
}
