// corpus: nvrtc nvcc; sm_80 sm_90a; -std=c++17
// corpus: clang+; sm_80; -O3 -std=c++17
// Matrix instructions through wmma and as inline assembly.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <mma.h>
using namespace nvcuda;


extern "C" __global__ void half_tiles(const half *a, const half *b, float *c, int lda) {
    wmma::fragment<wmma::matrix_a, 16, 16, 16, half, wmma::row_major> x;
    wmma::fragment<wmma::matrix_b, 16, 16, 16, half, wmma::col_major> y;
    wmma::fragment<wmma::accumulator, 16, 16, 16, float> z;
    wmma::fill_fragment(z, 0.0f);
    for (int k = 0; k < lda; k += 16) {
        wmma::load_matrix_sync(x, a + k, lda);
        wmma::load_matrix_sync(y, b + k, lda);
        wmma::mma_sync(z, x, y, z);
    }
    for (int i = 0; i < z.num_elements; i++) z.x[i] *= 2.0f;
    wmma::store_matrix_sync(c, z, 16, wmma::mem_row_major);
}

extern "C" __global__ void other_tiles(const half *a, const signed char *s, const __nv_bfloat16 *b, const double *d, half *hc,
                                       int *ic, float *fc, double *dc) {
    wmma::fragment<wmma::matrix_a, 32, 8, 16, half, wmma::col_major> hx;
    wmma::fragment<wmma::matrix_b, 32, 8, 16, half, wmma::row_major> hy;
    wmma::fragment<wmma::accumulator, 32, 8, 16, half> hz;
    wmma::load_matrix_sync(hx, a, 32);
    wmma::load_matrix_sync(hy, a, 8);
    wmma::load_matrix_sync(hz, hc, 8, wmma::mem_row_major);
    wmma::mma_sync(hz, hx, hy, hz);
    wmma::store_matrix_sync(hc, hz, 32, wmma::mem_col_major);
    wmma::fragment<wmma::matrix_a, 16, 16, 16, signed char, wmma::row_major> ix;
    wmma::fragment<wmma::matrix_b, 16, 16, 16, signed char, wmma::col_major> iy;
    wmma::fragment<wmma::accumulator, 16, 16, 16, int> iz;
    wmma::fill_fragment(iz, 3);
    wmma::load_matrix_sync(ix, s, 16);
    wmma::load_matrix_sync(iy, s, 16);
    wmma::mma_sync(iz, ix, iy, iz, true);
    wmma::store_matrix_sync(ic, iz, 16, wmma::mem_row_major);
    wmma::fragment<wmma::matrix_a, 16, 16, 16, __nv_bfloat16, wmma::row_major> bx;
    wmma::fragment<wmma::matrix_b, 16, 16, 16, __nv_bfloat16, wmma::row_major> by;
    wmma::fragment<wmma::accumulator, 16, 16, 16, float> bz;
    wmma::fill_fragment(bz, 0.0f);
    wmma::load_matrix_sync(bx, b, 16);
    wmma::load_matrix_sync(by, b, 16);
    wmma::mma_sync(bz, bx, by, bz);
    wmma::store_matrix_sync(fc, bz, 16, wmma::mem_row_major);
    wmma::fragment<wmma::matrix_a, 8, 8, 4, double, wmma::row_major> dx;
    wmma::fragment<wmma::matrix_b, 8, 8, 4, double, wmma::col_major> dy;
    wmma::fragment<wmma::accumulator, 8, 8, 4, double> dz;
    wmma::fill_fragment(dz, 0.0);
    wmma::load_matrix_sync(dx, d, 4);
    wmma::load_matrix_sync(dy, d, 4);
    wmma::mma_sync(dz, dx, dy, dz);
    wmma::store_matrix_sync(dc, dz, 8, wmma::mem_row_major);
    wmma::fragment<wmma::matrix_a, 16, 16, 8, wmma::precision::tf32, wmma::row_major> tx;
    wmma::fragment<wmma::matrix_b, 16, 16, 8, wmma::precision::tf32, wmma::col_major> ty;
    wmma::load_matrix_sync(tx, fc, 8);
    wmma::load_matrix_sync(ty, fc, 8);
    for (int i = 0; i < tx.num_elements; i++) tx.x[i] = wmma::__float_to_tf32(tx.x[i]);
    wmma::fragment<wmma::accumulator, 16, 16, 8, float> tz;
    wmma::fill_fragment(tz, 1.0f);
    wmma::mma_sync(tz, tx, ty, tz);
    wmma::store_matrix_sync(fc, tz, 16, wmma::mem_row_major);
}

extern "C" __global__ void raw(const unsigned *in, float *out, int *iout, double *dout) {
    __shared__ alignas(128) unsigned s[256];
    unsigned a[4], b[2], at = (unsigned)__cvta_generic_to_shared(s + threadIdx.x % 32 * 4);
    float c[4] = {0, 0, 0, 0};
    int d[4] = {1, 2, 3, 4};
    for (int k = threadIdx.x; k < 256; k += 32) s[k] = in[k];
    __syncthreads();
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(a[0]), "=r"(a[1]), "=r"(a[2]), "=r"(a[3]) : "r"(at));
    asm volatile("ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%0, %1}, [%2 + 16];" : "=r"(b[0]), "=r"(b[1]) : "r"(at));
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
                 : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3]) : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
    asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
                 : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3]) : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
    asm volatile("mma.sync.aligned.m16n8k32.row.col.satfinite.s32.s8.u8.s32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
                 : "+r"(d[0]), "+r"(d[1]), "+r"(d[2]), "+r"(d[3]) : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
    asm volatile("mma.sync.aligned.m16n8k256.row.col.s32.b1.b1.s32.and.popc {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
                 : "+r"(d[0]), "+r"(d[1]), "+r"(d[2]), "+r"(d[3]) : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
    unsigned t;
    asm volatile("movmatrix.sync.aligned.m8n8.trans.b16 %0, %1;" : "=r"(t) : "r"(a[3]));
    double x = dout[0], y0 = 0, y1 = 0;
    asm volatile("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%0,%1}, {%2}, {%3}, {%0,%1};" : "+d"(y0), "+d"(y1) : "d"(x), "d"(x));
    for (int i = 0; i < 4; i++) {
        out[threadIdx.x * 4 + i] = c[i];
        iout[threadIdx.x * 4 + i] = d[i];
    }
    iout[128 + threadIdx.x] = (int)t;
    dout[threadIdx.x] = y0 + y1;
}

extern "C" __global__ void sparse(const unsigned *in, float *out) {
    unsigned a[2] = {in[threadIdx.x], in[32 + threadIdx.x]}, b[2] = {in[64 + threadIdx.x], in[96 + threadIdx.x]};
    float c[4] = {0, 0, 0, 0};
    asm volatile("mma.sp.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5}, {%6,%7}, {%0,%1,%2,%3}, %8, 0x1;"
                 : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3]) : "r"(a[0]), "r"(a[1]), "r"(b[0]), "r"(b[1]), "r"(0x4e4e4e4e));
    for (int i = 0; i < 4; i++) out[threadIdx.x * 4 + i] = c[i];
}
