/* ccl_match.c - WEFT_COMM_CHECK: before each collective the ranks tell each other what they call.
 *
 * It costs a small all-gather and a wait each time, which is why it is asked for. */
#include "ccl.h"

weft_status wf_match(struct wf_comm *comm, const struct wf_op *op)
{
    struct wf_call mine = wf_call_of(comm, op);
    const void *all = NULL;

    if (wf_is_capturing(op->stream)) return WEFT_OK;
    WF_TRY(wf_talk(comm, op->stream, &mine, sizeof mine, &all));
    return wf_calls_match(comm, all);
}
