/* alone.h - measures operations of one process. */
#ifndef WEFT_CLI_BENCH_ALONE_H
#define WEFT_CLI_BENCH_ALONE_H

#include "common/cli.h"
#include "timing/loop.h"

/* As bench_time, without other ranks.  OPERATION returns a weft_status. */
weft_status bench_alone(int (*operation)(void *), void *argument, uint64_t budget_ns,
                        struct bench_times *out) WF_NODISCARD;

#endif
