/* counts.c - `weft run --counts`: the ranks write their counters to files of a temporary folder. */
#include "run/run.h"

#include "common/tally.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void name_counts(const struct run_job *job, int32_t rank, char *out, size_t bytes)
{
    snprintf(out, bytes, "%s/counts.%d", job->counts_folder, (int)rank);
}

/* The user's own WEFT_COUNTS has no effect. */
static void warn_replaced(void)
{
    const char *replaced = cli_variable("WEFT_COUNTS");

    if (replaced != NULL && replaced[0] != '\0')
        fprintf(stderr, "weft run: --counts replaces WEFT_COUNTS; %s is not written\n", replaced);
}

bool run_counts_begin(struct run_job *job)
{
    warn_replaced();
    snprintf(job->counts_folder, sizeof job->counts_folder, P_tmpdir "/weft-counts-XXXXXX");
    if (mkdtemp(job->counts_folder) != NULL) return true;
    fprintf(stderr, "weft run: no folder for the counters of --counts: %s\n",
            kit_error_text(errno));
    job->counts_folder[0] = '\0';
    return false;
}

void run_counts_set_variable(const struct run_job *job)
{
    char pattern[sizeof job->counts_folder + 16];

    if (job->counts_folder[0] == '\0') return;
    snprintf(pattern, sizeof pattern, "%s/counts.%%r", job->counts_folder);
    setenv("WEFT_COUNTS", pattern, 1);
}

static void print(const struct run_job *job, const struct tally *tally)
{
    struct wf_text text = {0};
    struct wf_json json = {.out = &text};

    if (job->counts_json) {
        wf_json_begin(&json, NULL, '{');
        tally_print_json(tally, &json);
        wf_json_end(&json, '}');
        wf_text_char(&text, '\n');
    } else {
        wf_text_add(&text, "weft run: ");
        tally_print(tally, &text);
    }
    if (tally->ranks < job->ranks)
        fprintf(stderr,
                "weft run: %d of %d ranks have no counters: they did not release their context\n",
                (int)(job->ranks - tally->ranks), (int)job->ranks);
    if (text.data != NULL && !text.failed && (tally->ranks > 0 || job->counts_json))
        fputs(text.data, job->counts_json ? stdout : stderr);
    wf_text_free(&text);
}

void run_counts_end(struct run_job *job)
{
    struct tally tally = {.ranks = 0};
    char path[sizeof job->counts_folder + 24];

    if (job->counts_folder[0] == '\0') return;
    for (int32_t rank = 0; rank < job->ranks; rank++) {
        name_counts(job, rank, path, sizeof path);
        (void)tally_read(&tally, path);
        unlink(path);
    }
    rmdir(job->counts_folder);
    job->counts_folder[0] = '\0';
    print(job, &tally);
}
