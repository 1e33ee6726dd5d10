/* serve.c - a training job and serving jobs in other layouts, which follow its weights.
 *
 *     export FEED=unix:policy TOKEN=$(head -c 16 /dev/urandom | base64)
 *     weft run -n 2 ./serve train $FEED $TOKEN 20 5 &     20 steps, for 5 serving ranks
 *     weft run -n 3 ./serve columns $FEED $TOKEN 20 &
 *     weft run -n 2 ./serve rows $FEED $TOKEN 20
 *
 * The model is y = W x + b, with weights that each step changes.  The jobs have nothing in common:
 * each has its own ranks, mesh and layouts.  A serving job answers requests with the version that
 * it serves, while it stages the next one.  It compares each answer with the one of a single
 * process that has the same version. */
#include <weft/feed.h>
#include <weft/weft.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define TRY(call)                                                                                  \
    do {                                                                                           \
        weft_status try_status = (call);                                                           \
        if (try_status != WEFT_OK) return try_status;                                              \
    } while (0)

enum { ROWS = 96, COLUMNS = 64, TENSORS = 2 };

struct arguments {
    const char *role, *address, *token;
    uint64_t steps;
    size_t ranks; /* that serve */
};

/* ---- the model: weights of a step, which are integers ---- */

static float weight(int64_t row, int64_t column, uint64_t step)
{
    return (float)((row * 7 + column * 3 + (int64_t)(step % 1000) * 5) % 17 - 8);
}

static float bias(int64_t row, uint64_t step)
{
    return (float)((row + (int64_t)(step % 1000)) % 5);
}

static float input(int64_t column)
{
    return (float)(column % 4 - 1);
}

static float answer(int64_t row, uint64_t step)
{
    float sum = bias(row, step);

    for (int64_t column = 0; column < COLUMNS; column++)
        sum += weight(row, column, step) * input(column);
    return sum;
}

/* Create the weights in the layout PLACEMENTS, and the bias on every rank. */
static weft_status make_tensors(weft_context *ctx, const char *placements, weft_tensor **tensors)
{
    char texts[TENSORS][64];
    weft_mesh *mesh;

    TRY(weft_mesh_parse_for("tp=*", weft_size(ctx), &mesh));
    snprintf(texts[0], sizeof texts[0], "f32[%d,%d] %s", ROWS, COLUMNS, placements);
    snprintf(texts[1], sizeof texts[1], "f32[%d] R", ROWS);
    for (int i = 0; i < TENSORS; i++) {
        weft_tensor_options options = {.struct_size = sizeof options,
                                       .name = i == 0 ? "linear.weight" : "linear.bias"};
        weft_spec *spec;
        TRY(weft_spec_parse(mesh, texts[i], &spec));
        TRY(weft_tensor_create(ctx, spec, &options, &tensors[i]));
        weft_spec_release(&spec);
    }
    weft_mesh_release(&mesh);
    return WEFT_OK;
}

static void release_tensors(weft_tensor **tensors)
{
    for (int i = 0; i < TENSORS; i++)
        weft_tensor_release(&tensors[i]);
}

/* ---- the training job ---- */

static weft_status train_step(weft_tensor **tensors, uint64_t step)
{
    const weft_shard *shard = weft_tensor_shard(tensors[0]);
    static float weights[ROWS * COLUMNS], biases[ROWS];
    size_t used = 0;

    for (int64_t row = 0; row < shard->shape[0]; row++)
        for (int64_t column = 0; column < shard->shape[1]; column++)
            weights[used++] = weight(shard->offset[0] + row, shard->offset[1] + column, step);
    for (int64_t row = 0; row < ROWS; row++)
        biases[row] = bias(row, step);
    TRY(weft_tensor_from_host(tensors[0], weights, used * sizeof *weights, NULL));
    return weft_tensor_from_host(tensors[1], biases, sizeof biases, NULL);
}

/* Rank 0 waits until COUNT serving ranks are connected: at least or, if AT_MOST, at most. */
static weft_status wait_for(weft_context *ctx, weft_publisher *publisher, size_t count,
                            bool at_most)
{
    const struct timespec pause = {.tv_nsec = 1000000};
    weft_publisher_info info = {.struct_size = sizeof info};

    for (;;) {
        TRY(weft_publisher_get(publisher, &info));
        if (weft_rank(ctx) > 0 || (at_most ? info.subscribers <= count : info.subscribers >= count))
            return WEFT_OK;
        nanosleep(&pause, NULL);
    }
}

static weft_status train(weft_context *ctx, const struct arguments *arguments)
{
    weft_publisher_options options = {.struct_size = sizeof options, .address = arguments->address};
    weft_publisher_info info = {.struct_size = sizeof info};
    weft_publisher *publisher;
    weft_tensor *tensors[TENSORS];

    TRY(make_tensors(ctx, "S(0)", tensors));
    TRY(weft_publisher_open(ctx, "policy", arguments->token, TENSORS, tensors, &options,
                            &publisher));
    if (weft_rank(ctx) == 0) printf("publishing at %s\n", weft_publisher_address(publisher));
    TRY(wait_for(ctx, publisher, arguments->ranks, false));
    for (uint64_t step = 1; step <= arguments->steps; step++) {
        TRY(train_step(tensors, step));
        TRY(weft_publisher_publish(publisher, step, NULL));
    }
    TRY(wait_for(ctx, publisher, 0, true));
    TRY(weft_publisher_get(publisher, &info));
    if (weft_rank(ctx) == 0)
        printf("published %llu versions of %llu bytes a rank; %llu leases were revoked\n",
               (unsigned long long)info.published, (unsigned long long)info.bytes,
               (unsigned long long)info.revoked);
    weft_publisher_close(&publisher);
    release_tensors(tensors);
    return WEFT_OK;
}

/* ---- a serving job ---- */

/* Answer a request with the tensors that are served, and compare it with the answer of STEP. */
static weft_status serve_request(weft_context *ctx, weft_subscriber *subscriber, float *sums,
                                 uint64_t step)
{
    weft_tensor *tensors[] = {weft_subscriber_tensor(subscriber, 0),
                              weft_subscriber_tensor(subscriber, 1)};
    const weft_shard *shard = weft_tensor_shard(tensors[0]);
    static float weights[ROWS * COLUMNS], biases[ROWS], out[ROWS];

    TRY(weft_tensor_to_host(tensors[0], weights, sizeof weights, NULL));
    TRY(weft_tensor_to_host(tensors[1], biases, sizeof biases, NULL));
    memset(out, 0, sizeof out);
    for (int64_t i = 0; i < shard->shape[0]; i++)
        for (int64_t k = 0; k < shard->shape[1]; k++)
            out[shard->offset[0] + i] +=
                weights[i * shard->shape[1] + k] * input(shard->offset[1] + k);
    TRY(weft_memory_copy(ctx, out, sums, sizeof out, NULL));
    TRY(weft_all_reduce(weft_world(ctx), sums, sums, ROWS, WEFT_DTYPE_F32, WEFT_REDUCE_SUM, NULL));
    TRY(weft_memory_copy(ctx, sums, out, sizeof out, NULL));
    TRY(weft_context_wait(ctx, NULL, WEFT_FOREVER));
    for (int64_t row = 0; row < ROWS; row++)
        if (fabsf(out[row] + biases[row] - answer(row, step)) > 0)
            return weft_fail(WEFT_ERR_MISMATCH, "row %lld is %g; version %llu gives %g",
                             (long long)row, (double)(out[row] + biases[row]),
                             (unsigned long long)step, (double)answer(row, step));
    return WEFT_OK;
}

/* Follow the feed until the last version is served. */
static weft_status follow(weft_context *ctx, weft_subscriber *subscriber, uint64_t last,
                          float *sums, uint64_t *answers)
{
    uint64_t version, served = 0;

    while (served < last) {
        weft_status status = weft_subscriber_stage(subscriber, WEFT_NEWEST, &version);

        if (status == WEFT_ERR_NOT_FOUND) continue; /* no version is published yet */
        TRY(status);
        if (served > 0) /* the version before is served until the commit */
            TRY(serve_request(ctx, subscriber, sums, served));
        TRY(weft_subscriber_commit(subscriber, NULL));
        served = version;
        TRY(serve_request(ctx, subscriber, sums, served));
        *answers += 2;
    }
    return WEFT_OK;
}

static weft_status serve(weft_context *ctx, const struct arguments *arguments)
{
    bool rows = strcmp(arguments->role, "rows") == 0;
    weft_subscriber_options options = {.struct_size = sizeof options,
                                       .apply = rows ? WEFT_FEED_COPY : WEFT_FEED_FLIP};
    weft_subscriber_info info = {.struct_size = sizeof info};
    weft_tensor *tensors[TENSORS];
    weft_subscriber *subscriber;
    uint64_t answers = 0;
    char version[64];
    void *sums;

    TRY(weft_alloc(ctx, ROWS * sizeof(float), WEFT_MEMORY_DEVICE, &sums));
    TRY(make_tensors(ctx, rows ? "S(0)" : "S(1)", tensors));
    TRY(weft_subscriber_open(ctx, arguments->address, "policy", arguments->token, TENSORS, tensors,
                             &options, &subscriber));
    TRY(follow(ctx, subscriber, arguments->steps, sums, &answers));
    TRY(weft_subscriber_audit(subscriber, NULL));
    TRY(weft_subscriber_get(subscriber, &info));
    TRY(weft_subscriber_print(subscriber, version, sizeof version, NULL));
    if (weft_rank(ctx) == 0)
        printf("%s: %s is served after %llu commits; all answers were those of one version\n",
               arguments->role, version, (unsigned long long)info.commits);
    weft_subscriber_close(&subscriber);
    release_tensors(tensors);
    return weft_free(ctx, sums);
}

static int usage(void)
{
    fprintf(stderr, "usage: serve train ADDRESS TOKEN STEPS RANKS\n"
                    "       serve columns|rows ADDRESS TOKEN STEPS\n");
    return 2;
}

int main(int argc, char **argv)
{
    struct arguments arguments = {0};
    weft_context *ctx;
    weft_status status;

    if (argc < 5 || argc != (strcmp(argv[1], "train") == 0 ? 6 : 5)) return usage();
    arguments.role = argv[1];
    arguments.address = argv[2];
    arguments.token = argv[3];
    arguments.steps = strtoull(argv[4], NULL, 10);
    if (argc == 6) arguments.ranks = strtoull(argv[5], NULL, 10);
    status = weft_init(NULL, &ctx);
    if (status == WEFT_OK) {
        bool trains = strcmp(arguments.role, "train") == 0;
        status = trains ? train(ctx, &arguments) : serve(ctx, &arguments);
        if (status != WEFT_OK) fprintf(stderr, "%s: %s\n", arguments.role, weft_last_error());
        weft_context_release(&ctx);
    }
    return status == WEFT_OK ? 0 : 1;
}
