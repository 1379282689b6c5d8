/* Interning from inside the library: these jump to the context's guard when memory runs out, and never return NULL. */
#ifndef ITS_BASE_INTERN_H
#define ITS_BASE_INTERN_H

#include "base/arena.h"

its_name its_intern_raise(its_context *ctx, const char *text, size_t size);
its_name its_intern_text(its_context *ctx, const char *text);
/* The name if it is interned already, else NULL; allocates nothing. */
its_name its_intern_find(its_context *ctx, const char *text, size_t size);

/* Memory that lives as long as the names do: for what is remembered about a name in the name itself. */
its_arena *its_names_arena(its_context *ctx);

#endif
