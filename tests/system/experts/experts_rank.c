/* experts_rank.c - one rank of `weft run -n 4 experts_rank WHAT`:
 *
 *     random  random routings, compared with a serial reference; on any backend, also with 2 ranks
 *     lost    rank 2 kills itself between the counts and the tokens; the others must learn of it */
#include "case.h"

#include "support/rank_program.h"

#include <signal.h>
#include <unistd.h>

enum { CASES = 24 };

/* All ranks draw the same cases. */
static int run_random(weft_context *ctx)
{
    struct random r = random_begin("experts_rank");

    for (int i = 0; i < CASES; i++) {
        int32_t ranks = weft_size(ctx) >> random_in(&r, 0, weft_size(ctx) / 4);

        draw_case(&r, ranks, weft_size(ctx) / ranks);
        if (run_case(ctx) != WEFT_OK) return fail(case_text());
    }
    return 0;
}

static int lose_rank(weft_context *ctx)
{
    weft_experts_options options = {sizeof options, 8, 0};
    int64_t counts[8] = {1, 1, 1, 1, 1, 1, 1, 1};
    float tokens[8] = {0}, received[8];
    weft_tensor *source, *target;
    weft_routing *routing;
    weft_experts *experts;
    weft_mesh *mesh;
    weft_status status;

    if (weft_mesh_parse("ep=4", &mesh) != WEFT_OK ||
        weft_experts_create(ctx, mesh, "ep", &options, &experts) != WEFT_OK ||
        weft_experts_route(experts, 8, counts, NULL, NULL, &routing) != WEFT_OK)
        return fail("the routing");
    source = local_rows(ctx, WEFT_DTYPE_F32, 8, 1, tokens);
    target = local_rows(ctx, WEFT_DTYPE_F32, 8, 1, received);
    if (weft_rank(ctx) == 2) (void)kill(getpid(), SIGKILL);
    status = weft_routing_dispatch(routing, source, target, NULL, NULL, NULL);
    fprintf(stderr, "rank %d: %s\n", weft_rank(ctx), weft_last_error());
    weft_tensor_release(&source);
    weft_tensor_release(&target);
    weft_routing_release(&routing);
    weft_experts_release(&experts);
    weft_mesh_release(&mesh);
    return learnt_of_loss(status);
}

int main(int argc, char **argv)
{
    return run_program(argc, argv, run_random, lose_rank);
}
