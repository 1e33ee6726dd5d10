/* inline.c - a correct plugin that calls host functions before stream_call returns, as plugins do
 * whose streams have no thread.  A function must not wait for what its caller would do later: here
 * it may sleep a few times, not for ever. */
#include "wrong.h"

#include <sys/resource.h>

enum { SLEEPS_MOST = 1000 };

static long sleeps(void)
{
    struct rusage usage;

    return getrusage(RUSAGE_THREAD, &usage) == 0 ? usage.ru_nvcsw : 0;
}

static weft_status stream_call(void *device, void *stream, void (*function)(void *), void *argument)
{
    weft_status status = right.device.stream_wait(device, stream, WEFT_FOREVER);
    long before = sleeps();

    if (status != WEFT_OK) return status;
    function(argument);
    return sleeps() - before < SLEEPS_MOST ? WEFT_OK : WEFT_ERR_INTERNAL;
}

INSTALL(wrong.device.stream_call = stream_call)
