/* record.h - recorded calls of PyTorch's operators, as calls of weft's.
 *
 * record.c reads one line, record_name.c finds the operator, record_attrs.c its attributes,
 * record_shapes.c the shapes of outputs that do not follow from the rule.  records.c answers a
 * file. */
#ifndef WEFT_CLI_RECORD_H
#define WEFT_CLI_RECORD_H

#include "op_request.h"

/* One record, and what its reading gives. */
struct op_record {
    struct wf_json_tree tree;
    const struct wf_json_value *params, *args; /* NULL: absent */
    const char *id, *op, *aten;
    char name[128];           /* the operator here */
    char equation[64];        /* of an einsum, where name is one */
    char rules[16384];        /* of the operator */
    uint32_t in_count;        /* tensors of the record */
    const weft_op_tensor *in; /* their shapes */
};

/* Read LINE into *RECORD and *REQUEST, both of which the caller frees also after a failure.  COSTS
 * are borrowed. */
weft_status op_record_read(const char *line, struct op_record *record,
                           struct op_request *request) WF_NODISCARD;
void op_record_free(struct op_record *record, struct op_request *request);

/* ---- record_name.c ---- */

/* Find the operator: name, equation and rules. */
weft_status op_record_name(struct op_record *record) WF_NODISCARD;
/* The order of the record's tensors in the rule; -1: absent.  Returns their number. */
uint32_t op_record_order(const struct op_record *record, int32_t *out, uint32_t room);

/* ---- record_attrs.c ---- */

weft_status op_record_attrs(const struct op_record *record,
                            struct op_request *request) WF_NODISCARD;
/* A number of RECORD's parameter NAME, or FALLBACK. */
int64_t op_record_int(const struct op_record *record, const char *name, int64_t fallback);

/* ---- record_shapes.c ---- */

/* Set the outputs of the call, where the rule needs them. */
void op_record_shapes(const struct op_record *record, struct op_request *request);

#endif
