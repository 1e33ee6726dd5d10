/* slots.c - the memory of tensors that are passed on, for the whole run.
 *
 * The schedule states when each value is made and used, so its memory is chosen once.  A value is
 * what a boundary holds of one microbatch: the tensors, or their gradients.  It begins with the
 * action that makes or receives it, and ends with the last backward action that may read it.
 * Gradients that are sent to another rank end when that rank must have received them: before the
 * first action here that needs a message which the other rank sends after their use there. */
#include "pipeline.h"

#include <stdlib.h>
#include <string.h>

struct value {
    int32_t end;      /* the action after which its memory is free; the number of actions: never */
    int32_t boundary; /* of equal ones, the first */
    int32_t next;     /* of those with the same end; -1: none */
    uint32_t slot;
};

/* Messages that arrive on one channel, in order. */
struct arrivals {
    int32_t count;
    int32_t *sent; /* where the other rank sends it */
    int32_t *used; /* the first action here that needs it or a later one */
};

struct plan {
    weft_pipeline *pipeline;
    const struct wf_order *order;
    int32_t mine, count;   /* this rank, and its actions */
    struct value *values;  /* by boundary and microbatch: tensors, then gradients */
    int32_t *begun;        /* by action: the value that begins; -1: none */
    int32_t *ended;        /* by action: the first value that ends with it; -1: none */
    struct arrivals *from; /* by channel; empty for those on which this rank sends */
};

static int32_t rank_of(const struct plan *p, int32_t stage)
{
    return weft_schedule_rank_of(p->pipeline->schedule, stage);
}

static int32_t value_of(const struct plan *p, int32_t boundary, int32_t microbatch, bool gradient)
{
    return 2 * (boundary * p->order->microbatches + microbatch) + (gradient ? 1 : 0);
}

/* ---- what arrives ---- */

static bool receives(const weft_schedule_action *a)
{
    return a->kind == WEFT_SCHEDULE_ACTION_RECV_F || a->kind == WEFT_SCHEDULE_ACTION_RECV_B;
}

/* The rank to which A is a message; -1: it sends nothing. */
static int32_t target_of(const struct plan *p, const weft_schedule_action *a)
{
    if (a->kind == WEFT_SCHEDULE_ACTION_SEND_F) return rank_of(p, a->stage + 1);
    if (a->kind == WEFT_SCHEDULE_ACTION_SEND_B) return rank_of(p, a->stage - 1);
    return -1;
}

static int32_t use_of(const struct plan *p, const weft_schedule_action *receive)
{
    const struct wf_places *places = wf_places_of(p->order, receive->stage, receive->microbatch);

    return receive->kind == WEFT_SCHEDULE_ACTION_RECV_F ? places->forward : places->input;
}

static weft_status find_arrivals(const struct plan *p, int32_t channel, struct arrivals *out)
{
    const weft_pipeline *pipeline = p->pipeline;
    const weft_schedule_action *theirs;
    int32_t at = 0;
    size_t count;

    for (int32_t i = 0; i < p->count; i++)
        if (pipeline->steps[i].channel == channel && receives(&pipeline->actions[i])) out->count++;
    if (out->count == 0) return WEFT_OK;
    out->sent = wf_calloc(2 * (size_t)out->count, sizeof *out->sent);
    if (out->sent == NULL) return wf_fail_memory(2 * (size_t)out->count * sizeof *out->sent);
    out->used = out->sent + out->count;
    for (int32_t i = 0; i < p->count; i++)
        if (pipeline->steps[i].channel == channel && receives(&pipeline->actions[i]))
            out->used[at++] = use_of(p, &pipeline->actions[i]);
    for (int32_t i = out->count - 2; i >= 0; i--)
        if (out->used[i + 1] < out->used[i]) out->used[i] = out->used[i + 1];
    WF_TRY(weft_schedule_actions(pipeline->schedule, pipeline->channels[channel].from, &count,
                                 &theirs, sizeof *theirs));
    at = 0;
    for (size_t i = 0; i < count && at < out->count; i++)
        if (target_of(p, &theirs[i]) == p->mine) out->sent[at++] = (int32_t)i;
    return WEFT_OK;
}

/* The first action here that needs a message which RANK sends after its action INDEX. */
static int32_t next_word(const struct plan *p, int32_t rank, int32_t index)
{
    for (int32_t c = 0; c < p->pipeline->channel_count; c++) {
        const struct arrivals *a = &p->from[c];
        int32_t low = 0, high = a->count;

        if (p->pipeline->channels[c].from != rank) continue;
        while (low < high) {
            int32_t middle = low + (high - low) / 2;

            if (a->sent[middle] > index)
                high = middle;
            else
                low = middle + 1;
        }
        if (low < a->count) return a->used[low];
    }
    return -1;
}

/* ---- when values begin and end ---- */

/* Two actions that may run together: what ends with the first ends with the second. */
static int32_t end_at(const struct plan *p, int32_t index)
{
    return p->pipeline->actions[index].with_next != 0 ? index + 1 : index;
}

static int32_t tensors_end(const struct plan *p, int32_t boundary, int32_t microbatch)
{
    int32_t end = 0;

    for (int32_t s = boundary; s <= boundary + 1; s++) {
        int32_t weight = wf_places_of(p->order, s, microbatch)->weight;

        if (rank_of(p, s) == p->mine && weight > end) end = weight;
    }
    return end_at(p, end);
}

static int32_t gradients_end(const struct plan *p, int32_t boundary, int32_t microbatch)
{
    const struct wf_places *places = wf_places_of(p->order, boundary, microbatch);
    int32_t owner = rank_of(p, boundary), word;

    if (owner == p->mine) return end_at(p, places->weight);
    word = next_word(p, owner, places->input);
    return word < 0 ? p->count : word - 1;
}

static void begin(struct plan *p, int32_t action, int32_t boundary, int32_t microbatch,
                  bool gradient)
{
    int32_t id = value_of(p, boundary, microbatch, gradient);
    struct value *value = &p->values[id];

    value->boundary = p->pipeline->boundaries[boundary].like;
    value->end =
        gradient ? gradients_end(p, boundary, microbatch) : tensors_end(p, boundary, microbatch);
    p->begun[action] = id;
    value->next = p->ended[value->end];
    p->ended[value->end] = id;
}

static void find_values(struct plan *p)
{
    int32_t last = p->order->stages - 1;

    for (int32_t i = 0; i <= p->count; i++)
        p->begun[i] = p->ended[i] = -1;
    for (int32_t i = 0; i < p->count; i++) {
        const weft_schedule_action *a = &p->pipeline->actions[i];

        if (a->kind == WEFT_SCHEDULE_ACTION_RECV_F) begin(p, i, a->stage - 1, a->microbatch, false);
        if (a->kind == WEFT_SCHEDULE_ACTION_RECV_B) begin(p, i, a->stage, a->microbatch, true);
        if (a->kind == WEFT_SCHEDULE_ACTION_F && a->stage < last)
            begin(p, i, a->stage, a->microbatch, false);
        if ((a->kind == WEFT_SCHEDULE_ACTION_B || a->kind == WEFT_SCHEDULE_ACTION_I) &&
            a->stage > 0)
            begin(p, i, a->stage - 1, a->microbatch, true);
    }
}

/* ---- slots ---- */

/* Slots that are free, linked by boundary. */
struct spares {
    uint32_t *first; /* by boundary */
    uint32_t *next;  /* by slot */
    int32_t *boundary;
    uint32_t count, room;
};

static weft_status make_room(struct spares *s)
{
    uint32_t room = s->room == 0 ? 16 : 2 * s->room;
    uint32_t *next = wf_realloc(s->next, room * sizeof *next);
    int32_t *boundary;

    if (next == NULL) return wf_fail_memory(room * sizeof *next);
    s->next = next;
    boundary = wf_realloc(s->boundary, room * sizeof *boundary);
    if (boundary == NULL) return wf_fail_memory(room * sizeof *boundary);
    s->boundary = boundary;
    s->room = room;
    return WEFT_OK;
}

static weft_status take_slot(struct spares *s, int32_t boundary, uint32_t *out)
{
    *out = s->first[boundary];
    if (*out != WF_NO_SLOT) {
        s->first[boundary] = s->next[*out];
        return WEFT_OK;
    }
    if (s->count == s->room) WF_TRY(make_room(s));
    *out = s->count++;
    s->boundary[*out] = boundary;
    return WEFT_OK;
}

static weft_status assign(struct plan *p, struct spares *s)
{
    for (int32_t b = 0; b + 1 < p->order->stages; b++)
        s->first[b] = WF_NO_SLOT;
    for (int32_t i = 0; i < p->count; i++) {
        if (p->begun[i] >= 0) {
            struct value *value = &p->values[p->begun[i]];

            WF_TRY(take_slot(s, value->boundary, &value->slot));
        }
        for (int32_t v = p->ended[i]; v >= 0; v = p->values[v].next) {
            int32_t boundary = p->values[v].boundary;

            s->next[p->values[v].slot] = s->first[boundary];
            s->first[boundary] = p->values[v].slot;
        }
    }
    return WEFT_OK;
}

static uint32_t slot_of(const struct plan *p, int32_t boundary, int32_t microbatch, bool gradient)
{
    if (boundary < 0 || boundary >= p->order->stages - 1) return WF_NO_SLOT;
    return p->values[value_of(p, boundary, microbatch, gradient)].slot;
}

static void set_memory(const struct plan *p, const weft_schedule_action *a,
                       struct wf_pipeline_step *step)
{
    int32_t s = a->stage, m = a->microbatch;

    step->inputs = step->outputs = step->d_inputs = step->d_outputs = WF_NO_SLOT;
    if (a->kind == WEFT_SCHEDULE_ACTION_SEND_F) step->inputs = slot_of(p, s, m, false);
    if (a->kind == WEFT_SCHEDULE_ACTION_RECV_F) step->inputs = slot_of(p, s - 1, m, false);
    if (a->kind == WEFT_SCHEDULE_ACTION_SEND_B) step->inputs = slot_of(p, s - 1, m, true);
    if (a->kind == WEFT_SCHEDULE_ACTION_RECV_B) step->inputs = slot_of(p, s, m, true);
    if (a->kind > WEFT_SCHEDULE_ACTION_W) return;
    step->inputs = slot_of(p, s - 1, m, false);
    step->outputs = slot_of(p, s, m, false);
    if (a->kind == WEFT_SCHEDULE_ACTION_F) return;
    step->d_outputs = slot_of(p, s, m, true);
    if (a->kind != WEFT_SCHEDULE_ACTION_W) step->d_inputs = slot_of(p, s - 1, m, true);
}

/* Make the tensor of the bytes of a slot, which are 0. */
static weft_status make_bytes(const weft_pipeline *pipeline, uint64_t bytes, weft_tensor **out)
{
    const weft_placement whole = {.kind = WEFT_PLACE_REPLICATE};
    const int64_t size = (int64_t)bytes;
    weft_spec *spec;
    weft_status status;

    WF_TRY(weft_spec_create(pipeline->alone, WEFT_DTYPE_U8, 1, &size, &whole, &spec));
    status = weft_tensor_create(pipeline->context, spec, NULL, out);
    weft_spec_release(&spec);
    if (status != WEFT_OK) return status;
    return weft_tensor_fill(*out, 0, NULL);
}

static void release_bytes(void *user, void *memory)
{
    weft_tensor *all = user;

    (void)memory;
    weft_tensor_release(&all);
}

static weft_status make_tensor(const struct wf_boundary *of, size_t index, struct wf_slot *slot)
{
    weft_tensor_options options = {.struct_size = sizeof options, .release = release_bytes};
    char *memory = (char *)weft_tensor_memory(slot->all) + of->offsets[index];
    weft_context *context = weft_tensor_context(slot->all);
    weft_tensor *kept = weft_tensor_retain(slot->all);
    weft_status status;

    options.user = kept;
    status = weft_tensor_wrap(context, of->specs[index], memory, &options, &slot->values[index]);
    if (status != WEFT_OK) weft_tensor_release(&kept);
    return status;
}

static weft_status make_slot(weft_pipeline *pipeline, int32_t boundary, struct wf_slot *slot)
{
    const struct wf_boundary *of = &pipeline->boundaries[boundary];
    size_t count = of->values.count;

    slot->boundary = boundary;
    slot->values = wf_calloc(2 * count + 1, sizeof *slot->values);
    if (slot->values == NULL) return wf_fail_memory(2 * count * sizeof *slot->values);
    slot->gradients = slot->values + count;
    WF_TRY(make_bytes(pipeline, of->bytes, &slot->all));
    for (size_t i = 0; i < count; i++) {
        WF_TRY(make_tensor(of, i, slot));
        if (!of->values.tensors[i].without_gradient) slot->gradients[i] = slot->values[i];
    }
    return WEFT_OK;
}

static weft_status make_slots(const struct plan *p, const struct spares *s)
{
    weft_pipeline *pipeline = p->pipeline;

    pipeline->slots = wf_calloc(s->count + 1, sizeof *pipeline->slots);
    if (pipeline->slots == NULL) return wf_fail_memory(s->count * sizeof *pipeline->slots);
    pipeline->slot_count = s->count;
    for (uint32_t i = 0; i < s->count; i++)
        WF_TRY(make_slot(pipeline, s->boundary[i], &pipeline->slots[i]));
    for (int32_t i = 0; i < p->count; i++)
        set_memory(p, &pipeline->actions[i], &pipeline->steps[i]);
    return weft_context_wait(pipeline->context, NULL, WEFT_FOREVER);
}

/* The last forward of a stage, and its last gradients of weights. */
static weft_status mark_last(weft_pipeline *pipeline)
{
    uint8_t *seen = wf_calloc((size_t)pipeline->stages, 1);

    if (seen == NULL) return wf_fail_memory((size_t)pipeline->stages);
    for (size_t i = pipeline->action_count; i-- > 0;) {
        const weft_schedule_action *a = &pipeline->actions[i];
        uint8_t bit = a->kind == WEFT_SCHEDULE_ACTION_F                                        ? 1
                      : a->kind == WEFT_SCHEDULE_ACTION_B || a->kind == WEFT_SCHEDULE_ACTION_W ? 2
                                                                                               : 0;

        pipeline->steps[i].is_last = bit != 0 && (seen[a->stage] & bit) == 0;
        seen[a->stage] |= bit;
    }
    wf_free(seen);
    return WEFT_OK;
}

static weft_status make(struct plan *p, struct spares *spares)
{
    weft_pipeline *pipeline = p->pipeline;
    size_t boundaries = (size_t)p->order->stages - 1;
    size_t values = 2 * boundaries * (size_t)p->order->microbatches + 1;

    p->values = wf_calloc(values, sizeof *p->values);
    p->begun = wf_calloc(2 * ((size_t)p->count + 1), sizeof *p->begun);
    p->from = wf_calloc((size_t)pipeline->channel_count + 1, sizeof *p->from);
    spares->first = wf_calloc(boundaries + 1, sizeof *spares->first);
    if (p->values == NULL || p->begun == NULL || p->from == NULL || spares->first == NULL)
        return wf_fail_memory(values * sizeof *p->values);
    p->ended = p->begun + p->count + 1;
    for (int32_t c = 0; c < pipeline->channel_count; c++)
        if (pipeline->channels[c].to == p->mine) WF_TRY(find_arrivals(p, c, &p->from[c]));
    find_values(p);
    WF_TRY(assign(p, spares));
    WF_TRY(make_slots(p, spares));
    return mark_last(pipeline);
}

weft_status wf_slots_make(weft_pipeline *pipeline, const struct wf_order *order)
{
    struct plan p = {pipeline, order, pipeline->rank, (int32_t)pipeline->action_count,
                     NULL,     NULL,  NULL,           NULL};
    struct spares spares = {0};
    weft_status status = make(&p, &spares);

    for (int32_t c = 0; p.from != NULL && c < pipeline->channel_count; c++)
        wf_free(p.from[c].sent);
    wf_free(p.from);
    wf_free(p.values);
    wf_free(p.begun);
    wf_free(spares.first);
    wf_free(spares.next);
    wf_free(spares.boundary);
    return status;
}

void wf_slots_free(weft_pipeline *pipeline)
{
    for (uint32_t i = 0; i < pipeline->slot_count; i++) {
        struct wf_slot *slot = &pipeline->slots[i];
        size_t count = pipeline->boundaries[slot->boundary].values.count;

        weft_work_release(&slot->arriving);
        weft_work_release(&slot->leaving);
        for (size_t t = 0; slot->values != NULL && t < count; t++)
            weft_tensor_release(&slot->values[t]);
        weft_tensor_release(&slot->all);
        wf_free(slot->values);
    }
    wf_free(pipeline->slots);
    pipeline->slots = NULL;
    pipeline->slot_count = 0;
}
