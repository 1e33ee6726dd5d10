/* rank_bench.h - the options and the start that benchmarks on several ranks share. */
#ifndef WEFT_CLI_BENCH_RANK_BENCH_H
#define WEFT_CLI_BENCH_RANK_BENCH_H

#include "common/cli.h"
#include "common/local_ranks.h"

#define CLI_HOSTS                                                                                  \
    {                                                                                              \
        "hosts", "N", "treat ranks as on N hosts, in turn (default: 1)", 0                         \
    }

struct rank_bench {
    int32_t ranks;
    int32_t hosts;       /* 1 without the option --hosts */
    const char *backend; /* NULL: WEFT_BACKEND */
    uint64_t budget_ns;
    bool as_json;
    char progress[64]; /* the first line of progress */
};

/* Read --ranks (from MIN_RANKS on), --backend, --budget-ms and --json.  False after an error. */
bool rank_bench_read(const struct cli_command *command, const struct cli_args *args,
                     int64_t least_ranks, int64_t budget_ms, struct rank_bench *out);

/* Read --hosts, of commands that have it.  False after an error. */
bool rank_bench_read_hosts(const struct cli_command *command, const struct cli_args *args,
                           struct rank_bench *bench);
/* In a rank that BENCH starts, before it joins: its host. */
void rank_bench_pretend_host(const struct rank_bench *bench, int32_t rank);

/* Run JOB on ranks that this process starts or, under a launcher, as one rank of the launcher's
 * job, whose size then replaces --ranks.  Under a launcher only rank 0 receives messages.
 * Returns the exit code, after printing an error. */
int rank_bench_run(const struct cli_command *command, const struct rank_bench *bench,
                   const struct local_job *job);

#endif
