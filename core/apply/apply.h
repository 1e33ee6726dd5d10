/* apply.h - operators at work: an engine's kernel on the shards of distributed tensors.
 *
 *     apply.c   the call: layouts, moves, outputs, kernel
 *     agree.c   the ranks of a mesh compare their rules
 *     module.c  the state of a context */
#ifndef WEFT_APPLY_APPLY_H
#define WEFT_APPLY_APPLY_H

#include "tensor/tensor.h"
#include "weft/apply.h"

struct wf_apply_state {
    enum weft_op_moves moves;
    /* The meshes whose ranks have compared their rules. */
    weft_mesh **meshes;
    uint32_t mesh_count, mesh_room;
};

static inline struct wf_apply_state *wf_apply_state(const weft_context *context)
{
    return context->kept[WF_MODULE_APPLY];
}

/* The ranks of SPEC's mesh have the same rules.  The first call on a mesh is collective over its
 * ranks; later ones do nothing.  WEFT_ERR_MISMATCH names two ranks. */
weft_status wf_apply_agree(weft_context *context, const weft_spec *spec) WF_NODISCARD;

extern const struct wf_module wf_apply_module;

#endif
