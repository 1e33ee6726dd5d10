/* layout.c - what the ranks of a mesh hold of a model. */
#include "model/writer.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static const char *const axis_names[] = {"dp", "cp", "ep", "tp", "pp"};

/* ---- placements ---- */

/* Axes split a dimension in the order of these numbers. */
static int turn_of(int32_t axis, bool tp_first)
{
    static const int usual[] = {
        [WF_AXIS_DP] = 0, [WF_AXIS_EP] = 1, [WF_AXIS_CP] = 2, [WF_AXIS_TP] = 3, [WF_AXIS_PP] = 4};

    return tp_first && (axis == WF_AXIS_TP || axis == WF_AXIS_EP) ? usual[axis] - 8 : usual[axis];
}

/* Axes of W before AXIS in the mesh, and in the order of turns, that split the dimension of AXIS.
 */
static void count_before(const struct wf_model_writer *w, const struct wf_model_split *split,
                         int32_t at, int *written, int *turn)
{
    int32_t axis = w->order[at];

    *written = *turn = 0;
    for (int32_t i = 0; i < w->axes; i++) {
        int32_t other = w->order[i];
        if (other == axis || split->dims[other] != split->dims[axis]) continue;
        *written += i < at;
        *turn += turn_of(other, split->tp_first) < turn_of(axis, split->tp_first);
    }
}

void wf_model_place(const struct wf_model_writer *w, const struct wf_model_split *split, char *out,
                    size_t size)
{
    bool in_order = true;
    int written, turn;
    size_t used = 0;

    for (int32_t i = 0; i < w->axes; i++) {
        count_before(w, split, i, &written, &turn);
        if (split->dims[w->order[i]] >= 0) in_order = in_order && written == turn;
    }
    out[0] = '\0';
    for (int32_t i = 0; i < w->axes && used < size; i++) {
        int32_t dim = split->dims[w->order[i]];
        const char *comma = i > 0 ? "," : "";
        count_before(w, split, i, &written, &turn);
        if (dim == WF_ALL)
            used += (size_t)snprintf(out + used, size - used, "%sR", comma);
        else if (dim == WF_SUM)
            used += (size_t)snprintf(out + used, size - used, "%sP(sum)", comma);
        else if (in_order)
            used += (size_t)snprintf(out + used, size - used, "%sS(%d)", comma, dim);
        else
            used += (size_t)snprintf(out + used, size - used, "%sS(%d)[%d]", comma, dim, turn);
    }
}

/* ---- the mesh ---- */

static weft_status read_axis(const weft_mesh *mesh, int32_t a, struct wf_model_writer *w)
{
    const char *name = weft_mesh_axis_name(mesh, a);

    for (int32_t i = 0; i < WF_AXES; i++)
        if (strcmp(name, axis_names[i]) == 0) {
            w->sizes[i] = weft_mesh_axis_size(mesh, a);
            if (i != WF_AXIS_PP) w->order[w->axes++] = i;
            return WEFT_OK;
        }
    if (name[0] == '\0')
        return wf_fail(WEFT_ERR_INVALID,
                       "model: an axis of the mesh has no name; axes of a model are dp, cp, ep, tp "
                       "and pp, such as dp=8,tp=8/8");
    return wf_fail(WEFT_ERR_INVALID,
                   "model: the mesh has the axis \"%.50s\"; axes of a model are dp, cp, ep, tp and "
                   "pp, such as dp=8,tp=8/8",
                   name);
}

static weft_status read_mesh(const weft_mesh *mesh, struct wf_model_writer *w)
{
    int32_t axes = mesh != NULL ? weft_mesh_axes(mesh) : 0;

    for (int32_t a = 0; a < axes; a++)
        WF_TRY(read_axis(mesh, a, w));
    if (w->axes == 0) {
        w->order[w->axes++] = WF_AXIS_DP;
        w->sizes[WF_AXIS_DP] = 1;
    }
    /* The ranks of a stage are consecutive, unless pp is behind another axis. */
    if (w->sizes[WF_AXIS_PP] == 0 || strcmp(weft_mesh_axis_name(mesh, 0), "pp") == 0)
        w->per_host = mesh != NULL ? weft_mesh_devices_per_host(mesh) : 0;
    return WEFT_OK;
}

/* AXIS divides SIZE, which is WHAT. */
static weft_status check_divides(const struct wf_model_writer *w, enum wf_model_axis axis,
                                 int64_t size, const char *what)
{
    if (w->sizes[axis] <= 1 || size % w->sizes[axis] == 0) return WEFT_OK;
    return wf_fail(WEFT_ERR_INVALID, "model: %s=%d does not divide %s, %" PRId64, axis_names[axis],
                   w->sizes[axis], what, size);
}

static weft_status check_mesh(const struct wf_model_writer *w)
{
    const int64_t *sizes = w->model->sizes;
    int64_t parts = (int64_t)(w->sizes[WF_AXIS_CP] > 1 ? w->sizes[WF_AXIS_CP] : 1) *
                    (w->in_parts && w->sizes[WF_AXIS_TP] > 1 ? w->sizes[WF_AXIS_TP] : 1);
    int64_t tokens = w->sequence * sizes[WF_MODEL_ACTIVE];
    bool experts = sizes[WF_MODEL_EXPERTS] > 0;

    WF_TRY(check_divides(w, WF_AXIS_TP, sizes[WF_MODEL_HEADS], "heads"));
    WF_TRY(check_divides(w, WF_AXIS_TP, sizes[WF_MODEL_KEY_HEADS], "key_heads"));
    WF_TRY(check_divides(w, WF_AXIS_TP, sizes[WF_MODEL_FFN], "ffn"));
    if (w->ring && w->sizes[WF_AXIS_CP] == 0)
        return wf_fail(WEFT_ERR_INVALID,
                       "model: a ring is of the ranks of cp, and the mesh has no axis cp");
    if (w->sequence % parts != 0)
        return wf_fail(WEFT_ERR_INVALID,
                       "model: the sequence has %" PRId64 " tokens, which the %" PRId64
                       " ranks that share it do not divide",
                       w->sequence, parts);
    if (!experts && w->sizes[WF_AXIS_EP] > 0)
        return wf_fail(WEFT_ERR_INVALID,
                       "model: the mesh has the axis ep, and the model no experts");
    if (!experts) return WEFT_OK;
    if (w->sizes[WF_AXIS_CP] > 1)
        return wf_fail(WEFT_ERR_INVALID,
                       "model: experts with parts of a sequence (cp=%d) are not known",
                       w->sizes[WF_AXIS_CP]);
    if (tokens % sizes[WF_MODEL_EXPERTS] != 0)
        return wf_fail(WEFT_ERR_INVALID,
                       "model: %" PRId64 " tokens for %" PRId64 " experts each; experts=%" PRId64
                       " does not divide them, so experts cannot have equal loads",
                       w->sequence, sizes[WF_MODEL_ACTIVE], sizes[WF_MODEL_EXPERTS]);
    return check_divides(w, WF_AXIS_EP, sizes[WF_MODEL_EXPERTS], "experts");
}

/* ---- options ---- */

enum { ALL_PIECES = (1 << WF_PIECES) - 1 };

/* The pieces that the LENGTH bytes at NAME mean; 0: none. */
static uint32_t pieces_of(const char *name, size_t length)
{
    static const struct {
        const char *name;
        uint32_t pieces;
    } known[] = {{"norms", 1 << WF_PIECE_NORMS},
                 {"qkv", 1 << WF_PIECE_QUERIES | 1 << WF_PIECE_KEYS},
                 {"queries", 1 << WF_PIECE_QUERIES},
                 {"keys", 1 << WF_PIECE_KEYS},
                 {"attention", 1 << WF_PIECE_ATTENTION},
                 {"projection", 1 << WF_PIECE_PROJECTION},
                 {"up", 1 << WF_PIECE_UP | 1 << WF_PIECE_GATE},
                 {"gate", 1 << WF_PIECE_GATE},
                 {"activation", 1 << WF_PIECE_ACTIVATION},
                 {"down", 1 << WF_PIECE_DOWN},
                 {"full", ALL_PIECES},
                 {"needed", ALL_PIECES & ~(1 << WF_PIECE_DOWN)},
                 {"alternate", 1 << WF_PIECE_NORMS | 1 << WF_PIECE_KEYS | 1 << WF_PIECE_PROJECTION |
                                   1 << WF_PIECE_GATE | 1 << WF_PIECE_ACTIVATION}};

    for (size_t i = 0; i < WF_COUNT(known); i++)
        if (strlen(known[i].name) == length && memcmp(known[i].name, name, length) == 0)
            return known[i].pieces;
    return 0;
}

static weft_status read_recompute(const char *text, uint32_t *out)
{
    *out = 0;
    if (text == NULL || strcmp(text, "none") == 0) return WEFT_OK;
    for (const char *at = text;; at++) {
        size_t length = strcspn(at, ",");
        uint32_t pieces = pieces_of(at, length);
        if (pieces == 0)
            return wf_fail(
                WEFT_ERR_INVALID,
                "model: recompute is \"%.100s\"; it is none, full, needed, alternate, or "
                "some of norms, qkv, queries, keys, attention, projection, up, gate, "
                "activation and down",
                text);
        *out |= pieces;
        at += length;
        if (*at == '\0') return WEFT_OK;
    }
}

/* A product that the model has not is a part of another, or is not there. */
static uint32_t pieces_of_model(const weft_model *model, uint32_t pieces)
{
    const uint32_t products = 1 << WF_PIECE_QUERIES | 1 << WF_PIECE_KEYS;
    bool fused = model->sizes[WF_MODEL_HEADS] == model->sizes[WF_MODEL_KEY_HEADS];

    if (fused && pieces & products) pieces |= products;
    if (!model->words[WF_MODEL_GATED]) pieces &= ~(1u << WF_PIECE_GATE);
    return pieces;
}

static weft_status check_sizes(const weft_model_graph_options *options)
{
    const int64_t most = 1 << 30;

    if (options->sequence < 0 || options->sequence > most)
        return wf_fail(WEFT_ERR_INVALID,
                       "model: the sequence has %" PRId64 " tokens; it has 1 to %" PRId64,
                       options->sequence, most);
    if (options->microbatch < 0 || options->microbatch > most)
        return wf_fail(WEFT_ERR_INVALID,
                       "model: a microbatch has %" PRId64 " sequences; it has 1 to %" PRId64,
                       options->microbatch, most);
    if (options->sharding > WEFT_MODEL_SHARD_PARAMETERS)
        return wf_fail(WEFT_ERR_INVALID,
                       "model: sharding is %u, which is not an enum weft_model_sharding",
                       options->sharding);
    return WEFT_OK;
}

weft_status wf_model_lay_out(const weft_model_graph_options *options, struct wf_model_writer *w)
{
    const weft_model *model = w->model;
    struct wf_model_split split = {
        .dims = {[WF_AXIS_DP] = 1, [WF_AXIS_EP] = 1, [WF_AXIS_CP] = 0, [WF_AXIS_TP] = WF_ALL}};
    char placements[96];

    WF_TRY(check_sizes(options));
    WF_TRY(read_mesh(options->mesh, w));
    w->sequence = options->sequence > 0 ? options->sequence : model->sizes[WF_MODEL_SEQUENCE];
    w->samples = options->microbatch > 0 ? options->microbatch : 1;
    if (w->sizes[WF_AXIS_DP] > 1) w->samples *= w->sizes[WF_AXIS_DP];
    if (w->sizes[WF_AXIS_EP] > 1) w->samples *= w->sizes[WF_AXIS_EP];
    w->sharding = options->sharding;
    w->in_parts = !options->whole_sequence;
    w->ring = options->ring;
    w->f8 = options->f8;
    WF_TRY(read_recompute(options->recompute, &w->again));
    w->again = pieces_of_model(model, w->again);
    WF_TRY(check_mesh(w));
    w->gradients = options->narrow_gradients
                       ? wf_model_values[WF_MODEL_DTYPE][model->words[WF_MODEL_DTYPE]]
                       : "f32";
    snprintf(w->layer, sizeof w->layer, " ; x%" PRId64, model->sizes[WF_MODEL_LAYERS]);
    wf_model_place(w, &split, placements, sizeof placements);
    snprintf(w->whole, sizeof w->whole, " ; to %s", placements);
    if (w->in_parts) split.dims[WF_AXIS_TP] = 0;
    wf_model_place(w, &split, placements, sizeof placements);
    snprintf(w->part, sizeof w->part, " ; to %s", placements);
    return WEFT_OK;
}
