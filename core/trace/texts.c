/* texts.c - texts that records refer to by number: the offset in the segment.  A text stays as long
 * as the recorder.  And the names of streams. */
#include "trace.h"

#include <string.h>

#define TEXT_MOST 255

static char *texts_of(const struct wf_trace *trace)
{
    return (char *)trace->segment + sizeof *trace->segment;
}

const char *wf_trace_text(const struct wf_trace *trace, uint32_t number)
{
    uint32_t used = atomic_load_explicit(&trace->segment->text_used, memory_order_acquire);

    return number < used ? texts_of(trace) + number : "";
}

/* The entry of a text, or the free one for it.  Half of the table is free. */
static struct wf_text_entry *find(const struct wf_trace *trace, uint32_t hash, const char *text,
                                  size_t length)
{
    for (uint32_t at = hash % WF_TEXT_ENTRIES;; at = (at + 1) % WF_TEXT_ENTRIES) {
        struct wf_text_entry *entry = &trace->texts[at];
        const char *known = texts_of(trace) + entry->text;

        if (entry->text == 0) return entry;
        if (entry->hash == hash && strlen(known) == length && memcmp(known, text, length) == 0)
            return entry;
    }
}

static uint32_t add(struct wf_trace *trace, struct wf_text_entry *entry, uint32_t hash,
                    const char *text, size_t length)
{
    uint32_t used = atomic_load(&trace->segment->text_used);

    if (length + 1 > WF_TEXT_BYTES - used || trace->text_count == WF_TEXT_ENTRIES / 2) return 0;
    memcpy(texts_of(trace) + used, text, length); /* a zero follows: the segment began with zeros */
    *entry = (struct wf_text_entry){hash, used};
    trace->text_count++;
    atomic_store_explicit(&trace->segment->text_used, used + (uint32_t)length + 1,
                          memory_order_release);
    return used;
}

/* The length of TEXT, if it is cut after MOST bytes, but not inside a character of UTF-8. */
static size_t cut(const char *text, size_t most)
{
    size_t length = strnlen(text, most);

    while (length == most && length > 0 && ((unsigned char)text[length] & 0xC0) == 0x80)
        length--, most--;
    return length;
}

static void warn_full(const struct wf_trace *trace)
{
    wf_log(
        WF_LOG_WARNING,
        "the recorder of rank %d has no room for more names of tensors, communicators, functions "
        "and "
        "axes (%d KiB, %d names); operations with other names have none in dumps, traces and `weft "
        "status`",
        trace->segment->rank, WF_TEXT_BYTES / 1024, WF_TEXT_ENTRIES / 2);
}

uint32_t wf_trace_intern_long(struct wf_trace *trace, const char *text, size_t most)
{
    size_t length = text != NULL ? cut(text, most) : 0;
    uint32_t hash = (uint32_t)wf_hash(1, text != NULL ? text : "", length);
    struct wf_text_entry *entry;
    uint32_t number;
    bool is_full;

    if (length == 0) return 0;
    pthread_mutex_lock(&trace->lock);
    entry = find(trace, hash, text, length);
    number = entry->text != 0 ? entry->text : add(trace, entry, hash, text, length);
    is_full = number == 0 && !trace->texts_missed;
    trace->texts_missed = trace->texts_missed || is_full;
    pthread_mutex_unlock(&trace->lock);
    if (is_full) warn_full(trace);
    return number;
}

uint32_t wf_trace_intern(struct wf_trace *trace, const char *text)
{
    return wf_trace_intern_long(trace, text, TEXT_MOST);
}

/* ---- names of streams ---- */

static struct wf_stream_name *find_stream(struct wf_trace *trace, uint64_t stream)
{
    for (size_t i = 0; i < WF_STREAM_NAMES; i++)
        if (atomic_load(&trace->stream_names[i].stream) == stream + 1)
            return &trace->stream_names[i];
    return NULL;
}

/* Numbers are not used again, so the name of a released stream stays until its place is needed. */
void wf_trace_name_stream(struct wf_trace *trace, uint64_t stream, uint32_t name)
{
    struct wf_stream_name *entry;

    pthread_mutex_lock(&trace->lock);
    entry = find_stream(trace, stream);
    if (entry == NULL) {
        entry = &trace->stream_names[trace->stream_name_count++ % WF_STREAM_NAMES];
        atomic_store(&entry->stream, 0);
    }
    atomic_store(&entry->name, name);
    atomic_store(&entry->stream, stream + 1);
    pthread_mutex_unlock(&trace->lock);
}

const char *wf_trace_stream_name(const struct wf_trace *trace, uint64_t stream)
{
    for (size_t i = 0; i < WF_STREAM_NAMES; i++) {
        const struct wf_stream_name *entry = &trace->stream_names[i];
        uint32_t name;

        if (atomic_load(&entry->stream) != stream + 1) continue;
        name = atomic_load(&entry->name);
        if (atomic_load(&entry->stream) == stream + 1) return wf_trace_text(trace, name);
    }
    return "";
}
