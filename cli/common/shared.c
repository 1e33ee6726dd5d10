/* shared.c - see shared.h. */
#include "common/shared.h"

#include <dirent.h>
#include <limits.h>
#include <stdlib.h>
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

static int visible(const struct dirent *entry)
{
    return entry->d_name[0] != '.';
}

/* There is no file NAME: list the files of FOLDER that NAME could have meant. */
static weft_status fail_unknown(const char *name, const char *kind, const char *folder)
{
    struct wf_text text = {0};
    struct dirent **entries;
    int count = scandir(folder, &entries, visible, alphasort);
    weft_status status;

    for (int i = 0; i < count; i++) {
        wf_text_add(&text, "%s%s", i > 0 ? ", " : "", entries[i]->d_name);
        free(entries[i]);
    }
    if (count >= 0) free(entries);
    status =
        count > 0 && wf_text_status(&text) == WEFT_OK
            ? wf_fail(WEFT_ERR_NOT_FOUND, "%s: No such file or directory; weft has these %s: %s",
                      name, kind, text.data)
            : wf_fail(WEFT_ERR_NOT_FOUND, "%s: No such file or directory", name);
    wf_text_free(&text);
    return status;
}

weft_status cli_shared_path(const char *name, const char *kind, const char *suffix, char **out)
{
    struct wf_text text = {0};
    size_t folder;
    weft_status status;

    own_folder(&text);
    if (strchr(name, '/') != NULL || access(name, F_OK) == 0 || text.length == 0) {
        text.length = 0;
        wf_text_add(&text, "%s", name);
        return wf_text_take(&text, out);
    }
    wf_text_add(&text, WEFT_SHARED "/%s", kind);
    folder = text.length;
    for (int with_suffix = 0; with_suffix < 2; with_suffix++) {
        text.length = folder;
        wf_text_add(&text, "/%s%s", name, with_suffix ? suffix : "");
        WF_TRY(wf_text_status(&text));
        if (access(text.data, R_OK) == 0) return wf_text_take(&text, out);
    }
    text.data[folder] = '\0';
    status = fail_unknown(name, kind, text.data);
    wf_text_free(&text);
    return status;
}
