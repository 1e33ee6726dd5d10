/* elements.h - tensors of which every element tells its place in the whole tensor. */
#ifndef WEFT_TESTS_STORE_ELEMENTS_H
#define WEFT_TESTS_STORE_ELEMENTS_H

#include "../tensor/holds.h"
#include "base/base.h"
#include "weft/weft.h"

#include <stdlib.h>

static inline weft_status make_named(weft_context *context, const char *mesh_text,
                                     const char *spec_text, const char *name, weft_tensor **out)
{
    weft_tensor_options options = {.struct_size = sizeof options, .name = name};
    weft_mesh *mesh = NULL;
    weft_spec *spec = NULL;

    WF_TRY(weft_mesh_parse(mesh_text, &mesh));
    WF_TRY(weft_spec_parse(mesh, spec_text, &spec));
    WF_TRY(weft_tensor_create(context, spec, &options, out));
    weft_spec_release(&spec);
    weft_mesh_release(&mesh);
    return WEFT_OK;
}

/* This rank's shard of a f32 tensor whose element I is SALT + I.  The caller frees it. */
static inline float *shard_of(const weft_spec *spec, int32_t rank, int32_t salt, uint64_t *bytes)
{
    float *values;
    weft_segment s;

    *bytes = weft_spec_shard_bytes(spec, rank);
    values = calloc(1, *bytes + 1);
    for (int64_t at = 0; weft_spec_segment(spec, rank, NULL, at, &s); at += s.length)
        for (int64_t i = 0; i < s.length; i++)
            values[s.local + i] = (float)(salt + s.global + i);
    return values;
}

static inline weft_status set_elements(weft_tensor *tensor, int32_t salt)
{
    uint64_t bytes;
    float *values =
        shard_of(weft_tensor_spec(tensor), weft_rank(weft_tensor_context(tensor)), salt, &bytes);
    weft_status status = weft_tensor_from_host(tensor, values, bytes, NULL);

    free(values);
    return status;
}

static inline weft_status check_elements(weft_tensor *tensor, int32_t salt)
{
    int32_t rank = weft_rank(weft_tensor_context(tensor));
    uint64_t bytes;
    float *want = shard_of(weft_tensor_spec(tensor), rank, salt, &bytes), *got = malloc(bytes + 1);
    weft_status status = weft_tensor_to_host(tensor, got, bytes, NULL);

    if (status == WEFT_OK && memcmp(want, got, bytes) != 0)
        status = weft_fail(WEFT_ERR_INTERNAL, "tensor %s differs on rank %d",
                           weft_tensor_name(tensor), rank);
    free(want);
    free(got);
    return status;
}

#endif
