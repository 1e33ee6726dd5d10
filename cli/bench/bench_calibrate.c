/* bench_calibrate.c - `weft bench calibrate`: writes a cost table that was measured here. */
#include "bench/calibrate/calibrate.h"
#include "bench/rank_bench.h"
#include "common/progress.h"

#include <stdlib.h>
#include <string.h>

struct bench {
    struct rank_bench on;
    struct wf_text table;
    uint64_t told; /* messages about progress */
};

/* The first byte of a message of rank 0. */
enum message_kind { PROGRESS = 'p', TABLE = 't' };

/* ---- one rank ---- */

static weft_status send_text(const struct local_rank *local, enum message_kind kind,
                             const struct wf_text *text)
{
    struct wf_text message = {0};
    weft_status status;

    wf_text_char(&message, (char)kind);
    wf_text_append(&message, text->data, text->length);
    status = wf_text_status(&message);
    if (status == WEFT_OK) status = local_rank_send(local, message.data, message.length);
    wf_text_free(&message);
    return status;
}

/* Rank 0 tells the command what it measures.  A message that is lost does no harm. */
static void print_progress(void *self, const char *what)
{
    struct wf_text text = {0};

    wf_text_add(&text, "%s", what);
    (void)send_text(self, PROGRESS, &text);
    wf_text_free(&text);
}

static weft_status add_table(const struct calibration *found, struct wf_text *out)
{
    static const char *const links[COST_LINKS] = {"within a host", "between hosts"};
    size_t length;
    char *table;
    weft_status status;

    wf_text_add(out, "# weft bench calibrate: %d rank%s on %d host%s\n", found->ranks,
                WF_PLURAL(found->ranks), found->hosts, WF_PLURAL(found->hosts));
    for (int link = 0; link < COST_LINKS; link++)
        if (!found->measured[link])
            wf_text_add(out, "# %s: not measured, as in table %s\n", links[link], found->base);
    if (!found->computed)
        wf_text_add(out, "# flops and memory: not measured, as in table %s\n", found->base);
    WF_TRY(weft_cost_table_print(found->table, NULL, 0, &length));
    table = wf_alloc(length + 1);
    if (table == NULL) return wf_fail_memory(length + 1);
    status = weft_cost_table_print(found->table, table, length + 1, NULL);
    if (status == WEFT_OK) wf_text_add(out, "%s", table);
    wf_free(table);
    return status == WEFT_OK ? wf_text_status(out) : status;
}

static void prepare(void *self, int32_t rank)
{
    rank_bench_pretend_host(&((const struct bench *)self)->on, rank);
}

static weft_status work(void *self, weft_context *context, const struct local_rank *local)
{
    const struct bench *bench = self;
    struct calibration found = {.progress = print_progress,
                                .progress_self = (void *)(uintptr_t)local};
    struct wf_text table = {0};
    weft_status status;

    WF_TRY(calibrate(context, bench->on.budget_ns, &found));
    status = add_table(&found, &table);
    if (status == WEFT_OK) status = send_text(local, TABLE, &table);
    wf_text_free(&table);
    weft_cost_table_release(&found.table);
    return status;
}

/* ---- the command ---- */

/* How many things are measured: of one rank, and each step on groups of ranks (calibrate.c). */
static uint64_t count_parts(const struct rank_bench *on)
{
    int hosts = on->hosts > 1 ? on->hosts : 1, near = (on->ranks + hosts - 1) / hosts;
    int groups = (near >= 2) + (near > 2) + (hosts >= 2) + (hosts > 2);

    return 2 + (uint64_t)groups * CALIBRATED_STEPS;
}

static weft_status receive(void *self, const void *message, size_t bytes)
{
    struct bench *bench = self;
    const char *text = message;

    if (bytes == 0) return WEFT_OK;
    if (text[0] == PROGRESS)
        cli_progress_of(bench->told++, count_parts(&bench->on), "measuring %.*s", (int)(bytes - 1),
                        text + 1);
    else
        wf_text_append(&bench->table, text + 1, bytes - 1);
    return WEFT_OK;
}

/* Write TABLE to PATH, and say so; without PATH, to standard output. */
static int write_table(const struct cli_command *command, const char *path, struct wf_text *table)
{
    bool is_file = path != NULL && strcmp(path, "-") != 0;
    int code = cli_print_to(command, is_file ? path : "-", table);

    if (code == CLI_OK && is_file)
        printf("wrote %s, for WEFT_COSTS=%s or --costs %s\n", path, path, path);
    return code;
}

static int run(const struct cli_command *command, int argc, char **argv)
{
    struct bench bench = {0};
    struct local_job job = {.self = &bench, .prepare = prepare, .work = work, .receive = receive};
    struct cli_args args;
    const char *path;
    int code;

    if (!cli_parse(command, argc, argv, false, &args, &code)) return code;
    if (!rank_bench_read(command, &args, 2, 100, &bench.on) ||
        !rank_bench_read_hosts(command, &args, &bench.on))
        return CLI_USAGE;
    path = cli_value(command, &args, "output");
    code = rank_bench_run(command, &bench.on, &job);
    if (code == CLI_OK && bench.table.length > 0) return write_table(command, path, &bench.table);
    wf_text_free(&bench.table);
    return code;
}

const struct cli_command bench_calibrate = {
    .name = "bench calibrate",
    .summary = "measure the costs of steps and write a table for WEFT_COSTS",
    .arguments = "[options]",
    .example = "weft bench calibrate --ranks 4 --output my-host.costs",
    .page = "cost-model.md",
    .options =
        (const struct cli_option[]){CLI_LOCAL_RANKS,
                                    CLI_HOSTS,
                                    CLI_BACKEND,
                                    CLI_BUDGET_MS("milliseconds for each number (default: 100)"),
                                    {"output", "FILE",
                                     "write the table to FILE; - is "
                                     "standard output (default: -)",
                                     0},
                                    {0}},
    .run = run,
};
