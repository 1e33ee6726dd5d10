/* bench_calibrate.c - `weft bench calibrate`: writes a cost table that was measured here. */
#include "common/cli.h"

#include "bench/calibrate.h"
#include "common/local_ranks.h"
#include "common/progress.h"
#include "timing/loop.h"

#include <stdlib.h>
#include <string.h>

/* What ranks write to the command's pipe; at most PIPE_BUF, so that writes are atomic. */
struct message {
    int32_t rank;
    weft_status
        status; /* WEFT_OK: TEXT is the table; IN_PROGRESS: what is measured; else why not */
    char text[3584];
};
_Static_assert(sizeof(struct message) <= 4096, "larger than PIPE_BUF");

struct request {
    const char *backend, *path;
    int32_t ranks, hosts;
    uint64_t budget_ns;
    char text[3584]; /* the table */
};

/* ---- one rank ---- */

static weft_status write_table(const struct calibration *found, char *text, size_t capacity)
{
    static const char *const links[COST_LINKS] = {"within a host", "between hosts"};
    int used = snprintf(text, capacity, "# weft bench calibrate: %d ranks on %d host%s\n",
                        found->ranks, found->hosts, found->hosts == 1 ? "" : "s");

    for (int link = 0; link < COST_LINKS; link++)
        if (!found->measured[link])
            used += snprintf(text + used, capacity - (size_t)used,
                             "# %s: not measured, as in table %s\n", links[link], found->base);
    return weft_cost_table_print(found->table, text + used, capacity - (size_t)used, NULL);
}

/* Rank 0 tells the command what it measures; a message that is lost does no harm. */
static void tell_progress(void *self, const char *what)
{
    struct message message = {.status = WEFT_IN_PROGRESS};

    snprintf(message.text, sizeof message.text, "%s", what);
    if (self != NULL && local_rank_send(*(int *)self, &message, sizeof message) != WEFT_OK) return;
}

static weft_status work(weft_context *context, const struct request *request, int *fd, char *text,
                        size_t capacity)
{
    struct calibration found = {.progress = tell_progress,
                                .progress_self = weft_rank(context) == 0 && fd != NULL ? fd : NULL};
    weft_status status;

    bench_pin(weft_local_rank(context));
    WF_TRY(calibrate(context, request->budget_ns, &found));
    status = write_table(&found, text, capacity);
    weft_cost_table_release(&found.table);
    return status;
}

static weft_status rank_main(void *self, const weft_options *options, int fd)
{
    const struct request *request = self;
    struct message message = {0};
    weft_context *context = NULL;
    bool started = options->size > 0; /* by this command, which reads the pipe meanwhile */
    char host[32];
    weft_status status;

    if (started && request->hosts > 1) {
        snprintf(host, sizeof host, "calibrate-%d", (int)(options->rank % request->hosts));
        setenv("WEFT_HOST_ID", host, 1);
    }
    status = weft_init(options, &context);
    if (status == WEFT_OK)
        status = work(context, request, started ? &fd : NULL, message.text, sizeof message.text);
    message.rank = context != NULL ? weft_rank(context) : options->rank;
    message.status = status;
    if (status != WEFT_OK) snprintf(message.text, sizeof message.text, "%s", weft_last_error());
    if ((status != WEFT_OK || message.rank == 0) &&
        local_rank_send(fd, &message, sizeof message) != WEFT_OK)
        return WEFT_ERR_SYSTEM;
    if (status == WEFT_OK) weft_context_release(&context);
    return status;
}

/* ---- the command ---- */

static weft_status collect(void *self, int fd)
{
    struct request *request = self;
    struct message message;
    weft_status status;

    while (local_ranks_receive(fd, &message, sizeof message, &status)) {
        if (message.status == WEFT_IN_PROGRESS) {
            cli_progress("measuring %s", message.text);
            continue;
        }
        if (message.status != WEFT_OK)
            return local_rank_fail(message.status, message.rank, message.text, sizeof message.text);
        memcpy(request->text, message.text, sizeof request->text);
    }
    return status;
}

static int deliver(const struct cli_command *command, const struct request *request)
{
    struct wf_text text = {0};

    wf_text_add(&text, "%s", request->text);
    return cli_print_to(command, request->path != NULL ? request->path : "-", &text);
}

static int run(const struct cli_command *command, int argc, char **argv)
{
    struct request request = {0};
    weft_options options = {.struct_size = sizeof options};
    weft_launch_info launch = {.struct_size = sizeof launch};
    struct cli_args args;
    int64_t ranks, hosts, budget_ms;
    weft_status status;
    int code;

    if (!cli_parse(command, argc, argv, false, &args, &code)) return code;
    if (!cli_int(command, &args, "ranks", 2, LOCAL_RANKS_MAX, 2, &ranks) ||
        !cli_int(command, &args, "hosts", 1, ranks, 1, &hosts) ||
        !cli_int(command, &args, "budget-ms", 1, 60000, 100, &budget_ms))
        return CLI_USAGE;
    options.backend = request.backend = cli_value(command, &args, "backend");
    request.path = cli_value(command, &args, "output");
    request.ranks = (int32_t)ranks;
    request.hosts = (int32_t)hosts;
    request.budget_ns = (uint64_t)budget_ms * 1000000;
    status = weft_launch_get(&launch);
    if (status != WEFT_OK) return cli_fail(command, status);
    cli_progress_begin();
    cli_progress("starting ranks");
    status = launch.size > 1
                 ? local_ranks_join(&options, rank_main, collect, &request)
                 : local_ranks_run(request.ranks, request.backend, rank_main, collect, &request);
    cli_progress_end();
    if (status != WEFT_OK) return cli_fail(command, status);
    return request.text[0] != '\0' ? deliver(command, &request) : CLI_OK;
}

const struct cli_command bench_calibrate = {
    .name = "bench calibrate",
    .summary = "measure what steps cost here, and write the table for WEFT_COSTS",
    .arguments = "[options]",
    .example = "weft bench calibrate --ranks 4 --output my-host.costs",
    .options = (const struct cli_option[]){CLI_LOCAL_RANKS,
                                           {"hosts", "N",
                                            "pretend that they are on N hosts, in "
                                            "turn (default: 1)",
                                            0},
                                           CLI_BACKEND,
                                           CLI_BUDGET_MS("time for each number (default: 100)"),
                                           {"output", "FILE",
                                            "write the table to FILE; - is "
                                            "standard output (default: -)",
                                            0},
                                           {0}},
    .run = run,
};
