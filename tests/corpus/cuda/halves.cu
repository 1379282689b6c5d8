// corpus: nvrtc nvcc; sm_80 sm_90a sm_100a; -std=c++17
// corpus debug: nvcc; sm_90a; -std=c++17 -G
// corpus: clang+; sm_90a; -O3 -std=c++17
// Small floating-point types: half, bfloat16, fp8, fp6, fp4, and their packed forms.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp4.h>
#include <cuda_fp6.h>
#include <cuda_fp8.h>

// Result k of thread i goes to out[k * blockDim.x + i].
#define SPREAD(out, r) for (unsigned k = 0; k < sizeof(r) / sizeof(*r); k++) (out)[k * blockDim.x + threadIdx.x] = r[k];

extern "C" __global__ void half_math(__half *out, const __half *x, const __half *y) {
    int i = threadIdx.x;
    __half a = x[i], b = y[i], p = __habs(a);
    __half r[] = {a + b, a - b, a * b, a / b, __hfma(a, b, a), __hfma_sat(a, b, a), __hfma_relu(a, b, a), __hadd_sat(a, b),
                  __hsub_sat(a, b), __hmul_sat(a, b), p, __hneg(a), __hmin(a, b), __hmax(a, b), __hmin_nan(a, b), __hmax_nan(a, b),
                  hfloor(a), hceil(a), htrunc(a), hrint(a), hsqrt(p), hrcp(b), hrsqrt(p), hexp(b), hexp2(b), hexp10(b),
                  hlog(p), hlog2(p), hlog10(p), hsin(a), hcos(a), htanh(a), __shfl_xor_sync(~0u, a, 1), __ldg(x + i)};
    SPREAD(out, r)
}

extern "C" __global__ void half2_math(__half2 *out, const __half2 *x, const __half2 *y) {
    int i = threadIdx.x;
    __half2 a = x[i], b = y[i];
    __half2 r[] = {a + b, a * b, __hfma2(a, b, a), __hmul2_sat(a, b), __hfma2_relu(a, b, a), __hmax2(a, b), __hmin2_nan(a, b),
                   __lowhigh2highlow(a), __lows2half2(a, b), __highs2half2(a, b), __hcmadd(a, b, a), h2floor(a), h2rcp(b), h2exp2(b),
                   __hgt2(a, b), __hneu2(a, b), __shfl_down_sync(~0u, a, 3)};
    SPREAD(out, r)
}

extern "C" __global__ void half_tests(int *out, const __half *x, const __half *y) {
    __half a = x[threadIdx.x], b = y[threadIdx.x];
    int r[] = {__heq(a, b), __hne(a, b), __hlt(a, b), __hle(a, b), __hgt(a, b), __hge(a, b), __hequ(a, b), __hneu(a, b), __hltu(a, b),
               __hgeu(a, b), __hisnan(a), __hisinf(a), __half2int_rn(a), __half2int_rz(a), __half2int_ru(a), __half2int_rd(a),
               (int)__half2uint_rz(a), __half2short_rn(a), (int)__half2ushort_rz(a), (int)__half2ll_rn(a), (int)__half_as_ushort(a),
               (int)__half2char_rz(a)};
    SPREAD(out, r)
}

extern "C" __global__ void to_half(__half *out, const float *x, const double *d, const int *n) {
    float f = x[threadIdx.x];
    int i = n[threadIdx.x];
    __half r[] = {__float2half(f), __float2half_rz(f), __float2half_ru(f), __float2half_rd(f), __double2half(d[threadIdx.x]),
                  __int2half_rn(i), __int2half_rz(i), __int2half_ru(i), __int2half_rd(i), __uint2half_rn((unsigned)i),
                  __short2half_rn((short)i), __ushort2half_rd((unsigned short)i), __ll2half_rn((long long)i * 3),
                  __ushort_as_half((unsigned short)i), __float22half2_rn(make_float2(f, -f)).y};
    SPREAD(out, r)
}

extern "C" __global__ void half_sums(__half *h, __half2 *h2, __nv_bfloat16 *b, __nv_bfloat162 *b2) {
    int i = threadIdx.x;
    atomicAdd(h + i % 2, __half(1.0f));
    atomicAdd(h2, __half2(__half(1.0f), __half((float)(i % 4))));
    atomicAdd(b + i % 2, __nv_bfloat16(1.0f));
    atomicAdd(b2, __nv_bfloat162(__nv_bfloat16(1.0f), __nv_bfloat16((float)(i % 2))));
}

extern "C" __global__ void bfloat_math(__nv_bfloat16 *out, const __nv_bfloat16 *x, const __nv_bfloat16 *y) {
    int i = threadIdx.x;
    __nv_bfloat16 a = x[i], b = y[i], p = __habs(a);
    __nv_bfloat162 v(a, b), w(b, a), f = __hfma2(v, w, v), m = __hmin2(v, w);
    __nv_bfloat16 r[] = {a + b, a - b, a * b, a / b, __hfma(a, b, a), __hneg(a), p, __hmax(a, b), __hmin(a, b), hfloor(a), hceil(a),
                         hsqrt(p), hrsqrt(p), hexp(b), hexp2(b), hlog(p), hlog2(p), hsin(a), f.x, f.y, m.x, m.y,
                         __float2bfloat16_rz(1.0f / (i + 3)), __float2bfloat16_ru(1.0f / (i + 3)), __double2bfloat16(1.0 / (i + 3)),
                         __int2bfloat16_rn(i * 12345)};
    SPREAD(out, r)
}

extern "C" __global__ void bfloat_tests(int *out, const __nv_bfloat16 *x, const __nv_bfloat16 *y) {
    __nv_bfloat16 a = x[threadIdx.x], b = y[threadIdx.x];
    int r[] = {a < b, a == b, __hgeu(a, b), __hisnan(a), __bfloat162int_rn(a), __bfloat162int_rz(a), __bfloat162int_ru(a),
               __bfloat162int_rd(a), __bfloat162short_rn(a), (int)__bfloat162ull_rz(a), (int)__bfloat16_as_ushort(a)};
    SPREAD(out, r)
}

extern "C" __global__ void to_fp8(unsigned char *out, const float *x) {
    float f = x[threadIdx.x];
    __half h = __float2half(f);
    unsigned char r[] = {__nv_cvt_float_to_fp8(f, __NV_SATFINITE, __NV_E4M3), __nv_cvt_float_to_fp8(f, __NV_NOSAT, __NV_E4M3),
                         __nv_cvt_float_to_fp8(f, __NV_SATFINITE, __NV_E5M2), __nv_cvt_float_to_fp8(f, __NV_NOSAT, __NV_E5M2),
                         __nv_cvt_double_to_fp8(f, __NV_SATFINITE, __NV_E4M3), __nv_cvt_halfraw_to_fp8(h, __NV_SATFINITE, __NV_E4M3),
                         __nv_cvt_halfraw_to_fp8(h, __NV_SATFINITE, __NV_E5M2), __nv_fp8_e4m3(f).__x, __nv_fp8_e5m2(f).__x,
                         (unsigned char)(__nv_cvt_float2_to_fp8x2(make_float2(f, -f), __NV_SATFINITE, __NV_E4M3) >> 8),
                         (unsigned char)(__nv_fp8x4_e5m2(make_float4(f, 1, 2, -f)).__x >> 24),
                         __nv_cvt_bfloat16raw_to_fp8(__float2bfloat16(f), __NV_SATFINITE, __NV_E5M2)};
    SPREAD(out, r)
}

extern "C" __global__ void from_fp8(float *out, const unsigned char *x) {
    unsigned char c = x[threadIdx.x];
    __nv_fp8_e4m3 a;
    __nv_fp8_e5m2 b;
    a.__x = b.__x = c;
    __half2 two = __half2(__nv_cvt_fp8x2_to_halfraw2((unsigned short)(c << 8 | 0x38), __NV_E4M3));
    float r[] = {float(a), float(b), __half2float(__half(__nv_cvt_fp8_to_halfraw(c, __NV_E5M2))), __low2float(two), __high2float(two),
                 (float)(int)a};
    SPREAD(out, r)
}

extern "C" __global__ void to_micro(unsigned char *out, const float2 *x) {
    float2 f = x[threadIdx.x];
    unsigned char r[] = {__nv_cvt_float_to_fp6(f.x, __NV_E2M3, cudaRoundNearest), __nv_cvt_float_to_fp6(f.x, __NV_E3M2, cudaRoundNearest),
                         __nv_cvt_float2_to_fp4x2(f, __NV_E2M1, cudaRoundNearest), __nv_cvt_float_to_fp4(f.y, __NV_E2M1, cudaRoundNearest)};
    SPREAD(out, r)
}

extern "C" __global__ void from_micro(float *out, const unsigned char *x) {
    unsigned char c = x[threadIdx.x];
    __half2 two = __half2(__nv_cvt_fp4x2_to_halfraw2(c, __NV_E2M1));
    float r[] = {__half2float(__half(__nv_cvt_fp6_to_halfraw(c & 63, __NV_E2M3))), __half2float(__half(__nv_cvt_fp6_to_halfraw(c & 63, __NV_E3M2))),
                 __low2float(two), __high2float(two)};
    SPREAD(out, r)
}
