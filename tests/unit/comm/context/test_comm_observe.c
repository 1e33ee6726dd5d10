#include "comm/recording.h"
#include "support/fake_world.h"
#include "support/folder.h"
#include "support/suite.h"

#include <dirent.h>
#include <sched.h>

static struct folder runtime;

static weft_context *begin(const char *recorder)
{
    runtime = folder_create();
    setenv("XDG_RUNTIME_DIR", runtime.path, 1);
    setenv("WEFT_RECORDER", recorder, 1);
    fake_reset();
    return world_alone();
}

static void end(weft_context *context)
{
    weft_context_release(&context);
    unsetenv("WEFT_RECORDER");
    folder_remove(&runtime);
}

static int count_recorders(void)
{
    DIR *entries = opendir(folder_path(&runtime, "weft"));
    int count = 0;

    if (entries == NULL) return 0;
    for (struct dirent *entry = readdir(entries); entry != NULL; entry = readdir(entries))
        if (strncmp(entry->d_name, "recorder.", 9) == 0) count++;
    closedir(entries);
    return count;
}

static void count(void *user, const weft_record *record)
{
    (void)record;
    atomic_fetch_add((atomic_int *)user, 1);
}

static weft_observation *observe(weft_context *context, atomic_int *counter)
{
    weft_observer observer = {.struct_size = sizeof observer, .user = counter, .submitted = count};
    weft_observation *observation = NULL;

    ck_assert_int_eq(weft_observe(context, &observer, &observation), WEFT_OK);
    return observation;
}

TEST(a_context_has_a_recorder)
{
    weft_context *context = begin("100");

    ck_assert_int_eq(count_recorders(), 1);
    ck_assert_uint_eq(context->trace->mask, 127);
    ck_assert_ptr_eq(atomic_load(&weft_world(context)->tracing), context->trace);
    weft_context_release(&context);
    ck_assert_int_eq(count_recorders(), 0);
    end(NULL);
}

TEST(a_refusal_names_the_function)
{
    weft_context *context = begin("64");
    weft_record_counts *counts = NULL;
    weft_observation *all[17] = {NULL};
    weft_observer observer = {.struct_size = sizeof observer};
    int made = 0;

    while (weft_observe(context, &observer, &all[made]) == WEFT_OK)
        made++;
    ck_assert_int_eq(made, 16);
    ck_assert_ptr_nonnull(
        strstr(weft_last_error(), "weft_observe: the context has 16 observers, the maximum"));
    ck_assert_int_eq(weft_record_counts_create(context, &counts), WEFT_ERR_NO_MEMORY);
    ck_assert_ptr_nonnull(strstr(
        weft_last_error(), "weft_record_counts_create: the context has 16 observers, the maximum"));
    ck_assert_ptr_null(counts);
    for (int i = 0; i < made; i++)
        weft_observation_release(&all[i]);
    end(context);
}

static void release(void *observation, const weft_record *record)
{
    (void)record;
    weft_observation_release(observation);
}

TEST(a_callback_releases_its_observation)
{
    weft_context *context = begin("0");
    weft_observation *observation = NULL;
    weft_observer observer = {
        .struct_size = sizeof observer, .user = &observation, .submitted = release};

    ck_assert_int_eq(weft_observe(context, &observer, &observation), WEFT_OK);
    ck_assert_int_eq(weft_barrier(weft_world(context), NULL), WEFT_OK);
    ck_assert_ptr_null(observation);
    ck_assert_ptr_null(atomic_load(&weft_world(context)->tracing));
    ck_assert_int_eq(weft_barrier(weft_world(context), NULL), WEFT_OK);
    end(context);
}

static void release_failed(void *observation, uint64_t comm, weft_status status, const char *text)
{
    (void)comm;
    (void)status;
    (void)text;
    weft_observation_release(observation);
}

/* The context is locked while `failed` runs. */
TEST(a_failure_releases_its_observation)
{
    weft_context *context = begin("64");
    weft_observation *observation = NULL, *next = NULL;
    weft_observer observer = {
        .struct_size = sizeof observer, .user = &observation, .failed = release_failed};

    ck_assert_int_eq(weft_observe(context, &observer, &observation), WEFT_OK);
    weft_comm_abort(weft_world(context));
    ck_assert_ptr_null(observation);
    ck_assert_int_eq(weft_observe(context, &observer, &next), WEFT_OK);
    weft_observation_release(&next);
    end(context);
    ck_assert_int_eq(wf_mem_live(), 0);
}

TEST(without_a_recorder_only_observers_make_records)
{
    weft_context *context = begin("0");
    weft_comm *world = weft_world(context);
    weft_observation *observation;
    weft_comm *late;
    atomic_int seen = 0;

    ck_assert_int_eq(count_recorders(), 0);
    ck_assert_ptr_null(atomic_load(&world->tracing));
    ck_assert_int_eq(weft_barrier(world, NULL), WEFT_OK);
    ck_assert_uint_eq(atomic_load(&context->trace->segment->next), 0);
    observation = observe(context, &seen);
    ck_assert_int_eq(weft_barrier(world, NULL), WEFT_OK);
    ck_assert_int_eq(weft_comm_split(world, 0, 0, NULL, &late), WEFT_OK);
    ck_assert_int_eq(weft_barrier(late, NULL), WEFT_OK);
    ck_assert_int_eq(seen, 3); /* two barriers, and the creation */
    weft_observation_release(&observation);
    ck_assert_ptr_null(observation);
    ck_assert_int_eq(weft_barrier(late, NULL), WEFT_OK);
    ck_assert_int_eq(seen, 3);
    ck_assert_ptr_null(atomic_load(&late->tracing));
    ck_assert_int_eq(count_recorders(), 0);
    weft_comm_release(&late);
    end(context);
}

TEST(an_observation_outlives_its_context)
{
    weft_context *context = begin("0");
    atomic_int seen = 0;
    weft_observation *observation = observe(context, &seen), *none = NULL;

    end(context);
    weft_observation_release(&observation);
    weft_observation_release(&none);
    weft_observation_release(NULL);
}

TEST(arguments_are_checked)
{
    weft_context *context = begin("0");
    weft_observer observer = {.struct_size = sizeof observer};
    weft_observation *observation = NULL;
    weft_record record = {.operation = WEFT_RECORD_BARRIER, .step_kind = WEFT_NO_STEP_KIND};
    size_t needed = 0;
    char text[8];

    ck_assert_int_eq(weft_observe(NULL, &observer, &observation), WEFT_ERR_INVALID);
    ck_assert_int_eq(weft_observe(context, NULL, &observation), WEFT_ERR_INVALID);
    ck_assert_int_eq(weft_observe(context, &observer, NULL), WEFT_ERR_INVALID);
    observer.struct_size = 1;
    ck_assert_int_eq(weft_observe(context, &observer, &observation), WEFT_ERR_INVALID);
    ck_assert_ptr_null(observation);
    ck_assert_int_eq(weft_record_counts_create(context, NULL), WEFT_ERR_INVALID);
    ck_assert_int_eq(weft_record_counts_end(NULL), WEFT_ERR_INVALID);
    ck_assert_ptr_null(weft_trace_text(NULL, 1));
    ck_assert_str_eq(weft_trace_text(context, 99999), "");
    ck_assert_int_eq(weft_record_print(context, NULL, NULL, 0, &needed), WEFT_ERR_INVALID);
    ck_assert_int_eq(weft_record_print(NULL, &record, NULL, 0, &needed), WEFT_ERR_INVALID);
    ck_assert_int_eq(weft_record_print(context, &record, NULL, 1, &needed), WEFT_ERR_INVALID);
    ck_assert_str_eq(weft_last_error(), "weft_record_print: text is NULL");
    ck_assert_int_eq(weft_record_print(context, &record, NULL, 0, &needed), WEFT_OK);
    ck_assert_uint_eq(needed, strlen("barrier"));
    ck_assert_int_eq(weft_record_print(context, &record, text, 4, NULL), WEFT_OK); /* is cut */
    ck_assert_str_eq(text, "bar");
    end(context);
}

TEST(counts_are_of_the_context)
{
    weft_context *context = begin("0");
    weft_record_counts *counts = NULL;

    ck_assert_int_eq(weft_record_counts_create(context, &counts), WEFT_OK);
    ck_assert_int_eq(weft_barrier(weft_world(context), NULL), WEFT_OK);
    ck_assert_uint_eq(weft_record_counts_operations(counts, WEFT_RECORD_BARRIER), 0);
    ck_assert_int_eq(weft_record_counts_end(counts), WEFT_OK);
    ck_assert_uint_eq(weft_record_counts_operations(counts, WEFT_RECORD_BARRIER), 1);
    ck_assert_int_eq(weft_record_counts_end(counts), WEFT_ERR_INVALID);
    ck_assert_str_eq(weft_last_error(), "weft_record_counts_end: the counting has ended; "
                                        "weft_record_counts_create begins another one");
    ck_assert_ptr_null(atomic_load(&context->tracing));
    weft_record_counts_release(&counts);
    ck_assert_ptr_null(counts);
    end(context);
}

TEST(a_release_ends_the_counting)
{
    weft_context *context = begin("0");
    weft_record_counts *counts = NULL;

    ck_assert_int_eq(weft_record_counts_create(context, &counts), WEFT_OK);
    ck_assert_ptr_nonnull(atomic_load(&context->tracing));
    weft_record_counts_release(&counts);
    ck_assert_ptr_null(counts);
    ck_assert_ptr_null(atomic_load(&context->tracing));
    weft_record_counts_release(&counts);
    weft_record_counts_release(NULL);
    end(context);
}

TEST(counts_outlive_their_context)
{
    weft_context *context = begin("0");
    weft_record_counts *counts = NULL;

    ck_assert_int_eq(weft_record_counts_create(context, &counts), WEFT_OK);
    ck_assert_int_eq(weft_barrier(weft_world(context), NULL), WEFT_OK);
    weft_context_release(&context);
    ck_assert_uint_eq(weft_record_counts_operations(counts, WEFT_RECORD_BARRIER), 1);
    ck_assert_int_eq(weft_record_counts_end(counts), WEFT_ERR_INVALID);
    weft_record_counts_release(&counts);
    end(NULL);
}

/* An enum with more values than the library knows changes nothing. */
TEST(unknown_kinds_count_nothing)
{
    weft_context *context = begin("0");
    weft_record_axes_info axes = {.struct_size = sizeof axes};
    weft_record_counts_info sums = {.struct_size = 0};
    weft_record_counts *counts = NULL;

    ck_assert_int_eq(weft_record_counts_create(context, &counts), WEFT_OK);
    ck_assert_int_eq(weft_barrier(weft_world(context), NULL), WEFT_OK);
    ck_assert_int_eq(weft_record_counts_end(counts), WEFT_OK);
    ck_assert_uint_eq(weft_record_counts_operations(counts, (enum weft_record_operation)99), 0);
    ck_assert_uint_eq(weft_record_counts_steps(counts, (enum weft_step_kind)99), 0);
    ck_assert_uint_eq(weft_record_counts_operations(NULL, WEFT_RECORD_BARRIER), 0);
    ck_assert_uint_eq(weft_record_counts_steps(NULL, WEFT_STEP_SLICE), 0);
    ck_assert_uint_eq(weft_record_counts_axes_count(NULL), 0);
    ck_assert_int_eq(weft_record_counts_axes_get(counts, 1, &axes), WEFT_ERR_INVALID);
    ck_assert_str_eq(weft_last_error(), "weft_record_counts_axes_get: index is 1, but data "
                                        "travelled along 1 set of axes");
    ck_assert_int_eq(weft_record_counts_get(counts, &sums), WEFT_ERR_INVALID);
    weft_record_counts_release(&counts);
    end(context);
}

TEST(the_maximum_of_observers_is_stated)
{
    weft_context *context = begin("0");
    weft_record_counts *counts = NULL;
    weft_observation *observations[WF_OBSERVERS];
    atomic_int seen = 0;

    for (int i = 0; i < WF_OBSERVERS; i++)
        observations[i] = observe(context, &seen);
    ck_assert_int_eq(weft_record_counts_create(context, &counts), WEFT_ERR_NO_MEMORY);
    ck_assert_ptr_nonnull(strstr(weft_last_error(), "weft_record_counts_create: the context has 16 "
                                                    "observers, the maximum"));
    for (int i = 0; i < WF_OBSERVERS; i++)
        weft_observation_release(&observations[i]);
    end(context);
}

/* ---- threads ---- */

static void *observe_often(void *context)
{
    for (int i = 0; i < 300; i++) {
        atomic_int seen = 0;
        weft_observation *observation = observe(context, &seen);

        weft_observation_release(&observation);
    }
    return NULL;
}

/* If the last observer's release decided with old facts, records would be off here. */
TEST(observers_of_several_threads_do_not_switch_each_other_off)
{
    weft_context *context = begin("0");
    pthread_t thread;

    ck_assert_int_eq(pthread_create(&thread, NULL, observe_often, context), 0);
    for (int i = 0; i < 300; i++) {
        atomic_int seen = 0;
        weft_observation *observation = observe(context, &seen);

        ck_assert_int_eq(weft_barrier(weft_world(context), NULL), WEFT_OK);
        ck_assert_int_eq(seen, 1);
        weft_observation_release(&observation);
    }
    pthread_join(thread, NULL);
    ck_assert_ptr_null(atomic_load(&context->tracing));
    end(context);
}
