/* hello.c - the sum of all ranks, known to each of them.
 *
 *     cc hello.c -lweft -o hello                              weft run -n 4 ./hello
 *     cc -shared -fPIC -Dmain=weft_main hello.c -lweft -o hello.so     weft run -n 4 --threads
 * ./hello.so
 */
#include <weft/weft.h>

#include <stdio.h>

int main(int argc, char **argv)
{
    weft_context *ctx;
    float mine, sum = -1;
    weft_status status = weft_init(NULL, &ctx);

    if (status == WEFT_OK) {
        mine = (float)weft_rank(ctx);
        status =
            weft_all_reduce(weft_world(ctx), &mine, &sum, 1, WEFT_DTYPE_F32, WEFT_REDUCE_SUM, NULL);
        printf("rank %d of %d: the sum is %g\n", weft_rank(ctx), weft_size(ctx), (double)sum);
        weft_context_release(&ctx);
    }
    if (status != WEFT_OK) fprintf(stderr, "%s: %s\n", argc > 0 ? argv[0] : "", weft_last_error());
    return status != WEFT_OK;
}
