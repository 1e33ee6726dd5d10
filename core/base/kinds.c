/* kinds.c - refuses pointers to objects of another kind, or that were released. */
#include "kinds.h"

#include <stdio.h>
#include <string.h>

weft_status wf_fail_fork(const char *function)
{
    return wf_fail(WEFT_ERR_INVALID,
                   "%s: this process is a fork of the process that called weft_init and cannot use "
                   "its objects; fork before weft_init, or exec a program in the child",
                   function);
}

static const char *const names[] = {
    [0] = "weft_context",
    [WF_KIND_COMM - WF_KIND_CONTEXT] = "weft_comm",
    [WF_KIND_SYMM - WF_KIND_CONTEXT] = "weft_symm",
    [WF_KIND_BOUND - WF_KIND_CONTEXT] = "weft_bound",
    [WF_KIND_THREADS - WF_KIND_CONTEXT] = "weft_threads",
    [WF_KIND_RENDEZVOUS - WF_KIND_CONTEXT] = "weft_rendezvous",
    [WF_KIND_WORK - WF_KIND_CONTEXT] = "weft_work",
    [WF_KIND_MESH - WF_KIND_CONTEXT] = "weft_mesh",
    [WF_KIND_SPEC - WF_KIND_CONTEXT] = "weft_spec",
    [WF_KIND_PLAN - WF_KIND_CONTEXT] = "weft_plan",
    [WF_KIND_TENSOR - WF_KIND_CONTEXT] = "weft_tensor",
    [WF_KIND_CHECKPOINT - WF_KIND_CONTEXT] = "weft_checkpoint",
    [WF_KIND_CHECKPOINT_WRITER - WF_KIND_CONTEXT] = "weft_checkpoint_writer",
    [WF_KIND_LAYOUT - WF_KIND_CONTEXT] = "weft_layout_file",
    [WF_KIND_RESHARD - WF_KIND_CONTEXT] = "weft_reshard",
    [WF_KIND_RULES - WF_KIND_CONTEXT] = "weft_checkpoint_rules",
    [WF_KIND_SIMULATED_COMM - WF_KIND_CONTEXT] = "weft_comm",
    [WF_KIND_CP_PLAN - WF_KIND_CONTEXT] = "weft_cp_plan",
    [WF_KIND_STYLES - WF_KIND_CONTEXT] = "weft_styles",
};

const char *wf_kind_name(uint64_t made)
{
    uint64_t index = (made >> 32) - WF_KIND_CONTEXT;

    return index < WF_COUNT(names) ? names[index] : NULL;
}

enum wf_kind wf_kind_find(const char *type)
{
    for (size_t i = 0; i < WF_COUNT(names); i++)
        if (strcmp(names[i], type) == 0) return WF_KIND_CONTEXT + (enum wf_kind)i;
    return 0;
}

/* Why WHAT, "weft_plan_bind: comm", which has MADE, is not of KIND. */
static weft_status fail_kind(const char *what, uint64_t made, enum wf_kind kind)
{
    const char *is = wf_kind_name(made), *wanted = wf_kind_name(WF_OF_KIND(kind));

    if (made == wf_released(kind))
        return wf_fail(WEFT_ERR_INVALID, "%s is a %s that was released", what, wanted);
    if (is == NULL)
        return wf_fail(WEFT_ERR_INVALID, "%s does not point to a %s; it may have been released",
                       what, wanted);
    return wf_fail(WEFT_ERR_INVALID, "%s is a %s; expected a %s%s", what, is, wanted,
                   made >> 32 == WF_KIND_CONTEXT && kind == WF_KIND_COMM
                       ? "; weft_world returns the communicator of all ranks"
                       : "");
}

weft_status wf_fail_unusable(const char *function, const char *argument, uint64_t made,
                             enum wf_kind kind)
{
    char what[96];

    if (made >> 32 == kind && made != wf_released(kind)) return wf_fail_fork(function);
    snprintf(what, sizeof what, "%s: %s", function, argument);
    return fail_kind(what, made, kind);
}

weft_status wf_refuse_kind(const void *object, enum wf_kind kind, const char *what)
{
    WF_TRY(wf_require(object, what));
    return fail_kind(what, *(const uint64_t *)object, kind);
}

void wf_warn_unusable(const char *function, uint64_t made, enum wf_kind kind)
{
    if (made == wf_released(kind))
        wf_log(WF_LOG_WARNING, "%s: this %s was released before", function,
               wf_kind_name(WF_OF_KIND(kind)));
    else if (made >> 32 != kind)
        wf_log(WF_LOG_WARNING, "%s: the pointer is not to a %s; it may have been released",
               function, wf_kind_name(WF_OF_KIND(kind)));
}
