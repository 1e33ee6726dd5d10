/* record_shapes.c - shapes of outputs that do not follow from the rule and its attributes. */
#include "record.h"

#include <string.h>

/* Output INDEX, with the shape and dtype of the first input. */
static weft_op_tensor *set_output(const struct op_record *r, struct op_request *q, uint32_t index)
{
    q->outputs[index] = r->in[0];
    q->call.output_size = sizeof(weft_op_tensor);
    q->call.outputs = q->outputs;
    q->call.output_count = index + 1;
    return &q->outputs[index];
}

/* The last two dimensions of output INDEX; -1: there is no second one. */
static void set_matrix(const struct op_record *r, struct op_request *q, uint32_t index, int64_t m,
                       int64_t n)
{
    weft_op_tensor *t = set_output(r, q, index);

    t->shape[t->dims - 2] = m;
    if (n >= 0)
        t->shape[t->dims - 1] = n;
    else
        t->dims--;
}

/* Decompositions of a matrix have the smaller of its two sizes. */
static bool set_decomposition(const struct op_record *r, struct op_request *q)
{
    const weft_op_tensor *x = &r->in[0];
    int64_t m, n, k;

    if (x->dims < 2) return false;
    m = x->shape[x->dims - 2];
    n = x->shape[x->dims - 1];
    k = wf_min_i64(m, n);
    if (strcmp(r->op, "linalg_qr") == 0) {
        set_matrix(r, q, 0, m, k);
        set_matrix(r, q, 1, k, n);
    } else if (strcmp(r->op, "linalg_svd") == 0) {
        set_matrix(r, q, 0, m, k);
        set_matrix(r, q, 1, k, -1);
        set_matrix(r, q, 2, k, n);
    } else {
        return false;
    }
    return true;
}

void op_record_shapes(const struct op_record *r, struct op_request *q)
{
    const struct wf_json_value *size = wf_json_find(r->params, "size");
    int64_t dim = op_record_int(r, "dim", -1);
    weft_op_tensor *t;

    if (r->in_count == 0 || set_decomposition(r, q)) return;
    if (dim < 0) dim += r->in[0].dims;
    if (strncmp(r->op, "upsample_", 9) == 0 && size != NULL && size->kind == WF_JSON_ARRAY &&
        size->count <= (uint32_t)r->in[0].dims) {
        int32_t at;
        t = set_output(r, q, 0);
        at = t->dims - (int32_t)size->count;
        for (const struct wf_json_value *s = size->first; s != NULL; s = s->next)
            t->shape[at++] = s->integer;
    }
    if (dim < 0 || dim >= r->in[0].dims) return;
    if (strcmp(r->op, "glu") == 0) set_output(r, q, 0)->shape[dim] /= 2;
}
