/* kernel_draws.h - random numbers of regions. */
#ifndef WEFT_KIT_KERNEL_DRAWS_H
#define WEFT_KIT_KERNEL_DRAWS_H

#include "frame/kit.h"

/* The cases of the level kernel, if the plugin has regions_draw. */
void kit_kernel_draws(struct kit *kit);

/* ---- known_draws.c ---- */

/* One of them: numbers of DISTRIBUTION, whose name is NAME, that are known. */
void kit_known_draw(struct kit *kit, uint32_t distribution, uint32_t dtype, const char *name);

#endif
