/* weft.h - the stable public interface of libweft, in data-flow order.
 *
 * symm.h, trace.h and recorder.h are a preview, and extend.h is for libraries on top of weft: a
 * program includes them by name.  The statuses, dtypes and reductions are in weft_plugin.h, which
 * these headers include. */
#ifndef WEFT_H
#define WEFT_H

#include "status.h"
#include "log.h"
#include "config.h"
#include "mesh.h"
#include "spec.h"
#include "layout.h"
#include "cost.h"
#include "backend.h"
#include "launch.h"
#include "context.h"
#include "device.h"
#include "comm.h"
#include "plan.h"
#include "exec.h"
#include "move.h"
#include "tensor.h"
#include "random.h"
#include "dlpack.h"

#endif
