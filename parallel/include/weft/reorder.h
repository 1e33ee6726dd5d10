/* reorder.h - another order for compute and communication, in which communication is hidden.
 *
 * Library: libweft_parallel (CMake weft::parallel, pkg-config weft-parallel).
 *
 *     weft_reorder_node nodes[] = {...};
 *     weft_reorder *result;
 *     TRY(weft_reorder_create(count, nodes, sizeof *nodes, NULL, &result));
 *
 * A program is a list of nodes: compute, starts of collectives, and waits for them.  A pass moves
 * starts up and waits down, so that more compute runs between them (docs/training/reordering.md).
 * Results are immutable.  Nothing here communicates, and equal arguments give equal results on all
 * ranks.  All functions here may be called from any thread. */
#ifndef WEFT_REORDER_H
#define WEFT_REORDER_H

#include "weft/status.h"

#ifdef __cplusplus
extern "C" {
#endif

enum weft_reorder_node_kind {
    WEFT_REORDER_NODE_COMPUTE =
        0, /* with a communicator: communication that ends before the next node */
    WEFT_REORDER_NODE_START = 1, /* begins a collective */
    WEFT_REORDER_NODE_WAIT = 2   /* waits for its first input, a start, and has its result */
};

enum weft_reorder_node_flag {
    WEFT_REORDER_NODE_GIVEN = 1 << 0, /* exists before the first node runs; has no inputs */
    WEFT_REORDER_NODE_KEPT = 1 << 1   /* its result stays to the end */
};

typedef struct weft_reorder_node {
    uint32_t kind;         /* enum weft_reorder_node_kind */
    uint32_t flags;        /* bits of enum weft_reorder_node_flag */
    int32_t comm;          /* number of its communicator, 0 to 65535; -1: it has none */
    size_t input_count;    /* WAIT: at least 1 */
    const int32_t *inputs; /* indices of nodes before it whose results it needs */
    uint64_t time;         /* ns of the compute or of the collective; ignored for WAIT */
    uint64_t alloc;        /* bytes of its result, freed after its last use; ignored for WAIT */
} weft_reorder_node;

enum weft_reorder_pass {
    WEFT_REORDER_ITERATIVE = 0, /* starts up and waits down, step by step, under a memory limit */
    WEFT_REORDER_RAISE = 1,     /* starts as early as possible; memory is not limited */
    WEFT_REORDER_SINK = 2,      /* waits as late as possible; memory is not limited */
    WEFT_REORDER_LIST = 3       /* all nodes anew, by a simulation, under a memory limit */
};

typedef struct weft_reorder_options {
    size_t struct_size;
    uint32_t pass; /* enum weft_reorder_pass */
    /* The most bytes that results may take; 0: as many as in the given order.  A given order that
     * exceeds it is not made worse. */
    uint64_t memory_limit;
} weft_reorder_options;

typedef struct weft_reorder weft_reorder;

/* Find a better order of COUNT nodes.  NODE_SIZE is sizeof(weft_reorder_node).  OPTIONS may be
 * NULL. The caller releases *OUT. Every order that results has these properties: a node comes
 * behind its inputs; operations on one communicator, and the waits for them, keep their order; no
 * start passes communication that is not a start or a wait. WEFT_ERR_INVALID: a node needs a later
 * one, a start has no wait, several waits or other uses, or a start has no communicator; the error
 * text names the node. */
WEFT_API WEFT_NODISCARD weft_status weft_reorder_create(size_t count,
                                                        const weft_reorder_node *nodes,
                                                        size_t node_size,
                                                        const weft_reorder_options *options,
                                                        weft_reorder **out);

/* Release the result and set *REORDER to NULL.  Accepts NULL and a pointer to NULL. */
WEFT_API void weft_reorder_release(weft_reorder **reorder);

typedef struct weft_reorder_info {
    size_t struct_size;
    uint64_t time_before, time_after;       /* ns of the whole */
    uint64_t exposed_before, exposed_after; /* ns in which compute waits for communication */
    uint64_t peak_before, peak_after;       /* bytes */
    uint64_t digest;                        /* of the order; ranks compare it before they use it */
    size_t collectives;                     /* starts */
} weft_reorder_info;

/* Copy the figures of REORDER to *OUT, whose struct_size the caller sets. */
WEFT_API WEFT_NODISCARD weft_status weft_reorder_get(const weft_reorder *reorder,
                                                     weft_reorder_info *out);

/* The index of the node that runs at POSITION; -1: there is no such position. */
WEFT_API int32_t weft_reorder_at(const weft_reorder *reorder, size_t position);

/* What ended the moves of a start or of a wait. */
#define WEFT_REORDER_LIMIT_LIST(X)                                                                 \
    X(HIDDEN, 0, "hidden")            /* compute covers it */                                      \
    X(DEPENDENCY, 1, "dependency")    /* an input or a use of its result */                        \
    X(ORDER, 2, "communicator order") /* the operation before or behind on its communicator */     \
    X(FENCE, 3, "synchronous communication")                                                       \
    X(MEMORY, 4, "memory")            /* the memory limit */                                       \
    X(OTHER, 5, "another collective") /* that would be exposed longer */                           \
    X(END, 6, "begin or end")         /* of the program */

#define WEFT_REORDER_LIMIT_ENUM(name, value, text) WEFT_REORDER_LIMIT_##name = value,
enum weft_reorder_limit { WEFT_REORDER_LIMIT_LIST(WEFT_REORDER_LIMIT_ENUM) WEFT_REORDER_LIMITS };
#undef WEFT_REORDER_LIMIT_ENUM

/* The name of LIMIT, such as "memory"; NULL if it is not one. */
WEFT_API const char *weft_reorder_limit_name(enum weft_reorder_limit limit);

typedef struct weft_reorder_collective_info {
    size_t struct_size;
    int32_t start, wait;                    /* nodes */
    uint64_t time;                          /* ns */
    uint64_t exposed_before, exposed_after; /* ns that its wait waits */
    int32_t moves_up,
        moves_down; /* places that its start is earlier, its wait later, than before */
    uint32_t limit_up, limit_down; /* enum weft_reorder_limit: what ended these moves */
} weft_reorder_collective_info;

/* The INDEX-th collective, in the order of their starts.  WEFT_ERR_INVALID: there are fewer. */
WEFT_API WEFT_NODISCARD weft_status weft_reorder_collective_get(const weft_reorder *reorder,
                                                                size_t index,
                                                                weft_reorder_collective_info *out);

#ifdef __cplusplus
}
#endif
#endif
