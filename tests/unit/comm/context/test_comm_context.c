#include "support/allocfail.h"
#include "support/fake_world.h"
#include "support/suite.h"

static struct world_rank ranks[WORLD_MAX];

TEST(a_world_of_one_needs_no_rendezvous)
{
    weft_context *context;
    weft_device_info info = {.struct_size = sizeof info};

    fake_reset();
    context = world_alone();
    ck_assert_int_eq(weft_rank(context), 0);
    ck_assert_int_eq(weft_size(context), 1);
    ck_assert_int_eq(weft_local_rank(context), 0);
    ck_assert_int_eq(weft_local_size(context), 1);
    ck_assert_str_eq(weft_comm_name(weft_world(context)), "world");
    ck_assert_ptr_eq(weft_context_plugin(context), fake_plugin());
    ck_assert_ptr_nonnull(weft_context_device(context));
    ck_assert_int_eq(weft_device_get(context, &info), WEFT_OK);
    ck_assert_str_eq(info.name, "fake");
    weft_context_release(&context);
    ck_assert_ptr_null(context);
    weft_context_release(&context);
    weft_context_release(NULL);
    ck_assert_int_eq(fake.devices, 0);
}

TEST(null_contexts_have_an_answer)
{
    ck_assert_int_eq(weft_rank(NULL), -1);
    ck_assert_int_eq(weft_size(NULL), 0);
    ck_assert_int_eq(weft_local_rank(NULL), -1);
    ck_assert_int_eq(weft_local_size(NULL), 0);
    ck_assert_ptr_null(weft_world(NULL));
    ck_assert_ptr_null(weft_context_plugin(NULL));
    ck_assert_ptr_null(weft_context_device(NULL));
    ck_assert_int_eq(weft_init(NULL, NULL), WEFT_ERR_INVALID);
    ck_assert_int_eq(weft_device_get(NULL, NULL), WEFT_ERR_INVALID);
}

TEST(options_are_checked)
{
    weft_init_options options = {.struct_size = 1};
    OWNED(weft_context) *context = NULL;

    fake_reset();
    ck_assert_int_eq(wf_context_create(&options, fake_plugin(), &context), WEFT_ERR_INVALID);
    ck_assert_ptr_nonnull(strstr(weft_last_error(), "struct_size is 1"));
    options = (weft_init_options){.struct_size = sizeof options, .size = -1};
    ck_assert_int_eq(wf_context_create(&options, fake_plugin(), &context), WEFT_ERR_INVALID);
    options = (weft_init_options){.struct_size = sizeof options, .timeout_ns = -2};
    ck_assert_int_eq(wf_context_create(&options, fake_plugin(), &context), WEFT_ERR_INVALID);
    options = (weft_init_options){.struct_size = sizeof(void *), .size = 99};
    ck_assert_int_eq(wf_context_create(&options, fake_plugin(), &context), WEFT_ERR_INVALID);
    ck_assert_ptr_nonnull(strstr(weft_last_error(), "set it to sizeof(weft_init_options)"));
}

TEST(differing_digests_are_a_table)
{
    fake_reset();
    world_begin(ranks, 4, NULL, NULL);
    for (int i = 0; i < 4; i++) {
        ranks[i].digest = i == 2 ? "other" : "table";
        ranks[i].digest_bytes = 5;
    }
    world_go(ranks, 4);
    all_saw(ranks, 4, WEFT_ERR_MISMATCH, "cost table");
    all_saw(ranks, 4, WEFT_ERR_MISMATCH, "ranks 0, 1 and 3");
    all_saw(ranks, 4, WEFT_ERR_MISMATCH, "rank 2");
    ck_assert_int_eq(fake.devices, 0);
}

TEST(differing_time_limits_are_a_table)
{
    fake_reset();
    world_begin(ranks, 2, NULL, NULL);
    ranks[1].timeout_ns = 7 * WF_SECOND_NS;
    world_go(ranks, 2);
    all_saw(ranks, 2, WEFT_ERR_MISMATCH, "time limit       300000000000 ns");
    all_saw(ranks, 2, WEFT_ERR_MISMATCH, "7000000000 ns            rank 1");
}

static void check_place(struct world_rank *self)
{
    weft_context *context = self->context;

    HOLDS(weft_rank(context) == self->rank);
    HOLDS(weft_size(context) == self->size);
    HOLDS(weft_local_size(context) == self->size);
    HOLDS(weft_comm_same_host(weft_world(context), 0, self->size - 1));
    HOLDS(context->job != 0);
}

TEST(ranks_know_their_place)
{
    fake_reset();
    world_run(ranks, 5, check_place, NULL);
    all_saw(ranks, 5, WEFT_OK, "");
}

TEST(a_backend_that_is_not_there_is_everyones_error)
{
    weft_context *context;
    weft_init_options options = {
        .struct_size = sizeof options, .size = 1, .backend = "/no/such/libweft_plugin_x.so"};

    ck_assert_int_eq(weft_init(&options, &context), WEFT_ERR_NO_BACKEND);
    ck_assert_ptr_nonnull(strstr(weft_last_error(), "/no/such/libweft_plugin_x.so"));
}

TEST(no_allocation_that_fails_leaves_anything)
{
    weft_init_options options = {.struct_size = sizeof options, .size = 1};
    weft_context *context = NULL;

    fake_reset();
    ALLOCATIONS_FAIL(wf_context_create(&options, fake_plugin(), &context),
                     weft_context_release(&context));
    ck_assert_int_eq(fake.devices, 0);
    ck_assert_int_eq(fake.prepared, fake.destroyed);
}

TEST(no_allocation_of_a_communicator_that_fails_leaves_anything)
{
    weft_context *held;
    weft_comm *comm = NULL;

    fake_reset();
    held = world_alone();
    for (int i = 0; i < WF_REMNANTS; i++) { /* the context keeps as many released objects */
        ck_assert_int_eq(weft_comm_split(weft_world(held), 0, 0, NULL, &comm), WEFT_OK);
        weft_comm_release(&comm);
    }
    ALLOCATIONS_FAIL(weft_comm_split(weft_world(held), 0, 0, NULL, &comm),
                     weft_comm_release(&comm));
    ALLOCATIONS_FAIL(weft_comm_create(weft_world(held), 1, (int32_t[]){0}, NULL, &comm),
                     weft_comm_release(&comm));
    weft_context_release(&held);
    ck_assert_int_eq(fake.prepared, fake.destroyed);
}

TEST(communicators_that_were_forgotten_go_with_the_context)
{
    weft_context *context;
    weft_comm *comm;
    int64_t live = wf_mem_live();

    fake_reset();
    wf_log_set_level(WF_LOG_ERROR);
    context = world_alone();
    ck_assert_int_eq(weft_comm_split(weft_world(context), 0, 0, NULL, &comm), WEFT_OK);
    wf_log_set_level(WF_LOG_ERROR);
    weft_context_release(&context);
    wf_log_set_level(WF_LOG_NOTICE);
    ck_assert_int_eq(fake.prepared, fake.destroyed);
    weft_comm_release(&comm);
    ck_assert_ptr_null(comm);
    ck_assert_int_eq(wf_mem_live(), live);
}
