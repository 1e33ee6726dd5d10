/* What calls that overlap communicate, that they overlap, and how they fail. */
#include "case.h"

#include "overlap/overlap.h"
#include "support/counts.h"
#include "support/peek.h"
#include "support/suite.h"
#include "weft/trace.h"

#include <sched.h>
#include <time.h>

enum { RANKS = 3, ROWS = 12, WIDTH = 4 };

#define CALL_OF(rows, width, dtype, chunks, flops)                                                 \
    (&(struct call){rows, width, dtype, chunks, flops})
#define CALL(chunks) CALL_OF(ROWS, WIDTH, WEFT_DTYPE_F32, chunks, 0)

/* One rank of a job of RANKS ranks. */
struct rank {
    weft_context *ctx;
    weft_overlap *overlap;
    struct engine engine;
    float shard[ROWS * WIDTH];
};

static weft_status join(struct rank *r, bool messages)
{
    weft_overlap_options options = {sizeof options, ROWS * WIDTH * 4, messages};

    memset(r, 0, sizeof *r);
    EXPECT(weft_init(NULL, &r->ctx) == WEFT_OK);
    EXPECT(create_overlap(r->ctx, &options, &r->overlap) == WEFT_OK);
    for (int i = 0; i < ROWS * WIDTH; i++)
        r->shard[i] = (float)weft_rank(r->ctx) + 1;
    r->engine.rank = weft_rank(r->ctx);
    return WEFT_OK;
}

static weft_status leave(struct rank *r)
{
    weft_overlap_release(&r->overlap);
    weft_context_release(&r->ctx);
    return WEFT_OK;
}

static void run_ranks(weft_status (*rank_main)(void *), void *argument)
{
    weft_status status = weft_threads_run(RANKS, rank_main, argument);

    ck_assert_msg(status == WEFT_OK, "%s", weft_last_error());
}

/* ---- what is communicated ---- */

static weft_status count_calls(struct rank *r, const struct call *call, struct counted *counts)
{
    weft_record_counts *counting = NULL;

    r->engine.call = call;
    EXPECT(weft_record_counts_create(r->ctx, &counting) == WEFT_OK);
    EXPECT(call_gather(r->ctx, r->overlap, call, r->shard, consume, &r->engine, NULL) == WEFT_OK);
    EXPECT(call_scatter(r->ctx, r->overlap, call, produce, &r->engine, r->shard, NULL) == WEFT_OK);
    EXPECT(counts_take(counting, counts) == WEFT_OK);
    return WEFT_OK;
}

static weft_status count_main(void *argument)
{
    const bool *messages = argument;
    static _Thread_local struct rank r;
    struct counted counts;

    WF_TRY(join(&r, *messages));
    EXPECT((r.overlap->symm == NULL) == *messages);
    WF_TRY(count_calls(&r, CALL(2), &counts));
    EXPECT(counts.operations[WEFT_RECORD_SEND] == (*messages ? 2 * 2 * (RANKS - 1) : 0));
    EXPECT(counts.operations[WEFT_RECORD_BARRIER] == 0 &&
           counts.operations[WEFT_RECORD_ALL_GATHER_V] == 0);
    WF_TRY(count_calls(&r, CALL(WEFT_OVERLAP_PLAIN), &counts));
    EXPECT(counts.operations[WEFT_RECORD_SEND] == 0);
    EXPECT(counts.operations[WEFT_RECORD_ALL_GATHER_V] == 1);
    EXPECT(counts.operations[WEFT_RECORD_REDUCE_SCATTER_V] == 1);
    return leave(&r);
}

TEST(calls_communicate_as_stated)
{
    bool messages = false;

    run_ranks(count_main, &messages);
    messages = true;
    run_ranks(count_main, &messages);
}

/* ---- overlap ---- */

/* Computes the rows of this rank only when rows of all others have arrived. */
static weft_status consume_late(void *user, const weft_overlap_rows *rows)
{
    struct rank *r = user;
    time_t begin = time(NULL);

    for (int32_t i = 0; rows->first / (ROWS / RANKS) == r->engine.rank && i < RANKS; i++) {
        size_t half = r->overlap->symm != NULL ? ROWS * WIDTH * sizeof(float) : 0;
        const float *slot =
            (const float *)(void *)(r->overlap->memory + half) + i * (ROWS / RANKS) * WIDTH;

        while (i != r->engine.rank && peek(slot) != (float)i + 1) {
            if (time(NULL) - begin > 300) return weft_fail(WEFT_ERR_TIMEOUT, "no rows arrived");
            sched_yield();
        }
    }
    return consume(&r->engine, rows);
}

static weft_status late_main(void *argument)
{
    const bool *messages = argument;
    static _Thread_local struct rank r;

    WF_TRY(join(&r, *messages));
    r.engine.call = CALL(2);
    EXPECT(call_gather(r.ctx, r.overlap, r.engine.call, r.shard, consume_late, &r, NULL) ==
           WEFT_OK);
    return leave(&r);
}

TEST(rows_travel_while_the_engine_computes)
{
    bool messages = false;

    run_ranks(late_main, &messages);
    messages = true;
    run_ranks(late_main, &messages);
}

/* Rank 0 consumes the rows of a plain call after rank 1 has put those of the next call. */
static weft_status consume_last(void *user, const weft_overlap_rows *rows)
{
    struct rank *r = user;
    const float *next =
        (const float *)(void *)r->overlap->memory + ROWS / RANKS * WIDTH; /* of rank 1 */
    const float *first = rows->memory;
    time_t begin = time(NULL);

    while (r->engine.rank == 0 && peek(next) != 100) {
        if (time(NULL) - begin > 300) return weft_fail(WEFT_ERR_TIMEOUT, "no rows arrived");
        sched_yield();
    }
    for (int i = 0; i < ROWS * WIDTH; i++)
        EXPECT(first[i] == (float)(i / (ROWS / RANKS * WIDTH)) + 1);
    return WEFT_OK;
}

TEST_ON_RANKS(RANKS, a_rank_that_is_ahead_does_not_write_to_rows_in_use)
{
    static _Thread_local struct rank r;

    WF_TRY(join(&r, false));
    r.engine.call = CALL(1);
    EXPECT(call_gather(r.ctx, r.overlap, CALL(1), r.shard, consume, &r.engine, NULL) == WEFT_OK);
    EXPECT(call_gather(r.ctx, r.overlap, CALL(WEFT_OVERLAP_PLAIN), r.shard, consume_last, &r,
                       NULL) == WEFT_OK);
    for (int i = 0; i < ROWS * WIDTH; i++)
        r.shard[i] = 100;
    EXPECT(call_gather(r.ctx, r.overlap, CALL(1), r.shard, consume, &r.engine, NULL) == WEFT_OK);
    return leave(&r);
}

/* ---- choices ---- */

TEST_ON_RANKS(RANKS, chunks_follow_from_costs)
{
    static _Thread_local struct rank r;
    weft_overlap_prediction info = {.struct_size = sizeof info};
    weft_overlap_info about = {.struct_size = sizeof about};

    WF_TRY(join(&r, false));
    EXPECT(weft_overlap_get(r.overlap, &about) == WEFT_OK && about.symmetric);
    EXPECT(about.ranks == RANKS && about.bytes == ROWS * WIDTH * 4);
    EXPECT(call_predict(r.ctx, r.overlap, CALL(3), &info) == WEFT_OK);
    EXPECT(info.gather_chunks == 3 && info.reduce_scatter_chunks == 3);
    EXPECT(info.compute_ns == UINT64_MAX && info.gather_plain_ns == UINT64_MAX);
    EXPECT(call_predict(r.ctx, r.overlap,
                        CALL_OF(ROWS, WIDTH, WEFT_DTYPE_F32, WEFT_OVERLAP_BY_COSTS, 1),
                        &info) == WEFT_OK);
    EXPECT(info.gather_chunks == 0); /* a few bytes */
    EXPECT(info.gather_overlapped_ns >= info.gather_plain_ns);
    EXPECT(call_predict(r.ctx, r.overlap,
                        CALL_OF(ROWS, WIDTH, WEFT_DTYPE_F32, WEFT_OVERLAP_BY_COSTS, 0),
                        &info) == WEFT_OK);
    EXPECT(info.gather_chunks == 0 && info.reduce_scatter_chunks == 0);
    r.overlap->bytes = UINT64_C(1) << 40; /* memory is not used here */
    r.overlap->concurrent = false;
    EXPECT(call_predict(r.ctx, r.overlap,
                        CALL_OF(1 << 20, 1 << 10, WEFT_DTYPE_F32, WEFT_OVERLAP_BY_COSTS, 1 << 14),
                        &info) == WEFT_OK);
    EXPECT(info.gather_chunks == 0 && info.gather_overlapped_ns < info.gather_plain_ns);
    r.overlap->concurrent = true;
    EXPECT(call_predict(r.ctx, r.overlap,
                        CALL_OF(1 << 20, 1 << 10, WEFT_DTYPE_F32, WEFT_OVERLAP_BY_COSTS, 1 << 14),
                        &info) == WEFT_OK);
    EXPECT(info.gather_chunks > 1);
    return leave(&r);
}

/* ---- other axes ---- */

/* Rows that two axes split: those that the ranks along the second one share. */
static weft_status axes_main(void *unused)
{
    weft_overlap_options options = {sizeof options, 1024, false};
    weft_overlap_call_options two = {sizeof two, 2, 0};
    static _Thread_local struct rank r;
    weft_tensor *tensor;
    weft_mesh *mesh;
    weft_spec *spec;

    (void)unused;
    memset(&r, 0, sizeof r);
    EXPECT(weft_init(NULL, &r.ctx) == WEFT_OK);
    EXPECT(weft_mesh_parse("dp=2,tp=2", &mesh) == WEFT_OK);
    EXPECT(weft_spec_parse(mesh, "f32[16,2,2] S(0),S(0)", &spec) == WEFT_OK);
    EXPECT(weft_overlap_create(r.ctx, mesh, "tp", &options, &r.overlap) == WEFT_OK);
    r.engine.call = CALL_OF(8, 4, WEFT_DTYPE_F32, 2, 0);
    for (int i = 0; i < 16; i++)
        r.shard[i] = (float)(weft_rank(r.ctx) * 16 + i);
    EXPECT(weft_tensor_wrap(r.ctx, spec, r.shard, NULL, &tensor) == WEFT_OK);
    EXPECT(weft_overlap_gather(r.overlap, tensor, &two, consume, &r.engine, NULL) == WEFT_OK);
    WF_TRY(each_once(&r.engine));
    for (int i = 0; i < 32; i++)
        EXPECT(((const float *)(void *)r.engine.whole)[i] ==
               (float)(weft_rank(r.ctx) / 2 * 32 + i));
    weft_tensor_release(&tensor);
    weft_spec_release(&spec);
    weft_mesh_release(&mesh);
    return leave(&r);
}

TEST(rows_may_be_split_by_other_axes_too)
{
    weft_status status = weft_threads_run(4, axes_main, NULL);

    ck_assert_msg(status == WEFT_OK, "%s", weft_last_error());
}

/* ---- refusals and failures ---- */

static bool refused(weft_status got, weft_status wanted, const char *text)
{
    return got == wanted && strstr(weft_last_error(), text) != NULL;
}

/* Layouts in which the ranks do not share rows as S(0) does, and a shard with gaps. */
static weft_status refuse_layouts(struct rank *r)
{
    static const char *const wrong[] = {"f32[12,4] R", "f32[12,4] S(1)", "f32[12,4] SS(0,2)",
                                        "f32[12,4] G(0;3,3,6)"};
    weft_tensor_options wide = {.struct_size = sizeof wide, .strides = (int64_t[]){2 * WIDTH, 1}};
    OWNED(weft_mesh) *mesh = mesh_of(r->ctx);
    weft_tensor *tensor;
    weft_spec *spec;

    for (size_t i = 0; i < WF_COUNT(wrong); i++) {
        EXPECT(weft_spec_parse(mesh, wrong[i], &spec) == WEFT_OK);
        EXPECT(weft_tensor_create(r->ctx, spec, NULL, &tensor) == WEFT_OK);
        EXPECT(refused(weft_overlap_gather(r->overlap, tensor, NULL, consume, &r->engine, NULL),
                       WEFT_ERR_INVALID, "do not share the rows of the tensor as S(0) does"));
        weft_tensor_release(&tensor);
        weft_spec_release(&spec);
    }
    EXPECT(weft_spec_parse(mesh, "f32[12,4] S(0)", &spec) == WEFT_OK);
    EXPECT(weft_tensor_wrap(r->ctx, spec, r->shard, &wide, &tensor) == WEFT_OK);
    EXPECT(refused(weft_overlap_gather(r->overlap, tensor, NULL, consume, &r->engine, NULL),
                   WEFT_ERR_INVALID, "the shard of input has gaps"));
    weft_tensor_release(&tensor);
    weft_spec_release(&spec);
    return WEFT_OK;
}

TEST_ON_RANKS(RANKS, wrong_calls_are_refused)
{
    static _Thread_local struct rank r;
    weft_overlap_options options = {sizeof options, 0, false};
    weft_overlap *none = NULL;
    weft_tensor *tensor;

    WF_TRY(join(&r, false));
    EXPECT(refused(create_overlap(r.ctx, &options, &none), WEFT_ERR_INVALID,
                   "weft_overlap_options.bytes is 0"));
    options.bytes = 64 + (uint64_t)(weft_rank(r.ctx) == 1);
    EXPECT(refused(create_overlap(r.ctx, &options, &none), WEFT_ERR_MISMATCH,
                   "differ in bytes: 64 and 65"));
    EXPECT(refused(call_gather(r.ctx, r.overlap,
                               CALL_OF(ROWS + 1, WIDTH, WEFT_DTYPE_F32, WEFT_OVERLAP_BY_COSTS, 0),
                               r.shard, consume, &r.engine, NULL),
                   WEFT_ERR_INVALID, "need 240 bytes"));
    EXPECT(refused(call_gather(r.ctx, r.overlap, CALL(17), r.shard, consume, &r.engine, NULL),
                   WEFT_ERR_INVALID, "weft_overlap_call_options.chunks is 17"));
    EXPECT(refused(weft_overlap_gather(r.overlap, NULL, NULL, consume, &r.engine, NULL),
                   WEFT_ERR_INVALID, "input is NULL"));
    WF_TRY(refuse_layouts(&r));
    tensor = tensor_of(r.ctx, CALL(1), r.shard);
    weft_context_release(&r.ctx);
    EXPECT(refused(weft_overlap_gather(r.overlap, tensor, NULL, consume, &r.engine, NULL),
                   WEFT_ERR_INVALID, "the overlap ended with it"));
    weft_tensor_release(&tensor);
    return leave(&r);
}

static weft_status differ_main(void *argument)
{
    const bool *messages = argument;
    static _Thread_local struct rank r;
    const struct call *call;
    weft_status status;

    WF_TRY(join(&r, *messages));
    call = weft_rank(r.ctx) == 1 ? CALL_OF(3, WIDTH, WEFT_DTYPE_F32, 1, 0) : CALL(1);
    r.engine.call = call;
    do /* all ranks are of the same length */
        status = call_gather(r.ctx, r.overlap, call, r.shard, consume, &r.engine, NULL);
    while (status == WEFT_OK);
    EXPECT(status == WEFT_ERR_MISMATCH);
    return leave(&r);
}

TEST(calls_that_differ_are_an_error_on_all_ranks)
{
    bool messages = false;

    run_ranks(differ_main, &messages);
    messages = true;
    run_ranks(differ_main, &messages);
}

/* Rank 0 sends and receives one message with TAG, as its part of a call of rank 1. */
static weft_status exchange(struct rank *r, uint32_t tag)
{
    weft_comm *world = weft_world(r->ctx);
    float got[ROWS / 2 * WIDTH];

    EXPECT(weft_group_begin(world) == WEFT_OK);
    EXPECT(weft_send(world, r->shard, ROWS / 2 * WIDTH, WEFT_DTYPE_F32, 1, tag, NULL) == WEFT_OK);
    EXPECT(weft_receive(world, got, ROWS / 2 * WIDTH, WEFT_DTYPE_F32, 1, tag, NULL) == WEFT_OK);
    EXPECT(weft_group_end(world) == WEFT_OK);
    return WEFT_OK;
}

static weft_status tags_main(void *unused)
{
    static _Thread_local struct rank r;

    (void)unused;
    WF_TRY(join(&r, true));
    r.engine.call = CALL(1);
    if (weft_rank(r.ctx) == 0) {
        WF_TRY(exchange(&r, 0));
        WF_TRY(exchange(&r, 1));
        return leave(&r);
    }
    EXPECT(call_gather(r.ctx, r.overlap, CALL(1), r.shard, consume, &r.engine, NULL) == WEFT_OK);
    EXPECT(call_scatter(r.ctx, r.overlap, CALL(1), produce, &r.engine, r.shard, NULL) == WEFT_OK);
    return leave(&r);
}

TEST(messages_of_a_gather_and_of_a_reduce_scatter_have_different_tags)
{
    weft_status status = weft_threads_run(2, tags_main, NULL);

    ck_assert_msg(status == WEFT_OK, "%s", weft_last_error());
}

static weft_status produce_badly(void *user, const weft_overlap_rows *rows)
{
    const struct rank *r = user;

    (void)rows;
    return r->engine.rank == 1 ? WEFT_ERR_NO_MEMORY : WEFT_OK;
}

static weft_status fail_main(void *argument)
{
    const bool *messages = argument;
    static _Thread_local struct rank r;
    weft_status status;

    WF_TRY(join(&r, *messages));
    do
        status = call_scatter(r.ctx, r.overlap, CALL(2), produce_badly, &r, r.shard, NULL);
    while (status == WEFT_OK);
    EXPECT(strstr(weft_last_error(), "produce returned ERR_NO_MEMORY") != NULL);
    EXPECT(status == (weft_rank(r.ctx) == 1 ? WEFT_ERR_NO_MEMORY : WEFT_ERR_ABORTED));
    EXPECT(call_gather(r.ctx, r.overlap, CALL(1), r.shard, consume, &r.engine, NULL) == status);
    return leave(&r);
}

TEST(a_function_that_fails_fails_all_ranks)
{
    bool messages = false;

    run_ranks(fail_main, &messages);
    messages = true;
    run_ranks(fail_main, &messages);
}
