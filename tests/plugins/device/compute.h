/* compute.h - what an engine computes, for programs that measure overlap: on processors, on an
 * NVIDIA device with cuBLAS and a kernel of this file, or on processors with copies of a device's
 * memory. */
#ifndef WEFT_TESTS_GPU_COMPUTE_H
#define WEFT_TESTS_GPU_COMPUTE_H

#include "rank.h"

#include <stdbool.h>

/* Choose what computes for the backend of rank.h: matmuls and arithmetic, or arithmetic alone.
 * CUBLAS_LIB names the library of matmuls, with a path or without one.  Ends the program with code
 * 77 if an NVIDIA device needs cuBLAS and there is none. */
void compute_begin(bool with_matmuls);
/* True: compute_spin computes in the call, on a processor; the stream does not order it. */
bool compute_is_immediate(void);
/* "processor", "cuBLAS" or "copies". */
const char *compute_name(void);
/* The dtype of matmuls: bf16 with cuBLAS, otherwise f32. */
enum weft_dtype compute_dtype(void);

/* OUT[rows, columns] = A[rows, depth] B[depth, columns], all dense, in the order of AT. */
void compute_matmul(const void *a, int64_t rows, int64_t depth, const void *b, int64_t columns,
                    void *out, weft_stream *at);
/* Arithmetic for a time in proportion to ROUNDS, in the order of AT: on half of the multiprocessors
 * of this rank, or on one processor. */
void compute_spin(uint64_t rounds, weft_stream *at);

/* Set the COUNT elements at MEMORY, of the device, to small integers that depend on SEED. */
void compute_fill(void *memory, int64_t count, int32_t seed);

#endif
