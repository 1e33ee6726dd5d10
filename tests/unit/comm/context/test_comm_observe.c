#include "comm/recording.h"
#include "support/fake_world.h"
#include "support/folder.h"
#include "support/suite.h"

#include <dirent.h>
#include <sched.h>

static struct folder runtime;

static weft_context *begin(const char *ring)
{
    runtime = folder_create();
    setenv("XDG_RUNTIME_DIR", runtime.path, 1);
    setenv("WEFT_RING", ring, 1);
    fake_reset();
    return world_alone();
}

static void end(weft_context *context)
{
    weft_context_release(&context);
    unsetenv("WEFT_RING");
    folder_remove(&runtime);
}

static int count_rings(void)
{
    DIR *entries = opendir(folder_path(&runtime, "weft"));
    int count = 0;

    if (entries == NULL) return 0;
    for (struct dirent *entry = readdir(entries); entry != NULL; entry = readdir(entries))
        if (strncmp(entry->d_name, "ring.", 5) == 0) count++;
    closedir(entries);
    return count;
}

static void count(void *self, const weft_record *record)
{
    (void)record;
    atomic_fetch_add((atomic_int *)self, 1);
}

static weft_observation *observe(weft_context *context, atomic_int *counter)
{
    weft_observer observer = {.struct_size = sizeof observer, .self = counter, .submitted = count};
    weft_observation *observation = NULL;

    ck_assert_int_eq(weft_observe(context, &observer, &observation), WEFT_OK);
    return observation;
}

START_TEST(a_context_has_a_ring)
{
    weft_context *context = begin("100");

    ck_assert_int_eq(count_rings(), 1);
    ck_assert_uint_eq(context->trace->mask, 127);
    ck_assert_ptr_eq(atomic_load(&weft_world(context)->tracing), context->trace);
    weft_context_release(&context);
    ck_assert_int_eq(count_rings(), 0);
    end(NULL);
}
END_TEST

START_TEST(a_refusal_names_the_function)
{
    weft_context *context = begin("64");
    weft_counts counts = {.struct_size = sizeof counts};
    weft_observation *all[17] = {NULL};
    weft_observer observer = {.struct_size = sizeof observer};
    int made = 0;

    while (weft_observe(context, &observer, &all[made]) == WEFT_OK)
        made++;
    ck_assert_int_eq(made, 16);
    ck_assert_ptr_nonnull(
        strstr(weft_last_error(), "weft_observe: the context has 16 observers, the maximum"));
    ck_assert_int_eq(weft_counts_begin(context, &counts), WEFT_ERR_NO_MEMORY);
    ck_assert_ptr_nonnull(
        strstr(weft_last_error(), "weft_counts_begin: the context has 16 observers, the maximum"));
    ck_assert_int_eq(weft_counts_end(context, &counts), WEFT_ERR_INVALID);
    for (int i = 0; i < made; i++)
        weft_observation_release(&all[i]);
    end(context);
}
END_TEST

static void release(void *observation, const weft_record *record)
{
    (void)record;
    weft_observation_release(observation);
}

START_TEST(a_callback_releases_its_observation)
{
    weft_context *context = begin("0");
    weft_observation *observation = NULL;
    weft_observer observer = {
        .struct_size = sizeof observer, .self = &observation, .submitted = release};

    ck_assert_int_eq(weft_observe(context, &observer, &observation), WEFT_OK);
    ck_assert_int_eq(weft_barrier(weft_world(context), NULL), WEFT_OK);
    ck_assert_ptr_null(observation);
    ck_assert_ptr_null(atomic_load(&weft_world(context)->tracing));
    ck_assert_int_eq(weft_barrier(weft_world(context), NULL), WEFT_OK);
    end(context);
}
END_TEST

static void release_failed(void *observation, uint64_t comm, weft_status status, const char *text)
{
    (void)comm;
    (void)status;
    (void)text;
    weft_observation_release(observation);
}

/* The context is locked while `failed` runs. */
START_TEST(a_failure_releases_its_observation)
{
    weft_context *context = begin("64");
    weft_observation *observation = NULL, *next = NULL;
    weft_observer observer = {
        .struct_size = sizeof observer, .self = &observation, .failed = release_failed};

    ck_assert_int_eq(weft_observe(context, &observer, &observation), WEFT_OK);
    weft_comm_abort(weft_world(context));
    ck_assert_ptr_null(observation);
    ck_assert_int_eq(weft_observe(context, &observer, &next), WEFT_OK);
    weft_observation_release(&next);
    end(context);
    ck_assert_int_eq(wf_mem_live(), 0);
}
END_TEST

START_TEST(without_a_ring_only_observers_make_records)
{
    weft_context *context = begin("0");
    weft_comm *world = weft_world(context);
    weft_observation *observation;
    weft_comm *late;
    atomic_int seen = 0;

    ck_assert_int_eq(count_rings(), 0);
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
    ck_assert_int_eq(count_rings(), 0);
    weft_comm_release(&late);
    end(context);
}
END_TEST

START_TEST(an_observation_outlives_its_context)
{
    weft_context *context = begin("0");
    atomic_int seen = 0;
    weft_observation *observation = observe(context, &seen), *none = NULL;

    end(context);
    weft_observation_release(&observation);
    weft_observation_release(&none);
    weft_observation_release(NULL);
}
END_TEST

START_TEST(arguments_are_checked)
{
    weft_context *context = begin("0");
    weft_observer observer = {.struct_size = sizeof observer};
    weft_observation *observation = NULL;
    weft_counts counts = {.struct_size = 1};

    ck_assert_int_eq(weft_observe(NULL, &observer, &observation), WEFT_ERR_INVALID);
    ck_assert_int_eq(weft_observe(context, NULL, &observation), WEFT_ERR_INVALID);
    ck_assert_int_eq(weft_observe(context, &observer, NULL), WEFT_ERR_INVALID);
    observer.struct_size = 1;
    ck_assert_int_eq(weft_observe(context, &observer, &observation), WEFT_ERR_INVALID);
    ck_assert_ptr_null(observation);
    ck_assert_int_eq(weft_counts_begin(context, NULL), WEFT_ERR_INVALID);
    ck_assert_int_eq(weft_counts_begin(context, &counts), WEFT_ERR_INVALID);
    ck_assert_int_eq(weft_counts_end(context, NULL), WEFT_ERR_INVALID);
    ck_assert_ptr_null(weft_trace_text(NULL, 1));
    ck_assert_str_eq(weft_trace_text(context, 99999), "");
    ck_assert_uint_eq(weft_record_print(context, NULL, NULL, 0), 0);
    end(context);
}
END_TEST

START_TEST(counts_are_of_the_context)
{
    weft_context *context = begin("0");
    weft_counts counts = {.struct_size = sizeof counts};

    ck_assert_int_eq(weft_counts_begin(context, &counts), WEFT_OK);
    ck_assert_int_eq(weft_barrier(weft_world(context), NULL), WEFT_OK);
    ck_assert_int_eq(weft_counts_end(context, &counts), WEFT_OK);
    ck_assert_uint_eq(counts.operations[WEFT_OP_BARRIER], 1);
    ck_assert_int_eq(weft_counts_end(context, &counts), WEFT_ERR_INVALID);
    ck_assert_ptr_null(atomic_load(&context->tracing));
    end(context);
}
END_TEST

START_TEST(a_refused_end_does_not_end_the_counting)
{
    weft_context *context = begin("0");
    weft_counts counts = {.struct_size = sizeof counts};

    ck_assert_int_eq(weft_counts_begin(context, &counts), WEFT_OK);
    ck_assert_int_eq(weft_barrier(weft_world(context), NULL), WEFT_OK);
    counts.struct_size = 0;
    ck_assert_int_eq(weft_counts_end(context, &counts), WEFT_ERR_INVALID);
    ck_assert_str_eq(weft_last_error(), "weft_counts_end: weft_counts.struct_size is 0; set it to "
                                        "sizeof(weft_counts)");
    counts.struct_size = sizeof counts;
    ck_assert_int_eq(weft_counts_begin(context, &counts), WEFT_ERR_INVALID);
    ck_assert_str_eq(weft_last_error(), "weft_counts_begin: these counts have begun already; each "
                                        "begin needs another struct");
    ck_assert_int_eq(weft_barrier(weft_world(context), NULL), WEFT_OK);
    ck_assert_int_eq(weft_counts_end(context, &counts), WEFT_OK);
    ck_assert_uint_eq(counts.operations[WEFT_OP_BARRIER], 2);
    end(context);
}
END_TEST

START_TEST(the_maximum_of_observers_is_stated)
{
    weft_context *context = begin("0");
    weft_counts counts = {.struct_size = sizeof counts};
    weft_observation *observations[WF_OBSERVERS];
    atomic_int seen = 0;

    for (int i = 0; i < WF_OBSERVERS; i++)
        observations[i] = observe(context, &seen);
    ck_assert_int_eq(weft_counts_begin(context, &counts), WEFT_ERR_NO_MEMORY);
    ck_assert_ptr_nonnull(strstr(weft_last_error(), "weft_counts_begin: the context has 16 "
                                                    "observers, the maximum"));
    for (int i = 0; i < WF_OBSERVERS; i++)
        weft_observation_release(&observations[i]);
    end(context);
}
END_TEST

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
START_TEST(observers_of_several_threads_do_not_switch_each_other_off)
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
END_TEST

SUITE(comm_observe, a_context_has_a_ring, a_refusal_names_the_function,
      a_callback_releases_its_observation, a_failure_releases_its_observation,
      without_a_ring_only_observers_make_records, an_observation_outlives_its_context,
      arguments_are_checked, counts_are_of_the_context, a_refused_end_does_not_end_the_counting,
      the_maximum_of_observers_is_stated, observers_of_several_threads_do_not_switch_each_other_off)
