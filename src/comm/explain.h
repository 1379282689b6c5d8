/* What barriers and signals in kernels complain about, told in words. */
#ifndef ITS_COMM_EXPLAIN_H
#define ITS_COMM_EXPLAIN_H

#include "intarsia/base.h"

/*
 * If `memory`, an allocation of ITS_MEMORY_HOST, is where a communicator's kernels write complaints, and one did: adds
 * an error that says which operation it was, what was wrong, and where. Returns whether there was one. Nothing that a
 * kernel could have overwritten is believed beyond the allocation.
 */
bool its_comm_explain(its_context *ctx, const void *memory, size_t size);

#endif
