/* match.c - patterns of case names. */
#include "kit.h"

#include <string.h>

bool kit_case_matches(const char *pattern, const char *name)
{
    for (;;) {
        size_t want = strcspn(pattern, "/"), have = strcspn(name, "/");
        bool any = want == 1 && pattern[0] == '*';

        if (!any && (want != have || memcmp(pattern, name, want) != 0)) return false;
        pattern += want;
        name += have;
        if (pattern[0] == '\0' || (pattern[0] == '/' && pattern[1] == '\0')) return true;
        if (name[0] == '\0') return false;
        pattern++;
        name++;
    }
}
