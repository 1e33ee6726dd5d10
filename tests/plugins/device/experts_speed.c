/* experts_speed.c - dispatch and combine of experts, with their exchange of counts, beside one
 * exchange of the same bytes.
 *
 *     weft run -n 4 experts_speed BOARD [TOKENS [ROUNDS]]
 *
 * TOKENS of 4096 bf16 are on each rank.  Prints JSON. */
#include "board.h"
#include "speed.h"
#include "support/local_tensor.h"
#include "weft/experts.h"

#include <stdio.h>
#include <stdlib.h>

enum { WIDTH = 4096, PER_RANK_MOST = 8 };

static int rounds = 20;
static int64_t tokens = 16384;

struct step {
    weft_experts *experts;
    size_t count;
    int64_t counts[BOARD_MOST_RANKS * PER_RANK_MOST];
    void *sent, *received;
    weft_tensor *from, *to; /* the same memory */
    bool is_combine;
};

static void exchange(void *self)
{
    struct step *s = self;
    uint64_t count = (uint64_t)(tokens / weft_size(context) * WIDTH);

    must(weft_all_to_all(weft_world(context), s->sent, s->received, count, WEFT_DTYPE_BF16, stream),
         "weft_all_to_all");
}

static void route(void *self)
{
    struct step *s = self;
    weft_routing *routing = NULL;

    must(weft_experts_route(s->experts, s->count, s->counts, NULL, stream, &routing),
         "weft_experts_route");
    weft_routing_release(&routing);
}

static void travel(void *self)
{
    struct step *s = self;
    weft_routing *routing = NULL;

    must(weft_experts_route(s->experts, s->count, s->counts, NULL, stream, &routing),
         "weft_experts_route");
    if (s->is_combine)
        must(weft_routing_combine(routing, s->from, s->to, NULL, stream, NULL),
             "weft_routing_combine");
    else
        must(weft_routing_dispatch(routing, s->from, s->to, NULL, stream, NULL),
             "weft_routing_dispatch");
    weft_routing_release(&routing);
}

static void measure(int32_t per_rank)
{
    weft_experts_options options = {sizeof options, per_rank * weft_size(context), 0};
    uint64_t bytes = (uint64_t)(tokens * WIDTH) * 2;
    struct step s = {.sent = speed_memory(bytes), .received = speed_memory(bytes)};

    must(weft_experts_create(context, mesh, "0", &options, &s.experts), "weft_experts_create");
    s.from = local_rows(context, WEFT_DTYPE_BF16, tokens, WIDTH, s.sent);
    s.to = local_rows(context, WEFT_DTYPE_BF16, tokens, WIDTH, s.received);
    s.count = (size_t)options.experts;
    for (int32_t i = 0; i < options.experts; i++)
        s.counts[i] = tokens / options.experts;
    for (int i = 0; i < 2; i++) {
        double counts, alone, taken;

        s.is_combine = i == 1;
        counts = speed_of(route, &s, rounds);
        alone = speed_of(exchange, &s, rounds);
        taken = speed_of(travel, &s, rounds);
        if (weft_rank(context) != 0) continue;
        row_begin();
        printf("{\"what\": \"%s\", \"ranks\": %d, \"per_rank\": %d, \"bytes\": %llu, "
               "\"counts_min_ns\": %.0f, \"exchange_min_ns\": %.0f, \"min_ns\": %.0f, "
               "\"of_exchange\": %.3f}",
               s.is_combine ? "combine" : "dispatch", weft_size(context), per_rank,
               (unsigned long long)bytes, counts, alone, taken, taken / alone);
    }
    weft_tensor_release(&s.from);
    weft_tensor_release(&s.to);
    weft_experts_release(&s.experts);
    must(weft_free(context, s.sent), "weft_free");
    must(weft_free(context, s.received), "weft_free");
}

int main(int argc, char **argv)
{
    int32_t ranks;

    if (argc > 2) tokens = strtoll(argv[2], NULL, 10);
    if (argc > 3) rounds = (int)strtol(argv[3], NULL, 10);
    rank_begin();
    ranks = weft_size(context);
    if (argc < 2 || tokens < 1 || tokens % (ranks * PER_RANK_MOST) != 0 || rounds < 1) {
        fprintf(stderr, "usage: weft run -n RANKS experts_speed BOARD [TOKENS [ROUNDS]]\n"
                        "TOKENS is a multiple of 8 RANKS\n");
        return 2;
    }
    board_open(argv[1], weft_rank(context), ranks, 0);
    if (weft_rank(context) == 0)
        printf("{\"backend\": \"%s\", \"rows\": [", weft_context_plugin(context)->name);
    for (int32_t per_rank = 1; per_rank <= PER_RANK_MOST; per_rank *= 2)
        measure(per_rank);
    if (weft_rank(context) == 0) printf("\n]}\n");
    board_meet();
    rank_end();
    return 0;
}
