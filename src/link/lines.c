/*
 * Line information across modules.
 *
 * Files are merged by path: the main module's numbers stay, others are numbered behind them. A `.loc` that says which
 * function it was inlined from names a label in section .debug_str; such a section holds, for each label, the bytes of
 * a name. The main module's section is kept as it is, and what other modules and the inliner add is put behind it.
 */
#include "link/lines.h"

#include <stdlib.h>
#include <string.h>

#include "base/intern.h"

struct its_lines {
    its_map numbers; /* path -> number */
    uint32_t last;   /* number in use */
    its_node_list files;
    its_map labels; /* text -> label */
    ITS_VEC(its_name) texts;
    uint32_t n_labels;
};

/* -- files --------------------------------------------------------------------------------------------------------- */

static void visit_files(const its_module *module, void (*visit)(void *user, const its_file *file), void *user) {
    for (const its_node *node = module->first; node; node = node->next) {
        if (node->kind == ITS_NODE_FILE) visit(user, (const its_file *)node);
        if (node->kind != ITS_NODE_FUNC) continue;
        for (const its_node *inner = ((const its_func *)node)->first; inner; inner = inner->next)
            if (inner->kind == ITS_NODE_FILE) visit(user, (const its_file *)inner);
    }
}

static void note_main_file(void *user, const its_file *file) {
    its_linker *linker = user;
    its_lines *lines = linker->lines;
    if (!its_map_get(&lines->numbers, file->path))
        its_map_put(&lines->numbers, &linker->scratch, file->path, (void *)(uintptr_t)file->index);
    if (file->index > lines->last) lines->last = file->index;
}

void its_lines_start(its_linker *linker) {
    linker->lines = ITS_NEW(&linker->scratch, its_lines);
    visit_files(its_link_main(linker), note_main_file, linker);
}

static uint32_t number_of(its_linker *linker, const its_file *file) {
    its_lines *lines = linker->lines;
    uint32_t number = (uint32_t)(uintptr_t)its_map_get(&lines->numbers, file->path);
    if (number || lines->last == UINT32_MAX) return number;
    its_file *copy = its_node_new(linker->out, ITS_NODE_FILE, sizeof *copy, file->node.origin, file->node.pos);
    copy->index = number = ++lines->last;
    copy->path = file->path;
    copy->has_stat = file->has_stat;
    copy->mtime = file->mtime;
    copy->size = file->size;
    its_list_append(&lines->files, &copy->node);
    its_map_put(&lines->numbers, &linker->scratch, file->path, (void *)(uintptr_t)number);
    return number;
}

its_node *its_lines_files(its_linker *linker) {
    return linker->lines->files.first;
}

typedef struct file_note {
    its_linker *linker;
    its_map *files;
} file_note;

/* A number as the key of a map. */
static const void *key_of(uint32_t index) {
    return (const void *)(((uintptr_t)index + 1) << 3);
}

static void note_file(void *user, const its_file *file) {
    file_note *note = user;
    if (!its_map_get(note->files, key_of(file->index)))
        its_map_put(note->files, &note->linker->scratch, key_of(file->index), (void *)(uintptr_t)file);
}

void its_files_note(its_linker *linker, const its_module *module, its_map *files) {
    file_note note = {linker, files};
    visit_files(module, note_file, &note);
}

const its_file *its_file_numbered(const its_map *files, uint32_t number) {
    return its_map_get(files, key_of(number));
}

static uint32_t adopt_file(its_linker *linker, its_link_source *source, uint32_t index) {
    if (source->module == its_link_main(linker)) return index;
    if (!source->files_read) its_files_note(linker, source->module, &source->files);
    source->files_read = true;
    const its_file *file = its_file_numbered(&source->files, index);
    return file ? number_of(linker, file) : 0;
}

/* -- names in .debug_str ------------------------------------------------------------------------------------------- */

static const char *skip_blank(const char *at, const char *end) {
    while (at < end && (*at == ' ' || *at == '\t' || *at == '\n' || *at == '\r' || *at == ',')) at++;
    return at;
}

typedef struct string_reader {
    its_linker *linker;
    its_link_source *source;
    its_name label;
    its_buffer text;
} string_reader;

static void end_string(string_reader *reader) {
    its_context *ctx = reader->linker->ctx;
    if (reader->label && reader->text.size) {
        its_name text = its_intern_raise(ctx, reader->text.data, reader->text.size);
        its_map_put(&reader->source->labels, &reader->linker->scratch, reader->label, text);
    }
    reader->label = NULL;
    reader->text.size = 0;
}

/* `label: .b8 95,90,53,0` and so on, comments between; a string ends at its zero. */
static void read_strings(string_reader *reader, const char *at, const char *end) {
    while ((at = skip_blank(at, end)) < end) {
        const char *from = at;
        if (*at == '/') {
            at = its_line_end(at, end);
        } else if (*at >= '0' && *at <= '9') {
            unsigned value = 0;
            for (; at < end && *at >= '0' && *at <= '9'; at++) value = (value * 10 + (unsigned)(*at - '0')) & 0xffff;
            if (value == 0)
                end_string(reader);
            else if (reader->label)
                its_buffer_char(&reader->text, (char)value);
        } else if (its_is_word(*at)) {
            at = its_word_end(at, end);
            end_string(reader);
            if (at < end && *at == ':')
                reader->label = its_intern_raise(reader->linker->ctx, from, (size_t)(at - from));
        } else {
            at = its_word_end(at + 1, end); /* .b8 */
        }
    }
}

static const its_section *debug_str(const its_module *module) {
    for (const its_node *node = module->first; node; node = node->next)
        if (node->kind == ITS_NODE_SECTION && strcmp(((const its_section *)node)->name->text, ".debug_str") == 0)
            return (const its_section *)node;
    return NULL;
}

typedef struct read_job {
    string_reader reader;
    const its_section *section;
} read_job;

static its_status read_body(void *user) {
    read_job *job = user;
    read_strings(&job->reader, job->section->body, job->section->body + job->section->body_size);
    return ITS_OK;
}

static void read_labels(its_linker *linker, its_link_source *source) {
    source->labels_read = true;
    read_job job = {.reader = {.linker = linker, .source = source}, .section = debug_str(source->module)};
    if (!job.section) return;
    its_buffer_init(&job.reader.text, linker->ctx);
    its_status status = its_protect(linker->ctx, read_body, &job);
    its_buffer_free(&job.reader.text);
    if (status != ITS_OK) its_guard_raise(linker->ctx);
}

its_name its_lines_label(its_linker *linker, its_name text) {
    its_lines *lines = linker->lines;
    its_name label = its_map_get(&lines->labels, text);
    if (label) return label;
    label = its_names_new(linker, "", "$name", lines->n_labels++);
    its_map_put(&lines->labels, &linker->scratch, text, label);
    ITS_PUSH(&linker->scratch, &lines->texts, text);
    return label;
}

static its_name adopt_label(its_linker *linker, its_link_source *source, its_name label) {
    if (source->module == its_link_main(linker)) return label;
    if (!source->labels_read) read_labels(linker, source);
    its_name text = its_map_get(&source->labels, label);
    return text ? its_lines_label(linker, text) : NULL;
}

bool its_lines_adopt(its_linker *linker, its_link_source *source, its_loc *loc) {
    loc->file = adopt_file(linker, source, loc->file);
    if (!loc->file) return false;
    if (!loc->inlined) return true;
    loc->at_file = adopt_file(linker, source, loc->at_file);
    if (loc->function && source->module != its_link_main(linker)) {
        loc->function = adopt_label(linker, source, loc->function);
        loc->function_offset = 0;
    }
    loc->inlined = loc->at_file != 0;
    return true;
}

/* -- the output's section ------------------------------------------------------------------------------------------ */

static void put_string(its_linker *linker, its_buffer *out, its_name text) {
    its_name label = its_map_get(&linker->lines->labels, text);
    its_buffer_printf(out, "%s:\n", label->text);
    for (uint32_t i = 0; i < text->size; i++)
        its_buffer_printf(out, "%s%u", i % 16 ? "," : i ? "\n.b8 " : ".b8 ", (unsigned)(unsigned char)text->text[i]);
    its_buffer_text(out, "\n.b8 0\n");
}

typedef struct finish_job {
    its_linker *linker;
    its_buffer out;
    const its_section *old;
} finish_job;

static its_status finish_body(void *user) {
    finish_job *job = user;
    its_linker *linker = job->linker;
    if (job->old) its_buffer_put(&job->out, job->old->body, job->old->body_size);
    its_buffer_char(&job->out, '\n');
    for (size_t i = 0; i < linker->lines->texts.count; i++)
        put_string(linker, &job->out, linker->lines->texts.items[i]);
    return ITS_OK;
}

void its_lines_finish(its_linker *linker) {
    its_module *out = linker->out;
    if (!linker->lines->texts.count) return;
    its_section *section = (its_section *)debug_str(out);
    finish_job job = {.linker = linker, .old = section};
    its_buffer_init(&job.out, linker->ctx);
    its_status status = its_protect(linker->ctx, finish_body, &job);
    if (status != ITS_OK) {
        its_buffer_free(&job.out);
        its_guard_raise(linker->ctx);
    }
    if (!section) {
        section = its_node_new(out, ITS_NODE_SECTION, sizeof *section, out->origin, 0);
        section->name = its_intern_text(linker->ctx, ".debug_str");
        its_module_append(out, &section->node);
    }
    section->body = its_arena_text(its_module_arena(out), job.out.data, job.out.size);
    section->body_size = (uint32_t)job.out.size;
    its_buffer_free(&job.out);
}

/* -- the lines of a function --------------------------------------------------------------------------------------- */

static int compare_numbers(uint32_t a, uint32_t b) {
    return (a > b) - (a < b);
}

static int compare(const its_loc_entry *entry, uint32_t file, uint32_t line, uint32_t column, size_t index) {
    int order = compare_numbers(entry->loc->file, file);
    if (!order) order = compare_numbers(entry->loc->line, line);
    if (!order) order = compare_numbers(entry->loc->column, column);
    return order ? order : (entry->index > index) - (entry->index < index);
}

static int by_line(const void *a, const void *b) {
    const its_loc_entry *other = b;
    return compare(a, other->loc->file, other->loc->line, other->loc->column, other->index);
}

void its_locs_read(its_linker *linker, const its_func *func, its_locs *locs) {
    *locs = (its_locs){0};
    for (its_node *node = func->first; node; node = node->next) {
        if (node->kind != ITS_NODE_LOC) continue;
        its_loc_entry entry = {(its_loc *)node, locs->sorted.count};
        ITS_PUSH(&linker->scratch, &locs->sorted, entry);
        its_map_put(&locs->numbers, &linker->scratch, node, (void *)(uintptr_t)locs->sorted.count);
    }
    if (locs->sorted.count) qsort(locs->sorted.items, locs->sorted.count, sizeof *locs->sorted.items, by_line);
}

const its_loc *its_locs_outer(const its_locs *locs, const its_loc *inner) {
    size_t low = 0, high = locs->sorted.count, number = (size_t)(uintptr_t)its_map_get(&locs->numbers, inner);
    if (!number) return NULL;
    while (low < high) { /* what is in front of `low` stands before, what is from `high` on does not */
        size_t middle = low + (high - low) / 2;
        const its_loc_entry *entry = &locs->sorted.items[middle];
        if (compare(entry, inner->at_file, inner->at_line, inner->at_column, number - 1) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    const its_loc *found = low ? locs->sorted.items[low - 1].loc : NULL;
    bool same =
        found && found->file == inner->at_file && found->line == inner->at_line && found->column == inner->at_column;
    return same ? found : NULL;
}
