/* rank.h - a rank that redistributes tensors, for programs that `weft run` starts.  Errors end the
 * program with a message. */
#ifndef WEFT_TESTS_GPU_RANK_H
#define WEFT_TESTS_GPU_RANK_H

#include "weft/exec.h"
#include "weft/weft.h"

extern weft_context *context;
extern weft_stream *stream;
extern weft_mesh *mesh; /* one axis of all ranks */

void rank_begin(void);
void rank_end(void);
void must(weft_status status, const char *what);
/* Wait for the stream, at most a minute or two. */
void rank_wait(void);
uint64_t now_ns(void);
/* Sorts SAMPLES. */
double median(double *samples, int count);

/* Prints JSON: what SHOW prints for each number of SIZES, as "64,1024", is a list.  It puts
 * row_begin() before each of its rows, and prints on rank 0 alone. */
void print_rows(const char *sizes, void (*show)(int size));
void row_begin(void);

/* One redistribution, bound, with memory for it. */
struct move {
    const char *from, *to; /* placements; the caller's */
    weft_bound *bound;
    void *source, *target;
    uint64_t source_bytes, target_bytes; /* of this rank's shards */
};
/* Bind the redistribution of a tensor of TYPE, such as "f32[64,64]".  Source and target memory each
 * have at least MIN_BYTES. */
void move_begin(struct move *move, const char *type, const char *from, const char *to,
                uint64_t min_bytes);
/* The same, into a tensor of TO_TYPE, such as "bf16[64,64]". */
void move_begin_cast(struct move *move, const char *type, const char *from, const char *to_type,
                     const char *to, uint64_t min_bytes);
void move_run(const struct move *move); /* on the stream */
void move_end(struct move *move);

#endif
