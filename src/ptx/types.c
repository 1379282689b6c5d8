/* Fundamental types and state spaces, as PTX spells them. */
#include "ptx/types.h"

#include <string.h>

typedef struct type_row {
    const char *text;
    uint8_t size;
    uint8_t kind; /* its_type_kind */
} type_row;

static const type_row types[] = {
    [ITS_TYPE_NONE] = {"", 0, ITS_KIND_NONE},
    [ITS_TYPE_PRED] = {".pred", 1, ITS_KIND_PRED},
    [ITS_TYPE_B8] = {".b8", 1, ITS_KIND_BITS},
    [ITS_TYPE_B16] = {".b16", 2, ITS_KIND_BITS},
    [ITS_TYPE_B32] = {".b32", 4, ITS_KIND_BITS},
    [ITS_TYPE_B64] = {".b64", 8, ITS_KIND_BITS},
    [ITS_TYPE_B128] = {".b128", 16, ITS_KIND_BITS},
    [ITS_TYPE_U8] = {".u8", 1, ITS_KIND_INT},
    [ITS_TYPE_U16] = {".u16", 2, ITS_KIND_INT},
    [ITS_TYPE_U32] = {".u32", 4, ITS_KIND_INT},
    [ITS_TYPE_U64] = {".u64", 8, ITS_KIND_INT},
    [ITS_TYPE_S8] = {".s8", 1, ITS_KIND_INT},
    [ITS_TYPE_S16] = {".s16", 2, ITS_KIND_INT},
    [ITS_TYPE_S32] = {".s32", 4, ITS_KIND_INT},
    [ITS_TYPE_S64] = {".s64", 8, ITS_KIND_INT},
    [ITS_TYPE_F16] = {".f16", 2, ITS_KIND_FLOAT},
    [ITS_TYPE_F16X2] = {".f16x2", 4, ITS_KIND_FLOAT},
    [ITS_TYPE_BF16] = {".bf16", 2, ITS_KIND_FLOAT},
    [ITS_TYPE_BF16X2] = {".bf16x2", 4, ITS_KIND_FLOAT},
    [ITS_TYPE_F32] = {".f32", 4, ITS_KIND_FLOAT},
    [ITS_TYPE_F64] = {".f64", 8, ITS_KIND_FLOAT},
    [ITS_TYPE_TEXREF] = {".texref", 8, ITS_KIND_OPAQUE},
    [ITS_TYPE_SAMPLERREF] = {".samplerref", 8, ITS_KIND_OPAQUE},
    [ITS_TYPE_SURFREF] = {".surfref", 8, ITS_KIND_OPAQUE},
};
_Static_assert(sizeof types / sizeof *types == ITS_TYPE_COUNT, "one row for each its_type");

static const char *const spaces[] = {"", ".reg", ".param", ".local", ".shared", ".global", ".const", ".tex"};
_Static_assert(sizeof spaces / sizeof *spaces == ITS_SPACE_COUNT, "one text for each its_space");

uint32_t its_type_size(its_type type) {
    return (unsigned)type < ITS_TYPE_COUNT ? types[type].size : 0;
}

const char *its_type_text(its_type type) {
    return (unsigned)type < ITS_TYPE_COUNT ? types[type].text : "";
}

const char *its_space_text(its_space space) {
    return (unsigned)space < ITS_SPACE_COUNT ? spaces[space] : "";
}

its_type_kind its_type_kind_of(its_type type) {
    return (unsigned)type < ITS_TYPE_COUNT ? (its_type_kind)types[type].kind : ITS_KIND_NONE;
}

its_type its_type_of_text(const char *text, size_t size) {
    return size && *text == '.' ? its_type_of_name(text + 1, size - 1) : ITS_TYPE_NONE;
}

its_type its_type_of_name(const char *text, size_t size) {
    for (int type = ITS_TYPE_PRED; type < ITS_TYPE_COUNT; type++) {
        const char *name = types[type].text + 1;
        if (strlen(name) == size && memcmp(name, text, size) == 0) return (its_type)type;
    }
    return ITS_TYPE_NONE;
}

its_type its_type_of_bytes(uint64_t bytes) {
    for (int type = ITS_TYPE_B8; type <= ITS_TYPE_B128; type++)
        if (types[type].size == bytes) return (its_type)type;
    return ITS_TYPE_NONE;
}

its_type its_type_doubled(its_type type) {
    switch (type) {
    case ITS_TYPE_U16:
        return ITS_TYPE_U32;
    case ITS_TYPE_S16:
        return ITS_TYPE_S32;
    case ITS_TYPE_U32:
        return ITS_TYPE_U64;
    case ITS_TYPE_S32:
        return ITS_TYPE_S64;
    default:
        return ITS_TYPE_NONE;
    }
}
