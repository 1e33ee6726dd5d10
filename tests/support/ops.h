/* ops.h - calls of operators as text, and their answers as text.
 *
 *     ck_assert_str_eq(op_check("mm", "2x4", "f32[8,4] S(0),R ; f32[4,6] R,S(1)", ""),
 *                      "S(0),R ; R,S(1) -> S(0),S(1)");
 */
#ifndef WEFT_TESTS_OPS_H
#define WEFT_TESTS_OPS_H

#include "base/base.h"
#include "weft/ops.h"

#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { OP_TENSORS = 32, OP_ATTRS = 8, OP_LIST = 32 };

typedef struct op_text {
    weft_mesh *mesh;
    weft_spec *inputs[OP_TENSORS];
    weft_op_attr attrs[OP_ATTRS];
    weft_op_tensor outputs[OP_TENSORS];
    int64_t lists[OP_ATTRS][OP_LIST];
    char text[1024];
    weft_op_call call;
} op_text;

/* "dim=1 keepdim=1 shape=4,6 p=inf reduction=mean": a list has a comma, also behind one number */
static inline void op_read_attrs(op_text *o, const char *attrs)
{
    char *at, *save = NULL;

    snprintf(o->text, sizeof o->text, "%s", attrs);
    for (at = strtok_r(o->text, " ", &save); at != NULL; at = strtok_r(NULL, " ", &save)) {
        weft_op_attr *a = &o->attrs[o->call.attr_count];
        char *value = strchr(at, '='), *end;
        *value++ = '\0';
        *a = (weft_op_attr){.name = at, .kind = WEFT_ATTR_INT};
        a->integer = strtoll(value, &end, 10);
        if (strcmp(a->name, "eq") == 0 ||
            (end == value && strcmp(value + (*value == '-'), "inf") != 0)) {
            a->kind = WEFT_ATTR_TEXT;
            a->text = value;
        } else if (*end == ',') {
            a->kind = WEFT_ATTR_LIST;
            a->list = o->lists[o->call.attr_count];
            for (; *value != '\0'; value = *end == ',' ? end + 1 : end)
                o->lists[o->call.attr_count][a->count++] = strtoll(value, &end, 10);
        } else if (*end != '\0' || end == value) {
            a->kind = WEFT_ATTR_REAL;
            a->real = strtod(value, NULL);
        }
        o->call.attr_count++;
    }
}

/* INPUTS are specs separated by " ; "; "-" is an absent one.  OUTPUTS, "f32[4,6] ; i64[]", may be
 * NULL. */
static inline void op_begin(op_text *o, const char *name, const char *mesh, const char *inputs,
                            const char *attrs, const char *outputs)
{
    char copy[2048], *at = copy;

    memset(o, 0, sizeof *o);
    ck_assert_msg(weft_mesh_parse(mesh, &o->mesh) == WEFT_OK, "%s", weft_last_error());
    o->call = (weft_op_call){.struct_size = sizeof o->call,
                             .name = name,
                             .mesh = o->mesh,
                             .attr_size = sizeof(weft_op_attr),
                             .attrs = o->attrs};
    snprintf(copy, sizeof copy, "%s", inputs);
    while (*at != '\0') {
        char *end = strstr(at, " ; ");
        if (end != NULL) *end = '\0';
        if (strcmp(at, "-") != 0)
            ck_assert_msg(weft_spec_parse(o->mesh, at, &o->inputs[o->call.input_count]) == WEFT_OK,
                          "%s", weft_last_error());
        o->call.input_count++;
        at = end != NULL ? end + 3 : at + strlen(at);
    }
    o->call.inputs = (const weft_spec *const *)o->inputs;
    op_read_attrs(o, attrs);
    for (const char *next = outputs; next != NULL; next = strstr(next, " ; ")) {
        weft_op_tensor *t = &o->outputs[o->call.output_count++];
        char dtype[16], shape[128];
        enum weft_dtype read;
        if (*next == ' ') next += 3;
        ck_assert_int_eq(sscanf(next, "%15[a-z0-9]%127[^ ]", dtype, shape), 2);
        ck_assert(weft_dtype_parse(dtype, &read) == WEFT_OK);
        t->dtype = read;
        ck_assert(weft_shape_parse(shape, &t->dims, t->shape) == WEFT_OK);
        o->call.output_size = sizeof(weft_op_tensor);
        o->call.outputs = o->outputs;
    }
}

static inline void op_text_release(op_text *o)
{
    for (uint32_t i = 0; i < o->call.input_count; i++)
        weft_spec_release(&o->inputs[i]);
    weft_mesh_release(&o->mesh);
}

/* The placements of SPEC, with its shape and dtype if WHOLE; "-" for NULL. */
static inline void op_add_spec(struct wf_text *out, const weft_spec *spec, bool whole)
{
    char text[256];

    if (out->length > 0 && out->data[out->length - 1] != ' ') wf_text_add(out, " ; ");
    if (spec == NULL) {
        wf_text_add(out, "-");
        return;
    }
    ck_assert(weft_spec_print(spec, text, sizeof text, NULL) == WEFT_OK);
    wf_text_add(out, "%s", whole ? text : strchr(text, ' ') + 1);
}

/* "S(0),R ; R,S(1) -> S(0),S(1)" */
static inline const char *op_choice_text(const weft_op_choice *choice, bool whole)
{
    static char out[8192];
    struct wf_text text = {0};
    weft_op_choice_info info = {.struct_size = sizeof info};

    ck_assert(weft_op_choice_get(choice, &info) == WEFT_OK);
    wf_text_add(&text, "%s", "");
    for (uint32_t i = 0; i < info.inputs; i++)
        op_add_spec(&text, weft_op_choice_input(choice, i), false);
    wf_text_add(&text, "%s-> ", info.inputs > 0 ? " " : "");
    for (uint32_t i = 0; i < info.outputs; i++)
        op_add_spec(&text, weft_op_choice_output(choice, i), whole);
    snprintf(out, sizeof out, "%s", text.data);
    wf_text_free(&text);
    return out;
}

static inline bool op_allow_all(void *user, bool is_output, size_t index, const weft_spec *spec)
{
    (void)user, (void)is_output, (void)index, (void)spec;
    return true;
}

/* Options that allow everything.  Calls with them are not cached. */
static const weft_op_options op_uncached = {.struct_size = sizeof op_uncached,
                                            .allow = op_allow_all};

typedef weft_status op_function(const weft_op_call *, const weft_op_options *, weft_op_choice **);

/* The answer of FUNCTION, or "! " and the error. */
static inline const char *op_answer(op_function *function, op_text *o,
                                    const weft_op_options *options, bool whole)
{
    static char out[8200];
    weft_op_choice *choice = NULL;
    weft_status status = function(&o->call, options, &choice);

    snprintf(out, sizeof out, "%s%s", status == WEFT_OK ? "" : "! ",
             status == WEFT_OK ? op_choice_text(choice, whole) : weft_last_error());
    weft_op_choice_release(&choice);
    return out;
}

static inline const char *op_check(const char *name, const char *mesh, const char *inputs,
                                   const char *attrs)
{
    op_text o;
    const char *answer;

    op_begin(&o, name, mesh, inputs, attrs, NULL);
    answer = op_answer(weft_op_check, &o, NULL, false);
    op_text_release(&o);
    return answer;
}

static inline const char *op_propose(const char *name, const char *mesh, const char *inputs,
                                     const char *attrs)
{
    op_text o;
    const char *answer;

    op_begin(&o, name, mesh, inputs, attrs, NULL);
    answer = op_answer(weft_op_propose, &o, NULL, false);
    op_text_release(&o);
    return answer;
}

#endif
