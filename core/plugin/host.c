/* host.c - the functions that plugins may call.  Any thread may call them. */
#include "plugin.h"

#include "config/config.h"

static void host_log(int32_t level, const char *text)
{
    if (text == NULL) return;
    if (level < WF_LOG_ERROR) level = WF_LOG_ERROR;
    if (level > WF_LOG_DEBUG) level = WF_LOG_DEBUG;
    wf_log(level, "%s", text);
}

static void host_set_error(weft_status status, const char *vendor, int64_t code, const char *text)
{
    wf_fail_vendor(status, vendor, code, text);
}

static void *host_allocate(size_t bytes)
{
    return wf_alloc(bytes);
}

static void host_release(void *pointer)
{
    wf_free(pointer);
}

static const char *host_knob(const char *name)
{
    return name != NULL ? wf_config_knob(name) : NULL;
}

const weft_host wf_host = {
    .struct_size = sizeof(weft_host),
    .abi_major = WEFT_ABI_MAJOR,
    .abi_minor = WEFT_ABI_MINOR,
    .log = host_log,
    .set_error = host_set_error,
    .allocate = host_allocate,
    .release = host_release,
    .knob = host_knob,
};
