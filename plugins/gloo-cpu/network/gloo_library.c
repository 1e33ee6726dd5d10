/* gloo_library.c - opens libweft_gloo.so, which is beside this plugin. */
#include "carriers.h"
#include "plug_host.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

static pthread_once_t once = PTHREAD_ONCE_INIT;
static const struct net_carrier *carrier;
static char why_not[2048];

/* The path of the library, derived from the plugin's own path.  The working directory and the
 * search path are never used. */
static bool library_path(char *out, size_t bytes)
{
    static const char name[] = "libweft_gloo.so";
    const char *plugin = net_plugin_path(), *slash = plugin != NULL ? strrchr(plugin, '/') : NULL;
    int used;

    if (slash == NULL) return false;
    used = snprintf(out, bytes, "%.*s/%s", (int)(slash - plugin), plugin, name);
    return used > 0 && (size_t)used < bytes;
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
    library = net_open_library(path, why_not, sizeof why_not);
    if (library == NULL) return;
    entry.symbol = dlsym(library, NET_GLOO_ENTRY);
    carrier = entry.symbol != NULL ? entry.function() : NULL;
    if (carrier == NULL || carrier->version != NET_VERSION) {
        snprintf(why_not, sizeof why_not, "%.400s has version %u; expected %u", path,
                 carrier != NULL ? carrier->version : 0, NET_VERSION);
        carrier = NULL;
    }
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
