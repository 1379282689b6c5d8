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

#define MODES(F, ...) F##_rn(__VA_ARGS__), F##_rz(__VA_ARGS__), F##_ru(__VA_ARGS__), F##_rd(__VA_ARGS__)

extern "C" __global__ void rounded(float *out, const float *in) {
    float a = in[threadIdx.x * 3], b = in[threadIdx.x * 3 + 1], c = in[threadIdx.x * 3 + 2];
    float r[] = {MODES(__fadd, a, b), MODES(__fsub, a, b), MODES(__fmul, a, b), MODES(__fmaf, a, b, c), MODES(__fdiv, a, b),
                 MODES(__fsqrt, fabsf(c)), MODES(__frcp, b), __frsqrt_rn(fabsf(c))};
    for (int i = 0; i < 29; i++) out[i * blockDim.x + threadIdx.x] = r[i];
}

extern "C" __global__ void rounded_double(double *out, const double *in) {
    double a = in[threadIdx.x * 3], b = in[threadIdx.x * 3 + 1], c = in[threadIdx.x * 3 + 2];
    double r[] = {MODES(__dadd, a, b), MODES(__dsub, a, b), MODES(__dmul, a, b), MODES(__fma, a, b, c), MODES(__ddiv, a, b),
                  MODES(__dsqrt, fabs(c)), MODES(__drcp, b)};
    for (int i = 0; i < 28; i++) out[i * blockDim.x + threadIdx.x] = r[i];
}

extern "C" __global__ void approximate(float *out, const float *in) {
    float a = in[threadIdx.x], b = in[threadIdx.x + 1];
    float r[] = {__fdividef(a, b), __saturatef(a - 2.0f), __sinf(a), __cosf(a), __expf(a), __logf(a), __log2f(a), __log10f(a),
                 __powf(a, b), __exp10f(b), __tanf(a - 1.5f)};
    for (int i = 0; i < 11; i++) out[i * blockDim.x + threadIdx.x] = r[i];
}

extern "C" __global__ void parts(float *f, double *d, int *n) {
    float s, c;
    sincosf(f[0], &s, &c);
    double ds, dc, whole;
    sincospi(d[0], &ds, &dc);
    f[1] = s * 10 + c + frexpf(f[2], n) + ldexpf(f[3], n[1]) + modff(f[4], f + 5) + scalbnf(f[6], 3);
    d[1] = ds + dc + frexp(d[2], n + 2) + modf(d[3], &whole) + whole + logb(d[4]) + remquo(d[5], d[6], n + 3);
    n[4] = isnan(f[1]) + isinf(d[1]) * 2 + signbit(f[2]) * 4 + isfinite(d[2]) * 8 + ilogbf(f[3]) + (int)lrintf(f[4]);
    n[5] = (int)llround(d[7]) + __float2int_rn(f[7]) + __double2hiint(d[0]) + __double2loint(d[0]);
}
