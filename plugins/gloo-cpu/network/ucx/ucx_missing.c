/* ucx_missing.c - stands for the UCX carrier in a build without UCX's headers. */
#include "network/carriers.h"
#include "plug_host.h"

weft_status net_ucx(const struct net_carrier **out)
{
    (void)out;
    return plug_fail(WEFT_ERR_NO_LIBRARY, "gloo-cpu was built without UCX's headers (libucx-dev)");
}
