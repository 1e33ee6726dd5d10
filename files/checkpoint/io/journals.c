/* journals.c - the names of the journals beside an output; file/reshard/journal.h has their
 * content.
 */
#include "checkpoint/io/output.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

char *wf_journal_path(const char *path, int32_t part)
{
    char tail[32];

    snprintf(tail, sizeof tail, part > 0 ? "%s-%d" : "%s", WF_JOURNAL, part);
    return wf_output_path(path, tail);
}

/* NAME is FIRST with a number behind it. */
static bool is_other(const char *name, const char *first)
{
    size_t length = strlen(first);
    const char *number = name + length + 1;

    return strncmp(name, first, length) == 0 && name[length] == '-' && number[0] != '\0' &&
           number[strspn(number, "0123456789")] == '\0';
}

/* Remove the journals of the other processes; that of the first one is FIRST in the folder PATH. */
static weft_status remove_others(const char *path, const char *first)
{
    DIR *folder = opendir(path);
    weft_status status = WEFT_OK;

    if (folder == NULL && errno == EACCES) return WEFT_OK;
    if (folder == NULL) return wf_fail(WEFT_ERR_SYSTEM, "%s: %s", path, kit_error_text(errno));
    for (struct dirent *entry; status == WEFT_OK && (entry = readdir(folder)) != NULL;)
        if (is_other(entry->d_name, first) && unlinkat(dirfd(folder), entry->d_name, 0) != 0 &&
            errno != ENOENT)
            status =
                wf_fail(WEFT_ERR_SYSTEM, "%s/%s: %s", path, entry->d_name, kit_error_text(errno));
    closedir(folder);
    return status;
}

weft_status wf_journals_remove(const char *path)
{
    char *first = wf_journal_path(path, 0), *slash;
    weft_status status = WEFT_OK;

    if (first == NULL) return wf_fail_memory(strlen(path) + 32);
    if (unlink(first) != 0 && errno != ENOENT)
        status = wf_fail(WEFT_ERR_SYSTEM, "%s: %s", first, kit_error_text(errno));
    slash = strrchr(first, '/');
    if (slash != NULL) *slash = '\0';
    if (status == WEFT_OK && slash != NULL)
        status = remove_others(slash > first ? first : "/", slash + 1);
    else if (status == WEFT_OK)
        status = remove_others(".", first);
    wf_free(first);
    return status;
}
