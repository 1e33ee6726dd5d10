/* Random elements: every layout has the bits of the replicated tensor. */
#include "base/base.h"
#include "support/random_layout.h"
#include "support/suite.h"
#include "weft/context.h"
#include "weft/launch.h"
#include "weft/random.h"

#include <string.h>

enum { RANKS = 6 };

static weft_spec *layout, *whole; /* of the current case */
static uint32_t distribution;
static uint64_t seed;

static weft_status draw(weft_tensor *tensor, weft_random *random)
{
    switch (distribution) {
    case 0:
        return weft_tensor_uniform(tensor, random, -1, 2, NULL);
    case 1:
        return weft_tensor_normal(tensor, random, 1, 2, NULL);
    case 2:
        return weft_tensor_truncated_normal(tensor, random, 0, 1, -1, 2, NULL);
    case 3:
        return weft_tensor_bernoulli(tensor, random, 0.3, NULL);
    case 4:
        return weft_tensor_dropout(tensor, random, 0.3, NULL);
    default:
        return weft_tensor_integers(tensor, random, 2, 100, NULL);
    }
}

/* Draw in both layouts, move one to the other, and compare. */
static weft_status draw_and_compare(void *unused)
{
    weft_random first = {seed, 5}, second = first;
    weft_tensor *here = NULL, *there = NULL, *moved = NULL;
    OWNED(weft_context) *context = NULL;
    size_t bytes;

    (void)unused;
    WF_TRY(weft_init(NULL, &context));
    WF_TRY(weft_tensor_create(context, layout, NULL, &here));
    WF_TRY(weft_tensor_create(context, whole, NULL, &there));
    WF_TRY(draw(here, &first));
    WF_TRY(draw(there, &second));
    WF_TRY(weft_tensor_move(here, whole, NULL, NULL, &moved));
    bytes = (size_t)weft_spec_shard_bytes(whole, weft_rank(context));
    if (first.offset != 6 ||
        (bytes > 0 && memcmp(weft_tensor_memory(moved), weft_tensor_memory(there), bytes) != 0))
        return weft_fail(WEFT_ERR_INTERNAL, "other bits on rank %d", weft_rank(context));
    weft_tensor_release(&here);
    weft_tensor_release(&there);
    weft_tensor_release(&moved);
    return WEFT_OK;
}

static bool has_partials(const weft_spec *spec)
{
    for (int32_t a = 0; a < weft_mesh_axes(weft_spec_mesh(spec)); a++)
        if (weft_spec_placements(spec)[a].kind == WEFT_PLACE_PARTIAL) return true;
    return false;
}

/* DTYPES of the distribution. */
static uint32_t pick_dtype(struct random *r)
{
    static const uint32_t floats[] = {WEFT_DTYPE_F32, WEFT_DTYPE_F64,    WEFT_DTYPE_BF16,
                                      WEFT_DTYPE_F16, WEFT_DTYPE_F8E4M3, WEFT_DTYPE_F8E5M2,
                                      WEFT_DTYPE_C64, WEFT_DTYPE_C128};

    if (distribution == 3) return (uint32_t)random_in(r, 0, WEFT_DTYPE_COUNT - 1);
    if (distribution == 5) return (uint32_t)random_in(r, WEFT_DTYPE_I8, WEFT_DTYPE_U64);
    return floats[random_in(r, 0, distribution == 2 ? 5 : 7)];
}

TEST(every_layout_has_the_bits_of_the_whole)
{
    struct random r = random_begin("every_layout_has_the_bits_of_the_whole");
    int drawn = 0;
    size_t live = 0; /* after the first case: what the process keeps */

    for (int wanted = test_cases(200); drawn < wanted;) {
        weft_mesh *mesh = random_mesh(&r);
        int64_t shape[WEFT_MAX_DIMS];
        int32_t dims = random_shape(&r, shape);
        weft_spec *spec = random_spec(&r, mesh, dims, shape);
        bool fits = !has_partials(spec) && weft_mesh_size(mesh) <= RANKS;

        for (int32_t i = 0; i < weft_mesh_size(mesh); i++)
            fits = fits && weft_mesh_rank_at(mesh, i) < RANKS;
        distribution = (uint32_t)random_in(&r, 0, 5);
        seed = (uint64_t)random_in(&r, 0, 1000000);
        if (fits &&
            weft_spec_with_dtype(spec, (enum weft_dtype)pick_dtype(&r), &layout) == WEFT_OK) {
            char replicas[4 * WEFT_MAX_AXES] = "R";

            for (int32_t a = 1; a < weft_mesh_axes(mesh); a++)
                strcat(replicas, ",R");
            ck_assert_int_eq(weft_spec_with(layout, replicas, &whole), WEFT_OK);
            ck_assert_msg(weft_threads_run(RANKS, draw_and_compare, NULL) == WEFT_OK,
                          "WEFT_TEST_SEED=%llu, distribution %u\n%s\n%s",
                          (unsigned long long)r.seed, distribution, as_command(layout),
                          weft_last_error());
            weft_spec_release(&layout);
            weft_spec_release(&whole);
            drawn++;
        }
        weft_spec_release(&spec);
        weft_mesh_release(&mesh);
        if (drawn == 1) live = (size_t)wf_mem_live();
    }
    ck_assert_uint_eq((size_t)wf_mem_live(), live);
}
