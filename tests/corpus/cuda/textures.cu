// corpus: nvrtc nvcc; sm_80 sm_90a; -std=c++17
// corpus debug: nvcc; sm_80; -std=c++17 -G
// Texture and surface objects, and inline assembly for what has no intrinsic.

extern "C" __global__ void fetches(float4 *out, cudaTextureObject_t t, cudaTextureObject_t u, float x, int i) {
    out[0] = tex1D<float4>(t, x);
    out[1] = tex2D<float4>(t, x, x + 1);
    out[2] = tex3D<float4>(t, x, x, x);
    out[3] = tex2DLod<float4>(t, x, x, 1.5f);
    out[4] = tex2DGrad<float4>(t, x, x, make_float2(1, 0), make_float2(0, 1));
    out[5] = tex1Dfetch<float4>(t, i);
    out[6] = tex2DLayered<float4>(t, x, x, i);
    out[7] = texCubemap<float4>(t, x, x, x);
    out[8] = tex2Dgather<float4>(t, x, x, 2);
    int4 v = tex2D<int4>(u, x, x);
    uint2 w = tex1Dfetch<uint2>(u, i);
    float f = tex2D<float>(t, x, x);
    out[9] = make_float4(v.x, v.y, w.x, f);
}

extern "C" __global__ void surfaces(cudaSurfaceObject_t s, cudaSurfaceObject_t r, int x, int y) {
    float4 f;
    surf2Dread(&f, s, x * 16, y);
    surf2Dwrite(f, s, x * 16, y + 1, cudaBoundaryModeClamp);
    int i = surf1Dread<int>(r, x * 4, cudaBoundaryModeZero);
    surf1Dwrite(i + 1, r, x * 4, cudaBoundaryModeTrap);
    uchar2 c = surf3Dread<uchar2>(s, x * 2, y, 1);
    surf3Dwrite(c, s, x * 2, y, 2);
    short4 h = surf2DLayeredread<short4>(s, x * 8, y, 3);
    surf2DLayeredwrite(h, s, x * 8, y, 4);
}

extern "C" __global__ void raw(unsigned *out, cudaTextureObject_t t, cudaSurfaceObject_t s, float x) {
    unsigned w, a, b, c, d;
    asm volatile("txq.width.b32 %0, [%1];" : "=r"(w) : "l"(t));
    asm volatile("suq.height.b32 %0, [%1];" : "=r"(a) : "l"(s));
    out[0] = w + a;
    asm volatile("tex.level.a2d.v4.u32.f32 {%0, %1, %2, %3}, [%4, {%5, %6, %6, %6}], %6;"
                 : "=r"(a), "=r"(b), "=r"(c), "=r"(d) : "l"(t), "r"(1), "f"(x));
    out[1] = a + b + c + d;
    asm volatile("sured.b.add.1d.u32.clamp [%0, {%1}], %2;" ::"l"(s), "r"(4), "r"(a));
    asm volatile("{ .reg .pred p; tex.2d.v4.f32.f32 {_, %0, _, _}|p, [%1, {%2, %2}]; }" : "=r"(a) : "l"(t), "f"(x));
    out[2] = a;
}
