/* hip_ranges.c - ranges as ROCTX ranges.
 *
 * A tool that records ROCTX ranges loads the library, or the program does.  The plugin never loads
 * it: if it is not in the process, no tool listens. */
#include "device/gpu.h"

#include <dlfcn.h>

static int (*range_push)(const char *name);
static int (*range_pop)(void);

static void find(void)
{
    static const char *const names[] = {"librocprofiler-sdk-roctx.so.1",
                                        "librocprofiler-sdk-roctx.so.0", "libroctx64.so.4"};
    void *handle = NULL;

    for (size_t i = 0; i < PLUG_LENGTH(names) && handle == NULL; i++)
        handle = dlopen(names[i], RTLD_LAZY | RTLD_NOLOAD);
    if (handle == NULL) return;
    *(void **)(void *)&range_push = dlsym(handle, "roctxRangePushA");
    *(void **)(void *)&range_pop = dlsym(handle, "roctxRangePop");
}

uint32_t gpu_ranges_wanted(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    (void)pthread_once(&once, find);
    return range_push != NULL && range_pop != NULL ? 1 : 0;
}

void gpu_range_begin(const weft_range *range)
{
    (void)range_push(range->name);
}

void gpu_range_end(void)
{
    (void)range_pop();
}
