/* status.h - what went wrong, in words. */
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

/* "ERR_TIMEOUT" and "the time limit passed"; "unknown" for other numbers. [any thread] */
WEFT_API const char *weft_status_name(weft_status status);
WEFT_API const char *weft_status_text(weft_status status);

/* What the calling thread's last failed call had to say, in one sentence or a few lines; "" before
 * any failure.  Valid until the thread's next failing call.  [any thread] */
WEFT_API const char *weft_last_error(void);

/* The vendor library's own code behind that failure, and its name ("NCCL"); NULL and 0 where no
 * vendor was involved.  [any thread] */
WEFT_API const char *weft_last_error_vendor(int64_t *code);

/* Set the text of weft_last_error for the calling thread, as printf would write it, and return
 * STATUS.  For functions of the caller that weft calls, such as a rank's main function
 * (weft_threads_run) or an exchange.  The text is cut after 2047 bytes.  [any thread] */
WEFT_API weft_status weft_fail(weft_status status, const char *format, ...) WEFT_PRINTF(2, 3);

/* "0.1.0".  [any thread] */
WEFT_API const char *weft_version(void);

/* "f32", 4 for a dtype; NULL and 0 for an unknown one.  [any thread] */
WEFT_API const char *weft_dtype_name(uint32_t dtype);
WEFT_API size_t weft_dtype_bytes(uint32_t dtype);
/* The dtype called TEXT, such as "f32".  WEFT_ERR_PARSE lists the dtypes, and suggests one where
 * TEXT is another system's name ("float32").  [any thread] */
WEFT_API WEFT_NODISCARD weft_status weft_dtype_parse(const char *text, enum weft_dtype *out);

#ifdef __cplusplus
}
#endif
#endif
