/* size.h - sizes in bytes, as people write them. */
#ifndef WEFT_BASE_TEXT_SIZE_H
#define WEFT_BASE_TEXT_SIZE_H

#include <stddef.h>
#include <stdint.h>

/* Read a size, "65536", "64K" or "64KiB", at least 1, at the beginning of TEXT.  Returns the number
 * of bytes read, or 0. */
size_t wf_scan_size(const char *text, int64_t *out);

#endif
