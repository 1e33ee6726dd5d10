/* array.h - arrays of other libraries: their memory, without copies.
 *
 * An array is read through the first of these that its type has: the exchange table of DLPack 1.3,
 * the buffer protocol, __dlpack__, __cuda_array_interface__. */
#ifndef WEFT_PYTHON_ARRAY_H
#define WEFT_PYTHON_ARRAY_H

#include "binding.h"

/* The exchange table, DLPackExchangeAPI. */
struct exchange {
    weft_dl_version version;
    struct exchange *previous;
    int (*allocate)(weft_dl_tensor *prototype, weft_dl_versioned **out, void *context,
                    void (*fail)(void *context, const char *kind, const char *text));
    int (*own)(void *object, weft_dl_versioned **out);
    int (*give)(weft_dl_versioned *managed, void **out); /* takes over MANAGED */
    int (*borrow)(void *object, weft_dl_tensor *out);    /* may be NULL */
    int (*current_stream)(int32_t device_type, int32_t device, void **out);
};

/* The number of a device that an array does not state. */
#define ANY_DEVICE (-1)

struct array {
    const struct exchange *exchange;
    weft_dl_versioned *managed;
    weft_dl_unversioned *unversioned;
    PyObject *owner; /* of the memory, if none of the members above keeps it; may be NULL */
    void *native;
    bool has_native; /* the array states the stream that its work is on: NATIVE */
    bool has_view, is_read_only, is_dense; /* row-major without gaps */
    /* The members before these are 0 in an array that was not opened. */
    enum weft_dtype dtype;
    int32_t dims;
    weft_dl_device device;
    void *data;
    int64_t shape[WEFT_MAX_DIMS], strides[WEFT_MAX_DIMS]; /* in elements */
    Py_buffer view;
};

#define arrays_call(function, ...) package_call("weft._arrays", function, __VA_ARGS__)

/* Read OBJECT.  The caller closes *OUT after success. */
int array_open(PyObject *object, struct array *out);
/* The same for any contiguous buffer, as its bytes; a WRITTEN one is not read-only. */
int array_open_bytes(PyObject *object, bool written, struct array *out);
void array_close(struct array *array);
/* The number of its elements, and their bytes. */
uint64_t array_elements(const struct array *array);
uint64_t array_bytes(const struct array *array);
/* 0 if ARRAY is contiguous and, if WRITTEN is true, may be written. */
int check_dense(const struct array *array, const char *name, bool written);
/* 0 if ARRAY may be written. */
int writable(const struct array *array, const char *name);

/* A new array of the library of LIKE, on its device, with this shape and dtype; *OUT is it, opened.
 * Row-major without gaps; its elements are not set. */
PyObject *array_empty(PyObject *like, const struct array *opened, int32_t dims,
                      const int64_t *shape, enum weft_dtype dtype, struct array *out);

#endif
