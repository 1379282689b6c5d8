/* See pe.h. */
#include "sim/pe.h"

#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static const uint64_t commit_step = (uint64_t)2 << 20;
static const uint64_t recycle_after = (uint64_t)256 << 20; /* of private memory: how long freed addresses stay unused */

/* -- opening ------------------------------------------------------------------------------------------------------- */

/* requires: a mapped world. ensures: the table knows the heaps, the other PEs' windows and the library area. */
static its_status describe(its_pe *pe) {
    const its_world *world = pe->world;
    const its_world_control *control = world->control;
    its_status status = its_sim_memory_set_symmetric(pe->memory, control->base, control->stride, control->n_pes);
    for (uint32_t i = 0; i < control->n_pes && status == ITS_OK; i++)
        if (i != world->pe)
            status = its_sim_memory_add_window(pe->memory, (uint64_t)(uintptr_t)its_world_private(world, i),
                                               control->private_stride, "private memory", i);
    if (status == ITS_OK)
        status = its_sim_memory_add(pe->memory, (uint64_t)(uintptr_t)its_world_heap(world, world->pe),
                                    sizeof(its_heap_library), ITS_SIM_SYMMETRIC, false, NULL);
    return status;
}

its_status its_pe_open(its_context *ctx, int fd, uint32_t number, its_pe *pe) {
    *pe = (its_pe){.ctx = ctx};
    its_status status = its_world_attach(ctx, fd, number, &pe->world);
    if (status != ITS_OK) return status;
    const its_world_control *control = pe->world->control;
    uint64_t heap_end = ITS_WORLD_LIBRARY_BYTES + control->heap_size;
    its_heap_init(&pe->symmetric, ctx, ITS_WORLD_LIBRARY_BYTES, heap_end, heap_end);
    its_heap_init(&pe->device, ctx, 0, control->private_stride - commit_step, recycle_after);
    pe->memory = its_sim_memory_new(ctx, number);
    if (control->race_offset) status = its_race_open(ctx, pe->world, &pe->race);
    if (status == ITS_OK && pe->memory && describe(pe) == ITS_OK) return ITS_OK;
    its_pe_close(pe);
    return its_no_memory(ctx);
}

void its_pe_close(its_pe *pe) {
    if (pe->memory) its_sim_memory_free(pe->memory);
    its_race_close(pe->race);
    its_heap_free(&pe->symmetric);
    its_heap_free(&pe->device);
    its_world_detach(pe->world);
    *pe = (its_pe){.ctx = pe->ctx};
}

/* -- private memory ------------------------------------------------------------------------------------------------ */

/* Gives whole pages back to the machine; the addresses stay. */
static void forget_pages(char *from, uint64_t size) {
    uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
    uint64_t first = ((uint64_t)(uintptr_t)from + page - 1) / page * page;
    uint64_t last = ((uint64_t)(uintptr_t)from + size) / page * page;
    if (last > first) madvise((void *)(uintptr_t)first, last - first, MADV_DONTNEED);
}

static bool commit(its_pe *pe, uint64_t end) {
    if (end <= pe->committed) return true;
    uint64_t want = (end + commit_step - 1) / commit_step * commit_step;
    char *window = its_world_private(pe->world, pe->world->pe);
    if (mprotect(window + pe->committed, want - pe->committed, PROT_READ | PROT_WRITE) != 0) return false;
    pe->committed = want;
    return true;
}

void *its_pe_take(its_pe *pe, size_t size, size_t align) {
    uint64_t offset;
    if (its_heap_take(&pe->device, size ? size : 1, align ? align : ITS_SIM_ALIGN, &offset) != ITS_OK) return NULL;
    if (commit(pe, offset + size)) {
        char *block = its_world_private(pe->world, pe->world->pe) + offset;
        if (pe->race) its_race_fresh(pe->race, (uint64_t)(uintptr_t)block, size);
        return block;
    }
    its_heap_give(&pe->device, offset);
    return NULL;
}

void its_pe_give(its_pe *pe, void *block) {
    uint64_t offset = (uint64_t)((char *)block - its_world_private(pe->world, pe->world->pe));
    const its_range *range = its_heap_find(&pe->device, offset);
    if (!range) return;
    forget_pages(block, range->size);
    its_heap_give(&pe->device, offset);
}

static bool power_of_two(size_t value) {
    return value && (value & (value - 1)) == 0;
}

its_status its_pe_alloc(its_pe *pe, size_t size, size_t align, its_sim_kind kind, uint64_t *address) {
    if (align && !power_of_two(align))
        return its_fail(pe->ctx, ITS_ERR_USAGE, "an alignment is a power of two", "%zu is no alignment", align);
    void *block = its_pe_take(pe, size, align);
    if (block) {
        *address = (uint64_t)(uintptr_t)block;
        its_sim_memory_fresh(block, size);
        if (!size || its_sim_memory_add(pe->memory, *address, size, kind, false, NULL) == ITS_OK) return ITS_OK;
        its_pe_give(pe, block);
    }
    return its_fail(pe->ctx, ITS_ERR_NOMEM, NULL,
                    "PE %u has no room for %zu bytes of device memory (%" PRIu64 " bytes are in use)", pe->world->pe,
                    size, pe->device.used);
}

its_status its_pe_release(its_pe *pe, uint64_t address) {
    const its_world *world = pe->world;
    uint64_t offset = address - (uint64_t)(uintptr_t)its_world_private(world, world->pe);
    if (!its_heap_find(&pe->device, offset))
        return its_fail(pe->ctx, ITS_ERR_USAGE, "free what was allocated, once, by its first address",
                        "0x%" PRIx64 " is not a live block of device memory of PE %u", address, world->pe);
    its_sim_memory_remove(pe->memory, address);
    its_pe_give(pe, (void *)(uintptr_t)address);
    return ITS_OK;
}

/* -- symmetric memory ---------------------------------------------------------------------------------------------- */

its_status its_pe_reserve(its_pe *pe, size_t size, size_t align, uint64_t *address) {
    uint64_t offset;
    if (its_heap_take(&pe->symmetric, size, align, &offset) != ITS_OK) return ITS_ERR_NOMEM;
    char *block = its_world_heap(pe->world, pe->world->pe) + offset;
    *address = (uint64_t)(uintptr_t)block;
    its_sim_memory_fresh(block, size);
    if (pe->race) its_race_fresh(pe->race, *address, size);
    if (its_sim_memory_add(pe->memory, *address, size, ITS_SIM_SYMMETRIC, false, NULL) == ITS_OK) return ITS_OK;
    its_heap_give(&pe->symmetric, offset);
    return ITS_ERR_NOMEM;
}

its_status its_pe_no_room(its_pe *pe, const char *call, size_t size) {
    return its_fail(pe->ctx, ITS_ERR_NOMEM, "raise INTARSIA_HEAP_SIZE or NVSHMEM_SYMMETRIC_SIZE",
                    "%s: PE %u asked for %zu bytes, but %" PRIu64 " of the symmetric heap's %" PRIu64
                    " bytes are in use",
                    call, pe->world->pe, size, pe->symmetric.used, pe->world->control->heap_size);
}

void its_pe_cancel(its_pe *pe, uint64_t address) {
    const its_world *world = pe->world;
    char *heap = its_world_heap(world, world->pe), *block = (char *)(uintptr_t)address;
    const its_range *range = its_heap_find(&pe->symmetric, (uint64_t)(block - heap));
    if (!range) return;
    uint64_t in_file = world->control->heaps_offset + world->pe * world->control->stride + range->offset;
    its_sim_memory_remove(pe->memory, address);
    fallocate(world->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)in_file, (off_t)range->size);
    its_heap_give(&pe->symmetric, range->offset);
}

its_status its_pe_check_symmetric(its_pe *pe, const char *call, uint64_t address, uint64_t *offset) {
    const its_world *world = pe->world;
    *offset = address - (uint64_t)(uintptr_t)its_world_heap(world, world->pe);
    if (its_heap_find(&pe->symmetric, *offset)) return ITS_OK;
    return its_fail(pe->ctx, ITS_ERR_USAGE, "free what was allocated, once, by its first address",
                    "%s: 0x%" PRIx64 " is not a live block of the symmetric heap of PE %u", call, address, world->pe);
}

bool its_pe_peer(const its_pe *pe, uint64_t address, uint32_t of, uint64_t *mapped) {
    const its_world *world = pe->world;
    if (of >= world->control->n_pes || its_world_heap_owner(world, address) != (int)world->pe) return false;
    *mapped = address + (uint64_t)(uintptr_t)its_world_heap(world, of) -
              (uint64_t)(uintptr_t)its_world_heap(world, world->pe);
    return true;
}
