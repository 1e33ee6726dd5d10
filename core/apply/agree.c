/* agree.c - the ranks of a mesh compare their rules before they use them together. */
#include "apply.h"

#include <string.h>

struct rules {
    int32_t rank;
    uint64_t digest;
};

static weft_status compare(const struct wf_gathered *got)
{
    struct rules first, other;

    for (int32_t i = 0; i < got->count; i++) {
        memcpy(i == 0 ? &first : &other, got->blobs[i].data, sizeof first);
        if (i == 0 || first.digest == other.digest) continue;
        return wf_fail(WEFT_ERR_MISMATCH,
                       "ranks %d and %d have registered different rules of operators; all ranks "
                       "must register the same rules before they apply an operator",
                       first.rank, other.rank);
    }
    return WEFT_OK;
}

static weft_status remember(struct wf_apply_state *state, const weft_mesh *mesh)
{
    if (state->mesh_count == state->mesh_room) {
        uint32_t room = 2 * state->mesh_room + 4;
        weft_mesh **meshes = wf_realloc(state->meshes, room * sizeof(*meshes));

        if (meshes == NULL) return wf_fail_memory(room * sizeof(*meshes));
        state->meshes = meshes;
        state->mesh_room = room;
    }
    state->meshes[state->mesh_count++] = weft_mesh_retain(mesh);
    return WEFT_OK;
}

weft_status wf_apply_agree(weft_context *context, const weft_spec *spec, const char *function)
{
    struct wf_apply_state *state = wf_apply_state(context);
    struct rules mine;
    struct wf_gathered got;
    weft_status status;

    for (uint32_t i = 0; i < state->mesh_count; i++)
        if (state->meshes[i] == spec->layout.mesh) return WEFT_OK;
    memset(&mine, 0, sizeof mine);
    mine.rank = context->rank;
    mine.digest = weft_op_digest();
    status = remember(state, spec->layout.mesh);
    status = wf_carrier_of(context)->agree(context, spec, spec, function, status,
                                           (weft_blob){&mine, sizeof mine}, &got);
    if (status == WEFT_OK) status = compare(&got);
    wf_gathered_free(&got);
    if (status != WEFT_OK && state->mesh_count > 0 &&
        state->meshes[state->mesh_count - 1] == spec->layout.mesh)
        weft_mesh_release(&state->meshes[--state->mesh_count]);
    return status;
}
