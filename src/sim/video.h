/*
 * Video instructions: arithmetic of parts of registers. One of them is described by a word, which the operation carries
 * in its `imm`; the SIMD ones do the same for each of two or four parts.
 *
 *     source -> its part, as a number -> operation -> saturated to the destination's part
 *            -> second operation with c, or put into c's place
 */
#ifndef ITS_SIM_VIDEO_H
#define ITS_SIM_VIDEO_H

#include <stdint.h>

enum { /* its_sim_video.what */
       ITS_VIDEO_ADD,
       ITS_VIDEO_SUB,
       ITS_VIDEO_ABSDIFF,
       ITS_VIDEO_MIN,
       ITS_VIDEO_MAX,
       ITS_VIDEO_SHL,
       ITS_VIDEO_SHR,
       ITS_VIDEO_SET,
       ITS_VIDEO_MAD
};
enum { /* its_sim_video.second */
       ITS_VIDEO_NONE,
       ITS_VIDEO_THEN_ADD,
       ITS_VIDEO_THEN_MIN,
       ITS_VIDEO_THEN_MAX
};
enum { /* parts of a register in scalar instructions: bytes from B0 on, halves from H0 on */
       ITS_VIDEO_WHOLE,
       ITS_VIDEO_B0,
       ITS_VIDEO_H0 = ITS_VIDEO_B0 + 4
};
enum { /* its_sim_video.compare */
       ITS_VIDEO_EQ,
       ITS_VIDEO_NE,
       ITS_VIDEO_LT,
       ITS_VIDEO_LE,
       ITS_VIDEO_GT,
       ITS_VIDEO_GE
};

typedef struct its_sim_video {
    uint64_t what : 4, second : 2, compare : 3;
    uint64_t d_signed : 1, a_signed : 1, b_signed : 1, saturates : 1, wraps : 1;
    uint64_t parts  : 3;               /* 1: scalar; 2 or 4 */
    uint64_t d_part : 4;               /* scalar: ITS_VIDEO_...; else a mask of parts */
    uint64_t a_part : 12, b_part : 12; /* scalar: the same; else three bits for each part: of a, or behind it b */
    uint64_t plus_one : 1, negates_product : 1, negates_c : 1; /* of MAD */
    uint64_t shift : 4;                                        /* of MAD: 0, 7 or 15 */
} its_sim_video;
_Static_assert(sizeof(its_sim_video) == 8, "it fits into its_sim_op.imm");

#endif
