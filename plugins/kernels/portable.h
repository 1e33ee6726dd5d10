/* portable.h - the differences between CUDA, HIP and the tests' host build.
 *
 * HIP code is compiled by plain clang without AMD's headers and libraries, with the compiler's
 * built-ins only.  On the host a kernel is a function that runs one block.  WK_EACH_THREAD then
 * loops over the threads of the block, so code between two WK_BARRIERs must be inside one such
 * loop. */
#ifndef WEFT_KERNELS_PORTABLE_H
#define WEFT_KERNELS_PORTABLE_H

#include "kernel_args.h"

#if defined(__CUDACC__)

#define WK_DEVICE __device__ __forceinline__
#define WK_SHARED __shared__
#define WK_KERNEL(name, args_type)                                                                 \
    extern "C" __global__ void __launch_bounds__(WK_THREADS)                                       \
        name(const __grid_constant__ args_type args)
#define WK_BARRIER() __syncthreads()
WK_DEVICE uint32_t wk_block(void)
{
    return blockIdx.x;
}
#define WK_EACH_THREAD(t) for (uint32_t t = threadIdx.x, wk_once = 1; wk_once != 0; wk_once = 0)

#elif defined(__HIP__)

#define WK_DEVICE __attribute__((device, always_inline)) inline
#define WK_SHARED __attribute__((shared)) static
#define WK_KERNEL(name, args_type)                                                                 \
    extern "C" __attribute__((global, amdgpu_flat_work_group_size(1, WK_THREADS))) void name(      \
        const args_type args)
#define WK_BARRIER()                                                                               \
    do {                                                                                           \
        __builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup");                                     \
        __builtin_amdgcn_s_barrier();                                                              \
        __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup");                                     \
    } while (0)
WK_DEVICE uint32_t wk_block(void)
{
    return __builtin_amdgcn_workgroup_id_x();
}
#define WK_EACH_THREAD(t)                                                                          \
    for (uint32_t t = __builtin_amdgcn_workitem_id_x(), wk_once = 1; wk_once != 0; wk_once = 0)

#else /* the host */

#include <string.h>

#define WK_HOST                    1
#define WK_DEVICE                  inline
#define WK_SHARED                  static thread_local
#define WK_KERNEL(name, args_type) extern "C" void name(const args_type &args)
#define WK_BARRIER()
extern "C" {
extern thread_local uint32_t wk_host_block;
}
WK_DEVICE uint32_t wk_block(void)
{
    return wk_host_block;
}
#define WK_EACH_THREAD(t) for (uint32_t t = 0; t < WK_THREADS; t++)

#endif

#if defined(WK_HOST)
#define WK_UNROLL
#else
#define WK_UNROLL _Pragma("unroll")
#endif

template <class To, class From> WK_DEVICE To wk_bits(From from)
{
    static_assert(sizeof(To) == sizeof(From), "the same bits");
#if defined(WK_HOST)
    To to;
    memcpy(&to, &from, sizeof to);
    return to;
#else
    return __builtin_bit_cast(To, from);
#endif
}

/* An element inside a kernel's arguments. */
template <class T> WK_DEVICE T wk_argument(const uint64_t *words, uint64_t offset = 0)
{
    T value;
    __builtin_memcpy(&value, (const char *)words + offset, sizeof value);
    return value;
}

/* N elements that are loaded and stored at once.  N is 1 if the alignment may be less than the
 * size, as for complex numbers. */
template <class T, uint32_t N> struct alignas(N == 1 ? alignof(T) : sizeof(T) * N) wk_pack {
    T at[N];
};

struct alignas(16) wk_word16 {
    uint64_t low, high;
};

template <uint32_t Bytes> struct wk_word;
template <> struct wk_word<1> {
    using type = uint8_t;
};
template <> struct wk_word<2> {
    using type = uint16_t;
};
template <> struct wk_word<4> {
    using type = uint32_t;
};
template <> struct wk_word<8> {
    using type = uint64_t;
};
template <> struct wk_word<16> {
    using type = wk_word16;
};

/* Addresses that a kernel has looked up itself. */
struct wk_table {
    const uint64_t *at;
};
WK_DEVICE uint64_t wk_buffer(const struct wk_table &table, uint32_t index)
{
    return table.at[index];
}

/* Streaming loads and stores, for data that is accessed once.  Both are needed: one alone slows
 * down. */
#if defined(__HIP__)
typedef uint64_t wk_pair16 __attribute__((ext_vector_type(2)));
#elif defined(__CUDACC__)
typedef ulonglong2 wk_pair16;
#endif

template <class T> WK_DEVICE T wk_load_once(const T *from)
{
#if defined(__CUDACC__)
    if constexpr (sizeof(T) == 16)
        return wk_bits<T>(__ldcs((const wk_pair16 *)from));
    else
        return __ldcs(from);
#elif defined(__HIP__)
    if constexpr (sizeof(T) == 16)
        return wk_bits<T>(__builtin_nontemporal_load((const wk_pair16 *)from));
    else
        return __builtin_nontemporal_load(from);
#else
    return *from;
#endif
}

template <class T> WK_DEVICE void wk_store_once(T *to, T value)
{
#if defined(__CUDACC__)
    if constexpr (sizeof(T) == 16)
        __stcs((wk_pair16 *)to, wk_bits<wk_pair16>(value));
    else
        __stcs(to, value);
#elif defined(__HIP__)
    if constexpr (sizeof(T) == 16)
        __builtin_nontemporal_store(wk_bits<wk_pair16>(value), (wk_pair16 *)to);
    else
        __builtin_nontemporal_store(value, to);
#else
    *to = value;
#endif
}

/* Copy 16 bytes from global to shared memory asynchronously, without a register.  The data is valid
 * after wk_fetched in the same thread. */
WK_DEVICE void wk_fetch16(void *shared, const void *from)
{
#if defined(__CUDACC__)
    asm volatile("cp.async.ca.shared.global [%0], [%1], 16;" ::"r"(
                     (uint32_t)__cvta_generic_to_shared(shared)),
                 "l"(from)
                 : "memory");
#else
    __builtin_memcpy(shared, from, 16);
#endif
}
WK_DEVICE void wk_fetched(void)
{
#if defined(__CUDACC__)
    asm volatile("cp.async.wait_all;" ::: "memory");
#endif
}

/* One of the buffers of a call. */
WK_DEVICE uint64_t wk_buffer(const struct wk_buffers &buffers, uint32_t index)
{
    return buffers.far != nullptr ? buffers.far[index] : buffers.near[index];
}

#endif
