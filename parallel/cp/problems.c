/* problems.c - what a coordinate computes in a step: its queries against the keys it has then.
 *
 * Queries and keys are runs of consecutive indices.  A run of queries against a run of keys is a
 * rectangle, of which the mask shows all, a part or nothing.  Parts lie on a diagonal.  Documents
 * and blocks cut the rectangles.  Full rectangles that touch each other in memory become one. */
#include "cp.h"

#include <string.h>

/* Where problems go. */
struct sink {
    struct wf_cp_problems *list; /* NULL: only the work is wanted */
    uint64_t work;
};

/* A rectangle of the sequence: queries [q, q_end) at place QUERY, and keys [k, k_end) at KEY. */
struct rectangle {
    int64_t q, q_end, k, k_end;
    int64_t query, key;
    int32_t source;
};

/* ---- work ---- */

/* The sum over i in [0, COUNT) of i + FIRST, each within 0 .. MOST. */
static uint64_t sum_rows(int64_t count, int64_t first, int64_t most)
{
    int64_t from = wf_min_i64(count, wf_max_i64(0, -first));           /* rows that are below 0 */
    int64_t until = wf_min_i64(count, wf_max_i64(from, most - first)); /* rows below MOST */
    uint64_t n = (uint64_t)(until - from);
    uint64_t sum = n * (uint64_t)(from + first) + (n > 0 ? n * (n - 1) / 2 : 0);

    return sum + (uint64_t)(count - until) * (uint64_t)most;
}

static uint64_t count_pairs(const weft_cp_problem *p)
{
    uint64_t pairs;

    if (p->mask == WEFT_CP_FULL || p->mask == WEFT_CP_CUSTOM)
        return (uint64_t)p->queries * (uint64_t)p->keys;
    pairs = sum_rows(p->queries, p->diagonal + 1, p->keys);
    if (p->mask == WEFT_CP_WINDOW)
        pairs -= sum_rows(p->queries, p->diagonal - p->window + 1, p->keys);
    return pairs;
}

/* ---- the list ---- */

enum { NEIGHBOURS = 8 }; /* problems that a new one may touch */

/* True if B, the newer one, could be made a part of A. */
static bool absorb(weft_cp_problem *a, const weft_cp_problem *b)
{
    if (a->mask != WEFT_CP_FULL || b->mask != WEFT_CP_FULL || a->source != b->source) return false;
    if (a->query == b->query && a->queries == b->queries && a->key + a->keys == b->key) {
        a->keys += b->keys;
        return true;
    }
    if (a->key == b->key && a->keys == b->keys && a->query + a->queries == b->query) {
        a->queries += b->queries;
        return true;
    }
    return false;
}

/* The last problem is complete: join it with one before. */
static void join_last(struct wf_cp_problems *list)
{
    size_t last = list->count - 1;

    for (size_t i = last > NEIGHBOURS ? last - NEIGHBOURS : 0; i < last; i++)
        if (absorb(&list->items[i], &list->items[last])) {
            list->count--;
            return;
        }
}

static weft_status append(struct wf_cp_problems *list, const weft_cp_problem *problem)
{
    if (list->count > 0 && list->items[list->count - 1].query == problem->query &&
        absorb(&list->items[list->count - 1], problem))
        return WEFT_OK;
    if (list->count > 0) join_last(list);
    WF_TRY(wf_grow(&list->items, sizeof *list->items, list->count, &list->room));
    list->items[list->count++] = *problem;
    return WEFT_OK;
}

static weft_status take(struct sink *sink, const weft_cp_problem *problem)
{
    sink->work = wf_add_capped(sink->work, count_pairs(problem));
    return sink->list != NULL ? append(sink->list, problem) : WEFT_OK;
}

/* ---- masks ---- */

static int64_t add_capped(int64_t a, int64_t b)
{
    return wf_add_i64(a, b, &a) ? a : INT64_MAX;
}

/* Take what queries of R see of its keys: with WINDOW, the last WINDOW ones up to their own index.
 * With CAUSAL, WINDOW is INT64_MAX. */
static weft_status take_band(struct sink *sink, const struct rectangle *r, int64_t window)
{
    int64_t q = wf_max_i64(r->q, r->k), q_end, k, k_end;
    weft_cp_problem p = {.mask = WEFT_CP_FULL, .source = r->source};

    q_end = wf_min_i64(r->q_end, add_capped(r->k_end - 1, window));
    k = window > q ? r->k : wf_max_i64(r->k, q - window + 1);
    k_end = wf_min_i64(r->k_end, q_end);
    if (q >= q_end || k >= k_end) return WEFT_OK;
    p.query = r->query + (q - r->q);
    p.queries = q_end - q;
    p.key = r->key + (k - r->k);
    p.keys = k_end - k;
    p.query_index = q;
    p.key_index = k;
    if (k_end - 1 > q) p.mask = WEFT_CP_CAUSAL;
    if (window < q_end && k < q_end - window) p.mask = WEFT_CP_WINDOW;
    if (p.mask != WEFT_CP_FULL) p.diagonal = q - k;
    if (p.mask == WEFT_CP_WINDOW) p.window = window;
    return take(sink, &p);
}

static weft_status take_all(struct sink *sink, const struct rectangle *r, uint32_t mask)
{
    weft_cp_problem p = {.mask = mask,
                         .source = r->source,
                         .query = r->query,
                         .queries = r->q_end - r->q,
                         .key = r->key,
                         .keys = r->k_end - r->k,
                         .query_index = r->q,
                         .key_index = r->k};

    return p.queries > 0 && p.keys > 0 ? take(sink, &p) : WEFT_OK;
}

static weft_status take_rectangle(struct sink *sink, const weft_cp_plan *plan,
                                  const struct rectangle *r)
{
    if (plan->mask == WEFT_CP_FULL) return take_all(sink, r, WEFT_CP_FULL);
    return take_band(sink, r, plan->mask == WEFT_CP_WINDOW ? plan->window : INT64_MAX);
}

/* ---- blocks ---- */

size_t wf_cp_first_block(const weft_cp_plan *plan, int64_t row)
{
    size_t low = 0, high = plan->block_count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (plan->blocks[middle].query < row)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* A run of queries against the listed blocks; keys are indices of the sequence. */
static weft_status take_blocks(struct sink *sink, const weft_cp_plan *plan,
                               const struct wf_cp_run *queries)
{
    int64_t size = plan->block_length, end = queries->start + queries->length;

    for (size_t i = wf_cp_first_block(plan, queries->start / size); i < plan->block_count; i++) {
        const weft_cp_block *block = &plan->blocks[i];
        struct rectangle r = {.k = block->key * size, .key = block->key * size, .source = -1};

        if (block->query > (end - 1) / size) break;
        r.q = wf_max_i64(queries->start, block->query * size);
        r.q_end = block->query < end / size ? (block->query + 1) * size : end;
        r.query = queries->position + (r.q - queries->start);
        r.k_end = r.k + wf_min_i64(size, plan->length - r.k);
        if (block->mask == WEFT_CP_CAUSAL)
            WF_TRY(take_band(sink, &r, INT64_MAX));
        else
            WF_TRY(take_all(sink, &r, block->mask));
    }
    return WEFT_OK;
}

/* ---- runs ---- */

/* The document that has INDEX: the last one that begins at or before it, so that it is not empty.
 */
static void find_document(const weft_cp_plan *plan, int64_t index, int64_t *start, int64_t *end)
{
    size_t low = 0, high = plan->document_count;

    while (high - low > 1) {
        size_t middle = low + (high - low) / 2;

        if (plan->documents[middle] <= index)
            low = middle;
        else
            high = middle;
    }
    *start = plan->documents[low];
    *end = plan->documents[low + 1];
}

/* Keys in ascending order. */
struct keys {
    const struct wf_cp_run *runs;
    size_t count;
    int32_t source;
};

/* The first run that ends after INDEX. */
static size_t first_after(const struct keys *keys, int64_t index)
{
    size_t low = 0, high = keys->count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (keys->runs[middle].start + keys->runs[middle].length <= index)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* Queries [Q, Q_END) of one document, at place QUERY, against the keys [START, END) of it. */
static weft_status take_document(struct sink *sink, const weft_cp_plan *plan,
                                 const struct keys *keys, struct rectangle r, int64_t start,
                                 int64_t end)
{
    for (size_t i = first_after(keys, start); i < keys->count && keys->runs[i].start < end; i++) {
        const struct wf_cp_run *run = &keys->runs[i];

        r.k = wf_max_i64(run->start, start);
        r.k_end = wf_min_i64(run->start + run->length, end);
        r.key = run->position + (r.k - run->start);
        WF_TRY(take_rectangle(sink, plan, &r));
    }
    return WEFT_OK;
}

static weft_status take_run(struct sink *sink, const weft_cp_plan *plan,
                            const struct wf_cp_run *queries, const struct keys *keys)
{
    int64_t at = queries->start, stop = at + queries->length, start = 0, end = plan->length;

    if (plan->mask == WEFT_CP_BLOCKS) return take_blocks(sink, plan, queries);
    while (at < stop) {
        struct rectangle r = {.q = at, .source = keys->source};

        if (plan->documents != NULL) find_document(plan, at, &start, &end);
        r.q_end = wf_min_i64(stop, end);
        r.query = queries->position + (at - queries->start);
        WF_TRY(take_document(sink, plan, keys, r, start, end));
        at = r.q_end;
    }
    return WEFT_OK;
}

/* A rank's own keys in a ring: places ascend as indices do, so the mask of indices is the mask of
 * places. */
static weft_status take_own(struct sink *sink, int64_t held, const struct wf_cp_run *first,
                            int32_t source)
{
    weft_cp_problem p = {.mask = held > 1 ? WEFT_CP_CAUSAL : WEFT_CP_FULL,
                         .source = source,
                         .queries = held,
                         .keys = held,
                         .query_index = first->start,
                         .key_index = first->start};

    return take(sink, &p);
}

static weft_status take_step(struct sink *sink, const weft_cp_plan *plan, int32_t coordinate,
                             int32_t step)
{
    const struct wf_cp_run whole = {.length = plan->length};
    const struct wf_cp_run *queries = &plan->runs[plan->first_run[coordinate]];
    size_t count = plan->first_run[coordinate + 1] - plan->first_run[coordinate];
    struct keys keys = {&whole, 1, -1};

    if (plan->variant == WEFT_CP_RING) {
        int32_t source = wf_cp_source(plan, coordinate, step);
        size_t first = plan->first_run[source];

        if (step == 0 && count > 0 && plan->mask == WEFT_CP_CAUSAL && plan->documents == NULL)
            return take_own(sink, wf_cp_held(plan, coordinate), queries, source);
        keys = (struct keys){&plan->runs[first], plan->first_run[source + 1] - first, source};
    } else if (plan->variant == WEFT_CP_HEADS) {
        queries = &whole;
        count = 1;
    }
    for (size_t i = 0; i < count; i++)
        WF_TRY(take_run(sink, plan, &queries[i], &keys));
    if (sink->list != NULL && sink->list->count > 0) join_last(sink->list);
    return WEFT_OK;
}

weft_status wf_cp_problems(const weft_cp_plan *plan, int32_t coordinate, int32_t step,
                           struct wf_cp_problems *out)
{
    struct sink sink = {.list = out};

    return take_step(&sink, plan, coordinate, step);
}

uint64_t wf_cp_work(const weft_cp_plan *plan, int32_t coordinate)
{
    struct sink sink = {0};

    for (int32_t step = 0; step < wf_cp_steps(plan); step++)
        if (take_step(&sink, plan, coordinate, step) != WEFT_OK) return UINT64_MAX; /* cannot be */
    return sink.work;
}
