/* Tensors from creation to release, on two ranks that are threads. */
#include "base/base.h"
#include "holds.h"
#include "support/layout.h"
#include "support/move.h"
#include "support/suite.h"
#include "weft/context.h"
#include "weft/launch.h"
#include "weft/random.h"

#include <string.h>

static weft_spec *rows, *columns, *whole;

static void run(weft_status (*rank)(void *))
{
    rows = spec_of("2", "f32[4,6] S(0)");
    columns = spec_of("2", "f32[4,6] S(1)");
    whole = spec_of("2", "f32[4,6] R");
    ck_assert_msg(weft_threads_run(2, rank, NULL) == WEFT_OK, "%s", weft_last_error());
    weft_spec_release(&rows);
    weft_spec_release(&columns);
    weft_spec_release(&whole);
}

/* ---- creation ---- */

TEST_BY(run, a_tensor_owns_its_memory, void *unused)
{
    weft_tensor_options options = {.struct_size = sizeof options, .name = "layer1.weight"};
    weft_tensor *tensor = NULL, *same;
    OWNED(weft_context) *context = NULL;

    (void)unused;
    WF_TRY(weft_init(NULL, &context));
    WF_TRY(weft_tensor_create(context, rows, &options, &tensor));
    HOLDS(weft_tensor_spec(tensor) == rows && weft_tensor_context(tensor) == context);
    HOLDS(strcmp(weft_tensor_name(tensor), "layer1.weight") == 0);
    HOLDS(weft_tensor_shard(tensor)->shape[0] == 2 && weft_tensor_shard(tensor)->elements == 12);
    HOLDS(weft_tensor_strides(tensor)[0] == 6 && weft_tensor_strides(tensor)[1] == 1);
    memset(weft_tensor_memory(tensor), 1, 48);
    same = weft_tensor_retain(tensor);
    weft_tensor_release(&tensor);
    HOLDS(tensor == NULL && weft_tensor_memory(same) != NULL);
    weft_tensor_release(&same);
    weft_tensor_release(&same);
    weft_tensor_release(NULL);
    HOLDS(weft_tensor_spec(NULL) == NULL && weft_tensor_memory(NULL) == NULL);
    HOLDS(weft_tensor_name(NULL) == NULL && weft_tensor_retain(NULL) == NULL);
    REFUSES(weft_tensor_create(NULL, rows, NULL, &tensor), "weft_tensor_create: context is NULL");
    REFUSES(weft_tensor_create(context, NULL, NULL, &tensor), "weft_tensor_create: spec is NULL");
    REFUSES(weft_tensor_create(context, rows, NULL, NULL), "weft_tensor_create: out is NULL");
    options.struct_size = 1;
    REFUSES(weft_tensor_create(context, rows, &options, &tensor),
            "weft_tensor_create: weft_tensor_options.struct_size is 1");
    for (size_t size = 9; size < sizeof options; size++) /* sizes that cut a pointer */
        if (size % sizeof(void *) != 0) {
            options.struct_size = size;
            REFUSES(weft_tensor_wrap(context, rows, &tensor, &options, &tensor),
                    "weft_tensor_wrap: weft_tensor_options.struct_size is ");
        }
    options = (weft_tensor_options){.struct_size = sizeof options, .shape = (int64_t[]){2, 6}};
    REFUSES(weft_tensor_create(context, rows, &options, &tensor),
            "weft_tensor_create: weft_tensor_options.shape is set, but it is about memory of the "
            "caller (weft_tensor_wrap)");
    return WEFT_OK;
}

static _Atomic int released;

static void count_release(void *argument, void *memory)
{
    if (argument == &released && memory != NULL) released++;
}

/* Strides that make elements of VALUES overlap allow reading only. */
static weft_status wrap_overlapping(weft_context *context, float *values)
{
    static const int64_t windows[] = {1, 1}, interleaved[] = {5, 2};
    weft_tensor_options options = {.struct_size = sizeof options, .strides = windows};
    weft_tensor *tensor, *view;
    float host[12];

    WF_TRY(weft_tensor_wrap(context, rows, values, &options, &tensor));
    WF_TRY(weft_tensor_to_host(tensor, host, sizeof host, NULL));
    REFUSES(weft_tensor_fill(tensor, 1, NULL),
            "the tensor is read-only, because its strides make elements overlap");
    REFUSES(move_into(tensor, tensor, NULL, NULL),
            "target is read-only, because its strides make elements overlap");
    WF_TRY(weft_tensor_transpose(tensor, 0, 1, &view));
    REFUSES(weft_tensor_fill(view, 1, NULL), "because its strides make elements overlap");
    weft_tensor_release(&view);
    weft_tensor_release(&tensor);
    options.strides = interleaved;
    WF_TRY(weft_tensor_wrap(context, rows, values, &options, &tensor));
    WF_TRY(weft_tensor_fill(tensor, 0, NULL));
    weft_tensor_release(&tensor);
    return WEFT_OK;
}

static weft_status wrap_memory(void *unused)
{
    static const int64_t gaps[] = {7, 1}, negative[] = {-6, 1};
    weft_tensor_options options = {
        .struct_size = sizeof options, .name = "w", .release = count_release, .user = &released};
    weft_device_info device = {.struct_size = sizeof device};
    float on_host[32] = {0}, *values;
    weft_tensor *tensor;
    weft_context *context;
    void *memory;

    (void)unused;
    WF_TRY(weft_init(NULL, &context));
    WF_TRY(weft_device_get(context, &device));
    WF_TRY(copy_to_device(context, on_host, sizeof on_host, &values));
    WF_TRY(weft_tensor_wrap(context, rows, values, &options, &tensor));
    HOLDS(weft_tensor_memory(tensor) == values);
    weft_tensor_release(&tensor);
    options.strides = gaps;
    WF_TRY(weft_tensor_wrap(context, rows, values, &options, &tensor));
    HOLDS(weft_tensor_strides(tensor)[0] == 7);
    weft_tensor_release(&tensor);
    options.strides = negative;
    REFUSES(weft_tensor_wrap(context, rows, values, &options, &tensor),
            "weft_tensor_wrap: tensor \"w\": strides: dimension 0 has 2 elements at stride -6");
    options.strides = NULL;
    WF_TRY(wrap_overlapping(context, values));
    REFUSES(weft_tensor_wrap(context, rows, NULL, &options, &tensor), "memory is NULL");
    REFUSES(weft_tensor_wrap(context, rows, (char *)values + 1, &options, &tensor),
            "is not aligned to its elements of 4 bytes");
    WF_TRY(weft_alloc(context, 40, WEFT_MEMORY_DEVICE, &memory));
    REFUSES(weft_tensor_wrap(context, rows, memory, &options, &tensor), "needs 48");
    WF_TRY(weft_free(context, memory));
    WF_TRY(weft_free(context, values));
    options.release = NULL;
    if ((device.features & WEFT_FEATURE_HOST_MEMORY) != 0) {
        WF_TRY(weft_tensor_wrap(context, rows, on_host, &options, &tensor));
        weft_tensor_release(&tensor);
    } else {
        REFUSES(
            weft_tensor_wrap(context, rows, on_host, &options, &tensor),
            "is host memory, which the device cannot use; weft_tensor_from_host copies from it");
    }
    WF_TRY(weft_alloc(context, 48, WEFT_MEMORY_PINNED, &memory));
    WF_TRY(weft_tensor_wrap(context, rows, memory, &options, &tensor));
    weft_tensor_release(&tensor);
    WF_TRY(weft_free(context, memory));
    weft_context_release(&context);
    return WEFT_OK;
}

TEST(a_tensor_wraps_memory_of_the_caller)
{
    released = 0;
    run(wrap_memory);
    ck_assert_int_eq(released, 4); /* two on each rank; not by refused calls */
}

/* ---- moves ---- */

TEST_BY(run, tensors_move_alone_and_together, void *unused)
{
    weft_tensor *tensors[2], *targets[2], *back, *all;
    weft_random random = {7, 0};
    weft_context *context, *none = NULL;

    (void)unused;
    WF_TRY(weft_init(NULL, &context));
    for (int i = 0; i < 2; i++) {
        WF_TRY(weft_tensor_create(context, rows, NULL, &tensors[i]));
        WF_TRY(weft_tensor_uniform(tensors[i], &random, 0, 1, NULL));
        WF_TRY(weft_tensor_create(context, columns, NULL, &targets[i]));
    }
    WF_TRY(weft_tensors_move_into(2, tensors, targets, NULL, NULL, NULL));
    WF_TRY(weft_tensor_move(targets[1], rows, NULL, NULL, &back));
    WF_TRY(weft_context_wait(context, NULL, WEFT_FOREVER));
    HOLDS(memcmp(weft_tensor_memory(back), weft_tensor_memory(tensors[1]), 48) == 0);
    WF_TRY(move_into(targets[0], back, NULL, NULL));
    WF_TRY(weft_context_wait(context, NULL, WEFT_FOREVER));
    HOLDS(memcmp(weft_tensor_memory(back), weft_tensor_memory(tensors[0]), 48) == 0);
    WF_TRY(weft_tensor_move(back, whole, NULL, NULL, &all));
    WF_TRY(weft_context_wait(context, NULL, WEFT_FOREVER));
    HOLDS(weft_tensor_shard(all)->elements == 24);
    REFUSES(weft_tensor_move(NULL, whole, NULL, NULL, &all), "weft_tensor_move: tensor is NULL");
    REFUSES(move_into(back, NULL, NULL, NULL), "target is NULL");
    REFUSES(weft_tensors_move_into(2, tensors, (weft_tensor *[]){targets[0], targets[0]}, NULL,
                                   NULL, NULL),
            "weft_tensors_move_into: pairs 0 and 1 have the same target");
    REFUSES(weft_tensors_move_into(2, (weft_tensor *[]){back, targets[0]},
                                   (weft_tensor *[]){targets[0], tensors[1]}, NULL, NULL, NULL),
            "the tensor of pair 1 is the target of pair 0");
    WF_TRY(weft_tensors_move_into(2, (weft_tensor *[]){targets[0], targets[0]}, tensors, NULL, NULL,
                                  NULL)); /* a tensor may be moved twice */
    REFUSES(weft_tensors_move_into(0, tensors, targets, NULL, NULL, NULL), "count is 0");
    REFUSES(weft_tensor_create(none, rows, NULL, &back), "context is NULL");
    weft_context_release(&context); /* before its tensors */
    REFUSES(weft_tensor_uniform(back, &random, 0, 1, NULL), "tensor cannot be used any more");
    weft_tensor_release(&back);
    weft_tensor_release(&all);
    for (int i = 0; i < 2; i++) {
        weft_tensor_release(&tensors[i]);
        weft_tensor_release(&targets[i]);
    }
    return WEFT_OK;
}

enum { LISTED = 5 };

/* Two lists of the same layouts, with elements of their own. */
struct lists {
    weft_tensor *tensors[2][LISTED], *targets[2][LISTED];
};

static weft_status renew(weft_context *context, weft_tensor **tensor, const weft_spec *spec,
                         double value)
{
    weft_tensor_release(tensor);
    WF_TRY(weft_tensor_create(context, spec, NULL, tensor));
    return weft_tensor_fill(*tensor, value, NULL);
}

/* Move list LIST, and find the elements of its tensors in the targets. */
static weft_status move_and_check(weft_context *context, struct lists *l, int list)
{
    weft_tensor_difference_info info = {.struct_size = sizeof info};

    WF_TRY(weft_tensors_move_into(LISTED, l->tensors[list], l->targets[list], NULL, NULL, NULL));
    WF_TRY(weft_context_wait(context, NULL, WEFT_FOREVER));
    for (int i = 0; i < LISTED; i++) {
        WF_TRY(weft_tensor_compare(l->tensors[list][i], l->targets[list][i], NULL, NULL, &info));
        HOLDS(info.equal);
    }
    return WEFT_OK;
}

TEST_BY(run, lists_move_again_and_again, void *unused)
{
    struct lists l = {{{NULL}}, {{NULL}}};
    OWNED(weft_context) *context = NULL;
    double value = 0;

    (void)unused;
    WF_TRY(weft_init(NULL, &context));
    for (int i = 0; i < 2 * LISTED; i++) {
        WF_TRY(renew(context, &l.tensors[i / LISTED][i % LISTED], rows, value++));
        WF_TRY(renew(context, &l.targets[i / LISTED][i % LISTED], columns, -1));
    }
    for (int i = 0; i < 30; i++) {
        WF_TRY(move_and_check(context, &l, i % 3 == 2)); /* some of them twice in a row */
        for (int k = 0; k < LISTED; k++)
            WF_TRY(weft_tensor_fill(l.tensors[i % 2][k], value++, NULL));
        if (i % 5 == 1) /* probably at the same address, with other memory or another layout */
            WF_TRY(renew(context, &l.tensors[0][i % LISTED], i % 2 ? whole : rows, value++));
        if (i % 5 == 3)
            WF_TRY(renew(context, &l.targets[1][i % LISTED], i % 2 ? rows : columns, 0));
        if (i % 7 == 6) WF_TRY(weft_move_clear(context));
    }
    for (int i = 0; i < 2 * LISTED; i++) {
        weft_tensor_release(&l.tensors[i / LISTED][i % LISTED]);
        weft_tensor_release(&l.targets[i / LISTED][i % LISTED]);
    }
    return WEFT_OK;
}

/* ---- errors ---- */

/* How often the last error has TEXT. */
static int count_in_error(const char *text)
{
    int count = 0;

    for (const char *at = strstr(weft_last_error(), text); at != NULL; at = strstr(at + 1, text))
        count++;
    return count;
}

/* The last error names FUNCTION once, and no other function of weft. */
#define NAMES(function) HOLDS(count_in_error(function) == 1 && count_in_error("weft_") == 1)

/* Names may come from files: a terminal does not act on them. */
static weft_status name_with_controls(weft_context *context)
{
    weft_tensor_options options = {.struct_size = sizeof options, .name = "a\nb\x1b[31m"};
    weft_tensor *tensor = NULL, *out = NULL;
    char text[512];

    WF_TRY(weft_tensor_create(context, rows, &options, &tensor));
    HOLDS(strcmp(weft_tensor_name(tensor), options.name) == 0);
    REFUSES(weft_tensor_full(tensor, 7, NULL, NULL, &out), "tensor \"a?b?[31m\": rank ");
    WF_TRY(weft_tensor_fill(tensor, 0, NULL));
    WF_TRY(weft_tensor_print(tensor, NULL, text, sizeof text, NULL));
    HOLDS(strncmp(text, "a?b?[31m: f32", 13) == 0);
    weft_tensor_release(&tensor);
    return WEFT_OK;
}

TEST_BY(run, an_error_names_the_function_once, void *unused)
{
    weft_tensor_options options = {.struct_size = sizeof options, .name = "w"};
    weft_tensor *tensors[2], *wrong[2], *out = NULL;
    OWNED(weft_spec) *other = NULL, *large = NULL;
    OWNED(weft_context) *context = NULL;

    (void)unused;
    WF_TRY(weft_init(NULL, &context));
    other = spec_of("2", "f32[4,7] S(0)");
    large = spec_of("4", "f32[4,6] S(0)");
    for (int i = 0; i < 2; i++) {
        WF_TRY(weft_tensor_create(context, rows, i == 0 ? &options : NULL, &tensors[i]));
        WF_TRY(weft_tensor_create(context, other, NULL, &wrong[i]));
        HOLDS(weft_tensor_move(tensors[i], other, NULL, NULL, &out) != WEFT_OK);
        NAMES("weft_tensor_move");
        HOLDS(weft_tensor_move(tensors[i], large, NULL, NULL, &out) != WEFT_OK);
        NAMES("weft_tensor_move");
        HOLDS(move_into(tensors[i], wrong[i], NULL, NULL) != WEFT_OK);
        NAMES("weft_tensors_move_into");
        HOLDS(move_into(tensors[i], wrong[i], (weft_stream *)&out, NULL) != WEFT_OK);
        NAMES("weft_tensors_move_into");
        HOLDS(weft_tensor_full(tensors[i], 7, NULL, NULL, &out) != WEFT_OK);
        NAMES("weft_tensor_full");
    }
    HOLDS(weft_tensors_move_into(2, tensors, wrong, NULL, NULL, NULL) != WEFT_OK);
    NAMES("weft_tensors_move_into");
    HOLDS(count_in_error("tensor w:") == 1);
    REFUSES(
        weft_tensors_move_into(2, tensors, (weft_tensor *[]){tensors[0], NULL}, NULL, NULL, NULL),
        "weft_tensors_move_into: pair 1: target is NULL");
    REFUSES(weft_tensors_move_into(1, &out, tensors, NULL, NULL, NULL),
            "weft_tensors_move_into: tensor is NULL");
    WF_TRY(name_with_controls(context));
    for (int i = 0; i < 2; i++) {
        weft_tensor_release(&tensors[i]);
        weft_tensor_release(&wrong[i]);
    }
    return WEFT_OK;
}

/* ---- draws ---- */

/* Parameters that f16 and the floats of 8 bits do not reach. */
static weft_status refuse_narrow_draws(weft_context *context, weft_random *random)
{
    static const struct {
        enum weft_dtype dtype;
        double largest;
        const char *text;
    } narrow[] = {{WEFT_DTYPE_F16, 65504, "f16 holds -65504 to 65504"},
                  {WEFT_DTYPE_F8E4M3, 448, "f8e4m3 holds -448 to 448"},
                  {WEFT_DTYPE_F8E5M2, 57344, "f8e5m2 holds -57344 to 57344"}};

    for (size_t i = 0; i < WF_COUNT(narrow); i++) {
        double end = narrow[i].largest, beyond = end + 1;
        weft_random used = *random;
        weft_tensor *tensor = NULL;
        weft_spec *spec = NULL;

        WF_TRY(weft_spec_with_dtype(rows, narrow[i].dtype, &spec));
        WF_TRY(weft_tensor_create(context, spec, NULL, &tensor));
        weft_spec_release(&spec);
        WF_TRY(weft_tensor_uniform(tensor, &used, -end, end, NULL));
        WF_TRY(weft_tensor_normal(tensor, &used, end, 1, NULL));
        REFUSES(weft_tensor_uniform(tensor, random, -beyond, 0, NULL), narrow[i].text);
        REFUSES(weft_tensor_uniform(tensor, random, 0, beyond, NULL), narrow[i].text);
        REFUSES(weft_tensor_normal(tensor, random, beyond, 1, NULL), narrow[i].text);
        REFUSES(weft_tensor_normal(tensor, random, 0, beyond, NULL), narrow[i].text);
        REFUSES(weft_tensor_dropout(tensor, random, 1 - 1e-9, NULL), narrow[i].text);
        WF_TRY(weft_tensor_dropout(tensor, &used, 1, NULL));
        weft_tensor_release(&tensor);
    }
    return WEFT_OK;
}

TEST_BY(run, wrong_draws_are_refused, void *unused)
{
    weft_random random = {1, 9};
    weft_spec *other;
    weft_tensor *tensor, *integers, *partial;
    OWNED(weft_context) *context = NULL;

    (void)unused;
    WF_TRY(weft_init(NULL, &context));
    WF_TRY(weft_tensor_create(context, rows, NULL, &tensor));
    WF_TRY(weft_spec_with_dtype(rows, WEFT_DTYPE_U8, &other));
    WF_TRY(weft_tensor_create(context, other, NULL, &integers));
    weft_spec_release(&other);
    WF_TRY(weft_spec_with(rows, "P", &other));
    WF_TRY(weft_tensor_create(context, other, NULL, &partial));
    weft_spec_release(&other);
    FAILS(weft_tensor_normal(integers, &random, 0, 1, NULL), WEFT_ERR_UNSUPPORTED,
          "the distribution is not defined on u8, but on floats and complex numbers");
    FAILS(weft_tensor_integers(tensor, &random, 0, 9, NULL), WEFT_ERR_UNSUPPORTED,
          "the distribution is not defined on f32, but on integers and bool");
    REFUSES(weft_tensor_uniform(tensor, NULL, 0, 1, NULL), "random is NULL");
    REFUSES(weft_tensor_uniform(tensor, &random, 1, 1, NULL), "expected low < high");
    REFUSES(weft_tensor_uniform(tensor, &random, -3e38, 3e38, NULL), "is beyond the range of f32");
    REFUSES(weft_tensor_uniform(tensor, &random, 0, 1e39, NULL),
            "high is 1e+39, but f32 holds -3.4028234663852886e+38 to 3.4028234663852886e+38");
    REFUSES(weft_tensor_uniform(tensor, &random, 1000001, 1000000.5, NULL),
            "low is 1000001 and high is 1000000.5; expected low < high");
    REFUSES(weft_tensor_uniform(tensor, &random, 0, 1e-40, NULL),
            "the distance from 0 to 1e-40 is too small: its steps are below the smallest normal "
            "number of f32, in which f32 is drawn");
    WF_TRY(refuse_narrow_draws(context, &random));
    REFUSES(weft_tensor_uniform(tensor, &random, 1 + 1e-12, 1 + 2e-12, NULL), "f32 has no number");
    REFUSES(weft_tensor_normal(tensor, &random, 0, -1, NULL), "deviation is -1");
    REFUSES(weft_tensor_normal(tensor, &random, 1e39, 1, NULL),
            "mean is 1e+39, but f32 holds -3.4028234663852886e+38 to");
    REFUSES(weft_tensor_normal(tensor, &random, 0, 1e39, NULL), "deviation is 1e+39");
    REFUSES(weft_tensor_truncated_normal(tensor, &random, 0, 0, 0, 1, NULL), "deviation is 0");
    REFUSES(weft_tensor_bernoulli(tensor, &random, 1.5, NULL), "probability is 1.5");
    REFUSES(weft_tensor_integers(integers, &random, -1, 4, NULL), "u8 holds 0 to 255");
    REFUSES(weft_tensor_integers(integers, &random, 4, 4, NULL), "expected low < high");
    REFUSES(weft_tensor_normal(partial, &random, 0, 1, NULL), "partial along axis 0");
    HOLDS(weft_tensor_normal(integers, &random, 0, 1, NULL) == WEFT_ERR_UNSUPPORTED);
    HOLDS(weft_tensor_integers(tensor, &random, 0, 1, NULL) == WEFT_ERR_UNSUPPORTED);
    HOLDS(random.seed == 1 && random.offset == 9);
    weft_tensor_release(&tensor);
    weft_tensor_release(&integers);
    weft_tensor_release(&partial);
    return WEFT_OK;
}
