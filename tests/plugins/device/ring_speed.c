/* ring_speed.c - steps of ring attention beside a rotation of keys and values alone and the
 * attention of one step alone.
 *
 *     weft run -n 2 ring_speed BOARD [LENGTH [ROUNDS]]
 *
 * LENGTH indices are on each rank.  The engine's attention is arithmetic, of the length that makes
 * the attention of a step as long as a rotation; merging counts as attention.  Prints JSON.  Ends
 * with 77 if the backend has no context parallel. */
#include "board.h"
#include "compute.h"
#include "speed.h"
#include "weft/context_parallel.h"

#include <stdio.h>
#include <stdlib.h>

enum { HEADS = 8, DEPTH = 128, SKIPPED = 77, GUESS = 20000 };

static int rounds = 10;
static int64_t length = 8192;

struct ring {
    weft_cp *together, *alone; /* on all ranks; on one rank, for the attention of a step */
    weft_cp_tensors tensors;
    void *arrived[2];
    uint64_t spins;
};

static uint64_t elements(void)
{
    return (uint64_t)(HEADS * DEPTH * length);
}

static weft_status attend(void *user, const weft_cp_call *call)
{
    const struct ring *ring = user;

    compute_spin(ring->spins, call->stream);
    return WEFT_OK;
}

/* ---- what is timed ---- */

static void rotate(void *self)
{
    struct ring *ring = self;
    const void *sent[] = {ring->tensors.k, ring->tensors.v};
    weft_comm *world = weft_world(context);
    int32_t ranks = weft_size(context), rank = weft_rank(context);

    must(weft_group_begin(world), "weft_group_begin");
    for (uint32_t i = 0; i < 2; i++) {
        must(weft_send(world, sent[i], elements(), WEFT_DTYPE_BF16, (rank + 1) % ranks, i, stream),
             "weft_send");
        must(weft_receive(world, ring->arrived[i], elements(), WEFT_DTYPE_BF16,
                          (rank + ranks - 1) % ranks, i, stream),
             "weft_receive");
    }
    must(weft_group_end(world), "weft_group_end");
}

static void attend_alone(void *self)
{
    struct ring *ring = self;

    must(weft_cp_forward(ring->alone, &ring->tensors, attend, ring, stream), "weft_cp_forward");
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
    const weft_cp_sizes sizes = {.struct_size = sizeof sizes,
                                 .batch = 1,
                                 .heads = HEADS,
                                 .depth = DEPTH,
                                 .dtype = WEFT_DTYPE_BF16,
                                 .sequence_dim = 2};
    weft_mesh *two = NULL;
    weft_cp_plan *plan = NULL;
    weft_cp *cp = NULL;
    weft_status status;

    must(weft_mesh_create(2, (const int32_t[]){weft_size(context), 1}, NULL, &two), "mesh");
    must(weft_cp_plan_create(two, axis, whole, NULL, &plan), "weft_cp_plan_create");
    status = weft_cp_create(context, plan, &sizes, &cp);
    if (status == WEFT_ERR_UNSUPPORTED) {
        printf("%s\n", weft_last_error());
        exit(SKIPPED);
    }
    must(status, "weft_cp_create");
    weft_cp_plan_release(&plan);
    weft_mesh_release(&two);
    return cp;
}

static void begin(struct ring *ring)
{
    weft_cp_tensors *t = &ring->tensors;

    ring->together = make_attention("0", length * weft_size(context));
    ring->alone = make_attention("1", length);
    *t = (weft_cp_tensors){.struct_size = sizeof *t};
    t->q = speed_memory(2 * elements());
    t->k = speed_memory(2 * elements());
    t->v = speed_memory(2 * elements());
    t->out = speed_memory(2 * elements());
    t->lse = speed_memory(4 * elements() / DEPTH);
    for (int i = 0; i < 2; i++)
        ring->arrived[i] = speed_memory(2 * elements());
}

static void end(struct ring *ring)
{
    const weft_cp_tensors *t = &ring->tensors;
    const void *const all[] = {
        t->q, t->k, t->v, t->out, t->lse, ring->arrived[0], ring->arrived[1]};

    weft_cp_release(&ring->together);
    weft_cp_release(&ring->alone);
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        must(weft_free(context, (void *)(uintptr_t)all[i]), "weft_free");
}

/* ---- measuring ---- */

/* Make the attention of a step as long as WANTED.  Returns its time. */
static double choose_spins(struct ring *ring, double wanted)
{
    double merging, guessed;

    ring->spins = 0;
    merging = speed_of(attend_alone, ring, rounds);
    ring->spins = GUESS;
    guessed = speed_of(attend_alone, ring, rounds);
    ring->spins = wanted > merging && guessed > merging
                      ? (uint64_t)((wanted - merging) / (guessed - merging) * GUESS) + 1
                      : 1;
    return speed_of(attend_alone, ring, rounds);
}

static void measure(void)
{
    struct ring ring = {0};
    double rotation, attention, step, longer;

    begin(&ring);
    if (weft_rank(context) == 0)
        printf("{\"backend\": \"%s\", \"rows\": [", weft_context_plugin(context)->name);
    rotation = speed_of(rotate, &ring, rounds);
    attention = choose_spins(&ring, rotation);
    step = speed_of(attend_together, &ring, rounds) / weft_size(context);
    longer = rotation > attention ? rotation : attention;
    if (weft_rank(context) == 0) {
        row_begin();
        printf("{\"what\": \"ring\", \"ranks\": %d, \"bytes\": %llu, \"rotation_min_ns\": %.0f, "
               "\"attention_min_ns\": %.0f, \"step_min_ns\": %.0f, \"of_longer\": %.3f}",
               weft_size(context), (unsigned long long)(4 * elements()), rotation, attention, step,
               step / longer);
    }
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
    measure();
    if (weft_rank(context) == 0) printf("\n]}\n");
    board_meet();
    rank_end();
    return 0;
}
