/* wrong_exchange_sources.c - an exchange that uses the index of a source as its rank.
 * Runs: --only pull/exchange
 * Fails: pull/exchange/strided/f32/ranks=all */
#include "wrong.h"

static weft_status exchange(void *comm, const weft_pull_args *args)
{
    int32_t ranks[2 * EXAMPLE_MAX_RANKS];
    weft_pull_args other = *args;

    for (int32_t i = 0; i < 2 * EXAMPLE_MAX_RANKS; i++)
        ranks[i] = i % ((struct example_comm *)comm)->size;
    other.sources = ranks;
    return right.comm.pull(comm, &other);
}

INSTALL(wrong.comm.exchange = exchange)
