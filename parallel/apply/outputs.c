/* outputs.c - how many outputs a call has, for callers who do not know its operator, and callers
 * who have too little room for them. */
#include "apply.h"

weft_status wf_room_refuse(uint32_t count, size_t room)
{
    return wf_fail(WEFT_ERR_INVALID,
                   "it has %u output%s, and outputs has room for %zu (output_count)", count,
                   WF_PLURAL(count), room);
}

size_t weft_op_output_count(const weft_op_call *call, weft_tensor *const *inputs)
{
    weft_op_choice_info info = {.struct_size = sizeof info};
    const weft_spec *few[8], **specs = few;
    weft_op_choice *choice = NULL;
    weft_op_call question = {0};

    if (call == NULL ||
        wf_options_read("weft_op_call", call, &question, sizeof question) != WEFT_OK ||
        (inputs == NULL && question.input_count > 0))
        return 0;
    if (question.outputs != NULL && question.output_count > 0) return question.output_count;
    question.struct_size = sizeof question;
    if (question.input_count > sizeof few / sizeof *few)
        specs = wf_calloc(question.input_count, sizeof *specs);
    if (specs == NULL) return 0;
    for (size_t i = 0; i < question.input_count; i++)
        specs[i] = weft_tensor_spec(inputs[i]);
    question.inputs = specs;
    if (weft_op_propose(&question, NULL, &choice) != WEFT_OK ||
        weft_op_choice_get(choice, &info) != WEFT_OK)
        info.outputs = 0;
    weft_op_choice_release(&choice);
    if (specs != few) wf_free(specs);
    return info.outputs;
}
