/* wrong_claims_what_it_lacks.c - claims support for a call that it then refuses.
 * Runs: --level claims
 * Fails: claims/kept/all_to_all/c128/out_of_place/count=1/ranks=all */
#include "wrong.h"

static weft_status collective(void *comm, const weft_collective_args *args)
{
    if (args->collective == WEFT_COLL_ALL_TO_ALL && args->dtype == WEFT_DTYPE_C128)
        return plug_fail(WEFT_ERR_UNSUPPORTED, "not done yet");
    return run_right(comm, args);
}

INSTALL(wrong.comm.collective = collective)
