/* summary.c - slices become sums.  Slices of one plan and step are a group; its times are kept for
 * the median. */
#include "trace/summary.h"
#include "trace/usage.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NONE       SIZE_MAX
#define MOST_KINDS 256

/* A slice that has begun. */
struct slice {
    uint64_t begin, inside_ns; /* INSIDE_NS: of the slices in it */
    size_t below;              /* the slice that contains it, or NONE */
    size_t group, kind;        /* GROUP NONE: it is not part of a plan */
    struct proto batch;        /* the plan of the outermost slice that contains it, or its own */
    struct usage_mark mark;
};

struct track {
    uint64_t uuid;
    bool used;
    size_t top; /* the slice that is open, or NONE */
};

/* A step of a plan, or the whole plan, in the runs with one label.  Tensors with equal layouts have
 * equal plans and different labels.  The plans of a batch's tensors run inside the plan of the
 * batch. */
struct group {
    struct proto batch, plan, name, label;
    uint64_t step, predicted_ns;
    uint64_t *times; /* of every slice */
    size_t count, room;
};

/* Slices of one kind of operation. */
struct kind {
    struct proto name;
    uint64_t count, own_ns; /* without the slices inside */
};

struct sums {
    struct slice *slices;
    size_t slice_count, slice_room, unused; /* UNUSED: a list through `below` */
    struct track *tracks;
    size_t track_count, track_room;
    struct group *groups;
    size_t group_count, group_room;
    uint32_t *index; /* of groups by plan, step and label: their number plus 1; 0: free */
    size_t index_room;
    struct kind *kinds;
    size_t kind_count, kind_room;
    uint64_t open; /* slices without an end */
    struct usage usage;
};

static bool is_same(const struct proto *a, const struct proto *b)
{
    return a->bytes == b->bytes && (a->bytes == 0 || memcmp(a->data, b->data, a->bytes) == 0);
}

/* ---- tracks ---- */

static struct track *find_track(const struct sums *sums, uint64_t uuid)
{
    size_t at = (size_t)(wf_hash_mix(1, uuid) >> 20) & (sums->track_room - 1);

    while (sums->tracks[at].used && sums->tracks[at].uuid != uuid)
        at = (at + 1) & (sums->track_room - 1);
    return &sums->tracks[at];
}

static weft_status get_track(struct sums *sums, uint64_t uuid, struct track **out)
{
    struct track *old = sums->tracks;
    size_t before = sums->track_room;

    if (2 * (sums->track_count + 1) > before) {
        sums->track_room = before > 0 ? 2 * before : 64;
        sums->tracks = wf_calloc(sums->track_room, sizeof *sums->tracks);
        if (sums->tracks == NULL) {
            sums->tracks = old;
            sums->track_room = before;
            return wf_fail_memory(2 * before * sizeof *old);
        }
        for (size_t i = 0; i < before; i++)
            if (old[i].used) *find_track(sums, old[i].uuid) = old[i];
        wf_free(old);
    }
    *out = find_track(sums, uuid);
    if (!(*out)->used) {
        **out = (struct track){uuid, true, NONE};
        sums->track_count++;
    }
    return WEFT_OK;
}

/* ---- groups and kinds ---- */

/* The place of a group in the index. */
static uint32_t *find_place(const struct sums *sums, const struct group *wanted)
{
    uint64_t hash = wf_hash(wanted->step, wanted->plan.data, wanted->plan.bytes);
    size_t at;

    hash = wf_hash(hash, wanted->batch.data, wanted->batch.bytes);
    hash = wf_hash(hash, wanted->label.data, wanted->label.bytes);
    at = (size_t)(hash >> 20) & (sums->index_room - 1);
    for (;; at = (at + 1) & (sums->index_room - 1)) {
        uint32_t number = sums->index[at];
        const struct group *group;

        if (number == 0) return &sums->index[at];
        group = &sums->groups[number - 1];
        if (group->step == wanted->step && is_same(&group->plan, &wanted->plan) &&
            is_same(&group->batch, &wanted->batch) && is_same(&group->label, &wanted->label))
            return &sums->index[at];
    }
}

static weft_status grow_index(struct sums *sums)
{
    uint32_t *old = sums->index;
    size_t before = sums->index_room, room = before > 0 ? 2 * before : 256;

    if (2 * (sums->group_count + 1) <= before) return WEFT_OK;
    sums->index = wf_calloc(room, sizeof *sums->index);
    if (sums->index == NULL) {
        sums->index = old;
        return wf_fail_memory(room * sizeof *old);
    }
    sums->index_room = room;
    for (uint32_t i = 0; i < sums->group_count; i++)
        *find_place(sums, &sums->groups[i]) = i + 1;
    wf_free(old);
    return WEFT_OK;
}

static weft_status find_group(struct sums *sums, const struct trace_event *event,
                              const struct proto *batch, size_t *out)
{
    struct group wanted = {.batch = *batch,
                           .plan = event->plan,
                           .name = event->name,
                           .label = event->label,
                           .step = event->step,
                           .predicted_ns = event->predicted_ns};
    uint32_t *place;

    WF_TRY(grow_index(sums));
    place = find_place(sums, &wanted);
    if (*place == 0) {
        WF_TRY(wf_grow(&sums->groups, sizeof *sums->groups, sums->group_count, &sums->group_room));
        sums->groups[sums->group_count] = wanted;
        *place = (uint32_t)++sums->group_count;
    }
    *out = *place - 1;
    return WEFT_OK;
}

/* The last of MOST_KINDS is for all further kinds. */
static weft_status find_kind(struct sums *sums, const struct proto *name, size_t *out)
{
    static const uint8_t others[] = "other";
    struct proto last = {others, sizeof others - 1, 0};

    for (*out = 0; *out < sums->kind_count; (*out)++)
        if (is_same(&sums->kinds[*out].name, name)) return WEFT_OK;
    if (sums->kind_count == MOST_KINDS) {
        *out = MOST_KINDS - 1;
        return WEFT_OK;
    }
    WF_TRY(wf_grow(&sums->kinds, sizeof *sums->kinds, sums->kind_count, &sums->kind_room));
    sums->kinds[sums->kind_count] =
        (struct kind){.name = sums->kind_count == MOST_KINDS - 1 ? last : *name};
    sums->kind_count++;
    return WEFT_OK;
}

/* ---- slices ---- */

static weft_status begin_slice(struct sums *sums, struct track *track,
                               const struct trace_event *event)
{
    bool is_plan = proto_is(&event->category, "plan");
    struct slice slice = {.begin = event->time, .below = track->top, .group = NONE};
    size_t at = sums->unused;

    slice.batch = event->plan;
    if (track->top != NONE && sums->slices[track->top].group != NONE)
        slice.batch = sums->slices[track->top].batch;
    if (event->plan.bytes > 0 && !is_plan)
        WF_TRY(find_group(sums, event, &slice.batch, &slice.group));
    WF_TRY(find_kind(sums, &event->category, &slice.kind));
    WF_TRY(usage_begin(&sums->usage, event, &slice.mark));
    if (at != NONE) {
        sums->unused = sums->slices[at].below;
    } else {
        WF_TRY(wf_grow(&sums->slices, sizeof *sums->slices, sums->slice_count, &sums->slice_room));
        at = sums->slice_count++;
    }
    sums->slices[at] = slice;
    track->top = at;
    sums->open++;
    return WEFT_OK;
}

static weft_status end_slice(struct sums *sums, struct track *track,
                             const struct trace_event *event)
{
    struct slice *slice = &sums->slices[track->top];
    uint64_t spent = event->time > slice->begin ? event->time - slice->begin : 0;
    uint64_t own_ns = spent > slice->inside_ns ? spent - slice->inside_ns : 0;
    size_t at = track->top;

    track->top = slice->below;
    if (track->top != NONE) sums->slices[track->top].inside_ns += spent;
    sums->kinds[slice->kind].count++;
    sums->kinds[slice->kind].own_ns += own_ns;
    if (event->flow != 0) slice->mark.flow = event->flow; /* a receive */
    WF_TRY(usage_end(&sums->usage, &slice->mark,
                     (struct usage_span){slice->begin, slice->begin + spent}, own_ns,
                     track->top == NONE));
    if (slice->group != NONE) {
        struct group *group = &sums->groups[slice->group];

        WF_TRY(wf_grow(&group->times, sizeof *group->times, group->count, &group->room));
        group->times[group->count++] = spent;
    }
    slice->below = sums->unused;
    sums->unused = at;
    sums->open--;
    return WEFT_OK;
}

static weft_status add_event(void *self, const struct trace_event *event)
{
    struct sums *sums = self;
    struct track *track = NULL;

    if (event->type != TRACE_BEGIN && event->type != TRACE_END) return WEFT_OK;
    WF_TRY(get_track(sums, event->track, &track));
    if (event->type == TRACE_BEGIN) return begin_slice(sums, track, event);
    return track->top == NONE ? WEFT_OK : end_slice(sums, track, event);
}

static void free_sums(struct sums *sums)
{
    for (size_t i = 0; i < sums->group_count; i++)
        wf_free(sums->groups[i].times);
    usage_free(&sums->usage);
    wf_free(sums->groups);
    wf_free(sums->index);
    wf_free(sums->kinds);
    wf_free(sums->slices);
    wf_free(sums->tracks);
}

/* ---- printing ---- */

static int compare_times(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

    return x < y ? -1 : x > y;
}

static int compare_texts(const struct proto *x, const struct proto *y)
{
    size_t bytes = x->bytes < y->bytes ? x->bytes : y->bytes;
    int order = bytes > 0 ? memcmp(x->data, y->data, bytes) : 0;

    if (order != 0) return order;
    return x->bytes < y->bytes ? -1 : x->bytes > y->bytes;
}

/* False: the slices of GROUP run inside those of another plan, a batch. */
static bool is_own(const struct group *group)
{
    return is_same(&group->plan, &group->batch);
}

static int compare_groups(const void *a, const void *b)
{
    const struct group *x = a, *y = b;
    int order = compare_texts(&x->batch, &y->batch);

    if (order == 0) order = (x->label.bytes == 0) - (y->label.bytes == 0);
    if (order == 0) order = compare_texts(&x->label, &y->label);
    if (order == 0) order = is_own(y) - is_own(x); /* the batch comes first */
    if (order == 0) order = compare_texts(&x->plan, &y->plan);
    if (order != 0) return order;
    return x->step < y->step ? -1 : x->step > y->step;
}

static int compare_kinds(const void *a, const void *b)
{
    const struct kind *x = a, *y = b;

    return x->own_ns > y->own_ns ? -1 : x->own_ns < y->own_ns;
}

static uint64_t median_of(const struct group *group)
{
    return group->times[group->count / 2];
}

static double ratio_of(const struct group *group)
{
    return group->predicted_ns > 0 ? (double)median_of(group) / (double)group->predicted_ns : 0;
}

static void sort(struct sums *sums)
{
    if (sums->group_count > 0)
        qsort(sums->groups, sums->group_count, sizeof *sums->groups, compare_groups);
    if (sums->kind_count > 0)
        qsort(sums->kinds, sums->kind_count, sizeof *sums->kinds, compare_kinds);
    for (size_t i = 0; i < sums->group_count; i++)
        if (sums->groups[i].count > 0)
            qsort(sums->groups[i].times, sums->groups[i].count, sizeof(uint64_t), compare_times);
}

static uint64_t total_of(const struct sums *sums)
{
    uint64_t total = 0;

    for (size_t i = 0; i < sums->kind_count; i++)
        total += sums->kinds[i].own_ns;
    return total;
}

static void add_padded_time(struct wf_text *out, uint64_t ns)
{
    struct wf_text time = {0};

    wf_text_time(&time, ns);
    wf_text_add(out, " %10s", time.failed ? "" : time.data);
    wf_text_free(&time);
}

static void print_group(const struct group *group, const struct group *before, struct wf_text *out)
{
    bool is_whole = group->step == 0 && group->label.bytes > 0;
    char plan[40], name[256], label[256], step[24];

    proto_show(&group->batch, plan, sizeof plan);
    proto_show(is_whole ? &group->label : &group->name, name, sizeof name);
    proto_show(&group->label, label, sizeof label);
    if (before == NULL || !is_same(&before->batch, &group->batch))
        wf_text_add(out, "plan %s\n  step  count  predicted        min     median   ratio\n", plan);
    snprintf(step, sizeof step, "%llu", (unsigned long long)group->step);
    wf_text_add(out, "  %4s %6zu",
                !is_own(group)    ? "in"
                : group->step > 0 ? step
                                  : "all",
                group->count);
    if (group->predicted_ns > 0)
        add_padded_time(out, group->predicted_ns);
    else
        wf_text_add(out, " %10s", "-");
    add_padded_time(out, group->times[0]);
    add_padded_time(out, median_of(group));
    if (group->predicted_ns > 0)
        wf_text_add(out, " %7.2f", ratio_of(group));
    else
        wf_text_add(out, " %7s", "-");
    wf_text_add(out, "  %s", name);
    if (!is_whole && label[0] != '\0') wf_text_add(out, " of %s", label);
    wf_text_char(out, '\n');
}

static void print_text(const struct sums *sums, struct wf_text *out)
{
    const struct group *before = NULL;
    uint64_t total = total_of(sums);
    char name[64];

    for (size_t i = 0; i < sums->group_count; i++) {
        if (sums->groups[i].count == 0) continue;
        print_group(&sums->groups[i], before, out);
        before = &sums->groups[i];
    }
    wf_text_add(out, "%sshare of the time in operations\n", before != NULL ? "\n" : "");
    for (size_t i = 0; i < sums->kind_count; i++) {
        const struct kind *kind = &sums->kinds[i];

        proto_show(&kind->name, name, sizeof name);
        wf_text_add(out, "  %5.1f %% %8llu",
                    total > 0 ? 100 * (double)kind->own_ns / (double)total : 0,
                    (unsigned long long)kind->count);
        add_padded_time(out, kind->own_ns);
        wf_text_add(out, "  %s\n", name);
    }
    usage_print_text(&sums->usage, out);
    if (sums->open > 0)
        wf_text_add(out, "%llu slices have no end: the rank ended early\n",
                    (unsigned long long)sums->open);
}

static void print_json_groups(const struct sums *sums, struct wf_json *json)
{
    char text[256];

    wf_json_begin(json, "steps", '[');
    for (size_t i = 0; i < sums->group_count; i++) {
        const struct group *group = &sums->groups[i];

        if (group->count == 0) continue;
        wf_json_begin(json, NULL, '{');
        proto_show(&group->plan, text, sizeof text);
        wf_json_string(json, "plan", text);
        proto_show(&group->batch, text, sizeof text);
        wf_json_string(json, "batch", is_own(group) ? NULL : text);
        wf_json_uint(json, "step", group->step);
        proto_show(&group->name, text, sizeof text);
        wf_json_string(json, "name", text);
        proto_show(&group->label, text, sizeof text);
        wf_json_string(json, "label", text[0] != '\0' ? text : NULL);
        wf_json_uint(json, "count", group->count);
        if (group->predicted_ns > 0)
            wf_json_uint(json, "predicted_ns", group->predicted_ns);
        else
            wf_json_null(json, "predicted_ns");
        wf_json_uint(json, "min_ns", group->times[0]);
        wf_json_uint(json, "median_ns", median_of(group));
        if (group->predicted_ns > 0)
            wf_json_real(json, "ratio", ratio_of(group));
        else
            wf_json_null(json, "ratio");
        wf_json_end(json, '}');
    }
    wf_json_end(json, ']');
}

static void print_json(const struct sums *sums, const char *name, struct wf_text *out)
{
    struct wf_json json = {.out = out};
    uint64_t total = total_of(sums);
    char text[64];

    wf_json_begin(&json, NULL, '{');
    wf_json_string(&json, "file", name);
    print_json_groups(sums, &json);
    wf_json_begin(&json, "kinds", '[');
    for (size_t i = 0; i < sums->kind_count; i++) {
        proto_show(&sums->kinds[i].name, text, sizeof text);
        wf_json_begin(&json, NULL, '{');
        wf_json_string(&json, "kind", text);
        wf_json_uint(&json, "count", sums->kinds[i].count);
        wf_json_uint(&json, "time_ns", sums->kinds[i].own_ns);
        wf_json_real(&json, "share", total > 0 ? (double)sums->kinds[i].own_ns / (double)total : 0);
        wf_json_end(&json, '}');
    }
    wf_json_end(&json, ']');
    usage_print_json(&sums->usage, &json);
    wf_json_uint(&json, "open", sums->open);
    wf_json_end(&json, '}');
    wf_text_char(out, '\n');
}

weft_status trace_summarize(const char *name, const uint8_t *data, size_t bytes, bool as_json,
                            const struct trace_progress *progress, struct wf_text *out)
{
    struct sums sums = {.unused = NONE};
    struct trace_visitor visitor = {&sums, add_event, progress};
    weft_status status = trace_read(name, data, bytes, &visitor);

    if (status == WEFT_OK) {
        sort(&sums);
        usage_settle(&sums.usage);
        if (as_json)
            print_json(&sums, name, out);
        else
            print_text(&sums, out);
    }
    free_sums(&sums);
    return status;
}
