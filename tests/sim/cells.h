/*
 * Cells: one instruction form each, run on the same inputs by a GPU (hardware/cells_cuda.c) and by the simulator
 * (test_cells.c). cells.txt lists them, one a line, with a hash of what a GPU computes:
 *
 *     5a1f...  b32 s32 s32 ; add.s32 $d, $a, $b;
 *     hash     type of $d, then of $a, $b, $c, $e ; PTX, in which %t0..3 %u0..3 %h0..3 %f0..3 %q0..3 are free to use
 *
 * A line with ~ for the hash is an approximation, whose last bits differ. Types are those of PTX registers, `p` for a
 * predicate, `n` for a 32-bit count (mostly small).
 */
#ifndef TESTS_SIM_CELLS_H
#define TESTS_SIM_CELLS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CELL_COUNT 4096u /* elements: a thread each */
#define CELL_BLOCK 256u
#define CELL_SLOT 64u /* bytes of input per element: four sources of up to 16 bytes */
#define CELL_OUT 16u  /* bytes of output per element */
#define CELL_TEXT 600u

typedef struct cell {
    uint64_t hash;
    bool has_hash, approximate;
    char types[5][8];
    unsigned n_types; /* the first is the result's */
    char ptx[CELL_TEXT];
} cell;

/* Reads one line; false if it holds no cell. */
static inline bool cell_parse(const char *line, cell *c) {
    memset(c, 0, sizeof(*c));
    if (*line == '#' || *line == '\n' || *line == 0) return false;
    char *end;
    c->approximate = *line == '~';
    c->has_hash = *line != '-' && !c->approximate;
    c->hash = c->has_hash ? strtoull(line, &end, 16) : 0;
    line += strcspn(line, " ");
    const char *semicolon = strchr(line, ';');
    if (!semicolon) return false;
    while (line < semicolon && c->n_types < 5) {
        line += strspn(line, " ");
        size_t n = strcspn(line, " ;");
        if (n == 0 || n > 7) break;
        memcpy(c->types[c->n_types++], line, n);
        line += n;
    }
    semicolon += 1 + strspn(semicolon + 1, " ");
    size_t n = strcspn(semicolon, "\n");
    if (n >= sizeof(c->ptx)) return false;
    memcpy(c->ptx, semicolon, n);
    return true;
}

/* -- types --------------------------------------------------------------------------------------------------------- */

static inline unsigned cell_size(const char *type) {
    if (strcmp(type, "p") == 0 || strcmp(type, "n") == 0 || strstr(type, "x2")) return 4;
    if (strstr(type, "128")) return 16;
    if (strstr(type, "64")) return 8;
    return strstr(type, "32") ? 4 : 2;
}

static inline const char *cell_reg(const char *type) {
    if (strcmp(type, "f32") == 0) return ".f32";
    if (strcmp(type, "f64") == 0) return ".f64";
    switch (cell_size(type)) {
    case 2:
        return ".b16";
    case 4:
        return ".b32";
    case 8:
        return ".b64";
    default:
        return ".b128";
    }
}

/* -- inputs -------------------------------------------------------------------------------------------------------- */

static inline uint64_t cell_random(uint64_t *state) {
    *state += 0x9e3779b97f4a7c15ull;
    uint64_t z = *state;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
    return z ^ (z >> 31);
}

static const uint32_t cell_ints[] = {0,          1,          2,          3,         7,          31,         32,
                                     0x7f,       0x80,       0xff,       0x100,     0x7fff,     0x8000,     0xffff,
                                     0x10000,    0x7fffff,   0x800000,   0xffffff,  0x7ffffffe, 0x7fffffff, 0x80000000,
                                     0x80000001, 0xaaaaaaaa, 0xfffffffe, 0xffffffff};
static const uint64_t cell_longs[] = {0,
                                      1,
                                      2,
                                      63,
                                      64,
                                      0x7fffffff,
                                      0x80000000,
                                      0xffffffff,
                                      0x100000000ull,
                                      0x7fffffffffffffffull,
                                      0x8000000000000000ull,
                                      0x8000000000000001ull,
                                      0xfffffffffffffffeull,
                                      0xffffffffffffffffull,
                                      0x00ffffffffffff80ull,
                                      0x0020000000000001ull,
                                      0xffffffff00000000ull,
                                      0xfffffffffffffc00ull};
static const uint32_t cell_floats[] = {
    0,          0x80000000, 0x3f800000, 0xbf800000, 0x40000000, 0x3f000000, 0xbf000000, 0x3fc00000, 0x40200000,
    0x7f800000, 0xff800000, 0x7fc00000, 0xffc00000, 0x7f800001, 0xff923456, 0x7fffffff, 0x00000001, 0x80000001,
    0x007fffff, 0x807fffff, 0x00800000, 0x80800000, 0x7f7fffff, 0xff7fffff, 0x3f7fffff, 0x3f800001, 0x4f000000,
    0xcf000000, 0x4effffff, 0x4f800000, 0x5f000000, 0x5f800000, 0x33800000, 0x477fe000, 0x477ff000, 0x38800000,
    0x387fffff, 0x33000000, 0x7f7f8000, 0x43e00000, 0x47600000, 0x3a83126f, 0xc2f00000, 0x42fe0000};
static const uint64_t cell_doubles[] = {0,
                                        0x8000000000000000ull,
                                        0x3ff0000000000000ull,
                                        0xbff0000000000000ull,
                                        0x4000000000000000ull,
                                        0x3fe0000000000000ull,
                                        0x7ff0000000000000ull,
                                        0xfff0000000000000ull,
                                        0x7ff8000000000000ull,
                                        0xfff8000000000000ull,
                                        0x7ff0000000000001ull,
                                        0xfff8123456789abcull,
                                        0x7fffffffffffffffull,
                                        1,
                                        0x8000000000000001ull,
                                        0x000fffffffffffffull,
                                        0x0010000000000000ull,
                                        0x7fefffffffffffffull,
                                        0x3fefffffffffffffull,
                                        0x3ff0000000000001ull,
                                        0x41dfffffffc00000ull,
                                        0x41e0000000000000ull,
                                        0x41f0000000000000ull,
                                        0x43e0000000000000ull,
                                        0x43f0000000000000ull,
                                        0x47efffffe0000000ull,
                                        0x47effffff0000000ull,
                                        0x3810000000000000ull,
                                        0x36a0000000000000ull,
                                        0x3690000000000000ull,
                                        0x40efffc000000000ull,
                                        0x3f10000000000000ull,
                                        0x3e70000000000000ull,
                                        0xc1e0000000200000ull};
static const uint16_t cell_halves[] = {0,      0x8000, 0x3c00, 0xbc00, 0x4000, 0x3800, 0x7c00, 0xfc00, 0x7e00, 0xfe00,
                                       0x7c01, 0xfd55, 0x7fff, 1,      0x8001, 0x03ff, 0x83ff, 0x0400, 0x8400, 0x7bff,
                                       0xfbff, 0x3bff, 0x3c01, 0x6400, 0x6800, 0x7800, 0x4248, 0x2e66, 0x1400, 0x0801};
static const uint16_t cell_bhalves[] = {0,      0x8000, 0x3f80, 0xbf80, 0x4000, 0x3f00, 0x7f80, 0xff80, 0x7fc0, 0xffc0,
                                        0x7f81, 0xff85, 0x7fff, 1,      0x8001, 0x007f, 0x807f, 0x0080, 0x8080, 0x7f7f,
                                        0xff7f, 0x3f7f, 0x3f81, 0x4f00, 0x5f80, 0x4049, 0x3dcc, 0x1400, 0x0100, 0x4b80};
static const uint32_t cell_counts[] = {0,  1,  2,  5,  8,   15,  16,  17,  31,    32,     33,         47,
                                       48, 63, 64, 65, 127, 128, 255, 256, 0x11f, 0x1f1f, 0x80000000, 0xffffffff};
#define CELL_PICK(list, n) list[(n) % (sizeof(list) / sizeof(list[0]))]
#define CELL_LENGTH(list) (sizeof(list) / sizeof(list[0]))

/* A number that is likely to matter in the format: an edge, a common size, or any bits. */
static inline uint32_t cell_float(uint64_t edge, bool use_edge, uint64_t random) {
    if (use_edge) return CELL_PICK(cell_floats, edge);
    if (random & 1) return (uint32_t)(random >> 32);
    return (uint32_t)(((random >> 32) & 0x807fffff) | (107 + (random >> 8) % 40) << 23);
}
static inline uint64_t cell_double(uint64_t edge, bool use_edge, uint64_t random, uint64_t more) {
    if (use_edge) return CELL_PICK(cell_doubles, edge);
    if (random & 1) return more;
    return (more & 0x800fffffffffffffull) | (uint64_t)(993 + (random >> 8) % 60) << 52;
}
static inline uint16_t cell_half(const char *type, uint64_t edge, bool use_edge, uint64_t random) {
    bool b = type[0] == 'b';
    if (use_edge) return b ? CELL_PICK(cell_bhalves, edge) : CELL_PICK(cell_halves, edge);
    if (random & 1) return (uint16_t)(random >> 32);
    if (b) return (uint16_t)(((random >> 32) & 0x807f) | (115 + (random >> 8) % 24) << 7);
    return (uint16_t)(((random >> 32) & 0x83ff) | (9 + (random >> 8) % 12) << 10);
}

static inline void cell_value(const char *type, uint64_t edge, bool use_edge, uint64_t *state, void *to) {
    uint64_t random = cell_random(state), more = cell_random(state), bits[2] = {more, random};
    bool half = strncmp(type, "f16", 3) == 0 || strncmp(type, "bf16", 4) == 0;
    if (half && strstr(type, "x2"))
        bits[0] = cell_half(type, edge, use_edge, random) | (uint64_t)cell_half(type, edge / 3, use_edge, more) << 16;
    else if (half)
        bits[0] = cell_half(type, edge, use_edge, random);
    else if (strcmp(type, "f32") == 0)
        bits[0] = cell_float(edge, use_edge, random);
    else if (strcmp(type, "f64") == 0)
        bits[0] = cell_double(edge, use_edge, random, more);
    else if (strcmp(type, "p") == 0)
        bits[0] = random & 1;
    else if (strcmp(type, "n") == 0)
        bits[0] = use_edge ? CELL_PICK(cell_counts, edge) : random % 70;
    else if (cell_size(type) >= 8)
        bits[0] = use_edge ? CELL_PICK(cell_longs, edge) : more >> (random % 64);
    else
        bits[0] = use_edge ? CELL_PICK(cell_ints, edge) : more >> (random % 32);
    memcpy(to, bits, cell_size(type));
}

/* Fills CELL_COUNT * CELL_SLOT bytes: half of the elements are combinations of edges, half random. */
static inline void cell_inputs(const cell *c, unsigned char *in) {
    uint64_t state = 42;
    memset(in, 0, (size_t)CELL_COUNT * CELL_SLOT);
    for (uint32_t i = 0; i < CELL_COUNT; i++)
        for (unsigned k = 1; k < c->n_types; k++) {
            /* The first two sources run through all pairs of up to 45 edges; the others come along. */
            uint64_t edge = k == 1 ? i % 45 : k == 2 ? i / 45 : k == 3 ? i / 7 + i % 3 : i / 11;
            cell_value(c->types[k], edge, i < CELL_COUNT / 2, &state, in + (size_t)i * CELL_SLOT + (k - 1) * 16);
        }
}

static inline uint64_t cell_hash(const unsigned char *out) {
    uint64_t hash = 0xcbf29ce484222325ull;
    for (size_t i = 0; i < (size_t)CELL_COUNT * CELL_OUT; i++) hash = (hash ^ out[i]) * 0x100000001b3ull;
    return hash;
}

/* -- the kernel ---------------------------------------------------------------------------------------------------- */

static inline void cell_put(char *to, size_t size, const char *format, const char *a, const char *b, unsigned n) {
    size_t at = strlen(to);
    snprintf(to + at, size - at, format, a, b, n);
}

/* The PTX of an entry called `cell(in, out)` without the module's head. */
static inline void cell_kernel(const cell *c, char *to, size_t size) {
    static const char letters[] = "dabce";
    *to = 0;
    cell_put(to, size, ".visible .entry cell(.param .u64 in, .param .u64 out)\n{\n%s%s", "", "", 0);
    cell_put(to, size,
             ".reg .b32 %%t<4>; .reg .b64 %%u<4>; .reg .b16 %%h<4>; .reg .f32 %%f<4>; .reg .f64 %%g<4>;\n%s%s", "", "",
             0);
    cell_put(to, size, ".reg .pred %%q<4>; .reg .b32 %%i<4>; .reg .b64 %%p<4>;%s%s\n", "", "", 0);
    for (unsigned k = 0; k < c->n_types; k++) {
        bool p = strcmp(c->types[k], "p") == 0;
        char name[2] = {letters[k], 0};
        cell_put(to, size, ".reg %s %%%s; ", p ? ".pred" : cell_reg(c->types[k]), name, 0);
    }
    cell_put(to, size, "\nld.param.u64 %%p0, [in]; ld.param.u64 %%p1, [out];\n%s%s", "", "", 0);
    cell_put(to, size, "mov.u32 %%i0, %%ctaid.x; mov.u32 %%i1, %%tid.x; mad.lo.u32 %%i2, %%i0, 256, %%i1;\n%s%s", "",
             "", 0);
    cell_put(to, size, "mul.wide.u32 %%p2, %%i2, 64; add.u64 %%p0, %%p0, %%p2;%s%s\n", "", "", 0);
    cell_put(to, size, "mul.wide.u32 %%p2, %%i2, 16; add.u64 %%p1, %%p1, %%p2;%s%s\n", "", "", 0);
    for (unsigned k = 1; k < c->n_types; k++) {
        char name[2] = {letters[k], 0};
        if (strcmp(c->types[k], "p") == 0)
            cell_put(to, size, "ld.global.u32 %%i3, [%%p0+%3$u]; setp.ne.u32 %%%1$s, %%i3, 0;%2$s\n", name, "",
                     (k - 1) * 16);
        else
            cell_put(to, size, "ld.global%s %%%s, [%%p0+%u];\n", cell_reg(c->types[k]), name, (k - 1) * 16);
    }
    for (const char *at = c->ptx; *at; at++) {
        char one[3] = {*at, 0, 0};
        if (*at == '$' && at[1]) one[0] = '%', one[1] = *++at;
        cell_put(to, size, "%s%s", one, "", 0);
    }
    if (strcmp(c->types[0], "p") == 0)
        cell_put(to, size, "\nselp.u32 %%i3, 1, 0, %%d; st.global.u32 [%%p1], %%i3;%s%s\n", "", "", 0);
    else
        cell_put(to, size, "\nst.global%s [%%p1], %%d;%s\n", cell_reg(c->types[0]), "", 0);
    cell_put(to, size, "ret;\n}\n%s%s", "", "", 0);
}

#endif
