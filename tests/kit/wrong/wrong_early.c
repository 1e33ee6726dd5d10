/* wrong_early.c - returns success before the work is complete.
 * Runs: --only collectives/all_gather/f32/late
 * Fails: collectives/all_gather/f32/late/count=9/late=0/ranks=all */
#include "later.h"

INSTALL(wrong.comm.collective = run_later, wrong.comm.destroy = catch_up_and_destroy)
