/* search.c - the directories that are searched for plugins, and the plugin files in them.  The
 * working directory is never searched, so relative entries are refused. */
#include "plugin.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifndef WEFT_LIBDIR
#error "the build defines WEFT_LIBDIR, such as \"lib\""
#endif

static const char file_prefix[] = "libweft_plugin_";
static const char file_suffix[] = ".so";
static const char beside[] = "beside libweft";

bool wf_plugin_file_name(const char *file, const char **name, size_t *length)
{
    size_t total = strlen(file);
    size_t fixed = strlen(file_prefix) + strlen(file_suffix);

    if (total <= fixed || strncmp(file, file_prefix, strlen(file_prefix)) != 0 ||
        strcmp(file + total - strlen(file_suffix), file_suffix) != 0)
        return false;
    *name = file + strlen(file_prefix);
    *length = total - fixed;
    return wf_plugin_name_valid(*name, *length);
}

/* ---- directories ---- */

void wf_directories_free(struct wf_directories *directories)
{
    for (size_t i = 0; i < directories->count; i++)
        wf_free(directories->items[i].path);
    wf_free(directories->items);
    *directories = (struct wf_directories){0};
}

/* Takes ownership of PATH, also on failure. */
static weft_status add_directory(struct wf_directories *list, char *path, const char *origin)
{
    size_t bytes = (list->count + 1) * sizeof *list->items;
    struct wf_directory *grown = wf_realloc(list->items, bytes);
    struct wf_directory added = {path, origin, NULL};

    if (grown == NULL) {
        wf_free(path);
        return wf_fail_memory(bytes);
    }
    list->items = grown;
    if (path[0] != '/') {
        added.refused = "it is not an absolute path";
        wf_log(WF_LOG_WARNING,
               "%s: \"%s\" is not searched, because it is not an absolute path; write it from / on",
               origin, path);
    }
    for (size_t i = 0; i < list->count; i++)
        if (strcmp(list->items[i].path, path) == 0) added.refused = "it is listed before";
    list->items[list->count++] = added;
    return WEFT_OK;
}

static weft_status add_copy(struct wf_directories *list, const char *path, size_t length,
                            const char *origin)
{
    char *copy;

    while (length > 1 && path[length - 1] == '/')
        length--;
    copy = wf_strndup(path, length);
    return copy != NULL ? add_directory(list, copy, origin) : wf_fail_memory(length + 1);
}

/* Empty entries, as in "/a::/b", are skipped: elsewhere they mean the working directory. */
static weft_status add_list(struct wf_directories *list, const char *paths, const char *origin)
{
    for (const char *at = paths; at != NULL && *at != '\0'; at += *at == ':') {
        size_t length = strcspn(at, ":");

        if (length > 0) WF_TRY(add_copy(list, at, length, origin));
        at += length;
    }
    return WEFT_OK;
}

static weft_status add_joined(struct wf_directories *list, const char *base, size_t length,
                              const char *below)
{
    struct wf_text text = {0};
    char *path;

    wf_text_add(&text, "%.*s%s", (int)length, base, below);
    WF_TRY(wf_text_take(&text, &path));
    return add_directory(list, path, beside);
}

/* True if the path PATH, of LENGTH bytes, ends with "/" and NAME. */
static bool ends_with(const char *path, size_t length, const char *name)
{
    size_t bytes = strlen(name);

    return length > bytes && path[length - bytes - 1] == '/' &&
           memcmp(path + length - bytes, name, bytes) == 0;
}

/* libweft lies in PREFIX/LIBDIR, in the build tree in BUILD/lib, and the plugins in the folder
 * weft beside it; a program that the core is linked into lies in PREFIX/bin. */
static weft_status add_beside(struct wf_directories *list, const char *own_file)
{
    static const char *const libraries[] = {WEFT_LIBDIR, "lib"};
    const char *slash = strrchr(own_file, '/');
    size_t folder, parent;

    if (WEFT_LIBDIR[0] == '/')
        return add_copy(list, WEFT_LIBDIR "/weft", sizeof WEFT_LIBDIR "/weft" - 1, beside);
    if (slash == NULL || own_file[0] != '/') return WEFT_OK;
    folder = (size_t)(slash - own_file);
    for (parent = folder; parent > 0 && own_file[parent - 1] != '/';)
        parent--;
    if (parent > 0) parent--;
    if (strcmp(slash, "/weft") != 0) WF_TRY(add_joined(list, own_file, folder, "/weft"));
    for (size_t i = 0; i < WF_COUNT(libraries); i++)
        if (ends_with(own_file, folder, libraries[i])) return WEFT_OK;
    WF_TRY(add_joined(list, own_file, parent, "/" WEFT_LIBDIR "/weft"));
    if (strcmp(WEFT_LIBDIR, "lib") == 0) return WEFT_OK;
    return add_joined(list, own_file, parent, "/lib/weft"); /* the build tree */
}

weft_status wf_search_directories(const char *option, const char *variable, const char *own_file,
                                  struct wf_directories *out)
{
    struct wf_directories list = {0};
    weft_status status = add_list(&list, option, "the plugin_path option");

    if (status == WEFT_OK) status = add_list(&list, variable, "WEFT_PLUGIN_PATH");
    if (status == WEFT_OK && own_file != NULL) status = add_beside(&list, own_file);
    if (status != WEFT_OK) {
        wf_directories_free(&list);
        return status;
    }
    *out = list;
    return WEFT_OK;
}

/* The kernel reports the file behind an address as an absolute path without links, even if the
 * program was started through PATH or the library was found through a relative entry. */
weft_status wf_search_own_file(char **out)
{
    uintptr_t here = (uintptr_t)&wf_search_own_file;
    char line[4096 + 256];
    char *copy = NULL;
    FILE *maps = fopen("/proc/self/maps", "re");
    bool found = false;

    while (maps != NULL && !found && fgets(line, sizeof line, maps) != NULL) {
        uintptr_t start, end;
        char *path = strchr(line, '/');

        if (path == NULL || sscanf(line, "%" SCNxPTR "-%" SCNxPTR, &start, &end) != 2) continue;
        if (here < start || here >= end) continue;
        found = true;
        path[strcspn(path, "\n")] = '\0';
        copy = wf_strdup(path);
    }
    if (maps != NULL) fclose(maps);
    if (found && copy == NULL) return wf_fail_memory(sizeof line);
    *out = copy;
    return WEFT_OK;
}

/* ---- files ---- */

static int by_name(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

void wf_search_files_free(char **names, size_t count)
{
    for (size_t i = 0; i < count; i++)
        wf_free(names[i]);
    wf_free(names);
}

static weft_status add_name(char ***names, size_t *count, const char *name)
{
    size_t bytes = (*count + 1) * sizeof **names;
    char **grown = wf_realloc(*names, bytes);

    if (grown == NULL) return wf_fail_memory(bytes);
    *names = grown;
    grown[*count] = wf_strdup(name);
    if (grown[*count] == NULL) return wf_fail_memory(strlen(name) + 1);
    (*count)++;
    return WEFT_OK;
}

weft_status wf_search_files(const char *directory, char ***names, size_t *count)
{
    DIR *listing = opendir(directory);
    weft_status status = WEFT_OK;
    char **found = NULL;
    size_t found_count = 0, length;
    const struct dirent *entry;
    const char *name;

    if (listing == NULL && (errno == ENOENT || errno == ENOTDIR))
        return wf_fail(WEFT_ERR_NOT_FOUND, "%s",
                       errno == ENOENT ? "does not exist" : "is not a directory");
    if (listing == NULL)
        return wf_fail(WEFT_ERR_SYSTEM, "cannot be listed: %s", kit_error_text(errno));
    while (status == WEFT_OK && (entry = readdir(listing)) != NULL)
        if (wf_plugin_file_name(entry->d_name, &name, &length))
            status = add_name(&found, &found_count, entry->d_name);
    closedir(listing);
    if (status != WEFT_OK) {
        wf_search_files_free(found, found_count);
        return status;
    }
    if (found_count > 0) qsort(found, found_count, sizeof *found, by_name);
    *names = found;
    *count = found_count;
    return WEFT_OK;
}
