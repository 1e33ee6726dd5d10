/* shipped.c - texts that come with weft, found by name. */
#include "base/base.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

static const struct wf_shipped *find(const struct wf_shipped_list *list, const char *name)
{
    size_t length = strlen(name), suffix = strlen(list->suffix);

    if (length > suffix && strcmp(name + length - suffix, list->suffix) == 0) length -= suffix;
    for (size_t i = 0; i < list->count; i++)
        if (strlen(list->all[i].name) == length && memcmp(list->all[i].name, name, length) == 0)
            return &list->all[i];
    return NULL;
}

/* A checkpoint in a folder "llama" does not hide the layout of that name. */
static bool is_file(const char *path)
{
    struct stat info;

    return stat(path, &info) == 0 ? !S_ISDIR(info.st_mode) : errno != ENOENT;
}

weft_status wf_shipped_read(const struct wf_shipped_list *list, const char *path,
                            struct wf_text *out)
{
    const struct wf_shipped *found = find(list, path);
    struct wf_text names = {0};

    if (strchr(path, '/') != NULL || path[0] == '\0' || is_file(path))
        return wf_text_file(path, list->kind, out);
    if (found != NULL) {
        wf_text_add(out, "%s", found->text);
        return wf_text_status(out);
    }
    for (size_t i = 0; i < list->count; i++)
        wf_text_add(&names, "%s%s", i > 0 ? ", " : "", list->all[i].name);
    return wf_fail_text(WEFT_ERR_NOT_FOUND, &names,
                        "%s: No such file or directory; nor is it one of those that come with "
                        "weft: %s",
                        path, names.data != NULL ? names.data : "");
}
