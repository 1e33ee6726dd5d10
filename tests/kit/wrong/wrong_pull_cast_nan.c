/* wrong_pull_cast_nan.c - a pull_cast that makes every NaN the same one.
 * Runs: --only pull/cast
 * Fails: pull/cast/strided/bf16/f64/holders=1 */
#define DEFECT .convert = convert_one_nan
#include "casts.h"

INSTALL(install_casts(), wrong.comm.pull_cast = wrong_pull_cast)
