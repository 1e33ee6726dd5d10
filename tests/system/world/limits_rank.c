/* limits_rank.c [BYTES] - a rank that joins, plans and moves tensors, reduces and prints; with
 * BYTES in a thread whose stack has so many bytes, or as many as a thread needs. */
#include <weft/weft.h>

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MUST(call)                                                                                 \
    do {                                                                                           \
        if ((call) != WEFT_OK) {                                                                   \
            fprintf(stderr, "%s: %s\n", #call, weft_last_error());                                 \
            exit(EXIT_FAILURE);                                                                    \
        }                                                                                          \
    } while (0)

/* The plan that takes the least memory is made, examined and printed. */
static void make_plan(const weft_spec *from, const weft_spec *to)
{
    weft_plan_options options = {.struct_size = sizeof options, .minimize = WEFT_MINIMIZE_MEMORY};
    weft_plan_info info = {.struct_size = sizeof info};
    static char text[4096];
    weft_plan *plan;

    MUST(weft_plan_create(from, to, &options, &plan));
    MUST(weft_plan_get(plan, &info));
    MUST(weft_plan_print(plan, text, sizeof text, NULL));
    weft_plan_release(&plan);
}

/* A tensor moves from FIRST to SECOND and is printed. */
static void move(weft_context *ctx, weft_mesh *mesh, const char *first, const char *second)
{
    static char text[4096]; /* not on the stack */
    weft_random random = {.seed = 42};
    weft_tensor *made, *moved;
    weft_spec *from, *to;

    MUST(weft_spec_parse(mesh, first, &from));
    MUST(weft_spec_parse(mesh, second, &to));
    make_plan(from, to);
    MUST(weft_tensor_create(ctx, from, NULL, &made));
    if (strstr(first, "P(") != NULL) /* random elements have no parts */
        MUST(weft_tensor_fill(made, 1, NULL));
    else
        MUST(weft_tensor_normal(made, &random, 0, 0.02, NULL));
    MUST(weft_tensor_move(made, to, NULL, NULL, &moved));
    MUST(weft_tensor_full_print(moved, NULL, NULL, text, sizeof text, NULL));
    if (weft_rank(ctx) == 0) printf("%.*s\n", (int)strcspn(text, "\n"), text);
    weft_tensor_release(&made);
    weft_tensor_release(&moved);
    weft_spec_release(&from);
    weft_spec_release(&to);
}

static void reduce(weft_context *ctx, enum weft_dtype dtype, enum weft_reduction reduction)
{
    static _Alignas(64) unsigned char ones[8192], sums[8192];

    MUST(weft_all_reduce(weft_world(ctx), ones, sums, sizeof ones / 8, dtype, reduction, NULL));
    MUST(weft_context_wait(ctx, NULL, WEFT_FOREVER));
}

static void *work(void *argument)
{
    weft_context *ctx;
    weft_mesh *mesh;

    MUST(weft_init(NULL, &ctx));
    MUST(weft_mesh_parse("2x2", &mesh));
    move(ctx, mesh, "f32[64,96] S(0),R", "f32[64,96] R,S(1)");
    move(ctx, mesh, "f64[63,95] S(1),S(0)", "bf16[63,95] R,S(1)");
    move(ctx, mesh, "bf16[64,95] P(sum),P(sum)", "f32[64,95] S(1),R");
    move(ctx, mesh, "f32[95,64] P(avg),S(1)", "f64[95,64] S(1),S(1)");
    reduce(ctx, WEFT_DTYPE_BF16, WEFT_REDUCE_AVG);
    reduce(ctx, WEFT_DTYPE_I64, WEFT_REDUCE_AVG);
    reduce(ctx, WEFT_DTYPE_F64, WEFT_REDUCE_SUM);
    weft_mesh_release(&mesh);
    weft_context_release(&ctx);
    return argument;
}

int main(int argc, char **argv)
{
    size_t stack = argc > 1 ? (size_t)strtoul(argv[1], NULL, 10) : 0;
    long least = sysconf(_SC_THREAD_STACK_MIN);
    pthread_attr_t attributes;
    pthread_t thread;

    if (stack == 0) {
        work(NULL);
    } else {
        if (least > 0 && stack < (size_t)least) stack = (size_t)least;
        if (pthread_attr_init(&attributes) != 0 ||
            pthread_attr_setstacksize(&attributes, stack) != 0 ||
            pthread_create(&thread, &attributes, work, NULL) != 0 ||
            pthread_join(thread, NULL) != 0)
            return EXIT_FAILURE;
    }
    printf("as expected\n");
    return EXIT_SUCCESS;
}
