/* groups.h - communicators of some ranks of another one. */
#ifndef WEFT_COMM_GROUPS_H
#define WEFT_COMM_GROUPS_H

#include "objects.h"

/* ---- split.c ---- */

#define WF_SUBCOMM_NAME 64 /* bytes of weft_subcomm_options.name, with the end */

/* wf_agree of the ranks that make a communicator of WORLD_RANKS, in whichever order each of them
 * lists these; blobs are in the order of ranks.  Errors name FUNCTION.  WORLD_RANKS may be in
 * PARENT's room. */
weft_status wf_agree_on_list(weft_comm *parent, const char *function, const int32_t *world_ranks,
                             int32_t count, int64_t timeout_ns, weft_status status, weft_blob blob,
                             struct wf_gathered *out) WF_NODISCARD;
/* weft_comm_create for FUNCTION, which is the same on all ranks. */
weft_status wf_comm_create(weft_comm *parent, const char *function, int32_t count,
                           const int32_t *ranks, const weft_subcomm_options *options,
                           weft_comm **out) WF_NODISCARD;

/* ---- along.c ---- */

/* A mesh and axes of it that all ranks of the mesh have passed to weft_comm_along. */
struct wf_known_axes {
    struct wf_known_axes *next;
    uint64_t digest;
};

/* How often the ranks whose list has DIGEST have created or released something together on a
 * communicator. */
struct wf_creations {
    struct wf_creations *next;
    uint64_t digest, count;
};

/* How to get NEEDED ranks, more than COMM has. */
void wf_comm_advise_size(const weft_comm *comm, int32_t needed, char *out, size_t bytes);

/* ---- groups.c ---- */

/* The communicator of RANKS (of PARENT, this one among them) in this order: PARENT itself, or one
 * created on first use and kept with PARENT, which releases it.  Collective over RANKS.  STATUS is
 * this rank's result so far.  If it is not OK and the communicator has to be created, all of RANKS
 * fail with it.  Errors name FUNCTION.  With RECORDED, the wait for the other ranks gets a record.
 */
weft_status wf_comm_group(weft_comm *parent, const char *function, const int32_t *ranks,
                          int32_t count, weft_status status, bool recorded,
                          weft_comm **out) WF_NODISCARD;
/* The same for the ranks of MESH, recorded.  *OUT is NULL on other ranks, which get STATUS. */
weft_status wf_comm_mesh_group(weft_comm *parent, const weft_mesh *mesh, const char *function,
                               weft_status status, weft_comm **out) WF_NODISCARD;
/* The same for the program's own use: the axes NAME, with OPTIONS.  Steps of plans do not use it,
 * so PARENT does not fail with it, and it does not fail with PARENT. */
weft_status wf_comm_axis_group(weft_comm *parent, const int32_t *ranks, int32_t count,
                               const char *name, const weft_subcomm_options *options,
                               weft_comm **out) WF_NODISCARD;
/* True if it exists. */
bool wf_comm_has_axis_group(const weft_comm *parent, const int32_t *ranks, int32_t count);
/* GROUP, which the program has created and releases, fails with PARENT, and PARENT with it, until
 * one of them ends. */
void wf_comm_tie(weft_comm *parent, weft_comm *group);
void wf_comm_untie(weft_comm *group);

#endif
