// corpus: nvrtc nvcc; sm_80 sm_90a sm_100a; -std=c++17
// corpus: clang+; sm_90a; -O3 -std=c++17
// Small floating-point types: half, bfloat16, fp8, fp6, fp4, and their packed forms.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp4.h>
#include <cuda_fp6.h>
#include <cuda_fp8.h>

extern "C" __global__ void half_math(__half *h, __half2 *p, float *f) {
    int i = threadIdx.x;
    __half a = h[i], b = h[i + 1];
    h[i] = __hadd(a, b) * b - a / b + hsqrt(a) + hexp(b) + hlog2(a) + hsin(b) + __hfma_relu(a, b, a) + __habs(b) + htanh(a);
    __half2 x = p[i], y = p[i + 1];
    p[i] = __hfma2(x, y, x) + __hmul2_sat(x, y) + __hmax2(x, y) + h2rcp(x) + h2exp2(y) + __lowhigh2highlow(x);
    f[i] = __half2float(__hmin_nan(a, b)) + (float)__hgt(a, b) + (float)__hbeq2(x, y) + __low2float(x) + (float)__half2int_rz(a);
    h[i + 64] = __float2half_rd(f[i]) + __int2half_rn(i) + __ushort_as_half((unsigned short)i) + __double2half(0.1);
    h[i + 65] = __shfl_xor_sync(~0u, a, 1);
    atomicAdd(h + 200, a);
    atomicAdd(p + 200, x);
    h[i + 66] = __ldg(h + 5) + __hcmadd(x, y, x).x;
}

extern "C" __global__ void bfloat_math(__nv_bfloat16 *h, __nv_bfloat162 *p, float *f) {
    int i = threadIdx.x;
    __nv_bfloat16 a = h[i], b = h[i + 1];
    h[i] = a * b + a - b / a + hrsqrt(a) + hexp2(b) + __hneg(a) + __hmax(a, b) + hfloor(a);
    __nv_bfloat162 x = p[i], y = p[i + 1];
    p[i] = __hfma2(x, y, x) + __hmin2(x, y) + __floats2bfloat162_rn(f[0], f[1]);
    f[i] = __bfloat162float(a) + (float)(a < b) + __high2float(x) + (float)__bfloat162short_rn(b);
    atomicAdd(h + 200, a);
    atomicAdd(p + 200, x);
}

extern "C" __global__ void minis(__nv_fp8_e4m3 *a, __nv_fp8_e5m2 *b, __nv_fp8x4_e4m3 *c, float *f, __half2 *h, __nv_fp8_storage_t *s) {
    int i = threadIdx.x;
    f[i] = float(a[i]) + float(b[i]);
    a[i] = __nv_fp8_e4m3(f[i + 1]);
    b[i] = __nv_fp8_e5m2(h[i].x);
    c[i] = __nv_fp8x4_e4m3(make_float4(f[0], f[1], f[2], f[3]));
    s[i] = __nv_cvt_float_to_fp8(f[i], __NV_NOSAT, __NV_E5M2);
    *(__nv_fp8x2_storage_t *)(s + 2) = __nv_cvt_halfraw2_to_fp8x2(h[i], __NV_SATFINITE, __NV_E4M3);
    h[i + 1] = __half2(__nv_cvt_fp8x2_to_halfraw2(*(__nv_fp8x2_storage_t *)s, __NV_E5M2));
}

extern "C" __global__ void micro(__nv_fp6_storage_t *a, __nv_fp4x2_storage_t *b, float2 *f, __half2 *h) {
    int i = threadIdx.x;
    a[i] = __nv_cvt_float_to_fp6(f[i].x, __NV_E2M3, cudaRoundNearest);
    b[i] = __nv_cvt_float2_to_fp4x2(f[i], __NV_E2M1, cudaRoundNearest);
    h[i] = __half2(__nv_cvt_fp4x2_to_halfraw2(b[i + 1], __NV_E2M1));
    h[i + 1].x = __half(__nv_cvt_fp6_to_halfraw(a[i + 1], __NV_E3M2));
}
