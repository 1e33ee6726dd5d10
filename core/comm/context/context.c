/* context.c - joining and leaving the job. */
#include "comm/position.h"
#include "comm/recording.h"
#include "rendezvous/launch.h"

#include "weft/status.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* An error of this rank that is held until all ranks can fail with it. */
struct deferred_error {
    weft_status status;
    char text[1800];
};

static void defer(struct deferred_error *deferred, weft_status status)
{
    if (status == WEFT_OK || deferred->status != WEFT_OK) return;
    deferred->status = status;
    snprintf(deferred->text, sizeof deferred->text, "%s", weft_last_error());
}

/* Make it the thread's last error again. */
static weft_status restore(const struct deferred_error *deferred)
{
    return deferred->status == WEFT_OK ? WEFT_OK : wf_fail(deferred->status, "%s", deferred->text);
}

/* ---- backend and device ---- */

static weft_status choose_backend(weft_context *context, const weft_init_options *options)
{
    weft_backend_options wanted = {.struct_size = sizeof wanted,
                                   .backend = options->backend,
                                   .plugin_path = options->plugin_path};
    size_t index;

    WF_TRY(weft_backends_create(&wanted, &context->backends));
    index = wf_backends_pick(context->backends, WEFT_BACKEND_ROLE_COMM);
    if (index == WF_NO_CANDIDATE) /* it sets the error text */
        return weft_backends_choose(context->backends, WEFT_BACKEND_ROLE_COMM, &index);
    context->plugin = wf_backends_plugin(context->backends, index);
    if (context->plugin == NULL || context->plugin->comm == NULL)
        return wf_fail(WEFT_ERR_INTERNAL, "the chosen backend has no comm table");
    return WEFT_OK;
}

/* Rank 0 logs the candidates that were not chosen.  A rank that chose differently will be refused.
 */
static void log_choice(const weft_context *context)
{
    static const enum weft_backend_role roles[] = {WEFT_BACKEND_ROLE_COMM, WEFT_BACKEND_ROLE_SYMM};
    size_t index;

    if (context->rank != 0 || context->backends == NULL || context->plugin == NULL) return;
    for (size_t i = 0; i < WF_COUNT(roles); i++)
        if (weft_backends_choose(context->backends, roles[i], &index) != WEFT_OK)
            wf_log(WF_LOG_DEBUG, "%s", weft_last_error());
}

static weft_status open_device(weft_context *context, const weft_init_options *options)
{
    weft_device_options wanted = {.struct_size = sizeof wanted,
                                  .local_rank = context->local_rank,
                                  .device = (int32_t)context->config->device};
    weft_device_info info = {.struct_size = sizeof info};

    if (options->device != NULL) wanted.device = *options->device;
    WF_TRY(wf_device_open(context->plugin, &wanted, &context->device));
    WF_TRY(context->plugin->device->describe(context->device, &info));
    context->features = info.features;
    wf_tracing_mark_ranges(context);
    return weft_context_bind_thread(context);
}

/* ---- agreeing ---- */

static void add_digest(struct wf_choices *choices, const char *name, const void *data, size_t bytes)
{
    uint8_t digest[WF_SHA256_BYTES];
    char hex[17];

    wf_sha256(data, bytes, digest);
    for (size_t i = 0; i < 8; i++)
        snprintf(hex + 2 * i, 3, "%02x", (unsigned)digest[i]);
    wf_choices_add(choices, name, bytes > 0 ? hex : "");
}

static void list_choices(const weft_context *context, const weft_init_options *options,
                         struct wf_choices *choices)
{
    const weft_plugin *plugin = context->plugin;
    char text[64];

    wf_choices_add(choices, "weft", weft_version());
    if (plugin != NULL) {
        wf_choices_add(choices, "plugin", plugin->name);
        wf_choices_add(choices, "plugin build", plugin->build);
        snprintf(text, sizeof text, "%u.%u", plugin->abi_major, plugin->abi_minor);
        wf_choices_add(choices, "plugin ABI", text);
    }
    wf_modules_add_choices(context, choices);
    snprintf(text, sizeof text, "%016" PRIx64, wf_config_digest(context->config));
    wf_choices_add(choices, "planning knobs", text);
    for (size_t i = 0; i < wf_knob_count; i++)
        if (wf_knobs[i].planning)
            wf_choices_explain(choices, wf_knobs[i].name, wf_config_knob(wf_knobs[i].name));
    snprintf(text, sizeof text, "%016" PRIx64,
             context->costs != NULL ? weft_cost_table_digest(context->costs) : 0);
    wf_choices_add(choices, "WEFT_COSTS", text);
    if (context->terms.ranks_min > 0) {
        snprintf(text, sizeof text, "at least %d ranks, silent for %" PRIu64 " ns",
                 context->terms.ranks_min, context->terms.silent_ns);
        wf_choices_add(choices, "elastic", text);
        snprintf(text, sizeof text, "%d", context->terms.ranks_max);
        wf_choices_add(choices, "ranks_max", text);
    }
    add_digest(choices, "cost table", options->digest, options->digest_bytes);
    wf_choices_add(choices, "WEFT_CHECK", context->config->check ? "1" : "0");
    snprintf(text, sizeof text, "%" PRId64 " ns", context->timeout_ns);
    wf_choices_add(choices, "time limit", text);
}

/* (host, choices, process, number before) of every rank. */
static weft_status read_cards(weft_context *context, const struct wf_gathered *got)
{
    weft_blob *choices = wf_calloc((size_t)got->count, sizeof *choices);
    weft_status status = WEFT_OK;

    context->host_ids = wf_calloc((size_t)got->count, sizeof *context->host_ids);
    if (choices == NULL || context->host_ids == NULL) {
        wf_free(choices);
        return wf_fail_memory((size_t)got->count * sizeof *choices);
    }
    status = wf_fence_begin(context);
    for (int32_t rank = 0; rank < got->count; rank++) {
        struct wf_reader reader = {got->blobs[rank].data, (size_t)got->blobs[rank].bytes, false};
        struct wf_process process;

        context->host_ids[rank] = wf_take_u64(&reader);
        choices[rank] = wf_take_blob(&reader);
        process.pid = wf_take_u64(&reader);
        process.space = wf_take_u64(&reader);
        process.began = wf_take_u64(&reader);
        wf_next_note(context, rank, (int32_t)wf_take_u32(&reader));
        if (context->peers != NULL)
            wf_fence_note(context, rank, &process,
                          context->host_ids[rank] == wf_identity(context->config->host_id).host);
        if (reader.failed && status == WEFT_OK)
            status = wf_fail(
                WEFT_ERR_MISMATCH,
                "weft_init: rank %d sent settings that this version of weft cannot read", rank);
    }
    if (status == WEFT_OK) status = wf_choices_compare(choices, got->count);
    wf_free(choices);
    return status;
}

static void find_local_rank(weft_context *context)
{
    int32_t before = 0;

    context->local_size = 0;
    for (int32_t rank = 0; rank < context->size; rank++) {
        if (context->host_ids[rank] != context->host_ids[context->rank]) continue;
        context->local_size++;
        if (rank < context->rank) before++;
    }
    if (context->local_rank < 0) context->local_rank = before;
}

static weft_status list_all_ranks(const weft_context *context, int32_t **out)
{
    int32_t *ranks = wf_alloc((size_t)context->size * sizeof *ranks);

    if (ranks == NULL) return wf_fail_memory((size_t)context->size * sizeof *ranks);
    for (int32_t rank = 0; rank < context->size; rank++)
        ranks[rank] = rank;
    *out = ranks;
    return WEFT_OK;
}

/* Exchange choices with the other ranks and compare them. */
static weft_status compare(weft_context *context, const struct deferred_error *deferred,
                           const int32_t *ranks, uint64_t *serial)
{
    struct wf_agreement agreement = {.ranks = ranks,
                                     .count = context->size,
                                     .label = "weft_init",
                                     .timeout_ns = context->timeout_ns};
    struct wf_process own = wf_fence_process();
    struct wf_text card = {0};
    struct wf_gathered got;
    weft_status status;

    wf_put_u64(&card, wf_identity(context->config->host_id).host);
    wf_put_blob(&card, context->choices.data, context->choices.length);
    wf_put_u64(&card, own.pid);
    wf_put_u64(&card, own.space);
    wf_put_u64(&card, own.began);
    wf_put_u32(&card, (uint32_t)wf_next_number(context));
    status = restore(deferred);
    if (status == WEFT_OK && (card.failed || context->choices.failed))
        status = wf_fail_memory(card.length);
    status = wf_agree(context, &agreement, status, (weft_blob){card.data, card.length}, &got);
    wf_text_free(&card);
    if (status != WEFT_OK) return status;
    status = read_cards(context, &got);
    *serial = got.serial;
    wf_gathered_free(&got);
    return status;
}

/* All ranks are this process. */
static weft_status make_simulated_world(weft_context *context, const weft_init_options *options,
                                        const struct deferred_error *deferred)
{
    struct wf_comm_request request = {
        .name = "world", .number = 1, .count = context->size, .timeout_ns = context->timeout_ns};
    int32_t *ranks = NULL;
    weft_status status;

    WF_TRY(restore(deferred));
    context->host_ids = wf_calloc((size_t)context->size, sizeof *context->host_ids);
    if (context->host_ids == NULL)
        return wf_fail_memory((size_t)context->size * sizeof *context->host_ids);
    context->local_size = context->size;
    WF_TRY(open_device(context, options));
    if ((context->features & WEFT_FEATURE_HOST_MEMORY) == 0)
        return wf_fail(WEFT_ERR_UNSUPPORTED,
                       "weft_init: the host cannot read the memory of backend %s, which simulated "
                       "ranks need; choose gloo-cpu (WEFT_BACKEND=gloo-cpu)",
                       context->plugin->name);
    WF_TRY(list_all_ranks(context, &ranks));
    request.ranks = ranks;
    status = wf_comm_make_simulated(context, &request, &context->world);
    wf_free(ranks);
    return status;
}

static weft_status make_real_world(weft_context *context, const weft_init_options *options,
                                   struct deferred_error *deferred)
{
    struct wf_comm_request request = {
        .name = "world", .what = "world", .timeout_ns = context->timeout_ns};
    int32_t *ranks = NULL;
    weft_status status;

    WF_TRY(list_all_ranks(context, &ranks));
    status = compare(context, deferred, ranks, &request.number);
    if (status == WEFT_OK) {
        find_local_rank(context);
        request.status = context->device == NULL ? open_device(context, options) : WEFT_OK;
        if (request.status == WEFT_OK) request.status = wf_next_check(context);
        request.agree = request.ranks = ranks;
        request.agree_count = request.count = context->size;
        request.deadline_ns = wf_deadline(context->timeout_ns);
        status = wf_comm_make(context, &request, &context->world);
    }
    wf_free(ranks);
    return status;
}

static weft_status make_world(weft_context *context, const weft_init_options *options,
                              struct deferred_error *deferred)
{
    if (context->is_simulated)
        WF_TRY(make_simulated_world(context, options, deferred));
    else
        WF_TRY(make_real_world(context, options, deferred));
    wf_timing_begin(context);
    WF_TRY(wf_modules_start(context));
    return wf_costs_ask(context);
}

weft_status wf_context_meet(weft_context *context)
{
    static const weft_init_options options;
    struct deferred_error none = {0};

    WF_TRY(make_real_world(context, &options, &none));
    if (wf_next_has_newcomers(context)) WF_TRY(wf_costs_share(context, wf_next_giver(context)));
    return wf_modules_start(context);
}

/* ---- joining and leaving ---- */

static weft_status read_options(const weft_init_options *options, weft_init_options *out)
{
    *out = (weft_init_options){0};
    WF_TRY(wf_options_read("weft_init_options", options, out, sizeof *out));
    if (out->timeout_ns < WEFT_FOREVER || out->join_timeout_ns < 0 || out->size < 0)
        return wf_fail(WEFT_ERR_INVALID,
                       "weft_init: weft_init_options.size is %d, .timeout_ns is %" PRId64
                       ", .join_timeout_ns is %" PRId64
                       "; size and join_timeout_ns must not be negative, and timeout_ns must be 0, "
                       "positive or WEFT_FOREVER",
                       out->size, out->timeout_ns, out->join_timeout_ns);
    if (out->digest == NULL) out->digest_bytes = 0;
    return WEFT_OK;
}

static weft_status begin(const weft_plugin *plugin, const weft_init_options *options,
                         weft_context **out)
{
    weft_context *context;
    weft_status status;

    WF_TRY(wf_fork_enter());
    context = wf_calloc(1, sizeof *context);
    if (context == NULL) return wf_fail_memory(sizeof *context);
    context->made = wf_made_now(WF_KIND_CONTEXT);
    pthread_mutex_init(&context->lock, NULL);
    pthread_mutex_init(&context->describe_lock, NULL);
    wf_ledger_begin(&context->ledger);
    context->clock = 1;
    context->plugin = plugin;
    status = wf_config_read(&context->config);
    if (status != WEFT_OK) {
        weft_context_release(&context);
        return status;
    }
    context->timeout_ns =
        options->timeout_ns != 0 ? options->timeout_ns : context->config->timeout_ns;
    wf_random_bytes(&context->job, sizeof context->job);
    *out = context;
    return WEFT_OK;
}

static weft_status join_as_rank(weft_context *context, const weft_init_options *options,
                                struct deferred_error *deferred)
{
    log_choice(context);
    defer(deferred, wf_tracing_begin(context));
    return make_world(context, options, deferred);
}

/* A newcomer that has an error must not get a place: the others would get it, too. */
static weft_status join_as_newcomer(weft_context *context, const weft_init_options *options,
                                    const struct deferred_error *deferred)
{
    WF_TRY(restore(deferred));
    WF_TRY(open_device(context, options));
    WF_TRY(wf_next_check(context));
    WF_TRY(wf_next_probe(context));
    return wf_next_join(context);
}

/* Later generations show the same. */
static weft_status keep_choices(weft_context *context, const weft_init_options *options)
{
    struct wf_choices choices = {0};

    list_choices(context, options, &choices);
    context->choices = choices.rows;
    return choices.rows.failed ? wf_fail_memory(choices.rows.length) : WEFT_OK;
}

weft_status wf_context_create(const weft_init_options *options, const weft_plugin *plugin,
                              weft_context **out)
{
    weft_init_options given;
    weft_context *context;
    struct deferred_error deferred = {0};
    struct wf_client_events events = {.gone = wf_fault_gone,
                                      .abort = wf_fault_abort,
                                      .asked = wf_fault_asked,
                                      .where = wf_position_report,
                                      .watch = wf_runs_watch,
                                      .answered = wf_runs_receive};
    weft_status status;

    WF_TRY(read_options(options, &given));
    wf_claims_prepare();
    WF_TRY(begin(plugin, &given, &context));
    events.self = context;
    defer(&deferred, wf_next_begin(context, &given));
    if (plugin == NULL) defer(&deferred, choose_backend(context, &given));
    defer(&deferred, wf_modules_create(context));
    defer(&deferred, wf_costs_choose(context));
    defer(&deferred, keep_choices(context, &given));
    status = wf_place_find(context, &given,
                           given.join_timeout_ns != 0 ? given.join_timeout_ns
                                                      : context->config->join_timeout_ns,
                           &events);
    if (status == WEFT_OK && context->newcomer != NULL)
        status = join_as_newcomer(context, &given, &deferred);
    else if (status == WEFT_OK)
        status = join_as_rank(context, &given, &deferred);
    if (status != WEFT_OK) {
        weft_context_release(&context);
        return status;
    }
    context->is_made = true;
    *out = context;
    return WEFT_OK;
}

weft_status weft_init(const weft_init_options *options, weft_context **out)
{
    if (out == NULL) return wf_fail_null("weft_init", "out");
    return wf_context_create(options, NULL, out);
}

static void unmake_all(weft_context *context)
{
    static const char cause[] = "the context was released";

    while (context->comms != NULL) {
        weft_comm *comm = context->comms;

        while (comm->owner != NULL) /* it ends with its owner */
            comm = comm->owner;
        if (comm == context->world) {
            wf_comm_unmake(comm, cause);
            context->world = NULL;
            continue;
        }
        wf_log(WF_LOG_WARNING, "weft_context_release: communicator %s was not released",
               comm->name);
        wf_comm_end(comm, cause);
    }
}

void weft_context_release(weft_context **held)
{
    weft_context *context;
    struct wf_text record = {0};

    if (held == NULL || *held == NULL) return;
    context = *held;
    *held = NULL;
    if (!wf_is_usable(context->made, WF_KIND_CONTEXT) && context->made != WF_BETWEEN_GENERATIONS)
        return; /* a parent process's, or released before */
    wf_dependents_leave(context);
    wf_modules_leave(context);
    wf_tracing_clock(context);
    wf_fault_write_record(context, &record);
    /* First, because its thread uses the communicators. */
    wf_client_release(&context->client, record.failed ? NULL : &record);
    wf_text_free(&record);
    wf_server_release(&context->server);
    wf_context_warn(context);
    for (const weft_comm *comm = context->comms; comm != NULL; comm = comm->next)
        wf_calls_warn(comm);
    wf_modules_stop(context);
    wf_streams_stop(context);
    unmake_all(context);
    wf_modules_destroy(context);
    wf_remains_free(context);
    wf_next_end(context, "the context was released");
    if (context->device != NULL) {
        wf_streams_end(context);
        wf_timing_end(context);
        wf_works_end(context);
        context->plugin->device->close(context->device);
    }
    wf_tracing_end(context);
    weft_cost_table_release(&context->costs);
    weft_backends_release(&context->backends);
    wf_config_release(&context->config);
    pthread_mutex_destroy(&context->lock);
    pthread_mutex_destroy(&context->describe_lock);
    wf_remnants_free(context);
    wf_ledger_end(&context->ledger);
    wf_free(context->host_ids);
    wf_text_free(&context->choices);
    context->world = NULL;
    context->made = wf_ended(WF_KIND_CONTEXT);
    wf_context_bury(context);
}

/* ---- asking ---- */

int32_t weft_rank(const weft_context *context)
{
    return context != NULL ? context->rank : -1;
}

int32_t weft_size(const weft_context *context)
{
    return context != NULL ? context->size : 0;
}

int32_t weft_local_rank(const weft_context *context)
{
    return context != NULL ? context->local_rank : -1;
}

int32_t weft_local_size(const weft_context *context)
{
    return context != NULL ? context->local_size : 0;
}

bool weft_is_simulated(const weft_context *context)
{
    return context != NULL && context->is_simulated;
}

weft_comm *weft_world(weft_context *context)
{
    return context != NULL ? context->world : NULL;
}

const weft_plugin *weft_context_plugin(const weft_context *context)
{
    return context != NULL ? context->plugin : NULL;
}

void *weft_context_device(const weft_context *context)
{
    return context != NULL ? context->device : NULL;
}

weft_status weft_device_get(weft_context *context, weft_device_info *out)
{
    weft_device_info info = {.struct_size = sizeof info};

    WF_TRY(wf_context_check(context, "weft_device_get"));
    if (out == NULL) return wf_fail_null("weft_device_get", "out");
    WF_TRY(context->plugin->device->describe(context->device, &info));
    return wf_abi_info_write("weft_device_info", &info, sizeof info, out);
}
