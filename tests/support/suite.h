/* suite.h - the shape of every unit test file:
 *
 *     START_TEST(what_holds) { ck_assert(...); } END_TEST
 *     SUITE(base_text, what_holds, what_else_holds)
 */
#ifndef WEFT_TESTS_SUITE_H
#define WEFT_TESTS_SUITE_H

#include "support/seed.h"

#include <check.h>
#include <stdlib.h>

#define SUITE(name, ...)                                                                           \
    int main(void)                                                                                 \
    {                                                                                              \
        const TTest *const cases[] = {__VA_ARGS__};                                                \
        Suite *suite = suite_create(#name);                                                        \
        TCase *group = tcase_create(#name);                                                        \
        SRunner *runner = srunner_create(suite);                                                   \
        int failed;                                                                                \
                                                                                                   \
        tcase_set_timeout(group, 100);                                                             \
        suite_add_tcase(suite, group);                                                             \
        for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)                                \
            tcase_add_test(group, cases[i]);                                                       \
        srunner_run_all(runner, CK_ENV);                                                           \
        failed = srunner_ntests_failed(runner);                                                    \
        srunner_free(runner);                                                                      \
        if (failed != 0 && test_seed_used)                                                         \
            fprintf(stderr, "%s: failed with WEFT_TEST_SEED=%" PRIu64 "\n", #name, test_seed());   \
        return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;                                          \
    }

#endif
