// c[i] = a[i] + b[i] for the elements of this CTA: from first to the next CTA's first, or to n.
extern "C" __device__ void vector_add(const float *a, const float *b, float *c, int n, int first, int count) {
    for (int i = first + threadIdx.x; i < first + count && i < n; i += blockDim.x) c[i] = a[i] + b[i];
}
