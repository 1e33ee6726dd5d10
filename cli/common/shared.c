/* shared.c - see shared.h. */
#include "common/shared.h"

#include <limits.h>
#include <string.h>
#include <unistd.h>

/* The folder of this program, with a slash at its end; empty: not known. */
static void own_folder(struct wf_text *out)
{
    char path[PATH_MAX];
    ssize_t length = readlink("/proc/self/exe", path, sizeof path);

    while (length > 0 && path[length - 1] != '/')
        length--;
    if (length > 0) wf_text_append(out, path, (size_t)length);
}

weft_status cli_shared_path(const char *name, const char *kind, const char *suffix, char **out)
{
    const char *const tails[] = {"", suffix};
    struct wf_text text = {0};

    for (size_t i = 0; i < 2 && strchr(name, '/') == NULL && access(name, F_OK) != 0; i++) {
        text.length = 0;
        own_folder(&text);
        if (text.length == 0) break;
        wf_text_add(&text, WEFT_SHARED "/%s/%s%s", kind, name, tails[i]);
        WF_TRY(wf_text_status(&text));
        if (access(text.data, R_OK) == 0) return wf_text_take(&text, out);
    }
    text.length = 0;
    wf_text_add(&text, "%s", name);
    return wf_text_take(&text, out);
}
