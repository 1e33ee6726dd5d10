/* wrong_pull_cast_offset.c - a pull_cast that writes a region one element too late.
 * Runs: --only pull/cast
 * Fails: pull/cast/transposed/f32/bf16/holders=1 */
#define DEFECT .shift = 1
#include "casts.h"

INSTALL(install_casts(), wrong.comm.pull_cast = wrong_pull_cast)
