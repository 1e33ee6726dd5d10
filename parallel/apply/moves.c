/* moves.c - moves that the caller permitted: in the log, and in errors. */
#include "apply.h"

#include <string.h>

void wf_move_show(const char *function, const char *op, uint32_t input, const weft_tensor *tensor,
                  const weft_spec *spec, const weft_plan *plan)
{
    const char *name = weft_tensor_name(tensor);
    char from[256] = "", to[256] = "";
    struct wf_text price = {0};

    if (weft_spec_print(weft_tensor_spec(tensor), from, sizeof from, NULL) != WEFT_OK ||
        weft_spec_print(spec, to, sizeof to, NULL) != WEFT_OK)
        return;
    wf_text_time(&price, weft_plan_cost_ns(plan));
    wf_log(WF_LOG_NOTICE,
           "%s: operator %.100s moves input %u%s%.100s from %s to %s, which takes %s", function, op,
           input, name[0] != '\0' ? ", " : "", name, from, to,
           wf_text_status(&price) == WEFT_OK ? price.data : "unknown time");
    wf_text_free(&price);
}

/* The text of the move does not name the function that made it, which the program has not called.
 */
weft_status wf_move_refuse(weft_status status, const char *function, const char *op)
{
    static const char made_by[] = "weft_tensors_move_into: ";
    const char *text = weft_last_error();
    size_t length = strlen(made_by);

    if (strncmp(text, made_by, length) == 0) text += length;
    return wf_fail_reword(status, "%s: operator %.100s: %s", function, op, text);
}
