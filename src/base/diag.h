/*
 * Writing diagnostics. A diagnostic is built in steps and may be added to until the next one is begun:
 *
 *     its_diag_begin(ctx, ITS_ERROR, its_at(source, offset), "'%s' is defined twice", name->text);
 *     its_diag_also(ctx, its_at(other, where), "first defined here");
 *     its_diag_hint(ctx, "rename one of them, or make one .weak");
 *
 * Line, column and source line are worked out at once, so a diagnostic outlives the source it points into.
 */
#ifndef ITS_BASE_DIAG_H
#define ITS_BASE_DIAG_H

#include "intarsia/base.h"

/* A text that positions point into: byte offsets of 32 bits, so sources are limited to 4 GiB. */
typedef struct its_source {
    const char *name;
    const char *text;
    size_t size;
} its_source;

typedef struct its_place {
    const its_source *source; /* NULL: no place */
    uint32_t offset;
} its_place;

static inline its_place its_at(const its_source *source, uint32_t offset) {
    its_place place = {source, offset};
    return place;
}
#define ITS_NOWHERE ((its_place){0, 0})

/*
 * Jumps to the guard if memory runs out, as everything in an arena does. Past 200 of one severity further ones are
 * counted only, and so cost nothing.
 */
void its_diag_begin(its_context *ctx, its_severity severity, its_place place, const char *format, ...) ITS_PRINTF(4, 5);
void its_diag_also(its_context *ctx, its_place place, const char *format, ...) ITS_PRINTF(3, 4);
/* The same for a place known only as a file, a line, a column (0: unknown) and maybe its text (else NULL). */
void its_diag_also_line(its_context *ctx, const char *file, uint32_t line, uint32_t column, const char *text,
                        const char *label);
void its_diag_hint(its_context *ctx, const char *format, ...) ITS_PRINTF(2, 3);

/* An error without a place; returns `status`, so that a function can end with `return its_fail(...)`. Opens its own
 * guard. */
its_status its_fail(its_context *ctx, its_status status, const char *hint, const char *format, ...) ITS_PRINTF(4, 5);

/* Drops all but the first `count` diagnostics: what an attempt has said whose outcome nobody needs. */
void its_diag_keep(its_context *ctx, size_t count);

/* Line and column, both from 1, of a byte offset. */
void its_source_position(const its_source *source, uint32_t offset, uint32_t *line, uint32_t *column);

/*
 * The same for one place after another: lines are counted from the place before, so places in the order of their text
 * cost one walk over it. Starts as {0}; `line` and `column` are those of the last place.
 */
typedef struct its_position {
    const its_source *source;
    uint32_t offset, line, column;
} its_position;
void its_position_move(its_position *at, its_place place);

/* The candidate closest to `word` by edit distance if it is close enough to suggest, else NULL. */
const char *its_closest(const char *word, const char *const *candidates, size_t count);

#endif
