/* number.h - elements of every dtype as exact numbers, and their reductions.
 *
 * Slow and simple: the reference that other implementations are compared with.  The library itself
 * reduces by elements.c, which rounds as backends do. */
#ifndef WEFT_BASE_NUMBER_H
#define WEFT_BASE_NUMBER_H

#include "base.h"

/* An element.  Integers and bool: two's complement in `integer`; floats: `re`; complex: both. */
struct wf_number {
    uint64_t integer;
    double re, im;
};

/* ---- number.c ---- */

struct wf_number wf_number_load(uint32_t dtype, const void *element);
/* Rounds to nearest even; f8 saturates; integers wrap. */
void wf_number_store(uint32_t dtype, struct wf_number number, void *element);
void wf_number_print(uint32_t dtype, const void *element, char *out, size_t capacity);
bool wf_dtype_is_float(uint32_t dtype);
bool wf_dtype_is_complex(uint32_t dtype);
bool wf_dtype_is_signed(uint32_t dtype); /* a signed integer */
/* Half the distance from 1 to the next larger number; 0 for integers. */
double wf_dtype_epsilon(uint32_t dtype);
/* All integers up to this one are exact. */
double wf_dtype_exact_limit(uint32_t dtype);

/* ---- elements.c ---- */

struct wf_reduction {
    uint32_t dtype, reduction; /* not premul_sum */
    uint32_t size;             /* buffers */
    uint32_t divisor;          /* of an average; 0: SIZE */
};

/* TARGET[i] = SOURCES[0][i] op ... op SOURCES[size - 1][i], in this order, with the bits that ranks
 * of gloo-cpu get on one host.  TARGET may be one of SOURCES. */
void wf_elements_reduce(const struct wf_reduction *reduction, const void *const *sources,
                        void *target, size_t count);

/* Convert COUNT elements from dtype FROM to dtype TO, with the bits of gloo-cpu's casts.  Both or
 * neither are complex. */
void wf_elements_cast(uint32_t from, uint32_t to, const void *source, void *target, size_t count);

/* ---- reduce.c ---- */

/* A and B combined; avg and premul_sum add, like sum.  Not rounded to DTYPE. */
struct wf_number wf_number_combine(uint32_t dtype, uint32_t reduction, struct wf_number a,
                                   struct wf_number b);
/* The reduction of VALUES[0 .. size) of DTYPE; for premul_sum they are already multiplied.  Not
 * rounded to DTYPE. */
struct wf_number wf_number_reduce(uint32_t dtype, uint32_t reduction,
                                  const struct wf_number *values, int32_t size);

/* Sums of integers that are averaged. */
__extension__ typedef __int128 wf_wide;

/* A reduction in progress.  An average of integers is the exact sum divided by DIVISOR, rounded
 * towards zero.  An average of floats divides each value by DIVISOR, then adds. */
struct wf_reducing {
    uint32_t dtype, reduction;
    int64_t divisor; /* of an average */
    bool begun;
    struct wf_number value;
    wf_wide sum;
};

void wf_reducing_add(struct wf_reducing *r, struct wf_number value);
/* Not rounded to the dtype. */
struct wf_number wf_reducing_end(const struct wf_reducing *r);
/* As wf_number_store, but an infinity of f8e5m2 stays one. */
void wf_reducing_store(const struct wf_reducing *r, void *element);
/* The reduction of VALUES[0 .. size), stored. */
void wf_number_store_reduced(uint32_t dtype, uint32_t reduction, const struct wf_number *values,
                             int32_t size, int64_t divisor, void *element);

/* ---- identity.c ---- */

/* The identity of REDUCTION as one element of DTYPE. */
void wf_element_identity(uint32_t dtype, uint32_t reduction, void *out);

#endif
