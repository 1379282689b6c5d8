/* Replacing parts of a text. */
#include "cc/edit.h"

#include <string.h>

char *its_edits_apply(its_arena *arena, const its_edits *edits, const char *text, size_t size, size_t *new_size) {
    size_t total = size;
    for (size_t i = 0; i < edits->count; i++) total += strlen(edits->items[i].text) - edits->items[i].size;
    char *result = its_arena_alloc(arena, total + 1), *out = result;
    size_t done = 0;
    for (size_t i = 0; i < edits->count; i++) {
        const its_edit *edit = &edits->items[i];
        size_t length = strlen(edit->text);
        memcpy(out, text + done, edit->offset - done);
        memcpy(out + (edit->offset - done), edit->text, length);
        out += edit->offset - done + length;
        done = edit->offset + edit->size;
    }
    memcpy(out, text + done, size - done);
    result[total] = 0;
    *new_size = total;
    return result;
}

bool its_file_path_in_text(const its_file *file, const char *text, size_t size, size_t *offset) {
    if (file->node.pos >= size) return false;
    const char *quote = memchr(text + file->node.pos, '"', size - file->node.pos);
    if (!quote) return false;
    *offset = (size_t)(quote - text) + 1;
    return size - *offset > file->path->size && memcmp(quote + 1, file->path->text, file->path->size) == 0;
}

char *its_quotable(its_arena *arena, const char *path) {
    char *text = its_arena_text(arena, path, strlen(path));
    for (char *p = text; *p; p++)
        if (*p == '"' || *p == '\\' || *p < 32 || *p > 126) *p = '_';
    return text;
}
