/* What a feed refuses, what happens when one side ends, and content that is wrong. */
#include "feed_tensors.h"
#include "publish/publish.h"
#include "support/suite.h"

#include <stdio.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define OK(call) ck_assert_msg((call) == WEFT_OK, "%s", weft_last_error())

enum { COUNT = 2 };

static const char *const layouts[2][COUNT] = {{"f32[8,6] S(0)", "i16[5] R"},
                                              {"f32[8,6] S(1)", "i16[5] S(0)"}};

/* A job of two simulated ranks with two tensors. */
struct job {
    weft_context *context;
    weft_tensor *tensors[COUNT];
};

static struct job begin(int which)
{
    const weft_init_options options = {.struct_size = sizeof options, .simulated_ranks = 2};
    struct job job = {0};

    OK(weft_init(&options, &job.context));
    for (size_t i = 0; i < COUNT; i++)
        OK(feed_tensor(job.context, "2", layouts[which][i], i, &job.tensors[i]));
    return job;
}

static void end(struct job *job)
{
    for (size_t i = 0; i < COUNT; i++)
        weft_tensor_release(&job->tensors[i]);
    weft_context_release(&job->context);
}

static void publish(weft_publisher *publisher, struct job *job, uint64_t version)
{
    for (size_t i = 0; i < COUNT; i++)
        OK(feed_write(job->tensors[i], i, version));
    OK(weft_publisher_publish(publisher, version, NULL));
}

static weft_publisher *open_publisher(struct job *job, const char *address, size_t versions)
{
    const weft_publisher_options options = {
        .struct_size = sizeof options, .address = address, .versions = versions};
    weft_publisher *made;

    OK(weft_publisher_open(job->context, "policy", FEED_TOKEN, COUNT, job->tensors, &options,
                           &made));
    return made;
}

static weft_status open_as(struct job *job, const char *address, const char *feed,
                           const char *token, const weft_subscriber_options *options,
                           weft_subscriber **out)
{
    return weft_subscriber_open(job->context, address, feed, token, COUNT, job->tensors, options,
                                out);
}

static void serves(weft_subscriber *subscriber, uint64_t version, const char *text)
{
    char found[64];

    OK(weft_subscriber_print(subscriber, found, sizeof found, NULL));
    ck_assert_str_eq(found, text);
    for (size_t i = 0; i < COUNT && version > 0; i++)
        OK(feed_check(weft_subscriber_tensor(subscriber, i), i, version));
}

static weft_subscriber_info info_of(weft_subscriber *subscriber)
{
    weft_subscriber_info info = {.struct_size = sizeof info};

    OK(weft_subscriber_get(subscriber, &info));
    return info;
}

static void fails_with(weft_status status, weft_status wanted, const char *text)
{
    ck_assert_msg(status == wanted && strstr(weft_last_error(), text) != NULL, "%d: %s", status,
                  weft_last_error());
}

TEST(a_subscriber_that_does_not_fit_is_refused)
{
    struct job train = begin(0), serve = begin(1);
    weft_publisher *publisher = open_publisher(&train, NULL, 2);
    const char *address = weft_publisher_address(publisher);
    weft_subscriber_options small = {.struct_size = sizeof small, .staging_bytes_max = 100};
    weft_subscriber_options brief = {.struct_size = sizeof brief, .timeout_ns = 1000000};
    weft_subscriber *subscriber;
    weft_tensor *other, *tensors[COUNT];

    fails_with(open_as(&serve, address, "policy", "another token here", NULL, &subscriber),
               WEFT_ERR_INVALID, "the token or the name of the feed is wrong");
    fails_with(open_as(&serve, address, "police", FEED_TOKEN, NULL, &subscriber), WEFT_ERR_INVALID,
               "the token or the name of the feed is wrong");
    fails_with(open_as(&serve, address, "policy", "short", NULL, &subscriber), WEFT_ERR_INVALID,
               "the token has 5 characters; expected at least 16");
    fails_with(open_as(&serve, "tcp:x", "policy", FEED_TOKEN, NULL, &subscriber), WEFT_ERR_INVALID,
               "expected unix:NAME");
    fails_with(open_as(&serve, "unix:weft-nobody", "policy", FEED_TOKEN, &brief, &subscriber),
               WEFT_ERR_TIMEOUT, "no publisher listens at unix:weft-nobody");
    fails_with(open_as(&serve, address, "policy", FEED_TOKEN, &small, &subscriber),
               WEFT_ERR_NO_MEMORY, "staging needs 256 bytes on this rank, but staging_bytes_max");
    OK(feed_tensor(serve.context, "2", "f32[8,7] S(1)", 0, &other));
    tensors[0] = other, tensors[1] = serve.tensors[1];
    fails_with(weft_subscriber_open(serve.context, address, "policy", FEED_TOKEN, COUNT, tensors,
                                    NULL, &subscriber),
               WEFT_ERR_MISMATCH, "is f32[8,7] S(1), but the feed has f32[8,6] S(0)");
    weft_tensor_release(&other);
    OK(feed_tensor(serve.context, "2", "f32[8,6] S(1)", 7, &other));
    tensors[0] = other;
    fails_with(weft_subscriber_open(serve.context, address, "policy", FEED_TOKEN, COUNT, tensors,
                                    NULL, &subscriber),
               WEFT_ERR_NOT_FOUND, "the feed \"policy\" has 2 tensors, but not \"t7\"");
    weft_tensor_release(&other);
    weft_publisher_close(&publisher);
    end(&serve);
    end(&train);
}

TEST(a_publisher_that_cannot_be_is_refused)
{
    struct job train = begin(0);
    weft_publisher_options options = {.struct_size = sizeof options, .versions = 65};
    weft_publisher *publisher = open_publisher(&train, NULL, 0), *second;
    weft_tensor *twice[] = {train.tensors[0], train.tensors[0]};
    weft_tensor *partial;

    fails_with(weft_publisher_open(train.context, "policy", FEED_TOKEN, COUNT, train.tensors,
                                   &options, &second),
               WEFT_ERR_INVALID, "versions is 65; expected at most 64");
    options = (weft_publisher_options){.struct_size = sizeof options,
                                       .address = weft_publisher_address(publisher)};
    fails_with(weft_publisher_open(train.context, "policy", FEED_TOKEN, COUNT, train.tensors,
                                   &options, &second),
               WEFT_ERR_SYSTEM, "cannot listen at unix:weft-feed-");
    fails_with(
        weft_publisher_open(train.context, "policy", FEED_TOKEN, COUNT, twice, NULL, &second),
        WEFT_ERR_INVALID, "two tensors have the name \"t0\"");
    OK(feed_tensor(train.context, "2", "f32[4] P(sum)", 3, &partial));
    fails_with(weft_publisher_open(train.context, "policy", FEED_TOKEN, 1, &partial, NULL, &second),
               WEFT_ERR_INVALID, "has a partial placement on axis 0");
    weft_tensor_release(&partial);
    publish(publisher, &train, 5);
    fails_with(weft_publisher_publish(publisher, 5, NULL), WEFT_ERR_INVALID,
               "the version is 5; expected one above 5");
    fails_with(weft_publisher_publish(publisher, WEFT_NEWEST, NULL), WEFT_ERR_INVALID,
               "WEFT_NEWEST");
    weft_publisher_close(&publisher);
    end(&train);
}

TEST(versions_that_are_kept_can_be_staged_and_others_not)
{
    struct job train = begin(0), serve = begin(1);
    weft_publisher *publisher = open_publisher(&train, NULL, 2);
    weft_subscriber *subscriber;
    uint64_t staged;

    OK(open_as(&serve, weft_publisher_address(publisher), "policy", FEED_TOKEN, NULL, &subscriber));
    fails_with(weft_subscriber_stage(subscriber, WEFT_NEWEST, &staged), WEFT_ERR_NOT_FOUND,
               "no version is published yet");
    OK(weft_subscriber_commit(subscriber, NULL)); /* nothing is staged */
    serves(subscriber, 0, "policy@none");
    for (uint64_t version = 10; version <= 30; version += 10)
        publish(publisher, &train, version);
    fails_with(weft_subscriber_stage(subscriber, 10, &staged), WEFT_ERR_NOT_FOUND,
               "version 10 is not kept; the newest one is 30, and 2 are kept at most");
    OK(weft_subscriber_stage(subscriber, 20, &staged));
    serves(subscriber, 0, "policy@none"); /* until the commit */
    OK(weft_subscriber_commit(subscriber, NULL));
    serves(subscriber, 20, "policy@20");
    OK(weft_subscriber_stage(subscriber, WEFT_NEWEST, &staged));
    ck_assert_uint_eq(staged, 30);
    ck_assert(info_of(subscriber).is_staged);
    serves(subscriber, 20, "policy@20");
    OK(weft_subscriber_stage(subscriber, 20, &staged)); /* back to an older one */
    OK(weft_subscriber_commit(subscriber, NULL));
    serves(subscriber, 20, "policy@20");
    weft_subscriber_close(&subscriber);
    weft_publisher_close(&publisher);
    end(&serve);
    end(&train);
}

TEST(wrong_content_is_named_and_repaired)
{
    struct job train = begin(0), serve = begin(1);
    weft_publisher *publisher = open_publisher(&train, NULL, 1);
    weft_subscriber *subscriber;
    uint64_t staged;
    char *slot;

    OK(open_as(&serve, weft_publisher_address(publisher), "policy", FEED_TOKEN, NULL, &subscriber));
    publish(publisher, &train, 1);
    OK(weft_subscriber_stage(subscriber, WEFT_NEWEST, &staged));
    OK(weft_subscriber_commit(subscriber, NULL));
    publish(publisher, &train, 2);
    slot = wf_feed_memory_slot(&publisher->memory, 0);
    slot[17] ^= 4; /* in the publisher's copy */
    fails_with(
        weft_subscriber_stage(subscriber, WEFT_NEWEST, &staged), WEFT_ERR_MISMATCH,
        "tensor \"t0\" of version 2 has another checksum on ranks 0 and 1 than at the publisher");
    ck_assert_uint_eq(info_of(subscriber).repairs, 2);
    OK(weft_subscriber_commit(subscriber, NULL));
    serves(subscriber, 1, "policy@1");
    slot[17] ^= 4;
    OK(weft_subscriber_stage(subscriber, WEFT_NEWEST, &staged));
    OK(weft_subscriber_commit(subscriber, NULL));
    serves(subscriber, 2, "policy@2");
    OK(weft_subscriber_audit(subscriber, NULL));
    OK(feed_write(weft_subscriber_tensor(subscriber, 1), 1, 77)); /* by the engine */
    fails_with(weft_subscriber_audit(subscriber, NULL), WEFT_ERR_MISMATCH,
               "tensor \"t1\" of version 2");
    ck_assert(info_of(subscriber).is_torn && !info_of(subscriber).is_serving);
    serves(subscriber, 0, "policy@none");
    fails_with(weft_subscriber_audit(subscriber, NULL), WEFT_ERR_INVALID, "no version is served");
    OK(weft_subscriber_stage(subscriber, WEFT_NEWEST, &staged));
    OK(weft_subscriber_commit(subscriber, NULL));
    serves(subscriber, 2, "policy@2");
    ck_assert(!info_of(subscriber).is_torn);
    weft_subscriber_close(&subscriber);
    weft_publisher_close(&publisher);
    end(&serve);
    end(&train);
}

TEST(a_publisher_that_comes_back_finds_its_subscribers)
{
    struct job train = begin(0), serve = begin(1), again = begin(1);
    weft_publisher *publisher;
    weft_subscriber *subscriber;
    char address[64];
    uint64_t staged;

    snprintf(address, sizeof address, "unix:weft-test-back-%d", getpid());
    publisher = open_publisher(&train, address, 2);
    OK(open_as(&serve, address, "policy", FEED_TOKEN, NULL, &subscriber));
    publish(publisher, &train, 1);
    OK(weft_subscriber_stage(subscriber, WEFT_NEWEST, &staged));
    OK(weft_subscriber_commit(subscriber, NULL));
    weft_publisher_close(&publisher);
    serves(subscriber, 1, "policy@1");
    publisher = open_publisher(&again, address, 1); /* in another layout */
    publish(publisher, &again, 1);
    OK(weft_subscriber_stage(subscriber, WEFT_NEWEST, &staged));
    ck_assert(!info_of(subscriber).is_staged); /* the content is the same */
    publish(publisher, &again, 2);
    OK(weft_subscriber_stage(subscriber, WEFT_NEWEST, &staged));
    OK(weft_subscriber_commit(subscriber, NULL));
    serves(subscriber, 2, "policy@2");
    ck_assert_uint_eq(info_of(subscriber).connections, 2);
    weft_context_release(&train.context); /* objects end after their context, too */
    weft_context_release(&again.context);
    fails_with(weft_publisher_publish(publisher, 3, NULL), WEFT_ERR_INVALID, "released");
    weft_publisher_close(&publisher);
    weft_subscriber_close(&subscriber);
    end(&again);
    end(&serve);
    end(&train);
}

TEST(the_oldest_lease_is_revoked_if_all_versions_are_read)
{
    struct job train = begin(0);
    weft_publisher *publisher = open_publisher(&train, NULL, 2);
    struct wf_feed_wait wait = {.deadline_ns = wf_now_ns() + 60 * (uint64_t)WF_SECOND_NS};
    weft_publisher_info info = {.struct_size = sizeof info};
    struct wf_feed_client clients[2];
    struct wf_text reply = {0};

    for (uint64_t version = 1; version <= 2; version++) {
        struct wf_feed_request request = {.type = WF_FEED_LEASE, .version = version};
        struct wf_feed_client *client = &clients[version - 1];

        publish(publisher, &train, version);
        OK(wf_feed_client_open(client, weft_publisher_address(publisher), "policy", FEED_TOKEN,
                               &wait));
        OK(wf_feed_client_call(client, &request, -1, WF_FEED_LEASED, &wait, &reply));
    }
    OK(weft_publisher_get(publisher, &info));
    ck_assert_uint_eq(info.leases, 2);
    ck_assert_uint_eq(info.subscribers, 2);
    publish(publisher, &train, 3);
    OK(weft_publisher_get(publisher, &info));
    ck_assert(info.leases == 1 && info.revoked == 1);
    ck_assert_uint_eq(publisher->slots[0].version, 3);
    ck_assert_uint_eq(publisher->slots[1].version, 2);
    wf_text_free(&reply);
    wf_feed_client_close(&clients[0]);
    wf_feed_client_close(&clients[1]);
    weft_publisher_close(&publisher);
    end(&train);
}

/* Connect to ADDRESS and send BYTES. */
static int intrude(const char *address, const void *bytes, size_t count)
{
    struct sockaddr_un name = {.sun_family = AF_UNIX};
    size_t length = strlen(address) - 5;
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    memcpy(name.sun_path + 1, address + 5, length);
    ck_assert_int_eq(connect(fd, (const struct sockaddr *)&name,
                             (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + length)),
                     0);
    ck_assert_int_eq(send(fd, bytes, count, MSG_NOSIGNAL), (ssize_t)count);
    return fd;
}

TEST(a_process_that_does_not_know_the_protocol_gets_nothing)
{
    struct job train = begin(0), serve = begin(1);
    weft_publisher *publisher = open_publisher(&train, NULL, 2);
    const char *address = weft_publisher_address(publisher);
    uint8_t hello[WF_HELLO_BYTES], nonce[WF_NONCE_BYTES] = {1}, wrong[WF_PROOF_BYTES] = {0},
                                   in[512];
    weft_subscriber *subscriber;
    uint64_t staged;
    int fd = intrude(address, "GET / HTTP/1.1\r\n\r\n", 18);

    ck_assert_int_eq(recv(fd, in, sizeof in, 0), 0); /* the end, and no byte before it */
    close(fd);
    wf_join_hello(nonce, hello);
    fd = intrude(address, hello, sizeof hello);
    ck_assert_int_eq(recv(fd, in, WF_HELLO_BYTES, MSG_WAITALL), WF_HELLO_BYTES);
    ck_assert_int_eq(send(fd, wrong, sizeof wrong, MSG_NOSIGNAL), sizeof wrong);
    while (recv(fd, in, sizeof in, 0) > 0) /* a refusal, and the end */
        ;
    close(fd);
    publish(publisher, &train, 1); /* others are served */
    OK(open_as(&serve, address, "policy", FEED_TOKEN, NULL, &subscriber));
    OK(weft_subscriber_stage(subscriber, WEFT_NEWEST, &staged));
    OK(weft_subscriber_commit(subscriber, NULL));
    serves(subscriber, 1, "policy@1");
    weft_subscriber_close(&subscriber);
    weft_publisher_close(&publisher);
    end(&serve);
    end(&train);
}
