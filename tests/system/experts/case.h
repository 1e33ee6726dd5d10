/* case.h - random routings of tokens, the same on all ranks, compared with a serial reference. */
#ifndef WEFT_TESTS_EXPERTS_CASE_H
#define WEFT_TESTS_EXPERTS_CASE_H

#include "support/device_memory.h"
#include "support/expect.h"
#include "support/local_tensor.h"
#include "support/random.h"
#include "weft/parallel.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { RANKS_MOST = 4, EXPERTS_MOST = 9, COUNT_MOST = 6, WIDTH_MOST = 5, CODE_MOST = 120 };

struct routing_case {
    int32_t ranks, others; /* along the axis, and of another axis */
    char mesh[32];
    weft_experts_options options;
    int64_t step_capacity; /* of the routing; 0: that of the options */
    int64_t width;
    enum weft_dtype dtype;
    bool uses_stream, keeps_dropped;
    int64_t counts[2][RANKS_MOST][EXPERTS_MOST]; /* by coordinate of the other axis */
};

static struct routing_case drawn;

static inline void draw_case(struct random *r, int32_t ranks, int32_t others)
{
    static const enum weft_dtype dtypes[] = {WEFT_DTYPE_F32, WEFT_DTYPE_U8, WEFT_DTYPE_I64};

    drawn = (struct routing_case){.ranks = ranks, .others = others};
    drawn.options = (weft_experts_options){sizeof drawn.options, random_in(r, 1, EXPERTS_MOST),
                                           random_chance(r, 2) ? random_in(r, 1, COUNT_MOST) : 0};
    drawn.step_capacity = random_chance(r, 3) ? random_in(r, 1, COUNT_MOST) : 0;
    drawn.width = random_in(r, 1, WIDTH_MOST);
    drawn.dtype = dtypes[random_in(r, 0, 2)];
    drawn.uses_stream = random_chance(r, 2);
    drawn.keeps_dropped = random_chance(r, 2);
    if (random_chance(r, 2))
        snprintf(drawn.mesh, sizeof drawn.mesh, "ep=%d,dp=%d", ranks, others);
    else
        snprintf(drawn.mesh, sizeof drawn.mesh, "dp=%d,ep=%d", others, ranks);
    for (int32_t d = 0; d < others; d++)
        for (int32_t i = 0; i < ranks; i++)
            for (int32_t e = 0; e < drawn.options.experts; e++)
                drawn.counts[d][i][e] = random_chance(r, 3) ? 0 : random_in(r, 0, COUNT_MOST);
}

/* The case as text, for failures. */
static inline const char *case_text(void)
{
    static char text[2048];
    int at = snprintf(text, sizeof text,
                      "mesh %s, %d experts, capacity %lld (%lld), width %lld, dtype %s, counts",
                      drawn.mesh, drawn.options.experts, (long long)drawn.options.capacity,
                      (long long)drawn.step_capacity, (long long)drawn.width,
                      weft_dtype_name(drawn.dtype));

    for (int32_t d = 0; d < drawn.others; d++)
        for (int32_t i = 0; i < drawn.ranks; i++) {
            at += snprintf(text + at, sizeof text - (size_t)at, " dp%d/ep%d:", d, i);
            for (int32_t e = 0; e < drawn.options.experts; e++)
                at += snprintf(text + at, sizeof text - (size_t)at, "%s%lld", e == 0 ? "" : ",",
                               (long long)drawn.counts[d][i][e]);
        }
    return text;
}

/* ---- elements ---- */

static inline void set(void *memory, int64_t index, int64_t value)
{
    if (drawn.dtype == WEFT_DTYPE_F32) ((float *)memory)[index] = (float)value;
    if (drawn.dtype == WEFT_DTYPE_U8) ((uint8_t *)memory)[index] = (uint8_t)value;
    if (drawn.dtype == WEFT_DTYPE_I64) ((int64_t *)memory)[index] = value;
}

static inline int64_t get(const void *memory, int64_t index)
{
    if (drawn.dtype == WEFT_DTYPE_F32) return (int64_t)((const float *)memory)[index];
    if (drawn.dtype == WEFT_DTYPE_U8) return ((const uint8_t *)memory)[index];
    return ((const int64_t *)memory)[index];
}

/* Element COLUMN of token TOKEN of RANK for EXPERT: not 0, and below CODE_MOST. */
static inline int64_t code_of(int32_t rank, int32_t expert, int64_t token, int64_t column)
{
    return 1 + (rank * 41 + expert * 13 + token * 7 + column) % (CODE_MOST - 1);
}

static inline int64_t kept(int64_t count)
{
    int64_t capacity = drawn.step_capacity > 0 ? drawn.step_capacity : drawn.options.capacity;

    return capacity > 0 && count > capacity ? capacity : count;
}

/* ---- one rank ---- */

/* In host memory, and in the device's. */
struct memory {
    void *tokens, *received;
    size_t token_bytes, received_bytes;
    void *device_tokens, *device_received;
};

static inline weft_status check_info(const weft_routing *routing, int32_t mine,
                                     int64_t (*counts)[EXPERTS_MOST])
{
    weft_routing_info info = {.struct_size = sizeof info};
    int64_t total = drawn.options.experts, chunk = (total + drawn.ranks - 1) / drawn.ranks;
    int64_t first = wf_min_i64(mine * chunk, total), tokens = 0, sent = 0, received = 0;

    EXPECT(weft_routing_get(routing, &info) == WEFT_OK);
    EXPECT(info.first_expert == first &&
           info.expert_count == (size_t)wf_min_i64(chunk, total - first));
    EXPECT(info.by_rank_count == info.expert_count * (size_t)drawn.ranks);
    for (int64_t e = 0; e < total; e++) {
        tokens += counts[mine][e];
        sent += kept(counts[mine][e]);
    }
    for (int32_t i = 0; i < (int32_t)info.expert_count; i++) {
        int64_t sum = 0;

        for (int32_t from = 0; from < drawn.ranks; from++) {
            int64_t count = kept(counts[from][first + i]);

            EXPECT(info.by_rank[i * drawn.ranks + from] == count);
            sum += count;
        }
        EXPECT(info.counts[i] == sum);
        received += sum;
    }
    EXPECT(info.tokens == tokens && info.sent == sent && info.received == received);
    return WEFT_OK;
}

/* Set or compare all elements of this rank's tokens, plus ADD; a dropped token is 0 then, or as it
 * was. */
static inline weft_status visit_tokens(struct memory *m, int32_t mine, const int64_t *counts,
                                       bool writes, int64_t add)
{
    int64_t at = 0;

    for (int32_t e = 0; e < drawn.options.experts; e++)
        for (int64_t k = 0; k < counts[e]; k++)
            for (int64_t c = 0; c < drawn.width; c++, at++) {
                int64_t code = code_of(mine, e, k, c);
                int64_t dropped = drawn.keeps_dropped ? code : 0;

                if (writes)
                    set(m->tokens, at, code);
                else
                    EXPECT(get(m->tokens, at) == (k < kept(counts[e]) ? code + add : dropped));
            }
    return WEFT_OK;
}

/* Compare the received tokens, and add ADD to them. */
static inline weft_status visit_received(struct memory *m, int32_t first, int32_t experts,
                                         int64_t (*counts)[EXPERTS_MOST], int64_t add)
{
    int64_t at = 0;

    for (int32_t e = first; e < first + experts; e++)
        for (int32_t from = 0; from < drawn.ranks; from++)
            for (int64_t k = 0; k < kept(counts[from][e]); k++)
                for (int64_t c = 0; c < drawn.width; c++, at++) {
                    EXPECT(get(m->received, at) == code_of(from, e, k, c));
                    set(m->received, at, code_of(from, e, k, c) + add);
                }
    return WEFT_OK;
}

/* The received tokens of all ranks as one tensor, gathered on all of them. */
static inline weft_status check_tensor(weft_context *ctx, weft_routing *routing,
                                       const struct memory *m, int64_t (*counts)[EXPERTS_MOST])
{
    static _Thread_local int64_t values[RANKS_MOST * EXPERTS_MOST * COUNT_MOST * WIDTH_MOST];
    weft_spec *spec, *everywhere;
    weft_tensor *tensor, *whole;
    int64_t at = 0;

    EXPECT(weft_routing_spec(routing, drawn.dtype, drawn.width, NULL, &spec) == WEFT_OK);
    EXPECT(weft_tensor_wrap(ctx, spec, m->device_received, NULL, &tensor) == WEFT_OK);
    EXPECT(weft_spec_create(weft_spec_mesh(spec), drawn.dtype, 2, weft_spec_shape(spec),
                            (weft_placement[]){{0}}, &everywhere) == WEFT_OK);
    EXPECT(weft_tensor_move(tensor, everywhere, NULL, NULL, &whole) == WEFT_OK);
    EXPECT(weft_tensor_to_host(whole, values, sizeof values, NULL) == WEFT_OK);
    for (int32_t e = 0; e < drawn.options.experts; e++)
        for (int32_t from = 0; from < drawn.ranks; from++)
            for (int64_t k = 0; k < kept(counts[from][e]); k++)
                for (int64_t c = 0; c < drawn.width; c++, at++)
                    EXPECT(get(values, at) == code_of(from, e, k, c));
    EXPECT(weft_spec_shape(spec)[0] * drawn.width == at);
    weft_tensor_release(&whole);
    weft_tensor_release(&tensor);
    weft_spec_release(&everywhere);
    weft_spec_release(&spec);
    return WEFT_OK;
}

static inline weft_status travel(weft_context *ctx, weft_routing *routing, struct memory *m,
                                 int32_t mine, int64_t (*counts)[EXPERTS_MOST], weft_stream *stream)
{
    const weft_routing_call_options options = {sizeof options, drawn.keeps_dropped};
    weft_routing_info info = {.struct_size = sizeof info};
    weft_tensor *tokens, *received;
    weft_work *work;

    EXPECT(weft_routing_get(routing, &info) == WEFT_OK);
    WF_TRY(visit_tokens(m, mine, counts[mine], true, 0));
    EXPECT(memory_make(ctx, m->tokens, m->token_bytes, &m->device_tokens) == WEFT_OK);
    EXPECT(memory_make(ctx, m->received, m->received_bytes, &m->device_received) == WEFT_OK);
    tokens = local_rows(ctx, drawn.dtype, info.tokens, drawn.width, m->device_tokens);
    received = local_rows(ctx, drawn.dtype, info.received, drawn.width, m->device_received);
    EXPECT(tokens != NULL && received != NULL);
    EXPECT(weft_routing_dispatch(routing, tokens, received, &options, stream, &work) == WEFT_OK);
    EXPECT(weft_work_wait(work, WEFT_FOREVER) == WEFT_OK);
    weft_work_release(&work);
    EXPECT(memory_copy(ctx, m->device_received, m->received, m->received_bytes, stream) == WEFT_OK);
    WF_TRY(check_tensor(ctx, routing, m, counts));
    WF_TRY(visit_received(m, info.first_expert, (int32_t)info.expert_count, counts, 3));
    EXPECT(memory_copy(ctx, m->received, m->device_received, m->received_bytes, NULL) == WEFT_OK);
    EXPECT(weft_routing_combine(routing, received, tokens, &options, stream, NULL) == WEFT_OK);
    EXPECT(memory_copy(ctx, m->device_tokens, m->tokens, m->token_bytes, stream) == WEFT_OK);
    weft_tensor_release(&received);
    weft_tensor_release(&tokens);
    return visit_tokens(m, mine, counts[mine], false, 3);
}

static inline weft_status run_step(weft_context *ctx, weft_experts *experts, int32_t mine,
                                   int64_t (*counts)[EXPERTS_MOST], weft_stream *stream)
{
    weft_routing_options options = {sizeof options, drawn.step_capacity};
    weft_experts_info about = {.struct_size = sizeof about};
    weft_routing_info info = {.struct_size = sizeof info};
    size_t row = (size_t)drawn.width * weft_dtype_bytes(drawn.dtype);
    struct memory m = {0};
    weft_routing *routing;
    weft_status status;

    EXPECT(weft_experts_get(experts, &about) == WEFT_OK);
    EXPECT(about.experts == drawn.options.experts && about.ranks == drawn.ranks);
    EXPECT(about.capacity == drawn.options.capacity);
    EXPECT(weft_experts_route(experts, (size_t)drawn.options.experts, counts[mine], &options,
                              stream, &routing) == WEFT_OK);
    EXPECT(weft_routing_get(routing, &info) == WEFT_OK);
    EXPECT(about.first == info.first_expert && (size_t)about.here == info.expert_count);
    m.token_bytes = (size_t)info.tokens * row;
    m.received_bytes = (size_t)info.received * row;
    m.tokens = calloc(m.token_bytes + 1, 1);
    m.received = calloc(m.received_bytes + 1, 1);
    status = check_info(routing, mine, counts);
    if (status == WEFT_OK) status = travel(ctx, routing, &m, mine, counts, stream);
    free(m.tokens);
    free(m.received);
    EXPECT(weft_free(ctx, m.device_tokens) == WEFT_OK);
    EXPECT(weft_free(ctx, m.device_received) == WEFT_OK);
    weft_routing_release(&routing);
    return status;
}

/* Run the case on this rank. */
static inline weft_status run_case(weft_context *ctx)
{
    int32_t coord[WEFT_MAX_AXES], axis;
    weft_experts *experts;
    weft_mesh *mesh;
    weft_stream *stream = NULL;
    weft_status status = WEFT_OK;

    EXPECT(weft_mesh_parse(drawn.mesh, &mesh) == WEFT_OK);
    EXPECT(weft_mesh_find_axis(mesh, "ep", &axis) == WEFT_OK);
    EXPECT(weft_mesh_coord_of(mesh, weft_rank(ctx), coord) == WEFT_OK);
    EXPECT(weft_experts_create(ctx, mesh, "ep", &drawn.options, &experts) == WEFT_OK);
    if (drawn.uses_stream) EXPECT(weft_stream_create(ctx, &stream) == WEFT_OK);
    for (int again = 0; again < 2 && status == WEFT_OK; again++)
        status = run_step(ctx, experts, coord[axis], drawn.counts[coord[1 - axis]], stream);
    weft_stream_release(&stream);
    weft_experts_release(&experts);
    weft_mesh_release(&mesh);
    return status;
}

#endif
