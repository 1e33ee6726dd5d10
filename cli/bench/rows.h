/* rows.h - rows of the tables that benchmarks print, and benchmarks that one process measures row
 * by row. */
#ifndef WEFT_CLI_BENCH_ROWS_H
#define WEFT_CLI_BENCH_ROWS_H

#include "common/cli.h"
#include "timing/loop.h"

/* Add a cell, right-aligned after a blank. */
void bench_add_time(struct wf_text *text, int width, uint64_t ns);
void bench_add_bytes(struct wf_text *text, int width, uint64_t bytes);

struct bench_rows {
    const char *name;
    size_t count;
    weft_status (*measure)(size_t row, uint64_t budget_ns, struct bench_times *out);
    void (*add_text)(struct wf_text *text, size_t row, const struct bench_times *times);
    void (*add_json)(struct wf_json *json, size_t row); /* adds the members that identify the row */
    uint64_t (*limit_ns)(size_t row);                   /* the promised time; 0: none */
};

extern const struct cli_option bench_rows_options[];
/* Read the arguments, measure all rows and print them as a table, or as JSON. */
int bench_rows_run(const struct cli_command *command, int argc, char **argv,
                   const struct bench_rows *rows);

#endif
