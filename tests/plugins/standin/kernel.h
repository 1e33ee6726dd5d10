/* kernel.h - tables of weft's kernels, compiled from their source as functions of the simulated
 * device. */
#ifndef WEFT_TESTS_STANDIN_KERNEL_H
#define WEFT_TESTS_STANDIN_KERNEL_H

#include <stddef.h>

struct sg_kernel {
    const char *name;
    void (*run)(const void *args);
    size_t bytes; /* of the arguments */
};

/* Each ends with a kernel that has no name. */
extern const struct sg_kernel sg_kernels_moves[];
extern const struct sg_kernel sg_kernels_draws[];

template <class Args, void (*Kernel)(const Args &)> static void sg_kernel_run(const void *args)
{
    Kernel(*static_cast<const Args *>(args));
}

#define SG_KERNEL(name, args) {#name, sg_kernel_run<struct args, name>, sizeof(struct args)},

#endif
