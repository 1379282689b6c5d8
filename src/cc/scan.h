/*
 * Finding the include directives of a C++ text without preprocessing it.
 *
 * NVRTC has no option that lists the files it reads, so they are found here: every directive counts, also one in a
 * branch that is not taken, in a comment or in a string. That errs on the safe side: a file too many may cost a
 * compilation, one too few would give a stale result.
 *
 * Understood: blanks and comments between the parts, line splices anywhere, `%:` for `#`, #include, #include_next and
 * #embed, __has_include, and #include NAME where NAME is an object-like macro that some #define makes a "file" or
 * <file>.
 */
#ifndef ITS_CC_SCAN_H
#define ITS_CC_SCAN_H

#include "base/arena.h"

typedef enum its_include_kind {
    ITS_INCLUDE_QUOTED, /* "name" */
    ITS_INCLUDE_ANGLED, /* <name> */
    ITS_INCLUDE_MACRO,  /* name is the macro's */
} its_include_kind;

typedef struct its_include {
    its_include_kind kind;
    bool next; /* #include_next: the search goes on behind where the file itself was found */
    const char *name;
} its_include;

/* `#define macro "name"` or `<name>` */
typedef struct its_include_define {
    const char *macro;
    its_include target;
} its_include_define;

typedef struct its_include_list {
    ITS_VEC(its_include) includes;
    ITS_VEC(its_include_define) defines;
} its_include_list;

/* Appends what the text has to `list`. */
void its_scan_includes(its_arena *arena, const char *text, size_t size, its_include_list *list);

#endif
