/* The inside of a context. Only src/base looks at it. */
#ifndef ITS_BASE_CONTEXT_H
#define ITS_BASE_CONTEXT_H

#include "base/arena.h"
#include "base/diag.h"

typedef struct its_name_table {
    its_name *slots; /* open addressing; a power of two of them */
    size_t count, capacity;
} its_name_table;

typedef struct its_diag_record {
    its_diag diag;
    struct its_diag_record *next;
    ITS_VEC(its_diag_place) places;
} its_diag_record;

struct its_context {
    its_allocator allocator;
    its_guard *guard; /* innermost; NULL outside of public functions */
    its_arena names_arena;
    its_name_table names;
    its_arena diag_arena;
    its_diag_record *diags, *newest;
    its_diag_record *last_diag; /* the one under construction; NULL past the limit */
    const char *last_line;      /* the source line that was copied last, and its bytes */
    size_t last_line_size;
    size_t n_diags;       /* recorded */
    size_t n_severity[3]; /* begun, by its_severity */
    bool out_of_memory;   /* shown as one more error: it needs no memory to record */
};

#endif
