/* kernel_spans.h - lists of spans and merges of rows. */
#ifndef WEFT_CONFORM_KERNEL_SPANS_H
#define WEFT_CONFORM_KERNEL_SPANS_H

#include "conform/kit.h"

/* The cases of the level kernel, if the plugin has functions of spans. */
void kit_kernel_spans(struct kit *kit);

/* ---- kernel_merges.c ---- */

/* The cases of the level kernel, if the plugin has merge_rows. */
void kit_kernel_merges(struct kit *kit);

#endif
