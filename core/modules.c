/* modules.c - the modules that take part in the life of a context: see comm/context/module.h. */
#include "exec/context/kept.h"
#include "symm/symm.h"
#include "tensor/tensor.h"

const struct wf_module *const wf_modules[WF_MODULE_COUNT] = {
    [WF_MODULE_SYMM] = &wf_symm_module,
    [WF_MODULE_EXEC] = &wf_exec_module,
    [WF_MODULE_TENSOR] = &wf_tensor_module,
};
