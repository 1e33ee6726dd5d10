/* serial.h - the elements that parameters and gradients have, computed element by element.
 *
 * Contributions are small integers, so that their sums are exact in every dtype. */
#ifndef WEFT_TESTS_FSDP_SERIAL_H
#define WEFT_TESTS_FSDP_SERIAL_H

#include "base/number.h"
#include "comm/comm.h"
#include "shard/shard.h"
#include "weft/fsdp.h"

#include <math.h>

static inline bool is_here(const weft_context *context, int32_t rank)
{
    return context->is_simulated || context->rank == rank;
}

/* Element AT of a parameter with number WHICH. */
static inline double parameter_value(uint64_t which, int64_t at)
{
    return (double)(wf_hash_mix(which + 1, (uint64_t)at) % 7);
}

/* What the ranks at position FROM of the partial axes contribute to element AT in ROUND. */
static inline double contribution(uint64_t which, int64_t at, int32_t from, uint64_t round)
{
    return (double)(wf_hash_mix(wf_hash_mix(which + 100 * round, (uint64_t)at), (uint64_t)from) %
                    4);
}

/* The position of RANK along the partial axes of SPEC, and their size. */
static inline int32_t partial_position(const weft_spec *spec, int32_t rank, int32_t *size)
{
    const struct wf_layout *layout = &spec->layout;
    int32_t coord[WEFT_MAX_AXES], position = 0;

    *size = 1;
    if (!wf_mesh_coord(layout->mesh, rank, coord)) return 0;
    for (int32_t a = 0; a < layout->mesh->axes; a++) {
        if (layout->placements[a].kind != WEFT_PLACE_PARTIAL) continue;
        position = position * weft_mesh_axis_size(layout->mesh, a) + coord[a];
        *size *= weft_mesh_axis_size(layout->mesh, a);
    }
    return position;
}

/* Call VISIT for every element that this process holds of TENSOR. */
static inline weft_status each_element(weft_tensor *tensor,
                                       weft_status (*visit)(void *user, int32_t rank, int64_t at,
                                                            uint32_t dtype, void *element),
                                       void *user)
{
    weft_context *context = weft_tensor_context(tensor);
    const weft_spec *spec = weft_tensor_spec(tensor);
    size_t bytes = wf_dtype_bytes(spec->layout.dtype);

    WF_TRY(weft_context_wait(context, NULL, WEFT_FOREVER));
    for (int32_t rank = 0; rank < weft_size(context); rank++) {
        weft_tensor_local_info local = {.struct_size = sizeof local};
        weft_segment segment;

        if (!is_here(context, rank)) continue;
        WF_TRY(weft_tensor_local_of(tensor, rank, &local));
        for (int64_t at = 0; weft_spec_segment(spec, rank, NULL, at, &segment);
             at += segment.length)
            for (int64_t i = 0; i < segment.length; i++)
                WF_TRY(visit(user, rank, segment.global + i, spec->layout.dtype,
                             (char *)local.memory + (size_t)(segment.local + i) * bytes));
    }
    return WEFT_OK;
}

struct elements {
    uint64_t which;
    uint64_t round;        /* of a contribution */
    uint64_t rounds;       /* of a sum: from 0 on */
    const bool *present;   /* by round; NULL: all are */
    const weft_spec *spec; /* of the gradient before its reduction */
    double factor;         /* of the sum of all contributions */
    double tolerance;
};

static inline double sum_of(const struct elements *of, int64_t at)
{
    int32_t size;
    double sum = 0;

    (void)partial_position(of->spec, weft_mesh_rank_at(weft_spec_mesh(of->spec), 0), &size);
    for (uint64_t round = 0; round < of->rounds; round++)
        for (int32_t from = 0; from < size && (of->present == NULL || of->present[round]); from++)
            sum += contribution(of->which, at, from, round);
    return sum * of->factor;
}

static inline double load(uint32_t dtype, const void *element)
{
    struct wf_number number = wf_number_load(dtype, element);

    return wf_dtype_is_float(dtype) ? number.re : (double)number.integer;
}

static inline void store(uint32_t dtype, double value, void *element)
{
    wf_number_store(dtype, (struct wf_number){.integer = (uint64_t)value, .re = value}, element);
}

static inline weft_status set_parameter(void *user, int32_t rank, int64_t at, uint32_t dtype,
                                        void *element)
{
    const struct elements *of = user;

    (void)rank;
    store(dtype, parameter_value(of->which, at), element);
    return WEFT_OK;
}

static inline weft_status check_parameter(void *user, int32_t rank, int64_t at, uint32_t dtype,
                                          void *element)
{
    const struct elements *of = user;

    if (load(dtype, element) == parameter_value(of->which, at)) return WEFT_OK;
    return weft_fail(WEFT_ERR_INTERNAL, "rank %d: element %lld of parameter %llu is %g, not %g",
                     rank, (long long)at, (unsigned long long)of->which, load(dtype, element),
                     parameter_value(of->which, at));
}

static inline weft_status set_gradient(void *user, int32_t rank, int64_t at, uint32_t dtype,
                                       void *element)
{
    const struct elements *of = user;
    int32_t size, from = partial_position(of->spec, rank, &size);

    store(dtype, contribution(of->which, at, from, of->round), element);
    return WEFT_OK;
}

static inline weft_status check_gradient(void *user, int32_t rank, int64_t at, uint32_t dtype,
                                         void *element)
{
    const struct elements *of = user;
    double expected = sum_of(of, at);

    if (fabs(load(dtype, element) - expected) <= of->tolerance * fabs(expected)) return WEFT_OK;
    return weft_fail(WEFT_ERR_INTERNAL, "rank %d: element %lld of gradient %llu is %.9g, not %.9g",
                     rank, (long long)at, (unsigned long long)of->which, load(dtype, element),
                     expected);
}

#endif
