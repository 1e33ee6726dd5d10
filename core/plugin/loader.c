/* loader.c - opens plugin files and keeps them.
 *
 * A plugin stays open until the process ends: vendor libraries keep threads and exit handlers that
 * would outlive it.  So the process has one list.  The entry of a file in the list is not called
 * again, whichever context looks for it and under whichever name. */
#include "plugin.h"

#include "kit/trust.h"
#include "weft/status.h"

#include <dlfcn.h>
#include <pthread.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

typedef const weft_plugin *(*entry_function)(const weft_host *host);

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct wf_loaded *all; /* under the lock; never shrinks */

static struct wf_loaded *find_loaded(const struct stat *info)
{
    for (struct wf_loaded *loaded = all; loaded != NULL; loaded = loaded->next)
        if (loaded->device == info->st_dev && loaded->inode == info->st_ino) return loaded;
    return NULL;
}

/* PATH is what FILE was resolved to and examined as. */
static bool open_object(const char *file, const char *path, void **handle,
                        struct wf_verdict *verdict)
{
    *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (*handle == NULL) {
        const char *why = dlerror();
        return wf_refuse(verdict, WEFT_BACKEND_REASON_DLOPEN_FAILED, "%s cannot be loaded: %s",
                         file, why != NULL ? why : "the dynamic linker gives no reason");
    }
    return true;
}

/* dlsym also finds what a library that the plugin is linked with exports. */
static bool find_entry(void *handle, const char *file, struct wf_image *image,
                       entry_function *entry, struct wf_verdict *verdict)
{
    void *symbol = dlsym(handle, "weft_plugin_entry");

    if (symbol == NULL)
        return wf_refuse(verdict, WEFT_BACKEND_REASON_NO_ENTRY,
                         "%s does not export weft_plugin_entry", file);
    if (!wf_image_of_handle(handle, image))
        return wf_refuse(verdict, WEFT_BACKEND_REASON_NO_ENTRY,
                         "%s: the dynamic linker does not report its address", file);
    if (!wf_image_executes(image, symbol))
        return wf_refuse(verdict, WEFT_BACKEND_REASON_NO_ENTRY,
                         "%s does not define weft_plugin_entry itself: the symbol found is in "
                         "another library, perhaps one that it is linked with",
                         file);
    memcpy(entry, &symbol, sizeof *entry);
    return true;
}

static bool run_entry(entry_function entry, const struct wf_image *image, const char *file,
                      struct wf_tables *tables, struct wf_verdict *verdict)
{
    const weft_plugin *given;

    (void)wf_fail(WEFT_OK, "%s",
                  ""); /* clear the last error, so that an old text is not taken for the plugin's */
    given = entry(&wf_host);
    if (given == NULL)
        return wf_refuse(verdict, WEFT_BACKEND_REASON_ENTRY_REFUSED,
                         "%s refuses this weft, ABI %u.%u: %s", file, WEFT_ABI_MAJOR,
                         WEFT_ABI_MINOR,
                         weft_last_error()[0] != '\0' ? weft_last_error() : "it gives no reason");
    return wf_abi_check(given, image, file, tables, verdict);
}

/* The lock is held.  Files whose entry was not called are not kept in the list: they may be
 * repaired and tried again. */
static weft_status load_locked(const char *file, const char *path, const struct stat *info,
                               struct wf_loaded **loaded, struct wf_verdict *verdict)
{
    struct wf_loaded *fresh = find_loaded(info);
    struct wf_image image;
    entry_function entry = NULL;
    void *handle;

    if (fresh == NULL) {
        if (!open_object(file, path, &handle, verdict)) return WEFT_OK;
        if (!find_entry(handle, file, &image, &entry, verdict)) return WEFT_OK;
        fresh = wf_calloc(1, sizeof *fresh);
        if (fresh == NULL) return wf_fail_memory(sizeof *fresh);
        fresh->device = info->st_dev;
        fresh->inode = info->st_ino;
        fresh->next = all;
        all = fresh;
        if (run_entry(entry, &image, file, &fresh->tables, &fresh->verdict))
            fresh->verdict.reason = WEFT_BACKEND_REASON_USABLE;
    }
    *verdict = fresh->verdict;
    if (fresh->verdict.reason == WEFT_BACKEND_REASON_USABLE) *loaded = fresh;
    return WEFT_OK;
}

/* The name in libweft_plugin_NAME.so must equal the name in the descriptor.  Files with other
 * names, which only a path can name, are not checked. */
static void check_name(const char *file, const struct wf_loaded **loaded,
                       struct wf_verdict *verdict)
{
    const char *slash = strrchr(file, '/');
    const char *base = slash != NULL ? slash + 1 : file;
    const char *its = (*loaded)->tables.plugin.name;
    const char *name;
    size_t length;

    if (!wf_plugin_file_name(base, &name, &length)) return;
    if (strlen(its) == length && memcmp(its, name, length) == 0) return;
    (void)wf_refuse(verdict, WEFT_BACKEND_REASON_NAME_MISMATCH,
                    "%s calls itself \"%s\"; by its file name it must be \"%.*s\"", file, its,
                    (int)length, name);
    *loaded = NULL;
}

weft_status wf_load(const char *file, const char *own_file, bool secure,
                    const struct wf_loaded **loaded, struct wf_verdict *verdict)
{
    struct wf_loaded *found = NULL;
    weft_status status = WEFT_OK;
    struct wf_trusted trusted;
    struct stat info;

    *loaded = NULL;
    if (!wf_file_open(file, own_file, secure, &trusted, verdict)) return WEFT_OK;
    if (fstat(trusted.fd, &info) != 0) {
        (void)wf_refuse(verdict, WEFT_BACKEND_REASON_NOT_READABLE, "%s cannot be examined", file);
    } else if (wf_elf_check(trusted.fd, file, verdict)) {
        pthread_mutex_lock(&lock);
        status = load_locked(file, trusted.path, &info, &found, verdict);
        pthread_mutex_unlock(&lock);
    }
    close(trusted.fd);
    *loaded = found;
    if (found != NULL) check_name(file, loaded, verdict);
    return status;
}
