/* plug_host.h - the host's services for a plugin: errors, log, memory, structs, knobs, the clock.
 *
 * The files plug_* need weft_plugin.h and the C library.  A plugin of any author may compile them
 * into itself.  Everything but plug_host_set may be called by any thread. */
#ifndef WEFT_PLUG_HOST_H
#define WEFT_PLUG_HOST_H

#include "kit/print.h"

#include "weft_plugin.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PLUG_PRINTF(position, first) __attribute__((format(printf, position, first)))
#define PLUG_LENGTH(array)           (sizeof(array) / sizeof((array)[0]))
/* For functions on the path of every collective.  The linker places them next to each other, so a
 * call after a pause loads fewer pages of code. */
#define PLUG_HOT __attribute__((hot))

/* Return a failure to the caller.  Use it only while no resource is owned. */
#define PLUG_TRY(expression)                                                                       \
    do {                                                                                           \
        weft_status plug_try_status = (expression);                                                \
        if (plug_try_status != WEFT_OK) return plug_try_status;                                    \
    } while (0)

/* Keep HOST for the life of the process.  Later calls have no effect.  Without a host, errors and
 * log lines are dropped, memory comes from malloc, and no knob is set. */
void plug_host_set(const weft_host *host);

/* ---- errors ---- */

/* Set this thread's last error and return STATUS. */
weft_status plug_fail(weft_status status, const char *format, ...) PLUG_PRINTF(2, 3);
/* The same, with VENDOR's error CODE. */
weft_status plug_fail_vendor(weft_status status, const char *vendor, int64_t code,
                             const char *format, ...) PLUG_PRINTF(4, 5);
/* The same, with the number and text of the errno value ERROR. */
weft_status plug_fail_errno(weft_status status, int error, const char *format, ...)
    PLUG_PRINTF(3, 4);
/* WEFT_ERR_NO_MEMORY: BYTES of host memory could not be allocated. */
weft_status plug_fail_memory(size_t bytes);
#ifdef __clang_analyzer__ /* the analyzer does not see that these return their status */
#define plug_fail(status, ...)        (plug_fail(status, __VA_ARGS__), (status))
#define plug_fail_vendor(status, ...) (plug_fail_vendor(status, __VA_ARGS__), (status))
#define plug_fail_errno(status, ...)  (plug_fail_errno(status, __VA_ARGS__), (status))
#define plug_fail_memory(bytes)       (plug_fail_memory(bytes), WEFT_ERR_NO_MEMORY)
#endif
/* Text of this thread's last failure; "" before the first.  The next failure overwrites it, and may
 * quote it. */
const char *plug_last_text(void);
void plug_log(int32_t level, const char *format, ...) PLUG_PRINTF(2, 3);

/* ---- memory ---- */

/* Zeroed host memory, or NULL.  Zero bytes give a valid pointer. */
void *plug_alloc(size_t bytes) __attribute__((warn_unused_result));
/* The same; NULL is described by plug_fail_memory. */
void *plug_new(size_t bytes) __attribute__((warn_unused_result));
/* NULL is accepted. */
void plug_free(void *pointer);

/* ---- structs that begin with their size ---- */

/* Copy the caller's struct THEIRS to OURS, of BYTES.  Fields that a shorter struct lacks are
 * zero. */
void plug_take_struct(void *ours, const void *theirs, size_t bytes) PLUG_HOT;
/* Copy OURS, of BYTES, to the caller's struct, up to its size.  Its size field is kept. */
void plug_give_struct(void *theirs, const void *ours, size_t bytes);

/* ---- knobs ---- */

/* The value of the knob NAME, or NULL if it is not set. */
const char *plug_knob(const char *name);
/* OTHERWISE if it is not set; false for "", "0", "no", "off" and "false"; else true. */
bool plug_knob_flag(const char *name, bool otherwise);
/* A number of bytes, with or without a unit K, M or G; OTHERWISE if it is not set or empty.
 * WEFT_ERR_INVALID shows a value that is not such a number. */
weft_status plug_knob_bytes(const char *name, uint64_t otherwise, uint64_t *out);

/* ---- the clock ---- */

uint64_t plug_now(void); /* monotonic, in nanoseconds */

#endif
