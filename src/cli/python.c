#include "cli/python.h"

#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* The folder that this program lies in; false if that can't be told. */
static bool program_dir(char *path, size_t size) {
    ssize_t length = readlink("/proc/self/exe", path, size - 1);
    if (length <= 0) return false;
    path[length] = 0;
    char *slash = strrchr(path, '/');
    if (slash) *slash = 0;
    return slash;
}

/* The interpreter of a .venv in a folder above this program's own, as in a checkout: build/release/bin -> .venv. */
static const char *venv_python(cli_app *app) {
    char path[4096];
    if (!program_dir(path, sizeof path)) return NULL;
    for (int i = 0; i < 5; i++) {
        const char *python = its_arena_printf(&app->arena, "%s/.venv/bin/python", path);
        if (access(python, X_OK) == 0) return python;
        char *slash = strrchr(path, '/');
        if (!slash) return NULL;
        *slash = 0;
    }
    return NULL;
}

void cli_use_own_package(cli_app *app) {
    char path[4096];
    if (!program_dir(path, sizeof path)) return;
    const char *dir = its_arena_printf(&app->arena, "%s/%s", path, ITS_PYTHON_DIR), *others = getenv("PYTHONPATH");
    if (access(its_arena_printf(&app->arena, "%s/intarsia/__init__.py", dir), R_OK) != 0) return;
    setenv("PYTHONPATH", others && *others ? its_arena_printf(&app->arena, "%s:%s", dir, others) : dir, 1);
}

static bool in_path(cli_app *app, const char *name) {
    const char *path = getenv("PATH");
    for (const char *p = path ? path : "", *end; *p; p = *end ? end + 1 : end) {
        end = strchr(p, ':');
        if (!end) end = p + strlen(p);
        const char *file = its_arena_printf(&app->arena, "%.*s/%s", (int)(end - p), p, name);
        if (access(file, X_OK) == 0) return true;
    }
    return false;
}

const char *cli_find_python(cli_app *app) {
    const char *asked = getenv("INTARSIA_PYTHON");
    if (asked && *asked) {
        if (access(asked, X_OK) == 0 || (!strchr(asked, '/') && in_path(app, asked))) return asked;
        cli_usage(app, "set it to the path of a Python interpreter, or unset it",
                  "INTARSIA_PYTHON names '%s', which can't be run", asked);
        return NULL;
    }
    const char *found = venv_python(app);
    if (found) return found;
    if (in_path(app, "python3")) return "python3";
    cli_usage(app, "install python3, or set INTARSIA_PYTHON to the path of an interpreter", "no Python was found");
    return NULL;
}

/* -- asking -------------------------------------------------------------------------------------------------------- */

static const char *read_answer(cli_app *app, int fd) {
    char answer[4096];
    size_t size = 0;
    ssize_t n;
    do {
        n = read(fd, answer + size, sizeof answer - size);
        if (n > 0) size += (size_t)n;
    } while (n > 0 || (n < 0 && errno == EINTR));
    while (size && answer[size - 1] == '\n') size--;
    return its_arena_text(&app->arena, answer, size);
}

const char *cli_ask_python(cli_app *app, const char *python, const char *code) {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) return NULL;
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
    posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
    char *const argv[] = {its_arena_text(&app->arena, python, strlen(python)), its_arena_text(&app->arena, "-c", 2),
                          its_arena_text(&app->arena, code, strlen(code)), NULL};
    pid_t pid;
    int error = posix_spawnp(&pid, python, &actions, NULL, argv, environ);
    posix_spawn_file_actions_destroy(&actions);
    close(ends[1]);
    const char *answer = error ? NULL : read_answer(app, ends[0]);
    close(ends[0]);
    int status = 0;
    while (!error && waitpid(pid, &status, 0) < 0 && errno == EINTR) continue;
    return status == 0 ? answer : NULL;
}
