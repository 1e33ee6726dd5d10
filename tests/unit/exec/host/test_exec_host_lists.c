/* Regions that the host copies, in the device's memory and through staging: random boxes with
 * strides and gaps, compared element by element; gaps stay as they are. */
#include "exec/host/host.h"
#include "support/allocfail.h"
#include "support/fake_world.h"
#include "support/random.h"
#include "support/suite.h"

enum { DIMS = 3, EXTENT = 5, GAP = 3, OFFSET = 2, ELEMENT_BITS = 4 }; /* the largest that occur */
enum {
    SPAN =
        (((1 + GAP) * EXTENT + GAP) * EXTENT + GAP) * EXTENT, /* elements of the largest region */
    ROOM = 2 * (OFFSET + SPAN) << ELEMENT_BITS                /* bytes per buffer */
};

/* Strides of EXTENT in a random order of the dimensions, with random gaps.  Returns the number of
 * elements that they span. */
static int64_t draw_strides(struct random *r, const int64_t *extent, int64_t *strides)
{
    int32_t order[DIMS];
    int64_t span = 1;

    random_order(r, DIMS, order);
    for (int d = 0; d < DIMS; d++) {
        if (random_chance(r, 3)) span += random_in(r, 1, GAP);
        strides[order[d]] = span;
        span *= extent[order[d]];
    }
    return span;
}

struct drawn {
    weft_region regions[2];
    uint32_t element;
    unsigned char sources[2][ROOM], targets[2][ROOM], want[2][ROOM];
};

static void draw(struct random *r, struct drawn *all)
{
    int64_t start = 0;

    memset(all, 0, sizeof *all);
    all->element = UINT32_C(1) << random_in(r, 0, ELEMENT_BITS);
    for (uint32_t i = 0; i < 2; i++) { /* sometimes with the same target, one behind the other */
        weft_region *region = &all->regions[i];

        *region = (weft_region){.source = (uint32_t)random_in(r, 0, 1), .dims = DIMS};
        region->target = random_chance(r, 2) ? 0 : i;
        for (int d = 0; d < DIMS; d++)
            region->extent[d] = random_chance(r, 20) ? 0 : random_in(r, 1, EXTENT);
        draw_strides(r, region->extent, region->source_stride);
        region->source_offset = random_in(r, 0, 7);
        region->target_offset = start + random_in(r, 0, OFFSET);
        start = region->target_offset + draw_strides(r, region->extent, region->target_stride);
    }
    for (int b = 0; b < 2; b++)
        for (int i = 0; i < ROOM; i++) {
            all->sources[b][i] = (unsigned char)random_in(r, 0, 255);
            all->want[b][i] = all->targets[b][i] = (unsigned char)random_in(r, 0, 255);
        }
}

static void want_region(struct drawn *all, const weft_region *r)
{
    for (int64_t i = 0; i < r->extent[0]; i++)
        for (int64_t j = 0; j < r->extent[1]; j++)
            for (int64_t k = 0; k < r->extent[2]; k++) {
                int64_t from = r->source_offset + i * r->source_stride[0] +
                               j * r->source_stride[1] + k * r->source_stride[2];
                int64_t to = r->target_offset + i * r->target_stride[0] + j * r->target_stride[1] +
                             k * r->target_stride[2];

                ck_assert((to + 1) * all->element <= ROOM && (from + 1) * all->element <= ROOM);
                memcpy(all->want[r->target] + to * all->element,
                       all->sources[r->source] + from * all->element, all->element);
            }
}

static void check_lists(bool staged)
{
    struct random r = random_begin(staged ? "staged_copies" : "direct_copies");
    static struct drawn all;
    weft_context *context;
    void *list = NULL;
    int cases = test_cases(400);

    fake_reset();
    context = world_alone();
    if (staged) context->features &= ~(uint64_t)WEFT_FEATURE_HOST_MEMORY;
    for (int i = 0; i < cases; i++) {
        const void *sources[] = {all.sources[0], all.sources[1]};
        void *targets[] = {all.targets[0], all.targets[1]};

        draw(&r, &all);
        for (int n = 0; n < 2; n++)
            want_region(&all, &all.regions[n]);
        ck_assert_int_eq(wf_host_list_create(context, all.element, 2, all.regions, &list), WEFT_OK);
        for (int again = 0; again < 2; again++)
            ck_assert_int_eq(wf_host_list_copy(list, sources, targets, NULL), WEFT_OK);
        ck_assert_msg(memcmp(all.targets, all.want, sizeof all.want) == 0, "case %d differs", i);
        wf_host_list_destroy(list);
    }
    weft_context_release(&context);
    ck_assert_int_eq(wf_mem_live(), 0);
}

TEST(the_host_copies_in_the_memory_of_the_device)
{
    check_lists(false);
}

TEST(the_host_copies_through_staging)
{
    check_lists(true);
}

TEST(a_region_without_dimensions_is_one_element)
{
    weft_region region = {.source_offset = 2, .target_offset = 1};
    int32_t from[] = {1, 2, 3}, to[] = {7, 8, 9};
    const void *sources[] = {from};
    void *targets[] = {to}, *list = NULL;
    OWNED(weft_context) *context = NULL;

    fake_reset();
    context = world_alone();
    context->features = 0;
    ck_assert_int_eq(wf_host_list_create(context, 4, 1, &region, &list), WEFT_OK);
    ck_assert_int_eq(wf_host_list_copy(list, sources, targets, NULL), WEFT_OK);
    ck_assert(to[0] == 7 && to[1] == 3 && to[2] == 9);
    wf_host_list_destroy(list);
    ck_assert_int_eq(wf_host_list_create(context, 4, 0, NULL, &list), WEFT_OK); /* of nothing */
    ck_assert_int_eq(wf_host_list_copy(list, NULL, NULL, NULL), WEFT_OK);
    wf_host_list_destroy(list);
}

TEST(a_list_survives_a_lack_of_memory)
{
    weft_region region = {.dims = 1, .extent = {8}, .source_stride = {1}, .target_stride = {2}};
    OWNED(weft_context) *context = NULL;
    void *list = NULL;

    fake_reset();
    context = world_alone();
    context->features = 0;
    ck_assert_uint_ge(ALLOCATIONS_FAIL(wf_host_list_create(context, 4, 1, &region, &list),
                                       wf_host_list_destroy(list)),
                      3);
}
