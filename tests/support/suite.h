/* suite.h - the shape of every unit test file.  Including it makes the file a program that runs
 * its tests:
 *
 *     TEST(what_holds) { ck_assert(...); }
 */
#ifndef WEFT_TESTS_SUITE_H
#define WEFT_TESTS_SUITE_H

#include "support/seed.h"

#include <check.h>
#include <errno.h>
#include <stdlib.h>

/* A variable whose object is released where its block ends: OWNED(weft_mesh) *mesh =
 * mesh_of("2x4"); */
#define OWNED(type) __attribute__((cleanup(type##_release))) type

struct test_case {
    TTest test;
    struct test_case *next;
};
static struct test_case *test_first, **test_last = &test_first;

/* Tests run in the order of the file. */
#define TEST(name)                                                                                 \
    static void name(int);                                                                         \
    static struct test_case name##_case = {.test = {#name, name, __FILE__, __LINE__}};             \
    __attribute__((constructor)) static void name##_add(void)                                      \
    {                                                                                              \
        *test_last = &name##_case;                                                                 \
        test_last = &name##_case.next;                                                             \
    }                                                                                              \
    static void name(CK_ATTRIBUTE_UNUSED int _i)

/* A test whose body RUN, a function of the file, is called with:
 *
 *     TEST_BY(on_ranks, what_holds, void *unused) { WF_TRY(...); return WEFT_OK; } */
#define TEST_BY(run, name, ...)                                                                    \
    static weft_status name##_body(__VA_ARGS__);                                                   \
    TEST(name)                                                                                     \
    {                                                                                              \
        run(name##_body);                                                                          \
    }                                                                                              \
    static weft_status name##_body(__VA_ARGS__)

/* A test that all of RANKS ranks, threads of this process, run:
 *
 *     TEST_ON_RANKS(4, what_holds) { WF_TRY(...); return WEFT_OK; } */
#define TEST_ON_RANKS(ranks, name)                                                                 \
    static weft_status name##_rank(void *);                                                        \
    TEST(name)                                                                                     \
    {                                                                                              \
        ck_assert_msg(weft_threads_run(ranks, name##_rank, NULL) == WEFT_OK, "%s",                 \
                      weft_last_error());                                                          \
    }                                                                                              \
    static weft_status name##_rank(CK_ATTRIBUTE_UNUSED void *unused)

int main(void)
{
    const char *name = program_invocation_short_name;
    Suite *suite = suite_create(name);
    TCase *group = tcase_create(name);
    SRunner *runner = srunner_create(suite);
    int failed;

    tcase_set_timeout(group, 100);
    suite_add_tcase(suite, group);
    for (const struct test_case *each = test_first; each != NULL; each = each->next)
        tcase_add_test(group, &each->test);
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    if (failed != 0 && test_seed_used)
        fprintf(stderr, "%s: failed with WEFT_TEST_SEED=%" PRIu64 "\n", name, test_seed());
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

#endif
