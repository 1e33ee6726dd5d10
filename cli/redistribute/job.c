/* job.c - see job.h. */
#include "redistribute/job.h"

#include "common/describe.h"
#include "common/local_ranks.h"
#include "redistribute/values.h"
#include "timing/rank_sync.h"
#include "weft/exec.h"
#include "weft/trace.h"

#include <string.h>

enum { ROUNDS = 5 };

/* ---- how much there is to do ---- */

static int32_t most_rank(const weft_mesh *mesh)
{
    int32_t most = 0;

    for (int32_t i = 0; i < weft_mesh_size(mesh); i++)
        if (weft_mesh_rank_at(mesh, i) > most) most = weft_mesh_rank_at(mesh, i);
    return most;
}

int64_t job_ranks_needed(const struct request *request)
{
    int64_t from = most_rank(request->mesh), to = most_rank(request->to_mesh);

    return (from > to ? from : to) + 1;
}

uint64_t job_copied_bytes(const weft_spec *from, const weft_spec *to)
{
    const weft_mesh *mesh = weft_spec_mesh(from);
    const weft_placement *p = weft_spec_placements(from), *q = weft_spec_placements(to);
    bool same = mesh == weft_spec_mesh(to);
    uint64_t holders = 1, copies = 1, read, written;
    weft_shard shard;

    for (int32_t a = 0; a < weft_mesh_axes(mesh); a++) {
        if (p[a].kind != WEFT_PLACE_PARTIAL || (same && q[a].kind == WEFT_PLACE_PARTIAL)) continue;
        holders *= (uint64_t)weft_mesh_axis_size(mesh, a);
        if (same && q[a].kind == WEFT_PLACE_REPLICATE)
            copies *= (uint64_t)weft_mesh_axis_size(mesh, a);
    }
    weft_spec_shard(to, weft_mesh_rank_at(weft_spec_mesh(to), 0), &shard);
    written = (uint64_t)shard.elements * weft_dtype_bytes(weft_spec_dtype(to));
    read = (uint64_t)shard.elements * weft_dtype_bytes(weft_spec_dtype(from));
    return (written + read * holders / copies) / 2;
}

/* ---- one rank ---- */

struct rank {
    const struct job *job;
    const struct local_rank *local;
    weft_context *context;
    struct rank_sync sync;
    struct planned planned;
    weft_bound *bound;
    struct values values;
    uint64_t source_bytes, target_bytes;
    void *source, *target;
};

static weft_status make_plan(struct rank *rank)
{
    const struct request *request = rank->job->request;
    weft_plan_options options = request->options;

    if (!rank->job->costs_given) options.costs = weft_context_costs(rank->context);
    return planned_find(request, &options, rank->job->form == PLAN_JSON, &rank->planned);
}

/* In rank 0, whose shard stands for all.  A message that is lost costs a step of the progress. */
static void send_progress(void *user, uint64_t elements)
{
    const struct rank *rank = user;

    (void)local_rank_send(rank->local, &elements, sizeof elements);
}

/* The values are computed in host memory, because the backend's may be memory of a device. */
static weft_status fill_source(struct rank *rank)
{
    void *host = wf_alloc((size_t)rank->source_bytes);
    weft_status status;

    if (host == NULL) return wf_fail_memory((size_t)rank->source_bytes);
    values_fill(&rank->values, rank->job->request->from, weft_rank(rank->context), NULL, host);
    status = weft_memory_copy(rank->context, host, rank->source, rank->source_bytes, NULL);
    if (status == WEFT_OK) status = weft_context_wait(rank->context, NULL, WEFT_FOREVER);
    wf_free(host);
    return status;
}

static weft_status prepare(struct rank *rank)
{
    const struct request *request = rank->job->request;
    weft_bind_options options = {.struct_size = sizeof options, .packed = rank->job->packed};
    int32_t me = weft_rank(rank->context);

    rank->source_bytes = weft_spec_shard_bytes(request->from, me);
    rank->target_bytes = weft_spec_shard_bytes(request->to, me);
    rank->values = values_between(request->from, request->to);
    if (me == 0 && rank->job->work != NULL) {
        rank->values.progress = send_progress;
        rank->values.user = rank;
    }
    WF_TRY(weft_alloc(rank->context, rank->source_bytes + 1, WEFT_MEMORY_DEVICE, &rank->source));
    WF_TRY(weft_alloc(rank->context, rank->target_bytes + 1, WEFT_MEMORY_DEVICE, &rank->target));
    WF_TRY(weft_memory_fill(rank->context, rank->target, 0xa5, rank->target_bytes, NULL));
    WF_TRY(fill_source(rank));
    return weft_plan_bind(rank->planned.plan, weft_world(rank->context), &options, &rank->bound);
}

static int redistribute(void *self)
{
    struct rank *rank = self;

    WF_TRY(weft_redistribute(rank->bound, rank->source, rank->target, NULL, NULL));
    return rank_sync_finish(&rank->sync);
}

static weft_status hand_back(const struct rank *rank)
{
    const struct job *job = rank->job;
    int32_t place = shards_place(job->request->to, weft_rank(rank->context));

    if (job->results.at == NULL || place < 0) return WEFT_OK;
    WF_TRY(weft_memory_copy(rank->context, rank->target, job->results.at[place], rank->target_bytes,
                            NULL));
    return weft_context_wait(rank->context, NULL, WEFT_FOREVER);
}

/* Count the operations of one more run, on all ranks. */
static weft_status count(struct rank *rank, struct tally *out)
{
    weft_record_counts *counts;
    struct tally mine = {.ranks = 0}, *all;
    int32_t size = weft_size(rank->context);
    weft_status status;

    WF_TRY(weft_record_counts_create(rank->context, &counts));
    status = weft_redistribute(rank->bound, rank->source, rank->target, NULL, NULL);
    if (status == WEFT_OK) status = weft_record_counts_end(counts);
    if (status == WEFT_OK) status = tally_add_counts(&mine, counts);
    weft_record_counts_release(&counts);
    if (status != WEFT_OK) return status;
    all = wf_alloc((size_t)size * sizeof *all);
    if (all == NULL) return wf_fail_memory((size_t)size * sizeof *all);
    status = rank_sync_gather(&rank->sync, &mine, all, sizeof mine);
    for (int32_t i = 0; i < size && status == WEFT_OK; i++)
        tally_add(out, &all[i]);
    wf_free(all);
    return status;
}

/* Measure redistributions, then memcpy.  OUT keeps the fastest round of each. */
static int measure_round(struct rank *rank, const struct bench_ranks *ranks, uint64_t bytes,
                         struct job_outcome *out)
{
    const struct job *job = rank->job;
    uint64_t budget_ns = job->budget_ns / ROUNDS, limit_ns; /* two thirds for redistributions */
    struct bench_times times;
    double gbps = 0;
    int status = job->iters > 0 ? bench_repeat(ranks, redistribute, rank, job->iters, &times)
                                : bench_time(ranks, redistribute, rank, budget_ns * 2 / 3, &times);

    if (status == 0 && bytes > 0) status = bench_memcpy(ranks, (size_t)bytes, budget_ns / 3, &gbps);
    if (status != 0) return status;
    /* The rate is that of all ranks of the job; only ranks of the target's mesh write. */
    limit_ns =
        gbps > 0
            ? (uint64_t)((double)bytes * weft_mesh_size(weft_spec_mesh(job->request->to)) / gbps)
            : 0;
    if (out->limit_ns == 0 || limit_ns < out->limit_ns) out->limit_ns = limit_ns;
    if (out->times.samples == 0 || times.median_ns < out->times.median_ns) out->times = times;
    return 0;
}

/* Redistribution and memcpy are measured in turn, so that other load of the machine affects
 * both.  A round that would begin after the budget is left out. */
static weft_status measure(struct rank *rank, struct job_outcome *out)
{
    const struct job *job = rank->job;
    struct bench_ranks ranks = rank_sync_ranks(&rank->sync);
    uint64_t bytes = job_copied_bytes(job->request->from, job->request->to);
    uint64_t begin = wf_now_ns(), spent = 0;
    int status = 0, rounds = job->iters > 0 ? 1 : ROUNDS;

    for (int round = 0; status == 0 && round < rounds && (round == 0 || spent < job->budget_ns);
         round++) {
        status = measure_round(rank, &ranks, bytes, out);
        spent = wf_now_ns() - begin;
        if (status == 0) status = rank_sync_maximum(&rank->sync, &spent, 1);
    }
    if (status == BENCH_NO_MEMORY) return wf_fail_memory((size_t)(2 * bytes));
    if (status != 0) return status;
    out->one_sided = !weft_bound_is_packed(rank->bound);
    out->scratch = weft_bound_scratch(rank->bound);
    return rank_sync_maximum(&rank->sync, &out->scratch, 1);
}

weft_status job_describe(const struct planned *planned, enum plan_form form, struct wf_text *out)
{
    if (form == PLAN_JSON) return planned_add_members(planned, out);
    WF_TEXT_PRINT(out, weft_plan_print, planned->plan);
    return wf_text_status(out);
}

/* Rank 0 sends the outcome, then the plan.  Before, it sends numbers of elements (send_progress).
 */
static weft_status send_outcome(const struct rank *rank, const struct local_rank *local,
                                const struct job_outcome *outcome)
{
    struct wf_text text = {0};
    weft_status status = local_rank_send(local, outcome, sizeof *outcome);

    if (status == WEFT_OK && rank->job->form != PLAN_NONE) {
        status = job_describe(&rank->planned, rank->job->form, &text);
        if (status == WEFT_OK) status = local_rank_send(local, text.data, text.length);
    }
    wf_text_free(&text);
    return status;
}

/* ---- the command ---- */

struct run {
    const struct job *job;
    struct job_outcome *outcome;
    struct wf_text *plan;
    bool has_outcome;
};

static weft_status work(void *self, weft_context *context, const struct local_rank *local)
{
    struct rank rank = {.job = ((const struct run *)self)->job, .local = local, .context = context};
    struct job_outcome outcome = {0};

    WF_TRY(rank_sync_open(&rank.sync, context, weft_world(context)));
    snprintf(outcome.backend, sizeof outcome.backend, "%s", weft_context_plugin(context)->name);
    WF_TRY(make_plan(&rank));
    WF_TRY(prepare(&rank));
    WF_TRY(redistribute(&rank));
    WF_TRY(hand_back(&rank));
    if (rank.job->counted) WF_TRY(count(&rank, &outcome.tally));
    WF_TRY(measure(&rank, &outcome));
    WF_TRY(weft_barrier(weft_world(context), NULL));
    if (weft_rank(context) == 0) WF_TRY(send_outcome(&rank, local, &outcome));
    weft_bound_release(&rank.bound);
    planned_free(&rank.planned);
    WF_TRY(weft_free(context, rank.source));
    WF_TRY(weft_free(context, rank.target));
    return rank_sync_close(&rank.sync);
}

static weft_status receive(void *self, const void *message, size_t bytes)
{
    struct run *run = self;

    if (!run->has_outcome && bytes == sizeof(uint64_t)) {
        uint64_t elements;
        memcpy(&elements, message, sizeof elements);
        work_add(run->job->work, elements);
        return WEFT_OK;
    }
    if (run->has_outcome)
        wf_text_append(run->plan, message, bytes);
    else
        memcpy(run->outcome, message, sizeof *run->outcome);
    run->has_outcome = true;
    return run->plan != NULL ? wf_text_status(run->plan) : WEFT_OK;
}

weft_status job_run(const struct job *job, struct job_outcome *out, struct wf_text *plan)
{
    struct run run = {.job = job, .outcome = out, .plan = plan};
    struct local_job local = {.self = &run, .work = work, .receive = receive};

    return local_ranks_run(job->ranks, job->backend, &local);
}
