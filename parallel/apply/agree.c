/* agree.c - the ranks of a mesh compare their rules before they use them together. */
#include "apply.h"

#include <string.h>

struct rules {
    int32_t rank;
    uint64_t digest;
};

static weft_status compare(const weft_answers *answers, int32_t count)
{
    struct rules first, other;

    for (int32_t i = 0; i < count; i++) {
        memcpy(i == 0 ? &first : &other, weft_answers_data(answers, i), sizeof first);
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

/* The ranks of MESH compare their rules.  STATUS is this rank's so far. */
static weft_status agree(weft_context *context, const weft_mesh *mesh, const char *function,
                         weft_status status)
{
    const weft_agree_options options = {.struct_size = sizeof options, .mesh = mesh};
    weft_answers *answers = NULL;
    struct rules mine;

    memset(&mine, 0, sizeof mine);
    mine.rank = weft_rank(context);
    mine.digest = weft_op_digest();
    status =
        weft_agree(weft_world(context), function, status, &mine, sizeof mine, &options, &answers);
    if (status == WEFT_OK && answers != NULL) status = compare(answers, weft_mesh_size(mesh));
    weft_answers_release(&answers);
    return status;
}

weft_status wf_apply_agree(struct wf_apply_state *state, const weft_spec *spec,
                           const char *function)
{
    const weft_mesh *mesh = weft_spec_mesh(spec);
    weft_status status;

    for (uint32_t i = 0; i < state->mesh_count; i++)
        if (state->meshes[i] == mesh) return WEFT_OK;
    status = remember(state, mesh);
    if (!state->is_simulated) status = agree(state->context, mesh, function, status);
    if (status != WEFT_OK && state->mesh_count > 0 && state->meshes[state->mesh_count - 1] == mesh)
        weft_mesh_release(&state->meshes[--state->mesh_count]);
    return status;
}
