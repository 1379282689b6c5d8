/*
 * Tensor maps: 128 bytes that say how an array of one to five dimensions lies in global memory, and which box of it a
 * tensor copy moves. For kernels and hosts they are opaque; a GPU's have another layout, so that one made elsewhere is
 * recognised and refused. Dimension 0 is the innermost one, whose elements lie side by side.
 *
 * A host makes them with its_sim_tensor_encode, a kernel with tensormap.replace out of 128 zero bytes. Since a kernel
 * can make any, everything is checked again when one is used.
 */
#ifndef ITS_SIM_TENSORMAP_H
#define ITS_SIM_TENSORMAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ITS_TENSOR_RANK 5
#define ITS_TENSOR_MAP_SIZE 128u
#define ITS_TENSOR_MAP_MARK 0x70616d726f736e74ull

typedef struct its_sim_tensor_map {
    uint64_t mark;
    uint64_t address;
    uint64_t strides[ITS_TENSOR_RANK - 1]; /* bytes between elements of dimensions 1 to 4 */
    uint32_t dims[ITS_TENSOR_RANK];        /* elements */
    uint32_t box[ITS_TENSOR_RANK];
    uint8_t steps[ITS_TENSOR_RANK]; /* every how manieth element is taken; of dimension 0 all are */
    uint8_t rank, type, interleave, swizzle, atomicity, fill;
} its_sim_tensor_map;
_Static_assert(sizeof(its_sim_tensor_map) <= ITS_TENSOR_MAP_SIZE, "a tensor map has 128 bytes");

enum { /* its_sim_tensor_map.type: CUtensorMapDataType */
       ITS_TENSOR_U8,
       ITS_TENSOR_U16,
       ITS_TENSOR_U32,
       ITS_TENSOR_S32,
       ITS_TENSOR_U64,
       ITS_TENSOR_S64,
       ITS_TENSOR_F16,
       ITS_TENSOR_F32,
       ITS_TENSOR_F64,
       ITS_TENSOR_BF16,
       ITS_TENSOR_F32_FTZ,
       ITS_TENSOR_TYPES /* those from F32_FTZ on are not there */
};
enum { /* swizzle: CUtensorMapSwizzle */
       ITS_SWIZZLE_NONE,
       ITS_SWIZZLE_32,
       ITS_SWIZZLE_64,
       ITS_SWIZZLE_128
};

/* Bytes of an element; 0 if the simulator doesn't have the type. */
uint32_t its_sim_tensor_element(const its_sim_tensor_map *map);
/* What is wrong with a map, as words that follow "a tensor map", or NULL if it is good. */
const char *its_sim_tensor_wrong(const its_sim_tensor_map *map);
/* Elements that a box has along a dimension. */
static inline uint32_t its_sim_tensor_count(const its_sim_tensor_map *map, uint32_t dim) {
    if (dim >= map->rank) return 1;
    return dim == 0 ? map->box[0] : (map->box[dim] + map->steps[dim] - 1) / map->steps[dim];
}
/* Bytes of a box in shared memory. Requires a good map. */
uint32_t its_sim_tensor_bytes(const its_sim_tensor_map *map);

/* Where 16 bytes at a shared address lie with a swizzle: bits 4 to 6 are mixed with bits 7 to 9. */
static inline uint32_t its_sim_swizzle(uint32_t address, unsigned swizzle) {
    return address ^ (address >> 7 & ((1u << swizzle) - 1)) << 4;
}

#endif
