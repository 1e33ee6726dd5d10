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

static const weft_cost_table *const built_in[] = {&shared_memory, &dtensor};

const weft_cost_table *wf_cost_default(void)
{
    return wf_cost_machines[0];
}

static const weft_cost_table *table_at(size_t index)
{
    for (size_t i = 0; wf_cost_machines[i] != NULL; i++, index--)
        if (index == 0) return wf_cost_machines[i];
    return index < WF_COUNT(built_in) ? built_in[index] : NULL;
}

const char *weft_cost_table_built_in(size_t index)
{
    const weft_cost_table *table = table_at(index);

    return table != NULL ? table->name : NULL;
}

weft_cost_table *wf_cost_built_in(const char *name)
{
    const weft_cost_table *table;

    if (strcmp(name, "default") == 0) return weft_cost_table_retain(wf_cost_default());
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
    table->attention = base->attention;
    table->flops_f8 = base->flops_f8;
    table->compute_beside = base->compute_beside;
    table->moves_beside = base->moves_beside;
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

weft_status weft_cost_table_get(const weft_cost_table *table, weft_cost_table_info *out)
{
    const weft_cost_table *t = table;
    weft_cost_table_info info;

    WF_TRY(wf_require(table, "weft_cost_table_get: table"));
    WF_TRY(wf_require(out, "weft_cost_table_get: out"));
    memset(&info, 0, sizeof info);
    info.flops = wf_mul_capped(t->flops, 1000000);
    info.attention_flops = wf_mul_capped(t->attention > 0 ? t->attention : t->flops, 1000000);
    info.f8_flops = wf_mul_capped(t->flops_f8, 1000000);
    info.peak_flops = weft_cost_table_peak_flops(t);
    info.launch = t->launch;
    info.compute_beside = (uint32_t)t->compute_beside;
    info.moves_beside = (uint32_t)t->moves_beside;
    return wf_info_write("weft_cost_table_info", &info, sizeof info, out);
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
    h = wf_hash_mix(h, table->attention);
    h = wf_hash_mix(h, table->flops_f8);
    h = wf_hash_mix(h, table->compute_beside);
    h = wf_hash_mix(h, table->moves_beside);
    for (int link = 0; link < WF_LINKS - 1; link++)
        h = wf_hash_mix(h, table->domains[link]);
    h = wf_hash_mix(h, table->by_size);
    h = wf_hash_mix(h, table->shares_links);
    return wf_hash_mix(h, table->one_sided);
}
