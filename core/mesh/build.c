/* build.c - makes meshes: checks the arguments, finds the strides in a rank list, and keeps one
 * mesh per value. */
#include "mesh.h"

#include <string.h>

/* ---- one mesh per value ---- */

void wf_mesh_free(weft_mesh *draft)
{
    if (draft == NULL) return;
    wf_free(draft->ranks);
    wf_free(draft->positions);
    draft->head.made = wf_released(WF_KIND_MESH);
    wf_free(draft);
}

static uint64_t hash_of(const weft_mesh *mesh)
{
    uint64_t h = wf_hash_mix((uint64_t)mesh->axes, (uint64_t)mesh->devices_per_host);

    for (int32_t i = 0; i < mesh->axes; i++) {
        h = wf_hash_mix(h, (uint64_t)mesh->axis[i].size);
        h = wf_hash(h, mesh->axis[i].name, strlen(mesh->axis[i].name));
    }
    h = wf_hash_mix(h, (uint64_t)mesh->origin);
    for (int32_t i = 0; i < mesh->mode_count; i++) {
        h = wf_hash_mix(h, (uint64_t)mesh->modes[i].size);
        h = wf_hash_mix(h, (uint64_t)mesh->modes[i].stride);
    }
    if (mesh->ranks != NULL)
        for (int32_t i = 0; i < mesh->size; i++)
            h = wf_hash_mix(h, (uint64_t)mesh->ranks[i]);
    return h;
}

static bool same_mesh(const struct wf_interned *object, const void *key)
{
    const weft_mesh *a = (const weft_mesh *)object, *b = key;

    if (a->axes != b->axes || a->size != b->size || a->origin != b->origin ||
        a->devices_per_host != b->devices_per_host || a->mode_count != b->mode_count ||
        (a->ranks == NULL) != (b->ranks == NULL))
        return false;
    for (int32_t i = 0; i < a->axes; i++)
        if (a->axis[i].size != b->axis[i].size || strcmp(a->axis[i].name, b->axis[i].name) != 0)
            return false;
    for (int32_t i = 0; i < a->mode_count; i++)
        if (a->modes[i].size != b->modes[i].size || a->modes[i].stride != b->modes[i].stride)
            return false;
    return a->ranks == NULL || memcmp(a->ranks, b->ranks, (size_t)a->size * sizeof *a->ranks) == 0;
}

static weft_status adopt_draft(const void *key, struct wf_interned **out)
{
    *out = (struct wf_interned *)key; /* the draft itself becomes the mesh */
    return WEFT_OK;
}

static void drop_mesh(struct wf_interned *object)
{
    wf_mesh_free((weft_mesh *)object);
}

static struct wf_intern_table table = {.same = same_mesh, .make = adopt_draft, .drop = drop_mesh};

weft_mesh *weft_mesh_retain(const weft_mesh *mesh)
{
    weft_mesh *same = (weft_mesh *)mesh; /* only its reference count changes */

    if (!wf_is_kind(mesh, WF_KIND_MESH)) return NULL;
    wf_intern_retain(&same->head);
    return same;
}

void weft_mesh_release(weft_mesh **mesh)
{
    weft_mesh *mine = wf_take(mesh, WF_KIND_MESH, "weft_mesh_release");

    if (mine != NULL) wf_intern_release(&table, &mine->head);
}

/* ---- modes ---- */

void wf_mesh_add_mode(weft_mesh *draft, int32_t axis, int32_t size, int32_t stride)
{
    struct wf_mode *last = draft->mode_count > 0 ? &draft->modes[draft->mode_count - 1] : NULL;

    if (size == 1) return;
    if (last != NULL && last->axis == axis && last->stride == (int64_t)size * stride) {
        last->size *= size;
        last->stride = stride;
        return;
    }
    draft->modes[draft->mode_count++] = (struct wf_mode){size, stride, axis, 1};
}

bool wf_mesh_settle_modes(weft_mesh *draft)
{
    int32_t weight[WEFT_MAX_AXES] = {1, 1, 1, 1, 1, 1, 1, 1};
    int64_t reach = 0;

    for (int32_t i = draft->mode_count - 1; i >= 0; i--) {
        struct wf_mode *m = &draft->modes[i];
        m->weight = weight[m->axis];
        weight[m->axis] *= m->size;
    }
    for (int32_t i = 0; i < draft->mode_count; i++) {
        int32_t at = i;
        for (; at > 0 && draft->modes[draft->by_stride[at - 1]].stride < draft->modes[i].stride;
             at--)
            draft->by_stride[at] = draft->by_stride[at - 1];
        draft->by_stride[at] = (uint8_t)i;
    }
    for (int32_t i = draft->mode_count - 1; i >= 0; i--) {
        const struct wf_mode *m = &draft->modes[draft->by_stride[i]];
        if (m->stride <= reach) return false;
        reach += (int64_t)(m->size - 1) * m->stride;
    }
    return draft->origin + reach <= INT32_MAX;
}

/* Find the modes of axis AXIS, whose neighbours are STEP positions apart in the list. */
static bool fit_axis(weft_mesh *draft, int32_t axis, int32_t step)
{
    const int32_t *ranks = draft->ranks;
    struct wf_mode found[WF_MESH_MODES]; /* the fastest first */
    int32_t count = 0, size = draft->axis[axis].size;

    for (int32_t unit = 1; unit < size;) {
        int64_t stride = (int64_t)ranks[(int64_t)unit * step] - ranks[0];
        int32_t length = 1;
        if (stride <= 0) return false;
        while (length < size / unit &&
               ranks[(int64_t)length * unit * step] - ranks[0] == length * stride)
            length++;
        if (size / unit % length != 0) return false;
        found[count++] = (struct wf_mode){.size = length, .stride = (int32_t)stride};
        unit *= length;
    }
    while (count-- > 0)
        wf_mesh_add_mode(draft, axis, found[count].size, found[count].stride);
    return true;
}

static bool list_follows_modes(weft_mesh *draft)
{
    int32_t *ranks = draft->ranks;
    bool follows = true;

    draft->ranks = NULL; /* from now on the modes are used */
    for (int32_t i = 0; follows && i < draft->size; i++)
        follows = weft_mesh_rank_at(draft, i) == ranks[i];
    draft->ranks = ranks;
    return follows;
}

static bool fit_modes(weft_mesh *draft)
{
    int32_t step = draft->size;

    draft->origin = draft->ranks[0];
    for (int32_t i = 0; i < draft->axes; i++) {
        step /= draft->axis[i].size;
        if (!fit_axis(draft, i, step)) return false;
    }
    return wf_mesh_settle_modes(draft) && list_follows_modes(draft);
}

/* ---- rank lists ---- */

static weft_status index_list(weft_mesh *draft)
{
    uint32_t slots = 4;

    while (slots < 2 * (uint32_t)draft->size)
        slots *= 2;
    draft->positions = wf_alloc(slots * sizeof *draft->positions);
    if (draft->positions == NULL) return wf_fail_memory(slots * sizeof *draft->positions);
    memset(draft->positions, 0xff, slots * sizeof *draft->positions);
    draft->position_mask = slots - 1;
    for (int32_t i = 0; i < draft->size; i++) {
        int32_t rank = draft->ranks[i], position = wf_mesh_position(draft, rank);
        uint32_t at = (uint32_t)wf_hash_mix(0, (uint32_t)rank) & draft->position_mask;
        if (position >= 0)
            return wf_fail(WEFT_ERR_INVALID,
                           "rank %d is given twice, at positions %d and %d of the list", rank,
                           position, i);
        while (draft->positions[at] >= 0)
            at = (at + 1) & draft->position_mask;
        draft->positions[at] = i;
    }
    return WEFT_OK;
}

static weft_status settle_list(weft_mesh *draft)
{
    for (int32_t i = 0; i < draft->size; i++)
        if (draft->ranks[i] < 0)
            return wf_fail(WEFT_ERR_INVALID, "rank %d, at position %d of the list, is negative",
                           draft->ranks[i], i);
    if (fit_modes(draft)) {
        wf_free(draft->ranks);
        draft->ranks = NULL;
        return WEFT_OK;
    }
    draft->origin = 0;
    draft->mode_count = 0;
    WF_TRY(index_list(draft));
    return wf_mesh_count_hosts(draft);
}

weft_status wf_mesh_finish_take(weft_mesh *draft, weft_mesh **out)
{
    struct wf_interned *mesh = NULL;
    weft_status status = WEFT_OK;

    if (draft->ranks != NULL)
        status = settle_list(draft);
    else if (!wf_mesh_settle_modes(draft))
        status = wf_fail(WEFT_ERR_INVALID,
                         "the mesh would have one rank at two coordinates, or a rank above %d",
                         INT32_MAX);
    if (status == WEFT_OK) status = wf_intern(&table, hash_of(draft), draft, &mesh);
    if (status != WEFT_OK || mesh != &draft->head) wf_mesh_free(draft);
    if (status == WEFT_OK) *out = (weft_mesh *)mesh;
    return status;
}

/* ---- drafts ---- */

static weft_status check_name(const char *const *names, int32_t axis)
{
    struct wf_scan scan = {names[axis], 0};
    const char *start;
    size_t length;

    if (scan.text == NULL) return wf_fail(WEFT_ERR_INVALID, "mesh axis %d has no name", axis);
    if (!wf_scan_name(&scan, &start, &length) || !wf_scan_end(&scan))
        return wf_fail(WEFT_ERR_INVALID,
                       "mesh axis %d: \"%.40s\" is not a name; a name has letters, digits and _, "
                       "and does not begin with a digit",
                       axis, scan.text);
    if (length > WEFT_MAX_AXIS_NAME)
        return wf_fail(WEFT_ERR_INVALID,
                       "mesh axis %d: the name \"%.40s\" has %zu bytes; the maximum is %d", axis,
                       scan.text, length, WEFT_MAX_AXIS_NAME);
    for (int32_t i = 0; i < axis; i++)
        if (strcmp(names[i], names[axis]) == 0)
            return wf_fail(WEFT_ERR_INVALID, "mesh axes %d and %d are both named \"%s\"", i, axis,
                           names[axis]);
    return WEFT_OK;
}

weft_status wf_mesh_draft(int32_t axes, const int32_t *sizes, const char *const *names,
                          weft_mesh **out)
{
    weft_mesh *draft;
    int64_t size = 1;

    if (axes < 1 || axes > WEFT_MAX_AXES)
        return wf_fail(WEFT_ERR_INVALID, "the mesh has %d axes; a mesh must have 1 to %d", axes,
                       WEFT_MAX_AXES);
    for (int32_t i = 0; i < axes; i++) {
        if (sizes[i] < 1)
            return wf_fail(WEFT_ERR_INVALID, "mesh axis %d has size %d; the minimum is 1", i,
                           sizes[i]);
        size *= sizes[i]; /* both below 2^31 */
        if (size > INT32_MAX)
            return wf_fail(WEFT_ERR_INVALID,
                           "mesh axis %d makes a mesh of %lld ranks; the maximum is %d", i,
                           (long long)size, INT32_MAX);
        if (names != NULL) WF_TRY(check_name(names, i));
    }
    draft = wf_calloc(1, sizeof *draft);
    if (draft == NULL) return wf_fail_memory(sizeof *draft);
    draft->head.made = WF_OF_KIND(WF_KIND_MESH);
    draft->axes = axes;
    draft->size = (int32_t)size;
    for (int32_t i = 0; i < axes; i++) {
        draft->axis[i].size = sizes[i];
        if (names != NULL) memcpy(draft->axis[i].name, names[i], strlen(names[i]) + 1);
    }
    *out = draft;
    return WEFT_OK;
}

weft_status wf_mesh_give_list(weft_mesh *draft)
{
    size_t bytes = (size_t)draft->size * sizeof *draft->ranks;

    if (draft->size > WF_MESH_LIST_MAX)
        return wf_fail(WEFT_ERR_INVALID,
                       "the ranks of the mesh do not follow strides, and a list of %d ranks is too "
                       "long; the maximum is %d",
                       draft->size, WF_MESH_LIST_MAX);
    draft->ranks = wf_alloc(bytes);
    return draft->ranks != NULL ? WEFT_OK : wf_fail_memory(bytes);
}

void wf_mesh_follow(weft_mesh *draft, int32_t first, int32_t step)
{
    int32_t positions = draft->size;

    draft->origin = first;
    for (int32_t i = 0; i < draft->axes; i++) {
        positions /= draft->axis[i].size;
        if (draft->axis[i].size > 1) /* otherwise the product may be too large */
            wf_mesh_add_mode(draft, i, draft->axis[i].size, positions * step);
    }
}

static weft_status fill_draft(weft_mesh *draft, const weft_mesh_options *options)
{
    draft->devices_per_host = options->devices_per_host;
    if (draft->devices_per_host < 0)
        return wf_fail(
            WEFT_ERR_INVALID,
            "weft_mesh_options.devices_per_host is %d; it must be positive, or 0 if unknown",
            draft->devices_per_host);
    if (options->ranks == NULL) {
        wf_mesh_follow(draft, 0, 1);
        return WEFT_OK;
    }
    WF_TRY(wf_mesh_give_list(draft));
    memcpy(draft->ranks, options->ranks, (size_t)draft->size * sizeof *draft->ranks);
    return WEFT_OK;
}

weft_status weft_mesh_create(int32_t axes, const int32_t *sizes, const weft_mesh_options *options,
                             weft_mesh **out)
{
    weft_mesh_options given = {0};
    weft_mesh *draft;
    weft_status status;

    WF_TRY(wf_require(sizes, "weft_mesh_create: sizes"));
    WF_TRY(wf_require(out, "weft_mesh_create: out"));
    WF_TRY(wf_options_read("weft_mesh_options", options, &given, sizeof given));
    WF_TRY(wf_mesh_draft(axes, sizes, given.names, &draft));
    status = fill_draft(draft, &given);
    if (status == WEFT_OK) return wf_mesh_finish_take(draft, out);
    wf_mesh_free(draft);
    return status;
}
