/* status.h - error texts, the version, and names of dtypes.
 *
 * The statuses, dtypes and reductions, WEFT_FOREVER and WEFT_MAX_DIMS are in weft_plugin.h. */
#ifndef WEFT_STATUS_H
#define WEFT_STATUS_H

#include "weft_plugin.h"

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define WEFT_API                 __attribute__((visibility("default")))
#define WEFT_NODISCARD           __attribute__((warn_unused_result))
#define WEFT_PRINTF(text, first) __attribute__((format(printf, text, first)))
#else
#define WEFT_API
#define WEFT_NODISCARD
#define WEFT_PRINTF(text, first)
#endif

/* Marks a function outside of the promise of libweft.so.1: a minor version of weft may change or
 * remove it, with a line in CHANGELOG.md (docs/abi.md). */
#define WEFT_PREVIEW

/* The name of STATUS without WEFT_, such as "ERR_TIMEOUT", and its meaning, such as "the time limit
 * passed".  "unknown" for a number that is not a status.  Constant texts.  [any thread] */
WEFT_API const char *weft_status_name(weft_status status);
WEFT_API const char *weft_status_text(weft_status status);

/* The error text of the calling thread's last failed call: one sentence, or a few lines.  "" before
 * the first failure.  Valid until the thread's next failing call.  [any thread] */
WEFT_API const char *weft_last_error(void);

/* The name of the vendor library that caused the failure of weft_last_error ("NCCL").  Unless CODE
 * is NULL, *CODE is set to the error code of that library.  NULL and 0 if no vendor library caused
 * the failure.  Valid until the thread's next failing call.  [any thread] */
WEFT_API const char *weft_last_error_vendor(int64_t *code);

/* Set the calling thread's weft_last_error to the formatted text and return STATUS.  For functions
 * of the caller that weft calls, such as a rank's main function (weft_threads_run).  The text is
 * cut after 2047 bytes.  FORMAT may be NULL: the text is then weft_status_text(STATUS).  [any
 * thread] */
WEFT_API weft_status weft_fail(weft_status status, const char *format, ...) WEFT_PRINTF(2, 3);

/* The version of the library, such as "0.9.0".  [any thread] */
WEFT_API const char *weft_version(void);

/* Name of DTYPE, such as "f32"; NULL if it is not a dtype.  [any thread] */
WEFT_API const char *weft_dtype_name(enum weft_dtype dtype);
/* Bytes of an element of DTYPE; 0 if it is not a dtype.  [any thread] */
WEFT_API size_t weft_dtype_bytes(enum weft_dtype dtype);
/* Set *OUT to the dtype with the name TEXT, such as "f32".  WEFT_ERR_PARSE: there is no such dtype.
 * The error text lists the dtypes; for a name of another system, such as "float32", it suggests
 * weft's name.  [any thread] */
WEFT_API WEFT_NODISCARD weft_status weft_dtype_parse(const char *text, enum weft_dtype *out);

#ifdef __cplusplus
}
#endif
#endif
