/* muon.c - an optimizer that needs whole matrices, over sharded parameters.
 *
 *     weft run -n 4 muon
 *
 * Muon orthogonalizes each momentum matrix with Newton-Schulz iterations, so a rank needs a whole
 * matrix.  Each matrix gets one owner; the work of owners is about equal.  One batch moves the
 * shards of momenta to the owners, and one moves the updates back.  The matrices are two lists: the
 * owners compute one while the other travels.  At the end the weights are compared with those of an
 * optimizer that has every matrix on every rank.  The kernels compute on the host, so a CPU backend
 * is needed. */
#include <weft/weft.h>

#include <math.h>
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

enum { MATRICES = 12, HALF = MATRICES / 2, STEPS = 3, ITERATIONS = 5 };

static weft_context *ctx;
static weft_mesh *mesh;

/* Shapes as in a model of width 48, and one that no number of ranks divides. */
static const int64_t shapes[MATRICES][2] = {{48, 48},  {48, 144}, {192, 48}, {48, 192},
                                            {7, 13},   {48, 48},  {48, 144}, {192, 48},
                                            {48, 192}, {65, 48},  {3, 5},    {48, 48}};

/* ---- the engine's kernel: X becomes the nearest matrix with orthogonal rows, about ---- */

/* C = A times B transposed, of ROWS x INNER and COLUMNS x INNER elements. */
static void multiply_transposed(const float *a, const float *b, float *c, int64_t rows,
                                int64_t columns, int64_t inner)
{
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < columns; j++) {
            float sum = 0;

            for (int64_t k = 0; k < inner; k++)
                sum += a[i * inner + k] * b[j * inner + k];
            c[i * columns + j] = sum;
        }
}

/* One iteration: X = a X + (b A + c A A) X, with A = X X'. */
static void iterate(float *x, float *next, float *square, float *other, int64_t rows,
                    int64_t columns)
{
    multiply_transposed(x, x, square, rows, rows, columns);
    multiply_transposed(square, square, other, rows, rows, rows); /* A is symmetric */
    for (int64_t i = 0; i < rows * rows; i++)
        other[i] = -4.7750F * square[i] + 2.0315F * other[i];
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < columns; j++) {
            float sum = 3.4445F * x[i * columns + j];

            for (int64_t k = 0; k < rows; k++)
                sum += other[i * rows + k] * x[k * columns + j];
            next[i * columns + j] = sum;
        }
    memcpy(x, next, (size_t)(rows * columns) * sizeof *x);
}

static void orthogonalize(float *x, int64_t rows, int64_t columns)
{
    size_t all = (size_t)(rows * columns), square = (size_t)(rows * rows);
    float *room = malloc((all + 2 * square) * sizeof *room), norm = 0;

    if (room == NULL) exit(EXIT_FAILURE);
    for (size_t i = 0; i < all; i++)
        norm += x[i] * x[i];
    norm = sqrtf(norm) + 1e-7F;
    for (size_t i = 0; i < all; i++)
        x[i] /= norm;
    for (int i = 0; i < ITERATIONS; i++)
        iterate(x, room, room + all, room + all + square, rows, columns);
    free(room);
}

/* Of matrices that this rank holds whole. */
static void orthogonalize_all(int count, weft_tensor *const *tensors)
{
    for (int i = 0; i < count; i++) {
        const weft_shard *shard = weft_tensor_shard(tensors[i]);

        if (shard->elements > 0)
            orthogonalize(weft_tensor_memory(tensors[i]), shard->shape[0], shard->shape[1]);
    }
}

/* ---- the engine's other work, on shards ---- */

static void step_elements(weft_tensor *momentum, weft_tensor *gradient)
{
    float *m = weft_tensor_memory(momentum), *g = weft_tensor_memory(gradient);

    for (int64_t i = 0; i < weft_tensor_shard(momentum)->elements; i++)
        m[i] = 0.95F * m[i] + g[i];
}

static void update_elements(weft_tensor *weight, weft_tensor *update)
{
    float *w = weft_tensor_memory(weight), *u = weft_tensor_memory(update);

    for (int64_t i = 0; i < weft_tensor_shard(weight)->elements; i++)
        w[i] -= 0.02F * u[i];
}

/* ---- distribution ---- */

/* Weights, their gradients and momenta, the matrices at their owners, and the updates. */
struct optimizer {
    weft_tensor *weights[MATRICES], *gradients[MATRICES], *momenta[MATRICES], *owned[MATRICES],
        *updates[MATRICES];
};

static weft_tensor *make(int index, const char *placement)
{
    char text[64];
    weft_spec *spec = NULL;
    weft_tensor *tensor = NULL;

    snprintf(text, sizeof text, "f32[%lld,%lld] %s", (long long)shapes[index][0],
             (long long)shapes[index][1], placement);
    MUST(weft_spec_parse(mesh, text, &spec));
    MUST(weft_tensor_create(ctx, spec, NULL, &tensor));
    MUST(weft_tensor_fill(tensor, 0, NULL));
    weft_spec_release(&spec);
    return tensor;
}

/* PLACEMENT is that of weights.  Without owners, every rank has all matrices. */
static void begin(struct optimizer *o, const char *placement, bool owners)
{
    uint64_t work[MATRICES];
    int32_t owner[MATRICES];

    for (int i = 0; i < MATRICES; i++)
        work[i] = (uint64_t)(shapes[i][0] * shapes[i][0] * (2 * shapes[i][1] + shapes[i][0]));
    MUST(weft_owners_balance(MATRICES, work, weft_size(ctx), owner));
    for (int i = 0; i < MATRICES; i++) {
        weft_random random = {.seed = (uint64_t)i};
        char at[16];

        snprintf(at, sizeof at, "O(%d)", owner[i]);
        o->weights[i] = make(i, placement);
        o->gradients[i] = make(i, placement);
        o->momenta[i] = make(i, placement);
        o->owned[i] = make(i, owners ? at : "R");
        o->updates[i] = make(i, placement);
        MUST(weft_tensor_normal(o->weights[i], &random, 0, 0.02, NULL));
    }
}

/* The momenta of all matrices travel to their owners while the gradients of others are still
 * being added, and updates travel back while others are computed. */
static void step(struct optimizer *o, weft_stream *stream, uint64_t number)
{
    weft_work *there[2] = {NULL}, *back[2] = {NULL};

    for (int half = 0; half < 2; half++) {
        for (int i = half * HALF; i < (half + 1) * HALF; i++) {
            weft_random random = {.seed = 100 * number + (uint64_t)i};

            MUST(weft_tensor_normal(o->gradients[i], &random, 0, 1,
                                    NULL)); /* in place of training */
            step_elements(o->momenta[i], o->gradients[i]);
        }
        MUST(weft_tensors_move_into(HALF, o->momenta + half * HALF, o->owned + half * HALF, NULL,
                                    stream, &there[half]));
    }
    for (int half = 0; half < 2; half++) {
        MUST(weft_work_wait(there[half], WEFT_FOREVER));
        orthogonalize_all(HALF, o->owned + half * HALF);
        MUST(weft_tensors_move_into(HALF, o->owned + half * HALF, o->updates + half * HALF, NULL,
                                    stream, &back[half]));
    }
    for (int half = 0; half < 2; half++) {
        MUST(weft_work_wait(back[half], WEFT_FOREVER));
        for (int i = half * HALF; i < (half + 1) * HALF; i++)
            update_elements(o->weights[i], o->updates[i]);
        weft_work_release(&there[half]);
        weft_work_release(&back[half]);
    }
}

static void end(struct optimizer *o)
{
    for (int i = 0; i < MATRICES; i++) {
        weft_tensor_release(&o->weights[i]);
        weft_tensor_release(&o->gradients[i]);
        weft_tensor_release(&o->momenta[i]);
        weft_tensor_release(&o->owned[i]);
        weft_tensor_release(&o->updates[i]);
    }
}

int main(void)
{
    struct optimizer sharded = {0}, whole = {0};
    weft_stream *stream = NULL;
    int32_t size, differing = 0;

    MUST(weft_init(NULL, &ctx));
    size = weft_size(ctx);
    MUST(weft_mesh_create(1, &size, NULL, &mesh));
    MUST(weft_stream_create(ctx, &stream));
    begin(&sharded, "S(0)", true);
    begin(&whole, "R", false);
    for (uint64_t i = 0; i < STEPS; i++) {
        step(&sharded, stream, i);
        step(&whole, stream, i);
    }
    for (int i = 0; i < MATRICES; i++) {
        weft_tensor_difference_info info = {.struct_size = sizeof info};

        MUST(weft_tensor_compare(sharded.weights[i], whole.weights[i], NULL, NULL, &info));
        differing += !info.equal;
    }
    if (weft_rank(ctx) == 0)
        printf("%d matrices, %d owners, %d steps: %s\n", MATRICES, size, STEPS,
               differing == 0 ? "weights are equal" : "weights differ");
    end(&sharded);
    end(&whole);
    weft_stream_release(&stream);
    weft_mesh_release(&mesh);
    weft_context_release(&ctx);
    return differing == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
