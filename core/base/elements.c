/* elements.c - reductions and casts of buffers, by the arithmetic that gloo-cpu has too.
 *
 * Its loops are those that every processor of the architecture can run.  All levels of vector
 * hardware give the same bits. */
#include "number.h"

#include "kit/arithmetic/cpu_casts.h"

void wf_elements_reduce(const struct wf_reduction *r, const void *const *sources, void *target,
                        size_t count)
{
    struct cpu_reducer reducer = {
        .dtype = r->dtype, .reduction = r->reduction, .size = r->size, .parts = r->divisor};

    cpu_reduce(&cpu_kernels_base, &reducer, sources, target, count);
}

void wf_elements_cast(uint32_t from, uint32_t to, const void *source, void *target, size_t count)
{
    cpu_cast_elements(&cpu_kernels_base, from, to, source, target, count);
}
