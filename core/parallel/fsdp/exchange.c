/* exchange.c - a batch of moves, bound to a communicator of its own.
 *
 * Moves of the context share one communicator and a bounded cache.  Gathering and reducing each
 * have a communicator, so that they overlap, and a group keeps its bound plans. */
#include "fsdp.h"

#include "exec/bound.h"
#include "exec/context/kept.h"

#include <stdio.h>
#include <string.h>

static void free_exchange(struct wf_exchange *exchange)
{
    weft_bound_release(&exchange->bound);
    weft_plan_release(&exchange->plan);
    for (uint32_t i = 0; exchange->pairs != NULL && i < 2 * exchange->count; i++) {
        weft_spec *spec = (weft_spec *)(uintptr_t)exchange->pairs[i];
        weft_spec_release(&spec);
    }
    wf_free(exchange->sources);
    wf_free(exchange->targets);
    wf_free(exchange->pairs);
    wf_free(exchange);
}

void wf_exchanges_free(struct wf_exchange **list)
{
    while (*list != NULL) {
        struct wf_exchange *exchange = *list;

        *list = exchange->next;
        free_exchange(exchange);
    }
}

static bool is_of(const struct wf_exchange *exchange, const struct wf_exchange_query *query)
{
    if (exchange->count != query->count) return false;
    for (uint32_t i = 0; i < query->count; i++)
        if (exchange->pairs[2 * i] != query->from[i] || exchange->pairs[2 * i + 1] != query->to[i])
            return false;
    return true;
}

static weft_status make_exchange(const struct wf_exchange_query *query, struct wf_exchange **out)
{
    struct wf_exchange *exchange = wf_calloc(1, sizeof *exchange);
    uint32_t count = query->count;

    if (exchange == NULL) return wf_fail_memory(sizeof *exchange);
    exchange->context = query->context;
    exchange->count = count;
    exchange->sources = wf_calloc(count, sizeof *exchange->sources);
    exchange->targets = wf_calloc(count, sizeof *exchange->targets);
    exchange->pairs = wf_calloc(2 * (size_t)count, sizeof *exchange->pairs);
    if (exchange->sources == NULL || exchange->targets == NULL || exchange->pairs == NULL) {
        free_exchange(exchange);
        return wf_fail_memory(4 * (size_t)count * sizeof(void *));
    }
    for (uint32_t i = 0; i < count; i++) {
        exchange->pairs[2 * i] = weft_spec_retain(query->from[i]);
        exchange->pairs[2 * i + 1] = weft_spec_retain(query->to[i]);
    }
    *out = exchange;
    return WEFT_OK;
}

static weft_status make_plan(const struct wf_exchange_query *query, weft_plan **out)
{
    weft_plan_options options = {.struct_size = sizeof options, .costs = query->context->costs};

    return weft_plan_create_batch(query->count, query->from, query->to, &options, out);
}

weft_status wf_channel_give_up(weft_comm *channel, weft_status status, const char *function)
{
    char text[sizeof channel->cause_text];

    if (channel == NULL || channel->size == 1 || wf_comm_has_failed(channel)) return status;
    snprintf(text, sizeof text, "%s on %s: rank %d: %.700s", function, channel->name,
             channel->context->rank, weft_last_error());
    wf_comm_fail(channel, status, text);
    if (channel->context->client != NULL)
        wf_client_abort(channel->context->client, channel->number, channel->world_ranks,
                        channel->size, WEFT_ERR_ABORTED, text);
    return wf_comm_cause(channel);
}

/* ---- ranks ---- */

static void mark_ranks(const weft_mesh *mesh, unsigned char *among)
{
    for (int32_t i = 0; i < mesh->size; i++)
        among[weft_mesh_rank_at(mesh, i)] = 1;
}

/* List the ranks of all meshes of QUERY in RANKS, which has room for all ranks of the job. */
static weft_status list_ranks(const struct wf_exchange_query *query, int32_t *ranks, int32_t *count,
                              bool *has_part)
{
    int32_t size = query->context->size;
    unsigned char *among = wf_calloc((size_t)size, 1);

    if (among == NULL) return wf_fail_memory((size_t)size);
    for (uint32_t i = 0; i < query->count; i++) {
        mark_ranks(query->from[i]->layout.mesh, among);
        if (query->to[i]->layout.mesh != query->from[i]->layout.mesh)
            mark_ranks(query->to[i]->layout.mesh, among);
    }
    for (int32_t rank = 0; rank < size; rank++)
        if (among[rank]) ranks[(*count)++] = rank;
    *has_part = among[query->context->rank] != 0;
    wf_free(among);
    return WEFT_OK;
}

/* Bind EXCHANGE's plan on the communicator of the ranks of its meshes. */
static weft_status bind(const struct wf_exchange_query *query, struct wf_exchange *exchange,
                        weft_status status)
{
    struct wf_bind_call call = {
        .function = query->function, .parent = query->channel, .options = query->options};
    int32_t *ranks, count = 0;
    bool has_part = false;
    weft_status listed;

    call.given = (weft_bind_options){.struct_size = sizeof call.given, .name = query->name};
    ranks = wf_calloc((size_t)query->context->size, sizeof *ranks);
    listed = ranks != NULL ? list_ranks(query, ranks, &count, &has_part)
                           : wf_fail_memory((size_t)query->context->size * sizeof *ranks);
    if (listed != WEFT_OK || !has_part) {
        wf_free(ranks);
        return listed != WEFT_OK ? wf_channel_give_up(query->channel, listed, query->function)
                                 : status;
    }
    status = wf_comm_group(query->channel, query->function, ranks, count, status, &call.team);
    wf_free(ranks);
    if (call.team == NULL) return status;
    return wf_plan_bind(exchange != NULL ? exchange->plan : NULL, &call, status,
                        exchange != NULL ? &exchange->bound : &(weft_bound *){NULL});
}

static weft_status check_ranks(const struct wf_exchange_query *query)
{
    for (uint32_t i = 0; i < query->count; i++)
        WF_TRY(wf_bind_check(query->function, query->from[i], query->to[i], query->context->world));
    return WEFT_OK;
}

weft_status wf_exchange_find(struct wf_exchange **list, const struct wf_exchange_query *query,
                             weft_status status, struct wf_exchange **out)
{
    struct wf_exchange *exchange = *list;

    while (status == WEFT_OK && exchange != NULL && !is_of(exchange, query))
        exchange = exchange->next;
    if (status == WEFT_OK && exchange != NULL) {
        *out = exchange;
        return WEFT_OK;
    }
    exchange = NULL;
    WF_TRY(check_ranks(query));
    if (status == WEFT_OK) status = make_exchange(query, &exchange);
    if (status == WEFT_OK) status = make_plan(query, &exchange->plan);
    if (query->channel != NULL) status = bind(query, exchange, status);
    if (status != WEFT_OK) {
        if (exchange != NULL) free_exchange(exchange);
        return status;
    }
    exchange->next = *list;
    *list = exchange;
    *out = exchange;
    return WEFT_OK;
}

weft_status wf_exchange_run(struct wf_exchange *exchange, weft_stream *stream, const char *function)
{
    weft_context *context = exchange->context;

    if (context->is_simulated) {
        WF_TRY(context->plugin->device->stream_wait(context->device, stream, WEFT_FOREVER));
        return weft_simulate(exchange->plan, (const void *const *const *)exchange->sources,
                             (void *const *const *)exchange->targets);
    }
    if (exchange->bound == NULL) return WEFT_OK;
    return wf_fail_named(weft_redistribute_batch(exchange->bound, exchange->sources,
                                                 exchange->targets, stream, NULL),
                         function);
}

weft_status wf_exchange_give_up(struct wf_exchange *exchange, weft_status status,
                                const char *function)
{
    if (exchange->bound == NULL) return status;
    return wf_run_give_up(exchange->bound, status, function);
}
