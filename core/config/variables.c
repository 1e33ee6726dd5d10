/* variables.c - the knobs for users: description and value. */
#include "config.h"

#include "weft/status.h"

#include <string.h>

static void find_value(const struct wf_knob *knob, struct wf_environment environment,
                       weft_variable_info *out)
{
    out->value = wf_environment_get(environment, knob->name);
    out->source = "environment";
    if (out->value == NULL) {
        out->value = out->fallback;
        out->source = "default";
    } else if (wf_knob_ignored(knob, environment)) {
        out->source = "ignored";
        out->problem = "ignored: the program runs with privileges its user lacks";
    } else if (wf_knob_check(knob, out->value) != WEFT_OK) {
        out->problem = weft_last_error();
    }
    if (knob->kind == WF_KNOB_SECRET && out->value != NULL) out->value = "(secret)";
}

static bool find_unknown(struct wf_environment environment, size_t index, weft_variable_info *out)
{
    static _Thread_local char copy[256];
    const struct wf_knob *nearest;
    size_t length, kept;
    const char *name = wf_config_unknown(environment, index, &length, &nearest);

    if (name == NULL) return false;
    kept = length < sizeof copy ? length : sizeof copy - 1;
    memcpy(copy, name, kept);
    copy[kept] = '\0';
    out->name = copy;
    out->value = name[length] == '=' ? name + length + 1 : NULL;
    out->source = "environment";
    out->problem = "weft does not know this variable";
    out->nearest = nearest != NULL ? nearest->name : NULL;
    return true;
}

bool wf_variable_find(struct wf_environment environment, size_t index, weft_variable_info *out)
{
    const struct wf_knob *knob;

    *out = (weft_variable_info){.struct_size = sizeof *out};
    if (index >= wf_knob_count) return find_unknown(environment, index - wf_knob_count, out);
    knob = &wf_knobs[index];
    out->name = knob->name;
    out->type = knob->type;
    out->fallback = knob->fallback[0] != '\0' ? knob->fallback : NULL;
    out->help = knob->help;
    out->planning = knob->planning;
    find_value(knob, environment, out);
    return true;
}

weft_status weft_variable_get(size_t index, weft_variable_info *out)
{
    weft_variable_info info;
    bool found;

    WF_TRY(wf_require(out, "weft_variable_get: out"));
    wf_environment_lock();
    found = wf_variable_find(wf_environment(), index, &info);
    wf_environment_unlock();
    if (!found) return wf_fail(WEFT_ERR_NOT_FOUND, "weft_variable_get: no variable %zu", index);
    return wf_info_write("weft_variable_info", &info, sizeof info, out);
}
