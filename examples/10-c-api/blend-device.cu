// One element: x where t is 0, y where t is 1.
extern "C" __device__ float blend(float x, float y, float t) { return x + t * (y - x); }
