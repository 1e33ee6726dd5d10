/* cmd_trace.c - `weft trace`: what the files that WEFT_TRACE wrote contain, and all ranks' files as
 * one. */
#include "common/cli.h"

#include "common/progress.h"
#include "trace/merge.h"
#include "trace/summary.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- progress ---- */

/* How long a byte takes to be checked, summed up and merged, in the same unit. */
enum { CHECK = 1, SUM_UP = 2, MERGE = 2 };

struct work {
    uint64_t done, total;
    uint64_t weight; /* of a byte in the pass that runs */
};

static void add_work(void *self, uint64_t bytes)
{
    struct work *work = self;

    work->done += bytes * work->weight;
    cli_progress_of(work->done, work->total, "%3.0f %%",
                    100.0 * (double)work->done / (double)work->total);
}

/* ---- files ---- */

/* Read all of FILE.  Returns an error number. */
static int read_all(int file, uint8_t **data, size_t *bytes)
{
    size_t room = 0;
    ssize_t count;

    *data = NULL;
    *bytes = 0;
    do {
        if (*bytes == room) {
            uint8_t *grown = wf_realloc(*data, room = room > 0 ? 2 * room : 1 << 16);

            if (grown == NULL) return ENOMEM;
            *data = grown;
        }
        count = read(file, *data + *bytes, room - *bytes);
        if (count > 0) *bytes += (size_t)count;
    } while (count > 0 || (count < 0 && errno == EINTR));
    return count < 0 ? errno : 0;
}

/* Returns CLI_OK, or the exit code after printing an error, which ends the progress. */
static int load(const struct cli_command *command, const char *path, uint8_t **data, size_t *bytes)
{
    int file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    int error = file < 0 ? errno : 0;
    struct stat info;

    if (file >= 0 && fstat(file, &info) == 0 && !S_ISREG(info.st_mode)) {
        close(file);
        cli_progress_end();
        return cli_fail(command, wf_fail(WEFT_ERR_INVALID, "%s is not a regular file", path));
    }
    cli_progress("reading %s", path);
    if (file >= 0) error = read_all(file, data, bytes);
    if (file >= 0) close(file);
    if (error != 0) cli_progress_end();
    return error == 0 ? CLI_OK : cli_fail_file(command, path, error);
}

/* ---- one file ---- */

static int summarize(const struct cli_command *command, const struct cli_args *args)
{
    const char *path = args->rest[0];
    struct trace_facts facts;
    struct wf_text text = {0};
    struct work work = {.weight = CHECK};
    const struct trace_progress progress = {&work, add_work};
    uint8_t *data = NULL;
    size_t bytes = 0;
    weft_status status;
    int code;

    cli_progress_begin();
    code = load(command, path, &data, &bytes);
    if (code == CLI_OK) {
        work.total = bytes * (CHECK + SUM_UP);
        status = trace_read_facts(path, data, bytes, &progress, &facts);
        work.weight = SUM_UP;
        if (status == WEFT_OK)
            status = trace_summarize(path, data, bytes, cli_has(command, args, "json"), &progress,
                                     &text);
        cli_progress_end();
        code = status == WEFT_OK ? cli_print(command, stdout, &text) : cli_fail(command, status);
        if (status != WEFT_OK) wf_text_free(&text);
        if (status == WEFT_OK && !facts.has_ended)
            cli_complain(command, "%s has no end: the rank ended early, or could not write it",
                         path);
    }
    wf_free(data);
    return code;
}

/* ---- merge ---- */

static int load_all(const struct cli_command *command, char **names, struct trace_file *files,
                    size_t count)
{
    for (size_t i = 0; i < count; i++) {
        int code;

        files[i].name = names[i];
        code = load(command, names[i], &files[i].data, &files[i].bytes);
        if (code != CLI_OK) return code;
    }
    return CLI_OK;
}

static weft_status join(struct trace_file *files, size_t count, struct wf_text *out,
                        uint64_t *bound_ns)
{
    struct work work = {.weight = CHECK};
    const struct trace_progress progress = {&work, add_work};

    for (size_t i = 0; i < count; i++)
        work.total += files[i].bytes * (CHECK + MERGE);
    for (size_t i = 0; i < count; i++)
        WF_TRY(trace_read_facts(files[i].name, files[i].data, files[i].bytes, &progress,
                                &files[i].facts));
    WF_TRY(trace_merge_check(files, count));
    work.weight = MERGE;
    return trace_merge(files, count, &progress, out, bound_ns);
}

static void report(const struct trace_file *files, size_t count, uint64_t bound_ns,
                   const char *path)
{
    struct wf_text text = {0};
    bool has_first = false;

    for (size_t i = 0; i < count; i++)
        has_first = has_first || files[i].facts.rank == 0;
    wf_text_add(&text,
                "%s: %zu of %d rank%s, on the clock of %s; times of different ranks agree "
                "within ",
                path, count, files[0].facts.size, WF_PLURAL(files[0].facts.size),
                has_first ? "rank 0" : "the rendezvous server");
    wf_text_time(&text, bound_ns);
    wf_text_char(&text, '\n');
    for (size_t i = 0; i < count; i++) {
        if (!files[i].facts.has_ended)
            wf_text_add(&text, "%s has no end: rank %d ended early, or could not write it\n",
                        files[i].name, files[i].facts.rank);
        if (files[i].facts.clock_count < 2)
            wf_text_add(&text, "%s has %s clock offset%s; the bound holds at the start only\n",
                        files[i].name, files[i].facts.clock_count == 0 ? "no" : "one",
                        files[i].facts.clock_count == 0 ? "" : " only");
    }
    if (text.data != NULL) wf_text_clean_lines(text.data, text.length);
    if (!text.failed) fputs(text.data, stdout);
    wf_text_free(&text);
}

/* Ends the progress. */
static int write_merged(const struct cli_command *command, const char *path, struct wf_text *text)
{
    FILE *file = fopen(path, "we");
    bool written, is_plain;
    struct stat info;
    int error = file == NULL ? errno : 0;

    cli_progress("writing %s", path);
    if (file == NULL) cli_progress_end();
    if (file == NULL) return cli_fail_file(command, path, error);
    is_plain = fstat(fileno(file), &info) == 0 && S_ISREG(info.st_mode);
    written = fwrite(text->data, 1, text->length, file) == text->length;
    error = written ? 0 : errno;
    if (fclose(file) != 0 && error == 0) error = errno;
    cli_progress_end();
    if (error == 0) return CLI_OK;
    if (is_plain) (void)unlink(path); /* an incomplete file */
    return cli_fail_file(command, path, error);
}

/* PATH may be none of the files that are read. */
static weft_status check_output(const char *path, char **names, size_t count)
{
    struct stat output, input;

    if (stat(path, &output) != 0) return WEFT_OK;
    for (size_t i = 0; i < count; i++)
        if (stat(names[i], &input) == 0 && input.st_dev == output.st_dev &&
            input.st_ino == output.st_ino)
            return wf_fail(WEFT_ERR_INVALID,
                           "-o %s would overwrite %s, one of the files to merge; give another file",
                           path, names[i]);
    return WEFT_OK;
}

static int merge(const struct cli_command *command, const struct cli_args *args, char **names,
                 size_t count)
{
    const char *path = cli_value(command, args, "output");
    struct trace_file *files = wf_calloc(count, sizeof *files);
    struct wf_text text = {0};
    uint64_t bound_ns = 0;
    weft_status status;
    int code;

    if (files == NULL) return cli_fail(command, wf_fail_memory(count * sizeof *files));
    cli_progress_begin();
    code = load_all(command, names, files, count);
    if (code == CLI_OK) {
        status = check_output(path, names, count);
        if (status == WEFT_OK) status = join(files, count, &text, &bound_ns);
        if (status != WEFT_OK) cli_progress_end();
        code = status == WEFT_OK ? write_merged(command, path, &text) : cli_fail(command, status);
    }
    if (code == CLI_OK) report(files, count, bound_ns, path);
    for (size_t i = 0; i < count; i++)
        wf_free(files[i].data);
    wf_free(files);
    wf_text_free(&text);
    return code;
}

static int run(const struct cli_command *command, int argc, char **argv)
{
    struct cli_args args;
    bool merges, has_output;
    int exit_code;

    if (!cli_parse(command, argc, argv, false, &args, &exit_code)) return exit_code;
    merges = args.rest_count > 0 && strcmp(args.rest[0], "merge") == 0;
    has_output = cli_value(command, &args, "output") != NULL;
    if (merges && args.rest_count > 1 && has_output)
        return merge(command, &args, argv + args.rest_at + 1, (size_t)args.rest_count - 1);
    if (!merges && args.rest_count == 1 && !has_output) return summarize(command, &args);
    if (!merges && args.rest_count > 1) {
        exit_code = cli_fail_argument(command, args.rest[1]);
        fprintf(stderr, "to join files: weft trace merge FILE... -o FILE\n");
        return exit_code;
    }
    fprintf(stderr, "weft trace: %s\n`weft trace --help` shows an example.\n",
            !merges && has_output ? "only merge takes -o"
            : !merges             ? "give a file that WEFT_TRACE wrote"
            : has_output          ? "give the files to merge"
                                  : "merge needs -o FILE, the file to write");
    return CLI_USAGE;
}

const struct cli_command cli_trace = {
    .name = "trace",
    .summary = "print predicted and measured times of a trace, or merge the ranks' traces",
    .arguments = "FILE [--json] | merge FILE... -o FILE",
    .example = "WEFT_TRACE=t weft run -n 4 ./train && weft trace merge t.* -o all.pftrace",
    .page = "observability.md",
    .options = (const struct cli_option[]){CLI_JSON,
                                           {"output", "FILE", "merge: the file to write", 'o'},
                                           {0}},
    .rest_max = INT32_MAX,
    .warns = true,
    .run = run,
};
