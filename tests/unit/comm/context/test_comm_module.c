#include "comm/comm.h"
#include "support/allocfail.h"
#include "support/suite.h"

TEST(a_context_without_a_modules_state_is_left_alone)
{
    static weft_context context;
    static weft_comm comm = {.context = &context};
    struct wf_choices choices = {0};

    wf_modules_add_choices(&context, &choices);
    ck_assert_uint_eq(choices.rows.length, 0);
    ck_assert_int_eq(wf_modules_start(&context), WEFT_OK);
    ck_assert_int_eq(wf_modules_bind_thread(&context), WEFT_OK);
    ck_assert_int_eq(wf_modules_check_free(&context, &context), WEFT_OK);
    ck_assert_int_eq(wf_modules_check_wait(&context, NULL, true, WEFT_ERR_TIMEOUT),
                     WEFT_ERR_TIMEOUT);
    wf_modules_stream_ends(&context, &context);
    wf_modules_comm_ends(&comm, "a test");
    wf_modules_stop(&context);
    wf_modules_destroy(&context);
}

/* As weft_init, which releases the context of a module that fails. */
static weft_status create(void *context)
{
    weft_status status = wf_modules_create(context);

    if (status != WEFT_OK) wf_modules_destroy(context);
    return status;
}

static void destroy(void *context)
{
    wf_modules_destroy(context);
}

TEST(state_is_made_and_freed)
{
    static weft_context context;

    pthread_mutex_init(&context.lock, NULL);
    ck_assert_uint_gt(ALLOCATIONS_FAIL(create(&context), destroy(&context)), 0);
    ck_assert_int_eq(wf_modules_create(&context), WEFT_OK);
    for (size_t i = 0; i < WF_MODULE_COUNT; i++)
        ck_assert_ptr_nonnull(context.kept[i]);
    ck_assert_int_eq(wf_modules_check_wait(&context, NULL, true, WEFT_OK), WEFT_OK);
    wf_modules_stop(&context);
    wf_modules_destroy(&context);
    for (size_t i = 0; i < WF_MODULE_COUNT; i++)
        ck_assert_ptr_null(context.kept[i]);
    pthread_mutex_destroy(&context.lock);
}
