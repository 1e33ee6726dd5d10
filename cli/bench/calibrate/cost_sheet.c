/* cost_sheet.c - see cost_sheet.h. */
#include "bench/calibrate/cost_sheet.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { TEXT_BYTES = 4096 };

static const char *const link_names[COST_LINKS] = {"within", "between"};

/* One line of a table's text. */
static void read_line(const char *line, struct cost_sheet *out)
{
    char word[32], link[32];
    struct cost_rate rate;

    if (sscanf(line, "name %31s", out->name) == 1) return;
    if (sscanf(line, "one-sided %31s", word) == 1) out->one_sided = strcmp(word, "yes") == 0;
    if (sscanf(line, "copy %" SCNu64, &out->copy) == 1) return;
    if (sscanf(line, "pack %" SCNu64, &out->pack) == 1) return;
    if (sscanf(line, "reduce %" SCNu64, &out->reduce) == 1) return;
    if (sscanf(line, "flops %" SCNu64, &out->flops) == 1) return;
    if (sscanf(line, "memory %" SCNu64, &out->memory) == 1) return;
    if (sscanf(line, "%31s %31s %" SCNu64 " %" SCNu64 " %" SCNu64, word, link, &rate.base_ns,
               &rate.peer_ns, &rate.femtoseconds) != 5)
        return;
    for (uint32_t kind = 0; kind < WEFT_STEP_KINDS; kind++)
        for (int i = 0; i < COST_LINKS; i++)
            if (strcmp(word, weft_step_name(kind)) == 0 && strcmp(link, link_names[i]) == 0)
                out->rates[kind][i] = rate;
}

weft_status cost_sheet_read(const weft_cost_table *table, struct cost_sheet *out)
{
    char text[TEXT_BYTES], *next = text, *line;

    WF_TRY(weft_cost_table_print(table, text, sizeof text, NULL));
    memset(out, 0, sizeof *out);
    while ((line = strsep(&next, "\n")) != NULL)
        read_line(line, out);
    return WEFT_OK;
}

weft_status cost_sheet_table(const struct cost_sheet *sheet, weft_cost_table **out)
{
    struct wf_text text = {0};
    weft_status status;

    wf_text_add(&text, "weft-cost 1\nname %s\none-sided %s\n", sheet->name,
                sheet->one_sided ? "yes" : "no");
    wf_text_add(&text, "copy %" PRIu64 "\npack %" PRIu64 "\nreduce %" PRIu64 "\n", sheet->copy,
                sheet->pack, sheet->reduce);
    if (sheet->flops > 0) wf_text_add(&text, "flops %" PRIu64 "\n", sheet->flops);
    if (sheet->memory > 0) wf_text_add(&text, "memory %" PRIu64 "\n", sheet->memory);
    for (uint32_t kind = 0; kind < WEFT_STEP_KINDS; kind++)
        for (int i = 0; i < COST_LINKS; i++) {
            const struct cost_rate *rate = &sheet->rates[kind][i];
            wf_text_add(&text, "%s %s %" PRIu64 " %" PRIu64 " %" PRIu64 "\n", weft_step_name(kind),
                        link_names[i], rate->base_ns, rate->peer_ns, rate->femtoseconds);
        }
    status = wf_text_status(&text);
    if (status == WEFT_OK) status = weft_cost_table_parse(text.data, out);
    wf_text_free(&text);
    return status;
}
