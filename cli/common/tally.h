/* tally.h - counters of operations, added up over ranks. */
#ifndef WEFT_CLI_TALLY_H
#define WEFT_CLI_TALLY_H

#include "common/cli.h"

struct tally {
    weft_counts sums;
    int32_t ranks; /* whose counters are in it */
};

/* Add the counters of a rank. */
void tally_add(struct tally *tally, const weft_counts *counts);
/* Add the lines of FILE, which ranks wrote by WEFT_COUNTS.  False if it is missing or incomplete.
 */
bool tally_read(struct tally *tally, const char *path);

/* A line for each counter that is not 0, of all ranks together. */
void tally_print(const struct tally *tally, struct wf_text *out);
/* The members of a JSON object. */
void tally_print_json(const struct tally *tally, struct wf_json *json);

#endif
