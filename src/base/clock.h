/* The monotonic clock. */
#ifndef ITS_BASE_CLOCK_H
#define ITS_BASE_CLOCK_H

#include <stdint.h>
#include <time.h>

static inline uint64_t its_clock_ns(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

static inline uint64_t its_clock_ms(void) {
    return its_clock_ns() / 1000000u;
}

#endif
