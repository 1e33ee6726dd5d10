/* nearest.c - "did you mean": the known name fewest edits away. */
#include "base/base.h"

#include <string.h>

enum { LONGEST = 64 };

static size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* Edits (insert, delete, replace, swap of neighbours) that turn A into B. */
static size_t edits(const char *a, const char *b)
{
    size_t rows[3][LONGEST + 1];
    size_t n = strlen(a), m = strlen(b);

    if (n > LONGEST || m > LONGEST) return SIZE_MAX;
    for (size_t j = 0; j <= m; j++)
        rows[0][j] = j;
    for (size_t i = 1; i <= n; i++) {
        size_t *now = rows[i % 3], *last = rows[(i + 2) % 3], *before = rows[(i + 1) % 3];
        now[0] = i;
        for (size_t j = 1; j <= m; j++) {
            size_t replace = last[j - 1] + (a[i - 1] != b[j - 1]);
            now[j] = least(replace, least(last[j], now[j - 1]) + 1);
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                now[j] = least(now[j], before[j - 2] + 1);
        }
    }
    return rows[n % 3][m];
}

int wf_nearest(const char *name, const char *const *names, size_t count)
{
    size_t length = strlen(name);
    size_t best = length / 3 + 2; /* one more than the most edits of a suggestion */
    int found = -1;

    for (size_t i = 0; i < count; i++) {
        size_t distance = edits(name, names[i]);
        bool shares_a_letter = distance < length && distance < strlen(names[i]);
        if (distance < best && shares_a_letter) {
            best = distance;
            found = (int)i;
        }
    }
    return found;
}
