/* Reading and writing whole files. */
#include "base/file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

/* -- reading ------------------------------------------------------------------------------------------------------- */

/* Reads up to `size` bytes; fewer at the end of the file. */
static int read_some(int fd, char *data, size_t size, size_t *got) {
    *got = 0;
    while (*got < size) {
        ssize_t n = read(fd, data + *got, size - *got);
        if (n == 0) break;
        if (n > 0)
            *got += (size_t)n;
        else if (errno != EINTR)
            return errno;
    }
    return 0;
}

static int regular_size(int fd, size_t limit, size_t *size) {
    struct stat st;
    if (fstat(fd, &st)) return errno;
    if (S_ISDIR(st.st_mode)) return EISDIR;
    if (!S_ISREG(st.st_mode)) return EINVAL;
    if ((uint64_t)st.st_size > limit) return EFBIG;
    *size = (size_t)st.st_size;
    return 0;
}

typedef struct read_job {
    its_arena *arena;
    int fd, error;
    size_t size;
    char *data;
} read_job;

static its_status read_body(void *user) {
    read_job *job = user;
    job->data = its_arena_alloc(job->arena, job->size + 1);
    job->error = read_some(job->fd, job->data, job->size, &job->size);
    job->data[job->size] = 0;
    return ITS_OK;
}

int its_file_read_at(its_arena *arena, int dir, const char *name, size_t limit, char **data, size_t *size) {
    read_job job = {.arena = arena, .fd = openat(dir, name, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY)};
    if (job.fd < 0) return errno;
    job.error = regular_size(job.fd, limit, &job.size);
    its_status status = job.error ? ITS_OK : its_protect(arena->ctx, read_body, &job);
    close(job.fd);
    if (status != ITS_OK) its_guard_raise(arena->ctx);
    *data = job.data;
    *size = job.size;
    return job.error;
}

int its_file_read(its_arena *arena, const char *path, size_t limit, char **data, size_t *size) {
    return its_file_read_at(arena, AT_FDCWD, path, limit, data, size);
}

/* -- reading what may be a pipe ------------------------------------------------------------------------------------ */

typedef struct stream_job {
    its_arena *arena;
    int fd, error;
    size_t limit, size;
    char *data;
} stream_job;

static its_status stream_body(void *user) {
    stream_job *job = user;
    for (size_t capacity = 1 << 16, got;; capacity *= 2) {
        char *data = its_arena_alloc(job->arena, capacity + 1);
        if (job->size) memcpy(data, job->data, job->size);
        job->data = data;
        job->error = read_some(job->fd, data + job->size, capacity - job->size, &got);
        job->size += got;
        if (!job->error && job->size > job->limit) job->error = EFBIG;
        data[job->size] = 0;
        if (job->error || job->size < capacity) return ITS_OK;
    }
}

int its_file_read_stream(its_arena *arena, const char *path, size_t limit, char **data, size_t *size) {
    bool standard = strcmp(path, "-") == 0;
    stream_job job = {.arena = arena, .limit = limit};
    job.fd = standard ? STDIN_FILENO : open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
    if (job.fd < 0) return errno;
    its_status status = its_protect(arena->ctx, stream_body, &job);
    if (!standard) close(job.fd);
    if (status != ITS_OK) its_guard_raise(arena->ctx);
    *data = job.data;
    *size = job.size;
    return job.error;
}

typedef struct buffer_job {
    its_buffer *buffer;
    size_t size;
} buffer_job;

static its_status buffer_body(void *user) {
    const buffer_job *job = user;
    its_buffer_reserve(job->buffer, job->size + 1);
    return ITS_OK;
}

int its_file_read_buffer(its_buffer *buffer, const char *path, size_t limit) {
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0) return errno;
    buffer_job job = {.buffer = buffer};
    int error = regular_size(fd, limit, &job.size);
    buffer->size = 0;
    its_status status = error ? ITS_OK : its_protect(buffer->ctx, buffer_body, &job);
    if (status == ITS_OK && !error) error = read_some(fd, buffer->data, job.size, &buffer->size);
    close(fd);
    if (status != ITS_OK) its_guard_raise(buffer->ctx);
    return error;
}

bool its_file_is_regular(const char *path) {
    struct stat st;
    return stat(path, &st) == 0 && S_ISREG(st.st_mode);
}

bool its_file_is_dir(const char *path) {
    struct stat st;
    return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

/* -- writing ------------------------------------------------------------------------------------------------------- */

int its_file_write_at(int dir, const char *name, const char *data, size_t size) {
    int fd = openat(dir, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0) return errno;
    int error = 0;
    while (size && !error) {
        ssize_t n = write(fd, data, size);
        if (n >= 0) {
            data += n;
            size -= (size_t)n;
        } else if (errno != EINTR) {
            error = errno;
        }
    }
    if (close(fd) && !error) error = errno;
    if (error) unlinkat(dir, name, 0);
    return error;
}

int its_dir_make(its_arena *arena, const char *path) {
    char *text = its_arena_text(arena, path, strlen(path));
    for (char *p = text + 1; *text; p++) {
        if (*p && *p != '/') continue;
        char end = *p;
        *p = 0;
        /* A parent that is there may refuse mkdir with something else than EEXIST (a read-only mount): look. */
        if (mkdir(text, 0700) && errno != EEXIST && !its_file_is_dir(text)) return errno;
        if (!end) break;
        *p = end;
    }
    return its_file_is_dir(path) ? 0 : ENOTDIR;
}

int its_dir_make_temp(int dir, const char *prefix, char *name) {
    for (int attempt = 0; attempt < 16; attempt++) {
        uint64_t random[2];
        if (getrandom(random, sizeof random, 0) != (ssize_t)sizeof random) return errno ? errno : EIO;
        snprintf(name, 64, "%.24s%016llx%016llx", prefix, (unsigned long long)random[0], (unsigned long long)random[1]);
        if (mkdirat(dir, name, 0700) == 0) return 0;
        if (errno != EEXIST) return errno;
    }
    return EEXIST;
}

/* -- removing ------------------------------------------------------------------------------------------------------ */

enum { DEEPEST = 16 };

static int remove_tree(int dir, const char *name, int depth);

static int remove_children(int fd, int depth) {
    DIR *listing = fdopendir(fd); /* takes `fd` over */
    if (!listing) {
        int error = errno;
        close(fd);
        return error;
    }
    int first = 0;
    for (struct dirent *entry; (entry = readdir(listing));) {
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0) continue;
        int error = remove_tree(fd, entry->d_name, depth + 1);
        if (error && !first) first = error;
    }
    closedir(listing);
    return first;
}

static int remove_tree(int dir, const char *name, int depth) {
    if (unlinkat(dir, name, 0) == 0) return 0;
    if (errno != EISDIR && errno != EPERM) return errno;
    if (depth > DEEPEST) return ELOOP;
    int fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0) return errno;
    int error = remove_children(fd, depth);
    if (unlinkat(dir, name, AT_REMOVEDIR) && !error) error = errno;
    return error;
}

int its_dir_remove(int dir, const char *name) {
    return remove_tree(dir, name, 0);
}
