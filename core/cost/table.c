/* table.c - the built-in tables, and the lifetime of the others. */
#include "cost.h"

#include <string.h>

/* One rate for every communicating kind, within and between hosts. */
#define TRAVEL(within_base, within_peer, within_fs, between_base, between_peer, between_fs)        \
    {                                                                                              \
        {within_base, within_peer, within_fs},                                                     \
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
};

static const weft_cost_table *const built_in[] = {&general, &shared_memory, &dtensor};

const weft_cost_table *wf_cost_default(void)
{
    return &general;
}

weft_cost_table *wf_cost_built_in(const char *name)
{
    for (size_t i = 0; i < WF_COUNT(built_in); i++)
        if (strcmp(name, built_in[i]->name) == 0) return weft_cost_table_retain(built_in[i]);
    return NULL;
}

weft_status wf_cost_copy(const weft_cost_table *table, const char *name, weft_cost_table **out)
{
    weft_cost_table *copy = wf_calloc(1, sizeof *copy);
    size_t length = strlen(name);

    if (copy == NULL) return wf_fail_memory(sizeof *copy);
    if (length >= sizeof copy->name) length = sizeof copy->name - 1;
    memcpy(copy->name, name, length);
    memcpy(copy->rates, table->rates, sizeof copy->rates);
    copy->copy = table->copy;
    copy->pack = table->pack;
    copy->reduce = table->reduce;
    copy->flops = table->flops;
    copy->memory = table->memory;
    copy->one_sided = table->one_sided;
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
    return wf_hash_mix(h, table->one_sided);
}
