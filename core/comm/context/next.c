/* next.c - the generations of an elastic job.
 *
 * The context continues with its device, streams and memory.  Everything that knows the ranks ends
 * with their generation and is made again: the connection to the rendezvous, the communicators and
 * what modules keep. */
#include "comm/position.h"
#include "comm/recording.h"

#include "weft/status.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* What weft_context_next tells the caller. */
struct wf_next {
    weft_next_info info;
    int32_t old_ranks[WEFT_ELASTIC_MAX], lost[WEFT_ELASTIC_MAX];
    const char *reasons[WEFT_ELASTIC_MAX];
    char texts[WEFT_ELASTIC_MAX][320];
};

_Static_assert(WEFT_ELASTIC_MAX == 64, "ranks are bits of a set");

/* ---- the terms ---- */

/* The scheduler may let a thread wait for so long on a busy host. */
#define SILENT_MIN_NS (INT64_C(100) * 1000000)

static weft_status check_terms(const weft_context *context, const weft_init_options *options,
                               int64_t silent_ns)
{
    if (options->ranks_min < 0 || options->silent_ns < WEFT_FOREVER)
        return wf_fail(WEFT_ERR_INVALID,
                       "weft_init: weft_init_options.ranks_min is %d, .silent_ns is %" PRId64
                       "; ranks_min must not be negative, and silent_ns must be 0, positive or "
                       "WEFT_FOREVER",
                       options->ranks_min, options->silent_ns);
    if (silent_ns > 0 && silent_ns < SILENT_MIN_NS)
        return wf_fail(WEFT_ERR_INVALID,
                       "weft_init: silent_ns (WEFT_SILENT) is %" PRId64
                       " ns; expected 0 or at least %d ms, because a busy host lets a rank be "
                       "silent for a while",
                       silent_ns, (int)(SILENT_MIN_NS / 1000000));
    if (options->ranks_min > WEFT_ELASTIC_MAX || context->config->ranks_min > WEFT_ELASTIC_MAX)
        return wf_fail(WEFT_ERR_INVALID, "weft_init: an elastic job has at most %d ranks",
                       WEFT_ELASTIC_MAX);
    return WEFT_OK;
}

weft_status wf_next_begin(weft_context *context, const weft_init_options *options)
{
    int64_t silent_ns = options->silent_ns != 0 ? options->silent_ns : context->config->silent_ns;
    int64_t ranks_min = options->ranks_min != 0 ? options->ranks_min : context->config->ranks_min;

    WF_TRY(check_terms(context, options, silent_ns));
    if (ranks_min <= 0) return WEFT_OK;
    context->before = wf_calloc(1, sizeof *context->before);
    context->next = wf_calloc(1, sizeof *context->next);
    if (context->before == NULL || context->next == NULL)
        return wf_fail_memory(sizeof *context->before);
    context->before->context = context;
    context->generation = 1;
    context->terms = (struct wf_elastic_terms){
        .ranks_min = (int32_t)ranks_min,
        .silent_ns = silent_ns > 0 ? (uint64_t)silent_ns : 0,
        .answer_ns = context->timeout_ns >= 0 ? (uint64_t)context->timeout_ns : UINT64_MAX};
    return WEFT_OK;
}

weft_status wf_next_check(const weft_context *context)
{
    weft_device_info info = {.struct_size = sizeof info};

    if (context->terms.ranks_min == 0) return WEFT_OK;
    WF_TRY(context->plugin->device->describe(context->device, &info));
    if ((info.features & WEFT_FEATURE_HOST_MEMORY) == 0)
        return wf_fail(WEFT_ERR_UNSUPPORTED,
                       "weft_init: the job is elastic (ranks_min is %d), which needs a backend "
                       "whose memory only processes write, such as gloo-cpu; the backend is %s",
                       context->terms.ranks_min, context->plugin->name);
    return WEFT_OK;
}

void wf_next_end(weft_context *context, const char *cause)
{
    wf_fence_end(context);
    if (context->world != NULL && context->world->made == wf_ended(WF_KIND_COMM))
        wf_comm_free(context->world);
    if (context->before != NULL) wf_dependents_end(context->before, cause);
    wf_free(context->before);
    wf_free(context->next);
    context->before = NULL;
    context->next = NULL;
}

/* ---- the end of a generation ---- */

/* Work in flight ends with an error. */
static void stop_work(weft_context *context)
{
    weft_device_table const *device = context->plugin->device;

    wf_fault_asked(context);
    wf_modules_stop(context);
    (void)device->stream_wait(context->device, NULL, context->timeout_ns);
    for (const struct wf_stream_note *note = context->streams; note != NULL; note = note->next)
        (void)device->stream_wait(context->device, note->stream, context->timeout_ns);
}

static void keep_tensors(weft_context *context, const char *cause)
{
    struct wf_dependent *next;

    for (struct wf_dependent *at = context->world->dependents; at != NULL; at = next) {
        next = at->next;
        if (at->tensor == NULL || !at->tensor->outlive(at, cause)) continue;
        wf_dependent_remove(at);
        wf_dependent_add(at, context->before);
    }
}

static void end_comms(weft_context *context, const char *cause)
{
    while (context->comms != NULL) {
        weft_comm *comm = context->comms;

        while (comm->owner != NULL) /* it ends with its owner */
            comm = comm->owner;
        comm->generation = context->generation;
        wf_comm_end(comm, cause);
    }
}

static void end_generation(weft_context *context)
{
    char cause[64];

    if (context->made == WF_BETWEEN_GENERATIONS) {
        wf_modules_destroy(context);
        return;
    }
    snprintf(cause, sizeof cause, "generation %" PRIu64 " of the job has ended",
             context->generation);
    if (context->client != NULL) wf_client_quiet(context->client);
    stop_work(context);
    keep_tensors(context, cause);
    end_comms(context, cause);
    wf_modules_destroy(context);
    wf_remains_free(context);
    context->released_count = context->early_abort_count = 0;
    memset(context->early_aborts, 0, sizeof context->early_aborts);
    context->made = WF_BETWEEN_GENERATIONS;
}

/* ---- the ranks that are left out ---- */

static const char *reason(weft_context *context, int32_t rank)
{
    const struct wf_departure *departure = wf_client_gone(context->client, rank);

    return departure != NULL ? departure->text : "is gone";
}

static bool has_left(weft_context *context, int32_t rank)
{
    const struct wf_departure *departure = wf_client_gone(context->client, rank);

    return departure != NULL && departure->left;
}

/* The ranks of CONTEXT's generation that are not MEMBERS of the next one. */
static weft_status fence(weft_context *context, uint64_t members)
{
    for (int32_t rank = 0; rank < context->size; rank++)
        if ((members >> rank & 1) == 0 && !has_left(context, rank))
            WF_TRY(wf_fence_wait(context, rank, reason(context, rank)));
    return WEFT_OK;
}

/* Ranks are lost in several generations if the first of them does not come about.  OLD_RANKS has
 * the numbers in the generation that the caller knows. */
static void list_ranks(weft_context *context, const struct wf_decision *decision)
{
    struct wf_next *next = context->next;
    size_t kept = 0;

    for (int32_t rank = 0; rank < context->size; rank++) {
        int32_t old = next->old_ranks[rank];

        if (decision->members >> rank & 1) {
            next->old_ranks[kept++] = old;
            continue;
        }
        next->lost[next->info.lost_count] = old;
        snprintf(next->texts[old], sizeof next->texts[old], "%s", reason(context, rank));
        next->info.lost_count++;
    }
    next->info.old_count = kept;
}

static void sort_lost(struct wf_next *next)
{
    for (size_t i = 1; i < next->info.lost_count; i++)
        for (size_t k = i; k > 0 && next->lost[k - 1] > next->lost[k]; k--) {
            int32_t rank = next->lost[k];

            next->lost[k] = next->lost[k - 1];
            next->lost[k - 1] = rank;
        }
    for (size_t i = 0; i < next->info.lost_count; i++)
        next->reasons[i] = next->texts[next->lost[i]];
}

/* ---- the next generation ---- */

/* The processes of MEMBERS are known by their new numbers before these show them again: one of them
 * may be lost until then. */
static void renumber_peers(weft_context *context, uint64_t members)
{
    size_t kept = 0;

    for (int32_t rank = 0; context->peers != NULL && rank < context->size; rank++) {
        if (members >> rank & 1)
            context->peers[kept++] = context->peers[rank];
        else if (context->peers[rank].pidfd >= 0)
            wf_fd_close(context->peers[rank].pidfd);
    }
}

static void take_place(weft_context *context, const struct wf_decision *decision,
                       struct wf_client *client, struct wf_server *server)
{
    if (context->client != NULL) wf_client_move_on(context->client);
    wf_client_release(&context->client, NULL);
    wf_server_release(&context->server);
    renumber_peers(context, decision->members);
    wf_free(context->host_ids);
    context->host_ids = NULL;
    context->client = client;
    context->server = server;
    context->generation = decision->generation;
    context->rank = decision->rank;
    context->size = decision->size;
    context->local_rank = -1;
    if (client != NULL) context->job = wf_client_job(client);
    wf_trace_set_place(context->trace, context->job, context->rank, context->size);
}

/* The members of DECISION meet.  WEFT_ERR_PEER, WEFT_ERR_TIMEOUT: not all of them came. */
static weft_status meet(weft_context *context, const struct wf_decision *decision)
{
    struct wf_client_options options = {.rank = decision->rank,
                                        .size = decision->size,
                                        .key = decision->key,
                                        .join_timeout_ns = context->config->join_timeout_ns,
                                        .address = decision->is_address ? &decision->address : NULL,
                                        .server = decision->server,
                                        .serving_rank = decision->serving_rank,
                                        .generation = decision->generation,
                                        .terms = context->terms,
                                        .events = {.self = context,
                                                   .gone = wf_fault_gone,
                                                   .abort = wf_fault_abort,
                                                   .asked = wf_fault_asked,
                                                   .where = wf_position_report,
                                                   .watch = wf_runs_watch,
                                                   .answered = wf_runs_receive}};
    struct wf_client *client = NULL;
    struct wf_server *server = NULL;

    if (decision->size > 1) {
        WF_TRY(wf_client_create(&options, &client));
        server = wf_client_take_server(context->client);
    }
    list_ranks(context, decision);
    take_place(context, decision, client, server);
    return WEFT_OK;
}

static weft_status make_world(weft_context *context)
{
    weft_comm *old = context->world;
    weft_status status;

    WF_TRY(wf_modules_create(context));
    context->made = wf_made_now(WF_KIND_CONTEXT);
    status = wf_context_meet(context);
    if (context->world != old)
        wf_comm_forget(context, old);
    else
        context->made = WF_BETWEEN_GENERATIONS;
    return status;
}

/* A rank alone needs no rendezvous. */
static weft_status decide(weft_context *context, uint64_t step, struct wf_decision *out)
{
    if (context->client != NULL) return wf_client_next(context->client, step, out);
    *out = (struct wf_decision){.generation = context->generation + 1,
                                .step = step,
                                .members = 1,
                                .size = 1,
                                .serving_rank = -1};
    return WEFT_OK;
}

static uint64_t lap(uint64_t *from_ns)
{
    uint64_t now_ns = wf_now_ns(), taken_ns = now_ns - *from_ns;

    *from_ns = now_ns;
    return taken_ns;
}

/* One attempt.  WEFT_IN_PROGRESS: a rank was lost meanwhile, so there is another one. */
static weft_status advance(weft_context *context, uint64_t step)
{
    weft_next_info *info = &context->next->info;
    struct wf_decision decision = {0};
    uint64_t from_ns = wf_now_ns();
    weft_status status;

    WF_TRY(decide(context, step, &decision));
    info->agree_ns += lap(&from_ns);
    WF_TRY(fence(context, decision.members));
    info->fence_ns += lap(&from_ns);
    end_generation(context);
    status = meet(context, &decision);
    info->meet_ns += lap(&from_ns);
    if (status == WEFT_ERR_PEER || status == WEFT_ERR_TIMEOUT) return WEFT_IN_PROGRESS;
    WF_TRY(status);
    info->step = decision.step;
    status = make_world(context);
    info->world_ns += lap(&from_ns);
    if (status == WEFT_ERR_PEER || status == WEFT_ERR_ABORTED) return WEFT_IN_PROGRESS;
    return status;
}

static void begin_info(weft_context *context)
{
    struct wf_next *next = context->next;

    next->info = (weft_next_info){
        .old_ranks = next->old_ranks, .lost = next->lost, .reasons = next->reasons};
    for (int32_t rank = 0; rank < context->size; rank++)
        next->old_ranks[rank] = rank;
}

static void log_next(const weft_context *context)
{
    const weft_next_info *info = &context->next->info;
    struct wf_text text = {0};

    for (size_t i = 0; i < info->lost_count; i++)
        wf_text_add(&text, "; rank %d %s", info->lost[i], info->reasons[i]);
    wf_log(context->rank == 0 ? WF_LOG_NOTICE : WF_LOG_INFO,
           "generation %" PRIu64 " of the job has %d rank%s, after %.1f ms%s", info->generation,
           info->size, WF_PLURAL((uint64_t)info->size),
           (double)(info->agree_ns + info->fence_ns + info->meet_ns + info->world_ns) * 1e-6,
           text.data != NULL && !text.failed ? text.data : "");
    wf_text_free(&text);
}

weft_status weft_context_next(weft_context *context, const weft_next_options *options,
                              weft_next_info *out)
{
    static const char what[] = "weft_context_next";
    weft_next_options given = {0};
    weft_status status;

    if (context == NULL || context->made != WF_BETWEEN_GENERATIONS)
        WF_TRY(wf_context_check(context, what));
    WF_TRY(
        wf_fail_named(wf_options_read("weft_next_options", options, &given, sizeof given), what));
    if (out != NULL) WF_TRY(wf_fail_named(wf_info_check("weft_next_info", out), what));
    if (context->terms.ranks_min == 0)
        return wf_fail(WEFT_ERR_INVALID,
                       "%s: the job is not elastic; set weft_init_options.ranks_min or "
                       "WEFT_ELASTIC",
                       what);
    wf_fault_asked(context);
    if (context->made != WF_BETWEEN_GENERATIONS) begin_info(context);
    do
        status = advance(context, given.step);
    while (status == WEFT_IN_PROGRESS);
    if (status != WEFT_OK) return wf_fail_named(status, what);
    context->next->info.generation = context->generation;
    context->next->info.rank = context->rank;
    context->next->info.size = context->size;
    sort_lost(context->next);
    log_next(context);
    if (out == NULL) return WEFT_OK;
    return wf_info_write("weft_next_info", &context->next->info, sizeof context->next->info, out);
}

bool weft_context_wants_next(const weft_context *context)
{
    return context != NULL && context->terms.ranks_min > 0 && context->client != NULL &&
           wf_client_wants_next(context->client);
}

uint64_t weft_context_generation(const weft_context *context)
{
    return context != NULL ? context->generation : 0;
}
