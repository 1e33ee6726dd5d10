/* checkpoint.h - what the files about checkpoints share. */
#ifndef WEFT_PYTHON_CHECKPOINT_H
#define WEFT_PYTHON_CHECKPOINT_H

#include "tensor.h"

/* A checkpoint, and the one that it maps, if there is one. */
typedef struct {
    HANDLE_HEAD(weft_checkpoint)
    PyObject *from;
} checkpoint_object;

/* The handle of OBJECT, which is open; NULL with an exception otherwise. */
weft_checkpoint *checkpoint_of(PyObject *object);
/* The handle of a Layout, or NULL for None; -1 with an exception otherwise. */
int layout_of(PyObject *object, weft_layout **out);
/* The format with this name; NULL: any. */
int format_of(const char *name, uint32_t *out);

/* The pairs of a dictionary of texts.  ITEMS owns them. */
struct pairs {
    PyObject *items;
    weft_checkpoint_pair *list;
    size_t count;
};
int pairs_open(PyObject *dictionary, struct pairs *out);
void pairs_close(struct pairs *pairs);

#endif
