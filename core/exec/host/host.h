/* host.h - the local work of plans, done by the host for backends without kernels.
 *
 *     kernels.c  decides whether the host does the work, says so, casts and fills memory
 *     lists.c    lists of regions, copied by the host
 *
 * The functions have the form of a kernel table, so that a bound plan calls them as it calls a
 * plugin's.  They wait for the stream and return when their work is complete.  If the host can
 * read and write the device's memory, it does so.  Otherwise it copies the memory to staging in
 * host memory and the result back.  Reductions are not in the table: average.c does them. */
#ifndef WEFT_EXEC_HOST_HOST_H
#define WEFT_EXEC_HOST_HOST_H

#include "comm/comm.h"

/* ---- kernels.c ---- */

/* True if the host does the local work of plans, because CONTEXT's plugin has no kernel table. */
bool wf_host_is_needed(const weft_context *context);
/* The kernel table that plans of CONTEXT use: the plugin's, or the host's. */
const weft_kernel_table *wf_kernels_of(const weft_context *context);
/* The DEVICE that functions of this table take. */
void *wf_kernels_device(weft_context *context);
/* Log what CONTEXT's plugin lacks and what that costs, once per context. */
void wf_host_log_notice(const weft_context *context);
/* Log that the host casts for CONTEXT's plugin, once per context. */
void wf_host_log_casts(const weft_context *context);

/* As `cast` in weft_kernel_table, for the casts that plans make.  DEVICE is the context. */
weft_status wf_host_cast(void *device, uint32_t from, uint32_t to, uint64_t count,
                         const void *source, void *target, void *stream) WF_NODISCARD;
/* Host memory that bound plans keep, which CONTEXT does not count as the caller's: the context may
 * keep bound plans of moves until it ends.  weft logs a failure to free it.  POINTER may be NULL.
 */
weft_status wf_host_memory_take(const weft_context *context, uint64_t bytes,
                                void **out) WF_NODISCARD;
void wf_host_memory_give(const weft_context *context, void *pointer);
/* Wait for all work on STREAM of CONTEXT. */
weft_status wf_host_wait(const weft_context *context, void *stream) WF_NODISCARD;

/* ---- lists.c ---- */

/* As in weft_kernel_table.  DEVICE is the context. */
weft_status wf_host_list_create(void *device, uint32_t element_bytes, uint64_t count,
                                const weft_region *regions, void **list) WF_NODISCARD;
void wf_host_list_destroy(void *list);
weft_status wf_host_list_copy(void *list, const void *const *sources, void *const *targets,
                              void *stream) WF_NODISCARD;

#endif
