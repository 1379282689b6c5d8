/* Diagnostics: collected in the context, rendered when somebody asks. */
#include "base/diag.h"

#include <string.h>

#include "base/buffer.h"
#include "base/context.h"

enum { MOST_SHOWN = 200 }; /* of one severity */

static const char out_of_memory[] = "out of memory";

void its_source_position(const its_source *source, uint32_t offset, uint32_t *line, uint32_t *column) {
    const char *text = source->text, *end = text + (offset < source->size ? offset : source->size), *start = text;
    uint32_t n = 1;
    for (const char *p = text; (p = memchr(p, '\n', (size_t)(end - p))); start = ++p) n++;
    *line = n;
    *column = (uint32_t)(end - start) + 1;
}

void its_position_move(its_position *at, its_place place) {
    const its_source *source = place.source;
    if (!source) return;
    if (at->source != source || place.offset < at->offset) *at = (its_position){source, 0, 1, 1};
    for (; at->offset < place.offset && at->offset < source->size; at->offset++) {
        bool ends = source->text[at->offset] == '\n';
        at->line += ends;
        at->column = ends ? 1 : at->column + 1;
    }
}

static void add_place(its_context *ctx, its_diag_place place) {
    its_diag_record *record = ctx->last_diag;
    its_arena *arena = &ctx->diag_arena;
    place.label = place.label ? its_arena_text(arena, place.label, strlen(place.label)) : "";
    if (place.file) place.file = its_arena_text(arena, place.file, strlen(place.file));
    if (!place.text) place.text = "";
    ITS_PUSH(arena, &record->places, place);
    record->diag.places = record->places.items;
    record->diag.n_places = (uint32_t)record->places.count;
}

/* A copy of a source line; one and the same if several places in a row are on it, for it may be the whole file. */
static const char *keep_line(its_context *ctx, const char *line, size_t size) {
    const char *last = ctx->last_line;
    if (!last || ctx->last_line_size != size || memcmp(last, line, size) != 0)
        ctx->last_line = its_arena_text(&ctx->diag_arena, line, size);
    ctx->last_line_size = size;
    return ctx->last_line;
}

static void add_source_place(its_context *ctx, its_place where, const char *label) {
    its_diag_place place = {.label = label};
    if (where.source) {
        const its_source *source = where.source;
        place.file = source->name;
        its_source_position(source, where.offset, &place.line, &place.column);
        size_t at = where.offset < source->size ? where.offset : source->size, first = at - (place.column - 1);
        const char *end = memchr(source->text + at, '\n', source->size - at);
        size_t last = end ? (size_t)(end - source->text) : source->size;
        if (last > first && source->text[last - 1] == '\r') last--;
        place.text = keep_line(ctx, source->text + first, last > first ? last - first : 0);
    }
    add_place(ctx, place);
}

static void begin(its_context *ctx, its_severity severity, its_place place, const char *format, va_list args) {
    if (++ctx->n_severity[severity] > MOST_SHOWN) {
        ctx->last_diag = NULL; /* counted only; its_diag_also and its_diag_hint have nothing to add to */
        return;
    }
    its_diag_record *record = ITS_NEW(&ctx->diag_arena, its_diag_record);
    record->diag.severity = severity;
    record->diag.message = its_arena_vprintf(&ctx->diag_arena, format, args);
    *(ctx->n_diags ? &ctx->newest->next : &ctx->diags) = record;
    ctx->newest = ctx->last_diag = record;
    ctx->n_diags++;
    if (place.source) add_source_place(ctx, place, NULL);
}

void its_diag_begin(its_context *ctx, its_severity severity, its_place place, const char *format, ...) {
    va_list args;
    va_start(args, format);
    begin(ctx, severity, place, format, args);
    va_end(args);
}

void its_diag_also(its_context *ctx, its_place place, const char *format, ...) {
    if (!ctx->last_diag) return;
    va_list args;
    va_start(args, format);
    char *label = its_arena_vprintf(&ctx->diag_arena, format, args);
    va_end(args);
    add_source_place(ctx, place, label);
}

void its_diag_also_line(its_context *ctx, const char *file, uint32_t line, uint32_t column, const char *text,
                        const char *label) {
    if (!ctx->last_diag) return;
    its_diag_place place = {.file = file, .line = line, .column = column, .label = label};
    if (text) place.text = its_arena_text(&ctx->diag_arena, text, strlen(text));
    add_place(ctx, place);
}

void its_diag_hint(its_context *ctx, const char *format, ...) {
    if (!ctx->last_diag) return;
    va_list args;
    va_start(args, format);
    ctx->last_diag->diag.hint = its_arena_vprintf(&ctx->diag_arena, format, args);
    va_end(args);
}

typedef struct fail_job {
    its_context *ctx;
    const char *hint, *format;
    va_list args;
} fail_job;

static its_status fail_body(void *user) {
    fail_job *job = user;
    begin(job->ctx, ITS_ERROR, ITS_NOWHERE, job->format, job->args);
    if (job->hint) its_diag_hint(job->ctx, "%s", job->hint);
    return ITS_OK;
}

its_status its_fail(its_context *ctx, its_status status, const char *hint, const char *format, ...) {
    fail_job job = {.ctx = ctx, .hint = hint, .format = format};
    va_start(job.args, format);
    its_status recorded = its_protect(ctx, fail_body, &job);
    va_end(job.args);
    return recorded == ITS_OK ? status : recorded;
}

/* -- reading ------------------------------------------------------------------------------------------------------- */

static const its_diag memory_diag = {.severity = ITS_ERROR, .message = out_of_memory};

size_t its_diag_count(const its_context *ctx) {
    return ctx->n_diags + ctx->out_of_memory;
}

size_t its_diag_errors(const its_context *ctx) {
    return ctx->n_severity[ITS_ERROR] + ctx->out_of_memory;
}

const its_diag *its_diag_get(const its_context *ctx, size_t index) {
    const its_diag_record *record = ctx->diags;
    for (; record && index; index--) record = record->next;
    if (record) return &record->diag;
    return ctx->out_of_memory ? &memory_diag : NULL;
}

void its_diag_clear(its_context *ctx) {
    its_arena_free(&ctx->diag_arena);
    ctx->diags = ctx->newest = ctx->last_diag = NULL;
    ctx->last_line = NULL;
    ctx->n_diags = 0;
    memset(ctx->n_severity, 0, sizeof ctx->n_severity);
    ctx->out_of_memory = false;
}

void its_diag_keep(its_context *ctx, size_t count) {
    its_diag_record *record = NULL;
    if (count >= ctx->n_diags) return;
    memset(ctx->n_severity, 0, sizeof ctx->n_severity);
    for (size_t i = 0; i < count; i++) {
        record = record ? record->next : ctx->diags;
        ctx->n_severity[record->diag.severity]++;
    }
    ctx->n_diags = count;
    ctx->newest = ctx->last_diag = record;
    *(record ? &record->next : &ctx->diags) = NULL;
}

/* -- rendering ----------------------------------------------------------------------------------------------------- */

enum { WINDOW = 160 }; /* columns of a source line that are shown */

typedef struct style {
    const char *error, *warning, *note, *bold, *caret, *off;
} style;

static const style plain = {"", "", "", "", "", ""};
static const style ansi = {"\033[1;31m", "\033[1;35m", "\033[1;36m", "\033[1m", "\033[1;32m", "\033[0m"};

/* The part of the line around the column, and a caret under it; tabs stay tabs so that the caret lines up. */
static void render_line(its_buffer *out, const its_diag_place *place, const style *look) {
    size_t size = strlen(place->text), column = place->column ? place->column - 1 : 0, from = 0;
    if (!size) return;
    if (column > size) column = size;
    if (size > WINDOW && column > WINDOW / 2) from = column - WINDOW / 2;
    size_t shown = size - from < WINDOW ? size - from : WINDOW;
    its_buffer_text(out, from ? "    ..." : "    ");
    for (size_t i = 0; i < shown; i++) {
        unsigned char c = (unsigned char)place->text[from + i];
        its_buffer_char(out, c < 32 && c != '\t' ? '?' : (char)c);
    }
    its_buffer_text(out, from + shown < size ? "...\n" : "\n");
    if (!place->column) return;
    its_buffer_text(out, from ? "       " : "    ");
    for (size_t i = from; i < column; i++) its_buffer_char(out, place->text[i] == '\t' ? '\t' : ' ');
    its_buffer_printf(out, "%s^%s\n", look->caret, look->off);
}

static void render_position(its_buffer *out, const its_diag_place *place) {
    if (!place->file) return;
    its_buffer_text(out, place->file);
    if (place->line) its_buffer_printf(out, ":%u", place->line);
    if (place->column) its_buffer_printf(out, ":%u", place->column);
    its_buffer_text(out, ": ");
}

static const char *const words[] = {"note", "warning", "error"};

static void render_diag(its_buffer *out, const its_diag *diag, const style *look) {
    const char *colors[] = {look->note, look->warning, look->error};
    its_buffer_text(out, look->bold);
    if (diag->n_places && !*diag->places[0].label) render_position(out, &diag->places[0]);
    its_buffer_printf(out, "%s%s%s:%s ", look->off, colors[diag->severity], words[diag->severity], look->off);
    its_buffer_text(out, look->bold);
    its_buffer_text(out, diag->message);
    its_buffer_text(out, look->off);
    its_buffer_char(out, '\n');
    for (uint32_t i = 0; i < diag->n_places; i++) {
        const its_diag_place *place = &diag->places[i];
        if (*place->label) {
            its_buffer_text(out, "  ");
            render_position(out, place);
            its_buffer_text(out, place->label);
            its_buffer_char(out, '\n');
        }
        render_line(out, place, look);
    }
    if (diag->hint) {
        its_buffer_text(out, "  hint: ");
        its_buffer_text(out, diag->hint);
        its_buffer_char(out, '\n');
    }
}

typedef struct render_job {
    its_context *ctx;
    its_buffer out;
    const style *look;
    char *text;
} render_job;

static its_status render_body(void *user) {
    render_job *job = user;
    for (const its_diag_record *record = job->ctx->diags; record; record = record->next)
        render_diag(&job->out, &record->diag, job->look);
    if (job->ctx->out_of_memory) render_diag(&job->out, &memory_diag, job->look);
    for (int severity = ITS_ERROR; severity >= ITS_NOTE; severity--)
        if (job->ctx->n_severity[severity] > MOST_SHOWN)
            its_buffer_printf(&job->out, "... and %zu more %ss\n", job->ctx->n_severity[severity] - MOST_SHOWN,
                              words[severity]);
    job->text = its_buffer_take(&job->out, NULL);
    return ITS_OK;
}

char *its_diag_render(its_context *ctx, bool color) {
    render_job job = {.ctx = ctx, .look = color ? &ansi : &plain};
    its_buffer_init(&job.out, ctx);
    its_protect(ctx, render_body, &job);
    its_buffer_free(&job.out);
    return job.text;
}

/* -- suggestions --------------------------------------------------------------------------------------------------- */

enum { LONGEST_WORD = 64 };

/* Levenshtein distance; words longer than LONGEST_WORD are not compared. */
static size_t distance(const char *a, size_t n, const char *b, size_t m) {
    size_t row[LONGEST_WORD + 1];
    for (size_t j = 0; j <= m; j++) row[j] = j;
    for (size_t i = 1; i <= n; i++) {
        size_t diagonal = row[0];
        row[0] = i;
        for (size_t j = 1; j <= m; j++) {
            size_t best = diagonal + (a[i - 1] != b[j - 1]);
            if (row[j] + 1 < best) best = row[j] + 1;
            if (row[j - 1] + 1 < best) best = row[j - 1] + 1;
            diagonal = row[j];
            row[j] = best;
        }
    }
    return row[m];
}

const char *its_closest(const char *word, const char *const *candidates, size_t count) {
    size_t n = strlen(word), limit = n / 3 + 1;
    const char *best = NULL;
    if (n > LONGEST_WORD) return NULL;
    for (size_t i = 0; i < count; i++) {
        size_t m = strlen(candidates[i]);
        if (m > LONGEST_WORD || (m > n ? m - n : n - m) > limit) continue;
        size_t d = distance(word, n, candidates[i], m);
        if (d <= limit && (!best || d < limit)) best = candidates[i], limit = d;
    }
    return best;
}
