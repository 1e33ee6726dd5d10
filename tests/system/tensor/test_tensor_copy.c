/* Copies of tensors to host memory, on one rank and on every rank; tensors with gaps. */
#include "base/base.h"
#include "holds.h"
#include "support/allocfail.h"
#include "support/layout.h"
#include "support/move.h"
#include "support/suite.h"
#include "weft/context.h"
#include "weft/random.h"

#include <math.h>

enum { RANKS = 3 }; /* the mesh has ranks 0 and 1 */

static weft_spec *rows, *columns, *integers, *bools, *partial;

static void run(weft_status (*rank)(void *))
{
    rows = spec_of("2", "f32[4,6] S(0)");
    columns = spec_of("2", "f32[4,6] S(1)");
    integers = spec_of("2", "i8[4,6] S(0)");
    bools = spec_of("2", "bool[3] R");
    partial = spec_of("2", "f32[4,6] P");
    ck_assert_msg(weft_threads_run(RANKS, rank, NULL) == WEFT_OK, "%s", weft_last_error());
    weft_spec_release(&rows);
    weft_spec_release(&columns);
    weft_spec_release(&integers);
    weft_spec_release(&bools);
    weft_spec_release(&partial);
}

/* Element (i, j) of the matrix is 10 i + j. */
static void number_rows(float *out, int32_t rank)
{
    for (int i = 0; i < 12; i++)
        out[i] = (float)(10 * (2 * rank + i / 6) + i % 6);
}

static bool has_all(const float *whole)
{
    for (int i = 0; i < 24; i++)
        if (whole[i] != (float)(10 * (i / 6) + i % 6)) return false;
    return true;
}

/* ---- host memory ---- */

TEST_BY(run, a_tensor_is_copied_to_host_memory, void *unused)
{
    float in[12], out[24] = {0};
    weft_tensor *tensor, *everywhere, *somewhere;
    weft_context *context;
    int32_t rank;

    (void)unused;
    WF_TRY(weft_init(NULL, &context));
    rank = weft_rank(context);
    number_rows(in, rank);
    WF_TRY(weft_tensor_create(context, rows, NULL, &tensor));
    WF_TRY(weft_tensor_from_host(tensor, in, sizeof in, NULL));
    WF_TRY(weft_tensor_to_host(tensor, out, sizeof out, NULL));
    HOLDS(rank == 2 ? out[1] == 0 : memcmp(in, out, sizeof in) == 0);
    WF_TRY(weft_tensor_full(tensor, WEFT_EVERY_RANK, NULL, NULL, &everywhere));
    WF_TRY(weft_tensor_to_host(everywhere, out, sizeof out, NULL));
    HOLDS(rank == 2 ? out[1] == 0 : has_all(out));
    WF_TRY(weft_tensor_full(tensor, 1, NULL, NULL, &somewhere));
    HOLDS(weft_tensor_shard(somewhere)->elements == (rank == 1 ? 24 : 0));
    memset(out, 0, sizeof out);
    WF_TRY(weft_tensor_to_host(somewhere, out, sizeof out, NULL));
    HOLDS(rank == 1 ? has_all(out) : out[1] == 0);
    REFUSES(weft_tensor_full(tensor, 2, NULL, NULL, &somewhere),
            "rank 2 is not in the tensor's mesh");
    if (rank < 2)
        REFUSES(weft_tensor_to_host(tensor, out, 40, NULL),
                "weft_tensor_to_host: host has 40 bytes");
    if (rank < 2) { /* the whole array is not this rank's shard */
        REFUSES(weft_tensor_from_host(tensor, out, sizeof out, NULL),
                "weft_tensor_from_host: host has 96 bytes, but the shard of rank ");
        HOLDS(strstr(weft_last_error(), "; to distribute an array, call weft_tensor_from_full") !=
              NULL);
    }
    WF_TRY(weft_tensor_from_host(somewhere, out, sizeof out, NULL)); /* one rank reads it */
    weft_tensor_release(&tensor);
    weft_tensor_release(&everywhere);
    weft_tensor_release(&somewhere);
    weft_context_release(&context);
    return WEFT_OK;
}

/* ---- fill ---- */

static weft_status fill(void *unused)
{
    weft_tensor *floats, *small, *flags, *parts, *longs;
    weft_spec *wide = NULL;
    OWNED(weft_context) *context = NULL;
    float values[24];
    int8_t bytes[12];
    bool truth[3] = {0};

    (void)unused;
    WF_TRY(weft_init(NULL, &context));
    WF_TRY(weft_tensor_create(context, rows, NULL, &floats));
    WF_TRY(weft_tensor_create(context, integers, NULL, &small));
    WF_TRY(weft_tensor_create(context, bools, NULL, &flags));
    WF_TRY(weft_tensor_create(context, partial, NULL, &parts));
    WF_TRY(weft_spec_with_dtype(integers, WEFT_DTYPE_I64, &wide));
    WF_TRY(weft_tensor_create(context, wide, NULL, &longs));
    weft_spec_release(&wide);
    WF_TRY(weft_tensor_fill(floats, 0.1, NULL));
    WF_TRY(weft_tensor_fill(parts, 2, NULL));
    WF_TRY(weft_tensor_fill(small, -128, NULL));
    WF_TRY(weft_tensor_fill(flags, 1, NULL));
    WF_TRY(weft_tensor_to_host(floats, values, sizeof values, NULL));
    WF_TRY(weft_tensor_to_host(small, bytes, sizeof bytes, NULL));
    WF_TRY(weft_tensor_to_host(flags, truth, sizeof truth, NULL));
    if (weft_rank(context) < 2) {
        HOLDS(values[0] == 0.1f && values[11] == 0.1f && bytes[11] == -128 && truth[2]);
        WF_TRY(weft_tensor_to_host(parts, values, sizeof values, NULL));
        HOLDS(values[23] == 2);
    }
    REFUSES(weft_tensor_fill(small, 128, NULL),
            "weft_tensor_fill: value is 128; expected an integer");
    REFUSES(weft_tensor_fill(small, 0.5, NULL), "from -128 to 127, for i8");
    REFUSES(weft_tensor_fill(small, NAN, NULL), "value is");
    REFUSES(weft_tensor_fill(flags, 2, NULL), "from 0 to 1, for bool");
    REFUSES(weft_tensor_fill(longs, 0x1p63, NULL),
            "value is 9.223372036854776e+18; expected an integer from -2^63 to 2^63 - 1, for i64");
    weft_tensor_release(&floats);
    weft_tensor_release(&small);
    weft_tensor_release(&flags);
    weft_tensor_release(&longs);
    weft_tensor_release(&parts);
    return WEFT_OK;
}

TEST(a_tensor_is_filled)
{
    run(fill);
}

/* ---- gaps ---- */

/* Move rows with gaps to columns with gaps and back, alone and in a list, on two streams. */
TEST_BY(run, tensors_with_gaps_move, void *unused)
{
    static const int64_t wide[] = {8, 1}, tall[] = {1, 5};
    weft_tensor_options options = {.struct_size = sizeof options, .strides = wide};
    float empty[16], *source, *target, back[12], in[12];
    weft_tensor *here, *there, *dense;
    weft_stream *stream;
    OWNED(weft_context) *context = NULL;
    weft_work *work = NULL;

    (void)unused;
    for (int i = 0; i < 16; i++)
        empty[i] = -1;
    WF_TRY(weft_init(NULL, &context));
    WF_TRY(copy_to_device(context, empty, sizeof empty, &source));
    WF_TRY(copy_to_device(context, empty, 15 * sizeof *empty, &target));
    WF_TRY(weft_stream_create(context, &stream));
    number_rows(in, weft_rank(context));
    WF_TRY(weft_tensor_wrap(context, rows, source, &options, &here));
    options.strides = tall;
    WF_TRY(weft_tensor_wrap(context, columns, target, &options, &there));
    WF_TRY(weft_tensor_create(context, rows, NULL, &dense));
    WF_TRY(weft_tensor_from_host(here, in, sizeof in, NULL));
    WF_TRY(move_into(here, there, NULL, &work));
    REFUSES(weft_work_wait(work, -2), "weft_work_wait: timeout_ns is -2");
    REFUSES(weft_stream_wait(stream, INT64_MIN),
            "weft_stream_wait: timeout_ns is -9223372036854775808");
    WF_TRY(weft_work_wait(work, WEFT_FOREVER));
    weft_work_release(&work);
    if (weft_rank(context) < 2) {
        HOLDS(source[5] == in[5] && source[6] == -1 && source[7] == -1 && source[8] == in[6]);
        HOLDS(target[0] == (float)(3 * weft_rank(context)) && target[1] == target[0] + 10);
        HOLDS(target[4] == -1 && target[5] == target[0] + 1 && target[13] == target[0] + 32);
    }
    WF_TRY(weft_tensors_move_into(1, &there, &dense, NULL, stream, NULL));
    WF_TRY(weft_tensor_to_host(dense, back, sizeof back, stream));
    HOLDS(weft_rank(context) == 2 || memcmp(in, back, sizeof in) == 0);
    WF_TRY(weft_tensor_fill(there, 3, stream));
    WF_TRY(weft_tensors_move_into(1, &there, &here, NULL, stream, &work));
    WF_TRY(weft_work_wait(work, WEFT_FOREVER));
    weft_work_release(&work);
    HOLDS(weft_rank(context) == 2 || (source[8] == 3 && source[6] == -1 && target[9] == -1));
    weft_tensor_release(&here);
    weft_tensor_release(&there);
    weft_tensor_release(&dense);
    WF_TRY(weft_free(context, source));
    WF_TRY(weft_free(context, target));
    weft_stream_release(&stream);
    return WEFT_OK;
}

/* ---- memory ---- */

static weft_context *alone;
static weft_spec *lone;

/* Every call that allocates, on a job of one rank. */
static weft_status call_all(void *values)
{
    static const int64_t strides[] = {8, 1};
    weft_tensor_options options = {.struct_size = sizeof options, .name = "w", .agree = true};
    weft_tensor_difference_info info = {.struct_size = sizeof info};
    weft_tensor *made = NULL, *wrapped = NULL, *moved = NULL, *full = NULL;
    weft_status status;

    status = weft_tensor_create(alone, lone, &options, &made);
    options.strides = strides;
    if (status == WEFT_OK) status = weft_tensor_wrap(alone, lone, values, &options, &wrapped);
    if (status == WEFT_OK) status = weft_tensor_fill(wrapped, 1, NULL);
    if (status == WEFT_OK) status = weft_tensor_move(wrapped, lone, NULL, NULL, &moved);
    if (status == WEFT_OK) status = weft_tensor_full(moved, 0, NULL, NULL, &full);
    if (status == WEFT_OK) status = weft_tensors_move_into(1, &wrapped, &made, NULL, NULL, NULL);
    if (status == WEFT_OK) status = weft_tensor_compare(wrapped, made, NULL, NULL, &info);
    weft_tensor_release(&made);
    weft_tensor_release(&wrapped);
    weft_tensor_release(&moved);
    weft_tensor_release(&full);
    return status;
}

/* The message names the function that was called, and no other one. */
static void refuse_copy(void *values)
{
    static const int64_t strides[] = {8, 1};
    weft_tensor_options options = {.struct_size = sizeof options, .strides = strides};
    weft_tensor *wrapped = NULL;
    float out[24];

    ck_assert_int_eq(weft_tensor_wrap(alone, lone, values, &options, &wrapped), WEFT_OK);
    wf_mem_fail_at(1);
    ck_assert_int_eq(weft_tensor_to_host(wrapped, out, sizeof out, NULL), WEFT_ERR_NO_MEMORY);
    wf_mem_fail_at(0);
    ck_assert_ptr_nonnull(strstr(weft_last_error(), "weft_tensor_to_host: the copy without gaps"));
    ck_assert_ptr_null(strstr(weft_last_error(), "weft_tensor_move"));
    weft_tensor_release(&wrapped);
}

TEST(every_allocation_may_fail)
{
    void *values = NULL;

    lone = spec_of("1", "f32[4,6] S(0)");
    ck_assert_int_eq(weft_init(NULL, &alone), WEFT_OK);
    ck_assert_int_eq(weft_alloc(alone, 32 * sizeof(float), WEFT_MEMORY_DEVICE, &values), WEFT_OK);
    ck_assert_uint_ge(ALLOCATIONS_FAIL(call_all(values), (void)0), 8);
    refuse_copy(values);
    ck_assert_int_eq(weft_free(alone, values), WEFT_OK);
    weft_context_release(&alone);
    weft_spec_release(&lone);
}
