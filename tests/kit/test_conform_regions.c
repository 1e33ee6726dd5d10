#include "checks/regions.h"
#include "support/suite.h"

#include <string.h>

struct seen {
    uint64_t count;
    uint64_t sources[16], targets[16];
};

static void note(void *self, uint64_t source_index, uint64_t target_index)
{
    struct seen *seen = self;

    if (seen->count < 16) {
        seen->sources[seen->count] = source_index;
        seen->targets[seen->count] = target_index;
    }
    seen->count++;
}

TEST(no_dims_are_one_element)
{
    weft_region region = {.source_offset = 5, .target_offset = 9};
    struct seen seen = {0};

    kit_region_walk(&region, note, &seen);
    ck_assert_uint_eq(seen.count, 1);
    ck_assert_uint_eq(seen.sources[0], 5);
    ck_assert_uint_eq(seen.targets[0], 9);
}

TEST(the_innermost_dimension_is_the_last)
{
    weft_region region = {
        .dims = 2, .extent = {2, 3}, .source_stride = {10, 1}, .target_stride = {1, 2}};
    static const uint64_t sources[] = {0, 1, 2, 10, 11, 12}, targets[] = {0, 2, 4, 1, 3, 5};
    struct seen seen = {0};

    kit_region_walk(&region, note, &seen);
    ck_assert_uint_eq(seen.count, 6);
    ck_assert_mem_eq(seen.sources, sources, sizeof sources);
    ck_assert_mem_eq(seen.targets, targets, sizeof targets);
}

TEST(an_extent_of_zero_has_no_element)
{
    weft_region region = {.dims = 2, .extent = {4, 0}};
    struct seen seen = {0};

    kit_region_walk(&region, note, &seen);
    ck_assert_uint_eq(seen.count, 0);
}

static uint8_t used[100000];

static void use(void *self, uint64_t source_index, uint64_t target_index)
{
    const struct kit_region_list *list = self;

    ck_assert_uint_lt(source_index, list->source_elements);
    ck_assert_uint_lt(target_index, list->target_elements);
    ck_assert_msg(used[target_index]++ == 0, "%s: target %d is written twice", list->name,
                  (int)target_index);
}

TEST(targets_of_the_kits_lists_do_not_overlap)
{
    static struct kit_region_list list;
    uint32_t lists = 0;

    for (uint32_t spread = 1; spread <= 5; spread++)
        for (uint32_t which = 0; kit_region_list(which, spread, &list); which++) {
            memset(used, 0, sizeof used);
            for (uint32_t i = 0; i < list.count; i++) {
                ck_assert_uint_lt(list.regions[i].source, spread);
                ck_assert_uint_lt(list.regions[i].target, list.targets);
                kit_region_walk(&list.regions[i], use, &list);
            }
            lists++;
        }
    ck_assert_uint_ge(lists, 40);
}
