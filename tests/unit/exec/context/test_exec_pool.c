/* Scratch that bound plans share; tests/system/redistribute has the runs in it. */
#include "support/lone_rank.h"
#include "support/suite.h"

static weft_bind_options no_options = {.struct_size = sizeof no_options};

/* A bound plan of LONE's rank that needs BYTES. */
static weft_status need(struct lone_rank *lone, struct weft_bound *bound, uint64_t bytes)
{
    struct wf_bind_call call = {
        .function = "a test", .parent = &lone->comm, .team = &lone->comm, .given = no_options};

    *bound = *lone->bound;
    return wf_bound_set_scratch(bound, &call, bytes);
}

static void *enter(struct weft_bound *bound, const void *stream, uint64_t extra)
{
    ck_assert_int_eq(wf_scratch_enter(bound, stream, extra, "a test"), WEFT_OK);
    return bound->place != NULL ? bound->place->piece->memory : NULL;
}

static void *run(struct weft_bound *bound, const void *stream)
{
    void *memory = enter(bound, stream, 0);

    wf_scratch_leave(bound);
    return memory;
}

TEST(one_piece_is_reserved_for_many)
{
    struct weft_bound small, large;
    struct lone_rank lone;
    void *memory;

    lone_begin(&lone, 0, 1);
    ck_assert_int_eq(need(&lone, &small, 256), WEFT_OK);
    ck_assert_int_eq(need(&lone, &large, 1024), WEFT_OK);
    ck_assert_uint_eq(wf_exec_state(lone.context)->scratch_bytes, 1024);
    memory = run(&small, NULL);
    ck_assert_ptr_nonnull(memory);
    ck_assert_ptr_eq(run(&large, NULL), memory);
    ck_assert_uint_eq(wf_exec_state(lone.context)->scratch_bytes, 1024);
    wf_scratch_drop(&small);
    wf_scratch_drop(&large);
    lone_end(&lone);
}

TEST(a_pool_that_grows_leaves_the_old_piece_to_its_users)
{
    struct weft_bound small, large;
    struct lone_rank lone;
    void *memory, *other;

    lone_begin(&lone, 0, 1);
    ck_assert_int_eq(need(&lone, &small, 256), WEFT_OK);
    memory = run(&small, NULL);
    ck_assert_int_eq(need(&lone, &large, 1024), WEFT_OK);
    other = run(&large, NULL);
    ck_assert_ptr_ne(other, memory);
    ck_assert_ptr_eq(run(&small, NULL), memory);
    ck_assert_uint_eq(wf_exec_state(lone.context)->scratch_bytes, 1280);
    wf_scratch_drop(&small);
    ck_assert_uint_eq(wf_exec_state(lone.context)->scratch_bytes, 1024);
    ck_assert_ptr_eq(run(&large, NULL), other);
    wf_scratch_drop(&large);
    wf_pools_trim(lone.context);
    ck_assert_uint_eq(wf_exec_state(lone.context)->scratch_bytes, 0);
    lone_end(&lone);
}

TEST(a_run_holds_its_pool)
{
    struct weft_bound first, second;
    struct lone_rank lone;
    void *memory, *other;

    lone_begin(&lone, 0, 1);
    ck_assert_int_eq(need(&lone, &first, 256), WEFT_OK);
    ck_assert_int_eq(need(&lone, &second, 256), WEFT_OK);
    memory = enter(&first, NULL, 0);
    other = enter(&second, NULL, 0); /* as another thread would */
    ck_assert_ptr_ne(memory, other);
    wf_scratch_leave(&second);
    wf_scratch_leave(&first);
    ck_assert_ptr_eq(run(&first, NULL), memory);
    ck_assert_ptr_eq(run(&second, NULL), other);
    wf_scratch_drop(&first);
    wf_scratch_drop(&second);
    lone_end(&lone);
}

TEST(streams_have_their_own_and_inherit)
{
    struct weft_bound bound;
    struct lone_rank lone;
    weft_stream *streams[2];
    void *memory[2];

    lone_begin(&lone, 0, 1);
    for (int i = 0; i < 2; i++)
        ck_assert_int_eq(weft_stream_create(lone.context, &streams[i]), WEFT_OK);
    ck_assert_ptr_ne(streams[0], streams[1]);
    ck_assert_int_eq(need(&lone, &bound, 256), WEFT_OK);
    memory[0] = run(&bound, NULL);
    memory[1] = run(&bound, streams[0]);
    ck_assert_ptr_ne(memory[0], memory[1]);
    ck_assert_ptr_eq(run(&bound, NULL), memory[0]);
    ck_assert_ptr_eq(run(&bound, streams[0]), memory[1]);
    weft_stream_release(&streams[0]);
    ck_assert_ptr_eq(run(&bound, streams[1]), memory[1]);
    ck_assert_uint_eq(wf_exec_state(lone.context)->scratch_bytes, 512);
    weft_stream_release(&streams[1]);
    wf_scratch_drop(&bound);
    lone_end(&lone);
}

TEST(room_for_a_copy_lies_behind)
{
    struct weft_bound bound, none;
    struct lone_rank lone;
    char *memory;

    lone_begin(&lone, 0, 1);
    ck_assert_int_eq(need(&lone, &bound, 256), WEFT_OK);
    ck_assert_int_eq(need(&lone, &none, 0), WEFT_OK);
    ck_assert_ptr_null(run(&none, NULL));
    memory = enter(&bound, NULL, 100);
    ck_assert_ptr_eq(wf_scratch_extra(&bound), memory + 256);
    memset(memory, 0, 356);
    wf_scratch_leave(&bound);
    ck_assert_ptr_null(wf_scratch_extra(&bound));
    memory = enter(&none, NULL, 100);
    ck_assert_ptr_eq(wf_scratch_extra(&none), memory);
    wf_scratch_leave(&none);
    wf_scratch_drop(&bound);
    wf_scratch_drop(&none);
    lone_end(&lone);
}

/* Every allocation of reserving and of the first run fails once. */
TEST(without_memory_nothing_is_left)
{
    weft_status status = WEFT_ERR_NO_MEMORY;

    for (uint64_t n = 1; status != WEFT_OK; n++) {
        struct weft_bound bound;
        struct lone_rank lone;

        lone_begin(&lone, 0, 1);
        wf_mem_fail_at(n);
        status = need(&lone, &bound, 256);
        if (status == WEFT_OK) status = wf_scratch_enter(&bound, NULL, 64, "a test");
        wf_mem_fail_at(0);
        wf_scratch_leave(&bound);
        ck_assert(status == WEFT_OK || status == WEFT_ERR_NO_MEMORY);
        ck_assert_uint_lt(n, 20);
        wf_scratch_drop(&bound);
        lone_end(&lone);
        ck_assert_int_eq(wf_mem_live(), 0);
    }
}
