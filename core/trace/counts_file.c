/* counts_file.c - the counters of a rank, appended to a file: a line each, "operation 12
 * all-reduce". `weft run --counts` reads them. */
#include "rank_file.h"
#include "trace.h"

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

static void print(const weft_counts *counts, struct wf_text *out)
{
    for (uint32_t i = 0; i < WF_COUNT(counts->operations); i++)
        add(out, "operation", counts->operations[i], weft_operation_name((enum weft_operation)i));
    for (uint32_t i = 0; i < WEFT_STEP_KINDS; i++)
        add(out, "step", counts->steps[i], weft_step_name((enum weft_step_kind)i));
    for (uint32_t i = 0; i < counts->axis_count; i++)
        wf_text_add(out, "axes %" PRIu64 " %" PRIu64 " %" PRIu64 " %s\n",
                    counts->axes[i].operations, counts->axes[i].sent, counts->axes[i].received,
                    counts->axes[i].axes);
    add(out, "total", counts->sent, "sent");
    add(out, "total", counts->received, "received");
    add(out, "total", counts->implicit_moves, "implicit moves");
    add(out, "total", counts->cache_hits, "cache hits");
    add(out, "total", counts->cache_misses, "cache misses");
    add(out, "total", counts->failed, "failed");
    add(out, "total", counts->axes_missed, "axes missed");
    wf_text_add(out, "end 1 rank\n");
}

/* Returns 0, or the errno. */
static int append(const char *path, const struct wf_text *text)
{
    int file = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666), error = 0;
    struct stat info;

    if (file < 0) return errno;
    if (fstat(file, &info) != 0) error = errno;
    if (error == 0)
        error = wf_rank_file_write(file, (uint64_t)info.st_size, text->data, text->length);
    if (close(file) != 0 && error == 0) error = errno;
    return error;
}

weft_status wf_counts_append(const weft_counts *counts, const char *pattern, int32_t rank)
{
    struct wf_text text = {0};
    weft_status status;
    char path[4096];
    int error;

    if (!wf_rank_file_name(pattern, rank, path, sizeof path))
        return wf_fail(WEFT_ERR_SYSTEM, "the name %.100s... of the file is too long", pattern);
    print(counts, &text);
    status = wf_text_status(&text);
    error = status == WEFT_OK ? append(path, &text) : 0;
    if (error != 0)
        status = wf_fail(WEFT_ERR_SYSTEM, "%s cannot be written: %s", path, strerror(error));
    wf_text_free(&text);
    return status;
}
