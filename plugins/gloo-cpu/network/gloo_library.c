/* gloo_library.c - opens libweft_gloo.so, which is beside this plugin. */
#include "carriers.h"
#include "plug_host.h"
#include "kit/trust.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>

static pthread_once_t once = PTHREAD_ONCE_INIT;
static const struct net_carrier *carrier;
static char why_not[2048];

/* The path of the library, derived from the plugin's own path.  The working directory and the
 * search path are never used. */
static bool library_path(char *out, size_t bytes)
{
    static const char name[] = "libweft_gloo.so";
    Dl_info self;
    const char *slash;
    int used;

    if (dladdr(&once, &self) == 0 || self.dli_fname == NULL) return false;
    slash = strrchr(self.dli_fname, '/');
    if (slash == NULL) return false;
    used = snprintf(out, bytes, "%.*s/%s", (int)(slash - self.dli_fname), self.dli_fname, name);
    return used > 0 && (size_t)used < bytes;
}

/* Returns NULL and sets why_not if FILE cannot be opened.  The dynamic linker looks for a name
 * without a slash on its search path. */
static void *open_trusted(const char *file)
{
    struct wf_trusted trusted;
    struct wf_trust trust;
    Dl_info self = {0};
    bool named = strchr(file, '/') == NULL;
    void *library;

    (void)dladdr(&once, &self);
    trust = wf_trust_of(self.dli_fname, getauxval(AT_SECURE) != 0);
    if (!named && wf_trust_open(file, &trust, &trusted) != WF_TRUSTED) {
        snprintf(why_not, sizeof why_not, "%s", trusted.why);
        return NULL;
    }
    library = dlopen(named ? file : trusted.path, RTLD_NOW | RTLD_LOCAL);
    if (!named) close(trusted.fd);
    if (library == NULL) snprintf(why_not, sizeof why_not, "%s", dlerror());
    return library;
}

static void open_library(void)
{
    const char *given = plug_knob("WEFT_GLOO_LIB");
    char path[4096];
    void *library;
    union {
        void *symbol;
        net_gloo_entry *function;
    } entry;

    if (given == NULL && !library_path(path, sizeof path)) {
        snprintf(why_not, sizeof why_not, "the path of this plugin is unknown");
        return;
    }
    if (given != NULL) snprintf(path, sizeof path, "%s", given);
    library = open_trusted(path);
    if (library == NULL) return;
    entry.symbol = dlsym(library, NET_GLOO_ENTRY);
    carrier = entry.symbol != NULL ? entry.function() : NULL;
    if (carrier == NULL || carrier->version != NET_VERSION) {
        snprintf(why_not, sizeof why_not, "%.400s has version %u; expected %u", path,
                 carrier != NULL ? carrier->version : 0, NET_VERSION);
        carrier = NULL;
    }
}

bool net_gloo_expected(void)
{
    const char *given = plug_knob("WEFT_GLOO_LIB");
    char path[4096];

    if (given == NULL && library_path(path, sizeof path)) given = path;
    return given != NULL && access(given, R_OK) == 0;
}

weft_status net_gloo(const struct net_carrier **out)
{
    pthread_once(&once, open_library);
    if (carrier == NULL)
        return plug_fail(WEFT_ERR_NO_LIBRARY, "without Gloo, gloo-cpu serves one host only: %s",
                         why_not);
    *out = carrier;
    return WEFT_OK;
}
