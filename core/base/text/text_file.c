/* text_file.c - files of text. */
#include "base/base.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

enum { LONGEST_TEXT = 16 << 20 };

static weft_status read_text(FILE *file, const char *path, const char *kind, struct wf_text *out)
{
    char part[4096];
    size_t count;

    while ((count = fread(part, 1, sizeof part, file)) > 0) {
        if (memchr(part, '\0', count) != NULL || out->length > LONGEST_TEXT)
            return wf_fail(WEFT_ERR_PARSE, "%s is not %s", path, kind);
        wf_text_append(out, part, count);
    }
    if (ferror(file)) return wf_fail(WEFT_ERR_SYSTEM, "%s: %s", path, kit_error_text(errno));
    wf_text_append(out, "", 0);
    return wf_text_status(out);
}

weft_status wf_text_file(const char *path, const char *kind, struct wf_text *out)
{
    FILE *file = fopen(path, "re");
    weft_status status;

    if (file == NULL)
        return wf_fail(errno == ENOENT ? WEFT_ERR_NOT_FOUND : WEFT_ERR_SYSTEM, "%s: %s", path,
                       kit_error_text(errno));
    status = read_text(file, path, kind, out);
    fclose(file);
    return status;
}
