/* wrong_regions_cast_offset.c - a regions_cast that writes a region one element too late.
 * Runs: --only kernel/regions_cast
 * Fails: kernel/regions_cast/many/u8/i16 */
#define DEFECT .shift = 1
#include "casts.h"

INSTALL(install_casts(), wrong.kernel.regions_cast = wrong_regions_cast)
