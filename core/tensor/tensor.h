/* tensor.h - a tensor: a spec and this rank's memory.
 *
 *     tensor.c  creation, references, properties
 *     moves.c   moves of tensors
 *     draw.c    random elements */
#ifndef WEFT_TENSOR_TENSOR_H
#define WEFT_TENSOR_TENSOR_H

#include "comm/comm.h"
#include "comm/context/ended.h"
#include "shard/shard.h"
#include "weft/random.h"

struct weft_tensor {
    uint64_t made; /* of fork.h; ended: its context was released */
    _Atomic uint32_t references;
    weft_context *context;
    struct wf_dependent dependent; /* of the world communicator */
    char ended[WF_CAUSE];
    weft_spec *spec;
    char *name; /* NULL: none */
    void *memory;
    bool is_own;   /* MEMORY is the tensor's */
    bool is_dense; /* row-major without gaps */
    int64_t strides[WEFT_MAX_DIMS];
    weft_shard shard;
    void (*release)(void *argument, void *memory);
    void *argument;
};

/* WEFT_ERR_INVALID by FUNCTION if TENSOR, its argument named ARGUMENT, cannot be used. */
weft_status wf_tensor_check(const weft_tensor *tensor, const char *function,
                            const char *argument) WF_NODISCARD;
/* Put the tensor's name, if it has one, before this thread's last failure text. */
weft_status wf_tensor_fail(const weft_tensor *tensor, weft_status status, const char *function);
/* As weft_tensor_create, for FUNCTION. */
weft_status wf_tensor_make(weft_context *context, const weft_spec *spec, const char *name,
                           const char *function, weft_tensor **out) WF_NODISCARD;

#endif
