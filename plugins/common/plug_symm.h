/* plug_symm.h - checks of the arguments of one-sided operations on windows.
 *
 * CALL names the operation in messages.  Each check returns WEFT_OK, or describes the error. */
#ifndef WEFT_PLUG_SYMM_H
#define WEFT_PLUG_SYMM_H

#include "plug_host.h"

#include "kit/signals.h"

/* WEFT_ERR_INVALID unless PEER is one of SIZE ranks. */
weft_status plug_check_peer(const char *call, int32_t peer, int32_t size);
/* WEFT_ERR_INVALID unless BYTES at OFFSET lie in a window of WINDOW_BYTES. */
weft_status plug_check_span(const char *call, uint64_t offset, uint64_t bytes,
                            uint64_t window_bytes);
/* WEFT_ERR_INVALID unless SIGNAL is below COUNT; WEFT_ERR_UNSUPPORTED if OP is unknown. */
weft_status plug_check_signal(const char *call, uint32_t signal, uint32_t op, uint32_t count);
/* WEFT_ERR_UNSUPPORTED if COMPARE is unknown. */
weft_status plug_check_compare(const char *call, uint32_t compare);
/* WEFT_ERR_INVALID if MEMORY is NULL and BYTES is not 0. */
weft_status plug_check_memory(const char *call, const void *memory, uint64_t bytes);

/* One rank's request when a window is created. */
struct plug_window_request {
    int32_t rank; /* as named in messages */
    uint32_t signals;
    uint64_t bytes;
};
/* WEFT_ERR_MISMATCH, naming both ranks, unless A and B request the same window. */
weft_status plug_check_same_window(struct plug_window_request a, struct plug_window_request b);
/* The same of COUNT requests of one rank each, which are STRIDE bytes apart. */
weft_status plug_check_same_windows(const struct plug_window_request *first, size_t stride,
                                    int32_t count);

#endif
