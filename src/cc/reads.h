/*
 * What compiling a source depends on: the files it reads and whatever else the dialect names. Everything goes into one
 * hash, in the order in which it is found, so that the same contents give the same key wherever the files lie.
 */
#ifndef ITS_CC_READS_H
#define ITS_CC_READS_H

#include "base/buffer.h"
#include "base/hash.h"
#include "intarsia/cc.h"

/* A map from texts to pointers, in an arena. */
typedef struct its_text_map {
    struct its_text_slot *slots;
    size_t count, capacity;
} its_text_map;
/* The value of `key`, NULL and the caller's to set if it is new. Valid until the next call. */
void **its_text_map_at(its_arena *arena, its_text_map *map, const char *key);

typedef struct its_read_file {
    const char *path; /* absolute */
    size_t index;     /* in `files` */
} its_read_file;

struct its_cc_reads {
    its_arena *arena;
    its_hasher hasher;
    ITS_VEC(its_read_file *) files;
    its_text_map known;   /* by path: its_read_file */
    its_buffer content;   /* of the file read last */
    size_t bytes;         /* of all files */
    const char *too_much; /* the file with which a limit was passed, or NULL */
};

void its_reads_init(its_cc_reads *reads, its_arena *arena);
void its_reads_free(its_cc_reads *reads);
/*
 * Takes a file up, and puts its number into the hash. `first` says that it was not known yet: then its content is to be
 * read. NULL if there is no such file.
 */
its_read_file *its_reads_file(its_cc_reads *reads, const char *path, bool *first);
/* Reads the file into `content` and puts it into the hash. False if it can't be read, which goes into the hash too. */
bool its_reads_content(its_cc_reads *reads, const its_read_file *file);
void its_reads_text(its_cc_reads *reads, const char *text);

/* For its_cc_host: the same for dialects from outside, which control must not jump through. */
bool its_host_reads_file(its_cc_reads *reads, const char *path);
void its_host_reads_text(its_cc_reads *reads, const void *text, size_t size);

#endif
