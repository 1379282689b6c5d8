/*
 * How a communicator lies in memory. Read by CUDA compilers and by C alike, so there are only plain types in it.
 *
 *     header, in device memory of each PE             block, in symmetric memory: the same place on each PE
 *     +-------------------------------+               +----------------------------------+
 *     | struct intarsia_comm          | -- block ---> | struct intarsia_comm_block       |
 *     | deltas   [size]               | -- slots ---> | slots   [n_barriers][size]       | <- peers write, owner waits
 *     | pes      [size]               | -- signals -> | signals [n_signals]              | <- peers write, owner waits
 *     | states   [n_barriers]         |               +----------------------------------+
 *     +-------------------------------+ -- complaint -> struct intarsia_comm_complaint, pes [size]
 *
 * A symmetric address of this PE plus deltas[r] is where this PE reaches the same thing on the PE of rank r. Slot
 * [index][r] holds how many times rank r has arrived at barrier `index`: a peer writes its own column and no other.
 */
#ifndef INTARSIA_COMM_LAYOUT_H
#define INTARSIA_COMM_LAYOUT_H

/* What the first word of a header, block or complaint says it is. */
#define INTARSIA_COMM_LIVE 0x6d6d6f636f737469ull
#define INTARSIA_COMM_FREED 0x6472662d6f737469ull
#define INTARSIA_COMM_BLOCK 0x6b6c622d6f737469ull
#define INTARSIA_COMM_COMPLAINT 0x6c706d632d737469ull

#define INTARSIA_COMM_NO_RANK 0xffffffffu /* this PE is no member of the team */

/* The operations that may complain, with the names that they have in device files. */
#define INTARSIA_COMM_OPS(X)              \
    X(ARRIVE, "intarsia_barrier_arrive")  \
    X(WAIT, "intarsia_barrier_wait")      \
    X(SYNC, "intarsia_barrier_sync")      \
    X(SIGNAL, "intarsia_signal")          \
    X(SIGNAL_WAIT, "intarsia_signal_wait") \
    X(PEER_PTR, "intarsia_peer_ptr")

#define INTARSIA_COMM_OP(id, text) INTARSIA_COMM_OP_##id,
enum intarsia_comm_op { INTARSIA_COMM_OPS(INTARSIA_COMM_OP) INTARSIA_COMM_N_OPS };
#undef INTARSIA_COMM_OP

/* Why an operation stopped the kernel. */
enum intarsia_comm_reason {
    INTARSIA_COMM_FINE,
    INTARSIA_COMM_WAS_FREED,
    INTARSIA_COMM_NOT_MEMBER,    /* this PE is not in the communicator's team */
    INTARSIA_COMM_NO_BARRIER,    /* there is no barrier `number` */
    INTARSIA_COMM_NO_SIGNAL,     /* there is no signal `number` */
    INTARSIA_COMM_NO_PEER,       /* there is no rank `number` */
    INTARSIA_COMM_TWO_ARRIVES,   /* at barrier `number`, without a wait between them */
    INTARSIA_COMM_NO_ARRIVE,     /* a wait at barrier `number` that no arrive went before */
    INTARSIA_COMM_BAD_GROUP,     /* `number` is no kind of group */
    INTARSIA_COMM_BAD_ORDER,     /* `number` is no order */
    INTARSIA_COMM_BAD_SIGNAL_OP, /* `number` is no operation on a signal */
    INTARSIA_COMM_BAD_COMPARE    /* `number` is no comparison */
};

/*
 * What an operation complains about: in memory of the host, which can be read when a kernel has failed and nothing on a
 * GPU can be any more. The host fills in who the communicator is, a kernel the rest.
 */
struct intarsia_comm_complaint {
    unsigned long long magic; /* COMPLAINT */
    unsigned int pe, size, n_barriers, n_signals;
    unsigned int reason; /* enum intarsia_comm_reason */
    unsigned int op;     /* enum intarsia_comm_op */
    unsigned int number;
    unsigned int cta[3], grid[3];
    unsigned int ready; /* 1 when all is filled in */
    /* unsigned int pes[size] */
};

struct intarsia_comm {
    unsigned long long magic;      /* LIVE or FREED */
    unsigned int rank, size;       /* of this PE in the team; how many are in the team */
    unsigned int n_barriers, n_signals;
    unsigned int local_rank, local_size; /* among the members that are reached by loads and stores */
    unsigned int pe, n_pes;              /* of this PE in the world */
    unsigned long long block;            /* addresses, as this PE sees them */
    unsigned long long slots;
    unsigned long long signals;
    unsigned long long deltas;
    unsigned long long pes; /* unsigned int[size] */
    unsigned long long states;
    unsigned long long complaint;
    unsigned int complains; /* the first thread that has a complaint sets it, and writes it down */
    unsigned int complained; /* 1 when that is done */
};

/* Barrier `index` as its own PE counts it. arrived is epoch, or epoch + 1 between an arrive and its wait. */
struct intarsia_barrier_state {
    unsigned long long epoch;   /* how many this PE has left */
    unsigned long long arrived; /* how many it has arrived at */
};

struct intarsia_comm_block {
    unsigned long long magic; /* INTARSIA_COMM_BLOCK */
    unsigned long long comm;  /* the header that it belongs to */
};

#endif
