/* The shared memory of a world, and waiting for other PEs; see world.h. */
#include "sim/race.h"
#include "sim/stuck.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <linux/futex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/clock.h"

#define WORLD_MAGIC "intarsia"
enum { WORLD_ABI = 3 };

static const size_t default_heap_size = (size_t)1 << 30;
static const uint64_t private_size = (uint64_t)1 << 36;
static const uint64_t granule = ITS_WORLD_GRANULE;
static const uint64_t look_interval = 100 * 1000 * 1000u; /* ns between two looks at who is alive */

/*
 * Where a world may lie: free of programs, libraries, stacks and sanitizers on the usual layouts with 47 and 48 bits of
 * addresses; the last two fit into 39 bits.
 */
static const uint64_t bases[] = {0x200000000000, 0x300000000000, 0x180000000000, 0x002000000000, 0x001000000000};

static uint64_t round_up(uint64_t value, uint64_t to) {
    return (value + to - 1) / to * to;
}

/* -- making -------------------------------------------------------------------------------------------------------- */

#ifndef MAP_FIXED_NOREPLACE
#define MAP_FIXED_NOREPLACE 0x100000
#endif

/* Kernels older than the flag take the address as a hint only: what came back elsewhere is given up again. */
static bool map_at(uint64_t address, size_t size, int protection, int flags, int fd, uint64_t offset) {
    void *want = (void *)(uintptr_t)address;
    void *got = mmap(want, size, protection, flags | MAP_NORESERVE | MAP_FIXED_NOREPLACE, fd, (off_t)offset);
    if (got == MAP_FAILED) return false;
    if (got == want) return true;
    munmap(got, size);
    errno = EEXIST;
    return false;
}

static uint64_t world_span(const its_world_control *control) {
    return control->private_offset + control->n_pes * control->private_stride;
}

static bool choose_base(its_world_control *control) {
    for (size_t i = 0; i < sizeof bases / sizeof *bases; i++) {
        if (!map_at(bases[i], world_span(control), PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)) continue;
        munmap((void *)(uintptr_t)bases[i], world_span(control));
        control->base = bases[i];
        return true;
    }
    return false;
}

/* 1.5G, 512M, 4096: the multiplier of the unit letter at the end, 1 for none. */
static double unit_of(const char **text) {
    static const char units[] = "kmgt";
    const char *unit = **text ? strchr(units, **text | 32) : NULL;
    double scale = 1;
    for (const char *u = units; unit && u <= unit; u++) scale *= 1024;
    if (unit) ++*text;
    if (**text == 'B' || **text == 'b') ++*text;
    return scale;
}

/* What the environment asks for; `*size` stays as it is if it asks for nothing. */
static its_status heap_setting(its_context *ctx, size_t *size) {
    static const char *const names[] = {"INTARSIA_HEAP_SIZE", "NVSHMEM_SYMMETRIC_SIZE"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const char *text = getenv(names[i]);
        if (!text || !*text) continue;
        char *number_end;
        double value = strtod(text, &number_end);
        const char *end = number_end;
        value *= unit_of(&end);
        if (*end || end == text || !(value >= 1) || value > 1e15)
            return its_fail(ctx, ITS_ERR_USAGE, "write a size such as 512M or 2G",
                            "the environment variable %s holds '%s', which is not a size", names[i], text);
        *size = (size_t)value;
        return ITS_OK;
    }
    return ITS_OK;
}

static its_status check_setting(its_context *ctx, bool *find_races) {
    const char *text = getenv("INTARSIA_SIM_CHECK");
    if (!text || !*text) return ITS_OK;
    *find_races = strcmp(text, "races") == 0;
    return *find_races ? ITS_OK
                       : its_fail(ctx, ITS_ERR_USAGE, "there is 'races'",
                                  "the environment variable INTARSIA_SIM_CHECK holds '%s', which is no check", text);
}

static void lay_out(its_world_control *control, const its_sim_options *options) {
    memcpy(control->magic, WORLD_MAGIC, sizeof control->magic);
    control->abi = WORLD_ABI;
    control->n_pes = options->n_pes;
    control->multiprocessors = options->multiprocessors ? options->multiprocessors : 4;
    control->compute_major = options->compute_major ? options->compute_major : 8;
    control->compute_minor = options->compute_major ? options->compute_minor : 0;
    control->heap_size = round_up(options->heap_size ? options->heap_size : default_heap_size, 1 << 16);
    control->stride = round_up(control->heap_size + ITS_WORLD_LIBRARY_BYTES + 1, granule); /* a gap after each heap */
    control->private_stride = private_size;
    control->private_offset = round_up(control->stride * control->n_pes, private_size);
    control->heaps_offset = round_up(sizeof *control, granule);
    if (options->find_races) control->race_offset = control->heaps_offset + control->n_pes * control->stride;
    atomic_store(&control->epoch, 1);
}

static its_status check_options(its_context *ctx, const its_sim_options *options) {
    if (options->n_pes < 1 || options->n_pes > ITS_WORLD_MAX_PES)
        return its_fail(ctx, ITS_ERR_USAGE, "choose a number of PEs from 1 to 64", "a world of %u PEs was asked for",
                        options->n_pes);
    if (options->heap_size > ((size_t)1 << 40))
        return its_fail(ctx, ITS_ERR_USAGE, "a symmetric heap may have 1 TiB at most",
                        "a symmetric heap of %zu bytes was asked for", options->heap_size);
    return ITS_OK;
}

static its_status write_world(its_context *ctx, int fd, const its_world_control *control) {
    uint64_t size = control->heaps_offset + control->n_pes * control->stride;
    if (control->race_offset) size += its_race_shared_size(control->n_pes);
    if (ftruncate(fd, (off_t)size) != 0)
        return its_fail(ctx, ITS_ERR_NOMEM, "ask for a smaller symmetric heap (INTARSIA_HEAP_SIZE)",
                        "the shared memory of %u PEs (%" PRIu64 " bytes) can't be made: %s", control->n_pes, size,
                        strerror(errno));
    if (pwrite(fd, control, sizeof *control, 0) != (ssize_t)sizeof *control)
        return its_fail(ctx, ITS_ERR_IO, NULL, "the shared memory can't be written: %s", strerror(errno));
    return ITS_OK;
}

its_status its_sim_world_new(its_context *ctx, const its_sim_options *asked, int *fd) {
    *fd = -1;
    its_sim_options options = *asked;
    its_status status = options.heap_size ? ITS_OK : heap_setting(ctx, &options.heap_size);
    if (status == ITS_OK && !options.find_races) status = check_setting(ctx, &options.find_races);
    if (status == ITS_OK) status = check_options(ctx, &options);
    if (status != ITS_OK) return status;
    its_world_control control; /* some 60 KB */
    memset(&control, 0, sizeof control);
    lay_out(&control, &options);
    if (!choose_base(&control))
        return its_fail(ctx, ITS_ERR_NOMEM, "ask for a smaller symmetric heap (INTARSIA_HEAP_SIZE) or lift `ulimit -v`",
                        "no range of %" PRIu64 " free addresses is left for %u PEs", world_span(&control),
                        control.n_pes);
    int made = memfd_create("intarsia-world", 0);
    if (made < 0) return its_fail(ctx, ITS_ERR_IO, NULL, "shared memory can't be made: %s", strerror(errno));
    status = write_world(ctx, made, &control);
    if (status == ITS_OK)
        *fd = made;
    else
        close(made);
    return status;
}

/* -- attaching ----------------------------------------------------------------------------------------------------- */

/* State letter and start time of a process from /proc; false if there is none of that number. */
static bool process_look(int32_t pid, char *state, uint64_t *born) {
    char path[40], text[1024];
    snprintf(path, sizeof path, "/proc/%d/stat", pid);
    int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0) return false;
    ssize_t size = read(file, text, sizeof text - 1);
    close(file);
    if (size <= 0) return false;
    text[size] = 0;
    const char *at = strrchr(text, ')'); /* the name between the parentheses may hold anything */
    if (!at || at[1] != ' ') return false;
    *state = at[2];
    unsigned long long start = 0;
    if (sscanf(at + 3, " %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %llu", &start) != 1)
        return false;
    *born = start;
    return true;
}

static bool process_alive(const its_world_pe *pe) {
    char state;
    uint64_t born;
    int32_t pid = atomic_load(&pe->pid);
    if (pid == (int32_t)getpid()) return true;
    if (!process_look(pid, &state, &born)) return false;
    return state != 'Z' && state != 'X' && state != 'x' && born == atomic_load(&pe->born);
}

static its_status map_control(its_world *world) {
    its_context *ctx = world->ctx;
    world->control_size = round_up(sizeof(its_world_control), granule);
    void *mapped = mmap(NULL, world->control_size, PROT_READ | PROT_WRITE, MAP_SHARED, world->fd, 0);
    if (mapped == MAP_FAILED)
        return its_fail(ctx, ITS_ERR_IO, "the file descriptor must be one of its_sim_world_new",
                        "file descriptor %d can't be mapped: %s", world->fd, strerror(errno));
    world->control = mapped;
    if (lseek(world->fd, 0, SEEK_END) < (off_t)world->control_size ||
        memcmp(world->control->magic, WORLD_MAGIC, sizeof world->control->magic) != 0)
        return its_fail(ctx, ITS_ERR_USAGE, "the file descriptor must be one of its_sim_world_new",
                        "file descriptor %d is not a world of PEs", world->fd);
    if (world->control->abi != WORLD_ABI)
        return its_fail(ctx, ITS_ERR_USAGE, "use one version of Intarsia for the launcher and all PEs",
                        "the world was made by another version of Intarsia");
    if (world->pe >= world->control->n_pes)
        return its_fail(ctx, ITS_ERR_USAGE, NULL, "PE %u of a world of %u PEs can't be opened", world->pe,
                        world->control->n_pes);
    return ITS_OK;
}

static its_status map_heaps(its_world *world) {
    const its_world_control *control = world->control;
    size_t size = control->n_pes * control->stride;
    if (map_at(control->base, size, PROT_READ | PROT_WRITE, MAP_SHARED, world->fd, control->heaps_offset)) {
        if (map_at((uint64_t)(uintptr_t)its_world_private(world, world->pe), control->private_stride, PROT_NONE,
                   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0))
            return ITS_OK;
        int why = errno;
        munmap(its_world_heap(world, 0), size);
        errno = why;
    }
    return its_fail(world->ctx, ITS_ERR_NOMEM,
                    errno == EEXIST
                        ? "close the PE that is open in this process, or keep other mappings out of this range"
                        : "ask for a smaller symmetric heap (INTARSIA_HEAP_SIZE) or lift `ulimit -v`",
                    "the memory of the PEs can't be mapped at 0x%" PRIx64 ": %s", control->base, strerror(errno));
}

static its_status claim(its_world *world) {
    its_world_pe *me = its_world_me(world);
    int32_t nobody = 0, pid = (int32_t)getpid();
    if (!atomic_compare_exchange_strong(&me->pid, &nobody, pid))
        return its_fail(world->ctx, ITS_ERR_USAGE, "give every process a PE number of its own",
                        "PE %u belongs to process %d already", world->pe, nobody);
    char state;
    uint64_t born = 0;
    process_look(pid, &state, &born);
    atomic_store(&me->born, born);
    atomic_store(&me->state, ITS_PE_RUNNING);
    its_activity_set(&me->host, ITS_ACTIVITY_IDLE, 0, 0);
    its_activity_set(&me->device, ITS_ACTIVITY_IDLE, 0, 0);
    its_world_ring(world);
    return ITS_OK;
}

static void unmap(its_world *world) {
    its_hosts_close(&world->hosts);
    if (world->control) munmap(world->control, world->control_size);
    close(world->fd);
    its_free(world->ctx, world);
}

its_status its_world_attach(its_context *ctx, int fd, uint32_t pe, its_world **out) {
    *out = NULL;
    its_world *world = its_block_alloc(ctx, sizeof *world);
    if (!world) return its_no_memory(ctx);
    *world = (its_world){.ctx = ctx, .fd = fcntl(fd, F_DUPFD_CLOEXEC, 3), .pe = pe};
    if (world->fd < 0) {
        its_free(ctx, world);
        return its_fail(ctx, ITS_ERR_USAGE, "PEs must inherit the file descriptor of their world",
                        "file descriptor %d is not open", fd);
    }
    its_status status = its_hosts_open(&world->hosts);
    if (status == ITS_OK) status = map_control(world);
    if (status == ITS_OK) status = map_heaps(world);
    if (status == ITS_OK && (status = claim(world)) != ITS_OK) {
        munmap(its_world_heap(world, 0), world->control->n_pes * world->control->stride);
        munmap(its_world_private(world, pe), world->control->private_stride);
    }
    if (status == ITS_OK)
        *out = world;
    else
        unmap(world);
    return status;
}

void its_world_detach(its_world *world) {
    if (!world) return;
    uint32_t running = ITS_PE_RUNNING;
    its_world_raise(world); /* what was done last is seen by whoever sees that this PE has finished */
    atomic_compare_exchange_strong(&its_world_me(world)->state, &running, ITS_PE_FINISHED);
    its_world_ring(world);
    munmap(its_world_heap(world, 0), world->control->n_pes * world->control->stride);
    munmap(its_world_private(world, world->pe), world->control->private_stride);
    unmap(world);
}

int its_world_heap_owner(const its_world *world, uint64_t address) {
    const its_world_control *control = world->control;
    if (address < control->base || address - control->base >= control->n_pes * control->stride) return -1;
    uint64_t at = address - control->base;
    return at % control->stride < ITS_WORLD_LIBRARY_BYTES + control->heap_size ? (int)(at / control->stride) : -1;
}

/* -- waiting ------------------------------------------------------------------------------------------------------- */

void its_activity_set(its_activity *activity, its_activity_kind kind, uint64_t what, uint64_t value) {
    atomic_store_explicit(&activity->what, what, memory_order_relaxed);
    atomic_store_explicit(&activity->value, value, memory_order_relaxed);
    atomic_store_explicit(&activity->kind, kind, memory_order_release);
}

/* The bell's number, to be read before looking at what is waited for. */
static uint32_t read_bell(const its_world *world) {
    return atomic_load(&world->control->bell);
}

void its_world_ring(const its_world *world) {
    its_world_control *control = world->control;
    atomic_fetch_add(&control->bell, 1);
    if (atomic_load(&control->sleepers)) syscall(SYS_futex, &control->bell, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

/* Sleeps until the bell has changed from `seen`, or `milliseconds` have passed. */
static void sleep_until_rung(const its_world *world, uint32_t seen, uint32_t milliseconds) {
    its_world_control *control = world->control;
    struct timespec time = {milliseconds / 1000, (long)(milliseconds % 1000) * 1000000};
    atomic_fetch_add(&control->sleepers, 1);
    syscall(SYS_futex, &control->bell, FUTEX_WAIT, seen, &time, NULL, 0);
    atomic_fetch_sub(&control->sleepers, 1);
}

/* Writes down that a running PE's process is gone; whoever sees it first does. */
static void look_at(const its_world *world, uint32_t pe) {
    its_world_pe *it = &world->control->pes[pe];
    uint32_t running = ITS_PE_RUNNING;
    if (pe == world->pe || atomic_load(&it->state) != ITS_PE_RUNNING || process_alive(it)) return;
    if (!atomic_compare_exchange_strong(&it->state, &running, ITS_PE_ENDED)) return;
    atomic_fetch_add(&world->control->failures, 1);
    its_world_ring(world);
}

int its_world_failed(const its_world *world, uint64_t *last_look) {
    const its_world_control *control = world->control;
    uint64_t now = its_clock_ns();
    if (now - *last_look >= look_interval) {
        *last_look = now;
        for (uint32_t pe = 0; pe < control->n_pes; pe++) look_at(world, pe);
    }
    if (!atomic_load(&world->control->failures)) return -1;
    for (uint32_t pe = 0; pe < control->n_pes; pe++) {
        uint32_t state = atomic_load(&world->control->pes[pe].state);
        if (pe != world->pe && (state == ITS_PE_FAULTED || state == ITS_PE_ENDED)) return (int)pe;
    }
    return -1;
}

int its_world_left_alone(const its_world *world) {
    int other = -1;
    for (uint32_t pe = 0; pe < world->control->n_pes; pe++) {
        if (pe == world->pe) continue;
        if (atomic_load(&world->control->pes[pe].state) != ITS_PE_FINISHED) return -1;
        other = (int)pe;
    }
    return other;
}

its_status its_world_fail(its_context *ctx, const its_world *world, uint32_t pe, const char *during) {
    const its_world_pe *it = &world->control->pes[pe];
    switch (atomic_load(&world->control->pes[pe].state)) {
    case ITS_PE_FAULTED:
        return its_fail(ctx, ITS_ERR_FAULT, "its own report says where", "PE %u faulted: %.*s", pe, ITS_WORLD_TEXT,
                        it->fault);
    case ITS_PE_FINISHED:
        return its_fail(ctx, ITS_ERR_FAULT, "every PE must make the same collective calls", "PE %u finished before %s",
                        pe, during);
    default:
        return its_fail(ctx, ITS_ERR_FAULT, "its output says why", "PE %u ended before %s", pe, during);
    }
}

void its_world_faulted(const its_world *world, const char *text) {
    its_world_pe *me = its_world_me(world);
    if (atomic_load(&me->state) == ITS_PE_FAULTED) return;
    snprintf(me->fault, sizeof me->fault, "%s", text);
    atomic_store(&me->state, ITS_PE_FAULTED);
    atomic_fetch_add(&world->control->failures, 1);
    its_world_ring(world);
}

bool its_world_faulted_here(const its_world *world) {
    return atomic_load(&its_world_me(world)->state) == ITS_PE_FAULTED;
}

its_status its_sim_world_ended(its_context *ctx, int fd, uint32_t pe) {
    its_world world = {.ctx = ctx, .fd = fd, .pe = pe};
    its_status status = map_control(&world);
    if (status == ITS_OK) {
        _Atomic uint32_t *state = &world.control->pes[pe].state;
        uint32_t was = atomic_load(state);
        while ((was == ITS_PE_ABSENT || was == ITS_PE_RUNNING) &&
               !atomic_compare_exchange_weak(state, &was, ITS_PE_ENDED)) {
        }
        if (was == ITS_PE_ABSENT || was == ITS_PE_RUNNING) atomic_fetch_add(&world.control->failures, 1);
        its_world_ring(&world);
    }
    if (world.control) munmap(world.control, world.control_size);
    return status;
}

/* -- collective calls ---------------------------------------------------------------------------------------------- */

/* The first PE that has not made its n-th collective call, or -1. */
static int collective_missing(const its_world *world, uint64_t n) {
    for (uint32_t pe = 0; pe < world->control->n_pes; pe++)
        if (atomic_load(&world->control->pes[pe].collectives) < n) return (int)pe;
    return -1;
}

static bool done_for(const its_world *world, uint32_t pe) {
    uint32_t state = atomic_load(&world->control->pes[pe].state);
    return state == ITS_PE_FINISHED || state == ITS_PE_FAULTED || state == ITS_PE_ENDED;
}

/* A PE that has not come yet, or -1. */
typedef int missing_function(const its_world *world, const void *user);

/* Whether the program wants this wait to end; it is asked now and then. */
static bool interrupted(its_world *world, uint64_t *last_asked) {
    uint64_t now = its_clock_ns();
    if (now - *last_asked < ITS_HOSTS_PATIENCE) return false;
    *last_asked = now;
    return its_hosts_interrupted(&world->hosts);
}

/*
 * requires: `missing` computes who has not come yet; it is asked at every ring, and every so many milliseconds.
 * ensures: everybody has come, or the reason why somebody won't is in the diagnostics.
 */
static its_status wait_for_all(its_context *ctx, its_world *world, const char *during, missing_function *missing,
                               const void *user, uint32_t milliseconds) {
    uint64_t last_look = 0, last_asked = its_clock_ns();
    for (;;) {
        uint32_t seen = read_bell(world);
        int who = missing(world, user);
        if (who < 0) return ITS_OK;
        if (its_world_faulted_here(world)) return ITS_ERR_FAULT;
        if (its_world_is_stuck(world))
            return its_fail(ctx, ITS_ERR_FAULT, "the PEs whose kernels wait say for what",
                            "deadlock: no PE can go on, and PE %u waits in %s for PE %d", world->pe, during, who);
        int failed = its_world_failed(world, &last_look);
        if (failed < 0 && done_for(world, (uint32_t)who)) failed = who;
        if (failed >= 0 && missing(world, user) >= 0) return its_world_fail(ctx, world, (uint32_t)failed, during);
        if (interrupted(world, &last_asked))
            return its_fail(ctx, ITS_ERR_INTERRUPTED, NULL, "PE %u was interrupted in %s, while it waited for PE %d",
                            world->pe, during, who);
        bool aside = its_hosts_step_aside(&world->hosts);
        sleep_until_rung(world, seen, milliseconds);
        its_hosts_step_back(&world->hosts, aside);
    }
}

typedef struct all_wait {
    const its_world *world;
    missing_function *missing;
    const void *user;
} all_wait;

static bool all_have_come(const void *user) {
    const all_wait *wait = user;
    return wait->missing(wait->world, wait->user) < 0;
}

/* The same, while everybody can see that a thread of the host waits. */
static its_status host_waits(its_context *ctx, its_world *world, const char *during, missing_function *missing,
                             const void *user, uint32_t milliseconds) {
    all_wait all = {world, missing, user};
    its_host_wait wait = {.over = all_have_come, .user = &all};
    its_hosts_enter(&world->hosts, &wait);
    its_hosts_wake(&world->hosts);
    its_status status = wait_for_all(ctx, world, during, missing, user, milliseconds);
    its_hosts_leave(&world->hosts, &wait);
    return status;
}

static int collective_missing_user(const its_world *world, const void *user) {
    return collective_missing(world, *(const uint64_t *)user);
}

enum { ASKED_TEXT = 120 + ITS_WORLD_SITE };

static const char *asked_text(char *text, const char *call, const its_asked *asked) {
    const char *at = asked->site[0] ? " at " : "";
    switch (asked->kind) {
    case ITS_ASKED_ALLOC:
        snprintf(text, ASKED_TEXT, "for %" PRIu64 " bytes aligned to %" PRIu64 "%s%s", asked->a, asked->b, at,
                 asked->site);
        break;
    case ITS_ASKED_FREE:
        snprintf(text, ASKED_TEXT, "to free the block at offset %" PRIu64 "%s%s", asked->a, at, asked->site);
        break;
    case ITS_ASKED_TEAM:
        snprintf(text, ASKED_TEXT, "for a team of %" PRIu64 " PEs from PE %" PRIu64 " by %" PRIu64, asked->b,
                 asked->a & UINT32_MAX, asked->a >> 32);
        break;
    default:
        snprintf(text, ASKED_TEXT, "for %s%s%s", call, at, asked->site);
    }
    return text;
}

static its_status compare(its_context *ctx, const its_world *world, const char *call, uint64_t n) {
    const its_asked *mine = &its_world_me(world)->asked[n & 1];
    for (uint32_t pe = 0; pe < world->control->n_pes; pe++) {
        const its_asked *theirs = &world->control->pes[pe].asked[n & 1];
        char one[ASKED_TEXT], other[ASKED_TEXT];
        if (mine->kind != theirs->kind || mine->a != theirs->a || mine->b != theirs->b)
            return its_fail(ctx, ITS_ERR_USAGE,
                            "symmetric memory is allocated and freed by all PEs together, in the same order, with the "
                            "same sizes",
                            "%s: PE %u asked %s, but PE %u asked %s", call, world->pe, asked_text(one, call, mine), pe,
                            asked_text(other, call, theirs));
    }
    return ITS_OK;
}

its_status its_world_collective(its_context *ctx, its_world *world, const char *call, its_asked asked) {
    its_world_pe *me = its_world_me(world);
    uint64_t n = atomic_load(&me->collectives) + 1;
    /* Call n-2 used this place; everybody has read it, or they would not have come to call n-1. */
    me->asked[n & 1] = asked;
    atomic_store(&me->collectives, n);
    its_world_ring(world);
    its_activity_set(&me->host, ITS_ACTIVITY_COLLECTIVE, n, 0);
    its_status status = host_waits(ctx, world, call, collective_missing_user, &n, 100);
    its_activity_set(&me->host, ITS_ACTIVITY_IDLE, 0, 0);
    return status == ITS_OK ? compare(ctx, world, call, n) : status;
}

/* -- barriers of a team -------------------------------------------------------------------------------------------- */

its_status its_world_barrier_enter(its_context *ctx, const its_world *world, uint32_t team, its_team members,
                                   uint64_t *epoch) {
    its_team_area *mine = &its_world_library(world, world->pe)->teams[team];
    if (atomic_exchange(&mine->inside, 1))
        return its_fail(ctx, ITS_ERR_USAGE, "a team's barriers come one after the other, in the same order on every PE",
                        "PE %u entered a barrier while it was in another one of the same team", world->pe);
    *epoch = atomic_load(&mine->epoch) + 1;
    for (uint32_t i = 0; i < members.size; i++)
        atomic_store(&its_world_library(world, members.start + i * members.stride)->teams[team].arrived[world->pe],
                     *epoch);
    its_world_ring(world);
    return ITS_OK;
}

/* The first member that has not reached `epoch`, or -1. */
static int first_missing(const its_world *world, uint32_t team, its_team members, uint64_t epoch) {
    const its_team_area *mine = &its_world_library(world, world->pe)->teams[team];
    for (uint32_t i = 0; i < members.size; i++) {
        uint32_t pe = members.start + i * members.stride;
        if (atomic_load(&((its_team_area *)(uintptr_t)mine)->arrived[pe]) < epoch) return (int)pe;
    }
    return -1;
}

bool its_world_barrier_leave(const its_world *world, uint32_t team, its_team members, uint64_t epoch) {
    if (first_missing(world, team, members, epoch) >= 0) return false;
    its_team_area *mine = &its_world_library(world, world->pe)->teams[team];
    atomic_store(&mine->epoch, epoch);
    atomic_store(&mine->inside, 0);
    return true;
}

typedef struct barrier_wait {
    uint32_t team;
    its_team members;
    uint64_t epoch;
} barrier_wait;

static int barrier_missing_user(const its_world *world, const void *user) {
    const barrier_wait *wait = user;
    return first_missing(world, wait->team, wait->members, wait->epoch);
}

its_status its_world_barrier(its_context *ctx, its_world *world, uint32_t team, its_team members) {
    barrier_wait wait = {.team = team, .members = members};
    its_status status = its_world_barrier_enter(ctx, world, team, members, &wait.epoch);
    if (status != ITS_OK) return status;
    its_world_pe *me = its_world_me(world);
    its_activity_set(&me->host, ITS_ACTIVITY_BARRIER, team, wait.epoch);
    /* Kernels arrive without ringing the bell. */
    status = host_waits(ctx, world, "the barrier", barrier_missing_user, &wait, 2);
    its_activity_set(&me->host, ITS_ACTIVITY_IDLE, 0, 0);
    if (status == ITS_OK) its_world_barrier_leave(world, team, members, wait.epoch);
    return status;
}
