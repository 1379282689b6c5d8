/*
 * The functions of a unit. C++ names are demangled by the C++ runtime, which is loaded at run time: it is on
 * practically every machine, and a demangler of our own would be a large table of somebody else's rules.
 */
#include "cc/functions.h"

#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "base/diag.h"
#include "base/dynload.h"

/* -- spelling ------------------------------------------------------------------------------------------------------ */

typedef struct speller {
    its_arena *arena;
    its_library library;
    its_cxx cxx;
    bool tried, complete;
} speller;

static bool have_demangler(speller *s) {
    its_library_search search;
    if (s->tried) return s->library.handle;
    s->tried = true;
    its_library_find(s->arena, ITS_LIBRARY_CXX, &search);
    return search.path && its_library_load(&search, &s->library, &s->cxx);
}

/* NVRTC puts functions that are static into a namespace named after the source. */
static const char *without_file_namespace(const char *text) {
    const char *colons = strncmp(text, "_INTERNAL_", 10) == 0 ? strstr(text, "::") : NULL;
    return colons ? colons + 2 : text;
}

static const char *demangle(speller *s, its_name name) {
    if (strncmp(name->text, "_Z", 2) != 0) return name->text;
    if (!have_demangler(s)) return s->complete = false, name->text;
    int status = 0;
    char *text = s->cxx.__cxa_demangle(name->text, NULL, NULL, &status);
    if (!text) return name->text;
    char copy[1024]; /* so that `text` is freed before the arena can jump away */
    const char *spelling = without_file_namespace(text);
    size_t size = strlen(spelling);
    bool fits = size < sizeof copy;
    if (fits) memcpy(copy, spelling, size + 1);
    free(text);
    return fits ? its_arena_text(s->arena, copy, size) : name->text;
}

typedef struct list_job {
    speller speller;
    const its_module *module;
    const char *const *instances;
    char *const *names;
    uint32_t n_instances;
    ITS_VEC(its_unit_func) funcs;
} list_job;

static const char *spelling_of(list_job *job, its_name name) {
    for (uint32_t i = 0; job->names && i < job->n_instances; i++)
        if (strcmp(job->names[i], name->text) == 0)
            return its_arena_text(job->speller.arena, job->instances[i], strlen(job->instances[i]));
    return demangle(&job->speller, name);
}

static void list_some(list_job *job, bool visible) {
    for (its_func *func = NULL; (func = its_module_next_func(job->module, func));) {
        bool is_visible = func->symbol->flags & (ITS_SYM_VISIBLE | ITS_SYM_WEAK);
        if (!func->has_body || is_visible != visible) continue;
        its_name name = func->symbol->name;
        its_unit_func item = {its_arena_text(job->speller.arena, name->text, name->size), NULL};
        const char *spelling = spelling_of(job, name);
        item.spelling = spelling == name->text ? item.name : spelling;
        ITS_PUSH(job->speller.arena, &job->funcs, item);
    }
}

static its_status list_body(void *user) {
    list_job *job = user;
    list_some(job, true);
    list_some(job, false);
    return ITS_OK;
}

its_unit_func *its_functions_list(its_arena *arena, const its_module *module, const char *const *instances,
                                  char *const *names, uint32_t n_instances, uint32_t *count, bool *complete) {
    list_job job = {.speller = {.arena = arena, .complete = true},
                    .module = module,
                    .instances = instances,
                    .names = names,
                    .n_instances = n_instances};
    its_status status = its_protect(arena->ctx, list_body, &job);
    its_library_close(&job.speller.library);
    if (status != ITS_OK) its_guard_raise(arena->ctx);
    *count = (uint32_t)job.funcs.count;
    *complete = job.speller.complete;
    return job.funcs.items;
}

/* -- finding ------------------------------------------------------------------------------------------------------- */

typedef struct part {
    const char *text;
    size_t size;
} part;

/* `void ns::scale<float>(float*, int)` taken apart */
typedef struct parts {
    part qualified; /* ns::scale<float> */
    part last;      /* scale<float> */
    part plain;     /* scale */
} parts;

/* Where the parameter list starts: at the partner of the last parenthesis. The whole size if there is none. */
static size_t parameters_at(const char *text, size_t size) {
    size_t depth = 0, at = size;
    while (at && text[at - 1] != ')') at--;
    for (; at; at--) {
        depth += text[at - 1] == ')';
        depth -= text[at - 1] == '(';
        if (!depth) return at - 1;
    }
    return size;
}

static bool opens(char c) {
    return c == '(' || c == '<' || c == '[';
}

static bool closes(char c) {
    return c == ')' || c == '>' || c == ']';
}

/* Behind the last blank, and behind the last `::`, that are in no brackets. */
static void find_starts(part text, size_t *after_blank, size_t *after_colons) {
    int depth = 0;
    *after_blank = *after_colons = 0;
    for (size_t i = 0; i < text.size; i++) {
        if (text.size - i > 8 && strncmp(text.text + i, "operator", 8) == 0) break;
        depth += opens(text.text[i]);
        depth -= closes(text.text[i]);
        if (depth) continue;
        if (text.text[i] == ' ') *after_blank = *after_colons = i + 1;
        if (i && text.text[i] == ':' && text.text[i - 1] == ':') *after_colons = i + 1;
    }
}

static parts take_apart(const char *spelling) {
    part head = {spelling, parameters_at(spelling, strlen(spelling))};
    size_t blank, colons;
    find_starts(head, &blank, &colons);
    parts p = {{head.text + blank, head.size - blank}, {head.text + colons, head.size - colons}, {0}};
    const char *angle = memchr(p.last.text, '<', p.last.size);
    p.plain = p.last;
    if (angle && angle != p.last.text && strncmp(p.last.text, "operator", 8) != 0)
        p.plain.size = (size_t)(angle - p.last.text);
    return p;
}

/* Blanks don't count: people write `float *`, demanglers `float*`. */
static bool same(part a, const char *b) {
    size_t i = 0;
    for (;; i++, b++) {
        while (i < a.size && a.text[i] == ' ') i++;
        while (*b == ' ') b++;
        if (i == a.size || !*b) return i == a.size && !*b;
        if (a.text[i] != *b) return false;
    }
}

enum { LEVELS = 5 };

/* How exact a match must be falls from level to level. */
static bool matches(const its_unit_func *func, const char *name, int level) {
    parts p = take_apart(func->spelling);
    switch (level) {
    case 0:
        return strcmp(func->name, name) == 0;
    case 1:
        return same((part){func->spelling, strlen(func->spelling)}, name);
    case 2:
        return same(p.qualified, name);
    case 3:
        return same(p.last, name);
    default:
        return same(p.plain, name);
    }
}

enum { MOST_LISTED = 40 };

/* What is listed: the functions that match at `level`, or all if it is LEVELS. */
static void list_functions(its_buffer *out, const its_unit *unit, const char *name, int level) {
    size_t listed = 0, more = 0;
    for (uint32_t i = 0; i < unit->n_funcs; i++) {
        if (level < LEVELS && !matches(&unit->funcs[i], name, level)) continue;
        if (listed == MOST_LISTED)
            more++;
        else
            its_buffer_printf(out, "%s%s", listed++ ? ", " : "", unit->funcs[i].spelling);
    }
    if (more) its_buffer_printf(out, " and %zu more", more);
    its_buffer_char(out, 0);
}

typedef struct find_job {
    its_context *ctx;
    const its_unit *unit;
    const char *name;
    const its_unit_func **func;
    its_buffer list;
    its_arena scratch;
} find_job;

static its_status ambiguous(find_job *job, int level) {
    list_functions(&job->list, job->unit, job->name, level);
    its_diag_begin(job->ctx, ITS_ERROR, ITS_NOWHERE, "'%s' fits several functions of '%s': %s", job->name,
                   job->unit->path, job->list.data);
    its_diag_hint(job->ctx, "write one of them in full");
    return ITS_ERR_INPUT;
}

static its_status not_found(find_job *job) {
    const its_unit *unit = job->unit;
    if (!unit->n_funcs) {
        its_diag_begin(job->ctx, ITS_ERROR, ITS_NOWHERE, "'%s' defines no function '%s': it defines none at all",
                       unit->path, job->name);
        its_diag_hint(job->ctx, "a device function starts with `extern \"C\" __device__`; templates are made by naming "
                                "their instances");
        return ITS_ERR_INPUT;
    }
    const char **names = ITS_NEW_ARRAY(&job->scratch, const char *, unit->n_funcs);
    for (uint32_t i = 0; i < unit->n_funcs; i++) {
        parts p = take_apart(unit->funcs[i].spelling);
        names[i] = its_arena_text(&job->scratch, p.last.text, p.last.size);
    }
    const char *close = its_closest(job->name, names, unit->n_funcs);
    list_functions(&job->list, unit, job->name, LEVELS);
    its_diag_begin(job->ctx, ITS_ERROR, ITS_NOWHERE, "'%s' defines no function '%s'; it defines: %s", unit->path,
                   job->name, job->list.data);
    if (close)
        its_diag_hint(job->ctx, "did you mean '%s'?", close);
    else
        its_diag_hint(job->ctx,
                      "a static or inline function is not there for others, and of a template only instances "
                      "that were asked for, such as '%s<float>'",
                      job->name);
    return ITS_ERR_INPUT;
}

static its_status find_body(void *user) {
    find_job *job = user;
    for (int level = 0; level < LEVELS; level++) {
        size_t count = 0;
        for (uint32_t i = 0; i < job->unit->n_funcs; i++)
            if (matches(&job->unit->funcs[i], job->name, level) && !count++) *job->func = &job->unit->funcs[i];
        if (count == 1) return ITS_OK;
        if (count) return ambiguous(job, level);
    }
    return not_found(job);
}

its_status its_unit_find(its_context *ctx, const its_unit *unit, const char *name, const its_unit_func **func) {
    find_job job = {.ctx = ctx, .unit = unit, .name = name, .func = func};
    its_buffer_init(&job.list, ctx);
    its_arena_init(&job.scratch, ctx);
    *func = NULL;
    its_status status = its_protect(ctx, find_body, &job);
    if (status != ITS_OK) *func = NULL;
    its_buffer_free(&job.list);
    its_arena_free(&job.scratch);
    return status;
}
