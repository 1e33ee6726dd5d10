/* config.h - the environment, read once into one immutable struct.
 *
 * knobs.def lists the variables.  No other module reads the environment. */
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
#define WF_KNOB_C_PERIOD  int64_t
#define WF_KNOB_C_BYTES   int64_t

#define WF_CONFIG_RECORDER_MOST 65536 /* of WEFT_RECORDER */

/* The value of each variable, or its default.  Strings belong to the struct. */
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
    WF_KNOB_PERIOD,
    WF_KNOB_BYTES
};

/* One row of knobs.def. */
struct wf_knob {
    const char *name; /* "WEFT_BACKEND" */
    const char *type; /* "text" */
    const char *fallback, *help;
    enum wf_knob_type kind;
    bool planning;
    size_t offset; /* offset of its field in struct wf_config */
};

extern const struct wf_knob wf_knobs[];
extern const size_t wf_knob_count;

/* The source of values: "NAME=value" strings up to a NULL, and whether the program runs with
 * privileges that its user lacks (AT_SECURE), which makes path variables untrustworthy. */
struct wf_environment {
    char *const *entries;
    bool secure;
};

/* The environment of this process. */
struct wf_environment wf_environment(void);

/* Lock and unlock the environment.  Plugins set variables of their vendor's library when they are
 * probed and opened, and some when they prepare a communicator, while other threads of the process
 * read the environment.  Both hold the lock.  A thread may lock it several times. [any thread] */
void wf_environment_lock(void);
void wf_environment_unlock(void);
/* True if this thread holds it.  For tests. */
bool wf_environment_is_locked(void);

/* Value of NAME in ENVIRONMENT; NULL if it is missing or empty.  An empty variable counts as not
 * set everywhere in weft. */
const char *wf_environment_get(struct wf_environment environment, const char *name);

/* True if KNOB is ignored in ENVIRONMENT because the program is privileged. */
bool wf_knob_ignored(const struct wf_knob *knob, struct wf_environment environment);

/* WEFT_OK if TEXT is a valid value of KNOB.  WEFT_ERR_PARSE names the variable, the text and the
 * valid values. */
weft_status wf_knob_check(const struct wf_knob *knob, const char *text) WF_NODISCARD;

/* All knobs of ENVIRONMENT.  Fails on the first invalid value.  The caller releases *OUT. */
weft_status wf_config_parse(struct wf_environment environment, struct wf_config **out) WF_NODISCARD;

/* As wf_config_parse, from the process's environment.  Also sets the log level, and warns once per
 * process about WEFT_ variables that are not knobs.  [any thread] */
weft_status wf_config_read(struct wf_config **out) WF_NODISCARD;
void wf_config_release(struct wf_config **config);

/* Equal on two ranks iff all their planning knobs have equal values. */
uint64_t wf_config_digest(const struct wf_config *config);

/* A variable that is not a knob, such as a launcher's RANK or OMPI_COMM_WORLD_SIZE, or NULL.  The
 * text belongs to the environment: copy it before setenv may run. */
const char *wf_config_getenv(const char *name);

/* The value of knob NAME for plugins; NULL if it is not set, is ignored or is not a knob. */
const char *wf_config_knob(const char *name);

/* The INDEX-th WEFT_ variable of ENVIRONMENT that is not a knob; NULL past the last.  *LENGTH is
 * the length of its name; *NEAREST the most similar knob, or NULL.  WEFT_TEST_ variables are
 * skipped. */
const char *wf_config_unknown(struct wf_environment environment, size_t index, size_t *length,
                              const struct wf_knob **nearest);

/* ---- variables.c ---- */

/* As weft_variable_get, in ENVIRONMENT, without checking OUT's size. */
bool wf_variable_find(struct wf_environment environment, size_t index, weft_variable_info *out);

#endif
