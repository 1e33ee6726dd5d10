/* describe.h - shapes, runs and steps as text, appended to a growing string; outside/texts.h has
 * meshes and layouts. */
#ifndef WEFT_CLI_COMMON_DESCRIBE_H
#define WEFT_CLI_COMMON_DESCRIBE_H

#include "base/base.h"
#include "outside/texts.h"
#include "weft/weft.h"

void describe_shape(int32_t dims, const int64_t *shape, struct wf_text *out); /* [4,6] */
/* The indices of RANK's shard, 0-3,8 x 0-15, of each dimension at most six runs; "none". */
void describe_runs(const weft_spec *spec, int32_t rank, struct wf_text *out);
void describe_step(const weft_plan_step_info *step, struct wf_text *out); /* all-gather over tp */
void describe_travel(const weft_plan_step_info *step,
                     struct wf_text *out); /* a rank receives ... */

/* The same as strings of a JSON object; describe_shape as an array of numbers. */
void describe_json_mesh(struct wf_json *json, const char *key, const weft_mesh *mesh);
void describe_json_placements(struct wf_json *json, const char *key, const weft_spec *spec);
void describe_json_shape(struct wf_json *json, const char *key, int32_t dims, const int64_t *shape);
/* The runs of RANK's shard: per dimension an array of [start, length]. */
void describe_json_runs(struct wf_json *json, const char *key, const weft_spec *spec, int32_t rank);

/* Append what the library's function PRINT writes of OBJECT to OUT; return its error. */
#define DESCRIBE_ADD(print, object, out)                                                           \
    do {                                                                                           \
        size_t length = 0;                                                                         \
        WF_TRY(print(object, NULL, 0, &length));                                                   \
        if (!wf_text_reserve(out, length + 1)) return wf_fail_memory(length + 1);                  \
        WF_TRY(print(object, (out)->data + (out)->length, length + 1, NULL));                      \
        (out)->length += length;                                                                   \
    } while (0)

#endif
