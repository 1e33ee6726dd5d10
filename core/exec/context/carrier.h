/* carrier.h - how the tensors of a context move: between ranks that communicate, or between ranks
 * that are simulated in this process.
 *
 * A context has one carrier from its start on.  FUNCTION is the function that the user called;
 * errors name it. */
#ifndef WEFT_EXEC_CONTEXT_CARRIER_H
#define WEFT_EXEC_CONTEXT_CARRIER_H

#include "comm/agree.h"
#include "weft/move.h"

/* In a weft_move_item, `source` and `target` are what this process holds of the tensor, row-major
 * without gaps: the memory of its rank's shard; or, if ranks are simulated, an array of pointers to
 * the shards (const void *const *, void *const *), by position in the mesh. */

/* What a carrier remembers of a list, for the next move of the same items: zero at first, and
 * whenever the items have changed.  It keeps its address. */
struct wf_list_memo {
    void *kept;
    uint64_t ended;
};

/* What the options of a move ask for.  Calls take NULL if they ask for nothing. */
struct wf_moving {
    weft_plan_options plan;
    bool is_chosen; /* PLAN is not the common one, which the context's costs decide */
    bool is_implicit;
    const char *made_for; /* the operator that needs the move; NULL: not known */
};

/* Read OPTIONS of FUNCTION to ROOM, and set *OUT to ROOM or, without OPTIONS, to NULL. */
weft_status wf_moving_read(const weft_move_options *options, const char *function,
                           struct wf_moving *room, const struct wf_moving **out) WF_NODISCARD;

struct wf_carrier {
    /* As weft_move of one tensor.  The specs are those of tensors. */
    weft_status (*move)(weft_context *context, const weft_move_item *item,
                        const struct wf_moving *how, weft_stream *stream, weft_work **work,
                        const char *function);
    /* As weft_move.  MEMO is that of the list, or NULL. */
    weft_status (*move_batch)(weft_context *context, uint32_t count, const weft_move_item *items,
                              struct wf_list_memo *memo, const struct wf_moving *how,
                              weft_stream *stream, weft_work **work, const char *function);
    /* A step that the ranks of the meshes of FROM and TO take together: STATUS is this process's
     * result so far.  All get OK and every process's BLOB, or the same error.  On ranks outside the
     * meshes, OUT has no blobs and STATUS is returned.  The caller frees OUT. */
    weft_status (*agree)(weft_context *context, const weft_spec *from, const weft_spec *to,
                         const char *function, weft_status status, weft_blob blob,
                         struct wf_gathered *out);
    /* This process cannot take its part, with STATUS and the thread's last error: others would wait
     * for it, so all of them get an error.  Returns it. */
    weft_status (*give_up)(weft_context *context, weft_status status, const char *function);
};

/* CONTEXT's carrier. */
const struct wf_carrier *wf_carrier_of(const weft_context *context);

extern const struct wf_carrier wf_carrier_real;      /* move.c */
extern const struct wf_carrier wf_carrier_simulated; /* simulated.c */

#endif
