/* counts.c - one operation of weft, COUNT times, for a tool that counts instructions:
 * bench/counts.sh compiles it against two builds.
 *
 *     counts all_reduce|redistribute|plan|apply|tensor_move COUNT
 *
 * One rank, so that nothing waits.  NO_OPTIONS stands for a build whose weft_op_apply and
 * weft_tensor_move take no options. */
#include <weft/apply.h>
#include <weft/weft.h>

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

static weft_context *ctx;
static weft_spec *rows, *columns;
static weft_tensor *tensor;
static void *memory, *other;

static void all_reduce(void)
{
    MUST(
        weft_all_reduce(weft_world(ctx), memory, memory, 2, WEFT_DTYPE_F32, WEFT_REDUCE_SUM, NULL));
}

static weft_bound *bound;

static void redistribute(void)
{
    MUST(weft_redistribute(bound, memory, other, NULL, NULL));
}

static weft_spec *from, *to;

static void plan(void)
{
    weft_plan *made;

    MUST(weft_plan_create(from, to, NULL, &made));
    weft_plan_release(&made);
}

static weft_status kernel(void *user, const weft_op_run *run)
{
    (void)user, (void)run;
    return WEFT_OK;
}

static void apply(void)
{
    weft_op_call call = {.struct_size = sizeof call, .name = "mul_", .input_count = 2};
    weft_tensor *inputs[2] = {tensor, tensor}, *output;

#ifdef NO_OPTIONS
    MUST(weft_op_apply(ctx, &call, inputs, kernel, NULL, NULL, &output));
#else
    MUST(weft_op_apply(ctx, &call, inputs, NULL, kernel, NULL, NULL, 1, &output));
#endif
    weft_tensor_release(&output);
}

static void tensor_move(void)
{
    weft_tensor *moved;

#ifdef NO_OPTIONS
    MUST(weft_tensor_move(tensor, columns, NULL, &moved));
#else
    MUST(weft_tensor_move(tensor, columns, NULL, NULL, &moved));
#endif
    weft_tensor_release(&moved);
}

static const struct {
    const char *name;
    void (*run)(void);
} operations[] = {{"all_reduce", all_reduce},
                  {"redistribute", redistribute},
                  {"plan", plan},
                  {"apply", apply},
                  {"tensor_move", tensor_move}};

static void prepare(void)
{
    weft_mesh *mesh, *large;
    weft_plan *made;

    MUST(weft_init(NULL, &ctx));
    MUST(weft_alloc(ctx, 64 * 64 * 4, WEFT_MEMORY_DEVICE, &memory));
    MUST(weft_alloc(ctx, 64 * 64 * 4, WEFT_MEMORY_DEVICE, &other));
    MUST(weft_mesh_parse("1", &mesh));
    MUST(weft_spec_parse(mesh, "f32[64,64] S(0)", &rows));
    MUST(weft_spec_parse(mesh, "f32[64,64] S(1)", &columns));
    MUST(weft_plan_create(rows, columns, NULL, &made));
    MUST(weft_plan_bind(made, weft_world(ctx), NULL, &bound));
    MUST(weft_tensor_create(ctx, rows, NULL, &tensor));
    MUST(weft_mesh_parse("dp=2,tp=4", &large));
    MUST(weft_spec_parse(large, "f32[4096,4096] S(0),R", &from));
    MUST(weft_spec_parse(large, "f32[4096,4096] R,S(1)", &to));
}

int main(int argc, char **argv)
{
    for (size_t i = 0; argc == 3 && i < sizeof operations / sizeof *operations; i++)
        if (strcmp(argv[1], operations[i].name) == 0) {
            prepare();
            for (int k = atoi(argv[2]); k > 0; k--)
                operations[i].run();
            _Exit(EXIT_SUCCESS); /* what follows is not counted */
        }
    fprintf(stderr, "usage: counts OPERATION COUNT\n");
    return 2;
}
