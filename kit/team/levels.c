/* levels.c - the list of cases, from cases.def. */
#include "run.h"

#include "cases/cases.h"

#include <string.h>

/* The rows of all levels, one after the other; the row of a LEVEL ends the level before. */
#define LEVEL(name, summary, when)  LEVEL_##name,
#define CASE(path, function, when)  ROW_##function,
#define CASES(path, function, when) ROW_##function,
enum {
#include "cases.def"
};
#undef LEVEL
#undef CASE
#undef CASES

#define LEVEL(name, summary, when)  {0},
#define CASE(path, function, when)  {path, kit_##function, kit_when_##when, true},
#define CASES(path, function, when) {path, kit_##function, kit_when_##when, false},
static const struct kit_row rows[] = {
#include "cases.def"
    {0}};
#undef LEVEL
#undef CASE
#undef CASES

#define LEVEL(name, summary, when) {#name, summary, kit_when_##when, rows + LEVEL_##name + 1},
#define CASE(path, function, when)
#define CASES(path, function, when)
const struct kit_level kit_levels[] = {
#include "cases.def"
};
#undef LEVEL
#undef CASE
#undef CASES

const size_t kit_level_count = WF_COUNT(kit_levels);
_Static_assert(WF_COUNT(kit_levels) <= KIT_MAX_LEVELS, "progress.h has room for each level");

int kit_level_find(const char *name, size_t length)
{
    for (size_t i = 0; i < kit_level_count; i++)
        if (strlen(kit_levels[i].name) == length && memcmp(kit_levels[i].name, name, length) == 0)
            return (int)i;
    return -1;
}
