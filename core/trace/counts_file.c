/* counts_file.c - the counters of a rank, appended to a file: a line each, "operation 12
 * all-reduce". `weft run --counts` reads them. */
#include "counts.h"
#include "rank_file.h"

#include "weft/cost.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static void add(struct wf_text *out, const char *kind, uint64_t number, const char *name)
{
    if (number > 0) wf_text_add(out, "%s %" PRIu64 " %s\n", kind, number, name);
}

static void print(const struct wf_sums *counts, struct wf_text *out)
{
    for (uint32_t i = 0; i < WF_COUNT(counts->operations); i++)
        add(out, "operation", counts->operations[i],
            weft_record_operation_name((enum weft_record_operation)i));
    for (uint32_t i = 0; i < WEFT_STEP_KINDS; i++)
        add(out, "step", counts->steps[i], weft_step_name((enum weft_step_kind)i));
    for (uint32_t i = 0; i < counts->axes_count; i++) {
        struct wf_axes_sums axes = counts->axes[i];

        wf_text_clean(axes.axes, strlen(axes.axes)); /* a name may have newlines */
        wf_text_add(out, "axes %" PRIu64 " %" PRIu64 " %" PRIu64 " %s\n", axes.operations,
                    axes.sent, axes.received, axes.axes);
    }
    add(out, "total", counts->sent, "sent");
    add(out, "total", counts->received, "received");
    add(out, "total", counts->implicit_moves, "implicit moves");
    add(out, "total", counts->cache_hits, "cache hits");
    add(out, "total", counts->cache_misses, "cache misses");
    add(out, "total", counts->failed, "failed");
    add(out, "total", counts->axes_missed, "axes missed");
    wf_text_add(out, "end 1 rank\n");
}

/* Returns NULL, or why it failed.  A pipe without a reader must not block. */
static const char *append(const char *path, const struct wf_text *text)
{
    int file =
        open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW, 0666);
    const char *why = NULL;
    struct stat info;
    int error = 0;

    if (file < 0) return wf_rank_file_refusal(errno);
    if (fstat(file, &info) != 0 || !S_ISREG(info.st_mode))
        why = "it is not a regular file";
    else
        error = wf_rank_file_write(file, (uint64_t)info.st_size, text->data, text->length);
    if (close(file) != 0 && error == 0) error = errno;
    return error != 0 ? kit_error_text(error) : why;
}

weft_status wf_counts_append(const struct wf_sums *counts, const char *pattern, int32_t rank)
{
    struct wf_text text = {0};
    weft_status status;
    const char *why;
    char path[4096];

    if (!wf_rank_file_name(pattern, rank, path, sizeof path))
        return wf_fail(WEFT_ERR_SYSTEM, "the name %.100s... of the file is too long", pattern);
    print(counts, &text);
    status = wf_text_status(&text);
    why = status == WEFT_OK ? append(path, &text) : NULL;
    if (why != NULL) status = wf_fail(WEFT_ERR_SYSTEM, "%s cannot be written: %s", path, why);
    wf_text_free(&text);
    return status;
}
