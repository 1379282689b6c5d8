/* Paths as text. */
#include "base/path.h"

#include <limits.h>
#include <string.h>
#include <unistd.h>

char *its_path_join(its_arena *arena, const char *dir, const char *name) {
    size_t size = strlen(dir);
    if (*name == '/' || size == 0) return its_arena_text(arena, name, strlen(name));
    return its_arena_printf(arena, dir[size - 1] == '/' ? "%s%s" : "%s/%s", dir, name);
}

char *its_path_dir(its_arena *arena, const char *path) {
    const char *slash = strrchr(path, '/');
    if (!slash) return its_arena_text(arena, ".", 1);
    return its_arena_text(arena, path, slash == path ? 1 : (size_t)(slash - path));
}

const char *its_path_base(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

char *its_path_absolute(its_arena *arena, const char *path) {
    char cwd[PATH_MAX];
    if (*path == '/' || !getcwd(cwd, sizeof cwd)) return its_arena_text(arena, path, strlen(path));
    while (path[0] == '.' && path[1] == '/')
        for (path += 2; *path == '/';) path++;
    if (strcmp(path, ".") == 0) path = "";
    return *path ? its_path_join(arena, cwd, path) : its_arena_text(arena, cwd, strlen(cwd));
}
