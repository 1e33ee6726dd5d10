/* publish.c - the publisher: its life, and publications. */
#include "publish.h"

#include <stdio.h>
#include <string.h>

static weft_status check(weft_publisher *publisher, const char *function)
{
    WF_TRY(weft_object_check(publisher, "weft_publisher", function, "publisher"));
    if (publisher->job.cause[0] == '\0') return WEFT_OK;
    return wf_fail(WEFT_ERR_INVALID, "%s: %s", function, publisher->job.cause);
}

/* ---- the end ---- */

static void stop(weft_publisher *publisher)
{
    if (publisher->server != NULL) wf_feed_server_stop(publisher->server);
    wf_free(publisher->server);
    publisher->server = NULL;
    wf_feed_memory_free(&publisher->memory);
}

static void end(void *user, const char *cause)
{
    weft_publisher *publisher = user;

    snprintf(publisher->job.cause, sizeof publisher->job.cause, "%s", cause);
    stop(publisher);
}

static const weft_dependent_calls calls = {.struct_size = sizeof calls, .end = end};

static void free_all(weft_publisher *publisher)
{
    if (publisher == NULL) return;
    weft_dependent_release(&publisher->dependent);
    stop(publisher);
    for (size_t i = 0; publisher->tensors != NULL && i < publisher->description.count; i++)
        weft_tensor_release(&publisher->tensors[i]);
    wf_free(publisher->tensors);
    wf_free(publisher->slots);
    wf_free(publisher->sums);
    wf_feed_description_free(&publisher->description);
    wf_feed_job_free(&publisher->job);
    wf_free(publisher);
}

void weft_publisher_close(weft_publisher **publisher)
{
    weft_publisher *object = publisher != NULL ? *publisher : NULL;

    if (object == NULL ||
        !weft_object_end(&object->object, "weft_publisher", "weft_publisher_close"))
        return;
    *publisher = NULL;
    free_all(object);
}

/* ---- opening: what a rank does alone ---- */

static weft_status read_options(const weft_publisher_options *given, weft_publisher_options *out)
{
    *out = (weft_publisher_options){.struct_size = sizeof *out};
    WF_TRY(wf_options_read("weft_publisher_options", given, out, sizeof *out));
    if (out->versions == 0) out->versions = 2;
    if (out->versions > WEFT_PUBLISHER_VERSIONS_MAX)
        return wf_fail(WEFT_ERR_INVALID, "versions is %zu; expected at most %d", out->versions,
                       WEFT_PUBLISHER_VERSIONS_MAX);
    return out->address != NULL ? wf_feed_address_check(out->address) : WEFT_OK;
}

static void choose_address(weft_publisher *publisher, const char *given)
{
    uint8_t number[8];

    if (given != NULL) {
        snprintf(publisher->address, sizeof publisher->address, "%s", given);
        return;
    }
    wf_random_bytes(number, sizeof number);
    snprintf(publisher->address, sizeof publisher->address,
             "unix:weft-feed-%02x%02x%02x%02x%02x%02x%02x%02x", number[0], number[1], number[2],
             number[3], number[4], number[5], number[6], number[7]);
}

/* Bytes of this process's shards in one slot; sets `bytes` to those without gaps. */
static uint64_t slot_bytes(weft_publisher *publisher)
{
    uint64_t bytes = 0;

    for (size_t i = 0; i < publisher->description.count; i++) {
        uint64_t more = wf_feed_shard_bytes(publisher->description.entries[i].spec,
                                            publisher->job.first, publisher->job.end);
        publisher->bytes = wf_add_capped(publisher->bytes, more);
        bytes = wf_feed_align(wf_add_capped(bytes, more));
    }
    return bytes;
}

static weft_status make_memory(weft_publisher *publisher, size_t versions)
{
    uint64_t bytes = slot_bytes(publisher);

    if (bytes > INT64_MAX / 2 / WEFT_PUBLISHER_VERSIONS_MAX)
        return wf_fail(WEFT_ERR_NO_MEMORY, "a version has %llu bytes", (unsigned long long)bytes);
    publisher->sums = wf_calloc(publisher->description.count, sizeof *publisher->sums);
    if (publisher->sums == NULL)
        return wf_fail_memory(publisher->description.count * sizeof *publisher->sums);
    return wf_feed_memory_create(versions, bytes, &publisher->memory);
}

static weft_status start_server(weft_publisher *publisher, const char *feed, const char *token)
{
    struct wf_feed_server *server = wf_calloc(1, sizeof *server);

    publisher->slots = wf_calloc(publisher->description.slots, sizeof *publisher->slots);
    if (server == NULL || publisher->slots == NULL) {
        wf_free(server);
        return wf_fail_memory(sizeof *server);
    }
    publisher->server = server;
    server->ring =
        (struct wf_feed_ring){.slots = publisher->slots, .count = publisher->description.slots};
    WF_TRY(wf_feed_server_start(server, publisher->address, feed, token, &publisher->description));
    return wf_feed_server_offer(server, 0, publisher->memory.fd);
}

static weft_status retain_all(weft_publisher *publisher, weft_tensor *const *tensors)
{
    size_t count = publisher->description.count;

    publisher->tensors = wf_calloc(count, sizeof(weft_tensor *));
    if (publisher->tensors == NULL) return wf_fail_memory(count * sizeof(weft_tensor *));
    for (size_t i = 0; i < count; i++)
        publisher->tensors[i] = weft_tensor_retain(tensors[i]);
    return WEFT_OK;
}

static weft_status make(weft_publisher *publisher, const char *feed, const char *token,
                        size_t count, weft_tensor *const *tensors,
                        const weft_publisher_options *options)
{
    weft_context *context = publisher->job.context;
    weft_publisher_options known;

    WF_TRY(wf_feed_names_check(feed, token));
    WF_TRY(read_options(options, &known));
    if (weft_local_size(context) != weft_size(context))
        return wf_fail(WEFT_ERR_UNSUPPORTED,
                       "%d of %d ranks run on this host; a feed needs all on one host",
                       weft_local_size(context), weft_size(context));
    WF_TRY(wf_feed_tensors_check(context, count, tensors, "weft_publisher_open",
                                 &publisher->description));
    publisher->description.ranks = weft_size(context);
    publisher->description.simulated = weft_is_simulated(context);
    publisher->description.slots = known.versions;
    wf_random_bytes(&publisher->description.life, sizeof publisher->description.life);
    WF_TRY(retain_all(publisher, tensors));
    WF_TRY(make_memory(publisher, known.versions));
    WF_TRY(weft_dependent_create(weft_world(context), &calls, publisher, &publisher->dependent));
    choose_address(publisher, known.address);
    return publisher->job.first == 0 ? start_server(publisher, feed, token) : WEFT_OK;
}

/* ---- opening: what the ranks agree on ---- */

struct opening {
    uint64_t tensors, slots, feed;
    char address[WF_FEED_ADDRESS_TEXT];
};

static weft_status compare(weft_publisher *publisher, const weft_answers *answers,
                           const struct opening *mine, weft_status status)
{
    struct opening root;

    for (int32_t rank = 0; rank < wf_feed_answer_count(&publisher->job, answers); rank++) {
        const void *data = wf_feed_answer(answers, rank, mine, sizeof *mine);
        struct opening theirs = {0};

        if (data != NULL) memcpy(&theirs, data, sizeof theirs);
        if (rank == 0) root = theirs;
        if (status == WEFT_OK && (theirs.tensors != root.tensors || theirs.slots != root.slots ||
                                  theirs.feed != root.feed))
            status = wf_fail(WEFT_ERR_MISMATCH,
                             "weft_publisher_open: rank 0 and rank %d pass different %s", rank,
                             theirs.feed != root.feed     ? "names of the feed, or tokens"
                             : theirs.slots != root.slots ? "numbers of versions"
                                                          : "tensors, layouts or orders");
    }
    memcpy(publisher->address, root.address, sizeof publisher->address);
    return status;
}

/* Give rank 0 this rank's memory. */
static weft_status offer(const weft_publisher *publisher, const char *feed, const char *token)
{
    struct wf_feed_request request = {.type = WF_FEED_OFFER, .holder = publisher->job.first};
    struct wf_feed_wait wait = {.deadline_ns = wf_now_ns() + 60 * (uint64_t)WF_SECOND_NS};
    struct wf_feed_client client;
    weft_status status = wf_feed_client_open(&client, publisher->address, feed, token, &wait);

    if (status == WEFT_OK)
        status = wf_feed_client_call(&client, &request, publisher->memory.fd, WF_FEED_TAKEN, &wait,
                                     NULL);
    wf_feed_client_close(&client);
    return status;
}

static weft_status open_all(weft_publisher *publisher, const char *feed, const char *token,
                            weft_status status)
{
    static const char what[] = "weft_publisher_open";
    struct opening mine = {0};
    weft_answers *answers;

    if (status == WEFT_OK) {
        mine.tensors = wf_feed_digest(&publisher->description);
        mine.slots = publisher->description.slots;
        mine.feed = wf_hash(wf_hash(0, feed, strlen(feed)), token, strlen(token));
        memcpy(mine.address, publisher->address, sizeof mine.address);
    }
    WF_TRY(wf_feed_agree(&publisher->job, what, status, &mine, sizeof mine, &answers));
    publisher->job.opened = answers;
    WF_TRY(compare(publisher, answers, &mine, WEFT_OK));
    if (publisher->job.first > 0) status = offer(publisher, feed, token);
    WF_TRY(wf_feed_agree(&publisher->job, what, status, NULL, 0, &answers));
    weft_answers_release(&answers);
    return WEFT_OK;
}

weft_status weft_publisher_open(weft_context *context, const char *feed, const char *token,
                                size_t count, weft_tensor *const *tensors,
                                const weft_publisher_options *options, weft_publisher **out)
{
    static const char what[] = "weft_publisher_open";
    weft_publisher *made;
    struct wf_feed_job job;
    weft_status status;

    WF_TRY(weft_object_check(context, "weft_context", what, "context"));
    wf_feed_job_begin(&job, context, what);
    made = wf_calloc(1, sizeof *made);
    if (made == NULL) { /* the other ranks learn of it */
        weft_answers *answers;
        status = wf_feed_agree(&job, what, wf_fail_memory(sizeof *made), NULL, 0, &answers);
        return weft_record_end(&job.record, status);
    }
    made->job = job;
    made->memory.fd = -1;
    status =
        out != NULL ? make(made, feed, token, count, tensors, options) : wf_fail_null(what, "out");
    status = weft_record_end(&made->job.record, open_all(made, feed, token, status));
    if (status != WEFT_OK) {
        free_all(made);
        return status;
    }
    weft_object_begin(&made->object, "weft_publisher");
    *out = made;
    return WEFT_OK;
}

/* ---- publications ---- */

/* What rank 0 chooses, and what the others compare. */
struct choice {
    uint64_t version, slot, serial;
};

static struct choice choose(weft_publisher *publisher, uint64_t version)
{
    struct choice choice = {.version = version};

    if (publisher->server == NULL) return choice;
    pthread_mutex_lock(&publisher->server->guard);
    choice.slot = wf_feed_ring_choose(&publisher->server->ring);
    choice.serial = publisher->server->ring.serial + 1;
    pthread_mutex_unlock(&publisher->server->guard);
    return choice;
}

static weft_status check_version(const weft_publisher *publisher, uint64_t version)
{
    if (version == WEFT_NEWEST)
        return wf_fail(WEFT_ERR_INVALID, "the version is WEFT_NEWEST; expected a number");
    if (version > publisher->version) return WEFT_OK;
    return wf_fail(WEFT_ERR_INVALID, "the version is %llu; expected one above %llu",
                   (unsigned long long)version, (unsigned long long)publisher->version);
}

/* All ranks have passed VERSION: set *OUT to what rank 0 has chosen. */
static weft_status agree_choice(weft_publisher *publisher, weft_status status, uint64_t version,
                                struct choice *out)
{
    static const char what[] = "weft_publisher_publish";
    struct choice mine = choose(publisher, version);
    weft_answers *answers;

    WF_TRY(wf_feed_agree(&publisher->job, what, status, &mine, sizeof mine, &answers));
    for (int32_t rank = 0; rank < wf_feed_answer_count(&publisher->job, answers); rank++) {
        const void *data = wf_feed_answer(answers, rank, &mine, sizeof mine);
        struct choice theirs = {0};

        if (data != NULL) memcpy(&theirs, data, sizeof theirs);
        if (rank == 0) *out = theirs;
        if (theirs.version != out->version && status == WEFT_OK)
            status =
                wf_fail(WEFT_ERR_MISMATCH, "%s: rank 0 publishes %llu, and rank %d %llu", what,
                        (unsigned long long)out->version, rank, (unsigned long long)theirs.version);
    }
    weft_answers_release(&answers);
    return status;
}

/* Copy the tensors to SLOT, and add them to the checksums. */
static weft_status take_snapshot(weft_publisher *publisher, uint64_t slot, weft_stream *stream)
{
    uint64_t offset = 0;

    for (size_t i = 0; i < publisher->description.count; i++) {
        const struct wf_feed_entry *entry = &publisher->description.entries[i];
        char *to = wf_feed_memory_slot(&publisher->memory, slot) + offset;
        uint64_t bytes = wf_feed_shard_bytes(entry->spec, publisher->job.first, publisher->job.end);

        publisher->sums[i] = 0;
        if (bytes > 0) WF_TRY(weft_tensor_to_host(publisher->tensors[i], to, bytes, stream));
        for (int32_t rank = publisher->job.first; rank < publisher->job.end; rank++) {
            int32_t replica;
            if (wf_feed_replica(entry->spec, rank, &replica) && replica == 0)
                publisher->sums[i] += wf_feed_sum(entry->spec, rank, to);
            to += weft_spec_shard_bytes(entry->spec, rank);
        }
        offset = wf_feed_align(offset + bytes);
    }
    return WEFT_OK;
}

/* The version exists from now on: rank 0 has the sums of all ranks. */
static void finish(weft_publisher *publisher, const weft_answers *answers, struct choice choice)
{
    struct wf_feed_server *server = publisher->server;
    size_t count = publisher->description.count;
    uint64_t *sums = server->sums + choice.slot * count;

    memset(sums, 0, count * sizeof *sums);
    for (int32_t rank = 0; rank < wf_feed_answer_count(&publisher->job, answers); rank++) {
        const uint64_t *theirs =
            wf_feed_answer(answers, rank, publisher->sums, count * sizeof *theirs);
        for (size_t i = 0; theirs != NULL && i < count; i++)
            sums[i] += theirs[i];
    }
    wf_feed_ring_end(&server->ring, (size_t)choice.slot, choice.version);
}

static weft_status publish(weft_publisher *publisher, uint64_t version, weft_stream *stream)
{
    static const char what[] = "weft_publisher_publish";
    struct wf_feed_server *server = publisher->server;
    struct choice choice = {0};
    weft_answers *answers;
    weft_status status = weft_stream_check(publisher->job.context, stream, what);

    if (status == WEFT_OK) status = check_version(publisher, version);
    WF_TRY(agree_choice(publisher, status, version, &choice));
    if (server != NULL) {
        pthread_mutex_lock(&server->guard);
        wf_feed_ring_begin(&server->ring, (size_t)choice.slot);
        pthread_mutex_unlock(&server->guard);
    }
    wf_feed_memory_set_serial(&publisher->memory, choice.slot, 0);
    status = take_snapshot(publisher, choice.slot, stream);
    if (status == WEFT_OK)
        wf_feed_memory_set_serial(&publisher->memory, choice.slot, choice.serial);
    WF_TRY(wf_feed_agree(&publisher->job, what, status, publisher->sums,
                         publisher->description.count * sizeof *publisher->sums, &answers));
    if (server != NULL) {
        pthread_mutex_lock(&server->guard);
        finish(publisher, answers, choice);
        pthread_mutex_unlock(&server->guard);
    }
    weft_answers_release(&answers);
    publisher->version = version;
    publisher->published++;
    return WEFT_OK;
}

weft_status weft_publisher_publish(weft_publisher *publisher, uint64_t version, weft_stream *stream)
{
    static const char what[] = "weft_publisher_publish";
    uint64_t begun_ns = wf_now_ns();
    weft_open_record record;
    weft_status status;

    WF_TRY(check(publisher, what));
    weft_record_continue(&publisher->job.record, what, &record);
    weft_record_set_bytes(&record, publisher->bytes);
    status = publish(publisher, version, stream);
    if (status == WEFT_OK) publisher->snapshot_ns = wf_now_ns() - begun_ns;
    return weft_record_end(&record, status);
}

/* ---- properties ---- */

const char *weft_publisher_address(const weft_publisher *publisher)
{
    return publisher != NULL ? publisher->address : NULL;
}

weft_status weft_publisher_get(weft_publisher *publisher, weft_publisher_info *out)
{
    weft_publisher_info info = {.struct_size = sizeof info};
    struct wf_feed_server *server;

    WF_TRY(check(publisher, "weft_publisher_get"));
    WF_TRY(wf_require(out, "weft_publisher_get: out"));
    server = publisher->server;
    info.version = publisher->version;
    info.published = publisher->published;
    info.bytes = publisher->bytes;
    info.snapshot_ns = publisher->snapshot_ns;
    if (server != NULL) {
        info.subscribers = wf_feed_server_subscribers(server);
        pthread_mutex_lock(&server->guard);
        info.leases = server->ring.lease_count;
        info.revoked = server->ring.revoked;
        pthread_mutex_unlock(&server->guard);
    }
    return wf_info_write("weft_publisher_info", &info, sizeof info, out);
}
