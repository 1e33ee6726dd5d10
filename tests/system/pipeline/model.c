#include "model.h"

#include "support/expect.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>

struct drawn drawn;

/* ---- tensors ---- */

/* A tensor that a stage of the model passes on. */
struct shape {
    enum weft_dtype dtype;
    int32_t dims;
    int64_t sizes[2];
    bool without_gradient;
};

static size_t shapes_of(uint64_t seed, int32_t stage, struct shape *shapes)
{
    static const enum weft_dtype dtypes[] = {WEFT_DTYPE_F32, WEFT_DTYPE_BF16, WEFT_DTYPE_I32,
                                             WEFT_DTYPE_F64};
    uint64_t h = wf_hash_mix(seed, seed % 3 == 0 ? 7 : (uint64_t)stage + 1); /* equal, or not */
    size_t count = (h >> 16) % 8 == 0 ? MOST_TENSORS : (h >> 8) % 4;

    memset(shapes, 0, MOST_TENSORS * sizeof *shapes);
    for (size_t i = 0; i < count; i++) {
        struct shape *t = &shapes[i];

        h = wf_hash_mix(h, i + 17);
        t->dtype = dtypes[(h >> 4) % 4];
        t->dims = (int32_t)((h >> 12) % 3);
        for (int32_t d = 0; d < t->dims; d++)
            t->sizes[d] = (int64_t)((h >> (20 + 6 * d)) % 19); /* also 0 */
        t->without_gradient = (h >> 40) % 4 == 0;
    }
    return count;
}

weft_mesh *mesh_of(const weft_comm *comm)
{
    int32_t ranks[64], size = weft_comm_size(comm);
    weft_mesh_options listed = {.struct_size = sizeof listed, .ranks = ranks};
    weft_mesh *mesh = NULL;

    for (int32_t i = 0; i < size; i++)
        ranks[i] = weft_comm_world_rank(comm, i);
    return weft_mesh_create(1, &size, &listed, &mesh) == WEFT_OK ? mesh : NULL;
}

static const weft_spec *layout_of(const weft_mesh *mesh, const struct shape *shape)
{
    weft_spec *spec = NULL;
    weft_status status =
        weft_spec_parse_placements(mesh, shape->dtype, shape->dims, shape->sizes, "R", &spec);

    return status == WEFT_OK ? spec : NULL;
}

weft_pipeline_values model_values(const weft_mesh *mesh, uint64_t seed, int32_t stage,
                                  weft_pipeline_tensor *tensors)
{
    struct shape shapes[MOST_TENSORS];
    size_t count = shapes_of(seed, stage, shapes);

    for (size_t i = 0; i < count; i++)
        tensors[i] =
            (weft_pipeline_tensor){layout_of(mesh, &shapes[i]), shapes[i].without_gradient};
    return (weft_pipeline_values){count, tensors, sizeof *tensors};
}

weft_pipeline_values one_value(const weft_mesh *mesh, const char *text,
                               weft_pipeline_tensor *tensor)
{
    weft_spec *spec = NULL;

    if (weft_spec_parse(mesh, text, &spec) != WEFT_OK) fprintf(stderr, "%s\n", weft_last_error());
    *tensor = (weft_pipeline_tensor){.spec = spec};
    return (weft_pipeline_values){1, tensor, sizeof *tensor};
}

void free_values(weft_pipeline_values *values)
{
    for (size_t i = 0; i < values->count; i++) {
        weft_spec *spec = (weft_spec *)values->tensors[i].spec;

        weft_spec_release(&spec);
    }
    *values = (weft_pipeline_values){0};
}

/* The memory of a tensor as the model computes with it. */
struct piece {
    uint8_t *memory; /* NULL: the gradient does not exist */
    uint64_t bytes;
    weft_tensor *tensor; /* NULL: of the serial model */
};

/* The tensors of a call. */
struct pieces {
    struct piece inputs[MOST_TENSORS], outputs[MOST_TENSORS];
    struct piece d_inputs[MOST_TENSORS], d_outputs[MOST_TENSORS];
};

static void take_pieces(weft_tensor *const *tensors, size_t count, struct piece *out)
{
    static uint8_t nothing;

    for (size_t i = 0; i < count; i++) {
        weft_tensor *tensor = tensors != NULL ? tensors[i] : NULL;
        uint64_t bytes = (uint64_t)(tensor != NULL ? weft_tensor_shard(tensor)->elements : 0) *
                         wf_dtype_bytes(weft_spec_dtype(weft_tensor_spec(tensor)));

        out[i] = (struct piece){tensor == NULL ? NULL
                                : bytes == 0   ? &nothing
                                               : weft_tensor_memory(tensor),
                                bytes, tensor};
    }
}

static void take_all(const weft_pipeline_call *call, struct pieces *out)
{
    take_pieces(call->inputs, call->input_count, out->inputs);
    take_pieces(call->outputs, call->output_count, out->outputs);
    take_pieces(call->d_inputs, call->input_count, out->d_inputs);
    take_pieces(call->d_outputs, call->output_count, out->d_outputs);
}

static uint64_t mix_bytes(uint64_t h, const struct piece *t)
{
    return t->memory == NULL ? wf_hash_mix(h, 3) : wf_hash(h, t->memory, (size_t)t->bytes);
}

static uint64_t mix_all(uint64_t h, const struct piece *pieces, size_t count)
{
    for (size_t i = 0; i < count; i++)
        h = mix_bytes(h, &pieces[i]);
    return h;
}

static void write_bytes(uint64_t h, const struct piece *t)
{
    for (uint64_t i = 0; i < t->bytes; i++)
        t->memory[i] = (uint8_t)(wf_hash_mix(h, i) >> 32);
}

/* A gradient that the stage leaves out. */
static weft_status write_zeros(const struct piece *t, weft_stream *stream)
{
    if (t->tensor != NULL) return weft_tensor_fill(t->tensor, 0, stream);
    memset(t->memory, 0, (size_t)t->bytes);
    return WEFT_OK;
}

/* ---- computation ---- */

/* Check that the inputs have arrived, and take a time that differs between ranks. */
static weft_status begin_call(const struct model *model, const weft_pipeline_call *call)
{
    if (model->context != NULL)
        WF_TRY(weft_context_wait(model->context, call->stream, WEFT_FOREVER));
    EXPECT(!model->sharded || model->gathered[call->stage]);
    EXPECT((call->input_count == 0) || call->stage > 0);
    EXPECT((call->output_count == 0) || call->stage + 1 < model->stages);
    if (wf_hash_mix(model->seed, (uint64_t)(call->stage * 31 + call->microbatch)) % 5 == 0)
        sched_yield();
    return WEFT_OK;
}

static weft_status compute_forward(struct model *model, const weft_pipeline_call *call,
                                   const struct pieces *pieces)
{
    uint64_t h = wf_hash_mix(wf_hash_mix(model->seed, (uint64_t)call->stage + 100),
                             (uint64_t)call->microbatch);

    WF_TRY(begin_call(model, call));
    EXPECT(call->kind == WEFT_SCHEDULE_ACTION_F && call->parts == 0);
    EXPECT(call->d_inputs == NULL && call->d_outputs == NULL);
    h = mix_all(h, pieces->inputs, call->input_count);
    for (uint32_t i = 0; i < call->output_count; i++)
        write_bytes(wf_hash_mix(h, i), &pieces->outputs[i]);
    model->forwards[call->stage]++;
    model->lasts[call->stage] += call->is_last;
    return WEFT_OK;
}

weft_status model_forward(void *user, const weft_pipeline_call *call)
{
    struct pieces pieces;

    take_all(call, &pieces);
    return compute_forward(user, call, &pieces);
}

static weft_status compute_backward(struct model *model, const weft_pipeline_call *call,
                                    const struct pieces *pieces)
{
    int32_t s = call->stage;
    uint64_t h =
        wf_hash_mix(wf_hash_mix(model->seed, (uint64_t)s + 200), (uint64_t)call->microbatch);
    uint32_t parts[] = {
        [WEFT_SCHEDULE_ACTION_B] = 3, [WEFT_SCHEDULE_ACTION_I] = 1, [WEFT_SCHEDULE_ACTION_W] = 2};

    WF_TRY(begin_call(model, call));
    EXPECT(call->kind >= WEFT_SCHEDULE_ACTION_B && call->kind <= WEFT_SCHEDULE_ACTION_W);
    EXPECT(call->parts == parts[call->kind]);
    h = mix_all(h, pieces->inputs, call->input_count);
    h = mix_all(h, pieces->outputs, call->output_count);
    if (s + 1 < model->stages)
        h = mix_all(h, pieces->d_outputs, call->output_count);
    else
        h = wf_hash(h, &call->loss_scale, sizeof call->loss_scale);
    for (uint32_t i = 0; (call->parts & WEFT_PIPELINE_INPUTS) != 0 && i < call->input_count; i++) {
        const struct piece *t = &pieces->d_inputs[i];
        uint64_t own = wf_hash_mix(h, i + 50);

        if (t->memory == NULL) continue;
        write_bytes(own, t);
        if (own % 4 == 0) WF_TRY(write_zeros(t, call->stream));
    }
    model->inputs[s] += (call->parts & WEFT_PIPELINE_INPUTS) != 0;
    if ((call->parts & WEFT_PIPELINE_WEIGHTS) == 0) return WEFT_OK;
    EXPECT(call->parts == 3 || call->d_inputs == NULL);
    model->weights[s]++;
    model->lasts[s] += call->is_last;
    model->gradient[s] += wf_hash_mix(h, 77);
    return WEFT_OK;
}

weft_status model_backward(void *user, const weft_pipeline_call *call)
{
    struct pieces pieces;

    take_all(call, &pieces);
    return compute_backward(user, call, &pieces);
}

weft_status model_overlap(void *user, const weft_pipeline_call *first,
                          const weft_pipeline_call *second)
{
    struct model *model = user;

    model->pairs++;
    EXPECT(first->kind == WEFT_SCHEDULE_ACTION_F && second->kind != WEFT_SCHEDULE_ACTION_F);
    WF_TRY(model_backward(user, second)); /* as if both ran at the same time */
    return model_forward(user, first);
}

weft_status model_unshard(void *user, const weft_pipeline_call *call)
{
    struct model *model = user;

    EXPECT(call->kind == WEFT_SCHEDULE_ACTION_UNSHARD && call->microbatch == -1);
    EXPECT(call->inputs == NULL && call->outputs == NULL);
    EXPECT(!model->gathered[call->stage]);
    model->gathered[call->stage] = true;
    return WEFT_OK;
}

weft_status model_reshard(void *user, const weft_pipeline_call *call)
{
    struct model *model = user;

    EXPECT(call->kind == WEFT_SCHEDULE_ACTION_RESHARD && model->gathered[call->stage]);
    model->gathered[call->stage] = false;
    return WEFT_OK;
}

weft_status model_reduce(void *user, const weft_pipeline_call *call)
{
    struct model *model = user;

    EXPECT(call->kind == WEFT_SCHEDULE_ACTION_REDUCE_GRADIENT);
    EXPECT(model->weights[call->stage] % drawn.microbatches == 0);
    EXPECT(model->weights[call->stage] > 0);
    model->reduced[call->stage]++;
    return WEFT_OK;
}

/* ---- one loop over microbatches and stages ---- */

struct place {
    size_t count;
    struct piece values[MOST_TENSORS], gradients[MOST_TENSORS];
};

static void give_memory(uint64_t seed, int32_t stage, struct place *place)
{
    struct shape shapes[MOST_TENSORS];

    memset(place, 0, sizeof *place);
    place->count = shapes_of(seed, stage, shapes);
    for (size_t i = 0; i < place->count; i++) {
        uint64_t bytes = wf_dtype_bytes(shapes[i].dtype);
        bool has_none = shapes[i].without_gradient || shapes[i].dtype == WEFT_DTYPE_I32;

        for (int32_t d = 0; d < shapes[i].dims; d++)
            bytes *= (uint64_t)shapes[i].sizes[d];
        place->values[i] = (struct piece){calloc(1, bytes + 1), bytes, NULL};
        place->gradients[i] = (struct piece){has_none ? NULL : calloc(1, bytes + 1), bytes, NULL};
    }
}

static void free_memory(struct place *place)
{
    for (size_t i = 0; i < place->count; i++) {
        free(place->values[i].memory);
        free(place->gradients[i].memory);
    }
}

/* The call of STAGE, without tensors, and its pieces. */
static weft_pipeline_call serial_call(const struct place *places, int32_t stages, int32_t stage,
                                      struct pieces *pieces)
{
    const struct place *in = stage > 0 ? &places[stage - 1] : NULL;
    const struct place *out = stage + 1 < stages ? &places[stage] : NULL;
    weft_pipeline_call call = {
        .struct_size = sizeof call, .stage = stage, .kind = WEFT_SCHEDULE_ACTION_F};

    if (in != NULL) {
        call.input_count = in->count;
        memcpy(pieces->inputs, in->values, sizeof in->values);
        memcpy(pieces->d_inputs, in->gradients, sizeof in->gradients);
    }
    if (out != NULL) {
        call.output_count = out->count;
        memcpy(pieces->outputs, out->values, sizeof out->values);
        memcpy(pieces->d_outputs, out->gradients, sizeof out->gradients);
    }
    return call;
}

static weft_status run_microbatch(struct model *model, const struct place *places,
                                  int32_t microbatch, double loss_scale)
{
    struct pieces pieces;

    for (int32_t s = 0; s < model->stages; s++) {
        weft_pipeline_call call = serial_call(places, model->stages, s, &pieces);

        call.microbatch = microbatch;
        WF_TRY(compute_forward(model, &call, &pieces));
    }
    for (int32_t s = model->stages - 1; s >= 0; s--) {
        weft_pipeline_call call = serial_call(places, model->stages, s, &pieces);

        call.microbatch = microbatch;
        call.loss_scale = loss_scale;
        call.kind = WEFT_SCHEDULE_ACTION_B;
        call.parts = WEFT_PIPELINE_INPUTS | WEFT_PIPELINE_WEIGHTS;
        WF_TRY(compute_backward(model, &call, &pieces));
    }
    return WEFT_OK;
}

static weft_status run_serial(struct model *model, int32_t microbatches, double loss_scale)
{
    struct place places[MOST_STAGES];
    weft_status status = WEFT_OK;

    for (int32_t s = 0; s + 1 < model->stages; s++)
        give_memory(model->seed, s, &places[s]);
    for (int32_t m = 0; m < microbatches && status == WEFT_OK; m++)
        status = run_microbatch(model, places, m, loss_scale);
    for (int32_t s = 0; s + 1 < model->stages; s++)
        free_memory(&places[s]);
    return status;
}

/* ---- random schedules ---- */

enum { NOTHING, DID_F, DID_I, DID_W };

/* A random action of RANK that can run now, as text; false if none can. */
static bool take_action(struct random *r, const int32_t *rank_of, uint8_t (*done)[MOST_STAGES],
                        int32_t rank, char *out, size_t bytes)
{
    int32_t count = drawn.stages * drawn.microbatches, start = random_in(r, 0, count - 1);

    for (int32_t i = 0; i < count; i++) {
        int32_t s = (start + i) % count % drawn.stages, m = (start + i) % count / drawn.stages;
        uint8_t *state = &done[m][s];
        bool first = s == 0, last = s == drawn.stages - 1;

        if (rank_of[s] != rank) continue;
        if (*state == NOTHING && (first || done[m][s - 1] >= DID_F)) {
            snprintf(out, bytes, "%dF%d", s, m);
            *state = DID_F;
        } else if (*state == DID_F && (last || done[m][s + 1] >= DID_I)) {
            *state = random_chance(r, 2) ? DID_I : DID_W;
            snprintf(out, bytes, "%d%s%d", s, *state == DID_I ? "I" : "B", m);
        } else if (*state == DID_I) {
            snprintf(out, bytes, "%dW%d", s, m);
            *state = DID_W;
        } else {
            continue;
        }
        return true;
    }
    return false;
}

/* Stages on random ranks, each rank with at least one, and their actions in an order in which one
 * thread could run them. */
static bool draw_text(struct random *r)
{
    static char rows[8][sizeof drawn.text / 8];
    uint8_t done[MOST_MICROBATCHES][MOST_STAGES] = {{0}};
    int32_t rank_of[MOST_STAGES], order[MOST_STAGES], left;

    drawn.stages = random_in(r, drawn.ranks, 10);
    drawn.microbatches = random_in(r, 1, 8);
    random_order(r, drawn.stages, order);
    for (int32_t s = 0; s < drawn.stages; s++)
        rank_of[order[s]] = s < drawn.ranks ? s : random_in(r, 0, drawn.ranks - 1);
    memset(rows, 0, sizeof rows);
    do {
        int32_t rank = random_in(r, 0, drawn.ranks - 1);
        size_t length = strlen(rows[rank]);
        char action[32];

        if (take_action(r, rank_of, done, rank, action, sizeof action))
            snprintf(rows[rank] + length, sizeof rows[rank] - length, "%s,", action);
        left = 0;
        for (int32_t i = 0; i < drawn.stages * drawn.microbatches; i++)
            left += done[i / drawn.stages][i % drawn.stages] != DID_W;
    } while (left > 0);
    for (int32_t i = 0; i < drawn.ranks; i++)
        snprintf(drawn.text + strlen(drawn.text), sizeof drawn.text - strlen(drawn.text), "%s\n",
                 rows[i]);
    return weft_schedule_parse(drawn.text, &drawn.schedule) == WEFT_OK;
}

/* ---- random pipelines ---- */

static bool try_draw(struct random *r, int32_t ranks, uint32_t kind)
{
    weft_schedule_info info = {.struct_size = sizeof info};

    memset(&drawn, 0, sizeof drawn);
    drawn.ranks = ranks;
    drawn.chunks = random_in(r, 0, 3);
    drawn.microbatches = random_in(r, 1, random_chance(r, 3) ? MOST_MICROBATCHES : 8);
    drawn.seed = (uint64_t)random_in(r, 1, 1 << 30);
    drawn.loss_scale = random_chance(r, 2) ? 0 : random_in(r, 1, 9);
    drawn.flags = (uint32_t)random_in(r, 0, 15);
    drawn.lowers = random_chance(r, 2);
    drawn.learns = random_chance(r, 2);
    drawn.overlaps = random_chance(r, 2);
    drawn.has_stream = random_chance(r, 3);
    if (weft_schedule_known(kind) == NULL) {
        snprintf(drawn.name, sizeof drawn.name, "csv");
        return draw_text(r);
    }
    snprintf(drawn.name, sizeof drawn.name, "%s", weft_schedule_known(kind));
    if (weft_schedule_create(drawn.name, ranks, drawn.chunks, drawn.microbatches,
                             &drawn.schedule) != WEFT_OK)
        return false;
    if (weft_schedule_get(drawn.schedule, &info) == WEFT_OK && info.stages <= MOST_STAGES) {
        drawn.stages = info.stages;
        return true;
    }
    weft_schedule_release(&drawn.schedule);
    return false;
}

void draw_pipeline(struct random *r, int32_t ranks, uint32_t kind)
{
    double scale;

    while (!try_draw(r, ranks, kind))
        continue;
    scale = drawn.loss_scale == 0 ? 1.0 / drawn.microbatches : drawn.loss_scale;
    drawn.serial = (struct model){.seed = drawn.seed, .stages = drawn.stages};
    if (run_serial(&drawn.serial, drawn.microbatches, scale) != WEFT_OK)
        fprintf(stderr, "the serial model fails: %s\n", weft_last_error());
}

const char *drawn_text(void)
{
    static char text[sizeof drawn.text + 256];

    snprintf(text, sizeof text,
             "weft schedule %s --ranks %d --chunks %d --microbatches %d, model %llu, flags "
             "%u%s%s%s%s\n%s",
             drawn.name, drawn.ranks, drawn.chunks, drawn.microbatches,
             (unsigned long long)drawn.seed, drawn.flags, drawn.lowers ? ", lowered" : "",
             drawn.learns ? ", learnt" : "", drawn.overlaps ? ", overlapped" : "",
             drawn.has_stream ? ", on a stream" : "", drawn.text);
    return text;
}

/* ---- on a rank ---- */

static bool are_equal(const weft_pipeline_values *have, const weft_pipeline_values *want)
{
    bool same = have->count == want->count;

    for (size_t i = 0; same && i < want->count; i++)
        same = have->tensors[i].spec == want->tensors[i].spec;
    return same;
}

static weft_status learn(void *user, int32_t stage, const weft_pipeline_values *in,
                         weft_pipeline_values *out)
{
    struct model *model = user;
    weft_pipeline_tensor tensors[MOST_TENSORS];
    weft_pipeline_values want = {0};

    if (stage > 0) want = model_values(model->mesh, model->seed, stage - 1, tensors);
    EXPECT(are_equal(in, &want));
    free_values(&want);
    free_values(&model->stated);
    *out = model->stated = model_values(model->mesh, model->seed, stage, model->learned);
    return WEFT_OK;
}

static weft_status check_model(const struct model *model, int32_t rank, int32_t runs, bool reduces)
{
    int32_t calls = drawn.microbatches * runs;

    for (int32_t s = 0; s < drawn.stages; s++) {
        bool mine = weft_schedule_rank_of(drawn.schedule, s) == rank;

        EXPECT(model->forwards[s] == (mine ? calls : 0));
        EXPECT(model->inputs[s] == (mine ? calls : 0));
        EXPECT(model->weights[s] == (mine ? calls : 0));
        EXPECT(model->lasts[s] == (mine ? 2 * runs : 0));
        EXPECT(model->reduced[s] == (mine && reduces ? runs : 0));
        EXPECT(!model->gathered[s]);
        EXPECT(!mine || model->gradient[s] == (uint64_t)runs * drawn.serial.gradient[s]);
    }
    return WEFT_OK;
}

static weft_status check_pipeline(weft_comm *comm, weft_pipeline *pipeline, struct model *model,
                                  bool reduces)
{
    weft_pipeline_info info = {.struct_size = sizeof info};
    weft_pipeline_tensor tensors[MOST_TENSORS];
    weft_pipeline_values have, want;

    for (int32_t run = 1; run <= RUNS; run++) {
        WF_TRY(weft_pipeline_run(pipeline));
        WF_TRY(check_model(model, weft_comm_rank(comm), run, reduces));
    }
    WF_TRY(weft_pipeline_get(pipeline, &info));
    EXPECT((info.directions <= 4 || strcmp(drawn.name, "csv") == 0) &&
           (info.pieces > 0 || drawn.stages == 1));
    if (drawn.stages == 1) return WEFT_OK;
    WF_TRY(weft_pipeline_values_get(pipeline, drawn.stages - 2, &have));
    want = model_values(model->mesh, model->seed, drawn.stages - 2, tensors);
    EXPECT(are_equal(&have, &want) && have.tensor_size == sizeof *tensors);
    free_values(&want);
    return WEFT_OK;
}

weft_status run_drawn(weft_comm *comm)
{
    weft_context *ctx = weft_comm_context(comm);
    struct model model = {.seed = drawn.seed, .stages = drawn.stages, .context = ctx};
    weft_pipeline_tensor tensors[MOST_STAGES][MOST_TENSORS];
    weft_pipeline_values values[MOST_STAGES] = {{0}};
    bool sharded = (drawn.flags & WEFT_LOWER_SHARDED) != 0;
    bool reduces = (drawn.flags & WEFT_LOWER_REDUCE) != 0;
    weft_pipeline_options options = {.struct_size = sizeof options,
                                     .user = &model,
                                     .loss_scale = drawn.loss_scale,
                                     .forward = model_forward,
                                     .backward = model_backward,
                                     .overlap = drawn.overlaps ? model_overlap : NULL,
                                     .unshard = sharded ? model_unshard : NULL,
                                     .reshard = sharded ? model_reshard : NULL,
                                     .reduce = reduces ? model_reduce : NULL,
                                     .values = drawn.learns ? NULL : values,
                                     .value_count = (size_t)drawn.stages - 1,
                                     .value_size = sizeof *values,
                                     .shapes = drawn.learns ? learn : NULL};
    weft_schedule *lowered = NULL;
    weft_pipeline *pipeline = NULL;
    weft_stream *stream = NULL;
    weft_status status = WEFT_OK;

    model.sharded = sharded;
    model.mesh = mesh_of(comm);
    for (int32_t s = 0; s + 1 < drawn.stages; s++)
        values[s] = model_values(model.mesh, drawn.seed, s, tensors[s]);
    if (drawn.has_stream) status = weft_stream_create(ctx, &stream);
    options.compute = stream;
    if (status == WEFT_OK && drawn.lowers)
        status = weft_schedule_lower(drawn.schedule, drawn.flags, &lowered);
    if (status == WEFT_OK)
        status =
            create_pipeline(comm, drawn.lowers ? lowered : drawn.schedule, &options, &pipeline);
    if (status == WEFT_OK) status = check_pipeline(comm, pipeline, &model, reduces);
    weft_pipeline_release(&pipeline);
    weft_schedule_release(&lowered);
    weft_stream_release(&stream);
    for (int32_t s = 0; s + 1 < drawn.stages; s++)
        free_values(&values[s]);
    free_values(&model.stated);
    weft_mesh_release(&model.mesh);
    return status;
}
