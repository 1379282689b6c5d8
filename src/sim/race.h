/*
 * Finding races: two accesses to the same bytes, at least one of them a write, that nothing orders.
 *
 * The method is FastTrack's (Flanagan and Freund, PLDI 2009), with warps for threads. Every warp, every stream and the
 * host of each PE is an *agent* and has a clock; its vector says how far it has seen all others' clocks. Whoever
 * releases (barriers, mbarriers, st.release, a fence before a strong store, a signal, the end of a kernel ...) hands
 * its vector on, whoever acquires takes the maximum of both. Of every 8 bytes of memory the last write and the last
 * read are kept, each as agent and clock. An access is ordered behind one of them if its vector has that agent at that
 * clock or later.
 *
 *     warp A    store x        bar.sync                     vector of A at the barrier
 *     warp B                   bar.sync     load x          maximum: B has seen A's store
 *     warp C                                load x          C has not: a race
 *
 * Memory is bounded: cells are found by address in tables of fixed size, and a cell that is needed for something else
 * is taken. What is forgotten so, or because only the last read is kept, is a race that is missed, never one that isn't
 * there. That lanes of one warp race with each other isn't found.
 *
 * Cells of symmetric memory, and what is released through it, lie in the world's file, since other PEs need them.
 */
#ifndef ITS_SIM_RACE_H
#define ITS_SIM_RACE_H

#include "sim/world.h"

typedef struct its_race its_race; /* of one PE */

/* Bytes of the world's file that the PEs share for this. */
uint64_t its_race_shared_size(uint32_t n_pes);
/* `shared` is that part of the file, mapped. */
its_status its_race_open(its_context *ctx, const its_world *world, its_race **race);
void its_race_close(its_race *race);

/* -- agents -------------------------------------------------------------------------------------------------------- */

enum { ITS_RACE_STREAMS = 14 }; /* streams beyond that share a clock */

typedef struct its_race_agent {
    its_race *race;
    uint32_t number, birth, now; /* among all agents; its clock when it began, and now */
    bool fenced;                 /* there was a fence: strong stores hand on `fence` */
    uint8_t fence_scope;
    uint32_t *vector;
    uint32_t *fence; /* the vector at the last fence */
    uint32_t *near_seen,
        *far_seen; /* of what strong loads have seen, of this PE and of others: a fence takes them over */
    uint32_t *carried;
} its_race_agent;

typedef enum its_race_scope { ITS_RACE_CTA, ITS_RACE_GPU, ITS_RACE_SYS } its_race_scope;

/* A warp, the index-th stream, or the host of this PE. NULL if memory ran out. */
its_race_agent *its_race_warp(its_race *race);
its_race_agent *its_race_stream(its_race *race, uint64_t index);
its_race_agent *its_race_host(its_race *race);
void its_race_agent_free(its_race_agent *agent);
/* A new thread in the agent's place, which has seen `vector` (NULL: nothing). */
void its_race_begin(its_race_agent *agent, const uint32_t *vector);

/* A vector of zeros, to be freed with its_free; NULL if memory ran out. */
uint32_t *its_race_vector(const its_race *race);
/* Hands on what the agent has seen and done; what it does from here on is not part of it. */
void its_race_give(its_race_agent *agent, uint32_t *vector);
void its_race_take(its_race_agent *agent, const uint32_t *vector);

/*
 * At a barrier of a CTA what a warp has fenced, and what it has seen and not yet fenced, is handed on as well: then one
 * thread may signal for all, or wait for all. A meeting is made like a vector.
 */
uint32_t *its_race_meeting(const its_race *race);
void its_race_clear_meeting(const its_race *race, uint32_t *meeting);
void its_race_meet(its_race_agent *agent, uint32_t *meeting);
void its_race_part(its_race_agent *agent, const uint32_t *meeting);

/* -- through memory ------------------------------------------------------------------------------------------------ */

/*
 * Whoever reads a value has seen what was released with it: signals that grow are told apart by `value`. What is
 * released by an atomic is seen by everybody who acquires there later. `cta` tells apart what is for one CTA only.
 */
typedef struct its_race_word {
    uint64_t address, value;
    bool atomic;
    its_race_scope scope;
    uint64_t cta;
} its_race_word;

void its_race_release(its_race_agent *agent, its_race_word word);
void its_race_acquire(its_race_agent *agent, its_race_word word);
void its_race_strong_store(its_race_agent *agent, its_race_word word);
void its_race_strong_load(its_race_agent *agent, its_race_word word);
void its_race_fence(its_race_agent *agent, its_race_scope scope);
/* Calls that all PEs of a team make: what each has done before is seen by all after. `words` are per PE. */
void its_race_arrive(its_race_agent *agent, its_team members, uint32_t team);
void its_race_leave(its_race_agent *agent, its_team members, uint32_t team);
void its_race_collective(its_race_agent *agent, bool after);

/* -- accesses ------------------------------------------------------------------------------------------------------ */

typedef struct its_race_cell {
    uint64_t tag;            /* which 8 bytes */
    uint64_t write, read;    /* agent, clock, which bytes, whether it was strong; 0: none */
    uint64_t writer, reader; /* site, lane, CTA */
} its_race_cell;

/* Who did something, in words that other PEs can read. */
uint32_t its_race_site(its_race *race, const void *key,
                       const char *(*text)(const void *user, char *buffer, size_t size), const void *user);
/* Keys may stand for something else from now on. */
void its_race_forget_sites(its_race *race);
enum { ITS_RACE_SITE_TEXT = 160 };

typedef struct its_race_by {
    uint32_t site, lane, warp;
    uint32_t each; /* bytes of each lane from `lane` on; 0: all by one */
    uint64_t cta;
} its_race_by;

typedef struct its_race_conflict {
    bool both_write, other_writes, other_pe;
    uint64_t address; /* of the 8 bytes, and which of them */
    uint32_t bytes;
    uint32_t pe; /* of the other access */
    its_race_by other;
    const char *site; /* text of the other one; may be changed by other PEs only if they misbehave */
} its_race_conflict;

/*
 * Asked about each conflict of two writes, which is no harm if both write the same: true if they don't. Who can't know
 * yet notes the conflict down and says false.
 */
typedef bool its_race_writes_differ(void *user, const its_race_conflict *conflict);

/*
 * Checks an access of `bytes` at `at` and remembers it. `cells`: those of a CTA's shared memory that begins at `begin`,
 * or NULL for other memory. False, with the first conflict, if it is not ordered.
 */
bool its_race_access(its_race_agent *agent, its_race_cell *cells, const char *begin, const char *at, size_t bytes,
                     bool write, bool strong, its_race_by by, its_race_conflict *conflict,
                     its_race_writes_differ *differ, void *user);
/* Memory that was allocated anew: nothing is known of it. */
void its_race_fresh(its_race *race, uint64_t address, size_t bytes);

#endif
