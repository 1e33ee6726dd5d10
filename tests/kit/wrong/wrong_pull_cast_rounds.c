/* wrong_pull_cast_rounds.c - a pull_cast that rounds toward zero.
 * Runs: --only pull/cast
 * Fails: pull/cast/strided/f32/bf16/holders=1 */
#include "casts.h"

static weft_status pull_cast(void *comm, const weft_pull_args *args, uint32_t to)
{
    return cast_pulled(comm, args,
                       (struct cast){.from = args->dtype, .to = to, .convert = convert_cut});
}

void wrong_install(void)
{
    install_casts();
    wrong.comm.pull_cast = pull_cast;
}
