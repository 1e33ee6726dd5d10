/* draw_check.c - one rank that draws random tensors on any backend, in uneven, strided, B, G and O
 * layouts, in random layouts on random meshes, and in memory with gaps.  Every bit is that of the
 * processor's functions.  Every allocation of a draw fails once.  Started by `weft run` with any
 * number of ranks; prints JSON.
 *
 *     draw_check [ELEMENTS [host|device]]
 *
 * ELEMENTS is the number of elements of the largest tensors (1003003).  The last argument states
 * what draws. */
#include "kit/arithmetic/cpu_random.h"
#include "support/allocfail.h"
#include "support/random_layout.h"

#include "rank.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- layouts ---- */

enum { ROWS = 37, COLUMNS = 24, LAYOUTS = 9, TEXT = 400 };

/* Layout NUMBER of ROWS x COLUMNS elements on RANKS ranks, with a G of unequal sizes. */
static const char *placements_of(int number, int ranks, char *out)
{
    static const char *const plain[] = {"R",       "S(0)",         "S(1)",     "SS(0,2)",
                                        "SS(1,3)", "B(0;19,11,7)", "B(1;9,15)"};
    int at = 0;

    if (number < 7) return plain[number];
    if (number == 7) {
        snprintf(out, TEXT, "O(%d)", ranks - 1);
        return out;
    }
    at = snprintf(out, TEXT, "G(0;%d", ROWS - (ranks - 1) * 3);
    for (int i = 1; i < ranks; i++)
        at += snprintf(out + at, (size_t)(TEXT - at), ",3");
    snprintf(out + at, (size_t)(TEXT - at), ")");
    return out;
}

/* ---- draws ---- */

static weft_status draw_tensor(weft_tensor *tensor, const struct cpu_draw *draw)
{
    weft_random random = {draw->bits.seed, draw->bits.offset};

    switch (draw->distribution) {
    case CPU_UNIFORM:
        return weft_tensor_uniform(tensor, &random, draw->low, draw->high, stream);
    case CPU_NORMAL:
        return weft_tensor_normal(tensor, &random, draw->mean, draw->deviation, stream);
    case CPU_TRUNCATED_NORMAL:
        return weft_tensor_truncated_normal(tensor, &random, draw->mean, draw->deviation, draw->low,
                                            draw->high, stream);
    case CPU_BERNOULLI:
        return weft_tensor_bernoulli(tensor, &random, draw->probability, stream);
    case CPU_DROPOUT:
        return weft_tensor_dropout(tensor, &random, draw->probability, stream);
    default:
        return weft_tensor_integers(tensor, &random, draw->first,
                                    (int64_t)((uint64_t)draw->first + draw->range), stream);
    }
}

static uint64_t elements_compared;

/* This rank's shard of TENSOR has the bits of DRAW. */
static void check_bits(weft_tensor *tensor, const struct cpu_draw *draw)
{
    const weft_spec *spec = weft_tensor_spec(tensor);
    size_t element = weft_dtype_bytes(weft_spec_dtype(spec));
    uint64_t bytes = (uint64_t)weft_tensor_shard(tensor)->elements * element;
    char *got = malloc(bytes + 1), *want = malloc(bytes + 1), text[TEXT];
    struct cpu_sampler sampler;
    weft_segment part;

    if (got == NULL || want == NULL) exit(1);
    cpu_sampler_set(&sampler, &cpu_kernels_base, draw);
    for (int64_t at = 0; weft_spec_segment(spec, weft_rank(context), NULL, at, &part);
         at += part.length)
        cpu_sample(&sampler, (uint64_t)part.global, (size_t)part.length,
                   want + part.local * (int64_t)element);
    must(weft_tensor_to_host(tensor, got, bytes, stream), "weft_tensor_to_host");
    for (uint64_t i = 0; i < bytes; i++) {
        if (got[i] == want[i]) continue;
        must(weft_spec_print(spec, text, sizeof text, NULL), "weft_spec_print");
        fprintf(stderr,
                "%s\nrank %d: %s: distribution %u, seed %llu: byte %llu is %02x, not %02x\n",
                as_command(spec), weft_rank(context), text, draw->distribution,
                (unsigned long long)draw->bits.seed, (unsigned long long)i, (uint8_t)got[i],
                (uint8_t)want[i]);
        exit(1);
    }
    elements_compared += bytes / element;
    free(got);
    free(want);
}

static weft_spec *make_spec(const char *type, const char *placements)
{
    weft_spec *spec = NULL;
    char text[TEXT + 64];

    snprintf(text, sizeof text, "%s %s", type, placements);
    must(weft_spec_parse(mesh, text, &spec), text);
    return spec;
}

static void check_spec(const weft_spec *spec, struct cpu_draw draw)
{
    weft_tensor *tensor = NULL;

    draw.dtype = weft_spec_dtype(spec);
    must(weft_tensor_create(context, spec, NULL, &tensor), "weft_tensor_create");
    for (int i = 0; i < 2; i++) { /* with a new list, and with the same one */
        draw.bits.offset++;
        must(draw_tensor(tensor, &draw), "a draw");
        check_bits(tensor, &draw);
    }
    weft_tensor_release(&tensor);
}

static void check_draw(const char *type, const char *placements, struct cpu_draw draw)
{
    weft_spec *spec = make_spec(type, placements);

    check_spec(spec, draw);
    weft_spec_release(&spec);
}

/* The same in memory with gaps, whose first element is the second of the memory. */
static void check_gaps(const char *type, const char *placements, struct cpu_draw draw)
{
    weft_spec *spec = make_spec(type, placements);
    weft_tensor_options options = {.struct_size = sizeof options};
    int64_t strides[] = {2 * COLUMNS + 3, 2};
    size_t element = weft_dtype_bytes(weft_spec_dtype(spec));
    weft_tensor *tensor = NULL;
    void *memory = NULL;

    draw.dtype = weft_spec_dtype(spec);
    options.strides = strides;
    must(weft_alloc(context, (uint64_t)(ROWS + 1) * (uint64_t)strides[0] * element,
                    WEFT_MEMORY_DEVICE, &memory),
         "weft_alloc");
    must(weft_tensor_wrap(context, spec, (char *)memory + element, &options, &tensor),
         "weft_tensor_wrap");
    must(draw_tensor(tensor, &draw), "a draw into gaps");
    check_bits(tensor, &draw);
    rank_wait();
    weft_tensor_release(&tensor);
    must(weft_free(context, memory), "weft_free");
    weft_spec_release(&spec);
}

/* ---- cases ---- */

static const struct cpu_draw draws[] = {
    {.distribution = CPU_UNIFORM, .low = -1, .high = 2},
    {.distribution = CPU_NORMAL, .mean = 0.25, .deviation = 2},
    {.distribution = CPU_TRUNCATED_NORMAL, .deviation = 1, .low = -1, .high = 2},
    {.distribution = CPU_TRUNCATED_NORMAL, .deviation = 0.5, .low = 2, .high = 4},
    {.distribution = CPU_BERNOULLI, .probability = 0.3},
    {.distribution = CPU_DROPOUT, .probability = 0.1},
    {.distribution = CPU_DROPOUT, .probability = 1},
    {.distribution = CPU_INTEGERS, .first = 1, .range = 100},
    {.distribution = CPU_INTEGERS, .first = 0, .range = 2},
};
enum { DRAWS = sizeof draws / sizeof draws[0] };

static bool is_defined(const struct cpu_draw *draw, uint32_t dtype)
{
    bool integer = dtype <= WEFT_DTYPE_U64;
    bool complex = dtype == WEFT_DTYPE_C64 || dtype == WEFT_DTYPE_C128;

    if (draw->distribution == CPU_INTEGERS)
        return integer && (dtype != WEFT_DTYPE_BOOL || draw->range == 2);
    if (draw->distribution == CPU_TRUNCATED_NORMAL) return !integer && !complex;
    return draw->distribution == CPU_BERNOULLI || !integer;
}

static int check_layouts(void)
{
    int cases = 0;
    char text[TEXT], type[64];

    for (uint32_t dtype = 0; dtype < WEFT_DTYPE_COUNT; dtype++)
        for (int d = 0; d < DRAWS; d++) {
            struct cpu_draw draw = draws[d];

            if (!is_defined(&draw, dtype)) continue;
            draw.bits =
                (struct cpu_bits){UINT64_C(0x123456789abcdef) * (dtype + 1), UINT64_MAX - 1};
            snprintf(type, sizeof type, "%s[%d,%d]", weft_dtype_name((enum weft_dtype)dtype), ROWS,
                     COLUMNS);
            for (int l = 0; l < LAYOUTS; l++, cases++)
                check_draw(type, placements_of(l, weft_size(context), text), draw);
            check_gaps(type, "S(0)", draw);
            cases++;
        }
    return cases;
}

/* Can this job have a tensor of SPEC that is drawn? */
static bool fits(const weft_spec *spec)
{
    const weft_mesh *of = weft_spec_mesh(spec);

    for (int32_t a = 0; a < weft_mesh_axes(of); a++)
        if (weft_spec_placements(spec)[a].kind == WEFT_PLACE_PARTIAL) return false;
    for (int32_t i = 0; i < weft_mesh_size(of); i++)
        if (weft_mesh_rank_at(of, i) >= weft_size(context)) return false;
    return true;
}

/* Random layouts, of a random dtype each. */
static int check_random(void)
{
    struct random r = random_begin("draw_check");
    int wanted = test_cases(200), drawn = 0;

    while (drawn < wanted) {
        weft_mesh *any = random_mesh(&r);
        int64_t shape[WEFT_MAX_DIMS];
        int32_t dims = random_shape(&r, shape);
        weft_spec *spec = random_spec(&r, any, dims, shape), *typed = NULL;
        uint32_t dtype = (uint32_t)random_in(&r, 0, WEFT_DTYPE_COUNT - 1);
        struct cpu_draw draw = draws[random_in(&r, 0, DRAWS - 1)];

        draw.bits = (struct cpu_bits){(uint64_t)random_in(&r, 0, 1000000), r.seed};
        if (is_defined(&draw, dtype) && fits(spec)) {
            must(weft_spec_with_dtype(spec, (enum weft_dtype)dtype, &typed), "a dtype");
            check_spec(typed, draw);
            weft_spec_release(&typed);
            drawn++;
        }
        weft_spec_release(&spec);
        weft_mesh_release(&any);
    }
    return drawn;
}

static weft_status draw_once(void *spec)
{
    weft_random random = {.seed = 1};
    weft_tensor *tensor = NULL;
    weft_status status = weft_tensor_create(context, spec, NULL, &tensor);

    if (status == WEFT_OK) status = weft_tensor_uniform(tensor, &random, 0, 1, stream);
    weft_tensor_release(&tensor);
    rank_wait(); /* the stream frees the memory */
    return status;
}

/* Large tensors, in which rare values occur, and all of 64 bits. */
static int check_large(long elements)
{
    static const struct {
        const char *dtype;
        struct cpu_draw draw;
    } large[] = {
        {"f32", {.distribution = CPU_UNIFORM, .high = 1}},
        {"f32", {.distribution = CPU_NORMAL, .deviation = 1}},
        {"f64", {.distribution = CPU_NORMAL, .deviation = 1}},
        {"bf16", {.distribution = CPU_NORMAL, .deviation = 0.02}},
        {"f8e4m3", {.distribution = CPU_UNIFORM, .low = -2, .high = 2}},
        {"f64", {.distribution = CPU_TRUNCATED_NORMAL, .deviation = 1, .low = -9, .high = 9}},
        {"f32", {.distribution = CPU_TRUNCATED_NORMAL, .deviation = 1, .low = -3, .high = 3}},
        {"i64", {.distribution = CPU_INTEGERS, .first = INT64_MIN, .range = UINT64_MAX}},
        {"u32", {.distribution = CPU_INTEGERS, .range = UINT64_C(1) << 32}},
    };
    int cases = 0;

    for (size_t i = 0; i < sizeof large / sizeof large[0]; i++) {
        struct cpu_draw draw = large[i].draw;
        char type[64];

        draw.bits = (struct cpu_bits){i, 7};
        snprintf(type, sizeof type, "%s[%ld]", large[i].dtype, elements);
        check_draw(type, "S(0)", draw);
        check_draw(type, "R", draw);
        cases += 2;
    }
    return cases;
}

/* True if the backend draws, and not the host. */
static bool has_kernels(void)
{
    const weft_kernel_table *kernels = weft_context_plugin(context)->kernel;
    const weft_draw draw = {
        .struct_size = sizeof draw, .distribution = WEFT_DRAW_UNIFORM, .dtype = WEFT_DTYPE_F32};
    weft_status status;
    void *list = NULL;

    if (kernels == NULL || kernels->regions_draw == NULL) return false;
    must(kernels->regions_create(weft_context_device(context), 4, 0, NULL, &list),
         "regions_create");
    status = kernels->regions_draw(list, &draw, NULL, stream);
    kernels->regions_destroy(list);
    if (status != WEFT_ERR_UNSUPPORTED) must(status, "regions_draw");
    return status == WEFT_OK;
}

int main(int argc, char **argv)
{
    long elements = argc > 1 ? strtol(argv[1], NULL, 10) : 1003003;
    const char *by;
    weft_spec *strided;
    int cases;

    setenv("WEFT_PLUGIN_PATH", PLUGINS, 0);
    rank_begin();
    by = has_kernels() ? "device" : "host";
    if (argc > 2 && strcmp(argv[2], by) != 0) {
        fprintf(stderr, "rank %d: the %s draws, not the %s\n", weft_rank(context), by, argv[2]);
        return 1;
    }
    cases = check_layouts();
    cases += check_random();
    cases += check_large(elements);
    strided = make_spec("f32[37,24]", "SS(0,2)");
    ALLOCATIONS_FAIL(draw_once(strided), (void)0);
    weft_spec_release(&strided);
    must(weft_barrier(weft_world(context), stream), "weft_barrier");
    rank_wait();
    if (weft_rank(context) == 0)
        printf("{\"backend\": \"%s\", \"ranks\": %d, \"cases\": %d, \"elements\": %llu, "
               "\"other_bits\": 0, \"drawn_by\": \"%s\"}\n",
               weft_context_plugin(context)->name, weft_size(context), cases,
               (unsigned long long)elements_compared, by);
    rank_end();
    return 0;
}
