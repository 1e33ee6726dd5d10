/* foreign.c - placements and reductions as other systems write them, and what weft writes. */
#include "shard.h"

#include <string.h>

enum form { PLAIN, WITH_DIM, WITH_FACTOR, WITH_SIZES, WITH_REDUCTION };

static const struct {
    const char *theirs, *ours;
    enum form form;
} placements[] = {
    {"shard", "S", WITH_DIM},
    {"s", "S", WITH_DIM},
    {"sharded", "S", WITH_DIM},
    {"split", "S", WITH_DIM},
    {"ss", "SS", WITH_FACTOR},
    {"_stridedshard", "SS", WITH_FACTOR},
    {"stridedshard", "SS", WITH_FACTOR},
    {"raggedshard", "G", WITH_SIZES},
    {"_raggedshard", "G", WITH_SIZES},
    {"replicate", "R", PLAIN},
    {"replicated", "R", PLAIN},
    {"r", "R", PLAIN},
    {"none", "R", PLAIN},
    {"partial", "P", WITH_REDUCTION},
    {"_partial", "P", WITH_REDUCTION},
    {"p", "P", WITH_REDUCTION},
};

static const struct {
    const char *theirs, *ours;
} reductions[] = {
    {"mean", "avg"},     {"average", "avg"}, {"add", "sum"},       {"plus", "sum"},
    {"maximum", "max"},  {"amax", "max"},    {"minimum", "min"},   {"amin", "min"},
    {"product", "prod"}, {"mul", "prod"},    {"multiply", "prod"},
};

static bool is_word(const char *word, const char *text, size_t length)
{
    return strlen(word) == length && wf_same_letters(word, text, length);
}

const char *wf_reduction_meant(const char *name, size_t length)
{
    for (uint32_t i = 0; i < WEFT_REDUCE_COUNT; i++)
        if (is_word(wf_reduction_name(i), name, length)) return wf_reduction_name(i);
    for (size_t i = 0; i < WF_COUNT(reductions); i++)
        if (is_word(reductions[i].theirs, name, length)) return reductions[i].ours;
    return NULL;
}

/* What stands in the brackets behind a name: "(dim=0, split_factor=2)", "('avg')". */
struct arguments {
    const char *numbers[2];
    int lengths[2];
    const char *reduction; /* NULL: none */
};

static struct arguments find_arguments(const char *at)
{
    struct arguments found = {.lengths = {0, 0}};
    int count = 0;

    if (*at != '(') return found;
    for (at++; *at != '\0' && *at != ')';) {
        size_t digits = strspn(at, "0123456789"), letters = 0;
        while ((at[letters] >= 'a' && at[letters] <= 'z') ||
               (at[letters] >= 'A' && at[letters] <= 'Z') || at[letters] == '_')
            letters++;
        if (digits > 0 && digits <= 4 && count < 2) {
            found.numbers[count] = at;
            found.lengths[count++] = (int)digits;
        } else if (letters > 0 && found.reduction == NULL) {
            found.reduction = wf_reduction_meant(at, letters);
        }
        at += digits > 0 ? digits : letters > 0 ? letters : 1;
    }
    return found;
}

static void add_meant(const char *ours, enum form form, const struct arguments *given,
                      struct wf_text *out)
{
    bool has_dim = given->lengths[0] > 0, has_factor = given->lengths[1] > 0;

    wf_text_add(out, "; did you mean %s", ours);
    if (form != PLAIN && form != WITH_REDUCTION)
        wf_text_add(out, "(%.*s", has_dim ? given->lengths[0] : 3,
                    has_dim ? given->numbers[0] : "dim");
    if (form == WITH_FACTOR)
        wf_text_add(out, ",%.*s", has_factor ? given->lengths[1] : 6,
                    has_factor ? given->numbers[1] : "factor");
    if (form == WITH_SIZES) wf_text_add(out, ";sizes");
    if (form == WITH_REDUCTION && given->reduction != NULL)
        wf_text_add(out, "(%s", given->reduction);
    if ((form != PLAIN && form != WITH_REDUCTION) ||
        (form == WITH_REDUCTION && given->reduction != NULL))
        wf_text_char(out, ')');
    wf_text_char(out, '?');
}

void wf_placement_suggest(const char *word, size_t length, struct wf_text *out)
{
    struct arguments given = find_arguments(word + length);
    size_t letters = length;

    while (letters > 0 && word[letters - 1] >= '0' && word[letters - 1] <= '9')
        letters--;
    if (letters < length && length - letters <= 4) { /* "S0" */
        given.numbers[0] = word + letters;
        given.lengths[0] = (int)(length - letters);
    }
    for (size_t i = 0; i < WF_COUNT(placements); i++) {
        bool is_dim = letters < length && placements[i].form == WITH_DIM;
        if (!is_word(placements[i].theirs, word, is_dim ? letters : length)) continue;
        add_meant(placements[i].ours, placements[i].form, &given, out);
        return;
    }
}
