/* stages.c - the option --stages: how many layers each stage has. */
#include "schedule/request.h"

#include <ctype.h>
#include <stdlib.h>

enum { MOST_STAGES = 1 << 16, MOST_LAYERS = 1 << 20 };

/* Read a number of at most MOST at *TEXT, and advance behind it. */
static bool read_number(const char **text, long most, long *out)
{
    char *end;

    if (!isdigit((unsigned char)**text)) return false;
    *out = strtol(*text, &end, 10);
    *text = end;
    return *out <= most;
}

/* "6*10": TIMES stages of LAYERS layers each.  Without "*" it is one. */
static bool read_entry(const char **text, long *layers, long *times)
{
    *times = 1;
    if (!read_number(text, MOST_LAYERS, layers)) return false;
    if (**text != '*') return true;
    (*text)++;
    return read_number(text, MOST_STAGES, times) && *times > 0;
}

/* The number of stages in TEXT, whose layers are written to OUT if that is not NULL; 0: TEXT is no
 * such list. */
static size_t read_list(const char *text, uint32_t *out)
{
    size_t count = 0;

    for (;;) {
        long layers, times;
        if (!read_entry(&text, &layers, &times) || count + (size_t)times > MOST_STAGES) return 0;
        for (long i = 0; i < times; i++, count++)
            if (out != NULL) out[count] = (uint32_t)layers;
        if (*text == '\0') return count;
        if (*text++ != ',') return 0;
    }
}

bool schedule_stages(const struct cli_command *command, const struct cli_args *args, uint32_t **out,
                     size_t *count)
{
    const char *text = cli_value(command, args, "stages");

    *out = NULL;
    *count = text != NULL ? read_list(text, NULL) : 0;
    if (text == NULL) return true;
    if (*count == 0) {
        cli_complain(command,
                     "--stages takes the layers of each of at most %d stages, such as "
                     "5,6*10,5",
                     MOST_STAGES);
        return false;
    }
    *out = wf_alloc(*count * sizeof **out);
    if (*out == NULL) {
        cli_complain(command, "no memory for the layers of %zu stages", *count);
        return false;
    }
    (void)read_list(text, *out);
    return true;
}
