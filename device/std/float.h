/* <float.h> and <cfloat> for device files. */
#pragma once
#ifndef FLT_MAX
#define FLT_RADIX 2
#define FLT_MANT_DIG 24
#define FLT_DIG 6
#define FLT_MIN_EXP (-125)
#define FLT_MAX_EXP 128
#define FLT_MIN 0x1p-126f
#define FLT_MAX 0x1.fffffep127f
#define FLT_EPSILON 0x1p-23f
#define FLT_TRUE_MIN 0x1p-149f
#define DBL_MANT_DIG 53
#define DBL_DIG 15
#define DBL_MIN_EXP (-1021)
#define DBL_MAX_EXP 1024
#define DBL_MIN 0x1p-1022
#define DBL_MAX 0x1.fffffffffffffp1023
#define DBL_EPSILON 0x1p-52
#define DBL_TRUE_MIN 0x1p-1074
#endif
