/* gpu_load.c - opens vendor libraries, among them the device library.
 *
 * Libraries are opened for the plugin alone (RTLD_LOCAL), so that NCCL and RCCL, which export the
 * same names, can be loaded into one process.  DEEPBIND binds a library's calls to itself even if
 * the program is linked with the other library.  The address sanitizer does not allow DEEPBIND.
 *
 * A file that a variable names is opened only if trust.h accepts it.  A name without a slash is
 * passed to the dynamic linker, which uses its normal search path. */
#include "gpu.h"
#include "kit/trust.h"

#include <dlfcn.h>
#include <link.h>
#include <stdio.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <unistd.h>

struct gpu_api gpu_api;
struct gpu_library gpu_library;
int gpu_version;

static int open_flags(void)
{
    bool sanitized =
        dlsym(RTLD_DEFAULT, "__asan_init") != NULL || dlsym(RTLD_DEFAULT, "__tsan_init") != NULL;

    return RTLD_NOW | RTLD_LOCAL | (sanitized ? 0 : RTLD_DEEPBIND);
}

static bool try_open(struct gpu_library *library, const char *file)
{
    struct link_map *map = NULL;
    void *handle = dlopen(file, open_flags());

    if (handle == NULL) return false;
    library->handle = handle;
    if (dlinfo(handle, RTLD_DI_LINKMAP, &map) != 0 || map->l_name[0] == '\0')
        snprintf(library->path, sizeof library->path, "%s", file);
    else
        snprintf(library->path, sizeof library->path, "%s", map->l_name);
    return true;
}

void gpu_library_show(const struct gpu_library *library, char out[GPU_SHOWN])
{
    size_t length = strlen(library->path), most = GPU_SHOWN - 1;
    bool cut = length > most;

    snprintf(out, GPU_SHOWN, "%s%.160s", cut ? "..." : "",
             library->path + (cut ? length - (most - 3) : 0));
}

static bool is_folder(const char *path)
{
    struct stat facts;

    return stat(path, &facts) == 0 && S_ISDIR(facts.st_mode);
}

bool gpu_library_trust(const char *file, struct wf_trusted *out, bool *missing)
{
    bool secure = getauxval(AT_SECURE) != 0;
    Dl_info self = {0};
    struct wf_trust trust;
    enum wf_trust_answer answer;

    (void)dladdr(&gpu_library, &self);
    trust = wf_trust_of(self.dli_fname, secure);
    answer = wf_trust_open(file, &trust, out);
    if (missing != NULL) *missing = answer == WF_TRUST_MISSING;
    return answer == WF_TRUSTED;
}

/* Open FILE, which KNOB=ASKED names.  *MISSING is true if FILE does not exist. */
static weft_status open_named(struct gpu_library *library, const char *knob, const char *asked,
                              const char *file, bool *missing)
{
    struct wf_trusted trusted;
    bool opened;

    *missing = false;
    if (strchr(file, '/') == NULL) {
        opened = try_open(library, file);
    } else if (gpu_library_trust(file, &trusted, missing)) {
        opened = try_open(library, trusted.path);
        close(trusted.fd);
    } else {
        return plug_fail(WEFT_ERR_NO_LIBRARY, "%s=%s cannot be opened: %s", knob, asked,
                         trusted.why);
    }
    if (opened) return WEFT_OK;
    return plug_fail(WEFT_ERR_NO_LIBRARY, "%s=%s cannot be opened: %s", knob, asked, dlerror());
}

static weft_status open_in_folder(struct gpu_library *library, const char *knob, const char *folder,
                                  const char *const *names, size_t count, const char *wheel)
{
    char file[4096];

    for (size_t i = 0; i < 2 * count; i++) {
        bool in_wheel = i % 2 == 1, missing;
        weft_status status;

        if (in_wheel && wheel == NULL) continue;
        snprintf(file, sizeof file, "%s/%s%s%s", folder, in_wheel ? wheel : "", in_wheel ? "/" : "",
                 names[i / 2]);
        status = open_named(library, knob, folder, file, &missing);
        if (!missing) return status;
    }
    return plug_fail(WEFT_ERR_NO_LIBRARY, "%s not found in %s, the folder that %s names", names[0],
                     folder, knob);
}

static weft_status open_on_search_path(struct gpu_library *library, const char *knob,
                                       const char *const *names, size_t count)
{
    char tried[512];
    size_t used = 0;

    for (size_t i = 0; i < count; i++)
        if (try_open(library, names[i])) return WEFT_OK;
    for (size_t i = 0; i < count && used < sizeof tried; i++)
        used += (size_t)snprintf(tried + used, sizeof tried - used, "%s%s", i > 0 ? ", " : "",
                                 names[i]);
    return plug_fail(WEFT_ERR_NO_LIBRARY,
                     "%s not found on the library search path; set %s to the file", tried, knob);
}

/* Vendor libraries load code and files that their own environment variables name.  In a privileged
 * program the user could gain its privileges that way. */
weft_status gpu_library_open(struct gpu_library *library, const char *knob,
                             const char *const *names, size_t count, const char *wheel)
{
    const char *asked = plug_knob(knob);
    bool missing;

    if (getauxval(AT_SECURE) != 0)
        return plug_fail(WEFT_ERR_NO_LIBRARY,
                         "%s is not opened, because this program runs with privileges that its "
                         "user lacks, and environment variables can make the library load code; "
                         "run the program without raised privileges",
                         names[0]);
    if (asked == NULL) return open_on_search_path(library, knob, names, count);
    if (is_folder(asked)) return open_in_folder(library, knob, asked, names, count, wheel);
    return open_named(library, knob, asked, asked, &missing);
}

const char *gpu_library_resolve(const struct gpu_library *library, const struct gpu_symbol *symbols,
                                size_t count)
{
    const char *missing = NULL;

    for (size_t i = 0; i < count; i++) {
        *symbols[i].address = dlsym(library->handle, symbols[i].name);
        if (*symbols[i].address == NULL && symbols[i].required && missing == NULL)
            missing = symbols[i].name;
    }
    return missing;
}

static const char *const gpu_names[] = {VENDOR_GPU_LIBRARIES};

/* Function pointers and void pointers have one representation on every POSIX system. */
#define REQUIRED true
#define OPTIONAL false
static const struct gpu_symbol gpu_symbols[] = {
#define GPU(need, field, cuda, hip, arguments)                                                     \
    {VENDOR_SYMBOL(cuda, hip), (void **)(void *)&gpu_api.field, need},
#include "gpu_api.def"
#include "gpu_vendor.def"
#undef GPU
};

static weft_status open_and_check(void)
{
    const char *missing;

    PLUG_TRY(
        gpu_library_open(&gpu_library, VENDOR_GPU_KNOB, gpu_names, PLUG_LENGTH(gpu_names), NULL));
    missing = gpu_library_resolve(&gpu_library, gpu_symbols, PLUG_LENGTH(gpu_symbols));
    if (gpu_api.version != NULL) {
        PLUG_TRY(gpu_check(gpu_api.version(&gpu_version), "reading the version of " VENDOR_GPU));
        PLUG_TRY(gpu_vendor_check_version());
    }
    if (missing != NULL)
        return plug_fail(WEFT_ERR_OLD_LIBRARY, "%s has no function %s", gpu_library.path, missing);
    return WEFT_OK;
}

weft_status gpu_load(int *device_count)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    static bool loaded;
    weft_status status = WEFT_OK;
    vendor_result result;
    int count = 0;

    pthread_mutex_lock(&lock);
    if (!loaded) {
        gpu_vendor_prepare();
        status = open_and_check();
    }
    loaded = status == WEFT_OK;
    pthread_mutex_unlock(&lock);
    if (status != WEFT_OK) return status;

    result = gpu_api.init(0);
    if (result == GPU_SUCCESS || result == GPU_INVALID_DEVICE) /* device_count is more precise */
        result = gpu_api.device_count(&count);
    if (result == GPU_NO_DEVICE || result == GPU_INVALID_DEVICE ||
        (result == GPU_SUCCESS && count == 0))
        return plug_fail_vendor(WEFT_ERR_NO_DEVICE, VENDOR_GPU, result,
                                "no %s device is present (%s says: %s)", VENDOR_MAKER,
                                gpu_library.path, gpu_vendor_error_text(result));
    PLUG_TRY(gpu_check(result, "starting " VENDOR_GPU));
    *device_count = count;
    return WEFT_OK;
}
