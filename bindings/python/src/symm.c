/* symm.c - the memory of weft.Symm as arrays.  Its other members are generated. */
#include "classes.h"
#include "shard.h"

static PyObject *symm_memory(PyObject *self, PyObject *args)
{
    const weft_symm *raw = handle_of(self, &class_weft_symm, "self");
    PyObject *key = Py_None;
    int64_t bytes;
    void *data;
    int peer;

    if (raw == NULL || !PyArg_ParseTuple(args, "|O:memory", &key)) return NULL;
    data = weft_symm_local(raw);
    if (key != Py_None) {
        if (!PyArg_Parse(key, "i:memory", &peer)) return NULL;
        data = weft_symm_peer(raw, peer);
        if (data == NULL) Py_RETURN_NONE;
    }
    bytes = (int64_t)weft_symm_bytes(raw);
    return shard_new(&(struct shard_facts){.data = data,
                                           .dims = 1,
                                           .shape = &bytes,
                                           .dtype = WEFT_DTYPE_U8,
                                           .device = ((handle_object *)self)->context->device,
                                           .owner = self});
}

int symm_members_add(void)
{
    static PyMethodDef methods[] = {{"memory", symm_memory, METH_VARARGS,
                                     "memory($self, peer=None, /)\n--\n\nThe bytes of this rank, "
                                     "or of a peer, for from_dlpack; None: this "
                                     "rank cannot address them."},
                                    {0}};

    return type_extend(binding.symm, methods, NULL);
}
