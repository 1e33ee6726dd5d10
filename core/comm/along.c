/* along.c - communicators of the axes of a mesh. */
#include "recording.h"

#include "mesh/mesh.h"

#include <stdio.h>
#include <string.h>

void wf_comm_advise_size(const weft_comm *comm, int32_t needed, char *out, size_t bytes)
{
    if (comm->context->is_simulated)
        snprintf(out, bytes, "simulate more (WEFT_SIMULATED_RANKS=%d)", needed);
    else if (comm == comm->context->world)
        snprintf(out, bytes, "start more (`weft run -n %d`)", needed);
    else
        snprintf(out, bytes, "use a larger communicator");
}

static weft_status check_ranks(const weft_comm *parent, const weft_mesh *mesh)
{
    char help[64];
    int32_t last = 0;

    for (int32_t i = 0; i < mesh->size; i++)
        last = weft_mesh_rank_at(mesh, i) > last ? weft_mesh_rank_at(mesh, i) : last;
    if (last < parent->size) return WEFT_OK;
    wf_comm_advise_size(parent, last + 1, help, sizeof help);
    return wf_fail(WEFT_ERR_INVALID,
                   "weft_comm_along: the mesh has ranks up to %d and needs %d ranks; %s has %d: "
                   "%s, or use a smaller mesh",
                   last, last + 1, parent->name, parent->size, help);
}

/* "dp", "dp,tp", "axis 0" if the axes have no names.  Every rank makes the same name. */
static void name_group(const weft_mesh *mesh, const int32_t *axes, int32_t count, char *out,
                       size_t bytes)
{
    size_t used = 0;

    for (int32_t i = 0; i < count && used < bytes; i++) {
        const char *name = weft_mesh_axis_name(mesh, axes[i]);

        used += (size_t)(name[0] != '\0'
                             ? snprintf(out + used, bytes - used, "%s%s", i > 0 ? "," : "", name)
                             : snprintf(out + used, bytes - used, "%s%d", i > 0 ? "," : "axis ",
                                        axes[i]));
    }
}

/* ---- agreement ---- */

/* The same on all ranks that pass the same mesh and axes. */
static uint64_t digest_axes(const weft_mesh *mesh, const int32_t *axes, int32_t count)
{
    uint64_t digest = wf_hash_mix(mesh->head.hash, (uint64_t)count);

    for (int32_t i = 0; i < count; i++)
        digest = wf_hash_mix(digest, (uint64_t)axes[i]);
    return digest;
}

static bool knows(const weft_comm *parent, uint64_t digest)
{
    const struct wf_known_axes *known = parent->known_axes;

    while (known != NULL && known->digest != digest)
        known = known->next;
    return known != NULL;
}

enum { SHOWN = 48 }; /* characters of the axes and of the mesh */

/* "weft_comm_along of tp of mesh dp=2,tp=2".  Calls that differ have different names. */
static weft_status name_call(const weft_mesh *mesh, const char *axes, uint64_t digest,
                             struct wf_text *out)
{
    struct wf_text text = {0};
    bool is_cut;

    wf_mesh_add_text(mesh, &text);
    is_cut = text.length > SHOWN || strlen(axes) > SHOWN;
    if (!text.failed)
        wf_text_add(out, "weft_comm_along of %.*s of mesh %.*s", SHOWN, axes, SHOWN, text.data);
    if (is_cut) wf_text_add(out, "... (digest %016llx)", (unsigned long long)digest);
    out->failed = out->failed || text.failed;
    wf_text_free(&text);
    return wf_text_status(out);
}

/* Agree among the ranks of MESH that all of them make the call NAME.  STATUS is this rank's result
 * so far. */
static weft_status compare_calls(weft_comm *parent, const weft_mesh *mesh, const char *name,
                                 weft_status status)
{
    char text[1024];
    struct wf_gathered got;

    for (int32_t i = 0; i < mesh->size; i++)
        parent->room[i] = weft_comm_world_rank(parent, weft_mesh_rank_at(mesh, i));
    status = wf_agree_on_list(parent, name, parent->room, mesh->size, parent->timeout_ns, status,
                              (weft_blob){"", 0}, &got);
    if (status == WEFT_OK) wf_gathered_free(&got);
    if (status != WEFT_ERR_MISMATCH) return wf_fail_named(status, "weft_comm_along");
    snprintf(text, sizeof text, "%s", weft_last_error());
    return wf_fail(status, "%s; all ranks of a mesh must pass the same mesh and axes", text);
}

/* The first call with MESH and AXES, named NAME: all ranks of MESH agree on it, and PARENT knows it
 * afterwards.  STATUS: see compare_calls. */
static weft_status learn_axes(weft_comm *parent, const weft_mesh *mesh, const char *axes,
                              uint64_t digest, weft_status status)
{
    struct wf_known_axes *known = wf_alloc(sizeof *known);
    struct wf_text name = {0};

    if (status == WEFT_OK && known == NULL) status = wf_fail_memory(sizeof *known);
    if (status == WEFT_OK) status = name_call(mesh, axes, digest, &name);
    status = compare_calls(
        parent, mesh, name.failed || name.data == NULL ? "weft_comm_along" : name.data, status);
    wf_text_free(&name);
    if (status != WEFT_OK) {
        wf_free(known);
        return status;
    }
    *known = (struct wf_known_axes){parent->known_axes, digest};
    parent->known_axes = known;
    return WEFT_OK;
}

/* ---- the call ---- */

/* List the ranks of PARENT that are in RANK's group of AXES, in their order.  The caller frees
 * *OUT. */
static weft_status list_group(const weft_mesh *mesh, const int32_t *axes, int32_t count,
                              int32_t rank, int32_t **out, int32_t *size)
{
    weft_mesh *slice;
    int32_t *ranks;

    WF_TRY(wf_mesh_slice(mesh, count, axes, rank, &slice));
    ranks = wf_alloc((size_t)slice->size * sizeof *ranks);
    *size = slice->size;
    for (int32_t i = 0; ranks != NULL && i < slice->size; i++)
        ranks[i] = weft_mesh_rank_at(slice, i);
    weft_mesh_release(&slice);
    if (ranks == NULL) return wf_fail_memory((size_t)*size * sizeof *ranks);
    *out = ranks;
    return WEFT_OK;
}

/* Record the first call with MESH and AXES, or the creation of the group of SIZE RANKS. */
static struct wf_submitted record_call(weft_comm *parent, const weft_mesh *mesh,
                                       const int32_t *ranks, int32_t size, bool is_known)
{
    int32_t count = is_known ? size : mesh->size;

    for (int32_t i = 0; i < count; i++)
        parent->room[i] =
            weft_comm_world_rank(parent, is_known ? ranks[i] : weft_mesh_rank_at(mesh, i));
    return wf_record_creation(parent, WEFT_RECORD_CREATE, "weft_comm_along", parent->room, count);
}

static weft_status find_group(weft_comm *parent, const weft_mesh *mesh, const int32_t *axes,
                              int32_t count, weft_subcomm_options *options, weft_comm **out)
{
    uint64_t digest = digest_axes(mesh, axes, count);
    int32_t *ranks = NULL, size = 0;
    char name[WF_SUBCOMM_NAME];
    weft_status status = list_group(mesh, axes, count, parent->rank, &ranks, &size);
    bool is_known = knows(parent, digest);
    struct wf_submitted record = {NULL, 0};

    name_group(mesh, axes, count, name, sizeof name);
    if (options->name == NULL) options->name = name;
    if (!is_known || (status == WEFT_OK && !wf_comm_has_axis_group(parent, ranks, size)))
        record = record_call(parent, mesh, ranks, size, is_known);
    if (!is_known) status = learn_axes(parent, mesh, name, digest, status);
    if (status == WEFT_OK) status = wf_comm_axis_group(parent, ranks, size, name, options, out);
    wf_free(ranks);
    return wf_record_created(parent, record, wf_fail_named(status, "weft_comm_along"));
}

weft_status weft_comm_along(weft_comm *parent, const weft_mesh *mesh, const char *axes,
                            const weft_subcomm_options *options, weft_comm **out)
{
    int32_t coord[WEFT_MAX_AXES], list[WEFT_MAX_AXES], count;
    weft_subcomm_options wanted = {0};
    weft_status status;

    if (parent == NULL) return wf_fail_null("weft_comm_along", "parent");
    WF_TRY(wf_comm_check(parent, "weft_comm_along"));
    WF_TRY(wf_require_kind(mesh, WF_KIND_MESH, "weft_comm_along: mesh"));
    if (axes == NULL) return wf_fail_null("weft_comm_along", "axes");
    if (out == NULL) return wf_fail_null("weft_comm_along", "out");
    status = wf_options_read("weft_subcomm_options", options, &wanted, sizeof wanted);
    if (status == WEFT_OK && wanted.native != NULL)
        status = wf_fail(WEFT_ERR_INVALID, "weft_subcomm_options.native is set; only "
                                           "weft_comm_create takes a vendor communicator");
    if (status == WEFT_OK && wanted.fails_with_parent)
        status = wf_fail(WEFT_ERR_INVALID, "weft_subcomm_options.fails_with_parent is set; only "
                                           "weft_comm_create takes it");
    if (status != WEFT_OK) return wf_fail_named(status, "weft_comm_along");
    wanted.struct_size = sizeof wanted;
    WF_TRY(check_ranks(parent, mesh));
    status = wf_mesh_read_axes(mesh, axes, list, &count);
    if (status != WEFT_OK) return wf_fail_context(status, "weft_comm_along");
    if (!wf_mesh_coord(mesh, parent->rank, coord)) {
        *out = NULL;
        return WEFT_OK;
    }
    return find_group(parent, mesh, list, count, &wanted, out);
}
