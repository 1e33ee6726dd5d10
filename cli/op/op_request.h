/* op_request.h - a call of an operator from the command line. */
#ifndef WEFT_CLI_OP_REQUEST_H
#define WEFT_CLI_OP_REQUEST_H

#include "common/cli.h"

enum { OP_INPUTS_MAX = 256, OP_ATTRS_MAX = 32, OP_OUTPUTS_MAX = 16 };

struct op_request {
    weft_mesh *mesh;
    weft_cost_table *costs;
    weft_spec *inputs[OP_INPUTS_MAX];
    weft_op_attr attrs[OP_ATTRS_MAX];
    char *texts[OP_ATTRS_MAX];    /* "k=v", which attrs point into */
    int64_t *lists[OP_ATTRS_MAX]; /* NULL: not a list */
    weft_op_tensor outputs[OP_OUTPUTS_MAX];
    weft_spec *wanted[OP_OUTPUTS_MAX];
    uint32_t wanted_count;
    weft_op_call call;
    weft_op_options options;
};

/* Register the rules that every --rule of ARGV gives. */
weft_status op_request_register(int argc, char **argv) WF_NODISCARD;
/* Read --mesh, --costs, and every --input, --out, --want and --attr of ARGV.  False after
 * printing an error, with *EXIT_CODE set; otherwise the caller frees *OUT. */
bool op_request_read(const struct cli_command *command, const struct cli_args *args, int argc,
                     char **argv, struct op_request *out, int *exit_code);
/* Set the layouts of --want in the options.  WEFT_ERR_INVALID: there are more of them than the call
 * has outputs. */
weft_status op_request_set_wanted(struct op_request *request) WF_NODISCARD;
void op_request_free(struct op_request *request);

/* ---- op_print.c ---- */

/* Append CHOICE as text, or as the JSON object that docs/cli.md describes.  LIST may be NULL. */
weft_status op_add_text(const struct op_request *request, const weft_op_choice *choice,
                        const weft_op_list *list, struct wf_text *out);
weft_status op_add_json(const struct op_request *request, const weft_op_choice *choice,
                        const weft_op_list *list, struct wf_text *out);

/* Add the strategies of LIST as the array KEY.  ELEMENT: of which tensors, if the operator takes
 * lists. */
void op_add_strategies(const struct op_request *request, const weft_op_list *list, const char *key,
                       size_t element, struct wf_json *json);
/* Add the members `chosen` and `gradients`. */
weft_status op_add_members(const struct op_request *request, const weft_op_choice *choice,
                           struct wf_json *json);

#endif
