/*
 * A double for tests, not FlagCX: the names and values that Intarsia's barriers rely on, in the shape of FlagCX's
 * header of this name. GROUP_WARP and the like let a test give a wrong value.
 */
#ifndef STAND_IN_ENUMS_H
#define STAND_IN_ENUMS_H

#ifndef GROUP_WARP
#define GROUP_WARP 1
#endif
#ifndef ORDER_RELEASE
#define ORDER_RELEASE 2
#endif
#ifndef TEAM_WORLD
#define TEAM_WORLD 2
#endif

typedef enum {
    FLAGCX_COOP_THREAD,
    FLAGCX_COOP_WARP = GROUP_WARP,
    FLAGCX_COOP_BLOCK = 2,
#ifndef NO_TILE_SPAN
    FLAGCX_COOP_TILE_SPAN,
#endif
    FLAGCX_COOP_LANES = 4
} flagcxCoopKind_t;

typedef enum {
    FLAGCX_MEMORY_ORDER_RELAXED,
    FLAGCX_MEMORY_ORDER_ACQUIRE,
    FLAGCX_MEMORY_ORDER_RELEASE = ORDER_RELEASE,
    FLAGCX_MEMORY_ORDER_ACQ_REL = 3
} flagcxMemoryOrder_t;
#define flagcxDeviceMemoryOrderRelaxed FLAGCX_MEMORY_ORDER_RELAXED
#define flagcxDeviceMemoryOrderAcquire FLAGCX_MEMORY_ORDER_ACQUIRE
#define flagcxDeviceMemoryOrderRelease FLAGCX_MEMORY_ORDER_RELEASE
#define flagcxDeviceMemoryOrderAcqRel FLAGCX_MEMORY_ORDER_ACQ_REL

typedef enum { FLAGCX_TEAM_INTRA, FLAGCX_TEAM_INTER, FLAGCX_TEAM_WORLD = TEAM_WORLD } flagcxTeamKind_t;
typedef enum { flagcxDeviceScopeSystem } flagcxMemoryScope_t;

#endif
