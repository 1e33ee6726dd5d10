/* wrong_signal_first.c - the signal overtakes its data.
 * Runs: --only symm/put_signal
 * Fails: symm/put_signal */
#include "wrong.h"

#include <time.h>

static weft_status put_signal(void *window, uint64_t offset, const void *source, uint64_t bytes,
                              uint32_t signal, uint64_t value, uint32_t op, int32_t peer,
                              void *stream)
{
    weft_symm_handle handle = {.struct_size = sizeof handle};
    weft_status status = right.symm.signal(window, signal, value, op, peer, stream);

    if (status == WEFT_OK) status = right.symm.handle(window, &handle);
    if (status != WEFT_OK) return status;
    /* The delays differ between ranks, so that some ranks are later than others. */
    nanosleep(&(struct timespec){.tv_nsec = 20000000 * (1 + 2 * handle.rank)}, NULL);
    return right.symm.put(window, offset, source, bytes, peer, stream);
}

INSTALL(wrong.symm.put_signal = put_signal)
