/* text.c - meshes as people write them.
 *
 *     mesh   = sizes [ "@" range { "," range } ] [ "/" devices-per-host ]
 *     sizes  = SIZE { "x" SIZE }  |  NAME "=" SIZE { "," NAME "=" SIZE }
 *     SIZE   = a number, or in one axis "*": what the ranks of the job leave
 *     range  = RANK [ "-" RANK [ ":" STEP ] ]
 */
#include "mesh.h"

#include <string.h>

/* The parts of a mesh text. */
struct parts {
    int32_t axes, sizes[WEFT_MAX_AXES];
    char names[WEFT_MAX_AXES][WEFT_MAX_AXIS_NAME + 1];
    bool named;
    int64_t size;  /* product of sizes */
    int32_t ranks; /* of the job; 0: not known */
    int32_t open;  /* the axis with the size "*"; -1: none */
    struct wf_scan at_open;
    int32_t devices_per_host;
};

/* A number up to 2^31 - 1. */
static weft_status read_int(struct wf_scan *scan, const char *what, int32_t least, int32_t *out)
{
    struct wf_scan start = *scan;
    char first = wf_scan_peek(scan);
    int64_t value;

    if (first < '0' || first > '9') return wf_scan_fail(scan, "mesh", "expected %s", what);
    if (wf_scan_int(scan, what, &value) != WEFT_OK || value < least || value > INT32_MAX)
        return wf_scan_refuse(&start, "mesh", "%s must be from %d to %d", what, least, INT32_MAX);
    *out = (int32_t)value;
    return WEFT_OK;
}

static weft_status read_name(struct wf_scan *scan, struct parts *parts)
{
    struct wf_scan start_of_name = *scan;
    const char *start;
    size_t length;
    char *name = parts->names[parts->axes];

    if (!wf_scan_name(scan, &start, &length))
        return wf_scan_fail(scan, "mesh", "expected %s",
                            parts->axes == 0 ? "a mesh such as 2x4 or dp=2,tp=4"
                                             : "the name of an axis");
    if (length > WEFT_MAX_AXIS_NAME)
        return wf_scan_refuse(&start_of_name, "mesh", "a name of %zu bytes; the maximum is %d",
                              length, WEFT_MAX_AXIS_NAME);
    memcpy(name, start, length);
    name[length] = '\0';
    for (int32_t i = 0; i < parts->axes; i++)
        if (strcmp(parts->names[i], name) == 0)
            return wf_scan_refuse(&start_of_name, "mesh", "a second axis named \"%s\"", name);
    if (!wf_scan_char(scan, '=')) return wf_scan_fail(scan, "mesh", "expected '=' and a size");
    return WEFT_OK;
}

/* True if only blanks follow. */
static bool is_blank(struct wf_scan scan)
{
    wf_scan_space(&scan);
    return wf_scan_end(&scan);
}

/* The size of the next axis.  That of "*" follows from the others; it is 1 until then. */
static weft_status read_size(struct wf_scan *scan, struct parts *parts)
{
    struct wf_scan start = *scan;

    if (!wf_scan_char(scan, '*'))
        return read_int(scan, "the size of an axis", 1, &parts->sizes[parts->axes]);
    if (parts->ranks == 0)
        return wf_scan_refuse(&start, "mesh",
                              "the size * needs the number of ranks; write a number, or call "
                              "weft_mesh_parse_for with weft_size");
    if (parts->open >= 0) return wf_scan_refuse(&start, "mesh", "a second axis of size *");
    parts->open = parts->axes;
    parts->at_open = start;
    parts->sizes[parts->axes] = 1;
    return WEFT_OK;
}

static weft_status set_open_size(struct parts *parts)
{
    if (parts->open < 0) return WEFT_OK;
    if (parts->ranks % parts->size != 0)
        return wf_scan_refuse(&parts->at_open, "mesh",
                              "the size * would be %d ranks divided by %lld, which leaves a rest",
                              parts->ranks, (long long)parts->size);
    parts->sizes[parts->open] = (int32_t)(parts->ranks / parts->size);
    parts->size = parts->ranks;
    return WEFT_OK;
}

static weft_status read_sizes(struct wf_scan *scan, int32_t ranks, struct parts *parts)
{
    char first = wf_scan_peek(scan);

    *parts = (struct parts){.size = 1,
                            .named = first != '*' && (first < '0' || first > '9'),
                            .ranks = ranks,
                            .open = -1};
    do {
        struct wf_scan start = *scan;
        if (parts->axes == WEFT_MAX_AXES)
            return wf_scan_refuse(scan, "mesh", "an axis beyond the %d that a mesh may have",
                                  WEFT_MAX_AXES);
        if (parts->named) WF_TRY(read_name(scan, parts));
        WF_TRY(read_size(scan, parts));
        parts->size *= parts->sizes[parts->axes++];
        if (parts->size > INT32_MAX)
            return wf_scan_refuse(&start, "mesh", "this axis makes the mesh larger than %d ranks",
                                  INT32_MAX);
    } while (wf_scan_char(scan, parts->named ? ',' : 'x'));
    if (wf_scan_peek(scan) != '@' && wf_scan_peek(scan) != '/' && !is_blank(*scan))
        return wf_scan_fail(scan, "mesh", "expected %s",
                            parts->named ? "',' and an axis, as in dp=2,tp=4"
                                         : "'x' and a size, as in 2x4");
    return set_open_size(parts);
}

/* One range: COUNT ranks from FIRST on, STEP apart; COUNT may be 2^31. */
struct range {
    int32_t first, step;
    int64_t count;
};

static weft_status read_range(struct wf_scan *scan, struct range *out)
{
    struct wf_scan start = *scan;
    int32_t last, step = 1;

    WF_TRY(read_int(scan, "a rank", 0, &out->first));
    last = out->first;
    if (wf_scan_char(scan, '-')) {
        WF_TRY(read_int(scan, "the last rank", 0, &last));
        if (wf_scan_char(scan, ':')) WF_TRY(read_int(scan, "the step", 1, &step));
    } else if (wf_scan_peek(scan) == ':') {
        return wf_scan_refuse(scan, "mesh", "a step must follow a range of ranks, as in 0-6:2");
    }
    if (last < out->first)
        return wf_scan_refuse(&start, "mesh",
                              "the range %d-%d goes down; write the lower rank first", out->first,
                              last);
    if ((last - out->first) % step != 0)
        return wf_scan_refuse(&start, "mesh", "steps of %d from %d do not end at %d", step,
                              out->first, last);
    out->step = step;
    out->count = (int64_t)((last - out->first) / step) + 1;
    return WEFT_OK;
}

/* Read the ranges: the first into *FIRST, the number of all their ranks into *RANKS. */
static weft_status count_ranks(struct wf_scan *scan, struct range *first, int64_t *ranges,
                               int64_t *ranks)
{
    *ranges = *ranks = 0;
    do {
        struct range range;
        WF_TRY(read_range(scan, &range));
        if (*ranges == 0) *first = range;
        *ranges += 1;
        *ranks += range.count; /* ranges are fewer than the text's bytes: no overflow */
    } while (wf_scan_char(scan, ','));
    return WEFT_OK;
}

static weft_status list_ranks(struct wf_scan scan, weft_mesh *draft)
{
    int32_t at = 0;

    WF_TRY(wf_mesh_give_list(draft));
    do {
        struct range range;
        WF_TRY(read_range(&scan, &range));
        for (int64_t i = 0; i < range.count; i++)
            draft->ranks[at++] = (int32_t)(range.first + i * range.step);
    } while (wf_scan_char(&scan, ','));
    return WEFT_OK;
}

static weft_status read_ranks(struct wf_scan *scan, struct parts *parts, struct range *first,
                              int64_t *ranges)
{
    struct wf_scan start = *scan;
    int64_t ranks;

    *first = (struct range){.first = 0, .step = 1, .count = parts->size};
    *ranges = 1;
    if (wf_scan_char(scan, '@')) {
        WF_TRY(count_ranks(scan, first, ranges, &ranks));
        if (ranks != parts->size)
            return wf_scan_refuse(&start, "mesh", "the list has %lld ranks, but the mesh has %lld",
                                  (long long)ranks, (long long)parts->size);
    }
    if (wf_scan_char(scan, '/'))
        WF_TRY(read_int(scan, "the number of devices per host", 1, &parts->devices_per_host));
    if (!wf_scan_end(scan)) return wf_scan_fail(scan, "mesh", "expected the end");
    return WEFT_OK;
}

/* RANKS is the number of ranks of the job, or 0. */
static weft_status parse(const char *text, int32_t ranks, weft_mesh **out)
{
    struct wf_scan scan = {text, 0}, list;
    const char *names[WEFT_MAX_AXES];
    struct parts parts;
    struct range first;
    int64_t ranges;
    weft_mesh *draft;
    weft_status status = WEFT_OK;

    WF_TRY(read_sizes(&scan, ranks, &parts));
    list = (struct wf_scan){text, scan.at + 1};
    WF_TRY(read_ranks(&scan, &parts, &first, &ranges));
    for (int32_t i = 0; i < parts.axes; i++)
        names[i] = parts.names[i];
    WF_TRY(wf_mesh_draft(parts.axes, parts.sizes, parts.named ? names : NULL, &draft));
    draft->devices_per_host = parts.devices_per_host;
    if (ranges == 1)
        wf_mesh_follow(draft, first.first, first.step);
    else
        status = list_ranks(list, draft);
    if (status == WEFT_OK)
        status = wf_mesh_finish_take(draft, out);
    else
        wf_mesh_free(draft);
    return status == WEFT_ERR_INVALID ? wf_fail_context(status, "mesh \"%.200s\"", text) : status;
}

weft_status weft_mesh_parse(const char *text, weft_mesh **out)
{
    WF_TRY(wf_require(text, "weft_mesh_parse: text"));
    WF_TRY(wf_require(out, "weft_mesh_parse: out"));
    return parse(text, 0, out);
}

weft_status weft_mesh_parse_for(const char *text, int32_t ranks, weft_mesh **out)
{
    WF_TRY(wf_require(text, "weft_mesh_parse_for: text"));
    WF_TRY(wf_require(out, "weft_mesh_parse_for: out"));
    if (ranks < 1)
        return wf_fail(WEFT_ERR_INVALID, "weft_mesh_parse_for: ranks is %d; expected 1 or more",
                       ranks);
    return parse(text, ranks, out);
}

/* The longest range of equally spaced ranks from position FROM on, if it has three or more. */
static struct range next_range(const weft_mesh *mesh, int32_t from)
{
    int32_t first = weft_mesh_rank_at(mesh, from);
    struct range range = {first, 1, 1};
    int32_t at = from + 1;

    if (at == mesh->size || weft_mesh_rank_at(mesh, at) <= first) return range;
    range.step = weft_mesh_rank_at(mesh, at) - first;
    while (at < mesh->size && weft_mesh_rank_at(mesh, at) - first == range.count * range.step) {
        range.count++;
        at++;
    }
    if (range.count == 2) range.count = 1;
    return range;
}

static void add_ranks(const weft_mesh *mesh, struct wf_text *text)
{
    for (int32_t at = 0; at < mesh->size;) {
        struct range range = next_range(mesh, at);
        int32_t last = (int32_t)(range.first + (range.count - 1) * range.step);
        wf_text_add(text, "%c%d", at == 0 ? '@' : ',', range.first);
        if (range.count > 1) wf_text_add(text, "-%d", last);
        if (range.count > 1 && range.step > 1) wf_text_add(text, ":%d", range.step);
        at += (int32_t)range.count;
    }
}

/* True if the ranks follow one stride through the whole row-major order. */
static bool one_stride(const weft_mesh *mesh, int32_t *stride)
{
    int64_t next;

    if (mesh->ranks != NULL) return false;
    *stride = mesh->mode_count > 0 ? mesh->modes[mesh->mode_count - 1].stride : 1;
    next = *stride;
    for (int32_t i = mesh->mode_count - 1; i >= 0; i--) {
        if (mesh->modes[i].stride != next) return false;
        next *= mesh->modes[i].size;
    }
    return true;
}

void wf_mesh_add_text(const weft_mesh *mesh, struct wf_text *text)
{
    bool named = mesh->axis[0].name[0] != '\0';
    int32_t stride;

    for (int32_t i = 0; i < mesh->axes; i++) {
        if (i > 0) wf_text_char(text, named ? ',' : 'x');
        if (named) wf_text_add(text, "%s=", mesh->axis[i].name);
        wf_text_add(text, "%d", mesh->axis[i].size);
    }
    if (!one_stride(mesh, &stride) || (mesh->size == 2 && stride > 1))
        add_ranks(mesh, text);
    else if (mesh->size == 1 && mesh->origin != 0)
        wf_text_add(text, "@%d", mesh->origin);
    else if (mesh->origin != 0 || stride != 1)
        wf_text_add(text, "@%d-%d", mesh->origin, mesh->origin + (mesh->size - 1) * stride);
    if (mesh->size > 2 && one_stride(mesh, &stride) && stride != 1)
        wf_text_add(text, ":%d", stride);
    if (mesh->devices_per_host != 0) wf_text_add(text, "/%d", mesh->devices_per_host);
}

weft_status weft_mesh_print(const weft_mesh *mesh, char *text, size_t size, size_t *needed)
{
    struct wf_text printed = {0};

    WF_TRY(wf_require_kind(mesh, WF_KIND_MESH, "weft_mesh_print: mesh"));
    if (size > 0) WF_TRY(wf_require(text, "weft_mesh_print: text"));
    wf_mesh_add_text(mesh, &printed);
    return wf_text_copy_out(&printed, text, size, needed);
}
