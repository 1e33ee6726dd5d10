/* run.h - runs the kit: the levels, the ranks that run them, and the watcher. */
#ifndef WEFT_KIT_RUN_H
#define WEFT_KIT_RUN_H

#include "frame/progress.h"

#include <sys/types.h>

/* ---- levels.c: cases.def as a table ---- */

/* A row of cases.def. */
struct kit_row {
    const char *path;
    void (*run)(struct kit *kit); /* NULL: the rows of a level end here */
    bool (*when)(struct kit *kit);
    bool is_case; /* the frame opens and closes it; else RUN does so with each of its cases */
};

struct kit_level {
    const char *name, *summary;
    bool (*when)(struct kit *kit);
    const struct kit_row *rows;
};

extern const struct kit_level kit_levels[];
extern const size_t kit_level_count;
/* Index of the level named by the first LENGTH bytes of NAME, or -1. */
int kit_level_find(const char *name, size_t length);

/* ---- plugin.c ---- */

void kit_plugin_open(const char *backend, struct kit_plugin *out);

/* ---- rank.c ---- */

/* The main function of a rank: runs all requested levels. */
void kit_rank_main(struct kit *kit);

/* ---- team.c ---- */

/* The program that runs the kit. */
struct kit_program {
    /* As fork; the child ends with the program. */
    pid_t (*fork)(void);
    /* Called once for each level that ends; NULL: not. */
    void (*level_done)(const struct kit_progress *progress, int level);
    /* Called every few milliseconds. */
    void (*tick)(const struct kit_progress *progress);
};

/* Memory for progress that the ranks share, all 0.  NULL: there is not enough. */
struct kit_progress *kit_progress_make(void);
void kit_progress_free(struct kit_progress *progress);

/* Run the team to its end.  After a crash or hang it is restarted behind that case.  False, after
 * printing an error, if ranks could not be started. */
bool kit_team_run(const struct kit_options *options, const struct kit_program *program,
                  struct kit_progress *progress);

#endif
