/* pattern.c - patterns of names. */
#include "base/base.h"

/* After a mismatch, the last `*` takes one byte more; earlier ones need not be tried again. */
bool wf_pattern_matches(const char *pattern, const char *name)
{
    const char *star = NULL, *from = NULL;

    while (*name != '\0') {
        if (*pattern == '*') {
            star = pattern++;
            from = name;
        } else if (*pattern == *name) {
            pattern++;
            name++;
        } else if (star != NULL) {
            pattern = star + 1;
            name = ++from;
        } else {
            return false;
        }
    }
    while (*pattern == '*')
        pattern++;
    return *pattern == '\0';
}

/* The text of LATER matches then, because a `*` in it can only be matched by a `*`. */
bool wf_pattern_covers(const char *earlier, const char *later)
{
    return wf_pattern_matches(earlier, later);
}
