// corpus: nvrtc nvcc; sm_80 sm_90a; -std=c++17
// corpus debug: nvcc; sm_80; -std=c++17 -G
// corpus lineinfo: nvrtc; sm_80; -std=c++17 -lineinfo
// corpus: clang+; sm_80; -O3 -std=c++17
// corpus debug: clang+; sm_80; -O0 -g -std=c++17
// Loads and stores of every width and cache, arrays with an index that only the run knows, and what must be reported.

typedef unsigned long long u64;
#ifdef __clang__ // whose headers lack these
#define __ldca(p) (*(p))
#define __ldcv(p) (*(const volatile int *)(p))
#define __stwb(p, v) (*(p) = (v))
#define __stcg __stwt
#endif

__constant__ int primes[16] = {2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37, 41, 43, 47, 53};
__constant__ struct { double a; char name[9]; short last; } record = {2.5, "intarsia", -7};
__device__ int hidden[4] = {1, 2, 3, 4};

extern "C" __global__ void caches(int *out, const int *__restrict__ in, int n) {
    int i = threadIdx.x;
    int r[] = {__ldg(in + i), __ldca(in + i + 1), __ldcg(in + i + 2), __ldcv(in + i + 4),
               *(volatile const int *)(in + i), in[(i * 7) % n], primes[in[i] & 15], primes[3], record.last, record.name[i & 7]};
    for (int k = 0; k < 10; k++) out[k * blockDim.x + i] = r[k];
    __stcg(out + 10 * blockDim.x + i, r[0] * 2);
    __stwb(out + 11 * blockDim.x + i, r[1] * 3);
    *(volatile int *)(out + 12 * blockDim.x + i) = (int)(record.a * 2);
}

extern "C" __global__ void widths(float4 *f, double2 *d, longlong2 *l, char4 *c, short *s, unsigned char *b, ushort4 *u, float3 *three) {
    int i = threadIdx.x;
    float4 v = f[i];
    f[i] = make_float4(v.w, v.z, v.y, v.x);
    double2 w = d[i];
    d[i] = make_double2(w.x + w.y, w.x - w.y);
    l[i].x ^= l[i].y;
    char4 x = c[i];
    c[i] = make_char4(-x.x, x.y + 1, x.z >> 1, x.w * 3);
    s[i] = (short)(s[i] * s[i]);
    b[i] = (unsigned char)(b[i] << 1 | b[i] >> 7);
    u[i].z += u[i].x;
    three[i].y = three[i].x + three[i].z;
}

struct Row { char tag; short values[3]; double weight; float rest[5]; };
extern "C" __global__ void structures(Row *rows, int *order, int n) {
    Row local[4]; // an array of structures in local memory, by an index of the run
    for (int k = 0; k < 4; k++) local[k] = rows[threadIdx.x * 4 + k];
    for (int k = 0; k < 4; k++) {
        Row &r = local[order[threadIdx.x * 4 + k] & 3];
        r.values[k % 3] += (short)k;
        r.rest[(k + n) % 5] *= 2;
        r.tag++;
    }
    for (int k = 0; k < 4; k++) rows[threadIdx.x * 4 + k] = local[3 - k];
}

extern "C" __global__ void dynamic_index(int *out, const int *steps, int n) {
    int heap[32], size = 0;
    __shared__ int turned[64];
    for (int i = 0; i < n; i++) { // a heap of the smallest, in local memory
        int at = size++, v = steps[threadIdx.x * n + i];
        for (; at && heap[(at - 1) / 2] > v; at = (at - 1) / 2) heap[at] = heap[(at - 1) / 2];
        heap[at] = v;
    }
    int sum = 0;
    for (int k = 0; size; k++) {
        sum = sum * 3 + heap[0] * (k + 1);
        int v = heap[--size], at = 0;
        for (int next; (next = 2 * at + 1) < size; at = next) {
            if (next + 1 < size && heap[next + 1] < heap[next]) next++;
            if (heap[next] >= v) break;
            heap[at] = heap[next];
        }
        heap[at] = v;
    }
    turned[threadIdx.x * 37 % 64] = sum;
    __syncthreads();
    out[threadIdx.x] = turned[threadIdx.x];
}

extern "C" __global__ void wrong(int *out, int kind, int n) {
    __shared__ int tile[16];
    tile[threadIdx.x & 15] = n;
    __syncthreads();
    int local[4] = {n, n, n, n}, *constant = (int *)primes;
    asm volatile("mov.b64 %0, %0;" : "+l"(constant)); // so that no compiler sees what is stored to
    switch (kind) {
    case 0: out[0] = 1; break;
    case 1: out[n] = 1; break;                                  // past the end
    case 2: *(int *)((char *)out + n) = 1; break;               // not aligned
    case 3: *(volatile int *)nullptr = n; break;                // nowhere
    case 4: out[0] = tile[n * 1000]; break;                     // beyond shared memory
    case 5: out[0] = ((volatile int *)local)[n * 100000]; break; // beyond the stack
    case 6: *(volatile int *)constant = n; break;               // read only
    case 7: out[0] = hidden[n]; break;                          // behind a variable
    case 8: *(volatile u64 *)(u64)n = 1; break;                 // a number for an address
    case 9: if (threadIdx.x == 5) __trap(); break;
    case 10: while (*(volatile int *)out != 12345) {} break;    // nobody writes that
    case 11: if (threadIdx.x < 40) { asm volatile("bar.sync 0, 64;"); } else { asm volatile("bar.sync 0, 96;"); } break;
    case 12: ((void (*)(int))(u64)n)(3); break;                 // no function
    case 13: out[threadIdx.x % 32] = __shfl_sync(0xff, n, 0); break; // lanes that are not in the mask
    }
}
