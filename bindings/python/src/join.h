/* join.h - joining a job, which Ctrl-C ends. */
#ifndef WEFT_PYTHON_JOIN_H
#define WEFT_PYTHON_JOIN_H

#include "binding.h"

/* weft_init with OPTIONS, whose texts are copied, and without an exchange.  EXCHANGE is None or a
 * function of bytes that returns the bytes of all ranks, joined.  -1 with an exception: also if a
 * signal's handler has raised one; what has begun then ends by itself. */
int join_job(const weft_options *options, PyObject *exchange, weft_context **out);

#endif
