/* kernel_spans.h - lists of spans and merges of rows, for kernel_check.c. */
#ifndef WEFT_TESTS_GPU_KERNEL_SPANS_H
#define WEFT_TESTS_GPU_KERNEL_SPANS_H

#include "load.h"

struct kernel_run {
    const weft_plugin *plugin;
    void *device, *stream;
};

/* Compare with a plain loop on the host.  Ends the program at the first wrong number.  Does nothing
 * with a plugin that has no such functions. */
void check_spans(const struct kernel_run *run);
/* Print rows of the report: BYTES bytes beside a plain copy of as many, which takes COPY_US. */
void time_spans(const struct kernel_run *run, uint64_t bytes, double copy_us);

#endif
