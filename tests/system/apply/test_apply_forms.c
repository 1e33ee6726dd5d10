/* Random calls of every form: in place, with given outputs, on lists, without optional inputs, on
 * tensors without elements, of f32, bf16 and f16, with NaN, infinities and -0.  On ranks they give
 * what they give on whole tensors.  Other numbers are small integers, so sums are exact in every
 * order. */
#include "base/base.h"
#include "support/suite.h"
#include "kernels.h"
#include "weft/apply.h"
#include "weft/context.h"
#include "weft/launch.h"
#include "weft/tensor.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { CASES = 420, RANKS = 4, MOST = 10, DIMS = 2, LARGEST = 5 };

/* ---- numbers of three dtypes ---- */

static double half_number(uint16_t bits)
{
    double value = bits & 0x3ff;
    int exponent = bits >> 10 & 31;

    if (exponent == 31) return value != 0 ? NAN : (bits >> 15) != 0 ? -INFINITY : INFINITY;
    value = exponent == 0 ? ldexp(value, -24) : ldexp(value + 1024, exponent - 25);
    return (bits >> 15) != 0 ? -value : value;
}

/* The f16 of VALUE, which is not finite, or an integer below 2048. */
static uint16_t half_bits(double value)
{
    uint16_t sign = signbit(value) ? 0x8000 : 0;
    int exponent;
    double part;

    if (isnan(value)) return 0x7e00;
    if (isinf(value)) return sign | 0x7c00;
    if (value == 0) return sign;
    part = frexp(fabs(value), &exponent);
    return (uint16_t)(sign | ((exponent + 14) << 10) | ((int)(part * 2048) & 0x3ff));
}

static double load(const void *memory, uint32_t dtype, int64_t at)
{
    uint32_t bits;
    float value;

    if (dtype == WEFT_DTYPE_F32) return ((const float *)memory)[at];
    if (dtype == WEFT_DTYPE_F16) return half_number(((const uint16_t *)memory)[at]);
    if (dtype == WEFT_DTYPE_BOOL) return ((const uint8_t *)memory)[at];
    bits = (uint32_t)((const uint16_t *)memory)[at] << 16;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static void store(void *memory, uint32_t dtype, int64_t at, double number)
{
    float value = (float)number;
    uint32_t bits;

    memcpy(&bits, &value, sizeof bits);
    if (dtype == WEFT_DTYPE_F32)
        ((float *)memory)[at] = value;
    else if (dtype == WEFT_DTYPE_F16)
        ((uint16_t *)memory)[at] = half_bits(number);
    else if (dtype == WEFT_DTYPE_BOOL)
        ((uint8_t *)memory)[at] = number != 0;
    else
        ((uint16_t *)memory)[at] = (uint16_t)(bits >> 16);
}

/* ---- kernels ---- */

/* The element of T at C, coordinates in DIMS dimensions; T broadcasts. */
static double element(const weft_tensor_local *t, const int64_t *c, int32_t dims)
{
    int64_t at = 0;

    for (int32_t d = 0; d < t->shard->dims; d++)
        if (t->shard->shape[d] > 1) at += c[dims - t->shard->dims + d] * t->strides[d];
    return load(t->memory, weft_spec_dtype(t->spec), at);
}

static void set_element(const weft_tensor_local *t, const int64_t *c, double value)
{
    int64_t at = 0;

    for (int32_t d = 0; d < t->shard->dims; d++)
        at += c[d] * t->strides[d];
    store(t->memory, weft_spec_dtype(t->spec), at, value);
}

static bool is_present(const weft_tensor_local *inputs, uint32_t count, uint32_t input)
{
    return input < count && inputs[input].spec != NULL;
}

static double pointwise(const char *name, const weft_tensor_local *in, uint32_t count,
                        const int64_t *c, int32_t dims)
{
    double x = element(&in[0], c, dims), y = 0;

    if (strcmp(name, "neg") == 0) return -x;
    if (strcmp(name, "where") == 0) return element(&in[x != 0 ? 1 : 2], c, dims);
    if (strcmp(name, "clamp_tensor") == 0) {
        if (is_present(in, count, 1) && x < element(&in[1], c, dims)) x = element(&in[1], c, dims);
        if (is_present(in, count, 2) && x > element(&in[2], c, dims)) x = element(&in[2], c, dims);
        return x;
    }
    y = element(&in[1], c, dims);
    return strcmp(name, "add") == 0 ? x + y : x * y;
}

/* mm: a[i k] b[k j]; linear: a[i k] b[j k], and a bias. */
static double product(const weft_op_run *run, const int64_t *c, bool is_linear)
{
    const weft_tensor_local *in = run->inputs;
    double sum =
        is_linear && is_present(in, (uint32_t)run->input_count, 2) ? element(&in[2], c, DIMS) : 0;

    for (int64_t k = 0; k < in[0].shard->shape[1]; k++)
        sum += element(&in[0], (int64_t[]){c[0], k}, DIMS) *
               element(&in[1], is_linear ? (int64_t[]){c[1], k} : (int64_t[]){k, c[1]}, DIMS);
    return sum;
}

/* The sum over dimension 0. */
static double sum_column(const weft_tensor_local *x, int64_t column)
{
    double sum = 0;

    for (int64_t k = 0; k < x->shard->shape[0]; k++)
        sum += element(x, (int64_t[]){k, column}, DIMS);
    return sum;
}

/* An element of tensors one after the other in dimension 1. */
static double joined(const weft_op_run *run, const int64_t *c)
{
    int64_t column = c[1];
    uint32_t i = 0;

    while (column >= run->inputs[i].shard->shape[1])
        column -= run->inputs[i++].shard->shape[1];
    return element(&run->inputs[i], (int64_t[]){c[0], column}, DIMS);
}

/* Output NUMBER of a call of the operator NAME. */
static void compute(const weft_op_run *run, const char *name, const weft_tensor_local *in,
                    uint32_t count, const weft_tensor_local *out)
{
    for (int64_t i = 0; i < out->shard->elements; i++) {
        int64_t c[DIMS + 1] = {0}, rest = i;

        for (int32_t d = out->shard->dims - 1; d >= 0; d--) {
            c[d] = rest % out->shard->shape[d];
            rest /= out->shard->shape[d];
        }
        if (strcmp(name, "mm") == 0 || strcmp(name, "linear") == 0)
            set_element(out, c, product(run, c, name[0] == 'l'));
        else if (strcmp(name, "sum") == 0)
            set_element(out, c, sum_column(in, c[0]));
        else if (strcmp(name, "cat") == 0)
            set_element(out, c, joined(run, c));
        else
            set_element(out, c, pointwise(name, in, count, c, out->shard->dims));
    }
}

/* The name without the form. */
static const char *base_name(const char *name, char room[32])
{
    bool listed = strncmp(name, "foreach_", 8) == 0;
    size_t length;

    snprintf(room, 32, "%s", name + (listed ? 8 : 0));
    length = strlen(room);
    if (length > 4 && strcmp(room + length - 4, ".out") == 0) room[length - 4] = '\0';
    if (room[length - 1] == '_') room[length - 1] = '\0';
    return room;
}

static weft_status kernel(void *user, const weft_op_run *run)
{
    bool listed = strncmp(run->name, "foreach_", 8) == 0;
    char room[32];
    const char *name = base_name(run->name, room);

    (void)user;
    if (!kernel_is_told_writes(run)) return weft_fail(WEFT_ERR_INVALID, "is_written is wrong");
    for (uint32_t i = 0; i < run->output_count; i++) {
        weft_tensor_local in[2];
        if (!listed) {
            compute(run, name, run->inputs, (uint32_t)run->input_count, &run->outputs[i]);
            continue;
        }
        for (uint32_t k = 0; k < run->input_count / run->output_count; k++)
            in[k] = run->inputs[k * run->output_count + i];
        compute(run, name, in, (uint32_t)(run->input_count / run->output_count), &run->outputs[i]);
    }
    return WEFT_OK;
}

/* ---- cases ---- */

struct form {
    const char *name;
    const char
        *inputs;     /* sizes of each: a, b and c are random; "?": of truth values; "-": optional;
                      * "*": a list; ">": the memory of the output */
    const char *dim; /* an attribute, or NULL */
    int64_t value;
    bool has_specials; /* NaN passes through it as through the whole */
};

static const struct form forms[] = {
    {"add", "ab b", .has_specials = true},
    {"add", "a1 1b", .has_specials = true},
    {"add_", "ab b", .has_specials = true},
    {"add.out", "ab ab >ab", .has_specials = true},
    {"mul", "ab a1", .has_specials = true},
    {"mul_", "ab ab", .has_specials = true},
    {"neg", "ab", .has_specials = true},
    {"neg_", "ab", .has_specials = true},
    {"neg.out", "ab >ab", .has_specials = true},
    {"where", "?ab b a1", .has_specials = true},
    {"clamp_tensor", "ab -b -a1", .has_specials = true},
    {"sum", "ab", "dims", 0, true},
    {"sum.out", "ab >b", "dims", 0, false},
    {"mm", "ac cb", .has_specials = false},
    {"mm.out", "ac cb >ab", .has_specials = false},
    {"linear", "ac bc -b", .has_specials = false},
    {"cat", "*ab", "dim", 1, true},
    {"foreach_neg", "*ab", .has_specials = true},
    {"foreach_neg_", "*ab", .has_specials = true},
    {"foreach_add", "*ab *ab", .has_specials = true},
    {"foreach_mul_", "*ab *ab", .has_specials = true},
};

struct trial {
    weft_context *context;
    weft_mesh *mesh;
    uint64_t state; /* of the random numbers; the same on all ranks */
    const struct form *form;
    int64_t a, b, c;
    const char *dtype;
    bool specials;
    uint32_t inputs;
    weft_tensor *parts[MOST], *whole[MOST];
    char text[1024];
};

static uint32_t draw(struct trial *t, uint32_t below)
{
    t->state = t->state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(t->state >> 33) % below;
}

static void note(struct trial *t, const char *before, const char *text)
{
    size_t used = strlen(t->text);

    snprintf(t->text + used, sizeof t->text - used, "%s%s", before, text);
}

/* A layout of TYPE.  The memory of an output is split or replicated, so that every call has it. */
static weft_status random_spec(struct trial *t, const char *type, bool written, weft_spec **out)
{
    static const char *const kinds[] = {"R",    "S(0)", "S(1)",    "S(0)",
                                        "S(1)", "O(1)", "SS(0,2)", "P"};
    weft_status status;
    char text[128];

    do {
        snprintf(text, sizeof text, "%s ", type);
        for (int32_t a = 0; a < weft_mesh_axes(t->mesh); a++) {
            const char *kind = kinds[draw(t, written ? 5 : t->specials ? 7 : 8)];
            if (type[0] == 'b' && type[1] == 'o' && kind[0] == 'P') kind = "R";
            snprintf(text + strlen(text), sizeof text - strlen(text), "%s%s", a > 0 ? "," : "",
                     kind);
        }
        status = weft_spec_parse(t->mesh, text, out);
    } while (status == WEFT_ERR_INVALID || status == WEFT_ERR_PARSE);
    note(t, " | ", text);
    return status;
}

static double random_number(struct trial *t)
{
    uint32_t kind = draw(t, 12);
    double integer = (double)draw(t, 5) - 2;

    if (!t->specials || kind > 3) return integer;
    return kind == 0 ? NAN : kind == 1 ? -0.0 : kind == 2 ? INFINITY : -INFINITY;
}

/* Write random numbers to TENSOR, which every rank has. */
static weft_status fill(struct trial *t, weft_tensor *tensor)
{
    uint64_t state = t->state;
    int32_t simulated = weft_size(t->context);

    for (int32_t rank = 0; rank < simulated; rank++) {
        weft_tensor_local_info local = {.struct_size = sizeof local};
        if (weft_tensor_local_of(tensor, rank, &local) != WEFT_OK) continue; /* another process */
        t->state = state;
        for (int64_t i = 0; i < local.shard.elements; i++)
            store(local.memory, weft_spec_dtype(weft_tensor_spec(tensor)), i, random_number(t));
    }
    t->state = state;
    for (int i = 0; i < 60; i++)
        (void)draw(t, 2);
    return WEFT_OK;
}

/* An input of SHAPE, letters and digits: whole on every rank, and in a random layout. */
static weft_status add_input(struct trial *t, const char *shape, size_t length)
{
    bool truth = shape[0] == '?', written = shape[0] == '>';
    bool in_place = t->inputs == 0 && t->form->name[strlen(t->form->name) - 1] == '_';
    uint32_t number = t->inputs++;
    weft_spec *spec = NULL;
    char type[48], whole[64];

    snprintf(type, sizeof type, "%s[", truth ? "bool" : t->dtype);
    for (size_t i = 0; i < length; i++) {
        int64_t size = shape[i] == 'a' ? t->a : shape[i] == 'b' ? t->b : shape[i] == 'c' ? t->c : 1;
        if (shape[i] != '1' && (shape[i] < 'a' || shape[i] > 'c')) continue;
        snprintf(type + strlen(type), sizeof type - strlen(type), "%s%lld",
                 type[strlen(type) - 1] == '[' ? "" : ",", (long long)size);
    }
    strcat(type, "]");
    snprintf(whole, sizeof whole, "%s %s", type, &",R,R"[5 - 2 * (size_t)weft_mesh_axes(t->mesh)]);
    WF_TRY(weft_spec_parse(t->mesh, whole, &spec));
    WF_TRY(weft_tensor_create(t->context, spec, NULL, &t->whole[number]));
    weft_spec_release(&spec);
    WF_TRY(fill(t, t->whole[number]));
    WF_TRY(random_spec(t, type, written || in_place, &spec));
    WF_TRY(weft_tensor_move(t->whole[number], spec, NULL, NULL, &t->parts[number]));
    weft_spec_release(&spec);
    return WEFT_OK;
}

static weft_status add_inputs(struct trial *t)
{
    uint32_t members = 1 + draw(t, 4);

    for (const char *at = t->form->inputs; *at != '\0'; at += strspn(at, " ")) {
        size_t length = strcspn(at, " ");
        if (at[0] == '-' && draw(t, 2) == 0) {
            note(t, " | ", "-");
            t->inputs++;
        } else {
            for (uint32_t i = 0; i < (at[0] == '*' ? members : 1); i++) {
                if (at[0] == '*' && draw(t, 2) == 0 && strcmp(t->form->name, "cat") == 0)
                    t->b = draw(t, LARGEST);
                WF_TRY(add_input(t, at, length));
            }
        }
        at += length;
    }
    return WEFT_OK;
}

/* ---- the comparison ---- */

static bool is_partial(const weft_tensor *tensor)
{
    const weft_spec *spec = weft_tensor_spec(tensor);

    for (int32_t a = 0; a < weft_mesh_axes(weft_spec_mesh(spec)); a++)
        if (weft_spec_placements(spec)[a].kind == WEFT_PLACE_PARTIAL) return true;
    return false;
}

/* A sum of contributions loses the sign of -0.  All other elements have the bits of WHOLE, except
 * that there are several NaN. */
static weft_status compare(struct trial *t, uint32_t output, weft_tensor *whole, weft_tensor *parts)
{
    bool exact = !is_partial(parts);
    weft_tensor *full = NULL;

    WF_TRY(weft_tensor_full(parts, WEFT_EVERY_RANK, NULL, NULL, &full));
    for (int32_t rank = 0; rank < weft_size(t->context); rank++) {
        weft_tensor_local_info want = {.struct_size = sizeof want},
                               have = {.struct_size = sizeof have};
        uint32_t dtype = weft_spec_dtype(weft_tensor_spec(full));
        if (weft_tensor_local_of(full, rank, &have) != WEFT_OK) continue;
        if (weft_tensor_local_of(whole, rank, &want) != WEFT_OK ||
            want.shard.elements != have.shard.elements)
            return weft_fail(WEFT_ERR_INTERNAL, "%s: output %u has another shape", t->text, output);
        for (int64_t i = 0; i < have.shard.elements; i++) {
            double x = load(have.memory, dtype, i), y = load(want.memory, dtype, i);
            if (isnan(x) && isnan(y)) continue;
            if (x == y && (!exact || signbit(x) == signbit(y))) continue;
            return weft_fail(WEFT_ERR_INTERNAL, "%s: output %u, element %lld: %g, not %g", t->text,
                             output, (long long)i, x, y);
        }
    }
    weft_tensor_release(&full);
    return WEFT_OK;
}

/* Inputs may be moved. */
static const weft_op_apply_options made = {.struct_size = sizeof made, .moves = WEFT_OP_MOVES_MADE};

static weft_status try_call(struct trial *t)
{
    weft_op_attr dim = {.name = t->form->dim, .kind = WEFT_ATTR_INT, .integer = t->form->value};
    weft_op_call call = {.struct_size = sizeof call,
                         .name = t->form->name,
                         .attr_size = sizeof(weft_op_attr),
                         .attrs = &dim,
                         .attr_count = t->form->dim != NULL};
    bool listed = strncmp(t->form->name, "foreach_", 8) == 0;
    weft_tensor *parts[MOST] = {NULL}, *whole[MOST] = {NULL};
    uint32_t outputs;
    weft_status status = add_inputs(t);

    call.input_count = t->inputs;
    outputs = !listed ? 1 : strchr(t->form->inputs + 1, '*') != NULL ? t->inputs / 2 : t->inputs;
    if (status == WEFT_OK)
        status = weft_op_apply(t->context, &call, t->whole, &made, kernel, NULL, NULL, MOST, whole);
    if (status == WEFT_OK)
        status = weft_op_apply(t->context, &call, t->parts, &made, kernel, NULL, NULL, MOST, parts);
    if (status != WEFT_OK) status = weft_fail(status, "%s: %s", t->text, weft_last_error());
    for (uint32_t i = 0; i < outputs && status == WEFT_OK; i++)
        status = compare(t, i, whole[i], parts[i]);
    for (uint32_t i = 0; i < MOST; i++) {
        weft_tensor_release(&t->parts[i]);
        weft_tensor_release(&t->whole[i]);
        weft_tensor_release(&parts[i]);
        weft_tensor_release(&whole[i]);
    }
    return status;
}

struct wanted {
    int cases;
    weft_init_options options;
};

static weft_status run_cases(void *argument)
{
    static const char *const meshes[] = {"4", "2x2", "3", "2@1,3"};
    static const char *const dtypes[] = {"f32", "bf16", "f16"};
    const struct wanted *wanted = argument;
    weft_status status = WEFT_OK;
    weft_context *context;

    WF_TRY(weft_init(&wanted->options, &context));
    for (int i = 0; i < wanted->cases && status == WEFT_OK; i++) {
        struct trial t = {.context = context, .state = test_state((uint64_t)i)};
        const char *mesh = meshes[draw(&t, WF_COUNT(meshes))];
        t.form = &forms[(size_t)i % WF_COUNT(forms)];
        t.dtype = dtypes[draw(&t, 3)];
        t.specials = t.form->has_specials && draw(&t, 2) == 0;
        t.a = draw(&t, LARGEST);
        t.b = draw(&t, LARGEST);
        t.c = draw(&t, LARGEST);
        snprintf(t.text, sizeof t.text, "%s%s on %s", t.form->name, t.specials ? ", specials," : "",
                 mesh);
        WF_TRY(weft_mesh_parse(mesh, &t.mesh));
        status = try_call(&t);
        weft_mesh_release(&t.mesh);
    }
    weft_context_release(&context);
    return status;
}

TEST(forms_on_ranks_give_the_numbers_of_whole_tensors)
{
    struct wanted wanted = {test_cases(CASES), {.struct_size = sizeof wanted.options}};

    test_seed_begin("apply_forms");
    ck_assert_msg(weft_threads_run(RANKS, run_cases, &wanted) == WEFT_OK, "%s", weft_last_error());
}

TEST(forms_on_simulated_ranks_give_the_numbers_of_whole_tensors)
{
    struct wanted wanted = {test_cases(CASES),
                            {.struct_size = sizeof wanted.options, .simulated_ranks = RANKS}};

    test_seed_begin("apply_forms");
    ck_assert_msg(run_cases(&wanted) == WEFT_OK, "%s", weft_last_error());
}
