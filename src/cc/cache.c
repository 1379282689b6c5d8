/* The cache on disk; see cache.h. */
#include "cc/cache.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/diag.h"
#include "base/file.h"
#include "base/path.h"
#include "intarsia/cc.h"

static const char *const kinds[] = {"cc", "host"}; /* what its_cache_query counts and its_cache_clear removes */
enum { N_KINDS = sizeof kinds / sizeof *kinds, LARGEST_ENTRY = 1 << 30, KEY_SIZE = 16 };

static const char knob_hint[] = "set INTARSIA_CACHE_DIR to a directory of your own";

/* -- where it is --------------------------------------------------------------------------------------------------- */

/* NULL if no variable says where. */
static const char *directory(its_arena *arena) {
    const char *own = getenv("INTARSIA_CACHE_DIR"), *xdg = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    if (own && *own) return its_path_absolute(arena, own);
    if (xdg && *xdg == '/') return its_path_join(arena, xdg, "intarsia");
    if (home && *home == '/') return its_path_join(arena, home, ".cache/intarsia");
    return NULL;
}

/* Why a directory that is open must not be used, or NULL. */
static const char *fault_of(int fd) {
    struct stat st;
    if (fstat(fd, &st)) return strerror(errno);
    if (st.st_uid != geteuid()) return "it belongs to somebody else";
    if (st.st_mode & S_IWOTH) return "everybody may write to it";
    return NULL;
}

/* Opens DIRECTORY; -1 and the reason if it can't be used. With `make` unset a missing one is -1 with no reason. */
static int open_directory(its_arena *arena, const char *path, bool make, const char **why) {
    *why = NULL;
    int error = make ? its_dir_make(arena, path) : 0;
    int fd = error ? -1 : open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) {
        error = error ? error : errno;
        if (make || error != ENOENT) *why = strerror(error);
        return -1;
    }
    *why = fault_of(fd);
    if (!*why) return fd;
    close(fd);
    return -1;
}

/* One warning is enough, however many units are compiled. */
static void warn(its_context *ctx, const char *message) {
    for (size_t i = 0; i < its_diag_count(ctx); i++)
        if (strcmp(its_diag_get(ctx, i)->message, message) == 0) return;
    its_diag_begin(ctx, ITS_WARNING, ITS_NOWHERE, "%s", message);
    its_diag_hint(ctx, "%s", knob_hint);
}

static void warn_no_cache(its_context *ctx, its_arena *arena, const char *path, const char *why) {
    warn(ctx, its_arena_printf(arena, "nothing is cached: the directory '%s' can't be used: %s", path, why));
}

void its_cache_open(its_context *ctx, its_arena *arena, const char *kind, its_cache *cache) {
    *cache = (its_cache){.ctx = ctx, .path = directory(arena), .fd = -1};
    if (!cache->path) {
        warn(ctx, "nothing is cached: none of INTARSIA_CACHE_DIR, XDG_CACHE_HOME and HOME is set");
        return;
    }
    const char *why, *inner = its_path_join(arena, cache->path, kind);
    int fd = open_directory(arena, cache->path, true, &why);
    if (fd >= 0) {
        if (mkdirat(fd, kind, 0700) && errno != EEXIST) why = strerror(errno);
        close(fd);
        if (!why) cache->fd = open_directory(arena, inner, true, &why);
    }
    if (why) warn_no_cache(ctx, arena, cache->path, why);
    cache->path = inner;
}

void its_cache_close(its_cache *cache) {
    if (cache->fd >= 0) close(cache->fd);
    cache->fd = -1;
}

/* -- entries ------------------------------------------------------------------------------------------------------- */

bool its_cache_load(const its_cache *cache, its_arena *arena, const char *key, char **data, size_t *size) {
    char name[KEY_SIZE + sizeof "/data"];
    if (cache->fd < 0) return false;
    snprintf(name, sizeof name, "%.*s/data", KEY_SIZE, key);
    return its_file_read_at(arena, cache->fd, name, LARGEST_ENTRY, data, size) == 0;
}

/* The error with which writing aside and renaming ended; that somebody was faster is none. */
static int store(int dir, const char *key, const char *data, size_t size) {
    char name[64];
    int error = its_dir_make_temp(dir, ".new-", name);
    if (error) return error;
    int fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    error = fd < 0 ? errno : its_file_write_at(fd, "data", data, size);
    if (fd >= 0) close(fd);
    if (!error && renameat(dir, name, dir, key) == 0) return 0;
    if (!error) error = errno;
    its_dir_remove(dir, name);
    return error == EEXIST || error == ENOTEMPTY ? 0 : error;
}

void its_cache_store(its_cache *cache, its_arena *arena, const char *key, const char *data, size_t size) {
    if (cache->fd < 0 || size > LARGEST_ENTRY) return;
    int error = store(cache->fd, key, data, size);
    if (error) warn_no_cache(cache->ctx, arena, cache->path, strerror(error));
}

/* Renamed first: a reader that comes now finds the whole entry or none. */
void its_cache_drop(const its_cache *cache, const char *key) {
    char name[64];
    if (cache->fd < 0 || its_dir_make_temp(cache->fd, ".old-", name)) return;
    if (renameat(cache->fd, key, cache->fd, name)) its_dir_remove(cache->fd, key);
    its_dir_remove(cache->fd, name);
}

/* -- locks --------------------------------------------------------------------------------------------------------- */

enum { LONGEST_WAIT_MS = 60000, LONGEST_PAUSE_MS = 20 };

static void pause_ms(int ms) {
    struct timespec time = {.tv_nsec = (long)ms * 1000000};
    nanosleep(&time, NULL);
}

/* The holder before may have removed the file when it was done: then a lock on it means nothing. */
static bool still_there(int dir, const char *name, int lock) {
    struct stat mine, named;
    return fstat(lock, &mine) == 0 && fstatat(dir, name, &named, AT_SYMLINK_NOFOLLOW) == 0 &&
           mine.st_ino == named.st_ino && mine.st_dev == named.st_dev;
}

static void lock_name(char *name, size_t size, const char *key) {
    snprintf(name, size, "%.*s.lock", KEY_SIZE, key);
}

int its_cache_lock(const its_cache *cache, const char *key) {
    char name[KEY_SIZE + sizeof ".lock"];
    lock_name(name, sizeof name, key);
    for (int waited = 0, pause = 1; cache->fd >= 0 && waited < LONGEST_WAIT_MS; waited += pause) {
        int lock = openat(cache->fd, name, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
        if (lock < 0) return -1;
        bool held = flock(lock, LOCK_EX | LOCK_NB) == 0;
        bool busy = !held && (errno == EWOULDBLOCK || errno == EINTR);
        if (held && still_there(cache->fd, name, lock)) return lock;
        close(lock);
        if (!held && !busy) return -1; /* a file system without locks */
        if (held) continue;
        pause_ms(pause);
        if (pause < LONGEST_PAUSE_MS) pause++;
    }
    return -1;
}

void its_cache_unlock(const its_cache *cache, const char *key, int lock) {
    char name[KEY_SIZE + sizeof ".lock"];
    if (lock < 0) return;
    lock_name(name, sizeof name, key);
    unlinkat(cache->fd, name, 0);
    close(lock);
}

/* -- looking after it ---------------------------------------------------------------------------------------------- */

static bool is_key(const char *name) {
    return strlen(name) == KEY_SIZE && strspn(name, "0123456789abcdef") == KEY_SIZE;
}

static bool is_leftover(const char *name) {
    size_t size = strlen(name);
    return strncmp(name, ".new-", 5) == 0 || strncmp(name, ".old-", 5) == 0 ||
           (size == KEY_SIZE + 5 && strcmp(name + KEY_SIZE, ".lock") == 0);
}

/* The bytes of the files in an entry. */
static uint64_t entry_bytes(int dir, const char *key) {
    uint64_t bytes = 0;
    int fd = openat(dir, key, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    DIR *listing = fd < 0 ? NULL : fdopendir(fd);
    if (!listing && fd >= 0) close(fd);
    struct stat st;
    for (struct dirent *file; listing && (file = readdir(listing));)
        if (fstatat(fd, file->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(st.st_mode))
            bytes += (uint64_t)st.st_size;
    if (listing) closedir(listing);
    return bytes;
}

typedef struct survey {
    uint64_t entries, bytes;
    bool remove;
    int error;
} survey;

static void survey_name(survey *s, int dir, const char *name) {
    bool key = is_key(name);
    if (key) {
        s->entries++;
        s->bytes += entry_bytes(dir, name);
    }
    if (!s->remove || (!key && !is_leftover(name))) return;
    int error = its_dir_remove(dir, name);
    if (error && error != ENOENT && !s->error) s->error = error;
}

static void survey_kind(survey *s, int root, const char *kind) {
    int fd = openat(root, kind, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    DIR *listing = fd < 0 ? NULL : fdopendir(fd);
    if (!listing && fd >= 0) close(fd);
    for (struct dirent *entry; listing && (entry = readdir(listing));) survey_name(s, fd, entry->d_name);
    if (listing) closedir(listing);
}

typedef struct query_job {
    its_context *ctx;
    its_arena arena;
    survey survey;
    char *path;
} query_job;

static its_status query_body(void *user) {
    query_job *job = user;
    const char *path = directory(&job->arena), *why;
    if (!path)
        return its_fail(job->ctx, ITS_ERR_IO, knob_hint, "there is no cache: none of %s is set",
                        "INTARSIA_CACHE_DIR, XDG_CACHE_HOME and HOME");
    size_t size = strlen(path) + 1;
    job->path = its_block_alloc(job->ctx, size);
    if (!job->path) its_guard_raise(job->ctx);
    memcpy(job->path, path, size);
    int root = open_directory(&job->arena, path, false, &why);
    if (why) return its_fail(job->ctx, ITS_ERR_IO, knob_hint, "the cache in '%s' can't be used: %s", path, why);
    for (size_t i = 0; root >= 0 && i < N_KINDS; i++) survey_kind(&job->survey, root, kinds[i]);
    if (root >= 0) close(root);
    if (job->survey.error)
        return its_fail(job->ctx, ITS_ERR_IO, NULL, "the cache in '%s' can't be cleared: %s", path,
                        strerror(job->survey.error));
    return ITS_OK;
}

static its_status query(query_job *job, its_context *ctx, bool remove) {
    *job = (query_job){.ctx = ctx, .survey.remove = remove};
    its_arena_init(&job->arena, ctx);
    its_status status = its_protect(ctx, query_body, job);
    its_arena_free(&job->arena);
    return status;
}

its_status its_cache_query(its_context *ctx, its_cache_info *info) {
    query_job job;
    its_status status = query(&job, ctx, false);
    *info = (its_cache_info){0};
    if (status == ITS_OK)
        *info = (its_cache_info){job.path, job.survey.entries, job.survey.bytes};
    else
        its_free(ctx, job.path);
    return status;
}

its_status its_cache_clear(its_context *ctx, uint64_t *removed) {
    query_job job;
    its_status status = query(&job, ctx, true);
    its_free(ctx, job.path);
    if (removed) *removed = job.survey.entries;
    return status;
}
