/* pickle.h - reads a pickle as a tree of known names.  Nothing is imported and nothing is called:
 * a class is a name, and an object is a class with its arguments and its state.  A name that is not
 * in the table of pickle_names.c is refused, and so is every opcode that DCP does not use. */
#ifndef WEFT_FILE_PICKLE_H
#define WEFT_FILE_PICKLE_H

#include "checkpoint/file.h"

enum wf_pickle_kind {
    WF_PICKLE_NONE,
    WF_PICKLE_BOOL,
    WF_PICKLE_INT,
    WF_PICKLE_TEXT,
    WF_PICKLE_OPAQUE, /* a float or bytes, which no reader needs */
    WF_PICKLE_TUPLE,
    WF_PICKLE_LIST,
    WF_PICKLE_DICT,   /* keys and values take turns */
    WF_PICKLE_GLOBAL, /* a class, function or dtype: one of enum wf_pickle_name */
    WF_PICKLE_OBJECT,
    WF_PICKLE_STORAGE, /* a persistent id; `first` is what names it */
    WF_PICKLE_MARK
};

enum wf_pickle_name {
    WF_NAME_METADATA,
    WF_NAME_TENSOR_METADATA,
    WF_NAME_PROPERTIES,
    WF_NAME_CHUNK,
    WF_NAME_INDEX,
    WF_NAME_BYTES_METADATA,
    WF_NAME_STORAGE_META,
    WF_NAME_MEMORY_FORMAT,
    WF_NAME_STORAGE_INFO,
    WF_NAME_SIZE,
    WF_NAME_LAYOUT,
    WF_NAME_PATH,
    WF_NAME_ORDERED_DICT,
    WF_NAME_REBUILD_TENSOR,       /* _rebuild_tensor_v2 */
    WF_NAME_REBUILD_TYPED_TENSOR, /* _rebuild_tensor_v3 */
    WF_NAME_REBUILD_PARAMETER,
    WF_NAME_STORAGE,         /* torch.FloatStorage and the like; `dtype` is its name in torch */
    WF_NAME_UNTYPED_STORAGE, /* torch.storage.UntypedStorage */
    WF_NAME_DTYPE            /* torch.float32 and the like; `dtype` is its name */
};

struct wf_pickle {
    uint8_t kind; /* enum wf_pickle_kind */
    uint8_t name; /* GLOBAL: enum wf_pickle_name */
    uint32_t count, capacity;
    union {
        int64_t number;           /* INT, BOOL */
        const char *text;         /* TEXT, of `count` bytes and a NUL; GLOBAL: its dtype or NULL */
        struct wf_pickle **items; /* TUPLE, LIST, DICT: `count` of them */
        struct {
            struct wf_pickle *first, *arguments; /* OBJECT: its class and arguments */
        };
    };
    struct wf_pickle *state; /* OBJECT: NULL if it has none */
};

/* Read COUNT bytes of a pickle; nodes live in ARENA.  WEFT_ERR_PARSE names the byte, WEFT_ERR_
 * UNSUPPORTED the class or function that is not known.  WHAT names the document. */
weft_status wf_pickle_read(struct wf_arena *arena, const char *what, const void *bytes,
                           size_t count, struct wf_pickle **out) WF_NODISCARD;

/* ---- pickle_names.c ---- */

/* Look up MODULE.NAME; false: not known. */
bool wf_pickle_find_name(const char *module, const char *name, struct wf_pickle *out);

/* True if NODE is an object of the class or function NAME. */
bool wf_pickle_is(const struct wf_pickle *node, enum wf_pickle_name name);
/* The member KEY of a DICT, or of an object whose state is a DICT; NULL: none. */
const struct wf_pickle *wf_pickle_member(const struct wf_pickle *node, const char *key);
/* The numbers of a TUPLE or LIST, or of torch.Size; false: it is not one of at most WEFT_MAX_DIMS
 * non-negative numbers. */
bool wf_pickle_sizes(const struct wf_pickle *node, int32_t *dims, int64_t *sizes);

#endif
