/* draws.c - the random numbers of a model: its parameters, a batch of tokens, masks of dropout.
 *
 *     ./draws                              on one rank
 *     weft run -n 4 ./draws                on four ranks: the same numbers
 *     WEFT_SIMULATED_RANKS=4 ./draws       on four ranks that are simulated
 *     ./draws my.layout bf16               parameters in another layout and dtype
 *
 * Each rank draws its own shards, and nothing is communicated.  An element does not depend on the
 * layout or on the number of ranks.  A layout file (layout.h) says how the parameters are split,
 * and which dimensions have heads, which no rank may cut.  Rank 0 prints its shard of the queries'
 * weights. */
#include <weft/layout.h>
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

/* ---- the layout of the model ---- */

enum { WIDTH = 16, WORDS = 100, PARAMETERS = 2 };

static const char default_layout[] = "words  S(0)\n"
                                     "*.qkv  B(0;16,16,16) heads0(4)\n"; /* q, k and v are split */

static const char *const names[PARAMETERS] = {"words", "first.qkv"};
static const int64_t shapes[PARAMETERS][2] = {{WORDS, WIDTH}, {3 * WIDTH, WIDTH}};

static weft_layout_file *read_layout(const char *path, const weft_mesh *mesh)
{
    weft_layout_file *layout;

    if (path != NULL)
        MUST(weft_layout_file_open(path, mesh, &layout));
    else
        MUST(weft_layout_file_parse(default_layout, mesh, &layout));
    MUST(weft_layout_file_warn(layout, PARAMETERS, names)); /* of lines that decide nothing */
    return layout;
}

/* Whether a rank has a part of a head, of SIZE indices of dimension DIM. */
static bool cuts_heads(const weft_spec *spec, int ranks, int32_t dim, int64_t size)
{
    weft_index_run run;

    for (int rank = 0; rank < ranks; rank++)
        for (int64_t at = 0; weft_spec_run(spec, rank, dim, at, &run); at += run.length)
            if (run.start % size != 0 || run.length % size != 0) return true;
    return false;
}

/* Parameter INDEX, in the layout that the file gives it. */
static weft_tensor *make_parameter(weft_context *ctx, const weft_layout_file *layout, int index,
                                   enum weft_dtype dtype)
{
    weft_tensor_options options = {.struct_size = sizeof options, .name = names[index]};
    const char *placements, *size;
    weft_tensor *made;
    weft_spec *spec;
    int32_t dim;

    MUST(weft_layout_file_find(layout, names[index], &placements));
    MUST(weft_spec_parse_placements(weft_layout_file_mesh(layout), dtype, 2, shapes[index],
                                    placements, &spec));
    MUST(weft_layout_file_heads(layout, names[index], &dim, &size));
    if (size[0] != '\0' && cuts_heads(spec, weft_size(ctx), dim, atoll(size))) {
        fprintf(stderr, "%s: %d ranks would cut a head of %s\n", names[index], weft_size(ctx),
                size);
        exit(EXIT_FAILURE);
    }
    MUST(weft_tensor_create(ctx, spec, &options, &made));
    weft_spec_release(&spec);
    return made;
}

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

/* ---- what was drawn ---- */

/* The sum of the elements of TENSOR, of u8, on all ranks. */
static long count_ones(weft_tensor *tensor)
{
    weft_context *ctx = weft_tensor_context(tensor);
    bool all = weft_is_simulated(ctx); /* then the shards of all ranks are here */
    long ones = 0;

    MUST(weft_context_wait(ctx, NULL, WEFT_FOREVER));
    for (int rank = 0; rank < weft_size(ctx); rank++) {
        weft_tensor_local_info local = {.struct_size = sizeof local};

        if (!all && rank != weft_rank(ctx)) continue;
        MUST(weft_tensor_local_of(tensor, rank, &local));
        for (int64_t i = 0; i < local.shard.elements; i++)
            ones += ((const unsigned char *)local.memory)[i];
    }
    if (all) return ones;
    MUST(weft_all_reduce(weft_world(ctx), &ones, &ones, 1, WEFT_DTYPE_I64, WEFT_REDUCE_SUM, NULL));
    MUST(weft_context_wait(ctx, NULL, WEFT_FOREVER));
    return ones;
}

/* The largest number of this rank's shard of MATRIX, f32, which may be a view with gaps. */
static double largest_of(const weft_tensor *matrix)
{
    const int64_t *shape = weft_tensor_shard(matrix)->shape, *strides = weft_tensor_strides(matrix);
    const float *elements = weft_tensor_memory(matrix);
    double largest = 0;

    for (int64_t row = 0; row < shape[0]; row++)
        for (int64_t column = 0; column < shape[1]; column++)
            largest = fmax(largest, fabs((double)elements[row * strides[0] + column * strides[1]]));
    return largest;
}

int main(int argc, char **argv)
{
    const double bound = sqrt(1.0 / WIDTH); /* of a linear layer, as PyTorch draws it */
    enum weft_dtype dtype = WEFT_DTYPE_F32;
    weft_random random = {.seed = 42};
    weft_tensor *words, *qkv, *queries, *tokens, *mask, *drop;
    weft_layout_file *layout;
    weft_context *ctx;
    weft_mesh *mesh;
    char text[4096];
    bool right;
    long ones;

    MUST(weft_init(NULL, &ctx));
    MUST(weft_mesh_parse_for("tp=*", weft_size(ctx), &mesh));
    layout = read_layout(argc > 1 ? argv[1] : NULL, mesh);
    if (argc > 2) MUST(weft_dtype_parse(argv[2], &dtype));
    words = make_parameter(ctx, layout, 0, dtype);
    qkv = make_parameter(ctx, layout, 1, dtype);
    tokens = make(ctx, mesh, "i32[4,12] R", "tokens");
    mask = make(ctx, mesh, "u8[1000] S(0)", "mask");
    drop = make(ctx, mesh, "f32[12,16] S(1)", "drop");

    MUST(weft_tensor_truncated_normal(words, &random, 0, 0.02, -0.04, 0.04, NULL));
    MUST(weft_tensor_uniform(qkv, &random, -bound, bound, NULL));
    MUST(weft_tensor_integers(tokens, &random, 0, WORDS, NULL));
    MUST(weft_tensor_bernoulli(mask, &random, 0.15, NULL)); /* of masked words */
    MUST(weft_tensor_dropout(drop, &random, 0.1, NULL));    /* 0 or 1 / 0.9 */

    MUST(weft_tensor_narrow(qkv, 0, 0, WIDTH, &queries)); /* a view: the first third */
    MUST(weft_tensor_print(queries, NULL, text, sizeof text, NULL));
    ones = count_ones(mask);
    right = ones > 100 && ones < 200;
    if (dtype == WEFT_DTYPE_F32) right = right && largest_of(queries) <= bound;
    if (weft_rank(ctx) == 0) printf("%s\n%ld of 1000 words are masked\n", text, ones);

    weft_tensor_release(&queries);
    weft_tensor_release(&drop);
    weft_tensor_release(&mask);
    weft_tensor_release(&tokens);
    weft_tensor_release(&qkv);
    weft_tensor_release(&words);
    weft_layout_file_release(&layout);
    weft_mesh_release(&mesh);
    weft_context_release(&ctx);
    return right ? EXIT_SUCCESS : EXIT_FAILURE;
}
