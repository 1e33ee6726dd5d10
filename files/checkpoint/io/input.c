/* input.c - the files of a checkpoint.
 *
 * Files are opened by their names in a folder that stays open.  A checkpoint may have more files
 * than a process may have descriptors, so files that are not being read are closed again when many
 * are open.  A file that is not the one that was added, or that was modified since, is an error. */
#include "checkpoint/file.h"
#include "checkpoint/io/at.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { MOST_OPEN = 200 };

bool wf_ends_with(const char *text, const char *end)
{
    size_t length = strlen(text), tail = strlen(end);

    return length >= tail && strcmp(text + length - tail, end) == 0;
}

bool wf_file_name_is_safe(const char *name)
{
    return name[0] != '\0' && strchr(name, '/') == NULL && strcmp(name, ".") != 0 &&
           strcmp(name, "..") != 0;
}

weft_status wf_file_name_check(const char *name, const char *document)
{
    if (wf_file_name_is_safe(name)) return WEFT_OK;
    return wf_fail(
        WEFT_ERR_PARSE,
        "%s names the file \"%.200s\"; a file of a checkpoint must lie in its folder, so "
        "its name has no \"/\" and is not \"..\"",
        document, name);
}

weft_status wf_inputs_begin(struct wf_inputs *inputs, const char *path)
{
    char *copy = wf_strdup(path);
    int folder;

    if (copy == NULL) return wf_fail_memory(strlen(path) + 1);
    folder = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (folder < 0) {
        wf_free(copy);
        return wf_fail(errno == ENOENT ? WEFT_ERR_NOT_FOUND : WEFT_ERR_SYSTEM, "%s: %s", path,
                       kit_error_text(errno));
    }
    *inputs = (struct wf_inputs){.path = copy, .folder = folder};
    pthread_mutex_init(&inputs->guard, NULL);
    return WEFT_OK;
}

void wf_inputs_end(struct wf_inputs *inputs)
{
    if (inputs->path == NULL) return;
    for (size_t i = 0; i < inputs->count; i++) {
        if (inputs->list[i]->fd >= 0) close(inputs->list[i]->fd);
        wf_free(inputs->list[i]->name);
        wf_free(inputs->list[i]);
    }
    close(inputs->folder);
    wf_free(inputs->list);
    wf_free(inputs->path);
    pthread_mutex_destroy(&inputs->guard);
    *inputs = (struct wf_inputs){0};
}

static weft_status fail_file(const struct wf_inputs *inputs, const char *name, int error)
{
    return wf_fail(error == ENOENT ? WEFT_ERR_NOT_FOUND : WEFT_ERR_SYSTEM, "%s/%s: %s",
                   inputs->path, name,
                   error == ENOENT ? "this file is missing" : kit_error_text(error));
}

/* Open NAME; O_NONBLOCK, so that a pipe does not block. */
static int open_file(const struct wf_inputs *inputs, const char *name, struct stat *info)
{
    int fd = openat(inputs->folder, name, O_RDONLY | O_CLOEXEC | O_NONBLOCK);

    if (fd >= 0 && fstat(fd, info) != 0) {
        int error = errno;
        close(fd);
        errno = error;
        fd = -1;
    }
    return fd;
}

static bool is_same(const struct wf_input *input, const struct stat *info)
{
    return info->st_dev == input->device && info->st_ino == input->inode &&
           (uint64_t)info->st_size == input->size &&
           info->st_mtim.tv_sec == input->modified.tv_sec &&
           info->st_mtim.tv_nsec == input->modified.tv_nsec;
}

weft_status wf_inputs_add(struct wf_inputs *inputs, const char *name, uint32_t *index)
{
    struct wf_input *input;
    struct stat info;
    int fd;

    for (size_t i = inputs->count; i-- > 0;) /* most often it is the last one */
        if (strcmp(inputs->list[i]->name, name) == 0) {
            *index = (uint32_t)i;
            return WEFT_OK;
        }
    WF_TRY(wf_grow(&inputs->list, sizeof *inputs->list, inputs->count, &inputs->capacity));
    fd = open_file(inputs, name, &info);
    if (fd < 0) return fail_file(inputs, name, errno);
    close(fd);
    if (!S_ISREG(info.st_mode))
        return wf_fail(WEFT_ERR_INVALID, "%s/%s is not a regular file", inputs->path, name);
    input = wf_calloc(1, sizeof *input);
    if (input != NULL) input->name = wf_strdup(name);
    if (input == NULL || input->name == NULL) {
        wf_free(input);
        return wf_fail_memory(sizeof *input);
    }
    input->size = (uint64_t)info.st_size;
    input->device = info.st_dev;
    input->inode = info.st_ino;
    input->modified = info.st_mtim;
    input->fd = -1;
    *index = (uint32_t)inputs->count;
    inputs->list[inputs->count++] = input;
    return WEFT_OK;
}

/* Close the file that was not used for longest, if too many are open. */
static void close_one(struct wf_inputs *inputs)
{
    struct wf_input *oldest = NULL;

    if (inputs->open < MOST_OPEN) return;
    for (size_t i = 0; i < inputs->count; i++) {
        struct wf_input *input = inputs->list[i];
        if (input->fd >= 0 && input->users == 0 && (oldest == NULL || input->used < oldest->used))
            oldest = input;
    }
    if (oldest == NULL) return;
    close(oldest->fd);
    oldest->fd = -1;
    inputs->open--;
}

static weft_status fail_changed(const struct wf_inputs *inputs, const struct wf_input *input)
{
    return wf_fail(WEFT_ERR_SYSTEM,
                   "%s/%s was replaced or modified after the checkpoint was opened; open it again "
                   "when nothing writes to it",
                   inputs->path, input->name);
}

static weft_status begin_use(struct wf_inputs *inputs, struct wf_input *input)
{
    weft_status status = WEFT_OK;
    struct stat info;

    pthread_mutex_lock(&inputs->guard);
    if (input->fd < 0) {
        close_one(inputs);
        input->fd = open_file(inputs, input->name, &info);
        if (input->fd < 0) {
            status = fail_file(inputs, input->name, errno);
        } else if (!is_same(input, &info)) {
            close(input->fd);
            input->fd = -1;
            status = fail_changed(inputs, input);
        } else {
            inputs->open++;
        }
    }
    if (status == WEFT_OK) {
        input->users++;
        input->used = ++inputs->clock;
    }
    pthread_mutex_unlock(&inputs->guard);
    return status;
}

static void end_use(struct wf_inputs *inputs, struct wf_input *input)
{
    pthread_mutex_lock(&inputs->guard);
    input->users--;
    pthread_mutex_unlock(&inputs->guard);
}

static weft_status read_all(struct wf_inputs *inputs, const struct wf_input *input, uint64_t offset,
                            char *target, size_t bytes)
{
    int64_t count = wf_read_at(input->fd, target, bytes, offset);
    struct stat info;

    if (count < 0) return fail_file(inputs, input->name, errno);
    if ((size_t)count < bytes)
        return wf_fail(WEFT_ERR_SYSTEM,
                       "%s/%s ends at byte %" PRIu64 ", but had %" PRIu64
                       " bytes when it was opened",
                       inputs->path, input->name, offset + (uint64_t)count, input->size);
    if (fstat(input->fd, &info) != 0) return fail_file(inputs, input->name, errno);
    return is_same(input, &info) ? WEFT_OK : fail_changed(inputs, input);
}

weft_status wf_inputs_read(struct wf_inputs *inputs, uint32_t index, uint64_t offset, void *target,
                           size_t bytes)
{
    struct wf_input *input = inputs->list[index];
    weft_status status;

    if (bytes == 0) return WEFT_OK;
    WF_TRY(begin_use(inputs, input));
    status = read_all(inputs, input, offset, target, bytes);
    atomic_fetch_add_explicit(&inputs->read, bytes, memory_order_relaxed);
    end_use(inputs, input);
    return status;
}

weft_status wf_input_fill(void *stream, char *buffer, size_t capacity, size_t *count)
{
    struct wf_input_stream *s = stream;
    size_t bytes = s->left < capacity ? (size_t)s->left : capacity;

    WF_TRY(wf_inputs_read(s->inputs, s->index, s->at, buffer, bytes));
    s->at += bytes;
    s->left -= bytes;
    *count = bytes;
    return WEFT_OK;
}
