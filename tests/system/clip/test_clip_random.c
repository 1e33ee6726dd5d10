/* Random gradients on random meshes: the norm counts each element once, and every element is scaled
 * by the same factor, on threads and on simulated ranks. */
#include "../fsdp/serial.h"
#include "support/job.h"
#include "support/random_layout.h"
#include "support/suite.h"
#include "weft/clip.h"

enum { RANKS = 6, MOST = 6 };

static struct clip_case {
    uint32_t count;
    weft_spec *specs[MOST];
    double max_norm;
    weft_clip_options options;
    bool has_stream;
} now;

static void draw_case(struct random *r)
{
    static const double powers[] = {0, 1, 2, 3, 0.5};
    static const uint32_t dtypes[] = {WEFT_DTYPE_F32, WEFT_DTYPE_F64, WEFT_DTYPE_BF16,
                                      WEFT_DTYPE_F16};

    now = (struct clip_case){.count = (uint32_t)random_in(r, 0, MOST)};
    now.options.struct_size = sizeof now.options;
    now.options.p = random_chance(r, 5) ? (double)INFINITY : powers[random_in(r, 0, 4)];
    now.options.reduce_partials = true;
    now.max_norm = random_in(r, 0, 20);
    now.has_stream = random_chance(r, 2);
    for (uint32_t i = 0; i < now.count; i++) {
        weft_mesh *mesh = NULL;
        int64_t shape[WEFT_MAX_DIMS];
        int32_t dims = random_shape(r, shape);
        weft_spec *spec = NULL;
        bool fits = false;

        while (!fits) { /* within the ranks, and with partials that add up */
            const weft_placement *placements;

            weft_spec_release(&spec);
            weft_mesh_release(&mesh);
            mesh = random_mesh(r);
            spec = random_spec(r, mesh, dims, shape);
            placements = weft_spec_placements(spec);
            fits = true;
            for (int32_t j = 0; j < weft_mesh_size(mesh); j++)
                fits = fits && weft_mesh_rank_at(mesh, j) < RANKS;
            for (int32_t a = 0; a < weft_mesh_axes(mesh); a++)
                fits = fits && (placements[a].kind != WEFT_PLACE_PARTIAL ||
                                placements[a].reduction == WEFT_REDUCE_SUM);
        }
        ck_assert_int_eq(
            weft_spec_with_dtype(spec, (enum weft_dtype)dtypes[random_in(r, 0, 3)], &now.specs[i]),
            WEFT_OK);
        weft_spec_release(&spec);
        weft_mesh_release(&mesh);
    }
}

static double power_of(double value, double p)
{
    return pow(fabs(value), p);
}

static double norm_of_all(void)
{
    double p = now.options.p == 0 ? 2 : now.options.p, sum = 0;

    for (uint32_t i = 0; i < now.count; i++) {
        struct elements of = {.which = i, .rounds = 1, .spec = now.specs[i], .factor = 1};

        for (int64_t at = 0; at < weft_spec_elements(now.specs[i]); at++)
            sum = isinf(p) ? fmax(sum, fabs(sum_of(&of, at))) : sum + power_of(sum_of(&of, at), p);
    }
    return isinf(p) ? sum : pow(sum, 1 / p);
}

static weft_status check_scaled(void *user, int32_t rank, int64_t at, uint32_t dtype, void *element)
{
    const struct elements *of = user;
    int32_t size, from = partial_position(of->spec, rank, &size);
    double expected = contribution(of->which, at, from, 0) * of->factor;
    double spacing = dtype == WEFT_DTYPE_F16 ? 0x1p-24 : 0; /* of the smallest numbers */

    if (fabs(load(dtype, element) - expected) <= of->tolerance * fabs(expected) + spacing)
        return WEFT_OK;
    return weft_fail(WEFT_ERR_INTERNAL, "rank %d: element %lld of gradient %llu is %.9g, not %.9g",
                     rank, (long long)at, (unsigned long long)of->which, load(dtype, element),
                     expected);
}

static bool has_part(const weft_context *context)
{
    for (uint32_t i = 0; i < now.count; i++)
        for (int32_t rank = 0; rank < RANKS; rank++)
            if (is_here(context, rank) && wf_mesh_index(weft_spec_mesh(now.specs[i]), rank) >= 0)
                return true;
    return false;
}

static weft_status run_case(weft_context *context)
{
    weft_tensor *tensors[MOST] = {NULL};
    double norm = norm_of_all(), factor = fmin(1, now.max_norm / (norm + 1e-6)), *total = NULL;
    weft_stream *stream = NULL;

    if (now.has_stream) WF_TRY(weft_stream_create(context, &stream));
    WF_TRY(weft_alloc(context, sizeof *total, WEFT_MEMORY_DEVICE, (void **)&total));
    for (uint32_t i = 0; i < now.count; i++) {
        struct elements of = {.which = i, .spec = now.specs[i]};

        WF_TRY(weft_tensor_create(context, now.specs[i], NULL, &tensors[i]));
        WF_TRY(each_element(tensors[i], set_gradient, &of));
    }
    WF_TRY(weft_clip_gradient_norm(context, now.count, tensors, now.max_norm, &now.options, total,
                                   stream, NULL));
    WF_TRY(weft_context_wait(context, stream, WEFT_FOREVER));
    if (has_part(context) && fabs(*total - norm) > 1e-9 * norm)
        return weft_fail(WEFT_ERR_INTERNAL, "the norm is %.17g, not %.17g", *total, norm);
    for (uint32_t i = 0; i < now.count; i++) {
        struct elements of = {.which = i,
                              .spec = now.specs[i],
                              .factor = factor,
                              .tolerance = 4 * wf_dtype_epsilon(weft_spec_dtype(now.specs[i]))};

        if (of.tolerance < 1e-7) of.tolerance = 1e-7; /* the norm's own */
        WF_TRY(each_element(tensors[i], check_scaled, &of));
        weft_tensor_release(&tensors[i]);
    }
    WF_TRY(weft_free(context, total));
    weft_stream_release(&stream);
    return WEFT_OK;
}

static const char *describe(const struct random *r)
{
    static char text[32768];
    size_t length = (size_t)snprintf(text, sizeof text, "WEFT_TEST_SEED=%llu p %g max_norm %g\n%s",
                                     (unsigned long long)r->seed, now.options.p, now.max_norm,
                                     weft_last_error());

    for (uint32_t i = 0; i < now.count; i++)
        length += (size_t)snprintf(text + length, sizeof text - length, "\n%s of %s",
                                   as_command(now.specs[i]),
                                   weft_dtype_name(weft_spec_dtype(now.specs[i])));
    return text;
}

/* Simulated ranks need a backend whose memory the host reads. */
static bool can_simulate(void)
{
    const char *backend = getenv("WEFT_BACKEND");

    return backend == NULL || strcmp(backend, "nccl") != 0;
}

TEST(gradients_of_any_layout_are_clipped_by_their_norm)
{
    struct random r = random_begin("gradients_of_any_layout_are_clipped_by_their_norm");

    for (int left = test_cases(60); left > 0; left--) {
        draw_case(&r);
        if (can_simulate())
            ck_assert_msg(job_of_simulated(RANKS, run_case) == WEFT_OK, "simulated: %s",
                          describe(&r));
        ck_assert_msg(job_of_threads(RANKS, run_case) == WEFT_OK, "%s", describe(&r));
        for (uint32_t i = 0; i < now.count; i++)
            weft_spec_release(&now.specs[i]);
    }
}
