/* fsdp_speed.c - sharded parameters with the shapes of a GPT-2 of 124 million, timed as
 * bench/fsdp.py times PyTorch's FSDP2: all ranks begin together, and the slowest one counts.
 *
 *     weft run -n 2 fsdp_speed BOARD [ROUNDS [DIVISOR]]         (5 and 1)
 *
 * DIVISOR makes the parameters smaller.  Prints JSON.  The rows unshard and reduce are those of one
 * block alone, with the time of a copy by all ranks at once that reads and writes as many bytes.
 * The row step is the communication of a training step, with the time of the calling thread.  The
 * row overlap is the same with compute of the same length on the compute stream: arithmetic on half
 * of the multiprocessors, or random numbers on a processor; both have gradients that exist before.
 * Nothing can be computed while the embeddings are gathered or reduced; the row overlap_blocks is
 * without them.  The row clip is the norm of 1,500 gradients of 64 x 64. */
#include "board.h"
#include "compute.h"
#include "fsdp_model.h"
#include "weft/clip.h"
#include "weft/random.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { MOST_ROUNDS = 200, WARM_UP = 2, CLIPPED = 1500 };

static struct model model;
static int rounds = 5;

static uint64_t cpu_ns(clockid_t clock)
{
    struct timespec now;

    clock_gettime(clock, &now);
    return (uint64_t)now.tv_sec * UINT64_C(1000000000) + (uint64_t)now.tv_nsec;
}

/* Times of the slowest rank, and the least processor time of all threads of this one; nanoseconds.
 */
struct timing {
    double median, least, cpu;
};

/* Time RUN; PREPARE, which may be NULL, is not timed. */
static struct timing time_of(void (*prepare)(void), void (*run)(void))
{
    double samples[MOST_ROUNDS], cpu[MOST_ROUNDS], middle;

    for (int i = -WARM_UP; i < rounds; i++) {
        uint64_t begin, cpu_begin;

        if (prepare != NULL) prepare();
        rank_wait();
        board_meet();
        cpu_begin = cpu_ns(CLOCK_PROCESS_CPUTIME_ID);
        begin = now_ns();
        run();
        rank_wait();
        if (i >= 0) cpu[i] = (double)(cpu_ns(CLOCK_PROCESS_CPUTIME_ID) - cpu_begin);
        begin = board_maximum(now_ns() - begin);
        if (i >= 0) samples[i] = (double)begin;
    }
    middle = median(samples, rounds); /* sorts */
    (void)median(cpu, rounds);
    return (struct timing){middle, samples[0], cpu[0]};
}

/* ---- one block ---- */

static void *copied[2];
static uint64_t copied_bytes;
static weft_tensor *gradients[MODEL_MOST];

static void copy_once(void)
{
    must(weft_memory_copy(context, copied[0], copied[1], copied_bytes, stream), "weft_memory_copy");
}

static void reshard_block(void)
{
    must(weft_fsdp_reshard(model.groups[0]), "weft_fsdp_reshard");
}

static void gather_block(void)
{
    model_gather(&model, 0);
}

static void reduce_block(void)
{
    model_reduce(&model, 0, gradients);
}

/* TIME is that of a call that reads and writes BYTES, read and written together. */
static void print_block(const char *what, struct timing time, uint64_t bytes)
{
    struct timing copy;

    copied_bytes = bytes / 2;
    copy = time_of(NULL, copy_once);
    if (weft_rank(context) != 0) return;
    row_begin();
    printf("{\"what\": \"%s\", \"ranks\": %d, \"bytes\": %llu, \"median_ns\": %.0f, "
           "\"min_ns\": %.0f, \"copy_min_ns\": %.0f, \"of_copy\": %.3f}",
           what, weft_size(context), (unsigned long long)bytes, time.median, time.least, copy.least,
           copy.least / time.least);
}

/* A gather reads the whole block and writes it.  A reduction reads what all ranks have of a shard,
 * which is as much as the block, and writes the shard. */
static void measure_block(void)
{
    uint64_t whole = model.bytes[0], shard = whole / (uint64_t)weft_size(context);

    for (int i = 0; i < 2; i++) {
        must(weft_alloc(context, whole, WEFT_MEMORY_DEVICE, &copied[i]), "weft_alloc");
        must(weft_memory_fill(context, copied[i], 1, whole, stream), "weft_memory_fill");
    }
    print_block("unshard", time_of(reshard_block, gather_block), 2 * whole);
    reshard_block();
    for (uint32_t i = 0; i < model.counts[0]; i++)
        must(weft_fsdp_gradient_create(model.groups[0], i, &gradients[i]),
             "weft_fsdp_gradient_create");
    print_block("reduce", time_of(NULL, reduce_block), whole + shard);
    for (uint32_t i = 0; i < model.counts[0]; i++)
        weft_tensor_release(&gradients[i]);
    for (int i = 0; i < 2; i++)
        must(weft_free(context, copied[i]), "weft_free");
}

/* ---- a step ---- */

static weft_tensor *drawn;
static uint64_t units; /* of compute for a block in the forward pass */

static void compute(void)
{
    weft_random numbers = {.seed = 1};

    if (!compute_is_immediate()) {
        compute_spin(1000 * units, stream);
        return;
    }
    for (uint64_t i = 0; i < units; i++)
        must(weft_tensor_truncated_normal(drawn, &numbers, 0, 1, -2, 2, stream), "draw");
}

static void compute_all(void)
{
    for (int i = 0; i < MODEL_COMPUTES; i++)
        compute();
}

static uint64_t host_ns; /* of the calling thread, in the last round on this rank */

static void step(void)
{
    uint64_t begin = cpu_ns(CLOCK_THREAD_CPUTIME_ID);

    model_step(&model, NULL);
    host_ns = cpu_ns(CLOCK_THREAD_CPUTIME_ID) - begin;
}

static void step_with_compute(void)
{
    model_step(&model, compute);
}

static void blocks(void)
{
    model_step_blocks(&model, NULL);
}

static void blocks_with_compute(void)
{
    model_step_blocks(&model, compute);
}

/* ALONE: the least time of RUN without compute. */
static void print_overlap(const char *what, double alone, void (*run)(void))
{
    double computing, both;

    units = 1;
    computing = time_of(NULL, compute_all).least;
    units = (uint64_t)(alone / computing + 0.5);
    if (units < 1) units = 1;
    computing = time_of(NULL, compute_all).least;
    both = time_of(NULL, run).least;
    if (weft_rank(context) != 0) return;
    row_begin();
    printf("{\"what\": \"%s\", \"ranks\": %d, \"communication_min_ns\": %.0f, "
           "\"compute_min_ns\": %.0f, \"min_ns\": %.0f, \"of_longer\": %.3f}",
           what, weft_size(context), alone, computing, both,
           both / (alone > computing ? alone : computing));
}

static void print_time(const char *what, struct timing time)
{
    if (weft_rank(context) != 0) return;
    row_begin();
    printf("{\"what\": \"%s\", \"ranks\": %d, \"median_ns\": %.0f, \"min_ns\": %.0f, "
           "\"cpu_ns\": %.0f, \"host_ns\": %llu}",
           what, weft_size(context), time.median, time.least, time.cpu,
           (unsigned long long)host_ns);
}

static void measure_step(void)
{
    struct timing time = time_of(NULL, step);
    weft_spec *spec = NULL;

    print_time("step", time);
    must(weft_spec_parse(mesh, "f32[65536] R", &spec), "weft_spec_parse");
    must(weft_tensor_create(context, spec, NULL, &drawn), "weft_tensor_create");
    model_make_gradients(&model);
    print_overlap("overlap", time_of(NULL, step).least, step_with_compute);
    print_overlap("overlap_blocks", time_of(NULL, blocks).least, blocks_with_compute);
    weft_tensor_release(&drawn);
    weft_spec_release(&spec);
}

/* ---- clipping ---- */

static weft_tensor *clipped[CLIPPED];

static void clip_once(void)
{
    uint64_t begin = cpu_ns(CLOCK_THREAD_CPUTIME_ID);

    must(weft_clip_gradient_norm(context, CLIPPED, clipped, 1.0, NULL, NULL, stream, NULL), "clip");
    host_ns = cpu_ns(CLOCK_THREAD_CPUTIME_ID) - begin;
}

static void measure_clip(void)
{
    weft_spec *spec = NULL;

    must(weft_spec_parse(mesh, "f32[64,64] S(0)", &spec), "weft_spec_parse");
    for (int i = 0; i < CLIPPED; i++) {
        must(weft_tensor_create(context, spec, NULL, &clipped[i]), "weft_tensor_create");
        must(weft_tensor_fill(clipped[i], 1, stream), "weft_tensor_fill");
    }
    print_time("clip", time_of(NULL, clip_once));
    for (int i = 0; i < CLIPPED; i++)
        weft_tensor_release(&clipped[i]);
    weft_spec_release(&spec);
}

int main(int argc, char **argv)
{
    int divisor = argc > 3 ? (int)strtol(argv[3], NULL, 10) : 1;

    if (argc > 2) rounds = (int)strtol(argv[2], NULL, 10);
    if (argc < 2 || rounds < 1 || rounds > MOST_ROUNDS || divisor < 1) {
        fprintf(stderr, "usage: weft run -n RANKS fsdp_speed BOARD [ROUNDS [DIVISOR]]\n");
        return 2;
    }
    rank_begin();
    compute_begin(false);
    board_open(argv[1], weft_rank(context), weft_size(context), 0);
    if (weft_rank(context) == 0)
        printf("{\"backend\": \"%s\", \"rows\": [", weft_context_plugin(context)->name);
    model_begin(&model, divisor);
    measure_block();
    measure_step();
    model_end(&model);
    measure_clip();
    if (weft_rank(context) == 0) printf("\n]}\n");
    board_meet();
    rank_end();
    return 0;
}
