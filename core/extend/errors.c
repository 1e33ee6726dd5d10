/* errors.c - errors of other libraries: their texts, and those that end a communicator. */
#include "comm/comm.h"

#include "weft/extend.h"

weft_status weft_fail_reword(weft_status status, const char *format, ...)
{
    char text[WF_ERROR_BYTES];

    if (format == NULL) return status;
    KIT_PRINT_REST(text, format);
    return wf_fail_reword(status, "%s", text);
}

uint64_t weft_failure_count(void)
{
    return wf_failure_count();
}

weft_status weft_comm_fail(weft_comm *comm, const char *function, weft_status status)
{
    WF_TRY(wf_require(function, "weft_comm_fail: function"));
    if (comm != NULL && wf_is_usable(comm->made, WF_KIND_SIMULATED_COMM))
        return wf_fail_named(status, function);
    WF_TRY(wf_comm_check(comm, "weft_comm_fail"));
    if (status == WEFT_OK) return WEFT_OK;
    return wf_comm_give_up(comm, status, function);
}
