/* Streams and works of another context: every call refuses them, names itself, and changes nothing.
 */
#include "support/layout.h"
#include "support/suite.h"
#include "weft/exec.h"
#include "weft/symm.h"
#include "weft/weft.h"

#include <string.h>

enum { FLOATS = 64, STREAMS = 200 };

static weft_context *ours, *theirs;
static weft_comm *comm;
static float a[FLOATS], b[FLOATS];

/* STATUS must be a refusal by FUNCTION. */
static void refused(weft_status status, const char *function)
{
    ck_assert_msg(status == WEFT_ERR_INVALID, "%s: %s", function, weft_status_name(status));
    ck_assert_msg(strstr(weft_last_error(), function) != NULL, "%s is not in: %s", function,
                  weft_last_error());
}

static void begin(void)
{
    ck_assert_int_eq(weft_init(NULL, &ours), WEFT_OK);
    ck_assert_int_eq(weft_init(NULL, &theirs), WEFT_OK);
    comm = weft_world(ours);
}

static void end(void)
{
    weft_context_release(&ours);
    weft_context_release(&theirs);
}

static void collectives_refuse(weft_stream *alien)
{
    uint64_t counts[] = {1}, offsets[] = {0};
    const uint32_t dtype = WEFT_DTYPE_F32, sum = WEFT_REDUCE_SUM;

    refused(weft_all_reduce(comm, a, b, 1, dtype, sum, alien), "all_reduce");
    refused(weft_all_gather(comm, a, b, 1, dtype, alien), "all_gather");
    refused(weft_reduce_scatter(comm, a, b, 1, dtype, sum, alien), "reduce_scatter");
    refused(weft_all_to_all(comm, a, b, 1, dtype, alien), "all_to_all");
    refused(weft_broadcast(comm, a, b, 1, dtype, 0, alien), "broadcast");
    refused(weft_reduce(comm, a, b, 1, dtype, sum, 0, alien), "reduce");
    refused(weft_gather(comm, a, b, 1, dtype, 0, alien), "gather");
    refused(weft_scatter(comm, a, b, 1, dtype, 0, alien), "scatter");
    refused(weft_barrier(comm, alien), "barrier");
    refused(weft_all_gather_v(comm, a, b, counts, offsets, dtype, alien), "all_gather_v");
    refused(weft_reduce_scatter_v(comm, a, b, counts, offsets, dtype, sum, alien),
            "reduce_scatter_v");
    refused(weft_all_to_all_v(comm, a, counts, offsets, b, counts, offsets, dtype, alien),
            "all_to_all_v");
    refused(weft_gather_v(comm, a, 1, b, counts, offsets, dtype, 0, alien), "gather_v");
    refused(weft_scatter_v(comm, a, counts, offsets, b, 1, dtype, 0, alien), "scatter_v");
    refused(weft_send(comm, a, 1, dtype, 0, 0, alien), "weft_send");
    refused(weft_receive(comm, b, 1, dtype, 0, 0, alien), "weft_receive");
}

static void symmetric_memory_refuses(weft_stream *alien)
{
    weft_symm *symm = NULL;

    ck_assert_int_eq(weft_symm_create(comm, 64, NULL, &symm), WEFT_OK);
    refused(weft_symm_put_to(symm, a, 0, 0, 8, alien), "weft_symm_put_to");
    refused(weft_symm_get_from(symm, 0, 0, a, 8, alien), "weft_symm_get_from");
    refused(weft_symm_fence(symm, alien), "weft_symm_fence");
    refused(weft_symm_quiet(symm, alien), "weft_symm_quiet");
    refused(weft_symm_barrier(symm, alien), "weft_symm_barrier");
    weft_symm_release(&symm);
}

static void plans_refuse(weft_stream *alien)
{
    OWNED(weft_spec) *from = spec_of("1", "f32[8,8] S(0)"), *to = spec_of("1", "f32[8,8] S(1)");
    const weft_spec *froms[] = {from, from}, *tos[] = {to, to};
    const void *sources[] = {a, a};
    static float other[FLOATS];
    void *targets[] = {b, other};
    OWNED(weft_plan) *one = NULL, *two = NULL;
    weft_bound *bound = NULL, *batch = NULL;

    ck_assert_int_eq(weft_plan_create(from, to, NULL, &one), WEFT_OK);
    ck_assert_int_eq(weft_plan_create_batch(2, froms, tos, NULL, &two), WEFT_OK);
    ck_assert_int_eq(weft_plan_bind(one, comm, NULL, &bound), WEFT_OK);
    ck_assert_int_eq(weft_plan_bind(two, comm, NULL, &batch), WEFT_OK);
    refused(weft_redistribute(bound, a, b, alien, NULL), "weft_redistribute:");
    refused(weft_redistribute_batch(batch, sources, targets, alien, NULL),
            "weft_redistribute_batch:");
    ck_assert_int_eq(weft_redistribute(bound, a, b, NULL, NULL), WEFT_OK);
    weft_bound_release(&bound);
    weft_bound_release(&batch);
}

TEST(a_stream_of_another_context_is_refused)
{
    weft_stream *alien = NULL;
    weft_work *work = NULL, *alien_work = NULL;
    int64_t nanoseconds;

    begin();
    ck_assert_int_eq(weft_stream_create(theirs, &alien), WEFT_OK);
    ck_assert_int_eq(weft_work_record(ours, NULL, &work), WEFT_OK);
    ck_assert_int_eq(weft_work_record(theirs, alien, &alien_work), WEFT_OK);
    collectives_refuse(alien);
    symmetric_memory_refuses(alien);
    plans_refuse(alien);
    refused(weft_memory_copy(ours, b, a, 4, alien), "weft_memory_copy");
    refused(weft_memory_fill(ours, a, 0, 4, alien), "weft_memory_fill");
    refused(weft_context_wait(ours, alien, WEFT_FOREVER), "weft_context_wait");
    refused(weft_work_record(ours, alien, &work), "weft_work_record");
    refused(weft_stream_wait_work(alien, work), "weft_stream_wait_work");
    refused(weft_work_elapsed(work, alien_work, &nanoseconds), "weft_work_elapsed");
    ck_assert_int_eq(weft_memory_copy(theirs, b, a, 4, alien), WEFT_OK);
    ck_assert_int_eq(weft_stream_wait(alien, WEFT_FOREVER), WEFT_OK);
    ck_assert_int_eq(weft_stream_test(alien), WEFT_OK);
    weft_work_release(&work);
    weft_work_release(&alien_work);
    weft_stream_release(&alien);
    ck_assert_ptr_null(alien);
    end();
}

/* More streams than the cache of recent streams holds. */
TEST(many_streams_are_distinguished)
{
    static float copies[STREAMS];
    weft_stream *streams[STREAMS], *gone;

    begin();
    for (int i = 0; i < STREAMS; i++)
        ck_assert_int_eq(weft_stream_create(i % 2 ? theirs : ours, &streams[i]), WEFT_OK);
    for (int round = 0; round < 3; round++)
        for (int i = 0; i < STREAMS; i++) {
            ck_assert_int_eq(weft_memory_copy(i % 2 ? theirs : ours, b, &copies[i], 4, streams[i]),
                             WEFT_OK);
            refused(weft_memory_copy(i % 2 ? ours : theirs, b, a, 4, streams[i]),
                    "weft_memory_copy");
        }
    for (int i = 0; i < STREAMS; i++) {
        gone = streams[i];
        weft_stream_release(&streams[i]);
        refused(weft_memory_copy(i % 2 ? theirs : ours, b, a, 4, gone), "weft_memory_copy");
    }
    end();
}
