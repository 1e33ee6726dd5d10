/* cmd_cp.c - `weft cp`: what each rank holds and computes in context parallel. */
#include "common/cli.h"
#include "common/progress.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static const char *const masks[] = {"full", "causal", "window"};
static const char *const balances[] = {"contiguous", "head-tail", "per-document"};
static const char *const variants[] = {"ring", "gather", "heads"};

enum { SHOWN_RUNS = 6, SHOWN_RANKS = 64 };

/* ---- options ---- */

/* Read option NAME as one of COUNT names; the first one if it is absent. */
static bool read_name(const struct cli_command *command, const struct cli_args *args,
                      const char *name, const char *const *names, size_t count, uint32_t *out)
{
    const char *value = cli_value(command, args, name);
    struct wf_text known = {0};

    for (size_t i = 0; i < count; i++) {
        if (value == NULL || strcmp(value, names[i]) == 0) {
            *out = (uint32_t)i;
            wf_text_free(&known);
            return true;
        }
        wf_text_add(&known, "%s%s", i > 0 ? ", " : "", names[i]);
    }
    cli_complain(command, "--%s %s is not one of %s", name, value,
                 known.data != NULL ? known.data : "");
    wf_text_free(&known);
    return false;
}

/* Read "4,8,4".  The caller frees *OUT. */
static bool read_documents(const struct cli_command *command, const char *text, int64_t **out,
                           size_t *count)
{
    int64_t *lengths = wf_calloc(strlen(text) / 2 + 1, sizeof *lengths);
    char *end;

    *count = 0;
    for (const char *at = text; lengths != NULL; at = end + 1) {
        errno = 0;
        lengths[*count] = strtoll(at, &end, 10);
        if (end == at || errno != 0 || (*end != ',' && *end != '\0')) break;
        ++*count;
        if (*end == '\0') {
            *out = lengths;
            return true;
        }
    }
    cli_complain(command, "--documents %s is not a list of lengths, such as 4,8,4", text);
    wf_free(lengths);
    return false;
}

/* ---- printing ---- */

struct view {
    const weft_cp_plan *plan;
    weft_cp_plan_info info;
    weft_cp_options options;
    weft_cp_problem *problems;
    size_t room;
};

/* The problems of COORDINATE in STEP, in VIEW's memory. */
static weft_status list_problems(struct view *view, int32_t coordinate, int32_t step, size_t *count)
{
    WF_TRY(weft_cp_plan_problems(view->plan, coordinate, step, 0, NULL, 0, count));
    if (*count > view->room) {
        weft_cp_problem *problems = wf_realloc(view->problems, *count * sizeof *problems);

        if (problems == NULL) return WEFT_ERR_NO_MEMORY;
        view->problems = problems;
        view->room = *count;
    }
    return weft_cp_plan_problems(view->plan, coordinate, step, view->room, view->problems,
                                 sizeof *view->problems, count);
}

static void add_range(struct wf_text *text, const char *before, int64_t start, int64_t length)
{
    wf_text_add(text, "%s%" PRId64, before, start);
    if (length > 1) wf_text_add(text, "-%" PRId64, start + length - 1);
}

static void add_runs(struct wf_text *text, const weft_cp_plan *plan, int32_t coordinate)
{
    int64_t at = 0;
    weft_index_run run;

    for (int i = 0; i < SHOWN_RUNS && weft_cp_plan_run(plan, coordinate, at, &run); i++) {
        add_range(text, i > 0 ? "," : "", run.start, run.length);
        at += run.length;
    }
    if (at == 0) wf_text_add(text, "nothing");
    if (at < weft_cp_plan_length(plan, coordinate)) wf_text_add(text, ",...");
}

static void add_problem(struct wf_text *text, int32_t step, const weft_cp_problem *p)
{
    wf_text_add(text, "  step %-3d", step);
    if (p->source >= 0) wf_text_add(text, "keys of %-3d ", p->source);
    add_range(text, "queries ", p->query, p->queries);
    add_range(text, " x keys ", p->key, p->keys);
    if (p->mask != WEFT_CP_FULL)
        wf_text_add(text, " %s, diagonal %" PRId64, masks[p->mask], p->diagonal);
    wf_text_char(text, '\n');
}

static weft_status add_coordinate(struct wf_text *text, struct view *view, int32_t coordinate)
{
    wf_text_add(text, "coordinate %d holds ", coordinate);
    add_runs(text, view->plan, coordinate);
    wf_text_add(text, ", work %" PRIu64 "\n", weft_cp_plan_work(view->plan, coordinate));
    for (int32_t step = 0; step < view->info.steps; step++) {
        size_t count;

        WF_TRY(list_problems(view, coordinate, step, &count));
        for (size_t i = 0; i < count; i++)
            add_problem(text, step, &view->problems[i]);
        if (count == 0) wf_text_add(text, "  step %-3dnothing\n", step);
    }
    return WEFT_OK;
}

/* The largest work of a rank over the mean; 1 if no rank has work. */
static double balance_of(const weft_cp_plan_info *info)
{
    if (info->work_total == 0) return 1;
    return (double)info->work_largest * info->ranks / (double)info->work_total;
}

static weft_status add_text(struct wf_text *text, struct view *view)
{
    const weft_cp_plan_info *info = &view->info;
    int32_t shown = info->ranks < SHOWN_RANKS ? info->ranks : SHOWN_RANKS;

    wf_text_add(text,
                "%d rank%s, length %" PRId64 ", mask %s, balance %s, variant %s: largest work %.3f "
                "of the mean\n",
                info->ranks, WF_PLURAL(info->ranks), info->length, masks[view->options.mask],
                balances[view->options.balance], variants[view->options.variant], balance_of(info));
    for (int32_t c = 0; c < shown; c++) {
        cli_progress_of((uint64_t)c, (uint64_t)shown, "coordinate %d of %d", c, shown);
        WF_TRY(add_coordinate(text, view, c));
    }
    if (shown < info->ranks)
        wf_text_add(text, "... and %d more; --json prints all\n", info->ranks - shown);
    return WEFT_OK;
}

/* ---- JSON ---- */

static void add_json_problem(struct wf_json *json, int32_t step, const weft_cp_problem *p)
{
    wf_json_begin(json, NULL, '{');
    wf_json_int(json, "step", step);
    if (p->source >= 0)
        wf_json_int(json, "source", p->source);
    else
        wf_json_null(json, "source");
    wf_json_int(json, "query", p->query);
    wf_json_int(json, "queries", p->queries);
    wf_json_int(json, "key", p->key);
    wf_json_int(json, "keys", p->keys);
    wf_json_string(json, "mask", masks[p->mask]);
    wf_json_int(json, "diagonal", p->diagonal);
    wf_json_end(json, '}');
}

static weft_status add_json_coordinate(struct wf_json *json, struct view *view, int32_t coordinate)
{
    weft_index_run run;

    wf_json_begin(json, NULL, '{');
    wf_json_int(json, "coordinate", coordinate);
    wf_json_begin(json, "runs", '[');
    for (int64_t at = 0; weft_cp_plan_run(view->plan, coordinate, at, &run); at += run.length) {
        wf_json_begin(json, NULL, '[');
        wf_json_int(json, NULL, run.start);
        wf_json_int(json, NULL, run.length);
        wf_json_end(json, ']');
    }
    wf_json_end(json, ']');
    wf_json_uint(json, "work", weft_cp_plan_work(view->plan, coordinate));
    wf_json_begin(json, "problems", '[');
    for (int32_t step = 0; step < view->info.steps; step++) {
        size_t count;

        WF_TRY(list_problems(view, coordinate, step, &count));
        for (size_t i = 0; i < count; i++)
            add_json_problem(json, step, &view->problems[i]);
    }
    wf_json_end(json, ']');
    wf_json_end(json, '}');
    return WEFT_OK;
}

static weft_status add_json(struct wf_text *text, struct view *view)
{
    struct wf_json json = {.out = text};

    wf_json_begin(&json, NULL, '{');
    wf_json_int(&json, "ranks", view->info.ranks);
    wf_json_int(&json, "length", view->info.length);
    wf_json_string(&json, "mask", masks[view->options.mask]);
    wf_json_string(&json, "balance", balances[view->options.balance]);
    wf_json_string(&json, "variant", variants[view->options.variant]);
    wf_json_uint(&json, "work_total", view->info.work_total);
    wf_json_uint(&json, "work_largest", view->info.work_largest);
    wf_json_begin(&json, "coordinates", '[');
    for (int32_t c = 0; c < view->info.ranks; c++) {
        cli_progress_of((uint64_t)c, (uint64_t)view->info.ranks, "coordinate %d of %d", c,
                        view->info.ranks);
        WF_TRY(add_json_coordinate(&json, view, c));
    }
    wf_json_end(&json, ']');
    wf_json_end(&json, '}');
    wf_text_char(text, '\n');
    return WEFT_OK;
}

/* ---- the command ---- */

static int print_plan(const struct cli_command *command, const weft_cp_plan *plan,
                      const weft_cp_options *options, bool as_json)
{
    struct view view = {.plan = plan, .info = {.struct_size = sizeof view.info}};
    struct wf_text text = {0};
    weft_status status = weft_cp_plan_get(plan, &view.info);

    view.options = *options;
    if (status == WEFT_OK) status = as_json ? add_json(&text, &view) : add_text(&text, &view);
    wf_free(view.problems);
    cli_progress_end();
    return cli_answer(command, status, &text);
}

static int make_plan(const struct cli_command *command, const struct cli_args *args,
                     const weft_cp_options *options)
{
    const char *axis = cli_value(command, args, "axis");
    weft_mesh *mesh = NULL;
    weft_cp_plan *plan = NULL;
    weft_status status = cli_mesh(command, args, "mesh", &mesh);
    int exit_code;

    cli_progress_begin();
    cli_progress("planning");
    if (status == WEFT_OK)
        status = weft_cp_plan_create(mesh, axis != NULL ? axis : "0", options, &plan);
    weft_mesh_release(&mesh);
    if (status != WEFT_OK) {
        cli_progress_end();
        exit_code = cli_fail(command, status);
        return exit_code == CLI_NO ? CLI_USAGE : exit_code;
    }
    exit_code = print_plan(command, plan, options, cli_has(command, args, "json"));
    weft_cp_plan_release(&plan);
    return exit_code;
}

static int run(const struct cli_command *command, int argc, char **argv)
{
    weft_cp_options options = {.struct_size = sizeof options};
    int64_t *documents = NULL;
    const char *listed;
    struct cli_args args;
    int exit_code = CLI_OK;

    if (!cli_parse(command, argc, argv, false, &args, &exit_code)) return exit_code;
    if (!cli_has(command, &args, "mesh") || !cli_has(command, &args, "length")) {
        fprintf(stderr, "weft cp: --%s is missing; for example:\n  %s\n",
                cli_has(command, &args, "mesh") ? "length" : "mesh", command->example);
        return CLI_USAGE;
    }
    if (!cli_int(command, &args, "length", 0, WEFT_CP_MAX_LENGTH, 0, &options.length) ||
        !cli_int(command, &args, "window", 1, INT64_MAX, 0, &options.window) ||
        !read_name(command, &args, "mask", masks, WF_COUNT(masks), &options.mask) ||
        !read_name(command, &args, "balance", balances, WF_COUNT(balances), &options.balance) ||
        !read_name(command, &args, "variant", variants, WF_COUNT(variants), &options.variant))
        return CLI_USAGE;
    listed = cli_value(command, &args, "documents");
    if (listed != NULL && !read_documents(command, listed, &documents, &options.document_count))
        return CLI_USAGE;
    options.documents = documents;
    exit_code = make_plan(command, &args, &options);
    wf_free(documents);
    return exit_code;
}

const struct cli_command cli_cp = {
    .name = "cp",
    .summary = "print what each rank holds and computes in context parallel",
    .arguments = "--mesh M --length N [options]",
    .example = "weft cp --mesh cp=4 --length 64 --mask causal --balance head-tail",
    .page = "training/context-parallel.md",
    .options =
        (const struct cli_option[]){
            CLI_MESH,
            CLI_MESH_RANKS,
            {"axis", "A",
             "the axis that shares the sequence, by "
             "name or index (default: 0)",
             0},
            {"length", "N", "indices of the sequence", 0},
            {"mask", "NAME", "full (default), causal or window", 0},
            {"window", "N", "keys that a query sees with window", 0},
            {"balance", "NAME", "contiguous (default), head-tail or per-document", 0},
            {"variant", "NAME", "ring (default), gather or heads", 0},
            {"documents", "N,...", "lengths of documents; a query sees its own only", 0},
            CLI_JSON,
            {0}},
    .warns = true,
    .run = run,
};
