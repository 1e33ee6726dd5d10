/* job.c - see job.h. */
#include "redistribute/job.h"

#include "common/local_ranks.h"
#include "redistribute/values.h"
#include "timing/meeting.h"
#include "weft/exec.h"

enum { ROUNDS = 5 };

/* What ranks write to the command's pipe, in one piece: less than PIPE_BUF. */
struct message {
    int32_t rank;
    weft_status status; /* WEFT_OK: OUTCOME counts, else TEXT */
    struct job_outcome outcome;
    char text[1024];
};
_Static_assert(sizeof(struct message) <= 4096, "a message is written in one piece");

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
    uint64_t holders = 1, copies = 1, written;
    weft_shard shard;

    for (int32_t a = 0; a < weft_mesh_axes(mesh); a++) {
        if (p[a].kind != WEFT_PLACE_PARTIAL || (same && q[a].kind == WEFT_PLACE_PARTIAL)) continue;
        holders *= (uint64_t)weft_mesh_axis_size(mesh, a);
        if (same && q[a].kind == WEFT_PLACE_REPLICATE)
            copies *= (uint64_t)weft_mesh_axis_size(mesh, a);
    }
    weft_spec_shard(to, weft_mesh_rank_at(weft_spec_mesh(to), 0), &shard);
    written = (uint64_t)shard.elements * weft_dtype_bytes(weft_spec_dtype(to));
    return (written + written * holders / copies) / 2;
}

/* ---- one rank ---- */

struct rank {
    const struct job *job;
    weft_context *context;
    struct meeting meeting;
    weft_plan *plan;
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
    return weft_plan_create(request->from, request->to, &options, &rank->plan);
}

static uint64_t shard_bytes(const weft_spec *spec, int32_t rank)
{
    weft_shard shard;

    weft_spec_shard(spec, rank, &shard);
    return (uint64_t)shard.elements * weft_dtype_bytes(weft_spec_dtype(spec));
}

/* Through host memory, since the backend's may be a device's. */
static weft_status fill_source(struct rank *rank)
{
    void *host = wf_alloc((size_t)rank->source_bytes);
    weft_status status;

    if (host == NULL) return wf_fail_memory((size_t)rank->source_bytes);
    values_fill(&rank->values, rank->job->request->from, weft_rank(rank->context), NULL, host);
    status = weft_copy(rank->context, rank->source, host, rank->source_bytes, NULL);
    if (status == WEFT_OK) status = weft_stream_wait(rank->context, NULL, WEFT_FOREVER);
    wf_free(host);
    return status;
}

static weft_status prepare(struct rank *rank)
{
    const struct request *request = rank->job->request;
    weft_bind_options options = {.struct_size = sizeof options, .packed = rank->job->packed};
    int32_t me = weft_rank(rank->context);

    rank->source_bytes = shard_bytes(request->from, me);
    rank->target_bytes = shard_bytes(request->to, me);
    rank->values = values_between(request->from, request->to);
    WF_TRY(weft_alloc(rank->context, rank->source_bytes + 1, WEFT_MEMORY_DEVICE, &rank->source));
    WF_TRY(weft_alloc(rank->context, rank->target_bytes + 1, WEFT_MEMORY_DEVICE, &rank->target));
    WF_TRY(weft_fill(rank->context, rank->target, 0xa5, rank->target_bytes, NULL));
    WF_TRY(fill_source(rank));
    return weft_plan_bind(rank->plan, weft_world(rank->context), &options, &rank->bound);
}

static int redistribute(void *self)
{
    struct rank *rank = self;

    WF_TRY(weft_redistribute(rank->bound, rank->source, rank->target, NULL, NULL));
    return meeting_finish(&rank->meeting);
}

static weft_status hand_back(const struct rank *rank)
{
    const struct job *job = rank->job;
    int32_t place = shards_place(job->request->to, weft_rank(rank->context));

    if (job->results.at == NULL || place < 0) return WEFT_OK;
    WF_TRY(
        weft_copy(rank->context, job->results.at[place], rank->target, rank->target_bytes, NULL));
    return weft_stream_wait(rank->context, NULL, WEFT_FOREVER);
}

/* One round: redistributions, then memcpy.  Of both, the quietest round so far is kept. */
static int measure_round(struct rank *rank, const struct bench_ranks *ranks, uint64_t bytes,
                         struct job_outcome *out)
{
    const struct job *job = rank->job;
    uint64_t budget_ns = job->budget_ns / ROUNDS, limit_ns;
    struct bench_times times;
    double gbps = 0;
    int status = job->iters > 0 ? bench_repeat(ranks, redistribute, rank, job->iters, &times)
                                : bench_time(ranks, redistribute, rank, budget_ns, &times);

    if (status == 0 && bytes > 0) status = bench_memcpy(ranks, (size_t)bytes, budget_ns / 2, &gbps);
    if (status != 0) return status;
    limit_ns = gbps > 0 ? (uint64_t)((double)bytes * ranks->size / gbps) : 0;
    if (out->limit_ns == 0 || limit_ns < out->limit_ns) out->limit_ns = limit_ns;
    if (out->times.samples == 0 || times.median_ns < out->times.median_ns) out->times = times;
    return 0;
}

/* Other load of the machine comes and goes, so both are measured in turn. */
static weft_status measure(struct rank *rank, struct job_outcome *out)
{
    const struct job *job = rank->job;
    struct bench_ranks ranks = meeting_ranks(&rank->meeting);
    uint64_t bytes = job_copied_bytes(job->request->from, job->request->to);
    int status = 0;

    for (int round = 0; status == 0 && round < (job->iters > 0 ? 1 : ROUNDS); round++)
        status = measure_round(rank, &ranks, bytes, out);
    if (status == BENCH_NO_MEMORY) return wf_fail_memory((size_t)(2 * bytes));
    if (status != 0) return status;
    out->one_sided = !weft_bound_is_packed(rank->bound);
    out->scratch = weft_bound_scratch(rank->bound);
    return meeting_maximum(&rank->meeting, &out->scratch, 1);
}

static weft_status work(struct rank *rank, struct job_outcome *out)
{
    WF_TRY(meeting_open(&rank->meeting, rank->context, weft_world(rank->context)));
    snprintf(out->backend, sizeof out->backend, "%s", weft_context_plugin(rank->context)->name);
    WF_TRY(make_plan(rank));
    WF_TRY(weft_plan_print(rank->plan, out->plan, sizeof out->plan, NULL));
    WF_TRY(prepare(rank));
    WF_TRY(redistribute(rank));
    WF_TRY(hand_back(rank));
    WF_TRY(measure(rank, out));
    WF_TRY(weft_barrier(weft_world(rank->context), NULL));
    weft_bound_release(&rank->bound);
    weft_plan_release(&rank->plan);
    WF_TRY(weft_free(rank->context, rank->source));
    WF_TRY(weft_free(rank->context, rank->target));
    return meeting_close(&rank->meeting);
}

static weft_status rank_main(void *self, const weft_options *options, int fd)
{
    struct rank rank = {.job = self};
    struct message message = {.rank = options->rank};
    weft_status status = weft_init(options, &rank.context);

    if (status == WEFT_OK) {
        bench_pin(weft_local_rank(rank.context));
        status = work(&rank, &message.outcome);
    }
    message.status = status;
    if (status != WEFT_OK) snprintf(message.text, sizeof message.text, "%s", weft_last_error());
    if ((status != WEFT_OK || options->rank == 0) &&
        local_rank_send(fd, &message, sizeof message) != WEFT_OK)
        return WEFT_ERR_SYSTEM;
    if (status == WEFT_OK) weft_context_release(&rank.context);
    return status;
}

/* ---- the command ---- */

struct listening {
    struct job *job;
    struct job_outcome *out;
};

static weft_status start_rank(void *self, const weft_options *options, int fd)
{
    return rank_main(((struct listening *)self)->job, options, fd);
}

static weft_status collect(void *self, int fd)
{
    struct listening *listening = self;
    struct message message;
    weft_status status;

    while (local_ranks_receive(fd, &message, sizeof message, &status)) {
        if (message.status != WEFT_OK)
            return local_rank_fail(message.status, message.rank, message.text, sizeof message.text);
        *listening->out = message.outcome;
    }
    return status;
}

weft_status job_run(struct job *job, struct job_outcome *out)
{
    struct listening listening = {job, out};

    return local_ranks_run(job->ranks, job->backend, start_rank, collect, &listening);
}
