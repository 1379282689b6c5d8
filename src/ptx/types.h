/* Questions about fundamental types; see its_type_size and its neighbours in intarsia/ptx.h. */
#ifndef ITS_PTX_TYPES_H
#define ITS_PTX_TYPES_H

#include "intarsia/ptx.h"

typedef enum its_type_kind {
    ITS_KIND_NONE, /* of ITS_TYPE_NONE */
    ITS_KIND_PRED,
    ITS_KIND_BITS, /* .b8 to .b128 */
    ITS_KIND_INT,
    ITS_KIND_FLOAT, /* .f16x2 and .bf16x2 as well */
    ITS_KIND_OPAQUE /* textures, samplers, surfaces */
} its_type_kind;
its_type_kind its_type_kind_of(its_type type);

/* .f32 or .f64: the floats that literals have. */
static inline bool its_type_is_real(its_type type) {
    return type == ITS_TYPE_F32 || type == ITS_TYPE_F64;
}

/* The following answer ITS_TYPE_NONE if there is no such type. */
its_type its_type_of_text(const char *text, size_t size); /* ".u32" */
its_type its_type_of_name(const char *text, size_t size); /* "u32" */
its_type its_type_of_bytes(uint64_t bytes);               /* .bNN */
its_type its_type_doubled(its_type type);                 /* the integer of the same sign and twice the size */

#endif
