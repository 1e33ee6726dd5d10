/* train.c - a model is trained with noisy gradients; running averages of its parameters, which a
 * library of one's own keeps (ema.h), are better than the parameters.
 *
 *     weft run -n 4 ./library
 *     WEFT_SIMULATED_RANKS=4 ./library
 *
 * The library is on top of weft (extend.h).  ema.c has its object, averages.c what it does with
 * tensors, save.c its thread.  The program computes on the host, so a CPU backend is needed. */
#include "ema.h"

#include <weft/weft.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROWS = 64, COLUMNS = 24, STEPS = 400, AVERAGED_FROM = 100, PARAMETERS = 2 };

#define MUST(call)                                                                                 \
    do {                                                                                           \
        if ((call) != WEFT_OK) {                                                                   \
            fprintf(stderr, "%s: %s\n", #call, weft_last_error());                                 \
            exit(EXIT_FAILURE);                                                                    \
        }                                                                                          \
    } while (0)

/* ---- the model: a matrix of f32, whose columns the ranks share, and a bias of bf16 ---- */

static float of_bf16(uint16_t bits)
{
    uint32_t word = (uint32_t)bits << 16;
    float value;

    memcpy(&value, &word, sizeof value);
    return value;
}

static uint16_t to_bf16(float value)
{
    uint32_t word;

    memcpy(&word, &value, sizeof word);
    return (uint16_t)((word + 0x8000) >> 16);
}

/* What the parameter with global index ROW, COLUMN should become. */
static float wanted(int64_t row, int64_t column)
{
    return (float)(1 + (row * 7 + column * 3) % 5) / 4;
}

/* Between -1 and 1, the same on all ranks. */
static float noise(int step, int64_t row, int64_t column)
{
    uint32_t mixed = (uint32_t)step * 2654435761U ^ (uint32_t)(row * 31 + column) * 2246822519U;

    mixed = (mixed ^ mixed >> 15) * 3266489917U;
    return (float)(mixed >> 8 & 0xffff) / 32768 - 1;
}

/* One step of a parameter against the gradient of (w - wanted)^2 / 2, of which a batch gives a
 * noisy estimate. */
static float step_of(float w, int step, int64_t row, int64_t column)
{
    return w - 0.1F * (w - wanted(row, column) + 4 * noise(step, row, column));
}

/* The element of LOCAL at local indices ROW, COLUMN; a bias has rows only. */
static int64_t place(const weft_tensor_local_info *local, int64_t row, int64_t column)
{
    return row * local->strides[0] + (local->shard.dims > 1 ? column * local->strides[1] : 0);
}

static int64_t columns_of(const weft_shard *shard)
{
    return shard->dims > 1 ? shard->shape[1] : 1;
}

static void train_shard(const weft_tensor_local_info *local, enum weft_dtype dtype, int step)
{
    const weft_shard *shard = &local->shard;

    for (int64_t r = 0; r < shard->shape[0]; r++)
        for (int64_t c = 0; c < columns_of(shard); c++) {
            int64_t at = place(local, r, c), row = shard->offset[0] + r;
            int64_t column = shard->dims > 1 ? shard->offset[1] + c : COLUMNS;
            uint16_t *halves = local->memory;
            float *floats = local->memory;

            if (dtype == WEFT_DTYPE_F32)
                floats[at] = step_of(floats[at], step, row, column);
            else
                halves[at] = to_bf16(step_of(of_bf16(halves[at]), step, row, column));
        }
}

/* The ranks whose shards are in this process are FIRST to before *END. */
static int ranks_here(weft_context *ctx, int *end)
{
    int first = weft_is_simulated(ctx) ? 0 : weft_rank(ctx);

    *end = weft_is_simulated(ctx) ? weft_size(ctx) : first + 1;
    return first;
}

static void train(weft_context *ctx, weft_tensor *const *parameters, int step)
{
    int end, first = ranks_here(ctx, &end);

    for (int i = 0; i < PARAMETERS; i++)
        for (int rank = first; rank < end; rank++) {
            weft_tensor_local_info local = {.struct_size = sizeof local};

            MUST(weft_tensor_local_of(parameters[i], rank, &local));
            train_shard(&local, weft_spec_dtype(weft_tensor_spec(parameters[i])), step);
        }
}

static weft_tensor *make(weft_context *ctx, const weft_mesh *mesh, const char *layout,
                         const char *name)
{
    weft_tensor_options options = {.struct_size = sizeof options, .name = name};
    weft_tensor *made;
    weft_spec *spec;

    MUST(weft_spec_parse(mesh, layout, &spec));
    MUST(weft_tensor_create(ctx, spec, &options, &made));
    MUST(weft_tensor_fill(made, 0, NULL));
    weft_spec_release(&spec);
    return made;
}

/* ---- its averages ---- */

/* The root of the mean square of a whole matrix of f32's errors. */
static double error_of(weft_tensor *matrix)
{
    double squares = 0;
    float *elements;
    weft_tensor *whole;

    MUST(weft_tensor_full(matrix, WEFT_EVERY_RANK, NULL, NULL, &whole));
    MUST(weft_context_wait(weft_tensor_context(whole), NULL, WEFT_FOREVER));
    elements = weft_tensor_memory(whole);
    for (int64_t i = 0; i < ROWS * COLUMNS; i++)
        squares += pow((double)(elements[i] - wanted(i / COLUMNS, i % COLUMNS)), 2);
    weft_tensor_release(&whole);
    return sqrt(squares / (ROWS * COLUMNS));
}

/* A writer that keeps sums in place of files. */
struct written {
    int tensors;
    double sum;
};

static weft_status write(void *user, const char *name, const float *elements, uint64_t count)
{
    struct written *written = user;

    if (name[0] == '\0') return weft_fail(WEFT_ERR_INVALID, "an average has no name");
    written->tensors++;
    for (uint64_t i = 0; i < count; i++)
        written->sum += (double)elements[i];
    return WEFT_OK;
}

static void evaluate(weft_context *ctx, int step)
{
    weft_tensor *matrix;
    double error;

    MUST(ema_snapshot(ema_find(ctx), 0, NULL, &matrix));
    error = error_of(matrix);
    if (weft_rank(ctx) == 0) printf("step %d: the averages are %.3f off\n", step, error);
    weft_tensor_release(&matrix);
}

static void train_all(weft_context *ctx, weft_tensor *const *parameters, struct written *written)
{
    ema_options options = {.struct_size = sizeof options, .decay = 0.98};
    ema *averages = NULL;

    for (int step = 1; step <= STEPS; step++) {
        train(ctx, parameters, step);
        if (step == AVERAGED_FROM)
            MUST(ema_create(ctx, PARAMETERS, parameters, &options, NULL, &averages));
        else if (step > AVERAGED_FROM)
            MUST(ema_update(averages, NULL));
        if (step % AVERAGED_FROM == 0) evaluate(ctx, step);
    }
    if (!weft_is_simulated(ctx)) MUST(ema_save(averages, write, written, NULL));
}

/* The error of ema_create where rank 0 passes a decay, and the others pass 0.5: every rank has it,
 * and no rank keeps averages. */
static weft_status refused(weft_context *ctx, weft_tensor *const *parameters, double decay)
{
    ema_options options = {.struct_size = sizeof options,
                           .decay = weft_rank(ctx) == 0 ? decay : 0.5};
    ema *averages = NULL;
    weft_status status = ema_create(ctx, PARAMETERS, parameters, &options, NULL, &averages);

    return averages == NULL && ema_find(ctx) == NULL ? status : WEFT_OK;
}

/* With one rank, or with simulated ranks, there is nobody to differ from. */
static bool agrees(weft_context *ctx, weft_tensor *const *parameters)
{
    if (weft_size(ctx) == 1 || weft_is_simulated(ctx)) return true;
    return refused(ctx, parameters, 0.25) == WEFT_ERR_MISMATCH &&
           refused(ctx, parameters, 2) == WEFT_ERR_INVALID;
}

int main(void)
{
    weft_tensor *parameters[PARAMETERS], *evaluated[PARAMETERS], *whole;
    struct written written = {0};
    double trained, averaged, restored;
    weft_context *ctx;
    weft_mesh *mesh;
    ema *averages;
    bool rests, agreed;

    MUST(weft_init(NULL, &ctx));
    MUST(weft_mesh_parse_for("tp=*", weft_size(ctx), &mesh));
    whole = make(ctx, mesh, "f32[24,64] S(0)", "matrix");
    MUST(weft_tensor_transpose(whole, 0, 1, &parameters[0])); /* its shards have gaps */
    parameters[1] = make(ctx, mesh, "bf16[64] R", "bias");
    evaluated[0] = make(ctx, mesh, "f32[64,24] R", "evaluated matrix"); /* all of it on each rank */
    evaluated[1] = make(ctx, mesh, "bf16[64] S(0)", "evaluated bias");

    agreed = agrees(ctx, parameters);
    train_all(ctx, parameters, &written);
    averages = ema_find(ctx);
    MUST(ema_copy(averages, evaluated, NULL));
    MUST(ema_rest(averages, NULL)); /* the evaluation has the memory */
    rests = weft_tensor_fill(ema_average(averages, 0), 0, NULL) == WEFT_ERR_INVALID;
    trained = error_of(parameters[0]);
    averaged = error_of(evaluated[0]);
    MUST(ema_restore(averages, NULL));
    restored = error_of(parameters[0]);
    MUST(ema_save_wait(averages));
    if (weft_rank(ctx) == 0)
        printf("the trained parameters are %.3f off, their averages %.3f\n", trained, averaged);
    printf("rank %d: wrote %d averages, whose elements add up to %g\n", weft_rank(ctx),
           written.tensors, written.sum);

    ema_release(&averages);
    for (int i = 0; i < PARAMETERS; i++) {
        weft_tensor_release(&parameters[i]);
        weft_tensor_release(&evaluated[i]);
    }
    weft_tensor_release(&whole);
    weft_mesh_release(&mesh);
    weft_context_release(&ctx);
    return rests && agreed && averaged < trained / 2 && restored == averaged ? EXIT_SUCCESS
                                                                             : EXIT_FAILURE;
}
