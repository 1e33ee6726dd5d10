/* wrong_leaks_files.c - leaves a file open for each device.
 * Runs: --level load
 * Fails: load/reopen */
#include "wrong.h"

#include <fcntl.h>

static weft_status open_device(const weft_device_options *options, void **device)
{
    int file = open("/dev/null", O_RDONLY);

    (void)file;
    return right.device.open(options, device);
}

INSTALL(wrong.device.open = open_device)
