/* report.c - see report.h. */
#include "redistribute/report.h"

#include "common/describe.h"
#include "common/progress.h"
#include "redistribute/values.h"

/* Bytes that all ranks write per nanosecond. */
static double gbps(const struct report *report)
{
    const weft_spec *to = report->request->to;
    uint64_t bytes = 0, ns = report->outcome.times.median_ns;
    weft_shard shard;

    for (int32_t i = 0; i < weft_mesh_size(report->request->to_mesh); i++) {
        weft_spec_shard(to, weft_mesh_rank_at(report->request->to_mesh, i), &shard);
        bytes += (uint64_t)shard.elements * weft_dtype_bytes(weft_spec_dtype(to));
    }
    return (double)bytes / (double)(ns > 0 ? ns : 1);
}

/* Add the members that a simulation does not have; it has null. */
static void add_json_ranks(struct wf_json *json, const struct report *report)
{
    static const char *const keys[] = {"backend", "limit_ns", "gbps", "scratch_bytes", "one_sided"};
    const struct job_outcome *outcome = &report->outcome;

    for (size_t i = 0; report->simulated && i < WF_COUNT(keys); i++)
        wf_json_null(json, keys[i]);
    if (report->simulated) return;
    wf_json_string(json, "backend", outcome->backend);
    wf_json_uint(json, "limit_ns", outcome->limit_ns);
    wf_json_real(json, "gbps", gbps(report));
    wf_json_uint(json, "scratch_bytes", outcome->scratch);
    wf_json_bool(json, "one_sided", outcome->one_sided);
}

static void add_json(struct wf_text *text, const struct report *report)
{
    struct wf_json json = {.out = text};
    const struct job_outcome *outcome = &report->outcome;

    planned_begin_json(&json, &report->plan);
    wf_json_int(&json, "ranks", report->ranks);
    wf_json_bool(&json, "right", true);
    wf_json_uint(&json, "median_ns", outcome->times.median_ns);
    wf_json_uint(&json, "min_ns", outcome->times.min_ns);
    wf_json_uint(&json, "runs", outcome->times.samples * outcome->times.calls);
    add_json_ranks(&json, report);
    if (outcome->tally.ranks > 0) {
        wf_json_begin(&json, "counts", '{');
        tally_print_json(&outcome->tally, &json);
        wf_json_end(&json, '}');
    }
    wf_json_end(&json, '}');
    wf_text_char(text, '\n');
}

/* Below this the overhead of the clock dominates. */
enum { COMPARABLE_NS = 1000 };

/* Add the comparison with memcpy by the same ranks at the same time, on the same cores. */
static void add_comparison(struct wf_text *text, const struct report *report)
{
    const struct job_outcome *outcome = &report->outcome;

    if (outcome->limit_ns < COMPARABLE_NS || outcome->times.min_ns < COMPARABLE_NS) return;
    wf_text_add(text, "memcpy of the same bytes by %d rank%s at once takes ", (int)report->ranks,
                WF_PLURAL(report->ranks));
    wf_text_time(text, outcome->limit_ns);
    wf_text_add(text, ": %.0f %% of its speed (minimum), %.0f %% (median)\n",
                100 * (double)outcome->limit_ns / (double)outcome->times.min_ns,
                100 * (double)outcome->limit_ns / (double)outcome->times.median_ns);
}

static void add_time(struct wf_text *text, const struct report *report)
{
    const struct job_outcome *outcome = &report->outcome;

    if (report->simulated) {
        wf_text_time(text, outcome->times.median_ns);
        wf_text_add(text, " to simulate\n");
        return;
    }
    wf_text_time(text, outcome->times.min_ns);
    wf_text_add(text, " per run at the minimum, ");
    wf_text_time(text, outcome->times.median_ns);
    wf_text_add(text, " at the median, %.2f GB/s written by all ranks together\n", gbps(report));
    add_comparison(text, report);
}

static void add_words(struct wf_text *text, const struct report *report)
{
    const struct request *request = report->request;
    int32_t size = weft_mesh_size(request->to_mesh);

    wf_text_append(text, report->plan.data, report->plan.length);
    wf_text_add(text, "every element of %s", weft_dtype_name(weft_spec_dtype(request->to)));
    describe_shape(weft_spec_dims(request->from), weft_spec_shape(request->from), text);
    wf_text_add(text, " is right on %s%d rank%s of ", size == 1 ? "" : "all ", size,
                WF_PLURAL(size));
    wf_text_mesh(text, request->to_mesh);
    if (!report->simulated) {
        wf_text_add(text, ", by %s, %s, with ", report->outcome.backend,
                    report->outcome.one_sided ? "one-sided" : "packed");
        wf_text_bytes(text, report->outcome.scratch);
        wf_text_add(text, " of scratch");
    }
    wf_text_char(text, '\n');
    add_time(text, report);
    if (report->outcome.tally.ranks > 0) {
        wf_text_add(text, "one run: ");
        tally_print(&report->outcome.tally, text);
    }
}

int report_results(const struct cli_command *command, const struct cli_args *args,
                   const struct report *report, const struct shards *results)
{
    const struct request *request = report->request;
    struct values values = values_between(request->from, request->to);
    const char *directory = cli_value(command, args, "dump");
    struct wf_text text = {0};
    weft_status status = WEFT_OK;

    values.progress = work_add;
    values.user = report->work;
    if (directory != NULL) status = shards_dump(request->to, results, directory);
    if (status == WEFT_OK)
        work_begin(report->work, "checking every element of", weft_mesh_size(request->to_mesh),
                   WORK_CHECK);
    if (status == WEFT_OK)
        status = values_check(&values, request->to, (const void *const *)results->at);
    cli_progress_end();
    if (status != WEFT_OK) return cli_fail(command, status);
    if (report->form == PLAN_JSON)
        add_json(&text, report);
    else
        add_words(&text, report);
    return cli_print(command, stdout, &text);
}
