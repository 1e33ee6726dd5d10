/* chains.h - random chains of operators on random layouts give the numbers of whole tensors. Inputs
 * are moved where a layout is not legal.  All numbers are small integers, so sums are exact in
 * every order. */
#ifndef WEFT_TESTS_APPLY_CHAINS_H
#define WEFT_TESTS_APPLY_CHAINS_H

#include "weft/context.h"

/* Run COUNT chains on CONTEXT, a job of 4 ranks.  All ranks call it. */
weft_status run_chains(weft_context *context, int count);

#endif
