/*
 * NVRTC's messages as diagnostics. Its log is made for people:
 *
 *     shift.cu(12): error: identifier "x" is undefined
 *       int a = x;
 *               ^
 *               detected during instantiation of "void f(T) [with T=int]" at line 20 of other.h
 *
 * Messages start with `file(line): kind: text` or `where: kind: text`; more lines of text, the source line with a caret
 * under it, the contexts, and notes with the same shape follow. What fits none of that is kept as text.
 */
#include <stdlib.h>
#include <string.h>

#include "base/diag.h"
#include "base/file.h"
#include "base/path.h"
#include "cc/cuda.h"
#include "cc/edit.h"

enum { MOST_ERRORS = 20 }; /* of one compilation; the rest is counted */

typedef struct span {
    const char *text;
    size_t size;
} span;

typedef struct log_reader {
    its_context *ctx;
    its_arena *arena;
    const its_cc_input *input;
    const its_cuda_search *search;
    const char *name; /* what the source is called in the log */
    const char *rest;
    bool in_error;     /* what follows belongs to an error of ours */
    uint32_t n_errors; /* read so far, also those that are only counted */
} log_reader;

typedef enum message_kind { KIND_NONE, KIND_ERROR, KIND_NOTE, KIND_OTHER } message_kind;

typedef struct head {
    message_kind kind;
    span file; /* size 0: none */
    uint32_t line;
    span text;
} head;

/* -- lines --------------------------------------------------------------------------------------------------------- */

static bool peek_line(const log_reader *r, span *line) {
    const char *end = strchr(r->rest, '\n');
    if (!*r->rest) return false;
    *line = (span){r->rest, end ? (size_t)(end - r->rest) : strlen(r->rest)};
    return true;
}

static void next_line(log_reader *r, span line) {
    r->rest = line.text + line.size + (line.text[line.size] == '\n');
}

static bool starts_with(span s, const char *prefix) {
    size_t size = strlen(prefix);
    return s.size >= size && memcmp(s.text, prefix, size) == 0;
}

static span skip(span s, size_t n) {
    return (span){s.text + n, s.size - n};
}

static span trim(span s) {
    while (s.size && s.text[0] == ' ') s = skip(s, 1);
    while (s.size && (s.text[s.size - 1] == ' ' || s.text[s.size - 1] == '\r')) s.size--;
    return s;
}

static char *copy(log_reader *r, span s) {
    return its_arena_text(r->arena, s.text, s.size);
}

/* -- the first line of a message ----------------------------------------------------------------------------------- */

/* `error: ...`, `warning #177-D: ...` */
static message_kind read_kind(span s, span *text) {
    static const struct {
        const char *word;
        message_kind kind;
    } kinds[] = {
        {"error", KIND_ERROR},
        {"catastrophic error", KIND_ERROR},
        {"internal error", KIND_ERROR},
        {"fatal error", KIND_ERROR},
        {"note", KIND_NOTE},
        {"warning", KIND_OTHER},
        {"remark", KIND_OTHER},
    };
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        if (!starts_with(s, kinds[i].word)) continue;
        span rest = skip(s, strlen(kinds[i].word));
        if (starts_with(rest, " #"))
            while (rest.size && *rest.text != ':') rest = skip(rest, 1);
        if (!starts_with(rest, ": ")) continue;
        *text = skip(rest, 2);
        return kinds[i].kind;
    }
    return KIND_NONE;
}

/* `(12): kind: text`, the parenthesis being at `at`. */
static bool read_position(span line, size_t at, head *h) {
    size_t i = at + 1, digits = 0;
    uint64_t number = 0;
    for (; i < line.size && line.text[i] >= '0' && line.text[i] <= '9' && digits < 9; i++, digits++)
        number = number * 10 + (uint64_t)(line.text[i] - '0');
    if (!digits || !starts_with(skip(line, i), "): ")) return false;
    h->kind = read_kind(skip(line, i + 3), &h->text);
    h->file = (span){line.text, at};
    h->line = (uint32_t)number;
    return h->kind != KIND_NONE;
}

static head read_head(span line) {
    static const char *const places[] = {"At end of source: ", "nvrtc: ", "Command-line "};
    head h = {0};
    if (!line.size || line.text[0] == ' ') return h;
    for (size_t i = 0; i < line.size; i++)
        if (line.text[i] == '(' && read_position(line, i, &h)) return h;
    h = (head){0};
    for (size_t i = 0; i < sizeof places / sizeof *places; i++)
        if (starts_with(line, places[i])) h.kind = read_kind(skip(line, strlen(places[i])), &h.text);
    return h;
}

/* -- places -------------------------------------------------------------------------------------------------------- */

static const char *file_of(log_reader *r, span file) {
    char *text = copy(r, file);
    return strcmp(text, r->name) == 0 && r->input->path ? r->input->path : text;
}

/* Blanks and one caret at the end. */
static bool is_caret_line(span line) {
    span s = line;
    while (s.size && (s.text[0] == ' ' || s.text[0] == '\t')) s = skip(s, 1);
    return line.size > 2 && s.size == 1 && s.text[0] == '^';
}

/* The source line and its caret, both indented by two, if they come next. */
static const char *read_source_line(log_reader *r, uint32_t *column) {
    span source, caret;
    const char *start = r->rest;
    if (!peek_line(r, &source) || !starts_with(source, "  ")) return NULL;
    next_line(r, source);
    if (!peek_line(r, &caret) || !is_caret_line(caret)) {
        r->rest = start;
        return NULL;
    }
    next_line(r, caret);
    *column = (uint32_t)(caret.size - 2);
    return copy(r, skip(source, 2));
}

/* Lines of the message itself that stand before the source line: `argument types are: (double)`. */
static char *read_text(log_reader *r, span first) {
    char *text = copy(r, trim(first));
    const char *start = r->rest;
    for (span line; peek_line(r, &line) && starts_with(line, "          "); start = r->rest) {
        uint32_t column;
        if (read_source_line(r, &column) || strstr(copy(r, line), "detected during")) break;
        next_line(r, line);
        text = its_arena_printf(r->arena, "%s; %s", text, copy(r, trim(line)));
    }
    r->rest = start;
    return text;
}

/* `instantiation of "void f(T) [with T=int]" at line 20 of other.h`; the same file if none is named. */
static void add_context(log_reader *r, span line, const char *file) {
    char *text = copy(r, line), *at = NULL, *end;
    for (char *p = text; (p = strstr(p, " at line ")); p++) at = p;
    if (!at) return;
    unsigned long number = strtoul(at + 9, &end, 10);
    if (strncmp(end, " of ", 4) == 0) file = file_of(r, (span){end + 4, strlen(end + 4)});
    *at = 0;
    its_diag_also_line(r->ctx, file, number > UINT32_MAX ? 0 : (uint32_t)number, 0, NULL,
                       its_arena_printf(r->arena, "in %s", text));
}

/* What "detected during" lists, down to a line that is not indented. */
static void read_contexts(log_reader *r, const char *file) {
    static const char during[] = "detected during";
    for (span line; peek_line(r, &line) && starts_with(line, "          "); next_line(r, line)) {
        span s = trim(line);
        if (starts_with(s, during)) s = skip(s, sizeof during - 1);
        s = trim(starts_with(s, ":") ? skip(s, 1) : s);
        if (r->in_error && s.size) add_context(r, s, file);
    }
}

/* -- messages ------------------------------------------------------------------------------------------------------ */

/* NAME of `cannot open source file "NAME"`, or NULL. */
static const char *missing_file(log_reader *r, const char *text) {
    const char *found = strstr(text, "open source file \""), *name = found ? strchr(found, '"') + 1 : NULL;
    const char *end = name ? strchr(name, '"') : NULL;
    return end ? its_arena_text(r->arena, name, (size_t)(end - name)) : NULL;
}

static bool is_searched(log_reader *r, const char *name) {
    for (size_t i = 0; i < r->search->n_dirs; i++)
        if (its_file_is_regular(its_path_join(r->arena, r->search->dirs[i], name))) return true;
    return false;
}

static void add_hint(log_reader *r, const char *text) {
    const char *name = missing_file(r, text);
    if (!name) return;
    const char *cuda_std = its_arena_printf(r->arena, "cuda/std/%s", name);
    if (is_searched(r, cuda_std))
        its_diag_hint(r->ctx, "NVRTC has no standard library; CUDA's is <%s>, in the namespace cuda::std", cuda_std);
    else if (!strpbrk(name, "./")) /* a header of C++ */
        its_diag_hint(r->ctx,
                      "a device file is compiled for the GPU alone; what is for the host goes into a host file");
    else
        its_diag_hint(r->ctx, "add the directory that has it with -I DIRECTORY, or install it; CUDA's own headers come "
                              "with the CUDA toolkit or the wheels nvidia-cuda-runtime and nvidia-cuda-cccl");
}

static void begin_error(log_reader *r, const char *text) {
    its_diag_begin(r->ctx, ITS_ERROR, ITS_NOWHERE, "%s", text);
    r->in_error = true;
}

/* An error in the functions that were appended for the instances: the instance is its place. */
static void read_instance_error(log_reader *r, const head *h) {
    uint32_t column, index = h->line - 1;
    const char *text = read_text(r, h->text);
    read_source_line(r, &column);
    if (index < r->input->n_instances)
        text = its_arena_printf(r->arena, "the instance '%s' can't be made: %s", r->input->instances[index], text);
    begin_error(r, text);
}

static void read_error(log_reader *r, const head *h) {
    uint32_t column = 0;
    char *text = read_text(r, h->text);
    const char *file = h->file.size ? file_of(r, h->file) : NULL, *source = read_source_line(r, &column);
    begin_error(r, text);
    if (file) its_diag_also_line(r->ctx, file, h->line, column, source, NULL);
    read_contexts(r, file);
    add_hint(r, text);
}

/* A note is a further place of the error before it. */
static void read_note(log_reader *r, const head *h) {
    uint32_t column = 0;
    char *text = read_text(r, h->text);
    const char *file = h->file.size ? file_of(r, h->file) : NULL, *source = read_source_line(r, &column);
    if (r->in_error && file) its_diag_also_line(r->ctx, file, h->line, column, source, text);
    read_contexts(r, file);
}

static void read_message(log_reader *r, span line) {
    head h = read_head(line);
    next_line(r, line);
    if (h.kind == KIND_ERROR && ++r->n_errors > MOST_ERRORS)
        r->in_error = false;
    else if (h.kind == KIND_ERROR && h.file.size == sizeof ITS_INSTANCES_FILE - 1 &&
             memcmp(h.file.text, ITS_INSTANCES_FILE, h.file.size) == 0)
        read_instance_error(r, &h);
    else if (h.kind == KIND_ERROR)
        read_error(r, &h);
    else if (h.kind == KIND_NOTE)
        read_note(r, &h);
    else if (line.size && h.kind == KIND_OTHER)
        r->in_error = false;
}

bool its_cuda_log_errors(its_context *ctx, its_arena *arena, const its_cc_input *input, const its_cuda_search *search,
                         const char *name, const char *log) {
    log_reader r = {.ctx = ctx, .arena = arena, .input = input, .search = search, .name = name, .rest = log};
    for (span line; peek_line(&r, &line);) read_message(&r, line);
    if (r.n_errors > MOST_ERRORS)
        its_diag_begin(ctx, ITS_ERROR, ITS_NOWHERE, "and %u more errors in '%s'", r.n_errors - MOST_ERRORS, name);
    return r.n_errors > 0;
}

/* -- marks --------------------------------------------------------------------------------------------------------- */

static int64_t number_of(const its_cc_reads *reads, const char *name, const char *file) {
    if (strcmp(file, name) == 0) return 0;
    for (size_t i = 0; i < reads->files.count; i++)
        if (strcmp(reads->files.items[i]->path, file) == 0) return (int64_t)i + 1;
    return -1;
}

const char *its_cuda_mark_log(its_arena *arena, const its_cc_input *input, const its_cc_reads *reads, const char *log) {
    log_reader r = {.arena = arena, .rest = log};
    const char *name = its_cuda_source_name(arena, input);
    its_edits edits = {0};
    for (span line; peek_line(&r, &line); next_line(&r, line)) {
        head h = read_head(line);
        int64_t number = h.file.size ? number_of(reads, name, copy(&r, h.file)) : -1;
        if (number < 0) continue;
        its_edit edit = {(size_t)(h.file.text - log), h.file.size,
                         its_arena_printf(arena, "%s%lld", ITS_FILE_MARK, (long long)number)};
        ITS_PUSH(arena, &edits, edit);
    }
    size_t size;
    return its_edits_apply(arena, &edits, log, strlen(log), &size);
}
