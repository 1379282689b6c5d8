/* The simulator's backend: the functions behind include/intarsia/backend.h, and opening a PE. */
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../../device/sim/state.h"
#include "sim/backend_parts.h"
#include "sim/nvshmem_library.h"

/* The backend is the first member of what it belongs to. */
static its_sim_backend *sim_of(its_backend *backend) {
    return (its_sim_backend *)(void *)backend;
}

/* -- information --------------------------------------------------------------------------------------------------- */

static void sim_identity(its_backend *backend, uint32_t *pe, uint32_t *n_pes) {
    const its_world *world = sim_of(backend)->pe.world;
    *pe = world->pe;
    *n_pes = world->control->n_pes;
}

/* The opt-in limit per CTA of the architecture that is simulated. */
static uint32_t shared_limit(uint32_t major, uint32_t minor) {
    if (major >= 9 && major < 12) return 227 * 1024;
    if (major == 8) return minor == 0 || minor == 7 ? 163 * 1024 : 99 * 1024;
    return major == 7 ? (minor == 5 ? 64 : 96) * 1024 : major == 12 ? 99 * 1024 : 227 * 1024;
}

static its_status sim_device_info(its_backend *backend, its_device_info *info) {
    const its_sim_machine *machine = &sim_of(backend)->machine;
    *info = (its_device_info){
        .compute_major = machine->compute_major,
        .compute_minor = machine->compute_minor,
        .multiprocessors = machine->multiprocessors,
        .warp_size = 32,
        .max_shared = machine->max_shared,
        .max_regs = 65536,
        .max_threads = 1024,
    };
    snprintf(info->name, sizeof info->name, "Intarsia simulator (sm_%u%u)", machine->compute_major,
             machine->compute_minor);
    return ITS_OK;
}

its_asked its_sim_asked(const its_sim_backend *sim, its_asked_kind kind, uint64_t a, uint64_t b) {
    its_asked asked = {.kind = kind, .a = a, .b = b};
    if (sim->base.site) snprintf(asked.site, sizeof asked.site, "%s", sim->base.site);
    return asked;
}

/* -- memory -------------------------------------------------------------------------------------------------------- */

its_status its_sim_symmetric_alloc(its_sim_backend *sim, const char *call, size_t size, size_t align,
                                   uint64_t *address) {
    its_context *ctx = sim->base.ctx;
    if (align & (align - 1))
        return its_fail(ctx, ITS_ERR_USAGE, "an alignment is a power of two", "%s: %zu is no alignment", call, align);
    if (!align) align = ITS_SIM_ALIGN;
    if (align > ITS_WORLD_GRANULE) /* heaps begin at multiples of no more */
        return its_fail(ctx, ITS_ERR_USAGE, "align addresses within a larger block",
                        "%s: an alignment of %zu bytes is more than the %d of a symmetric heap", call, align,
                        ITS_WORLD_GRANULE);
    if (!size) return its_fail(ctx, ITS_ERR_USAGE, NULL, "%s: a block of 0 bytes was asked for", call);
    its_device_lock(sim->device);
    its_status reserved = its_pe_reserve(&sim->pe, size, align, address);
    its_device_unlock(sim->device);
    its_asked asked = its_sim_asked(sim, ITS_ASKED_ALLOC, size, align);
    its_status status = its_sim_meet(sim, call, asked);
    if (status == ITS_OK) return reserved == ITS_OK ? ITS_OK : its_pe_no_room(&sim->pe, call, size);
    if (reserved == ITS_OK) {
        its_device_lock(sim->device);
        its_pe_cancel(&sim->pe, *address);
        its_device_unlock(sim->device);
    }
    return status;
}

its_status its_sim_symmetric_free(its_sim_backend *sim, const char *call, uint64_t address) {
    uint64_t offset;
    its_status status = its_pe_check_symmetric(&sim->pe, call, address, &offset);
    if (status != ITS_OK) return status;
    /* Nobody frees before everybody has come: until then its memory may still be written to. */
    its_asked asked = its_sim_asked(sim, ITS_ASKED_FREE, offset, 0);
    status = its_sim_meet(sim, call, asked);
    if (status != ITS_OK) return status;
    its_device_lock(sim->device);
    its_pe_cancel(&sim->pe, address);
    its_device_unlock(sim->device);
    return ITS_OK;
}

static its_status sim_alloc(its_backend *backend, its_memory kind, size_t size, size_t align, uint64_t *address) {
    its_sim_backend *sim = sim_of(backend);
    if (kind == ITS_MEMORY_SYMMETRIC) return its_sim_symmetric_alloc(sim, "symmetric allocation", size, align, address);
    its_device_lock(sim->device);
    its_sim_kind where = kind == ITS_MEMORY_HOST ? ITS_SIM_HOST : ITS_SIM_DEVICE;
    its_status status = its_pe_alloc(&sim->pe, size, align, where, address);
    its_device_unlock(sim->device);
    return status;
}

/* As cudaFree does, waits for what may still use the memory; a stopped device uses nothing. */
static its_status sim_free(its_backend *backend, its_memory kind, uint64_t address) {
    its_sim_backend *sim = sim_of(backend);
    if (!its_device_stopped(sim->device)) {
        its_status status = its_device_wait(sim->device);
        if (status != ITS_OK) return status;
    }
    if (kind == ITS_MEMORY_SYMMETRIC) return its_sim_symmetric_free(sim, "symmetric release", address);
    its_device_lock(sim->device);
    its_status status = its_pe_release(&sim->pe, address);
    its_device_unlock(sim->device);
    return status;
}

bool its_sim_peer(its_sim_backend *sim, uint64_t address, uint32_t pe, uint64_t *mapped) {
    return its_pe_peer(&sim->pe, address, pe, mapped);
}

static its_status sim_peer(its_backend *backend, uint64_t address, uint32_t pe, uint64_t *mapped) {
    its_sim_backend *sim = sim_of(backend);
    const its_world *world = sim->pe.world;
    if (its_sim_peer(sim, address, pe, mapped)) return ITS_OK;
    if (pe >= world->control->n_pes)
        return its_fail(backend->ctx, ITS_ERR_INPUT, "PEs are numbered from 0", "there is no PE %u among %u", pe,
                        world->control->n_pes);
    return its_fail(backend->ctx, ITS_ERR_INPUT, "only symmetric memory can be reached from other PEs",
                    "0x%" PRIx64 " is not in the symmetric heap of PE %u", address, world->pe);
}

static its_status sim_copy(its_backend *backend, its_copy_kind kind, uint64_t device, uint64_t other, size_t size,
                           its_stream stream) {
    its_sim_backend *sim = sim_of(backend);
    switch (kind) {
    case ITS_COPY_TO_DEVICE:
        return its_sim_copy(sim, device, true, other, false, size, ITS_HOST_PAGEABLE, stream);
    case ITS_COPY_FROM_DEVICE:
        return its_sim_copy(sim, other, false, device, true, size, ITS_HOST_PAGEABLE, stream);
    default:
        return its_sim_copy(sim, device, true, other, true, size, ITS_HOST_NONE, stream);
    }
}

static its_status sim_fill(its_backend *backend, uint64_t address, uint8_t value, size_t size, its_stream stream) {
    return its_sim_fill(sim_of(backend), address, value, 1, size, stream);
}

/* -- modules ------------------------------------------------------------------------------------------------------- */

/* A module that holds the device library's variables is told where it is; nothing else makes it special. */
static void find_library(its_sim_backend *sim, its_loaded *loaded) {
    size_t size;
    if (its_sim_program_variable(loaded->program, INTARSIA_SIM_COMPLAINT_NAME, &loaded->complaint, &size)) {
        if (size == sizeof(struct intarsia_sim_complaint))
            memset((void *)(uintptr_t)loaded->complaint, 0, size);
        else
            loaded->complaint = 0;
    }
    if (its_sim_program_variable(loaded->program, INTARSIA_SIM_STATE_NAME, &loaded->state, &size) &&
        !its_nvshmem_tell(&sim->pe, sim->teams, (void *)(uintptr_t)loaded->state, size))
        loaded->state = 0;
}

static its_status sim_load(its_backend *backend, its_module *module, its_loaded **out) {
    its_sim_backend *sim = sim_of(backend);
    *out = NULL;
    its_status status = its_device_check(sim->device);
    if (status != ITS_OK) return status;
    its_loaded *loaded = its_block_alloc(backend->ctx, sizeof *loaded);
    if (!loaded) return its_no_memory(sim->base.ctx);
    *loaded = (its_loaded){0};
    its_device_lock(sim->device);
    status = its_sim_program_new(backend->ctx, &sim->machine, module, &loaded->program);
    if (status == ITS_OK) find_library(sim, loaded);
    its_device_unlock(sim->device);
    if (status != ITS_OK) {
        its_free(backend->ctx, loaded);
        return status;
    }
    loaded->next = sim->loaded;
    sim->loaded = loaded;
    *out = loaded;
    return ITS_OK;
}

static void free_loaded(its_sim_backend *sim, its_loaded *loaded) {
    its_context *ctx = sim->base.ctx;
    while (loaded->functions) {
        its_function *function = loaded->functions;
        loaded->functions = function->next;
        its_free(ctx, function->param_sizes);
        its_free(ctx, function);
    }
    its_device_lock(sim->device);
    its_sim_program_free(loaded->program);
    its_device_unlock(sim->device);
    its_free(ctx, loaded);
}

/* Kernels of the module are still run to their end; after a fault the module stays until the backend is closed. */
static void sim_unload(its_backend *backend, its_loaded *loaded) {
    its_sim_backend *sim = sim_of(backend);
    if (!loaded || its_device_stopped(sim->device) || its_device_wait(sim->device) != ITS_OK) return;
    its_loaded **at = &sim->loaded;
    while (*at && *at != loaded) at = &(*at)->next;
    if (!*at) return;
    *at = loaded->next;
    free_loaded(sim, loaded);
}

static its_status sim_function(its_backend *backend, its_loaded *loaded, const char *name, its_function **out) {
    its_sim_backend *sim = sim_of(backend);
    const its_sim_entry *entry;
    *out = NULL;
    its_status status = its_sim_program_entry(backend->ctx, loaded->program, name, &entry);
    if (status != ITS_OK) return status;
    for (its_function *function = loaded->functions; function && !*out; function = function->next)
        if (function->entry == entry) *out = function;
    if (*out) return ITS_OK;
    its_function *function = its_block_alloc(backend->ctx, sizeof *function);
    uint32_t *sizes = its_block_alloc(backend->ctx, (entry->n_params + 1) * sizeof *sizes);
    if (!function || !sizes) {
        its_free(backend->ctx, function);
        its_free(backend->ctx, sizes);
        return its_no_memory(sim->base.ctx);
    }
    for (uint32_t i = 0; i < entry->n_params; i++) sizes[i] = entry->params[i].size;
    *function = (its_function){loaded->functions, loaded, entry, sizes};
    loaded->functions = *out = function;
    return ITS_OK;
}

static its_status sim_function_info(its_backend *backend, its_function *function, its_function_info *info) {
    (void)backend;
    const its_sim_entry *entry = function->entry;
    *info = (its_function_info){.name = entry->name,
                                .n_params = entry->n_params,
                                .param_sizes = function->param_sizes,
                                .shared = entry->shared,
                                .max_threads = entry->max_threads};
    return ITS_OK;
}

static its_status sim_variable(its_backend *backend, its_loaded *loaded, const char *name, uint64_t *address,
                               size_t *size) {
    if (its_sim_program_variable(loaded->program, name, address, size)) return ITS_OK;
    return its_fail(backend->ctx, ITS_ERR_INPUT,
                    "only .global and .const variables of the module itself have an address",
                    "the module has no variable '%s'", name);
}

static its_status make_grid(its_sim_backend *sim, const its_function *function, const its_launch *launch,
                            its_sim_grid **grid) {
    const its_sim_entry *entry = function->entry;
    its_context *ctx = sim->base.ctx;
    if (launch->n_params != entry->n_params)
        return its_fail(ctx, ITS_ERR_USAGE, NULL, "kernel '%s' has %u parameters, but %u were given", entry->name,
                        entry->n_params, launch->n_params);
    char *params = its_block_alloc(ctx, entry->param_size + 1u);
    if (!params) return its_no_memory(sim->base.ctx);
    memset(params, 0, entry->param_size);
    for (uint32_t i = 0; i < entry->n_params; i++)
        memcpy(params + entry->params[i].offset, launch->params[i], entry->params[i].size);
    its_sim_launch what = {.shared = launch->shared, .params = params};
    memcpy(what.grid, launch->grid, sizeof what.grid);
    memcpy(what.block, launch->block, sizeof what.block);
    its_device_lock(sim->device); /* what a grid needs of its own is entered in the memory table */
    its_status status = its_sim_grid_new(ctx, entry, &what, grid);
    its_device_unlock(sim->device);
    its_free(ctx, params);
    return status;
}

static void free_grid(its_sim_backend *sim, its_sim_grid *grid) {
    its_device_lock(sim->device);
    its_sim_grid_free(grid);
    its_device_unlock(sim->device);
}

static its_status sim_launch(its_backend *backend, its_function *function, const its_launch *launch) {
    its_sim_backend *sim = sim_of(backend);
    its_work work = {
        .kind = ITS_WORK_KERNEL,
        .kernel = {.name = function->entry->name, .complaint = (const void *)(uintptr_t)function->loaded->complaint}};
    its_status status = its_device_stream_check(sim->device, launch->stream);
    if (status == ITS_OK) status = its_device_check(sim->device);
    if (status == ITS_OK) status = make_grid(sim, function, launch, &work.kernel.grid);
    if (status != ITS_OK) return status;
    status = its_device_enqueue(sim->device, launch->stream, &work);
    if (status != ITS_OK) free_grid(sim, work.kernel.grid);
    return status;
}

/* -- streams and barriers ------------------------------------------------------------------------------------------ */

static its_status sim_stream_new(its_backend *backend, its_stream *stream) {
    return its_sim_stream_new(sim_of(backend), true, stream);
}

static its_status sim_stream_free(its_backend *backend, its_stream stream) {
    return its_device_stream_free(sim_of(backend)->device, stream);
}

static its_status sim_stream_wait(its_backend *backend, its_stream stream) {
    return its_device_wait_stream(sim_of(backend)->device, stream);
}

static its_status sim_wait(its_backend *backend) {
    return its_device_wait(sim_of(backend)->device);
}

static its_status sim_barrier(its_backend *backend) {
    return its_sim_barrier(sim_of(backend), 0, true);
}

/* -- opening and closing ------------------------------------------------------------------------------------------- */

static void give_teams(its_sim_backend *sim) {
    const its_world *world = sim->pe.world;
    uint32_t n = world->control->n_pes;
    sim->teams[0] = sim->teams[1] = sim->teams[2] = (its_team){0, 1, n}; /* world, shared, node: one node */
    sim->teams[3] = (its_team){world->pe, 1, 1};                         /* the same number on every node */
}

static void sim_close(its_backend *backend) {
    its_sim_backend *sim = sim_of(backend);
    its_context *ctx = backend->ctx;
    its_device_finish(sim->device);
    while (sim->loaded) {
        its_loaded *loaded = sim->loaded;
        sim->loaded = loaded->next;
        free_loaded(sim, loaded);
    }
    its_device_free(sim->device);
    its_pe_close(&sim->pe);
    its_free(ctx, sim);
}

static const its_backend_ops sim_ops = {
    .name = "sim",
    .close = sim_close,
    .identity = sim_identity,
    .device_info = sim_device_info,
    .alloc = sim_alloc,
    .free = sim_free,
    .peer = sim_peer,
    .copy = sim_copy,
    .fill = sim_fill,
    .load = sim_load,
    .unload = sim_unload,
    .function = sim_function,
    .function_info = sim_function_info,
    .variable = sim_variable,
    .launch = sim_launch,
    .stream_new = sim_stream_new,
    .stream_free = sim_stream_free,
    .stream_wait = sim_stream_wait,
    .wait = sim_wait,
    .barrier = sim_barrier,
};

its_status its_sim_backend_of(its_backend *backend, its_sim_backend **sim) {
    *sim = backend->ops == &sim_ops ? sim_of(backend) : NULL;
    if (*sim) return ITS_OK;
    return its_fail(backend->ctx, ITS_ERR_USAGE, NULL, "the backend '%s' is not the simulator", backend->ops->name);
}

static void *take_block(void *user, size_t size, size_t align) {
    return its_pe_take(user, size, align);
}
static void give_block(void *user, void *block, size_t size) {
    (void)size;
    its_pe_give(user, block);
}

/* What kernels print goes where the program prints. */
static void print_text(void *user, const char *text, size_t size) {
    (void)user;
    while (size) {
        ssize_t written = write(STDOUT_FILENO, text, size);
        if (written < 0 && errno == EINTR) continue;
        if (written <= 0) return;
        text += written;
        size -= (size_t)written;
    }
}

/* Which copy of the loop runs: the best one, unless the environment names another. */
static its_status choose_isa(its_context *ctx, uint32_t *isa) {
    const char *wanted = getenv("INTARSIA_SIM_ISA"), *name;
    if (!wanted || !*wanted) return ITS_OK;
    for (uint32_t i = 0; (name = its_sim_isa_name(i)); i++)
        if (strcmp(name, wanted) == 0) {
            *isa = i + 1;
            return ITS_OK;
        }
    return its_fail(ctx, ITS_ERR_USAGE, "there are baseline, x86-64-v3 and x86-64-v4, as far as the CPU goes",
                    "the environment variable INTARSIA_SIM_ISA holds '%s', which this CPU does not have", wanted);
}

static its_status open_pe(its_context *ctx, int fd, uint32_t number, its_backend **out) {
    its_sim_backend *sim = its_block_alloc(ctx, sizeof *sim);
    if (!sim) return its_no_memory(ctx);
    *sim = (its_sim_backend){.base = {.ops = &sim_ops, .ctx = ctx}, .next_team = ITS_FIRST_FREE_TEAM};
    its_status status = its_pe_open(ctx, fd, number, &sim->pe);
    if (status != ITS_OK) {
        its_free(ctx, sim);
        return status;
    }
    const its_world_control *control = sim->pe.world->control;
    sim->machine = (its_sim_machine){
        .memory = sim->pe.memory,
        .multiprocessors = control->multiprocessors,
        .compute_major = control->compute_major,
        .compute_minor = control->compute_minor,
        .max_shared = shared_limit(control->compute_major, control->compute_minor),
        .take = take_block,
        .give = give_block,
        .print = print_text,
        .user = &sim->pe,
        .race = sim->pe.race,
    };
    give_teams(sim);
    status = choose_isa(ctx, &sim->machine.isa);
    if (status == ITS_OK) status = its_device_new(ctx, &sim->pe, &sim->device);
    if (status != ITS_OK) {
        its_pe_close(&sim->pe);
        its_free(ctx, sim);
        return status;
    }
    *out = &sim->base;
    return ITS_OK;
}

its_status its_sim_open(its_context *ctx, int fd, uint32_t pe, const its_sim_options *options, its_backend **backend) {
    *backend = NULL;
    if (fd >= 0) return open_pe(ctx, fd, pe, backend);
    its_sim_options alone = options ? *options : (its_sim_options){0};
    alone.n_pes = 1;
    its_status status = its_sim_world_new(ctx, &alone, &fd);
    if (status != ITS_OK) return status;
    status = open_pe(ctx, fd, 0, backend);
    close(fd);
    return status;
}

/* -- the environment ----------------------------------------------------------------------------------------------- */

static its_status bad_setting(its_context *ctx, const char *name, const char *text) {
    return its_fail(ctx, ITS_ERR_USAGE, "unset it, or start the program with `intarsia run --sim`",
                    "the environment variable %s holds '%s', which is not a number that fits", name, text);
}

static its_status read_number(its_context *ctx, const char *name, uint64_t most, uint64_t *number) {
    const char *text = getenv(name);
    char *end;
    errno = 0;
    unsigned long long value = text && *text >= '0' && *text <= '9' ? strtoull(text, &end, 10) : ULLONG_MAX;
    if (value > most || errno || *end) return bad_setting(ctx, name, text ? text : "");
    *number = value;
    return ITS_OK;
}

its_status its_sim_host_threads(its_backend *backend, uint32_t threads) {
    its_sim_backend *sim = NULL;
    its_status status = its_sim_backend_of(backend, &sim);
    if (sim) its_hosts_set_threads(&sim->pe.world->hosts, threads);
    return status;
}

its_status its_sim_host_count(its_backend *backend, int (*count)(void)) {
    if (backend->ops != &sim_ops) return ITS_ERR_USAGE;
    its_hosts_set_count(&sim_of(backend)->pe.world->hosts, count);
    return ITS_OK;
}

its_status its_sim_host_lock(its_backend *backend) {
    if (backend->ops != &sim_ops) return ITS_ERR_USAGE;
    its_hosts_take(&sim_of(backend)->pe.world->hosts);
    return ITS_OK;
}

its_status its_sim_host_unlock(its_backend *backend) {
    if (backend->ops != &sim_ops) return ITS_ERR_USAGE;
    return its_hosts_give(&sim_of(backend)->pe.world->hosts) ? ITS_OK : ITS_ERR_USAGE;
}

its_status its_sim_host_interrupt(its_backend *backend, int (*asked)(void)) {
    its_sim_backend *sim = NULL;
    its_status status = its_sim_backend_of(backend, &sim);
    if (sim) its_hosts_set_asked(&sim->pe.world->hosts, asked);
    return status;
}

its_status its_sim_open_env(its_context *ctx, its_backend **backend) {
    *backend = NULL;
    if (!getenv("INTARSIA_SIM_FD")) return its_sim_open(ctx, -1, 0, NULL, backend);
    uint64_t fd = 0, pe = 0;
    its_status status = read_number(ctx, "INTARSIA_SIM_FD", INT_MAX, &fd);
    if (status == ITS_OK) status = read_number(ctx, "INTARSIA_PE", ITS_WORLD_MAX_PES - 1, &pe);
    return status == ITS_OK ? its_sim_open(ctx, (int)fd, (uint32_t)pe, NULL, backend) : status;
}
