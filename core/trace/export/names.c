/* names.c - names of streams' tracks. */
#include "export.h"

#include <stdio.h>

static const char *find(const struct wf_export *export, uint64_t stream)
{
    for (uint32_t i = 0; i < export->name_count; i++)
        if (export->names[i].stream == stream) return export->names[i].name;
    return NULL;
}

void wf_stream_label(const struct wf_export *export, uint64_t stream, const char *suffix, char *out,
                     size_t bytes)
{
    const char *name = find(export, stream);

    if (name != NULL && name[0] != '\0')
        snprintf(out, bytes, "stream %s%s", name, suffix);
    else if (stream == 0)
        snprintf(out, bytes, "default stream%s", suffix);
    else
        snprintf(out, bytes, "stream %#llx%s", (unsigned long long)stream, suffix);
}

/* Describe the tracks of STREAM again. */
static void rename_tracks(struct wf_export *export, uint64_t stream)
{
    char label[96];

    for (const struct wf_lane *lane = export->lanes; lane != NULL; lane = lane->next) {
        if (!lane->is_stream || lane->key != stream) continue;
        wf_stream_label(export, stream, WF_SEEN_BY_HOST, label, sizeof label);
        wf_packets_describe(export, lane->track, label);
    }
    for (const struct wf_device_lane *lane = export->devices; lane != NULL; lane = lane->next) {
        if (lane->stream != stream) continue;
        wf_stream_label(export, stream, "", label, sizeof label);
        wf_packets_describe(export, lane->track, label);
    }
}

void wf_export_name_stream(struct wf_export *export, const void *stream, const char *name)
{
    uint64_t key = (uint64_t)(uintptr_t)stream;
    uint32_t at = 0;

    wf_export_lock(export);
    while (at < export->name_count && export->names[at].stream != key)
        at++;
    if (at < WF_COUNT(export->names)) {
        export->names[at].stream = key;
        snprintf(export->names[at].name, sizeof export->names[at].name, "%s", name);
        if (at == export->name_count) export->name_count++;
        rename_tracks(export, key);
    }
    wf_export_unlock(export);
}
