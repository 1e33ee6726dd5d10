/* exchange.c - a batch of moves, bound to a communicator of its own.
 *
 * Moves of the context share one communicator and a bounded cache.  Gathering and reducing each
 * have a communicator, so that they overlap, and a group keeps its bound plans. */
#include "fsdp.h"

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
    wf_free(exchange->lists);
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

static size_t ranks_of(const weft_spec *spec)
{
    return (size_t)weft_mesh_size(weft_spec_mesh(spec));
}

/* Room for the memory of simulated ranks, which `sources` and `targets` list. */
static weft_status make_lists(struct wf_exchange *exchange)
{
    size_t room = 0;
    void **at;

    for (uint32_t i = 0; i < 2 * exchange->count; i++)
        room += ranks_of(exchange->pairs[i]);
    at = exchange->lists = wf_calloc(room, sizeof *at);
    if (at == NULL) return wf_fail_memory(room * sizeof *at);
    for (uint32_t i = 0; i < exchange->count; i++) {
        exchange->sources[i] = at;
        at += ranks_of(exchange->pairs[2 * i]);
        exchange->targets[i] = at;
        at += ranks_of(exchange->pairs[2 * i + 1]);
    }
    return WEFT_OK;
}

static weft_status fill_exchange(struct wf_exchange *exchange,
                                 const struct wf_exchange_query *query)
{
    const weft_plan_options options = {.struct_size = sizeof options,
                                       .costs = weft_context_costs(query->context)};
    weft_plan_info info = {.struct_size = sizeof info};
    size_t count = query->count;

    exchange->sources = wf_calloc(count, sizeof *exchange->sources);
    exchange->targets = wf_calloc(count, sizeof *exchange->targets);
    exchange->pairs = wf_calloc(2 * count, sizeof *exchange->pairs);
    if (exchange->sources == NULL || exchange->targets == NULL || exchange->pairs == NULL)
        return wf_fail_memory(4 * count * sizeof(void *));
    for (uint32_t i = 0; i < count; i++) {
        exchange->pairs[2 * i] = weft_spec_retain(query->from[i]);
        exchange->pairs[2 * i + 1] = weft_spec_retain(query->to[i]);
    }
    if (weft_is_simulated(query->context)) WF_TRY(make_lists(exchange));
    WF_TRY(weft_plan_create_batch(count, query->from, query->to, &options, &exchange->plan));
    WF_TRY(weft_plan_get(exchange->plan, &info));
    exchange->is_local = info.bytes_received_max == 0;
    return WEFT_OK;
}

static weft_status make_exchange(const struct wf_exchange_query *query, struct wf_exchange **out)
{
    struct wf_exchange *exchange = wf_calloc(1, sizeof *exchange);
    weft_status status;

    if (exchange == NULL) return wf_fail_memory(sizeof *exchange);
    exchange->context = query->context;
    exchange->channel = query->channel;
    exchange->count = query->count;
    status = fill_exchange(exchange, query);
    if (status != WEFT_OK)
        free_exchange(exchange);
    else
        *out = exchange;
    return status;
}

/* ---- ranks ---- */

/* All ranks of the mesh have got so far, with the same options.  STATUS is this rank's result. */
static weft_status agree(const struct wf_exchange_query *query, weft_status status)
{
    struct wf_text none = {0};

    return wf_agree_on_fields(query->channel, query->mesh, query->function, status,
                              query->options != NULL ? query->options : &none, NULL);
}

/* Bind EXCHANGE's plan together with the ranks of the mesh. */
static weft_status bind(const struct wf_exchange_query *query, struct wf_exchange *exchange,
                        weft_status status)
{
    const weft_bind_options options = {
        .struct_size = sizeof options, .name = query->name, .mesh = query->mesh};

    if (query->channel == NULL) return status;
    WF_TRY(agree(query, status));
    return wf_fail_named(weft_plan_bind(exchange->plan, query->channel, &options, &exchange->bound),
                         query->function);
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
    if (status == WEFT_OK) status = make_exchange(query, &exchange);
    status = bind(query, exchange, status);
    if (status != WEFT_OK) {
        if (exchange != NULL) free_exchange(exchange);
        return status;
    }
    exchange->next = *list;
    *list = exchange;
    *out = exchange;
    return WEFT_OK;
}

/* ---- runs ---- */

/* Set LIST to the memory of TENSOR on each rank of its mesh. */
static weft_status list_memory(const weft_tensor *tensor, void **list)
{
    const weft_mesh *mesh = weft_spec_mesh(weft_tensor_spec(tensor));

    for (int32_t i = 0; i < weft_mesh_size(mesh); i++) {
        weft_tensor_local_info local = {.struct_size = sizeof local};

        WF_TRY(weft_tensor_local_of(tensor, weft_mesh_rank_at(mesh, i), &local));
        list[i] = local.memory;
    }
    return WEFT_OK;
}

weft_status wf_exchange_set(struct wf_exchange *exchange, uint32_t index, const weft_tensor *source,
                            const weft_tensor *target)
{
    if (exchange->lists != NULL) {
        WF_TRY(list_memory(source, (void **)(uintptr_t)exchange->sources[index]));
        return list_memory(target, exchange->targets[index]);
    }
    exchange->sources[index] = weft_tensor_memory(source);
    exchange->targets[index] = weft_tensor_memory(target);
    return WEFT_OK;
}

weft_status wf_exchange_run(struct wf_exchange *exchange, weft_stream *stream, const char *function)
{
    if (exchange->lists != NULL) {
        WF_TRY(weft_context_wait(exchange->context, stream, WEFT_FOREVER));
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
    if (exchange->channel == NULL || exchange->is_local) return status;
    return weft_comm_fail(exchange->channel, function, status);
}
