/* routing.c - the counts of one step: who sends how many tokens to which expert. */
#include "experts.h"

#include "shard/shard.h"

#include <string.h>

/* Faults that a rank reports instead of counts; a fault above 0 is 1 + the expert with a negative
 * count. */
enum { NONE = 0, NO_MEMORY = -1, TOO_MANY = -2 };

weft_status wf_routing_check(const weft_routing *routing, const char *function)
{
    if (routing == NULL) return wf_fail_null(function, "routing");
    if (!wf_is_usable(routing->made, WF_KIND_ROUTING))
        return wf_fail_unusable(function, "routing", routing->made, WF_KIND_ROUTING);
    return wf_experts_check(routing->experts, function);
}

/* ---- life ---- */

/* A spare routing, or a new one; NULL: there is no memory. */
static weft_routing *take(weft_experts *e)
{
    size_t experts = (size_t)e->options.experts, mine = (size_t)e->mine;
    size_t numbers = experts + 1 + mine + mine * (size_t)e->comm->size;
    weft_routing *routing = e->spares;

    if (routing != NULL) {
        e->spares = routing->next;
    } else {
        routing = wf_calloc(1, sizeof *routing + numbers * sizeof *routing->start);
        if (routing == NULL) return NULL;
        routing->start = (int64_t *)(void *)(routing + 1);
        routing->counts = routing->start + experts + 1;
        routing->by_rank = routing->counts + mine;
    }
    routing->made = wf_made_now(WF_KIND_ROUTING);
    routing->experts = e;
    e->routings++;
    return routing;
}

void weft_routing_release(weft_routing **routing)
{
    weft_routing *mine;
    weft_experts *experts;

    if (routing == NULL || *routing == NULL) return;
    mine = *routing;
    *routing = NULL;
    if (!wf_is_usable(mine->made, WF_KIND_ROUTING)) {
        wf_warn_unusable("weft_routing_release", mine->made, WF_KIND_ROUTING);
        return;
    }
    experts = mine->experts;
    mine->made = wf_released(WF_KIND_ROUTING);
    if (wf_is_usable(experts->made, WF_KIND_EXPERTS)) {
        mine->next = experts->spares;
        experts->spares = mine;
    } else {
        wf_free(mine);
    }
    wf_experts_forget(experts);
}

void wf_routings_free(weft_routing *spares)
{
    while (spares != NULL) {
        weft_routing *next = spares->next;
        wf_free(spares);
        spares = next;
    }
}

/* ---- the exchange of counts ---- */

static size_t words_per_rank(const weft_experts *e)
{
    return WF_EXPERTS_COUNTS + (size_t)e->chunk;
}

/* The first fault of this rank's counts, and the number that is at fault. */
static int64_t find_fault(const weft_experts *e, const int64_t *counts, int64_t *value)
{
    int64_t sum = 0;

    *value = 0;
    for (int32_t i = 0; i < e->options.experts; i++) {
        *value = counts[i];
        if (counts[i] < 0) return 1 + (int64_t)i;
        *value = sum += wf_min_i64(counts[i], WEFT_EXPERTS_MAX_TOKENS + 1);
        if (sum > WEFT_EXPERTS_MAX_TOKENS) return TOO_MANY;
    }
    return NONE;
}

/* Fill ROUTING with this rank's counts. */
static void set_counts(const weft_experts *e, const int64_t *counts, weft_routing *routing)
{
    routing->start[0] = routing->sent = 0;
    for (int32_t i = 0; i < e->options.experts; i++) {
        routing->start[i + 1] = routing->start[i] + counts[i];
        routing->sent += wf_routing_kept(routing, i);
    }
}

static void write_words(weft_experts *e, int64_t fault, int64_t value, const weft_routing *routing)
{
    memset(e->sent, 0, e->words * sizeof *e->sent);
    for (int32_t rank = 0; rank < e->comm->size; rank++) {
        int64_t *words = e->sent + (size_t)rank * words_per_rank(e);

        words[WF_EXPERTS_FAULT] = fault;
        words[WF_EXPERTS_VALUE] = value;
    }
    for (int32_t i = 0; routing != NULL && i < e->options.experts; i++)
        e->sent[(size_t)(i / e->chunk) * words_per_rank(e) + WF_EXPERTS_COUNTS +
                (size_t)(i % e->chunk)] = wf_routing_kept(routing, i);
}

/* All ranks find the fault of the same rank. */
static weft_status check_words(const weft_experts *e, const char *function)
{
    for (int32_t rank = 0; rank < e->comm->size; rank++) {
        const int64_t *words = e->got + (size_t)rank * words_per_rank(e);
        int64_t fault = words[WF_EXPERTS_FAULT], value = words[WF_EXPERTS_VALUE];
        int32_t name = e->comm->world_ranks[rank];

        if (fault == NO_MEMORY)
            return wf_fail(WEFT_ERR_NO_MEMORY, "%s on %s: rank %d has no memory for a routing",
                           function, e->comm->name, name);
        if (fault == TOO_MANY)
            return wf_fail(WEFT_ERR_INVALID, "%s on %s: rank %d has more than %lld tokens",
                           function, e->comm->name, name, (long long)WEFT_EXPERTS_MAX_TOKENS);
        if (fault != NONE)
            return wf_fail(WEFT_ERR_INVALID,
                           "%s on %s: counts[%lld] of rank %d is %lld; it must not be negative",
                           function, e->comm->name, (long long)(fault - 1), name, (long long)value);
    }
    return WEFT_OK;
}

static void read_words(const weft_experts *e, weft_routing *routing)
{
    int32_t ranks = e->comm->size;

    routing->received = 0;
    for (int32_t i = 0; i < e->mine; i++) {
        routing->counts[i] = 0;
        for (int32_t rank = 0; rank < ranks; rank++) {
            int64_t count =
                e->got[(size_t)rank * words_per_rank(e) + WF_EXPERTS_COUNTS + (size_t)i];

            routing->by_rank[(int64_t)i * ranks + rank] = count;
            routing->counts[i] += count;
        }
        routing->received += routing->counts[i];
    }
}

weft_status weft_experts_route(weft_experts *experts, const int64_t *counts, weft_stream *stream,
                               weft_routing **out)
{
    static const char function[] = "weft_experts_route";
    int64_t fault, value;
    weft_routing *routing;
    weft_status status;

    WF_TRY(wf_experts_check(experts, function));
    if (counts == NULL) return wf_fail_null(function, "counts");
    if (out == NULL) return wf_fail_null(function, "out");
    WF_TRY(wf_stream_check(experts->context, stream, function));
    fault = find_fault(experts, counts, &value);
    routing = fault == NONE ? take(experts) : NULL;
    if (routing != NULL)
        set_counts(experts, counts, routing);
    else if (fault == NONE)
        fault = NO_MEMORY;
    write_words(experts, fault, value, routing);
    status = wf_fail_named(wf_experts_exchange(experts, false, stream), function);
    if (status == WEFT_OK) status = check_words(experts, function);
    if (status != WEFT_OK) {
        weft_routing_release(&routing);
        return status;
    }
    read_words(experts, routing);
    *out = routing;
    return WEFT_OK;
}

/* ---- properties ---- */

weft_status weft_routing_get(const weft_routing *routing, weft_routing_info *out)
{
    static const char function[] = "weft_routing_get";
    weft_routing_info info;

    WF_TRY(wf_routing_check(routing, function));
    if (out == NULL) return wf_fail_null(function, "out");
    info = (weft_routing_info){.struct_size = sizeof info,
                               .tokens = wf_routing_tokens(routing),
                               .sent = routing->sent,
                               .received = routing->received,
                               .first_expert = routing->experts->first,
                               .experts = routing->experts->mine,
                               .counts = routing->counts,
                               .by_rank = routing->by_rank,
                               .by_rank_count = (size_t)routing->experts->mine *
                                                (size_t)weft_comm_size(routing->experts->comm)};
    return wf_fail_named(wf_info_write("weft_routing_info", &info, sizeof info, out), function);
}

weft_status weft_routing_spec(weft_routing *routing, enum weft_dtype dtype, int64_t width,
                              weft_stream *stream, weft_spec **out)
{
    static const char function[] = "weft_routing_spec";
    weft_placement placement = {.kind = WEFT_PLACE_SIZES};
    int64_t shape[2] = {0, width};
    weft_experts *e;

    WF_TRY(wf_routing_check(routing, function));
    if (out == NULL) return wf_fail_null(function, "out");
    e = routing->experts;
    WF_TRY(wf_stream_check(e->context, stream, function));
    if (width < 1)
        return wf_fail(WEFT_ERR_INVALID, "%s: width is %lld; it must be at least 1", function,
                       (long long)width);
    e->sent[0] = routing->received;
    WF_TRY(wf_fail_named(wf_experts_exchange(e, true, stream), function));
    for (int32_t rank = 0; rank < e->comm->size; rank++)
        shape[0] += e->got[rank];
    placement.sizes = e->got;
    placement.size_count = e->comm->size;
    return wf_fail_named(weft_spec_create(e->mesh, dtype, 2, shape, &placement, out), function);
}
