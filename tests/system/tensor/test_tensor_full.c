/* Tensors from a buffer in which every rank has the whole tensor. */
#include "holds.h"
#include "support/layout.h"
#include "support/suite.h"
#include "weft/context.h"
#include "weft/tensor.h"

enum { RANKS = 5, ROWS = 7, COLUMNS = 6 }; /* the mesh has four of the ranks */

static const char *const layouts[] = {
    "S(0),S(1)", "S(1),S(0)",     "S(0),S(0)",       "R,R",         "SS(0,2),R", "B(1;2,4),S(0)",
    "R,O(1)",    "G(0;3,4),S(1)", "S(0)[1],S(0)[0]", "P(sum),S(0)", "O(0),O(1)", "R,P(max)",
};

/* Element i of the whole tensor is i + 1. */
static weft_status check_values(weft_tensor *tensor)
{
    weft_tensor *full = NULL;
    float values[ROWS * COLUMNS];

    WF_TRY(weft_tensor_full(tensor, 0, NULL, NULL, &full));
    if (weft_tensor_shard(full)->elements > 0) {
        WF_TRY(weft_tensor_to_host(full, values, sizeof values, NULL));
        for (int i = 0; i < ROWS * COLUMNS; i++)
            HOLDS(values[i] == (float)(i + 1));
    }
    weft_tensor_release(&full);
    return WEFT_OK;
}

static weft_status keep_shards(weft_context *context, const weft_spec *spec)
{
    static const int64_t gaps[] = {COLUMNS + 2, 1};
    weft_tensor_options options = {.struct_size = sizeof options, .name = "w", .strides = gaps};
    float whole[ROWS * COLUMNS], wide[ROWS * (COLUMNS + 2)] = {0};
    weft_tensor *tensor = NULL;

    for (int i = 0; i < ROWS * COLUMNS; i++)
        whole[i] = wide[i / COLUMNS * (COLUMNS + 2) + i % COLUMNS] = (float)(i + 1);
    WF_TRY(weft_tensor_from_full(context, spec, whole, NULL, NULL, &tensor));
    HOLDS(weft_tensor_spec(tensor) == spec);
    WF_TRY(check_values(tensor));
    weft_tensor_release(&tensor);
    WF_TRY(weft_tensor_from_full(context, spec, wide, &options, NULL, &tensor));
    HOLDS(strcmp(weft_tensor_name(tensor), "w") == 0);
    for (int i = 0; i < ROWS * COLUMNS; i++)
        whole[i] = 0; /* the tensor has memory of its own */
    WF_TRY(check_values(tensor));
    weft_tensor_release(&tensor);
    return WEFT_OK;
}

static weft_status try_layouts(weft_context *context)
{
    for (size_t i = 0; i < WF_COUNT(layouts); i++) {
        OWNED(weft_spec) *whole = spec_of("dp=2,tp=2@0,1,3,4", "f32[7,6] R,R"), *spec = NULL;

        WF_TRY(weft_spec_with(whole, layouts[i], &spec));
        WF_TRY(keep_shards(context, spec));
    }
    return WEFT_OK;
}

TEST_ON_RANKS(RANKS, each_rank_keeps_its_shard)
{
    OWNED(weft_context) *context = NULL;
    weft_status status;

    WF_TRY(weft_init(NULL, &context));
    status = try_layouts(context);
    return status;
}

TEST(so_does_each_simulated_rank)
{
    weft_init_options options = {.struct_size = sizeof options, .simulated_ranks = RANKS};
    OWNED(weft_context) *context = NULL;

    ck_assert_int_eq(weft_init(&options, &context), WEFT_OK);
    ck_assert_msg(try_layouts(context) == WEFT_OK, "%s", weft_last_error());
}

TEST(other_options_are_refused)
{
    weft_init_options alone = {.struct_size = sizeof alone, .size = 1};
    weft_tensor_options options = {.struct_size = sizeof options};
    OWNED(weft_spec) *spec = spec_of("1", "f32[4] S(0)");
    float whole[4] = {0};
    OWNED(weft_context) *context = NULL;
    weft_tensor *tensor = NULL;

    ck_assert_int_eq(weft_init(&alone, &context), WEFT_OK);
    options.shape = (int64_t[]){4};
    check_refused(weft_tensor_from_full(context, spec, whole, &options, NULL, &tensor),
                  WEFT_ERR_INVALID, "weft_tensor_from_full: weft_tensor_options.shape is set");
    check_refused(weft_tensor_from_full(context, spec, NULL, NULL, NULL, &tensor), WEFT_ERR_INVALID,
                  "NULL");
    ck_assert_ptr_null(tensor);
}

TEST(memory_of_ranks_has_the_size_of_its_struct)
{
    struct newer {
        weft_tensor_rank_memory one;
        const void *unknown;
    } ranks[2] = {{{0}, NULL}, {{0}, NULL}};
    weft_init_options simulated = {.struct_size = sizeof simulated, .simulated_ranks = 2};
    weft_tensor_options options = {.struct_size = sizeof options, .ranks = &ranks[0].one};
    weft_spec *spec = spec_of("2", "f32[4] S(0)");
    float first[2], second[2];
    weft_context *context = NULL;
    weft_tensor *tensor = NULL;

    ck_assert_int_eq(weft_init(&simulated, &context), WEFT_OK);
    ranks[0].one.memory = first;
    ranks[1].one.memory = second;
    check_refused(weft_tensor_wrap(context, spec, NULL, &options, &tensor), WEFT_ERR_INVALID,
                  "the size of a weft_tensor_rank_memory is given as 0; pass "
                  "sizeof(weft_tensor_rank_memory)");
    options.rank_size = sizeof *ranks;
    ck_assert_int_eq(weft_tensor_wrap(context, spec, NULL, &options, &tensor), WEFT_OK);
    ck_assert_int_eq(weft_tensor_fill(tensor, 3, NULL), WEFT_OK);
    ck_assert(first[1] == 3 && second[0] == 3);
    weft_tensor_release(&tensor);
    ranks[1].unknown = first;
    check_refused(weft_tensor_wrap(context, spec, NULL, &options, &tensor), WEFT_ERR_VERSION,
                  "weft_tensor_rank_memory has 32 bytes");
    weft_spec_release(&spec);
    weft_context_release(&context);
}
