#include "base/base.h"
#include "support/suite.h"

#define WORDS(...)                                                                                 \
    words((const int32_t[]){__VA_ARGS__},                                                          \
          (int32_t)(sizeof((int32_t[]){__VA_ARGS__}) / sizeof(int32_t)))

static const char *words(const int32_t *ranks, int32_t count)
{
    static struct wf_text text;

    wf_text_free(&text);
    wf_ranks_print(&text, ranks, count);
    return text.data;
}

TEST(ranks_read_as_people_write_them)
{
    ck_assert_str_eq(WORDS(3), "rank 3");
    ck_assert_str_eq(WORDS(3, 7), "ranks 3 and 7");
    ck_assert_str_eq(WORDS(3, 4), "ranks 3 and 4");
    ck_assert_str_eq(WORDS(0, 1, 2), "ranks 0-2");
    ck_assert_str_eq(WORDS(1, 4, 5, 6, 9), "ranks 1, 4-6 and 9");
    ck_assert_str_eq(WORDS(1, 4, 5), "ranks 1, 4 and 5");
    ck_assert_str_eq(WORDS(5, 3, 1), "ranks 5, 3 and 1");
}

TEST(many_ranks_are_cut_short)
{
    int32_t odd[1000];

    for (int32_t i = 0; i < 1000; i++)
        odd[i] = 2 * i;
    ck_assert_ptr_nonnull(strstr(words(odd, 1000), "36, 38 and 980 more"));
}
