/* counted.hpp - weft.hpp with every release counted.  Included once, before weft.hpp. */
#include <weft/recorder.h>
#include <weft/symm.h>
#include <weft/trace.h>
#include <weft/parallel.h>

#include <atomic>
#include <stdio.h>
#include <stdlib.h>

/* Number of objects of type T that handles have released, and of references that they have added.
 */
template <class T> inline std::atomic<int> released{0};
template <class T> inline std::atomic<int> retained{0};

template <class T, void (*Release)(T **)> void counted(T **object)
{
    if (object == nullptr || *object == nullptr) abort(); /* handles do not release empty objects */
    released<T> ++;
    Release(object);
}

template <class T, T *(*Retain)(const T *)> T *counted_retain(const T *object)
{
    if (object != nullptr) retained<T> ++;
    return Retain(object);
}

static weft_status counted_free(weft_context *context, void *pointer)
{
    weft_status status = weft_free(context, pointer);

    if (status == WEFT_OK) released<void> ++;
    return status;
}

#define weft_mesh_release        counted<weft_mesh, weft_mesh_release>
#define weft_mesh_retain         counted_retain<weft_mesh, weft_mesh_retain>
#define weft_spec_release        counted<weft_spec, weft_spec_release>
#define weft_plan_release        counted<weft_plan, weft_plan_release>
#define weft_work_release        counted<weft_work, weft_work_release>
#define weft_context_release     counted<weft_context, weft_context_release>
#define weft_comm_release        counted<weft_comm, weft_comm_release>
#define weft_bound_release       counted<weft_bound, weft_bound_release>
#define weft_symm_release        counted<weft_symm, weft_symm_release>
#define weft_observation_release counted<weft_observation, weft_observation_release>
#define weft_stream_release      counted<weft_stream, weft_stream_release>
#define weft_free                counted_free
#include <weft/parallel.hpp>
