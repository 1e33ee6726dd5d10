/* cp_rank.c - one rank of `weft run -n 4 cp_rank WHAT`:
 *
 *     random  random attentions, compared with one rank's; on any backend, also with 2 ranks
 *     lost    rank 2 kills itself in the second step of a ring; the others must learn of it */
#include "case.h"

#include "support/local_tensor.h"
#include "support/rank_program.h"

#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

enum { CASES = 24, LENGTH = 32, SKIPPED = 77 };

/* Whether the backend can merge results; otherwise the reason is printed. */
static bool is_supported(weft_context *ctx)
{
    weft_cp_options options =
        cp_options(NULL, LENGTH, &(struct cp_sizes){1, 2, 4, 0, WEFT_DTYPE_F32, 2});
    int32_t ranks = weft_size(ctx);
    weft_mesh *mesh = NULL;
    weft_cp *cp = NULL;
    weft_status status = weft_mesh_create(1, &ranks, NULL, &mesh);

    if (status == WEFT_OK) status = weft_cp_create(ctx, mesh, "0", &options, &cp);
    if (status != WEFT_OK) printf("%s\n", weft_last_error());
    weft_cp_release(&cp);
    weft_mesh_release(&mesh);
    return status != WEFT_ERR_UNSUPPORTED;
}

/* All ranks draw the same cases. */
static int run_random(weft_context *ctx)
{
    struct random r = random_begin("cp_rank");
    int cases = test_cases(CASES);

    if (!is_supported(ctx)) return SKIPPED;
    for (int i = 0; i < cases; i++) {
        int32_t ranks = 1 << random_in(&r, 0, weft_size(ctx) / 2);
        weft_status status;

        draw_case(&r, ranks, weft_size(ctx) / ranks);
        status = run_case(ctx);
        if (status != WEFT_OK) return fail(case_text());
        reference_free(&drawn.reference);
    }
    return 0;
}

static weft_status attend_or_die(void *user, const weft_cp_call *call)
{
    const int32_t *rank = user;

    if (*rank == 2 && call->problem->source == 1) (void)kill(getpid(), SIGKILL);
    return attend(NULL, call);
}

static int lose_rank(weft_context *ctx)
{
    weft_cp_options options =
        cp_options(NULL, LENGTH, &(struct cp_sizes){1, 2, 4, 0, WEFT_DTYPE_F32, 2});
    static float memory[5][LENGTH * 2 * 4];
    const int64_t shape[] = {1, 2, LENGTH / 4, 4};
    weft_cp_tensors t = {.struct_size = sizeof t};
    weft_tensor **const all[] = {&t.q, &t.k, &t.v, &t.out, &t.lse};
    int32_t rank = weft_rank(ctx);
    weft_mesh *mesh;
    weft_status status;
    weft_cp *cp;

    if (weft_mesh_parse("cp=4", &mesh) != WEFT_OK ||
        weft_cp_create(ctx, mesh, "cp", &options, &cp) != WEFT_OK)
        return fail("the attention");
    for (int i = 0; i < 5; i++)
        *all[i] = local_tensor(ctx, WEFT_DTYPE_F32, i == 4 ? 3 : 4, shape, memory[i], NULL);
    do /* a rank far from the lost one may complete a pass */
        status = weft_cp_forward(cp, &t, attend_or_die, &rank, NULL);
    while (status == WEFT_OK);
    fprintf(stderr, "rank %d: %s\n", rank, weft_last_error());
    for (int i = 0; i < 5; i++)
        weft_tensor_release(all[i]);
    weft_cp_release(&cp);
    weft_mesh_release(&mesh);
    return learnt_of_loss(status);
}

int main(int argc, char **argv)
{
    return run_program(argc, argv, run_random, lose_rank);
}
