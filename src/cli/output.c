/* Files in and out, and errors about how the program was called. */
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "cli/cli.h"

int cli_usage(cli_app *app, const char *hint, const char *format, ...) {
    va_list args;
    va_start(args, format);
    char *message = its_arena_vprintf(&app->arena, format, args);
    va_end(args);
    its_fail(app->ctx, ITS_ERR_USAGE, hint, "%s", message);
    return CLI_USAGE;
}

int cli_status(its_status status) {
    if (status == ITS_OK) return CLI_OK;
    return status == ITS_ERR_USAGE ? CLI_USAGE : CLI_FAILED;
}

const char *cli_only_operand(cli_app *app, const cli_command *command, const cli_list *operands, const char *what) {
    if (operands->count == 1) return operands->items[0];
    const char *hint = its_arena_printf(&app->arena, "usage: intarsia %s %s", command->name, command->usage);
    if (operands->count == 0)
        cli_usage(app, hint, "no %s given", what);
    else
        cli_usage(app, hint, "one %s is expected, but '%s' follows", what, operands->items[1]);
    return NULL;
}

bool cli_has_suffix(const char *text, const char *suffix) {
    size_t size = strlen(text), tail = strlen(suffix);
    return size >= tail && strcmp(text + size - tail, suffix) == 0;
}

/* -- writing ------------------------------------------------------------------------------------------------------- */

static bool write_all(int fd, const char *data, size_t size) {
    while (size > 0) {
        ssize_t done = write(fd, data, size);
        if (done < 0 && errno == EINTR) continue;
        if (done < 0) return false;
        data += done;
        size -= (size_t)done;
    }
    return true;
}

static int write_failed(cli_app *app, const char *path) {
    its_fail(app->ctx, ITS_ERR_IO, NULL, "can't write '%s': %s", path, strerror(errno));
    return CLI_FAILED;
}

static int write_directly(cli_app *app, int fd, const char *path, const char *data, size_t size) {
    int code = write_all(fd, data, size) ? CLI_OK : write_failed(app, path);
    if (fd != STDOUT_FILENO && close(fd) != 0 && code == CLI_OK) code = write_failed(app, path);
    return code;
}

/* What a new file at `path` gets: that of the one it replaces, else what the umask leaves. */
static mode_t mode_for(const struct stat *old) {
    if (old) return old->st_mode & 0777;
    mode_t mask = umask(0);
    umask(mask);
    return 0666 & ~mask;
}

static int write_aside(cli_app *app, const char *path, const struct stat *old, const char *data, size_t size) {
    char *aside = its_arena_printf(&app->arena, "%s.XXXXXX", path);
    int fd = mkstemp(aside);
    if (fd < 0) return write_failed(app, path);
    bool good = write_all(fd, data, size) && fchmod(fd, mode_for(old)) == 0;
    int error = errno;
    if (close(fd) != 0 && good) good = false, error = errno;
    if (good && rename(aside, path) != 0) good = false, error = errno;
    if (good) return CLI_OK;
    unlink(aside);
    errno = error;
    return write_failed(app, path);
}

/* A link stays: what it points to is replaced. */
static int replace(cli_app *app, const char *path, const struct stat *old, const char *data, size_t size) {
    char *real = realpath(path, NULL);
    if (!real) return write_failed(app, path);
    const char *target = its_arena_text(&app->arena, real, strlen(real));
    free(real);
    return write_aside(app, target, old, data, size);
}

int cli_write(cli_app *app, const char *path, const char *data, size_t size) {
    struct stat old;
    if (!path || strcmp(path, "-") == 0) return write_directly(app, STDOUT_FILENO, "standard output", data, size);
    bool exists = stat(path, &old) == 0;
    if (!exists) return write_aside(app, path, NULL, data, size);
    if (S_ISREG(old.st_mode)) return replace(app, path, &old, data, size);
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    return fd < 0 ? write_failed(app, path) : write_directly(app, fd, path, data, size);
}

/* -- reading ------------------------------------------------------------------------------------------------------- */

static char *read_failed(cli_app *app, const char *path, int error) {
    its_fail(app->ctx, ITS_ERR_IO, NULL, "can't read '%s': %s", path, strerror(error));
    return NULL;
}

/* What has no size beforehand: standard input, a pipe. */
static char *read_stream(cli_app *app, const char *path, int fd, size_t *size) {
    its_buffer buffer;
    its_buffer_init(&buffer, app->ctx);
    ssize_t n;
    do {
        its_buffer_reserve(&buffer, 1 << 16);
        n = read(fd, buffer.data + buffer.size, buffer.capacity - buffer.size);
        if (n > 0) buffer.size += (size_t)n;
    } while (n > 0 || (n < 0 && errno == EINTR));
    int error = errno;
    *size = buffer.size;
    char *copy = n == 0 ? its_arena_text(&app->arena, buffer.data, buffer.size) : NULL;
    its_buffer_free(&buffer);
    return copy ? copy : read_failed(app, path, error);
}

char *cli_read(cli_app *app, const char *path, size_t *size) {
    if (strcmp(path, "-") == 0) return read_stream(app, path, STDIN_FILENO, size);
    char *data;
    int error = its_file_read(&app->arena, path, SIZE_MAX / 2, &data, size);
    if (error == 0) return data;
    if (error != EINVAL) return read_failed(app, path, error);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return read_failed(app, path, errno);
    data = read_stream(app, path, fd, size);
    close(fd);
    return data;
}
