/* swapped.c - a call whose enumerations are swapped, for compilers that must object; compiled as C
 * and as C++, with and without SWAPPED. */
#include "weft/weft.h"

weft_status reduce(weft_comm *comm, const float *send, float *recv);

weft_status reduce(weft_comm *comm, const float *send, float *recv)
{
#ifdef SWAPPED
    return weft_all_reduce(comm, send, recv, 8, WEFT_REDUCE_SUM, WEFT_DTYPE_F32, NULL);
#else
    return weft_all_reduce(comm, send, recv, 8, WEFT_DTYPE_F32, WEFT_REDUCE_SUM, NULL);
#endif
}
