/* report.c - see report.h. */
#include "redistribute/report.h"

#include "redistribute/values.h"

/* Bytes that all ranks write, by the nanosecond. */
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

static void add_placements(struct wf_text *text, const weft_spec *spec)
{
    wf_placements_add_text(weft_spec_placements(spec), weft_mesh_axes(weft_spec_mesh(spec)), text);
}

static void json_text(struct wf_json *json, const char *key, struct wf_text *text)
{
    wf_json_string(json, key, text->data);
    wf_text_free(text);
}

static void json_request(struct wf_json *json, const struct request *request)
{
    struct wf_text from = {0}, to = {0}, mesh = {0}, to_mesh = {0}, shape = {0};

    add_placements(&from, request->from);
    json_text(json, "from", &from);
    add_placements(&to, request->to);
    json_text(json, "to", &to);
    wf_mesh_add_text(request->mesh, &mesh);
    json_text(json, "mesh", &mesh);
    wf_mesh_add_text(request->to_mesh, &to_mesh);
    json_text(json, "to_mesh", &to_mesh);
    wf_shape_add_text(weft_spec_dims(request->from), weft_spec_shape(request->from), &shape);
    json_text(json, "shape", &shape);
    wf_json_string(json, "dtype", weft_dtype_name(weft_spec_dtype(request->from)));
}

static void add_json(struct wf_text *text, const struct report *report)
{
    struct wf_json json = {.out = text};
    const struct job_outcome *outcome = &report->outcome;

    wf_json_begin(&json, NULL, '{');
    json_request(&json, report->request);
    wf_json_int(&json, "ranks", report->ranks);
    wf_json_string(&json, "backend", report->simulated ? NULL : outcome->backend);
    wf_json_bool(&json, "right", true);
    wf_json_uint(&json, "median_ns", outcome->times.median_ns);
    wf_json_uint(&json, "min_ns", outcome->times.min_ns);
    wf_json_uint(&json, "runs", outcome->times.samples * outcome->times.calls);
    if (!report->simulated) {
        wf_json_uint(&json, "limit_ns", outcome->limit_ns);
        wf_json_real(&json, "gbps", gbps(report));
        wf_json_uint(&json, "scratch_bytes", outcome->scratch);
        wf_json_bool(&json, "one_sided", outcome->one_sided);
    }
    wf_json_end(&json, '}');
    wf_text_char(text, '\n');
}

static void add_time(struct wf_text *text, const struct report *report)
{
    const struct job_outcome *outcome = &report->outcome;

    wf_text_time(text, outcome->times.median_ns);
    if (report->simulated) {
        wf_text_add(text, " to simulate\n");
        return;
    }
    wf_text_add(text, " per run, %.2f GB/s written by all ranks together\n", gbps(report));
    if (outcome->limit_ns == 0) return;
    wf_text_add(text, "memcpy of what must be read and written takes ");
    wf_text_time(text, outcome->limit_ns);
    wf_text_add(text, ": %.0f %% of its speed\n",
                100 * (double)outcome->limit_ns /
                    (double)(outcome->times.median_ns > 0 ? outcome->times.median_ns : 1));
}

static void add_words(struct wf_text *text, const struct report *report)
{
    const struct request *request = report->request;

    wf_text_add(text, "%s%s", report->outcome.plan,
                report->outcome.plan[0] == '\0' ? "nothing to do\n" : "");
    wf_text_add(text, "every element of %s", weft_dtype_name(weft_spec_dtype(request->from)));
    wf_shape_add_text(weft_spec_dims(request->from), weft_spec_shape(request->from), text);
    wf_text_add(text, " is right on all %d ranks of ", weft_mesh_size(request->to_mesh));
    wf_mesh_add_text(request->to_mesh, text);
    if (!report->simulated)
        wf_text_add(text, ", by %s, %s", report->outcome.backend,
                    report->outcome.one_sided ? "one-sided" : "packed");
    wf_text_char(text, '\n');
    add_time(text, report);
}

int report_results(const struct cli_command *command, const struct cli_args *args,
                   const struct report *report, const struct shards *results)
{
    const struct request *request = report->request;
    struct values values = values_between(request->from, request->to);
    const char *directory = cli_value(command, args, "dump");
    struct wf_text text = {0};

    if (directory != NULL && shards_dump(request->to, results, directory) != WEFT_OK)
        return cli_fail(command);
    if (values_check(&values, request->to, (const void *const *)results->at) != WEFT_OK)
        return cli_fail(command);
    if (cli_has(command, args, "json"))
        add_json(&text, report);
    else
        add_words(&text, report);
    return cli_print(command, stdout, &text);
}
