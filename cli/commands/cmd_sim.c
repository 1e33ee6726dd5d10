/* cmd_sim.c - `weft sim`: runs a plan for every rank in one thread and checks every element. */
#include "common/cli.h"

#include "common/memory.h"
#include "common/progress.h"
#include "redistribute/report.h"
#include "redistribute/values.h"

/* ---- memory ---- */

/* Bytes of the shards of all ranks. */
static uint64_t spec_bytes(const weft_spec *spec)
{
    const weft_mesh *mesh = weft_spec_mesh(spec);
    uint64_t bytes = 0, element = weft_dtype_bytes(weft_spec_dtype(spec));
    weft_shard shard;

    for (int32_t i = 0; i < weft_mesh_size(mesh); i++) {
        weft_spec_shard(spec, weft_mesh_rank_at(mesh, i), &shard);
        bytes = wf_add_capped(bytes, wf_mul_capped((uint64_t)shard.elements, element));
    }
    return bytes;
}

/* The most bytes that intermediate layouts take at a time.  Two layouts exist at a time, besides
 * source and target. */
static uint64_t between_bytes(const weft_plan *plan)
{
    uint64_t most = 0, last = 0;
    weft_plan_info info = {.struct_size = sizeof info};
    weft_plan_step_info step = {.struct_size = sizeof step};

    if (weft_plan_get(plan, &info) != WEFT_OK) return 0;
    for (uint32_t i = 0; i + 1 < info.steps && weft_plan_step_get(plan, i, &step) == WEFT_OK; i++) {
        uint64_t bytes = spec_bytes(step.to);
        if (wf_add_capped(last, bytes) > most) most = wf_add_capped(last, bytes);
        last = bytes;
    }
    return most;
}

static void add_amount(struct wf_text *text, const char *before, uint64_t bytes)
{
    wf_text_add(text, "%s", before);
    wf_text_bytes(text, bytes);
}

/* Returns WEFT_ERR_NO_MEMORY, with all amounts in the text, if PLAN needs more memory than is
 * free. */
static weft_status check_memory(const weft_plan *plan, const struct request *request)
{
    uint64_t source = spec_bytes(request->from), target = spec_bytes(request->to);
    uint64_t between = between_bytes(plan), free_bytes = cli_free_memory();
    uint64_t needed = wf_add_capped(wf_add_capped(source, target), between);
    struct wf_text text = {0};
    weft_status status;

    if (needed <= free_bytes) return WEFT_OK;
    add_amount(&text, "the simulation holds every rank's shards and needs ", needed);
    add_amount(&text, " of memory (source ", source);
    add_amount(&text, ", target ", target);
    add_amount(&text, ", between steps ", between);
    add_amount(&text, "), and ", free_bytes);
    wf_text_add(&text, " is free; a smaller --shape takes the same steps, and `weft plan` needs no "
                       "memory for elements");
    status = wf_text_status(&text);
    if (status == WEFT_OK) status = wf_fail(WEFT_ERR_NO_MEMORY, "%s", text.data);
    wf_text_free(&text);
    return status;
}

/* ---- the simulation ---- */

static weft_status simulate(const struct request *request, const weft_plan *plan,
                            struct report *report, struct shards *sources, struct shards *targets)
{
    struct values values = values_between(request->from, request->to);
    struct bench_times *times = &report->outcome.times;
    int32_t ranks = weft_mesh_size(request->mesh);
    uint64_t begun;
    weft_status status;

    report->work->total = work_elements(request->from) + WORK_CHECK * work_elements(request->to);
    work_begin(report->work, "filling the source of", ranks, 1);
    values.progress = work_add;
    values.user = report->work;
    for (int32_t i = 0; i < ranks; i++)
        values_fill(&values, request->from, weft_mesh_rank_at(request->mesh, i), NULL,
                    sources->at[i]);
    work_begin(report->work, "simulating the plan on", ranks, 1);
    begun = wf_now_ns();
    status = weft_simulate(plan, (const void *const *const *)&sources->at,
                           (void *const *const *)&targets->at);
    *times = (struct bench_times){.median_ns = wf_now_ns() - begun, .samples = 1, .calls = 1};
    times->min_ns = times->p99_ns = times->median_ns;
    return status;
}

static int carry_out(const struct cli_command *command, const struct cli_args *args,
                     const struct request *request)
{
    struct work work = {0};
    struct report report = {.request = request,
                            .work = &work,
                            .ranks = job_ranks_needed(request),
                            .simulated = true,
                            .form = cli_has(command, args, "json") ? PLAN_JSON : PLAN_LINES};
    struct shards sources = {0}, targets = {0};
    struct planned planned = {0};
    weft_status status =
        planned_find(request, &request->options, report.form == PLAN_JSON, &planned);
    int code;

    if (status == WEFT_OK) status = check_memory(planned.plan, request);
    if (status == WEFT_OK) status = job_describe(&planned, report.form, &report.plan);
    if (status == WEFT_OK) status = shards_make(request->from, &sources);
    if (status == WEFT_OK) status = shards_make(request->to, &targets);
    cli_progress_begin();
    if (status == WEFT_OK) status = simulate(request, planned.plan, &report, &sources, &targets);
    code = status == WEFT_OK ? report_results(command, args, &report, &targets) : CLI_NO;
    cli_progress_end();
    if (status != WEFT_OK) code = cli_fail(command, status);
    planned_free(&planned);
    wf_text_free(&report.plan);
    shards_free(&sources);
    shards_free(&targets);
    return code;
}

static int run(const struct cli_command *command, int argc, char **argv)
{
    struct request request;
    struct cli_args args;
    int code;

    if (!cli_parse(command, argc, argv, false, &args, &code)) return code;
    if (!request_read(command, &args, &request, &code)) return code;
    code = carry_out(command, &args, &request);
    request_free(&request);
    return code;
}

const struct cli_command cli_sim = {
    .name = "sim",
    .summary = "move a tensor between layouts for all ranks in one thread, and check it",
    .arguments = "--mesh M --from P --to P [--shape S] [options]",
    .example = "weft sim --mesh 32x32 --shape 100x100 --from \"S(0),S(1)\" --to \"S(1),S(0)\"",
    .page = "redistribution.md",
    .options = (const struct cli_option[]){REQUEST_OPTIONS,
                                           CLI_MESH_RANKS,
                                           {"dump", "DIR",
                                            "write each rank's result to "
                                            "DIR/rank-K.npy",
                                            0},
                                           CLI_JSON,
                                           {0}},
    .warns = true,
    .run = run,
};
