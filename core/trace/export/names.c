/* names.c - names of streams' tracks, and their end. */
#include "export.h"

#include <stdio.h>

void wf_stream_label(const struct wf_export *export, uint64_t stream, const char *suffix, char *out,
                     size_t bytes)
{
    const char *name = wf_trace_stream_name(export->trace, stream);

    if (name[0] != '\0')
        snprintf(out, bytes, "stream %s%s", name, suffix);
    else if (stream == 0)
        snprintf(out, bytes, "default stream%s", suffix);
    else
        snprintf(out, bytes, "stream %llu%s", (unsigned long long)stream, suffix);
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

void wf_export_name_stream(struct wf_export *export, uint64_t stream)
{
    wf_export_lock(export);
    rename_tracks(export, stream);
    wf_export_unlock(export);
}

void wf_export_forget_stream(struct wf_export *export, uint64_t stream)
{
    wf_export_lock(export);
    wf_lane_remove_stream(export, stream, wf_pace_convert(&export->pace, wf_ticks()));
    wf_device_remove(export, stream);
    wf_export_unlock(export);
}
