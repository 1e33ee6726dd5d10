/* ranks.c - lists of ranks in words. */
#include "base/base.h"

/* Ranges shown before "and N more". */
#define SHOWN 20

void wf_ranks_print(struct wf_text *out, const int32_t *ranks, int32_t count)
{
    int32_t ranges = 0;

    wf_text_add(out, count == 1 ? "rank " : "ranks ");
    for (int32_t first = 0, last; first < count; first = last + 1, ranges++) {
        const char *join = first == 0 ? "" : ", ";

        last = first;
        while (last + 1 < count && ranks[last + 1] == ranks[last] + 1)
            last++;
        if (ranges == SHOWN) {
            wf_text_add(out, " and %d more", count - first);
            return;
        }
        if (last == first + 1) last = first; /* two neighbours are listed separately */
        if (last == count - 1 && first > 0) join = " and ";
        if (last == first)
            wf_text_add(out, "%s%d", join, ranks[first]);
        else
            wf_text_add(out, "%s%d-%d", join, ranks[first], ranks[last]);
    }
}
