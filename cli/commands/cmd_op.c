/* cmd_op.c - `weft op`: the rules of operators, and the layouts that they allow. */
#include "common/cli.h"

#include "op/op_request.h"
#include "op/records.h"

#include <string.h>

/* The names of all operators, one per line; NULL after a failure.  The caller frees them. */
static char *list_names(weft_status *status)
{
    char *names;
    size_t length;

    *status = weft_op_names_print(NULL, 0, &length);
    if (*status != WEFT_OK) return NULL;
    names = wf_alloc(length + 1);
    if (names == NULL) *status = wf_fail_memory(length + 1);
    if (names != NULL) *status = weft_op_names_print(names, length + 1, NULL);
    return names;
}

/* Append each line of LINES: to JSON as a string, or without JSON to TEXT behind INDENT. */
static void add_lines(char *lines, const char *indent, struct wf_json *json, struct wf_text *text)
{
    char *save = NULL;

    for (char *line = strtok_r(lines, "\n", &save); line != NULL;
         line = strtok_r(NULL, "\n", &save)) {
        if (json != NULL)
            wf_json_string(json, NULL, line);
        else
            wf_text_add(text, "%s%s\n", indent, line);
    }
}

static weft_status add_rules(const char *name, const char *indent, struct wf_json *json,
                             struct wf_text *text)
{
    char rules[16384];

    WF_TRY(weft_op_print(name, rules, sizeof rules, NULL));
    add_lines(rules, indent, json, text);
    return WEFT_OK;
}

/* The names of all operators, or a document with their rules. */
static int print_all(const struct cli_command *command, bool rules, bool as_json)
{
    struct wf_text text = {0};
    struct wf_json writer = {.out = &text}, *json = as_json ? &writer : NULL;
    weft_status status;
    char *names = list_names(&status), *save = NULL;

    if (as_json) {
        wf_json_begin(json, NULL, '{');
        wf_json_begin(json, rules ? "rules" : "operators", '[');
    } else if (rules) {
        wf_text_add(&text, "# The rules of all operators\n\n");
    }
    if (status == WEFT_OK && !rules) add_lines(names, "", json, &text);
    for (char *name = status == WEFT_OK && rules ? strtok_r(names, "\n", &save) : NULL;
         name != NULL && status == WEFT_OK; name = strtok_r(NULL, "\n", &save))
        status = add_rules(name, "    ", json, &text);
    if (as_json) {
        wf_json_end(json, ']');
        wf_json_end(json, '}');
        wf_text_char(&text, '\n');
    }
    wf_free(names);
    return cli_answer(command, status, &text);
}

static weft_status add_explanation(const char *name, const char *words, struct wf_text *out)
{
    struct wf_json json = {.out = out};

    wf_json_begin(&json, NULL, '{');
    wf_json_string(&json, "op", name);
    wf_json_begin(&json, "rules", '[');
    WF_TRY(add_rules(name, "", &json, out));
    wf_json_end(&json, ']');
    wf_json_string(&json, "explanation", words);
    wf_json_end(&json, '}');
    wf_text_char(out, '\n');
    return WEFT_OK;
}

static int explain(const struct cli_command *command, const char *name, bool json)
{
    struct wf_text text = {0};
    size_t length;
    char *words;
    weft_status status = weft_op_meaning_print(name, NULL, 0, &length);

    if (status != WEFT_OK) return cli_fail(command, status);
    words = wf_alloc(length + 1);
    status = words != NULL ? weft_op_meaning_print(name, words, length + 1, NULL)
                           : wf_fail_memory(length + 1);
    if (status == WEFT_OK && json) status = add_explanation(name, words, &text);
    if (status == WEFT_OK && !json) wf_text_append(&text, words, strlen(words));
    wf_free(words);
    return cli_answer(command, status, &text);
}

static int answer(const struct cli_command *command, const struct cli_args *args,
                  struct op_request *request)
{
    bool check = cli_has(command, args, "check"), json = cli_has(command, args, "json");
    weft_op_choice *choice = NULL;
    weft_op_list *list = NULL;
    struct wf_text text = {0};
    weft_status status;
    int exit_code;

    status = op_request_set_wanted(request);
    if (status == WEFT_OK)
        status = check ? weft_op_check(&request->call, &request->options, &choice)
                       : weft_op_propose(&request->call, &request->options, &choice);
    if (status == WEFT_OK && cli_has(command, args, "strategies"))
        status = weft_op_list_create(&request->call, &request->options, &list);
    if (status == WEFT_OK)
        status = json ? op_add_json(request, choice, list, &text)
                      : op_add_text(request, choice, list, &text);
    exit_code = cli_answer(command, status, &text);
    weft_op_list_release(&list);
    weft_op_choice_release(&choice);
    return exit_code;
}

static int answer_records(const struct cli_command *command, const struct cli_args *args)
{
    weft_cost_table *costs = NULL;
    weft_status status = weft_cost_table_open(cli_value(command, args, "costs"), &costs);
    int exit_code;

    if (status != WEFT_OK) return cli_fail(command, status);
    exit_code = op_records_answer(command, cli_value(command, args, "records"), costs);
    weft_cost_table_release(&costs);
    return exit_code;
}

/* True if an option describes a call. */
static bool has_call(const struct cli_command *command, const struct cli_args *args)
{
    static const char *const options[] = {"mesh",       "input",          "out",
                                          "attr",       "want",           "check",
                                          "strategies", "price-partials", "mixed-dtypes"};

    for (size_t i = 0; i < WF_COUNT(options); i++)
        if (cli_has(command, args, options[i])) return true;
    return false;
}

/* A command line asks for one thing. */
static const char *find_complaint(const struct cli_command *command, const struct cli_args *args)
{
    int files = cli_has(command, args, "list") + cli_has(command, args, "all-rules") +
                cli_has(command, args, "records");

    if (files == 0) return args->rest_count == 0 ? "give the name of an operator, or --list" : NULL;
    if (files > 1) return "--list, --all-rules and --records exclude each other";
    if (args->rest_count > 0 || has_call(command, args))
        return "--list, --all-rules and --records take no operator and no call";
    return NULL;
}

static int run(const struct cli_command *command, int argc, char **argv)
{
    struct op_request request;
    struct cli_args args;
    weft_status status;
    bool json;
    int exit_code;

    if (!cli_parse(command, argc, argv, false, &args, &exit_code)) return exit_code;
    status = op_request_register(argc, argv);
    if (status != WEFT_OK) return cli_fail(command, status);
    json = cli_has(command, &args, "json");
    if (cli_has(command, &args, "list") || cli_has(command, &args, "all-rules"))
        return print_all(command, cli_has(command, &args, "all-rules"), json);
    if (cli_has(command, &args, "records")) return answer_records(command, &args);
    if (!has_call(command, &args)) return explain(command, args.rest[0], json);
    if (!op_request_read(command, &args, argc, argv, &request, &exit_code)) return exit_code;
    exit_code = answer(command, &args, &request);
    op_request_free(&request);
    return exit_code;
}

const struct cli_command cli_op = {
    .name = "op",
    .summary = "explain the rules of an operator, or print the layouts in which it can run",
    .arguments =
        "NAME [--mesh M --input SPEC... [--attr K=V]...] [--rule TEXT] | --records FILE | --list | "
        "--all-rules",
    .example =
        "weft op mm --mesh dp=2,tp=4 --input \"f32[64,32] S(0),R\" --input \"f32[32,16] R,S(1)\"",
    .page = "operators.md",
    .repeated = (const char *const[]){"input", "attr", "out", "rule", "want", NULL},
    .options =
        (const struct cli_option[]){
            CLI_MESH,
            CLI_MESH_RANKS,
            {"input", "SPEC", "an input: f32[64,32] S(0),R; - is an absent one; repeat it", 0},
            {"attr", "K=V", "an attribute: dim=1, shape=4,6, reduction=mean; repeat it", 0},
            {"out", "SHAPE",
             "the shape of an output that the rule does not give: f32[4,6]; "
             "repeat it",
             0},
            {"rule", "TEXT", "a rule of your own, for this command; repeat it", 0},
            {"want", "SPEC",
             "the layout that an output is moved to afterwards; - is any; repeat it", 0},
            {"price-partials", NULL, "choose as if partial outputs had to be reduced", 0},
            {"mixed-dtypes", NULL, "inputs may have several dtypes where the rule wants one", 0},
            {"check", NULL, "only say whether the inputs are legal without communication", 0},
            {"strategies", NULL, "list all layouts in which the operator can run", 0},
            {"records", "FILE", "answer recorded calls, one JSON object per line; - is the input",
             0},
            {"list", NULL, "list the operators", 0},
            {"all-rules", NULL, "print the rules of all operators, as a document", 0},
            CLI_COSTS,
            CLI_JSON,
            {0}},
    .rest_max = 1,
    .complaint = find_complaint,
    .run = run,
};
