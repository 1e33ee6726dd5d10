/* place.c - this rank's number, and its connection to the rendezvous. */
#include "comm/comm.h"
#include "rendezvous/launch.h"

#include "weft/status.h"

#include <stdio.h>
#include <string.h>

/* What the ways below share. */
struct way {
    weft_context *context;
    const weft_init_options *options;
    const struct wf_launch *launch; /* NULL: the program brings an exchange, or threads */
    int64_t join_timeout_ns;
    const struct wf_client_events *events;
};

/* Whether a launcher serves, at WEFT_RENDEZVOUS, a job that this process is not joining now: the
 * program brings an exchange, or another launcher is inside that one. */
static bool serves_another(const struct way *way)
{
    bool is_inside = way->launch != NULL && way->launch->is_inside;

    return way->context->config->served && (way->options->exchange != NULL || is_inside);
}

/* The value of WEFT_RENDEZVOUS, if it is that of this job. */
static const char *rendezvous_variable(const struct way *way)
{
    return serves_another(way) ? NULL : way->context->config->rendezvous;
}

/* The setting that gives the address of the rendezvous; NULL: none that the user knows. */
static const char *address_setting(const struct way *way)
{
    if (way->options->rendezvous != NULL) return "weft_init_options.rendezvous";
    if (rendezvous_variable(way) != NULL || way->launch == NULL) return "WEFT_RENDEZVOUS";
    return wf_launch_address_setting(way->launch);
}

/* Whether the launcher serves the rendezvous of this job: it serves at WEFT_RENDEZVOUS only. */
static bool is_served(const struct way *way)
{
    const char *given = way->options->rendezvous, *variable = rendezvous_variable(way);

    if (!way->context->config->served || serves_another(way)) return false;
    return given == NULL || (variable != NULL && strcmp(given, variable) == 0);
}

/* What to check if the rendezvous at ADDRESS cannot be reached. */
static void advise_joining(const struct way *way, const struct wf_address *address, char *out,
                           size_t bytes)
{
    const char *setting = address_setting(way);

    if (is_served(way))
        snprintf(out, bytes, "is the launcher that serves it running?");
    else
        snprintf(out, bytes, "is rank 0 running%s, %s%s?", address->is_unix ? " on this host" : "",
                 setting != NULL ? "with the same " : "started by the same launcher",
                 setting != NULL ? setting : "");
}

/* This process has no rank yet.  The wait for one begins when its device is open. */
static weft_status wait_in_lobby(const struct way *way, struct wf_client_options *options)
{
    weft_context *context = way->context;

    if (context->terms.ranks_min == 0 || options->address == NULL || !is_served(way) ||
        context->config->spare < context->size || context->config->spare > INT32_MAX)
        return wf_fail(WEFT_ERR_INVALID,
                       "weft_init: WEFT_SPARE is %lld: a process can wait for a place in an "
                       "elastic job (WEFT_ELASTIC is %d) of %d ranks whose launcher serves the "
                       "rendezvous, with a number that is not below the number of ranks",
                       (long long)context->config->spare, context->terms.ranks_min, context->size);
    options->rank = (int32_t)context->config->spare;
    return wf_newcomer_create(options, &context->newcomer);
}

/* SERVING_RANK is the rank whose process runs the rendezvous, or -1. */
static weft_status enter(const struct way *way, const struct wf_address *address,
                         struct wf_server *server, int32_t serving_rank, struct wf_job_key key)
{
    weft_context *context = way->context;
    char help[160] = "";
    struct wf_client_options options = {.rank = context->rank,
                                        .size = context->size,
                                        .key = key,
                                        .base = key,
                                        .choices = {context->choices.data, context->choices.length},
                                        .join_timeout_ns = way->join_timeout_ns,
                                        .address = address,
                                        .server = server,
                                        .serving_rank = serving_rank,
                                        .help = help,
                                        .terms = context->terms,
                                        .events = *way->events};

    if (context->terms.ranks_min > 0 && context->size > WEFT_ELASTIC_MAX)
        return wf_fail(WEFT_ERR_UNSUPPORTED,
                       "weft_init: the job is elastic (ranks_min is %d) and has %d ranks; it can "
                       "have at most %d",
                       context->terms.ranks_min, context->size, WEFT_ELASTIC_MAX);
    if (context->terms.ranks_max == 0) options.terms.ranks_max = context->size;
    context->terms.ranks_max = options.terms.ranks_max;
    if (context->terms.ranks_min > 0 && context->terms.ranks_max < context->size)
        return wf_fail(WEFT_ERR_INVALID,
                       "weft_init: ranks_max (WEFT_ELASTIC_MAX) is %d, but the job has %d ranks",
                       context->terms.ranks_max, context->size);
    if (address != NULL) advise_joining(way, address, help, sizeof help);
    if (context->config->spare > 0) return wait_in_lobby(way, &options);
    WF_TRY(wf_client_create(&options, &context->client));
    context->job = wf_client_job(context->client);
    return WEFT_OK;
}

/* The address that rank 0 listens on if the other ranks connect to ADDRESS. */
static weft_status listening_address(const struct wf_config *config,
                                     const struct wf_address *address, struct wf_address *out)
{
    *out = *address;
    if (config->listen == NULL) return WEFT_OK;
    return wf_address_parse("WEFT_LISTEN", config->listen, address->is_unix ? 0 : address->port,
                            out);
}

/* Add to the last error which setting changes the address that rank 0 listens on. */
static weft_status advise_address(const struct way *way, weft_status status)
{
    bool own = way->context->config->listen != NULL;
    const char *setting = own ? "WEFT_LISTEN" : address_setting(way);
    bool is_port = setting != NULL && strcmp(setting, "MASTER_PORT") == 0;
    char reason[512], twice[160] = "";

    snprintf(reason, sizeof reason, "%s", weft_last_error());
    if (way->launch != NULL && strstr(reason, "listens there") != NULL)
        snprintf(twice, sizeof twice,
                 "; if two processes have %s 0, give each its own rank; otherwise",
                 wf_launch_rank_setting(way->launch));
    return wf_fail(status, "%s%s set %s to another %s%s", reason, twice[0] != '\0' ? twice : ";",
                   setting != NULL ? setting : "WEFT_RENDEZVOUS", is_port ? "port" : "address",
                   own ? "" : " on all ranks");
}

static weft_status serve(const struct way *way, struct wf_address *listening, struct wf_job_key key)
{
    weft_context *context = way->context;
    struct wf_server_options options = {.size = context->size,
                                        .serving_rank = context->rank,
                                        .join_timeout_ns = way->join_timeout_ns,
                                        .key = key};
    weft_status status;

    status = wf_server_create(&options, listening, &context->server);
    if (status == WEFT_ERR_SYSTEM && strstr(weft_last_error(), "cannot listen on") != NULL)
        return advise_address(way, status);
    if (status != WEFT_OK) return status;
    return wf_server_start(context->server);
}

/* ---- by an address that all ranks know ---- */

static weft_status find_by_address(const struct way *way)
{
    weft_context *context = way->context;
    const struct wf_launch *launch = way->launch;
    const struct wf_config *config = context->config;
    const char *token = way->options->token != NULL ? way->options->token : config->token;
    const char *rendezvous =
        way->options->rendezvous != NULL ? way->options->rendezvous : rendezvous_variable(way);
    bool served = is_served(way), serves = context->rank == 0 && !served;
    struct wf_address address, listening;
    struct wf_job_key key;
    char text[WF_ADDRESS_TEXT];
    weft_status status;

    WF_TRY(wf_launch_rendezvous(launch, rendezvous, address_setting(way), token, &address, &key));
    wf_address_print(&address, text);
    wf_log(WF_LOG_INFO, "rank %d of %d (launcher %s) joins the job at %s", context->rank,
           context->size, launch->launcher, text);
    if (serves) {
        WF_TRY(listening_address(config, &address, &listening));
        WF_TRY(serve(way, &listening, key));
        return enter(way, NULL, context->server, 0, key);
    }
    status = enter(way, &address, NULL, served ? -1 : 0, key);
    if (status == WEFT_OK) return WEFT_OK;
    return wf_fail_context(status, "rank %d of %d cannot join the job at %s%s", context->rank,
                           context->size, text, served ? "" : ", which rank 0 serves");
}

/* ---- by the user's exchange ---- */

/* What every rank shows the others. */
struct card {
    uint64_t host;
    int32_t status; /* of rank 0's listening */
    char address[WF_ADDRESS_TEXT], token[40], text[256];
};

static weft_status offer(const struct way *way, struct card *card)
{
    const struct wf_config *config = way->context->config;
    const char *own = rendezvous_variable(way);
    const char *text = own != NULL ? own : config->listen != NULL ? config->listen : "localhost:0";
    struct wf_address address, listening;
    uint8_t secret[16];

    wf_random_bytes(secret, sizeof secret);
    for (size_t i = 0; i < sizeof secret; i++)
        snprintf(card->token + 2 * i, 3, "%02x", (unsigned)secret[i]);
    WF_TRY(wf_address_parse("the rendezvous", text, 0, &address));
    WF_TRY(listening_address(config, &address, &listening));
    WF_TRY(serve(way, &listening, wf_job_key(card->token)));
    address.port = listening.port;
    wf_address_print(&address, card->address);
    return WEFT_OK;
}

static weft_status check_cards(const struct card *cards, int32_t count)
{
    struct wf_address address;

    if (cards[0].status != WEFT_OK)
        return wf_fail(cards[0].status, "rank 0: %.255s", cards[0].text);
    WF_TRY(wf_address_parse("rank 0's rendezvous", cards[0].address, -1, &address));
    for (int32_t rank = 1; rank < count; rank++)
        if (cards[rank].host != cards[0].host && wf_address_is_local(&address))
            return wf_fail(WEFT_ERR_INVALID,
                           "rank %d runs on another host than rank 0, whose rendezvous listens on "
                           "%s; set WEFT_LISTEN on rank 0 to an address the others can reach",
                           rank, cards[0].address);
    return WEFT_OK;
}

static weft_status find_by_exchange(const struct way *way)
{
    weft_context *context = way->context;
    const weft_exchange *exchange = way->options->exchange;
    struct wf_address address;
    struct wf_job_key key;
    struct card mine, *cards = wf_calloc((size_t)context->size, sizeof *cards);
    weft_status status;
    uint64_t failures;

    if (cards == NULL) return wf_fail_memory((size_t)context->size * sizeof *cards);
    memset(&mine, 0, sizeof mine); /* its padding crosses the wire too */
    mine.host = wf_identity(context->config->host_id).host;
    if (context->rank == 0) mine.status = offer(way, &mine);
    if (mine.status != WEFT_OK) snprintf(mine.text, sizeof mine.text, "%s", weft_last_error());
    failures = wf_failure_count();
    status = exchange->all_gather(exchange->user, &mine, cards, sizeof mine);
    if (status != WEFT_OK)
        status = wf_fail_callback(status, failures, "weft_init: weft_init_options.exchange");
    else
        status = check_cards(cards, context->size);
    if (status == WEFT_OK)
        status = wf_address_parse("rank 0's rendezvous", cards[0].address, -1, &address);
    if (status == WEFT_OK) {
        key = wf_job_key(cards[0].token);
        status = context->server != NULL ? enter(way, NULL, context->server, 0, key)
                                         : enter(way, &address, NULL, 0, key);
        if (status != WEFT_OK)
            status = wf_fail_context(status, "rank %d of %d cannot join the job at %s",
                                     context->rank, context->size, cards[0].address);
    }
    wf_free(cards);
    return status;
}

/* ---- choosing the way ---- */

static weft_status check_given(const weft_init_options *options, int32_t size)
{
    int ways =
        (options->exchange != NULL) + (options->threads != NULL) + (options->rendezvous != NULL);

    if (ways > 1)
        return wf_fail(
            WEFT_ERR_INVALID,
            "weft_init: set at most one of weft_init_options.exchange, .threads and .rendezvous");
    if (options->rank < 0 || options->rank >= size)
        return wf_fail(WEFT_ERR_INVALID,
                       "weft_init: weft_init_options.rank is %d and size is %d; rank must be from "
                       "0 to size - 1",
                       options->rank, size);
    return WEFT_OK;
}

static weft_status find_by_threads(const struct way *way, weft_threads *threads, int32_t rank)
{
    weft_context *context = way->context;

    if (!wf_is_usable(threads->made, WF_KIND_THREADS))
        return wf_fail_unusable("weft_init", "weft_init_options.threads", threads->made,
                                WF_KIND_THREADS);
    if (context->terms.ranks_min > 0)
        return wf_fail(WEFT_ERR_UNSUPPORTED,
                       "weft_init: the job is elastic (ranks_min is %d), but its ranks are threads "
                       "of one process, which are lost together; start processes (weft run -n %d)",
                       context->terms.ranks_min, threads->size);
    context->rank = context->local_rank = rank;
    context->size = threads->size;
    return threads->size == 1 ? WEFT_OK : enter(way, NULL, threads->server, -1, threads->key);
}

static weft_status find_given(const struct way *way)
{
    const weft_init_options *options = way->options;
    struct wf_launch launch = {.launcher = "options", .local_rank = -1};
    struct way by_address = *way;
    int32_t size = options->threads != NULL ? options->threads->size : options->size;

    WF_TRY(check_given(options, size));
    if (options->threads != NULL) return find_by_threads(way, options->threads, options->rank);
    way->context->rank = options->rank;
    way->context->size = size;
    if (size == 1) return WEFT_OK;
    if (options->exchange != NULL) return find_by_exchange(way);
    launch.rank = options->rank;
    launch.size = size;
    by_address.launch = &launch;
    return find_by_address(&by_address);
}

/* The number of ranks that this process simulates; 0: none. */
static int64_t count_simulated(const weft_context *context, const weft_init_options *options)
{
    if (options->simulated_ranks != 0) return options->simulated_ranks;
    if (options->size > 0 || options->threads != NULL) return 0;
    return context->config->simulated_ranks >= 0 ? context->config->simulated_ranks : 0;
}

/* SIZE ranks are simulated, so this process must not be a rank of another job. */
static weft_status find_simulated(const struct way *way, int64_t size, bool is_thread)
{
    const weft_init_options *options = way->options;
    struct wf_launch launch = {.size = 1};
    const char *setting = options->simulated_ranks != 0 ? "weft_init_options.simulated_ranks"
                                                        : "WEFT_SIMULATED_RANKS";
    weft_status status = WEFT_OK;

    if (size < 1 || size > WEFT_SIMULATED_MAX)
        return wf_fail(WEFT_ERR_INVALID, "weft_init: %s is %lld; expected 1 to %d", setting,
                       (long long)size, WEFT_SIMULATED_MAX);
    if (options->size > 0 || options->threads != NULL)
        return wf_fail(
            WEFT_ERR_INVALID,
            "weft_init: weft_init_options.simulated_ranks is %lld and weft_init_options.%s is set; "
            "set one of them",
            (long long)size, options->size > 0 ? "size" : "threads");
    wf_environment_lock();
    if (!is_thread) status = wf_launch_read(wf_environment(), &launch);
    wf_environment_unlock();
    if (status != WEFT_OK) return status;
    if (is_thread || launch.size > 1)
        return wf_fail(WEFT_ERR_INVALID,
                       "weft_init: %s is %lld, but this %s is a rank of a job; a process that "
                       "simulates ranks is alone",
                       setting, (long long)size, is_thread ? "thread" : "process");
    way->context->is_simulated = true;
    way->context->rank = way->context->local_rank = 0;
    way->context->size = (int32_t)size;
    return WEFT_OK;
}

weft_status wf_place_find(weft_context *context, const weft_init_options *options,
                          int64_t join_timeout_ns, const struct wf_client_events *events)
{
    struct way way = {context, options, NULL, join_timeout_ns, events};
    struct wf_launch launch;
    weft_status status;
    int32_t rank;
    weft_threads *threads = wf_threads_current(&rank);

    context->local_rank = -1;
    if (count_simulated(context, options) != 0 && context->terms.ranks_min > 0)
        return wf_fail(WEFT_ERR_UNSUPPORTED,
                       "weft_init: the job is elastic (ranks_min is %d), but its ranks are "
                       "simulated; none of them can be lost",
                       context->terms.ranks_min);
    if (count_simulated(context, options) != 0)
        return find_simulated(&way, count_simulated(context, options), threads != NULL);
    if (options->size > 0 || options->threads != NULL) return find_given(&way);
    if (options->rank != 0)
        return wf_fail(
            WEFT_ERR_INVALID,
            "weft_init: weft_init_options.rank is %d, but .size is not set; set both, or "
            "neither: then they come from the launcher",
            options->rank);
    if (threads != NULL) return find_by_threads(&way, threads, rank);
    wf_environment_lock();
    status = wf_launch_read(wf_environment(), &launch);
    wf_environment_unlock();
    if (status != WEFT_OK) return status;
    context->rank = launch.rank;
    context->size = launch.size;
    context->local_rank = launch.local_rank;
    way.launch = &launch;
    return launch.size == 1 && context->config->spare <= 0 ? WEFT_OK : find_by_address(&way);
}
