/* heads.c - heads that a layout file wants whole: no rank may have a part of one. */
#include "file.h"
#include "outside/texts.h"

#include "weft/status.h"

#include <stdlib.h>
#include <string.h>

struct heads {
    int32_t dim;
    int64_t size; /* indices of a head */
};

static int64_t common_divisor(int64_t a, int64_t b)
{
    while (b != 0) {
        int64_t rest = a % b;

        a = b;
        b = rest;
    }
    return a;
}

/* The first placement that lists sizes or is strided; else the first that splits heads. */
static const weft_placement *deciding(const struct heads *heads, const weft_spec *spec)
{
    const weft_placement *placements = weft_spec_placements(spec);
    int32_t axes[WEFT_MAX_AXES] = {0}, count = wf_splits_of(spec, heads->dim, axes);

    for (int32_t k = 0; k < count; k++)
        if (placements[axes[k]].kind != WEFT_PLACE_SHARD) return &placements[axes[k]];
    return &placements[axes[0]];
}

static bool are_multiples(const weft_placement *p, int64_t size)
{
    for (size_t i = 0; i < p->size_count; i++)
        if (p->sizes[i] % size != 0) return false;
    return true;
}

/* "32, 4 and 4" of the parts of P; *DIVISOR divides all of them. */
static void add_part_counts(const struct heads *heads, const weft_placement *p, struct wf_text *out,
                            int64_t *divisor)
{
    *divisor = 0;
    for (size_t i = 0; i < p->size_count; i++) {
        *divisor = common_divisor(*divisor, p->sizes[i] / heads->size);
        wf_text_add(out, "%s%lld",
                    i == 0                  ? ""
                    : i + 1 < p->size_count ? ", "
                                            : " and ",
                    (long long)(p->sizes[i] / heads->size));
    }
}

/* Append the heads of SPEC: "4 heads of 128 indices", of parts "32, 4 and 4 heads of 128 indices",
 * of chunks "3 chunks of 8 heads of 128 indices".  *DIVISOR becomes the number that the ranks
 * should divide; 0: no number of ranks helps, as the sizes of the placement cut heads. */
static void add_counts(const struct heads *heads, const weft_spec *spec, struct wf_text *out,
                       int64_t *divisor)
{
    const weft_placement *p = deciding(heads, spec);
    int64_t count = weft_spec_shape(spec)[heads->dim] / heads->size;

    *divisor = count;
    if (p->kind == WEFT_PLACE_PARTS && are_multiples(p, heads->size)) {
        add_part_counts(heads, p, out, divisor);
    } else if (p->kind == WEFT_PLACE_STRIDED && count % p->factor == 0) {
        *divisor = count / p->factor;
        wf_text_add(out, "%lld chunks of %lld", (long long)p->factor, (long long)*divisor);
    } else {
        if (p->kind != WEFT_PLACE_SHARD) *divisor = 0;
        wf_text_add(out, "%lld", (long long)count);
    }
    wf_text_add(out, " heads of %lld indices", (long long)heads->size);
}

/* The ranks among which the heads are split. */
static int64_t count_splits(const struct heads *heads, const weft_spec *spec)
{
    int32_t axes[WEFT_MAX_AXES] = {0}, count = wf_splits_of(spec, heads->dim, axes);
    int64_t ranks = 1;

    for (int32_t k = 0; k < count; k++)
        ranks *= weft_mesh_axis_size(weft_spec_mesh(spec), axes[k]);
    return ranks;
}

/* Append what helps: RANKS split heads, whose count DIVISOR is in each part. */
static void add_advice(const struct heads *heads, const weft_spec *spec, int64_t ranks,
                       int64_t divisor, struct wf_text *out)
{
    const weft_placement *p = deciding(heads, spec);

    if (divisor == 0 && p->kind == WEFT_PLACE_STRIDED) {
        wf_text_add(out, "; write a number of chunks that divides the number of heads, not %lld",
                    (long long)p->factor);
    } else if (divisor == 0) {
        wf_text_add(out, "; write %s that are multiples of %lld",
                    p->kind == WEFT_PLACE_PARTS ? "parts" : "sizes", (long long)heads->size);
    } else if (divisor % ranks == 0) {
        wf_text_add(out, "; the placements must give every rank whole heads");
    } else {
        wf_text_add(out, "; take a number of ranks that divides %lld", (long long)divisor);
        if (ranks % divisor == 0 && weft_mesh_axes(weft_spec_mesh(spec)) == 1 &&
            p->kind != WEFT_PLACE_STRIDED)
            wf_text_add(out,
                        ", or write a layout for the mesh kv=%lld,copy=%lld, in which keys and "
                        "values, each a tensor of its own, are S(0),R, and queries are S(0),S(0) "
                        "(checkpoints.md)",
                        (long long)divisor, (long long)(ranks / divisor));
    }
}

static weft_status refuse(const struct heads *heads, const weft_spec *spec)
{
    int64_t ranks = count_splits(heads, spec), divisor = 0;
    struct wf_text text = {0};
    weft_status status;

    add_counts(heads, spec, &text, &divisor);
    wf_text_add(&text, ", which cannot stay whole on the %lld ranks of the mesh ",
                (long long)ranks);
    wf_text_mesh(&text, weft_spec_mesh(spec));
    add_advice(heads, spec, ranks, divisor, &text);
    status = wf_text_status(&text);
    if (status == WEFT_OK)
        status = wf_fail(WEFT_ERR_INVALID, "dimension %d has %s", heads->dim, text.data);
    wf_text_free(&text);
    return status;
}

weft_status wf_heads_check(const weft_spec *spec, int32_t dim, int64_t size)
{
    struct heads heads = {dim, size};

    /* Scales of blocks, for one, have no heads. */
    if (size <= 0 || dim >= weft_spec_dims(spec) || weft_spec_shape(spec)[dim] % size != 0 ||
        wf_heads_are_whole(spec, dim, size))
        return WEFT_OK;
    return refuse(&heads, spec);
}

/* Set *SIZE to the number that TEXT stands for; 0: it is one of a model that has no config.json. */
static weft_status read_size(struct wf_placer *placer, const char *text, int64_t *size)
{
    struct wf_text filled = {0};
    weft_status status = wf_placer_fill(placer, text, &filled);

    *size = 0;
    if (status == WEFT_OK) {
        *size = strtoll(filled.data, NULL, 10);
        if (*size < 1)
            status = wf_fail(WEFT_ERR_INVALID, "it is %s in %s/config.json; expected at least 1",
                             filled.data, placer->model.folder);
    }
    wf_text_free(&filled);
    return status == WEFT_ERR_NOT_FOUND && placer->model.is_absent ? WEFT_OK : status;
}

/* Set *OUT to the heads of TENSOR by the layout; size 0: it has none, or their size is not known.
 */
static weft_status find_heads(struct wf_placer *placer, const struct wf_tensor *tensor,
                              struct heads *out)
{
    const char *size = "";
    weft_status status;

    *out = (struct heads){0};
    WF_TRY(weft_layout_file_heads(placer->layout, tensor->name, &out->dim, &size));
    if (size[0] == '\0') return WEFT_OK;
    status = read_size(placer, size, &out->size);
    return status == WEFT_OK ? WEFT_OK : wf_fail_context(status, "heads%d(%s)", out->dim, size);
}

weft_status wf_placer_check(struct wf_placer *placer, const struct wf_tensor *tensor,
                            const weft_spec *spec)
{
    struct heads heads;

    WF_TRY(find_heads(placer, tensor, &heads));
    return wf_heads_check(spec, heads.dim, heads.size);
}

void wf_heads_warn(const weft_checkpoint *checkpoint, const weft_layout_file *layout)
{
    struct wf_placer placer;
    bool has_warned = false;

    wf_placer_begin(&placer, checkpoint, layout);
    for (size_t i = 0; i < checkpoint->tensor_count && !has_warned; i++) {
        const char *name = checkpoint->tensors[i].name, *text = "";
        int64_t size = 1;
        int32_t dim;

        if (weft_layout_file_heads(layout, name, &dim, &text) != WEFT_OK || text[0] == '\0' ||
            read_size(&placer, text, &size) != WEFT_OK || size > 0)
            continue;
        has_warned = true;
        wf_log(
            WF_LOG_WARNING,
            "heads that the layout wants whole are not checked, such as heads%d(%s) of tensor "
            "\"%.200s\": %s/config.json does not exist; copy that of the model, or write numbers "
            "in the layout",
            dim, text, name, placer.model.folder);
    }
    wf_placer_end(&placer);
}
