/* parallel.c - the GPT trained over several axes of a mesh:
 *
 *     dp   ranks have other sequences, and shards of the parameters (fully sharded data parallel)
 *     cp   ranks have other places of the same sequences (context parallel)
 *     tp   ranks have other heads and hidden elements of the same rows (tensor parallel); with --sp
 *          they also share the rows between matmuls (sequence parallel)
 *
 * The loss is that of one rank, up to rounding. */
#include "layers.h"

#include <string.h>

/* The job as one rank sees it. */
struct job {
    int dp, cp, tp;   /* sizes of the axes */
    int32_t coord[3]; /* of this rank */
    struct part part;
    int index[MOST_LENGTH]; /* of the places of this rank, in the sequence */
    struct batch *batch;    /* whole sequences */
    struct activations layers[MOST_LAYERS];
    float *last, *slope; /* own rows: the input of the head, and the slope */
};

int axis_size(const weft_mesh *given, const char *name)
{
    int32_t axis;

    return weft_mesh_find_axis(given, name, &axis) == WEFT_OK ? weft_mesh_axis_size(given, axis)
                                                              : 1;
}

/* The mesh with all three axes, of which TEXT names some. */
static void make_mesh(struct job *job, const char *text)
{
    char all[64];
    weft_mesh *given;

    MUST(weft_mesh_parse(text, &given));
    job->dp = axis_size(given, "dp");
    job->cp = axis_size(given, "cp");
    job->tp = axis_size(given, "tp");
    if (job->dp * job->cp * job->tp != weft_mesh_size(given) ||
        weft_mesh_size(given) != weft_size(ctx) || sizes.sequences % job->dp != 0 ||
        sizes.heads % job->tp != 0) {
        fprintf(
            stderr,
            "%s: a mesh has all ranks on the axes dp, cp and tp; dp divides %d, tp divides %d\n",
            text, sizes.sequences, sizes.heads);
        exit(EXIT_FAILURE);
    }
    weft_mesh_release(&given);
    snprintf(all, sizeof all, "dp=%d,cp=%d,tp=%d", job->dp, job->cp, job->tp);
    MUST(weft_mesh_parse(all, &mesh));
    MUST(weft_mesh_coord_of(mesh, weft_rank(ctx), job->coord));
}

static void make_attention(struct job *job)
{
    struct part *part = &job->part;
    weft_cp_options causal = {.struct_size = sizeof causal,
                              .length = sizes.length,
                              .mask = WEFT_CP_CAUSAL,
                              .balance = WEFT_CP_HEAD_TAIL,
                              .batch = part->count,
                              .heads = sizes.heads / job->tp,
                              .depth = sizes.head,
                              .dtype = WEFT_DTYPE_F32,
                              .sequence_dim = 1};
    weft_cp_info info = {.struct_size = sizeof info};
    weft_index_run run;

    MUST(weft_cp_create(ctx, mesh, "cp", &causal, &part->cp));
    MUST(weft_cp_get(part->cp, &info));
    for (int64_t at = 0; weft_cp_plan_run(info.plan, job->coord[1], at, &run); at += run.length)
        for (int64_t i = 0; i < run.length; i++)
            job->index[at + i] = (int)(run.start + i);
    part->places = (int)info.length;
}

/* The layouts of this rank's tensors: rows that the ranks of tp share, and heads of its places,
 * which no other rank has. */
static void make_layouts(struct part *part)
{
    int32_t one = 1, rank = weft_rank(ctx);
    weft_mesh_options alone = {.struct_size = sizeof alone, .ranks = &rank};
    char text[96];
    weft_mesh *line, *point;

    MUST(weft_mesh_slice(mesh, "tp", rank, &line));
    MUST(weft_mesh_create(1, &one, &alone, &point));
    snprintf(text, sizeof text, "f32[%d,%d] S(0)", part->rows, sizes.width);
    MUST(weft_spec_parse(line, text, &part->shared));
    snprintf(text, sizeof text, "f32[%d,%d,%d,%d] R", part->count, part->places,
             part->width / sizes.head, sizes.head);
    MUST(weft_spec_parse(point, text, &part->heads));
    snprintf(text, sizeof text, "f32[%d,%d,%d] R", part->count, part->width / sizes.head,
             part->places);
    MUST(weft_spec_parse(point, text, &part->logarithms));
    weft_mesh_release(&line);
    weft_mesh_release(&point);
}

/* Rank 0 says how the matmuls between split rows would overlap with their rows' travel. */
static void tell_overlap(const struct part *part)
{
    weft_overlap_call_options matmul = {
        .struct_size = sizeof matmul, .flops = 2 * (uint64_t)sizes.width * (uint64_t)part->hidden};
    weft_overlap_prediction by_costs = {.struct_size = sizeof by_costs};
    weft_overlap_info info = {.struct_size = sizeof info};

    MUST(weft_overlap_get(part->overlap, &info));
    MUST(weft_overlap_predict(part->overlap, part->shared, &matmul, &by_costs));
    if (weft_rank(ctx) == 0)
        printf("rows travel %s; by costs a gather has %d chunks\n",
               info.symmetric ? "through symmetric memory" : "as messages", by_costs.gather_chunks);
}

static void make_part(struct job *job, bool is_split)
{
    struct part *part = &job->part;
    weft_overlap_options options = {.struct_size = sizeof options};
    int share;

    part->count = sizes.sequences / job->dp;
    part->width = sizes.width / job->tp;
    part->hidden = sizes.hidden / job->tp;
    make_attention(job);
    part->rows = part->own = part->count * part->places;
    make_layouts(part);
    MUST(weft_comm_along(weft_world(ctx), mesh, "tp", NULL, &part->tp));
    if (!is_split) return;
    share = (part->rows + job->tp - 1) / job->tp;
    part->first = share * job->coord[2] < part->rows ? share * job->coord[2] : part->rows;
    part->own = share < part->rows - part->first ? share : part->rows - part->first;
    options.bytes = (uint64_t)(job->tp * share * sizes.width) * sizeof(float);
    MUST(weft_overlap_create(ctx, mesh, "tp", &options, &part->overlap));
    tell_overlap(part);
}

/* ---- the embedding and the head, for the own rows ---- */

/* Where the letter of own row R is in the batch. */
static int letter_of(const struct job *job, int r)
{
    int row = job->part.first + r, places = job->part.places;

    return row / places * sizes.length + job->index[row % places];
}

static void embed_part(const struct job *job, const float *const *p, float *y)
{
    for (int r = 0; r < job->part.own; r++) {
        int at = letter_of(job, r);

        for (int i = 0; i < sizes.width; i++)
            y[r * sizes.width + i] = p[0][job->batch->letters[at] * sizes.width + i] +
                                     p[1][at % sizes.length * sizes.width + i];
    }
}

static void embed_backward_part(const struct job *job, float *const *g)
{
    for (int r = 0; r < job->part.own; r++) {
        int at = letter_of(job, r);

        for (int i = 0; i < sizes.width; i++) {
            g[0][job->batch->letters[at] * sizes.width + i] += job->slope[r * sizes.width + i];
            g[1][at % sizes.length * sizes.width + i] += job->slope[r * sizes.width + i];
        }
    }
}

/* Begin the slope and return the loss of the own rows, such that the mean over dp and cp is that of
 * all rows. */
static float head_backward_part(const struct job *job, const float *const *p, float *const *g)
{
    int own = job->part.own;
    float rows = (float)(job->part.count * sizes.length) / (float)job->cp;
    size_t bytes = (size_t)(own * sizes.width) * sizeof(float);
    float *normal = malloc(bytes + 1), *dnormal = calloc(bytes + 1, 1);
    float *logits = malloc((size_t)(own * sizes.letters) * sizeof *logits + 1);
    double loss = 0;

    if (normal == NULL || dnormal == NULL || logits == NULL) abort();
    norm(job->last, p[0], p[1], normal, own);
    linear(normal, p[2], NULL, logits, own, sizes.width, sizes.letters);
    for (int r = 0; r < own; r++)
        loss += (double)cross_entropy(logits + r * sizes.letters,
                                      job->batch->next[letter_of(job, r)], rows);
    memset(job->slope, 0, bytes);
    linear_backward(normal, p[2], logits, dnormal, g[2], NULL, own, sizes.width, sizes.letters);
    norm_backward(job->last, p[0], dnormal, job->slope, g[0], g[1], own);
    free(normal);
    free(dnormal);
    free(logits);
    return (float)(loss / (double)rows);
}

/* ---- a step ---- */

static void forward_parallel(struct job *job)
{
    const float *whole[MOST_PARAMETERS];

    for (int b = 0; b + 1 < sizes.blocks; b++) { /* the head is done in the backward pass */
        float *next = b == sizes.layers ? job->last : job->layers[b].x;

        double begun;

        gather(&blocks[b], WEFT_FSDP_FORWARD, whole);
        begun = seconds_now();
        if (b == 0)
            embed_part(job, whole, next);
        else
            layer_forward_part(&job->part, whole, &job->layers[b - 1], next);
        times_add(&times, FORWARD, b, seconds_now() - begun, 1);
        end_forward(b);
    }
}

static float backward_block(struct job *job, int b, const float *const *whole, float *const *memory)
{
    if (b == sizes.blocks - 1) return head_backward_part(job, whole, memory);
    if (b == 0)
        embed_backward_part(job, memory);
    else
        layer_backward_part(&job->part, whole, memory, &job->layers[b - 1], job->slope);
    return 0;
}

/* With sequence parallel the ranks of tp have gradients of other rows. */
static void add_rows_of_tp(const struct job *job, const struct parameter *p, float *memory)
{
    uint64_t elements = (uint64_t)p->rows * (uint64_t)(p->columns > 0 ? p->columns : 1);

    if (job->part.overlap != NULL && p->tp == NULL)
        MUST(weft_all_reduce(job->part.tp, memory, memory, elements, WEFT_DTYPE_F32,
                             WEFT_REDUCE_SUM, NULL));
}

static float backward_parallel(struct job *job)
{
    const float *whole[MOST_PARAMETERS];
    float *memory[MOST_PARAMETERS], loss = 0;
    weft_tensor *gradients[MOST_PARAMETERS];

    for (int b = sizes.blocks - 1; b >= 0; b--) {
        const struct parameter *p = parameters_of(b, &blocks[b].count);
        double begun;

        begin_backward(b, whole, gradients, memory);
        begun = seconds_now();
        loss += backward_block(job, b, whole, memory);
        times_add_backward(&times, b, seconds_now() - begun);
        for (int i = 0; i < blocks[b].count; i++)
            add_rows_of_tp(job, &p[i], memory[i]);
        end_backward(b, gradients);
    }
    return loss;
}

/* The loss of all rows, of which each rank has LOSS. */
static float loss_of_all(const struct job *job, float loss)
{
    int copies = job->part.overlap != NULL ? 1 : job->tp;

    MUST(weft_all_reduce(weft_world(ctx), &loss, &loss, 1, WEFT_DTYPE_F32, WEFT_REDUCE_SUM, NULL));
    return loss / (float)(job->dp * job->cp * copies);
}

void train_parallel(const char *text, bool is_split, int steps)
{
    static struct job job;
    weft_fsdp_options options = {.struct_size = sizeof options, .replicate = "cp"};
    size_t own;

    make_mesh(&job, text);
    make_part(&job, is_split);
    own = (size_t)job.part.own * (size_t)sizes.width;
    job.batch = batch_create(job.part.count);
    job.last = calloc(own + 1, sizeof *job.last);
    job.slope = calloc(own + 1, sizeof *job.slope);
    if (job.last == NULL || job.slope == NULL) abort();
    for (int i = 0; i < sizes.layers; i++)
        job.layers[i] = activations_create(&job.part);
    MUST(weft_fsdp_create(ctx, mesh, "dp", &options, &fsdp));
    for (int b = 0; b < sizes.blocks; b++)
        make_block(b);
    set_prefetch();
    for (int step = 1; step <= steps; step++) {
        double begun = seconds_now();
        float loss;

        batch_fill(job.batch, (int64_t)step * sizes.sequences + job.coord[0] * job.part.count);
        forward_parallel(&job);
        loss = loss_of_all(&job, backward_parallel(&job));
        update_all(step, NULL);
        times_end_step(&times, seconds_now() - begun);
        if (weft_rank(ctx) == 0 && step % 10 == 0)
            printf("step %d loss %.6f\n", step, (double)loss);
    }
    for (int b = 0; b < sizes.blocks; b++)
        end_block(&blocks[b]);
    weft_fsdp_release(&fsdp);
    for (int i = 0; i < sizes.layers; i++)
        activations_free(&job.layers[i]);
    free(job.last);
    free(job.slope);
    batch_free(job.batch);
    weft_overlap_release(&job.part.overlap);
    weft_cp_release(&job.part.cp);
    weft_spec_release(&job.part.shared);
    weft_spec_release(&job.part.heads);
    weft_spec_release(&job.part.logarithms);
    weft_mesh_release(&mesh);
}
