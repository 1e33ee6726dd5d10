/* gpu_failed.c - failed communicators: every call after the first error returns its cause. */
#include "vendor.h"
#include VENDOR_COMM

#include <stdio.h>
#include <string.h>

weft_status gpu_comm_fail(struct gpu_comm *comm, weft_status status, const char *text)
{
    weft_status none = WEFT_OK;

    pthread_mutex_lock(&comm->lock);
    if (atomic_load(&comm->error) == WEFT_OK)
        snprintf(comm->error_text, sizeof comm->error_text, "%s",
                 text != NULL ? text : plug_last_text());
    atomic_compare_exchange_strong(&comm->error, &none, status);
    pthread_mutex_unlock(&comm->lock);
    return status;
}

bool gpu_comm_has_failed(struct gpu_comm *comm)
{
    gpu_look *look;

    if (atomic_load_explicit(&comm->error, memory_order_acquire) != WEFT_OK) return true;
    look = comm->look;
    if (look == NULL) return false;
    look(comm);
    return atomic_load_explicit(&comm->error, memory_order_acquire) != WEFT_OK;
}

weft_status gpu_comm_cause(struct gpu_comm *comm)
{
    char text[sizeof comm->error_text];
    weft_status status;

    if (!gpu_comm_has_failed(comm)) return WEFT_OK;
    status = atomic_load(&comm->error);
    pthread_mutex_lock(&comm->lock);
    memcpy(text, comm->error_text, sizeof text);
    pthread_mutex_unlock(&comm->lock);
    return plug_fail(status, "communicator %s has failed: %s", comm->name, text);
}

weft_status gpu_comm_usable(struct gpu_comm *comm)
{
    if (!comm->is_ready)
        return plug_fail(WEFT_ERR_INVALID, "communicator %s is not committed", comm->name);
    return gpu_comm_cause(comm);
}
