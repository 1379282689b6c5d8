typedef unsigned long long u64;

// Sets signals at given times since now: what copies do over links, without the copies.
extern "C" __device__ void feed(u64 *signals, const int *which, const u64 *at_ns, int n, u64 epoch) {
    if (threadIdx.x != 0) return;
    u64 begin, now;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(begin)::"memory");
    for (int i = 0; i < n; i++) {
        do asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now)::"memory");
        while (now - begin < at_ns[i]);
        asm volatile("st.release.sys.global.b64 [%0], %1;" ::"l"(signals + which[i]), "l"(epoch) : "memory");
    }
}
