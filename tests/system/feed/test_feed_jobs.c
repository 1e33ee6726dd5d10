/* A training job and a serving job, each with ranks of its own that are threads. */
#include "feed_tensors.h"
#include "support/job.h"
#include "support/suite.h"

#include <pthread.h>
#include <stdatomic.h>
#include <poll.h>
#include <stdio.h>
#include <unistd.h>

enum { TRAIN_RANKS = 2, SERVE_RANKS = 3, VERSIONS = 12 };

static const char *const train_layouts[] = {"f32[7,10] S(0)", "bf16[64] R", "f32[6,4,5] S(1)"};
static const char *const serve_layouts[] = {"f32[7,10] S(1)", "bf16[64] S(0)", "f32[6,4,5] R"};

static char address[64];
static atomic_int ended; /* ranks of the training job that have published everything */
static atomic_bool served_last;
static int32_t apply;

static weft_status make_all(weft_context *context, const char *const *layouts,
                            weft_tensor **tensors)
{
    char mesh[16];

    snprintf(mesh, sizeof mesh, "%d", weft_size(context));
    for (size_t i = 0; i < WF_COUNT(train_layouts); i++)
        WF_TRY(feed_tensor(context, mesh, layouts[i], i, &tensors[i]));
    return WEFT_OK;
}

static void release_all(weft_tensor **tensors)
{
    for (size_t i = 0; i < WF_COUNT(train_layouts); i++)
        weft_tensor_release(&tensors[i]);
}

static weft_status train(weft_context *context)
{
    const weft_publisher_options options = {.struct_size = sizeof options, .address = address};
    weft_tensor *tensors[WF_COUNT(train_layouts)];
    weft_publisher *publisher;

    WF_TRY(make_all(context, train_layouts, tensors));
    WF_TRY(weft_publisher_open(context, "policy", FEED_TOKEN, WF_COUNT(tensors), tensors, &options,
                               &publisher));
    for (uint64_t version = 1; version <= VERSIONS; version++) {
        for (size_t i = 0; i < WF_COUNT(tensors); i++)
            WF_TRY(feed_write(tensors[i], i, version));
        WF_TRY(weft_publisher_publish(publisher, version, NULL));
    }
    atomic_fetch_add(&ended, 1);
    while (!atomic_load(&served_last))
        poll(NULL, 0, 1);
    weft_publisher_close(&publisher);
    release_all(tensors);
    return WEFT_OK;
}

/* Every version that is served is a whole one, and versions rise. */
static weft_status serve(weft_context *context)
{
    const weft_subscriber_options options = {.struct_size = sizeof options, .apply = apply};
    weft_tensor *tensors[WF_COUNT(train_layouts)];
    weft_subscriber_info info = {.struct_size = sizeof info};
    weft_subscriber *subscriber;
    uint64_t version = 0;
    char text[32];

    WF_TRY(make_all(context, serve_layouts, tensors));
    WF_TRY(weft_subscriber_open(context, address, "policy", FEED_TOKEN, WF_COUNT(tensors), tensors,
                                &options, &subscriber));
    while (version < VERSIONS) {
        uint64_t staged;
        weft_status status = weft_subscriber_stage(subscriber, WEFT_NEWEST, &staged);

        if (status == WEFT_ERR_NOT_FOUND) continue; /* no version is published yet */
        WF_TRY(status);
        if (staged < version) return wf_fail(WEFT_ERR_INTERNAL, "versions fall");
        WF_TRY(weft_subscriber_commit(subscriber, NULL));
        version = staged;
        for (size_t i = 0; i < WF_COUNT(tensors); i++)
            WF_TRY(feed_check(weft_subscriber_tensor(subscriber, i), i, version));
    }
    WF_TRY(weft_subscriber_audit(subscriber, NULL));
    WF_TRY(weft_subscriber_get(subscriber, &info));
    WF_TRY(weft_subscriber_print(subscriber, text, sizeof text, NULL));
    if (info.served != VERSIONS || !info.is_serving || info.repairs != 0 ||
        strcmp(text, "policy@12") != 0)
        return wf_fail(WEFT_ERR_INTERNAL, "%s, and %llu tensors were repaired", text,
                       (unsigned long long)info.repairs);
    if (weft_rank(context) == 0) atomic_store(&served_last, true);
    weft_subscriber_close(&subscriber);
    release_all(tensors);
    return WEFT_OK;
}

static void *run_train(void *out)
{
    *(weft_status *)out = job_of_threads(TRAIN_RANKS, train);
    if (*(weft_status *)out != WEFT_OK) fprintf(stderr, "training: %s\n", weft_last_error());
    return NULL;
}

static void run(int32_t how)
{
    weft_status trained = WEFT_OK, status;
    pthread_t thread;

    apply = how;
    atomic_store(&ended, 0);
    atomic_store(&served_last, false);
    snprintf(address, sizeof address, "unix:weft-test-feed-%d-%d", getpid(), how);
    ck_assert_int_eq(pthread_create(&thread, NULL, run_train, &trained), 0);
    status = job_of_threads(SERVE_RANKS, serve);
    if (status != WEFT_OK) {
        fprintf(stderr, "serving: %s\n", weft_last_error());
        atomic_store(&served_last, true);
    }
    pthread_join(thread, NULL);
    ck_assert_int_eq(status, WEFT_OK);
    ck_assert_int_eq(trained, WEFT_OK);
}

TEST(a_job_serves_whole_versions_while_another_trains_and_flips)
{
    run(WEFT_FEED_FLIP);
}

TEST(a_job_serves_whole_versions_while_another_trains_and_copies)
{
    run(WEFT_FEED_COPY);
}
