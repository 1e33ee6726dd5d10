/* shards.h - the shards of all ranks of a spec, in one allocation. */
#ifndef WEFT_CLI_SHARDS_H
#define WEFT_CLI_SHARDS_H

#include "weft/weft.h"

struct shards {
    void **at; /* by position in the mesh */
    void *memory;
    size_t bytes;
};

/* Allocate memory that is shared with processes that this one forks. */
weft_status shards_make(const weft_spec *spec, struct shards *out);
void shards_free(struct shards *shards);
/* Position of RANK in the mesh of SPEC, or -1. */
int32_t shards_place(const weft_spec *spec, int32_t rank);
/* Write DIRECTORY/rank-K.npy for every rank K of SPEC's mesh. */
weft_status shards_dump(const weft_spec *spec, const struct shards *shards, const char *directory);

#endif
