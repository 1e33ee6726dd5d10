/* wrong_pull_cast_offset.c - a pull_cast that writes a region one element too late.
 * Runs: --only pull/cast
 * Fails: pull/cast/transposed/f32/bf16/holders=1 */
#include "casts.h"

static weft_status pull_cast(void *comm, const weft_pull_args *args, uint32_t to)
{
    return cast_pulled(comm, args, (struct cast){.from = args->dtype, .to = to, .shift = 1});
}

void wrong_install(void)
{
    install_casts();
    wrong.comm.pull_cast = pull_cast;
}
