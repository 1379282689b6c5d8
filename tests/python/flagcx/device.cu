/*
 * A double for tests, not FlagCX: functions of its names and parameters that write down what they were given. The
 * communicator is a log: how many entries it has, then eight words for each.
 */
#include "include/flagcx_device_enums.h"

typedef unsigned int u32;

static __device__ void note(const void *comm, u32 a, u32 b, u32 c, u32 d, u32 e, u32 f, u32 g) {
    if (threadIdx.x) return;
    u32 *log = (u32 *)comm, *entry = log + 1 + 8 * (*log)++;
    entry[0] = a, entry[1] = b, entry[2] = c, entry[3] = d, entry[4] = e, entry[5] = f, entry[6] = g;
}

#define INTRA(name, kind)                                                                                              \
    extern "C" __device__ void name(const void *comm, flagcxCoopKind_t group, u32 index, bool multimem,                \
                                    flagcxMemoryOrder_t order) {                                                       \
        note(comm, kind, group, index, multimem, order, 0, 0);                                                         \
    }
#define TEAM(name, kind)                                                                                               \
    extern "C" __device__ void name(const void *comm, flagcxTeamKind_t team, u32 index, u32 context,                   \
                                    flagcxCoopKind_t group, flagcxMemoryOrder_t order, flagcxMemoryScope_t scope) {    \
        note(comm, kind, team, index, context, group, order, scope);                                                   \
    }

#ifdef WITH_INTRA
INTRA(flagcxIntraBarrierArriveS, 10)
INTRA(flagcxIntraBarrierWaitS, 11)
#ifndef WITHOUT_SYNC
INTRA(flagcxIntraBarrierSyncS, 12)
#endif
#endif
#ifdef WITH_TEAM
TEAM(flagcxDevBarrierArrive, 20)
TEAM(flagcxDevBarrierWait, 21)
TEAM(flagcxDevBarrierSync, 22)
#endif
#ifdef WITH_OLD_TEAM /* without the context, as it once was */
#define OLD(name)                                                                                                      \
    extern "C" __device__ void name(const void *comm, flagcxTeamKind_t team, u32 index, flagcxCoopKind_t group,        \
                                    flagcxMemoryOrder_t order, flagcxMemoryScope_t scope) {}
OLD(flagcxDevBarrierArrive)
OLD(flagcxDevBarrierWait)
OLD(flagcxDevBarrierSync)
#endif
