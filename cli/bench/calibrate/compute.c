/* compute.c - see compute.h.  Loops that a compiler turns into vector instructions, as a plain
 * kernel of a program has them. */
#include "bench/calibrate/compute.h"

void compute_product(const float *restrict a, const float *restrict b, float *restrict c)
{
    for (int i = 0; i < COMPUTE_SIDE; i++)
        for (int k = 0; k < COMPUTE_SIDE; k++)
            for (int j = 0; j < COMPUTE_SIDE; j++)
                c[i * COMPUTE_SIDE + j] += a[i * COMPUTE_SIDE + k] * b[k * COMPUTE_SIDE + j];
}

uint64_t compute_product_flops(void)
{
    return UINT64_C(2) * COMPUTE_SIDE * COMPUTE_SIDE * COMPUTE_SIDE;
}

void compute_sum(const float *restrict x, float *restrict y, size_t count)
{
    for (size_t i = 0; i < count; i++)
        y[i] += x[i];
}

uint64_t compute_sum_bytes(size_t count)
{
    return 3 * count * sizeof(float);
}
