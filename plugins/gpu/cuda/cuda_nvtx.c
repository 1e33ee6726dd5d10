/* cuda_nvtx.c - finds a tool for NVTX and lets it attach. */
#include "device/gpu.h"
#include "nvtx.h"
#include "kit/trust.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>

static const unsigned sizes[NVTX_MODULES] = {
    [NVTX_MODULE_CORE] = NVTX_CORE_SIZE,     [NVTX_MODULE_CUDA] = NVTX_CUDA_SIZE,
    [NVTX_MODULE_OPENCL] = NVTX_OPENCL_SIZE, [NVTX_MODULE_CUDART] = NVTX_CUDART_SIZE,
    [NVTX_MODULE_CORE2] = NVTX_CORE2_SIZE,   [NVTX_MODULE_SYNC] = NVTX_SYNC_SIZE,
};

/* The tool stores its functions here.  Tools expect all modules; weft uses some of CORE2. */
static nvtx_function functions[NVTX_MODULES][NVTX_MAX_SIZE];
static nvtx_function *places[NVTX_MODULES][NVTX_MAX_SIZE + 1]; /* NULL at both ends */

static int get_module(int module, nvtx_function ***table, unsigned *size)
{
    if (module <= 0 || module >= NVTX_MODULES) return 0;
    if (table != NULL) *table = places[module];
    if (size != NULL) *size = sizes[module];
    return 1;
}

static void set_tool_version(uint32_t version)
{
    (void)version;
}

static const void *get_table(uint32_t table)
{
    static const struct nvtx_callbacks callbacks = {sizeof callbacks, get_module};
    static const struct nvtx_version version = {sizeof version, NVTX_CLIENT_VERSION, 0,
                                                set_tool_version};

    if (table == NVTX_TABLE_CALLBACKS) return &callbacks;
    return table == NVTX_TABLE_VERSION ? &version : NULL;
}

/* Open FILE as the other libraries that variables name (gpu_load.c).  NULL is logged. */
static void *open_library(const char *file)
{
    struct wf_trusted trusted = {.fd = -1};
    void *handle;

    if (strchr(file, '/') != NULL && !gpu_library_trust(file, &trusted, NULL)) {
        plug_log(1, "no NVTX ranges: NVTX_INJECTION64_PATH=%s cannot be opened: %s", file,
                 trusted.why);
        return NULL;
    }
    handle = dlopen(trusted.fd >= 0 ? trusted.path : file, RTLD_LAZY | RTLD_LOCAL);
    if (trusted.fd >= 0) close(trusted.fd);
    if (handle == NULL)
        plug_log(1, "no NVTX ranges: NVTX_INJECTION64_PATH=%s cannot be opened: %s", file,
                 dlerror());
    return handle;
}

static bool initialize(const char *file)
{
    void *handle = open_library(file);
    nvtx_initialize start = NULL;

    if (handle == NULL) return false;
    *(void **)(void *)&start = dlsym(handle, "InitializeInjectionNvtx2");
    if (start != NULL && start(get_table) != 0) return true;
    plug_log(1, "no NVTX ranges: NVTX_INJECTION64_PATH=%s %s", file,
             start == NULL ? "has no function InitializeInjectionNvtx2" : "does not start");
    dlclose(handle);
    return false;
}

static nvtx_function tool(int number)
{
    return __atomic_load_n(&functions[NVTX_MODULE_CORE2][number], __ATOMIC_RELAXED);
}

bool nvtx_attach(void)
{
    const char *file = getenv("NVTX_INJECTION64_PATH");

    if (file == NULL || file[0] == '\0' || getauxval(AT_SECURE) != 0) return false;
    for (int m = 1; m < NVTX_MODULES; m++)
        for (unsigned i = 1; i < sizes[m]; i++)
            places[m][i] = &functions[m][i];
    return initialize(file);
}

void *nvtx_domain_create(const char *name)
{
    void *(*function)(const char *) = (void *(*)(const char *))tool(NVTX_DOMAIN_CREATE);

    return function != NULL ? function(name) : NULL;
}

void *nvtx_register_string(void *domain, const char *text)
{
    void *(*function)(void *, const char *) =
        (void *(*)(void *, const char *))tool(NVTX_DOMAIN_REGISTER_STRING);

    return function != NULL ? function(domain, text) : NULL;
}

void nvtx_name_category(void *domain, uint32_t category, const char *name)
{
    void (*function)(void *, uint32_t, const char *) =
        (void (*)(void *, uint32_t, const char *))tool(NVTX_DOMAIN_NAME_CATEGORY);

    if (function != NULL) function(domain, category, name);
}

void nvtx_range_push(void *domain, const struct nvtx_event *event)
{
    int (*function)(void *, const struct nvtx_event *) =
        (int (*)(void *, const struct nvtx_event *))tool(NVTX_DOMAIN_RANGE_PUSH);

    if (function != NULL) (void)function(domain, event);
}

void nvtx_range_pop(void *domain)
{
    int (*function)(void *) = (int (*)(void *))tool(NVTX_DOMAIN_RANGE_POP);

    if (function != NULL) (void)function(domain);
}
