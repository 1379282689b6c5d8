/* The table of dialects: a built-in one is a descriptor here and a file of its own. */
#ifndef ITS_CC_DIALECTS_H
#define ITS_CC_DIALECTS_H

#include "base/dynload.h"
#include "intarsia/cc.h"

extern const its_dialect its_dialect_cuda; /* cuda.c */
extern const its_dialect its_dialect_ptx;  /* ptx_dialect.c */

typedef struct its_dialect_ref {
    const its_dialect *dialect;
    its_library library; /* of an out-of-tree one; see its_library_close */
} its_dialect_ref;

/*
 * The dialect called `name` (NULL: "cuda"), or the one in the shared object `name` if it has a slash. ITS_ERR_INPUT
 * with an error that lists those there are, or that says what is wrong with the object; ITS_ERR_ABSENT if it can't be
 * loaded.
 */
its_status its_dialect_get(its_context *ctx, const char *name, its_dialect_ref *ref);

#endif
