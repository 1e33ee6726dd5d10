/* create.c - known schedules by name. */
#include "schedule.h"

#include <string.h>

static const struct {
    const char *name;
    wf_generator *generate;
    int32_t least_chunks, most_chunks, default_chunks;
    uint32_t actions; /* of a stage for a microbatch */
} known[] = {
    {"gpipe", wf_gpipe, 1, 1, 1, 2},
    {"1f1b", wf_1f1b, 1, 1, 1, 2},
    {"interleaved", wf_interleaved, 1, INT32_MAX, 2, 2},
    {"looped-bfs", wf_looped_bfs, 1, INT32_MAX, 2, 2},
    {"zb1p", wf_zb1p, 1, INT32_MAX, 2, 3},
    {"zbv", wf_zbv, 2, 2, 2, 3},
    {"dualpipev", wf_dualpipev, 2, 2, 2, 2}, /* some backwards have two halves */
};

const char *weft_schedule_known(size_t index)
{
    return index < WF_COUNT(known) ? known[index].name : NULL;
}

static weft_status fail_unknown(const char *name)
{
    const char *names[WF_COUNT(known)];
    char list[160] = "";
    int near;

    for (size_t i = 0, at = 0; i < WF_COUNT(known); i++) {
        names[i] = known[i].name;
        for (const char *c = i > 0 ? ", " : ""; *c != '\0'; c++)
            list[at++] = *c;
        for (const char *c = names[i]; *c != '\0'; c++)
            list[at++] = *c;
    }
    near = wf_nearest(name, names, WF_COUNT(names));
    return wf_fail(WEFT_ERR_NOT_FOUND,
                   "weft_schedule_create: \"%.40s\" is not a schedule; the schedules are %s%s%s%s",
                   name, list, near >= 0 ? "; did you mean " : "", near >= 0 ? names[near] : "",
                   near >= 0 ? "?" : "");
}

/* The schedules interleaved and zb1p run microbatches in rounds of about as many as ranks. */
static weft_status check_rounds(const char *name, const struct wf_shape *shape)
{
    int32_t rounds = shape->microbatches / shape->ranks;

    if (rounds < 2 || shape->microbatches % rounds == 0) return WEFT_OK;
    return wf_fail(WEFT_ERR_INVALID,
                   "weft_schedule_create: %s runs %d microbatches on %d ranks in %d rounds, and %d "
                   "is not a multiple of %d",
                   name, shape->microbatches, shape->ranks, rounds, shape->microbatches, rounds);
}

/* Actions of the schedule with its sends, receives and REDUCE_GRAD. */
static uint64_t count_actions(size_t kind, const struct wf_shape *shape)
{
    uint64_t ranks = (uint64_t)shape->ranks, microbatches = (uint64_t)shape->microbatches;
    uint64_t stages = wf_mul_capped(ranks, (uint64_t)shape->chunks), edges, count;
    bool v_shape = known[kind].generate == wf_zbv || known[kind].generate == wf_dualpipev;

    edges = ranks > 1 ? stages - 1 - v_shape : 0; /* between stages on different ranks */
    count = wf_mul_capped(wf_mul_capped(stages, microbatches), known[kind].actions);
    count = wf_add_capped(count, wf_mul_capped(wf_mul_capped(edges, microbatches), 4));
    if (known[kind].generate == wf_dualpipev) /* the halves of 2 * (P - 1 - r) + r + 1 backwards */
        count = wf_add_capped(count, ranks * (ranks - 1) + ranks * (ranks + 1) / 2);
    return wf_add_capped(count, stages);
}

static weft_status check_shape(size_t kind, const struct wf_shape *shape)
{
    const char *name = known[kind].name;

    if (shape->ranks < 1 || shape->ranks > WEFT_SCHEDULE_RANKS)
        return wf_fail(WEFT_ERR_INVALID,
                       "weft_schedule_create: %d ranks; from 1 to %d are possible", shape->ranks,
                       WEFT_SCHEDULE_RANKS);
    if (shape->microbatches < 1)
        return wf_fail(WEFT_ERR_INVALID,
                       "weft_schedule_create: %d microbatches; at least 1 is "
                       "needed",
                       shape->microbatches);
    if (shape->chunks < known[kind].least_chunks || shape->chunks > known[kind].most_chunks)
        return wf_fail(WEFT_ERR_INVALID,
                       "weft_schedule_create: %d chunks; %s has %s %d on each rank", shape->chunks,
                       name, known[kind].most_chunks == INT32_MAX ? "at least" : "exactly",
                       known[kind].least_chunks);
    if (count_actions(kind, shape) > (uint64_t)WEFT_SCHEDULE_ACTIONS)
        return wf_fail(WEFT_ERR_INVALID,
                       "weft_schedule_create: %d ranks, %d chunks and %d microbatches make more "
                       "than %lld actions, sends and receives included",
                       shape->ranks, shape->chunks, shape->microbatches,
                       (long long)WEFT_SCHEDULE_ACTIONS);
    if (known[kind].generate == wf_dualpipev && shape->microbatches < 2 * shape->ranks)
        return wf_fail(
            WEFT_ERR_INVALID,
            "weft_schedule_create: dualpipev on %d ranks needs at least %d microbatches, "
            "not %d",
            shape->ranks, 2 * shape->ranks, shape->microbatches);
    if (known[kind].generate == wf_interleaved || known[kind].generate == wf_zb1p)
        return check_rounds(name, shape);
    return WEFT_OK;
}

weft_status weft_schedule_create(const char *name, int32_t ranks, int32_t chunks,
                                 int32_t microbatches, weft_schedule **out)
{
    struct wf_shape shape = {ranks, chunks, microbatches};
    struct wf_draft draft;
    size_t kind = 0;

    WF_TRY(wf_require(name, "weft_schedule_create: name"));
    WF_TRY(wf_require(out, "weft_schedule_create: out"));
    while (kind < WF_COUNT(known) && strcmp(known[kind].name, name) != 0)
        kind++;
    if (kind == WF_COUNT(known)) return fail_unknown(name);
    if (chunks == 0) shape.chunks = known[kind].default_chunks;
    WF_TRY(check_shape(kind, &shape));
    WF_TRY(wf_draft_begin(ranks, &draft));
    for (int32_t r = 0; r < ranks; r++)
        known[kind].generate(&shape, r, &draft);
    return wf_draft_finish(&draft, name, out);
}
