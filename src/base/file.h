/*
 * Reading and writing whole files. Failures are reported as errno values, so that the caller can say what the file was
 * wanted for.
 */
#ifndef ITS_BASE_FILE_H
#define ITS_BASE_FILE_H

#include "base/buffer.h"

/*
 * Reads a regular file of at most `limit` bytes into the arena, NUL-terminated. 0 or an errno: EFBIG if it is larger,
 * EISDIR for a directory, EINVAL for anything else that is no regular file (a pipe would block).
 */
int its_file_read(its_arena *arena, const char *path, size_t limit, char **data, size_t *size);
/* The same relative to the directory `dir` (AT_FDCWD for the current one). */
int its_file_read_at(its_arena *arena, int dir, const char *name, size_t limit, char **data, size_t *size);
/* The same for what a user names: "-" is standard input, and pipes are read to their end. A directory is EISDIR. */
int its_file_read_stream(its_arena *arena, const char *path, size_t limit, char **data, size_t *size);
/* The same into a buffer, in place of what it held. */
int its_file_read_buffer(its_buffer *buffer, const char *path, size_t limit);
/* Makes the file `name` in the directory `dir`, which must not have it, with mode 0600. 0 or an errno. */
int its_file_write_at(int dir, const char *name, const char *data, size_t size);
bool its_file_is_regular(const char *path);
bool its_file_is_dir(const char *path);
/* Makes a directory and those above it that are missing, each with mode 0700. 0 or an errno. */
int its_dir_make(its_arena *arena, const char *path);
/* Makes a directory `prefix` followed by random letters in `dir` with mode 0700; `name` has room for 64 bytes. */
int its_dir_make_temp(int dir, const char *prefix, char *name);
/*
 * Removes a directory tree; symbolic links in it are removed and not followed. 0 or the first errno, after trying all
 * of it.
 */
int its_dir_remove(int dir, const char *name);

#endif
