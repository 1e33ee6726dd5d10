/* shmem_load.c - opens NVSHMEM and its bootstrap module, or reports the missing file. */
#include "shmem.h"
#include "kit/trust.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define BOOTSTRAP_SYMBOL "nvshmemi_bootstrap_plugin_init"

struct shmem_api shmem_api;
struct gpu_library shmem_library;

#define REQUIRED true
#define OPTIONAL false
static const struct gpu_symbol symbols[] = {
#define SHMEM(need, type, symbol, arguments) {#symbol, (void **)(void *)&shmem_api.symbol, need},
#include "shmem_api.def"
#undef SHMEM
};

/* Open FILE.  EXAMINE: a variable named it, so check whether it is trusted.  The library opens the
 * module through its own variable, which is set to the examined path. */
static void *open_module(const char *file, bool examine, struct wf_trusted *trusted, bool *missing)
{
    bool accepted = !examine || gpu_library_trust(file, trusted, missing);
    const char *path = examine ? trusted->path : file;
    void *handle = accepted ? dlopen(path, RTLD_NOW | RTLD_LOCAL) : NULL;

    if (handle != NULL) setenv("NVSHMEM_BOOTSTRAP_UID_PLUGIN", path, 1);
    if (examine && accepted) close(trusted->fd);
    return handle;
}

static void *open_bootstrap(const char *given, struct wf_trusted *trusted)
{
    const char *slash = strrchr(shmem_library.path, '/');
    bool examine = plug_knob(VENDOR_SHMEM_KNOB) != NULL, missing = true;
    char beside[sizeof shmem_library.path + sizeof VENDOR_BOOTSTRAP];
    void *handle = NULL;

    trusted->why[0] = '\0';
    if (given != NULL && strchr(given, '/') != NULL)
        return open_module(given, true, trusted, &missing);
    if (given != NULL) return dlopen(given, RTLD_NOW | RTLD_LOCAL);
    snprintf(beside, sizeof beside, "%.*s/%s",
             slash != NULL ? (int)(slash - shmem_library.path) : 0, shmem_library.path,
             VENDOR_BOOTSTRAP);
    if (slash != NULL) handle = open_module(beside, examine, trusted, &missing);
    if (handle != NULL || !missing) return handle;
    trusted->why[0] = '\0';
    return dlopen(VENDOR_BOOTSTRAP, RTLD_NOW | RTLD_LOCAL);
}

/* The library opens its bootstrap module by name.  If the module is missing, its error is hard to
 * read.  If the file is not a module, it ends the process. */
static weft_status find_bootstrap(void)
{
    const char *given = getenv("NVSHMEM_BOOTSTRAP_UID_PLUGIN");
    struct wf_trusted trusted;
    void *handle = open_bootstrap(given, &trusted);

    if (handle == NULL)
        return plug_fail(WEFT_ERR_NO_LIBRARY,
                         "the bootstrap library of NVSHMEM, %s, cannot be opened: %s%s%s",
                         given != NULL ? given : VENDOR_BOOTSTRAP,
                         trusted.why[0] != '\0' ? trusted.why : "it is neither beside ",
                         trusted.why[0] != '\0' ? "" : shmem_library.path,
                         trusted.why[0] != '\0' ? "" : " nor on the library search path");
    if (dlsym(handle, BOOTSTRAP_SYMBOL) == NULL)
        return plug_fail(WEFT_ERR_OLD_LIBRARY,
                         "%s has no function %s: it is not a bootstrap module",
                         given != NULL ? given : VENDOR_BOOTSTRAP, BOOTSTRAP_SYMBOL);
    return WEFT_OK; /* stays open for the library */
}

static weft_status open_library(void)
{
    static const char *const names[] = {VENDOR_SHMEM_LIBRARY};
    const char *missing;

    PLUG_TRY(gpu_library_open(&shmem_library, VENDOR_SHMEM_KNOB, names, 1, VENDOR_SHMEM_WHEEL));
    missing = gpu_library_resolve(&shmem_library, symbols, PLUG_LENGTH(symbols));
    if (missing != NULL)
        return plug_fail(WEFT_ERR_OLD_LIBRARY, "%s has no function %s; NVSHMEM 3 is needed",
                         shmem_library.path, missing);
    shmem_library_find();
    return find_bootstrap();
}

/* Loading code waits for all running kernels.  A kernel that waits for another rank would then
 * block kernels of this rank which that rank needs.  The driver reads these variables when it
 * starts, which NVSHMEM may cause before gpu_vendor_prepare is called. */
static void prepare_driver(void)
{
    setenv("CUDA_MODULE_LOADING", "EAGER", 0);
    gpu_vendor_prepare();
}

weft_status shmem_load(void)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    static bool is_loaded;
    weft_status status = WEFT_OK;

    pthread_mutex_lock(&lock);
    if (!is_loaded) {
        prepare_driver();
        status = open_library();
    }
    is_loaded = status == WEFT_OK;
    pthread_mutex_unlock(&lock);
    return status;
}

void shmem_version(int32_t version[3])
{
    int major = 0, minor = 0, patch = 0;

    if (shmem_api.nvshmemx_vendor_get_version_info != NULL)
        shmem_api.nvshmemx_vendor_get_version_info(&major, &minor, &patch);
    version[0] = major;
    version[1] = minor;
    version[2] = patch;
}

static void write_library(char *out, size_t size)
{
    int32_t version[3];
    char driver[64], path[GPU_SHOWN];

    gpu_library_show(&shmem_library, path);
    shmem_version(version);
    gpu_vendor_version_text(driver, sizeof driver);
    snprintf(out, size, "%s (NVSHMEM %d.%d.%d), %s", path, version[0], version[1], version[2],
             driver);
}

weft_status shmem_probe(weft_probe *out)
{
    weft_probe probe = {.struct_size = sizeof probe, .score = 290};
    int count = 0;

    PLUG_TRY(shmem_load());
    PLUG_TRY(gpu_load(&count));
    if (gpu_vendor_image(0) == NULL && plug_knob(VENDOR_KERNELS_KNOB) == NULL)
        return plug_fail(WEFT_ERR_NO_LIBRARY,
                         "the plugin was built without kernels, which it needs; -D%s=ON builds "
                         "them, %s names a file "
                         "of them",
                         VENDOR_KERNELS_OPTION, VENDOR_KERNELS_KNOB);
    probe.device_count = (uint32_t)count;
    write_library(probe.library, sizeof probe.library);
    plug_give_struct(out, &probe, sizeof probe);
    return WEFT_OK;
}
