/* wrong_regions_cast_rounds.c - a regions_cast that rounds toward zero.
 * Runs: --only kernel/regions_cast
 * Fails: kernel/regions_cast/strided/f32/bf16 */
#define DEFECT .convert = convert_cut
#include "casts.h"

INSTALL(install_casts(), wrong.kernel.regions_cast = wrong_regions_cast)
