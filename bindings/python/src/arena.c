/* arena.c - what a call holds until it ends, see call.h. */
#include "call.h"

#include <string.h>

struct block {
    struct block *next;
    union value memory[];
};

struct use {
    struct use *next;
    handle_object *handle;
};

void *arena_take(struct arena *arena, size_t bytes)
{
    size_t room = sizeof arena->room / sizeof *arena->room - arena->taken;
    struct block *block;

    if (bytes <= room * sizeof *arena->room) {
        void *memory = arena->room + arena->taken;

        arena->taken += (bytes + sizeof *arena->room - 1) / sizeof *arena->room;
        return memset(memory, 0, bytes);
    }
    block = PyMem_Calloc(1, sizeof *block + bytes + 1);
    if (block == NULL) return PyErr_NoMemory();
    block->next = arena->blocks;
    arena->blocks = block;
    return block->memory;
}

/* Append OBJECT, which it takes over, to *LIST, which is NULL before the first. */
static int append(PyObject **list, PyObject *object)
{
    int result;

    if (object == NULL) return -1;
    if (*list == NULL) *list = PyList_New(0);
    result = *list != NULL ? PyList_Append(*list, object) : -1;
    Py_DECREF(object);
    return result;
}

int arena_hold(struct arena *arena, PyObject *object)
{
    return append(&arena->held, object);
}

int arena_keep(struct arena *arena, PyObject *object)
{
    return append(&arena->kept, object);
}

int arena_use(struct arena *arena, PyObject *object, const struct handle_class *class)
{
    struct use *use = arena_take(arena, sizeof *use);

    if (use == NULL) return -1;
    if (arena->context == NULL)
        arena->context = class->type == &binding.context ? (context_object *)object
                                                         : ((handle_object *)object)->context;
    *use = (struct use){arena->used, (handle_object *)Py_NewRef(object)};
    use->handle->calls++;
    arena->used = use;
    return 0;
}

void *handle_use(PyObject *object, const struct handle_class *class, const char *name,
                 struct arena *arena)
{
    void *raw = handle_of(object, class, name);

    return raw != NULL && arena_use(arena, object, class) == 0 ? raw : NULL;
}

void arena_end(struct arena *arena)
{
    struct block *next;

    for (struct use *use = arena->used; use != NULL; use = use->next) {
        use->handle->calls--;
        Py_DECREF((PyObject *)use->handle);
    }
    for (struct block *block = arena->blocks; block != NULL; block = next) {
        next = block->next;
        PyMem_Free(block);
    }
    Py_CLEAR(arena->held);
    Py_CLEAR(arena->kept);
    arena->taken = 0;
    arena->blocks = NULL;
    arena->used = NULL;
}

int arena_stream(struct arena *arena, PyObject *object, weft_stream **out)
{
    stream_object *stream;
    weft_stream *owned = NULL;

    if (arena->context == NULL) return refuse(PyExc_TypeError, "a stream needs a context");
    if (stream_of(object, arena->context, out, &owned) < 0) return -1;
    if (owned == NULL) return arena_keep(arena, Py_NewRef(object));
    stream = object_new(binding.stream);
    if (stream == NULL) {
        weft_stream_release(&owned);
        return -1;
    }
    stream->raw = owned;
    join_context((PyObject *)stream, arena->context);
    return arena_keep(arena, (PyObject *)stream);
}
