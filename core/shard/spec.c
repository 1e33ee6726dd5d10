/* spec.c - specs: one shared object per value, and its accessors. */
#include "shard.h"

#include <string.h>

/* Mix in what only the placements with sizes or an owner have. */
static uint64_t hash_rest(uint64_t h, const weft_placement *p)
{
    if (p->kind == WEFT_PLACE_OWNER) return wf_hash_mix(h, (uint64_t)p->owner);
    for (size_t i = 0; wf_placement_has_sizes(p) && i < p->size_count; i++)
        if (p->kind == WEFT_PLACE_SIZES || p->sizes[i] != 0)
            h = wf_hash_mix(h, (uint64_t)p->sizes[i]);
    return h;
}

static uint64_t hash_of(const struct wf_layout *layout)
{
    uint64_t h = wf_hash_mix(weft_mesh_hash(layout->mesh), layout->dtype);

    h = wf_hash_mix(h, (uint64_t)layout->dims);
    for (int32_t i = 0; i < layout->dims; i++)
        h = wf_hash_mix(h, (uint64_t)layout->shape[i]);
    for (int32_t i = 0; i < layout->mesh->axes; i++) {
        h = wf_hash_mix(h, wf_placement_code(&layout->placements[i]));
        h = wf_hash_mix(h, (uint64_t)layout->placements[i].factor);
        if (layout->placements[i].kind >= WEFT_PLACE_PARTS)
            h = hash_rest(h, &layout->placements[i]);
    }
    return h;
}

static bool same_spec(const struct wf_interned *object, const void *key)
{
    const struct wf_layout *a = &((const weft_spec *)object)->layout, *b = key;

    if (a->mesh != b->mesh || a->dtype != b->dtype || a->dims != b->dims ||
        memcmp(a->shape, b->shape, (size_t)a->dims * sizeof a->shape[0]) != 0)
        return false;
    for (int32_t i = 0; i < a->mesh->axes; i++)
        if (!wf_placement_same(&a->placements[i], &b->placements[i])) return false;
    return true;
}

/* Copy the sizes of SPLIT to AT, without parts of size 0, and add the starts of groups.  Returns
 * the end of the copies. */
static int64_t *keep_sizes(struct wf_split *split, weft_placement *p, int64_t *at)
{
    int64_t *sizes = at, sum = 0;

    for (int32_t i = 0; i < split->size_count; i++)
        if (split->kind == WEFT_PLACE_SIZES || split->sizes[i] != 0) *at++ = split->sizes[i];
    split->sizes = p->sizes = sizes;
    split->size_count = (int32_t)(at - sizes);
    p->size_count = (size_t)split->size_count;
    if (split->kind != WEFT_PLACE_SIZES) return at;
    split->starts = at;
    for (int32_t i = 0; i < split->size_count; i++) {
        *at++ = sum;
        sum += sizes[i];
    }
    return at;
}

static weft_status make_spec(const void *key, struct wf_interned **out)
{
    const struct wf_layout *layout = key;
    size_t bytes = sizeof(weft_spec);
    weft_spec *spec;
    int64_t *lists;

    for (int32_t i = 0; i < layout->split_count; i++)
        bytes += (layout->splits[i].kind == WEFT_PLACE_SIZES ? 2 : 1) *
                 (size_t)layout->splits[i].size_count * sizeof spec->lists[0];
    spec = wf_alloc(bytes);
    if (spec == NULL) return wf_fail_memory(bytes);
    spec->head.made = WF_OF_KIND(WF_KIND_SPEC);
    memcpy(&spec->layout, key, sizeof spec->layout);
    lists = spec->lists;
    for (int32_t i = 0; i < layout->split_count; i++) {
        struct wf_split *split = &spec->layout.splits[i];
        if (split->sizes != NULL)
            lists = keep_sizes(split, &spec->layout.placements[split->axis], lists);
    }
    spec->elements = 1;
    for (int32_t i = 0; i < spec->layout.dims; i++)
        spec->elements *= spec->layout.shape[i];
    weft_mesh_retain(spec->layout.mesh);
    *out = &spec->head;
    return WEFT_OK;
}

static void drop_spec(struct wf_interned *object)
{
    /* its reference is released too */
    weft_mesh *mesh = (weft_mesh *)((weft_spec *)object)->layout.mesh;

    weft_mesh_release(&mesh);
    object->made = wf_released(WF_KIND_SPEC);
    wf_free(object);
}

static struct wf_intern_table table = {.same = same_spec, .make = make_spec, .drop = drop_spec};

weft_spec *weft_spec_retain(const weft_spec *spec)
{
    weft_spec *same = (weft_spec *)spec; /* only its reference count changes */

    if (!wf_is_kind(spec, WF_KIND_SPEC)) return NULL;
    wf_intern_retain(&same->head);
    return same;
}

void weft_spec_release(weft_spec **spec)
{
    weft_spec *mine = wf_take(spec, WF_KIND_SPEC, "weft_spec_release");

    if (mine != NULL) wf_intern_release(&table, &mine->head);
}

/* wf_spec_intern for a layout whose shape is checked. */
static weft_status intern_checked(struct wf_layout *layout, weft_spec **out)
{
    struct wf_interned *spec;

    wf_layout_set_mesh(layout, layout->mesh);
    WF_TRY(wf_layout_settle(layout));
    WF_TRY(wf_intern(&table, hash_of(layout), layout, &spec));
    *out = (weft_spec *)spec;
    return WEFT_OK;
}

weft_status wf_spec_intern(struct wf_layout *layout, weft_spec **out)
{
    WF_TRY(wf_shape_check(layout->dims, layout->shape, layout->dtype));
    return intern_checked(layout, out);
}

weft_status weft_spec_create(const weft_mesh *mesh, enum weft_dtype dtype, int32_t dims,
                             const int64_t *shape, const weft_placement *placements,
                             weft_spec **out)
{
    struct wf_layout layout;

    WF_TRY(wf_require_kind(mesh, WF_KIND_MESH, "weft_spec_create: mesh"));
    if (dims > 0) WF_TRY(wf_require(shape, "weft_spec_create: shape"));
    WF_TRY(wf_require(placements, "weft_spec_create: placements"));
    WF_TRY(wf_require(out, "weft_spec_create: out"));
    WF_TRY(wf_placements_check_fields(placements, mesh->axes, "weft_spec_create"));
    WF_TRY(wf_shape_check(dims, shape, dtype));
    memset(&layout, 0, offsetof(struct wf_layout, splits)); /* wf_layout_settle sets these */
    layout.mesh = mesh;
    layout.dtype = dtype;
    layout.dims = dims;
    if (dims > 0) memcpy(layout.shape, shape, (size_t)dims * sizeof *shape);
    memcpy(layout.placements, placements, (size_t)mesh->axes * sizeof *placements);
    return intern_checked(&layout, out);
}

const weft_mesh *weft_spec_mesh(const weft_spec *spec)
{
    return wf_is_kind(spec, WF_KIND_SPEC) ? spec->layout.mesh : NULL;
}

enum weft_dtype weft_spec_dtype(const weft_spec *spec)
{
    return wf_is_kind(spec, WF_KIND_SPEC) ? spec->layout.dtype : WEFT_DTYPE_COUNT;
}

int32_t weft_spec_dims(const weft_spec *spec)
{
    return wf_is_kind(spec, WF_KIND_SPEC) ? spec->layout.dims : 0;
}

const int64_t *weft_spec_shape(const weft_spec *spec)
{
    return wf_is_kind(spec, WF_KIND_SPEC) ? spec->layout.shape : NULL;
}

const weft_placement *weft_spec_placements(const weft_spec *spec)
{
    return wf_is_kind(spec, WF_KIND_SPEC) ? spec->layout.placements : NULL;
}

int64_t weft_spec_elements(const weft_spec *spec)
{
    return wf_is_kind(spec, WF_KIND_SPEC) ? spec->elements : 0;
}

uint64_t weft_spec_hash(const weft_spec *spec)
{
    return wf_is_kind(spec, WF_KIND_SPEC) ? spec->head.hash : 0;
}
