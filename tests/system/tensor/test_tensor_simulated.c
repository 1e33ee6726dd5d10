/* One process with the shards of all ranks: what works there, and what is refused. */
#include "base/base.h"
#include "holds.h"
#include "support/allocfail.h"
#include "support/layout.h"
#include "support/move.h"
#include "support/suite.h"
#include "weft/symm.h"
#include "weft/weft.h"

#include <stdlib.h>
#include <string.h>

#define OK(call) ck_assert_msg((call) == WEFT_OK, "%s: %s", #call, weft_last_error())

static weft_context *begin(int32_t ranks)
{
    weft_init_options options = {.struct_size = sizeof options, .simulated_ranks = ranks};
    weft_context *context = NULL;

    OK(weft_init(&options, &context));
    return context;
}

static weft_tensor_local_info local_of(const weft_tensor *tensor, int32_t rank)
{
    weft_tensor_local_info local = {.struct_size = sizeof local};

    OK(weft_tensor_local_of(tensor, rank, &local));
    return local;
}

/* ---- the context ---- */

TEST(a_simulated_context_has_all_ranks)
{
    OWNED(weft_context) *context = begin(8);
    weft_comm *world = weft_world(context);

    ck_assert_int_eq(weft_size(context), 8);
    ck_assert_int_eq(weft_rank(context), 0);
    ck_assert_int_eq(weft_local_size(context), 8);
    ck_assert_int_eq(weft_comm_size(world), 8);
    ck_assert_int_eq(weft_comm_world_rank(world, 7), 7);
    ck_assert_str_eq(weft_comm_name(world), "world");
    ck_assert(weft_comm_same_host(world, 0, 7));
    ck_assert_ptr_nonnull(weft_context_costs(context));
}

TEST(the_environment_sets_the_number)
{
    weft_context *context = NULL;

    setenv("WEFT_SIMULATED_RANKS", "3", 1);
    OK(weft_init(NULL, &context));
    ck_assert_int_eq(weft_size(context), 3);
    weft_context_release(&context);
    setenv("WEFT_SIMULATED_RANKS", "4097", 1);
    check_refused(weft_init(NULL, &context), WEFT_ERR_INVALID,
                  "weft_init: WEFT_SIMULATED_RANKS is 4097; expected 1 to 4096");
    setenv("WEFT_SIMULATED_RANKS", "2", 1);
    setenv("WEFT_RANK", "0", 1);
    setenv("WEFT_SIZE", "2", 1);
    check_refused(weft_init(NULL, &context), WEFT_ERR_INVALID,
                  "weft_init: WEFT_SIMULATED_RANKS is 2, but this process is a rank of a job");
    unsetenv("WEFT_RANK");
    unsetenv("WEFT_SIZE");
    unsetenv("WEFT_SIMULATED_RANKS");
}

static weft_status begin_in_thread(void *unused)
{
    weft_init_options options = {.struct_size = sizeof options, .simulated_ranks = 2};
    weft_context *context = NULL;

    (void)unused;
    FAILS(weft_init(&options, &context), WEFT_ERR_INVALID, "but this thread is a rank of a job");
    return WEFT_OK;
}

TEST(numbers_that_make_no_sense_are_refused)
{
    weft_init_options options = {.struct_size = sizeof options, .simulated_ranks = -1};
    weft_context *context = NULL;

    check_refused(weft_init(&options, &context), WEFT_ERR_INVALID,
                  "weft_init: weft_init_options.simulated_ranks is -1; expected 1 to 4096");
    options.simulated_ranks = 4097;
    check_refused(weft_init(&options, &context), WEFT_ERR_INVALID, "is 4097; expected 1 to 4096");
    options.simulated_ranks = 2;
    options.size = 1;
    check_refused(weft_init(&options, &context), WEFT_ERR_INVALID,
                  "weft_init_options.simulated_ranks is 2 and weft_init_options.size is set");
    OK(weft_threads_run(1, begin_in_thread, NULL));
    ck_assert_ptr_null(context);
}

/* ---- communicators ---- */

#define REFUSED(call)                                                                              \
    check_refused(call, WEFT_ERR_UNSUPPORTED,                                                      \
                  "the 4 ranks of this context are simulated in one process")

TEST(communicators_are_refused)
{
    OWNED(weft_context) *context = begin(4);
    weft_comm *world = weft_world(context), *part = NULL;
    OWNED(weft_spec) *rows = spec_of("4", "f32[8] S(0)"), *all = spec_of("4", "f32[8] R");
    OWNED(weft_mesh) *mesh = mesh_of("4");
    weft_move_item item = {NULL, rows, NULL, all, NULL};
    enum weft_support_level level;
    OWNED(weft_plan) *plan = NULL;
    weft_bound *bound = NULL;
    weft_symm *symm = NULL;
    float in[8] = {0}, out[32];
    int32_t ranks[] = {0, 1};

    REFUSED(weft_all_reduce(world, in, out, 8, WEFT_DTYPE_F32, WEFT_REDUCE_SUM, NULL));
    REFUSED(weft_all_gather(world, in, out, 8, WEFT_DTYPE_F32, NULL));
    REFUSED(weft_barrier(world, NULL));
    REFUSED(weft_send(world, in, 8, WEFT_DTYPE_F32, 1, 0, NULL));
    REFUSED(weft_receive(world, out, 8, WEFT_DTYPE_F32, 1, 0, NULL));
    REFUSED(weft_group_begin(world));
    REFUSED(weft_group_end(world));
    REFUSED(weft_comm_split(world, 0, 0, NULL, &part));
    REFUSED(weft_comm_along(world, mesh, NULL, NULL, &part));
    REFUSED(weft_comm_create(world, 2, ranks, NULL, &part));
    REFUSED(weft_comm_async_error(world));
    REFUSED(
        weft_comm_support(world, WEFT_COLL_ALL_REDUCE, WEFT_DTYPE_F32, WEFT_REDUCE_SUM, &level));
    OK(weft_plan_create(rows, all, NULL, &plan));
    REFUSED(weft_plan_bind(plan, world, NULL, &bound));
    REFUSED(weft_symm_create(world, 64, NULL, &symm));
    REFUSED(move_items(context, 1, &item, NULL, NULL));
    weft_comm_abort(world);
    ck_assert_ptr_null(weft_comm_native(world));
    weft_comm_release(&world); /* a warning; the context keeps it */
    ck_assert_int_eq(weft_comm_size(weft_world(context)), 4);
}

/* ---- shards ---- */

TEST(any_shard_can_be_seen)
{
    OWNED(weft_context) *context = begin(4);
    OWNED(weft_spec) *rows = spec_of("4", "i32[6,2] S(0)");
    weft_tensor_local_info local = {.struct_size = sizeof local};
    weft_tensor *tensor = NULL;
    int32_t host[12];
    char text[1024];

    for (int32_t i = 0; i < 12; i++)
        host[i] = i;
    OK(weft_tensor_create(context, rows, NULL, &tensor));
    OK(weft_tensor_from_host(tensor, host, sizeof host, NULL));
    for (int32_t rank = 0; rank < 3; rank++) {
        local = local_of(tensor, rank);
        ck_assert_int_eq(local.shard.shape[0], 2);
        ck_assert_int_eq(local.shard.offset[0], 2 * rank);
        ck_assert_int_eq(local.strides[0], 2);
        ck_assert_int_eq(((int32_t *)local.memory)[0], 4 * rank);
    }
    ck_assert_int_eq(local_of(tensor, 3).shard.elements, 0);
    ck_assert_ptr_eq(weft_tensor_memory(tensor), local_of(tensor, 0).memory);
    check_refused(weft_tensor_local_of(tensor, 4, &local), WEFT_ERR_INVALID,
                  "weft_tensor_local_of: rank is 4; expected 0 to 3");
    check_refused(weft_tensor_local_of(tensor, -1, &local), WEFT_ERR_INVALID, "rank is -1");
    check_refused(weft_tensor_from_host(tensor, host, 44, NULL), WEFT_ERR_INVALID,
                  "host has 44 bytes, but the shards of all ranks have 48");
    check_refused(
        weft_tensor_from_host(tensor, host, 52, NULL), WEFT_ERR_INVALID,
        "host has 52 bytes, but the shards of all ranks have 48; to distribute an array, call ");
    OK(weft_tensor_print(tensor, NULL, text, sizeof text, NULL));
    ck_assert_str_eq(text, "i32[6,2] S(0) on 4, rank 0 holds [2,2] from [0,0]\n[[0 1]\n [2 3]]\n"
                           "i32[6,2] S(0) on 4, rank 1 holds [2,2] from [2,0]\n[[4 5]\n [6 7]]\n"
                           "i32[6,2] S(0) on 4, rank 2 holds [2,2] from [4,0]\n"
                           "[[ 8  9]\n [10 11]]\n"
                           "i32[6,2] S(0) on 4, rank 3 holds [0,2] from [6,0]\n[]\n");
    weft_tensor_release(&tensor);
}

static weft_status see_own_shard(void *spec)
{
    weft_tensor_local_info local = {.struct_size = sizeof local};
    weft_tensor *tensor = NULL;
    OWNED(weft_context) *context = NULL;
    int32_t rank;

    WF_TRY(weft_init(NULL, &context));
    rank = weft_rank(context);
    WF_TRY(weft_tensor_create(context, spec, NULL, &tensor));
    WF_TRY(weft_tensor_local_of(tensor, rank, &local));
    HOLDS(local.memory == weft_tensor_memory(tensor) && local.shard.offset[0] == 4 * rank);
    FAILS(weft_tensor_local_of(tensor, 1 - rank, &local), WEFT_ERR_UNSUPPORTED,
          "only a context with simulated ranks holds all shards");
    weft_tensor_release(&tensor);
    return WEFT_OK;
}

TEST(a_real_rank_sees_its_own_shard)
{
    OWNED(weft_spec) *rows = spec_of("2", "f32[8] S(0)");

    OK(weft_threads_run(2, see_own_shard, rows));
}

/* ---- the caller's memory ---- */

static int released;

static void count_release(void *argument, void *memory)
{
    if (argument == &released && memory != NULL) released++;
}

TEST(every_ranks_memory_is_wrapped)
{
    static const int64_t gaps[] = {3, 1}, wrong[] = {2, 3};
    OWNED(weft_context) *context = begin(2);
    OWNED(weft_spec) *rows = spec_of("2", "f32[4,2] S(0)"),
                     *columns = spec_of("2", "f32[4,2] S(1)");
    float first[] = {0, 1, -1, 2, 3}, second[] = {4, 5, 6, 7};
    weft_tensor_rank_memory ranks[] = {{first, gaps, NULL}, {second, NULL, NULL}};
    weft_tensor_options options = {.struct_size = sizeof options,
                                   .name = "w",
                                   .release = count_release,
                                   .user = &released,
                                   .ranks = ranks,
                                   .rank_size = sizeof *ranks};
    weft_tensor *tensor = NULL, *moved = NULL;
    const float *got;

    released = 0;
    OK(weft_tensor_wrap(context, rows, NULL, &options, &tensor));
    OK(weft_tensor_move(tensor, columns, NULL, NULL, &moved));
    got = local_of(moved, 1).memory;
    for (int i = 0; i < 4; i++)
        ck_assert_float_eq(got[i], (float)(2 * i + 1));
    OK(move_into(moved, tensor, NULL, NULL));
    ck_assert_float_eq(first[2], -1);
    ck_assert_float_eq(first[4], 3);
    weft_tensor_release(&moved);
    weft_tensor_release(&tensor);
    ck_assert_int_eq(released, 2);
    check_refused(weft_tensor_wrap(context, rows, first, &options, &tensor), WEFT_ERR_INVALID,
                  "weft_tensor_options.ranks is set; memory, strides and shape must be NULL");
    ranks[1].shape = wrong;
    check_refused(weft_tensor_wrap(context, rows, NULL, &options, &tensor), WEFT_ERR_INVALID,
                  "weft_tensor_wrap: tensor \"w\": the memory of rank 1 has the shape [2,3], but "
                  "its shard has [2,2]");
    options.ranks = NULL;
    check_refused(weft_tensor_wrap(context, rows, second, &options, &tensor), WEFT_ERR_INVALID,
                  "memory is that of rank 0 alone, but the shard of rank 1 has 4 elements");
    ck_assert_int_eq(released, 2);
}

TEST(one_rank_may_own_all)
{
    OWNED(weft_context) *context = begin(2);
    OWNED(weft_spec) *whole = spec_of("2", "f32[4] O(0)"), *rows = spec_of("2", "f32[4] S(0)");
    weft_tensor_options options = {
        .struct_size = sizeof options, .release = count_release, .user = &released};
    float values[] = {1, 2, 3, 4};
    weft_tensor *tensor = NULL, *moved = NULL;

    released = 0;
    OK(weft_tensor_wrap(context, whole, values, &options, &tensor));
    OK(weft_tensor_move(tensor, rows, NULL, NULL, &moved));
    ck_assert_float_eq(((float *)local_of(moved, 1).memory)[0], 3);
    weft_tensor_release(&moved);
    check_refused(weft_tensor_wrap(context, rows, values, &options, &moved), WEFT_ERR_INVALID,
                  "ranks are simulated and memory is that of rank 0 alone, but the shard of rank 1 "
                  "has 2 elements; weft_tensor_options.ranks takes the memory of every rank");
    weft_tensor_release(&tensor);
    ck_assert_int_eq(released, 1);
}

TEST(a_move_may_be_in_place)
{
    OWNED(weft_context) *context = begin(2);
    OWNED(weft_spec) *rows = spec_of("2", "f32[2,2] S(0)"),
                     *columns = spec_of("2", "f32[2,2] S(1)");
    float first[] = {0, 1}, second[] = {2, 3};
    const weft_tensor_rank_memory ranks[] = {{first, NULL, NULL}, {second, NULL, NULL}};
    weft_tensor_options options = {sizeof options, .ranks = ranks, .rank_size = sizeof *ranks};
    weft_tensor *from = NULL, *to = NULL;

    OK(weft_tensor_wrap(context, rows, NULL, &options, &from));
    OK(weft_tensor_wrap(context, columns, NULL, &options, &to));
    OK(move_into(from, to, NULL, NULL));
    ck_assert(first[0] == 0 && first[1] == 2 && second[0] == 1 && second[1] == 3);
    weft_tensor_release(&from);
    weft_tensor_release(&to);
}

TEST(dlpack_shares_the_shard_of_a_rank)
{
    OWNED(weft_context) *context = begin(2);
    OWNED(weft_spec) *rows = spec_of("2", "f32[4] S(0)"), *owned = spec_of("2", "f32[2] O(1)");
    OWNED(weft_spec) *large = spec_of("3", "f32[2] O(1)");
    weft_dlpack_options options = {.struct_size = sizeof options, .rank = 1};
    weft_tensor *tensor = NULL, *shared = NULL;
    weft_dl_versioned *managed = NULL;

    OK(weft_tensor_create(context, rows, NULL, &tensor));
    OK(weft_tensor_fill(tensor, 5, NULL));
    OK(weft_tensor_to_dlpack(tensor, &options, (void **)&managed));
    ck_assert_ptr_eq(managed->tensor.data, local_of(tensor, 1).memory);
    options.rank = 0;
    check_refused(weft_tensor_from_dlpack(context, owned, managed, &options, &shared),
                  WEFT_ERR_INVALID,
                  "the memory of rank 0 has the shape [2], but its shard has [0]");
    options.rank = 1;
    check_refused(weft_tensor_from_dlpack(context, rows, managed, &options, &shared),
                  WEFT_ERR_INVALID,
                  "but the shard of rank 0 has 2 elements; import it in a layout in which one rank "
                  "holds all, such as O(0), and move it");
    check_refused(weft_tensor_from_dlpack(context, large, managed, &options, &shared),
                  WEFT_ERR_INVALID, "weft_tensor_from_dlpack: the meshes have ranks up to 2");
    OK(weft_tensor_from_dlpack(context, owned, managed, &options, &shared));
    OK(weft_tensor_fill(shared, 6, NULL));
    ck_assert_float_eq(((float *)local_of(tensor, 1).memory)[1], 6);
    ck_assert_float_eq(((float *)local_of(tensor, 0).memory)[1], 5);
    weft_tensor_release(&shared);
    options.rank = 2;
    check_refused(weft_tensor_to_dlpack(tensor, &options, (void **)&managed), WEFT_ERR_INVALID,
                  "weft_tensor_to_dlpack: weft_dlpack_options.rank is 2; expected 0 to 1");
    weft_tensor_release(&tensor);
}

/* ---- streams, the cache, and the end ---- */

TEST(streams_and_works_keep_their_order)
{
    weft_context *context = begin(4);
    OWNED(weft_spec) *rows = spec_of("4", "f32[8] S(0)"), *all = spec_of("4", "f32[8] R");
    weft_tensor *tensor = NULL, *target = NULL, *late = NULL;
    weft_move_info info = {.struct_size = sizeof info};
    weft_stream *stream = NULL;
    weft_work *work = NULL;

    OK(weft_stream_create(context, &stream));
    OK(weft_tensor_create(context, rows, NULL, &tensor));
    OK(weft_tensor_create(context, all, NULL, &target));
    OK(weft_tensor_fill(tensor, 2, stream));
    OK(move_into(tensor, target, stream, &work));
    OK(weft_work_wait(work, WEFT_FOREVER));
    ck_assert_float_eq(((float *)local_of(target, 3).memory)[7], 2);
    weft_work_release(&work);
    OK(move_into(tensor, target, NULL, NULL));
    OK(weft_move_get(context, &info));
    ck_assert_uint_eq(info.bound, 1);
    OK(weft_move_clear(context));
    OK(weft_move_get(context, &info));
    ck_assert_uint_eq(info.bound, 0);
    weft_stream_release(&stream);
    late = tensor;
    weft_tensor_release(&target);
    weft_context_release(&context);
    check_refused(weft_tensor_fill(late, 1, NULL), WEFT_ERR_INVALID, "the context was released");
    weft_tensor_release(&late);
}

TEST(a_mesh_must_fit_the_ranks)
{
    OWNED(weft_context) *context = begin(2);
    OWNED(weft_spec) *rows = spec_of("2", "f32[8] S(0)"), *all = spec_of("4", "f32[8] R");
    weft_tensor *tensor = NULL, *moved = NULL;
    float values[8] = {0};

    OK(weft_tensor_create(context, rows, NULL, &tensor));
    check_refused(weft_tensor_move(tensor, all, NULL, NULL, &moved), WEFT_ERR_INVALID,
                  "world has 2: simulate more (WEFT_SIMULATED_RANKS=4), or use a smaller mesh");
    check_refused(
        weft_tensor_create(context, all, NULL, &moved), WEFT_ERR_INVALID,
        "weft_tensor_create: the meshes have ranks up to 3 and need 4 ranks; world has 2");
    check_refused(weft_tensor_wrap(context, all, values, NULL, &moved), WEFT_ERR_INVALID,
                  "weft_tensor_wrap: the meshes have ranks up to 3");
    weft_tensor_release(&tensor);
}

/* ---- many ranks ---- */

TEST(four_thousand_ranks_are_simulated)
{
    OWNED(weft_context) *context = begin(WEFT_SIMULATED_MAX);
    OWNED(weft_spec) *rows = spec_of("64x64", "f32[8192,3] S(0),S(0)");
    OWNED(weft_spec) *some = spec_of("64x64", "f32[8192,3] R,S(0)");
    weft_tensor_difference_info info = {.struct_size = sizeof info};
    weft_random first = {3, 0}, second = {3, 0};
    weft_tensor *tensor = NULL, *moved = NULL, *drawn = NULL;

    OK(weft_tensor_create(context, rows, NULL, &tensor));
    OK(weft_tensor_normal(tensor, &first, 0, 1, NULL));
    OK(weft_tensor_move(tensor, some, NULL, NULL, &moved));
    OK(weft_tensor_create(context, some, NULL, &drawn));
    OK(weft_tensor_normal(drawn, &second, 0, 1, NULL));
    OK(weft_tensor_compare(moved, drawn, NULL, NULL, &info));
    ck_assert_msg(info.equal && info.ranks == WEFT_SIMULATED_MAX, "%d", info.ranks);
    ck_assert_int_eq(local_of(moved, WEFT_SIMULATED_MAX - 1).shard.elements, 128 * 3);
    ((float *)local_of(moved, 4000).memory)[7] += 1000;
    OK(weft_tensor_compare(moved, drawn, NULL, NULL, &info));
    ck_assert(!info.equal && info.rank == 4000 && info.differing == 1);
    weft_tensor_release(&tensor);
    weft_tensor_release(&moved);
    weft_tensor_release(&drawn);
}

/* ---- memory that is missing ---- */

static weft_spec *rows_spec, *all_spec;

static void leave(void *context)
{
    weft_context_release(context);
}

static weft_status use_all(void *held)
{
    weft_init_options options = {.struct_size = sizeof options, .simulated_ranks = 3};
    weft_tensor_difference_info info = {.struct_size = sizeof info};
    weft_tensor *tensor = NULL, *moved = NULL, *swapped = NULL;
    weft_context **context = held;
    weft_random random = {1, 0};
    char text[2048];
    weft_status status;

    WF_TRY(weft_init(&options, context));
    status = weft_tensor_create(*context, rows_spec, NULL, &tensor);
    if (status == WEFT_OK) status = weft_tensor_uniform(tensor, &random, 0, 1, NULL);
    if (status == WEFT_OK) status = weft_tensor_transpose(tensor, 0, 1, &swapped);
    if (status == WEFT_OK) status = weft_tensor_move(tensor, all_spec, NULL, NULL, &moved);
    if (status == WEFT_OK) status = move_into(moved, tensor, NULL, NULL);
    if (status == WEFT_OK) status = weft_tensor_compare(moved, tensor, NULL, NULL, &info);
    if (status == WEFT_OK) status = weft_tensor_fill(swapped, 1, NULL);
    if (status == WEFT_OK)
        status = weft_tensor_full_print(swapped, NULL, NULL, text, sizeof text, NULL);
    weft_tensor_release(&moved);
    weft_tensor_release(&swapped);
    weft_tensor_release(&tensor);
    if (status != WEFT_OK) weft_context_release(context);
    return status;
}

TEST(every_allocation_may_fail)
{
    weft_context *context = NULL;

    rows_spec = spec_of("3", "f32[4,3] S(0)");
    all_spec = spec_of("3", "f32[4,3] R");
    ck_assert_uint_gt(ALLOCATIONS_FAIL(use_all(&context), leave(&context)), 20);
    weft_spec_release(&rows_spec);
    weft_spec_release(&all_spec);
}
