/* bind.h - a bound redistribution for tests. */
#ifndef WEFT_TESTS_GPU_BIND_H
#define WEFT_TESTS_GPU_BIND_H

#include "weft/exec.h"

/* The rows of f32[2,64], from one mesh of two ranks to another. */
weft_status bind_rows(weft_comm *comm, const char *from_mesh, const char *to_mesh,
                      weft_bound **out);

#endif
