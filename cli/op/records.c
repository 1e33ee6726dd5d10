/* records.c - answers to a file of recorded calls. */
#include "record.h"
#include "records.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* True if each element of the operator's lists is a call of its own. */
static bool is_listed(const struct op_record *r)
{
    return strncmp(r->op, "foreach_", 8) == 0 || strncmp(r->op, "fused_", 6) == 0;
}

/* The strategies of each element, as the record has them. */
static weft_status add_elements(struct op_request *q, struct wf_json *json)
{
    weft_op_list *list = NULL;

    wf_json_begin(json, "strategies_list", '[');
    while (q->options.element < OP_INPUTS_MAX &&
           weft_op_list_create(&q->call, &q->options, &list) == WEFT_OK) {
        op_add_strategies(q, list, NULL, q->options.element, json);
        weft_op_list_release(&list);
        q->options.element++;
    }
    wf_json_end(json, ']');
    return q->options.element > 0 ? WEFT_OK : WEFT_ERR_INVALID;
}

static weft_status add_answer(const struct op_record *r, struct op_request *q, struct wf_json *json)
{
    weft_op_choice_info info = {.struct_size = sizeof info};
    weft_op_choice *choice = NULL;
    weft_op_list *list = NULL;
    weft_status status = weft_op_propose(&q->call, &q->options, &choice);

    if (status == WEFT_OK) status = weft_op_choice_get(choice, &info);
    if (status == WEFT_OK && !is_listed(r))
        status = weft_op_list_create(&q->call, &q->options, &list);
    if (status == WEFT_OK) {
        wf_json_string(json, "op", r->op);
        wf_json_string(json, "rule", info.rule);
        op_add_strategies(q, list, "strategies", 0, json);
        if (is_listed(r)) status = add_elements(q, json);
    }
    if (status == WEFT_OK) status = op_add_members(q, choice, json);
    weft_op_list_release(&list);
    weft_op_choice_release(&choice);
    return status;
}

/* Append the answer that is the last error, which is STATUS. */
static weft_status add_error(const char *id, weft_status status, struct wf_text *out)
{
    struct wf_json json = {.out = out};

    if (status == WEFT_ERR_NO_MEMORY) return status;
    wf_json_begin(&json, NULL, '{');
    wf_json_string(&json, "id", id);
    wf_json_string(&json, "error", weft_last_error());
    wf_json_end(&json, '}');
    wf_text_char(out, '\n');
    return wf_text_status(out);
}

weft_status op_record_answer(const char *line, const weft_cost_table *costs, struct wf_text *out)
{
    struct op_record *record = wf_alloc(sizeof *record);
    struct op_request *request = wf_alloc(sizeof *request);
    struct wf_json json = {.out = out};
    size_t begin = out->length;
    weft_status status;

    if (record == NULL || request == NULL) {
        wf_free(record);
        wf_free(request);
        return wf_fail_memory(sizeof *record + sizeof *request);
    }
    status = op_record_read(line, record, request);
    request->options.costs = costs;
    wf_json_begin(&json, NULL, '{');
    wf_json_string(&json, "id", record->id);
    if (status == WEFT_OK) status = add_answer(record, request, &json);
    if (status == WEFT_OK) {
        wf_json_end(&json, '}');
        wf_text_char(out, '\n');
        status = wf_text_status(out);
    } else {
        out->length = begin; /* what was written of the answer */
        status = add_error(record->id, status, out);
    }
    op_record_free(record, request);
    wf_free(record);
    wf_free(request);
    return status;
}

int op_records_answer(const struct cli_command *command, const char *path,
                      const weft_cost_table *costs)
{
    FILE *file = strcmp(path, "-") == 0 ? stdin : fopen(path, "r");
    char *line = NULL;
    size_t room = 0;
    ssize_t length;
    int exit_code = CLI_OK, error;

    if (file == NULL) return cli_fail_file(command, path, errno);
    errno = 0;
    while (exit_code == CLI_OK && (length = getline(&line, &room, file)) >= 0) {
        struct wf_text text = {0};
        weft_status status;
        if (strlen(line) != (size_t)length)
            status = add_error(NULL, wf_fail(WEFT_ERR_PARSE, "the record has a NUL byte"), &text);
        else if (line[strspn(line, " \t\r\n")] == '\0')
            continue;
        else
            status = op_record_answer(line, costs, &text);
        if (status == WEFT_OK)
            exit_code = cli_print(command, stdout, &text);
        else
            exit_code = cli_fail(command, status);
        wf_text_free(&text);
        errno = 0;
    }
    error = ferror(file) ? errno : 0;
    free(line);
    if (file != stdin) (void)fclose(file);
    return error != 0 && exit_code == CLI_OK ? cli_fail_file(command, path, error) : exit_code;
}
