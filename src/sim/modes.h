/* What op->mode means where a decoder and a handler agree on more than a number. */
#ifndef ITS_SIM_MODES_H
#define ITS_SIM_MODES_H

enum { /* min and max */
       ITS_MAX_OF = 1,
       ITS_MIN_MAX_NAN = 2,     /* NaN if either source is */
       ITS_MIN_MAX_XORSIGN = 4, /* of the absolute values, with the product's sign */
};

enum { /* ROUND_F32, ROUND_F64 */
       ITS_SIM_ROUND_ADD,
       ITS_SIM_ROUND_SUB,
       ITS_SIM_ROUND_MUL,
       ITS_SIM_ROUND_FMA,
       ITS_SIM_ROUND_DIV,
       ITS_SIM_ROUND_RCP,
       ITS_SIM_ROUND_SQRT,
       ITS_SIM_ROUND_WHAT = 7,
       ITS_SIM_ROUND_SHIFT = 3, /* then two bits: to nearest, towards zero, down, up */
       ITS_SIM_ROUND_FTZ = 1 << 5
};

/* atom and red */
typedef enum its_sim_atomic {
    ITS_ATOM_ADD,
    ITS_ATOM_MIN,
    ITS_ATOM_MAX,
    ITS_ATOM_AND,
    ITS_ATOM_OR,
    ITS_ATOM_XOR,
    ITS_ATOM_EXCH,
    ITS_ATOM_CAS,
    ITS_ATOM_INC,
    ITS_ATOM_DEC
} its_sim_atomic;

enum { /* STACK */
       ITS_STACK_SAVE,
       ITS_STACK_RESTORE,
       ITS_STACK_ALLOCATE /* imm: alignment */
};

enum { /* BARRIER */
       ITS_BARRIER_SYNC,
       ITS_BARRIER_ARRIVE,
       ITS_BARRIER_POPC,
       ITS_BARRIER_AND,
       ITS_BARRIER_OR
};

enum { /* SHUFFLE */
       ITS_SHUFFLE_UP,
       ITS_SHUFFLE_DOWN,
       ITS_SHUFFLE_BUTTERFLY,
       ITS_SHUFFLE_INDEX
};

enum { /* VOTE */
       ITS_VOTE_ALL,
       ITS_VOTE_ANY,
       ITS_VOTE_UNIFORM,
       ITS_VOTE_BALLOT
};

enum { /* MATCH */
       ITS_MATCH_ANY,
       ITS_MATCH_ALL
};

enum { /* REDUX */
       ITS_REDUX_ADD,
       ITS_REDUX_MIN,
       ITS_REDUX_MAX,
       ITS_REDUX_AND,
       ITS_REDUX_OR,
       ITS_REDUX_XOR,
       ITS_REDUX_ABS = 1 << 8 /* in op->imm, of floating-point reductions, with the bits of min and max */
};

#endif
