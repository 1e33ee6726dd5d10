/* tally.c - see tally.h. */
#include "common/tally.h"

#include <inttypes.h>
#include <string.h>

/* The counters without a kind, with the names that files and tables have for them. */
#define TOTALS(X)                                                                                  \
    X(sent, "sent")                                                                                \
    X(received, "received")                                                                        \
    X(implicit_moves, "implicit moves")                                                            \
    X(cache_hits, "cache hits")                                                                    \
    X(cache_misses, "cache misses")                                                                \
    X(failed, "failed")

static weft_axis_count *find_axes(weft_counts *sums, const char *axes)
{
    for (uint32_t i = 0; i < sums->axis_count; i++)
        if (strcmp(sums->axes[i].axes, axes) == 0) return &sums->axes[i];
    if (sums->axis_count == WEFT_COUNTED_AXES) return NULL;
    snprintf(sums->axes[sums->axis_count].axes, sizeof sums->axes[0].axes, "%s", axes);
    return &sums->axes[sums->axis_count++];
}

static void add_axes(weft_counts *sums, const weft_axis_count *axes)
{
    weft_axis_count *sum = find_axes(sums, axes->axes);

    if (sum == NULL) {
        sums->axes_missed += (uint32_t)axes->operations;
        return;
    }
    sum->operations += axes->operations;
    sum->sent += axes->sent;
    sum->received += axes->received;
}

void tally_add(struct tally *tally, const weft_counts *counts)
{
    weft_counts *sums = &tally->sums;

    for (size_t i = 0; i < WF_COUNT(sums->operations); i++)
        sums->operations[i] += counts->operations[i];
    for (size_t i = 0; i < WF_COUNT(sums->steps); i++)
        sums->steps[i] += counts->steps[i];
    for (uint32_t i = 0; i < counts->axis_count; i++)
        add_axes(sums, &counts->axes[i]);
#define ADD(field, name) sums->field += counts->field;
    TOTALS(ADD)
#undef ADD
    sums->axes_missed += counts->axes_missed;
    tally->ranks++;
}

/* ---- files ---- */

static void read_total(weft_counts *counts, const char *name, uint64_t number)
{
#define READ(field, text)                                                                          \
    if (strcmp(name, text) == 0) counts->field += number;
    TOTALS(READ)
#undef READ
    if (strcmp(name, "axes missed") == 0) counts->axes_missed += (uint32_t)number;
}

static void read_axes(weft_counts *counts, const char *line)
{
    weft_axis_count axes = {.operations = 0};

    if (sscanf(line, "axes %" SCNu64 " %" SCNu64 " %" SCNu64 " %31[^\n]", &axes.operations,
               &axes.sent, &axes.received, axes.axes) != 4)
        return;
    wf_text_clean(axes.axes, strlen(axes.axes));
    add_axes(counts, &axes);
}

/* Lines that a later version has added are ignored. */
static void read_line(struct tally *tally, const char *line)
{
    weft_counts *counts = &tally->sums;
    char kind[16], name[64];
    uint64_t number;

    if (sscanf(line, "%15s %" SCNu64 " %63[^\n]", kind, &number, name) != 3) return;
    for (uint32_t i = 0; strcmp(kind, "operation") == 0 && i < WEFT_OP_COUNT; i++) {
        const char *known = weft_operation_name((enum weft_operation)i);

        if (known != NULL && strcmp(known, name) == 0) counts->operations[i] += number;
    }
    for (uint32_t i = 0; strcmp(kind, "step") == 0 && i < WEFT_STEP_KINDS; i++)
        if (strcmp(weft_step_name((enum weft_step_kind)i), name) == 0) counts->steps[i] += number;
    if (strcmp(kind, "total") == 0) read_total(counts, name, number);
    if (strcmp(kind, "axes") == 0) read_axes(counts, line);
}

bool tally_read(struct tally *tally, const char *path)
{
    FILE *file = fopen(path, "re");
    char line[256];
    bool complete = false;

    if (file == NULL) return false;
    while (fgets(line, sizeof line, file) != NULL) {
        read_line(tally, line);
        if (strncmp(line, "end ", 4) == 0) complete = true;
    }
    fclose(file);
    tally->ranks += complete;
    return complete;
}

/* ---- printing ---- */

static void add_line(struct wf_text *out, const char *name, uint64_t number)
{
    if (number > 0) wf_text_add(out, "  %-20s %10" PRIu64 "\n", name, number);
}

static void add_bytes(struct wf_text *out, const char *name, uint64_t bytes)
{
    if (bytes == 0) return;
    wf_text_add(out, "  %-20s %10" PRIu64 " bytes\n", name, bytes);
}

void tally_print(const struct tally *tally, struct wf_text *out)
{
    const weft_counts *sums = &tally->sums;
    char name[48];

    wf_text_add(out, "operations of %d rank%s together:\n", (int)tally->ranks,
                WF_PLURAL(tally->ranks));
    for (uint32_t i = 0; i < WEFT_OP_COUNT; i++)
        add_line(out, weft_operation_name((enum weft_operation)i), sums->operations[i]);
    for (uint32_t i = 0; i < WEFT_STEP_KINDS; i++) {
        snprintf(name, sizeof name, "step %s", weft_step_name((enum weft_step_kind)i));
        add_line(out, name, sums->steps[i]);
    }
    for (uint32_t i = 0; i < sums->axis_count; i++) {
        snprintf(name, sizeof name, "along %s", sums->axes[i].axes);
        wf_text_add(out, "  %-20s %10" PRIu64 ", %" PRIu64 " bytes sent, %" PRIu64 " received\n",
                    name, sums->axes[i].operations, sums->axes[i].sent, sums->axes[i].received);
    }
    add_line(out, "along others", sums->axes_missed);
    add_bytes(out, "sent", sums->sent);
    add_bytes(out, "received", sums->received);
    add_line(out, "implicit moves", sums->implicit_moves);
    add_line(out, "cache hits", sums->cache_hits);
    add_line(out, "cache misses", sums->cache_misses);
    add_line(out, "failed", sums->failed);
}

void tally_print_json(const struct tally *tally, struct wf_json *json)
{
    const weft_counts *sums = &tally->sums;

    wf_json_int(json, "ranks", tally->ranks);
    wf_json_begin(json, "operations", '{');
    for (uint32_t i = 0; i < WEFT_OP_COUNT; i++)
        if (sums->operations[i] > 0)
            wf_json_uint(json, weft_operation_name((enum weft_operation)i), sums->operations[i]);
    wf_json_end(json, '}');
    wf_json_begin(json, "steps", '{');
    for (uint32_t i = 0; i < WEFT_STEP_KINDS; i++)
        if (sums->steps[i] > 0)
            wf_json_uint(json, weft_step_name((enum weft_step_kind)i), sums->steps[i]);
    wf_json_end(json, '}');
    wf_json_begin(json, "axes", '{');
    for (uint32_t i = 0; i < sums->axis_count; i++) {
        wf_json_begin(json, sums->axes[i].axes, '{');
        wf_json_uint(json, "operations", sums->axes[i].operations);
        wf_json_uint(json, "sent", sums->axes[i].sent);
        wf_json_uint(json, "received", sums->axes[i].received);
        wf_json_end(json, '}');
    }
    wf_json_end(json, '}');
    wf_json_uint(json, "axes_missed", sums->axes_missed);
#define PRINT(field, name) wf_json_uint(json, #field, sums->field);
    TOTALS(PRINT)
#undef PRINT
}
