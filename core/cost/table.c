/* table.c - the general built-in tables, and the lifetime of the others. */
#include "cost.h"

#include <string.h>

/* One rate for every communicating kind, within and between hosts. */
#define TRAVEL(within_base, within_peer, within_fs, between_base, between_peer, between_fs)        \
    {                                                                                              \
        {within_base, within_peer, within_fs}, {between_base, between_peer, between_fs},           \
        {                                                                                          \
            between_base, between_peer, between_fs                                                 \
        }                                                                                          \
    }

/* A GPU host with NVLink inside and InfiniBand outside: what DTensor assumes, with local work
 * priced as well.  A measured table is better: `weft bench calibrate`. */
static const weft_cost_table general = {
    .built_in = true,
    .name = "default",
    .rates =
        {
            [WEFT_STEP_SLICE] = TRAVEL(2000, 0, 0, 2000, 0, 0),
            [WEFT_STEP_PARTIAL] = TRAVEL(2000, 0, 0, 2000, 0, 0),
            [WEFT_STEP_ALL_GATHER] = TRAVEL(6600, 600, 10619, 6600, 2700, 48269),
            [WEFT_STEP_REDUCE_SCATTER] = TRAVEL(6600, 600, 10619, 6600, 2700, 48269),
            [WEFT_STEP_ALL_REDUCE] = TRAVEL(6600, 600, 10619, 6600, 2700, 48269),
            [WEFT_STEP_ALL_TO_ALL] = TRAVEL(6600, 600, 10619, 6600, 2700, 48269),
            [WEFT_STEP_PERMUTE] = TRAVEL(6600, 0, 10619, 6600, 0, 48269),
            [WEFT_STEP_EXCHANGE] = TRAVEL(8600, 600, 10619, 8600, 2700, 48269),
            [WEFT_STEP_BROADCAST] = TRAVEL(6600, 600, 10619, 6600, 2700, 48269),
            [WEFT_STEP_REDUCE] = TRAVEL(6600, 600, 10619, 6600, 2700, 48269),
        },
    .copy = 500,
    .pack = 700,
    .reduce = 500,
    .flops = 400000000,
    .memory = 500,
    .source = "what PyTorch's DTensor assumes of links; no machine was measured",
};

/* Ranks of one host that read each other's buffers; between hosts, sockets. */
static const weft_cost_table shared_memory = {
    .built_in = true,
    .name = "cpu",
    .rates =
        {
            [WEFT_STEP_SLICE] = TRAVEL(400, 0, 0, 400, 0, 0),
            [WEFT_STEP_PARTIAL] = TRAVEL(400, 0, 0, 400, 0, 0),
            [WEFT_STEP_ALL_GATHER] = TRAVEL(600, 40, 45000, 60000, 20000, 400000),
            [WEFT_STEP_REDUCE_SCATTER] = TRAVEL(600, 40, 60000, 60000, 20000, 400000),
            [WEFT_STEP_ALL_REDUCE] = TRAVEL(600, 40, 50000, 60000, 20000, 400000),
            [WEFT_STEP_ALL_TO_ALL] = TRAVEL(600, 40, 45000, 60000, 20000, 400000),
            [WEFT_STEP_PERMUTE] = TRAVEL(600, 40, 45000, 60000, 20000, 400000),
            [WEFT_STEP_EXCHANGE] = TRAVEL(600, 40, 45000, 60000, 20000, 400000),
            [WEFT_STEP_BROADCAST] = TRAVEL(600, 40, 45000, 60000, 20000, 400000),
            [WEFT_STEP_REDUCE] = TRAVEL(600, 40, 60000, 60000, 20000, 400000),
        },
    .copy = 45000,
    .pack = 60000,
    .reduce = 30000,
    .flops = 20000,
    .memory = 100000,
    .one_sided = true,
    .source = "ranks of one host; `weft bench calibrate` measures yours",
};

/* PyTorch's DTensor: 6.6 us and 0.6 or 2.7 us a hop; 87.7 GiB/s, or 0.22 of it between hosts; one
 * microsecond more for an all-to-all; everything local is free. */
static const weft_cost_table dtensor = {
    .built_in = true,
    .name = "dtensor",
    .rates =
        {
            [WEFT_STEP_ALL_GATHER] = TRAVEL(6600, 600, 10619, 6600, 2700, 48269),
            [WEFT_STEP_REDUCE_SCATTER] = TRAVEL(6600, 600, 10619, 6600, 2700, 48269),
            [WEFT_STEP_ALL_REDUCE] = TRAVEL(6600, 600, 10619, 6600, 2700, 48269),
            [WEFT_STEP_ALL_TO_ALL] = TRAVEL(7600, 600, 10619, 7600, 2700, 48269),
            [WEFT_STEP_PERMUTE] = TRAVEL(7600, 600, 10619, 7600, 2700, 48269),
            [WEFT_STEP_EXCHANGE] = TRAVEL(7600, 600, 10619, 7600, 2700, 48269),
            [WEFT_STEP_BROADCAST] = TRAVEL(6600, 600, 10619, 6600, 2700, 48269),
            [WEFT_STEP_REDUCE] = TRAVEL(6600, 600, 10619, 6600, 2700, 48269),
        },
    .source = "the constants of PyTorch's DTensor",
};

static const weft_cost_table *const built_in[] = {&general, &shared_memory, &dtensor};

const weft_cost_table *wf_cost_default(void)
{
    return &general;
}

static const weft_cost_table *table_at(size_t index)
{
    for (size_t i = 0; i < WF_COUNT(built_in); i++)
        if (i == index) return built_in[i];
    for (size_t i = 0; wf_cost_machines[i] != NULL; i++)
        if (i + WF_COUNT(built_in) == index) return wf_cost_machines[i];
    return NULL;
}

const char *weft_cost_table_built_in(size_t index)
{
    const weft_cost_table *table = table_at(index);

    return table != NULL ? table->name : NULL;
}

weft_cost_table *wf_cost_built_in(const char *name)
{
    const weft_cost_table *table;

    for (size_t i = 0; (table = table_at(i)) != NULL; i++)
        if (strcmp(name, table->name) == 0) return weft_cost_table_retain(table);
    return NULL;
}

void wf_cost_inherit(weft_cost_table *table, const weft_cost_table *base)
{
    memcpy(table->source, base->source, sizeof table->source);
    memcpy(table->rates, base->rates, sizeof table->rates);
    memcpy(table->domains, base->domains, sizeof table->domains);
    table->copy = base->copy;
    table->pack = base->pack;
    table->reduce = base->reduce;
    table->flops = base->flops;
    table->memory = base->memory;
    table->peak = base->peak;
    table->launch = base->launch;
    table->by_size = base->by_size;
    table->shares_links = base->shares_links;
    table->one_sided = base->one_sided;
}

weft_status wf_cost_copy(const weft_cost_table *table, const char *name, weft_cost_table **out)
{
    weft_cost_table *copy = wf_calloc(1, sizeof *copy);
    size_t length = strlen(name);

    if (copy == NULL) return wf_fail_memory(sizeof *copy);
    if (length >= sizeof copy->name) length = sizeof copy->name - 1;
    wf_cost_inherit(copy, table);
    memcpy(copy->name, name, length);
    copy->name[length] = '\0';
    atomic_init(&copy->references, 1);
    *out = copy;
    return WEFT_OK;
}

weft_cost_table *weft_cost_table_retain(const weft_cost_table *table)
{
    weft_cost_table *mine = (weft_cost_table *)(uintptr_t)table;

    if (table != NULL && !table->built_in)
        atomic_fetch_add_explicit(&mine->references, 1, memory_order_relaxed);
    return mine;
}

void weft_cost_table_release(weft_cost_table **table)
{
    weft_cost_table *mine;

    if (table == NULL || *table == NULL) return;
    mine = *table;
    *table = NULL;
    if (mine->built_in) return;
    if (atomic_fetch_sub_explicit(&mine->references, 1, memory_order_acq_rel) == 1) wf_free(mine);
}

const char *weft_cost_table_name(const weft_cost_table *table)
{
    return table != NULL ? table->name : NULL;
}

const char *weft_cost_table_source(const weft_cost_table *table)
{
    return table != NULL ? table->source : NULL;
}

uint64_t weft_cost_table_digest(const weft_cost_table *table)
{
    uint64_t h;

    if (table == NULL) return 0;
    h = wf_hash(0, table->name, strlen(table->name));
    for (int kind = 0; kind < WEFT_STEP_KINDS; kind++)
        for (int link = 0; link < WF_LINKS; link++) {
            const struct wf_rate *rate = &table->rates[kind][link];
            h = wf_hash_mix(h, rate->base_ns);
            h = wf_hash_mix(h, rate->peer_ns);
            h = wf_hash_mix(h, rate->femtoseconds);
        }
    h = wf_hash_mix(h, table->copy);
    h = wf_hash_mix(h, table->pack);
    h = wf_hash_mix(h, table->reduce);
    h = wf_hash_mix(h, table->flops);
    h = wf_hash_mix(h, table->memory);
    h = wf_hash_mix(h, table->peak);
    h = wf_hash_mix(h, table->launch);
    for (int link = 0; link < WF_LINKS - 1; link++)
        h = wf_hash_mix(h, table->domains[link]);
    h = wf_hash_mix(h, table->by_size);
    h = wf_hash_mix(h, table->shares_links);
    return wf_hash_mix(h, table->one_sided);
}
