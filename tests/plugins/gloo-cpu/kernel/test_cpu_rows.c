/* Rows copied out of order, compared with rows copied in order. */
#include "kernel/cpu_regions.h"

#include "support/suite.h"

#include <string.h>

enum { ROWS = 5, GAP = 40, MOST = 5000 };

static unsigned char source[ROWS * (MOST + GAP)], target[ROWS * (MOST + GAP)],
    wanted[sizeof target];

/* Rows of BYTES, GAP apart in the source and OTHER_GAP in the target. */
static struct cpu_rows rows_of(size_t bytes, size_t other_gap)
{
    for (size_t i = 0; i < sizeof source; i++)
        source[i] = (unsigned char)(i * 7 + i / 251);
    memset(target, 0xee, sizeof target);
    memset(wanted, 0xee, sizeof wanted);
    for (size_t row = 0; row < ROWS; row++)
        memcpy(wanted + row * (bytes + other_gap), source + row * (bytes + GAP), bytes);
    return (struct cpu_rows){.target = target,
                             .source = source,
                             .target_step = (int64_t)(bytes + other_gap),
                             .source_step = (int64_t)(bytes + GAP),
                             .bytes = bytes,
                             .count = ROWS};
}

TEST(rows_of_any_length_arrive_whole_and_alone)
{
    for (size_t bytes = 128; bytes <= MOST; bytes += 61) {
        struct cpu_rows rows = rows_of(bytes, bytes % 2 == 0 ? 0 : 8);

        cpu_rows_hop(&rows);
        ck_assert_msg(memcmp(target, wanted, sizeof target) == 0, "rows of %zu bytes", bytes);
    }
}

TEST(rows_may_come_from_the_end)
{
    struct cpu_rows rows = rows_of(1024, 0);

    rows.source += (ROWS - 1) * rows.source_step;
    rows.target += (ROWS - 1) * rows.target_step;
    rows.source_step = -rows.source_step;
    rows.target_step = -rows.target_step;
    cpu_rows_hop(&rows);
    ck_assert_mem_eq(target, wanted, sizeof target);
}

TEST(few_short_and_long_rows_are_copied_as_they_are)
{
    ck_assert(!cpu_rows_worth_hopping(512, 1 << 20));
    ck_assert(!cpu_rows_worth_hopping(1 << 20, 1 << 10));
    ck_assert(!cpu_rows_worth_hopping(4096, 4));
}

/* Large enough for cpu_rows_hop where that is used; three dimensions with gaps. */
TEST(a_large_box_is_copied_the_same_either_way)
{
    enum { PLANES = 3, LINES = 100, WIDTH = 1030, PITCH = 1100 };
    weft_region region = {.dims = 3,
                          .extent = {PLANES, LINES, WIDTH},
                          .source_stride = {(LINES + 2) * PITCH, PITCH, 1},
                          .target_stride = {LINES * WIDTH, WIDTH, 1}};
    uint32_t *from = malloc(sizeof *from * PLANES * (LINES + 2) * PITCH);
    uint32_t *to = malloc(sizeof *to * PLANES * LINES * WIDTH);
    struct cpu_box box;

    ck_assert(from != NULL && to != NULL);
    for (uint32_t i = 0; i < PLANES * (LINES + 2) * PITCH; i++)
        from[i] = i;
    ck_assert(cpu_box_make(&region, &box));
    cpu_box_copy(&box, sizeof *from, from, to);
    for (uint32_t p = 0, at = 0; p < PLANES; p++)
        for (uint32_t l = 0; l < LINES; l++)
            for (uint32_t i = 0; i < WIDTH; i++, at++)
                ck_assert_uint_eq(to[at], (p * (LINES + 2) + l) * PITCH + i);
    free(from);
    free(to);
}
