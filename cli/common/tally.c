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

static struct tally_axes *find_axes(struct tally *tally, const char *axes)
{
    for (size_t i = 0; i < tally->axes_count; i++)
        if (strcmp(tally->axes[i].axes, axes) == 0) return &tally->axes[i];
    if (tally->axes_count == TALLY_AXES) return NULL;
    snprintf(tally->axes[tally->axes_count].axes, sizeof tally->axes[0].axes, "%s", axes);
    return &tally->axes[tally->axes_count++];
}

static void add_axes(struct tally *tally, const struct tally_axes *axes)
{
    struct tally_axes *sum = find_axes(tally, axes->axes);

    if (sum == NULL) {
        tally->sums.axes_missed += axes->operations;
        return;
    }
    sum->operations += axes->operations;
    sum->sent += axes->sent;
    sum->received += axes->received;
}

static void add_sums(struct tally *tally, const weft_record_counts_info *sums)
{
#define ADD(field, name) tally->sums.field += sums->field;
    TOTALS(ADD)
#undef ADD
    tally->sums.axes_missed += sums->axes_missed;
}

weft_status tally_add_counts(struct tally *tally, const weft_record_counts *counts)
{
    weft_record_counts_info sums = {.struct_size = sizeof sums};
    weft_record_axes_info along = {.struct_size = sizeof along};

    WF_TRY(weft_record_counts_get(counts, &sums));
    for (size_t i = 0; i < WF_COUNT(tally->operations); i++)
        tally->operations[i] +=
            weft_record_counts_operations(counts, (enum weft_record_operation)i);
    for (size_t i = 0; i < WF_COUNT(tally->steps); i++)
        tally->steps[i] += weft_record_counts_steps(counts, (enum weft_step_kind)i);
    for (size_t i = 0; i < weft_record_counts_axes_count(counts); i++) {
        struct tally_axes axes = {.operations = 0};

        WF_TRY(weft_record_counts_axes_get(counts, i, &along));
        axes.operations = along.operations;
        axes.sent = along.sent;
        axes.received = along.received;
        snprintf(axes.axes, sizeof axes.axes, "%s", along.axes);
        add_axes(tally, &axes);
    }
    add_sums(tally, &sums);
    tally->ranks++;
    return WEFT_OK;
}

void tally_add(struct tally *tally, const struct tally *other)
{
    for (size_t i = 0; i < WF_COUNT(tally->operations); i++)
        tally->operations[i] += other->operations[i];
    for (size_t i = 0; i < WF_COUNT(tally->steps); i++)
        tally->steps[i] += other->steps[i];
    for (size_t i = 0; i < other->axes_count; i++)
        add_axes(tally, &other->axes[i]);
    add_sums(tally, &other->sums);
    tally->ranks += other->ranks;
}

/* ---- files ---- */

static void read_total(struct tally *tally, const char *name, uint64_t number)
{
#define READ(field, text)                                                                          \
    if (strcmp(name, text) == 0) tally->sums.field += number;
    TOTALS(READ)
#undef READ
    if (strcmp(name, "axes missed") == 0) tally->sums.axes_missed += number;
}

static void read_axes(struct tally *tally, const char *line)
{
    struct tally_axes axes = {.operations = 0};

    if (sscanf(line, "axes %" SCNu64 " %" SCNu64 " %" SCNu64 " %31[^\n]", &axes.operations,
               &axes.sent, &axes.received, axes.axes) != 4)
        return;
    wf_text_clean(axes.axes, strlen(axes.axes));
    add_axes(tally, &axes);
}

/* Lines that a later version has added are ignored. */
static void read_line(struct tally *tally, const char *line)
{
    char kind[16], name[64];
    uint64_t number;

    if (sscanf(line, "%15s %" SCNu64 " %63[^\n]", kind, &number, name) != 3) return;
    for (uint32_t i = 0; strcmp(kind, "operation") == 0 && i < WEFT_RECORD_OPERATION_COUNT; i++) {
        const char *known = weft_record_operation_name((enum weft_record_operation)i);

        if (known != NULL && strcmp(known, name) == 0) tally->operations[i] += number;
    }
    for (uint32_t i = 0; strcmp(kind, "step") == 0 && i < WEFT_STEP_KINDS; i++)
        if (strcmp(weft_step_name((enum weft_step_kind)i), name) == 0) tally->steps[i] += number;
    if (strcmp(kind, "total") == 0) read_total(tally, name, number);
    if (strcmp(kind, "axes") == 0) read_axes(tally, line);
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
    const weft_record_counts_info *sums = &tally->sums;
    char name[48];

    wf_text_add(out, "operations of %d rank%s together:\n", (int)tally->ranks,
                WF_PLURAL(tally->ranks));
    for (uint32_t i = 0; i < WEFT_RECORD_OPERATION_COUNT; i++)
        add_line(out, weft_record_operation_name((enum weft_record_operation)i),
                 tally->operations[i]);
    for (uint32_t i = 0; i < WEFT_STEP_KINDS; i++) {
        snprintf(name, sizeof name, "step %s", weft_step_name((enum weft_step_kind)i));
        add_line(out, name, tally->steps[i]);
    }
    for (size_t i = 0; i < tally->axes_count; i++) {
        snprintf(name, sizeof name, "along %s", tally->axes[i].axes);
        wf_text_add(out, "  %-20s %10" PRIu64 ", %" PRIu64 " bytes sent, %" PRIu64 " received\n",
                    name, tally->axes[i].operations, tally->axes[i].sent, tally->axes[i].received);
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
    const weft_record_counts_info *sums = &tally->sums;

    wf_json_int(json, "ranks", tally->ranks);
    wf_json_begin(json, "operations", '{');
    for (uint32_t i = 0; i < WEFT_RECORD_OPERATION_COUNT; i++)
        if (tally->operations[i] > 0)
            wf_json_uint(json, weft_record_operation_name((enum weft_record_operation)i),
                         tally->operations[i]);
    wf_json_end(json, '}');
    wf_json_begin(json, "steps", '{');
    for (uint32_t i = 0; i < WEFT_STEP_KINDS; i++)
        if (tally->steps[i] > 0)
            wf_json_uint(json, weft_step_name((enum weft_step_kind)i), tally->steps[i]);
    wf_json_end(json, '}');
    wf_json_begin(json, "axes", '{');
    for (size_t i = 0; i < tally->axes_count; i++) {
        wf_json_begin(json, tally->axes[i].axes, '{');
        wf_json_uint(json, "operations", tally->axes[i].operations);
        wf_json_uint(json, "sent", tally->axes[i].sent);
        wf_json_uint(json, "received", tally->axes[i].received);
        wf_json_end(json, '}');
    }
    wf_json_end(json, '}');
    wf_json_uint(json, "axes_missed", sums->axes_missed);
#define PRINT(field, name) wf_json_uint(json, #field, sums->field);
    TOTALS(PRINT)
#undef PRINT
}
