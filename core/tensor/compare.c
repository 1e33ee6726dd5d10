/* compare.c - two tensors compared, in whichever layouts they are. */
#include "tensor.h"

#include "base/number.h"

#include <math.h>
#include <string.h>

static const char what[] = "weft_tensor_compare";

/* The result of some ranks.  GLOBAL is the number of the element in the whole tensor. */
struct finding {
    int32_t ranks; /* that compared */
    uint64_t differing;
    double largest, first[2], second[2];
    int64_t global;
    int32_t rank;
};

static bool is_same(double a, double b)
{
    return a == b || (isnan(a) && isnan(b));
}

/* The distance of two parts of elements that are not the same. */
static double distance_of(double a, double b)
{
    if (is_same(a, b)) return 0;
    return isfinite(a) && isfinite(b) ? fabs(a - b) : INFINITY;
}

/* The absolute value of a complex number whose parts have the absolute values A and B, without
 * overflow. */
static double absolute(double a, double b)
{
    double larger = fmax(a, b), ratio = fmin(a, b) / larger;

    return larger == 0 || isinf(larger) ? larger : larger * sqrt(1 + ratio * ratio);
}

static double difference_of(uint32_t dtype, const struct wf_number *a, const struct wf_number *b)
{
    bool less;

    if (wf_dtype_is_complex(dtype))
        return absolute(distance_of(a->re, b->re), distance_of(a->im, b->im));
    if (wf_dtype_is_float(dtype)) return distance_of(a->re, b->re);
    less = wf_dtype_is_signed(dtype) ? (int64_t)a->integer < (int64_t)b->integer
                                     : a->integer < b->integer;
    return (double)(less ? b->integer - a->integer : a->integer - b->integer);
}

static void set_values(uint32_t dtype, const struct wf_number *number, double out[2])
{
    bool is_float = wf_dtype_is_float(dtype) || wf_dtype_is_complex(dtype);

    out[0] = is_float                    ? number->re
             : wf_dtype_is_signed(dtype) ? (double)(int64_t)number->integer
                                         : (double)number->integer;
    out[1] = wf_dtype_is_complex(dtype) ? number->im : 0;
}

/* Compare LENGTH elements; the first one has the number GLOBAL. */
static void compare_run(uint32_t dtype, const char *first, const char *second, int64_t length,
                        int64_t global, struct finding *found)
{
    size_t bytes = wf_dtype_bytes(dtype);

    if (memcmp(first, second, (size_t)length * bytes) == 0) return;
    for (int64_t i = 0; i < length; i++) {
        struct wf_number a = wf_number_load(dtype, first + (size_t)i * bytes);
        struct wf_number b = wf_number_load(dtype, second + (size_t)i * bytes);
        double difference = difference_of(dtype, &a, &b);

        if (difference == 0) continue;
        found->differing++;
        if (difference <= found->largest) continue;
        found->largest = difference;
        found->global = global + i;
        set_values(dtype, &a, found->first);
        set_values(dtype, &b, found->second);
    }
}

/* Add FOUND, of later ranks, to ALL. */
static void merge(const struct finding *found, struct finding *all)
{
    bool is_first = all->differing == 0;
    struct finding sum = *all;

    if (found->differing > 0 && (is_first || found->largest > all->largest ||
                                 (found->largest == all->largest && found->global < all->global)))
        sum = *found;
    sum.ranks = all->ranks + found->ranks;
    sum.differing = all->differing + found->differing;
    *all = sum;
}

/* Compare the shards of one rank of two tensors of one layout. */
static weft_status compare_shards(weft_tensor *first, weft_tensor *second, int32_t rank,
                                  weft_stream *stream, struct finding *found)
{
    struct wf_local *mine = wf_local_of(first, rank), *other = wf_local_of(second, rank);
    uint32_t dtype = first->spec->layout.dtype;
    int64_t bytes = (int64_t)wf_dtype_bytes(dtype);
    void *a = NULL, *b = NULL;
    weft_segment part;
    weft_status status;

    WF_TRY(wf_local_read(first, mine, stream, &a));
    status = wf_local_read(second, other, stream, &b);
    if (status == WEFT_OK) {
        for (int64_t at = 0; weft_spec_segment(first->spec, rank, NULL, at, &part);
             at += part.length)
            compare_run(dtype, (char *)a + part.local * bytes, (char *)b + part.local * bytes,
                        part.length, part.global, found);
        wf_local_unread(second, other, b);
    }
    wf_local_unread(first, mine, a);
    return status;
}

/* The same for all shards here.  A rank outside both meshes, of which OTHER is that of the second
 * tensor as it was given, compares nothing. */
static weft_status compare_locals(weft_tensor *first, weft_tensor *second, const weft_mesh *other,
                                  weft_stream *stream, struct finding *all)
{
    for (int32_t i = 0; i < first->local_count; i++) {
        const struct wf_local *local = &first->locals[i];
        struct finding found = {.rank = local->rank};

        found.ranks = local->shard.member || wf_mesh_index(other, local->rank) >= 0;
        WF_TRY(compare_shards(first, second, local->rank, stream, &found));
        merge(&found, all);
    }
    return WEFT_OK;
}

/* Move both tensors to SPEC, the layout of FIRST without partials, and compare them.  A rank may be
 * in one of the meshes alone, so every rank takes part in both moves, also after a failure. */
static weft_status compare_here(weft_tensor *first, weft_tensor *second, const weft_spec *spec,
                                const struct wf_moving *how, weft_stream *stream,
                                struct finding *found)
{
    weft_tensor *a = NULL, *b = NULL;
    weft_status status = wf_tensor_in(first, spec, how, stream, what, WEFT_OK, &a);

    status = wf_tensor_in(second, spec, how, stream, what, status, &b);
    if (status == WEFT_OK) status = compare_locals(a, b, second->spec->layout.mesh, stream, found);
    weft_tensor_release(&a);
    weft_tensor_release(&b);
    return status;
}

/* Put together what all processes have found. */
static void describe(const struct wf_gathered *got, const weft_spec *spec,
                     weft_tensor_difference_info *out)
{
    struct finding all = {0}, found;

    for (int32_t i = 0; i < got->count; i++) {
        memcpy(&found, got->blobs[i].data, sizeof found);
        merge(&found, &all);
    }
    out->ranks = all.ranks;
    out->differing = all.differing;
    out->equal = all.differing == 0;
    if (out->equal) return;
    out->largest = all.largest;
    out->rank = all.rank;
    memcpy(out->first, all.first, sizeof out->first);
    memcpy(out->second, all.second, sizeof out->second);
    for (int32_t d = spec->layout.dims - 1; d >= 0; d--) {
        out->index[d] = all.global % spec->layout.shape[d];
        all.global /= spec->layout.shape[d];
    }
}

static weft_status check_pair(const weft_tensor *first, const weft_tensor *second)
{
    const struct wf_layout *a = &first->spec->layout, *b = &second->spec->layout;

    if (first->context != second->context)
        return wf_fail(WEFT_ERR_INVALID, "second belongs to another context");
    if (a->dtype != b->dtype)
        return wf_fail(WEFT_ERR_INVALID, "first has %s, but second has %s",
                       weft_dtype_name((enum weft_dtype)a->dtype),
                       weft_dtype_name((enum weft_dtype)b->dtype));
    if (a->dims != b->dims || memcmp(a->shape, b->shape, (size_t)a->dims * sizeof *a->shape) != 0) {
        char one[256], other[256];

        WF_TRY(weft_spec_print(first->spec, one, sizeof one, NULL));
        WF_TRY(weft_spec_print(second->spec, other, sizeof other, NULL));
        return wf_fail(WEFT_ERR_INVALID, "first is %s, but second is %s; the shapes differ", one,
                       other);
    }
    return WEFT_OK;
}

static weft_status check_call(const weft_tensor *first, const weft_tensor *second,
                              weft_stream *stream, const weft_tensor_difference_info *out)
{
    WF_TRY(wf_tensor_check(first, what, "first"));
    WF_TRY(wf_tensor_check(second, what, "second"));
    if (out == NULL) return wf_fail_null(what, "out");
    WF_TRY(wf_fail_named(wf_info_check("weft_tensor_difference_info", out), what));
    WF_TRY(wf_stream_check(first->context, stream, what));
    return wf_tensor_fail(first, check_pair(first, second), what);
}

/* The ranks compare what they pass.  A rank without one of the tensors knows the ranks of the other
 * one's mesh alone; without both it knows none. */
static weft_status agree_on_call(const weft_tensor *first, const weft_tensor *second,
                                 weft_status status)
{
    bool has_first = first != NULL && wf_tensor_is_usable(first);
    bool has_second = second != NULL && wf_tensor_is_usable(second);
    const weft_tensor *one = has_first ? first : second;
    const weft_tensor *other = has_first && has_second ? second : one;

    if (!has_first && !has_second) return status;
    return wf_tensors_agree(
        one->context,
        &(struct wf_passed){
            .from = one->spec, .to = other->spec, .from_name = one->name, .to_name = other->name},
        what, status);
}

weft_status weft_tensor_compare(weft_tensor *first, weft_tensor *second,
                                const weft_move_options *options, weft_stream *stream,
                                weft_tensor_difference_info *out)
{
    weft_tensor_difference_info info = {0};
    const struct wf_moving *how = NULL;
    struct wf_moving room;
    struct finding found = {0};
    struct wf_gathered got = {0};
    weft_spec *spec = NULL;
    weft_status status;

    status = check_call(first, second, stream, out);
    if (status == WEFT_OK) status = wf_moving_read(options, what, &room, &how);
    if (status == WEFT_OK) status = weft_spec_gradient(first->spec, &spec);
    status = agree_on_call(first, second, status);
    if (status != WEFT_OK) {
        weft_spec_release(&spec);
        return status;
    }
    status = compare_here(first, second, spec, how, stream, &found);
    weft_spec_release(&spec);
    status = wf_carrier_of(first->context)
                 ->agree(first->context, first->spec, second->spec, what, status,
                         (weft_blob){&found, sizeof found}, &got);
    if (status == WEFT_OK) describe(&got, first->spec, &info);
    wf_gathered_free(&got);
    if (status != WEFT_OK) return wf_tensor_fail(first, status, what);
    return wf_fail_named(wf_info_write("weft_tensor_difference_info", &info, sizeof info, out),
                         what);
}
