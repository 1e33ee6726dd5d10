/* plugin.c - opens the plugin under test, once in each process. */
#include "run.h"

#include <stdio.h>
#include <string.h>

static bool is_wanted(const weft_backend_info *info, const char *backend)
{
    const char *own = backend[0] == '/' ? info->file : info->name;

    return own != NULL && strcmp(own, backend) == 0;
}

static void keep(struct kit_plugin *out, const weft_plugin *tables, const weft_backend_info *info)
{
    snprintf(out->file, sizeof out->file, "%s", info->file != NULL ? info->file : "");
    snprintf(out->name, sizeof out->name, "%s", info->name);
    snprintf(out->version, sizeof out->version, "%s", info->version != NULL ? info->version : "");
    snprintf(out->refusal, sizeof out->refusal, "%s", info->reason_text);
    out->tables = tables;
}

void kit_plugin_open(const char *backend, struct kit_plugin *out)
{
    weft_backend_options options = {.struct_size = sizeof options, .backend = backend};
    weft_backends *backends = NULL;

    *out = (struct kit_plugin){0};
    snprintf(out->refusal, sizeof out->refusal, "there is no plugin \"%s\"", backend);
    if (weft_backends_create(&options, &backends) != WEFT_OK) {
        snprintf(out->refusal, sizeof out->refusal, "%s", weft_last_error());
        return;
    }
    for (size_t i = 0; i < weft_backends_count(backends) && out->tables == NULL; i++) {
        weft_backend_info info = {.struct_size = sizeof info};
        if (weft_backends_get(backends, i, &info) == WEFT_OK && is_wanted(&info, backend))
            keep(out,
                 info.reason == WEFT_BACKEND_REASON_USABLE ? weft_backends_plugin(backends, i)
                                                           : NULL,
                 &info);
    }
    weft_backends_release(&backends);
}
