/*
 * What the simulator tells its NVSHMEM device library, and what the library tells the simulator when a call makes no
 * sense. Read by the CUDA compiler and by C alike, so there are only plain types in it.
 *
 * The simulator finds both variables by name in the modules it loads: a module that holds them uses the library.
 */
#ifndef INTARSIA_SIM_STATE_H
#define INTARSIA_SIM_STATE_H

#define INTARSIA_SIM_STATE_NAME "intarsia_nvshmem_state"
#define INTARSIA_SIM_COMPLAINT_NAME "intarsia_nvshmem_complaint"

#define INTARSIA_SIM_MAX_PES 64
#define INTARSIA_SIM_MAX_TEAMS 32

struct intarsia_sim_team {
    unsigned int start, stride, size; /* PE numbers of the world; size 0: no such team, or not a member */
    unsigned int my_pe;               /* this PE's number in the team */
};

struct intarsia_sim_state {
    unsigned int my_pe, n_pes;
    unsigned long long heap;   /* address of this PE's symmetric heap */
    unsigned long long stride; /* to the next PE's */
    unsigned long long start;  /* address of what may be allocated; the library keeps its counters before it */
    unsigned long long size;   /* bytes from there on */
    struct intarsia_sim_team teams[INTARSIA_SIM_MAX_TEAMS];
};

/* A team's barrier; an array of them is at the start of every PE's heap. See its_team_area in src/sim/world.h. */
struct intarsia_sim_barrier {
    unsigned long long arrived[INTARSIA_SIM_MAX_PES]; /* how many barriers each member has reached */
    unsigned long long epoch;                         /* how many this PE has left */
    unsigned long long inside;                        /* 1 while this PE is in one */
};

/* Why a call stopped the kernel. */
enum intarsia_sim_reason {
    INTARSIA_SIM_NO_REASON,
    INTARSIA_SIM_NOT_SYMMETRIC, /* `address` is not in this PE's symmetric heap */
    INTARSIA_SIM_NO_SUCH_PE,    /* `number` is not a PE */
    INTARSIA_SIM_NO_SUCH_TEAM,  /* `number` is not a team that this PE belongs to */
    INTARSIA_SIM_BAD_COMPARE,   /* `number` is no comparison */
    INTARSIA_SIM_BAD_SIGNAL,    /* `number` is no signal operation */
    INTARSIA_SIM_TWO_BARRIERS   /* this PE entered a barrier of team `number` while it was in one */
};

struct intarsia_sim_complaint {
    unsigned int reason; /* the first thread that has one sets it, and then the rest */
    unsigned int call;   /* INTARSIA_SIM_CALL */
    int number;
    unsigned int ready; /* 1 when all is filled in */
    unsigned long long address;
};

/*
 * Which function it was: the operation, the type in its name (or the size of its elements), who makes the call, and
 * whether it ends in _nbi. The names are put together from these again in src/sim/nvshmem_library.c.
 */
#define INTARSIA_SIM_CALL(op, type, group, nbi) ((op) | (type) << 8 | (group) << 16 | (nbi) << 18)

#define INTARSIA_SIM_OPS(X)                             \
    X(P, "p")                                           \
    X(G, "g")                                           \
    X(PUT, "put")                                       \
    X(GET, "get")                                       \
    X(IPUT, "iput")                                     \
    X(IGET, "iget")                                     \
    X(PUT_SIGNAL, "put_signal")                         \
    X(SIGNAL_OP, "signal_op")                           \
    X(SIGNAL_WAIT_UNTIL, "signal_wait_until")           \
    X(WAIT_UNTIL, "wait_until")                         \
    X(WAIT_UNTIL_ALL, "wait_until_all")                 \
    X(WAIT_UNTIL_ANY, "wait_until_any")                 \
    X(WAIT_UNTIL_SOME, "wait_until_some")               \
    X(WAIT_UNTIL_ALL_VECTOR, "wait_until_all_vector")   \
    X(WAIT_UNTIL_ANY_VECTOR, "wait_until_any_vector")   \
    X(WAIT_UNTIL_SOME_VECTOR, "wait_until_some_vector") \
    X(TEST, "test")                                     \
    X(TEST_ALL, "test_all")                             \
    X(TEST_ANY, "test_any")                             \
    X(TEST_SOME, "test_some")                           \
    X(TEST_ALL_VECTOR, "test_all_vector")               \
    X(TEST_ANY_VECTOR, "test_any_vector")               \
    X(TEST_SOME_VECTOR, "test_some_vector")             \
    X(ATOMIC_FETCH, "atomic_fetch")                     \
    X(ATOMIC_SET, "atomic_set")                         \
    X(ATOMIC_SWAP, "atomic_swap")                       \
    X(ATOMIC_COMPARE_SWAP, "atomic_compare_swap")       \
    X(ATOMIC_FETCH_INC, "atomic_fetch_inc")             \
    X(ATOMIC_INC, "atomic_inc")                         \
    X(ATOMIC_FETCH_ADD, "atomic_fetch_add")             \
    X(ATOMIC_ADD, "atomic_add")                         \
    X(ATOMIC_FETCH_AND, "atomic_fetch_and")             \
    X(ATOMIC_AND, "atomic_and")                         \
    X(ATOMIC_FETCH_OR, "atomic_fetch_or")               \
    X(ATOMIC_OR, "atomic_or")                           \
    X(ATOMIC_FETCH_XOR, "atomic_fetch_xor")             \
    X(ATOMIC_XOR, "atomic_xor")                         \
    X(BARRIER, "barrier")                               \
    X(BARRIER_ALL, "barrier_all")                       \
    X(TEAM_SYNC, "team_sync")                           \
    X(SYNC_ALL, "sync_all")                             \
    X(TEAM_MY_PE, "team_my_pe")                         \
    X(TEAM_N_PES, "team_n_pes")                         \
    X(TEAM_TRANSLATE_PE, "team_translate_pe")

/* What may stand for the type: nothing, the bytes of `mem`, a size in bits, or a type. */
#define INTARSIA_SIM_TYPES(X)                                                                                    \
    X(none)                                                                                                      \
    X(mem) X(8) X(16) X(32) X(64) X(128) X(bfloat16) X(half) X(float) X(double) X(char) X(short) X(schar) X(int) \
        X(long) X(longlong) X(uchar) X(ushort) X(uint) X(ulong) X(ulonglong) X(int8) X(int16) X(int32) X(int64)  \
            X(uint8) X(uint16) X(uint32) X(uint64) X(size) X(ptrdiff)

#define INTARSIA_SIM_OP(id, text) INTARSIA_SIM_OP_##id,
#define INTARSIA_SIM_TYPE(name) INTARSIA_SIM_TYPE_##name,
enum intarsia_sim_op { INTARSIA_SIM_OPS(INTARSIA_SIM_OP) INTARSIA_SIM_N_OPS };
enum intarsia_sim_type { INTARSIA_SIM_TYPES(INTARSIA_SIM_TYPE) INTARSIA_SIM_N_TYPES };
enum intarsia_sim_group { INTARSIA_SIM_THREAD, INTARSIA_SIM_WARP, INTARSIA_SIM_BLOCK };
#undef INTARSIA_SIM_OP
#undef INTARSIA_SIM_TYPE

#endif
