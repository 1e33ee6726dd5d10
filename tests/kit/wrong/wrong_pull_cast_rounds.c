/* wrong_pull_cast_rounds.c - a pull_cast that rounds toward zero.
 * Runs: --only pull/cast
 * Fails: pull/cast/strided/f32/bf16/holders=1 */
#define DEFECT .convert = convert_cut
#include "casts.h"

INSTALL(install_casts(), wrong.comm.pull_cast = wrong_pull_cast)
