/* experts.c - a layer of a mixture of experts: tokens travel to the ranks of their experts and
 * back.
 *
 *     weft run -n 2 ./experts
 *
 * A router chooses an expert for each token, and the rank orders its tokens by expert.  Expert e
 * multiplies by e + 1, so that the program can check what comes back. */
#include <weft/parallel.h>

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MUST(call)                                                                                 \
    do {                                                                                           \
        if ((call) != WEFT_OK) {                                                                   \
            fprintf(stderr, "%s: %s\n", #call, weft_last_error());                                 \
            exit(EXIT_FAILURE);                                                                    \
        }                                                                                          \
    } while (0)

enum { EXPERTS = 6, TOKENS = 32, WIDTH = 8 };

static weft_context *ctx;

/* The expert of token I of this rank. */
static int route(int i)
{
    return (i * 7 + weft_rank(ctx) * 3) % EXPERTS;
}

/* Set ROWS to this rank's tokens by expert, and COUNTS to how many each expert gets.  CHOSEN has
 * the expert of each row. */
static void order_by_expert(float (*rows)[WIDTH], int64_t *counts, int *chosen)
{
    int at = 0;

    memset(counts, 0, EXPERTS * sizeof *counts);
    for (int e = 0; e < EXPERTS; e++)
        for (int i = 0; i < TOKENS; i++) {
            if (route(i) != e) continue;
            for (int c = 0; c < WIDTH; c++)
                rows[at][c] = (float)(weft_rank(ctx) * TOKENS + i + c);
            chosen[at++] = e;
            counts[e]++;
        }
}

/* The experts of this rank compute in place. */
static void compute(weft_tensor *received, const weft_routing_info *info)
{
    float(*row)[WIDTH] = weft_tensor_memory(received);

    for (size_t i = 0; i < info->expert_count; i++)
        for (int64_t k = 0; k < info->counts[i]; k++, row++)
            for (int c = 0; c < WIDTH; c++)
                (*row)[c] *= (float)(info->first_expert + (int32_t)i + 1);
}

/* One step: HOME has this rank's tokens, and their results afterwards. */
static int64_t run_layer(weft_experts *experts, const int64_t *counts, weft_tensor *home)
{
    weft_routing_info info = {.struct_size = sizeof info};
    weft_routing *routing;
    weft_tensor *received;
    weft_work *arrived;
    weft_spec *spec;

    MUST(weft_experts_route(experts, EXPERTS, counts, NULL, NULL, &routing));
    MUST(weft_routing_get(routing, &info));
    MUST(weft_routing_spec(routing, WEFT_DTYPE_F32, WIDTH, NULL, &spec));
    MUST(weft_tensor_create(ctx, spec, NULL, &received));
    MUST(weft_routing_dispatch(routing, home, received, NULL, NULL, &arrived));
    MUST(weft_work_wait(arrived, WEFT_FOREVER)); /* the experts of this example are on the host */
    weft_work_release(&arrived);
    compute(received, &info);
    MUST(weft_routing_combine(routing, received, home, NULL, NULL, NULL));
    MUST(weft_context_wait(ctx, NULL, WEFT_FOREVER));
    weft_tensor_release(&received);
    weft_spec_release(&spec);
    weft_routing_release(&routing);
    return info.received;
}

int main(void)
{
    static float rows[TOKENS][WIDTH], before[TOKENS][WIDTH];
    weft_init_options options = {.struct_size = sizeof options, .backend = "gloo-cpu"};
    weft_experts_options six = {.struct_size = sizeof six, .experts = EXPERTS};
    weft_placement split = {.kind = WEFT_PLACE_SHARD};
    weft_experts_info own = {.struct_size = sizeof own};
    int64_t counts[EXPERTS], shape[] = {TOKENS, WIDTH}, received;
    int chosen[TOKENS], wrong = 0;
    weft_experts *experts;
    weft_tensor *home;
    weft_mesh *mesh;
    weft_spec *spec;
    int32_t size;

    MUST(weft_init(&options, &ctx));
    size = weft_size(ctx);
    shape[0] *= size;
    MUST(weft_mesh_create(1, &size, NULL, &mesh));
    MUST(weft_experts_create(ctx, mesh, "0", &six, &experts));
    MUST(weft_spec_create(mesh, WEFT_DTYPE_F32, 2, shape, &split, &spec));
    MUST(weft_tensor_wrap(ctx, spec, rows, NULL, &home));
    order_by_expert(rows, counts, chosen);
    memcpy(before, rows, sizeof rows);
    received = run_layer(experts, counts, home);
    for (int i = 0; i < TOKENS; i++)
        for (int c = 0; c < WIDTH; c++)
            wrong += rows[i][c] != before[i][c] * (float)(chosen[i] + 1);
    MUST(weft_experts_get(experts, &own));
    printf("rank %d: its %d experts, from %d on, computed %lld tokens, and %d of its %d elements "
           "are wrong\n",
           weft_rank(ctx), own.here, own.first, (long long)received, wrong, TOKENS * WIDTH);
    weft_tensor_release(&home);
    weft_spec_release(&spec);
    weft_experts_release(&experts);
    weft_mesh_release(&mesh);
    weft_context_release(&ctx);
    return wrong == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
