/* arguments.h - arguments that training systems share: the ranks along a mesh axis, this rank's
 * shards of tensors, and the system itself. */
#ifndef WEFT_PARALLEL_ARGUMENTS_H
#define WEFT_PARALLEL_ARGUMENTS_H

#include "base/base.h"
#include "weft/extend.h"
#include "weft/tensor.h"

/* ---- systems ---- */

/* The beginning of an object that ends with its communicator, but is released on its own. */
struct wf_system {
    weft_object object;
    weft_dependent *dependent; /* NULL: not yet, or no more */
    char ended[176];           /* why it has ended; "": it has not */
};

/* FUNCTION can use SYSTEM, a TYPE such as "weft_cp" and its argument `cp`.  The text of an error
 * calls it NAME: "the attention". */
weft_status wf_system_check(const struct wf_system *system, const char *type, const char *function,
                            const char *name) WF_NODISCARD;
/* FUNCTION releases SYSTEM.  False: it is not a TYPE that can be released. */
bool wf_system_release(struct wf_system *system, const char *type, const char *function);
/* The communicator of SYSTEM has ended because of CAUSE. */
void wf_system_end(struct wf_system *system, const char *cause);
static inline bool wf_system_has_ended(const struct wf_system *system)
{
    return system->ended[0] != '\0';
}

/* All ranks of COMM have succeeded so far, or all get the error of one.  STATUS is this rank's. */
weft_status wf_agree_on_status(weft_comm *comm, const char *function,
                               weft_status status) WF_NODISCARD;

/* ---- agree.c: what ranks that create an object together must pass alike ---- */

/* Add the field NAME, an option's or a noun, with a value of one line. */
void wf_field_add(struct wf_text *fields, const char *name, const char *format, ...)
    WF_PRINTF(3, 4);
/* The ranks of COMM, or only those of MESH unless it is NULL, call FUNCTION and have got so far;
 * STATUS is this rank's result.  All of them passed the same FIELDS, or all get an error that names
 * the first field that differs, with both values.  *ABILITIES, a bit each, becomes what all ranks
 * can do; NULL: nothing.  Frees FIELDS. */
weft_status wf_agree_on_fields(weft_comm *comm, const weft_mesh *mesh, const char *function,
                               weft_status status, struct wf_text *fields,
                               uint32_t *abilities) WF_NODISCARD;

/* ---- ranks ---- */

/* Set *OUT to the communicator of the ranks along axis AXIS (a name or an index) of MESH, arguments
 * of FUNCTION.  Collective over the ranks of MESH.  Simulated ranks have none. */
weft_status wf_axis_comm(weft_context *context, const weft_mesh *mesh, const char *axis,
                         const char *function, weft_comm **out) WF_NODISCARD;
/* WEFT_OK if the backend of COMM has messages, which WHAT ("a pipeline") needs; otherwise the error
 * of FUNCTION. */
weft_status wf_messages_require(const weft_comm *comm, const char *function,
                                const char *what) WF_NODISCARD;
/* Axis AXIS of MESH in an error text: "axis dp", or "axis 0" if the axes have no names. */
struct wf_axis_text {
    char text[8 + WEFT_MAX_AXIS_NAME];
};
struct wf_axis_text wf_axis_text(const weft_mesh *mesh, int32_t axis);
/* Whether the context's device has FEATURE, a value of enum weft_feature. */
bool wf_device_has(weft_context *context, uint64_t feature);

/* ---- shards ---- */

/* This rank's shard. */
struct wf_held {
    weft_tensor *tensor;
    char *memory;
    enum weft_dtype dtype;
    int32_t dims;
    int64_t shape[WEFT_MAX_DIMS], strides[WEFT_MAX_DIMS]; /* in elements */
    int64_t elements;
    bool is_dense; /* row-major without gaps */
};

/* Set *OUT to the shard of TENSOR, argument ARGUMENT of FUNCTION.  TENSOR belongs to CONTEXT, whose
 * ranks are not simulated, and if IS_WRITTEN it may be written. */
weft_status wf_held_of(const weft_context *context, weft_tensor *tensor, bool is_written,
                       const char *function, const char *argument,
                       struct wf_held *out) WF_NODISCARD;
/* WEFT_ERR_INVALID if HELD has gaps. */
weft_status wf_held_require_dense(const struct wf_held *held, const char *function,
                                  const char *argument) WF_NODISCARD;
/* Bytes from the first element to the end of the last one. */
uint64_t wf_held_span(const struct wf_held *held);
/* Work on STREAM uses the tensors of COUNT shards; unless WORK is NULL, *WORK records it. */
weft_status wf_held_posted(weft_context *context, size_t count, const struct wf_held *held,
                           weft_stream *stream, weft_work **work) WF_NODISCARD;

#endif
