/* cpu_hosts.c - communicators over several hosts. */
#include "comm.h"

weft_status wf_cpu_hosts_prepare(struct wf_cpu_comm *comm, const weft_comm_options *options)
{
    (void)comm;
    (void)options;
    return wf_cpu_fail(WEFT_ERR_UNSUPPORTED, "built without Gloo: one host only");
}
