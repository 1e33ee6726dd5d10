/* ring_speed.c - steps of ring attention beside a rotation of keys and values alone and the
 * attention of one step alone.
 *
 *     weft run -n 2 ring_speed BOARD [LENGTH [ROUNDS]]
 *
 * LENGTH indices are on each rank.  The engine's attention is arithmetic, of the length that makes
 * the attention of a step as long as a rotation.  In the first row, queries see no key, so that
 * nothing is merged.  In the second row, merging counts as attention; it cannot be made shorter
 * than it is.  What a pass does once, however many steps it has, is measured by an engine that
 * computes nothing for queries that see no key; it counts once.  "Beside" is the attention of a
 * step while another stream rotates, which do not wait for each other.  Prints JSON.  Ends with 77
 * if the backend has no context parallel. */
#include "board.h"
#include "compute.h"
#include "speed.h"
#include "support/local_tensor.h"
#include "weft/context_parallel.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { HEADS = 8, DEPTH = 128, SKIPPED = 77, GUESS = 20000 };

static int rounds = 10;
static int64_t length = 8192;

struct ring {
    weft_cp *together, *alone; /* on all ranks; on one rank, for the attention of a step */
    weft_cp_tensors tensors;
    void *arrived[2];
    float *seen, *unseen; /* logarithms of rows that see keys, and of rows that see none */
    weft_stream *beside;
    /* The engine: */
    const float *logarithms;
    uint64_t spins;
};

static uint64_t rows(void)
{
    return (uint64_t)(HEADS * length);
}

static uint64_t elements(void)
{
    return rows() * DEPTH;
}

static weft_status attend(void *user, const weft_cp_call *call)
{
    const struct ring *ring = user;

    compute_spin(ring->spins, call->stream);
    return weft_memory_copy(context, ring->logarithms, (void *)(uintptr_t)call->lse.memory,
                            rows() * sizeof(float), call->stream);
}

/* ---- what is timed ---- */

static void rotate_on(struct ring *ring, weft_stream *at)
{
    const void *sent[] = {weft_tensor_memory(ring->tensors.k), weft_tensor_memory(ring->tensors.v)};
    weft_comm *world = weft_world(context);
    int32_t ranks = weft_size(context), rank = weft_rank(context);

    must(weft_group_begin(world), "weft_group_begin");
    for (uint32_t i = 0; i < 2; i++) {
        must(weft_send(world, sent[i], elements(), WEFT_DTYPE_F32, (rank + 1) % ranks, i, at),
             "weft_send");
        must(weft_receive(world, ring->arrived[i], elements(), WEFT_DTYPE_F32,
                          (rank + ranks - 1) % ranks, i, at),
             "weft_receive");
    }
    must(weft_group_end(world), "weft_group_end");
}

static void rotate(void *self)
{
    rotate_on(self, stream);
}

static void attend_alone(void *self)
{
    struct ring *ring = self;

    must(weft_cp_forward(ring->alone, &ring->tensors, attend, ring, stream), "weft_cp_forward");
}

static void attend_beside(void *self)
{
    struct ring *ring = self;

    rotate_on(ring, ring->beside);
    attend_alone(ring);
    must(weft_context_wait(context, ring->beside, WEFT_FOREVER), "weft_context_wait");
}

static void attend_together(void *self)
{
    struct ring *ring = self;

    must(weft_cp_forward(ring->together, &ring->tensors, attend, ring, stream), "weft_cp_forward");
}

/* ---- preparation ---- */

/* The attention of a sequence of WHOLE indices along axis AXIS of a mesh of all ranks and one more
 * axis of size 1. */
static weft_cp *make_attention(const char *axis, int64_t whole)
{
    const weft_cp_options options = {.struct_size = sizeof options,
                                     .length = whole,
                                     .batch = 1,
                                     .heads = HEADS,
                                     .depth = DEPTH,
                                     .dtype = WEFT_DTYPE_F32,
                                     .sequence_dim = 2};
    weft_mesh *two = NULL;
    weft_cp *cp = NULL;
    weft_status status;

    must(weft_mesh_create(2, (const int32_t[]){weft_size(context), 1}, NULL, &two), "mesh");
    status = weft_cp_create(context, two, axis, &options, &cp);
    if (status == WEFT_ERR_UNSUPPORTED) {
        printf("%s\n", weft_last_error());
        exit(SKIPPED);
    }
    must(status, "weft_cp_create");
    weft_mesh_release(&two);
    return cp;
}

static void make_logarithms(struct ring *ring)
{
    float *host = malloc(rows() * sizeof *host);

    if (host == NULL) abort();
    for (uint64_t i = 0; i < rows(); i++)
        host[i] = -INFINITY;
    ring->seen = speed_memory(rows() * sizeof *host);
    ring->unseen = speed_memory(rows() * sizeof *host);
    must(weft_memory_copy(context, host, ring->unseen, rows() * sizeof *host, stream),
         "weft_memory_copy");
    rank_wait();
    free(host);
}

/* [1, HEADS, length, DEPTH], of which it has the first DIMS dimensions. */
static weft_tensor *make_tensor(int32_t dims)
{
    const int64_t shape[] = {1, HEADS, length, DEPTH};
    weft_tensor *tensor =
        local_tensor(context, WEFT_DTYPE_F32, dims, shape,
                     speed_memory((dims == 3 ? rows() : elements()) * sizeof(float)), NULL);

    if (tensor == NULL) must(WEFT_ERR_INVALID, "weft_tensor_wrap");
    return tensor;
}

static void begin(struct ring *ring)
{
    weft_cp_tensors *t = &ring->tensors;

    ring->together = make_attention("0", length * weft_size(context));
    ring->alone = make_attention("1", length);
    *t = (weft_cp_tensors){.struct_size = sizeof *t};
    t->q = make_tensor(4);
    t->k = make_tensor(4);
    t->v = make_tensor(4);
    t->out = make_tensor(4);
    t->lse = make_tensor(3);
    for (int i = 0; i < 2; i++)
        ring->arrived[i] = speed_memory(elements() * sizeof(float));
    make_logarithms(ring);
    must(weft_stream_create(context, &ring->beside), "weft_stream_create");
}

static void end(struct ring *ring)
{
    weft_cp_tensors *t = &ring->tensors;
    weft_tensor **const tensors[] = {&t->q, &t->k, &t->v, &t->out, &t->lse};
    void *const all[] = {ring->arrived[0], ring->arrived[1], ring->seen, ring->unseen};

    weft_stream_release(&ring->beside);
    weft_cp_release(&ring->together);
    weft_cp_release(&ring->alone);
    for (size_t i = 0; i < sizeof tensors / sizeof tensors[0]; i++) {
        void *memory = weft_tensor_memory(*tensors[i]);

        weft_tensor_release(tensors[i]);
        must(weft_free(context, memory), "weft_free");
    }
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        must(weft_free(context, all[i]), "weft_free");
}

/* ---- measuring ---- */

static double time_of_spins(struct ring *ring, uint64_t spins)
{
    ring->spins = spins;
    return speed_of(attend_alone, ring, rounds);
}

/* Make the attention of a step, of a pass that does some things ONCE, as long as WANTED.  Returns
 * its time. */
static double choose_spins(struct ring *ring, double once, double wanted)
{
    double merging = time_of_spins(ring, 0) - once;
    double guessed = time_of_spins(ring, GUESS) - once;
    uint64_t spins = 1;

    if (wanted > merging && guessed > merging)
        spins += (uint64_t)((wanted - merging) / (guessed - merging) * GUESS);
    return time_of_spins(ring, spins) - once;
}

static void measure(struct ring *ring, bool merges)
{
    double rotation, once, attention, beside, step, longer;

    rotation = speed_of(rotate, ring, rounds);
    ring->logarithms = ring->unseen;
    once = time_of_spins(ring, 0);
    if (merges) ring->logarithms = ring->seen;
    attention = choose_spins(ring, once, rotation);
    beside = speed_of(attend_beside, ring, rounds) - once;
    step = (speed_of(attend_together, ring, rounds) - once) / weft_size(context);
    longer = rotation > attention ? rotation : attention;
    if (weft_rank(context) != 0) return;
    row_begin();
    printf("{\"what\": \"ring\", \"ranks\": %d, \"bytes\": %llu, \"merges\": %s, "
           "\"once_min_ns\": %.0f, \"rotation_min_ns\": %.0f, \"attention_min_ns\": %.0f, "
           "\"beside_min_ns\": %.0f, \"step_min_ns\": %.0f, \"of_longer\": %.3f}",
           weft_size(context), (unsigned long long)(2 * elements() * sizeof(float)),
           merges ? "true" : "false", once, rotation, attention, beside, step, step / longer);
}

static void measure_both(void)
{
    struct ring ring = {0};

    begin(&ring);
    if (weft_rank(context) == 0)
        printf("{\"backend\": \"%s\", \"rows\": [", weft_context_plugin(context)->name);
    measure(&ring, false);
    measure(&ring, true);
    end(&ring);
}

int main(int argc, char **argv)
{
    if (argc > 2) length = strtoll(argv[2], NULL, 10);
    if (argc > 3) rounds = (int)strtol(argv[3], NULL, 10);
    if (argc < 2 || length < 1 || rounds < 1) {
        fprintf(stderr, "usage: weft run -n RANKS ring_speed BOARD [LENGTH [ROUNDS]]\n");
        return 2;
    }
    rank_begin();
    compute_begin(false);
    board_open(argv[1], weft_rank(context), weft_size(context), 0);
    measure_both();
    if (weft_rank(context) == 0) printf("\n]}\n");
    board_meet();
    rank_end();
    return 0;
}
