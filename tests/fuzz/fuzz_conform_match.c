/* Patterns of case names: the input is PATTERN, newline, NAME.  Matching accepts any input and
 * keeps its rules. */
#include "fuzz.h"

#include "frame/kit.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = fuzz_string(data, size), *name = strchr(text, '\n');

    if (name == NULL) {
        /* A name matches itself, unless it has only empty parts. */
        bool own = kit_case_matches(text, text);
        FUZZ_ASSERT(own || text[0] == '\0' || strstr(text, "//") != NULL || text[0] == '/');
    } else {
        *name++ = '\0';
        if (kit_case_matches(text, name)) {
            char *slash = strrchr(text, '/');
            FUZZ_ASSERT(kit_case_matches(text, text) || strchr(text, '*') != NULL);
            /* If a pattern matches, a prefix of it matches too. */
            if (slash != NULL && slash > text) {
                *slash = '\0';
                FUZZ_ASSERT(kit_case_matches(text, name));
            }
        }
    }
    free(text);
    return 0;
}
