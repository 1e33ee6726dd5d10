/* compute.h - work of a host whose rates `weft step` uses. */
#ifndef WEFT_CLI_BENCH_COMPUTE_H
#define WEFT_CLI_BENCH_COMPUTE_H

#include <stddef.h>
#include <stdint.h>

enum { COMPUTE_SIDE = 128 };

/* Add the product of A and B to C, matrices of COMPUTE_SIDE rows and columns. */
void compute_product(const float *a, const float *b, float *c);
/* Floating-point operations of a product. */
uint64_t compute_product_flops(void);
/* Add X to Y, which have COUNT elements each. */
void compute_sum(const float *x, float *y, size_t count);
/* Bytes that this reads and writes. */
uint64_t compute_sum_bytes(size_t count);

#endif
