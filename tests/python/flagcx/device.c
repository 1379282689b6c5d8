/* A double for tests, not FlagCX: what device.cu has, in C, to be made LLVM bitcode of. */
#define INTRA(name, kind)                                                                       \
    void name(const void *comm, int group, unsigned index, _Bool multimem, int order) {         \
        unsigned *log = (unsigned *)comm;                                                       \
        log[0] = 1, log[1] = kind, log[2] = (unsigned)group, log[3] = index, log[4] = multimem, \
        log[5] = (unsigned)order;                                                               \
    }

INTRA(flagcxIntraBarrierArriveS, 10)
INTRA(flagcxIntraBarrierWaitS, 11)
INTRA(flagcxIntraBarrierSyncS, 12)
