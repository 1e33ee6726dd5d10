/* weft.h - all of weft's public interface, in data-flow order. */
#ifndef WEFT_H
#define WEFT_H

#include "status.h"
#include "mesh.h"
#include "spec.h"
#include "backend.h"
#include "context.h"
#include "comm.h"
#include "symm.h"
#include "plan.h"
#include "exec.h"

#endif
