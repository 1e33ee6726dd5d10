/* phase_tests.h - calls, tensors and layouts of tests of weft_op_apply_phases and weft_op_apply. */
#ifndef WEFT_TESTS_APPLY_PHASE_TESTS_H
#define WEFT_TESTS_APPLY_PHASE_TESTS_H

#include "base/base.h"
#include "system/tensor/holds.h"
#include "weft/context.h"
#include "weft/launch.h"
#include "weft/phases.h"

#include <check.h>
#include <string.h>

enum { RANKS = 4 };

static inline void run_on(int32_t ranks, weft_status (*rank)(void *), void *argument)
{
    ck_assert_msg(weft_threads_run(ranks, rank, argument) == WEFT_OK, "%s", weft_last_error());
}

static const weft_op_attr dim_1 = {.name = "dim", .kind = WEFT_ATTR_INT, .integer = 1};

static inline weft_op_call call_of(const char *name, uint32_t inputs, const weft_op_attr *attrs,
                                   uint32_t attr_count)
{
    return (weft_op_call){.struct_size = sizeof(weft_op_call),
                          .name = name,
                          .input_count = inputs,
                          .attr_size = sizeof(weft_op_attr),
                          .attrs = attrs,
                          .attr_count = attr_count};
}

static inline weft_status make_filled(weft_context *context, const char *mesh_text,
                                      const char *text, double value, weft_tensor **out)
{
    weft_mesh *mesh;
    weft_spec *spec;

    WF_TRY(weft_mesh_parse(mesh_text, &mesh));
    WF_TRY(weft_spec_parse(mesh, text, &spec));
    weft_mesh_release(&mesh);
    WF_TRY(weft_tensor_create(context, spec, NULL, out));
    weft_spec_release(&spec);
    return weft_tensor_fill(*out, value, NULL);
}

static inline weft_status make(weft_context *context, const char *mesh_text, const char *text,
                               weft_tensor **out)
{
    return make_filled(context, mesh_text, text, 1, out);
}

static inline bool prints(const weft_tensor *tensor, const char *text)
{
    char have[256];

    return weft_spec_print(weft_tensor_spec(tensor), have, sizeof have, NULL) == WEFT_OK &&
           strcmp(have, text) == 0;
}

#endif
