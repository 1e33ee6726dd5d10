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

/* Is an end of the run inside a head? */
static bool cuts(const struct heads *heads, const weft_index_run *run)
{
    return run->start % heads->size != 0 || run->length % heads->size != 0;
}

static bool rank_cuts(const struct heads *heads, const weft_spec *spec, int32_t rank)
{
    weft_index_run run;

    for (int64_t at = 0; weft_spec_run(spec, rank, heads->dim, at, &run); at += run.length)
        if (cuts(heads, &run)) return true;
    return false;
}

static int64_t common_divisor(int64_t a, int64_t b)
{
    while (b != 0) {
        int64_t rest = a % b;

        a = b;
        b = rest;
    }
    return a;
}

/* Append the heads of SPEC, "4 heads of 128 indices" or of parts "32, 4 and 4 heads of 128
 * indices", and set *DIVISOR to the number that the ranks should divide. */
static void add_counts(const struct heads *heads, const weft_spec *spec, struct wf_text *out,
                       int64_t *divisor)
{
    const weft_placement *placements = weft_spec_placements(spec), *parts = NULL;

    for (int32_t a = 0; a < weft_mesh_axes(weft_spec_mesh(spec)); a++)
        if (placements[a].kind == WEFT_PLACE_PARTS && placements[a].dim == heads->dim)
            parts = &placements[a];
    *divisor = weft_spec_shape(spec)[heads->dim] / heads->size;
    if (parts == NULL) {
        wf_text_add(out, "%lld", (long long)*divisor);
    } else {
        *divisor = 0;
        for (size_t i = 0; i < parts->size_count; i++) {
            *divisor = common_divisor(*divisor, parts->sizes[i] / heads->size);
            wf_text_add(out, "%s%lld",
                        i == 0                      ? ""
                        : i + 1 < parts->size_count ? ", "
                                                    : " and ",
                        (long long)(parts->sizes[i] / heads->size));
        }
    }
    wf_text_add(out, " heads of %lld indices", (long long)heads->size);
}

/* The ranks among which dimension DIM is split. */
static int64_t count_splits(const weft_spec *spec, int32_t dim)
{
    const weft_placement *placements = weft_spec_placements(spec);
    const weft_mesh *mesh = weft_spec_mesh(spec);
    int64_t ranks = 1;

    for (int32_t a = 0; a < weft_mesh_axes(mesh); a++)
        if (placements[a].kind != WEFT_PLACE_REPLICATE && placements[a].kind != WEFT_PLACE_OWNER &&
            placements[a].dim == dim)
            ranks *= weft_mesh_axis_size(mesh, a);
    return ranks;
}

static weft_status refuse(const struct heads *heads, const weft_spec *spec)
{
    int64_t ranks = count_splits(spec, heads->dim), divisor = 0;
    struct wf_text text = {0};
    weft_status status;

    add_counts(heads, spec, &text, &divisor);
    wf_text_add(&text, ", which cannot stay whole on the %lld ranks of the mesh ",
                (long long)ranks);
    wf_text_mesh(&text, weft_spec_mesh(spec));
    wf_text_add(&text, "; take a number of ranks that divides %lld", (long long)divisor);
    if (divisor > 0 && ranks % divisor == 0 && weft_mesh_axes(weft_spec_mesh(spec)) == 1)
        wf_text_add(&text,
                    ", or write a layout for the mesh kv=%lld,copy=%lld, in which keys and values, "
                    "each a tensor of its own, are S(0),R, and queries are S(0),S(0) "
                    "(checkpoints.md)",
                    (long long)divisor, (long long)(ranks / divisor));
    status = wf_text_status(&text);
    if (status == WEFT_OK)
        status = wf_fail(WEFT_ERR_INVALID, "dimension %d has %s", heads->dim, text.data);
    wf_text_free(&text);
    return status;
}

/* Set *OUT to the heads of TENSOR by the layout; size 0: it has none, or their size is not known.
 */
static weft_status find_heads(struct wf_placer *placer, const struct wf_tensor *tensor,
                              struct heads *out)
{
    struct wf_text text = {0};
    const char *size = "";
    weft_status status;

    *out = (struct heads){0};
    WF_TRY(weft_layout_file_heads(placer->layout, tensor->name, &out->dim, &size));
    if (size[0] == '\0') return WEFT_OK;
    status = wf_placer_fill(placer, size, &text);
    if (status == WEFT_OK) out->size = strtoll(text.data, NULL, 10);
    wf_text_free(&text);
    return status == WEFT_ERR_NOT_FOUND ? WEFT_OK : status;
}

weft_status wf_placer_check(struct wf_placer *placer, const struct wf_tensor *tensor,
                            const weft_spec *spec)
{
    const weft_mesh *mesh = weft_spec_mesh(spec);
    struct heads heads;

    WF_TRY(find_heads(placer, tensor, &heads));
    if (heads.size <= 0 || heads.dim >= tensor->dims || tensor->shape[heads.dim] % heads.size != 0)
        return WEFT_OK; /* scales of blocks, for one, have no heads */
    for (int32_t p = 0; p < weft_mesh_size(mesh); p++)
        if (rank_cuts(&heads, spec, weft_mesh_rank_at(mesh, p))) return refuse(&heads, spec);
    return WEFT_OK;
}
