/* wrong_regions_cast_nan.c - a regions_cast that makes every NaN the same one.
 * Runs: --only kernel/regions_cast
 * Fails: kernel/regions_cast/many/bf16/f64 */
#define DEFECT .convert = convert_one_nan
#include "casts.h"

INSTALL(install_casts(), wrong.kernel.regions_cast = wrong_regions_cast)
