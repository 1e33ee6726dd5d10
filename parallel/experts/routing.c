/* routing.c - the counts of one step: who sends how many tokens to which expert. */
#include "experts.h"

#include <string.h>

/* Faults that a rank reports instead of counts; a fault above 0 is 1 + the expert with a negative
 * count. */
enum { NONE = 0, NO_MEMORY = -1, TOO_MANY = -2, OTHER_COUNT = -3, BAD_CAPACITY = -4 };

weft_status wf_routing_check(const weft_routing *routing, const char *function)
{
    WF_TRY(weft_object_check(routing, "weft_routing", function, "routing"));
    return wf_experts_check(routing->experts, function);
}

/* ---- life ---- */

/* A spare routing, or a new one; NULL: there is no memory. */
static weft_routing *take(weft_experts *e)
{
    size_t experts = (size_t)e->options.experts, mine = (size_t)e->mine;
    size_t numbers = experts + 1 + mine + mine * (size_t)e->ranks;
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
    weft_object_begin(&routing->object, "weft_routing");
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
    if (!weft_object_end(&mine->object, "weft_routing", "weft_routing_release")) return;
    experts = mine->experts;
    if (!experts->is_released && !wf_system_has_ended(&experts->system)) {
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
static int64_t find_fault(const weft_experts *e, size_t count, const int64_t *counts,
                          int64_t capacity, int64_t *value)
{
    int64_t sum = 0;

    *value = (int64_t)count;
    if (count != (size_t)e->options.experts) return OTHER_COUNT;
    *value = capacity;
    if (capacity < 0) return BAD_CAPACITY;
    *value = 0;
    for (int32_t i = 0; i < e->options.experts; i++) {
        *value = counts[i];
        if (counts[i] < 0) return 1 + (int64_t)i;
        *value = sum += wf_min_i64(counts[i], WEFT_EXPERTS_MAX_TOKENS + 1);
        if (sum > WEFT_EXPERTS_MAX_TOKENS) return TOO_MANY;
    }
    return NONE;
}

/* Fill ROUTING with this rank's counts, of which CAPACITY travel to an expert; 0: all. */
static void set_counts(const weft_experts *e, const int64_t *counts, int64_t capacity,
                       weft_routing *routing)
{
    routing->capacity = capacity;
    routing->start[0] = routing->sent = 0;
    for (int32_t i = 0; i < e->options.experts; i++) {
        routing->start[i + 1] = routing->start[i] + counts[i];
        routing->sent += wf_routing_kept(routing, i);
    }
}

static void write_words(weft_experts *e, int64_t fault, int64_t value, const weft_routing *routing)
{
    memset(e->sent, 0, e->words * sizeof *e->sent);
    for (int32_t rank = 0; rank < e->ranks; rank++) {
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
    for (int32_t rank = 0; rank < e->ranks; rank++) {
        const int64_t *words = e->got + (size_t)rank * words_per_rank(e);
        int64_t fault = words[WF_EXPERTS_FAULT], value = words[WF_EXPERTS_VALUE];
        int32_t name = weft_comm_world_rank(e->comm, rank);

        if (fault == NO_MEMORY)
            return wf_fail(WEFT_ERR_NO_MEMORY, "%s on %s: rank %d has no memory for a routing",
                           function, weft_comm_name(e->comm), name);
        if (fault == TOO_MANY)
            return wf_fail(WEFT_ERR_INVALID, "%s on %s: rank %d has more than %lld tokens",
                           function, weft_comm_name(e->comm), name,
                           (long long)WEFT_EXPERTS_MAX_TOKENS);
        if (fault == OTHER_COUNT)
            return wf_fail(WEFT_ERR_INVALID,
                           "%s on %s: rank %d passes %lld counts for %d experts; pass one for each",
                           function, weft_comm_name(e->comm), name, (long long)value,
                           e->options.experts);
        if (fault == BAD_CAPACITY)
            return wf_fail(WEFT_ERR_INVALID,
                           "%s on %s: capacity of rank %d is %lld; it must not be negative",
                           function, weft_comm_name(e->comm), name, (long long)value);
        if (fault != NONE)
            return wf_fail(WEFT_ERR_INVALID,
                           "%s on %s: counts[%lld] of rank %d is %lld; it must not be negative",
                           function, weft_comm_name(e->comm), (long long)(fault - 1), name,
                           (long long)value);
    }
    return WEFT_OK;
}

static void read_words(const weft_experts *e, weft_routing *routing)
{
    int32_t ranks = e->ranks;

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

weft_status weft_experts_route(weft_experts *experts, size_t count, const int64_t *counts,
                               const weft_routing_options *options, weft_stream *stream,
                               weft_routing **out)
{
    static const char function[] = "weft_experts_route";
    weft_routing_options o = {0};
    int64_t fault, value;
    weft_routing *routing;
    weft_status status;

    WF_TRY(wf_experts_check(experts, function));
    if (counts == NULL) return wf_fail_null(function, "counts");
    if (out == NULL) return wf_fail_null(function, "out");
    if (options != NULL)
        WF_TRY(wf_fail_named(wf_options_read("weft_routing_options", options, &o, sizeof o),
                             function));
    if (o.capacity == 0) o.capacity = experts->options.capacity;
    WF_TRY(weft_stream_check(experts->context, stream, function));
    fault = find_fault(experts, count, counts, o.capacity, &value);
    routing = fault == NONE ? take(experts) : NULL;
    if (routing != NULL)
        set_counts(experts, counts, o.capacity, routing);
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
                               .expert_count = (size_t)routing->experts->mine,
                               .counts = routing->counts,
                               .by_rank_count =
                                   (size_t)routing->experts->mine * (size_t)routing->experts->ranks,
                               .by_rank = routing->by_rank};
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
    WF_TRY(weft_stream_check(e->context, stream, function));
    if (width < 1)
        return wf_fail(WEFT_ERR_INVALID, "%s: width is %lld; it must be at least 1", function,
                       (long long)width);
    e->sent[0] = routing->received;
    WF_TRY(wf_fail_named(wf_experts_exchange(e, true, stream), function));
    for (int32_t rank = 0; rank < e->ranks; rank++)
        shape[0] += e->got[rank];
    placement.sizes = e->got;
    placement.size_count = (size_t)e->ranks;
    return wf_fail_named(weft_spec_create(e->mesh, dtype, 2, shape, &placement, out), function);
}
