/* Any bytes are a shared object of this machine or are refused with an error.  They are not run. */
#include "fuzz.h"

#include "plugin/plugin.h"

#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct wf_verdict verdict = {0};
    int fd = memfd_create("fuzz", MFD_CLOEXEC);

    FUZZ_ASSERT(fd >= 0 && write(fd, data, size) == (ssize_t)size);
    if (!wf_elf_check(fd, "the file", &verdict))
        FUZZ_ASSERT(verdict.text[0] != '\0' &&
                    (verdict.reason == WEFT_BACKEND_REASON_NOT_READABLE ||
                     verdict.reason == WEFT_BACKEND_REASON_WRONG_ARCHITECTURE));
    close(fd);
    return 0;
}
