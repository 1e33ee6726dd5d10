/* wrong_pull_cast_nan.c - a pull_cast that makes every NaN the same one.
 * Runs: --only pull/cast
 * Fails: pull/cast/strided/bf16/f64/holders=1 */
#include "casts.h"

static weft_status pull_cast(void *comm, const weft_pull_args *args, uint32_t to)
{
    return cast_pulled(comm, args,
                       (struct cast){.from = args->dtype, .to = to, .convert = convert_one_nan});
}

void wrong_install(void)
{
    install_casts();
    wrong.comm.pull_cast = pull_cast;
}
