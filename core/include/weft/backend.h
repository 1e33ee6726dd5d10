/* backend.h - which plugins there are, which one serves, and why the others do not.
 *
 * WEFT_BACKEND decides: `auto` (the default: the usable one that scores highest), a name, an
 * absolute path to a .so, or a list of these, `nccl,/opt/libmine.so,auto`, tried in order; `^name`
 * excludes a plugin from auto.  A list of exclusions alone ends in auto. */
#ifndef WEFT_BACKEND_H
#define WEFT_BACKEND_H

#include "status.h"

#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Why a candidate does not serve.  USABLE is the only good answer. */
#define WEFT_REASON_LIST(X)                                                                        \
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

#define WEFT_REASON_ENUM(name, value, text) WEFT_REASON_##name = value,
enum weft_reason { WEFT_REASON_LIST(WEFT_REASON_ENUM) WEFT_REASON_COUNT };
#undef WEFT_REASON_ENUM

/* Set struct_size to sizeof(weft_backend_options); NULL elsewhere means default. */
typedef struct weft_backend_options {
    size_t struct_size;
    const char *backend;     /* NULL: WEFT_BACKEND */
    const char *plugin_path; /* directories, colon-separated, searched before WEFT_PLUGIN_PATH's */
} weft_backend_options;

/* One candidate.  Strings live as long as the list. */
typedef struct weft_backend_info {
    size_t struct_size;
    const char *name;              /* from the file's name until the plugin has said its own */
    const char *file;              /* absolute path; NULL for a name that no file answers to */
    const char *version;           /* NULL where the plugin was not asked */
    const char *build;             /* likewise */
    const char *description;       /* likewise */
    const char *library;           /* vendor library in use; "" for none */
    uint32_t abi_major, abi_minor; /* 0.0 where the plugin was not asked */
    uint32_t reason;               /* enum weft_reason */
    const char *reason_text;       /* a sentence with both sides: what is, what was wanted */
    int32_t score;                 /* for auto: higher is better, 0 or less never */
    uint32_t device_count;
} weft_backend_info;

typedef struct weft_backends weft_backends;

/* What a backend is wanted for.  A list such as `nccl,nvshmem` may serve them from two plugins: the
 * first that is usable communicates; symmetric memory comes from the first named after it that is
 * usable and has a table for it, if it turns out to work on the same device, else from the plugin
 * that communicates, or from none. */
enum weft_role { WEFT_ROLE_COMM = 0, WEFT_ROLE_SYMM = 1 };

/* Look everywhere, judge every candidate; what WEFT_BACKEND rules out is not opened.  Succeeds also
 * when none is usable; fails only for a variable or option that cannot be read, or for want of
 * memory.  OPTIONS may be NULL.  The caller releases *OUT; plugins themselves are never unloaded.
 * The list does not change any more: all that read it may do so from any thread.  [any thread] */
WEFT_API WEFT_NODISCARD weft_status weft_backends_create(const weft_backend_options *options,
                                                         weft_backends **out);

/* Frees the list and sets *BACKENDS to NULL.  NULL, and a pointer to NULL, are accepted. */
WEFT_API void weft_backends_release(weft_backends **backends);

/* The candidates, usable or not, in the order of the search.  The caller sets OUT->struct_size. */
WEFT_API size_t weft_backends_count(const weft_backends *backends);
WEFT_API WEFT_NODISCARD weft_status weft_backends_get(const weft_backends *backends, size_t index,
                                                      weft_backend_info *out);

/* The candidate that serves ROLE.  Where that is not the first one wanted, a notice in the log says
 * so in one line.  WEFT_ERR_NO_BACKEND carries the full reason: for a name the user gave, why that
 * one cannot serve and which are known; for auto, one line per candidate.  [any thread] */
WEFT_API WEFT_NODISCARD weft_status weft_backends_choose(const weft_backends *backends,
                                                         enum weft_role role, size_t *index);

/* The tables of candidate INDEX, checked and as long as this build's own structs; an entry that an
 * older plugin lacks is NULL.  Also for a plugin that loaded but is not usable here (reason). Valid
 * for the life of the process.  NULL if the plugin was not loaded, or for a wrong INDEX. */
WEFT_API const weft_plugin *weft_backends_plugin(const weft_backends *backends, size_t index);

/* The text that decides, as WEFT_BACKEND's grammar has it, and in *ORIGIN, if wanted, where it is
 * from ("WEFT_BACKEND", "the backend option").  Both live as long as the list.  NULL for NULL. */
WEFT_API const char *weft_backends_wanted(const weft_backends *backends, const char **origin);

/* Every directory, file and decision in order, one line each; NULL past the end. */
WEFT_API const char *weft_backends_trace(const weft_backends *backends, size_t line);
/* The candidate that LINE of the trace is about.  False: the line is about none, or past the end.
 */
WEFT_API bool weft_backends_trace_candidate(const weft_backends *backends, size_t line,
                                            size_t *index);

/* The name of a reason code: "not found". */
WEFT_API const char *weft_reason_text(uint32_t reason);

#ifdef __cplusplus
}
#endif
#endif
