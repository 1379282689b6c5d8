// corpus: nvrtc nvcc; sm_80 sm_90a; -std=c++17
// corpus fast: nvrtc nvcc; sm_80; -std=c++17 -use_fast_math
// corpus nofma: nvcc; sm_80; -std=c++17 -fmad=false -prec-div=false -ftz=true
// corpus: clang+; sm_80; -O3 -std=c++17
// The math library in single and double, intrinsics with rounding modes.

#define EACH1(F) F(sin) F(cos) F(tan) F(asin) F(acos) F(atan) F(sinh) F(cosh) F(tanh) F(asinh) F(acosh) F(atanh) F(exp) \
    F(exp2) F(exp10) F(expm1) F(log) F(log2) F(log10) F(log1p) F(sqrt) F(rsqrt) F(cbrt) F(erf) F(erfc) F(erfinv) \
    F(tgamma) F(lgamma) F(j0) F(y1) F(floor) F(ceil) F(trunc) F(round) F(rint) F(fabs) F(sinpi) F(cospi) F(normcdf)
#define EACH2(F) F(pow) F(atan2) F(fmod) F(remainder) F(hypot) F(fmin) F(fmax) F(copysign) F(fdim) F(nextafter)
#define ONE(name) \
    extern "C" __global__ void name##_f(float *x) { x[threadIdx.x] = name##f(x[threadIdx.x]); } \
    extern "C" __global__ void name##_d(double *x) { x[threadIdx.x] = name(x[threadIdx.x]); }
#define TWO(name) \
    extern "C" __global__ void name##_f(float *x, float *y) { x[threadIdx.x] = name##f(x[threadIdx.x], y[threadIdx.x]); } \
    extern "C" __global__ void name##_d(double *x, double *y) { x[threadIdx.x] = name(x[threadIdx.x], y[threadIdx.x]); }
EACH1(ONE)
EACH2(TWO)

extern "C" __global__ void rounded(float *f, double *d) {
    float a = f[0], b = f[1], c = f[2];
    f[3] = __fadd_rn(a, b) + __fadd_rz(b, c) + __fmul_ru(a, c) + __fmul_rd(a, b) + __fmaf_rz(a, b, c) + __fdiv_rn(a, b);
    f[4] = __fsqrt_rd(a) + __frcp_ru(b) + __fdividef(a, c) + __saturatef(b) + __frsqrt_rn(c);
    f[5] = __sinf(a) + __cosf(b) + __expf(c) + __logf(a) + __powf(a, b) + __exp10f(c) + __tanf(a);
    d[3] = __dadd_ru(d[0], d[1]) + __dmul_rz(d[1], d[2]) + __fma_rd(d[0], d[1], d[2]) + __ddiv_rz(d[0], d[1]);
    d[4] = __dsqrt_ru(d[0]) + __drcp_rn(d[1]) + rcbrt(d[2]);
}

extern "C" __global__ void parts(float *f, double *d, int *n) {
    float s, c;
    sincosf(f[0], &s, &c);
    double ds, dc, whole;
    sincospi(d[0], &ds, &dc);
    f[1] = s + c + frexpf(f[2], n) + ldexpf(f[3], n[1]) + modff(f[4], f + 5) + scalbnf(f[6], 3);
    d[1] = ds + dc + frexp(d[2], n + 2) + modf(d[3], &whole) + whole + logb(d[4]) + remquo(d[5], d[6], n + 3);
    n[4] = isnan(f[1]) + isinf(d[1]) * 2 + signbit(f[2]) * 4 + isfinite(d[2]) * 8 + ilogbf(f[3]) + (int)lrintf(f[4]);
    n[5] = (int)llround(d[7]) + __float2int_rn(f[7]) + __double2hiint(d[0]) + __double2loint(d[1]);
}
