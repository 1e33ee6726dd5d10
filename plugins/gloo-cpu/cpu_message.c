/* cpu_message.c - messages between two ranks. */
#include "comm.h"

weft_status wf_cpu_comm_send(void *comm, const weft_message *message)
{
    (void)comm;
    (void)message;
    return wf_cpu_fail(WEFT_ERR_UNSUPPORTED, "gloo-cpu has no messages yet");
}

weft_status wf_cpu_comm_receive(void *comm, const weft_message *message)
{
    (void)comm;
    (void)message;
    return wf_cpu_fail(WEFT_ERR_UNSUPPORTED, "gloo-cpu has no messages yet");
}

weft_status wf_cpu_comm_group_begin(void *comm)
{
    (void)comm;
    return WEFT_OK;
}

weft_status wf_cpu_comm_group_end(void *comm)
{
    (void)comm;
    return WEFT_OK;
}
