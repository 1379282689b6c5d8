/* Fundamental types and state spaces, as PTX spells them. */
#include "ptx/types.h"

#include <string.h>

typedef struct type_row {
    const char *text;
    uint8_t size;
} type_row;

static const type_row types[] = {
    [ITS_TYPE_NONE] = {"", 0},
    [ITS_TYPE_PRED] = {".pred", 1},
    [ITS_TYPE_B8] = {".b8", 1},
    [ITS_TYPE_B16] = {".b16", 2},
    [ITS_TYPE_B32] = {".b32", 4},
    [ITS_TYPE_B64] = {".b64", 8},
    [ITS_TYPE_B128] = {".b128", 16},
    [ITS_TYPE_U8] = {".u8", 1},
    [ITS_TYPE_U16] = {".u16", 2},
    [ITS_TYPE_U32] = {".u32", 4},
    [ITS_TYPE_U64] = {".u64", 8},
    [ITS_TYPE_S8] = {".s8", 1},
    [ITS_TYPE_S16] = {".s16", 2},
    [ITS_TYPE_S32] = {".s32", 4},
    [ITS_TYPE_S64] = {".s64", 8},
    [ITS_TYPE_F16] = {".f16", 2},
    [ITS_TYPE_F16X2] = {".f16x2", 4},
    [ITS_TYPE_BF16] = {".bf16", 2},
    [ITS_TYPE_BF16X2] = {".bf16x2", 4},
    [ITS_TYPE_F32] = {".f32", 4},
    [ITS_TYPE_F64] = {".f64", 8},
    [ITS_TYPE_TEXREF] = {".texref", 8},
    [ITS_TYPE_SAMPLERREF] = {".samplerref", 8},
    [ITS_TYPE_SURFREF] = {".surfref", 8},
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

its_type its_type_of_text(const char *text, size_t size) {
    for (int type = ITS_TYPE_PRED; type < ITS_TYPE_COUNT; type++)
        if (strlen(types[type].text) == size && memcmp(types[type].text, text, size) == 0) return (its_type)type;
    return ITS_TYPE_NONE;
}
