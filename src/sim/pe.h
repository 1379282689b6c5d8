/*
 * The memory of one PE: its part of the symmetric heaps, its window of private device memory, and the table that the
 * executor checks accesses against.
 *
 * Fresh memory is filled with a pattern that is a NaN in every floating-point format and a strange number in every
 * integer one, so that a kernel that reads what nobody wrote does not compute by luck.
 *
 * Thread safety: private memory and the table are also used by the device thread (device malloc); both sides hold the
 * device's lock. Symmetric memory belongs to the host thread, but for the table.
 */
#ifndef ITS_SIM_PE_H
#define ITS_SIM_PE_H

#include "sim/machine.h"
#include "sim/pe_heap.h"
#include "sim/race.h"
#include "sim/world.h"

enum { ITS_SIM_ALIGN = 256 };

typedef struct its_pe {
    its_context *ctx;
    its_world *world;
    its_sim_memory *memory;
    its_race *race;     /* NULL unless races are looked for */
    its_heap symmetric; /* offsets in the heap */
    its_heap device;    /* offsets in the private window */
    uint64_t committed; /* bytes of the window that can be touched */
} its_pe;

its_status its_pe_open(its_context *ctx, int fd, uint32_t number, its_pe *pe);
void its_pe_close(its_pe *pe);

/* Private memory, entered into the table as `kind`. The caller holds the device's lock. Errors leave diagnostics. */
its_status its_pe_alloc(its_pe *pe, size_t size, size_t align, its_sim_kind kind, uint64_t *address);
its_status its_pe_release(its_pe *pe, uint64_t address);
/* The same without the table and without diagnostics, for its_sim_machine: NULL if there is no room. */
void *its_pe_take(its_pe *pe, size_t size, size_t align);
void its_pe_give(its_pe *pe, void *block);

/*
 * Symmetric memory in two steps, because in between all PEs must agree (its_world_collective): reserve finds the place,
 * fills it and enters it; cancel undoes that. The caller holds the device's lock.
 */
its_status its_pe_reserve(its_pe *pe, size_t size, size_t align, uint64_t *address); /* no diagnostics */
its_status its_pe_no_room(its_pe *pe, const char *call, size_t size);                /* the error for ITS_ERR_NOMEM */
void its_pe_cancel(its_pe *pe, uint64_t address);
/* ITS_ERR_USAGE unless `address` is a live block of this PE's symmetric heap. */
its_status its_pe_check_symmetric(its_pe *pe, const char *call, uint64_t address, uint64_t *offset);

/* The address at which this PE sees `address` (in its own symmetric heap) of PE `of`; false if it is not symmetric. */
bool its_pe_peer(const its_pe *pe, uint64_t address, uint32_t of, uint64_t *mapped);

#endif
