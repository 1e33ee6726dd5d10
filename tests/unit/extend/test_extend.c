/* Objects, agreement and records of libraries on top of weft. */
#include "weft/extend.h"

#include "base/fork.h"
#include "support/counts.h"
#include "support/fake_world.h"
#include "support/suite.h"

#include <stdio.h>
#include <string.h>

static struct world_rank ranks[WORLD_MAX];

static void refused(const weft_object *object, const char *text)
{
    ck_assert_int_eq(weft_object_check(object, "my_cache", "my_cache_fill", "cache"),
                     WEFT_ERR_INVALID);
    ck_assert_str_eq(weft_last_error(), text);
}

TEST(an_object_of_its_type_is_accepted)
{
    weft_object object;

    weft_object_begin(&object, "my_cache");
    ck_assert_int_eq(weft_object_check(&object, "my_cache", "my_cache_fill", "cache"), WEFT_OK);
}

TEST(other_pointers_are_refused)
{
    weft_object object;
    uint64_t tensor = WF_OF_KIND(WF_KIND_TENSOR);

    refused(NULL, "my_cache_fill: cache is NULL");
    weft_object_begin(&object, "my_index");
    refused(&object,
            "my_cache_fill: cache does not point to a my_cache; it may have been released");
    refused((const weft_object *)&tensor,
            "my_cache_fill: cache is a weft_tensor; expected a my_cache");
    weft_object_begin(&object, "my_cache");
    ck_assert(!weft_object_end(&object, "my_index", "my_index_release"));
    ck_assert(weft_object_end(&object, "my_cache", "my_cache_release"));
    ck_assert(!weft_object_end(&object, "my_cache", "my_cache_release"));
    refused(&object, "my_cache_fill: cache is a my_cache that was released");
}

TEST(an_object_of_a_parent_process_is_refused)
{
    weft_object object;

    weft_object_begin(&object, "my_cache");
    object.mark++; /* as a fork sees it */
    ck_assert_int_eq(weft_object_check(&object, "my_cache", "my_cache_fill", "cache"),
                     WEFT_ERR_INVALID);
    ck_assert_ptr_nonnull(strstr(weft_last_error(), "my_cache_fill: this process is a fork"));
}

static void refused_as(const void *object, const char *type, const char *text)
{
    ck_assert_int_ne(weft_object_check(object, type, "my_fill", "it"), WEFT_OK);
    ck_assert_ptr_nonnull(strstr(weft_last_error(), text));
}

TEST(objects_of_weft_are_checked_by_their_names)
{
    OWNED(weft_context) *context = NULL;
    OWNED(weft_mesh) *mesh = NULL;

    fake_reset();
    context = world_alone();
    ck_assert_int_eq(weft_mesh_parse("2", &mesh), WEFT_OK);
    ck_assert_int_eq(weft_object_check(context, "weft_context", "my_fill", "it"), WEFT_OK);
    ck_assert_int_eq(weft_object_check(weft_world(context), "weft_comm", "my_fill", "it"), WEFT_OK);
    ck_assert_int_eq(weft_object_check(mesh, "weft_mesh", "my_fill", "it"), WEFT_OK);
    refused_as(mesh, "weft_comm", "my_fill: comm is a weft_mesh; expected a weft_comm");
    refused_as(mesh, "weft_tensor", "my_fill: it is a weft_mesh; expected a weft_tensor");
    refused_as(mesh, "weft_spec", "my_fill: it is a weft_mesh; expected a weft_spec");
    refused_as(NULL, "weft_context", "my_fill: context is NULL");
}

TEST(a_stream_of_another_context_is_refused)
{
    static const char other_text[] =
        "my_fill: the stream does not belong to this context; it belongs to another context, or "
        "was released";
    weft_stream *stream = NULL, *released;
    weft_context *context;

    fake_reset();
    context = world_alone();
    ck_assert_int_eq(weft_stream_create(context, &stream), WEFT_OK);
    ck_assert_int_eq(weft_stream_check(context, NULL, "my_fill"), WEFT_OK);
    ck_assert_int_eq(weft_stream_check(context, stream, "my_fill"), WEFT_OK);
    released = stream;
    weft_stream_release(&stream);
    ck_assert_int_eq(weft_stream_check(context, released, "my_fill"), WEFT_ERR_INVALID);
    ck_assert_str_eq(weft_last_error(), other_text);
    weft_context_release(&context);
    ck_assert_int_eq(weft_stream_check(NULL, NULL, "my_fill"), WEFT_ERR_INVALID);
    ck_assert_ptr_nonnull(strstr(weft_last_error(), "my_fill: context is NULL"));
}

TEST(kernels_are_the_plugins_or_those_of_the_host)
{
    weft_context *context;
    const weft_plugin *before;
    weft_plugin plugin;
    void *device = NULL;

    fake_reset();
    context = world_alone();
    before = context->plugin;
    plugin = *before;
    plugin.kernel = NULL;
    context->plugin = &plugin;
    ck_assert_ptr_nonnull(weft_context_kernels(context, &device));
    ck_assert(weft_context_kernels(context, &device)->regions_copy != NULL);
    ck_assert_ptr_eq(device, context); /* the host's take it */
    plugin.kernel = &(weft_kernel_table){
        .struct_size = sizeof(weft_kernel_table),
        .regions_create = weft_context_kernels(context, &device)->regions_create};
    ck_assert_ptr_eq(weft_context_kernels(context, &device), plugin.kernel);
    ck_assert_ptr_eq(device, weft_context_device(context));
    context->plugin = before;
    ck_assert_ptr_null(weft_context_kernels(NULL, &device));
    weft_context_release(&context);
}

TEST(a_reworded_error_keeps_the_vendor)
{
    uint64_t before = weft_failure_count();
    int64_t code = 0;

    wf_fail_vendor(WEFT_ERR_DEVICE, "libdevice", 7, "too warm");
    ck_assert_uint_eq(weft_failure_count(), before + 1);
    ck_assert_int_eq(weft_fail_reword(WEFT_ERR_DEVICE, "my_fill: %s", weft_last_error()),
                     WEFT_ERR_DEVICE);
    ck_assert_str_eq(weft_last_error(), "my_fill: too warm");
    ck_assert_str_eq(weft_last_error_vendor(&code), "libdevice");
    ck_assert_int_eq(code, 7);
    ck_assert_uint_eq(weft_failure_count(), before + 1);
}

/* ---- dependents ---- */

struct kept {
    char calls[8]; /* 'l': leave, 'e': end */
    char cause[64];
    weft_dependent *dependent;
};

static void note(struct kept *kept, char call)
{
    kept->calls[strlen(kept->calls)] = call;
}

static void on_leave(void *user)
{
    note(user, 'l');
}

static void on_end(void *user, const char *cause)
{
    struct kept *kept = user;

    note(kept, 'e');
    snprintf(kept->cause, sizeof kept->cause, "%s", cause);
}

static const weft_dependent_calls both = {sizeof both, on_leave, on_end};
static const weft_dependent_calls neither = {.struct_size = sizeof neither};
static const weft_dependent_calls more[6] = {{.struct_size = sizeof more[0]}};

TEST(a_dependent_leaves_and_ends_before_its_communicator)
{
    struct kept kept = {0}, released = {0}, silent = {0};
    weft_context *context;
    weft_comm *world;

    fake_reset();
    context = world_alone();
    world = weft_world(context);
    ck_assert_ptr_null(weft_dependent_find(world, &both));
    ck_assert_int_eq(weft_dependent_create(world, &both, &kept, &kept.dependent), WEFT_OK);
    ck_assert_int_eq(weft_dependent_create(world, &both, &released, &released.dependent), WEFT_OK);
    ck_assert_int_eq(weft_dependent_create(world, &neither, &silent, &silent.dependent), WEFT_OK);
    ck_assert_ptr_eq(weft_dependent_find(world, &both), &released);
    ck_assert_ptr_eq(weft_dependent_find(world, &neither), &silent);
    weft_dependent_release(&released.dependent);
    ck_assert_ptr_null(released.dependent);
    ck_assert_ptr_eq(weft_dependent_find(world, &both), &kept);
    weft_context_release(&context);
    ck_assert_str_eq(kept.calls, "le");
    ck_assert_str_eq(kept.cause, "the context was released");
    ck_assert_str_eq(released.calls, "");
    weft_dependent_release(&kept.dependent); /* after the communicator's end */
    weft_dependent_release(&silent.dependent);
}

/* A dependent that was found once is found without the list, and is the newest one all the same. */
TEST(the_newest_dependent_is_found_again)
{
    struct kept first = {0}, second = {0}, others[6];
    weft_context *context;
    weft_comm *world;

    fake_reset();
    context = world_alone();
    world = weft_world(context);
    memset(others, 0, sizeof others);
    ck_assert_int_eq(weft_dependent_create(world, &both, &first, &first.dependent), WEFT_OK);
    for (int i = 0; i < 6; i++)
        ck_assert_int_eq(weft_dependent_create(world, &more[i], &others[i], &others[i].dependent),
                         WEFT_OK);
    for (int round = 0; round < 2; round++) {
        ck_assert_ptr_eq(weft_dependent_find(world, &both), &first);
        for (int i = 0; i < 6; i++)
            ck_assert_ptr_eq(weft_dependent_find(world, &more[i]), &others[i]);
    }
    ck_assert_int_eq(weft_dependent_create(world, &both, &second, &second.dependent), WEFT_OK);
    ck_assert_ptr_eq(weft_dependent_find(world, &both), &second);
    weft_dependent_release(&second.dependent);
    ck_assert_ptr_eq(weft_dependent_find(world, &both), &first);
    weft_dependent_release(&first.dependent);
    ck_assert_ptr_null(weft_dependent_find(world, &both));
    weft_context_release(&context);
    for (int i = 0; i < 6; i++)
        weft_dependent_release(&others[i].dependent);
}

TEST(a_communicator_that_ended_has_no_dependents)
{
    weft_dependent *dependent = NULL;

    ck_assert_int_eq(weft_dependent_create(NULL, &both, NULL, &dependent), WEFT_ERR_INVALID);
    ck_assert_ptr_null(weft_dependent_find(NULL, &both));
    weft_dependent_release(NULL);
    weft_dependent_release(&dependent);
}

/* Every rank passes as many letters as its number and one. */
static void exchange(struct world_rank *self)
{
    weft_comm *world = weft_world(self->context);
    weft_answers *answers = NULL;

    HOLDS(weft_agree(world, "my_step", WEFT_OK, "abc", (size_t)self->rank + 1, NULL, &answers) ==
          WEFT_OK);
    for (int32_t rank = 0; rank < 3; rank++) {
        HOLDS(weft_answers_bytes(answers, rank) == (size_t)rank + 1);
        HOLDS(memcmp(weft_answers_data(answers, rank), "abc", (size_t)rank + 1) == 0);
    }
    HOLDS(weft_answers_data(answers, 3) == NULL && weft_answers_bytes(answers, -1) == 0);
    weft_answers_release(&answers);
    HOLDS(answers == NULL);
    weft_answers_release(&answers);
}

TEST(every_rank_has_the_data_of_all)
{
    fake_reset();
    world_run(ranks, 3, exchange, NULL);
}

static void fail_on_one(struct world_rank *self)
{
    weft_status status = self->rank == 1 ? weft_fail(WEFT_ERR_DEVICE, "too warm") : WEFT_OK;
    weft_answers *answers = NULL;

    note_seen(&self->seen,
              weft_agree(weft_world(self->context), "my_step", status, NULL, 0, NULL, &answers));
    HOLDS(answers == NULL);
}

TEST(a_failure_of_one_rank_is_the_failure_of_all)
{
    fake_reset();
    world_run(ranks, 3, fail_on_one, NULL);
    all_saw(ranks, 3, WEFT_ERR_DEVICE, "my_step: rank 1: too warm");
}

/* ---- failure of one rank ---- */

/* Rank 1 fails alone, and the others wait for it in a step. */
static void give_up_on_one(struct world_rank *self)
{
    const weft_status want = *(const weft_status *)self->argument;
    weft_comm *world = weft_world(self->context);
    weft_answers *answers = NULL;
    weft_status status;

    HOLDS(weft_comm_fail(world, "my_fill", WEFT_OK) == WEFT_OK);
    if (self->rank == 1) {
        status = weft_comm_fail(world, "my_fill", weft_fail(want, "too warm"));
        HOLDS(status == want);
        HOLDS(strstr(weft_last_error(), "my_fill on world: rank 1: too warm") != NULL);
        /* The first cause stays. */
        status = weft_comm_fail(world, "my_fill", weft_fail(WEFT_ERR_PARSE, "too cold"));
        HOLDS(status == WEFT_ERR_PARSE);
        HOLDS(strcmp(weft_last_error(), "my_fill: too cold") == 0);
        HOLDS(weft_comm_async_error(world) == want);
    } else {
        status = weft_agree(world, "my_step", WEFT_OK, NULL, 0, NULL, &answers);
        HOLDS(status == (want == WEFT_ERR_MISMATCH ? want : WEFT_ERR_ABORTED));
        HOLDS(strstr(weft_last_error(), "my_fill on world: rank 1: too warm") != NULL);
    }
}

TEST(a_rank_that_fails_alone_ends_the_wait_of_the_others)
{
    weft_status given[] = {WEFT_ERR_DEVICE, WEFT_ERR_MISMATCH};

    for (size_t i = 0; i < WF_COUNT(given); i++) {
        fake_reset();
        world_run(ranks, 3, give_up_on_one, &given[i]);
    }
}

TEST(a_rank_that_is_alone_keeps_its_communicator)
{
    weft_context *context;

    fake_reset();
    context = world_alone();
    ck_assert_int_eq(
        weft_comm_fail(weft_world(context), "my_fill", weft_fail(WEFT_ERR_DEVICE, "too warm")),
        WEFT_ERR_DEVICE);
    ck_assert_str_eq(weft_last_error(), "my_fill: too warm");
    ck_assert_int_eq(weft_comm_async_error(weft_world(context)), WEFT_OK);
    weft_context_release(&context);
    ck_assert_int_eq(weft_comm_fail(NULL, "my_fill", WEFT_ERR_DEVICE), WEFT_ERR_INVALID);
}

/* A step after answers does not meet a step of the communicator: rank 0 takes them in another order
 * than the others, on another thread. */
struct later {
    weft_comm *world;
    weft_answers *after;
    weft_status status;
};

static void *take_later_step(void *argument)
{
    struct later *later = argument;
    weft_agree_options options = {.struct_size = sizeof options, .after = later->after};
    weft_answers *answers = NULL;

    later->status = weft_agree(later->world, "later", WEFT_OK, "x", 1, &options, &answers);
    weft_answers_release(&answers);
    return NULL;
}

static void step_aside(struct world_rank *self)
{
    weft_comm *world = weft_world(self->context);
    struct later later = {.world = world};
    weft_answers *answers = NULL;
    pthread_t thread;

    HOLDS(weft_agree(world, "first", WEFT_OK, NULL, 0, NULL, &later.after) == WEFT_OK);
    if (self->rank == 0) {
        HOLDS(pthread_create(&thread, NULL, take_later_step, &later) == 0);
        HOLDS(weft_agree(world, "next", WEFT_OK, NULL, 0, NULL, &answers) == WEFT_OK);
        HOLDS(pthread_join(thread, NULL) == 0);
    } else {
        HOLDS(weft_agree(world, "next", WEFT_OK, NULL, 0, NULL, &answers) == WEFT_OK);
        weft_agree_progress(later.after, "later");
        (void)take_later_step(&later);
    }
    HOLDS(later.status == WEFT_OK);
    weft_answers_release(&answers);
    weft_answers_release(&later.after);
}

TEST(steps_after_answers_meet_each_other_only)
{
    fake_reset();
    world_run(ranks, 3, step_aside, NULL);
}

TEST(answers_of_another_communicator_are_refused)
{
    OWNED(weft_context) *context = NULL;
    weft_comm *other = NULL;
    weft_agree_options options = {.struct_size = sizeof options};
    weft_answers *answers = NULL;

    fake_reset();
    context = world_alone();
    ck_assert_int_eq(weft_comm_split(weft_world(context), 0, 0, NULL, &other), WEFT_OK);
    ck_assert_int_eq(weft_agree(other, "a", WEFT_OK, NULL, 0, NULL, &options.after), WEFT_OK);
    ck_assert_int_eq(weft_agree(weft_world(context), "a", WEFT_OK, NULL, 0, &options, &answers),
                     WEFT_ERR_INVALID);
    ck_assert_ptr_nonnull(strstr(weft_last_error(), "has answers of the communicator"));
    weft_answers_release(&options.after);
    weft_comm_release(&other);
}

TEST(a_record_has_its_function_and_its_end)
{
    OWNED(weft_context) *context = NULL;
    weft_open_record record, wait;
    weft_record_counts *counting = NULL;
    struct counted counts;

    fake_reset();
    context = world_alone();
    ck_assert_int_eq(weft_record_counts_create(context, &counting), WEFT_OK);
    weft_record_begin(weft_world(context), WEFT_RECORD_SAVE, "my_save", &record);
    weft_record_set_bytes(&record, 12);
    weft_record_continue(&record, "my_wait", &wait);
    ck_assert_int_eq(weft_record_end(&wait, WEFT_OK), WEFT_OK);
    ck_assert_int_eq(weft_record_end(&record, weft_fail(WEFT_ERR_DEVICE, "full")), WEFT_ERR_DEVICE);
    ck_assert_str_eq(weft_last_error(), "full");
    ck_assert_int_eq(counts_take(counting, &counts), WEFT_OK);
    ck_assert_uint_eq(counts.operations[WEFT_RECORD_SAVE], 2);
    weft_record_begin(NULL, WEFT_RECORD_SAVE, "my_save", &record);
    ck_assert_ptr_null(record.comm);
    ck_assert_int_eq(weft_record_end(&record, WEFT_OK), WEFT_OK);
}
