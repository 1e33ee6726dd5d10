/* attention.h - what the two files of attention share. */
#ifndef WEFT_PYTHON_ATTENTION_H
#define WEFT_PYTHON_ATTENTION_H

#include "binding.h"

/* weft.AttentionPlan */
typedef struct {
    HANDLE_HEAD(weft_cp_plan)
    weft_mesh *mesh;
    int32_t axis;
} sequence_object;

/* The names of enum weft_cp_mask. */
extern const char *const attention_masks[];

int attention_plan_type_add(PyObject *module);

#endif
