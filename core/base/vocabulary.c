/* vocabulary.c - names and sizes of dtypes, for users, and names of steps. */
#include "base.h"

#include "weft/cost.h"
#include "weft/status.h"

#include <string.h>

const char *weft_dtype_name(enum weft_dtype dtype)
{
    return wf_dtype_name(dtype);
}

size_t weft_dtype_bytes(enum weft_dtype dtype)
{
    return wf_dtype_bytes(dtype);
}

weft_status weft_dtype_parse(const char *text, enum weft_dtype *out)
{
    struct wf_text reason = {0};
    weft_status status;
    uint32_t dtype;

    WF_TRY(wf_require(text, "weft_dtype_parse: text"));
    WF_TRY(wf_require(out, "weft_dtype_parse: out"));
    if (wf_dtype_find(text, strlen(text), &dtype)) {
        *out = (enum weft_dtype)dtype;
        return WEFT_OK;
    }
    wf_dtype_explain(text, strlen(text), &reason);
    status = wf_text_status(&reason);
    if (status == WEFT_OK) status = wf_fail(WEFT_ERR_PARSE, "weft_dtype_parse: %s", reason.data);
    wf_text_free(&reason);
    return status;
}

const char *weft_step_name(enum weft_step_kind kind)
{
    static const char *const names[] = {
#define ROW(name, value, text) [value] = text,
        WEFT_STEP_LIST(ROW)
#undef ROW
    };

    return kind < WF_COUNT(names) ? names[kind] : NULL;
}
