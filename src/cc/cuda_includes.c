/*
 * Which files a CUDA source can read: the closure of its includes, searched as NVRTC does (measured):
 *
 *     headers that the library holds itself come first, then for "name" the directory of the file with the directive,
 * then for both forms the directories given, in order.
 */
#include <string.h>

#include "base/file.h"
#include "base/path.h"
#include "cc/cuda.h"
#include "cc/embed.h"
#include "cc/scan.h"

static const char default_name[] = "source.cu";

const char *its_cuda_source_path(its_arena *arena, const its_cc_input *input) {
    return its_path_absolute(arena, input->path && *input->path ? input->path : default_name);
}

const char *its_cuda_source_name(its_arena *arena, const its_cc_input *input) {
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-+ ";
    const char *base = input->path ? its_path_base(input->path) : default_name;
    char *name = its_arena_text(arena, base, strlen(base));
    for (char *p = name; *(p += strspn(p, plain));) *p = '_';
    return *name ? name : default_name;
}

/* -- the search ---------------------------------------------------------------------------------------------------- */

void its_cuda_search_init(its_arena *arena, const its_cc_input *input, const its_cuda_options *options,
                          const its_library_search *nvrtc, its_cuda_search *search) {
    *search = (its_cuda_search){.options = options};
    search->source_dir = its_path_dir(arena, its_cuda_source_path(arena, input));
    its_cuda_headers_find(arena, nvrtc, &search->cuda);
    search->dirs = ITS_NEW_ARRAY(arena, const char *, options->include_dirs.count + 1 + search->cuda.n_dirs);
    for (size_t i = 0; i < options->include_dirs.count; i++)
        search->dirs[search->n_dirs++] = options->include_dirs.items[i];
    search->dirs[search->n_dirs++] = search->source_dir;
    for (size_t i = 0; i < search->cuda.n_dirs; i++) search->dirs[search->n_dirs++] = search->cuda.dirs[i];
}

bool its_cuda_use_embedded(its_arena *arena, const its_cuda_search *search, const char *name) {
    for (size_t i = 0; i < search->options->include_dirs.count; i++)
        if (its_file_is_regular(its_path_join(arena, search->options->include_dirs.items[i], name))) return false;
    return !its_file_is_regular(its_path_join(arena, search->source_dir, name));
}

/* -- the closure --------------------------------------------------------------------------------------------------- */

/* A text whose includes are to be looked at: a file, or one in memory. */
typedef struct pending {
    const its_read_file *file;
    const char *text;
    size_t size;
    const char *dir; /* of the file; NULL for one that the library holds */
} pending;

/* Every `#define NAME "file"`. */
typedef struct macro {
    ITS_VEC(its_include) targets;
} macro;

/* `#include NAME`, and the directory of the file that has it */
typedef struct macro_use {
    const char *name, *dir;
    size_t done; /* of the macro's targets */
} macro_use;

typedef struct walker {
    its_arena *arena;
    const its_cuda_search *search;
    its_cc_reads *reads;
    ITS_VEC(pending) queue;
    its_text_map answers; /* of <name>, which are the same from everywhere; and which uses of macros are known */
    its_include_list list;
    size_t defines_done; /* of the list */
    its_text_map macros;
    ITS_VEC(macro_use) macro_uses;
} walker;

static void enqueue(walker *w, const its_read_file *file, const char *text, size_t size, const char *dir) {
    pending item = {file, text, size, dir};
    ITS_PUSH(w->arena, &w->queue, item);
}

/* Takes the file up if it is there; the first time its own includes will be looked at as well. */
static bool read_file(walker *w, const char *path) {
    bool first;
    its_read_file *file = its_reads_file(w->reads, path, &first);
    if (file && first) enqueue(w, file, NULL, 0, its_path_dir(w->arena, file->path));
    return file;
}

static bool read_embedded(walker *w, const char *name) {
    const its_embedded *file = its_embedded_file(name);
    if (!file || !its_cuda_use_embedded(w->arena, w->search, name)) return false;
    void **known = its_text_map_at(w->arena, &w->answers, its_arena_printf(w->arena, "embedded %s", name));
    its_reads_text(w->reads, "embedded");
    if (*known) return true;
    *known = w;
    its_hash_content(&w->reads->hasher, file->text, file->size);
    enqueue(w, NULL, file->text, file->size, NULL);
    return true;
}

/* In the directories given; all of them for #include_next, whose start is not worth knowing exactly. */
static bool read_in_dirs(walker *w, const its_include *include) {
    bool found = false;
    for (size_t i = 0; i < w->search->n_dirs && (!found || include->next); i++)
        found |= read_file(w, its_path_join(w->arena, w->search->dirs[i], include->name));
    return found;
}

static void read_include(walker *w, const its_include *include, const char *dir) {
    its_reads_text(w->reads, include->name);
    bool found =
        (*include->name == '/' && read_file(w, include->name)) || read_embedded(w, include->name) ||
        (include->kind == ITS_INCLUDE_QUOTED && dir && read_file(w, its_path_join(w->arena, dir, include->name))) ||
        read_in_dirs(w, include);
    if (!found) its_reads_text(w->reads, "absent");
}

/* Most <name> of CUDA's headers come up dozens of times: the answer, also "absent", is in the hash already. */
static void read_include_once(walker *w, const its_include *include, const char *dir) {
    if (include->kind == ITS_INCLUDE_ANGLED) {
        void **known =
            its_text_map_at(w->arena, &w->answers, its_arena_printf(w->arena, "%d %s", include->next, include->name));
        if (*known) return;
        *known = w;
    }
    read_include(w, include, dir);
}

/* Once for each directory: from there it is the same files. */
static void note_macro_use(walker *w, const char *name, const char *dir) {
    char *key = its_arena_printf(w->arena, "macro %s %s", name, dir ? dir : "");
    void **known = its_text_map_at(w->arena, &w->answers, key);
    macro_use use = {name, dir, 0};
    if (*known) return;
    *known = w;
    ITS_PUSH(w->arena, &w->macro_uses, use);
}

static void visit(walker *w, pending *file) {
    size_t first = w->list.includes.count;
    if (file->file) {
        if (!its_reads_content(w->reads, file->file)) return;
        file->text = w->reads->content.data;
        file->size = w->reads->content.size;
    }
    its_scan_includes(w->arena, file->text, file->size, &w->list);
    for (size_t i = first; i < w->list.includes.count; i++) {
        const its_include *include = &w->list.includes.items[i];
        if (include->kind == ITS_INCLUDE_MACRO)
            note_macro_use(w, include->name, file->dir);
        else
            read_include_once(w, include, file->dir);
    }
}

static macro *macro_named(walker *w, const char *name) {
    void **known = its_text_map_at(w->arena, &w->macros, name);
    if (!*known) *known = ITS_NEW(w->arena, macro);
    return *known;
}

/* Whatever any `#define NAME` names: which of them is in force where NAME is used is not known. */
static void read_macro_includes(walker *w) {
    for (; w->defines_done < w->list.defines.count; w->defines_done++) {
        const its_include_define *define = &w->list.defines.items[w->defines_done];
        ITS_PUSH(w->arena, &macro_named(w, define->macro)->targets, define->target);
    }
    for (size_t i = 0; i < w->macro_uses.count; i++) {
        macro_use *use = &w->macro_uses.items[i];
        const macro *named = macro_named(w, use->name);
        while (use->done < named->targets.count) read_include_once(w, &named->targets.items[use->done++], use->dir);
    }
}

/* -DNAME="file" is a define as well. */
static void note_option_defines(walker *w) {
    for (size_t i = 0; i < w->search->options->passed.count; i++) {
        const char *option = w->search->options->passed.items[i], *equals = strchr(option, '=');
        if (strncmp(option, "-D", 2) != 0 || !equals) continue;
        char *line =
            its_arena_printf(w->arena, "#define %.*s %s\n", (int)(equals - option - 2), option + 2, equals + 1);
        its_scan_includes(w->arena, line, strlen(line), &w->list);
    }
}

void its_cuda_read_includes(its_arena *arena, const its_cuda_search *search, const char *source, size_t size,
                            its_cc_reads *reads) {
    walker w = {.arena = arena, .search = search, .reads = reads};
    note_option_defines(&w);
    for (size_t i = 0; i < search->options->pre_includes.count; i++) { /* seen from the current directory */
        its_include include = {ITS_INCLUDE_QUOTED, false, search->options->pre_includes.items[i]};
        read_include(&w, &include, its_path_absolute(arena, "."));
    }
    enqueue(&w, NULL, source, size, search->source_dir);
    for (size_t done = 0; done < w.queue.count;) {
        while (done < w.queue.count && !reads->too_much) {
            pending file = w.queue.items[done++]; /* a copy: visiting may move the queue */
            visit(&w, &file);
        }
        if (reads->too_much) return;
        read_macro_includes(&w);
    }
}
