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

#endif
