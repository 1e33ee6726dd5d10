/* wrong_signal_first.c - the signal overtakes the data it speaks for.
 * Runs: --only symm/put_signal
 * Fails: symm/put_signal */
#include "wrong.h"

#include <time.h>

static weft_status put_signal(void *window, uint64_t offset, const void *source, uint64_t bytes,
                              uint32_t signal, uint64_t value, uint32_t op, int32_t peer,
                              void *stream)
{
    weft_status status = right.symm.signal(window, signal, value, op, peer, stream);

    if (status != WEFT_OK) return status;
    nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
    return right.symm.put(window, offset, source, bytes, peer, stream);
}

void wrong_install(void)
{
    wrong.symm.put_signal = put_signal;
}
