// corpus: nvcc; sm_80 sm_90a; -std=c++17
// corpus: nvrtc; sm_80 sm_90a; -std=c++17 -device-int128
// corpus debug: nvcc; sm_80; -std=c++17 -G
// Integer intrinsics: high halves, bits, bytes, dot products, packed lanes; 128-bit integers and bit fields.

typedef unsigned long long u64;
typedef long long s64;

// Result k of thread i goes to out[k * blockDim.x + i].
#define SPREAD(out, r) for (unsigned k = 0; k < sizeof(r) / sizeof(*r); k++) (out)[k * blockDim.x + threadIdx.x] = r[k];

extern "C" __global__ void words(unsigned *out, const unsigned *x, const unsigned *y, const unsigned *z) {
    unsigned a = x[threadIdx.x], b = y[threadIdx.x], c = z[threadIdx.x];
    int s = (int)a, t = (int)b;
    unsigned r[] = {__umulhi(a, b), (unsigned)__mulhi(s, t), __umul24(a, b), (unsigned)__mul24(s, t), __usad(a, b, c),
                    (unsigned)__sad(s, t, c), __brev(a), (unsigned)__clz(s), (unsigned)__ffs(s), (unsigned)__popc(a),
                    __byte_perm(a, b, c), __funnelshift_l(a, b, c), __funnelshift_lc(a, b, c), __funnelshift_r(a, b, c),
                    __funnelshift_rc(a, b, c), (unsigned)__hadd(s, t), (unsigned)__rhadd(s, t), __uhadd(a, b), __urhadd(a, b),
                    a / (b | 1), a % (b | 1), (unsigned)(s / (t | 1)), (unsigned)(s % (t | 1)), a << (b & 31), a >> (b & 31),
                    (unsigned)(s >> (b & 31)), (unsigned)min(s, t), (unsigned)max(s, t), min(a, b), max(a, b), (unsigned)abs(s)};
    SPREAD(out, r)
}

extern "C" __global__ void longs(u64 *out, const u64 *x, const u64 *y) {
    u64 a = x[threadIdx.x], b = y[threadIdx.x];
    s64 s = (s64)a, t = (s64)b;
    unsigned __int128 wide = (unsigned __int128)a * b;
    __int128 mixed = (__int128)s * t - ((__int128)a << 3);
    u64 r[] = {__umul64hi(a, b), (u64)__mul64hi(s, t), __brevll(a), (u64)__clzll(s), (u64)__ffsll(s), (u64)__popcll(a), a / (b | 1),
               a % (b | 1), (u64)(s / (t | 1)), (u64)(s % (t | 1)), a << (b & 63), a >> (b & 63), (u64)(s >> (b & 63)),
               (u64)(wide >> 64), (u64)wide, (u64)(mixed >> 64), (u64)mixed, (u64)((wide + a) / ((b >> 7) | 1)), (u64)(wide % ((a >> 9) | 3)),
               (u64)(mixed / ((s >> 11) | 1)), (u64)(wide >> (a & 127)), (u64)((unsigned __int128)b << (a & 127)), (u64)(mixed < 0),
               (u64)llmin(s, t), ullmax(a, b), (u64)llabs(s)};
    SPREAD(out, r)
}

extern "C" __global__ void dots(unsigned *out, const unsigned *x, const unsigned *y, const unsigned *z) {
    unsigned a = x[threadIdx.x], b = y[threadIdx.x], c = z[threadIdx.x];
    int s = (int)a, t = (int)b, u = (int)c;
    unsigned r[] = {(unsigned)__dp4a(s, t, u), __dp4a(a, b, c), (unsigned)__dp2a_lo(s, t, u), __dp2a_lo(a, b, c), (unsigned)__dp2a_hi(s, t, u),
                    __dp2a_hi(a, b, c)};
    SPREAD(out, r)
}

extern "C" __global__ void lanes(unsigned *out, const unsigned *x, const unsigned *y) {
    unsigned a = x[threadIdx.x], b = y[threadIdx.x];
    unsigned r[] = {__vadd4(a, b), __vsub4(a, b), __vaddus4(a, b), __vaddss4(a, b), __vsubus4(a, b), __vsubss4(a, b), __vabsdiffu4(a, b),
                    __vmaxu4(a, b), __vmaxs4(a, b), __vminu4(a, b), __vmins4(a, b), __vcmpeq4(a, b), __vcmpgtu4(a, b), __vcmplts4(a, b),
                    __vsetgeu4(a, b), __vavgu4(a, b), __vhaddu4(a, b), __vabs4(a), __vneg4(a), __vsadu4(a, b), __vabsss4(a),
                    __vadd2(a, b), __vsub2(a, b), __vaddss2(a, b), __vmaxs2(a, b), __vminu2(a, b), __vabsdiffs2(a, b), __vcmpgts2(a, b),
                    __vavgs2(a, b), __vneg2(a), __vsads2(a, b)};
    SPREAD(out, r)
}

extern "C" __global__ void three(int *out, const int *x, const int *y, const int *z) {
    int a = x[threadIdx.x], b = y[threadIdx.x], c = z[threadIdx.x];
    bool p, q;
    int r[] = {__vimax3_s32(a, b, c), __vimin3_s32(a, b, c), (int)__vimax3_u32(a, b, c), __vimax_s32_relu(a, b), __viaddmax_s32(a, b, c),
               __viaddmin_s32_relu(a, b, c), (int)__vimax3_s16x2(a, b, c), (int)__viaddmax_s16x2(a, b, c), (int)__viaddmin_u16x2(a, b, c),
               __vibmax_s32(a, b, &p), (int)__vibmin_u16x2(a, b, &p, &q), p * 2 + q};
    SPREAD(out, r)
}

struct Fields {
    unsigned low : 5;
    int middle : 11;
    unsigned high : 16;
    u64 wide : 37;
    s64 rest : 27;
};
union Mix {
    u64 whole;
    unsigned char bytes[8];
    unsigned short halves[4];
};

extern "C" __global__ void fields(int *out, Fields *f, Mix *m, int i) {
    Fields g = f[threadIdx.x];
    out[threadIdx.x * 4] = g.low + g.middle * 100;
    out[threadIdx.x * 4 + 1] = (int)(g.wide >> 20) + (int)g.rest;
    g.middle -= 7;
    g.low++;
    g.wide *= 3;
    g.rest = -g.rest;
    f[threadIdx.x] = g;
    Mix x = m[threadIdx.x];
    x.bytes[i & 7] ^= 0xa5;
    x.halves[(i + 1) & 3] += 300;
    out[threadIdx.x * 4 + 2] = (int)(x.whole >> 32);
    out[threadIdx.x * 4 + 3] = (int)x.whole;
}
