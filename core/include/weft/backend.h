/* backend.h - the plugins that exist, the one that serves, and the reasons why others do not.
 *
 * WEFT_BACKEND selects: `auto` (the default: the usable plugin with the highest score), a name, an
 * absolute path to a .so, or a list of these that is tried in order (`nccl,/opt/libmine.so,auto`).
 * `^name` excludes a plugin from auto.  A list that only excludes ends with auto. */
#ifndef WEFT_BACKEND_H
#define WEFT_BACKEND_H

#include "status.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The result of judging a candidate.  Every value except USABLE is a reason why it cannot serve. */
#define WEFT_BACKEND_REASON_LIST(X)                                                                \
    X(USABLE, 0, "usable")                                                                         \
    X(NOT_FOUND, 1, "not found")                                                                   \
    X(NOT_READABLE, 2, "not readable")                                                             \
    X(NOT_TRUSTED, 3, "not trusted")                                                               \
    X(WRONG_ARCHITECTURE, 4, "wrong architecture")                                                 \
    X(DLOPEN_FAILED, 5, "dlopen failed")                                                           \
    X(NO_ENTRY, 6, "no entry symbol")                                                              \
    X(NAME_MISMATCH, 7, "name mismatch")                                                           \
    X(ABI_MAJOR, 8, "ABI major")                                                                   \
    X(ABI_MINOR, 9, "ABI minor")                                                                   \
    X(FINGERPRINT, 10, "fingerprint")                                                              \
    X(ENTRY_REFUSED, 11, "entry refused")                                                          \
    X(LIBRARY_MISSING, 12, "vendor library missing")                                               \
    X(LIBRARY_TOO_OLD, 13, "vendor library too old")                                               \
    X(NO_DEVICE, 14, "no device")                                                                  \
    X(EXCLUDED, 15, "excluded")                                                                    \
    X(SHADOWED, 16, "shadowed")                                                                    \
    X(MALFORMED, 17, "malformed tables")                                                           \
    X(PROBE_FAILED, 18, "probe failed")

#define WEFT_BACKEND_REASON_ENUM(name, value, text) WEFT_BACKEND_REASON_##name = value,
enum weft_backend_reason {
    WEFT_BACKEND_REASON_LIST(WEFT_BACKEND_REASON_ENUM) WEFT_BACKEND_REASON_COUNT
};
#undef WEFT_BACKEND_REASON_ENUM

typedef struct weft_backend_options {
    size_t struct_size;
    const char *backend;     /* NULL: WEFT_BACKEND */
    const char *plugin_path; /* directories, colon-separated, searched before WEFT_PLUGIN_PATH's */
} weft_backend_options;

/* One candidate.  Strings live as long as the list. */
typedef struct weft_backend_info {
    size_t struct_size;
    const char *name;              /* if the plugin was not loaded: taken from the file's name */
    const char *file;              /* absolute path; NULL if no file has the name */
    const char *version;           /* NULL if the plugin was not loaded */
    const char *build;             /* likewise */
    const char *description;       /* likewise */
    const char *library;           /* vendor library in use; "" for none */
    uint32_t abi_major, abi_minor; /* 0.0 if the plugin was not loaded */
    uint32_t reason;               /* enum weft_backend_reason */
    const char *reason_text;       /* a sentence: what was found and what is required */
    int32_t score;                 /* auto chooses the highest above 0 */
    size_t device_count;
} weft_backend_info;

/* One line of the trace of a search. */
typedef struct weft_backend_trace_info {
    size_t struct_size;
    const char *text; /* lives as long as the list */
    size_t candidate; /* the candidate that it concerns; SIZE_MAX: none */
} weft_backend_trace_info;

typedef struct weft_backends weft_backends;

/* The two tasks of a backend.  With a list such as `nccl,nvshmem` two plugins may share them.  The
 * first usable plugin communicates.  Symmetric memory comes from the first usable plugin after it
 * in the list that offers symmetric memory and works on the same device; otherwise from the
 * plugin that communicates, if it offers it. */
enum weft_backend_role { WEFT_BACKEND_ROLE_COMM = 0, WEFT_BACKEND_ROLE_SYMM = 1 };

/* Search all plugin directories, and record for each candidate whether it is usable, and if not,
 * why.  Candidates that WEFT_BACKEND excludes are listed but not loaded.  The call succeeds even if
 * no candidate is usable.  OPTIONS may be NULL.  The caller releases *OUT; the release does not
 * unload plugins.  *OUT never changes, so any thread may read it.  WEFT_ERR_INVALID or
 * WEFT_ERR_PARSE: a variable or an option is malformed.  [any thread] */
WEFT_API WEFT_NODISCARD weft_status weft_backends_create(const weft_backend_options *options,
                                                         weft_backends **out);

/* Free the list and set *BACKENDS to NULL.  Accepts NULL and a pointer to NULL. */
WEFT_API void weft_backends_release(weft_backends **backends);

/* Number of candidates, usable or not; 0 for NULL.  Their indices follow the order of the search.
 */
WEFT_API size_t weft_backends_count(const weft_backends *backends);
/* Copy the properties of candidate INDEX to *OUT, whose struct_size the caller sets.
 * WEFT_ERR_INVALID: there is no such candidate. */
WEFT_API WEFT_NODISCARD weft_status weft_backends_get(const weft_backends *backends, size_t index,
                                                      weft_backend_info *out);

/* Set *INDEX to the candidate that serves ROLE.  If it is not the first in WEFT_BACKEND's list, a
 * notice in the log says so.  WEFT_ERR_NO_BACKEND: no candidate can serve ROLE.  The error text
 * gives the reasons: for a name, why that plugin cannot serve and which plugins exist; for auto,
 * one line per candidate.  [any thread] */
WEFT_API WEFT_NODISCARD weft_status weft_backends_choose(const weft_backends *backends,
                                                         enum weft_backend_role role,
                                                         size_t *index);

/* The tables of candidate INDEX.  They are checked and have the size of this build's structs; an
 * entry that an older plugin lacks is NULL.  A plugin that was loaded but is not usable has tables
 * too.  Valid for the life of the process.  NULL if the plugin was not loaded, or if there is no
 * such candidate. */
WEFT_API const weft_plugin *weft_backends_plugin(const weft_backends *backends, size_t index);

/* The selection in force, in the syntax of WEFT_BACKEND.  Unless ORIGIN is NULL, *ORIGIN is set to
 * the name of the setting that it comes from: "the backend option", or "WEFT_BACKEND", even if that
 * variable is not set and "auto" is in force.  Both are valid as long as the list.  If BACKENDS is
 * NULL, the result is NULL and *ORIGIN is not changed.
 */
WEFT_API const char *weft_backends_wanted(const weft_backends *backends, const char **origin);

/* Number of lines of the trace of the search; 0 for NULL.  The trace has every directory, every
 * file and every decision, in the order of the search. */
WEFT_API size_t weft_backends_trace_count(const weft_backends *backends);
/* Copy line INDEX of the trace to *OUT, whose struct_size the caller sets.  WEFT_ERR_INVALID: there
 * is no such line. */
WEFT_API WEFT_NODISCARD weft_status weft_backends_trace_get(const weft_backends *backends,
                                                            size_t index,
                                                            weft_backend_trace_info *out);

/* The text of REASON, such as "not found"; "unknown" if it is not a reason. */
WEFT_API const char *weft_backend_reason_text(enum weft_backend_reason reason);

#ifdef __cplusplus
}
#endif
#endif
