/* config.h - the environment, read once into one immutable struct.
 *
 * knobs.def lists the variables; this module is the only one that reads the environment. */
#ifndef WEFT_CONFIG_CONFIG_H
#define WEFT_CONFIG_CONFIG_H

#include "base/base.h"
#include "weft/config.h"

#define WF_KNOB_C_TEXT    const char *
#define WF_KNOB_C_SECRET  const char *
#define WF_KNOB_C_PATH    const char *
#define WF_KNOB_C_PATHS   const char *
#define WF_KNOB_C_BOOL    bool
#define WF_KNOB_C_LEVEL   int
#define WF_KNOB_C_NUMBER  int64_t
#define WF_KNOB_C_SECONDS int64_t
#define WF_KNOB_C_BYTES   int64_t

/* What each variable is set to, or its default.  Strings belong to the struct. */
struct wf_config {
#define KNOB(variable, field, type, fallback, planning, help) WF_KNOB_C_##type field;
#include "config/knobs.def"
#undef KNOB
};

enum wf_knob_type {
    WF_KNOB_TEXT,
    WF_KNOB_SECRET,
    WF_KNOB_PATH,
    WF_KNOB_PATHS,
    WF_KNOB_BOOL,
    WF_KNOB_LEVEL,
    WF_KNOB_NUMBER,
    WF_KNOB_SECONDS,
    WF_KNOB_BYTES
};

/* One row of knobs.def. */
struct wf_knob {
    const char *name; /* "WEFT_BACKEND" */
    const char *type; /* "text" */
    const char *fallback, *help;
    enum wf_knob_type kind;
    bool planning;
    size_t offset; /* of its field in struct wf_config */
};

extern const struct wf_knob wf_knobs[];
extern const size_t wf_knob_count;

/* Where values come from: "NAME=value" strings up to a NULL, and whether the program runs with
 * privileges its user lacks (AT_SECURE), which makes path variables untrustworthy. */
struct wf_environment {
    char *const *entries;
    bool secure;
};

/* This process's own. */
struct wf_environment wf_environment(void);

/* Plugins set variables for their vendor's library when they are probed and opened, and some when
 * they prepare a communicator, and other threads of the process read the environment meanwhile:
 * whoever does either holds it.  A thread may hold it several times. [any thread] */
void wf_environment_hold(void);
void wf_environment_let_go(void);
/* Does this thread hold it?  For tests. */
bool wf_environment_is_held(void);

/* Value of NAME in ENVIRONMENT, NULL when absent or empty.  An empty variable counts as not set
 * everywhere in weft. */
const char *wf_environment_get(struct wf_environment environment, const char *name);

/* True when ENVIRONMENT's setting of KNOB is not obeyed because the program is privileged. */
bool wf_knob_ignored(const struct wf_knob *knob, struct wf_environment environment);

/* Can TEXT be KNOB's value?  WEFT_ERR_PARSE names the variable, the text and what is wanted. */
weft_status wf_knob_check(const struct wf_knob *knob, const char *text) WF_NODISCARD;

/* All knobs out of ENVIRONMENT.  Fails on the first value that cannot be read.  The caller
 * releases *OUT. */
weft_status wf_config_parse(struct wf_environment environment, struct wf_config **out) WF_NODISCARD;

/* The same from the process's environment.  Also sets the log level, and warns, once in the life
 * of the process, about WEFT_ variables that mean nothing.  [any thread] */
weft_status wf_config_read(struct wf_config **out) WF_NODISCARD;
void wf_config_release(struct wf_config **config);

/* Equal on two ranks iff all their planning knobs have equal values. */
uint64_t wf_config_digest(const struct wf_config *config);

/* A variable of somebody else - a launcher's RANK, OMPI_COMM_WORLD_SIZE - or NULL.  The text is
 * the environment's: copy it before setenv may run. */
const char *wf_config_getenv(const char *name);

/* What knob NAME is set to, as plugins ask: NULL when it is not set, not obeyed or no knob. */
const char *wf_config_knob(const char *name);

/* The INDEX-th WEFT_ variable of ENVIRONMENT that is no knob: its name's length in *LENGTH, the
 * knob it was perhaps meant to be, or NULL, in *NEAREST.  NULL past the last.  WEFT_TEST_ is left
 * to tests. */
const char *wf_config_unknown(struct wf_environment environment, size_t index, size_t *length,
                              const struct wf_knob **nearest);

/* ---- variables.c ---- */

/* weft_variable_get in ENVIRONMENT, without looking at OUT's size. */
bool wf_variable_find(struct wf_environment environment, size_t index, weft_variable_info *out);

#endif
