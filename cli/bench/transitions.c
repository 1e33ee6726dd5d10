/* transitions.c - see transitions.h. */
#include "bench/transitions.h"

#include <stdio.h>

const struct transition transitions[TRANSITIONS] = {
    {"S(0)", "R"}, {"S(0)", "S(1)"}, {"P", "R"}, {"P", "S(0)"}, {"R", "S(1)"}};

static weft_status parse(const weft_mesh *mesh, int64_t size, const char *placement,
                         weft_spec **out)
{
    char text[96];

    snprintf(text, sizeof text, "f32[%lld,%lld] %s", (long long)size, (long long)size, placement);
    return weft_spec_parse(mesh, text, out);
}

weft_status transition_specs(const struct transition *transition, const weft_mesh *mesh,
                             int64_t size, weft_spec **from, weft_spec **to)
{
    WF_TRY(parse(mesh, size, transition->from, from));
    return parse(mesh, size, transition->to, to);
}

void transition_add_name(const struct transition *transition, struct wf_text *text)
{
    char name[32];

    snprintf(name, sizeof name, "%s -> %s", transition->from, transition->to);
    wf_text_add(text, "%-14s", name);
}
