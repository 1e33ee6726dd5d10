/* Moves between tensors whose memory overlaps: views of one tensor, and memory that is wrapped
 * twice.  Ranks are threads, or simulated in one process. */
#include "base/base.h"
#include "holds.h"
#include "support/caught.h"
#include "support/layout.h"
#include "support/move.h"
#include "support/suite.h"
#include "tensor/tensor.h"
#include "weft/context.h"
#include "weft/tensor.h"

#include <stdlib.h>

enum { RANKS = 2, ELEMENTS = 24, MOVED = 12 };

/* Move MOVED elements of a tensor from index FROM on to index TO on. */
struct shift {
    const char *layout;
    int64_t from, to;
    bool as_list;
};

static const struct shift shifts[] = {
    {"i32[24] R", 0, 6, false},         {"i32[24] R", 6, 0, false},
    {"i32[24] R", 0, 1, true},          {"i32[24] S(0)", 0, 6, false},
    {"i32[24] S(0)", 6, 0, false},      {"i32[24] S(0)", 12, 11, true},
    {"i32[24] G(0;20,4)", 2, 7, false}, {"i32[24] O(1)", 3, 1, true},
};
static weft_spec *spec;

static weft_status set_numbers(weft_tensor *tensor)
{
    weft_tensor *owned = NULL;
    OWNED(weft_spec) *owner = spec_of("2", "i32[24] O(0)");
    int32_t values[ELEMENTS];

    for (int32_t i = 0; i < ELEMENTS; i++)
        values[i] = i;
    WF_TRY(weft_tensor_create(weft_tensor_context(tensor), owner, NULL, &owned));
    WF_TRY(weft_tensor_from_host(owned, values, sizeof values, NULL));
    WF_TRY(move_into(owned, tensor, NULL, NULL));
    weft_tensor_release(&owned);
    return WEFT_OK;
}

/* After the shift, the elements are those that memmove would give. */
static weft_status check_shifted(weft_tensor *tensor, const struct shift *shift)
{
    weft_tensor *full = NULL;
    int32_t values[RANKS * ELEMENTS];

    WF_TRY(weft_tensor_full(tensor, WEFT_EVERY_RANK, NULL, NULL, &full));
    WF_TRY(weft_tensor_to_host(full, values, sizeof values, NULL));
    for (int64_t i = 0; i < ELEMENTS; i++) {
        bool moved = i >= shift->to && i < shift->to + MOVED;

        HOLDS(values[i] == (int32_t)(moved ? i - shift->to + shift->from : i));
    }
    weft_tensor_release(&full);
    return WEFT_OK;
}

static weft_status move_shifted(weft_context *context, const struct shift *shift)
{
    weft_tensor *tensor = NULL, *from = NULL, *to = NULL;

    WF_TRY(weft_tensor_create(context, spec, NULL, &tensor));
    for (int again = 0; again < 2; again++) {
        WF_TRY(set_numbers(tensor));
        WF_TRY(weft_tensor_narrow(tensor, 0, shift->from, MOVED, &from));
        WF_TRY(weft_tensor_narrow(tensor, 0, shift->to, MOVED, &to));
        if (shift->as_list)
            WF_TRY(weft_tensors_move_into(1, &from, &to, NULL, NULL, NULL));
        else
            WF_TRY(move_into(from, to, NULL, NULL));
        WF_TRY(check_shifted(tensor, shift));
        WF_TRY(move_into(from, from, NULL, NULL)); /* in place, as before */
        weft_tensor_release(&from);
        weft_tensor_release(&to);
    }
    weft_tensor_release(&tensor);
    return WEFT_OK;
}

static weft_status shift_on_ranks(void *shift)
{
    OWNED(weft_context) *context = NULL;

    WF_TRY(weft_init(NULL, &context));
    WF_TRY(move_shifted(context, shift));
    return WEFT_OK;
}

static weft_status shift_simulated(const struct shift *shift)
{
    weft_init_options options = {.struct_size = sizeof options, .simulated_ranks = RANKS};
    OWNED(weft_context) *context = NULL;

    WF_TRY(weft_init(&options, &context));
    WF_TRY(move_shifted(context, shift));
    return WEFT_OK;
}

TEST(overlapping_views_move_as_if_copied)
{
    for (size_t i = 0; i < WF_COUNT(shifts); i++) {
        struct shift shift = shifts[i];

        spec = spec_of("2", shift.layout);
        ck_assert_msg(weft_threads_run(RANKS, shift_on_ranks, &shift) == WEFT_OK,
                      "case %zu on ranks: %s", i, weft_last_error());
        ck_assert_msg(shift_simulated(&shift) == WEFT_OK, "case %zu simulated: %s", i,
                      weft_last_error());
        weft_spec_release(&spec);
    }
}

/* ---- a transposed view, with gaps, and the tensor itself ---- */

static weft_status turn(void *unused)
{
    int32_t values[16], turned[16];
    weft_tensor *tensor = NULL, *view = NULL;
    OWNED(weft_context) *context = NULL;

    (void)unused;
    for (int32_t i = 0; i < 16; i++) {
        values[i] = i;
        turned[i] = i % 4 * 4 + i / 4;
    }
    WF_TRY(weft_init(NULL, &context));
    WF_TRY(weft_tensor_create(context, spec, NULL, &tensor));
    WF_TRY(weft_tensor_transpose(tensor, 0, 1, &view));
    WF_TRY(weft_tensor_from_host(tensor, values, sizeof values, NULL));
    WF_TRY(move_into(view, tensor, NULL, NULL));
    WF_TRY(weft_tensor_to_host(tensor, values, sizeof values, NULL));
    HOLDS(memcmp(values, turned, sizeof values) == 0);
    WF_TRY(move_into(tensor, view, NULL, NULL)); /* and back */
    WF_TRY(weft_tensor_to_host(tensor, values, sizeof values, NULL));
    HOLDS(values[1] == 1 && values[4] == 4 && values[14] == 14);
    weft_tensor_release(&view);
    weft_tensor_release(&tensor);
    return WEFT_OK;
}

TEST(a_tensor_is_transposed_in_its_memory)
{
    spec = spec_of("2", "i32[4,4] R");
    ck_assert_msg(weft_threads_run(RANKS, turn, NULL) == WEFT_OK, "%s", weft_last_error());
    weft_spec_release(&spec);
}

/* ---- memory of simulated ranks ---- */

static weft_status wrap_all(weft_context *context, const char *layout, float *first, float *second)
{
    const weft_tensor_rank_memory ranks[] = {{first, NULL, NULL}, {second, NULL, NULL}};
    weft_tensor_options options = {
        .struct_size = sizeof options, .name = "w", .ranks = ranks, .rank_size = sizeof *ranks};
    OWNED(weft_spec) *wanted = spec_of("2", layout);
    weft_tensor *tensor = NULL;
    weft_status status = weft_tensor_wrap(context, wanted, NULL, &options, &tensor);

    if (status == WEFT_OK) status = weft_tensor_fill(tensor, 5, NULL);
    weft_tensor_release(&tensor);
    return status;
}

TEST(simulated_ranks_have_memory_of_their_own)
{
    weft_init_options options = {.struct_size = sizeof options, .simulated_ranks = RANKS};
    OWNED(weft_context) *context = NULL;
    float values[8] = {0};

    ck_assert_int_eq(weft_init(&options, &context), WEFT_OK);
    ck_assert_int_eq(wrap_all(context, "f32[8] S(0)", values, values + 4), WEFT_OK);
    check_refused(wrap_all(context, "f32[8] S(0)", values, values), WEFT_ERR_INVALID,
                  "weft_tensor_wrap: tensor \"w\": the memory of rank 0, from ");
    check_refused(wrap_all(context, "f32[8] S(0)", values, values + 3), WEFT_ERR_INVALID,
                  " overlaps that of rank 1, from ");
    ck_assert_int_eq(wrap_all(context, "f32[8] R", values, values), WEFT_OK); /* replicas */
    check_refused(wrap_all(context, "f32[4] R", values, values + 1), WEFT_ERR_INVALID,
                  "each rank needs memory of its own");
    check_refused(wrap_all(context, "f32[8] P(sum)", values, values), WEFT_ERR_INVALID,
                  "each rank needs memory of its own");
    ck_assert_int_eq(wrap_all(context, "f32[8] O(1)", values, values), WEFT_OK);
}

enum { MANY = 4096, ALL_PAIRS = MANY * (MANY - 1) / 2 };

/* Every rank of MANY has two floats of VALUES: rank R those that come R-th from the end, but rank
 * TWICE has the first float of another rank's. */
static weft_status wrap_many(weft_context *context, float *values, int32_t twice,
                             uint64_t *comparisons)
{
    weft_tensor_rank_memory *ranks = calloc(MANY, sizeof *ranks);
    weft_tensor_options options = {
        .struct_size = sizeof options, .ranks = ranks, .rank_size = sizeof *ranks};
    weft_spec *wanted = spec_of("4096", "f32[8192] S(0)");
    weft_tensor *tensor = NULL;
    weft_status status;

    for (int32_t i = 0; i < MANY; i++)
        ranks[i].memory = values + 2 * (MANY - 1 - i) + (i == twice);
    status = weft_tensor_wrap(context, wanted, NULL, &options, &tensor);
    if (status == WEFT_OK) status = wf_locals_check_apart(tensor, comparisons);
    weft_tensor_release(&tensor);
    weft_spec_release(&wanted);
    free(ranks);
    return status;
}

TEST(the_memory_of_many_ranks_is_not_compared_pair_by_pair)
{
    weft_init_options options = {.struct_size = sizeof options, .simulated_ranks = MANY};
    weft_context *context = NULL;
    float *values = calloc(2 * MANY + 1, sizeof *values);
    uint64_t comparisons = 0;

    ck_assert_int_eq(weft_init(&options, &context), WEFT_OK);
    ck_assert_int_eq(wrap_many(context, values, -1, &comparisons), WEFT_OK);
    ck_assert_uint_ge(comparisons, MANY);
    ck_assert_uint_lt(comparisons, ALL_PAIRS / 100);
    check_refused(wrap_many(context, values, 1000, &comparisons), WEFT_ERR_INVALID,
                  "the memory of rank 999, from ");
    check_refused(wrap_many(context, values, MANY - 1, &comparisons), WEFT_ERR_INVALID,
                  " overlaps that of rank 4095, from ");
    weft_context_release(&context);
    free(values);
}

TEST(a_context_names_the_tensors_that_are_alive)
{
    weft_init_options options = {.struct_size = sizeof options, .simulated_ranks = RANKS};
    weft_tensor_options named = {.struct_size = sizeof named, .name = "layer1.weight"};
    OWNED(weft_spec) *wanted = spec_of("2", "f32[8] S(0)");
    weft_tensor *tensors[6] = {NULL};
    weft_context *context = NULL;
    void *piece = NULL;

    ck_assert_int_eq(weft_init(&options, &context), WEFT_OK);
    ck_assert_int_eq(weft_alloc(context, 8, WEFT_MEMORY_DEVICE, &piece), WEFT_OK);
    for (int i = 0; i < 6; i++)
        ck_assert_int_eq(weft_tensor_create(context, wanted, i >= 4 ? &named : NULL, &tensors[i]),
                         WEFT_OK);
    weft_tensor_release(&tensors[4]);
    catch_begin();
    weft_context_release(&context);
    ck_assert_str_eq(catch_end(),
                     "weft: warning: weft_context_release: tensors not released: 5: "
                     "\"layer1.weight\" (f32[8] S(0), 32 bytes), (f32[8] S(0), 32 bytes), "
                     "(f32[8] S(0), 32 bytes), (f32[8] S(0), 32 bytes) and 1 more\n"
                     "weft: warning: weft_context_release: pieces of memory not released: 6, with "
                     "the memory of tensors\n");
    for (int i = 0; i < 6; i++)
        weft_tensor_release(&tensors[i]);
}
