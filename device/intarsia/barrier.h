/*
 * Barriers and signals between the PEs of a communicator, from inside a kernel: loads and stores on memory that all of
 * them reach, no call into a library. docs/barriers.md has the protocol and why it is right.
 *
 *     arrive   what this PE did before is published, and every peer told that this PE has come
 *     wait     until every peer has come; what they published is seen after it
 *     sync     both
 *
 * A barrier is named by a communicator (intarsia.Comm, its_comm_new) and an index. On each PE one group of threads
 * takes part: a thread, a warp or a block, all of whose threads make the call. Each operation has an order; a barrier
 * that hands data over needs RELEASE when it arrives and ACQUIRE when it waits, which ACQ_REL is both of.
 *
 * A call that makes no sense leaves word with the communicator and traps.
 */
#ifndef INTARSIA_BARRIER_H
#define INTARSIA_BARRIER_H

#include <intarsia/comm.h>

enum intarsia_group { INTARSIA_THREAD, INTARSIA_WARP, INTARSIA_BLOCK };
enum intarsia_order { INTARSIA_RELAXED, INTARSIA_ACQUIRE, INTARSIA_RELEASE, INTARSIA_ACQ_REL };
enum intarsia_signal_op { INTARSIA_SIGNAL_SET, INTARSIA_SIGNAL_ADD };
enum intarsia_compare {
    INTARSIA_CMP_EQ,
    INTARSIA_CMP_NE,
    INTARSIA_CMP_GE,
    INTARSIA_CMP_GT,
    INTARSIA_CMP_LE,
    INTARSIA_CMP_LT
};

#define INTARSIA_DEVICE static __device__ __forceinline__

/* -- strong accesses, at system scope: whoever looks, looks at the same word --------------------------------------- */

INTARSIA_DEVICE void intarsia_store_(unsigned long long at, unsigned long long value) {
    asm volatile("st.relaxed.sys.global.u64 [%0], %1;" ::"l"(at), "l"(value) : "memory");
}
INTARSIA_DEVICE void intarsia_add_(unsigned long long at, unsigned long long value) {
    asm volatile("red.relaxed.sys.global.add.u64 [%0], %1;" ::"l"(at), "l"(value) : "memory");
}
INTARSIA_DEVICE unsigned long long intarsia_load_(unsigned long long at) {
    unsigned long long value;
    asm volatile("ld.relaxed.sys.global.u64 %0, [%1];" : "=l"(value) : "l"(at) : "memory");
    return value;
}
INTARSIA_DEVICE unsigned long long intarsia_load_acquire_(unsigned long long at) {
    unsigned long long value;
    asm volatile("ld.acquire.sys.global.u64 %0, [%1];" : "=l"(value) : "l"(at) : "memory");
    return value;
}
INTARSIA_DEVICE void intarsia_fence_(void) {
    asm volatile("fence.acq_rel.sys;" ::: "memory");
}

/* -- groups of threads --------------------------------------------------------------------------------------------- */

INTARSIA_DEVICE unsigned int intarsia_block_size_(void) {
    return blockDim.x * blockDim.y * blockDim.z;
}
INTARSIA_DEVICE unsigned int intarsia_group_index_(int group) {
    unsigned int index = threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
    return group == INTARSIA_THREAD ? 0 : group == INTARSIA_WARP ? index % 32 : index;
}
INTARSIA_DEVICE unsigned int intarsia_group_count_(int group) {
    unsigned int size = intarsia_block_size_();
    return group == INTARSIA_THREAD ? 1 : group == INTARSIA_WARP && size > 32 ? 32 : size;
}
INTARSIA_DEVICE void intarsia_group_sync_(int group) {
    if (group == INTARSIA_WARP) __syncwarp();
    if (group == INTARSIA_BLOCK) __syncthreads();
}

/* -- complaints ---------------------------------------------------------------------------------------------------- */

/* A thread that comes second waits until the first has said everything, or its trap would come too early. */
INTARSIA_DEVICE void intarsia_complain_(intarsia_comm *comm, unsigned int reason, unsigned int op,
                                        unsigned int number) {
    volatile intarsia_comm_complaint *complaint = (volatile intarsia_comm_complaint *)comm->complaint;
    volatile unsigned int *complained = &comm->complained;
    if (atomicExch(&comm->complains, 1u) == 0) {
        complaint->reason = reason;
        complaint->op = op;
        complaint->number = number;
        complaint->cta[0] = blockIdx.x, complaint->cta[1] = blockIdx.y, complaint->cta[2] = blockIdx.z;
        complaint->grid[0] = gridDim.x, complaint->grid[1] = gridDim.y, complaint->grid[2] = gridDim.z;
        intarsia_fence_();
        complaint->ready = 1;
        intarsia_fence_();
        *complained = 1;
    }
    while (!*complained) {}
    asm volatile("trap;");
}

/* What speaks against using a communicator at all: a reason, or INTARSIA_COMM_FINE. */
INTARSIA_DEVICE unsigned int intarsia_check_(unsigned long long magic, unsigned int rank) {
    if (magic == INTARSIA_COMM_FREED) return INTARSIA_COMM_WAS_FREED;
    if (magic != INTARSIA_COMM_LIVE) asm volatile("trap;"); /* the pointer is none of a communicator */
    return rank == INTARSIA_COMM_NO_RANK ? INTARSIA_COMM_NOT_MEMBER : INTARSIA_COMM_FINE;
}

/* -- queries ------------------------------------------------------------------------------------------------------- */

/* Ranks count from 0 within the team; "local" is among the members that are reached by loads and stores. */
INTARSIA_DEVICE int intarsia_comm_rank(const void *comm) { return (int)((const intarsia_comm *)comm)->rank; }
INTARSIA_DEVICE int intarsia_comm_size(const void *comm) { return (int)((const intarsia_comm *)comm)->size; }
INTARSIA_DEVICE int intarsia_comm_local_rank(const void *comm) {
    return (int)((const intarsia_comm *)comm)->local_rank;
}
INTARSIA_DEVICE int intarsia_comm_local_size(const void *comm) {
    return (int)((const intarsia_comm *)comm)->local_size;
}

INTARSIA_DEVICE unsigned long long intarsia_delta_(unsigned long long deltas, unsigned int rank) {
    return ((const unsigned long long *)deltas)[rank];
}

/* Where this PE reaches `address`, symmetric memory of its own, on the PE of rank `peer`. */
INTARSIA_DEVICE void *intarsia_peer_ptr(const void *opaque, const void *address, int peer) {
    intarsia_comm *comm = (intarsia_comm *)opaque;
    unsigned int reason = intarsia_check_(comm->magic, comm->rank);
    if (!reason && (unsigned int)peer >= comm->size) reason = INTARSIA_COMM_NO_PEER;
    if (reason) intarsia_complain_(comm, reason, INTARSIA_COMM_OP_PEER_PTR, (unsigned int)peer);
    return (void *)((unsigned long long)address + intarsia_delta_(comm->deltas, (unsigned int)peer));
}

/* -- barriers ------------------------------------------------------------------------------------------------------ */

/*
 * What one thread needs for one barrier. All of it is read in front of the fence, which empties the L1 cache, and of
 * the wait: then nothing has to be fetched between a store to a peer and a look at one's own slots.
 */
struct intarsia_turn_ {
    unsigned int rank, size;   /* of the communicator */
    unsigned int me, count;    /* this thread, of how many in the group; those from `size` on have no peer */
    unsigned long long state;  /* address of the barrier's intarsia_barrier_state */
    unsigned long long slots;  /* address of its row of slots */
    unsigned long long deltas; /* address */
    unsigned long long delta;  /* of this thread's first peer */
    unsigned long long number; /* of the barrier: epoch + 1 */
};

/* The state is this PE's own, but the next barrier of this index may be another SM's. */
INTARSIA_DEVICE intarsia_barrier_state intarsia_own_(unsigned long long at) {
    intarsia_barrier_state state;
    asm volatile("ld.relaxed.gpu.global.v2.u64 {%0, %1}, [%2];"
                 : "=l"(state.epoch), "=l"(state.arrived)
                 : "l"(at)
                 : "memory");
    return state;
}
INTARSIA_DEVICE void intarsia_set_own_(unsigned long long at, unsigned long long value) {
    asm volatile("st.relaxed.gpu.global.u64 [%0], %1;" ::"l"(at), "l"(value) : "memory");
}

/*
 * Begins an operation `op` at a barrier, and looks at all that can be wrong with it, in one place. The first thread of
 * the group, which alone changes the state, also looks at whether it is its turn.
 */
INTARSIA_DEVICE intarsia_turn_ intarsia_begin_(intarsia_comm *comm, int group, unsigned int index, int order,
                                               unsigned int op) {
    unsigned long long magic = comm->magic, slots = comm->slots, states = comm->states;
    unsigned int rank = comm->rank, size = comm->size, n_barriers = comm->n_barriers, number = index;
    intarsia_turn_ turn = {rank, size, intarsia_group_index_(group), intarsia_group_count_(group)};
    turn.deltas = comm->deltas;
    turn.slots = slots + (unsigned long long)index * size * sizeof(unsigned long long);
    turn.state = states + (unsigned long long)index * sizeof(intarsia_barrier_state);
    unsigned int reason = intarsia_check_(magic, rank);
    if (!reason && index >= n_barriers) reason = INTARSIA_COMM_NO_BARRIER;
    if (!reason && (unsigned int)group > INTARSIA_BLOCK)
        reason = INTARSIA_COMM_BAD_GROUP, number = (unsigned int)group;
    if (!reason && (unsigned int)order > INTARSIA_ACQ_REL)
        reason = INTARSIA_COMM_BAD_ORDER, number = (unsigned int)order;
    if (!reason && turn.me < size) {
        intarsia_barrier_state state = intarsia_own_(turn.state);
        turn.delta = intarsia_delta_(turn.deltas, turn.me);
        turn.number = state.epoch + 1;
        bool first = turn.me == 0, arrived = state.arrived != state.epoch;
        if (first && op == INTARSIA_COMM_OP_WAIT && !arrived) reason = INTARSIA_COMM_NO_ARRIVE;
        if (first && op != INTARSIA_COMM_OP_WAIT && arrived) reason = INTARSIA_COMM_TWO_ARRIVES;
    }
    if (reason) intarsia_complain_(comm, reason, op, number);
    return turn;
}

/*
 * Each thread of the group tells some of the peers. What the whole group did comes before the stores: by the group's
 * own barrier in front of this, and then by each storing thread's fence.
 */
INTARSIA_DEVICE void intarsia_tell_(const intarsia_turn_ &turn, int order) {
    if (turn.me >= turn.size) return;
    if (turn.me == 0) intarsia_set_own_(turn.state + sizeof(unsigned long long), turn.number); /* arrived */
    unsigned long long mine = turn.slots + turn.rank * sizeof(unsigned long long);
    if (order & INTARSIA_RELEASE) intarsia_fence_();
    intarsia_store_(mine + turn.delta, turn.number);
#pragma unroll 1
    for (unsigned int rank = turn.me + turn.count; rank < turn.size; rank += turn.count)
        intarsia_store_(mine + intarsia_delta_(turn.deltas, rank), turn.number);
}

/*
 * Each thread waits for some of the peers; the group's barrier makes what one has seen known to all. The new epoch is
 * known to all by the barrier in front of the next arrive.
 */
INTARSIA_DEVICE void intarsia_await_(const intarsia_turn_ &turn, int group, int order) {
#pragma unroll 1
    for (unsigned int rank = turn.me; rank < turn.size; rank += turn.count) {
        unsigned long long slot = turn.slots + rank * sizeof(unsigned long long);
        if (order & INTARSIA_ACQUIRE)
            while (intarsia_load_acquire_(slot) < turn.number) {}
        else
            while (intarsia_load_(slot) < turn.number) {}
    }
    intarsia_group_sync_(group);
    if (turn.me == 0) intarsia_set_own_(turn.state, turn.number); /* epoch */
}

INTARSIA_DEVICE void intarsia_barrier_arrive(const void *comm, int group, unsigned int index, int order) {
    intarsia_group_sync_(group);
    intarsia_tell_(intarsia_begin_((intarsia_comm *)comm, group, index, order, INTARSIA_COMM_OP_ARRIVE), order);
}
INTARSIA_DEVICE void intarsia_barrier_wait(const void *comm, int group, unsigned int index, int order) {
    intarsia_await_(intarsia_begin_((intarsia_comm *)comm, group, index, order, INTARSIA_COMM_OP_WAIT), group, order);
}
INTARSIA_DEVICE void intarsia_barrier_sync(const void *comm, int group, unsigned int index, int order) {
    intarsia_group_sync_(group);
    intarsia_turn_ turn = intarsia_begin_((intarsia_comm *)comm, group, index, order, INTARSIA_COMM_OP_SYNC);
    intarsia_tell_(turn, order);
    intarsia_await_(turn, group, order);
}

/* -- signals ------------------------------------------------------------------------------------------------------- */

/*
 * One word of a peer is set, or added to, after all that the group did before: a release. The group's first thread does
 * it.
 */
INTARSIA_DEVICE void intarsia_signal(const void *opaque, int group, int peer, unsigned int slot, int op,
                                     unsigned long long value) {
    intarsia_comm *comm = (intarsia_comm *)opaque;
    unsigned int reason = intarsia_check_(comm->magic, comm->rank), number = slot;
    if (!reason && (unsigned int)peer >= comm->size) reason = INTARSIA_COMM_NO_PEER, number = (unsigned int)peer;
    if (!reason && slot >= comm->n_signals) reason = INTARSIA_COMM_NO_SIGNAL;
    if (!reason && (unsigned int)op > INTARSIA_SIGNAL_ADD)
        reason = INTARSIA_COMM_BAD_SIGNAL_OP, number = (unsigned int)op;
    if (reason) intarsia_complain_(comm, reason, INTARSIA_COMM_OP_SIGNAL, number);
    intarsia_group_sync_(group);
    if (intarsia_group_index_(group) != 0) return;
    unsigned long long at = comm->signals + slot * 8ull + intarsia_delta_(comm->deltas, (unsigned int)peer);
    intarsia_fence_();
    if (op == INTARSIA_SIGNAL_SET)
        intarsia_store_(at, value);
    else
        intarsia_add_(at, value);
}

INTARSIA_DEVICE bool intarsia_compares_(unsigned long long seen, int cmp, unsigned long long value) {
    switch (cmp) {
    case INTARSIA_CMP_EQ: return seen == value;
    case INTARSIA_CMP_NE: return seen != value;
    case INTARSIA_CMP_GE: return seen >= value;
    case INTARSIA_CMP_GT: return seen > value;
    case INTARSIA_CMP_LE: return seen <= value;
    default: return seen < value;
    }
}

/* Until this PE's own word compares so: an acquire. What was signalled is seen by the whole group. */
INTARSIA_DEVICE void intarsia_signal_wait(const void *opaque, int group, unsigned int slot, unsigned long long value,
                                          int cmp) {
    intarsia_comm *comm = (intarsia_comm *)opaque;
    unsigned int reason = intarsia_check_(comm->magic, comm->rank), number = slot;
    if (!reason && slot >= comm->n_signals) reason = INTARSIA_COMM_NO_SIGNAL;
    if (!reason && (unsigned int)cmp > INTARSIA_CMP_LT) reason = INTARSIA_COMM_BAD_COMPARE, number = (unsigned int)cmp;
    if (reason) intarsia_complain_(comm, reason, INTARSIA_COMM_OP_SIGNAL_WAIT, number);
    if (intarsia_group_index_(group) == 0)
        while (!intarsia_compares_(intarsia_load_acquire_(comm->signals + slot * 8ull), cmp, value)) {}
    intarsia_group_sync_(group);
}

#endif
