/* objects.c - the kinds of objects of other libraries, and checks of weft's own objects.
 *
 * A mark is as the first member of weft's own objects (base/kinds.h): a kind and the generation of
 * the process.  The kind of a type that weft does not have is a number made of its name. */
#include "base/fork.h"
#include "comm/comm.h"
#include "tensor/tensor.h"

#include "weft/extend.h"

#include <string.h>

static enum wf_kind library_kind(const char *type)
{
    return WF_KIND_LIBRARY + (enum wf_kind)(wf_hash(0, type, strlen(type)) % WF_KIND_LIBRARY);
}

static enum wf_kind kind_of(const char *type)
{
    enum wf_kind known = wf_kind_find(type);

    return known != 0 ? known : library_kind(type);
}

/* True if OBJECT is surely a TYPE that can be used, for the common case: it compares one name. */
static bool is_usable(const weft_object *object, const char *type)
{
    uint64_t mark = object->mark;
    enum wf_kind kind = (enum wf_kind)(mark >> 32);
    const char *name = wf_kind_name(mark);

    if (kind == WF_KIND_SIMULATED_COMM || !wf_is_usable(mark, kind)) return false;
    if (name == NULL) return kind >= WF_KIND_LIBRARY && kind == library_kind(type);
    return strcmp(name, type) == 0 &&
           (kind != WF_KIND_TENSOR || wf_tensor_is_usable((const void *)object));
}

void weft_object_begin(weft_object *object, const char *type)
{
    if (object != NULL && type != NULL) object->mark = wf_made_now(kind_of(type));
}

/* OBJECT, whose kind weft does not know, is not a TYPE that can be used. */
static weft_status refuse(const weft_object *object, enum wf_kind kind, const char *type,
                          const char *function, const char *argument)
{
    const char *is = wf_kind_name(object->mark);

    if (object->mark == wf_released(kind))
        return wf_fail(WEFT_ERR_INVALID, "%s: %s is a %s that was released", function, argument,
                       type);
    if (object->mark >> 32 == kind) return wf_fail_fork(function);
    if (is == NULL)
        return wf_fail(WEFT_ERR_INVALID, "%s: %s does not point to a %s; it may have been released",
                       function, argument, type);
    return wf_fail(WEFT_ERR_INVALID, "%s: %s is a %s; expected a %s", function, argument, is, type);
}

weft_status weft_object_check(const void *object, const char *type, const char *function,
                              const char *argument)
{
    const weft_object *found = object;
    enum wf_kind kind;

    WF_TRY(wf_require(type, "weft_object_check: type"));
    WF_TRY(wf_require(function, "weft_object_check: function"));
    WF_TRY(wf_require(argument, "weft_object_check: argument"));
    if (found != NULL && is_usable(found, type)) return WEFT_OK;
    kind = kind_of(type);
    if (kind == WF_KIND_CONTEXT) return wf_context_check(object, function);
    if (kind == WF_KIND_COMM) return wf_comm_check(object, function);
    if (kind == WF_KIND_TENSOR) return wf_tensor_check(object, function, argument);
    if (found == NULL) return wf_fail_null(function, argument);
    if (wf_is_usable(found->mark, kind) || wf_is_kind(found, kind)) return WEFT_OK;
    return refuse(found, kind, type, function, argument);
}

weft_status weft_stream_check(weft_context *context, const weft_stream *stream,
                              const char *function)
{
    WF_TRY(wf_require(function, "weft_stream_check: function"));
    WF_TRY(wf_context_check(context, function));
    return wf_stream_check(context, stream, function);
}

bool weft_object_end(weft_object *object, const char *type, const char *function)
{
    enum wf_kind kind;

    if (object == NULL || type == NULL || function == NULL) return false;
    kind = kind_of(type);
    if (wf_is_usable(object->mark, kind)) {
        object->mark = wf_released(kind);
        return true;
    }
    if (object->mark == wf_released(kind))
        wf_log(WF_LOG_WARNING, "%s: this %s was released before", function, type);
    else if (object->mark >> 32 != kind)
        wf_log(WF_LOG_WARNING, "%s: the pointer is not to a %s; it may have been released",
               function, type);
    return false;
}
