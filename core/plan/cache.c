/* cache.c - plans by request.
 *
 * Specs are unique objects and each cached plan holds its own, so a request is identified by
 * pointers and a few numbers.  Cached plans form a list from the most to the least recently used
 * one, which is evicted when the cache is full. */
#include "plan.h"

#include <string.h>

enum { NOBODY = -1 };

/* The options of a request. */
struct question {
    const weft_spec *from, *to;
    const weft_cost_table *costs; /* a reference of its own, once cached */
    uint64_t memory_limit;
    uint32_t minimize, planner, without, zero;
};

struct kept {
    struct question question;
    weft_plan *plan;
    uint64_t hash;
    int32_t next;         /* in the bucket */
    int32_t newer, older; /* in the order of use */
};

struct wf_plan_cache {
    int32_t room, count, newest, oldest;
    uint32_t mask;
    int32_t *buckets;
    struct kept kept[];
};

weft_status wf_plan_cache_create(uint32_t room, struct wf_plan_cache **out)
{
    struct wf_plan_cache *cache;
    uint32_t buckets = 16;

    while (buckets < 2 * room)
        buckets *= 2;
    cache = wf_calloc(1, sizeof *cache + room * sizeof cache->kept[0]);
    if (cache == NULL) return wf_fail_memory(sizeof *cache + room * sizeof cache->kept[0]);
    cache->buckets = wf_alloc(buckets * sizeof *cache->buckets);
    if (cache->buckets == NULL) {
        wf_free(cache);
        return wf_fail_memory(buckets * sizeof *cache->buckets);
    }
    memset(cache->buckets, 0xff, buckets * sizeof *cache->buckets); /* every slot NOBODY */
    cache->room = (int32_t)room;
    cache->mask = buckets - 1;
    cache->newest = cache->oldest = NOBODY;
    *out = cache;
    return WEFT_OK;
}

static uint64_t hash_of(const struct question *q)
{
    /* so that equal specs do not cancel out */
    uint64_t h = wf_hash_mix(1, weft_spec_hash(q->from));

    h = wf_hash_mix(h, weft_spec_hash(q->to));
    h = wf_hash_mix(h, q->memory_limit);
    return wf_hash_mix(h, (uint64_t)q->minimize << 48 | (uint64_t)q->planner << 32 | q->without);
}

static bool same_question(const struct question *a, const struct question *b)
{
    return a->from == b->from && a->to == b->to && a->costs == b->costs &&
           a->memory_limit == b->memory_limit && a->minimize == b->minimize &&
           a->planner == b->planner && a->without == b->without;
}

/* ---- the order of use ---- */

static void unlink_use(struct wf_plan_cache *cache, int32_t at)
{
    struct kept *k = &cache->kept[at];

    if (k->newer != NOBODY)
        cache->kept[k->newer].older = k->older;
    else
        cache->newest = k->older;
    if (k->older != NOBODY)
        cache->kept[k->older].newer = k->newer;
    else
        cache->oldest = k->newer;
}

static void link_use(struct wf_plan_cache *cache, int32_t at)
{
    struct kept *k = &cache->kept[at];

    k->newer = NOBODY;
    k->older = cache->newest;
    if (cache->newest != NOBODY)
        cache->kept[cache->newest].newer = at;
    else
        cache->oldest = at;
    cache->newest = at;
}

/* ---- entries ---- */

static void forget_entry(struct wf_plan_cache *cache, int32_t at)
{
    struct kept *k = &cache->kept[at];
    int32_t *link = &cache->buckets[k->hash & cache->mask];
    weft_cost_table *costs = (weft_cost_table *)(uintptr_t)k->question.costs;

    while (*link != at)
        link = &cache->kept[*link].next;
    *link = k->next;
    unlink_use(cache, at);
    weft_plan_release(&k->plan);
    weft_cost_table_release(&costs);
}

static void keep_plan(struct wf_plan_cache *cache, const struct question *question, uint64_t hash,
                      weft_plan *plan)
{
    int32_t at = cache->count;
    struct kept *k;

    if (cache->count == cache->room) {
        at = cache->oldest;
        forget_entry(cache, at);
    } else {
        cache->count++;
    }
    k = &cache->kept[at];
    k->question = *question;
    k->question.costs = weft_cost_table_retain(question->costs);
    k->plan = weft_plan_retain(plan);
    k->hash = hash;
    k->next = cache->buckets[hash & cache->mask];
    cache->buckets[hash & cache->mask] = at;
    link_use(cache, at);
}

weft_status wf_plan_cache_find(struct wf_plan_cache *cache, const weft_spec *from,
                               const weft_spec *to, const weft_plan_options *options,
                               weft_plan **out)
{
    struct question question = {.from = from,
                                .to = to,
                                .costs = options->costs,
                                .memory_limit = options->memory_limit,
                                .minimize = options->minimize,
                                .planner = options->planner,
                                .without = options->without};
    uint64_t hash = hash_of(&question);

    WF_TRY(wf_plan_refuse_holders("weft_plan_cache", options));
    for (int32_t at = cache->buckets[hash & cache->mask]; at != NOBODY; at = cache->kept[at].next) {
        if (cache->kept[at].hash != hash || !same_question(&cache->kept[at].question, &question))
            continue;
        if (cache->newest != at) {
            unlink_use(cache, at);
            link_use(cache, at);
        }
        *out = weft_plan_retain(cache->kept[at].plan);
        return WEFT_OK;
    }
    WF_TRY(wf_plan_create(from, to, options, out));
    keep_plan(cache, &question, hash, *out);
    return WEFT_OK;
}

void wf_plan_cache_release(struct wf_plan_cache **cache)
{
    struct wf_plan_cache *mine = *cache;

    if (mine == NULL) return;
    *cache = NULL;
    while (mine->oldest != NOBODY)
        forget_entry(mine, mine->oldest);
    wf_free(mine->buckets);
    wf_free(mine);
}
