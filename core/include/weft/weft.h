/* weft.h - all of weft's public interface, in data-flow order. */
#ifndef WEFT_H
#define WEFT_H

#include "status.h"
#include "log.h"
#include "config.h"
#include "mesh.h"
#include "spec.h"
#include "cost.h"
#include "file.h"
#include "backend.h"
#include "launch.h"
#include "context.h"
#include "device.h"
#include "comm.h"
#include "symm.h"
#include "trace.h"
#include "plan.h"
#include "ops.h"
#include "exec.h"
#include "move.h"
#include "tensor.h"
#include "random.h"
#include "dlpack.h"
#include "apply.h"
#include "context_parallel.h"
#include "style.h"
#include "ring.h"

#endif
