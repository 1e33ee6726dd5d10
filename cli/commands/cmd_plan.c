/* cmd_plan.c - `weft plan`: the steps of a redistribution, before anything moves. */
#include "common/cli.h"

#include "cost/cost.h"
#include "exec/exec.h"
#include "plan/drawing.h"
#include "redistribute/request.h"

#include <errno.h>
#include <string.h>

struct answer {
    const struct request *request;
    weft_plan *plan;
    uint64_t plan_ns;
    weft_plan *runner_up; /* NULL: there is none */
};

/* The kind of step that costs most. */
static uint32_t dearest(const weft_plan *plan)
{
    weft_step_info step, most = {0};

    for (uint32_t i = 0; weft_plan_step(plan, i, &step); i++)
        if (i == 0 || step.cost_ns > most.cost_ns) most = step;
    return most.kind;
}

/* Does a step go from one mesh to another? */
static bool crosses(const weft_plan *plan)
{
    weft_step_info step;

    for (uint32_t i = 0; weft_plan_step(plan, i, &step); i++)
        if (weft_spec_mesh(step.from) != weft_spec_mesh(step.to)) return true;
    return false;
}

/* The best plan without the kind of step that the best plan spends most on. */
static weft_plan *find_runner_up(const struct request *request, const weft_plan *best)
{
    weft_plan_options options = request->options;
    weft_plan_info info;
    weft_plan *plan;

    weft_plan_get(best, &info);
    if (info.steps == 0 || options.planner != WEFT_PLANNER_SEARCH) return NULL;
    options.memory_limit = 0;
    if (crosses(best)) {
        if (wf_plan_cross_runner_up(request->from, request->to, &options, &plan) != WEFT_OK)
            return NULL;
        return plan;
    }
    options.without |= UINT32_C(1) << dearest(best);
    return weft_plan_create(request->from, request->to, &options, &plan) == WEFT_OK ? plan : NULL;
}

static weft_status find(const struct request *request, struct answer *out)
{
    uint64_t begun = wf_now_ns();

    out->request = request;
    WF_TRY(weft_plan_create(request->from, request->to, &request->options, &out->plan));
    out->plan_ns = wf_now_ns() - begun;
    out->runner_up = find_runner_up(request, out->plan);
    return WEFT_OK;
}

static void add_kinds(struct wf_text *text, const weft_plan *plan)
{
    weft_step_info step;

    for (uint32_t i = 0; weft_plan_step(plan, i, &step); i++)
        wf_text_add(text, "%s%s", i > 0 ? ", " : "", weft_step_name(step.kind));
}

/* Why OTHER is not the plan: the first of its measures that is worse. */
static void add_reason(struct wf_text *text, const weft_plan_options *asked,
                       const weft_plan_info *best, const weft_plan_info *other)
{
    uint32_t minimize = asked->minimize;

    wf_text_add(text, "; it lost because it ");
    if (asked->memory_limit != 0 && other->peak_bytes > asked->memory_limit) {
        wf_text_add(text, "needs ");
        wf_text_bytes(text, other->peak_bytes);
        wf_text_add(text, " of scratch, over the limit");
    } else if (minimize == WEFT_MINIMIZE_BYTES &&
               other->bytes_received_max > best->bytes_received_max) {
        wf_text_add(text, "receives ");
        wf_text_bytes(text, other->bytes_received_max - best->bytes_received_max);
        wf_text_add(text, " more");
    } else if (minimize == WEFT_MINIMIZE_MEMORY && other->peak_bytes > best->peak_bytes) {
        wf_text_add(text, "needs ");
        wf_text_bytes(text, other->peak_bytes - best->peak_bytes);
        wf_text_add(text, " more scratch");
    } else if (other->cost_ns > best->cost_ns) {
        wf_text_add(text, "takes ");
        wf_text_time(text, other->cost_ns - best->cost_ns);
        wf_text_add(text, " longer");
    } else if (other->bytes_received_max > best->bytes_received_max) {
        wf_text_add(text, "takes as long and receives ");
        wf_text_bytes(text, other->bytes_received_max - best->bytes_received_max);
        wf_text_add(text, " more");
    } else {
        wf_text_add(text, "is no better");
    }
}

static void add_runner_up(struct wf_text *text, const struct answer *answer)
{
    weft_plan_info best, other;

    weft_plan_get(answer->plan, &best);
    if (best.steps == 0 || answer->request->options.planner != WEFT_PLANNER_SEARCH) return;
    if (answer->runner_up == NULL) {
        wf_text_add(text, "runner-up: none, there is no other way\n");
        return;
    }
    weft_plan_get(answer->runner_up, &other);
    wf_text_add(text, "runner-up: ");
    add_kinds(text, answer->runner_up);
    wf_text_add(text, ": ");
    wf_text_time(text, other.cost_ns);
    wf_text_add(text, ", ");
    wf_text_bytes(text, other.bytes_received_max);
    wf_text_add(text, " received, ");
    wf_text_bytes(text, other.peak_bytes);
    wf_text_add(text, " of scratch");
    add_reason(text, &answer->request->options, &best, &other);
    wf_text_char(text, '\n');
}

static weft_status add_plan(struct wf_text *text, const weft_plan *plan)
{
    char *buffer;
    size_t length;
    weft_status status;

    WF_TRY(weft_plan_print(plan, NULL, 0, &length));
    buffer = wf_alloc(length + 1);
    if (buffer == NULL) return wf_fail_memory(length + 1);
    status = weft_plan_print(plan, buffer, length + 1, NULL);
    if (status == WEFT_OK) wf_text_append(text, buffer, length);
    wf_free(buffer);
    return status;
}

static void json_placements(struct wf_json *json, const char *key, const weft_spec *spec)
{
    struct wf_text text = {0};

    wf_placements_add_text(weft_spec_placements(spec), weft_mesh_axes(weft_spec_mesh(spec)), &text);
    wf_json_string(json, key, text.data);
    wf_text_free(&text);
}

static void json_mesh(struct wf_json *json, const char *key, const weft_mesh *mesh)
{
    struct wf_text text = {0};

    wf_mesh_add_text(mesh, &text);
    wf_json_string(json, key, text.data);
    wf_text_free(&text);
}

static void json_step(struct wf_json *json, const weft_step_info *step)
{
    wf_json_begin(json, NULL, '{');
    wf_json_string(json, "kind", weft_step_name(step->kind));
    wf_json_begin(json, "axes", '[');
    for (int32_t a = 0; a < WEFT_MAX_AXES; a++)
        if (step->axes >> a & 1) wf_json_int(json, NULL, a);
    wf_json_end(json, ']');
    json_mesh(json, "mesh", weft_spec_mesh(step->from));
    json_placements(json, "from", step->from);
    json_placements(json, "to", step->to);
    wf_json_uint(json, "bytes_sent", step->bytes_sent);
    wf_json_uint(json, "bytes_received", step->bytes_received);
    wf_json_uint(json, "scratch_bytes", step->scratch_bytes);
    wf_json_uint(json, "cost_ns", step->cost_ns);
    wf_json_end(json, '}');
}

static weft_status add_json(struct wf_text *text, const struct answer *answer)
{
    struct wf_json json = {.out = text};
    struct wf_measure bytes = wf_plan_measure(answer->plan);
    weft_plan_info info;
    weft_step_info step;

    weft_plan_get(answer->plan, &info);
    wf_json_begin(&json, NULL, '{');
    wf_json_begin(&json, "steps", '[');
    for (uint32_t i = 0; weft_plan_step(answer->plan, i, &step); i++) {
        WF_TRY(wf_step_measure(&answer->plan->steps[i], &step.bytes_sent, &step.bytes_received));
        json_step(&json, &step);
    }
    wf_json_end(&json, ']');
    wf_json_uint(&json, "bytes_received_max", bytes.most);
    wf_json_uint(&json, "bytes_received_total", bytes.total);
    wf_json_uint(&json, "peak_bytes", info.peak_bytes);
    wf_json_uint(&json, "cost_ns", info.cost_ns);
    wf_json_uint(&json, "plan_ns", answer->plan_ns);
    wf_json_end(&json, '}');
    wf_text_char(text, '\n');
    return WEFT_OK;
}

/* Write what ADD draws to PATH, or to standard output for "-". */
static int draw(const struct cli_command *command, const weft_plan *plan, const char *path,
                void (*add)(const weft_plan *, struct wf_text *))
{
    struct wf_text text = {0};
    FILE *file = strcmp(path, "-") == 0 ? stdout : fopen(path, "w");
    int exit_code;

    if (file == NULL) {
        fprintf(stderr, "weft %s: %s: %s\n", command->name, path, strerror(errno));
        return CLI_NO;
    }
    add(plan, &text);
    exit_code = cli_print(command, file, &text);
    if (file != stdout && fclose(file) != 0) exit_code = CLI_NO;
    return exit_code;
}

static int print(const struct cli_command *command, const struct answer *answer, bool as_json)
{
    struct wf_text text = {0};

    if (as_json) {
        if (add_json(&text, answer) != WEFT_OK) {
            wf_text_free(&text);
            return cli_fail(command);
        }
    } else if (add_plan(&text, answer->plan) == WEFT_OK) {
        add_runner_up(&text, answer);
        wf_text_add(&text, "planned in ");
        wf_text_time(&text, answer->plan_ns);
        wf_text_add(&text, " by the cost table %s\n", answer->request->costs->name);
    } else {
        wf_text_free(&text);
        return cli_fail(command);
    }
    return cli_print(command, stdout, &text);
}

/* There is one answer, in one form. */
static bool asks_for_one_form(const struct cli_command *command, const struct cli_args *args)
{
    static const char *const forms[] = {"json", "dot", "svg"};
    const char *first = NULL;

    for (size_t i = 0; i < WF_COUNT(forms); i++) {
        if (!cli_has(command, args, forms[i])) continue;
        if (first != NULL) {
            fprintf(stderr, "weft %s: --%s and --%s are two forms of the answer; ask for one\n",
                    command->name, first, forms[i]);
            return false;
        }
        first = forms[i];
    }
    return true;
}

static int run(const struct cli_command *command, int argc, char **argv)
{
    struct answer answer = {0};
    struct request request;
    struct cli_args args;
    int exit_code;

    if (!cli_parse(command, argc, argv, false, &args, &exit_code)) return exit_code;
    if (!asks_for_one_form(command, &args)) return CLI_USAGE;
    if (!request_read(command, &args, &request, &exit_code)) return exit_code;
    if (find(&request, &answer) != WEFT_OK)
        exit_code = cli_fail(command);
    else if (cli_has(command, &args, "svg"))
        exit_code = draw(command, answer.plan, cli_value(command, &args, "svg"), plan_add_svg);
    else if (cli_has(command, &args, "dot"))
        exit_code = draw(command, answer.plan, "-", plan_add_dot);
    else
        exit_code = print(command, &answer, cli_has(command, &args, "json"));
    weft_plan_release(&answer.plan);
    weft_plan_release(&answer.runner_up);
    request_free(&request);
    return exit_code;
}

const struct cli_command cli_plan = {
    .name = "plan",
    .summary = "the steps that take a tensor from one layout to another",
    .arguments = "--mesh M --shape S --from P --to P [options]",
    .example = "weft plan --mesh dp=2,tp=4 --shape 4096x4096 --from \"S(0),R\" --to \"R,S(1)\"",
    .options = (const struct cli_option[]){REQUEST_OPTIONS,
                                           {"json", NULL, "as JSON"},
                                           {"dot", NULL, "as a DOT graph"},
                                           {"svg", "FILE", "draw it into FILE"},
                                           {0}},
    .run = run,
};
