/* Epochs, and what the host's threads do: see stuck.h. */
#include "sim/stuck.h"

#include <dirent.h>
#include <unistd.h>

/* -- epochs -------------------------------------------------------------------------------------------------------- */

uint64_t its_world_epoch(const its_world *world) {
    return atomic_load(&world->control->epoch);
}

void its_world_raise(const its_world *world) {
    atomic_fetch_add(&world->control->epoch, 1);
}

bool its_world_blocked(const its_world *world, uint64_t epoch) {
    its_world_control *control = world->control;
    atomic_store(&its_world_me(world)->blocked, epoch);
    for (uint32_t i = 0; i < control->n_pes; i++) {
        const its_world_pe *pe = &control->pes[i];
        uint32_t state = atomic_load(&pe->state);
        if (state != ITS_PE_FINISHED && (state != ITS_PE_RUNNING || atomic_load(&pe->blocked) != epoch)) return false;
    }
    return atomic_load(&control->epoch) == epoch;
}

void its_world_say_stuck(const its_world *world) {
    atomic_store(&world->control->stuck, 1);
    its_world_ring(world);
}

bool its_sim_world_stuck(int fd) {
    uint32_t stuck = 0;
    return pread(fd, &stuck, sizeof stuck, offsetof(its_world_control, stuck)) == (ssize_t)sizeof stuck && stuck;
}

bool its_world_is_stuck(const its_world *world) {
    return atomic_load(&world->control->stuck);
}

/* -- threads of the host ------------------------------------------------------------------------------------------- */

its_status its_hosts_open(its_hosts *hosts) {
    *hosts = (its_hosts){0};
    pthread_mutex_init(&hosts->calls, NULL);
    return pthread_mutex_init(&hosts->mutex, NULL) ? ITS_ERR_NOMEM : ITS_OK;
}

void its_hosts_close(its_hosts *hosts) {
    pthread_mutex_destroy(&hosts->calls);
    pthread_mutex_destroy(&hosts->mutex);
}

/* -- one call at a time -------------------------------------------------------------------------------------------- */

static bool is_held(const its_hosts *hosts) {
    return atomic_load(&hosts->holder) == (uintptr_t)pthread_self();
}

void its_hosts_take(its_hosts *hosts) {
    if (!is_held(hosts)) {
        pthread_mutex_lock(&hosts->calls);
        atomic_store(&hosts->holder, (uintptr_t)pthread_self());
    }
    hosts->depth++;
}

bool its_hosts_give(its_hosts *hosts) {
    if (!is_held(hosts)) return false;
    if (--hosts->depth) return true;
    atomic_store(&hosts->holder, 0);
    pthread_mutex_unlock(&hosts->calls);
    return true;
}

bool its_hosts_step_aside(its_hosts *hosts) {
    return is_held(hosts) && hosts->depth == 1 && its_hosts_give(hosts);
}

void its_hosts_step_back(its_hosts *hosts, bool aside) {
    if (aside) its_hosts_take(hosts);
}

/* -- waits --------------------------------------------------------------------------------------------------------- */

void its_hosts_enter(its_hosts *hosts, its_host_wait *wait) {
    pthread_mutex_lock(&hosts->mutex);
    wait->next = hosts->waits;
    hosts->waits = wait;
    hosts->n_waits++;
    hosts->changes++;
    pthread_mutex_unlock(&hosts->mutex);
}

void its_hosts_wake(const its_hosts *hosts) {
    if (hosts->wake) hosts->wake(hosts->user);
}

void its_hosts_leave(its_hosts *hosts, const its_host_wait *wait) {
    pthread_mutex_lock(&hosts->mutex);
    its_host_wait **at = &hosts->waits;
    while (*at != wait) at = &(*at)->next;
    *at = wait->next;
    hosts->n_waits--;
    hosts->changes++;
    pthread_mutex_unlock(&hosts->mutex);
}

void its_hosts_set_threads(its_hosts *hosts, uint32_t threads) {
    pthread_mutex_lock(&hosts->mutex);
    hosts->threads = threads;
    hosts->announced++;
    pthread_mutex_unlock(&hosts->mutex);
}

void its_hosts_set_count(its_hosts *hosts, int (*count)(void)) {
    pthread_mutex_lock(&hosts->mutex);
    hosts->count = count;
    pthread_mutex_unlock(&hosts->mutex);
}

void its_hosts_set_asked(its_hosts *hosts, int (*asked)(void)) {
    pthread_mutex_lock(&hosts->mutex);
    hosts->asked = asked;
    pthread_mutex_unlock(&hosts->mutex);
}

/* What a thread says that makes a call is newer than a number that was counted before. */
static void count_again(its_hosts *hosts, int (*count)(void), uint64_t announced) {
    int threads = count();
    pthread_mutex_lock(&hosts->mutex);
    if (threads > 0 && hosts->announced == announced) hosts->threads = (uint32_t)threads;
    pthread_mutex_unlock(&hosts->mutex);
}

bool its_hosts_interrupted(its_hosts *hosts) {
    pthread_mutex_lock(&hosts->mutex);
    int (*asked)(void) = hosts->asked, (*count)(void) = hosts->count;
    uint64_t announced = hosts->announced;
    pthread_mutex_unlock(&hosts->mutex);
    if (count) count_again(hosts, count, announced);
    return asked && asked();
}

bool its_hosts_wait(its_hosts *hosts, uint64_t *changes) {
    pthread_mutex_lock(&hosts->mutex);
    bool any = hosts->n_waits != 0;
    *changes = hosts->changes;
    pthread_mutex_unlock(&hosts->mutex);
    return any;
}

/* Threads of this process; more than there can be if that can't be found out. */
static uint32_t count_threads(void) {
    DIR *folder = opendir("/proc/self/task");
    if (!folder) return UINT32_MAX;
    uint32_t count = 0;
    for (const struct dirent *entry = readdir(folder); entry; entry = readdir(folder))
        if (entry->d_name[0] != '.') count++;
    closedir(folder);
    return count;
}

static bool none_is_over(const its_hosts *hosts) {
    for (const its_host_wait *wait = hosts->waits; wait; wait = wait->next)
        if (wait->over(wait->user)) return false;
    return true;
}

bool its_hosts_blocked(its_hosts *hosts, uint64_t changes, uint32_t own_threads) {
    pthread_mutex_lock(&hosts->mutex);
    bool blocked = hosts->n_waits && hosts->changes == changes && none_is_over(hosts);
    uint32_t waiting = hosts->n_waits, threads = hosts->threads;
    pthread_mutex_unlock(&hosts->mutex);
    if (!blocked) return false;
    return threads ? waiting == threads : waiting + own_threads == count_threads();
}
