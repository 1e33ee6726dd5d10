/* output.c - see output.h. */
#include "checkpoint/io/output.h"

#include "checkpoint/file.h"
#include "checkpoint/io/at.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

enum { LARGE = 16 << 20, MOST_JOBS = 16, FLUSHED_BYTES = 64 << 20 };

static weft_status fail_system(const char *path)
{
    return wf_fail(WEFT_ERR_SYSTEM, "%s: %s", path, kit_error_text(errno));
}

static bool ends_with(const char *text, const char *end)
{
    size_t length = strlen(text), tail = strlen(end);

    return length >= tail && strcmp(text + length - tail, end) == 0;
}

char *wf_output_path(const char *path, const char *tail)
{
    size_t length = strlen(path);
    struct wf_text text = {0};
    char *out = NULL;

    while (length > 1 && path[length - 1] == '/')
        length--;
    wf_text_append(&text, path, length);
    wf_text_add(&text, "%s", tail);
    return wf_text_take(&text, &out) == WEFT_OK ? out : NULL;
}

/* A file that belongs to a checkpoint, and may be removed with it. */
static bool is_ours(const char *name)
{
    return ends_with(name, ".safetensors") || ends_with(name, ".safetensors.index.json") ||
           ends_with(name, ".distcp") || strcmp(name, ".metadata") == 0 ||
           strcmp(name, "weft.json") == 0;
}

/* ---- what is at the path ---- */

/* All entries of the folder PATH must belong to a checkpoint; with REMOVE they are removed, and
 * the folder with them. */
static weft_status empty_folder(const char *path, bool remove_all)
{
    DIR *folder = opendir(path);
    weft_status status = WEFT_OK;

    if (folder == NULL) return fail_system(path);
    for (struct dirent *entry; status == WEFT_OK && (entry = readdir(folder)) != NULL;) {
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0) continue;
        if (!is_ours(entry->d_name))
            status =
                wf_fail(WEFT_ERR_INVALID,
                        "%s has \"%s\", which is not a file of a checkpoint; weft replaces only "
                        "folders that have nothing else",
                        path, entry->d_name);
        else if (remove_all && unlinkat(dirfd(folder), entry->d_name, 0) != 0)
            status = fail_system(path);
    }
    closedir(folder);
    if (status == WEFT_OK && remove_all && rmdir(path) != 0) status = fail_system(path);
    return status;
}

static weft_status check_target(const struct wf_outputs *output)
{
    struct stat info;

    if (lstat(output->path, &info) != 0)
        return errno == ENOENT ? WEFT_OK : fail_system(output->path);
    if (!output->replace)
        return wf_fail(WEFT_ERR_INVALID,
                       "%s exists already; weft replaces it only if told to "
                       "(the option replace, in the tool --force)",
                       output->path);
    if (output->is_folder != S_ISDIR(info.st_mode) ||
        (!output->is_folder && !S_ISREG(info.st_mode)))
        return wf_fail(WEFT_ERR_INVALID, "%s is not a %s, so weft does not replace it",
                       output->path, output->is_folder ? "folder" : "regular file");
    return output->is_folder ? empty_folder(output->path, false) : WEFT_OK;
}

/* ---- the partial folder or file ---- */

static weft_status fail_partial(const struct wf_outputs *output)
{
    if (errno == ENOENT)
        return wf_fail(WEFT_ERR_SYSTEM, "%s: its folder does not exist: %s", output->path,
                       kit_error_text(errno));
    return fail_system(output->partial);
}

static weft_status lock_partial(struct wf_outputs *output)
{
    int flags =
        output->is_folder ? O_RDONLY | O_DIRECTORY | O_NOFOLLOW : O_RDWR | O_CREAT | O_NOFOLLOW;
    int fd = open(output->partial, flags | O_CLOEXEC, 0666);
    struct stat mine, there;

    if (fd < 0) return fail_partial(output);
    if (flock(fd, LOCK_EX | LOCK_NB) != 0) {
        int error = errno;
        close(fd);
        if (error == EWOULDBLOCK)
            return wf_fail(WEFT_ERR_INVALID,
                           "%s is being written by another process, or by a save of this one",
                           output->partial);
        return wf_fail(WEFT_ERR_SYSTEM, "%s: %s", output->partial, kit_error_text(error));
    }
    output->lock = fd;
    /* the process that held the lock may have committed the file that was opened here */
    if (fstat(fd, &mine) == 0 && lstat(output->partial, &there) == 0 &&
        mine.st_dev == there.st_dev && mine.st_ino == there.st_ino)
        return WEFT_OK;
    close(fd);
    output->lock = -1;
    return wf_fail(WEFT_ERR_INVALID, "%s was being written by another process", output->partial);
}

/* Take over what an interrupted run left: remove its files. */
static weft_status clear_partial(struct wf_outputs *output)
{
    DIR *folder;
    weft_status status = WEFT_OK;

    if (!output->is_folder)
        return ftruncate(output->lock, 0) == 0 ? WEFT_OK : fail_system(output->partial);
    WF_TRY(empty_folder(output->partial, false));
    folder = opendir(output->partial);
    if (folder == NULL) return fail_system(output->partial);
    for (struct dirent *entry; status == WEFT_OK && (entry = readdir(folder)) != NULL;)
        if (is_ours(entry->d_name) && unlinkat(dirfd(folder), entry->d_name, 0) != 0)
            status = fail_system(output->partial);
    closedir(folder);
    return status;
}

/* Open what another process has made and locked. */
static weft_status join_partial(struct wf_outputs *output)
{
    int flags = output->is_folder ? O_RDONLY | O_DIRECTORY : O_RDWR;

    output->lock = open(output->partial, flags | O_NOFOLLOW | O_CLOEXEC);
    return output->lock >= 0 ? WEFT_OK : fail_system(output->partial);
}

static weft_status make_partial(struct wf_outputs *output)
{
    if (output->mode == WF_OUTPUT_JOIN) return join_partial(output);
    if (output->is_folder && mkdir(output->partial, 0777) != 0 && errno != EEXIST)
        return fail_partial(output);
    WF_TRY(lock_partial(output));
    if (output->mode == WF_OUTPUT_RESUME) return WEFT_OK;
    WF_TRY(wf_journals_remove(output->path)); /* before the files that they describe */
    return clear_partial(output);
}

weft_status wf_outputs_begin(struct wf_outputs *output, const char *path, bool is_folder,
                             bool replace, enum wf_outputs_mode mode, size_t count)
{
    weft_status status;

    if (path[0] == '\0') return wf_fail(WEFT_ERR_INVALID, "the path is empty");
    *output = (struct wf_outputs){.path = wf_output_path(path, ""),
                                  .partial = wf_output_path(path, WF_PARTIAL),
                                  .is_folder = is_folder,
                                  .replace = replace,
                                  .mode = mode,
                                  .keep = mode != WF_OUTPUT_NEW,
                                  .lock = -1,
                                  .files = wf_calloc(count, sizeof *output->files),
                                  .count = count};
    for (size_t i = 0; i < count && output->files != NULL; i++)
        output->files[i].fd = -1;
    status = output->path == NULL || output->partial == NULL || output->files == NULL
                 ? wf_fail_memory(strlen(path) + count * sizeof *output->files)
             : mode == WF_OUTPUT_NONE ? WEFT_OK
                                      : check_target(output);
    if (status == WEFT_OK && mode != WF_OUTPUT_NONE) status = make_partial(output);
    if (status != WEFT_OK) wf_outputs_end(output);
    return status;
}

/* ---- files ---- */

/* The reason why FILE cannot have its size, or 0. */
static int allocate(const struct wf_output_file *file)
{
    if (file->fd < 0 || file->bytes == 0) return 0;
    if (!wf_may_have_size(file->bytes)) return errno;
    if (fallocate(file->fd, 0, 0, (off_t)file->bytes) == 0) return 0;
    if (errno == EOPNOTSUPP || errno == ENOSYS || errno == EINTR) {
        if (ftruncate(file->fd, (off_t)file->bytes) == 0) return 0;
    }
    return errno;
}

struct allocation {
    const struct wf_outputs *output;
    _Atomic size_t next;
    pthread_mutex_t guard;
    size_t failed; /* the first file that has no room; `count`: none */
    int error;
};

static void *allocate_files(void *argument)
{
    struct allocation *all = argument;
    size_t index;

    while ((index = atomic_fetch_add(&all->next, 1)) < all->output->count) {
        int error = allocate(&all->output->files[index]);
        pthread_mutex_lock(&all->guard);
        if (error != 0 && index < all->failed) {
            all->failed = index;
            all->error = error;
        }
        pthread_mutex_unlock(&all->guard);
    }
    return NULL;
}

/* A file system in memory takes its pages one by one: large files are worth a thread each. */
static int32_t allocating_jobs(const struct wf_outputs *output)
{
    long processors = sysconf(_SC_NPROCESSORS_ONLN);
    int32_t large = 0;

    for (size_t i = 0; i < output->count; i++)
        large += large < MOST_JOBS && output->files[i].bytes >= LARGE;
    return processors < large ? (int32_t)wf_max_i64(processors, 1) : (int32_t)wf_max_i64(large, 1);
}

weft_status wf_outputs_allocate(struct wf_outputs *output)
{
    struct allocation all = {.output = output, .failed = output->count};

    if (output->mode != WF_OUTPUT_NEW) return WEFT_OK;
    pthread_mutex_init(&all.guard, NULL);
    wf_jobs_run(allocating_jobs(output), allocate_files, &all);
    pthread_mutex_destroy(&all.guard);
    if (all.failed == output->count) return WEFT_OK;
    return wf_fail(WEFT_ERR_SYSTEM, "%s%s%s: %" PRIu64 " bytes are needed: %s",
                   output->is_folder ? output->path : "", output->is_folder ? "/" : "",
                   output->files[all.failed].name, output->files[all.failed].bytes,
                   kit_error_text(all.error));
}

/* A file of an earlier run must have all its bytes. */
static weft_status check_size(int fd, const char *name, uint64_t bytes)
{
    struct stat info;

    if (fstat(fd, &info) != 0) return fail_system(name);
    if ((uint64_t)info.st_size == bytes) return WEFT_OK;
    return wf_fail(WEFT_ERR_INVALID,
                   "%s has %" PRIu64 " bytes, but %" PRIu64
                   " are needed; it was changed after the run that is resumed",
                   name, (uint64_t)info.st_size, bytes);
}

weft_status wf_outputs_open(struct wf_outputs *output, size_t index, const char *name,
                            uint64_t bytes)
{
    struct wf_output_file *file = &output->files[index];

    file->name = wf_strdup(output->is_folder ? name : output->path);
    if (file->name == NULL) return wf_fail_memory(strlen(name) + 1);
    file->bytes = bytes;
    if (output->mode == WF_OUTPUT_NONE) return WEFT_OK;
    if (output->is_folder)
        file->fd = openat(output->lock, name,
                          O_RDWR | O_CLOEXEC | O_NOFOLLOW |
                              (output->mode != WF_OUTPUT_NEW ? 0 : O_CREAT | O_EXCL),
                          0666);
    else
        file->fd = fcntl(output->lock, F_DUPFD_CLOEXEC, 0);
    if (file->fd < 0)
        return wf_fail(WEFT_ERR_SYSTEM, "%s/%s: %s", output->partial, name, kit_error_text(errno));
    return output->mode != WF_OUTPUT_NEW ? check_size(file->fd, file->name, bytes) : WEFT_OK;
}

weft_status wf_outputs_write(struct wf_outputs *output, size_t index, uint64_t offset,
                             const void *bytes, size_t count)
{
    struct wf_output_file *file = &output->files[index];

    if (!wf_write_at(file->fd, bytes, count, offset)) return fail_system(file->name);
    atomic_store(&file->written, true);
    return WEFT_OK;
}

weft_status wf_outputs_add_sums(struct wf_outputs *output, const void *bytes, size_t count)
{
    struct wf_output_file file = {.name = "weft.json"};
    struct wf_outputs alone = {.files = &file, .count = 1};
    weft_status status;

    file.fd =
        openat(output->lock, file.name, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0666);
    if (file.fd < 0) return fail_system(file.name);
    status = wf_outputs_write(&alone, 0, 0, bytes, count);
    if (status == WEFT_OK && fsync(file.fd) != 0) status = fail_system(file.name);
    close(file.fd);
    return status;
}

/* ---- commit ---- */

static weft_status sync_parent(const struct wf_outputs *output)
{
    const char *slash = strrchr(output->path, '/');
    char *parent =
        slash == NULL
            ? wf_strdup(".")
            : wf_strndup(output->path, slash == output->path ? 1 : (size_t)(slash - output->path));
    weft_status status = WEFT_OK;
    int fd;

    if (parent == NULL) return wf_fail_memory(strlen(output->path));
    fd = open(parent, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0 || (fsync(fd) != 0 && errno != EINVAL && errno != EROFS))
        status = fail_system(parent);
    if (fd >= 0) close(fd);
    wf_free(parent);
    return status;
}

static weft_status fail_lost(struct wf_outputs *output, const char *path)
{
    output->lost = true;
    return fail_system(path);
}

static weft_status check_lost(const struct wf_outputs *output)
{
    if (!output->lost) return WEFT_OK;
    return wf_fail(WEFT_ERR_SYSTEM,
                   "%s could not be flushed to the disk before, so what was written may be lost",
                   output->partial);
}

/* Write what the system has of FILE to the disk, part by part: a flush at once can take many
 * minutes, without a sign of progress.  An error is reported here or by the flush that follows, not
 * by both.  Where there is no such call, that flush does all. */
static bool flush_parts(const struct wf_output_file *file, void (*goes_on)(void *self), void *self)
{
    for (uint64_t at = 0; at < file->bytes; at += FLUSHED_BYTES) {
        if (sync_file_range(file->fd, (off_t)at, FLUSHED_BYTES,
                            SYNC_FILE_RANGE_WAIT_BEFORE | SYNC_FILE_RANGE_WRITE |
                                SYNC_FILE_RANGE_WAIT_AFTER) != 0)
            return errno == ENOSYS || errno == EINVAL || errno == ESPIPE || errno == EPERM;
        goes_on(self);
    }
    return true;
}

weft_status wf_outputs_flush(struct wf_outputs *output, void (*goes_on)(void *self), void *self)
{
    WF_TRY(check_lost(output));
    for (size_t i = 0; i < output->count; i++) {
        struct wf_output_file *file = &output->files[i];
        if (file->fd < 0 || !atomic_exchange(&file->written, false)) continue;
        if ((goes_on != NULL && !flush_parts(file, goes_on, self)) || fdatasync(file->fd) != 0)
            return fail_lost(output, file->name);
        if (goes_on != NULL) goes_on(self);
    }
    return WEFT_OK;
}

static weft_status sync_files(struct wf_outputs *output)
{
    WF_TRY(check_lost(output));
    for (size_t i = 0; i < output->count; i++)
        if (output->files[i].fd >= 0 && fsync(output->files[i].fd) != 0)
            return fail_lost(output, output->files[i].name);
    if (output->is_folder && fsync(output->lock) != 0 && errno != EINVAL)
        return fail_lost(output, output->partial);
    return WEFT_OK;
}

/* The new files have their names.  If old files cannot be removed, the commit still succeeds. */
static void remove_old(struct wf_outputs *output, const char *old)
{
    output->committed = true;
    if (empty_folder(old, true) != WEFT_OK)
        wf_log(WF_LOG_WARNING, "%s is written, but the old one was not removed: %s", output->path,
               weft_last_error());
}

/* Two folders cannot change their names at once here.  In between, the old one is PATH.weft-old. */
static weft_status replace_by_steps(struct wf_outputs *output)
{
    char *old = wf_output_path(output->path, WF_OLD);
    weft_status status = WEFT_OK;
    struct stat info;

    if (old == NULL) return wf_fail_memory(strlen(output->path) + sizeof WF_OLD);
    if (lstat(old, &info) == 0) status = empty_folder(old, true);
    if (status == WEFT_OK && rename(output->path, old) != 0) status = fail_system(output->path);
    if (status == WEFT_OK && rename(output->partial, output->path) != 0) {
        status = fail_system(output->path);
        if (rename(old, output->path) != 0)
            status = wf_fail_context(status, "the old checkpoint is now %s", old);
    } else if (status == WEFT_OK) {
        remove_old(output, old);
    }
    wf_free(old);
    return status;
}

/* Exchange the old folder for the new one, then remove the old one. */
static weft_status replace_folder(struct wf_outputs *output)
{
    WF_TRY(empty_folder(output->path, false));
    if (renameat2(AT_FDCWD, output->partial, AT_FDCWD, output->path, RENAME_EXCHANGE) == 0) {
        remove_old(output, output->partial);
        return WEFT_OK;
    }
    if (errno != ENOSYS && errno != EINVAL) return fail_system(output->path);
    return replace_by_steps(output);
}

static weft_status give_name(struct wf_outputs *output)
{
    struct stat info;

    if (lstat(output->path, &info) == 0) {
        if (!output->replace)
            return wf_fail(WEFT_ERR_INVALID, "%s exists now; it did not when writing began",
                           output->path);
        if (output->is_folder) return replace_folder(output);
        return rename(output->partial, output->path) == 0 ? WEFT_OK : fail_system(output->path);
    }
    if (renameat2(AT_FDCWD, output->partial, AT_FDCWD, output->path, RENAME_NOREPLACE) == 0)
        return WEFT_OK;
    if (errno != ENOSYS && errno != EINVAL) return fail_system(output->path);
    return rename(output->partial, output->path) == 0 ? WEFT_OK : fail_system(output->path);
}

weft_status wf_outputs_commit(struct wf_outputs *output)
{
    WF_TRY(sync_files(output));
    WF_TRY(give_name(output));
    output->committed = true;
    return sync_parent(output);
}

void wf_outputs_end(struct wf_outputs *output)
{
    for (size_t i = 0; output->files != NULL && i < output->count; i++) {
        struct wf_output_file *file = &output->files[i];
        if (file->fd >= 0) close(file->fd);
        if (file->name != NULL && output->is_folder && !output->committed && !output->keep)
            unlinkat(output->lock, file->name, 0);
        wf_free(file->name);
    }
    if (output->lock >= 0 && !output->committed && !output->keep) {
        if (output->is_folder) {
            unlinkat(output->lock, "weft.json", 0);
            rmdir(output->partial);
        } else {
            unlink(output->partial);
        }
    }
    if (output->lock >= 0) close(output->lock);
    wf_free(output->files);
    wf_free(output->path);
    wf_free(output->partial);
    *output = (struct wf_outputs){.lock = -1};
}
