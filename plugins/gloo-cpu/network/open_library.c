/* open_library.c - opens a library that carries data between hosts, if its file can be trusted. */
#include "carriers.h"
#include "plug_host.h"
#include "kit/trust.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>

static const char here;

const char *net_plugin_path(void)
{
    Dl_info self;

    return dladdr(&here, &self) != 0 ? self.dli_fname : NULL;
}

void *net_open_library(const char *file, char *why_not, size_t bytes)
{
    struct wf_trusted trusted;
    struct wf_trust trust = wf_trust_of(net_plugin_path(), getauxval(AT_SECURE) != 0);
    bool named = strchr(file, '/') == NULL;
    void *library;

    if (!named && wf_trust_open(file, &trust, &trusted) != WF_TRUSTED) {
        snprintf(why_not, bytes, "%s", trusted.why);
        return NULL;
    }
    library = dlopen(named ? file : trusted.path, RTLD_NOW | RTLD_LOCAL);
    if (!named) close(trusted.fd);
    if (library == NULL) snprintf(why_not, bytes, "%s", dlerror());
    return library;
}
