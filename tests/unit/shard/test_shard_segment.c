#include "support/layout.h"
#include "support/suite.h"

/* The segments of RANK, as "global:local+length ...". */
static void check_segments(const char *mesh, const char *text, int32_t rank, const int64_t *strides,
                           const char *want)
{
    OWNED(weft_spec) *spec = spec_of(mesh, text);
    struct wf_text have = {0};
    weft_segment s;

    for (int64_t at = 0; weft_spec_segment(spec, rank, strides, at, &s); at += s.length)
        wf_text_add(&have, "%s%lld:%lld+%lld", at > 0 ? " " : "", (long long)s.global,
                    (long long)s.local, (long long)s.length);
    ck_assert_str_eq(have.data != NULL ? have.data : "", want);
    wf_text_free(&have);
}

TEST(whole_rows_are_one_segment)
{
    check_segments("2", "f32[4,6] R", 1, NULL, "0:0+24");
    check_segments("2", "f32[4,6] S(0)", 1, NULL, "12:0+12");
    check_segments("2", "f32[4,6,5] SS(0,2)", 1, NULL, "30:0+30 90:30+30");
    check_segments("2", "f32[1048576,4] R", 0, NULL, "0:0+4194304");
}

TEST(parts_of_rows_are_many)
{
    check_segments("2", "f32[3,6] S(1)", 1, NULL, "3:0+3 9:3+3 15:6+3");
    check_segments("2", "f32[0,6] S(1)", 1, NULL, "");
}

TEST(a_row_may_run_on_into_the_next)
{
    /* Rank 0 has the first index of each row and the last: 0-1, 3-4, 6. */
    check_segments("2", "f32[3,7] SS(1,3)", 0, NULL,
                   "0:0+2 3:2+2 6:4+3 10:7+2 13:9+3 17:12+2 20:14+1");
    check_segments("2", "f32[3,1] S(0)", 0, NULL, "0:0+2");
}

TEST(strided_memory_breaks_segments_where_it_has_gaps)
{
    check_segments("1", "f32[2,3] R", 0, (const int64_t[]){3, 1}, "0:0+6");
    check_segments("1", "f32[2,3] R", 0, (const int64_t[]){8, 1}, "0:0+3 3:8+3");
    check_segments("1", "f32[2,3] R", 0, (const int64_t[]){1, 2},
                   "0:0+1 1:2+1 2:4+1 3:1+1 4:3+1 5:5+1");
    check_segments("1", "f32[2,1,3] R", 0, (const int64_t[]){3, 99, 1}, "0:0+6");
}

TEST(row_major_strides_have_no_gaps)
{
    int64_t strides[3];

    wf_row_major(3, (const int64_t[]){4, 5, 6}, strides);
    ck_assert(strides[0] == 30 && strides[1] == 6 && strides[2] == 1);
    wf_row_major(3, (const int64_t[]){4, 0, 6}, strides);
    ck_assert(strides[0] == 6 && strides[1] == 6 && strides[2] == 1);
}
