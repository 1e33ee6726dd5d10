/* fsdp_clip.h - gradients clipped on any backend, for fsdp_check.c. */
#ifndef WEFT_TESTS_GPU_FSDP_CLIP_H
#define WEFT_TESTS_GPU_FSDP_CLIP_H

/* Clip gradients of several dtypes and layouts by norm and by value, and compare every element and
 * every norm with a plain loop on the host.  Collective.  Ends the program at the first difference.
 */
void check_clip(void);

#endif
