/* Strided boxes, compared with a copy of one element at a time. */
#include "kernel/cpu_regions.h"
#include "plug_host.h"

#include "support/suite.h"

#include <stdio.h>
#include <string.h>

#define ROOM 4096 /* elements of each buffer */

static uint64_t state;

static int64_t below(int64_t limit)
{
    state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (int64_t)((state >> 33) % (uint64_t)limit);
}

/* A random box: distinct target elements, any source elements, strides of both signs. */
static weft_region random_region(void)
{
    weft_region region = {.dims = (uint32_t)below(5)};
    int64_t target_step = 1 + below(2), order[4] = {0, 1, 2, 3};

    for (int i = 3; i > 0; i--) {
        int64_t j = below(i + 1), kept = order[i];

        order[i] = order[j];
        order[j] = kept;
    }
    for (uint32_t d = 0; d < region.dims; d++)
        region.extent[d] = 1 + below(d < 2 ? 20 : 3);
    for (uint32_t i = 0; i < 4; i++) {
        int64_t d = order[i], extent;

        if (d >= region.dims) continue;
        extent = region.extent[d];
        region.target_stride[d] = target_step;
        target_step *= extent + below(2);
        region.source_stride[d] = below(3) == 0 ? 1 : below(9) - 2;
        if (below(3) == 0) { /* backwards */
            region.target_offset += (extent - 1) * region.target_stride[d];
            region.target_stride[d] = -region.target_stride[d];
        }
        if (region.source_stride[d] < 0)
            region.source_offset -= (extent - 1) * region.source_stride[d];
    }
    if (region.dims > 0 && below(30) == 0) region.extent[0] = 0;
    return region;
}

/* Calls VISIT with source and target element numbers. */
static void walk(const weft_region *region, void (*visit)(int64_t, int64_t, void *), void *argument)
{
    int64_t index[WEFT_MAX_DIMS] = {0};

    for (uint32_t d = 0; d < region->dims; d++)
        if (region->extent[d] == 0) return;
    for (;;) {
        int64_t source = region->source_offset, target = region->target_offset;
        uint32_t d = 0;

        for (uint32_t i = 0; i < region->dims; i++) {
            source += index[i] * region->source_stride[i];
            target += index[i] * region->target_stride[i];
        }
        visit(source, target, argument);
        while (d < region->dims && ++index[d] == region->extent[d])
            index[d++] = 0;
        if (d == region->dims) return;
    }
}

struct copying {
    size_t element;
    const unsigned char *source;
    unsigned char *target;
    int64_t first, last;
};

static void copy_one(int64_t source, int64_t target, void *argument)
{
    struct copying *c = argument;

    if (source < c->first) c->first = source;
    if (source > c->last) c->last = source;
    memcpy(c->target + target * (int64_t)c->element, c->source + source * (int64_t)c->element,
           c->element);
}

static bool fits(const weft_region *region)
{
    int64_t source = region->source_offset, target = region->target_offset;

    for (uint32_t d = 0; d < region->dims; d++) {
        int64_t steps = region->extent[d] > 0 ? region->extent[d] - 1 : 0;

        if (region->source_stride[d] > 0) source += steps * region->source_stride[d];
        if (region->target_stride[d] > 0) target += steps * region->target_stride[d];
    }
    return source < ROOM && target < ROOM;
}

TEST(copying_a_box_copies_its_elements_and_no_others)
{
    static unsigned char source[ROOM * 16], target[ROOM * 16], wanted[ROOM * 16];
    int done = 0, cases = test_cases(3000);

    test_seed_begin("copying_a_box_copies_its_elements_and_no_others");
    for (size_t i = 0; i < sizeof source; i++)
        source[i] = (unsigned char)(i * 7 + i / 251);
    for (uint64_t box_number = 0; done < cases; box_number++) {
        size_t element = (size_t)1 << box_number % 5;
        struct copying c = {element, source, wanted, ROOM, -1};
        struct cpu_box box;
        weft_region region;
        int64_t first, last;
        bool some;

        state = test_state(box_number);
        region = random_region();
        if (!fits(&region)) continue;
        done++;
        memset(target, 0, sizeof target);
        memset(wanted, 0, sizeof wanted);
        walk(&region, copy_one, &c);
        some = cpu_box_make(&region, &box);
        ck_assert(some == (c.last >= 0));
        if (!some) continue;
        cpu_box_copy(&box, element, source, target);
        ck_assert_msg(memcmp(target, wanted, sizeof target) == 0, "box %llu",
                      (unsigned long long)box_number);
        cpu_box_range(&box, element, &first, &last);
        ck_assert_int_eq(first, c.first * (int64_t)element);
        ck_assert_int_eq(last, (c.last + 1) * (int64_t)element);
    }
}

static void add_one(int64_t source, int64_t target, void *argument)
{
    const int32_t *const *all = argument;
    int32_t *out = (int32_t *)(uintptr_t)all[3];

    out[target] = all[0][source] + all[1][source] + all[2][source];
}

TEST(reducing_a_box_reduces_its_elements_and_no_others)
{
    static int32_t a[ROOM], b[ROOM], c[ROOM], target[ROOM], wanted[ROOM];
    const void *sources[3] = {a, b, c};
    const int32_t *all[4] = {a, b, c, wanted};
    struct cpu_reducer sum = {.dtype = WEFT_DTYPE_I32, .reduction = WEFT_REDUCE_SUM, .size = 3};
    int done = 0, cases = test_cases(1000);

    test_seed_begin("reducing_a_box_reduces_its_elements_and_no_others");
    for (int32_t i = 0; i < ROOM; i++) {
        a[i] = i;
        b[i] = 3 * i;
        c[i] = 1000000 - i;
    }
    for (uint64_t box_number = 0; done < cases; box_number++) {
        struct cpu_box box;
        weft_region region;

        state = test_state(box_number);
        region = random_region();
        if (!fits(&region)) continue;
        done++;
        memset(target, 0, sizeof target);
        memset(wanted, 0, sizeof wanted);
        walk(&region, add_one, all);
        if (!cpu_box_make(&region, &box)) continue;
        ck_assert_int_eq(cpu_box_reduce(&box, &sum, sources, target), WEFT_OK);
        ck_assert_msg(memcmp(target, wanted, sizeof target) == 0, "box %llu",
                      (unsigned long long)box_number);
    }
}

TEST(contiguous_dimensions_become_one)
{
    weft_region region = {
        .dims = 3, .extent = {4, 5, 6}, .source_stride = {30, 6, 1}, .target_stride = {30, 6, 1}};
    struct cpu_box box;

    ck_assert(cpu_box_make(&region, &box));
    ck_assert_int_eq(box.dims, 1);
    ck_assert_int_eq(box.extent[0], 120);
}

TEST(bad_lists_are_refused)
{
    weft_region region = {.dims = WEFT_MAX_DIMS + 1};
    void *list;

    ck_assert_int_eq(cpu_regions_create(NULL, 4, 1, &region, &list), WEFT_ERR_INVALID);
    region.dims = 1;
    region.extent[0] = -1;
    ck_assert_int_eq(cpu_regions_create(NULL, 4, 1, &region, &list), WEFT_ERR_INVALID);
    region.extent[0] = 1;
    ck_assert_int_eq(cpu_regions_create(NULL, 3, 1, &region, &list), WEFT_ERR_INVALID);
    ck_assert_int_eq(cpu_regions_create(NULL, 4, 1, &region, &list), WEFT_OK);
    cpu_regions_destroy(list);
}

/* A host without memory. */
static int asked_for_memory;

static void *refuse_memory(size_t bytes)
{
    (void)bytes;
    asked_for_memory++;
    return NULL;
}

TEST(a_thousand_sources_are_reduced_without_memory)
{
    enum { SOURCES = 1000, COUNT = 100 };
    static double data[2 * COUNT], target[3 * COUNT];
    static const void *sources[SOURCES];
    struct cpu_reducer sum = {
        .dtype = WEFT_DTYPE_C128, .reduction = WEFT_REDUCE_SUM, .size = SOURCES};
    weft_region region = {.dims = 1, .extent = {33}, .source_stride = {3}, .target_stride = {4}};
    static const weft_host host = {
        .struct_size = sizeof host, .allocate = refuse_memory, .release = free};
    struct cpu_box box;

    for (int i = 0; i < 2 * COUNT; i++)
        data[i] = i;
    for (int i = 0; i < SOURCES; i++)
        sources[i] = data;
    ck_assert(cpu_box_make(&region, &box));
    plug_host_set(&host); /* permanent: this test is the last */
    ck_assert_int_eq(cpu_box_reduce(&box, &sum, sources, target), WEFT_OK);
    ck_assert_int_eq(asked_for_memory, 0);
    for (int i = 0; i < 33; i++) {
        ck_assert_double_eq(target[8 * i], SOURCES * data[6 * i]);
        ck_assert_double_eq(target[8 * i + 1], SOURCES * data[6 * i + 1]);
    }
}
