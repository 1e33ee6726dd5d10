/* Random pairs of layouts: two jobs of simulated ranks, one of which publishes what the other
 * serves. */
#include "feed_tensors.h"
#include "support/random.h"
#include "support/suite.h"
#include "weft/context.h"

#include <stdio.h>

enum { TENSORS_MAX = 4 };

struct layout {
    char mesh[64];
    int32_t axes, ranks;
};

struct job {
    struct layout layout;
    weft_context *context;
    weft_tensor *tensors[TENSORS_MAX];
};

static struct layout draw_mesh(struct random *r)
{
    struct layout made = {.axes = random_in(r, 1, 3), .ranks = 1};
    struct wf_text text = {0};

    for (int32_t i = 0; i < made.axes; i++) {
        int32_t size = random_in(r, 1, made.axes == 1 ? 12 : 4);
        made.ranks *= size;
        wf_text_add(&text, "%sa%d=%d", i > 0 ? "," : "", i, size);
    }
    snprintf(made.mesh, sizeof made.mesh, "%s", text.data);
    wf_text_free(&text);
    return made;
}

static void draw_placement(struct random *r, int32_t dims, struct wf_text *out)
{
    int32_t dim = dims > 0 ? random_in(r, 0, dims - 1) : 0;

    switch (dims > 0 ? random_in(r, 0, 5) : 0) {
    case 1:
    case 2:
        wf_text_add(out, "S(%d)", dim);
        break;
    case 3:
        wf_text_add(out, "SS(%d,%d)", dim, random_in(r, 1, 3));
        break;
    case 4:
        wf_text_add(out, "O(0)");
        break;
    default:
        wf_text_add(out, "R");
        break;
    }
}

/* Create tensor NUMBER of JOB with the shape and dtype of BEGINNING, "f32[4,6] ", in a layout that
 * can exist. */
static void make_tensor(struct random *r, struct job *job, const char *beginning, int32_t dims,
                        size_t number)
{
    for (;;) {
        struct wf_text text = {0};
        weft_status status;

        wf_text_add(&text, "%s", beginning);
        for (int32_t i = 0; i < job->layout.axes; i++) {
            wf_text_add(&text, "%s", i > 0 ? "," : "");
            draw_placement(r, dims, &text);
        }
        status =
            feed_tensor(job->context, job->layout.mesh, text.data, number, &job->tensors[number]);
        wf_text_free(&text);
        if (status == WEFT_OK) return;
        ck_assert_msg(status == WEFT_ERR_INVALID || status == WEFT_ERR_PARSE ||
                          status == WEFT_ERR_UNSUPPORTED,
                      "%s", weft_last_error());
    }
}

static void begin_job(struct random *r, struct job *job)
{
    weft_init_options options = {.struct_size = sizeof options};

    *job = (struct job){.layout = draw_mesh(r)};
    options.simulated_ranks = job->layout.ranks + random_in(r, 0, 1);
    ck_assert_int_eq(weft_init(&options, &job->context), WEFT_OK);
}

static void end_job(struct job *job)
{
    for (size_t i = 0; i < TENSORS_MAX; i++)
        weft_tensor_release(&job->tensors[i]);
    weft_context_release(&job->context);
}

/* Draw COUNT tensors for both jobs. */
static void draw_tensors(struct random *r, size_t count, struct job *train, struct job *serve)
{
    static const char *const dtypes[] = {"f32", "bf16", "i8", "f64", "c128", "f8e4m3"};

    for (size_t i = 0; i < count; i++) {
        int32_t dims = random_in(r, 0, 4);
        struct wf_text text = {0};

        wf_text_add(&text, "%s[", dtypes[random_in(r, 0, WF_COUNT(dtypes) - 1)]);
        for (int32_t d = 0; d < dims; d++)
            wf_text_add(&text, "%s%d", d > 0 ? "," : "", random_in(r, d == 0 ? 0 : 1, 9));
        wf_text_add(&text, "] ");
        make_tensor(r, train, text.data, dims, i);
        make_tensor(r, serve, text.data, dims, i);
        wf_text_free(&text);
    }
}

static void run_case(struct random *r)
{
    size_t count = (size_t)random_in(r, 1, TENSORS_MAX), kept = (size_t)random_in(r, 1, 3);
    weft_publisher_options po = {.struct_size = sizeof po, .versions = kept};
    weft_subscriber_options so = {.struct_size = sizeof so, .apply = random_in(r, 0, 1)};
    weft_publisher *publisher = NULL;
    weft_subscriber *subscriber = NULL;
    struct job train, serve;

    begin_job(r, &train);
    begin_job(r, &serve);
    draw_tensors(r, count, &train, &serve);
    ck_assert_msg(weft_publisher_open(train.context, "policy", FEED_TOKEN, count, train.tensors,
                                      &po, &publisher) == WEFT_OK,
                  "%s", weft_last_error());
    ck_assert_msg(weft_subscriber_open(serve.context, weft_publisher_address(publisher), "policy",
                                       FEED_TOKEN, count, serve.tensors, &so,
                                       &subscriber) == WEFT_OK,
                  "%s", weft_last_error());
    for (uint64_t version = 1; version <= 4; version++) {
        uint64_t staged = 0;

        for (size_t i = 0; i < count; i++)
            ck_assert_int_eq(feed_write(train.tensors[i], i, version), WEFT_OK);
        ck_assert_msg(weft_publisher_publish(publisher, version, NULL) == WEFT_OK, "%s",
                      weft_last_error());
        ck_assert_msg(weft_subscriber_stage(subscriber, WEFT_NEWEST, &staged) == WEFT_OK, "%s",
                      weft_last_error());
        ck_assert_uint_eq(staged, version);
        ck_assert_int_eq(weft_subscriber_commit(subscriber, NULL), WEFT_OK);
        for (size_t i = 0; i < count; i++)
            ck_assert_msg(feed_check(weft_subscriber_tensor(subscriber, i), i, version) == WEFT_OK,
                          "%s", weft_last_error());
        ck_assert_msg(weft_subscriber_audit(subscriber, NULL) == WEFT_OK, "%s", weft_last_error());
    }
    weft_subscriber_close(&subscriber);
    weft_publisher_close(&publisher);
    end_job(&serve);
    end_job(&train);
}

TEST(every_layout_reads_every_other)
{
    struct random r = random_begin("test_feed_random");
    int cases = test_cases(60);

    for (int i = 0; i < cases; i++)
        run_case(&r);
}
