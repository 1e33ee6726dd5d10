/* Views of tensors: every view has the elements that NumPy's would have. */
#include "base/base.h"
#include "holds.h"
#include "support/allocfail.h"
#include "support/layout.h"
#include "support/random_layout.h"
#include "support/suite.h"
#include "weft/context.h"
#include "weft/tensor.h"

#include <stdlib.h>

enum { RANKS = 6 };

/* ---- a view as the test knows it ---- */

/* A view of a tensor whose element i has the value i: its shape, and the values' strides. */
struct model {
    int32_t dims;
    int64_t shape[WEFT_MAX_DIMS], strides[WEFT_MAX_DIMS], offset;
};

static struct model model_of(const weft_spec *spec)
{
    struct model m = {.dims = weft_spec_dims(spec)};
    int64_t stride = 1;

    for (int32_t d = m.dims - 1; d >= 0; d--) {
        m.shape[d] = weft_spec_shape(spec)[d];
        m.strides[d] = stride;
        stride *= m.shape[d];
    }
    return m;
}

static int64_t value_at(const struct model *m, int64_t number)
{
    int64_t value = m->offset;

    for (int32_t d = m->dims - 1; d >= 0; d--) {
        value += number % m->shape[d] * m->strides[d];
        number /= m->shape[d];
    }
    return value;
}

/* ---- ranks ---- */

/* A tensor of SPEC, with dtype i32, whose element i has the value i. */
static weft_status number_tensor(weft_context *context, const weft_spec *spec, weft_tensor **out)
{
    uint64_t bytes = weft_spec_shard_bytes(spec, weft_rank(context));
    int32_t *values = malloc(bytes + 1);
    weft_segment part;
    weft_status status;

    for (int64_t at = 0; weft_spec_segment(spec, weft_rank(context), NULL, at, &part);
         at += part.length)
        for (int64_t i = 0; i < part.length; i++)
            values[part.local + i] = (int32_t)(part.global + i);
    status = weft_tensor_create(context, spec, NULL, out);
    if (status == WEFT_OK) status = weft_tensor_from_host(*out, values, bytes, NULL);
    free(values);
    return status;
}

/* VIEW has the values of MODEL. */
static weft_status check_view(weft_tensor *view, const struct model *model)
{
    int64_t count = weft_spec_elements(weft_tensor_spec(view));
    int32_t *values = malloc((size_t)count * 4 + 1), bad = -1;
    weft_tensor *full = NULL;

    WF_TRY(weft_tensor_full(view, WEFT_EVERY_RANK, NULL, NULL, &full));
    WF_TRY(weft_tensor_to_host(full, values, (uint64_t)count * 4, NULL));
    for (int32_t i = 0; i < weft_tensor_shard(full)->elements && bad < 0; i++)
        if (values[i] != value_at(model, i)) bad = i;
    free(values);
    weft_tensor_release(&full);
    HOLDS(bad < 0);
    return WEFT_OK;
}

static bool is_laid_out(const weft_tensor *view, const char *text)
{
    char have[256];

    return weft_spec_print(weft_tensor_spec(view), have, sizeof have, NULL) == WEFT_OK &&
           strcmp(have, text) == 0;
}

/* ---- single views ---- */

static struct {
    const char *mesh, *tensor;
    char kind; /* n, t or r */
    int64_t arguments[3];
    const char *view; /* NULL: refused */
} const views[] = {
    {"2", "i32[4,6] S(0)", 'n', {1, 2, 3}, "i32[4,3] S(0)"},
    {"2", "i32[4,6] S(0)", 'n', {0, 1, 2}, "i32[2,6] S(0)"},
    {"2", "i32[4,6] S(0)", 'n', {0, 0, 3}, "i32[3,6] S(0)"},
    {"2", "i32[5,6] S(0)", 'n', {0, 2, 3}, "i32[3,6] G(0;1,2)"},
    {"2", "i32[9] S(0)", 'n', {0, 6, 0}, "i32[0] S(0)"},
    {"2x2", "i32[8,6] S(0),S(1)", 'n', {0, 1, 6}, "i32[6,6] S(0),S(1)"},
    {"2x2", "i32[8] S(0),S(0)", 'n', {0, 1, 7}, NULL},
    {"2", "i32[12] B(0;8,4)", 'n', {0, 8, 4}, "i32[4] S(0)"},
    {"2x2", "i32[4,6] S(0),S(1)", 't', {0, 1}, "i32[6,4] S(1),S(0)"},
    {"2", "i32[4,6] O(1)", 't', {1, 0}, "i32[6,4] O(1)"},
    {"2", "i32[4,6] S(0)", 'r', {24}, "i32[24] S(0)"},
    {"2", "i32[5,6] S(0)", 'r', {30}, "i32[30] G(0;18,12)"},
    {"2", "i32[4,6] S(1)", 'r', {24}, "i32[24] SS(0,4)"},
    {"2", "i32[24] S(0)", 'r', {4, 6}, "i32[4,6] S(0)"},
    {"2", "i32[30] S(0)", 'r', {5, 6}, NULL},
    {"2", "i32[24] SS(0,4)", 'r', {4, 6}, "i32[4,6] S(1)"},
    {"2x2", "i32[4,6,5] S(0),S(1)", 'r', {24, 5}, "i32[24,5] S(0),SS(0,2)"},
    {"2", "i32[4,1,6] S(0)", 'r', {4, 6, 1}, "i32[4,6,1] S(0)"},
    {"3", "i32[6,4] R", 'r', {3, 8}, "i32[3,8] R"},
    {"2x2", "i32[1,5,4] S(1)[1],S(1)[0]", 'r', {5, 4}, "i32[5,4] S(0)[1],S(0)[0]"},
    {"2x2", "i32[5,1] S(0)[1],S(0)[0]", 'r', {1, 5}, "i32[1,5] S(1)[1],S(1)[0]"},
    {"2", "i32[1,0] S(1)", 'r', {0}, "i32[0] S(0)"},
    {"2x2", "i32[3,5,1,4] S(1)[1],S(1)[0]", 'r', {3, 5, 4}, "i32[3,5,4] S(1)[1],S(1)[0]"},
};

static weft_status make_view(weft_tensor *tensor, size_t index, struct model *model,
                             weft_tensor **out)
{
    const int64_t *a = views[index].arguments;

    if (views[index].kind == 'n') {
        model->shape[a[0]] = a[2];
        model->offset = a[1] * model->strides[a[0]];
        return weft_tensor_narrow(tensor, (int32_t)a[0], a[1], a[2], out);
    }
    if (views[index].kind == 't') {
        for (int i = 0; i < 2; i++) {
            model->shape[i] = weft_spec_shape(weft_tensor_spec(tensor))[1 - i];
            model->strides[i] = i == 0 ? 1 : model->shape[0];
        }
        return weft_tensor_transpose(tensor, (int32_t)a[0], (int32_t)a[1], out);
    }
    *model = (struct model){.dims = 1, .strides = {1}};
    model->shape[0] = weft_spec_elements(weft_tensor_spec(tensor));
    return weft_tensor_reshape(tensor, 1 + (a[1] > 0) + (a[2] > 0), a, out);
}

static weft_spec *current;

static weft_status view_one(void *argument)
{
    size_t index = *(size_t *)argument;
    struct model model = model_of(current);
    weft_tensor *tensor = NULL, *view = NULL;
    weft_context *context;
    weft_status status;

    WF_TRY(weft_init(NULL, &context));
    WF_TRY(number_tensor(context, current, &tensor));
    status = make_view(tensor, index, &model, &view);
    if (views[index].view == NULL) {
        HOLDS(status == WEFT_ERR_UNSUPPORTED);
        HOLDS(strstr(weft_last_error(), "; move the tensor to i32[") != NULL);
        HOLDS(strstr(weft_last_error(), "R first, which takes about ") != NULL);
    } else {
        HOLDS(status == WEFT_OK);
        HOLDS(is_laid_out(view, views[index].view));
        weft_tensor_release(&tensor); /* the view keeps it */
        WF_TRY(check_view(view, &model));
    }
    weft_tensor_release(&tensor);
    weft_tensor_release(&view);
    weft_context_release(&context);
    return WEFT_OK;
}

TEST(views_have_layouts_of_their_own)
{
    for (size_t i = 0; i < WF_COUNT(views); i++) {
        current = spec_of(views[i].mesh, views[i].tensor);
        ck_assert_msg(weft_threads_run(4, view_one, &i) == WEFT_OK, "case %zu, %s: %s", i,
                      views[i].tensor, weft_last_error());
        weft_spec_release(&current);
    }
}

/* ---- random views of views ---- */

static uint64_t seed;
static _Atomic int made, refused;

/* A random shape of COUNT elements. */
static int32_t random_factors(struct random *r, int64_t count, int64_t *shape)
{
    int32_t dims = 0;

    for (; dims < 3 && count > 1; dims++) {
        int64_t part = count;

        for (int tries = 0; tries < 6 && (part == count || count % part != 0); tries++)
            part = random_in(r, 1, (int32_t)(count < 64 ? count : 64));
        shape[dims] = count % part == 0 ? part : count;
        count /= shape[dims];
    }
    if (count != 1 || dims == 0) shape[dims++] = count;
    return dims;
}

static weft_status view_randomly(struct random *r, weft_tensor *tensor, struct model *m,
                                 weft_tensor **out)
{
    int32_t kind = random_in(r, 0, m->dims > 0 ? 2 : 0), a, b;
    int64_t shape[WEFT_MAX_DIMS], start, length;

    if (kind == 0) {
        int32_t dims = random_factors(r, weft_spec_elements(weft_tensor_spec(tensor)), shape);

        return weft_tensor_reshape(tensor, dims, shape, out);
    }
    a = random_in(r, 0, m->dims - 1);
    b = random_in(r, 0, m->dims - 1);
    if (kind == 1) return weft_tensor_transpose(tensor, a, b, out);
    start = random_in(r, 0, (int32_t)m->shape[a]);
    length = random_in(r, 0, (int32_t)(m->shape[a] - start));
    return weft_tensor_narrow(tensor, a, start, length, out);
}

/* The values of VIEW, made of TENSOR by the same random call, from the whole of TENSOR on one rank:
 * a view of a replicated tensor is always possible. */
static weft_status compare_views(weft_context *context, struct random before, weft_tensor *tensor,
                                 weft_tensor *view, struct model *m)
{
    weft_tensor_difference_info info = {.struct_size = sizeof info};
    weft_tensor *whole = NULL, *expected = NULL;

    (void)context;
    WF_TRY(weft_tensor_full(tensor, WEFT_EVERY_RANK, NULL, NULL, &whole));
    WF_TRY(view_randomly(&before, whole, m, &expected));
    WF_TRY(weft_tensor_compare(view, expected, NULL, NULL, &info));
    HOLDS(info.equal);
    weft_tensor_release(&whole);
    weft_tensor_release(&expected);
    return WEFT_OK;
}

static weft_status view_views(void *unused)
{
    struct random r = {.seed = seed, .state = seed};
    weft_tensor *tensor = NULL;
    OWNED(weft_context) *context = NULL;

    (void)unused;
    WF_TRY(weft_init(NULL, &context));
    WF_TRY(number_tensor(context, current, &tensor));
    for (int i = 0; i < 3; i++) {
        struct model m = model_of(weft_tensor_spec(tensor));
        struct random before = r;
        weft_tensor *view = NULL;
        weft_status status = view_randomly(&r, tensor, &m, &view);

        /* A shard with gaps is refused on the ranks that have it: end here on all of them. */
        if (status == WEFT_ERR_UNSUPPORTED) {
            refused++;
            break;
        }
        HOLDS(status == WEFT_OK);
        made++;
        WF_TRY(compare_views(context, before, tensor, view, &m));
        weft_tensor_release(&tensor);
        tensor = NULL;
        WF_TRY(
            weft_tensor_move(view, weft_tensor_spec(view), NULL, NULL, &tensor)); /* without gaps */
        weft_tensor_release(&view);
    }
    weft_tensor_release(&tensor);
    return WEFT_OK;
}

TEST(random_views_have_the_elements_of_the_whole)
{
    struct random r = random_begin("random_views_have_the_elements_of_the_whole");

    for (int done = 0, wanted = test_cases(120); done < wanted;) {
        OWNED(weft_mesh) *mesh = random_mesh(&r);
        int64_t shape[WEFT_MAX_DIMS];
        int32_t dims = random_shape(&r, shape);
        OWNED(weft_spec) *spec = random_spec(&r, mesh, dims, shape);
        bool fits = true;

        for (int32_t i = 0; i < weft_mesh_size(mesh); i++)
            fits = fits && weft_mesh_rank_at(mesh, i) < RANKS;
        for (int32_t a = 0; a < weft_mesh_axes(mesh); a++)
            fits = fits && weft_spec_placements(spec)[a].kind != WEFT_PLACE_PARTIAL;
        seed = (uint64_t)random_in(&r, 1, 1000000);
        if (fits && weft_spec_with_dtype(spec, WEFT_DTYPE_I32, &current) == WEFT_OK) {
            ck_assert_msg(weft_threads_run(RANKS, view_views, NULL) == WEFT_OK,
                          "WEFT_TEST_SEED=%llu, seed %llu\n%s\n%s", (unsigned long long)r.seed,
                          (unsigned long long)seed, as_command(current), weft_last_error());
            weft_spec_release(&current);
            done++;
        }
    }
    fprintf(stderr, "%d views, %d refused\n", made / RANKS, refused / RANKS);
    ck_assert_int_gt(made, 2 * refused);
}

/* ---- refusals and memory ---- */

static weft_status refuse_views(void *unused)
{
    static const int64_t huge[] = {INT64_MAX, INT64_MAX}, negative[] = {-1, 12};
    static const int64_t gaps[] = {8, 1}, other[] = {5, 5}, flat[] = {12}, thirds[] = {2, 2, 3};
    weft_tensor_options options = {.struct_size = sizeof options, .strides = gaps, .name = "w"};
    weft_tensor *tensor, *view = NULL;
    OWNED(weft_context) *context = NULL;
    int32_t *values;

    (void)unused;
    WF_TRY(weft_init(NULL, &context));
    WF_TRY(copy_to_device(context, (int32_t[16]){0}, 16 * sizeof *values, &values));
    WF_TRY(weft_tensor_wrap(context, current, values, &options, &tensor));
    REFUSES(weft_tensor_narrow(tensor, 2, 0, 1, &view),
            "weft_tensor_narrow: tensor \"w\": dim is 2, but the tensor has 2 dimensions");
    REFUSES(weft_tensor_narrow(tensor, 1, 5, 2, &view),
            "start is 5 and length is 2, but dimension 1 has 6 indices");
    REFUSES(weft_tensor_narrow(tensor, 1, INT64_MAX, INT64_MAX, &view), "dimension 1 has 6");
    REFUSES(weft_tensor_reshape(tensor, 2, huge, &view), "more than 2^63 - 1 elements");
    REFUSES(weft_tensor_reshape(tensor, 2, negative, &view), "shape[0] is -1");
    REFUSES(weft_tensor_narrow(tensor, 1, 0, -1, &view), "length is -1");
    REFUSES(weft_tensor_transpose(tensor, 0, -1, &view), "b is -1");
    REFUSES(weft_tensor_reshape(tensor, 2, other, &view), "the new shape has 25 elements");
    REFUSES(weft_tensor_reshape(tensor, 9, other, &view), "dims is 9");
    FAILS(weft_tensor_reshape(tensor, 1, flat, &view), WEFT_ERR_UNSUPPORTED,
          "rank 0 has gaps that the new shape cannot express; move it to a tensor without gaps");
    HOLDS(view == NULL);
    WF_TRY(weft_tensor_reshape(tensor, 3, thirds, &view));
    HOLDS(weft_tensor_strides(view)[0] == 8 && weft_tensor_strides(view)[1] == 3);
    weft_tensor_release(&view);
    weft_tensor_release(&tensor);
    WF_TRY(weft_free(context, values));
    return WEFT_OK;
}

TEST(wrong_views_are_refused)
{
    current = spec_of("1", "i32[2,6] R");
    ck_assert_msg(weft_threads_run(1, refuse_views, NULL) == WEFT_OK, "%s", weft_last_error());
    weft_spec_release(&current);
}

/* Two groups of dimensions have no placements: the move that the error names helps both. */
static weft_status reshape_two_groups(void *unused)
{
    static const int64_t shape[] = {5, 6, 3, 14};
    weft_tensor *tensor = NULL, *moved = NULL, *view = NULL;
    OWNED(weft_spec) *advised = NULL;
    OWNED(weft_context) *context = NULL;

    (void)unused;
    WF_TRY(weft_init(NULL, &context));
    WF_TRY(number_tensor(context, current, &tensor));
    FAILS(weft_tensor_reshape(tensor, 4, shape, &view), WEFT_ERR_UNSUPPORTED,
          "; move the tensor to i32[30,42] R,R first");
    WF_TRY(weft_spec_with(current, "R,R", &advised));
    WF_TRY(weft_tensor_move(tensor, advised, NULL, NULL, &moved));
    WF_TRY(weft_tensor_reshape(moved, 4, shape, &view));
    weft_tensor_release(&view);
    weft_tensor_release(&moved);
    weft_tensor_release(&tensor);
    return WEFT_OK;
}

TEST(the_advised_move_makes_the_whole_reshape_possible)
{
    current = spec_of("2x2", "i32[30,42] S(0),S(1)");
    ck_assert_msg(weft_threads_run(4, reshape_two_groups, NULL) == WEFT_OK, "%s",
                  weft_last_error());
    weft_spec_release(&current);
}

static weft_tensor *base;

static weft_status make_views(void *unused)
{
    static const int64_t flat[] = {24};
    weft_tensor *part = NULL, *turned = NULL, *line = NULL;
    weft_status status = weft_tensor_narrow(base, 0, 1, 2, &part);

    (void)unused;
    if (status == WEFT_OK) status = weft_tensor_transpose(base, 0, 1, &turned);
    if (status == WEFT_OK) status = weft_tensor_reshape(base, 1, flat, &line);
    weft_tensor_release(&part);
    weft_tensor_release(&turned);
    weft_tensor_release(&line);
    return status;
}

TEST(every_allocation_of_a_view_may_fail)
{
    OWNED(weft_context) *context = NULL;

    current = spec_of("1", "i32[4,6] S(0)");
    ck_assert_int_eq(weft_init(NULL, &context), WEFT_OK);
    ck_assert_int_eq(weft_tensor_create(context, current, NULL, &base), WEFT_OK);
    ck_assert_uint_ge(ALLOCATIONS_FAIL(make_views(NULL), (void)0), 3);
    weft_tensor_release(&base);
    weft_spec_release(&current);
}
