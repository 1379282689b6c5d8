/* Replacing parts of a text whose positions a parser gave. */
#ifndef ITS_CC_EDIT_H
#define ITS_CC_EDIT_H

#include "base/arena.h"
#include "intarsia/ptx.h"

typedef struct its_edit {
    size_t offset, size; /* what is taken away */
    const char *text;    /* what comes in its place */
} its_edit;

typedef ITS_VEC(its_edit) its_edits;

/* The text with all edits done; they are in order of their offsets and don't overlap. */
char *its_edits_apply(its_arena *arena, const its_edits *edits, const char *text, size_t size, size_t *new_size);

/* The path of a .file directive in the text of its module, without the quotes; false if it isn't where it should be. */
bool its_file_path_in_text(const its_file *file, const char *text, size_t size, size_t *offset);

/* What a path may hold between the quotes of a .file directive: ASCII without quotes; the rest becomes `_`. */
char *its_quotable(its_arena *arena, const char *path);

#endif
