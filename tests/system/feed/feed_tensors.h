/* feed_tensors.h - tensors whose elements tell their index and a version. */
#ifndef WEFT_TESTS_FEED_TENSORS_H
#define WEFT_TESTS_FEED_TENSORS_H

#include "base/base.h"
#include "weft/feed.h"
#include "weft/status.h"

#include <check.h>
#include <stdio.h>
#include <string.h>

#define FEED_TOKEN "a token of a test"

/* Byte BYTE of element INDEX of tensor NUMBER. */
static inline uint8_t feed_byte(uint64_t version, size_t number, int64_t index, uint64_t byte)
{
    return (uint8_t)(wf_hash_mix(wf_hash_mix(version, number), (uint64_t)index) >> (8 * byte % 56));
}

/* Set the elements that RANK has of TENSOR to those of VERSION in BUFFER, or compare BUFFER with
 * them: returns the number of elements that differ. */
static inline uint64_t feed_visit(const weft_spec *spec, int32_t rank, size_t number,
                                  uint64_t version, uint8_t *buffer, bool write)
{
    uint64_t bytes = weft_dtype_bytes(weft_spec_dtype(spec)), wrong = 0;
    weft_segment segment;

    for (int64_t at = 0; weft_spec_segment(spec, rank, NULL, at, &segment); at += segment.length)
        for (int64_t i = 0; i < segment.length; i++)
            for (uint64_t b = 0; b < bytes; b++) {
                uint8_t want = feed_byte(version, number, segment.global + i, b);
                uint8_t *have = &buffer[(uint64_t)(segment.local + i) * bytes + b];
                if (write)
                    *have = want;
                else
                    wrong += *have != want;
            }
    return wrong;
}

/* The ranks whose shards this process holds. */
static inline void feed_ranks(weft_context *context, int32_t *first, int32_t *end)
{
    bool all = weft_is_simulated(context);

    *first = all ? 0 : weft_rank(context);
    *end = all ? weft_size(context) : *first + 1;
}

/* Bytes of the shards of TENSOR here. */
static inline uint64_t feed_bytes(weft_context *context, const weft_spec *spec)
{
    int32_t first, end;
    uint64_t bytes = 0;

    feed_ranks(context, &first, &end);
    for (int32_t rank = first; rank < end; rank++)
        bytes += weft_spec_shard_bytes(spec, rank);
    return bytes;
}

/* Set tensor NUMBER to VERSION. */
static inline weft_status feed_write(weft_tensor *tensor, size_t number, uint64_t version)
{
    const weft_spec *spec = weft_tensor_spec(tensor);
    uint64_t bytes = feed_bytes(weft_tensor_context(tensor), spec);
    uint8_t *buffer = wf_alloc(bytes), *at = buffer;
    int32_t first, end;
    weft_status status;

    feed_ranks(weft_tensor_context(tensor), &first, &end);
    for (int32_t rank = first; rank < end; rank++) {
        feed_visit(spec, rank, number, version, at, true);
        at += weft_spec_shard_bytes(spec, rank);
    }
    status = bytes > 0 ? weft_tensor_from_host(tensor, buffer, bytes, NULL) : WEFT_OK;
    wf_free(buffer);
    return status;
}

/* WEFT_OK if tensor NUMBER has VERSION. */
static inline weft_status feed_check(weft_tensor *tensor, size_t number, uint64_t version)
{
    const weft_spec *spec = weft_tensor_spec(tensor);
    uint64_t bytes = feed_bytes(weft_tensor_context(tensor), spec), wrong = 0;
    uint8_t *buffer = wf_alloc(bytes), *at = buffer;
    int32_t first, end;
    weft_status status = bytes > 0 ? weft_tensor_to_host(tensor, buffer, bytes, NULL) : WEFT_OK;

    feed_ranks(weft_tensor_context(tensor), &first, &end);
    for (int32_t rank = first; rank < end && status == WEFT_OK; rank++) {
        wrong += feed_visit(spec, rank, number, version, at, false);
        at += weft_spec_shard_bytes(spec, rank);
    }
    wf_free(buffer);
    if (status != WEFT_OK || wrong == 0) return status;
    return wf_fail(WEFT_ERR_INTERNAL, "%llu bytes of tensor %zu differ from version %llu",
                   (unsigned long long)wrong, number, (unsigned long long)version);
}

/* A tensor t0, t1, ... of the layout PLACEMENTS. */
static inline weft_status feed_tensor(weft_context *context, const char *mesh_text,
                                      const char *spec_text, size_t number, weft_tensor **out)
{
    weft_tensor_options options = {.struct_size = sizeof options};
    weft_mesh *mesh = NULL;
    weft_spec *spec = NULL;
    char name[16];
    weft_status status;

    snprintf(name, sizeof name, "t%zu", number);
    options.name = name;
    status = weft_mesh_parse(mesh_text, &mesh);
    if (status == WEFT_OK) status = weft_spec_parse(mesh, spec_text, &spec);
    if (status == WEFT_OK) status = weft_tensor_create(context, spec, &options, out);
    weft_spec_release(&spec);
    weft_mesh_release(&mesh);
    return status;
}

#endif
