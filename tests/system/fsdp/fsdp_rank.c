/* fsdp_rank.c - one rank that trains steps of two groups with prefetch, started by `weft run`:
 *
 *     fsdp_rank CALLS     rank 1 kills itself before its call number CALLS
 *
 * The other ranks must get an error.  They then check that their shards are intact, release
 * everything, print the error and exit with 0. */
#include "serial.h"
#include "../tensor/holds.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { GROUPS = 2, STEPS = 100 };

static struct {
    weft_context *context;
    weft_mesh *mesh;
    weft_spec *spec;
    weft_tensor *params[GROUPS];
    weft_fsdp *fsdp;
    weft_fsdp_group *groups[GROUPS];
} model;
static long left; /* calls before the end of rank 1 */

/* CALL is the next call of this rank. */
#define NEXT(call)                                                                                 \
    do {                                                                                           \
        if (weft_rank(model.context) == 1 && --left == 0) (void)kill(getpid(), SIGKILL);           \
        WF_TRY(call);                                                                              \
    } while (0)

static weft_status begin(void)
{
    WF_TRY(weft_init(NULL, &model.context));
    WF_TRY(weft_mesh_parse("dp=3", &model.mesh));
    WF_TRY(weft_spec_parse(model.mesh, "f32[4001,3] S(0)", &model.spec));
    WF_TRY(weft_fsdp_create(model.context, model.mesh, "dp", NULL, &model.fsdp));
    for (int i = 0; i < GROUPS; i++) {
        struct elements of = {.which = (uint64_t)i};
        weft_fsdp_param param = {0};

        WF_TRY(weft_tensor_create(model.context, model.spec, NULL, &model.params[i]));
        WF_TRY(each_element(model.params[i], set_parameter, &of));
        param.tensor = model.params[i];
        WF_TRY(weft_fsdp_group_create(model.fsdp, 1, &param, sizeof param, NULL, &model.groups[i]));
    }
    return weft_fsdp_prefetch_set(model.groups[0], WEFT_FSDP_FORWARD, 1, &model.groups[1]);
}

static weft_status reduce(weft_fsdp_group *group)
{
    weft_tensor *gradient = NULL;
    weft_status status;

    NEXT(weft_fsdp_gradient_create(group, 0, &gradient));
    status = weft_fsdp_reduce_begin(group, &gradient, 0);
    weft_tensor_release(&gradient);
    return status;
}

static weft_status step(void)
{
    for (int i = 0; i < GROUPS; i++) {
        NEXT(weft_fsdp_unshard_begin(model.groups[i], WEFT_FSDP_FORWARD));
        NEXT(weft_fsdp_unshard_end(model.groups[i]));
        NEXT(weft_context_wait(model.context, NULL, WEFT_FOREVER));
    }
    for (int i = GROUPS - 1; i >= 0; i--)
        NEXT(reduce(model.groups[i]));
    for (int i = 0; i < GROUPS; i++) {
        NEXT(weft_fsdp_reduce_end(model.groups[i]));
        NEXT(weft_fsdp_gradients_clear(model.groups[i]));
    }
    return weft_context_wait(model.context, NULL, WEFT_FOREVER);
}

static weft_status train(void)
{
    for (int i = 0; i < STEPS; i++)
        WF_TRY(step());
    return WEFT_OK;
}

/* The elements of the shards, without a wait for work that has failed. */
static weft_status check_shards(void)
{
    for (int i = 0; i < GROUPS; i++) {
        const float *elements = weft_tensor_memory(model.params[i]);
        weft_segment segment;

        for (int64_t at = 0;
             weft_spec_segment(model.spec, weft_rank(model.context), NULL, at, &segment);
             at += segment.length)
            for (int64_t j = 0; j < segment.length; j++)
                HOLDS((double)elements[segment.local + j] ==
                      parameter_value((uint64_t)i, segment.global + j));
    }
    return WEFT_OK;
}

int main(int argc, char **argv)
{
    char text[1024];

    left = argc > 1 ? strtol(argv[1], NULL, 10) : 1;
    if (begin() != WEFT_OK) {
        fprintf(stderr, "cannot begin: %s\n", weft_last_error());
        return 1;
    }
    if (train() == WEFT_OK) {
        fprintf(stderr, "no error\n");
        return 1;
    }
    snprintf(text, sizeof text, "%s", weft_last_error());
    if (check_shards() != WEFT_OK) {
        fprintf(stderr, "%s\n", weft_last_error());
        return 1;
    }
    for (int i = 0; i < GROUPS; i++) {
        weft_fsdp_group_release(&model.groups[i]);
        weft_tensor_release(&model.params[i]);
    }
    weft_fsdp_release(&model.fsdp);
    weft_spec_release(&model.spec);
    weft_mesh_release(&model.mesh);
    weft_context_release(&model.context);
    printf("the shards are intact after: %s\n", text);
    return 0;
}
