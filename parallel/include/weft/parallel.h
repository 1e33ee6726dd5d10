/* parallel.h - all of libweft_parallel, in data-flow order, and libweft.
 *
 * Library: libweft_parallel (CMake weft::parallel, pkg-config weft-parallel). */
#ifndef WEFT_PARALLEL_H
#define WEFT_PARALLEL_H

#include "weft/weft.h"

#include "weft/ops.h"
#include "weft/apply.h"
#include "weft/phases.h"
#include "weft/schedule.h"
#include "weft/reorder.h"
#include "weft/style.h"
#include "weft/graph.h"
#include "weft/prediction.h"
#include "weft/model.h"
#include "weft/fsdp.h"
#include "weft/clip.h"
#include "weft/context_parallel.h"
#include "weft/experts.h"
#include "weft/overlap.h"
#include "weft/pipeline.h"

#endif
