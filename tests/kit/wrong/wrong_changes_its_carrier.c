/* wrong_changes_its_carrier.c - tells another carrier each time.
 * Runs: --only claims/carrier
 * Fails: claims/carrier */
#include "wrong.h"

static const char *carrier(void *comm)
{
    static bool is_odd;

    (void)comm;
    is_odd = !is_odd;
    return is_odd ? "pigeons" : "snails";
}

INSTALL(wrong.comm.carrier = carrier)
