/* The versions of a serving job, in every state that any sequence of events reaches. */
#include "protocol/protocol.h"
#include "support/suite.h"

enum event { STAGE_1, STAGE_2, STAGED, NOT_STAGED, APPLY, APPLIED, NOT_APPLIED, TEAR, EVENTS };

/* What the calls of subscribe/stage.c do in this order only. */
static bool may_happen(const struct wf_feed_state *state, enum event event)
{
    bool resting = state->phase == WF_FEED_IDLE || state->phase == WF_FEED_STAGED;

    switch (event) {
    case STAGE_1:
    case STAGE_2:
        return resting;
    case STAGED:
    case NOT_STAGED:
        return state->phase == WF_FEED_STAGING;
    case APPLIED:
    case NOT_APPLIED:
        return state->phase == WF_FEED_APPLYING;
    case APPLY:
        return resting;
    default:
        return resting && state->has_served;
    }
}

static void happen(struct wf_feed_state *state, enum event event)
{
    const struct wf_feed_state before = *state;

    switch (event) {
    case STAGE_1:
    case STAGE_2:
        wf_feed_state_stage(state, event == STAGE_1 ? 1 : 2);
        break;
    case STAGED:
    case NOT_STAGED:
        wf_feed_state_staged(state, event == STAGED);
        break;
    case APPLY:
        ck_assert(wf_feed_state_apply(state) == (before.phase == WF_FEED_STAGED));
        break;
    case APPLIED:
    case NOT_APPLIED:
        wf_feed_state_applied(state, event == APPLIED);
        break;
    default:
        wf_feed_state_tear(state);
        break;
    }
    if (event == APPLIED) {
        ck_assert(state->has_served && !state->torn && state->served == before.staged);
    } else if (event == NOT_APPLIED || event == TEAR) {
        ck_assert(!state->has_served && state->torn);
    } else { /* before a version is applied, what is served stays as it is */
        ck_assert(state->has_served == before.has_served && state->served == before.served &&
                  state->torn == before.torn);
    }
}

static void check(const struct wf_feed_state *state)
{
    ck_assert(!(state->has_served && state->torn));
    ck_assert(state->has_served == (state->served != 0));
    ck_assert((state->phase == WF_FEED_IDLE) == (state->staged == 0));
    for (uint64_t version = 1; version <= 2; version++)
        if (wf_feed_state_has(state, version))
            ck_assert(state->phase == WF_FEED_STAGED ? state->staged == version
                                                     : state->served == version);
}

/* A number for each state. */
static size_t number(const struct wf_feed_state *state)
{
    return (((size_t)state->phase * 3 + (size_t)state->served) * 3 + (size_t)state->staged) * 4 +
           state->torn * 2 + state->has_served;
}

TEST(every_state_that_is_reached_is_sound)
{
    struct wf_feed_state states[4 * 3 * 3 * 4];
    bool seen[WF_COUNT(states)] = {false};
    size_t count = 1;

    states[0] = (struct wf_feed_state){0};
    seen[number(&states[0])] = true;
    for (size_t i = 0; i < count; i++)
        for (int event = 0; event < EVENTS; event++) {
            struct wf_feed_state next = states[i];

            if (!may_happen(&next, (enum event)event)) continue;
            happen(&next, (enum event)event);
            check(&next);
            if (seen[number(&next)]) continue;
            seen[number(&next)] = true;
            states[count++] = next;
        }
    /* Served 1, 2, nothing or torn; idle, or one of two versions in three phases. */
    ck_assert_uint_eq(count, 4 * 7);
}
