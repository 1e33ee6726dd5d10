/* redistribute.c - a matrix changes from rows over `dp` to columns over `tp`.
 *
 *     weft run -n 8 ./redistribute
 *
 * Each rank fills its shard with the global index of every element and compares it afterwards.
 * Shards are in device memory, which the host cannot access on a GPU.  The host therefore fills and
 * checks host memory. */
#include <weft/weft.h>

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#define MUST(call)                                                                                 \
    do {                                                                                           \
        if ((call) != WEFT_OK) {                                                                   \
            fprintf(stderr, "%s: %s\n", #call, weft_last_error());                                 \
            exit(EXIT_FAILURE);                                                                    \
        }                                                                                          \
    } while (0)

enum { COLUMNS = 4096 };

/* Global index of element (I, J) of a shard. */
static int32_t index_of(const weft_shard *shard, int64_t i, int64_t j)
{
    return (int32_t)((shard->offset[0] + i) * COLUMNS + shard->offset[1] + j);
}

static uint64_t bytes_of(const weft_shard *shard)
{
    return (uint64_t)shard->elements * sizeof(int32_t);
}

static int32_t *allocate_host(const weft_shard *shard)
{
    int32_t *data = malloc(bytes_of(shard));

    if (data == NULL) exit(EXIT_FAILURE);
    return data;
}

static void fill(weft_context *ctx, const weft_shard *shard, void *target)
{
    int32_t *data = allocate_host(shard);

    for (int64_t i = 0; i < shard->shape[0]; i++)
        for (int64_t j = 0; j < shard->shape[1]; j++)
            data[i * shard->shape[1] + j] = index_of(shard, i, j);
    MUST(weft_memory_copy(ctx, data, target, bytes_of(shard), NULL));
    MUST(weft_context_wait(ctx, NULL, WEFT_FOREVER));
    free(data);
}

static int64_t count_wrong(weft_context *ctx, const weft_shard *shard, const void *source)
{
    int32_t *data = allocate_host(shard);
    int64_t wrong = 0;

    MUST(weft_memory_copy(ctx, source, data, bytes_of(shard), NULL));
    MUST(weft_context_wait(ctx, NULL, WEFT_FOREVER));
    for (int64_t i = 0; i < shard->shape[0]; i++)
        for (int64_t j = 0; j < shard->shape[1]; j++)
            wrong += data[i * shard->shape[1] + j] != index_of(shard, i, j);
    free(data);
    return wrong;
}

static void *allocate_shard(weft_context *ctx, const weft_spec *spec, weft_shard *shard)
{
    void *data;

    weft_spec_shard(spec, weft_rank(ctx), shard);
    MUST(weft_alloc(ctx, bytes_of(shard), WEFT_MEMORY_DEVICE, &data));
    return data;
}

int main(void)
{
    weft_context *ctx;
    weft_mesh *mesh;
    weft_spec *from, *to;
    weft_shard source_shard, target_shard;
    void *source, *target;
    weft_move_item item;
    weft_move_info kept = {.struct_size = sizeof kept};
    int64_t wrong;

    MUST(weft_init(NULL, &ctx));
    MUST(weft_mesh_parse("dp=2,tp=4", &mesh));
    MUST(weft_spec_parse(mesh, "i32[4096,4096] S(0),R", &from));
    MUST(weft_spec_with(from, "R,S(1)", &to));

    source = allocate_shard(ctx, from, &source_shard);
    target = allocate_shard(ctx, to, &target_shard);
    fill(ctx, &source_shard, source);
    item = (weft_move_item){.from = from, .source = source, .to = to, .target = target};
    MUST(weft_move(ctx, 1, &item, sizeof item, NULL, NULL, NULL));
    wrong = count_wrong(ctx, &target_shard, target);
    printf("rank %d: %lld of %lld elements wrong\n", weft_rank(ctx), (long long)wrong,
           (long long)target_shard.elements);

    /* This phase of the program moves no more: its plan and its scratch may go. */
    MUST(weft_move_get(ctx, &kept));
    if (weft_rank(ctx) == 0)
        printf("%llu bytes of scratch are free again\n", (unsigned long long)kept.scratch_bytes);
    MUST(weft_move_clear(ctx));
    MUST(weft_free(ctx, source));
    MUST(weft_free(ctx, target));
    weft_spec_release(&from);
    weft_spec_release(&to);
    weft_mesh_release(&mesh);
    weft_context_release(&ctx);
    return wrong == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
