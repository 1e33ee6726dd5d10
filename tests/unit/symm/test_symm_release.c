#include "symm/symm.h"
#include "support/caught.h"
#include "support/fake_symm.h"
#include "support/fake_world.h"
#include "support/suite.h"

static struct world_rank ranks[WORLD_MAX];

TEST(a_handle_that_outlives_its_communicator_is_refused)
{
    weft_context *context;
    weft_comm *part;
    weft_symm *symm = NULL;
    void *window;

    fake_reset();
    context = world_alone_on(fake_symm_plugin());
    ck_assert_int_eq(weft_comm_split(weft_world(context), 0, 0, NULL, &part), WEFT_OK);
    ck_assert_int_eq(weft_symm_create(part, 64, NULL, &symm), WEFT_OK);
    window = symm->window;
    wf_log_set_level(WF_LOG_ERROR);
    weft_comm_release(&part);
    wf_log_set_level(WF_LOG_NOTICE);
    ck_assert_ptr_null(weft_symm_comm(symm));
    ck_assert_ptr_null(weft_symm_local(symm));
    ck_assert_int_eq(weft_symm_fence(symm, NULL), WEFT_ERR_INVALID);
    ck_assert_ptr_nonnull(strstr(weft_last_error(), "was released; its symmetric memory"));
    weft_symm_release(&symm);
    weft_context_release(&context);
    (void)fake_window_destroy(window); /* a plugin does so with its communicator */
}

static void note_wait(weft_symm *symm, const void *stream)
{
    struct wf_symm_wait wait = {
        .stream = stream, .channel = 3, .compare = WEFT_COMPARE_EQ, .value = 5};

    wf_symm_note_wait(symm, &wait);
}

/* Release memory on which rank 1 has a wait.  The communicator's error may arrive with a delay. */
static void release_under_a_wait(struct world_rank *self)
{
    weft_comm *world = weft_world(self->context);
    weft_symm *symm = NULL;

    HOLDS(weft_symm_create(world, 64, NULL, &symm) == WEFT_OK);
    if (symm != NULL && self->rank == 1) note_wait(symm, self);
    weft_symm_release(&symm);
    for (int i = 0; i < 5000 && weft_comm_async_error(world) == WEFT_OK; i++)
        fake_sleep_ms(1);
    note_seen(&self->seen, weft_comm_async_error(world));
}

/* On ranks whose bits are set in FAIL the plugin fails. */
static void release_while_failing(uint32_t fail)
{
    fake_reset();
    fake.releases_fail = fail;
    world_begin(ranks, 3, release_under_a_wait, NULL);
    for (int i = 0; i < 3; i++)
        ranks[i].plugin = fake_symm_plugin();
    catch_begin();
    world_go(ranks, 3);
    (void)catch_end();
    ck_assert_int_eq(fake.windows, 0);
    for (int i = 0; i < 3; i++)
        ck_assert_msg(strstr(ranks[i].seen.text,
                             "weft_symm_release on world: rank 1, with a wait for channel 3 of "
                             "rank 0 to be == 5 (it is 0) on a stream: scripted: no release") !=
                          NULL,
                      "rank %d: %s", i, ranks[i].seen.text);
    for (int i = 0; i < 3; i++) /* a time-out is the cause on all ranks */
        ck_assert_int_eq(ranks[i].seen.status, WEFT_ERR_TIMEOUT);
    ck_assert_int_ge(fake.aborted, 3);
}

TEST(a_release_that_fails_is_reported_to_all)
{
    release_while_failing(1u << 1);
}

TEST(the_rank_with_the_wait_gives_the_cause_of_the_timeout)
{
    for (int i = 0; i < 20; i++)
        release_while_failing(7);
}

/* Only rank 1 has an error.  The others get it when rank 1 does not join. */
static void release_when_stuck(struct world_rank *self)
{
    weft_comm *world = weft_world(self->context);
    weft_symm *symm = NULL;

    HOLDS(weft_symm_create(world, 64, NULL, &symm) == WEFT_OK);
    if (self->rank == 1) wf_comm_fail(world, WEFT_ERR_DEVICE, "the device is on fire");
    if (self->rank == 1) weft_symm_release(&symm);
    for (int i = 0; i < 5000 && weft_comm_async_error(world) == WEFT_OK; i++)
        fake_sleep_ms(1);
    note_seen(&self->seen, weft_comm_async_error(world));
    weft_symm_release(&symm);
}

TEST(a_rank_that_omits_a_release_reports_why)
{
    fake_reset();
    world_begin(ranks, 3, release_when_stuck, NULL);
    for (int i = 0; i < 3; i++)
        ranks[i].plugin = fake_symm_plugin();
    world_go(ranks, 3);
    ck_assert_int_eq(ranks[1].seen.status, WEFT_ERR_DEVICE);
    for (int i = 0; i < 3; i += 2) {
        ck_assert_int_eq(ranks[i].seen.status, WEFT_ERR_ABORTED);
        ck_assert_str_eq(ranks[i].seen.text,
                         "weft_symm_release on world: rank 1: the device is on fire");
    }
    ck_assert_int_eq(fake.windows, 0);
}

TEST(waits_end_with_their_communicator)
{
    weft_context *context;
    weft_comm *part;
    weft_symm *symm = NULL, *other = NULL;
    void *window;

    fake_reset();
    context = world_alone_on(fake_symm_plugin());
    ck_assert_int_eq(weft_comm_split(weft_world(context), 0, 0, NULL, &part), WEFT_OK);
    ck_assert_int_eq(weft_symm_create(part, 64, NULL, &symm), WEFT_OK);
    ck_assert_int_eq(weft_symm_create(weft_world(context), 64, NULL, &other), WEFT_OK);
    note_wait(symm, &part);
    window = symm->window;
    catch_begin();
    weft_comm_release(&part);
    ck_assert_ptr_nonnull(strstr(catch_end(), "ends, but its symmetric memory is not released"));
    ck_assert_int_eq(fake.aborted, 1);
    (void)fake_window_destroy(window); /* a plugin does so with its communicator */
    weft_symm_release(&symm);
    note_wait(other, &part);
    window = other->window;
    catch_begin();
    weft_context_release(&context);
    (void)catch_end();
    ck_assert_int_ge(fake.aborted, 2);
    (void)fake_window_destroy(window);
    weft_symm_release(&other);
}

TEST(what_is_in_use_is_not_freed)
{
    OWNED(weft_context) *context = NULL;
    weft_symm *symm = NULL, *registered = NULL, *none = NULL;
    char *memory;

    fake_reset();
    context = world_alone_on(fake_symm_plugin());
    ck_assert_int_eq(weft_alloc(context, 64, WEFT_MEMORY_DEVICE, (void **)&memory), WEFT_OK);
    ck_assert_int_eq(weft_symm_create(weft_world(context), 64, NULL, &symm), WEFT_OK);
    ck_assert_int_eq(weft_symm_create(weft_world(context), 0, NULL, &none), WEFT_OK);
    ck_assert_int_eq(weft_symm_register(weft_world(context), memory, 64, NULL, &registered),
                     WEFT_OK);
    ck_assert_int_eq(weft_free(context, weft_symm_local(symm)), WEFT_ERR_INVALID);
    ck_assert_ptr_nonnull(strstr(weft_last_error(), "belongs to symmetric memory on world; "
                                                    "weft_symm_release frees it"));
    ck_assert_int_eq(weft_free(context, (char *)weft_symm_local(symm) + 63), WEFT_ERR_INVALID);
    ck_assert_int_eq(weft_free(context, weft_symm_local(none)), WEFT_ERR_INVALID);
    ck_assert_int_eq(weft_free(context, memory), WEFT_ERR_INVALID);
    ck_assert_ptr_nonnull(strstr(weft_last_error(), "is registered as symmetric memory on world"));
    ck_assert_uint_eq(wf_ledger_count(&context->ledger), 1);
    weft_symm_release(&registered);
    ck_assert_int_eq(weft_free(context, memory), WEFT_OK);
    weft_symm_release(&none);
    weft_symm_release(&symm);
}
