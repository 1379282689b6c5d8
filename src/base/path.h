/* Paths as text: joining and splitting. Nothing here looks at the file system but its_path_absolute. */
#ifndef ITS_BASE_PATH_H
#define ITS_BASE_PATH_H

#include "base/arena.h"

/* `dir`/`name`; `name` alone if it is absolute or `dir` is empty. */
char *its_path_join(its_arena *arena, const char *dir, const char *name);
/* What stands in front of the last slash; "." if there is none, "/" for a name in the root. */
char *its_path_dir(its_arena *arena, const char *path);
/* What follows the last slash; points into `path`. */
const char *its_path_base(const char *path);
/* The path made absolute with the current directory; as it is if that is not known. */
char *its_path_absolute(its_arena *arena, const char *path);

#endif
