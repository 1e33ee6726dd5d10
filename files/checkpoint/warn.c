/* warn.c - what a user should know before tensors of a checkpoint are read. */
#include "file.h"

#include "weft/status.h"

static void warn_of_unlisted(const weft_checkpoint *checkpoint)
{
    const struct wf_unlisted *first;

    while (checkpoint->base != NULL)
        checkpoint = checkpoint->base;
    if (checkpoint->unlisted_count == 0) return;
    first = &checkpoint->unlisted[0];
    wf_log(WF_LOG_WARNING,
           "%s/%s does not list %zu tensor%s in files of the folder, such as \"%.200s\" of %s; "
           "left out. "
           "`weft inspect` lists all; opening the path of the index gives no warning",
           checkpoint->inputs.path, checkpoint->index, checkpoint->unlisted_count,
           WF_PLURAL(checkpoint->unlisted_count), first->name, first->file);
}

/* Lines of LAYOUT that decide nothing. */
static void warn_of_lines(const weft_layout_file *layout, const weft_checkpoint *checkpoint)
{
    const char **names = wf_calloc(checkpoint->tensor_count, sizeof *names);

    if (names == NULL) return; /* it is only a warning */
    for (size_t i = 0; i < checkpoint->tensor_count; i++)
        names[i] = checkpoint->tensors[i].name;
    if (weft_layout_file_warn(layout, checkpoint->tensor_count, names) != WEFT_OK)
        wf_log(WF_LOG_WARNING, "%s", weft_last_error());
    wf_free((void *)names);
}

void wf_checkpoint_warn(const weft_checkpoint *checkpoint, const weft_layout_file *layout)
{
    warn_of_unlisted(checkpoint);
    if (layout == NULL) return;
    warn_of_lines(layout, checkpoint);
    wf_heads_warn(checkpoint, layout);
    wf_joined_warn(checkpoint, layout);
}
