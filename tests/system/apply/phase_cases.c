#include "phase_cases.h"

#include "base/base.h"
#include "mirror.h"
#include "phase_kernels.h"
#include "support/seed.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { INPUTS = 6, OUTPUTS = 3, DIMS = 3, TEXT = 256 };

/* The source of the values of an input. */
enum draw { VALUES, SPECIALS, CLASSES, INDICES, ONE, WEIGHTS };

struct kind {
    const char *name;
    uint32_t inputs, outputs;
    enum draw draws[INPUTS];
    char kinds[INPUTS + 1]; /* x: as x; r: rows of x; k: the same with size 1 in place of the
                             * others; c: one row; s: a scalar; l: a list; t: a table */
};

static const struct kind operators[] = {
    {"softmax", 1, 1, {SPECIALS}, "x"},
    {"log_softmax", 1, 1, {SPECIALS}, "x"},
    {"safe_softmax", 1, 1, {SPECIALS}, "x"},
    {"softmax_bwd", 2, 1, {VALUES, VALUES}, "xx"},
    {"log_softmax_bwd", 2, 1, {VALUES, VALUES}, "xx"},
    {"logsumexp", 1, 1, {SPECIALS}, "x"},
    {"logsumexp_bwd", 3, 1, {VALUES, VALUES, VALUES}, "rxr"},
    {"var", 1, 1, {VALUES}, "x"},
    {"std", 1, 1, {VALUES}, "x"},
    {"var_mean", 1, 2, {VALUES}, "x"},
    {"std_mean", 1, 2, {SPECIALS}, "x"},
    {"var_bwd", 3, 1, {VALUES, VALUES, VALUES}, "rxr"},
    {"layer_norm", 3, 3, {VALUES, VALUES, VALUES}, "xcc"},
    {"layer_norm_bwd", 6, 3, {VALUES, VALUES, VALUES, VALUES, VALUES, VALUES}, "xxkkcc"},
    {"rms_norm", 2, 2, {VALUES, VALUES}, "xc"},
    {"rms_norm_bwd", 4, 2, {VALUES, VALUES, VALUES, VALUES}, "xxkc"},
    {"cumsum", 1, 1, {VALUES}, "x"},
    {"argmax", 1, 1, {SPECIALS}, "x"},
    {"argmin", 1, 1, {SPECIALS}, "x"},
    {"max_dim", 1, 2, {SPECIALS}, "x"},
    {"min_dim", 1, 2, {VALUES}, "x"},
    {"topk", 1, 2, {SPECIALS}, "x"},
    {"cross_entropy", 2, 3, {VALUES, CLASSES}, "xr"},
    {"cross_entropy_bwd", 5, 1, {VALUES, VALUES, CLASSES, VALUES, ONE}, "gxrrs"},
    {"cross_entropy", 3, 3, {VALUES, CLASSES, WEIGHTS}, "xrc"},
    {"cross_entropy_bwd", 6, 1, {VALUES, VALUES, CLASSES, VALUES, ONE, WEIGHTS}, "gxrrsc"},
    {"embedding", 2, 1, {VALUES, INDICES}, "tl"},
    {"gather", 2, 1, {VALUES, INDICES}, "xx"},
};

/* One call. */
struct trial {
    const struct phase_place *place;
    weft_mesh *mesh;
    uint64_t state; /* of the random numbers; the same on all ranks */
    const struct kind *kind;
    int32_t dims;
    int64_t shape[DIMS];
    int64_t dim, dim_list[DIMS];
    uint32_t reduced, dim_count;
    const char *reduction;
    weft_op_attr attrs[4];
    uint32_t attr_count;
    char text[1024];
};

static uint32_t draw(struct trial *t, uint32_t below)
{
    t->state = t->state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(t->state >> 33) % below;
}

/* Add to the text of the call. */
static void note(struct trial *t, const char *text)
{
    snprintf(t->text + strlen(t->text), sizeof t->text - strlen(t->text), "%s", text);
}

static bool is(const struct trial *t, const char *name)
{
    return strcmp(t->kind->name, name) == 0;
}

static bool is_loss(const struct trial *t)
{
    return strncmp(t->kind->name, "cross", 5) == 0;
}

/* ---- attributes ---- */

static void add_attr(struct trial *t, weft_op_attr attr)
{
    t->attrs[t->attr_count++] = attr;
}

static void add_int(struct trial *t, const char *name, int64_t value)
{
    add_attr(t, (weft_op_attr){.name = name, .kind = WEFT_ATTR_INT, .integer = value});
    snprintf(t->text + strlen(t->text), sizeof t->text - strlen(t->text), " %s=%lld", name,
             (long long)value);
}

static void draw_dims(struct trial *t)
{
    if (draw(t, 4) == 0) { /* all */
        t->reduced = (1u << t->dims) - 1;
        return;
    }
    t->dim_count = 0;
    t->reduced = 0;
    for (int64_t d = 0; d < t->dims; d++)
        if (d == t->dim || draw(t, 3) == 0) {
            t->dim_list[t->dim_count++] = d;
            t->reduced |= 1u << d;
            snprintf(t->text + strlen(t->text), sizeof t->text - strlen(t->text), " dim %lld",
                     (long long)d);
        }
    add_attr(
        t, (weft_op_attr){
               .name = "dims", .kind = WEFT_ATTR_LIST, .list = t->dim_list, .count = t->dim_count});
    if (draw(t, 2) == 0) add_int(t, "keepdim", 1);
}

/* The last dimensions, from `dim` on. */
static void draw_last_dims(struct trial *t)
{
    t->dim_count = 0;
    t->reduced = 0;
    for (int64_t d = t->dim; d < t->dims; d++) {
        t->dim_list[t->dim_count++] = d;
        t->reduced |= 1u << d;
    }
    add_attr(
        t, (weft_op_attr){
               .name = "dims", .kind = WEFT_ATTR_LIST, .list = t->dim_list, .count = t->dim_count});
    snprintf(t->text + strlen(t->text), sizeof t->text - strlen(t->text), " dims from %lld",
             (long long)t->dim);
}

static void draw_attrs(struct trial *t)
{
    static const char *const reductions[] = {"none", "sum", "mean"};

    t->dim = draw(t, (uint32_t)t->dims);
    t->reduced = 1u << t->dim;
    if (is_loss(t)) {
        t->reduced = 2;
        t->reduction = reductions[draw(t, 3)];
        add_attr(t,
                 (weft_op_attr){.name = "reduction", .kind = WEFT_ATTR_TEXT, .text = t->reduction});
        if (draw(t, 2) == 0) add_int(t, "ignore_index", 1);
    } else if (strstr(t->kind->name, "softmax") != NULL || is(t, "gather") || is(t, "cumsum")) {
        add_int(t, "dim", t->dim);
    } else if (strstr(t->kind->name, "_norm") != NULL) {
        draw_last_dims(t);
    } else if (is(t, "topk")) {
        add_int(t, "dim", t->dim);
        add_int(t, "k", (int64_t)draw(t, (uint32_t)t->shape[t->dim] + 1));
        add_int(t, "largest", draw(t, 2));
    } else if (!is(t, "embedding")) {
        draw_dims(t);
        if (t->kind->name[0] == 'v' && draw(t, 2) == 0) add_int(t, "correction", 0);
    }
}

/* ---- tensors ---- */

static void add_placement(struct trial *t, char text[TEXT], int32_t axis, int64_t first,
                          int32_t dims)
{
    static const char *const kinds[] = {"R",       "S(0)", "S(1)", "S(2)", "S(0)", "S(1)",
                                        "SS(1,2)", "O(0)", "P",    "G",    "B"};
    const char *kind = kinds[draw(t, sizeof kinds / sizeof *kinds)];
    int64_t size = weft_mesh_axis_size(t->mesh, axis);
    char own[TEXT] = "";

    if (kind[0] == 'S' && kind[kind[1] == 'S' ? 3 : 2] - '0' >= dims) kind = "R";
    if (kind[0] == 'O' && size < 2) kind = "R";
    if ((kind[0] == 'G' || kind[0] == 'B') && (dims == 0 || axis > 0)) kind = "R";
    if (kind[0] == 'G') { /* the last rank has all but one index */
        for (int64_t i = 0; i < size; i++)
            snprintf(
                own + strlen(own), sizeof own - strlen(own), "%s%lld", i == 0 ? "G(0;" : ",",
                (long long)(i + 1 == size ? first - (i > 0 && first > 0) : i == 0 && first > 0));
        strcat(own, ")");
        kind = own;
    } else if (kind[0] == 'B') {
        snprintf(own, sizeof own, "B(0;%lld,%lld)", (long long)(first / 3),
                 (long long)(first - first / 3));
        kind = own;
    }
    snprintf(text + strlen(text), TEXT - strlen(text), "%s%s", axis > 0 ? "," : "", kind);
}

/* A random layout, or R on all axes. */
static weft_status spec_of(struct trial *t, const char *dtype, int32_t dims, const int64_t *shape,
                           bool whole, weft_spec **out)
{
    char text[TEXT];
    bool turned = false;
    weft_status status = WEFT_ERR_INVALID;

    for (int tries = 0; tries < 20 && status != WEFT_OK; tries++) {
        snprintf(text, sizeof text, "%s[", dtype);
        for (int32_t d = 0; d < dims; d++)
            snprintf(text + strlen(text), sizeof text - strlen(text), "%s%lld", d > 0 ? "," : "",
                     (long long)shape[d]);
        strcat(text, "] ");
        turned = !whole && dims > 1 && weft_mesh_axes(t->mesh) == 2 && draw(t, 8) == 0;
        if (turned) strcat(text, "S(1)[1],S(1)[0]");
        for (int32_t a = 0; a < weft_mesh_axes(t->mesh) && !turned; a++) {
            if (whole)
                strcat(text, a > 0 ? ",R" : "R");
            else
                add_placement(t, text, a, dims > 0 ? shape[0] : 0, dims);
        }
        status = weft_spec_parse(t->mesh, text, out);
    }
    if (!whole)
        snprintf(t->text + strlen(t->text), sizeof t->text - strlen(t->text), " | %s", text);
    return status;
}

struct filling {
    struct trial *trial;
    enum draw draw;
    int64_t classes;
    uint64_t state;
};

static float special(uint64_t random, int64_t position)
{
    if (position % 16 < 4 && random % 3 > 0) return -INFINITY; /* often whole rows */
    if (random % 53 == 0) return NAN;
    if (random % 47 == 0) return INFINITY;
    return (float)(random % 5) - 2;
}

/* Small integers, so that there are ties. */
static weft_status fill(void *user, const weft_op_run *run)
{
    const struct filling *f = user;
    const weft_tensor_local *out = &run->outputs[0];
    uint64_t state = f->state;

    for (int64_t i = 0; i < out->shard->elements; i++) {
        uint64_t random = (state = state * 6364136223846793005u + 1442695040888963407u) >> 33;

        if (f->draw == CLASSES || f->draw == INDICES)
            ((int64_t *)out->memory)[i] = (int64_t)(random % (uint64_t)f->classes);
        else if (f->draw == SPECIALS)
            ((float *)out->memory)[i] = special(random, i);
        else if (f->draw == WEIGHTS)
            ((float *)out->memory)[i] = (float)(random % 4) / 2 + 0.5f;
        else
            ((float *)out->memory)[i] = f->draw == ONE ? 3 : (float)(random % 7) / 4 - 0.5f;
    }
    return WEFT_OK;
}

/* Move WHOLE to a random layout. */
static weft_status scatter(struct trial *t, enum draw from, weft_tensor *whole, weft_tensor **parts)
{
    const weft_spec *is = weft_tensor_spec(whole);
    weft_spec *spec = NULL;
    weft_status status;

    do { /* partial integers and specials would not keep their values */
        weft_spec_release(&spec);
        WF_TRY(spec_of(t, weft_dtype_name(weft_spec_dtype(is)), weft_spec_dims(is),
                       weft_spec_shape(is), false, &spec));
    } while (from != VALUES && strchr(strrchr(t->text, '|'), 'P') != NULL);
    status = weft_tensor_move(whole, spec, NULL, t->place->stream, parts);
    weft_spec_release(&spec);
    return status;
}

/* The same, to memory in which the first two dimensions are swapped. */
static weft_status scatter_turned(struct trial *t, enum draw from, weft_tensor *whole,
                                  weft_tensor **parts)
{
    weft_tensor *turned, *moved = NULL;
    weft_status status;

    note(t, " | turned");
    WF_TRY(weft_tensor_transpose(whole, 0, 1, &turned));
    status = scatter(t, from, turned, &moved);
    if (status == WEFT_OK) status = weft_tensor_transpose(moved, 0, 1, parts);
    weft_tensor_release(&moved);
    weft_tensor_release(&turned);
    return status;
}

static weft_status make_pair(struct trial *t, uint32_t input, int32_t dims, const int64_t *shape,
                             weft_tensor **whole, weft_tensor **parts)
{
    enum draw from = t->kind->draws[input];
    bool is_index = from == CLASSES || from == INDICES;
    weft_op_call relu = {.struct_size = sizeof relu, .name = "relu", .input_count = 1};
    int64_t classes = from == CLASSES ? t->shape[1] : is(t, "gather") ? t->shape[t->dim] : 7;
    struct filling f = {t, from, classes > 0 ? classes : 1, t->state};
    weft_spec *spec = NULL;
    weft_tensor *blank = NULL;

    (void)draw(t, 2);
    WF_TRY(spec_of(t, is_index ? "i64" : "f32", dims, shape, true, &spec));
    WF_TRY(weft_tensor_create(t->place->context, spec, NULL, &blank));
    weft_spec_release(&spec);
    WF_TRY(weft_op_apply(t->place->context, &relu, &blank, NULL,
                         t->place->kernel != NULL ? mirror_kernel : fill,
                         t->place->kernel != NULL ? (void *)&(struct mirror){fill, &f} : &f,
                         t->place->stream, 1, whole));
    weft_tensor_release(&blank);
    if (t->kind->kinds[input] == 'x' && draw(t, 4) == 0)
        return scatter_turned(t, from, *whole, parts);
    return scatter(t, from, *whole, parts);
}

static weft_status make_input(struct trial *t, uint32_t input, weft_tensor **whole,
                              weft_tensor **parts)
{
    static const int64_t table[] = {7, 3};
    int64_t shape[DIMS];
    int32_t dims = 0;
    bool keep = false;

    for (uint32_t i = 0; i < t->attr_count; i++)
        keep = keep || strcmp(t->attrs[i].name, "keepdim") == 0;
    switch (t->kind->kinds[input]) {
    case 'x':
        return make_pair(t, input, t->dims, t->shape, whole, parts);
    case 't':
        return make_pair(t, input, 2, table, whole, parts);
    case 'l':
        return make_pair(t, input, 1, t->shape, whole, parts);
    case 's':
        if (strcmp(t->reduction, "mean") != 0) return WEFT_OK;
        break;
    case 'c':
        for (int32_t d = 0; d < t->dims; d++)
            if ((t->reduced >> d & 1) != 0) shape[dims++] = t->shape[d];
        break;
    case 'g':
        if (strcmp(t->reduction, "none") != 0) break; /* fall through */
    default:
        keep = keep || t->kind->kinds[input] == 'k';
        for (int32_t d = 0; d < t->dims; d++)
            if ((t->reduced >> d & 1) == 0 || keep)
                shape[dims++] = (t->reduced >> d & 1) == 0 ? t->shape[d] : 1;
    }
    return make_pair(t, input, dims, shape, whole, parts);
}

/* ---- the comparison ---- */

static weft_status compare(const struct trial *t, uint32_t output, weft_tensor *whole,
                           weft_tensor *parts)
{
    weft_tensor_difference_info difference = {.struct_size = sizeof difference};
    const weft_spec *spec = weft_tensor_spec(parts);

    if ((whole == NULL) != (parts == NULL))
        return weft_fail(WEFT_ERR_INTERNAL, "%s: output %u is absent", t->text, output);
    if (whole == NULL) return WEFT_OK;
    for (int32_t a = 0; a < weft_mesh_axes(t->mesh); a++)
        if (weft_spec_placements(spec)[a].kind == WEFT_PLACE_PARTIAL)
            return weft_fail(WEFT_ERR_INTERNAL, "%s: output %u is partial", t->text, output);
    WF_TRY(weft_tensor_compare(whole, parts, NULL, t->place->stream, &difference));
    if (difference.equal || difference.largest < 1e-4) return WEFT_OK;
    return weft_fail(WEFT_ERR_INTERNAL, "%s: output %u differs at %lld,%lld,%lld: %g, not %g",
                     t->text, output, (long long)difference.index[0],
                     (long long)difference.index[1], (long long)difference.index[2],
                     difference.second[0], difference.first[0]);
}

/* Inputs may be moved. */
static const weft_op_apply_options made = {.struct_size = sizeof made, .moves = WEFT_OP_MOVES_MADE};

static weft_status apply_call(const struct phase_place *place, const weft_op_call *call,
                              weft_tensor *const *inputs, weft_tensor **outputs)
{
    struct mirror mirror = {phase_kernel, NULL};

    return weft_op_apply_phases(place->context, call, inputs, &made,
                                place->kernel != NULL ? place->kernel : phase_kernel, &mirror,
                                place->stream, OUTPUTS, outputs);
}

static weft_status try_call(struct trial *t)
{
    weft_op_call call = {.struct_size = sizeof call,
                         .name = t->kind->name,
                         .input_count = t->kind->inputs,
                         .attr_size = sizeof(weft_op_attr),
                         .attrs = t->attrs,
                         .attr_count = t->attr_count};
    weft_tensor *whole[INPUTS] = {NULL}, *parts[INPUTS] = {NULL};
    weft_tensor *expected[OUTPUTS] = {NULL}, *got[OUTPUTS] = {NULL};
    weft_status status = WEFT_OK;

    for (uint32_t i = 0; i < call.input_count && status == WEFT_OK; i++)
        status = make_input(t, i, &whole[i], &parts[i]);
    if (status == WEFT_OK) status = apply_call(t->place, &call, whole, expected);
    if (status == WEFT_OK) status = apply_call(t->place, &call, parts, got);
    if (status != WEFT_OK) status = weft_fail(status, "%s: %s", t->text, weft_last_error());
    for (uint32_t i = 0; i < t->kind->outputs && status == WEFT_OK; i++)
        status = compare(t, i, expected[i], got[i]);
    for (int i = 0; i < INPUTS; i++) {
        weft_tensor_release(&whole[i]);
        weft_tensor_release(&parts[i]);
    }
    for (int i = 0; i < OUTPUTS; i++) {
        weft_tensor_release(&expected[i]);
        weft_tensor_release(&got[i]);
    }
    return status;
}

/* Without elements there is no best one, and no class. */
static bool needs_elements(const struct trial *t)
{
    return is_loss(t) || is(t, "gather") || strstr(t->kind->name, "arg") != NULL ||
           strstr(t->kind->name, "_dim") != NULL;
}

weft_status run_phase_cases(const struct phase_place *place, int count)
{
    static const struct {
        const char *text;
        int32_t ranks; /* that a job must have */
    } meshes[] = {{"2", 2}, {"1x2", 2}, {"3", 3}, {"4", 4}, {"2x2", 4}, {"2@1,3", 4}, {"2x1x2", 4}};
    uint32_t mesh_count = sizeof meshes / sizeof *meshes;

    while (mesh_count > 1 && meshes[mesh_count - 1].ranks > weft_size(place->context))
        mesh_count--;

    for (int i = 0; i < count; i++) {
        struct trial t = {.place = place, .state = test_state((uint64_t)i)};
        const char *mesh = meshes[draw(&t, mesh_count)].text;
        weft_status status;

        t.kind = &operators[(uint32_t)i % (sizeof operators / sizeof *operators)];
        t.dims = 2 + (int32_t)draw(&t, 2);
        for (int32_t d = 0; d < t.dims; d++)
            t.shape[d] = draw(&t, 12) == 0 && !needs_elements(&t) ? 0 : 1 + draw(&t, 6);
        snprintf(t.text, sizeof t.text, "%s on %s", t.kind->name, mesh);
        draw_attrs(&t);
        WF_TRY(weft_mesh_parse(mesh, &t.mesh));
        status = try_call(&t);
        weft_mesh_release(&t.mesh);
        WF_TRY(status);
    }
    return WEFT_OK;
}
