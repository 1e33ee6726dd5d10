/* rank_bench.c - see rank_bench.h. */
#include "bench/rank_bench.h"

#include "common/progress.h"

#include <stdio.h>
#include <stdlib.h>

bool rank_bench_read(const struct cli_command *command, const struct cli_args *args,
                     int64_t least_ranks, int64_t budget_ms, struct rank_bench *out)
{
    int64_t ranks;

    if (!cli_int(command, args, "ranks", least_ranks, LOCAL_RANKS_MAX, 2, &ranks) ||
        !cli_int(command, args, "budget-ms", 1, 60000, budget_ms, &budget_ms))
        return false;
    *out = (struct rank_bench){.ranks = (int32_t)ranks,
                               .hosts = 1,
                               .backend = cli_value(command, args, "backend"),
                               .budget_ns = (uint64_t)budget_ms * 1000000,
                               .as_json = cli_has(command, args, "json"),
                               .progress = "starting ranks"};
    return true;
}

bool rank_bench_read_hosts(const struct cli_command *command, const struct cli_args *args,
                           struct rank_bench *bench)
{
    int64_t hosts;

    if (!cli_int(command, args, "hosts", 1, bench->ranks, 1, &hosts)) return false;
    bench->hosts = (int32_t)hosts;
    return true;
}

void rank_bench_pretend_host(const struct rank_bench *bench, int32_t rank)
{
    char host[32];

    if (bench->hosts <= 1) return;
    snprintf(host, sizeof host, "bench-%d", (int)(rank % bench->hosts));
    setenv("WEFT_HOST_ID", host, 1);
}

int rank_bench_run(const struct cli_command *command, const struct rank_bench *bench,
                   const struct local_job *job)
{
    weft_init_options options = {.struct_size = sizeof options, .backend = bench->backend};
    weft_launch_info launch = {.struct_size = sizeof launch};
    weft_status status = weft_launch_get(&launch);

    if (status != WEFT_OK) return cli_fail(command, status);
    cli_progress_begin();
    cli_progress("%s", bench->progress);
    status = launch.size > 1 ? local_ranks_join(&options, job)
                             : local_ranks_run(bench->ranks, bench->backend, job);
    cli_progress_end();
    return status == WEFT_OK ? CLI_OK : cli_fail(command, status);
}
