#include "base/base.h"
#include "support/suite.h"

static const char *const names[] = {"nccl", "rccl", "nvshmem", "gloo-cpu", "auto"};

static const char *nearest(const char *name)
{
    int index = wf_nearest(name, names, WF_COUNT(names));

    return index < 0 ? "none" : names[index];
}

TEST(one_slip_is_forgiven)
{
    ck_assert_str_eq(nearest("nccl"), "nccl");
    ck_assert_str_eq(nearest("ncl"), "nccl");
    ck_assert_str_eq(nearest("nccll"), "nccl");
    ck_assert_str_eq(nearest("cncl"), "nccl");
    ck_assert_str_eq(nearest("aoto"), "auto");
    ck_assert_str_eq(nearest("gloo_cpu"), "gloo-cpu");
    ck_assert_str_eq(nearest("nvhsmem"), "nvshmem");
}

TEST(dissimilar_names_get_no_suggestion)
{
    ck_assert_str_eq(nearest("mpi"), "none");
    ck_assert_str_eq(nearest(""), "none");
    ck_assert_str_eq(nearest("x"), "none");
    ck_assert_str_eq(nearest("tensorflow"), "none");
    ck_assert_int_eq(wf_nearest("nccl", names, 0), -1);
}

TEST(very_long_names_are_like_nothing)
{
    char name[400];

    memset(name, 'n', sizeof name - 1);
    name[sizeof name - 1] = '\0';
    ck_assert_str_eq(nearest(name), "none");
}

TEST(the_first_of_equals_wins)
{
    static const char *const twins[] = {"bat", "cat"};

    ck_assert_int_eq(wf_nearest("hat", twins, 2), 0);
}
