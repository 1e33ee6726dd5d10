#include "model.h"

#include "support/expect.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>

struct drawn drawn;

/* ---- tensors ---- */

static uint64_t bytes_of(const weft_pipeline_tensor *t)
{
    uint64_t bytes = wf_dtype_bytes(t->dtype);

    for (int32_t d = 0; d < t->dims; d++)
        bytes *= (uint64_t)t->shape[d];
    return bytes;
}

weft_pipeline_values model_values(uint64_t seed, int32_t stage, weft_pipeline_tensor *tensors)
{
    static const uint32_t dtypes[] = {WEFT_DTYPE_F32, WEFT_DTYPE_BF16, WEFT_DTYPE_I32,
                                      WEFT_DTYPE_F64};
    uint64_t h = wf_hash_mix(seed, seed % 3 == 0 ? 7 : (uint64_t)stage + 1); /* equal, or not */

    size_t count = (h >> 16) % 8 == 0 ? MOST_TENSORS : (h >> 8) % 4;

    memset(tensors, 0, MOST_TENSORS * sizeof *tensors);
    for (size_t i = 0; i < count; i++) {
        weft_pipeline_tensor *t = &tensors[i];

        h = wf_hash_mix(h, i + 17);
        t->dtype = dtypes[(h >> 4) % 4];
        t->dims = (int32_t)((h >> 12) % 3);
        for (int32_t d = 0; d < t->dims; d++)
            t->shape[d] = (int64_t)((h >> (20 + 6 * d)) % 19); /* also 0 */
        t->without_gradient = (h >> 40) % 4 == 0;
    }
    return (weft_pipeline_values){count, tensors, sizeof *tensors};
}

static uint64_t mix_bytes(uint64_t h, const weft_pipeline_tensor *t)
{
    return t->memory == NULL ? wf_hash_mix(h, 3) : wf_hash(h, t->memory, (size_t)bytes_of(t));
}

static uint64_t mix_all(uint64_t h, const weft_pipeline_tensor *tensors, size_t count)
{
    for (uint32_t i = 0; i < count; i++)
        h = mix_bytes(h, &tensors[i]);
    return h;
}

static void write_bytes(uint64_t h, const weft_pipeline_tensor *t)
{
    uint8_t *memory = t->memory;
    uint64_t bytes = bytes_of(t);

    for (uint64_t i = 0; i < bytes; i++)
        memory[i] = (uint8_t)(wf_hash_mix(h, i) >> 32);
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

weft_status model_forward(void *user, const weft_pipeline_call *call)
{
    struct model *model = user;
    uint64_t h = wf_hash_mix(wf_hash_mix(model->seed, (uint64_t)call->stage + 100),
                             (uint64_t)call->microbatch);

    WF_TRY(begin_call(model, call));
    EXPECT(call->kind == WEFT_SCHEDULE_ACTION_F && call->parts == 0);
    EXPECT(call->d_inputs == NULL && call->d_outputs == NULL);
    h = mix_all(h, call->inputs, call->input_count);
    for (uint32_t i = 0; i < call->output_count; i++)
        write_bytes(wf_hash_mix(h, i), &call->outputs[i]);
    model->forwards[call->stage]++;
    model->lasts[call->stage] += call->is_last;
    return WEFT_OK;
}

weft_status model_backward(void *user, const weft_pipeline_call *call)
{
    struct model *model = user;
    int32_t s = call->stage;
    uint64_t h =
        wf_hash_mix(wf_hash_mix(model->seed, (uint64_t)s + 200), (uint64_t)call->microbatch);
    uint32_t parts[] = {
        [WEFT_SCHEDULE_ACTION_B] = 3, [WEFT_SCHEDULE_ACTION_I] = 1, [WEFT_SCHEDULE_ACTION_W] = 2};

    WF_TRY(begin_call(model, call));
    EXPECT(call->kind >= WEFT_SCHEDULE_ACTION_B && call->kind <= WEFT_SCHEDULE_ACTION_W);
    EXPECT(call->parts == parts[call->kind]);
    h = mix_all(h, call->inputs, call->input_count);
    h = mix_all(h, call->outputs, call->output_count);
    if (s + 1 < model->stages)
        h = mix_all(h, call->d_outputs, call->output_count);
    else
        h = wf_hash(h, &call->loss_scale, sizeof call->loss_scale);
    for (uint32_t i = 0; (call->parts & WEFT_PIPELINE_INPUTS) != 0 && i < call->input_count; i++) {
        weft_pipeline_tensor *t = &call->d_inputs[i];
        uint64_t own = wf_hash_mix(h, i + 50);

        EXPECT((t->memory == NULL) == t->without_gradient);
        if (t->memory == NULL) continue;
        write_bytes(own, t);
        if (own % 4 == 0) t->absent = true; /* weft replaces what was written by zeros */
    }
    model->inputs[s] += (call->parts & WEFT_PIPELINE_INPUTS) != 0;
    if ((call->parts & WEFT_PIPELINE_WEIGHTS) == 0) return WEFT_OK;
    EXPECT(call->parts == 3 || call->d_inputs == NULL);
    model->weights[s]++;
    model->lasts[s] += call->is_last;
    model->gradient[s] += wf_hash_mix(h, 77);
    return WEFT_OK;
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
    weft_pipeline_tensor values[MOST_TENSORS], gradients[MOST_TENSORS];
};

static void give_memory(uint64_t seed, int32_t stage, struct place *place)
{
    place->count = model_values(seed, stage, place->values).count;
    for (size_t i = 0; i < place->count; i++) {
        weft_pipeline_tensor *t = &place->values[i];

        if (t->dtype == WEFT_DTYPE_I32) t->without_gradient = true;
        t->memory = calloc(1, bytes_of(t) + 1);
    }
    memcpy(place->gradients, place->values, sizeof place->gradients);
    for (size_t i = 0; i < place->count; i++) {
        weft_pipeline_tensor *t = &place->gradients[i];

        t->memory = t->without_gradient ? NULL : calloc(1, bytes_of(t) + 1);
    }
}

static void free_memory(struct place *place)
{
    for (size_t i = 0; i < place->count; i++) {
        free(place->values[i].memory);
        free(place->gradients[i].memory);
    }
}

static weft_pipeline_call serial_call(struct place *places, int32_t stages, int32_t stage,
                                      int32_t microbatch, double loss_scale)
{
    struct place *in = stage > 0 ? &places[stage - 1] : NULL;
    struct place *out = stage + 1 < stages ? &places[stage] : NULL;
    weft_pipeline_call call = {.struct_size = sizeof call,
                               .stage = stage,
                               .microbatch = microbatch,
                               .kind = WEFT_SCHEDULE_ACTION_F,
                               .loss_scale = loss_scale};

    if (in != NULL) call.inputs = in->values, call.input_count = in->count;
    if (out != NULL) call.outputs = out->values, call.output_count = out->count;
    return call;
}

static weft_status run_microbatch(struct model *model, struct place *places, int32_t microbatch,
                                  double loss_scale)
{
    for (int32_t s = 0; s < model->stages; s++) {
        weft_pipeline_call call = serial_call(places, model->stages, s, microbatch, loss_scale);

        WF_TRY(model_forward(model, &call));
    }
    for (int32_t s = model->stages - 1; s >= 0; s--) {
        weft_pipeline_call call = serial_call(places, model->stages, s, microbatch, loss_scale);

        call.kind = WEFT_SCHEDULE_ACTION_B;
        call.parts = WEFT_PIPELINE_INPUTS | WEFT_PIPELINE_WEIGHTS;
        if (s > 0) call.d_inputs = places[s - 1].gradients;
        if (s + 1 < model->stages) call.d_outputs = places[s].gradients;
        WF_TRY(model_backward(model, &call));
        for (uint32_t i = 0; i < call.input_count; i++) {
            weft_pipeline_tensor *t = &call.d_inputs[i];

            if (t->absent) memset(t->memory, 0, (size_t)bytes_of(t));
            t->absent = false;
        }
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

static weft_status learn(void *user, int32_t stage, const weft_pipeline_values *in,
                         weft_pipeline_values *out)
{
    struct model *model = user;
    weft_pipeline_tensor tensors[MOST_TENSORS];
    weft_pipeline_values want = {0};

    if (stage > 0) want = model_values(model->seed, stage - 1, tensors);
    EXPECT(in->count == want.count);
    for (uint32_t i = 0; i < want.count; i++)
        EXPECT(in->tensors[i].dtype == want.tensors[i].dtype &&
               bytes_of(&in->tensors[i]) == bytes_of(&want.tensors[i]));
    *out = model_values(model->seed, stage, model->learned);
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
    want = model_values(model->seed, drawn.stages - 2, tensors);
    EXPECT(have.count == want.count && have.tensor_size == sizeof *tensors);
    for (size_t i = 0; i < want.count; i++)
        EXPECT(have.tensors[i].dtype == tensors[i].dtype &&
               bytes_of(&have.tensors[i]) == bytes_of(&tensors[i]));
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
    for (int32_t s = 0; s + 1 < drawn.stages; s++)
        values[s] = model_values(drawn.seed, s, tensors[s]);
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
    return status;
}
