/*
 * What the PEs ask for in a collective call is compared before it is done: NVSHMEM trusts them, and what follows from
 * two sizes of one array is memory that lies in different places, seen much later.
 *
 * Each PE has a note of its own in symmetric memory. It writes there what it asks for, waits for all, and reads
 * everybody else's. There are two notes, used in turn: when a PE comes to call n, all have read those of call n - 2, or
 * they would not have come to call n - 1.
 */
#include <stdio.h>

#include "rt/rt.h"

enum { SITE = 224 };

typedef struct note {
    uint64_t kind, a, b; /* its_gpu_asked; size and alignment, or the number of the allocation */
    char site[SITE];     /* where the program asks, or "" */
} note;

_Static_assert(sizeof(note) <= ITS_NOTE_BYTES, "a note fits");

static void text_of(char *out, size_t size, const note *n) {
    const char *at = n->site[0] ? " at " : "";
    if (n->kind == ITS_GPU_ALLOC)
        snprintf(out, size, "for %llu bytes aligned to %llu%s%s", (unsigned long long)n->a, (unsigned long long)n->b,
                 at, n->site);
    else
        snprintf(out, size, "to free allocation number %llu%s%s", (unsigned long long)n->a, at, n->site);
}

static its_status read_note(its_gpu *gpu, uint64_t place, uint32_t pe, note *out) {
    const void *mine = (const void *)(uintptr_t)place;
    uint64_t from = (uint64_t)(uintptr_t)gpu->nvshmem.nvshmem_ptr(mine, (int)pe);
    if (!from) { /* through the network, into the spare place behind the two notes */
        from = gpu->notes + 2 * ITS_NOTE_BYTES;
        gpu->nvshmem.nvshmem_getmem((void *)(uintptr_t)from, mine, sizeof *out, (int)pe);
    }
    int error = gpu->cuda.cuMemcpyDtoHAsync_v2(out, from, sizeof *out, NULL);
    if (!error) error = gpu->cuda.cuStreamSynchronize(NULL);
    return error ? its_gpu_failed(gpu, error, "read what PE %u asks for", pe) : ITS_OK;
}

static its_status compare(its_gpu *gpu, const note *mine, uint32_t pe, note *theirs) {
    char one[SITE + 96], other[SITE + 96];
    theirs->site[SITE - 1] = 0;
    if (mine->kind == theirs->kind && mine->a == theirs->a && mine->b == theirs->b) return ITS_OK;
    text_of(one, sizeof one, mine);
    text_of(other, sizeof other, theirs);
    return its_fail(
        gpu->base.ctx, ITS_ERR_USAGE,
        "symmetric memory is allocated and freed by all PEs together, in the same order, with the same sizes",
        "PE %u asked %s, but PE %u asked %s", gpu->options.pe, one, pe, other);
}

its_status its_gpu_agree(its_gpu *gpu, its_gpu_asked kind, uint64_t a, uint64_t b) {
    if (!gpu->notes) return ITS_OK;
    note mine = {.kind = kind, .a = a, .b = b};
    if (gpu->base.site) snprintf(mine.site, sizeof mine.site, "%s", gpu->base.site);
    uint64_t place = gpu->notes + (gpu->n_asked++ & 1) * ITS_NOTE_BYTES;
    int error = gpu->cuda.cuMemcpyHtoDAsync_v2(place, &mine, sizeof mine, NULL);
    if (!error) error = gpu->cuda.cuStreamSynchronize(NULL);
    if (error) return its_gpu_failed(gpu, error, "tell the others what it asks for");
    gpu->nvshmem.nvshmem_barrier_all();
    its_status status = ITS_OK;
    for (uint32_t pe = 0; pe < gpu->options.n_pes && status == ITS_OK; pe++) {
        note theirs;
        if (pe == gpu->options.pe) continue;
        status = read_note(gpu, place, pe, &theirs);
        if (status == ITS_OK) status = compare(gpu, &mine, pe, &theirs);
    }
    return status;
}

its_status its_gpu_agree_begin(its_gpu *gpu) {
    if (gpu->options.n_pes < 2) return ITS_OK;
    void *notes = gpu->nvshmem.nvshmem_align(ITS_NOTE_BYTES, 3 * (size_t)ITS_NOTE_BYTES);
    if (!notes) return its_fail(gpu->base.ctx, ITS_ERR_NOMEM, NULL, "the symmetric heap has no room for a kilobyte");
    gpu->notes = (uint64_t)(uintptr_t)notes;
    return ITS_OK;
}
