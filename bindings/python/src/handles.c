/* handles.c - handles of weft as Python objects. */
#include "classes.h"
#include "interrupt.h"

context_object *context_behind(PyObject *object)
{
    if (PyObject_TypeCheck(object, binding.context)) return (context_object *)object;
    return ((handle_object *)object)->context;
}

void *handle_of(PyObject *object, const struct handle_class *class, const char *name)
{
    void *raw;

    if (!is_of(object, *class->type, name)) return NULL;
    raw = ((handle_object *)object)->raw;
    if (raw == NULL)
        PyErr_Format(PyExc_RuntimeError, "the %s was closed",
                     *class->type == binding.context ? "context" : class->name);
    return raw;
}

void join_context(PyObject *object, context_object *context)
{
    handle_object *self = (handle_object *)object;

    self->context = (context_object *)Py_NewRef((PyObject *)context);
    self->before = context->last;
    if (self->before != NULL) self->before->after = self;
    context->last = self;
    context->used++;
}

static bool is_handle(PyObject *object)
{
    for (const struct handle_class *const *class = handle_classes; *class != NULL; class ++)
        if (*(*class)->type != NULL && PyObject_TypeCheck(object, *(*class)->type)) return true;
    return false;
}

/* Count one user more or less of the handles in KEEPS: an object, a tuple or list of them, or NULL.
 */
static void count_user(PyObject *keeps, int change)
{
    if (keeps == NULL) return;
    for (Py_ssize_t i = 0; PyTuple_Check(keeps) && i < PyTuple_Size(keeps); i++)
        count_user(PyTuple_GetItem(keeps, i), change);
    for (Py_ssize_t i = 0; PyList_Check(keeps) && i < PyList_Size(keeps); i++)
        count_user(PyList_GetItem(keeps, i), change);
    if (is_handle(keeps)) ((handle_object *)keeps)->users += change;
}

PyObject *handle_make(PyTypeObject *type, const struct handle_class *class, void *raw, bool owned,
                      PyObject *keeps)
{
    handle_object *self;

    if (raw == NULL) Py_RETURN_NONE;
    if (!owned && class->retain != NULL) {
        raw = class->retain(raw);
        owned = true;
    }
    self = object_new(type);
    if (self == NULL) {
        if (owned) class->release(raw);
        return NULL;
    }
    self->raw = raw;
    self->is_borrowed = !owned;
    self->keeps = class->retain == NULL ? Py_XNewRef(keeps) : NULL;
    if (!class->is_by_hand && class->retain == NULL) count_user(keeps, 1);
    return (PyObject *)self;
}

PyTypeObject *class_for(PyObject *given, const struct handle_class *class)
{
    if (given != NULL && PyType_Check(given) &&
        PyType_IsSubtype((PyTypeObject *)given, *class->type))
        return (PyTypeObject *)given;
    return *class->type;
}

/* Give up the handle, which may wait. */
static void release(handle_object *self, const struct handle_class *class)
{
    void *raw = self->raw;

    self->raw = NULL;
    if (raw == NULL) return;
    if (!self->is_borrowed && class->retain != NULL) {
        class->release(raw); /* at most memory is freed */
    } else if (!self->is_borrowed) {
        self->calls++; /* another thread that closes it does not leave the context meanwhile */
        WAIT_BEGIN
        class->release(raw);
        WAIT_END
        self->calls--;
    }
    if (class->retain == NULL) count_user(self->keeps, -1);
}

/* The context may be closed without SELF from now on. */
static void leave_context(handle_object *self)
{
    context_object *context = self->context;

    self->context = NULL;
    if (context == NULL) return;
    if (self->before != NULL) self->before->after = self->after;
    if (self->after != NULL) self->after->before = self->before;
    if (context->last == self) context->last = self->before;
    self->before = self->after = NULL;
    context->used--;
    Py_DECREF((PyObject *)context);
}

PyObject *dependent_new(PyTypeObject *type, void *raw, context_object *context)
{
    handle_object *self = object_new(type);

    if (self == NULL) return NULL;
    self->raw = raw;
    join_context((PyObject *)self, context);
    return (PyObject *)self;
}

void dependent_free(PyObject *object)
{
    leave_context((handle_object *)object);
    Py_XDECREF(((handle_object *)object)->keeps);
    object_free(object);
}

int handle_traverse(PyObject *self, visitproc visit, void *arg)
{
    Py_VISIT(Py_TYPE(self));
    Py_VISIT(((handle_object *)self)->keeps);
    return 0;
}

void handle_dealloc(PyObject *object, const struct handle_class *class)
{
    if (PyObject_GC_IsTracked(object)) PyObject_GC_UnTrack(object);
    release((handle_object *)object, class);
    dependent_free(object);
}

PyObject *handle_close(PyObject *object, const struct handle_class *class)
{
    handle_object *self = (handle_object *)object;

    if (self->calls > 0)
        return PyErr_Format(PyExc_RuntimeError, "a call of the %s is running", class->name);
    if (self->users > 0)
        return PyErr_Format(PyExc_RuntimeError,
                            "the %s is in use by an object that was made from it, such as an array "
                            "of its memory; delete or close that first",
                            class->name);
    release(self, class);
    leave_context(self);
    Py_RETURN_NONE;
}

PyObject *handle_enter(PyObject *self, PyObject *unused)
{
    (void)unused;
    return Py_NewRef(self);
}

PyObject *handle_repr(PyObject *self)
{
    return package_call("weft._texts", "text_of", "(O)", self);
}

PyObject *handle_compare(PyObject *self, PyObject *other, int op)
{
    bool equal;

    if (op != Py_EQ && op != Py_NE) Py_RETURN_NOTIMPLEMENTED;
    if (Py_TYPE(self) != Py_TYPE(other) && !is_handle(other)) Py_RETURN_NOTIMPLEMENTED;
    equal = ((handle_object *)self)->raw == ((handle_object *)other)->raw;
    return PyBool_FromLong(equal == (op == Py_EQ));
}

/* Whether Python has replaced the member NAME of TYPE. */
static bool is_replaced(PyTypeObject *type, const char *name)
{
    PyObject *own = PyObject_GetAttrString((PyObject *)type, name);
    bool is =
        own != NULL && Py_TYPE(own) != &PyMethodDescr_Type && Py_TYPE(own) != &PyGetSetDescr_Type;

    PyErr_Clear();
    Py_XDECREF(own);
    return is;
}

/* Add MEMBER, which it takes over, to TYPE. */
static int add_member(PyTypeObject *type, const char *name, PyObject *member)
{
    int result = member != NULL ? 0 : -1;

    if (result == 0 && !is_replaced(type, name))
        result = PyObject_SetAttrString((PyObject *)type, name, member);
    Py_XDECREF(member);
    return result;
}

int type_extend(PyTypeObject *type, PyMethodDef *methods, PyGetSetDef *properties)
{
    for (; methods->ml_name != NULL; methods++)
        if (add_member(type, methods->ml_name,
                       (methods->ml_flags & METH_CLASS) != 0
                           ? PyDescr_NewClassMethod(type, methods)
                           : PyDescr_NewMethod(type, methods)) < 0)
            return -1;
    for (; properties != NULL && properties->name != NULL; properties++)
        if (add_member(type, properties->name, PyDescr_NewGetSet(type, properties)) < 0) return -1;
    return 0;
}

PyObject *handle_class_use(PyObject *module, PyObject *given)
{
    (void)module;
    if (!PyType_Check(given))
        return PyErr_Format(PyExc_TypeError, "expected a class, not %R", given);
    for (const struct handle_class *const *class = handle_classes; *class != NULL; class ++) {
        PyTypeObject **type = (*class)->type;

        if (*type == NULL || !PyType_IsSubtype((PyTypeObject *)given, *type)) continue;
        Py_DECREF(*type);
        *type = (PyTypeObject *)Py_NewRef(given);
        /* CPython finds members of the exact type faster than members of a base. */
        for (const struct members *const *own = all_members; *own != NULL; own++)
            if ((*own)->type == type && type_extend(*type, (*own)->methods, (*own)->properties) < 0)
                return NULL;
        return Py_NewRef(given);
    }
    return PyErr_Format(PyExc_TypeError, "%R is not a subclass of a class of weft._weft", given);
}
