/* Tensors as text.  The expected texts are those of NumPy 2.4. */
#include "base/base.h"
#include "holds.h"
#include "support/allocfail.h"
#include "support/layout.h"
#include "support/suite.h"
#include "weft/context.h"
#include "weft/random.h"

#include <math.h>
#include <stdlib.h>

static weft_context *alone; /* a job of one rank */

/* The text of BYTES as a tensor of SPEC, without its first line. */
static void check_text(const char *text, const void *elements, const char *expected)
{
    OWNED(weft_spec) *spec = spec_of("1", text);
    weft_tensor *tensor = NULL;
    char out[4096];
    size_t length = 0;

    ck_assert_int_eq(weft_tensor_create(alone, spec, NULL, &tensor), WEFT_OK);
    ck_assert_int_eq(weft_tensor_from_host(tensor, elements,
                                           (size_t)weft_tensor_shard(tensor)->elements *
                                               weft_dtype_bytes(weft_spec_dtype(spec)),
                                           NULL),
                     WEFT_OK);
    ck_assert_int_eq(weft_tensor_print(tensor, NULL, out, sizeof out, &length), WEFT_OK);
    ck_assert_uint_eq(length, strlen(out));
    ck_assert_str_eq(strchr(out, '\n') + 1, expected);
    ck_assert_int_eq(weft_tensor_full_print(tensor, NULL, NULL, out, sizeof out, NULL), WEFT_OK);
    ck_assert_str_eq(strchr(out, '\n') + 1, expected);
    weft_tensor_release(&tensor);
}

TEST(elements_are_written_as_numpy_does)
{
    static const float quarters[] = {0, 0.25f, 0.5f, 0.75f, 1, 1.25f, 1.5f, 1.75f,
                                     2, 2.25f, 2.5f, 2.75f, 3, 3.25f, 3.5f, 3.75f,
                                     4, 4.25f, 4.5f, 4.75f, 5, 5.25f, 5.5f, 5.75f};
    static const double far[] = {1e-9, 2.5, -3e20};
    static const float others[] = {NAN, -INFINITY, 0.1f, 100};
    static const float parts[] = {1, 2, -0.5f, -1e-3f};
    static const uint16_t halves[] = {0x7bff, 0x2e66, 0xc700}, brains[] = {0x3f80, 0xc040, 0x3dcd};
    static const bool flags[] = {true, false};
    static const int8_t bytes[] = {-128, 5, 77};
    static const float one = 2.5f;
    int32_t thousands[30];

    ck_assert_int_eq(weft_init(NULL, &alone), WEFT_OK);
    for (int i = 0; i < 30; i++)
        thousands[i] = 1000 * i;
    check_text("f32[4,6] R", quarters,
               "[[0.   0.25 0.5  0.75 1.   1.25]\n [1.5  1.75 2.   2.25 2.5  2.75]\n"
               " [3.   3.25 3.5  3.75 4.   4.25]\n [4.5  4.75 5.   5.25 5.5  5.75]]\n");
    check_text("f64[3] R", far, "[ 1.0e-09  2.5e+00 -3.0e+20]\n");
    check_text("f32[4] R", others, "[  nan  -inf   0.1 100. ]\n");
    check_text("c64[2] R", parts, "[ 1. +2.e+00j -0.5-1.e-03j]\n");
    check_text("f16[3] R", halves, "[ 6.55e+04  1.00e-01 -7.00e+00]\n");
    check_text("bf16[3] R", brains, "[ 1.  -3.   0.1]\n");
    check_text("bool[2,1] R", flags, "[[ True]\n [False]]\n");
    check_text("i8[3] R", bytes, "[-128    5   77]\n");
    check_text("f32[0,3] R", NULL, "[]\n");
    check_text("f32[] R", &one, "2.5\n");
    check_text("i32[30] R", thousands,
               "[    0  1000  2000  3000  4000  5000  6000  7000  8000  9000 10000 11000\n"
               " 12000 13000 14000 15000 16000 17000 18000 19000 20000 21000 22000 23000\n"
               " 24000 25000 26000 27000 28000 29000]\n");
    weft_context_release(&alone);
}

TEST(large_arrays_are_shortened)
{
    int32_t *numbers = malloc(2304 * sizeof *numbers);
    char expected[2048] = "";
    size_t at = 0;

    for (int i = 0; i < 2304; i++)
        numbers[i] = i;
    ck_assert_int_eq(weft_init(NULL, &alone), WEFT_OK);
    check_text("i32[57,40] R", numbers,
               "[[   0    1    2 ...   37   38   39]\n [  40   41   42 ...   77   78   79]\n"
               " [  80   81   82 ...  117  118  119]\n ...\n"
               " [2160 2161 2162 ... 2197 2198 2199]\n [2200 2201 2202 ... 2237 2238 2239]\n"
               " [2240 2241 2242 ... 2277 2278 2279]]\n");
    for (int i = 0; i < 2; i++) /* six rows, then as many again */
        for (int j = 0; j < 6; j++) {
            int first = 600 * i + 100 * j;

            at += (size_t)snprintf(expected + at, sizeof expected - at,
                                   "%s[%4d %4d %4d ... %4d %4d %4d]%s",
                                   i + j == 0 ? "[["
                                   : j == 0   ? " ["
                                              : "  ",
                                   first, first + 1, first + 2, first + 97, first + 98, first + 99,
                                   j < 5    ? "\n"
                                   : i == 0 ? "]\n\n"
                                            : "]]\n");
        }
    check_text("i32[2,6,100] R", numbers, expected);
    weft_context_release(&alone);
    free(numbers);
}

/* ---- ranks ---- */

static weft_spec *rows, *partial, *big;

static weft_status print_shards(void *unused)
{
    weft_tensor_options options = {.struct_size = sizeof options, .name = "w"};
    weft_random random = {1, 0};
    float values[3];
    weft_tensor *tensor, *parts, *large, *full;
    OWNED(weft_context) *context = NULL;
    char out[2048], other[2048];
    int32_t rank;

    (void)unused;
    WF_TRY(weft_init(NULL, &context));
    rank = weft_rank(context);
    for (int i = 0; i < 3; i++)
        values[i] = (float)(3 * rank + i);
    WF_TRY(weft_tensor_create(context, rows, &options, &tensor));
    WF_TRY(weft_tensor_from_host(tensor, values, rank < 2 ? sizeof values : 0, NULL));
    WF_TRY(weft_tensor_create(context, partial, NULL, &parts));
    WF_TRY(weft_tensor_create(context, big, NULL, &large));
    WF_TRY(weft_tensor_fill(parts, 1.5, NULL));
    WF_TRY(weft_tensor_normal(large, &random, 0, 1, NULL));
    WF_TRY(weft_tensor_print(tensor, NULL, out, sizeof out, NULL));
    HOLDS(strcmp(out, rank == 0
                          ? "w: f32[2,3] S(0) on 2, rank 0 holds [1,3] from [0,0]\n[[0. 1. 2.]]\n"
                      : rank == 1
                          ? "w: f32[2,3] S(0) on 2, rank 1 holds [1,3] from [1,0]\n[[3. 4. 5.]]\n"
                          : "w: f32[2,3] S(0) on 2, rank 2 is outside the mesh\n") == 0);
    WF_TRY(weft_tensor_full_print(tensor, NULL, NULL, out, sizeof out, NULL));
    HOLDS(strcmp(out, rank < 2 ? "w: f32[2,3] S(0) on 2\n[[0. 1. 2.]\n [3. 4. 5.]]\n"
                               : "w: f32[2,3] S(0) on 2\n") == 0);
    WF_TRY(weft_tensor_full_print(parts, NULL, NULL, out, sizeof out, NULL));
    HOLDS(rank == 2 || strcmp(out, "f32[2] P(sum) on 2\n[3. 3.]\n") == 0);
    WF_TRY(weft_tensor_full(large, WEFT_EVERY_RANK, NULL, NULL, &full));
    WF_TRY(weft_tensor_full_print(large, NULL, NULL, out, sizeof out, NULL));
    WF_TRY(weft_tensor_print(full, NULL, other, sizeof other, NULL));
    HOLDS(rank == 2 || strcmp(strchr(out, '\n'), strchr(other, '\n')) == 0);
    HOLDS(rank == 2 || strstr(out, "...") != NULL);
    weft_tensor_release(&tensor);
    weft_tensor_release(&parts);
    weft_tensor_release(&large);
    weft_tensor_release(&full);
    return WEFT_OK;
}

TEST(ranks_print_their_shards_and_the_whole)
{
    rows = spec_of("2", "f32[2,3] S(0)");
    partial = spec_of("2", "f32[2] P");
    big = spec_of("2", "f64[700,9] SS(0,3)");
    ck_assert_msg(weft_threads_run(3, print_shards, NULL) == WEFT_OK, "%s", weft_last_error());
    weft_spec_release(&rows);
    weft_spec_release(&partial);
    weft_spec_release(&big);
}

/* ---- memory ---- */

static weft_status print_both(void *tensor)
{
    char out[64];

    WF_TRY(weft_tensor_print(tensor, NULL, out, sizeof out, NULL));
    return weft_tensor_full_print(tensor, NULL, NULL, out, sizeof out, NULL);
}

TEST(every_allocation_of_a_text_may_fail)
{
    OWNED(weft_spec) *spec = spec_of("1", "f32[3] R");
    weft_tensor *tensor = NULL;

    ck_assert_int_eq(weft_init(NULL, &alone), WEFT_OK);
    ck_assert_int_eq(weft_tensor_create(alone, spec, NULL, &tensor), WEFT_OK);
    ck_assert_int_eq(weft_tensor_fill(tensor, 1, NULL), WEFT_OK);
    ck_assert_uint_ge(ALLOCATIONS_FAIL(print_both(tensor), (void)0), 4);
    weft_tensor_release(&tensor);
    weft_context_release(&alone);
}
