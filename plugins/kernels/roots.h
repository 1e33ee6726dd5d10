/* roots.h - square roots, rounded correctly.
 *
 * CUDA and the host have instructions that round correctly.  The instructions of AMD devices do
 * not, and which compilers correct their results differs.  This file corrects them itself. */
#ifndef WEFT_KERNELS_ROOTS_H
#define WEFT_KERNELS_ROOTS_H

#include "portable.h"

#if defined(__CUDACC__)

WK_DEVICE float wk_root(float x)
{
    return __fsqrt_rn(x);
}
WK_DEVICE double wk_root(double x)
{
    return __dsqrt_rn(x);
}

#elif defined(__HIP__) || defined(STANDIN_HIP)

WK_DEVICE float wk_fused(float a, float b, float c)
{
    return __builtin_fmaf(a, b, c);
}
WK_DEVICE double wk_fused(double a, double b, double c)
{
    return __builtin_fma(a, b, c);
}

/* The root of X, for ROOT at most one step away from it.  R is the nearest number exactly if X is
 * between the squares of the midpoints on both sides; a fused product shows on which side it is. */
template <class U, class F> WK_DEVICE F wk_corrected(F x, F root)
{
    F below = wk_bits<F>(U(wk_bits<U>(root) - 1)), above = wk_bits<F>(U(wk_bits<U>(root) + 1));

    if (wk_fused(-below, root, x) <= F(0)) return below;
    if (wk_fused(-above, root, x) > F(0)) return above;
    return root;
}

/* The instruction's result.  The host's is moved by one step, so that the correction shows. */
WK_DEVICE float wk_rough_root(float x)
{
#if defined(__HIP__)
    return __builtin_amdgcn_sqrtf(x);
#else
    return wk_bits<float>(wk_bits<uint32_t>(__builtin_sqrtf(x)) + 1);
#endif
}

WK_DEVICE float wk_root(float x)
{
    return x > 0 ? wk_corrected<uint32_t>(x, wk_rough_root(x)) : x;
}

/* X is 0, or within the range of f32 and not denormal there. */
WK_DEVICE double wk_root(double x)
{
    double root;

    if (!(x > 0)) return x;
    root = double(wk_rough_root(float(x)));
    for (int i = 0; i < 2; i++)
        root = wk_fused(wk_fused(-root, root, x), 0.5 / root, root);
    return wk_corrected<uint64_t>(x, root);
}

#else

WK_DEVICE float wk_root(float x)
{
    return __builtin_sqrtf(x);
}
WK_DEVICE double wk_root(double x)
{
    return __builtin_sqrt(x);
}

#endif
#endif
