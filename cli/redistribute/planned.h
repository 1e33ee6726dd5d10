/* planned.h - the plan of a request, and its JSON as `weft plan`, `weft sim` and `weft
 * redistribute` print it. */
#ifndef WEFT_CLI_REDISTRIBUTE_PLANNED_H
#define WEFT_CLI_REDISTRIBUTE_PLANNED_H

#include "redistribute/request.h"

struct planned {
    weft_plan *plan;
    weft_plan_options options;
    uint64_t plan_ns;     /* how long planning took */
    weft_plan *runner_up; /* NULL: not wanted, or there is no other plan */
};

/* Plan REQUEST with OPTIONS in place of its own.  OUT, all zero before, is freed after a failure,
 * too. */
weft_status planned_find(const struct request *request, const weft_plan_options *options,
                         bool with_runner_up, struct planned *out);
void planned_free(struct planned *planned);

/* Add why the runner-up, which exists, lost: "takes 3.2 us longer". */
void planned_add_reason(const struct planned *planned, struct wf_text *out);
/* Add the members of weft_plan_json_print, "runner_up_reason" and "plan_ns", without the braces. */
weft_status planned_add_members(const struct planned *planned, struct wf_text *out);
/* Begin an object with such MEMBERS; the caller may add others and ends it. */
void planned_begin_json(struct wf_json *json, const struct wf_text *members);

#endif
