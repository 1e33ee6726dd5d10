/* simulated.h - tensors and calls of operators on simulated ranks. */
#ifndef WEFT_TESTS_APPLY_SIMULATED_H
#define WEFT_TESTS_APPLY_SIMULATED_H

#include "weft/context.h"
#include "weft/ops.h"
#include "weft/tensor.h"

#include <check.h>

static inline weft_context *simulate(int32_t ranks)
{
    weft_init_options options = {.struct_size = sizeof options, .simulated_ranks = ranks};
    weft_context *context = NULL;

    ck_assert_msg(weft_init(&options, &context) == WEFT_OK, "%s", weft_last_error());
    return context;
}

static inline weft_tensor *make(weft_context *context, const char *mesh_text, const char *text)
{
    weft_tensor *tensor = NULL;
    weft_mesh *mesh;
    weft_spec *spec;

    ck_assert_int_eq(weft_mesh_parse(mesh_text, &mesh), WEFT_OK);
    ck_assert_msg(weft_spec_parse(mesh, text, &spec) == WEFT_OK, "%s", weft_last_error());
    ck_assert_int_eq(weft_tensor_create(context, spec, NULL, &tensor), WEFT_OK);
    weft_spec_release(&spec);
    weft_mesh_release(&mesh);
    return tensor;
}

static inline weft_op_call call_of(const char *name, uint32_t inputs)
{
    return (weft_op_call){.struct_size = sizeof(weft_op_call), .name = name, .input_count = inputs};
}

#endif
