/* record.c - one line of recorded calls. */
#include "record.h"

#include <string.h>

static weft_status refuse(const char *what)
{
    return wf_fail(WEFT_ERR_PARSE, "%s", what);
}

static weft_status read_text(const struct wf_json_value *root, const char *key, bool needed,
                             const char **out)
{
    const struct wf_json_value *v = wf_json_find(root, key);

    if (v == NULL && !needed) return WEFT_OK;
    if (v == NULL || v->kind != WF_JSON_STRING)
        return wf_fail(WEFT_ERR_PARSE, "\"%s\" must be a string", key);
    *out = v->text;
    return WEFT_OK;
}

/* The member KEY, which is of KIND; NULL: it is absent or null. */
static weft_status read_member(const struct wf_json_value *root, const char *key,
                               enum wf_json_kind kind, const struct wf_json_value **out)
{
    const struct wf_json_value *v = wf_json_find(root, key);

    *out = v != NULL && v->kind == kind ? v : NULL;
    if (v == NULL || v->kind == kind || v->kind == WF_JSON_NULL) return WEFT_OK;
    return wf_fail(WEFT_ERR_PARSE, "\"%s\" must be %s", key,
                   kind == WF_JSON_ARRAY ? "a list" : "an object");
}

/* "[8,12]" of an array; false: it has other things than numbers. */
static bool add_numbers(struct wf_text *out, const struct wf_json_value *list, const char *between)
{
    const char *comma = "";

    if (list == NULL || list->kind != WF_JSON_ARRAY) return false;
    for (const struct wf_json_value *v = list->first; v != NULL; v = v->next, comma = between) {
        if (v->kind != WF_JSON_INT) return false;
        wf_text_add(out, "%s%lld", comma, (long long)v->integer);
    }
    return true;
}

static weft_status read_mesh(const struct wf_json_value *root, weft_mesh **out)
{
    struct wf_text text = {0};
    weft_status status;

    if (!add_numbers(&text, wf_json_find(root, "mesh"), "x") || text.length == 0)
        status = refuse("\"mesh\" must be a list of sizes");
    else
        status = wf_text_status(&text);
    if (status == WEFT_OK) status = weft_mesh_parse(text.data, out);
    wf_text_free(&text);
    return status;
}

/* PyTorch's placements as weft writes them: product is prod, a masked partial is P(sum). */
static void add_placements(struct wf_text *out, const char *at)
{
    while (*at != '\0') {
        if (strncmp(at, "product", 7) == 0) {
            wf_text_append(out, "prod", 4);
            at += 7;
        } else if (strncmp(at, "MP(sum,", 7) == 0 && strchr(at, ')') != NULL) {
            wf_text_append(out, "P(sum)", 6);
            at = strchr(at, ')') + 1;
        } else {
            wf_text_char(out, *at++);
        }
    }
}

/* Read `[shape, dtype, placements]`. */
static weft_status read_spec(const struct wf_json_value *in, const weft_mesh *mesh, weft_spec **out)
{
    const struct wf_json_value *shape = in->first, *dtype, *placements;
    struct wf_text text = {0};
    weft_status status = WEFT_OK;

    if (in->kind != WF_JSON_ARRAY || in->count != 3)
        return refuse("an entry of \"in\" must be [shape, dtype, placements]");
    dtype = shape->next;
    placements = dtype->next;
    if (dtype->kind != WF_JSON_STRING || placements->kind != WF_JSON_STRING)
        return refuse("dtype and placements of \"in\" must be strings");
    wf_text_add(&text, "%s[", dtype->text);
    if (!add_numbers(&text, shape, ",")) status = refuse("a shape of \"in\" must be numbers");
    wf_text_add(&text, "] ");
    add_placements(&text, placements->text);
    if (status == WEFT_OK) status = wf_text_status(&text);
    if (status == WEFT_OK && strstr(text.data, "P(norm") != NULL)
        status = wf_fail(WEFT_ERR_UNSUPPORTED,
                         "%s: a norm is a power sum, its reduction and a root", placements->text);
    if (status == WEFT_OK) status = weft_spec_parse(mesh, text.data, out);
    wf_text_free(&text);
    return status;
}

/* Read the tensors into REQUEST->inputs, in the record's order, and their shapes. */
static weft_status read_tensors(const struct wf_json_value *root, struct op_record *r,
                                struct op_request *q)
{
    const struct wf_json_value *list = wf_json_find(root, "in");
    weft_op_tensor *in;

    if (list == NULL || list->kind != WF_JSON_ARRAY || list->count > OP_INPUTS_MAX)
        return refuse("\"in\" must be a list of at most 256 tensors");
    in = wf_calloc(list->count + 1, sizeof *in);
    if (in == NULL) return wf_fail_memory((list->count + 1) * sizeof *in);
    r->in = in;
    for (const struct wf_json_value *v = list->first; v != NULL; v = v->next) {
        weft_spec **spec = &q->inputs[q->call.input_count];
        weft_op_tensor *t = &in[r->in_count];
        WF_TRY(read_spec(v, q->mesh, spec));
        q->call.input_count++;
        r->in_count++;
        t->dtype = weft_spec_dtype(*spec);
        t->dims = weft_spec_dims(*spec);
        for (int32_t d = 0; d < t->dims; d++)
            t->shape[d] = weft_spec_shape(*spec)[d];
    }
    return WEFT_OK;
}

/* Put the inputs into the order of the rule. */
static void order_tensors(const struct op_record *r, struct op_request *q)
{
    int32_t order[OP_INPUTS_MAX];
    uint32_t count = op_record_order(r, order, OP_INPUTS_MAX);
    weft_spec *given[OP_INPUTS_MAX];

    memcpy(given, q->inputs, sizeof given);
    memset(q->inputs, 0, sizeof q->inputs);
    for (uint32_t i = 0; i < count; i++)
        if (order[i] >= 0) q->inputs[i] = weft_spec_retain(given[order[i]]);
    for (uint32_t i = 0; i < r->in_count; i++)
        weft_spec_release(&given[i]);
    q->call.input_count = count;
}

weft_status op_record_read(const char *line, struct op_record *r, struct op_request *q)
{
    const struct wf_json_value *root;

    memset(r, 0, offsetof(struct op_record, rules));
    memset(q, 0, sizeof *q);
    r->in = NULL;
    r->in_count = 0;
    q->call = (weft_op_call){.struct_size = sizeof q->call,
                             .name = r->name,
                             .inputs = (const weft_spec *const *)q->inputs,
                             .attr_size = sizeof(weft_op_attr),
                             .attrs = q->attrs};
    q->options.struct_size = sizeof q->options;
    r->op = r->aten = "";
    WF_TRY(wf_json_read("the record", line, &r->tree));
    root = r->tree.root;
    if (root->kind != WF_JSON_OBJECT) return refuse("a record must be an object");
    WF_TRY(read_text(root, "id", false, &r->id));
    WF_TRY(read_text(root, "op", true, &r->op));
    WF_TRY(read_text(root, "aten", false, &r->aten));
    WF_TRY(read_member(root, "params", WF_JSON_OBJECT, &r->params));
    WF_TRY(read_member(root, "args", WF_JSON_ARRAY, &r->args));
    WF_TRY(read_mesh(root, &q->mesh));
    q->call.mesh = q->mesh;
    WF_TRY(read_tensors(root, r, q));
    WF_TRY(op_record_name(r));
    WF_TRY(op_record_attrs(r, q));
    op_record_shapes(r, q);
    order_tensors(r, q);
    return WEFT_OK;
}

void op_record_free(struct op_record *r, struct op_request *q)
{
    op_request_free(q);
    wf_free((void *)(uintptr_t)r->in);
    wf_json_free(&r->tree);
    r->in = NULL;
}
