/* place.h - where memory is: the device of a context, the arrays that it can use, and the streams
 * on which it uses them. */
#ifndef WEFT_PYTHON_PLACE_H
#define WEFT_PYTHON_PLACE_H

#include "array.h"

/* 0 if the backend of CONTEXT can use ARRAY, also if ARRAY has no elements.  NAME is the argument's
 * name. */
int place_fits(const struct array *array, context_object *context, const char *name);

/* Open the array OBJECT, which must be dense and fit CONTEXT or, if that is NULL, be in host
 * memory; a WRITTEN one must not be read-only.  The caller closes *OUT after success. */
int place_open(PyObject *object, bool written, const char *name, context_object *context,
               struct array *out);

/* The array as a tensor of this rank alone, in the memory of the array.  The caller releases *OUT
 * before it closes the array. */
weft_status place_tensor(const struct array *array, const context_object *context,
                         weft_tensor **out);

/* Keep the array OBJECT until the end of the group of calls, if one has begun. */
int place_hold(context_object *context, PyObject *object);

/* The stream of STREAM as stream_of reads it, or without one that of ARRAY: the current stream of
 * its library, or the stream that it states.  ARRAY may be NULL. */
int place_stream(PyObject *stream, const struct array *array, context_object *context,
                 weft_stream **out, weft_stream **owned);

#endif
