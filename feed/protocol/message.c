/* message.c - requests and replies as bytes.  What is read is not trusted. */
#include "protocol.h"

#include "outside/texts.h"

#include <string.h>

static weft_status fail_parse(const char *what)
{
    return wf_fail(WEFT_ERR_PARSE, "not a %s of a feed", what);
}

/* ---- requests ---- */

void wf_feed_request_put(struct wf_text *out, const struct wf_feed_request *request)
{
    if (request->type == WF_FEED_LEASE) wf_put_u64(out, request->version);
    if (request->type == WF_FEED_MAP || request->type == WF_FEED_OFFER)
        wf_put_u32(out, (uint32_t)request->holder);
}

weft_status wf_feed_request_take(const struct wf_frame *frame, struct wf_feed_request *out)
{
    struct wf_reader reader = wf_frame_reader(frame);
    struct wf_feed_request request = {.type = (enum wf_feed_frame)frame->type};

    switch (frame->type) {
    case WF_FEED_DESCRIBE:
    case WF_FEED_RELEASE:
        break;
    case WF_FEED_LEASE:
        request.version = wf_take_u64(&reader);
        break;
    case WF_FEED_MAP:
    case WF_FEED_OFFER:
        request.holder = (int32_t)wf_take_u32(&reader);
        break;
    default:
        return fail_parse("request");
    }
    if (reader.failed || reader.left > 0) return fail_parse("request");
    *out = request;
    return WEFT_OK;
}

/* ---- the description ---- */

/* Append what wf_text_... writes of OBJECT as a string. */
#define PUT_PRINTED(out, print, object)                                                            \
    do {                                                                                           \
        struct wf_text printed = {0};                                                              \
        print(&printed, object);                                                                   \
        if (printed.failed) (out)->failed = true;                                                  \
        wf_put_blob(out, printed.data != NULL ? printed.data : "", printed.length);                \
        wf_text_free(&printed);                                                                    \
    } while (0)

void wf_feed_description_put(struct wf_text *out, const struct wf_feed_description *description)
{
    wf_put_u64(out, description->life);
    wf_put_u32(out, (uint32_t)description->ranks);
    wf_put_u32(out, description->simulated);
    wf_put_u64(out, description->slots);
    wf_put_u64(out, description->count);
    for (size_t i = 0; i < description->count; i++) {
        const struct wf_feed_entry *entry = &description->entries[i];
        wf_put_string(out, entry->name);
        PUT_PRINTED(out, wf_text_mesh, weft_spec_mesh(entry->spec));
        PUT_PRINTED(out, wf_text_spec, entry->spec);
    }
}

/* A string of at most MOST bytes; the caller frees it. */
static weft_status take_text(struct wf_reader *reader, size_t most, char **out)
{
    weft_blob blob = wf_take_blob(reader);

    if (reader->failed || blob.bytes > most || memchr(blob.data, '\0', (size_t)blob.bytes) != NULL)
        return fail_parse("description");
    *out = wf_strndup(blob.data, (size_t)blob.bytes);
    return *out != NULL ? WEFT_OK : wf_fail_memory((size_t)blob.bytes);
}

static weft_status take_spec(struct wf_reader *reader, int32_t ranks, const char *name,
                             weft_spec **out)
{
    char *mesh_text = NULL, *spec_text = NULL;
    weft_mesh *mesh = NULL;
    weft_status status = take_text(reader, WF_FRAME_MAX, &mesh_text);

    if (status == WEFT_OK) status = take_text(reader, WF_FRAME_MAX, &spec_text);
    if (status == WEFT_OK) status = weft_mesh_parse(mesh_text, &mesh);
    for (int32_t i = 0; status == WEFT_OK && i < weft_mesh_size(mesh); i++)
        if (weft_mesh_rank_at(mesh, i) >= ranks) status = fail_parse("description");
    if (status == WEFT_OK) status = weft_spec_parse(mesh, spec_text, out);
    weft_mesh_release(&mesh);
    wf_free(mesh_text);
    wf_free(spec_text);
    return status == WEFT_OK ? wf_feed_check_spec(*out, name) : status;
}

static weft_status take_entry(struct wf_reader *reader, int32_t ranks, struct wf_feed_entry *out)
{
    WF_TRY(take_text(reader, WF_FEED_NAME_MAX, &out->name));
    return take_spec(reader, ranks, out->name, &out->spec);
}

weft_status wf_feed_description_take(weft_blob payload, struct wf_feed_description *out)
{
    struct wf_reader reader = {payload.data, (size_t)payload.bytes, false};
    struct wf_feed_description made = {.life = wf_take_u64(&reader)};
    uint32_t ranks = wf_take_u32(&reader), simulated = wf_take_u32(&reader);
    uint64_t slots = wf_take_u64(&reader), count = wf_take_u64(&reader);
    weft_status status = WEFT_OK;

    if (reader.failed || ranks < 1 || ranks > WF_FEED_RANKS_MAX || simulated > 1 || slots < 1 ||
        slots > WEFT_PUBLISHER_VERSIONS_MAX || count > reader.left / 24)
        return fail_parse("description");
    made.ranks = (int32_t)ranks;
    made.simulated = simulated == 1;
    made.slots = (size_t)slots;
    made.entries = wf_calloc((size_t)count, sizeof *made.entries);
    if (made.entries == NULL) return wf_fail_memory((size_t)count * sizeof *made.entries);
    made.count = (size_t)count;
    for (size_t i = 0; i < made.count && status == WEFT_OK; i++)
        status = take_entry(&reader, made.ranks, &made.entries[i]);
    if (status == WEFT_OK && reader.left > 0) status = fail_parse("description");
    if (status != WEFT_OK)
        wf_feed_description_free(&made);
    else
        *out = made;
    return status;
}

void wf_feed_description_free(struct wf_feed_description *description)
{
    for (size_t i = 0; i < description->count; i++) {
        wf_free(description->entries[i].name);
        weft_spec_release(&description->entries[i].spec);
    }
    wf_free(description->entries);
    *description = (struct wf_feed_description){0};
}

/* ---- a version ---- */

void wf_feed_leased_put(struct wf_text *out, const struct wf_feed_leased *leased)
{
    wf_put_u64(out, leased->version);
    wf_put_u64(out, leased->serial);
    wf_put_u64(out, leased->slot);
    wf_put_blob(out, leased->sums.data, leased->sums.bytes);
}

weft_status wf_feed_leased_take(weft_blob payload, size_t slots, size_t count,
                                struct wf_feed_leased *out)
{
    struct wf_reader reader = {payload.data, (size_t)payload.bytes, false};
    struct wf_feed_leased made = {.version = wf_take_u64(&reader)};

    made.serial = wf_take_u64(&reader);
    made.slot = wf_take_u64(&reader);
    made.sums = wf_take_blob(&reader);
    if (reader.failed || reader.left > 0 || made.slot >= slots || made.serial == 0 ||
        made.sums.bytes / 8 != count || made.sums.bytes % 8 != 0)
        return fail_parse("lease");
    *out = made;
    return WEFT_OK;
}
