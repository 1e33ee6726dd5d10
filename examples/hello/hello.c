/* hello.c - the sum of all ranks, received by each of them.
 *
 *     cc hello.c -lweft -o hello
 *     weft run -n 4 ./hello
 *
 *     cc -shared -fPIC -Dmain=weft_main hello.c -lweft -o hello.so
 *     weft run -n 4 --threads ./hello.so
 *
 * The numbers are in pinned memory, which the host and a device can both access. */
#include <weft/weft.h>

#include <stdio.h>

static weft_status add_up(weft_context *ctx, float *mine, float *sum)
{
    weft_status status;

    *mine = (float)weft_rank(ctx);
    status = weft_all_reduce(weft_world(ctx), mine, sum, 1, WEFT_DTYPE_F32, WEFT_REDUCE_SUM, NULL);
    return status == WEFT_OK ? weft_context_wait(ctx, NULL, WEFT_FOREVER) : status;
}

int main(int argc, char **argv)
{
    weft_context *ctx = NULL;
    void *memory = NULL;
    weft_status status = weft_init(NULL, &ctx);

    if (status == WEFT_OK) status = weft_alloc(ctx, 2 * sizeof(float), WEFT_MEMORY_PINNED, &memory);
    if (status == WEFT_OK) {
        float *numbers = memory;

        status = add_up(ctx, &numbers[0], &numbers[1]);
        if (status == WEFT_OK)
            printf("rank %d of %d: the sum is %g\n", weft_rank(ctx), weft_size(ctx),
                   (double)numbers[1]);
    }
    if (status != WEFT_OK) fprintf(stderr, "%s: %s\n", argc > 0 ? argv[0] : "", weft_last_error());
    if (memory != NULL && weft_free(ctx, memory) != WEFT_OK) status = WEFT_ERR_INTERNAL;
    weft_context_release(&ctx);
    return status != WEFT_OK;
}
