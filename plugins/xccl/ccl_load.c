/* ccl_load.c - opens NCCL or RCCL and checks whether this machine is supported. */
#include "ccl.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

struct ccl_api ccl_api;
struct gpu_library ccl_library;
int ccl_version;

static const char *const ccl_names[] = {VENDOR_CCL_LIBRARIES};

#define REQUIRED true
#define OPTIONAL false
static const struct gpu_symbol ccl_symbols[] = {
#define CCL(need, type, symbol, arguments) {#symbol, (void **)(void *)&ccl_api.symbol, need},
#include "ccl_api.def"
#undef CCL
};

/* Versions up to 2.9 have one digit less for the major number. */
static void version_text(int version, char *out, size_t size)
{
    int unit = version < 10000 ? 1000 : 10000;

    snprintf(out, size, "%d.%d.%d", version / unit, version % unit / 100, version % 100);
}

static weft_status open_and_check(void)
{
    char have[32], want[32];
    const char *missing;

    PLUG_TRY(gpu_library_open(&ccl_library, VENDOR_CCL_KNOB, ccl_names, PLUG_LENGTH(ccl_names),
                              VENDOR_CCL_WHEEL));
    missing = gpu_library_resolve(&ccl_library, ccl_symbols, PLUG_LENGTH(ccl_symbols));
    if (ccl_api.ncclAlltoAll == NULL) /* RCCL's older spelling */
        *(void **)(void *)&ccl_api.ncclAlltoAll = dlsym(ccl_library.handle, "ncclAllToAll");
    if (ccl_api.ncclGetVersion != NULL && ccl_api.ncclGetVersion(&ccl_version) == CCL_SUCCESS &&
        ccl_version < VENDOR_CCL_MIN) {
        version_text(ccl_version, have, sizeof have);
        version_text(VENDOR_CCL_MIN, want, sizeof want);
        return plug_fail(WEFT_ERR_OLD_LIBRARY, "%s is %s %s; %s or newer is needed",
                         ccl_library.path, VENDOR_CCL, have, want);
    }
    if (missing != NULL)
        return plug_fail(WEFT_ERR_OLD_LIBRARY, "%s has no function %s", ccl_library.path, missing);
    return WEFT_OK;
}

weft_status ccl_load(void)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    static bool loaded;
    weft_status status = WEFT_OK;

    pthread_mutex_lock(&lock);
    if (!loaded) status = open_and_check();
    loaded = status == WEFT_OK;
    pthread_mutex_unlock(&lock);
    return status;
}

weft_status ccl_probe(weft_probe *out)
{
    weft_probe probe = {.struct_size = sizeof probe, .score = 300};
    char ccl[32], gpu[64], path[GPU_SHOWN];
    int count = 0;

    PLUG_TRY(gpu_load(&count));
    PLUG_TRY(ccl_load());
    probe.device_count = (uint32_t)count;
    version_text(ccl_version, ccl, sizeof ccl);
    gpu_vendor_version_text(gpu, sizeof gpu);
    gpu_library_show(&ccl_library, path);
    snprintf(probe.library, sizeof probe.library, "%.163s (%s %s, %.30s)", path, VENDOR_CCL, ccl,
             gpu);
    plug_give_struct(out, &probe, sizeof probe);
    return WEFT_OK;
}

static weft_status status_of(ccl_result result)
{
    switch (result) {
    case CCL_SUCCESS:
        return WEFT_OK;
    case CCL_IN_PROGRESS:
        return WEFT_IN_PROGRESS;
    case CCL_UNHANDLED_GPU_ERROR:
        return WEFT_ERR_DEVICE;
    case CCL_SYSTEM_ERROR:
        return WEFT_ERR_SYSTEM;
    case CCL_INVALID_ARGUMENT:
    case CCL_INVALID_USAGE:
        return WEFT_ERR_INVALID;
    case CCL_REMOTE_ERROR:
        return WEFT_ERR_PEER;
    default:
        return WEFT_ERR_DEVICE;
    }
}

weft_status ccl_check(ccl_result result, const char *what)
{
    weft_status status = status_of(result);
    const char *last;

    if (status == WEFT_OK || status == WEFT_IN_PROGRESS) return status;
    last = ccl_api.ncclGetLastError(NULL);
    return plug_fail_vendor(status, VENDOR_CCL, result, "%s: %s (%s %d)%s%s", what,
                            ccl_api.ncclGetErrorString(result), VENDOR_CCL, (int)result,
                            last != NULL && last[0] != '\0' ? ": " : "", last != NULL ? last : "");
}
