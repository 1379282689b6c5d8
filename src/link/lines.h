/* Line information across modules: files, the names of inlined functions, and the sections that hold them. */
#ifndef ITS_LINK_LINES_H
#define ITS_LINK_LINES_H

#include "link/linker.h"

/* -- the text of a section ----------------------------------------------------------------------------------------- */

/* Of names, numbers and, behind a dot, types. */
static inline bool its_is_word(char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == '$' ||
           c == '%';
}
static inline const char *its_word_end(const char *at, const char *end) {
    while (at < end && its_is_word(*at)) at++;
    return at;
}
/* Where a comment ends. */
static inline const char *its_line_end(const char *at, const char *end) {
    while (at < end && *at != '\n') at++;
    return at;
}

/* -- lines --------------------------------------------------------------------------------------------------------- */

/* Takes the main module's files over. */
void its_lines_start(its_linker *linker);
/* Rewrites a copied .loc to the output's file numbers and labels; false if its file is unknown there: drop it. */
bool its_lines_adopt(its_linker *linker, its_link_source *source, its_loc *loc);
/* The label under which .debug_str holds the text. */
its_name its_lines_label(its_linker *linker, its_name text);
/* .file nodes that the main module does not have, NULL if none. */
its_node *its_lines_files(its_linker *linker);
/* Puts the labels made by its_lines_label into the output's .debug_str. */
void its_lines_finish(its_linker *linker);

/* -- looking lines up ---------------------------------------------------------------------------------------------- */

/* Adds the module's files to a map that its_file_numbered reads. */
void its_files_note(its_linker *linker, const its_module *module, its_map *files);
const its_file *its_file_numbered(const its_map *files, uint32_t number); /* NULL: none has it */

/* The .loc lines of a function, in the order of what they say, and then of the text. */
typedef struct its_loc_entry {
    const its_loc *loc;
    size_t index; /* in the text */
} its_loc_entry;
typedef struct its_locs {
    ITS_VEC(its_loc_entry) sorted;
    its_map numbers; /* its_loc -> 1 + its index */
} its_locs;
void its_locs_read(its_linker *linker, const its_func *func, its_locs *locs);
/* The last line in front of `inner` that says where that one was inlined at; NULL if there is none. */
const its_loc *its_locs_outer(const its_locs *locs, const its_loc *inner);

#endif
