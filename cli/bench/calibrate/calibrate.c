/* calibrate.c - see calibrate.h.
 *
 * Local work is measured first, and compute if it is the host's.  Then each kind of step runs as a
 * plan of one step, on two ranks and on all ranks, with a small and a large tensor.  The times
 * without the local work give the latency per rank and the time per byte. */
#include "bench/calibrate/calibrate.h"

#include "bench/calibrate/compute.h"
#include "timing/rank_sync.h"

#include <stdio.h>
#include <string.h>

enum { LARGE_BYTES = 16 << 20, ROW_BYTES = 8192, MAX_RANKS = 1024 };

struct session {
    weft_context *context;
    struct rank_sync sync;
    uint64_t budget_ns;
    struct cost_sheet *sheet;
    bool on_host;           /* the backend's memory is that of the host */
    weft_cost_table *local; /* the costs of local work from SHEET; other costs are 0 */
    void (*progress)(void *self, const char *what);
    void *progress_self;
};

static void tell(const struct session *s, const char *what)
{
    s->progress(s->progress_self, what);
}

/* A timed operation. */
struct timed {
    struct session *session;
    weft_bound *bound;
    void *source, *target, *regions;
    weft_status (*run)(struct timed *);
};

/* ---- timing ---- */

static int run_once(void *self)
{
    struct timed *timed = self;

    WF_TRY(timed->run(timed));
    return rank_sync_finish(&timed->session->sync);
}

static weft_status measure(struct timed *timed, uint64_t *ns)
{
    struct session *s = timed->session;
    struct bench_ranks ranks = rank_sync_ranks(&s->sync);
    struct bench_times times;
    int status = bench_time(&ranks, run_once, timed, s->budget_ns, &times);

    if (status == BENCH_NO_MEMORY) return wf_fail_memory(0);
    if (status != 0) return status;
    *ns = times.min_ns; /* the minimum: other load of the machine is not a cost of the step */
    return WEFT_OK;
}

/* ---- local work ---- */

static weft_status run_copy(struct timed *timed)
{
    return weft_memory_copy(timed->session->context, timed->source, timed->target, LARGE_BYTES,
                            NULL);
}

static weft_status run_regions(struct timed *timed)
{
    const weft_kernel_table *kernel = weft_context_plugin(timed->session->context)->kernel;
    const void *source = timed->source;

    return kernel->regions_copy(timed->regions, &source, &timed->target, NULL);
}

static weft_status run_reduce(struct timed *timed)
{
    weft_context *context = timed->session->context;
    const void *sources[] = {timed->source, (const char *)timed->source + LARGE_BYTES / 2};

    return weft_context_plugin(context)->kernel->reduce(
        weft_context_device(context), WEFT_DTYPE_F32, WEFT_REDUCE_SUM, LARGE_BYTES / 8, 2, sources,
        timed->target, NULL);
}

static weft_status measure_regions(struct timed *timed, const weft_region *region, uint64_t *ns)
{
    weft_context *context = timed->session->context;
    const weft_kernel_table *kernel = weft_context_plugin(context)->kernel;
    weft_status status;

    WF_TRY(kernel->regions_create(weft_context_device(context), 4, 1, region, &timed->regions));
    timed->run = run_regions;
    status = measure(timed, ns);
    kernel->regions_destroy(timed->regions);
    return status;
}

static uint64_t per_byte(uint64_t ns, uint64_t bytes)
{
    return ns * 1000000 / bytes;
}

/* Measure a copy, the packing of every other row, the reduction of two operands, and the
 * start-up time of each. */
static weft_status time_local(struct timed *timed)
{
    struct cost_sheet *sheet = timed->session->sheet;
    int64_t row = ROW_BYTES / 4, rows = LARGE_BYTES / 2 / ROW_BYTES;
    weft_region packed = {
        .dims = 2, .extent = {rows, row}, .source_stride = {2 * row, 1}, .target_stride = {row, 1}};
    weft_region least = {.dims = 1, .extent = {16}, .source_stride = {1}, .target_stride = {1}};
    uint64_t ns = 0, base = 0;

    timed->run = run_copy;
    WF_TRY(measure(timed, &ns));
    sheet->copy = per_byte(ns, LARGE_BYTES);
    WF_TRY(measure_regions(timed, &packed, &ns));
    sheet->pack = per_byte(ns, LARGE_BYTES / 2);
    timed->run = run_reduce;
    WF_TRY(measure(timed, &ns));
    sheet->reduce = per_byte(ns, LARGE_BYTES);
    WF_TRY(measure_regions(timed, &least, &base));
    for (int link = 0; link < COST_LINKS; link++) {
        sheet->rates[WEFT_STEP_SLICE][link] = (struct cost_rate){.base_ns = base};
        sheet->rates[WEFT_STEP_PARTIAL][link] = (struct cost_rate){.base_ns = base};
    }
    return WEFT_OK;
}

/* ---- compute of the host ---- */

static weft_status run_product(struct timed *timed)
{
    const float *a = timed->source, *b = a + COMPUTE_SIDE * COMPUTE_SIDE;

    compute_product(a, b, timed->target);
    return WEFT_OK;
}

static weft_status run_sum(struct timed *timed)
{
    compute_sum(timed->source, timed->target, LARGE_BYTES / sizeof(float));
    return WEFT_OK;
}

/* The rates of all ranks at once, which share caches and memory. */
static weft_status time_compute(struct timed *timed)
{
    struct cost_sheet *sheet = timed->session->sheet;
    uint64_t ns = 0;

    tell(timed->session, "compute of one rank");
    timed->run = run_product;
    WF_TRY(measure(timed, &ns));
    sheet->flops = compute_product_flops() * 1000 / (ns > 0 ? ns : 1);
    timed->run = run_sum;
    WF_TRY(measure(timed, &ns));
    sheet->memory = per_byte(ns, compute_sum_bytes(LARGE_BYTES / sizeof(float)));
    return WEFT_OK;
}

static weft_status measure_local(struct session *s)
{
    const weft_kernel_table *kernel = weft_context_plugin(s->context)->kernel;
    struct timed timed = {.session = s};
    struct cost_sheet local;
    weft_status status;

    if (kernel == NULL || !WF_HAS(kernel, regions_create) || !WF_HAS(kernel, reduce))
        return wf_fail(WEFT_ERR_UNSUPPORTED, "backend %s has no kernels to measure",
                       weft_context_plugin(s->context)->name);
    WF_TRY(weft_alloc(s->context, LARGE_BYTES, WEFT_MEMORY_DEVICE, &timed.source));
    WF_TRY(weft_alloc(s->context, LARGE_BYTES, WEFT_MEMORY_DEVICE, &timed.target));
    WF_TRY(weft_memory_fill(s->context, timed.source, 0, LARGE_BYTES, NULL));
    WF_TRY(weft_memory_fill(s->context, timed.target, 0, LARGE_BYTES, NULL));
    tell(s, "copies and reductions of one rank");
    status = time_local(&timed);
    if (status == WEFT_OK && s->on_host) status = time_compute(&timed);
    if (status != WEFT_OK) return status;
    local = *s->sheet;
    memset(local.rates, 0, sizeof local.rates);
    WF_TRY(cost_sheet_table(&local, &s->local));
    WF_TRY(weft_free(s->context, timed.source));
    return weft_free(s->context, timed.target);
}

/* ---- steps ---- */

static const struct probe {
    uint32_t kind;
    const char *from, *to;
} probes[] = {
    {WEFT_STEP_ALL_GATHER, "S(0)", "R"},  {WEFT_STEP_REDUCE_SCATTER, "P", "S(0)"},
    {WEFT_STEP_ALL_REDUCE, "P", "R"},     {WEFT_STEP_ALL_TO_ALL, "S(0)", "S(1)"},
    {WEFT_STEP_EXCHANGE, "S(0)", "S(1)"}, {WEFT_STEP_BROADCAST, "O(0)", "R"},
    {WEFT_STEP_REDUCE, "P", "O(0)"},
};
_Static_assert(WF_COUNT(probes) == CALIBRATED_STEPS, "the number that calibrate.h states");

static weft_status run_bound(struct timed *timed)
{
    return weft_redistribute(timed->bound, timed->source, timed->target, NULL, NULL);
}

/* Plan the one step of the probe on RANKS ranks, for a square tensor with SIDE rows. */
static weft_status plan_probe(const struct session *s, const struct probe *probe, int32_t ranks,
                              int64_t side, weft_plan **out)
{
    weft_plan_options options = {
        .struct_size = sizeof options, .costs = s->local, .without = ~(UINT32_C(1) << probe->kind)};
    weft_spec *from = NULL, *to = NULL;
    weft_mesh *mesh = NULL;
    char text[96];
    weft_status status;

    WF_TRY(weft_mesh_create(1, &ranks, NULL, &mesh));
    snprintf(text, sizeof text, "f32[%lld,%lld] %s", (long long)side, (long long)side, probe->from);
    status = weft_spec_parse(mesh, text, &from);
    snprintf(text, sizeof text, "f32[%lld,%lld] %s", (long long)side, (long long)side, probe->to);
    if (status == WEFT_OK) status = weft_spec_parse(mesh, text, &to);
    if (status == WEFT_OK) status = weft_plan_create(from, to, &options, out);
    weft_spec_release(&from);
    weft_spec_release(&to);
    weft_mesh_release(&mesh);
    return status;
}

struct taken {
    uint64_t ns, received, local_ns;
};

static weft_status run_probe(struct session *s, const struct probe *probe, weft_comm *comm,
                             int64_t side, struct taken *out)
{
    struct timed timed = {.session = s, .run = run_bound};
    uint64_t bytes = (uint64_t)side * (uint64_t)side * 4;
    weft_plan_step_info step = {.struct_size = sizeof step};
    weft_plan *plan = NULL;
    weft_status status;

    WF_TRY(plan_probe(s, probe, weft_comm_size(comm), side, &plan));
    WF_TRY(weft_plan_step_get(plan, 0, &step));
    out->received = step.bytes_received;
    out->local_ns = step.cost_ns;
    status = weft_alloc(s->context, bytes, WEFT_MEMORY_DEVICE, &timed.source);
    if (status == WEFT_OK)
        status = weft_alloc(s->context, bytes, WEFT_MEMORY_DEVICE, &timed.target);
    if (status == WEFT_OK) status = weft_memory_fill(s->context, timed.source, 0, bytes, NULL);
    if (status == WEFT_OK) status = weft_plan_bind(plan, comm, NULL, &timed.bound);
    if (status == WEFT_OK) status = measure(&timed, &out->ns);
    weft_bound_release(&timed.bound);
    weft_plan_release(&plan);
    if (status != WEFT_OK) return status; /* the process ends now: nothing need be freed */
    WF_TRY(weft_free(s->context, timed.source));
    return weft_free(s->context, timed.target);
}

static uint64_t less(uint64_t a, uint64_t b)
{
    return a > b ? a - b : 0;
}

/* ---- groups of ranks ---- */

/* The costs of a kind of step on RANKS ranks. */
struct line {
    int64_t ranks;
    uint64_t latency_ns, femtoseconds;
};

static weft_status time_group(struct session *s, weft_comm *comm, struct line *lines)
{
    struct rank_sync world = s->sync;
    int64_t ranks = weft_comm_size(comm), side = 2048 / ranks * ranks;
    weft_status status = rank_sync_open(&s->sync, s->context, comm);

    for (size_t i = 0; i < WF_COUNT(probes) && status == WEFT_OK; i++) {
        struct taken small = {0}, large = {0};
        char what[64];
        snprintf(what, sizeof what, "%s on %d ranks", weft_step_name(probes[i].kind), (int)ranks);
        tell(s, what);
        status = run_probe(s, &probes[i], comm, ranks, &small);
        if (status == WEFT_OK) status = run_probe(s, &probes[i], comm, side, &large);
        lines[i].ranks = ranks;
        lines[i].latency_ns = small.ns;
        if (large.received > 0)
            lines[i].femtoseconds =
                per_byte(less(large.ns, small.ns + large.local_ns), large.received);
    }
    if (status == WEFT_OK) status = rank_sync_close(&s->sync);
    s->sync = world;
    return status;
}

/* Measure on the first COUNT of RANKS.  The other ranks of the job wait. */
static weft_status measure_group(struct session *s, const int32_t *ranks, int32_t count,
                                 struct line *lines)
{
    weft_comm *world = weft_world(s->context), *comm = NULL;
    weft_status status = weft_comm_create(world, (size_t)count, ranks, NULL, &comm);

    if (status == WEFT_OK && comm != NULL) status = time_group(s, comm, lines);
    weft_comm_release(&comm);
    if (status != WEFT_OK) return status;
    return weft_barrier(world, NULL);
}

/* The latency per rank is the difference between two groups.  With two ranks there is one group,
 * and half of its latency counts per rank. */
static void set_rates(struct cost_sheet *sheet, uint32_t link, const struct line *two,
                      const struct line *all)
{
    for (size_t i = 0; i < WF_COUNT(probes); i++) {
        struct cost_rate *rate = &sheet->rates[probes[i].kind][link];
        uint64_t ways = probes[i].kind == WEFT_STEP_ALL_REDUCE ? 2 : 1;
        uint64_t more = (uint64_t)(all[i].ranks - two[i].ranks);
        rate->peer_ns = more > 0 ? less(all[i].latency_ns, two[i].latency_ns) / (ways * more)
                                 : two[i].latency_ns / (2 * ways);
        rate->base_ns = less(two[i].latency_ns, ways * rate->peer_ns);
        rate->femtoseconds = all[i].femtoseconds > 0 ? all[i].femtoseconds : 1;
    }
    sheet->rates[WEFT_STEP_PERMUTE][link] = sheet->rates[WEFT_STEP_EXCHANGE][link];
}

static weft_status measure_link(struct session *s, uint32_t link, const int32_t *ranks,
                                int32_t count, bool *measured)
{
    struct line two[WF_COUNT(probes)] = {{0}}, all[WF_COUNT(probes)] = {{0}};

    *measured = count >= 2;
    if (count < 2) return WEFT_OK;
    WF_TRY(measure_group(s, ranks, 2, two));
    if (count > 2)
        WF_TRY(measure_group(s, ranks, count, all));
    else
        memcpy(all, two, sizeof all);
    if (weft_rank(s->context) == 0) set_rates(s->sheet, link, two, all);
    return WEFT_OK;
}

/* The ranks on rank 0's host, and the first rank of every host. */
static void list_ranks(const weft_comm *world, int32_t *near, int32_t *near_count, int32_t *far,
                       int32_t *far_count)
{
    *near_count = *far_count = 0;
    for (int32_t rank = 0; rank < weft_comm_size(world) && rank < MAX_RANKS; rank++) {
        bool first = true;
        for (int32_t before = 0; before < rank; before++)
            first = first && !weft_comm_same_host(world, before, rank);
        if (first) far[(*far_count)++] = rank;
        if (weft_comm_same_host(world, 0, rank)) near[(*near_count)++] = rank;
    }
}

static weft_status measure_all(struct session *s, struct calibration *out)
{
    int32_t near[MAX_RANKS], far[MAX_RANKS], near_count, far_count;
    weft_comm *world = weft_world(s->context);

    list_ranks(world, near, &near_count, far, &far_count);
    out->ranks = weft_size(s->context);
    out->hosts = far_count;
    WF_TRY(rank_sync_open(&s->sync, s->context, world));
    WF_TRY(measure_local(s));
    WF_TRY(measure_link(s, COST_WITHIN_HOST, near, near_count, &out->measured[COST_WITHIN_HOST]));
    WF_TRY(measure_link(s, COST_BETWEEN_HOSTS, far, far_count, &out->measured[COST_BETWEEN_HOSTS]));
    return rank_sync_close(&s->sync);
}

/* Read the built-in table that supplies the numbers that are not measured. */
static weft_status read_base(weft_context *context, const char *name, struct cost_sheet *out)
{
    const weft_plugin *plugin = weft_context_plugin(context);
    weft_cost_table *base = NULL;
    weft_status status;

    WF_TRY(weft_cost_table_open(name, &base));
    status = cost_sheet_read(base, out);
    weft_cost_table_release(&base);
    snprintf(out->name, sizeof out->name, "%.20s-calibrated", plugin->name);
    out->one_sided = WF_HAS(plugin->comm, pull);
    return status;
}

weft_status calibrate(weft_context *context, uint64_t budget_ns, struct calibration *out)
{
    struct cost_sheet sheet;
    struct session s = {.context = context,
                        .budget_ns = budget_ns,
                        .sheet = &sheet,
                        .progress = out->progress,
                        .progress_self = out->progress_self};
    weft_device_info device = {.struct_size = sizeof device};
    weft_status status;

    WF_TRY(weft_device_get(context, &device));
    s.on_host = out->computed = (device.features & WEFT_FEATURE_HOST_MEMORY) != 0;
    snprintf(out->base, sizeof out->base, "%s",
             WF_HAS(weft_context_plugin(context)->comm, pull) && s.on_host ? "cpu" : "default");
    WF_TRY(read_base(context, out->base, &sheet));
    status = measure_all(&s, out);
    weft_cost_table_release(&s.local);
    return status == WEFT_OK ? cost_sheet_table(&sheet, &out->table) : status;
}
