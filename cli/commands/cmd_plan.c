/* cmd_plan.c - `weft plan`: the steps of a redistribution, before anything moves. */
#include "common/cli.h"

#include "common/describe.h"
#include "common/progress.h"
#include "plan/drawing.h"
#include "redistribute/planned.h"

static void add_kinds(struct wf_text *text, const weft_plan *plan)
{
    weft_plan_step_info step = {.struct_size = sizeof step};

    for (uint32_t i = 0; weft_plan_step_get(plan, i, &step) == WEFT_OK; i++)
        wf_text_add(text, "%s%s", i > 0 ? ", " : "", weft_step_name(step.kind));
}

static void add_runner_up(struct wf_text *text, const struct request *request,
                          const struct planned *answer)
{
    weft_plan_info best = {.struct_size = sizeof best}, other = best;

    if (weft_plan_get(answer->plan, &best) != WEFT_OK) return;
    if (best.steps == 0 || request->options.planner != WEFT_PLANNER_SEARCH) return;
    if (answer->runner_up == NULL) {
        wf_text_add(text, "runner-up: none; there is no other plan\n");
        return;
    }
    if (weft_plan_get(answer->runner_up, &other) != WEFT_OK) return;
    wf_text_add(text, "runner-up: ");
    add_kinds(text, answer->runner_up);
    wf_text_add(text, ": ");
    wf_text_time(text, other.cost_ns);
    wf_text_add(text, other.exact ? ", " : ", about ");
    wf_text_bytes(text, other.bytes_received_max);
    wf_text_add(text, other.scratch_exact ? " received, " : " received, about ");
    wf_text_bytes(text, other.peak_bytes);
    wf_text_add(text, " of scratch; it lost because it ");
    planned_add_reason(answer, text);
    wf_text_char(text, '\n');
}

static weft_status add_json(struct wf_text *text, const struct planned *answer)
{
    struct wf_json json = {.out = text};
    struct wf_text members = {0};
    weft_status status = planned_add_members(answer, &members);

    if (status == WEFT_OK) {
        planned_begin_json(&json, &members);
        wf_json_end(&json, '}');
        wf_text_char(text, '\n');
    }
    wf_text_free(&members);
    return status;
}

/* Write the output of ADD to PATH, or to standard output if PATH is "-". */
static int draw(const struct cli_command *command, const weft_plan *plan, const char *path,
                void (*add)(const weft_plan *, struct wf_text *))
{
    struct wf_text text = {0};

    add(plan, &text);
    return cli_print_to(command, path, &text);
}

static int print(const struct cli_command *command, const struct request *request,
                 const struct planned *answer, bool as_json)
{
    struct wf_text text = {0};
    weft_status status = WEFT_OK;

    if (as_json) {
        status = add_json(&text, answer);
    } else {
        WF_TEXT_PRINT(&text, weft_plan_print, answer->plan);
        add_runner_up(&text, request, answer);
        wf_text_add(&text, "planned in ");
        wf_text_time(&text, answer->plan_ns);
        wf_text_add(&text, " by the cost table %s\n",
                    weft_cost_table_name(weft_plan_costs(answer->plan)));
    }
    return cli_answer(command, status, &text);
}

/* The answer is printed in one form only. */
static bool asks_for_one_form(const struct cli_command *command, const struct cli_args *args)
{
    static const char *const forms[] = {"json", "dot", "svg"};
    const char *first = NULL;

    for (size_t i = 0; i < WF_COUNT(forms); i++) {
        if (!cli_has(command, args, forms[i])) continue;
        if (first != NULL) {
            fprintf(stderr, "weft %s: give only one of --%s and --%s\n", command->name, first,
                    forms[i]);
            return false;
        }
        first = forms[i];
    }
    return true;
}

/* Draw the plan to PATH.  A file leaves standard output to the plan as text. */
static int draw_and_print(const struct cli_command *command, const struct request *request,
                          const struct planned *answer, const char *path)
{
    int exit_code = draw(command, answer->plan, path, plan_add_svg);

    if (exit_code != CLI_OK || strcmp(path, "-") == 0) return exit_code;
    exit_code = print(command, request, answer, false);
    if (exit_code == CLI_OK) fprintf(stderr, "wrote %s\n", path);
    return exit_code;
}

static int run(const struct cli_command *command, int argc, char **argv)
{
    struct planned answer = {0};
    struct request request;
    struct cli_args args;
    weft_status status;
    int exit_code;

    if (!cli_parse(command, argc, argv, false, &args, &exit_code)) return exit_code;
    if (!asks_for_one_form(command, &args)) return CLI_USAGE;
    if (!request_read(command, &args, &request, &exit_code)) return exit_code;
    cli_progress_begin();
    cli_progress("searching for the plan");
    status = planned_find(&request, &request.options, true, &answer);
    cli_progress_end();
    if (status != WEFT_OK)
        exit_code = cli_fail(command, status);
    else if (cli_has(command, &args, "svg"))
        exit_code = draw_and_print(command, &request, &answer, cli_value(command, &args, "svg"));
    else if (cli_has(command, &args, "dot"))
        exit_code = draw(command, answer.plan, "-", plan_add_dot);
    else
        exit_code = print(command, &request, &answer, cli_has(command, &args, "json"));
    planned_free(&answer);
    request_free(&request);
    return exit_code;
}

const struct cli_command cli_plan = {
    .name = "plan",
    .summary = "print the steps that take a tensor from one layout to another",
    .arguments = "--mesh M --from P --to P [--shape S] [options]",
    .example = "weft plan --mesh dp=2,tp=4 --shape 4096x4096 --from \"S(0),R\" --to \"R,S(1)\"",
    .page = "planner.md",
    .options = (const struct cli_option[]){REQUEST_OPTIONS,
                                           CLI_MESH_RANKS,
                                           CLI_JSON,
                                           {"dot", NULL, "print a DOT graph", 0},
                                           CLI_SVG,
                                           {0}},
    .warns = true,
    .run = run,
};
