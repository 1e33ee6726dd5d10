/* state.c - which version a serving job serves, stages and applies. */
#include "protocol.h"

bool wf_feed_state_has(const struct wf_feed_state *state, uint64_t version)
{
    if (state->phase == WF_FEED_STAGED && state->staged == version) return true;
    return state->phase == WF_FEED_IDLE && state->has_served && state->served == version;
}

void wf_feed_state_stage(struct wf_feed_state *state, uint64_t version)
{
    state->phase = WF_FEED_STAGING;
    state->staged = version;
}

void wf_feed_state_staged(struct wf_feed_state *state, bool succeeded)
{
    state->phase = succeeded ? WF_FEED_STAGED : WF_FEED_IDLE;
    if (!succeeded) state->staged = 0;
}

bool wf_feed_state_apply(struct wf_feed_state *state)
{
    if (state->phase != WF_FEED_STAGED) return false;
    state->phase = WF_FEED_APPLYING;
    return true;
}

void wf_feed_state_applied(struct wf_feed_state *state, bool succeeded)
{
    uint64_t version = state->staged;

    *state = (struct wf_feed_state){.phase = WF_FEED_IDLE};
    if (succeeded) {
        state->has_served = true;
        state->served = version;
    } else {
        state->torn = true;
    }
}

void wf_feed_state_tear(struct wf_feed_state *state)
{
    state->has_served = false;
    state->served = 0;
    state->torn = true;
}
