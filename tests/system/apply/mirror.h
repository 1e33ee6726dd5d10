/* mirror.h - a kernel for host memory runs on the shards of a device: inputs are copied to host
 * memory, and outputs from it. */
#ifndef WEFT_TESTS_APPLY_MIRROR_H
#define WEFT_TESTS_APPLY_MIRROR_H

#include "weft/apply.h"

struct mirror {
    weft_op_kernel kernel;
    void *user;
};

/* Runs the kernel of USER, a struct mirror, and waits for the stream of RUN. */
weft_status mirror_kernel(void *user, const weft_op_run *run);

#endif
