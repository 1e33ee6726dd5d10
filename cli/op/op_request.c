/* op_request.c - specs and attributes of an operator's call, from repeated options. */
#include "op_request.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* The value of option NAME at ARGV[*AT], "--name value" or "--name=value"; NULL: another word. */
static const char *value_at(int argc, char **argv, const char *name, int *at)
{
    size_t length = strlen(name);
    const char *word = argv[*at];

    if (strncmp(word, "--", 2) != 0 || strncmp(word + 2, name, length) != 0) return NULL;
    if (word[2 + length] == '=') return word + 3 + length;
    if (word[2 + length] != '\0' || *at + 1 >= argc) return NULL;
    return argv[++*at];
}

static bool fail_usage(const struct cli_command *command, int *exit_code, const char *what,
                       const char *text)
{
    fprintf(stderr, "weft %s: %s \"%.200s\"\n", command->name, what, text);
    *exit_code = CLI_USAGE;
    return false;
}

/* "4,6", "[4,6]", "[4]" or "4,": a list.  False: TEXT is not one. */
static bool read_list(const char *text, int64_t **out, size_t *count)
{
    bool bracketed = *text == '[', listed = bracketed;
    size_t room = strlen(text) + 1;
    int64_t *list = wf_calloc(room, sizeof *list);

    *count = 0;
    if (list == NULL) return false;
    for (text += bracketed; *text != '\0' && *text != ']';) {
        char *end;
        errno = 0;
        list[(*count)++] = strtoll(text, &end, 10);
        if (end == text || errno != 0 || (*end != ',' && *end != (bracketed ? ']' : '\0'))) {
            wf_free(list);
            return false;
        }
        listed = listed || *end == ',';
        text = *end == ',' ? end + 1 : end;
    }
    if (!listed || strcmp(text, bracketed ? "]" : "") != 0) {
        wf_free(list);
        return false;
    }
    *out = list;
    return true;
}

/* "k=v": a number, a list, true, false, or a word. */
static bool read_attr(struct op_request *r, const char *text)
{
    size_t at = r->call.attr_count;
    weft_op_attr *a = &r->attrs[at];
    char *value, *end;

    r->texts[at] = wf_strdup(text);
    value = r->texts[at] != NULL ? strchr(r->texts[at], '=') : NULL;
    if (value == NULL || value == r->texts[at]) return false;
    *value++ = '\0';
    *a = (weft_op_attr){.name = r->texts[at], .kind = WEFT_ATTR_TEXT, .text = value};
    r->call.attr_count++;
    if (strcmp(value, "true") == 0 || strcmp(value, "false") == 0) {
        a->kind = WEFT_ATTR_INT;
        a->integer = value[0] == 't';
        return true;
    }
    if (read_list(value, &r->lists[at], &a->count)) {
        a->kind = WEFT_ATTR_LIST;
        a->list = r->lists[at];
        return true;
    }
    errno = 0;
    a->integer = strtoll(value, &end, 10);
    if (*value != '\0' && *end == '\0' && errno == 0) {
        a->kind = WEFT_ATTR_INT;
        return true;
    }
    a->real = strtod(value, &end);
    if (*value != '\0' && *end == '\0') a->kind = WEFT_ATTR_REAL;
    return true;
}

weft_status op_request_register(int argc, char **argv)
{
    struct wf_text rules = {0};
    weft_status status;

    for (int i = 1; i < argc; i++) {
        const char *value = value_at(argc, argv, "rule", &i);
        if (value != NULL) wf_text_add(&rules, "%s\n", value);
    }
    if (rules.length == 0) return WEFT_OK;
    status = wf_text_status(&rules);
    if (status == WEFT_OK) status = weft_op_register(rules.data);
    wf_text_free(&rules);
    return status;
}

/* "f32[4,6]" */
static weft_status read_output(struct op_request *r, const char *value)
{
    weft_op_tensor *t = &r->outputs[r->call.output_count];
    struct wf_text text = {0};
    weft_spec *spec = NULL;
    weft_status status;

    wf_text_add(&text, "%s", value);
    for (int32_t a = 0; a < weft_mesh_axes(r->mesh); a++)
        wf_text_add(&text, a > 0 ? ",R" : " R");
    status = wf_text_status(&text);
    if (status == WEFT_OK) status = weft_spec_parse(r->mesh, text.data, &spec);
    wf_text_free(&text);
    if (status != WEFT_OK) return wf_fail_context(status, "--out takes a dtype and a shape");
    *t = (weft_op_tensor){.dtype = weft_spec_dtype(spec), .dims = weft_spec_dims(spec)};
    memcpy(t->shape, weft_spec_shape(spec), (size_t)t->dims * sizeof t->shape[0]);
    weft_spec_release(&spec);
    r->call.output_count++;
    r->call.output_size = sizeof(weft_op_tensor);
    r->call.outputs = r->outputs;
    return WEFT_OK;
}

/* Read the option of an output at ARGV[*AT].  *TAKEN: it is one. */
static weft_status read_of_output(struct op_request *r, int argc, char **argv, int *at, bool *taken)
{
    const char *value = value_at(argc, argv, "out", at);

    *taken = value != NULL;
    if (value != NULL && r->call.output_count == OP_OUTPUTS_MAX)
        return wf_fail(WEFT_ERR_INVALID, "at most %d outputs can be given", OP_OUTPUTS_MAX);
    if (value != NULL) return read_output(r, value);
    value = value_at(argc, argv, "want", at);
    *taken = value != NULL;
    if (value == NULL) return WEFT_OK;
    if (r->wanted_count == OP_OUTPUTS_MAX)
        return wf_fail(WEFT_ERR_INVALID, "at most %d layouts can be wanted", OP_OUTPUTS_MAX);
    if (strcmp(value, "-") == 0) {
        r->wanted_count++;
        return WEFT_OK;
    }
    return weft_spec_parse(r->mesh, value, &r->wanted[r->wanted_count++]);
}

static bool read_repeated(const struct cli_command *command, int argc, char **argv,
                          struct op_request *r, int *exit_code)
{
    for (int i = 1; i < argc; i++) {
        const char *value;
        bool taken;
        weft_status status = read_of_output(r, argc, argv, &i, &taken);
        if (status != WEFT_OK) {
            *exit_code = cli_fail(command, status);
            return false;
        }
        if (taken) continue;
        value = value_at(argc, argv, "attr", &i);
        if (value != NULL) {
            if (r->call.attr_count == OP_ATTRS_MAX)
                return fail_usage(command, exit_code, "too many attributes:", value);
            if (!read_attr(r, value))
                return fail_usage(command, exit_code, "expected --attr NAME=VALUE, not", value);
            continue;
        }
        value = value_at(argc, argv, "input", &i);
        if (value == NULL) continue;
        if (r->call.input_count == OP_INPUTS_MAX)
            return fail_usage(command, exit_code, "too many inputs:", value);
        if (strcmp(value, "-") != 0 &&
            weft_spec_parse(r->mesh, value, &r->inputs[r->call.input_count]) != WEFT_OK) {
            *exit_code = cli_fail(command, WEFT_ERR_INVALID);
            return false;
        }
        r->call.input_count++;
    }
    return true;
}

bool op_request_read(const struct cli_command *command, const struct cli_args *args, int argc,
                     char **argv, struct op_request *out, int *exit_code)
{
    const char *costs = cli_value(command, args, "costs");
    weft_status status;

    memset(out, 0, sizeof *out);
    if (!cli_has(command, args, "mesh"))
        return fail_usage(command, exit_code, "give the mesh with --mesh, as in", "2x4");
    out->call = (weft_op_call){.struct_size = sizeof out->call,
                               .name = args->rest[0],
                               .inputs = (const weft_spec *const *)out->inputs,
                               .attr_size = sizeof out->attrs[0],
                               .attrs = out->attrs};
    out->options.struct_size = sizeof out->options;
    if (cli_has(command, args, "price-partials")) out->options.flags = WEFT_OP_FLAG_PRICE_PARTIALS;
    if (cli_has(command, args, "mixed-dtypes")) out->call.flags = WEFT_OP_CALL_MIXED_DTYPES;
    status = cli_mesh(command, args, "mesh", &out->mesh);
    if (status == WEFT_OK) status = weft_cost_table_open(costs, &out->costs);
    if (status != WEFT_OK) {
        *exit_code = cli_fail(command, status);
    } else if (read_repeated(command, argc, argv, out, exit_code)) {
        out->call.mesh = out->mesh;
        out->options.costs = out->costs;
        return true;
    }
    op_request_free(out);
    return false;
}

weft_status op_request_set_wanted(struct op_request *r)
{
    weft_op_choice_info info = {.struct_size = sizeof info};
    weft_op_choice *choice = NULL;
    weft_status status;

    if (r->wanted_count == 0) return WEFT_OK;
    WF_TRY(weft_op_propose(&r->call, &r->options, &choice));
    status = weft_op_choice_get(choice, &info);
    weft_op_choice_release(&choice);
    if (status != WEFT_OK) return status;
    r->options.wanted_outputs = (const weft_spec *const *)r->wanted;
    r->options.wanted_output_count = info.outputs;
    if (info.outputs > OP_OUTPUTS_MAX)
        return wf_fail(WEFT_ERR_INVALID, "the call has %zu outputs; --want is for at most %d",
                       info.outputs, OP_OUTPUTS_MAX);
    if (r->wanted_count <= info.outputs) return WEFT_OK;
    return wf_fail(WEFT_ERR_INVALID,
                   "operator %.100s has %zu output%s, and --want is given %u times", r->call.name,
                   info.outputs, WF_PLURAL(info.outputs), r->wanted_count);
}

void op_request_free(struct op_request *r)
{
    for (uint32_t i = 0; i < r->call.input_count; i++)
        weft_spec_release(&r->inputs[i]);
    for (uint32_t i = 0; i < r->wanted_count; i++)
        weft_spec_release(&r->wanted[i]);
    for (uint32_t i = 0; i < OP_ATTRS_MAX; i++) {
        wf_free(r->texts[i]);
        wf_free(r->lists[i]);
    }
    weft_cost_table_release(&r->costs);
    weft_mesh_release(&r->mesh);
}
