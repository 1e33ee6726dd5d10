/* next.c - the generations of an elastic job.
 *
 * The context continues with its device, streams and memory.  Everything that knows the ranks ends
 * with their generation and is made again: the connection to the rendezvous, the communicators and
 * what modules keep. */
#include "comm/position.h"
#include "comm/context/timing.h"
#include "comm/recording.h"
#include "rendezvous/round.h"

#include "weft/status.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* What weft_context_next tells the caller. */
struct wf_next {
    weft_next_info info;
    int32_t own; /* this rank's number in the generation that the caller knows; -1: none */
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
    if (options->ranks_max < 0)
        return wf_fail(WEFT_ERR_INVALID,
                       "weft_init: weft_init_options.ranks_max is %d; it must not be negative",
                       options->ranks_max);
    if (options->ranks_min > WEFT_ELASTIC_MAX || context->config->ranks_min > WEFT_ELASTIC_MAX ||
        options->ranks_max > WEFT_ELASTIC_MAX || context->config->ranks_max > WEFT_ELASTIC_MAX)
        return wf_fail(WEFT_ERR_INVALID, "weft_init: an elastic job has at most %d ranks",
                       WEFT_ELASTIC_MAX);
    return WEFT_OK;
}

weft_status wf_next_begin(weft_context *context, const weft_init_options *options)
{
    int64_t silent_ns = options->silent_ns != 0 ? options->silent_ns : context->config->silent_ns;
    int64_t ranks_min = options->ranks_min != 0 ? options->ranks_min : context->config->ranks_min;
    int64_t ranks_max = options->ranks_max != 0 ? options->ranks_max : context->config->ranks_max;

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
        .ranks_max = (int32_t)ranks_max,
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
    wf_newcomer_release(&context->newcomer);
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
    int32_t old_ranks[WEFT_ELASTIC_MAX];

    for (int32_t rank = 0; rank < decision->size; rank++)
        old_ranks[rank] = -1;
    for (int32_t rank = 0; rank < context->size; rank++) {
        int32_t old = next->old_ranks[rank];

        if (decision->members >> rank & 1) {
            old_ranks[wf_round_rank(decision->members, context->size, rank)] = old;
            continue;
        }
        if (old < 0) continue; /* it was new in a generation that did not come about */
        next->lost[next->info.lost_count] = old;
        snprintf(next->texts[old], sizeof next->texts[old], "%s", reason(context, rank));
        next->info.lost_count++;
    }
    memcpy(next->old_ranks, old_ranks, sizeof old_ranks);
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
    struct wf_peer peers[WEFT_ELASTIC_MAX];

    if (context->peers == NULL) return;
    for (int32_t rank = 0; rank < WEFT_ELASTIC_MAX; rank++)
        peers[rank] = (struct wf_peer){.pidfd = -1};
    for (int32_t rank = 0; rank < context->size; rank++) {
        if (members >> rank & 1)
            peers[wf_round_rank(members, context->size, rank)] = context->peers[rank];
        else if (context->peers[rank].pidfd >= 0)
            wf_fd_close(context->peers[rank].pidfd);
    }
    memcpy(context->peers, peers, sizeof peers);
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
    if (context->trace != NULL)
        wf_trace_set_place(context->trace, context->job, context->rank, context->size);
}

/* The members of DECISION meet.  WEFT_ERR_PEER, WEFT_ERR_TIMEOUT: not all of them came. */
static weft_status meet(weft_context *context, const struct wf_decision *decision)
{
    struct wf_client_options options = {.rank = decision->rank,
                                        .size = decision->size,
                                        .key = decision->key,
                                        .base = decision->base,
                                        .choices = {context->choices.data, context->choices.length},
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

    if (decision->size > 1 || decision->is_address) {
        WF_TRY(wf_client_create(&options, &client));
        if (context->client != NULL) server = wf_client_take_server(context->client);
    }
    if (context->newcomer == NULL) list_ranks(context, decision);
    wf_newcomer_release(&context->newcomer);
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
    if (context->world == old)
        context->made = WF_BETWEEN_GENERATIONS;
    else if (old != NULL)
        wf_comm_forget(context, old);
    return status;
}

/* A rank alone needs no rendezvous if nobody can come.  GROWS: the generation can go on. */
static weft_status decide(weft_context *context, uint64_t step, bool grows, struct wf_decision *out)
{
    if (context->client != NULL && grows) return wf_client_grow(context->client, step, out);
    if (context->client != NULL) return wf_client_next(context->client, step, out);
    *out = (struct wf_decision){.generation = context->generation + 1,
                                .step = step,
                                .members = 1,
                                .size = 1,
                                .serving_rank = -1,
                                .stays = grows};
    return WEFT_OK;
}

static uint64_t lap(uint64_t *from_ns)
{
    uint64_t now_ns = wf_now_ns(), taken_ns = now_ns - *from_ns;

    *from_ns = now_ns;
    return taken_ns;
}

/* One attempt.  WEFT_IN_PROGRESS: a rank was lost meanwhile, so there is another one. */
static weft_status advance(weft_context *context, uint64_t step, bool grows)
{
    weft_next_info *info = &context->next->info;
    struct wf_decision decision = {0};
    uint64_t from_ns = wf_now_ns();
    weft_status status;

    WF_TRY(decide(context, step, grows, &decision));
    info->agree_ns += lap(&from_ns);
    info->step = step;
    if (decision.stays) return WEFT_OK;
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

    next->own = context->rank;
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
    for (int32_t rank = 0; rank < info->size; rank++)
        if (info->old_ranks[rank] < 0) wf_text_add(&text, "; rank %d is new", rank);
    wf_log(context->rank == wf_next_giver(context) ? WF_LOG_NOTICE : WF_LOG_INFO,
           "generation %" PRIu64 " of the job has %d rank%s, after %.1f ms%s", info->generation,
           info->size, WF_PLURAL((uint64_t)info->size),
           (double)(info->agree_ns + info->fence_ns + info->meet_ns + info->world_ns) * 1e-6,
           text.data != NULL && !text.failed ? text.data : "");
    wf_text_free(&text);
}

static void end_info(weft_context *context)
{
    weft_next_info *info = &context->next->info;

    info->generation = context->generation;
    info->rank = context->rank;
    info->size = context->size;
    info->old_count = (size_t)context->size;
    sort_lost(context->next);
}

/* GROWS: only newcomers change the generation. */
static weft_status make_next(weft_context *context, const weft_next_options *options, bool grows,
                             weft_next_info *out, const char *what)
{
    weft_next_options given = {0};
    uint64_t before;
    weft_status status;

    WF_TRY(
        wf_fail_named(wf_options_read("weft_next_options", options, &given, sizeof given), what));
    if (out != NULL) WF_TRY(wf_fail_named(wf_info_check("weft_next_info", out), what));
    if (context->terms.ranks_min == 0)
        return wf_fail(WEFT_ERR_INVALID,
                       "%s: the job is not elastic; set weft_init_options.ranks_min or "
                       "WEFT_ELASTIC",
                       what);
    if (!grows) wf_fault_asked(context);
    if (context->made != WF_BETWEEN_GENERATIONS) begin_info(context);
    before = context->generation;
    do
        status = advance(context, given.step, grows && context->generation == before);
    while (status == WEFT_IN_PROGRESS);
    if (status != WEFT_OK) return wf_fail_named(status, what);
    end_info(context);
    if (context->generation != before) log_next(context);
    if (out == NULL) return WEFT_OK;
    return wf_info_write("weft_next_info", &context->next->info, sizeof context->next->info, out);
}

weft_status weft_context_next(weft_context *context, const weft_next_options *options,
                              weft_next_info *out)
{
    static const char what[] = "weft_context_next";

    if (context == NULL || context->made != WF_BETWEEN_GENERATIONS)
        WF_TRY(wf_context_check(context, what));
    return make_next(context, options, false, out, what);
}

weft_status weft_context_grow(weft_context *context, const weft_next_options *options,
                              weft_next_info *out)
{
    static const char what[] = "weft_context_grow";

    WF_TRY(wf_context_check(context, what));
    return make_next(context, options, true, out, what);
}

weft_status weft_context_origin_get(const weft_context *context, weft_next_info *out)
{
    static const char what[] = "weft_context_origin_get";
    weft_next_info info = {.size = weft_size(context), .rank = weft_rank(context)};

    WF_TRY(wf_context_check(context, what));
    if (out == NULL) return wf_fail_null(what, "out");
    WF_TRY(wf_fail_named(wf_info_check("weft_next_info", out), what));
    if (context->next != NULL && context->next->info.generation == context->generation)
        info = context->next->info;
    else
        info.generation = context->generation;
    return wf_info_write("weft_next_info", &info, sizeof info, out);
}

/* ---- newcomers ---- */

int32_t wf_next_number(const weft_context *context)
{
    return context->next != NULL && context->generation > 1 ? context->next->own : context->rank;
}

void wf_next_note(weft_context *context, int32_t rank, int32_t old)
{
    if (context->next == NULL || rank >= WEFT_ELASTIC_MAX) return;
    context->next->old_ranks[rank] = old >= 0 && old < WEFT_ELASTIC_MAX ? old : -1;
}

int32_t wf_next_giver(const weft_context *context)
{
    for (int32_t rank = 0; rank < context->size; rank++)
        if (context->next->old_ranks[rank] >= 0) return rank;
    return 0;
}

bool wf_next_has_newcomers(const weft_context *context)
{
    for (int32_t rank = 0; context->next != NULL && rank < context->size; rank++)
        if (context->next->old_ranks[rank] < 0) return true;
    return false;
}

enum { PROBE = 1 << 18 }; /* elements: 1 MiB */

static weft_status check_probe(const float *memory)
{
    for (int32_t i = 0; i < PROBE; i++)
        if (memory[i] != (float)(2 * i))
            return wf_fail(WEFT_ERR_INTERNAL,
                           "the device of this process is not sound: element %d of a reduction is "
                           "%g; expected %g",
                           i, (double)memory[i], (double)(2 * i));
    return WEFT_OK;
}

/* HOST has room for PROBE elements, MEMORY for twice as many. */
static weft_status probe(weft_context *context, float *host, float *memory)
{
    const weft_device_table *device = context->plugin->device;
    const weft_kernel_table *kernel = context->plugin->kernel;
    const void *sources[] = {memory, memory + PROBE};
    const uint64_t bytes = PROBE * sizeof *host;

    for (int32_t i = 0; i < PROBE; i++)
        host[i] = (float)i;
    WF_TRY(device->copy(context->device, memory, host, bytes, NULL));
    WF_TRY(device->copy(context->device, memory + PROBE, memory, bytes, NULL));
    if (kernel == NULL) return device->stream_wait(context->device, NULL, context->timeout_ns);
    WF_TRY(kernel->reduce(context->device, WEFT_DTYPE_F32, WEFT_REDUCE_SUM, PROBE, 2, sources,
                          memory, NULL));
    WF_TRY(device->stream_wait(context->device, NULL, context->timeout_ns));
    WF_TRY(device->copy(context->device, host, memory, bytes, NULL));
    WF_TRY(device->stream_wait(context->device, NULL, context->timeout_ns));
    return check_probe(host);
}

weft_status wf_next_probe(weft_context *context)
{
    const weft_device_table *device = context->plugin->device;
    const uint64_t bytes = 2 * PROBE * sizeof(float);
    float *host = wf_alloc(bytes / 2);
    void *memory = NULL;
    weft_status status = host != NULL ? WEFT_OK : wf_fail_memory(bytes / 2);

    if (status == WEFT_OK)
        status = device->allocate(context->device, bytes, WEFT_MEMORY_DEVICE, &memory);
    if (status == WEFT_OK) status = probe(context, host, memory);
    (void)device->free(context->device, memory);
    wf_free(host);
    return wf_fail_named(status, "weft_init");
}

/* Wait until the generation has met in which this process has a place. */
static weft_status take_first_place(weft_context *context)
{
    struct wf_decision decision = {0};
    weft_status status;

    do {
        WF_TRY(wf_newcomer_next(context->newcomer, &decision));
        status = meet(context, &decision);
    } while (status == WEFT_ERR_PEER || status == WEFT_ERR_TIMEOUT);
    context->next->info.step = decision.step;
    return status;
}

static weft_status make_first_world(weft_context *context)
{
    weft_status status;

    WF_TRY(wf_tracing_begin(context));
    wf_tracing_mark_ranges(context);
    wf_timing_begin(context);
    status = wf_context_meet(context);
    if (status != WEFT_OK && context->world == NULL) context->made = WF_BETWEEN_GENERATIONS;
    return status;
}

weft_status wf_next_join(weft_context *context)
{
    weft_status status;

    begin_info(context);
    context->next->own = -1;
    status = take_first_place(context);
    if (status == WEFT_OK) status = make_first_world(context);
    while (status == WEFT_ERR_PEER || status == WEFT_ERR_ABORTED || status == WEFT_IN_PROGRESS)
        status = advance(context, context->next->info.step, false);
    if (status != WEFT_OK) return wf_fail_named(status, "weft_init");
    end_info(context);
    log_next(context);
    return WEFT_OK;
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
