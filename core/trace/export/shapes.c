/* shapes.c - the constant part of slices, and the predicted times of steps. */
#include "export.h"
#include "protobuf.h"

#include <inttypes.h>
#include <stdio.h>

#define EVENT_CATEGORY 3
#define EVENT_NAME     10
#define TEXTS_OF_EVENT 64 /* more than a shape and its status have */

/* ---- predictions ---- */

static struct wf_prediction *find_prediction(const struct wf_export *export, uint64_t plan,
                                             uint32_t step)
{
    uint32_t at = (uint32_t)wf_hash_mix(plan, step) % WF_PREDICTION_PLACES;

    for (;; at = (at + 1) % WF_PREDICTION_PLACES) {
        struct wf_prediction *found = &export->predictions[at];

        if (!found->used || (found->plan == plan && found->step == step)) return found;
    }
}

void wf_export_predict(struct wf_export *export, uint64_t plan, uint32_t step, uint64_t ns)
{
    struct wf_prediction *found;

    wf_export_lock(export);
    if (export->prediction_count == WF_PREDICTIONS_MOST) {
        memset(export->predictions, 0, WF_PREDICTION_PLACES * sizeof *export->predictions);
        export->prediction_count = 0;
    }
    found = find_prediction(export, plan, step);
    if (!found->used) export->prediction_count++;
    *found = (struct wf_prediction){plan, ns, step, true};
    wf_export_unlock(export);
}

/* ---- shapes ---- */

static uint32_t intern(struct wf_export *export, uint32_t text)
{
    return wf_packets_intern(export, WF_INTERN_TEXT, wf_trace_text(export->trace, text));
}

static uint32_t intern_plan(struct wf_export *export, uint64_t plan)
{
    char digest[24];

    snprintf(digest, sizeof digest, "%016" PRIx64, plan);
    return wf_packets_intern(export, WF_INTERN_TEXT, digest);
}

static uint32_t intern_name(struct wf_export *export, const weft_record *record)
{
    char name[320];

    (void)wf_record_describe(
        record, wf_trace_text(export->trace, record->axes != 0 ? record->axes : record->comm_name),
        name, sizeof name);
    return wf_packets_intern(export, WF_INTERN_NAME, name);
}

/* Communicators that one call made of different ranks have the same number.  0: their ranks are not
 * known. */
static uint64_t identify(struct wf_export *export, uint64_t comm)
{
    const char *ranks =
        comm != 0 ? wf_trace_text(export->trace, wf_trace_comm_ranks(export->trace, comm)) : "";

    return ranks[0] != '\0' ? wf_hash(comm, ranks, strlen(ranks)) : 0;
}

static uint8_t *put_plan(struct wf_export *export, uint8_t *at, const weft_record *record,
                         uint32_t plan)
{
    uint64_t predicted = find_prediction(export, record->plan, record->step)->ns;

    at = wf_put_text_note(at, WF_NOTE_PLAN, plan);
    if (record->step > 0) at = wf_put_note(at, WF_NOTE_STEP, record->step);
    return predicted > 0 ? wf_put_note(at, WF_NOTE_PREDICTED, predicted) : at;
}

/* "f32", "f32 sum" */
static uint32_t intern_dtype(struct wf_export *export, const weft_record *record)
{
    const char *dtype = wf_dtype_name(record->dtype), *rule = wf_reduction_name(record->reduction);
    bool reduces = record->operation < WEFT_COLL_COUNT && wf_collective_reduces(record->operation);
    char text[64];

    if (dtype == NULL || record->operation == WEFT_RECORD_REDISTRIBUTE) return 0;
    snprintf(text, sizeof text, "%s%s%s", dtype, reduces && rule != NULL ? " " : "",
             reduces && rule != NULL ? rule : "");
    return wf_packets_intern(export, WF_INTERN_TEXT, text);
}

static uint8_t *put_bytes(uint8_t *at, const weft_record *record)
{
    if (record->sent == record->received) return wf_put_note(at, WF_NOTE_BYTES, record->sent);
    at = wf_put_note(at, WF_NOTE_SENT, record->sent);
    return wf_put_note(at, WF_NOTE_RECEIVED, record->received);
}

static void encode(struct wf_export *export, const weft_record *record, struct wf_shape *shape)
{
    const char *kind = weft_record_operation_name((enum weft_record_operation)record->operation);
    bool has_data = record->sent > 0 || record->received > 0;
    uint32_t name = intern_name(export, record);
    uint32_t category =
        wf_packets_intern(export, WF_INTERN_CATEGORY, kind != NULL ? kind : "unknown");
    uint32_t dtype = has_data ? intern_dtype(export, record) : 0;
    uint32_t comm = intern(export, record->comm_name), axes = intern(export, record->axes);
    uint32_t label = intern(export, record->label);
    uint32_t plan = record->plan != 0 ? intern_plan(export, record->plan) : 0;
    uint8_t *at = shape->encoded;

    shape->group = identify(export, record->comm);
    at = wf_put_number(at, EVENT_CATEGORY, category);
    if (name > 0) at = wf_put_number(at, EVENT_NAME, name);
    shape->name_bytes = (uint16_t)(at - shape->encoded);
    if (has_data) at = put_bytes(at, record);
    at = wf_put_text_note(at, WF_NOTE_DTYPE, dtype);
    at = wf_put_text_note(at, WF_NOTE_COMM, comm);
    at = wf_put_text_note(at, WF_NOTE_AXES, axes);
    if (record->peer >= 0) at = wf_put_note(at, WF_NOTE_PEER, (uint64_t)record->peer);
    if (plan > 0) at = put_plan(export, at, record, plan);
    at = wf_put_text_note(at, WF_NOTE_LABEL, label);
    if (record->flags & WEFT_RECORD_IMPLICIT) at = wf_put_note(at, WF_NOTE_IMPLICIT, 1);
    if (record->flags & WEFT_RECORD_CACHED) at = wf_put_note(at, WF_NOTE_CACHED, 1);
    shape->bytes = (uint16_t)(at - shape->encoded);
}

/* Shapes refer to texts, and are encoded anew.  No record is that of such a shape. */
static void forget_texts(struct wf_export *export)
{
    for (uint32_t i = 0; i < WF_SHAPES; i++) {
        export->shapes[i].used = false;
        export->shapes[i].key.operation = UINT8_MAX;
    }
    wf_packets_restart(export);
}

void wf_shapes_make_room(struct wf_export *export)
{
    if (export->text_count > WF_TEXTS_MOST - TEXTS_OF_EVENT) forget_texts(export);
}

const struct wf_shape *wf_shape_find(struct wf_export *export, const weft_record *record)
{
    struct wf_shape_key key = {record->comm,
                               record->sent,
                               record->received,
                               record->plan,
                               record->comm_name,
                               record->axes,
                               record->label,
                               record->peer,
                               record->step,
                               record->operation,
                               record->step_kind,
                               record->dtype,
                               record->reduction,
                               (uint8_t)(record->flags & WF_SHAPE_FLAGS),
                               0};
    uint64_t hash = wf_hash_mix(key.plan ^ key.comm, key.sent);
    struct wf_shape *shape;

    hash = wf_hash_mix(hash ^ key.received, (uint64_t)key.label << 32 | (uint32_t)key.peer);
    hash = wf_hash_mix(hash, (uint64_t)key.step << 16 | (uint64_t)key.operation << 8 | key.flags);
    shape = &export->shapes[hash >> 32 & (WF_SHAPES - 1)];
    if (shape->used && memcmp(&shape->key, &key, sizeof key) == 0) return shape;
    wf_shapes_make_room(export);
    shape->key = key;
    shape->used = true;
    encode(export, record, shape);
    return shape;
}
