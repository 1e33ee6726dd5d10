/* message.h - the arrays that calls on a communicator use, messages, and groups of calls. */
#ifndef WEFT_PYTHON_MESSAGE_H
#define WEFT_PYTHON_MESSAGE_H

#include "place.h"

/* Open the array OBJECT, unless it is None: *IS_OPEN is then true, also after a failure that comes
 * later.  NAME is the argument's name.  A WRITTEN array must not be read-only. */
int side_open(PyObject *object, bool written, const char *name, context_object *context,
              struct array *array, bool *is_open);
uint64_t side_elements(const struct array *array);
/* Keep OBJECT until the end of the group of calls, if one has begun. */
int side_hold(context_object *context, PyObject *object);

PyObject *comm_send(PyObject *self, PyObject *args, PyObject *kwargs);
PyObject *comm_receive(PyObject *self, PyObject *args, PyObject *kwargs);
PyObject *comm_group_begin(PyObject *self, PyObject *unused);
PyObject *comm_group_end(PyObject *self, PyObject *unused);

#endif
