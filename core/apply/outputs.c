/* outputs.c - how many outputs a call has, for callers who do not know its operator. */
#include "apply.h"

uint32_t weft_op_output_count(const weft_op_call *call, weft_tensor *const *inputs)
{
    weft_op_choice_info info = {.struct_size = sizeof info};
    const weft_spec *few[8], **specs = few;
    weft_op_choice *choice = NULL;
    weft_op_call question = {0};

    if (call == NULL ||
        wf_options_read("weft_op_call", call, &question, sizeof question) != WEFT_OK ||
        (inputs == NULL && question.input_count > 0))
        return 0;
    question.struct_size = sizeof question;
    if (question.input_count > sizeof few / sizeof *few)
        specs = wf_calloc(question.input_count, sizeof *specs);
    if (specs == NULL) return 0;
    for (uint32_t i = 0; i < question.input_count; i++)
        specs[i] = weft_tensor_spec(inputs[i]);
    question.inputs = specs;
    if (weft_op_propose(&question, NULL, &choice) != WEFT_OK ||
        weft_op_choice_get(choice, &info) != WEFT_OK)
        info.outputs = 0;
    weft_op_choice_release(&choice);
    if (specs != few) wf_free(specs);
    return info.outputs;
}
