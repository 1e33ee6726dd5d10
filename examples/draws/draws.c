/* draws.c - the random numbers of a model: its parameters, a batch of tokens, masks of dropout.
 *
 *     ./draws                    on one rank
 *     weft run -n 4 ./draws      on four ranks: the same numbers
 *
 * Each rank draws its own shards, and nothing is communicated.  An element does not depend on the
 * layout or on the number of ranks.  Rank 0 prints its shard of the queries' weights. */
#include <weft/random.h>
#include <weft/weft.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#define MUST(call)                                                                                 \
    do {                                                                                           \
        if ((call) != WEFT_OK) {                                                                   \
            fprintf(stderr, "%s: %s\n", #call, weft_last_error());                                 \
            exit(EXIT_FAILURE);                                                                    \
        }                                                                                          \
    } while (0)

static weft_tensor *make(weft_context *ctx, const weft_mesh *mesh, const char *text,
                         const char *name)
{
    weft_tensor_options options = {.struct_size = sizeof options, .name = name};
    weft_tensor *made;
    weft_spec *spec;

    MUST(weft_spec_parse(mesh, text, &spec));
    MUST(weft_tensor_create(ctx, spec, &options, &made));
    weft_spec_release(&spec);
    return made;
}

/* The sum of the elements of TENSOR, of u8, on all ranks. */
static long count_ones(weft_tensor *tensor)
{
    weft_context *ctx = weft_tensor_context(tensor);
    const weft_shard *shard = weft_tensor_shard(tensor);
    const unsigned char *elements = weft_tensor_memory(tensor);
    long ones = 0;

    MUST(weft_context_wait(ctx, NULL, WEFT_FOREVER));
    for (int64_t i = 0; i < shard->elements; i++)
        ones += elements[i];
    MUST(weft_all_reduce(weft_world(ctx), &ones, &ones, 1, WEFT_DTYPE_I64, WEFT_REDUCE_SUM, NULL));
    MUST(weft_context_wait(ctx, NULL, WEFT_FOREVER));
    return ones;
}

int main(void)
{
    const int width = 16;
    const double bound = sqrt(1.0 / width); /* of a linear layer, as PyTorch draws it */
    weft_random random = {.seed = 42};
    weft_tensor *words, *qkv, *queries, *tokens, *mask, *drop;
    weft_context *ctx;
    weft_mesh *mesh;
    char text[4096];
    long ones;

    MUST(weft_init(NULL, &ctx));
    MUST(weft_mesh_parse_for("tp=*", weft_size(ctx), &mesh));
    words = make(ctx, mesh, "f32[100,16] S(0)", "words");
    qkv = make(ctx, mesh, "f32[48,16] B(0;16,16,16)", "qkv"); /* each of the three is split */
    tokens = make(ctx, mesh, "i32[4,12] R", "tokens");
    mask = make(ctx, mesh, "u8[1000] S(0)", "mask");
    drop = make(ctx, mesh, "f32[12,16] S(1)", "drop");

    MUST(weft_tensor_truncated_normal(words, &random, 0, 0.02, -0.04, 0.04, NULL));
    MUST(weft_tensor_uniform(qkv, &random, -bound, bound, NULL));
    MUST(weft_tensor_integers(tokens, &random, 0, 100, NULL));
    MUST(weft_tensor_bernoulli(mask, &random, 0.15, NULL)); /* of masked words */
    MUST(weft_tensor_dropout(drop, &random, 0.1, NULL));    /* 0 or 1 / 0.9 */

    MUST(weft_tensor_narrow(qkv, 0, 0, width, &queries)); /* a view: the first third */
    MUST(weft_tensor_print(queries, NULL, text, sizeof text, NULL));
    ones = count_ones(mask);
    if (weft_rank(ctx) == 0) printf("%s\n%ld of 1000 words are masked\n", text, ones);

    weft_tensor_release(&queries);
    weft_tensor_release(&drop);
    weft_tensor_release(&mask);
    weft_tensor_release(&tokens);
    weft_tensor_release(&qkv);
    weft_tensor_release(&words);
    weft_mesh_release(&mesh);
    weft_context_release(&ctx);
    return ones > 100 && ones < 200 ? EXIT_SUCCESS : EXIT_FAILURE;
}
