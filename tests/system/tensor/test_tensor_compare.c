/* Comparison of tensors in different layouts, and calls that ranks agree on. */
#include "base/base.h"
#include "holds.h"
#include "support/layout.h"
#include "support/move.h"
#include "support/suite.h"
#include "weft/context.h"
#include "weft/random.h"

#include <math.h>

enum { RANKS = 5 }; /* rank 4 is in no mesh */

static weft_spec *rows, *columns, *halves, *partial, *complex_rows, *longs;

static void run(weft_status (*rank)(void *))
{
    rows = spec_of("2x2", "f32[5,7] S(0),R");
    columns = spec_of("2x2", "f32[5,7] R,S(1)");
    halves = spec_of("2", "f32[5,7] G(0;4,1)");
    partial = spec_of("2x2", "f32[5,7] P,S(1)");
    complex_rows = spec_of("2", "c64[3] S(0)");
    longs = spec_of("2", "i64[3] S(0)");
    ck_assert_msg(weft_threads_run(RANKS, rank, NULL) == WEFT_OK, "%s", weft_last_error());
    weft_spec_release(&rows);
    weft_spec_release(&columns);
    weft_spec_release(&halves);
    weft_spec_release(&partial);
    weft_spec_release(&complex_rows);
    weft_spec_release(&longs);
}

TEST_BY(run, tensors_in_different_layouts_are_compared, void *unused)
{
    weft_tensor_difference_info info = {.struct_size = sizeof info};
    weft_random first = {3, 0}, second = {3, 0};
    weft_tensor *a, *b, *c, *p;
    OWNED(weft_context) *context = NULL;
    int32_t rank;

    (void)unused;
    WF_TRY(weft_init(NULL, &context));
    rank = weft_rank(context);
    WF_TRY(weft_tensor_create(context, rows, NULL, &a));
    WF_TRY(weft_tensor_create(context, columns, NULL, &b));
    WF_TRY(weft_tensor_create(context, partial, NULL, &p));
    WF_TRY(weft_tensor_normal(a, &first, 0, 1, NULL));
    WF_TRY(weft_tensor_normal(b, &second, 0, 1, NULL));
    WF_TRY(weft_tensor_compare(a, b, NULL, NULL, &info));
    HOLDS(info.equal && info.differing == 0 && info.largest == 0 && info.index[1] == 0);
    HOLDS(info.ranks == (rank == 4 ? 0 : 4));
    WF_TRY(weft_tensor_move(b, halves, NULL, NULL, &c));
    WF_TRY(weft_tensor_compare(c, a, NULL, NULL, &info));
    HOLDS(info.equal);
    /* Element (4, 2) of c is on rank 1. */
    if (rank == 1) ((float *)weft_tensor_memory(c))[2] += 3;
    WF_TRY(weft_tensor_compare(c, b, NULL, NULL, &info));
    if (rank < 4) {
        HOLDS(!info.equal && info.differing == 1 && info.rank == 1);
        HOLDS(info.index[0] == 4 && info.index[1] == 2 && info.index[2] == 0);
        HOLDS(fabs(info.largest - 3) < 1e-5 && fabs(info.first[0] - info.second[0] - 3) < 1e-5);
    }
    WF_TRY(weft_tensor_compare(b, c, NULL, NULL, &info)); /* two replicas of the column */
    HOLDS(rank == 4 || (info.differing == 2 && info.rank == 0 && info.index[0] == 4));
    WF_TRY(weft_tensor_fill(p, 1, NULL));
    WF_TRY(weft_tensor_fill(a, 2, NULL));
    WF_TRY(weft_tensor_compare(p, a, NULL, NULL, &info));
    HOLDS(info.equal);
    weft_tensor_release(&a);
    weft_tensor_release(&b);
    weft_tensor_release(&c);
    weft_tensor_release(&p);
    return WEFT_OK;
}

/* A tensor with the VALUES of this rank. */
static weft_status hold_values(weft_context *context, const weft_spec *spec, const void *values,
                               weft_tensor **out)
{
    const weft_shard *shard;

    WF_TRY(weft_tensor_create(context, spec, NULL, out));
    shard = weft_tensor_shard(*out);
    return weft_tensor_from_host(
        *out, values, (size_t)shard->elements * weft_dtype_bytes(weft_spec_dtype(spec)), NULL);
}

TEST_BY(run, values_that_are_not_numbers_are_compared, void *unused)
{
    weft_tensor_difference_info info = {.struct_size = sizeof info};
    int64_t one[3] = {INT64_MIN, INT64_MIN, 5}, other[3] = {INT64_MAX, INT64_MIN, 4};
    float real[6] = {NAN, 0, 1, 2, -0.0f, 5}, changed[6] = {NAN, 0, 1, 2, 0, INFINITY};
    float distant[6] = {NAN, 0, 1, 2, 3, 9};
    weft_tensor *a, *b, *c, *d;
    OWNED(weft_context) *context = NULL;
    int32_t rank;

    (void)unused;
    WF_TRY(weft_init(NULL, &context));
    rank = weft_rank(context);
    WF_TRY(hold_values(context, longs, &one[rank == 1 ? 2 : 0], &a));
    WF_TRY(hold_values(context, longs, &other[rank == 1 ? 2 : 0], &b));
    WF_TRY(weft_tensor_compare(a, b, NULL, NULL, &info));
    if (rank < 2) {
        HOLDS(info.differing == 2 && info.largest == 0x1p64 && info.index[0] == 0);
        HOLDS(info.first[0] == -0x1p63 && info.second[0] == 0x1p63);
    }
    WF_TRY(hold_values(context, complex_rows, &real[rank == 1 ? 4 : 0], &c));
    WF_TRY(hold_values(context, complex_rows, &changed[rank == 1 ? 4 : 0], &d));
    WF_TRY(weft_tensor_compare(c, d, NULL, NULL, &info));
    if (rank < 2) {
        HOLDS(info.differing == 1 && isinf(info.largest) && info.index[0] == 2 && info.rank == 1);
        HOLDS(info.first[1] == 5 && isinf(info.second[1]));
    }
    weft_tensor_release(&d);
    WF_TRY(hold_values(context, complex_rows, &distant[rank == 1 ? 4 : 0], &d));
    WF_TRY(weft_tensor_compare(c, d, NULL, NULL, &info));
    if (rank < 2) HOLDS(info.differing == 1 && info.largest == 5);
    REFUSES(weft_tensor_compare(a, c, NULL, NULL, &info), "first has i64, but second has c64");
    info.struct_size = 4;
    REFUSES(weft_tensor_compare(a, b, NULL, NULL, &info),
            "weft_tensor_compare: weft_tensor_difference_info");
    weft_tensor_release(&a);
    weft_tensor_release(&b);
    weft_tensor_release(&c);
    weft_tensor_release(&d);
    return WEFT_OK;
}

/* ---- agreed errors ---- */

/* One rank has no memory: all ranks get the error, and the next move works. */
TEST_BY(run, all_ranks_get_the_error_of_one_without_memory, void *unused)
{
    weft_tensor_options agreeing = {.struct_size = sizeof agreeing, .agree = true};
    weft_tensor *a, *b = NULL, *made = NULL;
    OWNED(weft_context) *context = NULL;
    int32_t rank;

    (void)unused;
    WF_TRY(weft_init(NULL, &context));
    rank = weft_rank(context);
    WF_TRY(weft_tensor_create(context, rows, &agreeing, &a));
    WF_TRY(weft_tensor_fill(a, 1, NULL));
    for (uint64_t at = 1; at <= 2; at++) {
        weft_status status;

        if (rank == 2) wf_mem_fail_at(at);
        status = weft_tensor_move(a, columns, NULL, NULL, &b);
        if (rank == 2) wf_mem_fail_at(0);
        HOLDS(rank == 4 ? status == WEFT_OK : status == WEFT_ERR_NO_MEMORY);
        HOLDS(rank == 4 || strstr(weft_last_error(), "weft_tensor_move") != NULL);
        if (rank == 4) weft_tensor_release(&b);
        if (at == 1 && rank == 2) wf_mem_fail_at(at);
        if (at == 1) status = weft_tensor_create(context, rows, &agreeing, &made);
        if (rank == 2) wf_mem_fail_at(0);
        HOLDS(rank == 4 ? status == WEFT_OK : status == WEFT_ERR_NO_MEMORY);
        weft_tensor_release(&made);
    }
    WF_TRY(weft_tensor_move(a, columns, NULL, NULL, &b));
    weft_tensor_release(&a);
    weft_tensor_release(&b);
    return WEFT_OK;
}

/* One rank has no memory for the copy without gaps: its job fails on all ranks. */
TEST_BY(run, nobody_waits_for_a_rank_without_memory_for_gaps, void *unused)
{
    static const int64_t strides[] = {9, 1};
    weft_tensor_options options = {.struct_size = sizeof options, .strides = strides};
    weft_tensor *a, *b;
    OWNED(weft_context) *context = NULL;
    weft_status status;
    int32_t rank;
    float *values;

    (void)unused;
    WF_TRY(weft_init(NULL, &context));
    WF_TRY(copy_to_device(context, (float[35]){0}, 35 * sizeof *values, &values));
    rank = weft_rank(context);
    WF_TRY(weft_tensor_wrap(context, rows, values, &options, &a));
    WF_TRY(weft_tensor_create(context, columns, NULL, &b));
    if (rank == 2) wf_mem_fail_at(1);
    status = move_into(a, b, NULL, NULL);
    if (rank == 2) wf_mem_fail_at(0);
    if (rank < 4) {
        HOLDS(status == (rank == 2 ? WEFT_ERR_NO_MEMORY : WEFT_ERR_ABORTED));
        HOLDS(strstr(weft_last_error(), "weft_tensors_move_into") != NULL);
        HOLDS(strstr(weft_last_error(), "rank 2 failed") != NULL);
    }
    weft_tensor_release(&a);
    weft_tensor_release(&b);
    WF_TRY(weft_free(context, values));
    return WEFT_OK;
}

/* Ranks 0 to 3 get the error; rank 4 is in no mesh, and its call is right. */
#define ALL_FAIL(call, status, text)                                                               \
    do {                                                                                           \
        if (rank < 4) FAILS(call, status, text);                                                   \
    } while (0)

static weft_status compare_other_tensors(weft_context *context, weft_tensor *a, weft_tensor *b)
{
    weft_tensor_difference_info info = {.struct_size = sizeof info};
    weft_tensor_options named = {.struct_size = sizeof named, .name = "w"};
    weft_move_options no_steps = {.struct_size = sizeof no_steps,
                                  .without = (1U << WEFT_STEP_KINDS) - 1};
    weft_tensor *w = NULL, *half = NULL;
    int32_t rank = weft_rank(context);

    WF_TRY(weft_tensor_create(context, rows, &named, &w));
    WF_TRY(weft_tensor_create(context, longs, NULL, &half));
    ALL_FAIL(weft_tensor_compare(rank == 1 ? b : a, b, NULL, NULL, &info), WEFT_ERR_MISMATCH,
             "weft_tensor_compare: rank 0 has f32[5,7] S(0),R on 2x2 and f32[5,7] R,S(1) on 2x2, "
             "but rank 1 has f32[5,7] R,S(1) on 2x2 and f32[5,7] R,S(1) on 2x2");
    ALL_FAIL(weft_tensor_compare(rank == 3 ? w : a, b, NULL, NULL, &info), WEFT_ERR_MISMATCH,
             "but rank 3 has w: f32[5,7] S(0),R on 2x2");
    ALL_FAIL(weft_tensor_compare(rank == 2 ? NULL : a, b, NULL, NULL, &info), WEFT_ERR_INVALID,
             "rank 2: weft_tensor_compare: first is NULL");
    ALL_FAIL(weft_tensor_compare(a, rank == 0 ? NULL : b, NULL, NULL, &info), WEFT_ERR_INVALID,
             "rank 0: weft_tensor_compare: second is NULL");
    ALL_FAIL(weft_tensor_compare(a, b, NULL, NULL, rank == 3 ? NULL : &info), WEFT_ERR_INVALID,
             "rank 3: weft_tensor_compare: out is NULL");
    ALL_FAIL(weft_tensor_compare(a, rank == 1 ? half : b, NULL, NULL, &info), WEFT_ERR_INVALID,
             "rank 1: weft_tensor_compare: first has f32, but second has i64");
    info.struct_size = rank == 1 ? 4 : sizeof info;
    ALL_FAIL(weft_tensor_compare(a, b, NULL, NULL, &info), WEFT_ERR_INVALID,
             "rank 1: weft_tensor_compare: weft_tensor_difference_info.struct_size is 4");
    info.struct_size = sizeof info;
    ALL_FAIL(weft_tensor_compare(a, b, &no_steps, NULL, &info), WEFT_ERR_UNSUPPORTED, "excluded");
    no_steps.struct_size = rank == 1 ? 4 : sizeof no_steps;
    ALL_FAIL(weft_tensor_compare(a, b, &no_steps, NULL, &info), WEFT_ERR_INVALID,
             "rank 1: weft_tensor_compare: weft_move_options.struct_size is 4");
    WF_TRY(weft_tensor_compare(a, b, NULL, NULL, &info)); /* the ranks are in step */
    HOLDS(info.ranks == (rank == 4 ? 0 : 4));
    weft_tensor_release(&w);
    weft_tensor_release(&half);
    return WEFT_OK;
}

static weft_status print_other_tensors(weft_context *context, weft_tensor *a, weft_tensor *b)
{
    int32_t rank = weft_rank(context);
    weft_move_options options = {.struct_size = rank == 0 ? 4 : sizeof options};
    char text[512];

    ALL_FAIL(weft_tensor_full_print(rank == 2 ? b : a, NULL, NULL, text, sizeof text, NULL),
             WEFT_ERR_MISMATCH,
             "weft_tensor_full_print: rank 0 has f32[5,7] S(0),R on 2x2, but rank 2 has f32[5,7] "
             "R,S(1) on 2x2");
    ALL_FAIL(weft_tensor_full_print(a, NULL, NULL, rank == 3 ? NULL : text, sizeof text, NULL),
             WEFT_ERR_INVALID, "rank 3: weft_tensor_full_print: text is NULL");
    ALL_FAIL(weft_tensor_full_print(a, &options, NULL, text, sizeof text, NULL), WEFT_ERR_INVALID,
             "rank 0: weft_tensor_full_print: weft_move_options.struct_size is 4");
    return weft_tensor_full_print(a, NULL, NULL, text, sizeof text, NULL);
}

static weft_status move_other_tensors(weft_context *context, weft_tensor *a)
{
    weft_tensor *out = NULL;
    int32_t rank = weft_rank(context);

    WF_TRY(weft_tensor_move(a, columns, NULL, NULL, &out)); /* both moves have been bound */
    weft_tensor_release(&out);
    WF_TRY(weft_tensor_full(a, 1, NULL, NULL, &out));
    weft_tensor_release(&out);
    ALL_FAIL(weft_tensor_move(a, rank == 1 ? rows : columns, NULL, NULL, &out), WEFT_ERR_MISMATCH,
             "but rank 1 has f32[5,7] S(0),R on 2x2 and f32[5,7] S(0),R on 2x2");
    ALL_FAIL(weft_tensor_move(a, rank == 1 ? NULL : columns, NULL, NULL, &out), WEFT_ERR_INVALID,
             "rank 1: weft_tensor_move: spec is NULL");
    ALL_FAIL(weft_tensor_full(a, rank == 1 ? 0 : 1, NULL, NULL, &out), WEFT_ERR_MISMATCH,
             "but rank 1 has f32[5,7] S(0),R on 2x2 and f32[5,7] O(0),O(0) on 2x2");
    ALL_FAIL(weft_tensor_full(a, rank == 2 ? 7 : 1, NULL, NULL, &out), WEFT_ERR_INVALID,
             "rank 2: rank 7 is not in the tensor's mesh");
    HOLDS(out == NULL);
    WF_TRY(weft_tensor_full(a, 1, NULL, NULL, &out));
    weft_tensor_release(&out);
    return WEFT_OK;
}

TEST_BY(run, ranks_that_pass_other_tensors_are_named, void *unused)
{
    weft_tensor *a = NULL, *b = NULL;
    OWNED(weft_context) *context = NULL;

    (void)unused;
    WF_TRY(weft_init(NULL, &context));
    WF_TRY(weft_tensor_create(context, rows, NULL, &a));
    WF_TRY(weft_tensor_create(context, columns, NULL, &b));
    WF_TRY(weft_tensor_fill(a, 1, NULL));
    WF_TRY(weft_tensor_fill(b, 1, NULL));
    WF_TRY(compare_other_tensors(context, a, b));
    WF_TRY(print_other_tensors(context, a, b));
    WF_TRY(move_other_tensors(context, a));
    weft_tensor_release(&a);
    weft_tensor_release(&b);
    return WEFT_OK;
}

/* A rank without memory at any point: all ranks get its error, and stay in step. */
TEST_BY(run, ranks_stay_in_step_if_one_has_no_memory_to_compare, void *unused)
{
    weft_tensor_difference_info info = {.struct_size = sizeof info};
    weft_tensor *p = NULL, *c = NULL;
    OWNED(weft_context) *context = NULL;
    weft_status status = WEFT_ERR_NO_MEMORY;
    int32_t rank;

    (void)unused;
    WF_TRY(weft_init(NULL, &context));
    rank = weft_rank(context);
    WF_TRY(weft_tensor_create(context, partial, NULL, &p));
    WF_TRY(weft_tensor_create(context, halves, NULL, &c));
    WF_TRY(weft_tensor_fill(p, 1, NULL));
    WF_TRY(weft_tensor_fill(c, 2, NULL));
    WF_TRY(weft_tensor_compare(p, c, NULL, NULL, &info));
    for (uint64_t at = 1; rank < 4 && status != WEFT_OK; at++) {
        if (rank == 3) wf_mem_fail_at(at); /* in the mesh of the first tensor alone */
        status = weft_tensor_compare(p, c, NULL, NULL, &info);
        if (rank == 3) wf_mem_fail_at(0);
        HOLDS(status == WEFT_OK || status == WEFT_ERR_NO_MEMORY);
        HOLDS(at < 10000); /* a communicator that has failed for good returns its error again */
    }
    HOLDS(rank == 4 || (info.equal && info.ranks == 4));
    weft_tensor_release(&p);
    weft_tensor_release(&c);
    return WEFT_OK;
}

TEST_BY(run, ranks_that_wrap_other_shapes_are_named, void *unused)
{
    int64_t shape[2] = {3, 7};
    weft_tensor_options options = {
        .struct_size = sizeof options, .name = "w", .agree = true, .shape = shape};
    weft_tensor *tensor = NULL;
    OWNED(weft_context) *context = NULL;
    int32_t rank;
    float *values;

    (void)unused;
    WF_TRY(weft_init(NULL, &context));
    WF_TRY(copy_to_device(context, (float[35]){0}, 35 * sizeof *values, &values));
    rank = weft_rank(context);
    if (rank == 2 || rank == 3) shape[0] = 2;
    WF_TRY(weft_tensor_wrap(context, rows, values, &options, &tensor));
    weft_tensor_release(&tensor);
    if (rank == 3) shape[0] = 5;
    if (rank < 4)
        REFUSES(weft_tensor_wrap(context, rows, values, &options, &tensor),
                "the memory of rank 3 has the shape [5,7], but its shard has [2,7]");
    options.shape = NULL;
    if (rank < 4)
        FAILS(weft_tensor_wrap(context, rank == 1 ? columns : rows, values, &options, &tensor),
              WEFT_ERR_MISMATCH,
              "rank 0 has f32[5,7] S(0),R on 2x2, but rank 1 has f32[5,7] R,S(1) on 2x2");
    HOLDS(tensor == NULL);
    WF_TRY(weft_free(context, values));
    return WEFT_OK;
}
