/* gpu_comm.h - communicators, as far as all GPU plugins handle them alike.
 *
 * Each plugin has a struct wf_comm of its own, in the header that VENDOR_COMM names, and the files
 * below are compiled against it.  What they need of it:
 *
 *     name                      what it was made with
 *     is_ready                  committed
 *     lock, error, error_text   of gpu_stuck.c
 *
 * Functions that differ between plugins are declared as "of the plugin". */
#ifndef WEFT_XCCL_GPU_COMM_H
#define WEFT_XCCL_GPU_COMM_H

#include "gpu.h"

struct wf_comm;

/* ---- gpu_stuck.c: errors that stay ---- */

/* Keep STATUS, unless there is an error already; TEXT, or what this thread failed with last. */
weft_status wf_comm_stick(struct wf_comm *comm, weft_status status, const char *text);
/* WEFT_OK, or the error the communicator is stuck with, described. */
weft_status wf_comm_stuck(struct wf_comm *comm);
/* Committed and not stuck? */
weft_status wf_comm_usable(struct wf_comm *comm);
/* Of the plugin: has work on the device failed meanwhile?  Then the communicator sticks to it. */
void wf_comm_look(struct wf_comm *comm);

#endif
