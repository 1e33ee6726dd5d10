/* cp_rank.c - one rank of `weft run -n 4 cp_rank WHAT`:
 *
 *     random  random attentions, compared with one rank's; on any backend, also with 2 ranks
 *     lost    rank 2 kills itself in the second step of a ring; the others must learn of it */
#include "case.h"

#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

enum { CASES = 24, LENGTH = 32, SKIPPED = 77 };

static int fail(const char *what)
{
    fprintf(stderr, "%s: %s\n", what, weft_last_error());
    return 1;
}

/* Whether the backend can merge results; otherwise the reason is printed. */
static bool is_supported(weft_context *ctx)
{
    weft_cp_sizes sizes = {sizeof sizes, 1, 2, 4, 0, WEFT_DTYPE_F32, 2};
    int32_t ranks = weft_size(ctx);
    weft_cp_plan *plan = NULL;
    weft_mesh *mesh = NULL;
    weft_cp *cp = NULL;
    weft_status status = weft_mesh_create(1, &ranks, NULL, &mesh);

    if (status == WEFT_OK) status = weft_cp_plan_create(mesh, "0", LENGTH, NULL, &plan);
    if (status == WEFT_OK) status = weft_cp_create(ctx, plan, &sizes, &cp);
    if (status != WEFT_OK) printf("%s\n", weft_last_error());
    weft_cp_release(&cp);
    weft_cp_plan_release(&plan);
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
    weft_cp_sizes sizes = {sizeof sizes, 1, 2, 4, 0, WEFT_DTYPE_F32, 2};
    static float memory[9][LENGTH * 2 * 4];
    weft_cp_tensors t = {sizeof t,  memory[0], memory[1], memory[2], memory[3],
                         memory[4], memory[5], memory[6], memory[7], memory[8]};
    int32_t rank = weft_rank(ctx);
    weft_cp_plan *plan;
    weft_mesh *mesh;
    weft_status status;
    weft_cp *cp;

    if (weft_mesh_parse("cp=4", &mesh) != WEFT_OK ||
        weft_cp_plan_create(mesh, "cp", LENGTH, NULL, &plan) != WEFT_OK ||
        weft_cp_create(ctx, plan, &sizes, &cp) != WEFT_OK)
        return fail("the attention");
    do /* a rank far from the lost one may complete a pass */
        status = weft_cp_forward(cp, &t, attend_or_die, &rank, NULL);
    while (status == WEFT_OK);
    fprintf(stderr, "rank %d: %s\n", rank, weft_last_error());
    weft_cp_release(&cp);
    weft_cp_plan_release(&plan);
    weft_mesh_release(&mesh);
    return status == WEFT_ERR_PEER && strstr(weft_last_error(), "rank 2") != NULL ? 0 : 1;
}

int main(int argc, char **argv)
{
    weft_context *ctx;
    int code;

    if (weft_init(NULL, &ctx) != WEFT_OK) return fail("weft_init");
    if ((weft_size(ctx) != 2 && weft_size(ctx) != 4) || argc != 2)
        return fail("usage: weft run -n 4 cp_rank WHAT");
    code = strcmp(argv[1], "lost") == 0 ? lose_rank(ctx) : run_random(ctx);
    if (code == 0) printf("rank %d is done\n", weft_rank(ctx));
    weft_context_release(&ctx);
    return code;
}
