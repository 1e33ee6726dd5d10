/* output.c - the file of a trace.  It consists of whole packets at any time: a write that fails is
 * cut off. */
#include "export.h"
#include "trace/rank_file.h"

#include "base/fork.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

/* Returns NULL, or why the file cannot be written. */
static const char *create(struct wf_output *output)
{
    struct stat info;
    const char *why = NULL;

    wf_fd_hold(); /* a fork would keep the lock after this process's end */
    output->file = wf_fd_keep(
        open(output->path, O_WRONLY | O_CREAT | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW, 0666));
    if (output->file < 0) return wf_rank_file_refusal(errno);
    if (fstat(output->file, &info) != 0 || !S_ISREG(info.st_mode))
        why = "it is not a regular file";
    else if (flock(output->file, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK)
        why = "another context writes it";
    else if (ftruncate(output->file, 0) != 0)
        why = kit_error_text(errno);
    if (why != NULL) {
        wf_fd_close(output->file);
        output->file = -1;
    }
    return why;
}

bool wf_output_open(struct wf_output *output, const char *pattern, int32_t rank)
{
    const char *why;

    *output = (struct wf_output){.file = -1};
    if (!wf_rank_file_name(pattern, rank, output->path, sizeof output->path)) {
        wf_log(WF_LOG_WARNING,
               "WEFT_TRACE: the name has more than %zu bytes; this rank writes no trace",
               sizeof output->path - 16);
        return false;
    }
    output->buffer = wf_alloc(WF_OUTPUT_BYTES);
    why = output->buffer == NULL ? kit_error_text(ENOMEM) : create(output);
    if (why == NULL) return true;
    wf_log(WF_LOG_WARNING, "WEFT_TRACE: %s cannot be written: %s; this rank writes no trace",
           output->path, why);
    wf_free(output->buffer);
    output->buffer = NULL;
    return false;
}

/* Cut off the packet that could not be written, and write no more. */
static void give_up(struct wf_output *output, int error)
{
    bool is_whole = ftruncate(output->file, (off_t)output->written) == 0;

    wf_log(WF_LOG_WARNING,
           "WEFT_TRACE: %s ends after %llu bytes%s: %s; this rank continues without a trace",
           output->path, (unsigned long long)output->written,
           is_whole ? "" : ", with an incomplete packet", kit_error_text(error));
    wf_fd_close(output->file);
    output->file = -1;
}

void wf_output_flush(struct wf_output *output)
{
    int error;

    if (output->file >= 0 && output->used > 0) {
        error = wf_rank_file_write(output->file, output->written, output->buffer, output->used);
        if (error != 0)
            give_up(output, error);
        else
            output->written += output->used;
    }
    output->used = 0;
}

void wf_output_close(struct wf_output *output)
{
    if (output->buffer != NULL) wf_output_flush(output);
    if (output->file >= 0) (void)flock(output->file, LOCK_UN); /* a fork may just begin */
    if (output->file >= 0 && wf_fd_close(output->file) != 0)
        wf_log(WF_LOG_WARNING, "WEFT_TRACE: %s may be incomplete: %s", output->path,
               kit_error_text(errno));
    output->file = -1;
    wf_free(output->buffer);
    output->buffer = NULL;
}
