/* check.h - replaces the Check library's header for random layouts on a machine without Check.  A
 * failed assertion ends the program. */
#ifndef WEFT_TESTS_WITHOUT_CHECK_H
#define WEFT_TESTS_WITHOUT_CHECK_H

#include <stdio.h>
#include <stdlib.h>

#define ck_assert_msg(claim, ...)                                                                  \
    do {                                                                                           \
        if (!(claim)) {                                                                            \
            fprintf(stderr, "%s:%d: not so: %s: ", __FILE__, __LINE__, #claim);                    \
            fprintf(stderr, __VA_ARGS__);                                                          \
            fputc('\n', stderr);                                                                   \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)
#define ck_assert(claim) ck_assert_msg(claim, "claimed")
#define ck_assert_int_eq(a, b)                                                                     \
    ck_assert_msg((a) == (b), "%lld, %lld", (long long)(a), (long long)(b))

#endif
