/* call.h - functions of C as members of Python types, from tables that api/python.py writes.
 *
 * A table has one entry per argument of the C function.  call_function reads the Python arguments
 * by it, calls the function and makes the result: None, a value, or a tuple of several. */
#ifndef WEFT_PYTHON_CALL_H
#define WEFT_PYTHON_CALL_H

#include "binding.h"

enum value_kind {
    VALUE_BOOL,
    VALUE_U8,
    VALUE_I32,
    VALUE_U32,
    VALUE_I64,
    VALUE_U64,
    VALUE_SIZE,
    VALUE_F64,
    VALUE_TIMEOUT, /* int64_t nanoseconds; seconds in Python; as an argument, None waits forever */
    VALUE_ENUM,    /* a text of struct choices */
    VALUE_BITS,    /* uint32_t or uint64_t (`element`); one keyword per choice */
    VALUE_TEXT,
    VALUE_AXES,    /* a text that lists axes; in Python also the number of one */
    VALUE_PATH,    /* a text; str, bytes or os.PathLike in Python */
    VALUE_ADDRESS, /* void *; an int in Python, None for NULL */
    VALUE_HANDLE,
    VALUE_CONTEXT,  /* the context of the other arguments, which Python does not state */
    VALUE_STREAM,   /* stream_of; the result of the call keeps one of a struct */
    VALUE_COUNT,    /* the number of entries of the list at `of` */
    VALUE_ELEMENT,  /* the size of the elements of a list, which is `length` */
    VALUE_LIST,     /* entries of the kind `element` */
    VALUE_RECORD,   /* a struct; as an argument, its fields are keywords */
    VALUE_BUFFER,   /* for a text; its size and the length of the whole text follow */
    VALUE_ARRAY,    /* the memory of a dense array; its bytes are the argument `of`, or its elements
                       if VALUE_DTYPE follows that */
    VALUE_DTYPE,    /* the dtype of the array */
    VALUE_HOST,     /* likewise in host memory, of an object with the buffer protocol: the shard of
                       the tensor that is self */
    VALUE_CALLBACK, /* a function of Python; `of` is the argument or field that is its `user` */
    VALUE_NATIVE,   /* of a struct that a callback gets: a stream; its address in Python */
    VALUE_MEMORY,   /* likewise: memory; a weft.Shard of unknown size in Python */
    VALUE_STATE, /* a struct that the call reads and changes; its fields in Python.  Of a struct: a
                    pointer to another one, which the call reads */
    VALUE_UNUSED /* 0 or NULL */
};

/* The texts of an enum. */
struct choices {
    uint32_t count;
    const char *const *texts;
    const int32_t *values;
    PyObject **objects; /* of the texts that Python has used; the others are NULL */
};

struct record;
struct callback;
union value;

/* A handle's type.  A program in Python may replace it by a subclass (handle_class_use). */
struct handle_class {
    const char *name; /* in Python */
    PyTypeObject **type;
    void (*release)(void *raw);
    void *(*retain)(const void *raw); /* NULL: the handle has one owner */
    bool is_by_hand;                  /* its file releases it, not handle_dealloc */
};

/* An argument of a function, a field of a struct, or an entry of a list. */
struct value_type {
    const char *name; /* in Python; NULL: Python does not state it */
    uint8_t kind, element;
    uint8_t is_optional, is_out, is_owned;
    uint8_t is_absent;  /* of a number: -1, or the greatest, is None */
    uint8_t is_pointer; /* of a record or text in a struct: the field points to it; of an array: it
                           is written */
    int8_t of;       /* of a count: its list; of a list in a struct or of a list that is returned:
                        the field or argument that has its count; -1: none */
    uint16_t offset; /* of a field in its struct, of an argument in struct call */
    uint16_t within; /* of a list that stands for one of the struct at `of`: the offset of its count
                        there */
    uint16_t length; /* of a field that is an array: its entries; 0: a pointer.  Of VALUE_ELEMENT:
                        the size */
    const struct handle_class *handle;
    const struct choices *choices;
    const struct record *record;
    const struct callback *callback;
    int32_t (*count)(const void *raw); /* of a list whose length a handle at `of` tells */
    /* The entries of a list, or the least bytes of an array, if other arguments tell them. */
    uint64_t (*measure)(const union value *values);
};

struct record {
    size_t size;
    bool is_sized; /* begins with struct_size */
    uint8_t size_bytes;
    uint8_t count;
    const struct value_type *fields;
    PyObject **keys; /* the names of the fields, which record_make makes once */
    /* Makes the object of the struct; NULL: a dictionary. */
    PyObject *(*make)(const void *memory, PyObject *owner);
};

union value {
    bool flag;
    uint8_t u8;
    int32_t i32;
    uint32_t u32;
    int64_t i64;
    uint64_t u64;
    size_t size;
    double f64;
    void *pointer;
    const void *constant;
};

#define CALL_ARGUMENTS 12 /* at most; the generator checks it */
#define OPTION_NAME                                                                                \
    CALL_ARGUMENTS /* in `stated`: the option `name`, which may be given by position */

/* The sets of arguments below are bits: bit i is arguments[i]. */
struct function {
    const char *name;  /* in Python */
    const char *names; /* of what Python may give, with spaces between them */
    weft_status (*call)(union value *values);
    const struct value_type *arguments;
    const int8_t *stated; /* the arguments that Python gives by position or by name, in this order;
                             -1 ends them */
    uint8_t count;
    int8_t self;       /* the argument that is self; -1: a function or a class method */
    int8_t buffer;     /* the argument that is VALUE_BUFFER; -1: none */
    uint16_t required; /* those of `stated` that have no default */
    uint16_t presets;  /* those with a value that Python does not give: structs, limits, sizes */
    uint16_t counted;  /* lists whose lengths other arguments tell */
    uint16_t places;   /* the context, the array and the stream: they may follow from others */
    uint16_t outs;     /* those that the function writes */
    uint16_t results;  /* those of `outs` that Python gets */
    bool returns;      /* arguments[count] is its result; it returns no status */
    bool keeps;        /* a result may be a handle, which keeps objects of the call */
    uint8_t waits;     /* it is called without the GIL; 2: always; 1: if options are given */
    bool tests;        /* False if it returns WEFT_IN_PROGRESS, else True */
    bool refuses;      /* the result REFUSED, or NULL, is an IndexError of the first argument */
    int8_t refused;
};

/* A call as METH_FASTCALL | METH_KEYWORDS passes it: COUNT arguments by position, then those that
 * the tuple NAMES names. */
PyObject *call_function(const struct function *function, PyObject *self, PyObject *const *args,
                        Py_ssize_t count, PyObject *names);
/* The same as Py_tp_new passes it. */
PyObject *call_new(const struct function *function, PyTypeObject *type, PyObject *args,
                   PyObject *kwargs);
/* The getter of a property that can fail or is not one value; CLOSURE is a struct function. */
PyObject *call_property(PyObject *self, void *closure);

/* ---- arena.c ---- */

/* The memory and the objects of a call.  They live until it ends. */
struct arena {
    PyObject *held;          /* a list, or NULL */
    struct use *used;        /* a chain of handles at which the call counts */
    PyObject *kept;          /* a list of what the result must keep, or NULL */
    context_object *context; /* of the first handle with one, borrowed; NULL: none */
    void *blocks;            /* a chain: memory beyond `room` */
    /* Reads a function of Python, as callback_field; a call sets it. */
    int (*callback)(const struct record *record, const struct value_type *field, char *memory,
                    PyObject *function, struct arena *arena);
    size_t taken;         /* values of `room` */
    union value room[64]; /* the first memory, which is not set */
};

/* An arena whose room is not set, which takes less time than {0}. */
static inline void arena_begin(struct arena *arena)
{
    arena->held = NULL;
    arena->kept = NULL;
    arena->used = NULL;
    arena->context = NULL;
    arena->blocks = NULL;
    arena->callback = NULL;
    arena->taken = 0;
}

/* BYTES that are 0. */
void *arena_take(struct arena *arena, size_t bytes);
int arena_hold(struct arena *arena, PyObject *object); /* takes over OBJECT */
/* Keep OBJECT, which it takes over, as long as what the call makes lives. */
int arena_keep(struct arena *arena, PyObject *object);
int arena_use(struct arena *arena, PyObject *object,
              const struct handle_class *class); /* see handle_use */
/* As handle_of, and count the call of ARENA at OBJECT until it ends: nothing can close it
 * meanwhile. */
void *handle_use(PyObject *object, const struct handle_class *class, const char *name,
                 struct arena *arena);
void arena_end(struct arena *arena);
/* The stream of OBJECT, as stream_of reads it.  What the call makes may use it as long as it lives,
 * and keeps it. */
int arena_stream(struct arena *arena, PyObject *object, weft_stream **out);

/* ---- numbers.c ---- */

/* The bytes of a value of this kind, of TYPE or of an entry of its list. */
size_t value_bytes(const struct value_type *type, uint8_t kind);
/* The unsigned number of BYTES bytes at MEMORY, and its opposite. */
uint64_t value_load(const void *memory, size_t bytes);
void value_store(void *out, size_t bytes, uint64_t value);
/* TypeError: OBJECT, the argument of TYPE, is not what is WANTED.  Returns -1. */
int value_refuse(const struct value_type *type, const char *wanted, PyObject *object);
/* Read a number for the argument of TYPE; an integer is of KIND. */
int integer_read(const struct value_type *type, uint8_t kind, PyObject *object, void *out);
int double_read(const struct value_type *type, PyObject *object, double *out);
int timeout_read(const struct value_type *type, PyObject *object, int64_t *out);

/* ---- records.c ---- */

/* Read OBJECT, which is not None unless the value is optional, to OUT. */
int value_read(const struct value_type *type, PyObject *object, struct arena *arena, void *out);
/* Read a list; *COUNT is its length. */
int list_read(const struct value_type *type, PyObject *object, struct arena *arena, void **out,
              size_t *count);
/* Set FIELD of RECORD, which is at MEMORY, from OBJECT. */
int field_set(const struct record *record, const struct value_type *field, char *memory,
              PyObject *object, struct arena *arena);
/* Set what every struct of RECORD has: its size, and the sizes of the elements of its lists. */
void record_begin(const struct record *record, char *memory);
/* Set the field of RECORD that is called NAME from OBJECT; 0: RECORD has no such field. */
int record_set(const struct record *record, char *memory, PyObject *name, PyObject *object,
               struct arena *arena);
/* The number of entries of the field LIST of RECORD. */
size_t count_of(const struct record *record, const struct value_type *list, const char *memory);

/* ---- results.c ---- */

/* The object of the value at MEMORY.  OWNER is kept by borrowed handles. */
PyObject *value_make(const struct value_type *type, const void *memory, PyObject *owner);
/* The object of a field of the struct at MEMORY. */
PyObject *field_make(const struct record *record, const struct value_type *field,
                     const char *memory, PyObject *owner);
/* A dictionary of the fields. */
PyObject *record_make(const struct record *record, const char *memory, PyObject *owner);
/* COUNT entries at MEMORY as a tuple. */
PyObject *list_make(const struct value_type *type, const void *memory, size_t count,
                    PyObject *owner);

/* ---- handles.c ---- */

/* The open handle of OBJECT; NULL with an exception.  NAME is the argument's name. */
void *handle_of(PyObject *object, const struct handle_class *class, const char *name);
/* The same of SELF, which is of CLASS or of a subclass. */
static inline void *open_handle(PyObject *self, const struct handle_class *class)
{
    void *raw = ((handle_object *)self)->raw;

    return raw != NULL ? raw : handle_of(self, class, class->name);
}
/* OBJECT belongs to CONTEXT, which is not closed before it, from now on. */
void join_context(PyObject *object, context_object *context);
/* A new object of TYPE, as class_for returns it, with RAW; None for NULL.  It takes RAW over if it
 * is OWNED, even if it fails.  KEEPS, which may be NULL, is an object that must outlive a handle
 * that cannot be retained. */
PyObject *handle_make(PyTypeObject *type, const struct handle_class *class, void *raw, bool owned,
                      PyObject *keeps);
/* The class of which GIVEN, the class of a constructor or a class method, makes an object of CLASS.
 */
PyTypeObject *class_for(PyObject *given, const struct handle_class *class);
/* tp_traverse of a handle that keeps callbacks, which end a cycle when they are cleared. */
int handle_traverse(PyObject *self, visitproc visit, void *arg);
void handle_dealloc(PyObject *self, const struct handle_class *class);
PyObject *handle_close(PyObject *self, const struct handle_class *class);
PyObject *handle_compare(PyObject *self, PyObject *other, int op);
PyObject *handle_enter(PyObject *self, PyObject *unused);
/* `weft._weft.use`: objects of a handle are of the subclass GIVEN from now on. */
PyObject *handle_class_use(PyObject *module, PyObject *given);
/* The context that OBJECT is or belongs to; NULL: none. */
context_object *context_behind(PyObject *object);

/* ---- the generated tables ---- */

extern const struct handle_class *const handle_classes[]; /* NULL is the last */

/* The generated members of a type. */
struct members {
    PyTypeObject **type;
    PyMethodDef *methods;
    PyGetSetDef *properties;
};
extern const struct members *const all_members[]; /* NULL is the last */

/* Add the generated types, the members of the types that are written by hand, and the functions. */
int members_add(PyObject *module);
/* Add methods and properties, which may be NULL, to TYPE, unless Python has replaced them. */
int type_extend(PyTypeObject *type, PyMethodDef *methods, PyGetSetDef *properties);

#endif
