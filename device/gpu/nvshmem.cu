/*
 * NVSHMEM's device functions, forced out of NVSHMEM's own headers: there they are inline, and nothing but a use gives them
 * a body. What follows this text in the source that is compiled is BEGIN(nvshmem_int_p), then for each function of a list
 * KEEP(nvshmem_int_p), and END.
 *
 * Several modules of this kind may be linked into one: the functions are weak there, and the one here is named after the
 * first of its list.
 *
 * NVRTC has no standard library; these are the traits that the headers take from it.
 */
namespace std {
template <class T, T v> struct integral_constant {
    static constexpr T value = v;
};
template <class A, class B> struct is_same : integral_constant<bool, false> {};
template <class A> struct is_same<A, A> : integral_constant<bool, true> {};
template <class T> struct is_integral : integral_constant<bool, false> {};
template <class T> struct is_signed : integral_constant<bool, false> {};
template <class T> struct is_unsigned : integral_constant<bool, false> {};
#define INTARSIA_INTEGRAL(T, U)                                        \
    template <> struct is_integral<T> : integral_constant<bool, true> {}; \
    template <> struct is_signed<T> : integral_constant<bool, !U> {};  \
    template <> struct is_unsigned<T> : integral_constant<bool, U> {};
INTARSIA_INTEGRAL(bool, true)
INTARSIA_INTEGRAL(char, false)
INTARSIA_INTEGRAL(signed char, false)
INTARSIA_INTEGRAL(unsigned char, true)
INTARSIA_INTEGRAL(short, false)
INTARSIA_INTEGRAL(unsigned short, true)
INTARSIA_INTEGRAL(int, false)
INTARSIA_INTEGRAL(unsigned int, true)
INTARSIA_INTEGRAL(long, false)
INTARSIA_INTEGRAL(unsigned long, true)
INTARSIA_INTEGRAL(long long, false)
INTARSIA_INTEGRAL(unsigned long long, true)
#undef INTARSIA_INTEGRAL
} // namespace std

#define nvshmem_signal_wait_until intarsia_bare_signal_wait_until
#include <nvshmem.h>
#include <nvshmemx.h>
#undef nvshmem_signal_wait_until

/*
 * NVSHMEM 3.4 polls the signal and stops there; behind its other waits it has a fence. Without one, what the signal stands
 * for may be read from a line that the multiprocessor has had in its cache since before.
 */
extern "C" __device__ inline uint64_t nvshmem_signal_wait_until(uint64_t *sig_addr, int cmp, uint64_t cmp_val) {
    uint64_t seen = intarsia_bare_signal_wait_until(sig_addr, cmp, cmp_val);
    asm volatile("fence.acq_rel.sys;" ::: "memory");
    return seen;
}

#define BEGIN(FIRST)                                                                  \
    extern "C" __device__ const void *intarsia_keep_from_##FIRST(int which) { \
        switch (which) {
#define KEEP(NAME) \
    case __LINE__: return (const void *)&NAME;
#define END       \
    default:      \
        return 0; \
        }         \
        }
